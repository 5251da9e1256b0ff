//! Any bytes as steps of a stream, against the frame fence.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bitstream::fuzz::fence_steps(data));
