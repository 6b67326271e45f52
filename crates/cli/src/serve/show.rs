//! Shows a file or a live source, or what is published, until it is stopped.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::file::{BrowserFrames, MediaReader};
use rushes::{Codec, Context};
use rushes_whip::{IceServer, Identity, Origins, Server, ServerConfig};

use super::args::ServeArgs;
use super::feed::Feed;
use super::hub::{Hub, Track};
use super::sessions::Sessions;
use crate::args::StreamArgs;
use crate::ice::IceServers;
use crate::interrupt::Interrupt;
use crate::progress::note;
use crate::schedule::Schedule;
use crate::send::{Film, beginning};
use crate::source::Source;
use crate::{Outcome, Usage, describe};

const NO_THREAD: &str = "cannot start a thread";
/// How often the counts are shown.
const SHOW_INTERVAL: Duration = Duration::from_millis(500);
/// How long the end of the show may take to reach the viewers.
const TAIL_TIME: Duration = Duration::from_secs(1);
/// How long sessions may take to end.
const END_TIME: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let of_stream = StreamArgs { codec: args.codec, ..StreamArgs::default() };
    let mut sources = match &args.file {
        Some(file) => Source::all(file, args.audio.as_deref(), &of_stream, args.output.quiet)?,
        None => Vec::new(),
    };
    let readers = open_all(args, &mut sources)?;
    let tracks = sources.iter().map(track).collect::<anyhow::Result<Vec<_>>>()?;
    let takes_publisher = tracks.is_empty();
    let hub = Arc::new(Hub::new(tracks));
    let sessions = Sessions::new(Context::new(), hub.clone(), takes_publisher, args.sessions);
    let servers = args.ice.read()?;
    let links = links(args, &servers);
    let sessions = Arc::new(sessions.servers(servers));
    let server = serve(args, sessions.clone(), (takes_publisher, links))?;
    say_where(args, &server);
    let film = Film::new(sources.len(), &interrupt);
    let shown = show(args, &film, &hub, (sources, readers));
    hub.end();
    sessions.drain(TAIL_TIME);
    // From here on there are no further sessions.
    drop(server);
    sessions.end(END_TIME);
    shown?;
    let (frames, _) = hub.counts();
    if !args.output.quiet {
        let left_out = hub.left_out();
        note!(
            "shown: {frames} frames; {left_out} not sent to viewers that were behind or not reached"
        );
    }
    Ok(Outcome::Done)
}

/// Shows all sources, each on a thread of its own, until the user stops it or they have ended.
fn show(
    args: &ServeArgs,
    film: &Film<'_>,
    hub: &Hub,
    (sources, mut readers): (Vec<Source>, Vec<Option<MediaReader>>),
) -> anyhow::Result<()> {
    let beginning = beginning(&mut readers)?;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (track, (source, reader)) in sources.into_iter().zip(readers).enumerate() {
            let start = || {
                let declared = reader.as_ref().and_then(MediaReader::frame_rate);
                let requested = args.fps.filter(|_| track == 0);
                let rate = declared.or(source.frame_rate);
                let schedule = Schedule::new(requested, rate, source.clock_rate);
                let schedule = if source.is_track() {
                    schedule.with_origin(beginning.decoded)
                } else {
                    schedule.with_delay(beginning.delay())
                };
                let (frames, is_quiet) = (frames_of(&source)?, args.output.quiet);
                let (repeat, fps) = (args.repeat, args.fps);
                let feed =
                    Feed { source, track, schedule, film, hub, repeat, fps, frames, is_quiet };
                let run = move || {
                    let _guard = film.stop.guard();
                    feed.run(reader).inspect_err(|_| film.stop.fail())
                };
                let named = thread::Builder::new().name("rushes-show".to_owned());
                named.spawn_scoped(scope, run).context(NO_THREAD)
            };
            // The sources that are shown already end, too.
            threads.push(start().inspect_err(|_| film.stop.fail())?);
        }
        wait(args, film, hub, || threads.iter().all(thread::ScopedJoinHandle::is_finished));
        for thread in threads {
            thread.join().map_err(|_| anyhow::anyhow!("a thread that shows frames panicked"))??;
        }
        Ok(())
    })
}

