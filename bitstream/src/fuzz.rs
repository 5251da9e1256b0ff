//! Entry points for the fuzzer, and for the property tests that run everywhere.
//!
//! They know what must hold for any bytes at all.

use crate::device::{Device, FrameIndex, FrameSet, RegionFrames};
use crate::fence::{Refusal, check, learn, survey};
use crate::{Container, parse};

/// Any bytes are parsed or refused; what is parsed lies within the input, and
/// every refusal can be told.
pub fn container(data: &[u8]) {
    match parse(data) {
        Ok(container) => {
            let tail = data.get(container.payload_offset()..).unwrap_or_default();
            assert!(!tail.is_empty(), "a payload is never empty");
            assert!(
                std::ptr::eq(tail, container.payload()),
                "the payload is the file's tail"
            );
            if let Container::Gbs(gbs) = container {
                assert!(gbs.check_interface(gbs.interface_id).is_ok());
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(!error.code().is_empty());
            assert!(error.remedy().ends_with('.'));
            assert!(error.offset() <= data.len(), "{error}");
        }
    }
}

/// Any bytes as steps of a stream whose checksums are right, so that the fuzzer
/// gets past them: what is accepted for a region writes nothing else.
pub fn fence_steps(data: &[u8]) {
    let (Some(device), Some((family, steps))) = (Device::named("xc7z020"), data.split_first())
    else {
        return;
    };
    let device = match family & 1 {
        0 => device,
        _ => Device::named("xczu7ev").unwrap_or(device),
    };
    let bytes = crate::fence::steps(device, steps);
    let Ok(Container::Xilinx(stream)) = parse(&bytes) else {
        return;
    };
    let region: FrameSet = [
        FrameIndex(0)..FrameIndex(42),
        FrameIndex(300)..FrameIndex(336),
    ]
    .into_iter()
    .collect();
    let region = RegionFrames::Set(region);
    if let (Ok(fenced), RegionFrames::Set(region)) = (check(&stream, None, Some(&region)), &region)
    {
        let RegionFrames::Set(written) = fenced.frames() else {
            return;
        };
        assert!(written.is_subset(region));
    }
}

/// Any bytes are held against the fence or refused; what is accepted alone is
/// accepted for the region that it teaches, writes nothing else, and is refused
/// for a region without frames.
pub fn fence(data: &[u8]) {
    let Ok(Container::Xilinx(stream)) = parse(data) else {
        return;
    };
    let told = |refusal: &Refusal| {
        assert!(refusal.offset() <= data.len(), "{refusal}");
        assert!(!refusal.to_string().is_empty() && refusal.remedy().ends_with('.'));
    };
    let looked = survey(&stream);
    match check(&stream, None, None) {
        Err(refusal) => told(&refusal),
        Ok(fenced) => {
            assert!(looked.streams.iter().all(|stream| stream.crc_wrong == 0));
            let device: Device = fenced.device();
            if fenced.frames().is_empty() {
                return;
            }
            let taught = learn(std::slice::from_ref(&stream), None).map(|learnt| learnt.frames);
            assert_eq!(
                taught.as_ref(),
                Ok(fenced.frames()),
                "it teaches what it writes"
            );
            let none = match fenced.frames() {
                RegionFrames::Set(_) => RegionFrames::Set(Default::default()),
                RegionFrames::Blocks(_) => RegionFrames::Blocks(Default::default()),
            };
            match check(&stream, Some(device), Some(&none)) {
                Ok(_) => assert!(fenced.frames().is_empty(), "no frame is of no region"),
                Err(refusal) => told(&refusal),
            }
        }
    }
}
