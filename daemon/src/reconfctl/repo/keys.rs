//! Signing keys and roots, as files.

use std::path::{Path, PathBuf};

use policy::ids::Digest;
use policy::publish::{PublishError, SigningKey};
use policy::trust::{PublicKey, SMALL_MAX};
use serde::Serialize;
use zeroize::Zeroizing;

use super::super::exit::{Exit, Failure};
use super::super::place::unreadable;
use crate::files::{Readers, create_atomic, create_directories, read_bounded, read_secret};
use crate::hex;

const SECRET_FILE: &str = "key.pk8";
const PUBLIC_FILE: &str = "key.pub";
/// The longest key file, in bytes: an ed25519 key has 85 of them.
const KEY_MAX: u64 = 4096;

/// A key that was made.
#[derive(Debug, Serialize)]
pub(super) struct KeyMade {
    pub(super) secret: PathBuf,
    #[serde(rename = "public-file")]
    pub(super) public_file: PathBuf,
    pub(super) public: String,
}

/// Makes a key in `directory`. One that is there already is never overwritten.
pub(super) fn generate(directory: &Path) -> Result<KeyMade, Failure> {
    let key = SigningKey::generate().map_err(|error| refused(&error))?;
    let made = KeyMade {
        secret: directory.join(SECRET_FILE),
        public_file: directory.join(PUBLIC_FILE),
        public: hex::encode(&key.public_key().0),
    };
    let io = |path: &Path| {
        let what = path.display().to_string();
        move |error: std::io::Error| Failure::io(&what, &error)
    };
    create_directories(directory).map_err(io(directory))?;
    create_atomic(&made.secret, key.to_pkcs8(), Readers::Owner).map_err(io(&made.secret))?;
    let public = format!("{}\n", made.public);
    create_atomic(&made.public_file, public.as_bytes(), Readers::All)
        .map_err(io(&made.public_file))?;
    Ok(made)
}

/// Reads a secret key, if nobody else can.
pub(super) fn read_signing_key(path: &Path) -> Result<SigningKey, Failure> {
    let bytes = Zeroizing::new(read_secret(path, KEY_MAX).map_err(|error| unreadable(&error))?);
    SigningKey::from_pkcs8(&bytes).map_err(|error| {
        let error = format!("{}: {error}", path.display());
        Failure::files(error, "name the key.pk8 that `reconfctl repo keygen` made")
    })
}

/// Makes the root file out of public keys; gives its digest.
pub(super) fn root(keys: &[String], threshold: u32, out: &Path) -> Result<Digest, Failure> {
    let keys = keys
        .iter()
        .map(|key| public_key(key))
        .collect::<Result<Vec<_>, _>>()?;
    let bytes = policy::publish::root(1, &keys, threshold).map_err(|error| refused(&error))?;
    create_atomic(out, &bytes, Readers::All)
        .map_err(|error| Failure::io(&out.display().to_string(), &error))?;
    Ok(Digest::of(&bytes))
}

/// A `.pub` file, or the 64 digits themselves.
fn public_key(text: &str) -> Result<PublicKey, Failure> {
    if let Some(key) = hex::decode(text) {
        return Ok(PublicKey(key));
    }
    let max = u64::try_from(SMALL_MAX).unwrap_or(u64::MAX);
    let bytes = read_bounded(Path::new(text), max).map_err(|error| unreadable(&error))?;
    std::str::from_utf8(&bytes)
        .ok()
        .and_then(|line| hex::decode(line.trim_end()))
        .map(PublicKey)
        .ok_or_else(|| {
            Failure::files(
                format!("{text}: not a public key"),
                "name the key.pub that `reconfctl repo keygen` made, or write its 64 digits",
            )
        })
}

pub(super) fn refused(error: &PublishError) -> Failure {
    let remedy = match error {
        PublishError::NoRandomness => "try again",
        PublishError::BadKey => "name the key.pk8 that `reconfctl repo keygen` made",
        PublishError::Refused(trust) => trust.remedy(),
    };
    Failure::new(Exit::Files, error.to_string(), remedy)
}
