//! Retained secrets in a file: readable by its owner only, replaced as a whole.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rushes_crypto::on_erased_stack;
use rushes_zrtp::{Retained, SecretStore, Zid};
use zeroize::Zeroizing;

use crate::error::FileStoreError;
use crate::hex;

/// The first line of the file.
const HEAD: &str = "rushes-zrtp 1";
/// Maximum bytes of the first two lines.
const HEAD_LEN_MAX: usize = 64;
/// Maximum bytes of a peer's line: a ZID, three secrets, a mark and a time.
const LINE_LEN_MAX: usize = 256;
/// Maximum size of the file in bytes: about 60 000 peers.
const LEN_MAX: u64 = 16 << 20;
/// Maximum peers. Beyond that the oldest unverified peer is removed.
const PEERS_MAX: usize = 4096;
/// Maximum wait for another program to release the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause between two attempts to lock.
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// The mark of an absent secret.
const NONE: &str = "-";
/// The mark of an entry that does not expire.
const NEVER: &str = "never";

/// One peer, and its expiry in seconds since 1970.
#[derive(Clone)]
struct Entry {
    peer: Zid,
    retained: Retained,
    expires: Option<u64>,
}

/// Retained secrets of earlier sessions, and this end's ZID, in a file.
///
/// The file is text, with one line for each peer. It is created if it does not exist, readable only
/// by its owner, and always replaced as a whole, so that a crash leaves either the old or the new
/// file. Several programs may use it at once. At most 4096 peers are kept; beyond that, unverified
/// ones are removed first.
pub struct FileStore {
    path: PathBuf,
    zid: Zid,
    peers: Vec<Entry>,
}

impl FileStore {
    /// Opens the store in the file `path`, which is created if it does not exist.
    ///
    /// # Errors
    /// [`FileStoreError`], with the error in the file and its line.
    pub fn open(path: &Path) -> Result<Self, FileStoreError> {
        let path = path.to_owned();
        // Two programs must not create the file at once, each with its own ZID.
        let _lock = lock_folder(&path);
        if let Some((zid, peers)) = read(&path)? {
            return Ok(Self { path, zid, peers });
        }
        let mut zid = [0; 12];
        let random = |error: getrandom::Error| FileStoreError::Random(error.to_string());
        getrandom::fill(&mut zid).map_err(random)?;
        let store = Self { path, zid, peers: Vec::new() };
        store.write()?;
        Ok(store)
    }

    /// Returns the ZID of this end.
    pub fn zid(&self) -> Zid {
        self.zid
    }

    /// Returns the new contents of the file.
    fn contents(&self) -> Zeroizing<String> {
        let len = HEAD_LEN_MAX + LINE_LEN_MAX * self.peers.len();
        // The string must not grow: reallocation would leave copies of secrets in memory.
        let mut text = Zeroizing::new(String::with_capacity(len));
        text.extend([HEAD, "\nzid "]);
        hex::push(&self.zid, &mut text);
        for Entry { peer, retained, expires } in &self.peers {
            text.push_str("\npeer ");
            hex::push(peer, &mut text);
            for secret in [&retained.rs1, &retained.rs2, &retained.pbx] {
                text.push(' ');
                match secret {
                    Some(secret) => hex::push(&secret[..], &mut text),
                    None => text.push_str(NONE),
                }
            }
            let expires = expires.map_or_else(|| NEVER.to_owned(), |at| at.to_string());
            text.push_str(if retained.is_verified { " 1 " } else { " 0 " });
            text.push_str(&expires);
        }
        text.push('\n');
        debug_assert!(text.len() <= len);
        text
    }

    fn write(&self) -> Result<(), FileStoreError> {
        let io = |source| FileStoreError::Io { path: self.path.clone(), source };
        let text = on_erased_stack(|| self.contents());
        // A unique name, because another program may be saving without the lock.
        let mut unique = [0; 8];
        let random = |error: getrandom::Error| FileStoreError::Random(error.to_string());
        getrandom::fill(&mut unique).map_err(random)?;
        let mut part = self.path.clone().into_os_string();
        part.push(format!(".{}.part", hex::write(&unique)));
        let part = PathBuf::from(part);
        let written = create(&part)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| std::fs::rename(&part, &self.path));
        if written.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        written.map_err(io)
    }
}

impl SecretStore for FileStore {
    fn load(&mut self, peer: &Zid) -> Retained {
        let now = now();
        let is_fresh = |entry: &&Entry| entry.expires.is_none_or(|at| at > now);
        let known = self.peers.iter().find(|entry| entry.peer == *peer).filter(is_fresh);
        known.map(|entry| entry.retained.clone()).unwrap_or_default()
    }

