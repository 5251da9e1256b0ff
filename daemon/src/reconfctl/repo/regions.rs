//! `--region`: the regions that a publisher knows, to hold bitstreams against
//! them before a host does.

use std::path::Path;

use policy::files::Shell;
use policy::ids::{InterfaceId, RegionType};

use super::super::exit::Failure;
use super::super::place::{absolute, file_max, unreadable};
use crate::contents::Contents;
use crate::fence::{Unfit, hold, hold_alone};
use crate::files::read_bounded;
use crate::frames::{Demand, demands};

/// Regions of shell files, and whether anything was for them.
#[derive(Debug, Default)]
pub(super) struct Regions {
    /// What was asked for, each with the regions that it names.
    asked: Vec<(String, Vec<Known>)>,
}

#[derive(Debug)]
struct Known {
    /// The file and the region's name.
    label: String,
    interface_id: InterfaceId,
    region_type: RegionType,
    demand: Demand,
    used: bool,
}

impl Regions {
    /// Reads each `SHELL.toml#NAME`; without a name, every region of the file.
    pub(super) fn read(stated: &[String]) -> Result<Self, Failure> {
        let mut regions = Self::default();
        for text in stated {
            let (file, name) = match text.rsplit_once('#') {
                Some((file, name)) => (file, Some(name)),
                None => (text.as_str(), None),
            };
            let known = read_regions(Path::new(file), name)?;
            regions.asked.push((text.clone(), known));
        }
        Ok(regions)
    }

    /// Holds a bitstream against every region that it is for; where none is known, against
    /// what holds for all.
    pub(super) fn hold(
        &mut self,
        file: &str,
        contents: &Contents<'_>,
        interface_id: InterfaceId,
        region_type: Option<&RegionType>,
    ) -> Result<(), Failure> {
        let mut used = false;
        for region in self.asked.iter_mut().flat_map(|(_, known)| known) {
            let fits = region.interface_id == interface_id
                && region_type.is_none_or(|wanted| *wanted == region.region_type);
            if fits {
                hold(contents, &region.demand)
                    .map_err(|unfit| refused(&format!("{file} into {}", region.label), &unfit))?;
                region.used = true;
                used = true;
            }
        }
        if used {
            return Ok(());
        }
        hold_alone(contents).map_err(|unfit| refused(file, &unfit))
    }

    /// A region that was named for nothing is a mistake.
    ///
    /// # Errors
    /// The region.
    pub(super) fn all_used(&self) -> Result<(), Failure> {
        let used = |known: &[Known]| known.iter().any(|region| region.used);
        match self.asked.iter().find(|(_, known)| !used(known)) {
            None => Ok(()),
            Some((text, known)) => {
                let ids: Vec<String> = known
                    .iter()
                    .map(|region| region.interface_id.to_string())
                    .collect();
                Err(Failure::files(
                    format!("no bitstream of the list is for {text}"),
                    format!(
                        "name a region that has one; its interface_id: {}",
                        ids.join(", ")
                    ),
                ))
            }
        }
    }
}

fn read_regions(file: &Path, name: Option<&str>) -> Result<Vec<Known>, Failure> {
    let file = absolute(file)?;
    let bytes = read_bounded(&file, file_max()).map_err(|error| unreadable(&error))?;
    let wrong = |error: policy::files::FileError| {
        Failure::files(error.to_string(), "correct the shell file")
    };
    let shell = Shell::parse(&file, &bytes).map_err(wrong)?;
    let demanded = demands(&shell).map_err(wrong)?;
    let known: Vec<Known> = shell
        .regions
        .iter()
        .zip(demanded)
        .filter(|(region, _)| name.is_none_or(|name| region.name.to_string() == name))
        .map(|(region, demand)| Known {
            label: format!("{}#{}", file.display(), region.name),
            interface_id: region.interface_id,
            region_type: region.region_type.clone(),
            demand,
            used: false,
        })
        .collect();
    if known.is_empty() {
        let names: Vec<String> = shell.regions.iter().map(|r| r.name.to_string()).collect();
        let what = name.map_or_else(
            || "no region".to_owned(),
            |name| format!("no region {name}"),
        );
        return Err(Failure::files(
            format!("{}: {what}", file.display()),
            format!("it has: {}", names.join(", ")),
        ));
    }
    Ok(known)
}

fn refused(what: &str, unfit: &Unfit) -> Failure {
    Failure::files(format!("{what}: {}", unfit.story()), unfit.remedy())
}
