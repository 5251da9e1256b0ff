//! See `reconf-simcard --help`; all of it is in the library.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    reconf_simcard::cli::main()
}
