//! The file operations of a journal.
