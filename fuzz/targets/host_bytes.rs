//! Any bytes from a host: scanner, handshake and replies, as a guest reads them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| protocol::fuzz::host_bytes(data));
