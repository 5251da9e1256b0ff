//! The client against another's server, and against servers that lie.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "a test may fail where a number does not fit"
)]

mod hostile;

use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::AsFd;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Instant;

use rustix::event::{EventfdFlags, eventfd};
use vfio_bindings::bindings::vfio::vfio_region_info;

use super::*;
use crate::MemfdWriter;

const BAR_SIZE: usize = 0x1000;
/// A store there is refused.
const REFUSES: u64 = 0x800;

/// What the server was asked to do.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Write(u64, Vec<u8>),
    Map(u64, u64, u64, bool),
    Unmap(u64, u64),
    Irqs(u32, u32, usize),
    Reset,
}

struct Backend {
    bar: Vec<u8>,
    asked: Sender<Asked>,
}

impl vfio_user::ServerBackend for Backend {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> io::Result<()> {
        let mut config = vec![0; 4096];
        config[..4].copy_from_slice(&0x09c4_8086_u32.to_le_bytes());
        // An AER capability, and behind it the serial number.
        config[0x100..0x104].copy_from_slice(&(0x0001_u32 | 0x140 << 20).to_le_bytes());
        config[0x140..0x144].copy_from_slice(&(0x0003_u32 | 1 << 16).to_le_bytes());
        config[0x144..0x14c].copy_from_slice(&0x1122_3344_5566_7788_u64.to_le_bytes());
        let bytes = if region == 7 { &config } else { &self.bar };
        let at = offset as usize;
        data.copy_from_slice(&bytes[at..at + data.len()]);
        Ok(())
    }

