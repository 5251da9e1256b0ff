//! What goes over the wire, tried from outside.

// `cfg(test)` tells clippy that helpers in here may panic like tests.
#[cfg(test)]
mod arbitrary;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod document;
#[cfg(test)]
mod handshake;
#[cfg(test)]
mod interleaving;
#[cfg(test)]
mod json;
#[cfg(test)]
mod make;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod names;
#[cfg(test)]
mod resync;
#[cfg(test)]
mod scanner;
#[cfg(test)]
mod vectors;
