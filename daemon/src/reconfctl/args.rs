//! The command line: what may be said, and the text that teaches it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use uuid::Uuid;

use super::duration;

const AFTER_HELP: &str = "\
A new host, in order:
  reconfctl card probe ADDRESS > /etc/reconf/shells/NAME.toml   then finish that file
  reconfctl trust enrol root.json                               then compare the digest
  reconfctl check                                               until nothing is left
  systemctl start reconfd && reconfctl status

Exit codes:
  0  done, or all is well
  1  the answer is no (refused, denied; `status --check`: not healthy; `diff`: they differ)
  2  the command line is wrong; `inspect`, `diff`: a file is not understood
  3  reconfd, or the card, is not reachable
  4  not permitted
  5  files are wrong, missing, or could not be written";

/// Looks after the host's side of reconf: what each region holds, who may change it, and
/// what this host trusts.
#[derive(Debug, Parser)]
#[command(name = "reconfctl", version, after_help = AFTER_HELP, max_term_width = 100)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Said once, good for every command.
#[derive(Debug, Args)]
pub(super) struct Global {
    /// The host's file: all other places are named in it.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "RECONF_HOST_FILE",
        default_value = "/etc/reconf/host.toml",
        hide_env_values = true
    )]
    pub(super) host_file: PathBuf,
    /// reconfd's admin socket, instead of the one that the host's file implies.
    #[arg(long, global = true, value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,
    /// Print the answer as one JSON object; refusals too.
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// How long to wait for an answer: 500ms, 10s, 2m.
    #[arg(long, global = true, value_name = "TIME", default_value = "10s", value_parser = duration::parse)]
    pub(super) timeout: Duration,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    #[command(flatten)]
    Online(Online),
    /// Whose signatures this host believes.
    Trust {
        #[command(subcommand)]
        command: Trust,
    },
    /// Sign and publish a list of images, for hosts to pull.
    Repo {
        #[command(subcommand)]
        command: Repo,
    },
    /// Look at a card.
    Card {
        #[command(subcommand)]
        command: Card,
    },
    /// Hold a bitstream against the frame fence, and tell all that is in it.
    ///
    /// Without --region everything is checked that needs no region. Reads nothing but the
    /// file (and the shell file), and needs no reconfd. Exit code 0: accepted. 1: refused.
    /// 2: not understood.
    Inspect(Inspect),
    /// Compare two bitstreams frame by frame: which frames each writes, and where the
    /// content differs.
    ///
    /// Exit code 0: the same. 1: they differ. 2: a file is not understood.
    Diff(Diff),
    /// Work on one region, or learn which frames one has.
    Region {
        #[command(subcommand)]
        command: Region,
    },
    /// Read every file of this host and tell every problem, with line and column.
    ///
    /// Exit code 0: all are in order. 1: at least one is not. reconfd need not run.
    Check,
    /// Look at this machine: what keeps its cards from being served, and what mends it.
    ///
    /// IOMMU, VFIO, drivers, IOMMU groups and who is in them, modes, serial numbers, the
    /// user functions of each region. Opens no card and changes nothing. Exit code 0: nothing
    /// is wrong. 1: something is.
    Doctor(Doctor),
    /// Print completions for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a directory.
    #[command(hide = true)]
    Man {
        /// Where to.
        directory: PathBuf,
    },
}

