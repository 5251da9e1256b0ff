//! Genuine files: the fence's frames are the oracle's, frame by frame.

use std::path::PathBuf;

use bitstream::Container;
use bitstream::device::{FrameAddress, FrameIndex, RegionFrames};
use bitstream::fence;

use crate::oracle::Oracle;

#[test]
fn genuine_files_write_the_frames_that_the_fence_names() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/bitstreams");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("SKIPPED: no genuine files in {}", folder.display());
        return;
    };
    let mut oracle = Oracle::start();
    let mut accepted = 0;
    for entry in entries {
        let path = entry.expect("a folder that can be read").path();
        let file = std::fs::read(&path).expect("a file that can be read");
        let Ok(Container::Xilinx(stream)) = bitstream::parse(&file) else {
            continue;
        };
        let Ok(fenced) = fence::check(&stream, None, None) else {
            continue;
        };
        let (device, RegionFrames::Set(frames)) = (fenced.device(), fenced.frames()) else {
            continue;
        };
        let words: Vec<u32> = stream.words().iter().collect();
        let deeds = oracle.run(device, &words);
        let guilt = deeds.against(device, frames);
        assert!(guilt.is_empty(), "{}: {guilt:?}", path.display());
        let geometry = device.geometry().expect("its frames were counted");
        let named: Vec<u32> = frames
            .iter()
            .filter_map(|frame: FrameIndex| geometry.address(frame))
            .map(FrameAddress::raw)
            .collect();
        assert_eq!(deeds.written, named.into_iter().collect());
        assert_eq!(deeds.crc_checks, fenced.crc_checks());
        accepted += 1;
    }
    println!("{accepted} genuine files, frame by frame");
    assert!(accepted >= 4, "the partial bitstreams there are accepted");
}
