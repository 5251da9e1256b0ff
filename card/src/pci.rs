//! PCI configuration space, as far as this room reads it.
