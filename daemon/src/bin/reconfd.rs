//! The daemon of a host.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    reconf_daemon::reconfd::cli::main()
}
