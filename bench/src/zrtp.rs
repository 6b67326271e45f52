//! `rushes bench zrtp`: the time that two ends take to agree on keys.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use rushes::zrtp::{AlgorithmList, Kem, KeyAgreement, Opening, ZrtpConfig};
use rushes::{Codec, Context, Security};

use crate::Outcome;
use crate::report::{Cell, Figure, median};
use crate::settings::Settings;

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Two ends in one process, a thread each, over loopback: from the first Hello until both may send and
receive. Rows are interleaved; medians are printed, and the second of the two streams of a session,
which derives its keys from those of the first (Multistream).")]
pub(crate) struct ZrtpArgs {
    /// Agreements of each kind
    #[arg(long, default_value_t = 50)]
    runs: usize,
    #[command(flatten)]
    settings: Settings,
}

impl ZrtpArgs {
    /// The arguments for a run of `rushes bench` without a command.
    pub(crate) fn of_all(settings: &Settings) -> Self {
        Self { runs: 50, settings: settings.clone() }
    }
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

pub(crate) fn run(args: &ZrtpArgs) -> anyhow::Result<Outcome> {
    args.settings.report_all(&figures(args)?)?;
    Ok(Outcome::Done)
}

pub(crate) fn figures(args: &ZrtpArgs) -> anyhow::Result<Vec<Figure>> {
    let runs = if args.settings.quick { args.runs.min(10) } else { args.runs.max(1) };
    args.settings.progress(&format!("zrtp: {runs} runs"));
    let mut rows = KINDS.map(|(name, kind)| (name, kind, Vec::new(), Vec::new()));
    for _ in 0..runs {
        for (_, kind, first, second) in &mut rows {
            let [one, other] = agree(*kind)?;
            first.push(one.as_secs_f64() * 1e3);
            second.push(other.as_secs_f64() * 1e3);
        }
    }
    let row = |(name, _, mut first, mut second): (&str, KeyAgreement, Vec<f64>, Vec<f64>)| {
        vec![
            Cell::text(name),
            Cell::Measure(median(&mut first), 2),
            Cell::Measure(median(&mut second), 2),
        ]
    };
    Ok(vec![Figure {
        name: "zrtp",
        title: format!(
            "Key agreement: milliseconds until both ends may send, loopback, medians of {runs} runs"
        ),
        heads: vec!["agreement", "first stream ms", "second stream ms"],
        rows: rows.into_iter().map(row).collect(),
        plots: Vec::new(),
    }])
}

/// The times of the first and the second stream of a session.
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
