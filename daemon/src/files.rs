//! Files read and written with care: bounded, no links, atomic.
