//! `rushes texture serve`: sends frames to clients that connect.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::net::resolve;
use rushes::texture::source::Source;
use rushes::texture::{
    Format, LiveHandle, MulticastGroup, Reason, ServerCounts, ServerOptions, Stopped, StoppedBy,
    TextureServer, Timing, Transport,
};
use serde_json::{Value, json};

use super::args::{MulticastArgs, ServeArgs};
use super::live::{Live, gigabits, milliseconds, per_second};
use super::security::Agreed;
use super::source::{Log, Played};
use super::values::HEADER;
use super::{encodable, security, source};
use crate::interrupt::Interrupt;
use crate::latency::Latencies;
use crate::metrics::{Metrics, SERVED, Served};
use crate::report::counted;
use crate::{Outcome, Usage, metrics, report};

/// Interval at which the server is polled, short enough for the 1 024 frames that it remembers.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum number of ended sessions in the final report.
const ENDS_MAX: usize = 100;

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let options = options(args)?;
    check_pipe(args)?;
    encodable::check_gpu(args.quality.quality, args.gpu)?;
    let is_paced = options.timing != Timing::FlatOut;
    if source::is_pipe(&args.source) && !args.report.quiet {
        eprintln!("waiting for the first frame of {}", source::name(&args.source));
    }
    let opened = source::open(&args.source, &args.input, is_paced, &interrupt)?;
    let Some(mut played) = opened else { return Ok(Outcome::Done) };
    let pipe = played.handle();
    if args.gpu {
        #[cfg(feature = "window")]
        {
            played = played.encoded(args.format)?;
        }
    } else {
        encodable::check_server(played.layout().format(), args.format)?;
        encodable::check_server_quality(args.quality.quality, played.layout().format())?;
    }
    if let Some(bound) = args.preload {
        let (loaded, frames) = played.preload(bound)?;
        played = loaded;
        if !args.report.quiet {
            eprintln!("{} in memory", counted(frames as u64, "frame"));
        }
    }
    let host = args.listen.host.as_deref().unwrap_or("0.0.0.0");
    let local = resolve(host, args.listen.port)?;
    let transport = options.transport;
    let metrics = Metrics::start(&args.metrics, args.report.quiet)?;
    let format = options.format.unwrap_or_else(|| played.layout().format());
    let served = Arc::new(Served::new(format.name(), options.pacing));
    metrics.observe(|| served.clone());
    let (log, what) = (played.log(), describe(args, &played, &options));
    let server = TextureServer::serve(local, played, options)
        .with_context(|| format!("cannot serve {} at {local}", source::name(&args.source)))?;
    let live = Live::new(args.report);
    live.print(&format!("serving {what}; listening on {}", server.local_address()));
    let mut watch = Watch { server, log, pipe, live, tally: Tally::new(), served, refused: None };
    watch.run(args, &interrupt);
    // The same Ctrl-C may have ended the program at the other end of the pipe within a frame.
    let cut = watch.log.cut().filter(|_| !interrupt.is_requested());
    let failure = watch.log.failure().or(cut);
    let Watch { server, live, mut tally, served, refused, .. } = watch;
    let local = server.local_address();
    live.finish();
    tally.take_up(&server, &served);
    let (latest, counts) = (server.take_ends(), server.counts());
    // Dropping the server notifies its clients.
    drop(server);
    for (client, end) in latest {
        tally.note_end(client, end);
    }
    print(args, &tally, &counts, (local, transport))?;
    if let Some(why) = failure {
        anyhow::bail!("{why}");
    }
    if let Some((client, end)) = tally.ends.front().filter(|(_, end)| args.once && !is_clean(end)) {
        anyhow::bail!("client {client} did not end the stream: {end}");
    }
    if let Some((client, why)) = refused {
        anyhow::bail!("client {client} was refused: {why}");
    }
    if args.once && counts.frames == 0 && !interrupt.is_requested() {
        anyhow::bail!("no client received a frame");
    }
    Ok(Outcome::Done)
}

