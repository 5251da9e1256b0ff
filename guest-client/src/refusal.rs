//! The sentences for what the host refuses.
//!
//! Knows status and detail codes. The remedies are the protocol's own.

use protocol::message::{ErrorReply, JobResult, Slot};
use protocol::status::{Detail, Status};

/// What happened, for a request that was not done.
pub(crate) fn sentence(reply: &ErrorReply) -> String {
    let mut sentence = outcome(reply.status, reply.detail);
    if !reply.slots.is_empty() {
        sentence.push_str(": ");
        sentence.push_str(&slots(&reply.slots));
    }
    if let Some(key) = reply.job {
        sentence.push_str(" (job ");
        sentence.push_str(&key.to_string());
        sentence.push(')');
    }
    sentence
}

/// How a job ended that did not end well.
pub(crate) fn of_job(result: JobResult) -> String {
    outcome(result.status, result.detail)
}

/// `0, 1 and 2`.
pub(crate) fn slots(slots: &[Slot]) -> String {
    let names: Vec<String> = slots.iter().map(|slot| slot.0.to_string()).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "none".into(),
    }
}

fn outcome(status: Status, detail: Detail) -> String {
    match detail {
        Detail::None => match status {
            Status::Ok => "done",
            Status::Protocol => "the host did not accept the form of the request",
            Status::TooLarge => "too large for this host",
            Status::Busy => "the slot works on another job",
            Status::Rate => "asked too often",
            Status::Denied => "denied: not allowed, or not known",
            Status::Stale => "the session or the job is of the past",
            Status::Unavailable => "the host cannot do this now",
            Status::Failed => "it was tried and did not succeed",
            Status::Unsupported => "this host does not know that kind of request",
        },
        Detail::SlotNeeded => "this VM has several slots and none was named; it has",
        Detail::NoSuchSlot => "this VM has no such slot",
        Detail::Revoked => "the image was revoked",
        Detail::WrongSlot => "the image does not fit this slot",
        Detail::Integrity => "the host's copy of the image is not what was signed",
        Detail::ProgramError => "the card refused the bitstream or did not finish it",
        Detail::Deadline => "the card did not answer within its deadline",
        Detail::Identity => "what the card now holds is not what was to be loaded",
        Detail::Scrubbing => "the slot is being made safe after a failure",
        Detail::Withdrawn => "the host withdrew its consent before the function was handed over",
        Detail::Cancelled => "the job was cancelled while it waited",
        Detail::TooLate => "the job runs already and can no longer be cancelled",
        Detail::NoSuchJob => "no job of this VM has that key",
        Detail::KeyReused => "this job key was used for another request",
        Detail::Stopped => "the operator has stopped new loads on this host",
        Detail::Limit => "too many jobs or watches of this VM are open",
        Detail::Interrupted => "the host was interrupted in the middle; the slot was made safe",
        Detail::BadName => "that is not an image name",
        Detail::Empty => "nothing is loaded in this slot",
        Detail::Unfit => "the image's bitstream is not one that this slot takes",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_needed_slot_comes_with_the_choice() {
        let reply = ErrorReply {
            status: Status::Protocol,
            detail: Detail::SlotNeeded,
            job: None,
            slots: vec![Slot(0), Slot(1), Slot(7)],
        };
        let told = sentence(&reply);
        assert_eq!(
            told,
            "this VM has several slots and none was named; it has: 0, 1 and 7"
        );
    }

    #[test]
    fn slots_read_well() {
        assert_eq!(slots(&[]), "none");
        assert_eq!(slots(&[Slot(3)]), "3");
        assert_eq!(slots(&[Slot(0), Slot(1)]), "0 and 1");
    }
}
