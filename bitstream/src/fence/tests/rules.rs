//! Each rule, broken alone in a stream that is right otherwise.

use proptest::prelude::*;

use super::build::Stream;
use super::*;
use crate::device::FrameAddress;
use crate::xilinx::{NOP, SYNC};

pub(super) const DEVICE: &str = "xc7z020";

/// A 7-series partial without restart, with something done before its end.
pub(super) fn plain(edit: impl FnOnce(&mut Stream)) -> Vec<u32> {
    let device = device(DEVICE);
    let mut stream = Stream::default();
    stream.open(device).block(device, FrameIndex(0), 42);
    edit(&mut stream);
    stream.close();
    stream.words
}

fn verdict(edit: impl FnOnce(&mut Stream)) -> Result<Fenced, Refusal> {
    judge(&plain(edit), None, None)
}

/// A 7-series partial with a restart, its parts to be changed.
pub(super) fn restart(restored: &[usize], region: &RegionFrames) -> Vec<u32> {
    let device = device(DEVICE);
    let mut stream = Stream::default();
    stream.open(device).masks(device, restored).stop();
    for range in set(region).ranges() {
        stream.block(device, range.start, range.end.0 - range.start.0);
    }
    stream.restart();
    stream.words
}

#[test]
fn a_stream_as_tools_write_it_is_accepted() {
    let fenced = verdict(|_stream| ()).unwrap();
    assert_eq!(fenced.device(), device(DEVICE));
    assert_eq!(fenced.frames(), &columns(device(DEVICE), 0..1));
    assert!(!fenced.restores_flip_flops());
}

#[test]
fn registers_that_partials_do_not_write_are_refused() {
    for number in 0..32 {
        let register = Register(number);
        let code = match verdict(|stream| {
            stream.put(register, 0);
        }) {
            Ok(_) => "accepted",
            Err(refusal) => refusal.code(),
        };
        let expected = match number {
            // A checksum of 0 is not the right one; 0 is a good value of these.
            0 => "crc-mismatch",
            // NULL and MASK take a 0, and so does the address.
            1 | 4 | 6 => "accepted",
            // A control register without its mask; data without a command.
            2 | 5 | 10 | 24 => "out-of-order",
            11 | 26 => "encrypted",
            12 => "unknown-device",
            30 => "multi-die",
            _ => "forbidden-register",
        };
        assert_eq!(code, expected, "{register}");
    }
}

#[test]
fn commands_that_partials_do_not_give_are_refused() {
    for number in 0..40 {
        let code = match verdict(|stream| {
            stream.crc().command(Command(number));
        }) {
            Ok(_) => "accepted",
            Err(refusal) => refusal.code(),
        };
        let expected = match number {
            // RCRC: no checksum is lost, for one stands before it.
            0..=2 | 7 => "accepted",
            // A start that was not earned, a restore, and a stop after frames.
            5 | 10 | 11 => "out-of-order",
            9 => "full-bitstream",
            13 => "word-outside-sync",
            _ => "forbidden-command",
        };
        assert_eq!(code, expected, "command {number}");
    }
}

#[test]
fn bits_of_the_control_registers_are_refused_one_by_one() {
    for bit in 0..32 {
        let value = 1_u32 << bit;
        for register in [Register::MASK, Register::CTL0, Register::CTL1] {
            let code = match verdict(|stream| {
                if register != Register::MASK {
                    stream.put(Register::MASK, 0);
                }
                stream.put(register, value);
            }) {
                Ok(_) => "accepted",
                Err(refusal) => refusal.code(),
            };
            let expected = match (register, bit) {
                // Nothing is let through to the two by a mask of 0.
                (Register::MASK, 8 | 10 | 12) | (Register::CTL0, 8 | 10) | (Register::CTL1, 12) => {
                    "accepted"
                }
                (Register::MASK | Register::CTL0, 6) => "encrypted",
                (Register::MASK | Register::CTL1, 21) => "per-frame-crc",
                _ => "forbidden-value",
            };
            assert_eq!(code, expected, "{register} bit {bit}");
        }
    }
    // One mask serves both registers.
    let through = verdict(|stream| {
        stream
            .put(Register::MASK, 0x1400)
            .put(Register::CTL0, 0x400);
    });
    assert_eq!(code(through), "forbidden-value");
    let left = verdict(|stream| {
        stream
            .put(Register::MASK, 0x1000)
            .put(Register::CTL1, 0x1000);
    });
    assert_eq!(code(left), "left-set");
}

