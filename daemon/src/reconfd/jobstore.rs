//! Where jobs outlive the process: sled, its only user, behind a trait.
//!
//! Knows records as JSON with a checksum of their own. Must not be needed for
//! safety: a store that is lost or damaged is moved aside, and jobs are
//! forgotten (DB-01, DB-02).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::audit::SyncCost;
use super::identity::unix_now;
use super::jobs::JobRecord;
use crate::hex;

/// The store failed; the job was not made durable.
#[derive(Debug, Error)]
#[error("the job store: {0}")]
pub struct StoreError(pub(super) String);

/// Keeps job records over a restart.
pub trait JobStore: Send + Sync {
    /// Every record whose checksum holds.
    fn load(&self) -> Vec<JobRecord>;

    /// Puts a record in, takes others out, and waits until both are durable.
    ///
    /// # Errors
    /// [`StoreError`]: the record may or may not be there after a restart.
    fn put(
        &self,
        record: &JobRecord,
        gone: &[JobRecord],
        cost: &mut SyncCost,
    ) -> Result<(), StoreError>;

    /// Takes records out; durable with the next [`JobStore::put`].
    ///
    /// # Errors
    /// [`StoreError`].
    fn remove(&self, gone: &[JobRecord]) -> Result<(), StoreError>;
}

/// A value in the store.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Value {
    check: String,
    job: JobRecord,
}

/// sled 0.34.
#[derive(Debug)]
pub struct SledStore {
    db: sled::Db,
}

/// A store, and where the one before it lies if that was damaged.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: SledStore,
    /// The damaged one, moved aside.
    pub aside: Option<PathBuf>,
}

impl SledStore {
    /// Opens the store in `path`. One that is damaged, or panics in the attempt, is moved aside
    /// and a new one made.
    ///
    /// # Errors
    /// The system refuses (no room, no permission, another process has it), which is no damage:
    /// everything stays where it is. Or not even a new one can be made.
    pub fn open(path: &Path) -> Result<Opened, StoreError> {
        match Self::try_open(path) {
            Ok(store) => Ok(Opened { store, aside: None }),
            Err(NotOpened::Refused(error)) => Err(StoreError(error)),
            Err(NotOpened::Damaged(first)) => {
                let aside = free_name(path);
                std::fs::rename(path, &aside).map_err(|error| {
                    StoreError(format!("{first}; and it cannot be moved aside: {error}"))
                })?;
                let store = Self::try_open(path).map_err(
                    |(NotOpened::Refused(error) | NotOpened::Damaged(error))| StoreError(error),
                )?;
                Ok(Opened {
                    store,
                    aside: Some(aside),
                })
            }
        }
    }

    fn try_open(path: &Path) -> Result<Self, NotOpened> {
        // sled panics on some damage (its issues 1189, 1527); nothing here is shared with what unwinds.
        catch_unwind(AssertUnwindSafe(|| {
            let db = sled::Config::new()
                .path(path)
                .cache_capacity(1024 * 1024)
                .flush_every_ms(None)
                .mode(sled::Mode::LowSpace)
                .open()
                .map_err(NotOpened::of)?;
            // A look at every value now, so that what panics does it here.
            for entry in db.iter() {
                entry.map_err(NotOpened::of)?;
            }
            Ok(Self { db })
        }))
        .unwrap_or_else(|_panic| Err(NotOpened::Damaged("opening it panicked: damaged".into())))
    }
}

/// Where a damaged store is put: told apart by the time, and by a number within one second.
fn free_name(path: &Path) -> PathBuf {
    let now = unix_now();
    let mut aside = path.with_extension(format!("damaged-{now}"));
    let mut number = 1u32;
    while aside.symlink_metadata().is_ok() {
        number = number.saturating_add(1);
        aside = path.with_extension(format!("damaged-{now}-{number}"));
    }
    aside
}

/// Why a store does not open.
#[derive(Debug)]
enum NotOpened {
    /// The system says no; the store may be whole.
    Refused(String),
    /// What is in it is not what was put in.
    Damaged(String),
}

impl NotOpened {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "it stands where an error is mapped"
    )]
    fn of(error: sled::Error) -> Self {
        use std::io::ErrorKind;
        let story = error.to_string();
        match &error {
            // sled puts a lock that another has into words of its own.
            sled::Error::Io(io)
                if story.contains("acquire lock")
                    || matches!(
                        io.kind(),
                        ErrorKind::PermissionDenied
                            | ErrorKind::StorageFull
                            | ErrorKind::QuotaExceeded
                            | ErrorKind::ReadOnlyFilesystem
                            | ErrorKind::WouldBlock
                    ) =>
            {
                Self::Refused(story)
            }
            _ => Self::Damaged(story),
        }
    }
}

fn key(record: &JobRecord) -> Vec<u8> {
    format!(
        "{}/{}/{}",
        record.vm,
        record.generation.as_str(),
        record.key
    )
    .into_bytes()
}

fn checksum(record: &JobRecord) -> Result<String, StoreError> {
    let bytes = serde_json::to_vec(record).map_err(|error| StoreError(error.to_string()))?;
    Ok(hex::encode(
        digest(&SHA256, &bytes)
            .as_ref()
            .get(..8)
            .unwrap_or_default(),
    ))
}

