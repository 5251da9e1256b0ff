//! Loads an image and waits for it: `cargo run --example load -- acme/aes:1.0`.

use std::process::ExitCode;

use reconf_client::blocking::Client;
use reconf_client::{Config, ImageRef, Load, Result, Status, job_key};

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        return ExitCode::from(2);
    };
    match load(name) {
        Ok(Status::Ok) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            tell(&format!("{error}\n{}", error.remedy()));
            ExitCode::FAILURE
        }
    }
}

fn load(name: String) -> Result<Status> {
    let client = Client::connect(Config::default())?;
    let key = job_key()?;
    // Whatever happens to the connection, the job is found again by this key.
    client.load(Load {
        key,
        slot: None,
        image: ImageRef::Name(name),
        if_not_loaded: true,
        force: false,
    })?;
    let job = client.wait(key, |job| {
        tell(&format!(
            "{:?}: {} of {} bytes",
            job.stage, job.done, job.total
        ));
    })?;
    Ok(job.result.map_or(Status::Failed, |result| result.status))
}

#[expect(clippy::print_stderr, reason = "an example for a terminal")]
fn tell(text: &str) {
    eprintln!("{text}");
}