#[test]
fn packets_that_tools_do_not_write_are_refused() {
    for (word, expected) in [
        (0x2800_0001, "read-packet"),
        (0x3800_8001, "reserved-operation"),
        (0x4000_0001, "not-a-packet"),
        (0x5000_0001, "not-a-packet"),
        (0x0000_0000, "not-a-packet"),
        (0xffff_ffff, "not-a-packet"),
        (SYNC, "not-a-packet"),
        (0x2000_0001, "not-a-packet"),
        // A register of 32 or more, which is another one to the device.
        (0x3004_8001, "not-a-packet"),
        (0x3000_8801, "not-a-packet"),
        (0x3000_8000, "word-count"),
        (0x3000_8002, "word-count"),
        (0x3000_47ff, "not-a-packet"),
    ] {
        let verdict = verdict(|stream| stream.words.push(word));
        assert_eq!(code(verdict), expected, "{word:08x}");
    }
}

#[test]
fn a_second_sync_word_does_not_hide_behind_the_end() {
    let mut words = plain(|_stream| ());
    words.extend([SYNC, NOP, 0x3000_8001, 15]);
    assert_eq!(code(judge(&words, None, None)), "before-idcode");
    let mut words = plain(|_stream| ());
    words.push(0x3000_8001);
    assert_eq!(code(judge(&words, None, None)), "word-outside-sync");
    // And not before the beginning.
    let mut words = vec![SYNC, NOP, 0x3002_0001, 0x1234];
    words.extend(plain(|_stream| ()));
    assert_eq!(code(judge(&words, None, None)), "forbidden-register");
    // A whole second stream is one too many.
    let words = [plain(|_stream| ()), plain(|_stream| ())].concat();
    assert_eq!(code(judge(&words, None, None)), "unmeasured-arrangement");
}

#[test]
fn the_end_must_come_and_nothing_may_be_cut() {
    let words = plain(|_stream| ());
    let whole = words.len() - 16;
    for length in 1..whole {
        let code = code(judge(&words[..length], None, None));
        let expected = ["no-sync-word", "unfinished", "not-a-packet"];
        assert!(expected.contains(&code), "{length}: {code}");
    }
    assert!(judge(&words[..whole], None, None).is_ok());
}

#[test]
fn frames_are_held_against_the_region_one_by_one() {
    let device = device(DEVICE);
    let region = columns(device, 0..1);
    assert!(judge(&plain(|_stream| ()), Some(device), Some(&region)).is_ok());
    for (first, frames, outside) in [(0, 43, 42), (41, 2, 42), (5, 300, 42)] {
        let words = plain(|stream| {
            stream.block(device, FrameIndex(first), frames);
        });
        let refusal = judge(&words, Some(device), Some(&region)).unwrap_err();
        assert_eq!(refusal.code(), "outside-region");
        let expected = device.geometry().unwrap().address(FrameIndex(outside));
        assert_eq!(refusal.frame(), expected);
        // The offset is that of the very frame.
        let block = words.iter().rposition(|word| *word == 0x3000_4000).unwrap() + 2;
        let before = usize::try_from(outside - first).unwrap();
        assert_eq!(refusal.offset(), (block + before * 101) * 4);
    }
    // An address alone, outside, is refused before any data.
    let words = plain(|stream| {
        stream.block(device, FrameIndex(42), 1);
    });
    assert_eq!(
        code(judge(&words, Some(device), Some(&region))),
        "outside-region"
    );
}

