//! UltraScale+: four sub-streams, each rule of theirs broken alone.

use super::build::Stream;
use super::*;
use crate::xilinx::NOP;

const DEVICE: &str = "xczu7ev";

/// Places in a partial where something can be done besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The masks were written, before or after the frames.
    Marked,
    /// The interconnect is held.
    Held,
    /// All frames were written.
    Filled,
    /// Flip-flops were restored.
    Restored,
    /// The interconnect was let go.
    Released,
    /// The start was commanded.
    Started,
    /// The parking address was written.
    Parked,
}

const PLACES: [Place; 7] = [
    Place::Marked,
    Place::Held,
    Place::Filled,
    Place::Restored,
    Place::Released,
    Place::Started,
    Place::Parked,
];

/// UltraScale+ partials: four sub-streams.
fn plus(marks: [&[FrameIndex]; 2], blocks: &[(FrameIndex, u32)]) -> Vec<u32> {
    plus_and(marks, blocks, |_place, _stream| ())
}

/// The same, with something done at each place.
fn plus_and(
    marks: [&[FrameIndex]; 2],
    blocks: &[(FrameIndex, u32)],
    mut edit: impl FnMut(Place, &mut Stream),
) -> Vec<u32> {
    let device = device(DEVICE);
    let mut stream = Stream::default();
    mark(&mut stream, marks[0], &mut edit);
    stream
        .open(device)
        .put(Register::COR0, 0x3800_3fe5)
        .command(Command::SHUTDOWN)
        .crc()
        .command(Command::AGHIGH)
        .nops(100);
    edit(Place::Held, &mut stream);
    end(&mut stream, &mut edit);
    stream
        .open(device)
        .put(Register::COR0, 0x3800_3fe5)
        .command(Command::SHUTDOWN)
        .crc()
        .command(Command::NULL)
        .put(Register::MASK, 0x500)
        .put(Register::CTL0, 0x500)
        .put(Register::MASK, 0x2_0000)
        .put(Register::CTL1, 0);
    for (first, frames) in blocks {
        stream.block(device, *first, *frames);
    }
    edit(Place::Filled, &mut stream);
    stream.command(Command::GRESTORE);
    edit(Place::Restored, &mut stream);
    stream
        .put(Register::MASK, 0x100)
        .put(Register::CTL0, 0)
        .command(Command::LFRM)
        .nops(20);
    edit(Place::Released, &mut stream);
    stream.command(Command::START);
    edit(Place::Started, &mut stream);
    end(&mut stream, &mut edit);
    mark(&mut stream, marks[1], &mut edit);
    stream.words
}

fn mark(stream: &mut Stream, frames: &[FrameIndex], edit: &mut impl FnMut(Place, &mut Stream)) {
    let device = device(DEVICE);
    stream
        .open(device)
        .command(Command::NULL)
        .put(Register::MASK, 0x500)
        .put(Register::CTL0, 0x400)
        .put(Register::MASK, 0x2_0000)
        .put(Register::CTL1, 0x2_0000);
    for frame in frames {
        let mut data = [0; 186];
        data[7] = 1;
        let address = device.geometry().unwrap().address(*frame).unwrap();
        stream
            .put(Register::FAR, address.raw())
            .command(Command::WCFG)
            .nops(1)
            .write(Register::FDRI, &data);
    }
    stream.put(Register::MASK, 0x2_0000).put(Register::CTL1, 0);
    edit(Place::Marked, stream);
    end(stream, edit);
}

fn end(stream: &mut Stream, edit: &mut impl FnMut(Place, &mut Stream)) {
    stream.park(Family::UltraScalePlus);
    edit(Place::Parked, stream);
    stream.close();
}

/// A right partial of one block, with something done at one place.
fn edited(place: Place, edit: impl Fn(&mut Stream)) -> Result<Fenced, Refusal> {
    let marks = [FrameIndex(3)];
    let words = plus_and([&marks, &marks], &[(FrameIndex(0), 16)], |here, stream| {
        if here == place {
            edit(stream);
        }
    });
    judge(&words, None, None)
}

/// Holding and letting go of the interconnect reach the whole device: where it
/// runs, a neighbour's design would break.
#[test]
fn b4_the_interconnect_is_held_and_let_go_by_a_stopped_device_only() {
    for place in PLACES {
        let held = edited(place, |stream| {
            stream.command(Command::AGHIGH);
        });
        let released = edited(place, |stream| {
            stream.command(Command::LFRM);
        });
        assert_eq!(code(held), "out-of-order", "AGHIGH, {place:?}");
        assert_eq!(code(released), "out-of-order", "LFRM, {place:?}");
    }
}

