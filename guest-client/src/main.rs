//! The `reconf` command. All of it is in [`reconf_client::cli`].

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    reconf_client::cli::main()
}