#[test]
fn addresses_that_do_not_exist_are_refused_and_break_nothing() {
    for (far, expected) in [
        (0x0000_0070, "no-such-frame"),
        (0x0001_ff80, "no-such-frame"),
        (0x001e_0000, "no-such-frame"),
        (0x0180_0000, "no-such-frame"),
        (0x0380_0000, "no-such-frame"),
        (0x0100_0001, "no-such-frame"),
        (0x0400_0000, "bad-frame-address"),
        (0x8000_0000, "bad-frame-address"),
        (u32::MAX, "bad-frame-address"),
    ] {
        let verdict = verdict(|stream| {
            stream.put(Register::FAR, far);
        });
        assert_eq!(code(verdict), expected, "{far:08x}");
    }
    // The parking address takes no frames.
    let parked = verdict(|stream| {
        stream
            .command(Command::WCFG)
            .park(Family::Series7)
            .frames(&[0; 202]);
    });
    assert_eq!(code(parked), "no-frame-address");
    // And data does not go on where the last data ended.
    let again = verdict(|stream| {
        stream.frames(&[0; 202]).frames(&[0; 202]);
    });
    assert_eq!(code(again), "out-of-order");
    let armed = verdict(|stream| {
        stream.command(Command::WCFG).frames(&[0; 202]);
    });
    assert_eq!(code(armed), "no-frame-address");
    // An address alone does not empty the buffer: all frames would move by one.
    let unarmed = verdict(|stream| {
        stream.put(Register::FAR, 0).frames(&[0; 202]);
    });
    assert_eq!(code(unarmed), "out-of-order");
}

#[test]
fn a_write_that_runs_over_the_last_frame_is_refused() {
    let device = device(DEVICE);
    let geometry = device.geometry().unwrap();
    let last = FrameIndex(geometry.frame_count() - 1);
    let words = plain(|stream| {
        stream
            .command(Command::WCFG)
            .put(Register::FAR, geometry.address(last).unwrap().raw())
            .frames(&[0; 101 * 4]);
    });
    assert_eq!(code(judge(&words, None, None)), "no-such-frame");
}

#[test]
fn pads_are_empty_and_the_last_frame_is_not_left_in_the_buffer() {
    let device = device(DEVICE);
    let data = |pads: &[u32]| {
        let mut data = vec![7; 101];
        for pad in pads {
            data.extend([*pad; 101]);
        }
        data
    };
    let at = |frame: FrameIndex, pads: &[u32]| {
        let far = device.geometry().unwrap().address(frame).unwrap().raw();
        verdict(|stream| {
            stream
                .command(Command::WCFG)
                .put(Register::FAR, far)
                .frames(&data(pads));
        })
    };
    let row = device.geometry().unwrap().rows()[0].frames.clone();
    let last = FrameIndex(row.end.0 - 1);
    assert!(at(FrameIndex(0), &[0]).is_ok());
    assert!(at(last, &[0, 0]).is_ok());
    assert_eq!(code(at(FrameIndex(0), &[7])), "left-in-buffer");
    assert_eq!(code(at(last, &[0])), "out-of-order");
    assert_eq!(code(at(last, &[7, 0])), "pad-not-empty");
    assert_eq!(code(at(last, &[0, 7])), "pad-not-empty");
    assert_eq!(code(at(last, &[0, 0, 7])), "left-in-buffer");
    let odd = verdict(|stream| {
        stream
            .command(Command::WCFG)
            .put(Register::FAR, 0)
            .frames(&[0; 100]);
    });
    assert_eq!(code(odd), "frame-length");
}

#[test]
fn copies_go_where_their_addresses_say() {
    let device = device(DEVICE);
    let region = columns(device, 0..1);
    let copies = |targets: &[u32], first: &[u32]| {
        plain(|stream| {
            stream
                .copying(true)
                .command(Command::WCFG)
                .put(Register::FAR, 0)
                .frames(&[7; 101])
                .command(Command::MFW)
                .nops(12)
                .write(Register::MFWR, first);
            for target in targets {
                stream
                    .put(Register::FAR, *target)
                    .write(Register::MFWR, &[0; 4]);
            }
            stream.command(Command::NULL).copying(false);
        })
    };
    let accepted = judge(&copies(&[1, 5, 41], &[0; 8]), Some(device), Some(&region)).unwrap();
    assert!(accepted.is_compressed());
    // Column 1 is not the region's.
    let outside = judge(&copies(&[1, 0x80], &[0; 8]), Some(device), Some(&region));
    assert_eq!(code(outside), "outside-region");
    assert_eq!(
        code(judge(&copies(&[1], &[0; 4]), None, None)),
        "word-count"
    );
    assert_eq!(
        code(judge(&copies(&[1], &[0, 0, 0, 0, 0, 0, 0, 1]), None, None)),
        "forbidden-value"
    );
    // A frame of the design is no mask.
    assert_eq!(
        code(judge(&copies(&[0x0100_0000], &[0; 8]), None, None)),
        "out-of-order"
    );
    // Copying needs the command, an address each time, and a frame.
    let twice = verdict(|stream| {
        stream
            .command(Command::MFW)
            .put(Register::FAR, 0)
            .write(Register::MFWR, &[0; 8])
            .write(Register::MFWR, &[0; 4]);
    });
    assert_eq!(code(twice), "no-frame-address");
    let none = verdict(|stream| {
        stream
            .command(Command::WCFG)
            .put(Register::FAR, 0)
            .frames(&[0; 202])
            .command(Command::NULL)
            .command(Command::MFW)
            .write(Register::MFWR, &[0; 8]);
    });
    assert_eq!(code(none), "out-of-order");
}

