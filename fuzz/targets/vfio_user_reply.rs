//! Any bytes from the server of a vfio-user device.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    card::fuzz::vfio_user_reply(data);
});
