//! Why the command ends without a result.
//!
//! Knows causes and how each is told, in text and in JSON.

use std::io;
use std::path::PathBuf;

use protocol::message::{JobInfo, JobKey, JobResult};
use protocol::status;

use super::exit::Exit;
use super::ui::{Form, Ui};
use super::views::{Bad, Fault};
use crate::error::Error;
use crate::{refusal, text};

/// Which job a command leaves behind when it ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Started {
    /// None.
    Nothing,
    /// The host was asked for it and has not answered.
    Asked(JobKey),
    /// The host has it.
    Accepted(JobKey),
}

impl Started {
    fn key(self) -> Option<JobKey> {
        match self {
            Self::Nothing => None,
            Self::Asked(key) | Self::Accepted(key) => Some(key),
        }
    }

    /// What becomes of it, to follow upon what ended the command.
    fn fate(self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Asked(key) => format!("; job {key} may have been started"),
            Self::Accepted(key) => format!("; job {key} goes on"),
        }
    }
}

/// Why the command ends without a result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library's error, and the job that it leaves behind.
    Client { error: Error, started: Started },
    /// A job ended, and not well.
    Job {
        info: Box<JobInfo>,
        result: JobResult,
    },
    /// Ctrl-C.
    Interrupted { started: Started },
    /// `--timeout` is over.
    TooLong { started: Started },
    /// The file to check is no bitstream, is not well formed, or is of a format
    /// that cannot be loaded yet.
    BadFile(Box<BadFile>),
    /// A file of this machine could not be read or written.
    File { path: PathBuf, source: io::Error },
    /// Standard output is closed: whoever read it has seen enough.
    Output(io::Error),
}

/// What is wrong with a file.
#[derive(Debug)]
pub(crate) struct BadFile {
    pub(super) path: PathBuf,
    pub(super) code: &'static str,
    pub(super) what: String,
    pub(super) remedy: String,
    /// The byte that is to blame, and the frame in the device's terms.
    pub(super) offset: Option<usize>,
    pub(super) frame: Option<String>,
}

impl From<BadFile> for Failure {
    fn from(bad: BadFile) -> Self {
        Self::BadFile(Box::new(bad))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Client {
            error,
            started: Started::Nothing,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl Failure {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Client { error, .. } => error.into(),
            Self::Job { result, .. } => Exit::of(result.status, result.detail),
            Self::Interrupted { .. } => Exit::Interrupted,
            Self::TooLong { .. } => Exit::Timeout,
            // `reconf list | head -1` is no failure: what was asked was done.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Ok,
            Self::BadFile(_) | Self::File { .. } | Self::Output(_) => Exit::Failed,
        }
    }

    /// Tells it: JSON on standard output where that was asked for, and the
    /// sentences on standard error in any case.
    pub(crate) fn tell(self, ui: &mut Ui<'_>) -> io::Result<Exit> {
        let exit = self.exit();
        if matches!(self, Self::Output(_)) && exit == Exit::Ok {
            return Ok(exit);
        }
        let fault = self.fault(exit);
        ui.error(&fault.message, &fault.remedy)?;
        if ui.form() == Form::Json {
            let job = match &self {
                Self::Job { info, .. } => Some(info.as_ref().into()),
                _ => None,
            };
            ui.json(&Bad::new(fault, job))?;
        }
        Ok(exit)
    }

    fn fault(&self, exit: Exit) -> Fault {
        let mut fault = Fault {
            code: self.code(),
            detail: "none",
            message: self.message(),
            remedy: self.remedy(),
            exit: exit.code(),
            job_key: self.job().map(|key| key.to_string()),
            slots: Vec::new(),
            offset: None,
            frame: None,
        };
        match self {
            Self::Client {
                error: Error::Refused(reply),
                ..
            } => {
                fault.detail = reply.detail.name();
                fault.slots = reply.slots.iter().map(|slot| slot.0).collect();
            }
            Self::Job { result, .. } => fault.detail = result.detail.name(),
            Self::BadFile(bad) => {
                fault.offset = bad.offset;
                fault.frame.clone_from(&bad.frame);
            }
            _ => {}
        }
        fault
    }

    /// The job that the reader will want to know of.
    fn job(&self) -> Option<JobKey> {
        match self {
            Self::Client {
                error: Error::Refused(reply),
                ..
            } => reply.job,
            Self::Client {
                error: Error::StillRunning { key, .. },
                ..
            } => Some(*key),
            Self::Client { error, started } if error.is_unsure() => started.key(),
            Self::Interrupted { started } | Self::TooLong { started } => started.key(),
            Self::Job { info, .. } => Some(info.key),
            _ => None,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Client { error, .. } => error.code(),
            Self::Job { result, .. } => result.status.name(),
            Self::Interrupted { .. } => "interrupted",
            Self::TooLong { .. } => "timeout",
            Self::BadFile(bad) => bad.code,
            Self::File { .. } => "file",
            Self::Output(_) => "output",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Client { error, .. } => error.to_string(),
            Self::Job { info, result } => {
                let image = info.image.as_deref().map(text::foreign);
                let what = image.map_or(String::new(), |image| format!(" of {image}"));
                format!(
                    "the {}{what} for slot {} did not succeed: {}",
                    text::kind(info.kind),
                    info.slot.0,
                    refusal::of_job(*result)
                )
            }
            Self::Interrupted { started } => format!("interrupted{}", started.fate()),
            Self::TooLong { started } => {
                format!("the time given with --timeout is over{}", started.fate())
            }
            Self::BadFile(bad) => format!("{}: {}", bad.path.display(), bad.what),
            Self::File { path, source } => format!("{}: {source}", path.display()),
            Self::Output(error) => format!("cannot write the result: {error}"),
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Client { error, started } => match started.key() {
                Some(key) if error.is_unsure() => {
                    format!("The job may go on; look with `reconf job {key}`.")
                }
                _ => error.remedy(),
            },
            Self::Job { result, .. } => status::remedy(result.status, result.detail).into(),
            Self::Interrupted { started } | Self::TooLong { started } => match started.key() {
                Some(key) => format!("Find it again with `reconf job {key} --wait`."),
                None => String::new(),
            },
            Self::BadFile(bad) => bad.remedy.clone(),
            Self::File { .. } | Self::Output(_) => String::new(),
        }
    }
}
