//! A card, a signed repository and the operator's files, in a temporary
//! directory, and the card's process over them.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bitstream::gbs::{Clocks, Draft};
use card::SealedMemfd;
use daemon::card_process::{
    CardGone, Controls, LockError, Options, Process, StartError, Unwatched,
};
use daemon::layout::card_name;
use policy::ids::Digest;
use policy::publish::{self, SigningKey};
use policy::time::UnixTime;
use policy::trust::{Floor, Root};
use serde_json::{Value, json};
use simcard::{Card, Config, Fault, Handle, Kind, RegionState, RegionStats, Sockets, Times};
use uuid::Uuid;

use crate::client::Client;

/// The interface id of every card here.
pub(crate) const INTERFACE: Uuid = Uuid::from_u128(0x5eed_0000_0000_4000_8000_0000_0000_0001);
const SERIAL: u64 = 0x000a_35ff_ff00_1234;

/// Bytes of filler of a usual image: several pieces of a write.
pub(crate) const FILLER: usize = 200 << 10;

/// See the module.
pub(crate) struct Stage {
    /// Ends before its sockets' directory goes.
    pub card: Option<Handle>,
    pub dir: tempfile::TempDir,
    pub key: SigningKey,
    pub images: Vec<Image>,
    /// Version of the list published last.
    pub version: u64,
    /// Further entries of `[limits]`.
    limits: String,
}

/// A bitstream file, and the entry that signs it.
#[derive(Clone)]
pub(crate) struct Image {
    pub path: String,
    pub bytes: Vec<u8>,
    pub function: Uuid,
    pub entry: Value,
}

impl Image {
    pub(crate) fn digest(&self) -> [u8; 32] {
        Digest::of(&self.bytes).0
    }

    /// Sealed, as an honest `reconfd` passes it.
    pub(crate) fn sealed(&self) -> OwnedFd {
        seal(&self.bytes)
    }
}

/// A sealed memory file with these bytes.
pub(crate) fn seal(bytes: &[u8]) -> OwnedFd {
    SealedMemfd::from_reader(bytes, 1 << 30).unwrap().into()
}

/// A GBS file for the simulated card.
pub(crate) fn gbs(interface: Uuid, function: Uuid, filler: usize) -> Vec<u8> {
    let payload = simcard::payload::build(interface, function, filler, 7);
    bitstream::gbs::build(&Draft {
        interface_id: interface,
        accelerator: function,
        name: "test",
        clocks: Clocks::default(),
        power: 0,
        payload: &payload,
    })
    .unwrap()
}

/// The entry of a list for this file.
pub(crate) fn entry(name: &str, path: &str, bytes: &[u8], function: Uuid) -> Value {
    let publisher = name.split('/').next().unwrap();
    json!({
        "name": name,
        "role": format!("publisher:{publisher}"),
        "family": name.split(':').next().unwrap(),
        "epoch": 1,
        "function_id": function,
        "variants": [{
            "path": path,
            "sha256": Digest::of(bytes),
            "size": bytes.len(),
            "format": "gbs",
            "interface_id": INTERFACE,
        }],
    })
}

/// The process, in a thread.
pub(crate) struct Running {
    controls: Controls,
    thread: Option<JoinHandle<Result<(), CardGone>>>,
}

impl Running {
    fn new(process: Process) -> Self {
        Self {
            controls: process.controls(),
            thread: Some(std::thread::spawn(move || process.run())),
        }
    }

    /// Ends it as SIGTERM does, and waits.
    pub(crate) fn stop(mut self) -> Result<(), CardGone> {
        self.controls.stop();
        self.join()
    }

    /// Waits for its own end.
    pub(crate) fn join(&mut self) -> Result<(), CardGone> {
        self.thread.take().unwrap().join().unwrap()
    }

