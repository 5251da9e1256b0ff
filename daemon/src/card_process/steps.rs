//! The named steps of a job, told to whoever wants to know: nobody in
//! production, and in tests somebody who kills the process there.
//!
//! Knows names only. Must not know what a step does.

/// A step that has just been completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// An offer was verified; nothing was touched.
    Verified,
    /// INTENT is durable; the card was not touched yet.
    IntentDurable,
    /// The region is with the host and in reset.
    Shut,
    /// The engine is ready for words.
    Begun,
    /// Some words are in the card, not all.
    PartWritten,
    /// All words are in the card, its verdict was not asked for.
    AllWritten,
    /// The card's verdict was good.
    Finished,
    /// The function in the region is the signed one.
    Identified,
    /// `reconfd` was told "written"; its consent was not heard yet.
    WrittenTold,
    /// The consent was heard; COMMIT is not durable yet.
    Consented,
    /// COMMIT is durable; the guest has no access yet.
    CommitDurable,
    /// The guest has access; nobody was told.
    Opened,
    /// The journal says quarantined.
    QuarantineDurable,
    /// The blank image is in the card; the journal does not say so yet.
    BlankWritten,
    /// The journal says blank; nobody was told.
    BlankDurable,
}

impl Step {
    /// All of them, in the order in which a job meets them.
    pub const ALL: [Self; 15] = [
        Self::Verified,
        Self::IntentDurable,
        Self::Shut,
        Self::Begun,
        Self::PartWritten,
        Self::AllWritten,
        Self::Finished,
        Self::Identified,
        Self::WrittenTold,
        Self::Consented,
        Self::CommitDurable,
        Self::Opened,
        Self::QuarantineDurable,
        Self::BlankWritten,
        Self::BlankDurable,
    ];
}

/// Told of each step. It may end the process; it cannot change the job.
pub trait Steps: Send {
    /// `step` has just been completed.
    fn reached(&self, step: Step);
}

/// Nobody listens: production.
#[derive(Debug, Clone, Copy)]
pub struct Unwatched;

impl Steps for Unwatched {
    fn reached(&self, _step: Step) {}
}
