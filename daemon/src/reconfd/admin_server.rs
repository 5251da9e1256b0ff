//! The admin socket: who may speak, one line in, one line out.
//!
//! Knows peer credentials and bounds. Must not know what a request does.

use std::future::Future;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tracing::{debug, warn};

use super::listening::{ListenError, Listening};
use crate::admin::{AdminReply, AdminRequest, MAX_LINE};

/// The group whose members may speak here.
const GROUP: &str = "reconf-admin";
/// Connections served at once.
const CONNECTIONS: usize = 32;
/// A connection that says nothing for this long is closed: the places are few, and at three in
/// the morning one must be free.
const IDLE: Duration = Duration::from_secs(30);
/// An answer must be taken within this time.
const WRITE_TIME: Duration = Duration::from_secs(10);

/// Who may speak, beside root and our own user.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    /// Users, by host.toml.
    pub uids: Vec<u32>,
    /// Groups, by host.toml.
    pub gids: Vec<u32>,
}

/// Does what is asked.
pub trait Act: Send + Sync + 'static {
    /// Never fails: an error is an answer.
    fn act(&self, request: AdminRequest, by_uid: u32) -> impl Future<Output = AdminReply> + Send;
}

/// Makes the socket: 0660, and of the group `reconf-admin` where that exists.
///
/// # Errors
/// See [`ListenError`].
pub fn bind(path: &Path) -> Result<Listening, ListenError> {
    let listening = Listening::at(path)?;
    if let Ok(Some(group)) = nix::unistd::Group::from_name(GROUP) {
        // Not ours to give away where we do not run as root or in that group: then only root
        // and our own user can connect.
        if let Err(error) = nix::unistd::chown(path, None, Some(group.gid)) {
            debug!(%error, "the admin socket keeps our own group");
        }
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660)).map_err(|error| {
        ListenError::Io {
            path: path.to_owned(),
            error,
        }
    })?;
    Ok(listening)
}

