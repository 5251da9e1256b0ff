//! What runs in the lab's host VM: see `reconf_tests::lab::host`.

#![forbid(unsafe_code)]

fn main() -> anyhow::Result<()> {
    reconf_tests::lab::host::inside()
}
