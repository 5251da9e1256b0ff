//! Any bytes as the root, the list, its signature and a rollback floor.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| policy::fuzz::signed_list(data));
