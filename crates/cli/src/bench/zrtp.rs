//! `rushes bench zrtp`: how long two ends take to agree on keys.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use rushes::zrtp::{AlgorithmList, Kem, KeyAgreement, Opening, ZrtpConfig};
use rushes::{Codec, Context, Security};
use serde_json::json;

use super::table;
use crate::Outcome;

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Two ends in one process, a thread each, over loopback: from the first Hello until both may send and
receive. Rows are interleaved; medians are printed, and the second of the two streams of a session,
which derives its keys from those of the first (Multistream).")]
pub(crate) struct ZrtpArgs {
    /// Agreements of each kind
    #[arg(long, default_value_t = 50)]
    runs: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// How long one agreement may take.
const PATIENCE: Duration = Duration::from_secs(30);

const KINDS: [(&str, KeyAgreement); 6] = [
    ("X25519 + ML-KEM-768", KeyAgreement::Kem(Kem::X25519_ML_KEM_768)),
    ("X448 + ML-KEM-1024", KeyAgreement::Kem(Kem::X448_ML_KEM_1024)),
    ("X25519 (X255)", KeyAgreement::X255),
    ("P-256 (EC25)", KeyAgreement::Ec25),
    ("P-384 (EC38)", KeyAgreement::Ec38),
    ("MODP 3072 (DH3k)", KeyAgreement::Dh3k),
];

pub(crate) fn run(args: &ZrtpArgs) -> anyhow::Result<Outcome> {
    let mut rows = KINDS.map(|(name, kind)| (name, kind, Vec::new(), Vec::new()));
    for _ in 0..args.runs.max(1) {
        for (_, kind, first, second) in &mut rows {
            let [one, other] = agree(*kind)?;
            first.push(one.as_secs_f64() * 1e3);
            second.push(other.as_secs_f64() * 1e3);
        }
    }
    let medians: Vec<(&str, f64, f64)> = rows
        .iter_mut()
        .map(|(name, _, first, second)| (*name, table::median(first), table::median(second)))
        .collect();
    if args.json {
        let object = |(name, first, second): &(&str, f64, f64)| json!({ "name": name, "agreement_ms": first, "multistream_ms": second });
        let rows: Vec<serde_json::Value> = medians.iter().map(object).collect();
        println!("{}", json!({ "runs": args.runs, "rows": rows }));
        return Ok(Outcome::Done);
    }
    println!("milliseconds until both ends may send, loopback, medians of {} runs", args.runs);
    let cells: Vec<Vec<String>> = medians
        .iter()
        .map(|(name, first, second)| {
            vec![(*name).to_owned(), format!("{first:.2}"), format!("{second:.2}")]
        })
        .collect();
    table::print(&["", "agreement", "multistream"], &cells);
    Ok(Outcome::Done)
}

/// How long the first and the second stream of a session take.
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
            let stream = opening.wait(PATIENCE)?.context("no agreement")?;
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
