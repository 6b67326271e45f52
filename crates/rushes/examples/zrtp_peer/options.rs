//! The command-line options.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use rushes::zrtp::{Algorithm, AlgorithmList, Algorithms, Zid};
use rushes_netsim::Loss;

use super::faults::Faults;
use super::hex;

/// The help shown with an error about the options.
pub(crate) const USAGE: &str = "\
usage: zrtp_peer --local PORT --remote PORT [--host 127.0.0.1] [--ssrc HEX]
  [--stream LOCAL:REMOTE[:SSRCHEX]]...       a further stream, secured by the first
  [--kex a,b] [--cipher a,b] [--hash a,b] [--auth a,b] [--sas a,b]   ZRTP's names, best first
  [--cache FILE] [--zid HEX24] [--verify-sas] [--passive] [--wait] [--preshared] [--aux HEX]
  [--hello-hash HEX64 (of the peer's Hello)] [--export LABEL]... [--srtp N]
  [--timeout S] [--linger S]
  [--drop TYPE[:N]] [--drop-rx TYPE[:N]] [--dup TYPE[:N]] [--corrupt TYPE[:N]]
  [--loss PERCENT] [--seed N] [--latency MS] [--reorder MS] [--delay-start MS]
  [--hex] [-v] [-X key=value (ignored)] [--self-uri U] [--peer-uri U (both ignored)]
Prints a JSON object for each stream, then {\"ok\":true|false,...}. The status is 0 only if every
stream is secure and, with --srtp, media came both ways. Without any option two peers meet here.";

/// One stream's ports.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Ports {
    pub(crate) local: u16,
    pub(crate) remote: u16,
    /// The SSRC; random if `None`.
    pub(crate) ssrc: Option<u32>,
}

/// The parsed command line.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "a command line has many switches")]
pub(crate) struct Options {
    pub(crate) host: IpAddr,
    /// The first stream agrees on keys; the others derive theirs from it.
    pub(crate) streams: Vec<Ports>,
    pub(crate) algorithms: Algorithms,
    pub(crate) cache: Option<PathBuf>,
    pub(crate) zid: Option<Zid>,
    pub(crate) verify_sas: bool,
    pub(crate) passive: bool,
    /// Whether any address may be the peer's.
    pub(crate) wait: bool,
    pub(crate) preshared: bool,
    pub(crate) aux: Option<Vec<u8>>,
    pub(crate) hello_hash: Option<[u8; 32]>,
    pub(crate) exports: Vec<String>,
    /// Media packets to send and to expect.
    pub(crate) srtp: u32,
    pub(crate) timeout: Duration,
    pub(crate) linger: Duration,
    pub(crate) delay_start: Duration,
    pub(crate) faults: Faults,
    pub(crate) hex: bool,
    pub(crate) verbose: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: Ipv4Addr::LOCALHOST.into(),
            streams: Vec::new(),
            algorithms: Algorithms::default(),
            cache: None,
            zid: None,
            verify_sas: false,
            passive: false,
            wait: false,
            preshared: false,
            aux: None,
            hello_hash: None,
            exports: Vec::new(),
            srtp: 0,
            timeout: Duration::from_secs(15),
            linger: Duration::from_millis(700),
            delay_start: Duration::ZERO,
            faults: Faults::default(),
            hex: false,
            verbose: false,
        }
    }
}

