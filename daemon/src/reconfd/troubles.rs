//! What cannot be written at present: a full disk must be seen in `status`, not
//! guessed from refusals.
//!
//! Knows names and last errors. Must not know what is done about them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

/// The last error of each thing that is written; none, once it went well again.
#[derive(Debug, Default)]
pub struct Troubles {
    last: Mutex<BTreeMap<&'static str, String>>,
}

impl Troubles {
    /// Takes in how a writing of `what` went.
    pub fn note<T>(&self, what: &'static str, result: &Result<T, impl Display>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(_) => last.remove(what),
            Err(error) => last.insert(what, error.to_string()),
        };
    }

    /// Each with its error.
    #[must_use]
    pub fn all(&self) -> Vec<(&'static str, String)> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter()
            .map(|(what, error)| (*what, error.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_stands_until_it_goes_well() {
        let troubles = Troubles::default();
        troubles.note("a", &Err::<(), _>("no space"));
        troubles.note("b", &Ok::<(), String>(()));
        assert_eq!(troubles.all(), [("a", "no space".to_owned())]);
        troubles.note("a", &Ok::<(), String>(()));
        assert!(troubles.all().is_empty());
    }
}