/// What a running reconfd is asked.
#[derive(Debug, Subcommand)]
pub(super) enum Online {
    /// Is all well, and if not, what comes next? One screen.
    Status {
        /// Exit with 1 unless all is well: for monitoring.
        #[arg(long)]
        check: bool,
    },
    /// Every region: what is in it and who has it.
    Regions,
    /// Every VM that is attached: its slots and its channel.
    Vms,
    /// Every job that is kept: how far it is, and how it ended.
    Jobs,
    /// Tell reconfd about a VM, or that it is gone.
    Vm {
        #[command(subcommand)]
        command: Vm,
    },
    /// Would this VM get that image? Every check, step by step.
    ///
    /// Exit code 1: it would not.
    Explain {
        /// The VM's UUID.
        vm: Uuid,
        /// publisher/name, publisher/name:version or sha256:….
        image: String,
        /// The guest's number for its region; may be left out where it has one.
        #[arg(long)]
        slot: Option<u16>,
    },
    /// The last records of the audit trail, oldest first.
    Audit {
        /// How many.
        #[arg(long, value_name = "N", default_value_t = 20)]
        last: u32,
    },
    /// `region scrub`, which stands with the other commands about regions.
    #[command(skip)]
    RegionScrub {
        /// CARD/REGION, or the region's name where only one has it.
        region: String,
    },
    /// Deny all new loads on this host. What runs goes on.
    Stop {
        /// Why: shown by `status` and kept in the audit trail.
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
    /// Allow loads again, after `stop`.
    Resume,
    /// Have reconfd read host.toml, shell files, grants and the signed list again.
    Reload,
}

#[derive(Debug, Subcommand)]
pub(super) enum Vm {
    /// Register a start of a VM: who owns it, what it holds, where its channel is.
    ///
    /// The VM may program the regions in which its user functions end. Without guest
    /// addresses its slots are numbered in the order of the functions given here.
    #[command(after_help = "\
Example:
  reconfctl vm attach 4b5b0c2e-52d1-4d0e-9f8b-0f6f3c6f5a11 --tenant acme \\
      --function pci:0000:3b:00.1=0000:00:05.0 --listen --pid $(pidof qemu-system-x86_64)")]
    Attach(Attach),
    /// End a VM's generation. Its regions are scrubbed.
    Detach {
        /// The VM's UUID.
        vm: Uuid,
    },
}

#[derive(Debug, Args)]
pub(super) struct Attach {
    /// The VM's UUID.
    pub(super) vm: Uuid,
    /// Who owns the VM.
    #[arg(long)]
    pub(super) tenant: String,
    /// A user function of the VM, as the shell file names it, and its PCI address in the
    /// guest if that is known. May be given many times.
    #[arg(long = "function", value_name = "ADDRESS[=GUEST_PCI]", required = true)]
    pub(super) functions: Vec<String>,
    /// We listen and QEMU connects (libvirt: mode='connect'). This is the default;
    /// without a path: `RUN_DIR/vm/UUID/org.reconf.0`.
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true, conflicts_with = "connect")]
    pub(super) listen: Option<Option<PathBuf>>,
    /// QEMU listens and we connect (libvirt: mode='bind').
    #[arg(long, value_name = "PATH")]
    pub(super) connect: Option<PathBuf>,
    /// The process that serves the channel (QEMU): only it is accepted as the peer, and
    /// its end ends the generation.
    #[arg(long)]
    pub(super) pid: Option<u32>,
    /// A name for people.
    #[arg(long, default_value = "")]
    pub(super) name: String,
}

#[derive(Debug, Subcommand)]
pub(super) enum Region {
    /// Make a region blank, and prove it. Of a region with an owner the owner keeps it.
    Scrub {
        /// CARD/REGION, or the region's name where only one has it.
        region: String,
    },
    /// Print the lines of a shell file that state a region's frames, learnt from partial
    /// bitstreams that were built for it.
    ///
    /// Several references of one region must write the same frames, or nothing is learnt.
    /// Needs no reconfd.
    #[command(after_help = "\
Example:
  reconfctl region learn left_fft.bit left_aes.bit >> left.frames
then copy the lines into [[region]] of the shell file, and run `reconfctl check`.")]
    Learn(Learn),
    /// Show what a shell file states of a region's frames. Needs no reconfd.
    Show(Show),
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The region; its name may be left out where the file has one.
    #[arg(value_name = "SHELL.toml#NAME")]
    pub(super) region: String,
    /// Draw the device and the region: in the terminal, or as SVG into FILE.
    #[arg(long, value_name = "FILE.svg", num_args = 0..=1, require_equals = true)]
    pub(super) draw: Option<Option<PathBuf>>,
}

