//! The closed set of answers a guest can get.
//!
//! Knows numbers and sentences. Must not know why a host decided what it
//! decided: the reason stays in the host's audit trail.

use bincode::{Decode, Encode};

/// How a request ended, as the guest may know it. The numbers are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
#[repr(u8)]
pub enum Status {
    /// Done, or accepted.
    Ok,
    /// The request breaks the protocol.
    Protocol,
    /// The request, the image or the upload is larger than allowed.
    TooLarge,
    /// The region works on another job; the answer names it.
    Busy,
    /// Asked too often.
    Rate,
    /// Not allowed, or not known: the two are never told apart.
    Denied,
    /// The session, the VM's generation or the job key is of the past.
    Stale,
    /// The host cannot do this now (no policy, no card, stopped by its operator).
    Unavailable,
    /// It was tried and did not succeed.
    Failed,
    /// This host does not know that kind of request.
    Unsupported,
}

/// What more the guest may know: only what it knows already, or did itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
#[repr(u8)]
pub enum Detail {
    /// Nothing more is told.
    None,
    /// The VM has several slots and the request names none; the answer lists them.
    SlotNeeded,
    /// The VM has no such slot.
    NoSuchSlot,
    /// An image of the VM's own list was revoked.
    Revoked,
    /// An image of the VM's own list does not fit the slot named.
    WrongSlot,
    /// The host's copy of the image is not what was signed.
    Integrity,
    /// The card refused the bitstream, or did not finish: programming error.
    ProgramError,
    /// The card did not answer within its deadline.
    Deadline,
    /// What the card now holds is not what was to be loaded.
    Identity,
    /// The region is being made safe; try again after that.
    Scrubbing,
    /// The host withdrew its consent before the guest got access.
    Withdrawn,
    /// The job was cancelled while it waited.
    Cancelled,
    /// The job runs already and can no longer be cancelled.
    TooLate,
    /// No job of this VM has that key.
    NoSuchJob,
    /// The same job key was used with another request.
    KeyReused,
    /// The operator stopped new loads on this host.
    Stopped,
    /// Too many jobs or watchers of this VM are open.
    Limit,
    /// The host was interrupted in the middle; the region was made safe.
    Interrupted,
    /// The request's text does not follow the grammar of image names.
    BadName,
    /// Nothing is loaded in this slot.
    Empty,
    /// The image's bitstream is not one that this slot takes; nothing was changed.
    Unfit,
}

impl Status {
    /// Every status, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Ok,
        Self::Protocol,
        Self::TooLarge,
        Self::Busy,
        Self::Rate,
        Self::Denied,
        Self::Stale,
        Self::Unavailable,
        Self::Failed,
        Self::Unsupported,
    ];

    /// The stable number, as it goes over the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Protocol => 1,
            Self::TooLarge => 2,
            Self::Busy => 3,
            Self::Rate => 4,
            Self::Denied => 5,
            Self::Stale => 6,
            Self::Unavailable => 7,
            Self::Failed => 8,
            Self::Unsupported => 9,
        }
    }

    /// The stable name, for machines and people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Protocol => "protocol",
            Self::TooLarge => "too-large",
            Self::Busy => "busy",
            Self::Rate => "rate",
            Self::Denied => "denied",
            Self::Stale => "stale",
            Self::Unavailable => "unavailable",
            Self::Failed => "failed",
            Self::Unsupported => "unsupported",
        }
    }

    /// What a tenant can do next, in one sentence. Where the detail says more,
    /// [`Detail::remedy`] is the better sentence.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Ok => "Nothing needs to be done.",
            Self::Protocol => "Update the guest's reconf; if it is up to date, report a bug.",
            Self::TooLarge => "Ask for less at a time, or for a smaller image.",
            Self::Busy => "Wait for the job in the way, or cancel it, then try again.",
            Self::Rate => "Wait a little and ask less often.",
            Self::Denied => {
                "Choose an image that `reconf list` shows, or ask your operator for a grant."
            }
            Self::Stale => "Connect again and repeat the request.",
            Self::Unavailable => "Try again later; if it lasts, ask your operator.",
            Self::Failed => "Try again; if it fails again, try another image or ask your operator.",
            Self::Unsupported => "Use a request that this host knows; its operator can update it.",
        }
    }
}

impl Detail {
    /// Every detail, in the order of their numbers.
    pub const ALL: [Self; 21] = [
        Self::None,
        Self::SlotNeeded,
        Self::NoSuchSlot,
        Self::Revoked,
        Self::WrongSlot,
        Self::Integrity,
        Self::ProgramError,
        Self::Deadline,
        Self::Identity,
        Self::Scrubbing,
        Self::Withdrawn,
        Self::Cancelled,
        Self::TooLate,
        Self::NoSuchJob,
        Self::KeyReused,
        Self::Stopped,
        Self::Limit,
        Self::Interrupted,
        Self::BadName,
        Self::Empty,
        Self::Unfit,
    ];

