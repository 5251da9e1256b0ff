//! The report for people: from what the file is to what to do about it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::super::show::{Paint, clean};
use super::checks::Went;
use super::report::{Report, StreamView, Verdict, Writes};

pub(super) fn write(report: &Report, paint: Paint, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", paint.bold(&clean(&report.file)))?;
    line(out, "format", &format(report))?;
    line(out, "bytes", &report.bytes.to_string())?;
    line(out, "digest", &report.sha256)?;
    for (key, value) in &report.header {
        line(out, &clean(key), &clean(value))?;
    }
    if let Some(device) = &report.device {
        let columns = if device.geometry {
            ""
        } else {
            "; its columns are not known"
        };
        let idcode = &device.idcode;
        let text = format!(
            "{}, {}, IDCODE {idcode}{columns}",
            device.name, device.family
        );
        line(out, "device", &text)?;
    }
    for (number, stream) in report.streams.iter().enumerate() {
        sub_stream(out, number.saturating_add(1), stream)?;
    }
    for section in &report.sections {
        let text = format!(
            "{} bytes at {} {}",
            section.size,
            section.offset,
            clean(&section.name)
        );
        line(out, &section.kind, &text)?;
    }
    if let Some(written) = &report.writes {
        writes(out, report, written)?;
    }
    if let Some(region) = &report.region {
        line(out, "region", &clean(region))?;
    }
    for check in &report.checks {
        let word = match check.went {
            Went::Passed => paint.good("passed"),
            Went::Failed => paint.bad("failed"),
            Went::NotReached => paint.dim("not reached"),
            Went::NotAsked => paint.dim("not asked: no --region"),
        };
        line(out, check.check, &word)?;
    }
    match (&report.refusal, report.verdict) {
        (Some(refusal), _) => {
            let place = format!("{} at byte {}", refusal.code, refusal.offset);
            writeln!(
                out,
                "\n{}: {place}: {}",
                paint.bad("refused"),
                refusal.sentence
            )?;
            if let Some(frame) = &refusal.frame {
                writeln!(out, "  frame: {frame}")?;
            }
            writeln!(out, "  {}", refusal.remedy)
        }
        (None, Verdict::Accepted) => writeln!(out, "\n{}", paint.good("accepted")),
        (None, Verdict::Refused) => writeln!(out, "\n{}", paint.bad("refused")),
    }
}

fn writes(out: &mut dyn Write, report: &Report, writes: &Writes) -> io::Result<()> {
    let what = match &report.device {
        Some(device) if device.geometry => "frames",
        _ => "blocks",
    };
    let mut text = format!("{} {what}", writes.count);
    if writes.compressed {
        text.push_str(", compressed");
    }
    if writes.restores_flip_flops {
        text.push_str("; restores the region's flip-flops");
    }
    line(out, "writes", &text)?;
    for frames in &writes.lines {
        line(out, "", frames)?;
    }
    for columns in &writes.restores_besides {
        line(out, "restores", &format!("besides: {columns}"))?;
    }
    Ok(())
}

fn format(report: &Report) -> String {
    match &report.word_order {
        Some(order) => format!("{}, {order} words", report.format),
        None => report.format.to_owned(),
    }
}

fn sub_stream(out: &mut dyn Write, number: usize, stream: &StreamView) -> io::Result<()> {
    let StreamView {
        blocks,
        copies,
        crc_matching,
        crc_wrong,
        ..
    } = stream;
    let mut text = format!("at byte {}, {blocks} blocks", stream.offset);
    if *copies > 0 {
        text.push_str(&format!(", {copies} copies"));
    }
    text.push_str(&format!(", checksums {crc_matching} right"));
    if *crc_wrong > 0 {
        text.push_str(&format!(" {crc_wrong} wrong"));
    }
    if !stream.ended {
        text.push_str(", not ended");
    }
    line(out, &format!("sub-stream {number}"), &text)?;
    line(out, "", &counts(&stream.registers))?;
    line(out, "", &counts(&stream.commands))
}

fn counts(counts: &BTreeMap<String, u64>) -> String {
    let texts: Vec<String> = counts
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    texts.join(", ")
}

fn line(out: &mut dyn Write, key: &str, value: &str) -> io::Result<()> {
    writeln!(out, "  {key:<30} {value}")
}
