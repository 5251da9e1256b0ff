//! Drawings of a device and of sets of its frames: as SVG, and in a terminal.
//!
//! Knows columns and rows. Pure: text comes out, nothing is opened. Must not
//! know what a set of frames is for beyond its [`Role`].

mod svg;
mod terminal;

use crate::device::{Block, Column, FrameSet, Geometry, Half, Row};

pub use self::svg::svg;
pub use self::terminal::terminal;

/// What a set of frames is in a drawing. Later roles are drawn over earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Regions that are not asked about.
    OtherRegion,
    /// The region that is asked about.
    Region,
    /// What a bitstream writes, where it may.
    Writes,
    /// What a bitstream writes, where it may not.
    Outside,
}

/// A set of frames, and what it is.
#[derive(Debug, Clone, Copy)]
pub struct Layer<'a> {
    /// For the legend.
    pub name: &'a str,
    /// The frames.
    pub frames: &'a FrameSet,
    /// What they are.
    pub role: Role,
}

/// Whether text in a terminal is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// No escape sequences at all.
    Never,
    /// The sixteen colours that every terminal has.
    Ansi,
}

/// How much of a column is in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    None,
    Some,
    All,
}

/// How much of a column a set has.
fn share(column: &Column, frames: &FrameSet) -> Share {
    let range = column.range();
    if frames.contains_range(&range) {
        return Share::All;
    }
    // The first range that ends after the column begins.
    let ranges = frames.ranges();
    let at = ranges.partition_point(|have| have.end <= range.start);
    match ranges.get(at) {
        Some(have) if have.start < range.end => Share::Some,
        _ => Share::None,
    }
}

/// Layers from the lowest to the highest.
fn stacked<'l, 'a>(layers: &'l [Layer<'a>]) -> Vec<&'l Layer<'a>> {
    let mut layers: Vec<&Layer<'_>> = layers.iter().collect();
    layers.sort_by_key(|layer| layer.role);
    layers
}

/// The rows as they lie on the die, from above: the highest row of the top half
/// first, and at last the highest of the bottom half. Block RAM content stands
/// below the logic of its row.
fn from_above(geometry: &Geometry) -> Vec<&Row> {
    let mut rows: Vec<&Row> = geometry.rows().iter().collect();
    rows.sort_by_key(|row| {
        let bottom = row.half == Some(Half::Bottom);
        let height = if bottom {
            i64::from(row.row)
        } else {
            i64::from(row.row).saturating_neg()
        };
        (bottom, height, row.block == Block::Bram)
    });
    rows
}