#[test]
fn b4_block_memory_is_cleared_by_the_stream_that_fills_it() {
    let marks = [FrameIndex(3)];
    let words = plus([&marks, &marks], &[(FrameIndex(0), 16)]);
    let syncs: Vec<usize> = (0..words.len()).filter(|at| words[*at] == SYNC).collect();
    for (number, at) in syncs.into_iter().enumerate() {
        let mut cleared = words.clone();
        cleared.splice(at + 2..at + 2, [0x3000_8001, Command::URAM.0]);
        let said = judge(&cleared, None, None);
        if number == 2 {
            assert!(said.is_ok());
        } else {
            assert_eq!(code(said), "unmeasured-arrangement", "stream {number}");
        }
    }
    let mut twice = words.clone();
    let third = words
        .iter()
        .enumerate()
        .filter(|(_, word)| **word == SYNC)
        .nth(2)
        .unwrap()
        .0;
    let clear = [0x3000_8001, Command::URAM.0];
    twice.splice(third + 2..third + 2, [clear, clear].concat());
    assert_eq!(code(judge(&twice, None, None)), "out-of-order");
}

#[test]
fn b4_after_the_restore_nothing_is_written() {
    for place in [Place::Restored, Place::Released, Place::Started] {
        let written = edited(place, |stream| {
            stream.block(device(DEVICE), FrameIndex(0), 1);
        });
        assert_eq!(code(written), "out-of-order", "{place:?}");
    }
}

/// Where masks are being written, nothing is stopped, held, restored or let go;
/// and masks are written while the device runs, frames while it does not.
#[test]
fn b4_marks_and_frames_have_their_time() {
    let open = |stream: &mut Stream| {
        stream
            .put(Register::MASK, 0x2_0000)
            .put(Register::CTL1, 0x2_0000);
    };
    let stopped_open = edited(Place::Marked, |stream| {
        open(stream);
        stream.command(Command::SHUTDOWN);
    });
    assert_eq!(code(stopped_open), "out-of-order");
    let held_open = edited(Place::Held, |stream| {
        open(stream);
        stream.command(Command::AGHIGH);
    });
    assert_eq!(code(held_open), "out-of-order");
    let restored_open = edited(Place::Filled, open);
    assert_eq!(code(restored_open), "out-of-order");
    let released_open = edited(Place::Restored, |stream| {
        open(stream);
        stream.command(Command::LFRM);
    });
    assert_eq!(code(released_open), "out-of-order");
    // Frames of the design in the stream of masks.
    let running = edited(Place::Marked, |stream| {
        stream.block(device(DEVICE), FrameIndex(0), 1);
    });
    assert_eq!(code(running), "out-of-order");
    let masks_stopped = edited(Place::Held, |stream| {
        open(stream);
        stream.block(device(DEVICE), FrameIndex(0), 1);
    });
    assert_eq!(code(masks_stopped), "out-of-order");
    let lut_memory = edited(Place::Marked, |stream| {
        stream.put(Register::MASK, 0x100).put(Register::CTL0, 0x100);
    });
    assert_eq!(code(lut_memory), "out-of-order");
}

/// Each once, where every genuine file has it.
#[test]
fn b4_steps_of_a_restart_are_given_once_and_have_their_time() {
    let marks = [FrameIndex(3)];
    let words = plus([&marks, &marks], &[(FrameIndex(0), 16)]);
    assert!(judge(&words, None, None).is_ok());
    // NOPs behind each of them, taken away one by one.
    for (command, due) in [
        (Command::SHUTDOWN, 1),
        (Command::AGHIGH, 100),
        (Command::GRESTORE, 1),
        (Command::LFRM, 20),
        (Command::START, 1),
    ] {
        let at = words
            .windows(2)
            .position(|pair| pair == [0x3000_8001, command.0])
            .unwrap();
        let nops = words[at + 2..].iter().take_while(|word| **word == NOP);
        let more = nops.count() + 1 - due;
        let mut hurried = words.clone();
        hurried.drain(at + 2..at + 2 + more);
        assert_eq!(
            code(judge(&hurried, None, None)),
            "out-of-order",
            "{command}"
        );
    }
    // The options of the start: before the stop, and not left out.
    let option = [0x3001_2001, 0x3800_3fe5];
    let at = words.windows(2).position(|pair| pair == option).unwrap();
    let mut without = words.clone();
    without.drain(at..at + 2);
    assert_eq!(code(judge(&without, None, None)), "out-of-order");
    let late = edited(Place::Held, |stream| {
        stream.put(Register::COR0, 0x3800_3fe5);
    });
    assert_eq!(code(late), "out-of-order");
}

