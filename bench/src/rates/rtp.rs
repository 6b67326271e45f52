//! The two sides over streams.

use anyhow::Context as _;
use rushes::{Context, FrameRate, Pacing};

use super::side::{Done, HOST, Listening, POLL_INTERVAL, TrialArgs, print_port, read_port};

pub(super) fn send(args: &TrialArgs) -> anyhow::Result<Done> {
    let sequence = args.sequence()?;
    let rate = FrameRate::from_f64(args.rate).context("no such rate of access units")?;
    let pacing = if args.paced { Pacing::default() } else { Pacing::Off };
    let port = read_port()?;
    let builder = Context::new()
        .session(HOST)?
        .stream(sequence.codec)
        .remote_port(port)
        .send_path(args.send_path)
        .frame_rate(rate)
        .pacing(pacing);
    let mut stream = args.stream(builder)?.open()?;
    args.keep_schedule(|n| {
        let unit = sequence.unit(n);
        stream.push_frame(unit, None)?;
        Ok(unit.len() as u64)
    })
}

pub(super) fn receive(args: &TrialArgs) -> anyhow::Result<Done> {
    let session = Context::new().session_any().local_address(HOST)?;
    let codec = args.codec;
    let builder = session.stream(codec).receive_path(args.receive_path).probation(1);
    let mut stream = args.stream(builder)?.open()?;
    print_port(stream.local_address().port())?;
    let (mut listening, mut done) = (Listening::to(args.units), Done::default());
    while listening.goes_on(&done) {
        if let Some(frame) = stream.pull_frame(POLL_INTERVAL)? {
            listening.note_arrival();
            listening.count(&mut done, frame.len());
        }
    }
    Ok(done)
}
