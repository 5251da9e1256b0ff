//! Where a die's frames are: how a frame address is spelled, which rows and
//! columns there are, and in which order the configuration logic walks them.
//!
//! The walk is a line of **places**: the frames of a row, then two pad frames
//! that are not there, then the next row. Real frames also have an **index**,
//! counted in the same order without pads; the mask frames of 7-series parts
//! (block type 2, one a column) come after all others.

/// Pad frames at the end of each row.
pub(super) const ROW_PADS: u32 = 2;
/// Block type of the mask frames of 7-series parts.
pub(super) const MASK_BLOCK: u8 = 2;

/// How a family of parts spells frame addresses, and how long its frames are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// 7 series: 101 words a frame; rows lie in a top and a bottom half.
    Series7,
    /// UltraScale: 123 words a frame.
    UltraScale,
    /// UltraScale+: 93 words a frame.
    UltraScalePlus,
}

impl Family {
    /// Words of a frame.
    #[must_use]
    pub fn frame_words(self) -> usize {
        match self {
            Self::Series7 => 101,
            Self::UltraScale => 123,
            Self::UltraScalePlus => 93,
        }
    }

    /// Lowest bit and width of each field: block, half, row, column, minor.
    fn fields(self) -> [(u32, u32); 5] {
        match self {
            Self::Series7 => [(23, 3), (22, 1), (17, 5), (7, 10), (0, 7)],
            Self::UltraScale => [(23, 3), (22, 0), (17, 6), (7, 10), (0, 7)],
            Self::UltraScalePlus => [(24, 3), (23, 0), (18, 6), (8, 10), (0, 8)],
        }
    }
}

/// One row of one block type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) block: u8,
    /// 0 top, 1 bottom; always 0 where a family has no halves.
    pub(super) half: u8,
    pub(super) row: u8,
    /// Frames of each column.
    pub(super) columns: Vec<u16>,
}

#[derive(Debug, Clone)]
struct Placed {
    row: Row,
    frames: u32,
    first_place: u32,
    first_index: u32,
}

/// The frames of one die.
#[derive(Debug, Clone)]
pub struct Geometry {
    name: String,
    family: Family,
    idcode: u32,
    rows: Vec<Placed>,
    frames: u32,
    /// How many of the frames are no mask frames.
    content: u32,
}

/// What lies at a place of the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Frame(u32),
    Pad,
}

impl Geometry {
    /// Rows must come in configuration order; mask rows are made here.
    pub(super) fn new(name: String, family: Family, idcode: u32, mut rows: Vec<Row>) -> Self {
        if family == Family::Series7 {
            let masks = rows.iter().filter(|row| row.block == 0).map(|row| Row {
                block: MASK_BLOCK,
                columns: vec![1; row.columns.len()],
                ..row.clone()
            });
            let masks: Vec<Row> = masks.collect();
            rows.extend(masks);
        }
        let (mut place, mut index, mut content) = (0u32, 0u32, 0);
        let mut placed = Vec::with_capacity(rows.len());
        for row in rows {
            let frames = row
                .columns
                .iter()
                .fold(0u32, |sum, frames| sum.saturating_add(u32::from(*frames)));
            let block = row.block;
            placed.push(Placed {
                row,
                frames,
                first_place: place,
                first_index: index,
            });
            place = place.saturating_add(frames).saturating_add(ROW_PADS);
            index = index.saturating_add(frames);
            if block != MASK_BLOCK {
                content = index;
            }
        }
        Self {
            name,
            family,
            idcode,
            rows: placed,
            frames: index,
            content,
        }
    }

    /// The name it was asked for by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its family.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Its IDCODE, without the revision.
    #[must_use]
    pub fn idcode(&self) -> u32 {
        self.idcode
    }

    /// Frames of logic and block RAM.
    #[must_use]
    pub fn frame_count(&self) -> u32 {
        self.content
    }

    /// All frames, the mask frames of a 7-series part too.
    pub(super) fn all_frames(&self) -> u32 {
        self.frames
    }

    /// The place that a frame address names, where there is one.
    pub(super) fn place(&self, far: u32) -> Option<u32> {
        let [block, half, row, column, minor] = self.family.fields().map(|(at, width)| {
            let mask = 1u32.checked_shl(width).unwrap_or(0).wrapping_sub(1);
            far >> at & mask
        });
        let placed = self.rows.iter().find(|placed| {
            let at = &placed.row;
            (u32::from(at.block), u32::from(at.half), u32::from(at.row)) == (block, half, row)
        })?;
        let column = usize::try_from(column).ok()?;
        let frames = *placed.row.columns.get(column)?;
        let before = placed
            .row
            .columns
            .iter()
            .take(column)
            .fold(0u32, |sum, frames| sum.saturating_add(u32::from(*frames)));
        (minor < u32::from(frames)).then(|| {
            placed
                .first_place
                .saturating_add(before)
                .saturating_add(minor)
        })
    }

    /// What is at a place, and the next one. Nothing follows the last row of
    /// block RAM, and nothing the last mask row.
    pub(super) fn at(&self, place: u32) -> Option<(Place, Option<u32>)> {
        let number = self
            .rows
            .partition_point(|placed| placed.first_place <= place)
            .checked_sub(1)?;
        let placed = self.rows.get(number)?;
        let inside = place.checked_sub(placed.first_place)?;
        let next = place.checked_add(1);
        if inside < placed.frames {
            return Some((
                Place::Frame(placed.first_index.saturating_add(inside)),
                next,
            ));
        }
        let last_pad = placed.frames.saturating_add(ROW_PADS).saturating_sub(1);
        let follower = self.rows.get(number.saturating_add(1));
        let goes_on = follower
            .is_some_and(|row| (row.row.block == MASK_BLOCK) == (placed.row.block == MASK_BLOCK));
        let next = next.filter(|_| inside < last_pad || goes_on);
        (inside <= last_pad).then_some((Place::Pad, next))
    }

    /// The address of a frame by its index.
    pub(super) fn far(&self, index: u32) -> Option<u32> {
        let number = self
            .rows
            .partition_point(|placed| placed.first_index <= index)
            .checked_sub(1)?;
        let placed = self.rows.get(number)?;
        let mut minor = index.checked_sub(placed.first_index)?;
        for (column, frames) in (0u32..).zip(&placed.row.columns) {
            let frames = u32::from(*frames);
            if minor < frames {
                let row = &placed.row;
                let values = [
                    u32::from(row.block),
                    u32::from(row.half),
                    u32::from(row.row),
                    column,
                    minor,
                ];
                let fields = self.family.fields();
                return Some(
                    fields
                        .iter()
                        .zip(values)
                        .fold(0, |far, ((at, _), value)| far | value << at),
                );
            }
            minor = minor.saturating_sub(frames);
        }
        None
    }
}
