//! What Linux's DFL driver insists on (`linux-dfl-judge.md`), asked of the map.

use super::*;

fn next(header: u64) -> u64 {
    header >> 16 & 0x00ff_ffff
}

fn is_last(header: u64) -> bool {
    header >> 40 & 1 == 1
}

#[test]
fn the_management_list_is_one_linux_takes() {
    let mut bench = Bench::new();
    let mut at = 0;
    let mut seen = Vec::new();
    loop {
        let header = bench.r(at);
        seen.push((header >> 60, header & 0xfff));
        assert_eq!(header >> 12 & 0xf, 0, "revision at {at:#x}");
        if is_last(header) || next(header) == 0 {
            break;
        }
        at += next(header);
        assert!(at < 512 << 10 && at.is_multiple_of(8));
    }
    // FME, thermal, errors, reconfiguration; the last is a page at most.
    assert_eq!(seen, [(4, 0), (3, 1), (3, 4), (3, 5)]);
    assert!(at + 4096 <= PORT[0]);
}

#[test]
fn ports_rise_say_their_number_and_fit() {
    let mut bench = Bench::new();
    assert_eq!(bench.r(0x30) >> 17 & 7, 2);
    let mut end = 0;
    for (number, offset) in (0u64..).zip(PORT_OFST) {
        let entry = bench.r(offset);
        assert_eq!(entry >> 60 & 1, 1);
        assert_eq!(entry >> 32 & 7, 0); // BAR0
        let base = entry & 0x00ff_ffff;
        assert!(base >= end && base.is_multiple_of(4096));
        let header = bench.r(base);
        assert_eq!((header >> 60, header & 0xfff), (4, 1));
        assert!(is_last(header));
        assert_eq!(bench.r(base + 0x30) & 3, number);
        let afu = base + bench.r(base + 0x18);
        let size = (bench.r(base + 0x30) >> 8 & 0xffff) << 10;
        assert!(size > 0 && afu.is_multiple_of(4096));
        end = afu + size;
        assert!(end <= 512 << 10);
    }
    assert_eq!(bench.r(0x48), 0);
    assert_eq!(bench.r(0x50), 0);
}

#[test]
fn identities_that_linux_shows() {
    let mut bench = Bench::new();
    assert_ne!(bench.r(0x60), 0);
    assert_ne!(bench.r(0x68), 0);
    assert_eq!(bench.r(PORT[0] + 0x40), 0);
    assert_eq!(bench.r(0x1000 + 0x10) & 0x7f, 45);
    assert_eq!(bench.r(0x2000 + 0x10), 0);
}

#[test]
fn the_pci_identities_are_those_of_a_pac() {
    let mut bench = Bench::new();
    for (function, device) in [
        (PciFunction::Management, 0xc4),
        (user(0), 0xc5),
        (user(1), 0xc5),
    ] {
        let mut ids = [0; 4];
        bench.card.read(function, Space::Config, 0, &mut ids);
        assert_eq!(ids, [0x86, 0x80, device, 0x09]);
    }
    let mut serial = [0; 12];
    bench
        .card
        .read(PciFunction::Management, Space::Config, 0x100, &mut serial);
    assert_eq!(serial, [3, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    // A guest's function does not tell on which card it sits.
    bench.card.read(user(0), Space::Config, 0x100, &mut serial);
    assert_eq!(serial, [0; 12]);
}

#[test]
fn a_guests_bar_has_the_port_first() {
    let mut bench = Bench::new();
    bench.give(1);
    let header = bench.vf_r(1, 0);
    assert_eq!((header >> 60, header & 0xfff), (4, 1));
    let afu = bench.vf_r(1, 0x18);
    let size = (bench.vf_r(1, 0x30) >> 8 & 0xffff) << 10;
    assert!(afu + size <= crate::dfl::USER_BAR);
}

#[test]
fn beyond_a_bar_reads_ones() {
    let mut bench = Bench::new();
    assert_eq!(bench.r(512 << 10), u64::MAX);
    bench.give(0);
    assert_eq!(bench.vf_r(0, crate::dfl::USER_BAR), u64::MAX);
    bench.vf_w(0, crate::dfl::USER_BAR, 1);
    bench.w(u64::MAX, 1);
}
