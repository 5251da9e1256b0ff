//! Any bytes against the frame fence.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bitstream::fuzz::fence(data));