/// Returns whether one side ended the session, without an error.
fn is_clean(end: &Stopped) -> bool {
    matches!(end.by, StoppedBy::Own | StoppedBy::Peer) && end.reason == Reason::Ended
}

fn options(args: &ServeArgs) -> anyhow::Result<ServerOptions> {
    let (delivery, mut options) = (&args.delivery, ServerOptions::default());
    options.security = delivery.security.security(delivery.transport)?;
    options.format = args.format;
    options.quality = args.quality.quality;
    options.transport =
        delivery.security.transport(delivery.transport).unwrap_or(options.transport);
    options.units = delivery.units.map_or(options.units, usize::from);
    options.payload = delivery.packet_size.map_or(options.payload, |octets| octets - HEADER);
    options.pacing = args.pacing.unwrap_or(options.pacing);
    options.burst = args.burst.unwrap_or(options.burst);
    options.adaptation = args.adapt.unwrap_or(options.adaptation);
    options.recovery = delivery.recovery;
    options.packing = delivery.packing.unwrap_or(options.packing);
    options.scaling = args.scaling;
    options.fec = args.fec.unwrap_or(options.fec);
    options.multicast = multicast(args)?;
    options.clients_max = if args.once { 1 } else { usize::from(args.clients) };
    options.clients_per_host_max = usize::from(args.clients_per_host);
    options.loops = args.repeat;
    options.timing = match args.timing {
        timing if timing.every_frame => Timing::EveryFrame,
        timing if timing.flat_out => Timing::FlatOut,
        _ => Timing::Live,
    };
    let buffer = delivery.socket_buffer;
    (options.udp.send_buffer, options.udp.receive_buffer) = (buffer, buffer);
    (options.tcp.send_buffer, options.tcp.receive_buffer) = (buffer, buffer);
    Ok(options)
}

/// Returns the multicast group.
fn multicast(args: &ServeArgs) -> anyhow::Result<Option<MulticastGroup>> {
    let MulticastArgs { multicast, interface, ttl } = &args.multicast;
    let secured = args.delivery.security.is_secure();
    let reason = match multicast {
        Some(_) if secured => "a multicast group is not encrypted: leave out --multicast",
        None if args.delivery.transport == Some(Transport::Multicast) => {
            "--transport multicast needs a group, for example --multicast 239.255.0.1:7100"
        }
        _ => {
            let group = |address: &SocketAddr| {
                let mut group = MulticastGroup::new(*address);
                (group.interface, group.ttl) = (interface.clone(), *ttl);
                group
            };
            return Ok(multicast.as_ref().map(group));
        }
    };
    Err(Usage(reason.to_owned()).into())
}

/// Describes the served source.
fn describe(args: &ServeArgs, played: &Played, options: &ServerOptions) -> String {
    let layout = played.layout();
    let format = options.format.unwrap_or_else(|| layout.format());
    let is_as = if format == layout.format() { String::new() } else { format!(" as {format}") };
    let group = options.multicast.as_ref().map(|group| format!(", also to {}", group.address));
    format!(
        "{}: {}×{} {}{is_as} at {} frames/s{}",
        source::name(&args.source),
        layout.width(),
        layout.height(),
        layout.format(),
        played.rate(),
        group.unwrap_or_default(),
    )
}

/// Checks that nothing requires a pipe or a device to be read again.
fn check_pipe(args: &ServeArgs) -> anyhow::Result<()> {
    let option = match (args.repeat, args.preload) {
        (true, _) => "--loop",
        (_, Some(_)) => "--preload",
        _ => return Ok(()),
    };
    if !source::is_pipe(&args.source) {
        return Ok(());
    }
    let name = source::name(&args.source);
    Err(Usage(format!("{name} can be read only once: {option} needs a file")).into())
}

/// Returns the message about a source that is ahead of its rate, as a camera never is.
fn ahead(args: &ServeArgs) -> String {
    format!(
        "{} is ahead of real time; it is read at its rate (--fps sets another, --flat-out sends as \
         fast as clients receive)",
        source::name(&args.source)
    )
}

