//! What a publisher is told before anything is signed.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use reconf_tests::world::{Partial, World};
use serde_json::{Value, json};
use simcard::functions::ADDER;
use uuid::Uuid;

use crate::stage::{NORTH, SOUTH, at, made, setup, sites};

const FUNCTION: Option<Uuid> = Some(ADDER);

/// A publisher beside the host whose shell file it has, with one bitstream.
struct Desk {
    world: World,
    dir: PathBuf,
}

impl Desk {
    fn new(file: &[u8]) -> Result<Self> {
        let world = World::make(setup("xc7z020", sites()?, Vec::new(), &[])?)?;
        let dir = world.dir().join("publisher");
        std::fs::create_dir_all(dir.join("repo/targets/acme"))?;
        let keys = dir.join("keys").display().to_string();
        world
            .reconfctl(&["repo", "keygen", "--out", &keys])?
            .good()?;
        let desk = Self { world, dir };
        desk.take(file)?;
        Ok(desk)
    }

    /// Another bitstream.
    fn take(&self, file: &[u8]) -> Result<()> {
        Ok(std::fs::write(
            self.dir.join("repo/targets/acme/fir.bit"),
            file,
        )?)
    }

    /// Publishes it with what is stated of it, for regions of the card's shell file; gives what
    /// was complained about, if it was refused.
    fn publish(
        &self,
        function: Option<Uuid>,
        interface: Option<Uuid>,
        regions: &[&str],
    ) -> Result<Option<String>> {
        let function = function.map_or_else(String::new, |id| format!("function_id = \"{id}\"\n"));
        let interface =
            interface.map_or_else(String::new, |id| format!(", interface_id = \"{id}\""));
        let variants = format!("[{{ path = \"acme/fir.bit\"{interface} }}]");
        let image = format!("name = \"acme/fir:1.0\"\n{function}variants = {variants}");
        let list = self.dir.join("list.toml");
        std::fs::write(&list, format!("[[image]]\n{image}\n"))?;
        let mut args = vec!["repo".to_owned(), "publish".to_owned()];
        let repository = self.dir.join("repo");
        for (option, path) in [
            ("--key", &self.dir.join("keys/key.pk8")),
            ("--list", &list),
            ("--dir", &repository),
        ] {
            args.extend([option.to_owned(), path.display().to_string()]);
        }
        let shell = self.world.dir().join("etc/shells/card0.toml");
        for region in regions {
            args.extend([
                "--region".to_owned(),
                format!("{}#{region}", shell.display()),
            ]);
        }
        let ran = self.world.reconfctl(&args)?;
        let published = repository.join("images.json").exists();
        ensure!(ran.code == if published { 0 } else { 5 }, "{}", ran.stderr);
        Ok((!published).then_some(ran.stderr))
    }

    /// It is refused, and this is said.
    fn refused(
        &self,
        function: Option<Uuid>,
        interface: Option<Uuid>,
        regions: &[&str],
        what: &str,
    ) -> Result<()> {
        let said = self.publish(function, interface, regions)?;
        let said = said.with_context(|| format!("published, without a word of {what}"))?;
        ensure!(said.contains(what), "no word of {what}: {said}");
        Ok(())
    }
}

#[test]
fn b4_b5_a_publisher_is_refused_what_its_hosts_would_refuse() -> Result<()> {
    let [_, south] = sites()?;
    let image = made("acme/fir:1.0", ADDER, SOUTH, &south.frames)?;
    let file = image.file.context("the file")?;
    let desk = Desk::new(&file)?;
    desk.refused(None, Some(NORTH), &[], "function_id")?;
    desk.refused(FUNCTION, None, &[], "interface_id")?;
    // Stated for the north region, made for the south one.
    desk.refused(FUNCTION, Some(NORTH), &["north"], "column 48")?;
    desk.refused(
        FUNCTION,
        Some(NORTH),
        &["south"],
        "no bitstream of the list",
    )?;
    desk.refused(FUNCTION, Some(NORTH), &["east"], "no region east")?;

    // Harm that needs no region to be seen.
    let mut hostile = Partial::read(&file)?;
    hostile.edit(|write| {
        if let (4, [command @ 1]) = (write.register, write.data) {
            *command = 15; // IPROG
        }
    })?;
    desk.take(&hostile.to_bytes())?;
    desk.refused(FUNCTION, Some(NORTH), &[], "at byte")?;

    desk.take(&file)?;
    let said = desk.publish(FUNCTION, Some(SOUTH), &["south"])?;
    ensure!(said.is_none(), "{said:?}");
    let list = std::fs::read(desk.dir.join("repo/images.json"))?;
    let list: Value = serde_json::from_slice(&list)?;
    let variant = at(&list, "/images/0/variants/0");
    ensure!(at(variant, "/format") == &json!("bit"), "{list}");
    ensure!(
        at(&list, "/images/0/function_id") == &json!(ADDER),
        "{list}"
    );
    Ok(())
}