/// Serves for ever.
pub async fn run(listening: Listening, allowed: Allowed, act: Arc<impl Act>) {
    let allowed = Arc::new(allowed);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        // A place first, so that what waits waits in the kernel's queue.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listening.accept().await {
            Ok(stream) => {
                let (allowed, act) = (Arc::clone(&allowed), Arc::clone(&act));
                tokio::spawn(async move {
                    if let Err(error) = admit(stream, allowed, act).await {
                        debug!(%error, "an admin connection ended");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                warn!(%error, "the admin socket cannot accept");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

/// Serves a connection, if its user may speak (H3).
async fn admit(stream: UnixStream, allowed: Arc<Allowed>, act: Arc<impl Act>) -> io::Result<()> {
    let credentials = rustix::net::sockopt::socket_peercred(&stream)?;
    let (uid, gid) = (credentials.uid.as_raw(), credentials.gid.as_raw());
    // Who is in a group may be asked of a server that hangs: that holds up this connection only,
    // and root's none at all.
    let may = tokio::task::spawn_blocking(move || may_speak(uid, gid, &allowed)).await;
    if may.unwrap_or(false) {
        serve(stream, uid, act).await
    } else {
        debug!(uid, gid, "an admin connection was refused");
        refuse(stream).await
    }
}

fn may_speak(uid: u32, gid: u32, allowed: &Allowed) -> bool {
    uid == 0
        || uid == rustix::process::geteuid().as_raw()
        || allowed.uids.contains(&uid)
        || allowed.gids.contains(&gid)
        || is_member(uid, gid)
}

fn is_member(uid: u32, gid: u32) -> bool {
    let Ok(Some(group)) = nix::unistd::Group::from_name(GROUP) else {
        return false;
    };
    if group.gid.as_raw() == gid {
        return true;
    }
    nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid))
        .ok()
        .flatten()
        .is_some_and(|user| user.gid == group.gid || group.mem.contains(&user.name))
}

async fn refuse(mut stream: UnixStream) -> io::Result<()> {
    let reply = error(
        "you may not speak here",
        "become root or a member of the group reconf-admin",
    );
    tokio::time::timeout(WRITE_TIME, write(&mut stream, &reply)).await?
}

async fn serve(stream: UnixStream, uid: u32, act: Arc<impl Act>) -> io::Result<()> {
    let (read, mut write_half) = stream.into_split();
    let mut lines = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        let bound = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
        let mut bounded = (&mut lines).take(bound);
        let len = tokio::time::timeout(IDLE, bounded.read_until(b'\n', &mut line)).await??;
        if len == 0 {
            return Ok(());
        }
        let reply = if line.last() != Some(&b'\n') && len >= MAX_LINE {
            let reply = error("the request line is too long", "send at most 64 KiB a line");
            tokio::time::timeout(WRITE_TIME, write(&mut write_half, &reply)).await??;
            return Ok(());
        } else {
            match serde_json::from_slice::<AdminRequest>(&line) {
                Ok(request) => act.act(request, uid).await,
                Err(what) => error(&format!("not a request: {what}"), "see `reconfctl --help`"),
            }
        };
        tokio::time::timeout(WRITE_TIME, write(&mut write_half, &reply)).await??;
    }
}

async fn write(
    to: &mut (impl tokio::io::AsyncWrite + Unpin),
    reply: &AdminReply,
) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(reply)?;
    bytes.push(b'\n');
    to.write_all(&bytes).await
}

/// An answer that says no.
#[must_use]
pub fn error(what: &str, remedy: &str) -> AdminReply {
    AdminReply::Error {
        ok: false,
        error: what.to_owned(),
        remedy: remedy.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::AdminBody;

    struct Yes;

    impl Act for Yes {
        async fn act(&self, request: AdminRequest, _by_uid: u32) -> AdminReply {
            AdminReply::Ok {
                ok: true,
                body: AdminBody::Done(format!("{request:?}")),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn h3_whoever_says_nothing_gives_its_place_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        tokio::spawn(run(bind(&path).unwrap(), Allowed::default(), Arc::new(Yes)));
        let mut idle = Vec::new();
        for _place in 0..CONNECTIONS {
            idle.push(UnixStream::connect(&path).await.unwrap());
        }
        let mut late = BufReader::new(UnixStream::connect(&path).await.unwrap());
        late.get_mut()
            .write_all(b"{\"do\":\"status\"}\n")
            .await
            .unwrap();
        let mut line = String::new();
        let answered = tokio::time::timeout(IDLE * 2, late.read_line(&mut line)).await;
        answered.expect("answered once a place is free").unwrap();
        assert!(line.contains("\"ok\":true"), "{line}");
    }

    #[test]
    fn h3_who_may_speak() {
        let allowed = Allowed {
            uids: vec![4_000_001],
            gids: vec![4_000_002],
        };
        let own = rustix::process::geteuid().as_raw();
        for (uid, gid, may) in [
            (0, 0, true),
            (own, 4_000_000, true),
            (4_000_001, 4_000_000, true),
            (4_000_000, 4_000_002, true),
            (4_000_000, 4_000_000, false),
        ] {
            assert_eq!(may_speak(uid, gid, &allowed), may, "{uid}/{gid}");
        }
    }

    #[tokio::test]
    async fn a_line_in_a_line_out_and_bad_lines_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        tokio::spawn(run(bind(&path).unwrap(), Allowed::default(), Arc::new(Yes)));
        let mut lines = BufReader::new(UnixStream::connect(&path).await.unwrap());
        for (send, want) in [
            (&b"{\"do\":\"status\"}\n"[..], "\"ok\":true"),
            (b"{\"do\":\"status\",\"extra\":1}\n", "\"ok\":false"),
            (b"{\"do\":\"everything\"}\n", "\"ok\":false"),
            (b"\xff\xfe\n", "\"ok\":false"),
        ] {
            lines.get_mut().write_all(send).await.unwrap();
            let mut line = String::new();
            lines.read_line(&mut line).await.unwrap();
            assert!(line.contains(want), "{line}");
        }
        lines
            .get_mut()
            .write_all(&vec![b'x'; MAX_LINE])
            .await
            .unwrap();
        let mut line = String::new();
        lines.read_line(&mut line).await.unwrap();
        assert!(line.contains("too long"));
        line.clear();
        assert_eq!(
            lines.read_line(&mut line).await.unwrap_or(0),
            0,
            "and closed"
        );
    }
}
