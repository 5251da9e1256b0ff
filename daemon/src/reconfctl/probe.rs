//! `card probe`: what a card tells about itself, as a shell file to finish by hand.
//!
//! Reads only. What the card cannot tell stands as a comment, so that the sketch is
//! refused, with its line, until somebody has thought about it.

use std::fmt::Write as _;

use ::card::dfl::WalkError;
use ::card::engine::{Access, Declared, Engine, IdentityCheck, ResetState};
use ::card::{CardAddress, OpenError, OpenOptions, open_card};

use super::args::{Card, Global};
use super::exit::{Exit, Failure};
use super::time::{moment, now};
use super::{Stopped, Streams};

pub(super) fn run(
    command: Card,
    global: &Global,
    streams: &mut Streams<'_>,
) -> Result<Exit, Stopped> {
    let Card::Probe { address } = command;
    let address: CardAddress = address.parse().map_err(|error| {
        Failure::new(
            Exit::Usage,
            format!("{address}: {error}"),
            "write it like pci:0000:3b:00.0 or vfio-user:/path",
        )
    })?;
    let mut options = OpenOptions::default();
    // One slow answer must not take longer than the operator would wait for all.
    let transport = &mut options.transport;
    transport.connect = transport.connect.min(global.timeout);
    transport.answer = transport.answer.min(global.timeout);
    let mut engine = open_card(&address, &options).map_err(|error| refused(&error))?;
    let facts = Facts::read(engine.as_mut())?;
    if global.json {
        let value = serde_json::json!({ "ok": true, "card": facts, "shell-file": facts.sketch() });
        writeln!(streams.out, "{value}")?;
    } else {
        write!(streams.out, "{}", facts.sketch())?;
    }
    Ok(Exit::Done)
}

fn refused(error: &OpenError) -> Failure {
    let (exit, remedy) = match error {
        OpenError::Device { .. } => (
            Exit::Unreachable,
            "is the address right, and does no other process hold the card?",
        ),
        OpenError::Walk {
            source: WalkError::Device(_),
            ..
        } => (
            Exit::Unreachable,
            "is this the card's management function, and is the card alive?",
        ),
        OpenError::Walk { .. } => (
            Exit::No,
            "the card's feature list is damaged: load its static design anew",
        ),
        OpenError::NotUsable { .. } => (
            Exit::No,
            "compare the shell file with the static design that is loaded",
        ),
        OpenError::NotProgrammable { .. } => (
            Exit::No,
            "load a static design that can reconfigure its regions",
        ),
    };
    Failure::new(exit, error.to_string(), remedy)
}

/// What the card told.
#[derive(Debug, serde::Serialize)]
struct Facts {
    address: String,
    vendor: String,
    device: String,
    serial: Option<String>,
    engine: EngineFacts,
    regions: Vec<RegionFacts>,
}

#[derive(Debug, serde::Serialize)]
struct EngineFacts {
    holds_isolated: bool,
    identity: &'static str,
    drains: bool,
    answers_while_shut: bool,
    fenced: bool,
}

#[derive(Debug, serde::Serialize)]
struct RegionFacts {
    port: u16,
    interface_id: uuid::Uuid,
    access: &'static str,
    in_reset: bool,
}

impl Facts {
    fn read(engine: &mut dyn Engine) -> Result<Self, Failure> {
        let mut regions = Vec::new();
        for facts in engine.regions().to_vec() {
            let (access, reset) = engine
                .access(facts.id)
                .and_then(|access| Ok((access, engine.in_reset(facts.id)?)))
                .map_err(|error| {
                    Failure::new(Exit::Unreachable, error.to_string(), "probe the card again")
                })?;
            regions.push(RegionFacts {
                port: facts.id.0,
                interface_id: facts.interface_id,
                access: match access {
                    Access::Host => "host",
                    Access::Guest => "guest",
                },
                in_reset: !matches!(reset, ResetState::Released),
            });
        }
        let can = engine.capabilities();
        let yes = |declared| declared == Declared::Yes;
        let device = engine.device();
        Ok(Self {
            address: device.address.to_string(),
            vendor: format!("{:04x}", device.vendor),
            device: format!("{:04x}", device.device),
            serial: device.serial.map(|serial| serial_text(serial.0)),
            engine: EngineFacts {
                holds_isolated: yes(can.holds_isolated),
                identity: match can.identity {
                    IdentityCheck::None => "none",
                    IdentityCheck::EngineStatus => "engine-status",
                    IdentityCheck::Checked => "checked",
                },
                drains: yes(can.drains),
                answers_while_shut: yes(can.answers_while_shut),
                fenced: yes(can.fenced),
            },
            regions,
        })
    }

