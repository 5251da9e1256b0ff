//! `repo`: the publisher's side. Keys, the root that hosts enrol, and signed lists.
//!
//! Knows files and how people write a list. Signing is `policy::publish`'s, measuring
//! bitstreams is `bitstream`'s.

mod draft;
mod keys;
mod measure;
mod publish;
mod regions;

#[cfg(test)]
pub(super) use draft::read as read_draft;

use super::args::{Global, Repo};
use super::exit::Exit;
use super::show::clean;
use super::{Stopped, Streams};

pub(super) fn run(
    command: Repo,
    global: &Global,
    streams: &mut Streams<'_>,
) -> Result<Exit, Stopped> {
    match command {
        Repo::Keygen { out } => {
            let made = keys::generate(&out)?;
            if global.json {
                writeln!(
                    streams.out,
                    "{}",
                    serde_json::json!({ "ok": true, "key": made })
                )?;
            } else {
                writeln!(
                    streams.out,
                    "secret  {} (keep it off the hosts)",
                    made.secret.display()
                )?;
                writeln!(streams.out, "public  {}", made.public_file.display())?;
                writeln!(streams.out, "        {}", made.public)?;
                writeln!(
                    streams.out,
                    "next    reconfctl repo root --key {}",
                    made.public_file.display()
                )?;
            }
        }
        Repo::Root {
            keys,
            threshold,
            out,
        } => {
            let digest = keys::root(&keys, threshold, &out)?;
            if global.json {
                let value = serde_json::json!({ "ok": true, "root": { "file": out, "digest": digest.to_string() } });
                writeln!(streams.out, "{value}")?;
            } else {
                writeln!(streams.out, "root    {}", out.display())?;
                writeln!(
                    streams.out,
                    "        {digest} (operators compare this before they enrol it)"
                )?;
                writeln!(
                    streams.out,
                    "next    on each host: reconfctl trust enrol {}",
                    out.display()
                )?;
            }
        }
        Repo::Publish(publish) => {
            let published = publish::run(&publish)?;
            if global.json {
                writeln!(
                    streams.out,
                    "{}",
                    serde_json::json!({ "ok": true, "published": published })
                )?;
            } else {
                published.write(streams)?;
            }
        }
    }
    Ok(Exit::Done)
}