/// The state that is polled while the server runs.
struct Watch {
    server: TextureServer,
    log: Arc<Log>,
    /// The source, if it is a pipe or a device.
    pipe: Option<LiveHandle>,
    live: Live,
    tally: Tally,
    served: Arc<Served>,
    /// The only client of `--once`, if it was refused.
    refused: Option<(SocketAddr, String)>,
}

impl Watch {
    /// Returns whether a client was refused while there was no other. One without the key is no client.
    fn was_refused(&mut self, counts: &ServerCounts) -> bool {
        let mut refused = self.server.take_refusals().into_iter();
        let refused = refused.rfind(|(_, why)| !matches!(why.reason, Reason::Busy | Reason::Key));
        self.refused =
            refused.filter(|_| counts.clients == 0).map(|(client, why)| (client, why.text));
        self.refused.is_some()
    }

    /// Runs until the end.
    fn run(&mut self, args: &ServeArgs, interrupt: &Interrupt) {
        let start = Instant::now();
        let (mut clients, mut is_short, mut is_ahead, mut is_over) = (0, false, false, false);
        while !interrupt.is_requested() && self.log.failure().is_none() {
            if args.duration.is_some_and(|duration| start.elapsed() >= duration) {
                return;
            }
            interrupt.sleep_until(Instant::now() + POLL_INTERVAL);
            self.tally.take_up(&self.server, &self.served);
            for status in self.tally.agreed.take_up(self.server.sas()) {
                self.live.print(&security::sas_text("the client", &status));
            }
            // Clients that are still connected after the end of the source have frames left to
            // receive.
            let has_ended = self.pipe.as_ref().is_some_and(LiveHandle::has_ended);
            let counts = self.server.counts();
            if counts.clients > clients {
                self.live.print(&format!("{} now", counted(counts.clients as u64, "client")));
            }
            clients = counts.clients;
            let shortage = self.server.shortage();
            if shortage.is_some() != is_short {
                is_short = !is_short;
                self.live.print(&shortage.map_or_else(
                    || "new clients are accepted again".into(),
                    |why| format!("new clients have to wait ({why}); connected clients continue"),
                ));
            }
            let ends = self.server.take_ends();
            is_over |= args.once && !ends.is_empty();
            for (client, end) in ends {
                self.live.print(&format!("client {client} disconnected: {end}"));
                self.tally.note_end(client, end);
            }
            is_over = is_over || args.once && self.was_refused(&counts);
            is_over |= has_ended && counts.clients == 0;
            // A client may have lost the last message. TCP sends it again as long as the server runs.
            if is_over && self.server.counts().closing == 0 {
                return;
            }
            if !is_ahead && self.pipe.as_ref().is_some_and(LiveHandle::is_ahead) {
                is_ahead = true;
                self.live.print(&ahead(args));
            }
            if let Some(since) = self.live.due() {
                let line = self.tally.line(&counts, since);
                self.live.show(&line, || self.tally.object(&counts));
                self.tally.begin_interval(&counts);
            }
        }
    }
}

/// Statistics of the server, since the last line and in total.
struct Tally {
    start: Instant,
    /// Packets lost, as reported by clients.
    lost: u64,
    before: ServerCounts,
    latest: Latencies,
    all: Latencies,
    ends: VecDeque<(SocketAddr, Stopped)>,
    clients: u64,
    agreed: Agreed,
}

