//! `reconfctl`: see `reconf_daemon::reconfctl`.

use std::io::{IsTerminal, stderr, stdout};
use std::process::ExitCode;

use reconf_daemon::reconfctl::{Colour, Streams, run};

fn main() -> ExitCode {
    let (mut out, mut err) = (stdout().lock(), stderr().lock());
    let colour = Colour::for_terminal(out.is_terminal() && err.is_terminal());
    let mut streams = Streams {
        out: &mut out,
        err: &mut err,
        colour,
    };
    run(std::env::args_os(), &mut streams).into()
}
