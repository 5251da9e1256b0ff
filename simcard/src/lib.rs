//! (see the module list)

#![forbid(unsafe_code)]
