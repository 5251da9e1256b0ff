//! Our own server half of the vfio-user protocol, as far as a card without
//! interrupts and DMA needs it: version, device, region and interrupt info,
//! region reads and writes, DMA map and unmap (taken note of, never used),
//! reset.
//!
//! `wire` spells messages, `session` answers them (bytes in, bytes out),
//! `connection` moves the bytes. Descriptors that come along (memory of a VM,
//! eventfds) are not wanted: the kernel closes what a plain read does not take.
//!
//! Why our own: the product writes a register per word, so many small posted
//! writes per receive decide how fast a card is; and a strange client must not
//! take the card away from the others.

pub(crate) mod connection;
mod session;
mod wire;

#[cfg(test)]
mod tests;
