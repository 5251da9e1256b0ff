//! The fence against a judge that shares nothing with it.
//!
//! Legal streams of many regions must be accepted; whatever else the fence
//! accepts, a model of the device written in Python from the documents alone
//! must find harmless: nothing written outside the region, nothing forbidden
//! done, no flip-flop reset that is not the region's, every CRC right.

#![allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what makes a test panic is a test that failed"
)]

mod genuine;
mod judge;
mod legal;
mod mutate;
mod oracle;
mod random;
mod stream;

/// The model holds against numbers that others measured.
#[test]
fn the_oracle_holds_its_own_tests() {
    let output = oracle::python()
        .args(["-m", "unittest", "-q"])
        .output()
        .expect("python3 must be here: the oracle is written in it");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
