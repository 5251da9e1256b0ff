//! The order of steps of a 7-series partial: what must come, and what must not.

use super::build::Stream;
use super::rules::{DEVICE, plain};
use super::*;

type Edit = fn(&mut Stream);

/// Masks, stop, one block: all but the restart.
fn stopped() -> Stream {
    let device = device(DEVICE);
    let mut stream = Stream::default();
    stream
        .open(device)
        .masks(device, &[])
        .stop()
        .block(device, FrameIndex(0), 1);
    stream
}

/// A whole partial that goes on from there as `rest` says.
fn then(rest: impl FnOnce(&mut Stream)) -> Result<Fenced, Refusal> {
    let mut stream = stopped();
    rest(&mut stream);
    judge(&stream.words, None, None)
}

fn restored(stream: &mut Stream) -> &mut Stream {
    stream
        .command(Command::GRESTORE)
        .put(Register::MASK, 0x100)
        .put(Register::CTL0, 0)
}

/// The device carries the start out with the parking address. Without it, and
/// without the checksum that proves it, every function on the card may stand still.
#[test]
fn b4_a_start_is_carried_out_and_checked() {
    let park = Family::Series7;
    let after_start = |rest: Edit| {
        then(|stream| {
            restored(stream).command(Command::START);
            rest(stream);
        })
    };
    assert!(
        after_start(|stream| {
            stream.park(Family::Series7).close();
        })
        .is_ok()
    );
    let all: [(&str, &str, Edit); 7] = [
        ("the end alone", "left-stopped", |stream| {
            stream.command(Command::DESYNC);
        }),
        ("no parking address", "out-of-order", |stream| {
            stream.close();
        }),
        ("no checksum", "crc-missing", |stream| {
            stream.park(Family::Series7).command(Command::DESYNC);
        }),
        ("parked twice", "out-of-order", |stream| {
            stream.park(Family::Series7).park(Family::Series7).close();
        }),
        ("another command first", "out-of-order", |stream| {
            stream.command(Command::NULL).park(Family::Series7).close();
        }),
        ("a command after it", "out-of-order", |stream| {
            stream
                .park(Family::Series7)
                .crc()
                .command(Command::NULL)
                .close();
        }),
        ("two checksums", "out-of-order", |stream| {
            stream.park(Family::Series7).crc().close();
        }),
    ];
    for (name, expected, rest) in all {
        assert_eq!(code(after_start(rest)), expected, "{name}");
    }
    // Nor does a start that was never commanded count.
    let never = then(|stream| {
        restored(stream).command(Command::DESYNC);
    });
    assert_eq!(code(never), "out-of-order");
    let never = then(|stream| {
        stream
            .put(Register::MASK, 0x100)
            .put(Register::CTL0, 0)
            .command(Command::NULL)
            .park(park)
            .close();
    });
    assert_eq!(code(never), "left-stopped");
}

/// A mask that comes too late says what the next restart restores.
#[test]
fn b4_masks_are_not_left_behind() {
    let device = device(DEVICE);
    let open = |stream: &mut Stream| {
        stream.frames(&[0; 202]);
    };
    let addressed_before = then(|stream| {
        stream.put(Register::FAR, 0x0100_0000);
        restored(stream).command(Command::WCFG);
        open(stream);
        stream.command(Command::START).park(Family::Series7).close();
    });
    assert_eq!(code(addressed_before), "out-of-order");
    let copied = then(|stream| {
        stream
            .command(Command::WCFG)
            .put(Register::FAR, 0)
            .frames(&[0; 101]);
        restored(stream)
            .command(Command::MFW)
            .write(Register::MFWR, &[0; 8])
            .command(Command::START)
            .park(Family::Series7)
            .close();
    });
    assert_eq!(code(copied), "out-of-order");
    let without_restore = judge(
        &plain(|stream| {
            stream.masks(device, &[3]);
        }),
        None,
        None,
    );
    assert_eq!(code(without_restore), "out-of-order");
}

/// The first copy goes where the write has moved on to; what an address in
/// between does is not measured.
#[test]
fn b4_a_copy_follows_its_frame() {
    let copied = |between: Edit, again: Edit| {
        judge(
            &plain(|stream| {
                stream
                    .copying(true)
                    .command(Command::WCFG)
                    .put(Register::FAR, 0)
                    .frames(&[7; 202]);
                between(stream);
                stream.command(Command::MFW).nops(12);
                between(stream);
                stream.write(Register::MFWR, &[0; 8]);
                again(stream);
                stream.command(Command::NULL).copying(false);
            }),
            None,
            None,
        )
    };
    let nothing = |_stream: &mut Stream| ();
    assert!(copied(nothing, nothing).is_ok());
    let moved = copied(
        |stream| {
            stream.put(Register::FAR, 5);
        },
        nothing,
    );
    assert_eq!(code(moved), "no-frame-address");
    let twice = copied(nothing, |stream| {
        stream
            .command(Command::MFW)
            .put(Register::FAR, 9)
            .write(Register::MFWR, &[0; 8]);
    });
    assert_eq!(code(twice), "out-of-order");
}

