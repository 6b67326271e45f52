//! `rushes bench ciphers`: the ciphers alone, and the work of a sender and a receiver around them.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use rushes::payload::PayloadFormat;
use rushes::payload::generic::Generic;
use rushes::srtp::{Backend, MasterKey, Policy, Protector, Suite, Unprotector};
use rushes_crypto::{Aead, CounterMode, LANES_MAX, MAC_LEN, Mac, Message, TAG_LEN};
use rushes_proto::stream::{Sender, SenderConfig};
use rushes_proto::{Batch, ClockRate, FrameRate, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};

use crate::cpu::cpu_time;
use crate::ends::in_turns;
use crate::report::{Caption, Figure, Table, median, medians_of};
use crate::settings::{Measure, Settings};

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
One core, without sockets, packets of 1 400 octets of payload; nanoseconds of CPU time for each, rows
in turns, medians. The other processes of the machine disturb CPU time less than goodput.

  library    which computes the ciphers: aws-lc, which is built in, and Intel's ipsec-mb, in a build
             with the feature `ipsec-mb` and where that library is installed
  cipher     the suite's cipher and tag alone, in place, tags of 16 packets at a time: the limit
  sender     a frame is split, copied, encrypted and tagged, as before a socket
  receiver   packets are authenticated and decrypted, as after a socket
  of cipher  the whole work relative to the cipher alone")]
pub(crate) struct CiphersArgs {
    /// Turns of each row
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=1000))]
    turns: u16,
    /// Suites to measure; the four usual ones by default
    #[arg(long, value_name = "SUITE")]
    suite: Vec<Suite>,
}

static CIPHERS: Caption = Caption {
    name: "ciphers",
    title: "Ciphers alone, and the work of a sender and a receiver around them",
    meaning: "The nearer sender and receiver are to the cipher, the less Rushes adds to it. A row of \
              another library shows what that one saves.",
    method: "One core, without sockets; CPU time; rows take turns.",
    source: None,
};

const USUAL: [Suite; 4] = [
    Suite::AesCm128HmacSha1_80,
    Suite::AesCm256HmacSha1_80,
    Suite::AeadAes128Gcm,
    Suite::AeadAes256Gcm,
];

/// Octets of payload of a packet.
const PAYLOAD_LEN: usize = 1400;

/// Octets in a packet's header.
const HEADER_LEN: usize = 12;

/// Packets that are received together.
const PACKETS: usize = 64;

/// Nanoseconds for each packet.
#[derive(Clone, Copy, Debug)]
struct Costs {
    cipher: f64,
    sender: f64,
    receiver: f64,
}

/// The medians of a suite with a library.
#[derive(Clone, Debug)]
struct Row {
    suite: Suite,
    library: String,
    costs: Costs,
}

impl Measure for CiphersArgs {
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        let turns = usize::from(settings.choose(self.turns, self.turns.min(3)));
        let time = Duration::from_millis(settings.choose(60, 20));
        settings.progress(&format!("ciphers: {turns} turns"));
        let before = Backend::current();
        let mut libraries = vec![Backend::AwsLc];
        match Backend::IpsecMb.check() {
            Ok(()) => libraries.push(Backend::IpsecMb),
            Err(why) => settings.progress(&format!("ciphers: only {}: {why}", Backend::AwsLc)),
        }
        let suites = if self.suite.is_empty() { &USUAL[..] } else { &self.suite };
        let of_suite = |suite: &Suite| libraries.iter().map(|library| (*suite, *library)).collect();
        let ways: Vec<(Suite, Backend)> = suites.iter().flat_map::<Vec<_>, _>(of_suite).collect();
        let results = in_turns(&ways, turns, |_, (suite, library)| {
            library.choose()?;
            costs(*suite, time)
        });
        before.choose()?;
        let of = |runs: &[Costs], cost: fn(&Costs) -> f64| median(runs.iter().map(cost));
        let rows = ways.iter().zip(results?).map(|((suite, library), runs)| Row {
            suite: *suite,
            library: library.to_string(),
            costs: Costs {
                cipher: of(&runs, |costs| costs.cipher),
                sender: of(&runs, |costs| costs.sender),
                receiver: of(&runs, |costs| costs.receiver),
            },
        });
        let rows: Vec<Row> = rows.collect();
        let settings = format!("{PAYLOAD_LEN} octets of payload, {}", medians_of(turns));
        Ok(vec![figure(&rows, settings)])
    }
}

fn figure(rows: &[Row], settings: String) -> Figure {
    Table::of(rows)
        .text("suite", |row| row.suite.name())
        .text("library", |row| row.library.as_str())
        .defaults(|row| row.library == Backend::AwsLc.to_string())
        .measure("cipher ns", 0, |row| row.costs.cipher)
        .measure("sender ns", 0, |row| row.costs.sender)
        .measure("% of cipher", 0, |row| 100.0 * row.costs.sender / row.costs.cipher)
        .measure("receiver ns", 0, |row| row.costs.receiver)
        .measure("% of the cipher", 0, |row| 100.0 * row.costs.receiver / row.costs.cipher)
        .figure(&CIPHERS, settings)
}

fn costs(suite: Suite, time: Duration) -> anyhow::Result<Costs> {
    Ok(Costs {
        cipher: cipher(suite, time)?,
        sender: sender(suite, time)?,
        receiver: receiver(suite, time)?,
    })
}

