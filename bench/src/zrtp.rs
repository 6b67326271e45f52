//! `rushes bench zrtp`: the time that two ends take to agree on keys.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use rushes::zrtp::{AlgorithmList, Kem, KeyAgreement, Opening, ZrtpConfig};
use rushes::{Codec, Context, Security};

use crate::captions;
use crate::ends::in_turns;
use crate::report::{Figure, Table, quantile};
use crate::settings::{Measure, Settings};
use crate::values::parse_count;

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Two ends in one process, a thread each, over loopback: from the first Hello until both may send and
receive. Rows are interleaved; medians are printed, and the second of the two streams of a session,
which derives its keys from those of the first (Multistream).")]
pub(crate) struct ZrtpArgs {
    /// Agreements of each kind
    #[arg(long, default_value_t = 50, value_parser = parse_count)]
    runs: usize,
}

/// Timeout of one agreement.
const AGREEMENT_TIMEOUT: Duration = Duration::from_secs(30);

const KINDS: [(&str, KeyAgreement); 5] = [
    ("X25519 + ML-KEM-768", KeyAgreement::Kem(Kem::X25519_ML_KEM_768)),
    ("X25519 (X255)", KeyAgreement::X255),
    ("P-256 (EC25)", KeyAgreement::Ec25),
    ("P-384 (EC38)", KeyAgreement::Ec38),
    ("MODP 3072 (DH3k)", KeyAgreement::Dh3k),
];

impl Measure for ZrtpArgs {
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        let runs = settings.choose(self.runs.max(1), self.runs.min(10));
        settings.progress(&format!("zrtp: {runs} runs"));
        let results = in_turns(&KINDS, runs, |_, (_, kind)| agree(*kind))?;
        let rows: Vec<_> = KINDS.iter().zip(results).collect();
        let millis = |times: &[[Duration; 2]], stream: usize, share| {
            let times = times.iter().map(|time| time[stream].as_secs_f64() * 1e3);
            quantile(&times.collect::<Vec<_>>(), share)
        };
        let usual = ZrtpConfig::default().algorithms.key_agreements;
        let settings = format!("loopback, medians and quartiles of {runs} runs");
        let table = Table::of(&rows)
            .text("agreement", |((name, _), _)| *name)
            .defaults(|((_, kind), _)| usual.as_slice().first() == Some(kind))
            .measure("first stream ms", 2, |(_, times)| millis(times, 0, 0.5))
            .measure("p25 ms", 2, |(_, times)| millis(times, 0, 0.25))
            .measure("p75 ms", 2, |(_, times)| millis(times, 0, 0.75))
            .measure("second stream ms", 2, |(_, times)| millis(times, 1, 0.5));
        Ok(vec![table.figure(&captions::ZRTP, settings)])
    }
}

/// Returns the times of the first and the second stream of a session.
fn agree(kind: KeyAgreement) -> anyhow::Result<[Duration; 2]> {
    let mut config = ZrtpConfig::default();
    config.algorithms.key_agreements = AlgorithmList::new(&[kind]).context("one kind")?;
    let session = || Context::new().session("127.0.0.1");
    let (near, far) = (session()?, session()?);
    let mut times = [Duration::ZERO; 2];
    let mut streams = Vec::new();
    for time in &mut times {
        let stream = |session: &rushes::Session| {
            session.stream(Codec::Generic).security(Security::Zrtp(config.clone()))
        };
        let mut receiving = stream(&far).begin()?;
        let port = receiving.local_address().port();
        let wait = |opening: &mut Opening| -> anyhow::Result<_> {
            let stream = opening.wait(AGREEMENT_TIMEOUT)?.context("no agreement")?;
            Ok((stream, Instant::now()))
        };
        let start = Instant::now();
        let (near, far) = std::thread::scope(|scope| {
            let far = scope.spawn(|| wait(&mut receiving));
            let near = stream(&near).remote_port(port).begin().map_err(anyhow::Error::from);
            let near = near.and_then(|mut opening| wait(&mut opening));
            (near, far.join())
        });
        let far = far.map_err(|_| anyhow::anyhow!("an end panicked"))??;
        let near = near?;
        *time = near.1.max(far.1) - start;
        streams.push((near.0, far.0));
    }
    Ok(times)
}