    fn save(&mut self, peer: &Zid, retained: &Retained) {
        let lock = lock_folder(&self.path);
        // Another program may have saved meanwhile.
        let is_ours = match read(&self.path) {
            Ok(Some((zid, peers))) if zid == self.zid => {
                self.peers = peers;
                true
            }
            Ok(None) => true,
            Ok(Some(_)) => {
                tracing::error!(path = %self.path.display(), "another program has replaced the cache of ZRTP secrets: nothing is saved");
                false
            }
            Err(error) => {
                tracing::error!(%error, "the cache of ZRTP secrets cannot be read again: nothing is saved");
                false
            }
        };
        let now = now();
        self.peers.retain(|entry| entry.peer != *peer && entry.expires.is_none_or(|at| at > now));
        let interval = retained.expiration_interval;
        let expires = (interval != u32::MAX).then(|| now.saturating_add(u64::from(interval)));
        self.peers.push(Entry { peer: *peer, retained: retained.clone(), expires });
        while self.peers.len() > PEERS_MAX {
            let oldest = self.peers.iter().position(|entry| !entry.retained.is_verified);
            self.peers.remove(oldest.unwrap_or(0));
        }
        // A file that cannot be read is not overwritten.
        if is_ours && let Err(error) = self.write() {
            tracing::error!(%error, "the ZRTP secrets were not saved");
        }
        drop(lock);
    }
}

impl std::fmt::Debug for FileStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileStore").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Locks the folder of `path` against saving by other programs until the result is dropped.
///
/// Returns `None` if the operating system cannot lock folders, or another program holds the lock
/// for longer than [`LOCK_TIMEOUT`].
fn lock_folder(path: &Path) -> Option<File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or_else(|| Path::new("."))).ok()?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match folder.try_lock() {
            Ok(()) => return Some(folder),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(_) => return None,
        }
    }
}

/// Creates a file that only its owner may read.
fn create(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create_new(true).open(path)
}

type Contents = (Zid, Vec<Entry>);

/// Returns the contents of the file, or `None` if it does not exist.
fn read(path: &Path) -> Result<Option<Contents>, FileStoreError> {
    let io = |source| FileStoreError::Io { path: path.to_owned(), source };
    let len = match std::fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
    };
    let malformed = |line, what| FileStoreError::Malformed { path: path.to_owned(), line, what };
    if len > LEN_MAX {
        return Err(malformed(1, "the file is longer than 16 MiB"));
    }
    // The string must not grow, as in `FileStore::contents`.
    let mut text = Zeroizing::new(String::with_capacity(len as usize + 1));
    File::open(path).and_then(|file| file.take(len).read_to_string(&mut text)).map_err(io)?;
    let mut lines = text.lines();
    if lines.next() != Some(HEAD) {
        return Err(malformed(1, "not a file of retained secrets, or of another version"));
    }
    let zid = lines.next().and_then(|line| line.strip_prefix("zid ")).and_then(hex::read);
    let zid = zid.ok_or_else(|| malformed(2, "the ZID is not 24 hexadecimal digits"))?;
    let mut peers = Vec::new();
    for (n, line) in lines.enumerate() {
        let what = "not a valid peer entry";
        let entry = on_erased_stack(|| entry(line));
        peers.push(entry.ok_or_else(|| malformed(n + 3, what))?);
    }
    Ok(Some((zid, peers)))
}

