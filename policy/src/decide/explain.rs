//! The decision, aloud: each check with what it found.

use std::fmt;

use serde::Serialize;

use super::{Ask, Denial, Grant, Policy, evaluate};
use crate::ids::ImageName;
use crate::time::UnixTime;
use crate::trust::Image;

/// One check, in the order in which they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// Are loads stopped?
    Loads,
    /// Is there such a region?
    Region,
    /// Whose is the VM?
    Tenant,
    /// Is there a list that is believed?
    Catalogue,
    /// Is it still valid?
    Fresh,
    /// Does it have the image?
    Image,
    /// May the tenant load it?
    Grant,
    /// Does the host accept who vouches for it?
    Role,
    /// Was it revoked?
    Revocation,
    /// Is it of a generation that is still safe?
    Epoch,
    /// Does a bitstream of it fit the region?
    Fit,
    /// Is that not too long?
    Size,
}

impl Check {
    fn name(self) -> &'static str {
        match self {
            Check::Loads => "loads",
            Check::Region => "region",
            Check::Tenant => "tenant",
            Check::Catalogue => "catalogue",
            Check::Fresh => "fresh",
            Check::Image => "image",
            Check::Grant => "grant",
            Check::Role => "role",
            Check::Revocation => "revocation",
            Check::Epoch => "epoch",
            Check::Fit => "fit",
            Check::Size => "size",
        }
    }
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It allows to go on.
    Pass,
    /// It denies, this image at least.
    Fail,
}

/// One check that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Which.
    pub check: Check,
    /// Of which image, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageName>,
    /// How it came out.
    pub outcome: Outcome,
    /// Why.
    pub why: String,
}

/// Where the checks leave their steps: nowhere, or in a list.
pub(super) struct Trail<'a>(Option<&'a mut Vec<Step>>);

impl<'a> Trail<'a> {
    pub(super) fn silent() -> Trail<'a> {
        Trail(None)
    }

    fn aloud(steps: &'a mut Vec<Step>) -> Trail<'a> {
        Trail(Some(steps))
    }

    /// Notes how a check came out, and hands its verdict on unchanged.
    pub(super) fn step<T>(
        &mut self,
        check: Check,
        image: Option<&Image>,
        verdict: Result<T, Denial>,
        pass: impl FnOnce(&T) -> String,
    ) -> Result<T, Denial> {
        if let Some(steps) = &mut self.0 {
            let (outcome, why) = match &verdict {
                Ok(value) => (Outcome::Pass, pass(value)),
                Err(denial) => (Outcome::Fail, denial.to_string()),
            };
            steps.push(Step {
                check,
                image: image.map(|image| image.name.clone()),
                outcome,
                why,
            });
        }
        verdict
    }
}

/// How it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Allowed.
    Allowed(Grant),
    /// Denied.
    Denied {
        /// The reason.
        #[serde(flatten)]
        denial: Denial,
        /// The reason in words.
        why: String,
        /// What an operator can do.
        remedy: &'static str,
    },
}

/// A decision with every check that led to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What was asked.
    pub ask: Ask,
    /// The checks, in order.
    pub steps: Vec<Step>,
    /// How it ends.
    pub verdict: Verdict,
}

impl Explanation {
    /// The verdict as [`decide`](super::decide) gives it.
    ///
    /// # Errors
    ///
    /// The [`Denial`], if it is one.
    pub fn result(&self) -> Result<&Grant, &Denial> {
        match &self.verdict {
            Verdict::Allowed(grant) => Ok(grant),
            Verdict::Denied { denial, .. } => Err(denial),
        }
    }
}

/// Decides, and tells each check.
#[must_use]
pub fn explain(policy: &Policy, ask: &Ask, now: UnixTime) -> Explanation {
    let mut steps = Vec::new();
    let verdict = match evaluate::evaluate(policy, ask, now, &mut Trail::aloud(&mut steps)) {
        Ok(grant) => Verdict::Allowed(grant),
        Err(denial) => Verdict::Denied {
            why: denial.to_string(),
            remedy: denial.remedy(),
            denial,
        },
    };
    Explanation {
        ask: ask.clone(),
        steps,
        verdict,
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "May the VM {} load {} into {}?",
            self.ask.vm, self.ask.image, self.ask.region
        )?;
        for step in &self.steps {
            let mark = match step.outcome {
                Outcome::Pass => "pass",
                Outcome::Fail => "FAIL",
            };
            write!(f, "  {mark}  {:<10}  ", step.check.name())?;
            if let Some(image) = &step.image {
                write!(f, "{image}: ")?;
            }
            writeln!(f, "{}", step.why)?;
        }
        match &self.verdict {
            Verdict::Allowed(grant) => {
                write!(
                    f,
                    "ALLOWED: {} from {}, by {}",
                    grant.image, grant.variant.path, grant.rule
                )
            }
            Verdict::Denied {
                denial,
                why,
                remedy,
            } => {
                write!(f, "DENIED ({}): {why}. {remedy}", denial.code())
            }
        }
    }
}