impl JobStore for SledStore {
    fn load(&self) -> Vec<JobRecord> {
        let mut records = Vec::new();
        for entry in self.db.iter() {
            let Ok((_key, bytes)) = entry else { continue };
            let Ok(value) = serde_json::from_slice::<Value>(&bytes) else {
                continue;
            };
            if checksum(&value.job).is_ok_and(|check| check == value.check) {
                records.push(value.job);
            }
        }
        records
    }

    fn put(
        &self,
        record: &JobRecord,
        gone: &[JobRecord],
        cost: &mut SyncCost,
    ) -> Result<(), StoreError> {
        let value = Value {
            check: checksum(record)?,
            job: record.clone(),
        };
        let bytes = serde_json::to_vec(&value).map_err(|error| StoreError(error.to_string()))?;
        let mut batch = sled::Batch::default();
        batch.insert(key(record), bytes);
        for old in gone {
            batch.remove(key(old));
        }
        let start = Instant::now();
        self.db
            .apply_batch(batch)
            .map_err(|error| StoreError(error.to_string()))?;
        self.db
            .flush()
            .map_err(|error| StoreError(error.to_string()))?;
        cost.add_since(start);
        Ok(())
    }

    fn remove(&self, gone: &[JobRecord]) -> Result<(), StoreError> {
        let mut batch = sled::Batch::default();
        for old in gone {
            batch.remove(key(old));
        }
        self.db
            .apply_batch(batch)
            .map_err(|error| StoreError(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconfd::identity::{BootId, Generation};
    use uuid::Uuid;

    fn record(key: u8) -> JobRecord {
        JobRecord {
            key: hex::encode(&[key; 16]),
            id: hex::encode(&[key; 16]),
            vm: Uuid::nil(),
            generation: Generation::new(&BootId::current().unwrap()),
            order: u64::from(key),
            kind: "load".into(),
            slot: 0,
            body: String::new(),
            image: Some("acme/adder:1.0".into()),
            image_digest: None,
            bitstream: None,
            function: None,
            total: 1,
            asked: 0,
            result: None,
        }
    }

    type Damage = Box<dyn Fn(&mut Vec<u8>)>;

    fn files(dir: &Path) -> Vec<PathBuf> {
        std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .collect()
    }

    #[test]
    fn a_job_outlives_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs");
        let mut cost = SyncCost::default();
        let store = SledStore::open(&path).unwrap().store;
        let (one, two) = (record(1), record(2));
        store.put(&one, &[], &mut cost).unwrap();
        store
            .put(&two, std::slice::from_ref(&one), &mut cost)
            .unwrap();
        drop(store);
        assert_eq!(SledStore::open(&path).unwrap().store.load(), vec![two]);
        assert_eq!(cost.count, 2);
    }

    #[test]
    fn a_store_that_another_has_is_not_moved_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs");
        let first = SledStore::open(&path).unwrap().store;
        let refused = SledStore::open(&path).unwrap_err();
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            1,
            "{refused}"
        );
        first
            .put(&record(1), &[], &mut SyncCost::default())
            .unwrap();
        drop(first);
        assert_eq!(SledStore::open(&path).unwrap().store.load().len(), 1);
    }

    #[test]
    fn db_01_damage_upon_damage_is_put_aside_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs");
        for round in 1..=3 {
            drop(SledStore::open(&path).unwrap());
            for file in files(&path) {
                std::fs::write(&file, b"not a store").unwrap();
            }
            let opened = SledStore::open(&path).unwrap();
            assert!(opened.aside.is_some_and(|aside| aside.is_dir()));
            drop(opened.store);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), round + 1);
        }
    }

    /// Every kind of damage of the case's script: the store opens, and no record comes out that
    /// was not put in.
    #[test]
    fn db_01_db_02_damage_costs_jobs_and_nothing_else() {
        let made = tempfile::tempdir().unwrap();
        let source = made.path().join("jobs");
        let mut cost = SyncCost::default();
        let records: Vec<JobRecord> = (0..20).map(record).collect();
        let store = SledStore::open(&source).unwrap().store;
        for record in &records {
            store.put(record, &[], &mut cost).unwrap();
        }
        drop(store);
        let mut damages: Vec<Damage> = vec![
            Box::new(Vec::clear),
            Box::new(|bytes| bytes.truncate(bytes.len() / 2)),
            Box::new(|bytes| bytes.iter_mut().take(512).for_each(|byte| *byte = 0)),
            Box::new(|bytes| {
                bytes.extend((0..4096u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8));
            }),
        ];
        for at in (0..4096).step_by(401) {
            damages.push(Box::new(move |bytes| {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 0xaa;
                }
            }));
        }
        for (number, damage) in damages.iter().enumerate() {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("jobs");
            std::fs::create_dir(&path).unwrap();
            for file in files(&source) {
                let mut bytes = std::fs::read(&file).unwrap();
                damage(&mut bytes);
                std::fs::write(path.join(file.file_name().unwrap()), bytes).unwrap();
            }
            let opened =
                SledStore::open(&path).unwrap_or_else(|error| panic!("damage {number}: {error}"));
            for loaded in opened.store.load() {
                assert!(
                    records.contains(&loaded),
                    "damage {number} made up a record"
                );
            }
            opened.store.put(&record(99), &[], &mut cost).unwrap();
        }
    }
}
