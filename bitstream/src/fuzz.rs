//! Entry points for the fuzzer, and for the property tests that run everywhere.
//!
//! They know what must hold for any bytes at all.

use crate::{Container, parse};

/// Any bytes are parsed or refused; what is parsed lies within the input, and
/// every refusal can be told.
pub fn container(data: &[u8]) {
    match parse(data) {
        Ok(container) => {
            let tail = data.get(container.payload_offset()..).unwrap_or_default();
            assert!(!tail.is_empty(), "a payload is never empty");
            assert!(
                std::ptr::eq(tail, container.payload()),
                "the payload is the file's tail"
            );
            let Container::Gbs(gbs) = container else {
                return;
            };
            assert!(gbs.check_interface(gbs.interface_id).is_ok());
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(!error.code().is_empty());
            assert!(error.remedy().ends_with('.'));
            assert!(error.offset() <= data.len(), "{error}");
        }
    }
}
