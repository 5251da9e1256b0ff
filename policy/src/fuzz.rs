//! Entry points for the fuzzer, and for the property tests that run everywhere.

use std::path::Path;

use crate::files::{FileError, Grants, Host, Shell};

fn told<T>(result: Result<T, FileError>) {
    if let Err(error) = result {
        assert!(error.line > 0 && error.column > 0);
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

/// Any bytes are a host file or refused with a place.
pub fn host_toml(data: &[u8]) {
    told(Host::parse(Path::new("host.toml"), data));
}

/// Any bytes are a shell file or refused with a place.
pub fn shell_toml(data: &[u8]) {
    told(Shell::parse(Path::new("shell.toml"), data));
}

/// Any bytes are a grants file or refused with a place.
pub fn grants_toml(data: &[u8]) {
    told(Grants::parse(Path::new("grants.toml"), data));
}