/// A row's name: `top 0 logic`.
fn name(row: &Row) -> String {
    let half = row.half.map_or(String::new(), |half| format!("{half} "));
    format!("{half}{} {}", row.row, row.block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, FrameIndex};
    use proptest::prelude::*;

    fn set(ranges: &[(u32, u32)]) -> FrameSet {
        let range = |(from, to): &(u32, u32)| FrameIndex(*from)..FrameIndex(*to);
        ranges.iter().map(range).collect()
    }

    #[test]
    fn shares_of_a_column() {
        let geometry = Device::named("xc7z020").unwrap().geometry().unwrap();
        let [first, second, ..] = geometry.columns() else {
            panic!("no columns")
        };
        let frames = set(&[
            (0, first.frames),
            (first.frames, first.frames.saturating_add(1)),
        ]);
        assert_eq!(share(first, &frames), Share::All);
        assert_eq!(share(second, &frames), Share::Some);
        assert_eq!(share(second, &FrameSet::new()), Share::None);
    }

    /// Tags are closed in order, attributes quoted, and no stray markup stands
    /// in text: as much of XML as these drawings use.
    fn is_well_formed(xml: &str) -> bool {
        let mut open = Vec::new();
        let mut rest = xml;
        while let Some((text, tail)) = rest.split_once('<') {
            let Some((tag, after)) = tail.split_once('>') else {
                return false;
            };
            let entities = text.split('&').skip(1);
            let known = ["amp;", "lt;", "gt;", "quot;"];
            let fine = entities
                .into_iter()
                .all(|entity| known.iter().any(|name| entity.starts_with(name)));
            let quotes = tag.matches('"').count();
            if !fine || text.contains('>') || quotes % 2 != 0 || tag.contains('<') {
                return false;
            }
            let name = |tag: &str| tag.split(' ').next().unwrap_or_default().to_owned();
            match tag.strip_prefix('/') {
                Some(closed) if open.pop().is_none_or(|last| last != closed) => return false,
                Some(_) => {}
                None if tag.ends_with('/') => {}
                None => open.push(name(tag)),
            }
            rest = after;
        }
        open.is_empty() && rest.trim().is_empty()
    }

    #[test]
    fn what_is_not_well_formed_is_seen() {
        assert!(is_well_formed("<a b=\"1\"><c/>x &amp; y</a>\n"));
        for wrong in [
            "<a>",
            "<a></b>",
            "</a>",
            "<a b=\"1></a>",
            "<a>&</a>",
            "<a>></a>",
            "<a></a>x",
        ] {
            assert!(!is_well_formed(wrong), "{wrong}");
        }
    }

    #[test]
    fn every_role_is_seen_and_the_highest_wins() {
        let geometry = Device::named("xc7z020").unwrap().geometry().unwrap();
        let frames = set(&[(0, 500)]);
        let roles = [Role::Outside, Role::Writes, Role::Region, Role::OtherRegion];
        let names = ["out", "writes", "mine", "others"];
        let layers: Vec<Layer<'_>> = (roles.into_iter().zip(names))
            .map(|(role, name)| Layer {
                name,
                frames: &frames,
                role,
            })
            .collect();
        let drawn = svg(geometry, "t", &layers);
        let text = terminal(geometry, &layers, 100, Colour::Never);
        for name in names {
            assert!(drawn.contains(&format!("{name}: 500 frames")), "{name}");
            assert!(text.contains(&format!("{name}: 500 frames")), "{name}");
        }
        // Only what may not be is seen where all lie on each other.
        let grid = text.lines().take(geometry.rows().len());
        let grid: String = grid
            .map(|line| line.chars().skip(16).collect::<String>())
            .collect();
        assert!(
            grid.contains('X') && !grid.contains(['█', '▓', '▒', '░']),
            "{text}"
        );
    }

    #[test]
    fn every_row_and_layer_is_in_both_drawings() {
        for part in ["xc7z020", "xczu7ev"] {
            let geometry = Device::named(part).unwrap().geometry().unwrap();
            let frames = set(&[(0, 100)]);
            let layers = [Layer {
                name: "the region & <more>",
                frames: &frames,
                role: Role::Region,
            }];
            let svg = svg(geometry, "a \"title\" & <b>", &layers);
            assert!(is_well_formed(&svg));
            assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
            assert!(svg.contains("a &quot;title&quot; &amp; &lt;b&gt;"));
            assert!(svg.contains("the region &amp; &lt;more&gt;"));
            assert!(!svg.contains("<script") && !svg.contains("<more>"));
            assert_eq!(svg.matches("<rect ").count(), svg.matches("/>").count());
            let text = terminal(geometry, &layers, 80, Colour::Never);
            for row in geometry.rows() {
                assert!(svg.contains(&name(row)) && text.contains(&name(row)));
            }
            assert!(
                text.lines().all(|line| line.chars().count() <= 80),
                "{text}"
            );
            assert!(!text.contains('\u{1b}'));
            let coloured = terminal(geometry, &layers, 80, Colour::Ansi);
            assert!(coloured.contains('\u{1b}'));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn any_set_and_width_is_drawn(
            ranges in proptest::collection::vec((0_u32..40_000, 0_u32..40_000), 0..20),
            width in 0_usize..300,
            name in "\\PC{0,200}",
        ) {
            let geometry = Device::named("xck26").unwrap().geometry().unwrap();
            let frames = set(&ranges);
            let layers = [Layer { name: &name, frames: &frames, role: Role::Writes }];
            prop_assert!(is_well_formed(&svg(geometry, &name, &layers)));
            let text = terminal(geometry, &layers, width, Colour::Never);
            prop_assert!(text.lines().all(|line| line.chars().count() <= width.max(40)));
        }
    }
}
