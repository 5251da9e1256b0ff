//! What packagers ask for: completion scripts and manual pages.
//!
//! Knows clap's generators.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use super::Outcome;
use super::args::Cli;
use super::failure::Failure;
use super::ui::Ui;

pub(super) fn completions(ui: &mut Ui<'_>, shell: Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "reconf", &mut script);
    ui.result(&String::from_utf8_lossy(&script))?;
    Ok(())
}

/// All pages into a directory, or the main page to standard output.
pub(super) fn manual(ui: &mut Ui<'_>, directory: Option<&Path>) -> Outcome {
    let mut command = Cli::command();
    command.build();
    if let Some(directory) = directory {
        return clap_mangen::generate_to(command, directory).map_err(|source| Failure::File {
            path: directory.into(),
            source,
        });
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    ui.result(&String::from_utf8_lossy(&page))?;
    Ok(())
}
