//! Any bytes as a region journal.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    card::fuzz::journal(data);
});
