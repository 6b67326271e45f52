//! Retained secrets in a simple file: one line for each peer.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rushes::zrtp::{Retained, RetainedSecret, SecretStore, Zid};
use zeroize::Zeroizing;

use super::hex;

/// The first line, with the version of the format.
const TITLE: &str = "zrtp_peer 1";

/// The ZID of this end, and the secrets retained for each peer.
#[derive(Default)]
pub(crate) struct FileStore {
    path: PathBuf,
    pub(crate) zid: Option<Zid>,
    peers: BTreeMap<Zid, Retained>,
}

impl FileStore {
    /// Reads the file; empty if there is none.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let mut store = Self { path: path.to_owned(), ..Self::default() };
        let text = match fs::read_to_string(path) {
            Ok(text) => Zeroizing::new(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(store),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        let mut lines = text.lines();
        if lines.next() != Some(TITLE) {
            return Err(format!("{} does not begin with {TITLE}", path.display()));
        }
        for (n, line) in lines.enumerate() {
            let malformed = || format!("{}, line {}: cannot be read", path.display(), n + 2);
            store.read(line).ok_or_else(malformed)?;
        }
        Ok(store)
    }

    fn read(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        match words.next()? {
            "zid" => self.zid = Some(hex::decode_array(words.next()?)?),
            "peer" => {
                let zid = hex::decode_array(words.next()?)?;
                let mut secret = || match words.next()? {
                    "-" => Some(None),
                    digits => Some(Some(Box::new(Zeroizing::new(hex::decode_array(digits)?)))),
                };
                let (rs1, rs2, pbx) = (secret()?, secret()?, secret()?);
                let is_verified = words.next()? == "verified";
                let expiration_interval = words.next()?.parse().ok()?;
                let retained = Retained { rs1, rs2, pbx, is_verified, expiration_interval };
                self.peers.insert(zid, retained);
            }
            _ => return None,
        }
        Some(())
    }

    /// Rewrites the file, readable by its owner only.
    pub(crate) fn write(&self) -> io::Result<()> {
        let mut text = Zeroizing::new(format!("{TITLE}\n"));
        if let Some(zid) = self.zid {
            let _ = writeln!(text, "zid {}", hex::encode(&zid));
        }
        for (zid, retained) in &self.peers {
            let secret = |secret: &Option<RetainedSecret>| {
                secret.as_ref().map_or_else(|| "-".to_owned(), |secret| hex::encode(&secret[..]))
            };
            let _ = writeln!(
                text,
                "peer {} {} {} {} {} {}",
                hex::encode(zid),
                secret(&retained.rs1),
                secret(&retained.rs2),
                secret(&retained.pbx),
                if retained.is_verified { "verified" } else { "unverified" },
                retained.expiration_interval,
            );
        }
        // Written to a new file and renamed, so that a failure leaves the old one intact.
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        let _ = fs::remove_file(&new);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        let mut file = options.open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)
    }
}

impl SecretStore for FileStore {
    fn load(&mut self, peer: &Zid) -> Retained {
        self.peers.get(peer).cloned().unwrap_or_default()
    }

    fn save(&mut self, peer: &Zid, retained: &Retained) {
        self.peers.insert(*peer, retained.clone());
        if let Err(error) = self.write() {
            eprintln!("{}: {error}", self.path.display());
        }
    }
}