/// From the restore to the start genuine files lift two masks, and do nothing else.
#[test]
fn b4_between_restore_and_start_nothing_comes() {
    let device = device(DEVICE);
    let all: [(&str, Edit); 6] = [
        ("RCRC", |stream| {
            stream.command(Command::RCRC);
        }),
        ("WCFG", |stream| {
            stream.command(Command::WCFG);
        }),
        ("NULL", |stream| {
            stream.command(Command::NULL);
        }),
        ("a checksum", |stream| {
            stream.crc();
        }),
        ("the parking address", |stream| {
            stream.park(Family::Series7);
        }),
        ("the device", |stream| {
            let device = self::device(DEVICE);
            stream.put(Register::IDCODE, device.idcode());
        }),
    ];
    for (name, edit) in all {
        let mut stream = stopped();
        restored(&mut stream);
        edit(&mut stream);
        stream.command(Command::START).park(Family::Series7).close();
        let said = judge(&stream.words, Some(device), None);
        assert_eq!(code(said), "out-of-order", "{name}");
    }
}

/// Masks come before the stop, frames after it, and copies without a break.
#[test]
fn b4_masks_frames_and_copies_have_their_time() {
    let device = device(DEVICE);
    let said = |edit: &dyn Fn(&mut Stream)| {
        let mut stream = Stream::default();
        stream.open(device);
        edit(&mut stream);
        stream.restart();
        code(judge(&stream.words, None, None))
    };
    let late = said(&|stream| {
        stream.stop().masks(device, &[]);
    });
    assert_eq!(late, "out-of-order");
    let early = said(&|stream| {
        stream
            .masks(device, &[])
            .block(device, FrameIndex(0), 1)
            .stop();
    });
    assert_eq!(early, "out-of-order");
    let special = said(&|stream| {
        stream
            .masks(device, &[])
            .put(Register::MASK, 0x1000)
            .put(Register::CTL1, 0x1000)
            .stop();
    });
    assert_eq!(special, "out-of-order");
    let broken = plain(|stream| {
        stream
            .command(Command::WCFG)
            .put(Register::FAR, 0)
            .frames(&[7; 101])
            .command(Command::MFW)
            .put(Register::MASK, 0)
            .write(Register::MFWR, &[0; 8]);
    });
    assert_eq!(code(judge(&broken, None, None)), "out-of-order");
}

/// What the device does with copies that it was not told of is not measured.
#[test]
fn b4_copies_are_told_to_the_device() {
    let copied = |told: bool| {
        plain(|stream| {
            if told {
                stream.copying(true);
            }
            stream
                .command(Command::WCFG)
                .put(Register::FAR, 0)
                .frames(&[7; 101])
                .command(Command::MFW)
                .write(Register::MFWR, &[0; 8])
                .command(Command::NULL)
                .copying(false);
        })
    };
    assert!(judge(&copied(true), None, None).is_ok());
    assert_eq!(code(judge(&copied(false), None, None)), "out-of-order");
}

/// A command that is not given its time may not be done when the next one comes.
#[test]
fn b4_commands_are_given_their_time() {
    let device = device(DEVICE);
    let parts = |bare: Option<Command>| {
        let give = |stream: &mut Stream, command| {
            if bare == Some(command) {
                stream.bare(command);
            } else {
                stream.command(command);
            }
        };
        let mut stream = Stream::default();
        stream.open(device).masks(device, &[]).crc();
        give(&mut stream, Command::SHUTDOWN);
        stream
            .crc()
            .copying(true)
            .command(Command::WCFG)
            .put(Register::FAR, 0)
            .frames(&[7; 101]);
        give(&mut stream, Command::MFW);
        stream.write(Register::MFWR, &[0; 8]);
        give(&mut stream, Command::GRESTORE);
        stream.copying(false);
        give(&mut stream, Command::START);
        stream.park(Family::Series7).close();
        judge(&stream.words, None, None)
    };
    assert!(parts(None).is_ok());
    for command in [
        Command::SHUTDOWN,
        Command::MFW,
        Command::GRESTORE,
        Command::START,
    ] {
        assert_eq!(code(parts(Some(command))), "out-of-order", "{command}");
    }
}

/// A restart without frames is for nothing, and restores what others wrote.
#[test]
fn b4_a_restart_has_frames() {
    let device = device(DEVICE);
    let mut stream = Stream::default();
    stream.open(device).masks(device, &[]).stop().restart();
    let said = judge(&stream.words, None, None);
    assert_eq!(code(said), "unmeasured-arrangement");
    // And what was written before the stop has its checksum.
    let mut stream = Stream::default();
    stream
        .open(device)
        .masks(device, &[])
        .command(Command::SHUTDOWN);
    stream.block(device, FrameIndex(0), 1).restart();
    assert_eq!(code(judge(&stream.words, None, None)), "crc-missing");
}

/// With the fallback on, an error makes the device load another bitstream.
#[test]
fn b4_the_fallback_stays_off() {
    for mask in [0x400, 0x500] {
        let on = judge(
            &plain(|stream| {
                stream.put(Register::MASK, mask).put(Register::CTL0, 0);
            }),
            None,
            None,
        );
        assert_eq!(code(on), "forbidden-value", "{mask:x}");
    }
}

/// Where no device is given, the first that is named counts to the end.
#[test]
fn b4_one_stream_names_one_device() {
    let other = device("xc7a35t");
    let words = plain(|stream| {
        stream.put(Register::IDCODE, other.idcode());
    });
    assert_eq!(code(judge(&words, None, None)), "wrong-device");
    let again = plain(|stream| {
        stream.put(Register::IDCODE, device(DEVICE).idcode());
    });
    assert!(judge(&again, None, None).is_ok());
}
