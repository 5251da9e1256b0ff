//! Any bytes as `grants.toml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| policy::fuzz::grants_toml(data));
