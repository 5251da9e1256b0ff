//! The benchmark; see [`reconf_tests::bench`].

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    reconf_tests::bench::main()
}
