//! What is held against what, over bitstreams made here and genuine ones.

use std::path::Path;

use bitstream::xilinx::WordOrder;
use policy::files::Shell;

use super::*;
use crate::frames::demands;

const SAMPLE: &str = include_str!("../../../docs/samples/shell-hwicap.toml");

/// What the sample shell file demands of its regions `left` and `right`.
fn sample() -> [Demand; 2] {
    let shell = Shell::parse(Path::new("a.toml"), SAMPLE.as_bytes()).unwrap();
    demands(&shell).unwrap().try_into().unwrap()
}

/// Unfenced, the same device.
fn unfenced() -> Demand {
    let Demand::Frames(device, _) = &sample()[0] else {
        panic!()
    };
    Demand::Device(*device)
}

fn hold_file(file: &[u8], demand: &Demand) -> Result<Proof, Unfit> {
    hold(&Contents::read(file).unwrap(), demand)
}

/// A genuine file; `None`, aloud, where the folder is missing.
fn shared(name: &str) -> Option<Vec<u8>> {
    let path = format!(
        "{}/../../shared/bitstreams/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    let file = std::fs::read(&path).ok();
    if file.is_none() {
        eprintln!("SKIPPED: no {path}");
    }
    file
}

#[test]
fn inv5_a_bitstream_is_fit_for_its_own_region_alone() {
    let [left, right] = sample();
    let file = partial(&[RIGHT]);
    let proof = hold_file(&file, &right).unwrap();
    let Demand::Frames(device, own) = &right else {
        panic!()
    };
    let fenced = proof.fenced().unwrap();
    assert_eq!(fenced.device(), *device);
    assert_eq!(fenced.frames(), &own.frames);

    let unfit = hold_file(&file, &left).unwrap_err();
    let frame = unfit.frame().unwrap();
    assert!(frame.contains("column 48"), "{frame}");
    assert!(unfit.offset().is_some());
    let story = unfit.story();
    for told in [unfit.code(), frame.as_str(), &unfit.remedy()] {
        assert!(story.contains(told), "{story}");
    }
    assert!(
        unfit.place().len() <= crate::ipc::MAX_TEXT,
        "{}",
        unfit.place()
    );
}

#[test]
fn b6_another_device_is_refused_with_and_without_a_fence() {
    let mut file = partial(&[RIGHT]);
    let demands = [sample()[1].clone(), unfenced()];
    for demand in &demands {
        hold_file(&file, demand).unwrap();
    }
    // The IDCODE of an XC7A35T, wherever it stands.
    let at = file
        .windows(4)
        .position(|word| word == 0x0372_7093_u32.to_be_bytes());
    file[at.unwrap()..][..4].copy_from_slice(&0x0362_d093_u32.to_be_bytes());
    for demand in &demands {
        hold_file(&file, demand).unwrap_err();
    }
    let unfit = hold_file(&file, &unfenced()).unwrap_err();
    assert_eq!(unfit.code(), "other-device");
    assert!(unfit.to_string().contains("0362d093"), "{unfit}");
}

/// Without a fence the device is all that is compared: no IDCODE hides behind
/// the first of its sub-stream, or behind more sub-streams than anybody reads.
#[test]
fn b6_another_device_is_found_wherever_it_is_named() {
    let good = words(&[RIGHT]);
    let mut second = good.clone();
    let end = second.len() - 18;
    second.splice(end..end, [0x3001_8001, 0x0362_d093]);
    let unfit = hold_file(&bit("7z020clg400", &second), &unfenced()).unwrap_err();
    assert_eq!(unfit.code(), "other-device");

    let mut many = good.repeat(32);
    hold_file(&bit("7z020clg400", &many), &unfenced()).unwrap();
    many.extend(&good);
    let unfit = hold_file(&bit("7z020clg400", &many), &unfenced()).unwrap_err();
    assert_eq!(unfit.code(), "too-many");
}

#[test]
fn b6_a_header_of_another_part_is_refused() {
    let file = bit("7a35tcpg236", &words(&[RIGHT]));
    for demand in [&sample()[1], &unfenced()] {
        let unfit = hold_file(&file, demand).unwrap_err();
        assert_eq!(unfit.code(), "other-part");
    }
    // Of a part that is not known nothing is known; the IDCODE counts.
    let file = bit("7z020new999", &words(&[RIGHT]));
    hold_file(&file, &sample()[1]).unwrap();
}

#[test]
fn a_container_without_frames_cannot_be_fenced() {
    let gbs = bitstream::gbs::build(&bitstream::gbs::Draft {
        interface_id: uuid::Uuid::from_u128(1),
        accelerator: uuid::Uuid::from_u128(2),
        name: "x",
        clocks: bitstream::gbs::Clocks::default(),
        power: 0,
        payload: b"payload",
    })
    .unwrap();
    let unfit = hold_file(&gbs, &sample()[0]).unwrap_err();
    assert_eq!(
        (unfit.code(), unfit.offset()),
        ("frames-not-readable", None)
    );
    assert!(
        hold_file(&gbs, &Demand::Nothing)
            .unwrap()
            .fenced()
            .is_none()
    );
    hold_alone(&Contents::read(&gbs).unwrap()).unwrap();
}

#[test]
fn both_word_orders_and_both_containers_are_read() {
    let words = words(&[RIGHT]);
    let big: Vec<u8> = words.iter().copied().flat_map(u32::to_be_bytes).collect();
    let little: Vec<u8> = words.iter().copied().flat_map(u32::to_le_bytes).collect();
    for (file, format, order) in [
        (partial(&[RIGHT]), Format::Bit, WordOrder::BigEndian),
        (big.clone(), Format::Bin, WordOrder::BigEndian),
        (little, Format::Bin, WordOrder::LittleEndian),
    ] {
        let contents = Contents::read(&file).unwrap();
        assert_eq!((contents.format(), contents.order()), (format, order));
        assert_eq!(contents.names(), None);
        assert_eq!(contents.payload().len(), big.len());
        hold(&contents, &sample()[1]).unwrap();
        hold_alone(&contents).unwrap();
    }
}

#[test]
fn genuine_partials_are_fit_for_their_own_region_alone() {
    let [left, right] = sample();
    for (name, own, other) in [
        ("byu_z7020_ascii_s0_partial.bit", &left, &right),
        ("byu_z7020_gscreen_mux_partial.bit", &right, &left),
    ] {
        let Some(file) = shared(name) else { return };
        let proof = hold_file(&file, own).unwrap();
        let Demand::Frames(_, own) = own else {
            panic!()
        };
        assert_eq!(proof.fenced().unwrap().frames(), &own.frames, "{name}");
        assert!(
            hold_file(&file, other).unwrap_err().frame().is_some(),
            "{name}"
        );
        hold_file(&file, &unfenced()).unwrap();
        hold_alone(&Contents::read(&file).unwrap()).unwrap();
    }
    let Some(file) = shared("yunqu_zu7ev_led_0_partial.bit") else {
        return;
    };
    for demand in [&left, &unfenced()] {
        hold_file(&file, demand).unwrap_err();
    }
}

/// FAR of the sample's region `right`, and how many frames it has.
const RIGHT: (u32, usize) = (0x0042_1800, 138);

/// The smallest stream that writes these blocks of an XC7Z020: one word in each frame.
fn words(blocks: &[(u32, usize)]) -> Vec<u32> {
    const FRAME: usize = 101;
    let mut words = vec![u32::MAX; 8];
    words.extend([0x0000_00bb, 0x1122_0044, u32::MAX, u32::MAX, 0xaa99_5566]);
    words.extend([0x2000_0000, 0x3000_8001, 7, 0x2000_0000, 0x2000_0000]);
    let mut crc = Crc(0);
    crc.write(&mut words, 12, &[0x0372_7093]);
    for (far, frames) in blocks {
        crc.write(&mut words, 4, &[1]);
        words.push(0x2000_0000);
        crc.write(&mut words, 1, &[*far]);
        words.push(0x2000_0000);
        let mut data = Vec::new();
        for frame in 0..*frames {
            data.push(0x5eed_0000 | u32::try_from(frame).unwrap());
            data.extend([0; FRAME - 1]);
        }
        // What pushes the last frame out of the buffer.
        data.extend([0; FRAME]);
        words.extend([
            0x3000_4000,
            0x5000_0000 | u32::try_from(data.len()).unwrap(),
        ]);
        words.extend(&data);
        crc.add(2, &data);
    }
    words.extend([0x3000_0001, crc.0, 0x3000_8001, 13]);
    words.extend([0x2000_0000; 16]);
    words
}

struct Crc(u32);

impl Crc {
    fn write(&mut self, words: &mut Vec<u32>, register: u32, data: &[u32]) {
        words.push(0x3000_0001 | register << 13);
        words.extend(data);
        self.add(register, data);
    }

    fn add(&mut self, register: u32, data: &[u32]) {
        for word in data {
            let bits = u64::from(register) << 32 | u64::from(*word);
            for bit in 0..37 {
                let low = u64::from(self.0 & 1) ^ (bits >> bit & 1);
                self.0 = self.0 >> 1 ^ if low == 1 { 0x82f6_3b78 } else { 0 };
            }
        }
    }
}

fn partial(blocks: &[(u32, usize)]) -> Vec<u8> {
    bit("7z020clg400", &words(blocks))
}

fn bit(part: &str, words: &[u32]) -> Vec<u8> {
    let mut file = vec![
        0, 9, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0, 0, 1,
    ];
    let texts = [
        ("a", "test;PARTIAL=TRUE"),
        ("b", part),
        ("c", "2018/01/01"),
        ("d", "00:00:00"),
    ];
    for (key, text) in texts {
        file.extend(key.as_bytes());
        let text = format!("{text}\0");
        file.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
        file.extend(text.as_bytes());
    }
    file.push(b'e');
    let data: Vec<u8> = words.iter().copied().flat_map(u32::to_be_bytes).collect();
    file.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    file.extend(data);
    file
}
