//! Memory and file descriptors of idle streams.

use anyhow::Context as _;

use super::Outcome;
use super::side::{configured, session, ssrc};

/// Lets this process open so many files, if it may.
pub(super) fn allow_descriptors(needed: u64) {
    #[cfg(unix)]
    {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
            && soft < needed
        {
            // If it may not, opening fails with a clear error.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, needed.min(hard), hard);
        }
    }
    #[cfg(not(unix))]
    let _ = needed;
}

/// Returns the memory and the descriptors of each of `streams` idle streams.
pub(super) fn idle(streams: usize, one_port: bool, rtcp: bool) -> anyhow::Result<Outcome> {
    let session = session()?;
    let open = |n: usize, port: Option<u16>| {
        let mut builder = configured(&session, rtcp, false)?.ssrc(ssrc(0, n));
        builder = builder.remote_ssrc(ssrc(1, n)).remote_port(9);
        if let Some(port) = port {
            builder = builder.local_port(port);
        }
        anyhow::Ok(builder.open()?)
    };
    // The first stream pays for what all of the process share.
    let first = open(0, None)?;
    let port = one_port.then(|| first.local_address().port());
    let before = (resident()?, descriptors()?);
    let mut opened = Vec::with_capacity(streams);
    for n in 1..=streams {
        opened.push(open(n, port)?);
    }
    let after = (resident()?, descriptors()?);
    let of_each = |before: u64, after: u64| after.saturating_sub(before) as f64 / streams as f64;
    Ok(Outcome {
        memory: of_each(before.0, after.0),
        descriptors: of_each(before.1, after.1),
        ..Outcome::default()
    })
}

/// Returns the octets of memory that this process has in use, of those that are its own.
pub(super) fn resident() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("needs /proc")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()).context("no RssAnon")?;
    Ok(kilobytes.parse::<u64>()? << 10)
}

fn descriptors() -> anyhow::Result<u64> {
    Ok(std::fs::read_dir("/proc/self/fd").context("needs /proc")?.count() as u64)
}
