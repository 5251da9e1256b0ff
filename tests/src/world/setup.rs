//! What a world is made of: cards, VMs, images, grants. Plain descriptions.

use std::time::Duration;

use uuid::Uuid;

/// The interface id of every card unless told otherwise: two cards of one kind.
pub const INTERFACE: Uuid = Uuid::from_u128(0x1f4e_2d7a_93c5_4b06_a8d1_5c2e_9f37_b064);

/// The names of the two regions of each card.
pub const REGIONS: [&str; 2] = ["north", "south"];

/// A world to be made.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The cards.
    pub cards: Vec<CardSetup>,
    /// The VMs.
    pub vms: Vec<VmSetup>,
    /// The images of the signed list.
    pub images: Vec<ImageSetup>,
    /// Which tenant may load which images.
    pub grants: Vec<(&'static str, &'static [&'static str])>,
    /// Lines of host.toml's `[limits]`.
    pub limits: Vec<String>,
    /// How long the signed list is good.
    pub good_for: Duration,
}

/// A simulated card.
#[derive(Debug, Clone)]
pub struct CardSetup {
    /// `instant`, or bytes a second.
    pub rate: String,
    /// Which bitstreams fit.
    pub interface_id: Uuid,
    /// Payloads known by digest: text of the card's `--table` file.
    pub table: String,
    /// Bytes of the blank image's payload beside the header: how long a scrub takes.
    pub blank: usize,
    /// How it is programmed.
    pub kind: CardKind,
    /// Where it is, if this machine has it; else the world starts a simulator.
    pub pci: Option<PciPlace>,
}

/// A card that this machine has, as the lab's VM has a simulated one.
#[derive(Debug, Clone)]
pub struct PciPlace {
    /// The management function, as `0000:00:01.0`.
    pub management: &'static str,
    /// The user functions of its regions.
    pub functions: [&'static str; 2],
    /// The device through which the card is reached from behind.
    pub control: &'static str,
}

/// How a card is programmed.
#[derive(Debug, Clone, Default)]
pub enum CardKind {
    /// Through DFL registers; both regions have the card's interface id.
    #[default]
    Dfl,
    /// Through AXI HWICAP: an AMD device, each region with frames of its own.
    Hwicap(HwicapSetup),
}

/// What a shell file says of an AMD device.
#[derive(Debug, Clone)]
pub struct HwicapSetup {
    /// Its name, as `xc7z020`.
    pub device: String,
    /// Its regions.
    pub regions: [HwicapRegion; 2],
}

/// A region of an AMD device.
#[derive(Debug, Clone)]
pub struct HwicapRegion {
    /// Which bitstreams fit.
    pub interface_id: Uuid,
    /// Its frames, as lines of a shell file.
    pub frames: Vec<String>,
    /// The blank image: a `.bit` file.
    pub blank: Vec<u8>,
}

/// A VM.
#[derive(Debug, Clone)]
pub struct VmSetup {
    /// A name for people.
    pub name: &'static str,
    /// Who owns it.
    pub tenant: &'static str,
    /// Its regions: card and region by number, in the order of its slots.
    pub regions: Vec<(usize, usize)>,
    /// Which end of its channel listens.
    pub channel: Channel,
}

/// Who listens at the channel of a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// `reconfd` listens, QEMU connects.
    HostListens,
    /// QEMU listens, `reconfd` connects.
    VmListens,
}

/// An image.
#[derive(Debug, Clone)]
pub struct ImageSetup {
    /// `publisher/name:version`.
    pub name: &'static str,
    /// The function that appears.
    pub function: Uuid,
    /// Bytes of its payload beside the header.
    pub bytes: usize,
    /// A whole file instead of a made one.
    pub file: Option<Vec<u8>>,
    /// The container, as the signed list names it.
    pub format: &'static str,
    /// The interface id of the given file; of a made one the cards'.
    pub interface_id: Option<Uuid>,
}

impl ImageSetup {
    /// A made image of one of the simulated card's functions.
    #[must_use]
    pub fn new(name: &'static str, function: Uuid, bytes: usize) -> Self {
        Self {
            name,
            function,
            bytes,
            file: None,
            format: "gbs",
            interface_id: None,
        }
    }

    /// A `.bit` file for one region.
    #[must_use]
    pub fn bit(name: &'static str, function: Uuid, interface_id: Uuid, file: Vec<u8>) -> Self {
        Self {
            file: Some(file),
            format: "bit",
            interface_id: Some(interface_id),
            ..Self::new(name, function, 0)
        }
    }
}

impl Default for CardSetup {
    fn default() -> Self {
        Self {
            rate: "instant".to_owned(),
            interface_id: INTERFACE,
            table: String::new(),
            blank: 1024,
            kind: CardKind::Dfl,
            pci: None,
        }
    }
}

impl VmSetup {
    /// A VM with one region.
    #[must_use]
    pub fn new(name: &'static str, tenant: &'static str, card: usize, region: usize) -> Self {
        Self {
            name,
            tenant,
            regions: vec![(card, region)],
            channel: Channel::HostListens,
        }
    }
}

/// Two cards of one kind; `alice` of tenant `blue` and `bob` of tenant `green`,
/// each with a region of a card of their own; `blue` may load all of acme's
/// images, `green` only globex's.
impl Default for Setup {
    fn default() -> Self {
        Self {
            cards: vec![CardSetup::default(), CardSetup::default()],
            vms: vec![
                VmSetup::new("alice", "blue", 0, 0),
                VmSetup {
                    channel: Channel::VmListens,
                    ..VmSetup::new("bob", "green", 1, 0)
                },
            ],
            images: vec![
                ImageSetup::new("acme/adder:1.0", simcard::functions::ADDER, 64 * 1024),
                ImageSetup::new("acme/counter:1.0", simcard::functions::COUNTER, 16 * 1024),
                ImageSetup::new("globex/cipher:2.1", simcard::functions::CIPHER, 32 * 1024),
            ],
            grants: vec![("blue", &["acme/*"]), ("green", &["globex/*"])],
            limits: Vec::new(),
            good_for: Duration::from_secs(86_400),
        }
    }
}