    /// The stable number, as it goes over the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::SlotNeeded => 1,
            Self::NoSuchSlot => 2,
            Self::Revoked => 3,
            Self::WrongSlot => 4,
            Self::Integrity => 5,
            Self::ProgramError => 6,
            Self::Deadline => 7,
            Self::Identity => 8,
            Self::Scrubbing => 9,
            Self::Withdrawn => 10,
            Self::Cancelled => 11,
            Self::TooLate => 12,
            Self::NoSuchJob => 13,
            Self::KeyReused => 14,
            Self::Stopped => 15,
            Self::Limit => 16,
            Self::Interrupted => 17,
            Self::BadName => 18,
            Self::Empty => 19,
            Self::Unfit => 20,
        }
    }

    /// The stable name, for machines and people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SlotNeeded => "slot-needed",
            Self::NoSuchSlot => "no-such-slot",
            Self::Revoked => "revoked",
            Self::WrongSlot => "wrong-slot",
            Self::Integrity => "integrity",
            Self::ProgramError => "program-error",
            Self::Deadline => "deadline",
            Self::Identity => "identity",
            Self::Scrubbing => "scrubbing",
            Self::Withdrawn => "withdrawn",
            Self::Cancelled => "cancelled",
            Self::TooLate => "too-late",
            Self::NoSuchJob => "no-such-job",
            Self::KeyReused => "key-reused",
            Self::Stopped => "stopped",
            Self::Limit => "limit",
            Self::Interrupted => "interrupted",
            Self::BadName => "bad-name",
            Self::Empty => "empty",
            Self::Unfit => "unfit",
        }
    }

    /// What a tenant can do next, in one sentence; for [`Detail::None`] the
    /// status alone tells ([`Status::remedy`]).
    #[must_use]
    pub const fn remedy(self) -> Option<&'static str> {
        Some(match self {
            Self::None => return None,
            Self::SlotNeeded => "Name one of the slots that the answer lists.",
            Self::NoSuchSlot => "Name a slot that `reconf describe` shows.",
            Self::Revoked => "Load a newer version of the image; this one was withdrawn.",
            Self::WrongSlot => "Name a slot that `reconf list` shows for this image.",
            Self::Integrity => "Ask your operator to fetch the image again; nothing was changed.",
            Self::ProgramError => {
                "Load again after the slot has recovered; if it fails again, try another image."
            }
            Self::Deadline => {
                "Load again after the slot has recovered; if it lasts, ask your operator."
            }
            Self::Identity => {
                "Tell the image's publisher: it does not hold the function that was signed for it."
            }
            Self::Scrubbing => "Wait until the slot has recovered, then try again.",
            Self::Withdrawn => "Look at `reconf list` again: what is allowed has changed.",
            Self::Cancelled => "Load again if you still want it.",
            Self::TooLate => "Wait for the job to end, then clear the slot.",
            Self::NoSuchJob => "Check the job key; the host forgets old jobs.",
            Self::KeyReused => "Use a new job key for each new request.",
            Self::Stopped => "Wait until your operator resumes loads on this host.",
            Self::Limit => "Wait until some of your open jobs or watches have ended.",
            Self::Interrupted => "Load again after the slot has recovered.",
            Self::BadName => {
                "Write publisher/name, publisher/name:version, or sha256: and 64 hex digits."
            }
            Self::Empty => "Load an image into the slot first.",
            Self::Unfit => {
                "Tell the image's publisher that the host refuses its bitstream, and load another image."
            }
        })
    }
}

/// The one sentence that helps most: the detail's, or else the status's.
#[must_use]
pub const fn remedy(status: Status, detail: Detail) -> &'static str {
    match detail.remedy() {
        Some(sentence) => sentence,
        None => status.remedy(),
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::fmt::Display for Detail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_order_on_the_wire() {
        let on_wire = |status, detail| {
            let error = crate::message::ErrorReply::new(status, detail);
            crate::encode(crate::Kind::ERROR, 0, 0, &error).unwrap()[crate::HEADER_LEN..][..8]
                .to_vec()
        };
        for (at, status) in Status::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(status.code()), at);
            assert_eq!(
                on_wire(status, Detail::None),
                [status.code(), 0, 0, 0, 0, 0, 0, 0]
            );
        }
        for (at, detail) in Detail::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(detail.code()), at);
            assert_eq!(
                on_wire(Status::Ok, detail),
                [0, 0, 0, 0, detail.code(), 0, 0, 0]
            );
        }
    }

    #[test]
    fn names_and_remedies_differ_and_are_one_sentence() {
        let mut names: Vec<_> = Status::ALL.map(Status::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Status::ALL.len());
        let mut names: Vec<_> = Detail::ALL.map(Detail::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Detail::ALL.len());
        let sentences = Status::ALL.iter().map(|s| s.remedy());
        for sentence in sentences.chain(Detail::ALL.iter().filter_map(|d| d.remedy())) {
            assert!(
                sentence.ends_with('.') && !sentence.contains(". "),
                "{sentence}"
            );
        }
        assert_eq!(
            remedy(Status::Failed, Detail::Stopped),
            Detail::Stopped.remedy().unwrap()
        );
        assert_eq!(remedy(Status::Busy, Detail::None), Status::Busy.remedy());
    }
}