#[test]
fn flip_flops_are_restored_in_the_region_only() {
    let device = device(DEVICE);
    let region = columns(device, 20..24);
    let constant: Vec<usize> = (0..=17).chain(44..=49).collect();
    let bottom = {
        let mask = device.geometry().unwrap().clb_mask().unwrap();
        let bottom = |column: &crate::device::Column| {
            column.half == Some(crate::device::Half::Bottom) && column.row == 0
        };
        mask.columns().iter().position(bottom).unwrap()
    };
    let mut restored: Vec<usize> = (20..24).chain(constant.iter().copied()).collect();
    restored.extend(constant.iter().map(|column| bottom + column));
    let good = restart(&restored, &region);
    let fenced = judge(&good, Some(device), Some(&region)).unwrap();
    assert!(fenced.restores_flip_flops());
    // One column more, outside: which one is told.
    restored.push(24);
    let refusal = judge(&restart(&restored, &region), Some(device), Some(&region)).unwrap_err();
    assert_eq!(refusal.code(), "restores-outside");
    assert_eq!(refusal.frame().map(FrameAddress::column), Some(24));
}

#[test]
fn flip_flops_are_not_restored_without_every_mask() {
    let device = device(DEVICE);
    let region = columns(device, 20..24);
    let mut stream = Stream::default();
    stream.open(device).stop();
    stream
        .block(device, set(&region).ranges()[0].start, 5)
        .restart();
    assert_eq!(
        code(judge(&stream.words, Some(device), Some(&region))),
        "mask-incomplete"
    );
    // A mask that is neither of the two that tools write.
    let mut stream = Stream::default();
    let mut mask = [0; 202];
    mask[50] = 0xe000_09bd;
    stream
        .open(device)
        .command(Command::WCFG)
        .put(Register::FAR, 0x0100_0000)
        .frames(&mask)
        .close();
    assert_eq!(code(judge(&stream.words, None, None)), "mask-content");
}

type Edit = fn(&mut Stream);

#[test]
fn steps_come_in_their_order() {
    let device = device(DEVICE);
    let block = |stream: &mut Stream| {
        stream.block(device, FrameIndex(0), 1);
    };
    let all: [(&str, &str, Edit); 7] = [
        (
            "stopped: frames after the start",
            "out-of-order",
            |stream| {
                stream
                    .masks(self::device(DEVICE), &[])
                    .stop()
                    .command(Command::GRESTORE)
                    .put(Register::MASK, 0x100)
                    .put(Register::CTL0, 0)
                    .command(Command::START)
                    .command(Command::WCFG);
            },
        ),
        (
            "stopped: a start with a control bit set",
            "left-set",
            |stream| {
                stream
                    .masks(self::device(DEVICE), &[])
                    .stop()
                    .command(Command::GRESTORE)
                    .command(Command::START);
            },
        ),
        (
            "stopped: an address while restoring",
            "out-of-order",
            |stream| {
                stream
                    .masks(self::device(DEVICE), &[])
                    .stop()
                    .command(Command::GRESTORE)
                    .put(Register::FAR, 0);
            },
        ),
        ("stopped twice", "out-of-order", |stream| {
            stream.stop().command(Command::SHUTDOWN);
        }),
        ("data without a command", "out-of-order", |stream| {
            stream
                .command(Command::NULL)
                .put(Register::FAR, 0)
                .frames(&[0; 202]);
        }),
        (
            "an address that begins the checksum anew",
            "out-of-order",
            |stream| {
                stream.crc().command(Command::RCRC).put(Register::FAR, 0);
            },
        ),
        (
            "frames whose checksum is thrown away",
            "crc-missing",
            |stream| {
                stream.command(Command::RCRC);
            },
        ),
    ];
    for (name, expected, edit) in all {
        let mut stream = Stream::default();
        stream.open(device);
        if !name.starts_with("stopped") {
            block(&mut stream);
        }
        edit(&mut stream);
        stream.close();
        assert_eq!(code(judge(&stream.words, None, None)), expected, "{name}");
    }
}

