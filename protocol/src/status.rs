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
}
