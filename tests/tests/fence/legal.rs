//! Legal partial bitstreams for any set of frames, as the vendor's tool writes
//! them.
//!
//! Knows the grammar that was measured on genuine files; the geometry comes
//! from the crate under test, and the oracle, which reads the tables itself,
//! finds out if it is wrong.

use std::ops::Range;

use bitstream::device::{Block, Column, Device, Family, FrameIndex, FrameSet, Geometry};

use crate::random::Dice;
use crate::stream::{
    COR0, CRC, CTL0, CTL1, DESYNC, FAR, FDRI, IDCODE, MASK, MFW, MFWR, Part, RCRC, SYNC, WCFG,
};

/// A device, a region of it, and a stream that writes exactly the region.
pub(crate) struct Legal {
    pub(crate) device: Device,
    pub(crate) geometry: &'static Geometry,
    pub(crate) region: FrameSet,
    pub(crate) parts: Vec<Part>,
}

/// Which kind of legal stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// 7-series, with the flip-flops' reset: masks, every block twice.
    Reset,
    /// The same, compressed.
    ResetCompressed,
    /// 7-series, frames only.
    Plain,
    /// The same, compressed.
    PlainCompressed,
    /// UltraScale+: four sub-streams.
    Four,
    /// The same; block memory is cleared, and the second writes frames too.
    FourAndMore,
}

const AGHIGH: u32 = 8;
const GRESTORE: u32 = 10;
const SHUTDOWN: u32 = 11;
const KEPT: (usize, u32) = (50, 0xe000_09bc);

impl Legal {
    pub(crate) fn new(dice: &mut Dice, device: Device, region: FrameSet, shape: Shape) -> Legal {
        let geometry = device.geometry().expect("the tests choose such devices");
        let mut maker = Maker {
            dice,
            device,
            geometry,
            parts: Vec::new(),
        };
        match device.family() {
            Family::Series7 => maker.series7(&region, shape),
            _ => maker.ultrascale_plus(&region, shape),
        }
        let parts = maker.parts;
        Legal {
            device,
            geometry,
            region,
            parts,
        }
    }
}

/// A region of a few columns: whole ones, or parts of one.
pub(crate) fn region(dice: &mut Dice, geometry: &Geometry, whole: bool) -> FrameSet {
    let all = geometry.columns();
    let mut region = FrameSet::new();
    for _ in 0..=dice.below(2) {
        let mut at = dice.below(all.len());
        if dice.once_in(3) {
            // Over the edge of a row: its pads lie within the block.
            at = all[..=at]
                .iter()
                .rposition(|column| geometry.row_end(last(column)))
                .unwrap_or(at);
        }
        let few: &[Column] = &all[at..all.len().min(at + 1 + dice.below(3))];
        for column in few {
            let memory = column.block == Block::Bram;
            if memory && (whole || !dice.once_in(4)) {
                continue;
            }
            let range = column.range();
            if whole || dice.once_in(2) {
                region.insert_range(range);
            } else {
                let frames = usize::try_from(column.frames).unwrap_or(1).min(40);
                let from = range.start.0 + number(dice.below(frames));
                let to = (from + 1 + number(dice.below(6))).min(range.end.0);
                region.insert_range(FrameIndex(from)..FrameIndex(to));
            }
        }
    }
    if region.is_empty() {
        region.insert_range(all[0].range());
    }
    region
}

pub(crate) fn last(column: &Column) -> FrameIndex {
    FrameIndex(column.range().end.0 - 1)
}

pub(crate) fn number(of: usize) -> u32 {
    u32::try_from(of).expect("no device has so many")
}

struct Maker<'a> {
    dice: &'a mut Dice,
    device: Device,
    geometry: &'static Geometry,
    parts: Vec<Part>,
}

