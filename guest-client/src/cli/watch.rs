//! `reconf watch`: a line an event.
//!
//! Knows how events read, and that a watch goes on when a session ends.

use std::time::Duration;

use protocol::message::{Event, EventKind, Stage};

use super::args::WatchArgs;
use super::table::bytes;
use super::ui::{Form, Ui};
use super::views::EventLine;
use super::{Host, Outcome};
use crate::backoff::Backoff;
use crate::client::Client;
use crate::error::Error;
use crate::{refusal, text};

/// Longest pause before the host is tried again after a session was lost.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(super) async fn watch(ui: &mut Ui<'_>, host: &Host<'_>, args: &WatchArgs) -> Outcome {
    let client = host.connect().await?;
    let mut left = args.count.map(std::num::NonZeroU64::get);
    let mut watch = client.watch(args.slot.slot).await?;
    ui.hint(&format!("watching slot {}", refusal::slots(watch.slots())))?;
    let mut expected = 0;
    loop {
        let event = match watch.next().await {
            Ok(event) => event,
            Err(error) if error.is_unsure() => {
                ui.hint("the session was lost; events may have been missed")?;
                watch = again(&client, args).await?;
                expected = 0;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if event.number > expected {
            let missed = event.number.saturating_sub(expected);
            ui.hint(&format!(
                "{missed} events were dropped: this reader is too slow"
            ))?;
        }
        expected = event.number.saturating_add(1);
        match ui.form() {
            Form::Json => ui.json(&EventLine::from(&event))?,
            Form::Text => ui.result(&line(&event))?,
        }
        if let Some(left) = &mut left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                return Ok(());
            }
        }
    }
}

/// Watches anew, for as long as it takes: `--timeout` and Ctrl-C end it.
async fn again(client: &Client, args: &WatchArgs) -> Result<crate::watch::Watch, Error> {
    let mut pause = Backoff::new(LONGEST_PAUSE);
    loop {
        match client.watch(args.slot.slot).await {
            Err(error) if error.is_unsure() || error.is_unreachable() => {
                tokio::time::sleep(pause.next()).await;
            }
            other => return other,
        }
    }
}

fn line(event: &Event) -> String {
    let what = match &event.what {
        EventKind::Progress(job) => {
            let image = job
                .image
                .as_deref()
                .map_or(String::new(), |name| format!(" of {}", text::foreign(name)));
            let how = match job.result {
                Some(result) => result.status.name().to_owned(),
                None if job.stage == Stage::Writing => {
                    format!("writing {} of {}", bytes(job.done), bytes(job.total))
                }
                None => text::stage(job.stage).to_owned(),
            };
            format!("{}{image}: {how}", text::kind(job.kind))
        }
        EventKind::Loaded {
            function_id,
            guest_pci,
        } => {
            let place = guest_pci.as_deref().map_or(String::new(), |address| {
                format!(" at {}", text::foreign(address))
            });
            format!("function {function_id} appeared{place}; bind its driver again")
        }
        EventKind::Cleared => "empty".into(),
        EventKind::Leaving { notice_ms } => {
            format!("the host takes the function away in {notice_ms} ms")
        }
        EventKind::Revoked => "the image that runs was revoked".into(),
        EventKind::Lost => "the function is gone".into(),
    };
    format!("slot {}: {what}\n", event.slot)
}
