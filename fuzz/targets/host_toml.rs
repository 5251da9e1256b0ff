//! Any bytes as `host.toml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| policy::fuzz::host_toml(data));
