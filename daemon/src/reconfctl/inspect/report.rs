//! What is found in a file, as one object: `--json` prints it as it stands, and
//! docs/bitstream-safety.md tells its keys.

use std::collections::BTreeMap;

use bitstream::device::{Device, RegionFrames};
use bitstream::fence::{Fenced, Survey, SurveyedStream, check, check_within, survey};
use bitstream::xilinx::XilinxStream;
use bitstream::{Container, ContainerError, Xclbin};
use serde::Serialize;

use super::super::exit::Failure;
use super::checks::{CheckView, checks};
use super::file::{Kind, kind};
use super::region::Region;

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// It may be loaded, as far as the file itself can tell.
    Accepted,
    /// It must not be.
    Refused,
}

/// Everything about one file.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) file: String,
    pub(super) bytes: usize,
    pub(super) sha256: String,
    pub(super) format: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) header: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) word_order: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) device: Option<DeviceView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) streams: Vec<StreamView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) sections: Vec<SectionView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) writes: Option<Writes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) region: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) checks: Vec<CheckView>,
    pub(super) verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refusal: Option<RefusalView>,
    #[serde(skip)]
    fenced: Option<Fenced>,
}

#[derive(Debug, Serialize)]
pub(super) struct DeviceView {
    pub(super) name: String,
    pub(super) family: String,
    pub(super) idcode: String,
    /// Its columns are known, so that frames can be named and counted.
    pub(super) geometry: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct StreamView {
    pub(super) offset: usize,
    pub(super) idcode: Option<String>,
    pub(super) registers: BTreeMap<String, u64>,
    pub(super) commands: BTreeMap<String, u64>,
    pub(super) blocks: usize,
    pub(super) copies: u64,
    pub(super) nops: u64,
    pub(super) crc_matching: u64,
    pub(super) crc_wrong: u64,
    pub(super) ended: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct SectionView {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) offset: u64,
    pub(super) size: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Writes {
    /// Frames, or blocks where the device's columns are not known.
    pub(super) count: u64,
    /// In the device's terms, as a shell file has them.
    pub(super) lines: Vec<String>,
    pub(super) restores_flip_flops: bool,
    /// Columns besides whose flip-flops it restores as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) restores_besides: Vec<String>,
    pub(super) compressed: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct RefusalView {
    pub(super) code: String,
    pub(super) offset: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) frame: Option<String>,
    pub(super) sentence: String,
    pub(super) remedy: String,
}

impl Report {
    /// Looks at a file.
    ///
    /// # Errors
    /// It is nothing that is known.
    pub(super) fn of(file: &str, bytes: &[u8], region: Option<&Region>) -> Result<Self, Failure> {
        let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
        let mut report = Self {
            file: file.to_owned(),
            bytes: bytes.len(),
            sha256: format!("sha256:{}", crate::hex::encode(digest.as_ref())),
            format: "unknown",
            header: BTreeMap::new(),
            word_order: None,
            device: None,
            streams: Vec::new(),
            sections: Vec::new(),
            writes: None,
            region: region.map(|region| region.label.clone()),
            checks: Vec::new(),
            verdict: Verdict::Accepted,
            refusal: None,
            fenced: None,
        };
        match kind(bytes)? {
            Kind::Xilinx(stream) => report.words(&stream, region),
            Kind::Opaque(container) => report.opaque(&container, region),
            Kind::Xclbin(xclbin, error) => report.xclbin(&xclbin, &error),
            Kind::Refused(error) => report.refuse(&error),
        }
        Ok(report)
    }

    /// The device of an accepted file.
    pub(super) fn fenced_device(&self) -> Option<Device> {
        self.fenced.as_ref().map(Fenced::device)
    }

    /// What it writes, as far as that is known.
    pub(super) fn written(&self) -> Option<&RegionFrames> {
        self.fenced.as_ref().map(Fenced::frames)
    }

    fn words(&mut self, stream: &XilinxStream<'_>, region: Option<&Region>) {
        self.format = if stream.header.is_some() {
            "bit"
        } else {
            "bin"
        };
        self.word_order = Some(stream.order().to_string());
        if let Some(header) = &stream.header {
            let mut add = |key: &str, value: Option<&str>| {
                self.header
                    .extend(value.map(|value| (key.to_owned(), value.to_owned())));
            };
            add("design", header.name());
            add("part", header.part);
            add("date", header.date);
            add("time", header.time);
            for (key, value) in header.options() {
                add(key, Some(value));
            }
        }
        let surveyed = survey(stream);
        self.device = device(&surveyed);
        self.streams = surveyed.streams.iter().map(StreamView::of).collect();
        // What it writes is told also where the region does not have it.
        let alone = check(stream, None, None);
        let judged = match region {
            None => alone.clone(),
            Some(region) => check_within(stream, Some(region.device), Some(region.own.bounds())),
        };
        if let Ok(fenced) = alone {
            self.writes = Some(Writes::of(&fenced));
            self.fenced = Some(fenced);
        }
        let refusal = judged.err();
        let alone = self.fenced.is_some();
        self.checks = checks(refusal.as_ref(), alone, region.is_some());
        if let Some(refusal) = refusal {
            self.verdict = Verdict::Refused;
            self.refusal = Some(RefusalView {
                code: refusal.code().to_owned(),
                offset: refusal.offset(),
                frame: refusal.frame().map(|frame| frame.to_string()),
                sentence: refusal.to_string(),
                remedy: refusal.remedy().to_owned(),
            });
        }
    }

    fn opaque(&mut self, container: &Container<'_>, region: Option<&Region>) {
        if let Container::Gbs(gbs) = container {
            self.format = "gbs";
            let mut add = |key: &str, value: String| self.header.insert(key.to_owned(), value);
            add("name", gbs.name.clone());
            add("interface_id", gbs.interface_id.to_string());
            add("function_id", gbs.accelerator.to_string());
            add("payload_offset", gbs.payload_offset.to_string());
        }
        if region.is_some() {
            self.verdict = Verdict::Refused;
            self.refusal = Some(RefusalView {
                code: "frames-not-readable".to_owned(),
                offset: 0,
                frame: None,
                sentence: "the frames of such a container cannot be checked".to_owned(),
                remedy: "Hold a .bit or .bin file against a region.".to_owned(),
            });
        }
    }

    fn xclbin(&mut self, xclbin: &Xclbin<'_>, error: &ContainerError) {
        self.format = "xclbin";
        let platform = xclbin.platform.map(str::to_owned);
        self.header
            .extend(platform.map(|platform| ("platform".to_owned(), platform)));
        let section = |section: &bitstream::XclbinSection<'_>| SectionView {
            kind: section
                .kind_name()
                .map_or_else(|| format!("kind {}", section.kind), str::to_owned),
            name: section.name.unwrap_or_default().to_owned(),
            offset: section.offset,
            size: section.size,
        };
        self.sections = xclbin.sections.iter().map(section).collect();
        self.refuse(error);
    }

    fn refuse(&mut self, error: &ContainerError) {
        self.verdict = Verdict::Refused;
        self.refusal = Some(RefusalView {
            code: error.code().to_owned(),
            offset: error.offset(),
            frame: None,
            sentence: error.to_string(),
            remedy: error.remedy().to_owned(),
        });
    }
}

fn device(survey: &Survey) -> Option<DeviceView> {
    let idcode = survey.idcodes().next()?;
    let known = survey.device();
    Some(DeviceView {
        name: known.map_or_else(|| "unknown".to_owned(), |device| device.name().to_owned()),
        family: known.map_or_else(String::new, |device| device.family().to_string()),
        idcode: format!("{idcode:08x}"),
        geometry: known.is_some_and(|device| device.geometry().is_some()),
    })
}

impl StreamView {
    fn of(stream: &SurveyedStream) -> Self {
        fn names<K: ToString>(counts: &BTreeMap<K, u64>) -> BTreeMap<String, u64> {
            let named = counts.iter().map(|(key, count)| (key.to_string(), *count));
            named.collect()
        }
        Self {
            offset: stream.offset,
            idcode: stream.idcodes[0].map(|idcode| format!("{idcode:08x}")),
            registers: names(&stream.registers),
            commands: names(&stream.commands),
            blocks: stream.blocks.len(),
            copies: stream.copies,
            nops: stream.nops,
            crc_matching: stream.crc_matching,
            crc_wrong: stream.crc_wrong,
            ended: stream.ended,
        }
    }
}

impl Writes {
    fn of(fenced: &Fenced) -> Self {
        let count = match fenced.frames() {
            RegionFrames::Set(set) => set.len(),
            RegionFrames::Blocks(list) => u64::try_from(list.blocks().len()).unwrap_or(u64::MAX),
        };
        Self {
            count,
            lines: fenced.frames().to_lines(fenced.device()),
            restores_flip_flops: fenced.restores_flip_flops(),
            restores_besides: RegionFrames::Set(fenced.restores_besides().clone())
                .to_lines(fenced.device()),
            compressed: fenced.is_compressed(),
        }
    }
}