#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Look at a tree with the files of /sys, /proc and /dev in the place of this machine's.
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub(super) root: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct Inspect {
    /// The bitstream; `-` reads standard input.
    pub(super) file: PathBuf,
    /// Hold it against this region of a shell file; the name may be left out where the
    /// file has one region.
    #[arg(long, value_name = "SHELL.toml#NAME")]
    pub(super) region: Option<String>,
    /// Draw the device, the region and what the file writes: in the terminal, or as SVG
    /// into FILE.
    #[arg(long, value_name = "FILE.svg", num_args = 0..=1, require_equals = true)]
    pub(super) draw: Option<Option<PathBuf>>,
}

#[derive(Debug, Args)]
pub(super) struct Diff {
    /// One bitstream.
    pub(super) left: PathBuf,
    /// The other.
    pub(super) right: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct Learn {
    /// Partial bitstreams of one region.
    #[arg(value_name = "REFERENCE", required = true)]
    pub(super) references: Vec<PathBuf>,
    /// The part that they must be for, as `xc7z020`.
    #[arg(long, value_name = "PART")]
    pub(super) device: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Trust {
    /// Trust the keys of a root file, and start all rollback floors afresh.
    ///
    /// Needed once on a new host, and after the floors were lost. Compare the root's
    /// digest with its publisher's first: everything else follows from it.
    Enrol {
        /// The root file, from whoever signs your images.
        root: PathBuf,
        /// Replace a root that is enrolled already. The floors start afresh, so an older
        /// list will be believed again.
        #[arg(long)]
        replace: bool,
    },
    /// What this host trusts: keys, the signed list, floors, and whether each is in order.
    Show,
}

#[derive(Debug, Subcommand)]
pub(super) enum Repo {
    /// Make a signing key (ed25519).
    Keygen {
        /// The directory for `key.pk8` (secret) and `key.pub`.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Make the root file that hosts enrol.
    Root {
        /// A public key: a `.pub` file or 64 hex digits. May be given many times.
        #[arg(long = "key", value_name = "PUB", required = true)]
        keys: Vec<String>,
        /// How many of the keys must sign a list.
        #[arg(long, value_name = "N", default_value_t = 1)]
        threshold: u32,
        /// Where to.
        #[arg(long, value_name = "FILE", default_value = "root.json")]
        out: PathBuf,
    },
    /// Measure the bitstreams, sign the list, and put both where hosts pull from.
    ///
    /// Sizes, digests, interface ids and function ids are read from the bitstreams
    /// themselves; one that is not a bitstream is refused and nothing is published.
    Publish(Publish),
}

#[derive(Debug, Args)]
pub(super) struct Publish {
    /// A secret key, as `repo keygen` made it. As many as the root demands.
    #[arg(long = "key", value_name = "KEYFILE", required = true)]
    pub(super) keys: Vec<PathBuf>,
    /// What to publish: a list as people write it (.toml), or an images.json.
    #[arg(long, value_name = "FILE")]
    pub(super) list: PathBuf,
    /// The repository. Bitstreams lie in its `targets`.
    #[arg(long, value_name = "REPOSITORY")]
    pub(super) dir: PathBuf,
    /// Hold the bitstreams against this region too, as its host will: SHELL.toml#NAME, or
    /// SHELL.toml for all its regions. May be given many times.
    #[arg(long = "region", value_name = "SHELL#NAME")]
    pub(super) regions: Vec<String>,
    /// How long hosts may believe this list.
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = duration::parse)]
    pub(super) expires: Duration,
}

#[derive(Debug, Subcommand)]
pub(super) enum Card {
    /// Walk a card without changing it, and print a sketch of its shell file.
    ///
    /// The sketch holds what the card tells about itself. What only you can know is left
    /// open, and marked.
    Probe {
        /// `pci:0000:3b:00.0` or `vfio-user:/path`.
        address: String,
    },
}
