//! A repository behind HTTP or HTTPS.
//!
//! Knows URLs, deadlines and certificates. Every wait ends: to connect, for the
//! answer, for the next bytes, and a transfer slower than the floor is given up.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::tls::{PemItem, RootCerts, TlsConfig};

use super::source::{Fetched, Place, Source, SourceError};
use crate::files;

/// To connect, name look-up included.
const CONNECT: Duration = Duration::from_secs(10);
/// For the head of the answer, and between any two pieces of it.
const SILENCE: Duration = Duration::from_secs(15);
/// Slowest transfer that is borne, in bytes a second, after [`SILENCE`].
const FLOOR: u64 = 4096;
/// Redirections that are followed.
const REDIRECTS: u32 = 3;
/// Certificates of the authorities that Debian's `ca-certificates` trusts.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Longest file of certificates, in bytes.
const AUTHORITIES_MAX: u64 = 4 * 1024 * 1024;

/// A repository at two base addresses.
#[derive(Debug)]
pub struct Http {
    agent: Agent,
    metadata: String,
    targets: Option<String>,
}

impl Http {
    /// Prepares to ask; nothing is sent. For `https` addresses the host's own
    /// certificate authorities count, and no redirection leads to plain `http`.
    ///
    /// # Errors
    ///
    /// [`SourceError`]: the authorities' file cannot be read.
    pub fn new(metadata: &str, targets: Option<&str>) -> Result<Http, SourceError> {
        let secure = metadata.starts_with("https:")
            && targets.is_none_or(|targets| targets.starts_with("https:"));
        let config = Agent::config_builder()
            .https_only(secure)
            .proxy(None)
            .http_status_as_error(false)
            .max_redirects(REDIRECTS)
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(SILENCE))
            .timeout_per_read(Some(SILENCE))
            .tls_config(
                TlsConfig::builder()
                    .root_certs(authorities(secure)?)
                    .unversioned_rustls_crypto_provider(
                        rustls::crypto::ring::default_provider().into(),
                    )
                    .build(),
            )
            .build();
        let base = |url: &str| format!("{}/", url.trim_end_matches('/'));
        Ok(Http {
            agent: config.new_agent(),
            metadata: base(metadata),
            targets: targets.map(base),
        })
    }
}

fn authorities(secure: bool) -> Result<RootCerts, SourceError> {
    if !secure {
        return Ok(RootCerts::new_with_certs(&[]));
    }
    let pem = files::read_bounded(AUTHORITIES.as_ref(), AUTHORITIES_MAX)?;
    let certificates: Vec<_> = ureq::tls::parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    Ok(RootCerts::new_with_certs(&certificates))
}

impl Source for Http {
    fn open(&self, place: Place<'_>) -> Result<Fetched, SourceError> {
        let (base, name) = match place {
            Place::Metadata(name) => (Some(&self.metadata), name),
            Place::Target(path) => (self.targets.as_ref(), path),
        };
        let url = format!("{}{name}", base.map_or("", String::as_str));
        let failed = |why: String| SourceError::Http {
            url: url.clone(),
            why,
        };
        let answer = self.agent.get(&url).call();
        let answer = answer.map_err(|error| failed(error.to_string()))?;
        match answer.status().as_u16() {
            200 => Ok(Fetched::Here(Box::new(Paced {
                inner: answer.into_body().into_reader(),
                since: Instant::now(),
                got: 0,
            }))),
            // Stores of objects answer 403 for what is not there.
            403 | 404 | 410 => Ok(Fetched::Missing),
            status => Err(failed(format!("the server answered {status}"))),
        }
    }
}

/// Gives up a transfer that crawls.
struct Paced<R> {
    inner: R,
    since: Instant,
    got: u64,
}

impl<R: Read> Read for Paced<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(buffer)?;
        self.got = self
            .got
            .saturating_add(u64::try_from(len).unwrap_or(u64::MAX));
        let seconds = self.since.elapsed().saturating_sub(SILENCE).as_secs();
        if self.got < seconds.saturating_mul(FLOOR) {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("slower than {FLOOR} bytes a second"),
            ));
        }
        Ok(len)
    }
}
