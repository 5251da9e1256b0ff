//! The drawing as SVG: one file, no scripts, nothing fetched.

use std::fmt::Write as _;

use super::{Layer, Role, Share, from_above, name, share, stacked};
use crate::device::{Block, Geometry};

/// Where the grid begins, and how wide it is.
const LEFT: u32 = 120;
const WIDTH: u32 = 1000;
/// Below the title.
const TOP: u32 = 40;
/// Heights of rows of logic and of block RAM content.
const LOGIC: u32 = 26;
const BRAM: u32 = 10;
const LEGEND: u32 = 20;

/// Draws a device with layers of frames over it. `title` and the layers' names
/// may hold any text.
#[must_use]
pub fn svg(geometry: &Geometry, title: &str, layers: &[Layer<'_>]) -> String {
    let rows = from_above(geometry);
    let layers = stacked(layers);
    let mut grid = String::new();
    let mut y = TOP;
    for row in rows {
        let height = match row.block {
            Block::Bram => BRAM,
            _ => LOGIC,
        };
        let inner = height.saturating_sub(2);
        text(&mut grid, (4, y.saturating_add(inner)), 10, &name(row));
        let columns = geometry.row_columns(row);
        let all: u32 = columns.iter().map(|column| column.frames).sum();
        let mut before = 0_u32;
        for column in columns {
            let x = scaled(before, all);
            before = before.saturating_add(column.frames);
            let width = scaled(before, all).saturating_sub(x).max(1);
            let place = (LEFT.saturating_add(x), y, width, inner);
            rect(&mut grid, place, "#8884", 1.0);
            for layer in &layers {
                let strength = match share(column, layer.frames) {
                    Share::None => continue,
                    Share::Some => 0.45,
                    Share::All => 0.9,
                };
                rect(&mut grid, place, colour(layer.role), strength);
            }
        }
        y = y.saturating_add(height);
    }
    for layer in &layers {
        y = y.saturating_add(LEGEND);
        let count = layer.frames.len();
        rect(
            &mut grid,
            (LEFT, y.saturating_sub(12), 14, 12),
            colour(layer.role),
            0.9,
        );
        let label = format!("{}: {count} frames", layer.name);
        text(
            &mut grid,
            (LEFT.saturating_add(20), y.saturating_sub(2)),
            12,
            &label,
        );
    }
    let width = LEFT.saturating_add(WIDTH).saturating_add(10);
    let height = y.saturating_add(LEGEND);
    let mut head = String::new();
    text(&mut head, (4, 22), 15, title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" fill=\"#888\">\n{head}{grid}</svg>\n"
    )
}

/// A part of the row's frames, in units of the drawing.
fn scaled(frames: u32, all: u32) -> u32 {
    let wide = u64::from(frames).saturating_mul(u64::from(WIDTH));
    let scaled = wide.checked_div(u64::from(all)).unwrap_or(0);
    u32::try_from(scaled).unwrap_or(WIDTH)
}

/// Colours that can be told apart by most eyes, on light and on dark ground.
fn colour(role: Role) -> &'static str {
    match role {
        Role::OtherRegion => "#999999",
        Role::Region => "#56b4e9",
        Role::Writes => "#009e73",
        Role::Outside => "#d55e00",
    }
}

fn rect(out: &mut String, (x, y, width, height): (u32, u32, u32, u32), fill: &str, opacity: f32) {
    // A String takes everything that is written to it.
    let _fine = writeln!(
        out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
         fill=\"{fill}\" fill-opacity=\"{opacity}\" stroke=\"#8886\" stroke-width=\"0.3\"/>"
    );
}

fn text(out: &mut String, (x, y): (u32, u32), size: u32, text: &str) {
    let _fine = writeln!(
        out,
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\">{}</text>",
        escaped(text)
    );
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}
