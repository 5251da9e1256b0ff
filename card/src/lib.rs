//! Device access.
#![deny(unsafe_code)]
