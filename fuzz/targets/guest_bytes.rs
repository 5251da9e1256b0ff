//! Any bytes from a guest: scanner, handshake and requests, as a host reads them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| protocol::fuzz::guest_bytes(data));
