//! Any bytes as a card's registers, walked for its feature list.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    card::fuzz::dfl_walk(data);
});
