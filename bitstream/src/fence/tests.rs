//! The fence over streams that are built for it, and over real ones.
