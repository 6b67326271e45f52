//! Dropping a master key leaves no copy of it: the test searches all of its own memory.
//!
//! It is the only test of its program, so that it does not search the memory of other tests.
#![cfg(all(target_os = "linux", feature = "srtp"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rushes::{Codec, Context, MasterKey, Pacing, Security, Suite};

/// The mask of the octets of keys that the test itself holds.
const MASK: u8 = 0x5a;
const SECOND: Duration = Duration::from_secs(1);

/// A key whose unmasked octets are nowhere in memory.
struct Masked(Vec<u8>);

impl Masked {
    fn random(len: usize) -> Self {
        let mut octets = vec![0; len];
        File::open("/dev/urandom").unwrap().read_exact(&mut octets).unwrap();
        Self(octets)
    }

    /// Calls `with` with the unmasked key, and erases it afterwards.
    fn show<T>(&self, with: impl FnOnce(&[u8]) -> T) -> T {
        let mut octets: Vec<u8> = self.0.iter().map(|octet| octet ^ MASK).collect();
        let result = with(&octets);
        zeroize::Zeroize::zeroize(&mut octets);
        result
    }

    /// Decodes lower-case hexadecimal digits.
    #[cfg(feature = "zrtp")]
    fn of_hex(digits: &[u8]) -> Self {
        let digit = |digit: &u8| char::from(*digit).to_digit(16).unwrap() as u8;
        Self(digits.chunks(2).map(|two| (digit(&two[0]) << 4 | digit(&two[1])) ^ MASK).collect())
    }

    /// Returns an entry of the memory map for each copy of the key's first 16 octets in this
    /// process.
    fn copies(&self) -> Vec<String> {
        let masked: &[u8; 16] = self.0.first_chunk().unwrap();
        let is_copy = |window: &&[u8]| {
            window.iter().zip(masked).all(|(octet, masked)| octet ^ MASK == *masked)
        };
        let memory = File::open("/proc/self/mem").unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut found = Vec::new();
        for line in maps.lines().filter(|line| line.contains(" rw")) {
            let (range, _) = line.split_once(' ').unwrap();
            let (start, end) = range.split_once('-').unwrap();
            let [start, end] = [start, end].map(|at| u64::from_str_radix(at, 16).unwrap());
            let mut octets = vec![0; (end - start) as usize];
            if memory.read_exact_at(&mut octets, start).is_err() {
                continue;
            }
            let copies = octets.windows(16).filter(is_copy).count();
            // This copy of the memory is itself in memory.
            zeroize::Zeroize::zeroize(&mut octets);
            found.extend((0..copies).map(|_| line.to_owned()));
        }
        found
    }
}

#[test]
fn no_copy_of_a_master_key_outlives_its_drop() {
    for suite in [Suite::AesCm128HmacSha1_80, Suite::AesCm256HmacSha1_80, Suite::AeadAes256Gcm] {
        let [key, next] = [0; 2].map(|_| Masked::random(suite.key_and_salt_len()));
        assert_eq!(key.copies(), [""; 0], "the test itself leaves no copy");
        let security = || key.show(|key| Security::shared(suite, key).unwrap());
        let session = Context::new().session("127.0.0.1").unwrap();
        let mut receiver =
            session.stream(Codec::Generic).security(security()).probation(1).open().unwrap();
        let port = receiver.local_address().port();
        let stream = session.stream(Codec::Generic).remote_port(port);
        let mut sender = stream.pacing(Pacing::Off).security(security()).open().unwrap();
        let mut pass = || {
            sender.push_frame(&[7; 5_000], None).unwrap();
            receiver.pull_frame(SECOND).unwrap().unwrap();
        };
        (0..20).for_each(|_| pass());
        // From here on, only session keys are needed.
        assert_eq!(key.copies(), [""; 0], "{suite:?}: while it is used");
        next.show(|octets| {
            let next = MasterKey::new(suite, octets).unwrap();
            receiver.handle().add_receive_key(&next).unwrap();
            sender.handle().set_send_key(&next).unwrap();
        });
        sender.push_frame(&[7; 5_000], None).unwrap();
        receiver.pull_frame(SECOND).unwrap().unwrap();
        drop((sender, receiver, session));
        for key in [key, next] {
            assert_eq!(key.copies(), [""; 0], "{suite:?}");
        }
    }
    #[cfg(feature = "zrtp")]
    no_copy_of_a_secret_of_zrtp_outlives_its_session();
}

/// Checks the secret that both ends share, and those that they retain for their next session.
#[cfg(feature = "zrtp")]
fn no_copy_of_a_secret_of_zrtp_outlives_its_session() {
    use rushes::zrtp::ZrtpConfig;

    let folder = tempfile::tempdir().unwrap();
    let aux = Masked::random(32);
    let mut kept = Vec::new();
    for _ in 0..3 {
        let caches = ["a", "b"].map(|name| folder.path().join(name));
        let session = || Context::new().session("127.0.0.1").unwrap();
        let [here, there] = [session(), session()];
        let config = |cache: &std::path::Path| {
            let mut config = ZrtpConfig::default();
            config.cache = Some(cache.to_owned());
            config.aux_secret = Some(aux.show(|octets| octets.to_vec().into()));
            config
        };
        let stream = |session: &rushes::Session, cache| {
            session.stream(Codec::Generic).security(Security::Zrtp(config(cache)))
        };
        let mut waiting = stream(&there, &caches[1]).begin().unwrap();
        let port = waiting.local_address().port();
        let calling = stream(&here, &caches[0]).remote_port(port);
        let calling = std::thread::spawn(move || calling.open().unwrap());
        let waiting = waiting.wait(10 * SECOND).unwrap().unwrap();
        drop((calling.join().unwrap(), waiting, here, there));
        let mut file = std::fs::read(&caches[0]).unwrap();
        let line = file.split(|octet| *octet == b'\n').nth(2).unwrap();
        let rs1 = line.split(|octet| *octet == b' ').nth(2).unwrap();
        kept.push((Masked::of_hex(rs1), Masked(rs1.iter().map(|digit| digit ^ MASK).collect())));
        zeroize::Zeroize::zeroize(&mut file);
    }
    assert_eq!(aux.copies(), [""; 0], "the shared secret");
    for (n, (secret, digits)) in kept.iter().enumerate() {
        assert_eq!(secret.copies(), [""; 0], "the secret kept by session {n}");
        assert_eq!(digits.copies(), [""; 0], "its digits");
    }
}
