//! Shell files of devices whose frames are known, and whether a file serves an engine.

use std::path::Path;

use super::*;

const SHELL: &str = include_str!("../../../docs/samples/shell-hwicap.toml");
const DFL: &str = include_str!("../../../docs/samples/shell.toml");

fn shell(text: &str) -> Result<Shell, FileError> {
    Shell::parse(Path::new("/etc/reconf/shells/a.toml"), text.as_bytes())
}

/// The sample with one text in it replaced, once.
fn with(old: &str, new: &str) -> Result<Shell, FileError> {
    let text = SHELL.replacen(old, new, 1);
    assert_ne!(text, SHELL, "{old}");
    shell(&text)
}

/// The line in which the sample first has this text.
fn line_of(text: &str) -> u32 {
    let at = SHELL.lines().position(|line| line.contains(text)).unwrap();
    u32::try_from(at.saturating_add(1)).unwrap()
}

#[test]
fn the_sample_says_where_everything_is() {
    let shell = shell(SHELL).unwrap();
    let device = shell.device.as_ref().unwrap();
    assert_eq!(device.text, "xc7z020");
    assert_eq!(device.line, line_of("device = "));
    assert_eq!(device.column, 10);
    let hwicap = shell.hwicap.unwrap();
    assert_eq!((hwicap.bar, hwicap.offset), (0, 0x1_0000));
    let [left, right] = shell.regions.as_slice() else {
        panic!()
    };
    assert_eq!(left.fence, Fence::Required);
    assert_eq!(left.frames.len(), 2);
    assert_eq!(left.frames[1].text, "bram bottom row 1 column 0");
    assert_eq!(left.frames[1].line, line_of("bram bottom"));
    assert_eq!(left.frames[1].column, 5);
    assert_eq!(
        (left.decoupler, left.identity),
        (Some(0x2_0000), Some(0x3_0000))
    );
    assert_eq!(right.decoupler, Some(0x2_1000));
    let blank = left.blank.as_ref().unwrap();
    assert_eq!(blank.path, Path::new("/etc/reconf/shells/blank-left.bit"));
    assert_eq!(blank.function_id.unwrap().0.as_u128(), 1);
    shell.serves(Engine::Hwicap).unwrap();
    let refused = left.frames[0].refused(&shell.file, Problem::Value("no such row".to_owned()));
    assert_eq!(
        refused.to_string(),
        format!(
            "/etc/reconf/shells/a.toml:{}:5: no such row. Correct the value.",
            line_of("logic bottom row 1 columns 2-9")
        )
    );
}

#[test]
fn cfg_01_each_wrong_value_is_refused_at_its_place() {
    for (old, new, code, at) in [
        ("bar = 0", "bar = 6", "bad-value", "bar = "),
        ("bar = 0", "bar = \"0\"", "bad-value", "bar = "),
        (
            "offset = 0x10000",
            "offset = 0x10002",
            "bad-value",
            "offset = ",
        ),
        ("offset = 0x10000", "offset = -4", "bad-value", "offset = "),
        (
            "decoupler = 0x20000",
            "decoupler = 0x20001",
            "bad-value",
            "decoupler = ",
        ),
        (
            "identity = 0x30000",
            "identity = 0x20000",
            "conflict",
            "identity = ",
        ),
        (
            "decoupler = 0x21000",
            "decoupler = 0x20000",
            "conflict",
            "decoupler = 0x21",
        ),
        ("bar = 0", "bar = 0\nbars = 1", "unknown-key", "offset = "),
        (
            "frames = [\"logic bottom row 1 columns 48-51\"]",
            "frames = []",
            "bad-value",
            "columns 48",
        ),
        (
            "device = \"xc7z020\"\n",
            "restores = [\"logic top row 1 column 3\"]\n",
            "missing-key",
            "device = ",
        ),
        (
            "device = \"xc7z020\"\n",
            "restores = []\ndevice = \"xc7z020\"\n",
            "bad-value",
            "device = ",
        ),
        (
            "frames = [\"logic bottom row 1 columns 48-51\"]",
            "frames = \"x\"",
            "bad-value",
            "columns 48",
        ),
    ] {
        let error = with(old, new).unwrap_err();
        assert_eq!(
            (error.code(), error.line),
            (code, line_of(at)),
            "{new}: {error}"
        );
    }
}

#[test]
fn inv5_a_fence_without_frames_or_a_device_refuses_the_file() {
    let frames = "frames = [\"logic bottom row 1 columns 48-51\"]\n";
    let error = with(frames, "").unwrap_err();
    assert_eq!(error.problem, Problem::MissingKey("frames".to_owned()));
    assert_eq!(error.line, line_of("\"right\""));
    let error = with("device = \"xc7z020\"\n", "").unwrap_err();
    assert_eq!(error.problem, Problem::MissingKey("device".to_owned()));
    // Frames mean nothing without a device, fence or no fence.
    let unfenced = SHELL
        .replace("fence = \"required\"\n", "")
        .replace("device = \"xc7z020\"\n", "");
    assert_eq!(shell(&unfenced).unwrap_err().code(), "missing-key");
}

#[test]
fn a_file_serves_the_engine_whose_keys_it_has() {
    let refused = |shell: Result<Shell, FileError>, engine| {
        let error = shell.unwrap().serves(engine).unwrap_err();
        (error.code(), error.line)
    };
    let hwicap = line_of("bar = ");
    assert_eq!(refused(shell(SHELL), Engine::Dfl), ("conflict", hwicap));
    assert_eq!(refused(shell(DFL), Engine::Hwicap), ("missing-key", 1));
    shell(DFL).unwrap().serves(Engine::Dfl).unwrap();
    let without = with("decoupler = 0x21000\n", "");
    let right = line_of("\"right\"");
    assert_eq!(refused(without, Engine::Hwicap), ("missing-key", right));
    // An identity is optional: not every static design has one.
    with("identity = 0x31000\n", "")
        .unwrap()
        .serves(Engine::Hwicap)
        .unwrap();
    // Registers have their place in the BAR of [hwicap].
    let table = "[hwicap]\nbar = 0\noffset = 0x10000\n";
    assert_eq!(with(table, "").unwrap_err().code(), "conflict");
}

#[test]
fn each_engine_takes_its_own_containers() {
    use crate::trust::Format;
    for (engine, gbs, bit, bin) in [
        (Engine::Dfl, true, false, false),
        (Engine::Hwicap, false, true, true),
    ] {
        assert_eq!(engine.takes(Format::Gbs), gbs);
        assert_eq!(engine.takes(Format::Bit), bit);
        assert_eq!(engine.takes(Format::Bin), bin);
    }
}
