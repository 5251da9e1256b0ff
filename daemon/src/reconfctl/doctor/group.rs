//! IOMMU groups: what is in one is isolated from others together, and from each other not
//! at all.

use std::collections::{BTreeMap, BTreeSet};

use ::card::CardAddress;

use super::machine::Machine;
use super::{Finding, Plan, well, wrong};

/// What a function is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Management(String),
    Region(String, String),
}

/// Looks at the groups of all functions of all cards.
pub(super) fn examine(machine: &Machine, plans: &[Plan]) -> Vec<Finding> {
    let mut parts: BTreeMap<String, BTreeSet<Part>> = BTreeMap::new();
    let mut add = |address: &CardAddress, part: Part| {
        if let CardAddress::Pci(pci) = address {
            parts.entry(pci.to_string()).or_default().insert(part);
        }
    };
    for plan in plans {
        let card = plan.address.to_string();
        add(&plan.address, Part::Management(card.clone()));
        for (region, functions) in &plan.regions {
            for function in functions {
                add(function, Part::Region(card.clone(), region.clone()));
            }
        }
    }
    let mut groups: BTreeMap<String, Vec<(&String, &BTreeSet<Part>)>> = BTreeMap::new();
    for (function, parts) in &parts {
        if let Some(group) = machine.group(function) {
            groups.entry(group).or_default().push((function, parts));
        }
    }
    groups
        .iter()
        .flat_map(|(group, members)| [apart(group, members), viable(machine, group)])
        .flatten()
        .collect()
}

/// Functions of one group must all be one region's, or the management's alone.
fn apart(group: &str, members: &[(&String, &BTreeSet<Part>)]) -> Option<Finding> {
    let all: BTreeSet<&Part> = members.iter().flat_map(|(_, parts)| parts.iter()).collect();
    if all.len() < 2 {
        return None;
    }
    let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    let what = if all.iter().any(|part| matches!(part, Part::Management(_))) {
        "a card's management function and a function that a VM gets"
    } else {
        "functions of regions of different tenants"
    };
    Some(wrong(
        format!("IOMMU group {group}"),
        "shared-group",
        format!("{what} are in it: {}", names.join(", ")),
        "put the card into a slot whose bridge has ACS, or use a shell with separate functions; do not override ACS",
    ))
}

/// A group is given only where every device in it is VFIO's, or nobody's.
fn viable(machine: &Machine, group: &str) -> Option<Finding> {
    let about = format!("IOMMU group {group}");
    let mut blocking = Vec::new();
    for function in machine.names(&format!("/sys/kernel/iommu_groups/{group}/devices")) {
        let Some(driver) = machine.driver(&function) else {
            continue;
        };
        let harmless = ["vfio-pci", "pci-stub"].contains(&driver.as_str())
            || driver == "pcieport" && machine.is_bridge(&function);
        if !harmless {
            blocking.push(format!("{function} ({driver})"));
        }
    }
    if blocking.is_empty() {
        return Some(well(about, "viable", "VFIO gives it"));
    }
    Some(wrong(
        about,
        "group-blocked",
        format!("other drivers have devices in it: {}", blocking.join(", ")),
        "bind those to vfio-pci as well, or move the card to another slot",
    ))
}
