//! Completions and manual pages, both made from the command line's own definition.

use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;

use super::args::Cli;

pub(super) fn completions(shell: clap_complete::Shell, out: &mut dyn Write) -> io::Result<()> {
    // The generator panics on a writer that fails; a Vec never does.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "reconfctl", &mut text);
    out.write_all(&text)
}

/// Writes `reconfctl.1` and a page for each command below it.
pub(super) fn manual(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    clap_mangen::generate_to(Cli::command(), directory)
}
