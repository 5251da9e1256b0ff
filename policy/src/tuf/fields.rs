//! The members of an object, taken one by one.
//!
//! Knows shapes: text, numbers, lists. Unknown members are left where they are:
//! TUF says that they are signed and ignored.

use std::collections::BTreeMap;

use super::error::Bad;
use super::json::Json;

/// An object that is being read.
pub(super) struct Fields(BTreeMap<String, Json>);

impl Fields {
    pub(super) fn of(json: Json) -> Result<Fields, Bad> {
        match json {
            Json::Map(map) => Ok(Fields(map)),
            _ => Err(Bad::new("not an object")),
        }
    }

    pub(super) fn optional(&mut self, name: &str) -> Option<Json> {
        self.0.remove(name)
    }

    pub(super) fn take(&mut self, name: &str) -> Result<Json, Bad> {
        self.optional(name)
            .ok_or_else(|| Bad::new(format!("no `{name}`")))
    }

    pub(super) fn text(&mut self, name: &str) -> Result<String, Bad> {
        text(self.take(name)?).map_err(|bad| bad.within(name))
    }

    /// A whole number that is not negative.
    pub(super) fn number(&mut self, name: &str) -> Result<u64, Bad> {
        number(&self.take(name)?).map_err(|bad| bad.within(name))
    }

    pub(super) fn map(&mut self, name: &str) -> Result<BTreeMap<String, Json>, Bad> {
        let Fields(map) = Fields::of(self.take(name)?).map_err(|bad| bad.within(name))?;
        Ok(map)
    }

    /// A list of at most `max` values.
    pub(super) fn list(&mut self, name: &str, max: usize) -> Result<Vec<Json>, Bad> {
        list(self.take(name)?, max).map_err(|bad| bad.within(name))
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, Bad> {
        match self.optional(name) {
            None => Ok(None),
            Some(Json::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(Bad::new(format!("{name}: neither true nor false"))),
        }
    }
}

pub(super) fn text(json: Json) -> Result<String, Bad> {
    match json {
        Json::Text(text) => Ok(text),
        _ => Err(Bad::new("not a text")),
    }
}

pub(super) fn number(json: &Json) -> Result<u64, Bad> {
    match json {
        Json::Int(value) => {
            u64::try_from(*value).map_err(|_negative| Bad::new("a negative number"))
        }
        _ => Err(Bad::new("not a whole number")),
    }
}

pub(super) fn list(json: Json, max: usize) -> Result<Vec<Json>, Bad> {
    match json {
        Json::List(list) if list.len() <= max => Ok(list),
        Json::List(_) => Err(Bad::new(format!("more than {max} of them"))),
        _ => Err(Bad::new("not a list")),
    }
}
