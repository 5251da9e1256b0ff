//! A host's files in a temporary directory: one card with two regions, one
//! image that fits both.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use bitstream::gbs::{Clocks, Draft, build};
use tempfile::TempDir;
use uuid::Uuid;

use super::super::cards::CardEvents;
use super::super::host::Host;
use super::super::identity::Generation;
use super::super::registry::Registration;
use super::super::{enliven, start};
use super::Vm;
use crate::admin::{AttachedFunction, ChannelSpec};
use crate::reconfctl::{Streams, run};

const INTERFACE: Uuid = Uuid::from_u128(0x6952_8db6_eb31_577a_8c36_68f9_faa0_81f6);
const FUNCTION: Uuid = Uuid::from_u128(0x1111_2222_3333_4444_5555_6666_7777_8888);

pub(crate) struct Site {
    dir: TempDir,
}

fn gbs(function: Uuid, payload: &[u8]) -> Vec<u8> {
    build(&Draft {
        interface_id: INTERFACE,
        accelerator: function,
        name: "test",
        clocks: Clocks::default(),
        power: 0,
        payload,
    })
    .unwrap()
}

impl Site {
    pub(crate) fn new() -> Self {
        let site = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        for directory in ["etc", "repo/targets/acme", "state", "run"] {
            std::fs::create_dir_all(site.path(directory)).unwrap();
        }
        let blank = gbs(Uuid::from_u128(1), b"blank");
        site.write("etc/blank.gbs", &blank);
        site.write(
            "etc/host.toml",
            b"[host]\nstate_dir = \"../state\"\nrun_dir = \"../run\"\nrepository = \"../repo\"\n\n\
              [[card]]\naddress = \"vfio-user:/nowhere/card0\"\nengine = \"dfl\"\nshell = \"a.toml\"\n",
        );
        let sha = policy::ids::Digest::of(&blank);
        let regions: String = (0..2)
            .map(|port| {
                format!(
                    "[[region]]\nname = \"r{port}\"\nport = {port}\ninterface_id = \"{INTERFACE}\"\n\
                     region_type = \"intel.com/fpga-dcp\"\nuser_functions = [\"{}\"]\n\
                     blank = {{ path = \"blank.gbs\", sha256 = \"{sha}\" }}\n",
                    function(port)
                )
            })
            .collect();
        site.write("etc/a.toml", format!("name = \"a\"\n{regions}").as_bytes());
        site.write(
            "etc/grants.toml",
            b"[[tenant]]\nname = \"blue\"\n[[grant]]\ntenant = \"blue\"\nimages = [\"acme/*\"]\n",
        );
        site.write("repo/targets/acme/aes.gbs", &gbs(FUNCTION, b"payload"));
        site.write(
            "list.toml",
            b"[[image]]\nname = \"acme/aes:1.0\"\nvariants = [{ path = \"acme/aes.gbs\" }]\n",
        );
        site.ctl(&["repo", "keygen", "--out", "@keys"]);
        site.ctl(&[
            "repo",
            "root",
            "--key",
            "@keys/key.pub",
            "--out",
            "@root.json",
        ]);
        site.publish();
        site.ctl(&["trust", "enrol", "@root.json"]);
        site
    }

    /// Signs the list under the next version.
    pub(crate) fn publish(&self) {
        self.ctl(&[
            "repo",
            "publish",
            "--key",
            "@keys/key.pk8",
            "--list",
            "@list.toml",
            "--dir",
            "@repo",
        ]);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(0o644)).unwrap();
    }

    /// Runs `reconfctl`; `@` begins a path of the site.
    fn ctl(&self, args: &[&str]) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut streams = Streams {
            out: &mut out,
            err: &mut err,
            colour: crate::reconfctl::Colour::Never,
        };
        let host = self.path("etc/host.toml").display().to_string();
        let start = ["reconfctl".to_owned(), "--host-file".to_owned(), host];
        let rest = args.iter().map(|arg| match arg.strip_prefix('@') {
            Some(name) => self.path(name).display().to_string(),
            None => (*arg).to_owned(),
        });
        let exit = run(start.into_iter().chain(rest), &mut streams);
        assert_eq!(
            exit,
            crate::reconfctl::Exit::Done,
            "{args:?}: {}",
            String::from_utf8_lossy(&err)
        );
    }

    /// The host as `reconfd` builds it, its VMs brought back.
    pub(super) fn host(&self) -> Arc<Host> {
        let host = self.parts(|_parts| ());
        super::super::revive::revive(&host);
        host
    }

    /// The same with other parts, and without the VMs of before.
    pub(super) fn parts(&self, change: impl FnOnce(&mut super::super::host::Parts)) -> Arc<Host> {
        let options = start::Options {
            host_file: self.path("etc/host.toml"),
            spawn_cards: false,
        };
        let mut parts = start::prepare(&options).unwrap().parts;
        change(&mut parts);
        Host::new(parts)
    }
}

/// Starts to connect to the card.
pub(super) fn connect(host: &Arc<Host>) {
    for link in &host.cards {
        let events: Arc<dyn CardEvents> = Arc::<Host>::clone(host);
        tokio::spawn(Arc::clone(link).run(events, || ()));
    }
}

/// Attaches a VM of tenant blue to these regions.
pub(super) fn attach(host: &Arc<Host>, ports: &[u16]) -> Vm {
    let registration = registration(host, ports);
    host.state()
        .registry
        .attach(&host.plan, registration.clone())
        .unwrap();
    host.save_registrations().unwrap();
    enliven::enliven(host, &registration).unwrap();
    Vm::new(host, registration)
}

fn function(port: u16) -> String {
    format!("vfio-user:/nowhere/vf{port}")
}

/// A VM of tenant blue.
pub(super) fn registration(host: &Host, ports: &[u16]) -> Registration {
    let vm = Uuid::new_v4();
    Registration {
        vm,
        name: "test".into(),
        tenant: "blue".into(),
        generation: Generation::new(&host.boot),
        boot: host.boot.clone(),
        functions: ports
            .iter()
            .map(|port| AttachedFunction {
                address: function(*port),
                guest_pci: None,
            })
            .collect(),
        channel: ChannelSpec::Listen {
            path: Some(host.layout.vm_channel(vm).display().to_string()),
        },
        process: None,
    }
}
