//! Why a VM would get an image, or not: the policy's steps, and what lies
//! outside the policy and stands in the way all the same.

use protocol::message::ImageRef;
use uuid::Uuid;

use super::{No, Operator, no};
use crate::reconfd::judge::Question;
use crate::reconfd::registry::Registry;

impl Operator {
    pub(super) fn explain(
        &self,
        vm: Uuid,
        image: &str,
        slot: Option<u16>,
    ) -> Result<serde_json::Value, No> {
        let host = &self.host;
        let image = ImageRef::parse(image).map_err(|error| {
            no(
                error.to_string(),
                "write publisher/name, publisher/name:version or sha256:HEX",
            )
        })?;
        let (question, why_not) = {
            let state = host.state();
            let registration = state
                .registry
                .get(vm)
                .ok_or_else(|| no(format!("VM {vm} is not attached"), "see `reconfctl vms`"))?;
            let slots = Registry::slots(&host.plan, registration);
            let chosen = match (slot, slots.as_slice()) {
                (None, [only]) => only.clone(),
                (None, _) => {
                    return Err(no(
                        format!("VM {vm} has {} slots", slots.len()),
                        "add --slot N",
                    ));
                }
                (Some(number), _) => slots
                    .iter()
                    .find(|slot| slot.slot == number)
                    .cloned()
                    .ok_or_else(|| {
                        no(
                            format!("VM {vm} has no slot {number}"),
                            "see `reconfctl vms`",
                        )
                    })?,
            };
            let mut why_not = Vec::new();
            if let Some(reason) = &state.stopped {
                why_not.push(format!("new loads are stopped on this host: {reason}"));
            }
            if !state.registry.sole_holder(&host.plan, chosen.region, vm) {
                why_not
                    .push("another VM holds a user function that ends in this region".to_owned());
            }
            if let Some(held) = state
                .regions
                .get(chosen.region)
                .and_then(|region| region.held.clone())
            {
                why_not.push(format!("the region is held: {held}"));
            }
            let question = Question {
                vm,
                tenant: registration.tenant.clone(),
                region: chosen.region,
                slots: slots.iter().map(|slot| slot.region).collect(),
                image,
            };
            (question, why_not)
        };
        let mut explanation = host
            .judge
            .explain(&question)
            .map_err(|failure| no(failure.reason, "write the image as the list does"))?;
        if let Some(object) = explanation.as_object_mut() {
            // What lies outside the policy and stands in the way all the same.
            object.insert("also-in-the-way".to_owned(), serde_json::json!(why_not));
        }
        Ok(explanation)
    }
}
