//! The demo; see [`reconf_tests::demo`].

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    reconf_tests::demo::main()
}
