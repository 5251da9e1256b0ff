//! Entry points for the fuzzer, and for the property tests that run everywhere.

use std::path::Path;

use crate::files::{FileError, Grants, Host, Shell};
use crate::time::UnixTime;
use crate::trust::{Floor, Root, TrustError, list, verify};

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

/// Any bytes are refused in every place where signed documents are read:
/// nobody signed them.
pub fn signed_list(data: &[u8]) {
    refused(list::parse(data).err());
    refused(Floor::parse(data).err());
    refused(Root::parse(data).err());
    // RFC 8032, 7.1, test 1: a key whose private half signed nothing here.
    let root = r#"{"reconf_root": 1, "version": 1, "threshold": 1, "keys":
        ["d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"]}"#;
    if let Ok(root) = Root::parse(root.as_bytes()) {
        let floor = Floor::enrol(&root, None);
        let result = verify(&root, &floor, data, data, UnixTime(0));
        assert!(result.is_err(), "nobody signed this");
        refused(result.err());
    }
}

fn refused(error: Option<TrustError>) {
    if let Some(error) = error {
        assert!(error.remedy().ends_with('.'));
        assert!(!error.to_string().is_empty() && !error.code().is_empty());
    }
}
