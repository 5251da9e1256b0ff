//! Does a container say what the region and the signed list say?
//!
//! Knows two ids and how they are confused. Must not know where the expected
//! id comes from.

use std::fmt;

use thiserror::Error;
use uuid::Uuid;

use crate::gbs::Gbs;
use crate::uuid::reversed;

/// Which of a container's ids is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// Which regions the bitstream fits.
    InterfaceId,
    /// Which function appears in the region.
    FunctionId,
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fact::InterfaceId => "interface id",
            Fact::FunctionId => "function id",
        })
    }
}

/// The file is for something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the {fact} of the file is {found}, and {expected} was expected{}", self.hint())]
pub struct TargetMismatch {
    /// Which id differs.
    pub fact: Fact,
    /// What the region or the signed list says.
    pub expected: Uuid,
    /// What the file says.
    pub found: Uuid,
}

impl TargetMismatch {
    /// The file holds the expected id with its bytes in reverse.
    #[must_use]
    pub fn is_reversed(&self) -> bool {
        reversed(self.found) == self.expected
    }

    /// A stable name of this refusal.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.fact {
            Fact::InterfaceId => "interface-mismatch",
            Fact::FunctionId => "function-mismatch",
        }
    }

    /// What to do about it, in one sentence.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        if self.is_reversed() {
            return "Package the file again with the id written first byte first.";
        }
        match self.fact {
            Fact::InterfaceId => "Build the bitstream against the shell that this region runs.",
            Fact::FunctionId => {
                "Publish the file again, so that the list names the function in it."
            }
        }
    }

    fn hint(&self) -> &'static str {
        if self.is_reversed() {
            " (it is the expected one, bytes in reverse)"
        } else {
            ""
        }
    }
}

impl Gbs<'_> {
    /// Compares the interface id with a region's.
    ///
    /// # Errors
    ///
    /// [`TargetMismatch`] names both; a reversed id is told as such, and never equal.
    pub fn check_interface(&self, expected: Uuid) -> Result<(), TargetMismatch> {
        compare(Fact::InterfaceId, expected, self.interface_id)
    }

    /// Compares the function id with the signed one.
    ///
    /// # Errors
    ///
    /// As for [`Gbs::check_interface`].
    pub fn check_function(&self, expected: Uuid) -> Result<(), TargetMismatch> {
        compare(Fact::FunctionId, expected, self.accelerator)
    }
}

fn compare(fact: Fact, expected: Uuid, found: Uuid) -> Result<(), TargetMismatch> {
    if expected == found {
        Ok(())
    } else {
        Err(TargetMismatch {
            fact,
            expected,
            found,
        })
    }
}
