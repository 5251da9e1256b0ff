//! The wire format between a guest and its host. Bytes in, bytes out.
//!
//! Knows frames, messages, codes and the handshake. Must not know sockets,
//! policy, cards, or anything that differs from host to host.

#![forbid(unsafe_code)]

pub mod message;
pub mod status;
