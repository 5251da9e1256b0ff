//! Any bytes as a shell file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| policy::fuzz::shell_toml(data));