    pub(crate) fn reload(&self) {
        self.controls.reload();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.controls.stop();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Stage {
    /// A card at rest, and two signed images: `adder`, `counter`.
    pub(crate) fn new() -> Self {
        Self::with_limits("")
    }

    /// The same, with further lines for `[limits]`.
    pub(crate) fn with_limits(limits: &str) -> Self {
        Self::with_filler(limits, FILLER)
    }

    /// The same, with images of another size.
    pub(crate) fn with_filler(limits: &str, filler: usize) -> Self {
        let mut images = Vec::new();
        for (name, function) in [
            ("adder", simcard::functions::ADDER),
            ("counter", simcard::functions::COUNTER),
        ] {
            let bytes = gbs(INTERFACE, function, filler);
            let path = format!("acme/{name}.gbs");
            let entry = entry(&format!("acme/{name}:1.0"), &path, &bytes, function);
            images.push(Image {
                path,
                bytes,
                function,
                entry,
            });
        }
        let mut stage = Self {
            dir: tempfile::tempdir().unwrap(),
            card: None,
            key: SigningKey::generate().unwrap(),
            images,
            version: 0,
            limits: limits.to_owned(),
        };
        stage.insert_card(INTERFACE);
        let blank = gbs(INTERFACE, simcard::functions::BLANK, 8 << 10);
        fs::write(stage.path("blank.gbs"), &blank).unwrap();
        stage.write_shell(&Digest::of(&blank).to_string(), INTERFACE);
        stage.write_host(&stage.address(), "");
        stage.publish();
        stage.enrol();
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Another card in the same place, out of the factory.
    pub(crate) fn insert_card(&mut self, interface: Uuid) {
        self.card = None;
        let sockets = Sockets::in_dir(self.dir.path(), "card0");
        let card = Card::new(Config::new(SERIAL, interface));
        self.card = Some(simcard::serve(card, sockets).unwrap());
    }

    pub(crate) fn address(&self) -> String {
        format!("vfio-user:{}", self.path("card0.sock").display())
    }

    pub(crate) fn write_host(&self, address: &str, card_lines: &str) {
        let text = format!(
            "[host]\nstate_dir = \"state\"\nrun_dir = \"run\"\nrepository = \"repo\"\n\
             [[card]]\naddress = \"{address}\"\nengine = \"dfl\"\nshell = \"shell.toml\"\n\
             {card_lines}\n[limits]\nload_base_ms = 20000\n{}\n",
            self.limits
        );
        fs::write(self.path("host.toml"), text).unwrap();
    }

    pub(crate) fn write_shell(&self, blank: &str, interface: Uuid) {
        let mut text = "name = \"test\"\n".to_owned();
        for port in 0..2 {
            text += &format!(
                "[[region]]\nname = \"r{port}\"\nport = {port}\ninterface_id = \"{interface}\"\n\
                 region_type = \"test.org/region\"\n\
                 user_functions = [\"vfio-user:{}\"]\n\
                 blank = {{ path = \"blank.gbs\", sha256 = \"{blank}\" }}\n",
                self.path(&format!("card0-vf{port}.sock")).display()
            );
        }
        fs::write(self.path("shell.toml"), text).unwrap();
    }

    /// Signs and writes the images as they are now, with the next version.
    pub(crate) fn publish(&mut self) {
        self.version = self.version.saturating_add(1);
        self.publish_as(self.version, Duration::from_secs(3600), &[]);
    }

    pub(crate) fn publish_as(&self, version: u64, expires_in: Duration, revoked: &[Value]) {
        let entries: Vec<&Value> = self.images.iter().map(|image| &image.entry).collect();
        let list = json!({
            "reconf_images": 1,
            "version": version,
            "expires": now().after(expires_in),
            "images": entries,
            "revoked": revoked,
        });
        let bytes = publish::list(&serde_json::from_value(list).unwrap()).unwrap();
        let signature = publish::sign(&bytes, &[&self.key]).unwrap();
        fs::create_dir_all(self.path("repo")).unwrap();
        replace(&self.path("repo/images.json"), &bytes);
        replace(&self.path("repo/images.json.sig"), &signature);
    }

    /// What `reconfctl trust enrol` does.
    pub(crate) fn enrol(&self) {
        let root = publish::root(1, &[self.key.public_key()], 1).unwrap();
        let floor = Floor::enrol(&Root::parse(&root).unwrap(), None).to_bytes();
        fs::create_dir_all(self.path("state/trust")).unwrap();
        fs::write(self.path("state/trust/root.json"), root).unwrap();
        fs::create_dir_all(self.card_dir()).unwrap();
        fs::write(self.card_dir().join("floor.json"), floor).unwrap();
    }

    pub(crate) fn card_dir(&self) -> PathBuf {
        self.path("state/cards").join(card_name(&self.address()))
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            host_file: self.path("host.toml"),
            card: self.address(),
            socket: Some(self.path("link.sock")),
            state_dir: None,
            peer: None,
        }
    }

    /// Starts the process in a thread.
    pub(crate) fn start(&self) -> Running {
        let process = take_card(|| Process::start(&self.options(), Box::new(Unwatched)));
        Running::new(process.unwrap())
    }

    /// The same, where it may fail.
    pub(crate) fn try_start(&self) -> Result<Running, StartError> {
        Process::start(&self.options(), Box::new(Unwatched)).map(Running::new)
    }

    /// A `reconfd` that said hello.
    pub(crate) fn connect(&self) -> Client {
        let mut client = Client::connect(&self.path("link.sock"));
        client.hello();
        client
    }

    /// Starts, and makes both regions blank: what an operator has done on a host in use.
    pub(crate) fn ready() -> (Self, Running, Client) {
        Self::new().into_ready()
    }

    pub(crate) fn into_ready(self) -> (Self, Running, Client) {
        let running = self.start();
        let mut client = self.connect();
        for region in 0..2 {
            client.scrub(region, None).done();
        }
        (self, running, client)
    }

    /// One region of the card, past all registers.
    pub(crate) fn region(&self, region: usize) -> RegionState {
        let handle = self.card.as_ref().unwrap();
        handle.card().state().regions.remove(region)
    }

    pub(crate) fn stats(&self, region: usize) -> RegionStats {
        self.card.as_ref().unwrap().card().stats().regions[region]
    }

    pub(crate) fn inject(&self, kind: Kind, times: Times) {
        let fault = Fault {
            kind,
            region: None,
            times,
        };
        let handle = self.card.as_ref().unwrap();
        handle.card().inject(fault).unwrap();
    }

    pub(crate) fn clear_faults(&self) {
        self.card.as_ref().unwrap().card().clear_faults();
    }
}

/// Starts a process, and tries again for a moment where the lock is held: another test that starts
/// a child has, from its fork to its exec, a copy of a lock that was just let go.
pub(crate) fn take_card(
    start: impl Fn() -> Result<Process, StartError>,
) -> Result<Process, StartError> {
    for _again in 0..500 {
        match start() {
            Err(StartError::Lock(LockError::Held(_))) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            started => return started,
        }
    }
    start()
}

/// Whether a guest reaches a function that runs.
pub(crate) fn guest_reaches(state: &RegionState) -> bool {
    state.access == simcard::AccessState::Guest && !state.in_reset
}

pub(crate) fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    UnixTime(since.as_secs())
}

fn replace(path: &Path, bytes: &[u8]) {
    let next = path.with_extension("next");
    fs::write(&next, bytes).unwrap();
    fs::rename(next, path).unwrap();
}
