//! A job's progress, as it is shown while somebody waits.
//!
//! Knows the bar, the plain lines and the JSON lines. Must not know how news
//! of a job arrive.

use std::io;

use indicatif::{ProgressBar, ProgressStyle};
use protocol::message::{JobInfo, Stage};

use super::table::bytes;
use super::ui::{Progress, Ui};
use super::views;
use crate::text;

/// Shows one job's news.
pub(crate) struct Follow {
    manner: Progress,
    bar: Option<ProgressBar>,
    stage: Option<Stage>,
}

impl Follow {
    pub(crate) fn new(manner: Progress) -> Self {
        let bar = (manner == Progress::Bar).then(ProgressBar::new_spinner);
        Self {
            manner,
            bar,
            stage: None,
        }
    }

    /// Shows one piece of news. Where it cannot be written, no more is: the job
    /// is what matters, and its end is still waited for and reported.
    pub(crate) fn show(&mut self, ui: &mut Ui<'_>, info: &JobInfo) {
        if self.write(ui, info).is_err() {
            self.manner = Progress::None;
        }
    }

    fn write(&mut self, ui: &mut Ui<'_>, info: &JobInfo) -> io::Result<()> {
        let entered = self.stage.replace(info.stage) != Some(info.stage);
        match self.manner {
            Progress::Json => ui.json(&views::Progress {
                progress: info.into(),
            })?,
            Progress::Lines if entered && info.stage != Stage::Done => ui.hint(&line(info))?,
            Progress::Lines | Progress::None => {}
            Progress::Bar => self.draw(info, entered),
        }
        Ok(())
    }

    /// Takes the bar off the terminal; the result is printed in its place.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn draw(&self, info: &JobInfo, entered: bool) {
        let Some(bar) = &self.bar else { return };
        if info.stage == Stage::Done {
            return;
        }
        if entered {
            let writing = info.stage == Stage::Writing && info.total > 0;
            bar.set_style(style(if writing { WRITING } else { OTHERWISE }));
            bar.set_length(info.total);
            // The rate is that of writing, not of the stages before it.
            bar.reset();
        }
        bar.set_message(format!("slot {}: {}", info.slot, text::stage(info.stage)));
        bar.set_position(info.done);
        bar.tick();
    }
}

const WRITING: &str = "{msg} [{bar:30}] {bytes}/{total_bytes}  {bytes_per_sec}";
const OTHERWISE: &str = "{msg} {spinner}";

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

fn line(info: &JobInfo) -> String {
    let stage = format!("slot {}: {}", info.slot, text::stage(info.stage));
    match info.total {
        0 => stage,
        total => format!("{stage} ({} of {})", bytes(info.done), bytes(total)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bars_templates_are_sound() {
        for template in [WRITING, OTHERWISE] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