/// Returns the nanoseconds of CPU time that `work` takes for each packet; it returns how many it
/// has processed.
fn time_of(time: Duration, mut work: impl FnMut() -> anyhow::Result<usize>) -> anyhow::Result<f64> {
    let (start, before, mut packets) = (Instant::now(), cpu_time(), 0);
    while start.elapsed() < time {
        packets += work()?;
    }
    let spent = cpu_time().saturating_sub(before);
    // Where CPU time is not known, the time of the clock is.
    let spent = if spent.is_zero() { start.elapsed() } else { spent };
    Ok(spent.as_nanos() as f64 / packets as f64)
}

/// The suite's cipher and tag alone, in place.
fn cipher(suite: Suite, time: Duration) -> anyhow::Result<f64> {
    let key = vec![0x2d; suite.key_len()];
    let mut packets = vec![[0x55_u8; PAYLOAD_LEN + TAG_LEN]; LANES_MAX];
    let mut n = 0_u64;
    if suite.is_aead() {
        let cipher = Aead::new(&key)?;
        return time_of(time, || {
            for packet in &mut packets {
                n += 1;
                let (payload, tag) = black_box(packet).split_at_mut(PAYLOAD_LEN);
                let mut nonce = [0; 12];
                nonce[4..].copy_from_slice(&n.to_be_bytes());
                cipher.seal(nonce, &[0; HEADER_LEN], payload, &[], tag)?;
            }
            Ok(LANES_MAX)
        });
    }
    let (cipher, mac) = (CounterMode::new(&key)?, Mac::new(&[0x2d; MAC_LEN]));
    time_of(time, || {
        for packet in &mut packets {
            n += 1;
            cipher.apply(
                (u128::from(n) << 16).to_be_bytes(),
                &mut black_box(packet)[..PAYLOAD_LEN],
            )?;
        }
        let message = |n: usize| Message { body: &packets[n][..PAYLOAD_LEN], suffix: [0; 4] };
        let messages: [Message<'_>; LANES_MAX] = std::array::from_fn(message);
        let mut tags = [[0; MAC_LEN]; LANES_MAX];
        mac.sign_many(&messages, &mut tags);
        black_box(&tags);
        Ok(LANES_MAX)
    })
}

fn key(suite: Suite) -> anyhow::Result<MasterKey> {
    Ok(MasterKey::new(suite, &vec![0x2d; suite.key_and_salt_len()])?)
}

/// The whole work of a sender before its socket: frames of 47 full packets.
fn sender(suite: Suite, time: Duration) -> anyhow::Result<f64> {
    let policy = Policy::new(suite);
    let config = SenderConfig {
        ssrc: Ssrc(1),
        payload_type: PayloadType::new(96).context("96 is a payload type")?,
        first_sequence: SequenceNumber(0),
        first_timestamp: RtpTimestamp(0),
        clock_rate: ClockRate::VIDEO,
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: HEADER_LEN + PAYLOAD_LEN + policy.overhead(0),
    };
    let format: Arc<dyn PayloadFormat> = Arc::new(Generic::default());
    let sender = Sender::new(format.packetiser(), config)?;
    let mut sender = sender.secured(Protector::new(&policy, &key(suite)?)?)?;
    let (frame, mut batch) = (vec![0x5a; 470 * PAYLOAD_LEN], Batch::new());
    time_of(time, || {
        let mut packets = 0;
        let mut outgoing = sender.push(&frame, None)?;
        while outgoing.fill(&mut batch) {
            packets += batch.lengths().len();
            black_box(batch.bytes());
        }
        Ok(packets)
    })
}

/// The whole work of a receiver with packets that have arrived, up to their payloads.
fn receiver(suite: Suite, time: Duration) -> anyhow::Result<f64> {
    let policy = Policy::new(suite);
    let mut protector = Protector::new(&policy, &key(suite)?)?;
    let mut unprotector = Unprotector::new(&policy, &key(suite)?)?;
    let mut packets = vec![Vec::new(); PACKETS];
    let (start, mut spent, mut n) = (Instant::now(), Duration::ZERO, 0_u32);
    while start.elapsed() < time {
        for packet in &mut packets {
            packet.clear();
            packet.extend_from_slice(&[0x80, 96, (n >> 8) as u8, n as u8, 0, 0, 0, 0, 0, 0, 0, 1]);
            packet.resize(HEADER_LEN + PAYLOAD_LEN, 0);
            protector.protect(packet)?;
            n += 1;
        }
        let mut outcomes = [Ok(0); PACKETS];
        let mut group: Vec<&mut [u8]> = packets.iter_mut().map(Vec::as_mut_slice).collect();
        let (before, clock) = (cpu_time(), Instant::now());
        unprotector.unprotect_batch(&mut group, &mut outcomes);
        let cpu = cpu_time().saturating_sub(before);
        spent += if cpu.is_zero() { clock.elapsed() } else { cpu };
        let is_whole = |outcome: &Result<usize, _>| *outcome == Ok(HEADER_LEN + PAYLOAD_LEN);
        anyhow::ensure!(outcomes.iter().all(is_whole), "{suite}: a packet was refused");
    }
    Ok(spent.as_nanos() as f64 / f64::from(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_is_measured_with_every_library() {
        let suites = vec![Suite::AeadAes128Gcm, Suite::AesCm128HmacSha1_32];
        let args = CiphersArgs { turns: 1, suite: suites };
        let settings = Settings { quick: true, json: true, ..Settings::default() };
        let rows = args.figures(&settings).unwrap()[0].json()["rows"].clone();
        let rows = rows.as_array().unwrap();
        let libraries = if Backend::IpsecMb.check().is_ok() { 2 } else { 1 };
        assert_eq!(rows.len(), 2 * libraries);
        assert!(rows.iter().all(|row| row["sender ns"].as_f64() > Some(0.0)), "{rows:?}");
    }
}