impl Maker<'_> {
    fn length(&self) -> usize {
        self.device.family().frame_words()
    }

    fn park(&self) -> u32 {
        self.device.family().park()
    }

    fn nop(&mut self, count: usize) {
        self.parts.push(Part::nop(count));
    }

    fn put(&mut self, register: u32, word: u32) {
        self.parts.push(Part::write(register, word));
    }

    fn control(&mut self, register: u32, mask: u32, value: u32) {
        self.put(MASK, mask);
        self.put(register, value);
    }

    fn command(&mut self, command: u32) {
        self.parts.push(Part::command(command));
    }

    fn sync(&mut self, padding: usize) {
        let mut words = vec![u32::MAX; padding];
        words.extend([0xbb, 0x1122_0044, u32::MAX, u32::MAX]);
        self.parts.push(Part::Raw(words));
        self.parts.push(Part::Raw(vec![SYNC]));
    }

    fn begin(&mut self) {
        self.command(RCRC);
        self.nop(2);
        self.put(IDCODE, self.device.idcode());
    }

    fn end(&mut self) {
        self.put(FAR, self.park());
        self.put(CRC, 0);
        self.command(DESYNC);
        self.nop(16);
    }

    /// Some content; the same few again and again, so that there is something
    /// to compress.
    fn frame(&mut self) -> Vec<u32> {
        match self.dice.below(6) {
            0 => vec![0; self.length()],
            // Data is data, whatever it looks like.
            1 => vec![SYNC; self.length()],
            kind => (0..number(self.length()))
                .map(|at| at * number(kind))
                .collect(),
        }
    }

    /// The writes that a set takes: cut where the block type changes, and here
    /// and there at the end of a column.
    fn blocks(&mut self, set: &FrameSet) -> Vec<Range<FrameIndex>> {
        let mut blocks: Vec<Range<FrameIndex>> = Vec::new();
        for range in set.ranges() {
            let mut from = range.start;
            while from < range.end {
                let column = self.geometry.column_of(from).expect("a frame of a region");
                let end = column.range().end.min(range.end);
                let row = self.geometry.row_of(from);
                let joins = blocks.last().is_some_and(|block| {
                    let before = FrameIndex(block.end.0 - 1);
                    let row_before = self.geometry.row_of(before);
                    block.end == from && row_before.map(|row| row.block) == row.map(|row| row.block)
                });
                if joins && !self.dice.once_in(4) {
                    blocks.last_mut().expect("it joins one").end = end;
                } else {
                    blocks.push(from..end);
                }
                from = end;
            }
        }
        blocks
    }

    fn far(&self, frame: FrameIndex) -> u32 {
        self.geometry
            .address(frame)
            .expect("a frame of a region")
            .raw()
    }

    fn write(&mut self, range: &Range<FrameIndex>, far_first: bool) {
        let mut data = Vec::new();
        for frame in (range.start.0..range.end.0).map(FrameIndex) {
            data.extend(self.frame());
            let ends = frame.0 + 1 == range.end.0;
            let pads = match (self.geometry.row_end(frame), ends) {
                (true, _) => 2,
                (false, true) => 1,
                (false, false) => 0,
            };
            data.extend(vec![0; pads * self.length()]);
        }
        self.data(self.far(range.start), data, far_first);
    }

    fn data(&mut self, far: u32, words: Vec<u32>, far_first: bool) {
        if far_first {
            self.put(FAR, far);
            self.command(WCFG);
        } else {
            self.command(WCFG);
            self.nop(1);
            self.put(FAR, far);
        }
        self.nop(1);
        let register = FDRI;
        self.parts.push(Part::Write { register, words });
    }

    /// One frame to many addresses.
    fn copies(&mut self, frame: Vec<u32>, addresses: &[u32]) {
        let Some((first, others)) = addresses.split_first() else {
            return;
        };
        self.data(*first, frame, false);
        self.command(MFW);
        self.nop(12);
        let register = MFWR;
        let words = vec![0; 8];
        self.parts.push(Part::Write { register, words });
        for far in others {
            self.put(FAR, *far);
            let words = vec![0; 4];
            self.parts.push(Part::Write { register, words });
        }
    }

    fn compressed(&mut self, set: &FrameSet) {
        // Some addresses get one content, each other its own.
        let mut alike = Vec::new();
        let mut others = FrameSet::new();
        for frame in set.iter() {
            if self.dice.once_in(3) {
                alike.push(self.far(frame));
            } else {
                others.insert(frame);
            }
        }
        let frame = self.frame();
        self.copies(frame, &alike);
        for block in self.blocks(&others) {
            self.write(&block, false);
        }
    }

    fn masks(&mut self, region: &FrameSet, compressed: bool) {
        let masks = self.geometry.clb_mask().expect("7-series has masks");
        let mut kept = vec![0; self.length()];
        kept[KEPT.0] = KEPT.1;
        let open = |column: &Column| {
            region.contains_range(&column.range()) || always_open(self.device, column)
        };
        if !compressed {
            let mut data = Vec::new();
            for (at, column) in masks.columns().iter().enumerate() {
                data.extend(if open(column) {
                    vec![0; kept.len()]
                } else {
                    kept.clone()
                });
                if masks.row_end(at) {
                    data.extend(vec![0; 2 * kept.len()]);
                }
            }
            self.data(0x0100_0000, data, false);
            return;
        }
        let (mut opened, mut closed) = (Vec::new(), Vec::new());
        for (at, column) in masks.columns().iter().enumerate() {
            let far = masks.address(at).expect("one of its own").raw();
            if open(column) {
                opened.push(far);
            } else {
                closed.push(far);
            }
        }
        self.copies(kept.clone(), &closed);
        self.copies(vec![0; kept.len()], &opened);
    }

    fn series7(&mut self, region: &FrameSet, shape: Shape) {
        let reset = matches!(shape, Shape::Reset | Shape::ResetCompressed);
        let compressed = matches!(shape, Shape::PlainCompressed | Shape::ResetCompressed);
        self.sync(8);
        self.nop(1);
        self.begin();
        if reset {
            self.masks(region, compressed);
            self.put(CRC, 0);
            self.command(SHUTDOWN);
            self.nop(1);
            self.put(CRC, 0);
            self.nop(4);
        }
        self.command(0);
        if reset {
            self.control(CTL0, 0x100, 0x100);
        }
        self.control(CTL0, 0x400, 0x400);
        if compressed {
            self.control(CTL1, 0x1000, 0x1000);
        }
        for _ in 0..if reset { 2 } else { 1 } {
            if compressed {
                self.compressed(region);
            } else {
                for block in self.blocks(region) {
                    self.write(&block, false);
                }
            }
        }
        if reset {
            self.command(GRESTORE);
            self.nop(1);
        }
        if compressed {
            if !reset {
                self.command(0);
            }
            self.control(CTL1, 0x1000, 0);
        }
        if reset {
            self.control(CTL0, 0x100, 0);
            self.command(5);
            self.nop(1);
        } else {
            self.command(0);
        }
        self.end();
    }

    /// The frames of a region that mask flip-flops: minor 13 of a column of logic.
    fn marked(&self, region: &FrameSet) -> Vec<FrameIndex> {
        let columns = self.geometry.columns().iter();
        columns
            .filter(|column| column.block == Block::Logic && column.frames > 13)
            .map(|column| FrameIndex(column.first.0 + 13))
            .filter(|mark| region.contains(*mark))
            .collect()
    }

    fn marks(&mut self, marked: &[FrameIndex]) {
        self.sync(16);
        self.nop(132);
        self.begin();
        self.command(0);
        self.control(CTL0, 0x500, 0x400);
        self.control(CTL1, 0x2_0000, 0x2_0000);
        for mark in marked {
            self.write(&(*mark..FrameIndex(mark.0 + 1)), true);
        }
        self.control(CTL1, 0x2_0000, 0);
        self.end();
    }

    fn stop(&mut self) {
        self.begin();
        self.put(COR0, 0x3800_3fe5);
        self.command(SHUTDOWN);
        self.nop(1);
        self.put(CRC, 0);
        self.nop(20);
    }

    fn ultrascale_plus(&mut self, region: &FrameSet, shape: Shape) {
        let more = shape == Shape::FourAndMore;
        // Where there is no flip-flop there is no mask to lift.
        let marked = self.marked(region);
        if !marked.is_empty() {
            self.marks(&marked);
        }

        self.sync(16);
        self.nop(132);
        self.stop();
        self.command(AGHIGH);
        self.nop(100);
        if more {
            self.command(0);
            self.control(CTL0, 0x500, 0x400);
            self.control(CTL1, 0x2_0000, 0);
            let first = region.ranges()[0].start;
            self.write(&(first..FrameIndex(first.0 + 1)), true);
        }
        self.end();

        self.sync(16);
        if more && !marked.is_empty() {
            self.command(6);
        }
        self.nop(132);
        self.stop();
        self.command(0);
        self.control(CTL0, 0x500, 0x500);
        self.control(CTL1, 0x2_0000, 0);
        for block in self.blocks(region) {
            self.write(&block, true);
        }
        self.command(GRESTORE);
        self.nop(1);
        self.control(CTL0, 0x100, 0);
        self.command(3);
        self.nop(20);
        self.command(5);
        self.nop(1);
        self.end();

        if !marked.is_empty() {
            self.marks(&marked);
        }
    }
}

/// Columns whose mask is 0 in every genuine file of the device.
fn always_open(device: Device, column: &Column) -> bool {
    column.row == 0
        && match device.name() {
            "xc7a35t" | "xc7a50t" | "xc7a100t" => (12..18).contains(&column.column),
            "xc7z020" => column.column < 18 || (44..50).contains(&column.column),
            _ => false,
        }
}