impl Tally {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            lost: 0,
            before: ServerCounts::default(),
            latest: Latencies::new(),
            all: Latencies::new(),
            ends: VecDeque::new(),
            clients: 0,
            agreed: Agreed::default(),
        }
    }

    fn take_up(&mut self, server: &TextureServer, served: &Served) {
        for frame in server.take_frames() {
            self.latest.count(frame.took);
            self.all.count(frame.took);
            served.count(&frame);
        }
        self.lost = server.reports().iter().map(|report| report.packets_lost).sum();
        served.set(server.counts(), self.lost);
    }

    fn note_end(&mut self, client: SocketAddr, end: Stopped) {
        self.clients += 1;
        if self.ends.len() == ENDS_MAX {
            self.ends.pop_front();
        }
        self.ends.push_back((client, end));
    }

    /// Returns the number of clients that are or were connected.
    fn served(&self, counts: &ServerCounts) -> u64 {
        self.clients + counts.clients as u64
    }

    fn line(&self, counts: &ServerCounts, since: Duration) -> String {
        let clients = counted(counts.clients as u64, "client");
        let frames = counts.frames - self.before.frames;
        if frames == 0 && counts.clients == 0 {
            return clients;
        }
        // A frame is counted once for each client.
        let each = per_second(frames, since) / counts.clients.max(1) as f64;
        let mut line = format!(
            "{clients}  {each:.1} fps  {:.2} Gbit/s  encode+send {} / {} ms (p50 / p99)",
            gigabits(counts.octets - self.before.octets, since),
            milliseconds(self.latest.quantile(0.5)),
            milliseconds(self.latest.quantile(0.99)),
        );
        if counts.dropped > 0 {
            let now = counts.dropped - self.before.dropped;
            let _ = write!(
                line,
                "  DROPPED {} now, {} in all",
                counted(now, "picture"),
                counts.dropped
            );
        }
        if counts.steps_down > 0 {
            let (down, up) = (counts.steps_down, counts.steps_up);
            let _ = write!(line, "  adapted {down} times down, {up} up");
        }
        if counts.packets_retransmitted > 0 {
            let _ =
                write!(line, "  sent {} again", counted(counts.packets_retransmitted, "packet"));
        }
        if self.lost > 0 {
            let _ = write!(line, "  clients lost {} packets", self.lost);
        }
        line
    }

    fn begin_interval(&mut self, counts: &ServerCounts) {
        self.before = *counts;
        self.latest = Latencies::new();
    }

    fn object(&self, counts: &ServerCounts) -> Value {
        let time = self.start.elapsed();
        let took = |share| self.all.quantile(share).as_secs_f64() * 1e3;
        let mut object = json!({
            "clients": counts.clients,
            "clients_served": self.served(counts),
            "gigabits_per_second": gigabits(counts.octets, time),
            "seconds": time.as_secs_f64(),
            "zrtp": self.agreed.objects(),
            "encode_and_send_ms": {
                "p50": took(0.5), "p99": took(0.99), "most": self.all.most().as_secs_f64() * 1e3,
            },
        });
        if let Value::Object(object) = &mut object {
            object.extend(metrics::object(&SERVED, counts));
        }
        object
    }
}

fn print(
    args: &ServeArgs,
    tally: &Tally,
    counts: &ServerCounts,
    (local, transport): (SocketAddr, Transport),
) -> anyhow::Result<()> {
    if args.report.json {
        let mut object = tally.object(counts);
        let ends = tally.ends.iter().map(
            |(client, end)| json!({ "client": client.to_string(), "reason": end.to_string() }),
        );
        object["source"] = source::name(&args.source).into();
        object["listen"] = local.to_string().into();
        object["format"] = args.format.map(Format::name).into();
        object["transport"] = transport.to_string().to_lowercase().into();
        object["security"] = args.delivery.security.name().into();
        object["ends"] = ends.collect();
        report::print_line(object)?;
    } else if !args.report.quiet {
        eprintln!(
            "sent {} to {}, {} octets, encode+send {} / {} ms (p50 / p99)",
            counted(counts.frames, "frame"),
            counted(tally.served(counts), "client"),
            counts.octets,
            milliseconds(tally.all.quantile(0.5)),
            milliseconds(tally.all.quantile(0.99)),
        );
        if counts.dropped > 0 {
            eprintln!(
                "dropped {}: encoding and sending did not keep up with the source",
                counted(counts.dropped, "picture")
            );
        }
    }
    Ok(())
}
