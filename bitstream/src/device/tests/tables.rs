//! Damaged tables: each is refused, at its line.

use super::*;

/// A whole table of one die, which each test damages.
const WHOLE: &str = "\
# a comment

layout die series7
logic top 0 : 2x36 42
logic bottom 0-1 : 36
bram top 0 : 128
layout other ultrascale+
logic 0 : 16
device 0x01234093 series7 xcone,xctwo layout die
device 0x01235093 series7 xcthree dies SLR0=0x01234093=die SLR1=0x01236093=die
device 0x01237093 ultrascale+ xcfour unknown
";

fn fault(text: &str) -> String {
    match Table::read(&[text]) {
        Ok(_) => panic!("read:\n{text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_whole_table_is_read() {
    let table = Table::read(&[WHOLE]).unwrap();
    assert_eq!((table.layouts.len(), table.parts.len()), (2, 3));
    assert_eq!(table.layouts[0].1.frame_count(), 2 * 36 + 42 + 2 * 36 + 128);
}

/// Line of the whole table (from 1), what stands there instead, the line at which
/// it is noticed, and what is said.
type Damage<'a> = (u32, &'a str, u32, &'a str);

fn is_refused(damages: &[Damage<'_>]) {
    for &(line, instead, noticed, why) in damages {
        let lines: Vec<&str> = (1..)
            .zip(WHOLE.lines())
            .map(|(at, text)| if at == line { instead } else { text })
            .collect();
        let said = fault(&lines.join("\n"));
        assert!(
            said.starts_with(&format!("line {noticed}: ")) && said.contains(why),
            "{instead}: {said}"
        );
    }
}

#[test]
fn damaged_columns_are_refused_at_their_line() {
    is_refused(&[
        (3, "layout die series8", 3, "family"),
        (3, "layout die", 3, "statement"),
        (3, "", 4, "before the first layout"),
        (4, "logic 0 : 36", 4, "rows"),
        (4, "logic top 0 36", 4, "rows"),
        (4, "logic top x : 36", 4, "rows"),
        (4, "logic top 64 : 36", 4, "rows"),
        (4, "logic top 1-0 : 36", 4, "rows"),
        (4, "logic top 0-4294967296 : 36", 4, "rows"),
        (4, "logic top 0 : 36 y", 4, "run"),
        (4, "logic top 0 : 2x", 4, "run"),
        (4, "logic top 0 : -1", 4, "run"),
        (4, "logic top 0 : +36", 4, "run"),
        (4, "logic top +0 : 36", 4, "rows"),
        (4, "logic top 0 : 9999999x36", 4, "run"),
        (4, "logic  top 0 : 36", 4, "rows"),
        (4, "Logic top 0 : 36", 4, "statement"),
        // A layout is looked at when it ends: at the next one.
        (4, "logic top 0 :", 7, "layout that ends here"),
        (4, "logic top 0 : 0", 7, "layout that ends here"),
        (4, "logic top 0 : 1024", 7, "layout that ends here"),
        (4, "logic top 0 : 1024x1 1", 7, "layout that ends here"),
        (5, "logic top 0 : 36", 7, "layout that ends here"),
        (6, "logic bottom 0 : 36", 7, "layout that ends here"),
        (6, "logic bottom 1 : 36", 7, "layout that ends here"),
    ]);
}

#[test]
fn damaged_devices_are_refused_at_their_line() {
    is_refused(&[
        (7, "layout die ultrascale+", 9, "layout"),
        (8, "logic top 0 : 16", 8, "rows"),
        (9, "device 0x1234093 series7 xcone layout die", 9, "IDCODE"),
        (9, "device 0x11234093 series7 xcone layout die", 9, "IDCODE"),
        (9, "device 01234093 series7 xcone layout die", 9, "IDCODE"),
        (9, "device 0x+1234093 series7 xcone layout die", 9, "IDCODE"),
        (9, "device 0x01234093 series7 one layout die", 9, "name"),
        (9, "device 0x01234093 series7 xcone, layout die", 9, "name"),
        (
            9,
            "device 0x01234093 series7 xcone,xcone layout die",
            9,
            "name",
        ),
        (
            9,
            "device 0x01234093 series7 xcone layout none",
            9,
            "layout",
        ),
        (
            9,
            "device 0x01234093 series7 xcone layout other",
            9,
            "layout",
        ),
        (9, "device 0x01234093 series7 xcone", 9, "statement"),
        (
            10,
            "device 0x01234093 series7 xcthree unknown",
            10,
            "IDCODE",
        ),
        (10, "device 0x01235093 series7 xctwo unknown", 10, "name"),
        (
            10,
            "device 0x01235093 series7 xcthree dies",
            10,
            "statement",
        ),
        (
            10,
            "device 0x01235093 series7 xcthree dies SLR0=die",
            10,
            "statement",
        ),
        (
            10,
            "device 0x01235093 series7 xcthree dies SLR0=0=die",
            10,
            "IDCODE",
        ),
        (
            11,
            "device 0x01237093 ultrascale+ xcfour unknown x",
            11,
            "statement",
        ),
        (11, "\u{fc}", 11, "statement"),
    ]);
}