    fn sketch(&self) -> String {
        let serial = match &self.serial {
            Some(serial) => format!("serial = \"{serial}\""),
            None => "without a serial number".to_owned(),
        };
        let mut text = format!(
            "# Shell file of {address}, sketched by `reconfctl card probe`\n\
             # on {now}. The card is {vendor}:{device}, {serial}\n\
             # (with a serial in host.toml another card at this address is refused).\n\
             #\n\
             # The regions stand here as the card tells them. Finish each line that begins with\n\
             # `#?` and take the mark away: until then the file is refused.\n\n",
            address = self.address,
            now = moment(now()),
            vendor = self.vendor,
            device = self.device,
        );
        let name = format!("name = \"{}:{}\"", self.vendor, self.device);
        line(&mut text, &name, "your name for this static design");
        for region in &self.regions {
            region.sketch(&mut text);
        }
        text
    }
}

impl RegionFacts {
    fn sketch(&self, text: &mut String) {
        let reset = if self.in_reset {
            "in reset"
        } else {
            "out of reset"
        };
        text.push_str("\n[[region]]\n");
        for (left, comment) in [
            (
                format!("name = \"region{}\"", self.port),
                "your name for it",
            ),
            (
                format!("port = {}", self.port),
                &*format!("reached by the {} now, {reset}", self.access),
            ),
            (
                format!("interface_id = \"{}\"", self.interface_id),
                "read from the card",
            ),
            (
                "#? region_type = \"vendor.example/type\"".to_owned(),
                "your name for regions that serve alike",
            ),
            (
                "#? user_functions = [\"pci:DDDD:BB:DD.F\"]".to_owned(),
                "every function that ends in this region",
            ),
            (
                "#? blank = { path = \"FILE.gbs\", sha256 = \"sha256:…\" }".to_owned(),
                "without one: one tenant until a power cycle",
            ),
            (
                "# rate = \"1 MB/s\"".to_owned(),
                "what the card takes, if you measured it",
            ),
            (
                "# answers_while_shut = true".to_owned(),
                "only if a guest's access to a shut region completes",
            ),
        ] {
            line(text, &left, comment);
        }
    }
}

/// A line of the sketch, with its comments in a column.
fn line(text: &mut String, left: &str, comment: &str) {
    // Writing to a String cannot fail.
    let _infallible = writeln!(text, "{left:<56}  # {comment}");
}

/// As PCI tools print it, and as `host.toml` wants it: `00-0a-35-ff-ff-00-12-34`.
fn serial_text(serial: u64) -> String {
    let bytes: Vec<String> = serial
        .to_be_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    bytes.join("-")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn facts() -> Facts {
        Facts {
            address: "pci:0000:3b:00.0".to_owned(),
            vendor: "8086".to_owned(),
            device: "09c4".to_owned(),
            serial: Some(serial_text(0x000a_35ff_ff00_1234)),
            engine: EngineFacts {
                holds_isolated: true,
                identity: "checked",
                drains: false,
                answers_while_shut: false,
                fenced: false,
            },
            regions: vec![RegionFacts {
                port: 0,
                interface_id: uuid::Uuid::from_u128(0x6952_8db6_eb31_577a_8c36_68f9_faa0_81f6),
                access: "host",
                in_reset: true,
            }],
        }
    }

    #[test]
    fn a_serial_is_written_as_host_toml_wants_it() {
        assert_eq!(
            serial_text(0x000a_35ff_ff00_1234),
            "00-0a-35-ff-ff-00-12-34"
        );
    }

    #[test]
    fn a_sketch_is_refused_until_it_is_finished() {
        let sketch = facts().sketch();
        let error =
            policy::files::Shell::parse(Path::new("s.toml"), sketch.as_bytes()).unwrap_err();
        assert_eq!(error.code(), "missing-key", "{error}");

        let finished = sketch
            .replace("#? region_type", "region_type")
            .replace("#? user_functions", "user_functions")
            .replace("pci:DDDD:BB:DD.F", "pci:0000:3b:00.1");
        let shell = policy::files::Shell::parse(Path::new("s.toml"), finished.as_bytes()).unwrap();
        assert_eq!(shell.regions.len(), 1);
        assert_eq!(shell.regions[0].port, 0);
    }
}
