//! Where each file of a host lies.