    fn region_write(&mut self, _region: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        if offset == REFUSES {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let at = offset as usize;
        self.bar[at..at + data.len()].copy_from_slice(data);
        self.asked
            .send(Asked::Write(offset, data.to_vec()))
            .unwrap();
        Ok(())
    }

    fn dma_map(
        &mut self,
        _flags: vfio_user::DmaMapFlags,
        offset: u64,
        address: u64,
        size: u64,
        file: Option<File>,
    ) -> io::Result<()> {
        self.asked
            .send(Asked::Map(offset, address, size, file.is_some()))
            .unwrap();
        Ok(())
    }

    fn dma_unmap(
        &mut self,
        _flags: vfio_user::DmaUnmapFlags,
        address: u64,
        size: u64,
    ) -> io::Result<()> {
        self.asked.send(Asked::Unmap(address, size)).unwrap();
        Ok(())
    }

    fn reset(&mut self) -> io::Result<()> {
        self.asked.send(Asked::Reset).unwrap();
        Ok(())
    }

    fn set_irqs(
        &mut self,
        index: u32,
        _flags: u32,
        start: u32,
        _count: u32,
        files: Vec<File>,
    ) -> io::Result<()> {
        for mut file in &files {
            io::Write::write_all(&mut file, &1u64.to_ne_bytes())?;
        }
        self.asked
            .send(Asked::Irqs(index, start, files.len()))
            .unwrap();
        Ok(())
    }
}

/// A device of another's making, and what it is asked.
fn served(resettable: bool) -> (VfioUserDevice, std::sync::mpsc::Receiver<Asked>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("card.sock");
    let regions = (0..9).map(|index| {
        let size = match index {
            0 => BAR_SIZE as u64,
            7 => 4096,
            _ => 0,
        };
        vfio_user::ServerRegion {
            region_info: vfio_region_info {
                argsz: 32,
                flags: 3,
                index,
                size,
                ..Default::default()
            },
            sparse_areas: Vec::new(),
            mmap_fd: None,
        }
    });
    let irqs = (0..5).map(|index| vfio_user::IrqInfo {
        index,
        flags: 1,
        count: if index == 2 { 4 } else { 0 },
    });
    let server =
        vfio_user::Server::new(&path, resettable, irqs.collect(), regions.collect()).unwrap();
    let (asked, asks) = channel();
    thread::spawn(move || {
        let bar = vec![0; BAR_SIZE];
        let _ended = server.run(&mut Backend { bar, asked });
        drop(directory);
    });
    (
        VfioUserDevice::open(&path, Deadlines::default()).unwrap(),
        asks,
    )
}

#[test]
fn a_device_served_by_others_is_known_by_its_ids_and_serial() {
    let (device, _asks) = served(true);
    let identity = device.identity();
    assert_eq!((identity.vendor, identity.device), (0x8086, 0x09c4));
    assert_eq!(identity.serial.unwrap().to_string(), "1122334455667788");
    assert_eq!(device.size(Space::Bar(Bar::ZERO)), BAR_SIZE as u64);
    assert_eq!(device.size(Space::Bar(Bar::new(1).unwrap())), 0);
    assert_eq!(device.size(Space::Config), 4096);
    assert_eq!(device.interrupts(InterruptKind::Msix), 4);
    assert_eq!(device.interrupts(InterruptKind::Msi), 0);
}

#[test]
fn one_store_is_one_message_of_eight_bytes() {
    let (mut device, asks) = served(true);
    device
        .store64(Bar::ZERO, 0x10, 0x0102_0304_0506_0708)
        .unwrap();
    assert_eq!(
        device.load64(Bar::ZERO, 0x10).unwrap(),
        0x0102_0304_0506_0708
    );
    assert_eq!(
        asks.recv().unwrap(),
        Asked::Write(0x10, vec![8, 7, 6, 5, 4, 3, 2, 1])
    );

    // More than goes into one send; the load comes behind all of them.
    let values: Vec<u64> = (0..5000).collect();
    device.store64_burst(Bar::ZERO, 0x18, &values).unwrap();
    assert_eq!(device.load64(Bar::ZERO, 0x18).unwrap(), 4999);
    for value in values {
        assert_eq!(
            asks.recv().unwrap(),
            Asked::Write(0x18, value.to_le_bytes().to_vec())
        );
    }
}

#[test]
fn vfio_01_no_access_out_of_range_or_off_its_place_is_even_sent() {
    let (mut device, asks) = served(true);
    let end = BAR_SIZE as u64;
    let out =
        |result: Result<(), DeviceError>| matches!(result, Err(DeviceError::OutOfRange { .. }));
    assert!(out(device.store64(Bar::ZERO, end, 0)));
    assert!(out(device.store64(Bar::ZERO, u64::MAX - 7, 0)));
    assert!(out(device.store64_burst(Bar::new(3).unwrap(), 0, &[1])));
    assert!(out(device.write(Space::Bar(Bar::ZERO), end - 1, &[1, 2])));
    assert!(out(device.read(Space::Config, u64::MAX - 3, &mut [0; 4])));
    for offset in [1, 4] {
        let result = device.load64(Bar::ZERO, offset);
        assert!(matches!(result, Err(DeviceError::Unaligned { .. })));
    }
    drop(device);
    assert!(asks.recv().is_err(), "nothing came");
}

#[test]
fn vfio_01_a_refused_store_is_an_error_and_a_refused_posted_store_is_one_later() {
    let (mut device, _asks) = served(true);
    // This server leaves the payload of a refused write unread and is out of
    // step from there on; whatever that makes of it, nothing is taken for good.
    let error = device.store64(Bar::ZERO, REFUSES, 1).unwrap_err();
    assert!(
        matches!(error, DeviceError::Refused { errno: 0 }),
        "{error}"
    );
}

#[test]
fn vfio_02_reset_is_done_or_is_an_error() {
    let (mut device, asks) = served(true);
    device.reset().unwrap();
    assert_eq!(asks.recv().unwrap(), Asked::Reset);
    let (mut device, asks) = served(false);
    assert!(matches!(device.reset(), Err(DeviceError::NoReset)));
    drop(device);
    assert!(asks.recv().is_err());
}

#[test]
fn memory_is_lent_with_its_file_and_taken_back() {
    let (mut device, asks) = served(true);
    let memory = MemfdWriter::new(0).unwrap().seal().unwrap();
    let mapping = DmaMapping {
        iova: 0x10_0000,
        size: 0x2000,
        offset: 0x1000,
        rights: DmaRights::ReadWrite,
    };
    device.dma_map(mapping, memory.as_fd()).unwrap();
    device.dma_unmap(0x10_0000, 0x2000).unwrap();
    assert_eq!(
        asks.recv().unwrap(),
        Asked::Map(0x1000, 0x10_0000, 0x2000, true)
    );
    assert_eq!(asks.recv().unwrap(), Asked::Unmap(0x10_0000, 0x2000));
}

#[test]
fn an_interrupt_reaches_its_eventfd() {
    let (mut device, asks) = served(true);
    let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    device
        .set_interrupt(InterruptKind::Msix, 3, Some(event.as_fd()))
        .unwrap();
    device.set_interrupt(InterruptKind::Msix, 3, None).unwrap();
    assert_eq!(asks.recv().unwrap(), Asked::Irqs(2, 3, 1));
    assert_eq!(asks.recv().unwrap(), Asked::Irqs(2, 3, 0));
    let mut count = [0; 8];
    File::from(event).read_exact(&mut count).unwrap();
    assert_eq!(u64::from_ne_bytes(count), 1);
    let error = device
        .set_interrupt(InterruptKind::Msix, 4, None)
        .unwrap_err();
    assert!(
        matches!(error, DeviceError::NoSuchInterrupt { vector: 4, .. }),
        "{error}"
    );
}

#[test]
fn no_server_is_an_error_and_a_deaf_one_a_late_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("none.sock");
    let short = Deadlines {
        connect: Duration::from_millis(50),
        answer: Duration::from_millis(50),
    };
    let error = VfioUserDevice::open(&path, short).unwrap_err();
    assert!(matches!(error, DeviceError::Io { .. }), "{error}");

    // Listens, and never accepts: connections wait, and then find no room.
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let before = Instant::now();
    for _ in 0..3 {
        let error = VfioUserDevice::open(&path, short).unwrap_err();
        assert!(matches!(error, DeviceError::Timeout(_)), "{error}");
    }
    assert!(before.elapsed() < Duration::from_secs(5));
}