/// Opens all files; a live source is opened later.
fn open_all(args: &ServeArgs, sources: &mut [Source]) -> anyhow::Result<Vec<Option<MediaReader>>> {
    let open = |source: &mut Source| {
        if source.is_live() { Ok(None) } else { source.open(args.fps).map(Some) }
    };
    sources.iter_mut().map(open).collect()
}

/// Returns what prepares the frames of a source for browsers, if they need it.
fn frames_of(source: &Source) -> anyhow::Result<Option<BrowserFrames>> {
    if ![Codec::H264, Codec::H265].contains(&source.codec) {
        return Ok(None);
    }
    let name = source.name();
    Ok(Some(BrowserFrames::new(source.codec, Path::new(&name), source.is_live())?))
}

/// Returns a source as viewers are told of it.
fn track(source: &Source) -> anyhow::Result<Track> {
    if source.codec.encoding.is_none() {
        let reason = format!("browsers cannot play {}", source.codec.title);
        return Err(Usage(reason).into());
    }
    let encoding = if source.is_live() { None } else { Some(describe::encoding_of(source)?) };
    Ok(Track { codec: source.codec, encoding })
}

/// Returns the servers that clients are told of: by their names, as these are given here.
fn links(args: &ServeArgs, servers: &IceServers) -> Vec<IceServer> {
    let uri = |scheme: &str, server: &str| match server.split_once(':') {
        Some((known, _)) if known.eq_ignore_ascii_case(scheme) => server.to_owned(),
        _ => format!("{scheme}:{server}"),
    };
    let mut links = Vec::new();
    if let Some(stun) = &args.ice.stun {
        links.push(IceServer { uri: uri("stun", stun), username: None, credential: None });
    }
    if let (Some(turn), Some(login)) = (&args.ice.turn, &servers.turn)
        && args.share_turn
    {
        let (username, credential) = (login.user.clone(), login.password.0.clone());
        let (username, credential) = (Some(username), Some(credential));
        links.push(IceServer { uri: uri("turn", turn), username, credential });
    }
    links
}

/// Starts the HTTP server.
fn serve(
    args: &ServeArgs,
    sessions: Arc<Sessions>,
    (publish, ice_servers): (bool, Vec<IceServer>),
) -> anyhow::Result<Server> {
    let read = |file: &PathBuf| fs::read(file).with_context(|| file.display().to_string());
    let identity = match (&args.tls_certificate, &args.tls_key) {
        (Some(chain), Some(key)) => Some(Identity::from_pem(&read(chain)?, &read(key)?)?),
        _ => None,
    };
    let token = args.token.read()?;
    let origins = if args.origins.iter().any(|origin| origin == "*") {
        Origins::Any
    } else if args.origins.is_empty() {
        Origins::Same
    } else {
        Origins::List(args.origins.clone())
    };
    let config = ServerConfig {
        token,
        identity,
        origins,
        publish,
        sessions_max: args.sessions,
        ice_servers,
        ..ServerConfig::default()
    };
    let host = args.http.host.as_deref().unwrap_or("127.0.0.1");
    let address = rushes::net::resolve(host, args.http.port)?;
    Ok(Server::bind(&[address], config, sessions)?)
}

/// Says where the page is.
fn say_where(args: &ServeArgs, server: &Server) {
    if args.output.quiet {
        return;
    }
    let scheme = if server.is_encrypted() { "https" } else { "http" };
    for address in server.local_addresses() {
        note!("open {scheme}://{address}/ in a browser; WHEP at /whep, WHIP at /whip");
    }
}

/// Waits until the user stops the show, or it is over.
fn wait(args: &ServeArgs, film: &Film<'_>, hub: &Hub, is_over: impl Fn() -> bool) {
    let mut shown = Instant::now();
    let mut before = None;
    while !film.stop.is_requested() && (args.file.is_none() || !is_over()) {
        rushes::sleep_until(Instant::now() + Duration::from_millis(50));
        let (_, viewers) = hub.counts();
        if shown.elapsed() >= SHOW_INTERVAL && before != Some(viewers) && !args.output.quiet {
            if before.is_some() || viewers > 0 {
                note!("{viewers} watching");
            }
            (shown, before) = (Instant::now(), Some(viewers));
        }
    }
}
