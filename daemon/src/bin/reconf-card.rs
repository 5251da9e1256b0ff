//! `reconf-card`: see `reconf_daemon::card_process`.

use std::process::ExitCode;

use reconf_daemon::card_process::cli;

fn main() -> ExitCode {
    cli::main(std::env::args_os())
}
