//! Any bytes as a bitstream file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bitstream::fuzz::container(data));