#[test]
fn no_checksum_no_load() {
    let device = device(DEVICE);
    let mut stream = Stream::default();
    stream
        .open(device)
        .block(device, FrameIndex(0), 3)
        .command(Command::DESYNC);
    assert_eq!(code(judge(&stream.words, None, None)), "crc-missing");
}

#[test]
fn devices_are_told_apart() {
    let words = plain(|_stream| ());
    let other = judge(&words, Some(device("xc7a35t")), None).unwrap_err();
    assert_eq!(other.code(), "wrong-device");
    assert!(other.to_string().contains("03727093"), "{other}");
    for (name, expected) in [("xcku035", "unmeasured-family"), ("xcu250", "multi-die")] {
        let mut stream = Stream::default();
        stream.open(device(name)).close();
        assert_eq!(code(judge(&stream.words, None, None)), expected, "{name}");
    }
    let mut stream = Stream::default();
    stream
        .sync()
        .command(Command::RCRC)
        .put(Register::IDCODE, 0x0bad_0093)
        .close();
    assert_eq!(code(judge(&stream.words, None, None)), "unknown-device");
    // The device is named before anything else.
    let mut stream = Stream::default();
    stream.sync().put(Register::IDCODE, 0x0372_7093).close();
    assert_eq!(code(judge(&stream.words, None, None)), "before-idcode");
}

#[test]
fn every_code_has_a_meaning_and_is_its_own() {
    let mut codes: Vec<&str> = Reason::CODES.iter().map(|(code, _)| *code).collect();
    let count = codes.len();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), count);
    assert!(Reason::CODES.iter().all(|(_, meaning)| meaning.len() > 10));
    for reason in [
        Reason::NoSync,
        Reason::Unfinished,
        Reason::TooMany,
        Reason::Incomparable,
    ] {
        assert!(codes.contains(&reason.code()));
        assert!(reason.remedy().ends_with('.'));
    }
}

#[test]
fn the_document_has_every_code_with_its_meaning() {
    let document = include_str!("../../../../docs/bitstream-safety.md");
    let rows: Vec<(&str, &str)> = document
        .lines()
        .filter_map(|line| {
            line.strip_prefix("| `")?
                .strip_suffix(" |")?
                .split_once("` | ")
        })
        .filter(|(code, _)| Reason::CODES.iter().any(|(known, _)| known == code))
        .collect();
    assert_eq!(rows, Reason::CODES);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn words_after_a_good_beginning_are_accepted_or_refused_and_never_break(
        tail in proptest::collection::vec(
            prop_oneof![
                any::<u32>(),
                Just(NOP), Just(SYNC), Just(0x3000_8001), Just(0x3000_2001),
                Just(0x3000_4000), Just(0x5000_0065), Just(0x3001_4008), Just(0x3000_0001),
                0_u32..40,
            ],
            0..400,
        ),
    ) {
        let device = device(DEVICE);
        let mut stream = Stream::default();
        stream.open(device).command(Command::WCFG);
        stream.words.extend(tail);
        let bytes = build::bytes(&stream.words);
        let stream = parse_bin(&bytes, WordOrder::BigEndian).unwrap();
        let region = columns(device, 3..5);
        if let Ok(fenced) = check(&stream, None, Some(&region)) {
            prop_assert!(set(fenced.frames()).is_subset(set(&region)));
        }
        let survey = survey(&stream);
        prop_assert!(!survey.streams.is_empty());
    }
}
