//! The commands about jobs: load, clear, job, cancel.
//!
//! Knows how a job is started, followed and reported.

use protocol::message::{Clear, JobInfo, JobKey, JobKind, JobResult, Load, SlotInfo, Stage};
use protocol::status::Status;

use super::args::{ClearArgs, JobArgs, LoadArgs, NewJob, Stay};
use super::failure::{Failure, Started};
use super::progress::Follow;
use super::ui::{Form, Ink, Ui};
use super::views::{Fine, JobView};
use super::{Host, Outcome};
use crate::client::Client;
use crate::{random, text};

pub(super) async fn load(ui: &mut Ui<'_>, host: &Host<'_>, args: &LoadArgs) -> Outcome {
    let client = host.connect().await?;
    let key = start(host, &args.job)?;
    let accepted = client
        .load(Load {
            key,
            slot: args.slot.slot,
            image: args.image.clone(),
            if_not_loaded: args.if_not_loaded,
            force: args.force,
        })
        .await?;
    host.started.set(Started::Accepted(key));
    follow(ui, &client, accepted, args.job.stay()).await
}

pub(super) async fn clear(ui: &mut Ui<'_>, host: &Host<'_>, args: &ClearArgs) -> Outcome {
    let client = host.connect().await?;
    let key = start(host, &args.job)?;
    let accepted = client
        .clear(Clear {
            key,
            slot: args.slot.slot,
        })
        .await?;
    host.started.set(Started::Accepted(key));
    follow(ui, &client, accepted, args.job.stay()).await
}

pub(super) async fn job(ui: &mut Ui<'_>, host: &Host<'_>, args: &JobArgs) -> Outcome {
    let client = host.connect().await?;
    let info = client.job(args.key).await?;
    host.started.set(Started::Accepted(args.key));
    follow(
        ui,
        &client,
        info,
        if args.wait { Stay::Wait } else { Stay::Leave },
    )
    .await
}

pub(super) async fn cancel(ui: &mut Ui<'_>, host: &Host<'_>, key: JobKey) -> Outcome {
    let info = host.connect().await?.cancel(key).await?;
    match ui.form() {
        Form::Json => ui.json(&Fine::new(JobView {
            job: (&info).into(),
            guest_pci: None,
        }))?,
        Form::Text => ui.result(&format!("job {key}: cancelled\n"))?,
    }
    Ok(())
}

/// The job's key; from here on an interruption tells it.
fn start(host: &Host<'_>, job: &NewJob) -> Result<JobKey, Failure> {
    let key = match job.key {
        Some(key) => key,
        None => random::job_key()?,
    };
    host.started.set(Started::Asked(key));
    Ok(key)
}

/// Waits for the end where that is wanted, and reports.
async fn follow(ui: &mut Ui<'_>, client: &Client, info: JobInfo, stay: Stay) -> Outcome {
    let info = if info.stage != Stage::Done && stay == Stay::Wait {
        let mut follow = Follow::new(ui.progress());
        let ended = client.wait(info.key, |info| follow.show(ui, info)).await;
        follow.end();
        ended?
    } else {
        info
    };
    report(ui, client, info).await
}

async fn report(ui: &mut Ui<'_>, client: &Client, info: JobInfo) -> Outcome {
    let Some(result) = info.result else {
        return report_open(ui, &info);
    };
    if result.status != Status::Ok {
        return Err(Failure::Job {
            info: Box::new(info),
            result,
        });
    }
    // Where the function is, is told by the slot and not by the job. The load
    // is done whether or not this further question is answered.
    let slot = match info.kind {
        JobKind::Load => client.describe(Some(info.slot)).await.ok(),
        JobKind::Clear => None,
    };
    let guest_pci = slot
        .into_iter()
        .flatten()
        .find(|slot| slot.slot == info.slot && slot.function_id == result.function_id)
        .and_then(|SlotInfo { guest_pci, .. }| guest_pci)
        .map(|address| text::foreign(&address));
    match ui.form() {
        Form::Json => ui.json(&Fine::new(JobView {
            job: (&info).into(),
            guest_pci,
        }))?,
        Form::Text => report_done(ui, &info, result, guest_pci.as_deref())?,
    }
    Ok(())
}

/// A job that goes on: its key is the result, since it finds the job again.
fn report_open(ui: &mut Ui<'_>, info: &JobInfo) -> Outcome {
    if ui.form() == Form::Json {
        ui.json(&Fine::new(JobView {
            job: info.into(),
            guest_pci: None,
        }))?;
        return Ok(());
    }
    ui.result(&format!("job {}: {}\n", info.key, text::stage(info.stage)))?;
    ui.hint(&format!("Follow it with `reconf job {} --wait`.", info.key))?;
    Ok(())
}

fn report_done(
    ui: &mut Ui<'_>,
    info: &JobInfo,
    result: JobResult,
    guest_pci: Option<&str>,
) -> std::io::Result<()> {
    let slot = info.slot;
    if info.kind == JobKind::Clear {
        return ui.result(&format!("slot {slot}: empty\n"));
    }
    let image = info
        .image
        .as_deref()
        .map_or("the image".to_owned(), text::foreign);
    let done = match result.unchanged {
        true => "was loaded already; nothing was written",
        false => "is loaded",
    };
    let done = ui.ink(Ink::Good, done);
    let mut told = format!("slot {slot}: {image} {done}\n");
    if let Some(id) = result.function_id {
        told.push_str(&format!("  function  {id}\n"));
    }
    if let Some(address) = guest_pci {
        told.push_str(&format!("  PCI       {address}\n"));
    }
    ui.result(&told)?;
    if result.unchanged {
        return Ok(());
    }
    let address = guest_pci.unwrap_or("ADDRESS");
    ui.hint(&format!(
        "The device behind this slot has changed: bind its driver again, for example\n  \
         echo {address} > /sys/bus/pci/devices/{address}/driver/unbind\n  \
         echo {address} > /sys/bus/pci/drivers_probe"
    ))
}
