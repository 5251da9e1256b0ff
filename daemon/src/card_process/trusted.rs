//! What the signed list says of a target, as this process reads the list itself
//! (INV4, INV5). Nothing here comes from `reconfd`.
//!
//! Knows regions and refusals. Must not know signature mathematics or how a
//! target is judged: that is `policy`'s.

use policy::decide::check_target;
use policy::ids::{Digest, RolePattern};
use policy::trust::Format;
use uuid::Uuid;

use super::ending::Refusal;
use super::region::Region;
use crate::ipc::{DigestBytes, Outcome, TargetPath};
use crate::signed_list::{Places, SignedList, now};

/// What the signed list says of a target that may be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signed {
    /// The function that appears.
    pub function_id: Uuid,
    /// Bytes of the container.
    pub size: u64,
    /// The container.
    pub format: Format,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Trusted {
    list: SignedList,
    roles: Vec<RolePattern>,
}

impl Trusted {
    /// Reads the files for the first time. Where that fails nothing can be loaded, but every
    /// region can be scrubbed.
    pub(super) fn new(places: Places, roles: Vec<RolePattern>) -> Self {
        let mut list = SignedList::new(places);
        list.refresh();
        Self { list, roles }
    }

    /// Reads the files again, changed or not.
    pub(super) fn read_again(&mut self) {
        self.list.read_again();
    }

    /// Judges a target by the files as they are now and the time that it is now.
    ///
    /// # Errors
    /// [`Outcome::Refused`], with the story.
    pub(super) fn check(
        &mut self,
        region: &Region,
        target: &TargetPath,
        digest: DigestBytes,
    ) -> Result<Signed, Refusal> {
        self.list.refresh();
        let refuse = |text: String| Refusal::new(Outcome::Refused, text);
        let catalogue = self
            .list
            .catalogue()
            .map_err(|trouble| refuse(trouble.to_string()))?;
        let path = policy::ids::TargetPath::parse(target.as_str())
            .map_err(|error| refuse(error.to_string()))?;
        let verdict = check_target(
            &catalogue,
            &region.facts,
            &path,
            Digest(digest),
            &self.roles,
            now(),
        )
        .map_err(|denial| refuse(denial.to_string()))?;
        Ok(Signed {
            function_id: verdict.function_id.0,
            size: verdict.size,
            format: verdict.format,
        })
    }
}