fn entry(line: &str) -> Option<Entry> {
    let mut fields = line.strip_prefix("peer ")?.split(' ');
    let peer = hex::read(fields.next()?)?;
    let mut secret = || match fields.next()? {
        NONE => Some(None),
        text => hex::read::<32>(text).map(|octets| Some(Box::new(Zeroizing::new(octets)))),
    };
    let (rs1, rs2, pbx) = (secret()?, secret()?, secret()?);
    let is_verified = match fields.next()? {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    let expires = match fields.next()? {
        NEVER => None,
        at => Some(at.parse().ok()?),
    };
    if fields.next().is_some() {
        return None;
    }
    let retained = Retained { rs1, rs2, pbx, is_verified, expiration_interval: u32::MAX };
    Some(Entry { peer, retained, expires })
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retained(octet: u8, expiration_interval: u32) -> Retained {
        let rs1 = Some(Box::new(Zeroizing::new([octet; 32])));
        Retained { rs1, is_verified: true, expiration_interval, ..Retained::default() }
    }

    #[test]
    fn what_is_saved_is_there_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        let mut store = FileStore::open(&path).unwrap();
        store.save(&[1; 12], &retained(7, u32::MAX));
        store.save(&[2; 12], &retained(8, 3600));
        store.save(&[1; 12], &retained(9, u32::MAX));
        let mut again = FileStore::open(&path).unwrap();
        assert_eq!(again.zid(), store.zid());
        assert_eq!(again.load(&[1; 12]), retained(9, u32::MAX));
        assert_eq!(again.load(&[2; 12]).rs1, retained(8, 0).rs1);
        assert_eq!(again.load(&[3; 12]), Retained::default());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_has_expired_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = FileStore::open(&folder.path().join("cache")).unwrap();
        store.save(&[1; 12], &retained(7, 0));
        assert_eq!(store.load(&[1; 12]), Retained::default());
    }

    #[test]
    fn two_programs_keep_what_the_other_saved() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        let (mut one, mut other) =
            (FileStore::open(&path).unwrap(), FileStore::open(&path).unwrap());
        one.save(&[1; 12], &retained(1, u32::MAX));
        other.save(&[2; 12], &retained(2, u32::MAX));
        let mut again = FileStore::open(&path).unwrap();
        assert!(again.load(&[1; 12]).rs1.is_some() && again.load(&[2; 12]).rs1.is_some());
    }

    #[test]
    #[cfg(unix)]
    fn programs_that_save_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        FileStore::open(&path).unwrap();
        std::thread::scope(|scope| {
            for saver in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    let mut store = FileStore::open(path).unwrap();
                    for n in 0..25 {
                        let mut peer = [saver; 12];
                        peer[0] = n;
                        store.save(&peer, &retained(n, u32::MAX));
                    }
                });
            }
        });
        assert_eq!(FileStore::open(&path).unwrap().peers.len(), 100);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    #[cfg(unix)]
    fn a_lock_that_is_never_released_delays_a_save_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        let mut store = FileStore::open(&path).unwrap();
        let held = lock_folder(&path).unwrap();
        store.save(&[1; 12], &retained(7, u32::MAX));
        drop(held);
        let mut again = FileStore::open(&path).unwrap();
        assert_eq!((again.zid(), again.load(&[1; 12]).is_verified), (store.zid(), true));
    }

    #[test]
    fn a_file_that_cannot_be_read_again_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        let mut store = FileStore::open(&path).unwrap();
        let another = format!("{HEAD}\nzid {}\n", "00".repeat(12));
        for text in ["rushes-zrtp 2\nof a later version", &another] {
            std::fs::write(&path, text).unwrap();
            store.save(&[1; 12], &retained(7, u32::MAX));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            assert_eq!(store.load(&[1; 12]).rs1, retained(7, 0).rs1, "the secret stays in memory");
        }
    }

    #[test]
    fn strangers_do_not_displace_compared_peers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        let mut store = FileStore::open(&path).unwrap();
        store.save(&[0xff; 12], &retained(7, u32::MAX));
        let stranger = Retained { is_verified: false, ..retained(8, u32::MAX) };
        let entry = |n: usize| {
            let mut peer = [0; 12];
            peer[..8].copy_from_slice(&n.to_be_bytes());
            Entry { peer, retained: stranger.clone(), expires: None }
        };
        store.peers.extend((0..2 * PEERS_MAX).map(entry));
        store.write().unwrap();
        store.save(&[0xee; 12], &stranger);
        let mut again = FileStore::open(&path).unwrap();
        assert_eq!(again.peers.len(), PEERS_MAX);
        assert!(again.load(&[0xff; 12]).is_verified);
        assert!(again.load(&[0xee; 12]).rs1.is_some(), "the newest peer is kept");
    }

    #[test]
    #[cfg(unix)]
    fn only_its_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        FileStore::open(&path).unwrap().save(&[1; 12], &retained(1, u32::MAX));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_file_is_named_with_its_line_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        let zid = "00".repeat(12);
        for (text, wanted) in [
            ("something else", "line 1"),
            ("rushes-zrtp 2\n", "line 1"),
            ("rushes-zrtp 1\nzid 12\n", "line 2"),
            (&format!("{HEAD}\nzid {zid}\npeer {zid} - - - 2 never\n"), "line 3"),
            (&format!("{HEAD}\nzid {zid}\npeer {zid} - - - 0 never more\n"), "line 3"),
            (&format!("{HEAD}\nzid {zid}\npeer {zid} zz - - 0 never\n"), "line 3"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = FileStore::open(&path).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text:?}: {error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
