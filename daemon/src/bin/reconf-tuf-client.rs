//! A TUF client, for the conformance suite.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    reconf_daemon::sync::main(std::env::args_os())
}