impl Options {
    /// Parses the arguments after the program's name.
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        options.faults.seed = 1;
        options.faults.path.jitter_reorders = true;
        let (mut first, mut further) = (Ports { local: 0, remote: 0, ssrc: None }, Vec::new());
        let mut arguments = arguments;
        while let Some(name) = arguments.next() {
            if options.set_switch(&name) {
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("{name}: no value, or unknown"))?;
            let value = value.as_str();
            let wrong = |why: String| format!("{name} {value}: {why}");
            match name.as_str() {
                "--local" => first.local = number(value).map_err(wrong)?,
                "--remote" => first.remote = number(value).map_err(wrong)?,
                "--ssrc" => first.ssrc = Some(ssrc(value).map_err(wrong)?),
                "--stream" => further.push(ports(value).map_err(wrong)?),
                _ => {
                    let is_known = options.set(&name, value).map_err(wrong)?
                        || options.set_fault(&name, value).map_err(wrong)?;
                    if !is_known {
                        return Err(format!("{name}: unknown"));
                    }
                }
            }
        }
        if first.local == 0 || first.remote == 0 {
            return Err("--local and --remote are needed".to_owned());
        }
        options.streams.push(first);
        options.streams.append(&mut further);
        Ok(options)
    }

    fn set_switch(&mut self, name: &str) -> bool {
        match name {
            "--verify-sas" => self.verify_sas = true,
            "--passive" => self.passive = true,
            "--wait" => self.wait = true,
            "--preshared" => self.preshared = true,
            "--hex" => self.hex = true,
            "-v" => self.verbose = true,
            _ => return false,
        }
        true
    }

    /// Sets an option of the endpoint; returns `false` if `name` is not one.
    fn set(&mut self, name: &str, value: &str) -> Result<bool, String> {
        let algorithms = &mut self.algorithms;
        match name {
            "--host" => self.host = value.parse().map_err(|_| "not an address".to_owned())?,
            "--kex" => algorithms.key_agreements = list(value)?,
            "--cipher" => algorithms.ciphers = list(value)?,
            "--hash" => algorithms.hashes = list(value)?,
            "--auth" => algorithms.auth_tags = list(value)?,
            "--sas" => algorithms.sas_types = list(value)?,
            "--cache" => self.cache = Some(value.into()),
            "--zid" => self.zid = Some(hex::decode_array(value).ok_or("not 24 digits")?),
            "--aux" => self.aux = Some(hex::decode(value).ok_or("not hexadecimal digits")?),
            "--hello-hash" => {
                self.hello_hash = Some(hex::decode_array(value).ok_or("not 64 digits")?);
            }
            "--export" => self.exports.push(value.to_owned()),
            "--srtp" => self.srtp = number(value)?,
            "--timeout" => self.timeout = seconds(value)?,
            "--linger" => self.linger = seconds(value)?,
            // Other programs find retained secrets by these; Rushes uses the peer's ZID.
            "--self-uri" | "--peer-uri" | "-X" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_fault(&mut self, name: &str, value: &str) -> Result<bool, String> {
        let faults = &mut self.faults;
        match name {
            "--drop" => faults.drop.add(value)?,
            "--drop-rx" => faults.drop_received.add(value)?,
            "--dup" => faults.repeat.add(value)?,
            "--corrupt" => faults.corrupt.add(value)?,
            "--loss" => faults.path.loss = Loss::Independent(number::<f64>(value)? / 100.0),
            "--seed" => faults.seed = number(value)?,
            "--latency" => faults.path.delay = milliseconds(value)?,
            "--reorder" => faults.path.jitter = milliseconds(value)?,
            "--delay-start" => self.delay_start = milliseconds(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn number<T: FromStr>(value: &str) -> Result<T, String> {
    value.parse().map_err(|_| "not a number in range".to_owned())
}

fn ssrc(value: &str) -> Result<u32, String> {
    let digits = value.strip_prefix("0x").unwrap_or(value);
    u32::from_str_radix(digits, 16).map_err(|_| "not a hexadecimal SSRC".to_owned())
}

fn seconds(value: &str) -> Result<Duration, String> {
    Duration::try_from_secs_f64(number(value)?).map_err(|error| error.to_string())
}

fn milliseconds(value: &str) -> Result<Duration, String> {
    Ok(Duration::from_millis(u64::from(number::<u32>(value)?)))
}

fn ports(value: &str) -> Result<Ports, String> {
    let mut parts = value.split(':');
    let (Some(local), Some(remote)) = (parts.next(), parts.next()) else {
        return Err("not LOCAL:REMOTE[:SSRC]".to_owned());
    };
    let ssrc = parts.next().map(ssrc).transpose()?;
    Ok(Ports { local: number(local)?, remote: number(remote)?, ssrc })
}

fn list<T: Algorithm>(value: &str) -> Result<AlgorithmList<T>, String> {
    let items: Result<Vec<T>, String> = value.split(',').map(algorithm).collect();
    AlgorithmList::new(&items?).ok_or_else(|| "more than seven".to_owned())
}

fn algorithm<T: Algorithm>(name: &str) -> Result<T, String> {
    let mut code = [b' '; 4];
    let octets = name.as_bytes();
    let place = code.get_mut(..octets.len());
    place.ok_or_else(|| format!("{name} is longer than four"))?.copy_from_slice(octets);
    T::from_code(code).ok_or_else(|| format!("{name} is not an algorithm of this kind"))
}
