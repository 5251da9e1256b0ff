//! The drawing in a terminal: a line for each row, a letter for some columns.

use std::fmt::Write as _;

use super::{Colour, Layer, Role, Share, from_above, name, share, stacked};
use crate::device::{Column, Geometry};

/// Room for a row's name.
const LABEL: usize = 16;
/// Narrower than this nothing can be told.
const NARROWEST: usize = 40;

/// Draws a device with layers of frames over it, at most `width` letters wide
/// (and never narrower than 40).
#[must_use]
pub fn terminal(geometry: &Geometry, layers: &[Layer<'_>], width: usize, colour: Colour) -> String {
    let layers = stacked(layers);
    let cells = width.max(NARROWEST).saturating_sub(LABEL);
    let mut out = String::new();
    for row in from_above(geometry) {
        let label: String = name(row).chars().take(LABEL.saturating_sub(1)).collect();
        // A String takes everything that is written to it.
        let _fine = write!(out, "{label:<LABEL$}");
        for cell in cut(geometry.row_columns(row), cells) {
            let top = layers.iter().rev().find_map(|layer| {
                let most = cell.iter().map(|column| share(column, layer.frames));
                match most.max_by_key(|share| *share as u8) {
                    None | Some(Share::None) => None,
                    Some(share) => Some((layer.role, share)),
                }
            });
            out.push_str(&letter(top, colour));
        }
        out.push('\n');
    }
    for layer in &layers {
        let mark = letter(Some((layer.role, Share::All)), colour);
        let count = format!("{} frames", layer.frames.len());
        let room = width
            .max(NARROWEST)
            .saturating_sub(count.len().saturating_add(4));
        let name: String = layer
            .name
            .chars()
            .filter(|letter| !letter.is_control())
            .take(room)
            .collect();
        let _fine = writeln!(out, "{mark} {name}: {count}");
    }
    out
}

/// Columns in at most `cells` groups of nearly equal size.
fn cut(columns: &[Column], cells: usize) -> impl Iterator<Item = &[Column]> {
    let each = columns.len().div_ceil(cells.max(1)).max(1);
    columns.chunks(each)
}

fn letter(top: Option<(Role, Share)>, colour: Colour) -> String {
    let Some((role, share)) = top else {
        return "·".to_owned();
    };
    let letter = match (role, share) {
        (Role::Region, Share::All) => '▒',
        (Role::OtherRegion | Role::Region, _) => '░',
        (Role::Writes, Share::All) => '█',
        (Role::Writes, _) => '▓',
        (Role::Outside, _) => 'X',
    };
    let code = match role {
        Role::OtherRegion => "37",
        Role::Region => "36",
        Role::Writes => "32",
        Role::Outside => "31",
    };
    match colour {
        Colour::Never => letter.to_string(),
        Colour::Ansi => format!("\u{1b}[{code}m{letter}\u{1b}[0m"),
    }
}