#[test]
fn b4_a_mark_is_one_frame_or_two() {
    let long = edited(Place::Marked, |stream| {
        stream
            .put(Register::MASK, 0x2_0000)
            .put(Register::CTL1, 0x2_0000)
            .block(device(DEVICE), FrameIndex(0), 16);
    });
    assert_eq!(code(long), "frame-length");
    let three = edited(Place::Marked, |stream| {
        stream
            .put(Register::MASK, 0x2_0000)
            .put(Register::CTL1, 0x2_0000)
            .block(device(DEVICE), FrameIndex(0), 3);
    });
    assert_eq!(code(three), "frame-length");
    let empty = judge(&plus([&[FrameIndex(3)], &[FrameIndex(3)]], &[]), None, None);
    assert_eq!(code(empty), "unmeasured-arrangement");
}

#[test]
fn b4_each_stream_ends_at_the_parking_address() {
    let marks = [FrameIndex(3)];
    for number in 0..4 {
        let mut streams = 0..4;
        let words = plus_and([&marks, &marks], &[(FrameIndex(0), 16)], |place, stream| {
            if place == Place::Parked && streams.next() == Some(number) {
                stream.command(Command::NULL).put(Register::FAR, 3);
            }
        });
        let said = judge(&words, None, None);
        assert_eq!(code(said), "out-of-order", "stream {number}");
    }
}

#[test]
fn masks_of_ultrascale_plus_are_of_the_region_and_taken_back() {
    let one = [FrameIndex(3)];
    let two = [FrameIndex(4)];
    let block = [(FrameIndex(0), 16)];
    let device = device(DEVICE);
    let region: RegionFrames =
        RegionFrames::Set([FrameIndex(0)..FrameIndex(16)].into_iter().collect());
    let good = judge(&plus([&one, &one], &block), Some(device), Some(&region)).unwrap();
    assert_eq!(good.frames(), &region);
    assert_eq!(good.sub_streams(), 4);
    assert_eq!(
        code(judge(&plus([&one, &two], &block), None, None)),
        "masks-differ"
    );
    assert_eq!(
        code(judge(&plus([&one, &[]], &block), None, None)),
        "unmeasured-arrangement"
    );
    let outside = [FrameIndex(20)];
    let own = judge(&plus([&outside, &outside], &block), None, None);
    assert_eq!(code(own), "mask-outside");
    let foreign = judge(
        &plus([&outside, &outside], &block),
        Some(device),
        Some(&region),
    );
    assert_eq!(code(foreign), "outside-region");
}

#[test]
fn who_holds_the_interconnect_lets_it_go() {
    let one = [FrameIndex(3)];
    let words = plus([&one, &one], &[(FrameIndex(0), 16)]);
    // The same stream without LFRM, and its checksum mended.
    let device = device(DEVICE);
    let mut held = words.clone();
    let at = held
        .windows(2)
        .rposition(|pair| pair == [0x3000_8001, 3])
        .unwrap();
    held.drain(at..at + 2);
    let refusal = judge(&held, Some(device), None).unwrap_err();
    let Reason::Crc { computed, .. } = *refusal.reason() else {
        panic!("{refusal}");
    };
    held[refusal.offset() / 4] = computed;
    assert_eq!(code(judge(&held, Some(device), None)), "left-stopped");
}

#[test]
fn options_of_the_start_have_one_value() {
    let one = [FrameIndex(3)];
    let words = plus([&one, &one], &[(FrameIndex(0), 16)]);
    let device = device(DEVICE);
    let at = words.iter().position(|word| *word == 0x3800_3fe5).unwrap();
    let others = (0..32).map(|bit| words[at] ^ (1 << bit));
    for value in others.chain([0, u32::MAX]) {
        let mut other = words.clone();
        other[at] = value;
        let said = judge(&other, Some(device), None);
        assert_eq!(code(said), "forbidden-value", "{value:08x}");
    }
}
