//! How things end: once for the guest, once for the operator.
//!
//! Knows both worlds and the one way between them. Nothing that an operator
//! reads reaches a guest except through [`Failure::result`].

use protocol::message::{ErrorReply, FunctionId, JobResult};
use protocol::status::{Detail, Status};
use serde::Serialize;

use super::cards::CardError;
use super::seal::BytesError;
use crate::fence::Unfit;
use crate::ipc::{CardStage, HardwareWords, JobEnd, Outcome};

/// A request that was accepted and did not end well, or one that was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The guest's code.
    pub status: Status,
    /// What more the guest may know.
    pub detail: Detail,
    /// A stable word for the audit.
    pub outcome: String,
    /// The whole story, for operators.
    pub reason: String,
    /// The card's words.
    pub words: Option<HardwareWords>,
    /// What the frame fence found, where it refused.
    pub finding: Option<Box<Finding>>,
}

/// What the frame fence found in a bitstream, for operators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its stable name.
    pub code: &'static str,
    /// The byte of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The frame, in the device's terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<String>,
}

impl Finding {
    fn of(unfit: &Unfit) -> Self {
        Self {
            code: unfit.code(),
            offset: unfit.offset(),
            frame: unfit.frame(),
        }
    }
}

impl Failure {
    /// A failure without the card's words.
    #[must_use]
    pub fn new(status: Status, detail: Detail, outcome: &str, reason: impl Into<String>) -> Self {
        Self {
            status,
            detail,
            outcome: outcome.to_owned(),
            reason: reason.into(),
            words: None,
            finding: None,
        }
    }

    /// As the end of a job.
    #[must_use]
    pub fn result(&self) -> JobResult {
        JobResult {
            status: self.status,
            detail: self.detail,
            function_id: None,
            unchanged: false,
        }
    }

    /// As the answer to a request. `denied` is the same whatever the cause; only of an image of
    /// its own list does a guest learn more.
    #[must_use]
    pub fn reply(&self) -> ErrorReply {
        match (self.status, self.detail) {
            (Status::Denied, Detail::Revoked | Detail::WrongSlot) => {
                ErrorReply::new(self.status, self.detail)
            }
            (Status::Denied, _) => ErrorReply::denied(),
            (status, detail) => ErrorReply::new(status, detail),
        }
    }
}

/// The good end of a job.
#[must_use]
pub fn success(function_id: Option<FunctionId>, unchanged: bool) -> JobResult {
    JobResult {
        status: Status::Ok,
        detail: Detail::None,
        function_id,
        unchanged,
    }
}

impl From<BytesError> for Failure {
    fn from(error: BytesError) -> Self {
        let outcome = match &error {
            BytesError::Unreadable { .. } => "bitstream-unreadable",
            BytesError::Seal(_) => "not-sealed",
            BytesError::Size { .. } => "size-mismatch",
            BytesError::Digest { .. } => "digest-mismatch",
            BytesError::Container(_) => "not-a-container",
            BytesError::Format { .. } => "format-mismatch",
            BytesError::Unfit(_) => "unfit",
            BytesError::Interface { .. } => "interface-mismatch",
            BytesError::Function { .. } => "function-mismatch",
        };
        let (status, detail) = match &error {
            BytesError::Seal(_) => (Status::Unavailable, Detail::None),
            // Signed, but not the tenant's own bytes: it learns neither frame nor place.
            BytesError::Format { .. } | BytesError::Unfit(_) => (Status::Failed, Detail::Unfit),
            _ => (Status::Failed, Detail::Integrity),
        };
        let finding = match &error {
            BytesError::Unfit(unfit) => Some(Box::new(Finding::of(unfit))),
            _ => None,
        };
        Self {
            finding,
            ..Self::new(status, detail, outcome, error.to_string())
        }
    }
}

impl From<CardError> for Failure {
    fn from(error: CardError) -> Self {
        let (status, detail, outcome) = match &error {
            CardError::NotConnected => (Status::Unavailable, Detail::None, "card-not-connected"),
            CardError::QueueFull => (Status::Busy, Detail::None, "card-queue-full"),
            CardError::Lost => (Status::Failed, Detail::Interrupted, "card-process-lost"),
            CardError::Silent(_) => (Status::Failed, Detail::Deadline, "card-process-silent"),
            CardError::Ipc(_) => (Status::Failed, Detail::Interrupted, "card-socket"),
        };
        Self::new(status, detail, outcome, error.to_string())
    }
}

impl From<&JobEnd> for Failure {
    fn from(end: &JobEnd) -> Self {
        let (status, detail, outcome) = match end.outcome {
            Outcome::Done => (Status::Failed, Detail::None, "ended-early"),
            Outcome::Refused => (Status::Failed, Detail::Withdrawn, "second-verification"),
            Outcome::NotScrubbed => (Status::Busy, Detail::Scrubbing, "not-scrubbed"),
            Outcome::WrongState => (Status::Busy, Detail::Scrubbing, "wrong-state"),
            Outcome::Busy => (Status::Busy, Detail::None, "card-busy"),
            Outcome::DeviceGone => (Status::Unavailable, Detail::None, "device-gone"),
            Outcome::DecoupleFailed => (Status::Failed, Detail::None, "decouple-failed"),
            Outcome::ProgramError => (Status::Failed, Detail::ProgramError, "program-error"),
            Outcome::Deadline => (Status::Failed, Detail::Deadline, "deadline"),
            Outcome::Identity => (Status::Failed, Detail::Identity, "identity"),
            Outcome::NotCommitted => (Status::Failed, Detail::Withdrawn, "not-committed"),
            Outcome::Journal => (Status::Unavailable, Detail::None, "journal"),
            Outcome::ScrubFailed => (Status::Failed, Detail::Scrubbing, "scrub-failed"),
            Outcome::Violation => (Status::Failed, Detail::None, "ipc-violation"),
            Outcome::Unfit => (Status::Failed, Detail::Unfit, "second-fence"),
            Outcome::NotOffered => (Status::Unsupported, Detail::None, "not-offered"),
        };
        let words = end.words;
        Self {
            status,
            detail,
            outcome: outcome.to_owned(),
            reason: format!("{} (while {})", end.text, stage_word(end.stage)),
            words: (words != HardwareWords::default()).then_some(words),
            finding: None,
        }
    }
}

/// For people.
#[must_use]
pub fn stage_word(stage: CardStage) -> &'static str {
    match stage {
        CardStage::Verifying => "verifying",
        CardStage::Isolating => "isolating",
        CardStage::Writing => "writing",
        CardStage::Checking => "checking",
        CardStage::Committing => "committing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g8_denied_is_the_same_whatever_the_cause() {
        let one = Failure::new(
            Status::Denied,
            Detail::None,
            "unknown-image",
            "no such image",
        );
        let two = Failure::new(
            Status::Denied,
            Detail::Stopped,
            "not-granted",
            "tenant has no rule",
        );
        assert_eq!(one.reply(), two.reply());
        assert_eq!(one.reply(), ErrorReply::denied());
    }
}
