//! Shows a file or a live source, or what is published, until it is stopped.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::file::{BrowserFrames, MediaReader};
use rushes::{Codec, Context, FrameRate};
use rushes_whip::{IceServer, Identity, Origins, Server, ServerConfig};
use serde_json::json;

use super::args::ServeArgs;
use super::feed::Feed;
use super::hub::{Hub, Track};
use super::recording::Recordings;
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
/// How long sessions may take to end, and to finish a recording.
const END_TIME: Duration = Duration::from_secs(1);
const RECORDING_END_TIME: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let of_stream = StreamArgs { codec: args.codec, ..StreamArgs::default() };
    let mut sources = match &args.file {
        Some(file) => Source::all(file, args.audio.as_deref(), &of_stream, args.output.quiet)?,
        None => Vec::new(),
    };
    args.key_frames.check(&sources, args.output.json)?;
    let readers = open_all(args, &mut sources)?;
    let tracks = sources.iter().map(track).collect::<anyhow::Result<Vec<_>>>()?;
    let takes_publisher = tracks.is_empty();
    let hub = Arc::new(Hub::new(tracks));
    let recordings = recordings(args)?;
    let servers = args.ice.read()?;
    let links = links(args, &servers)?;
    let context = Context::new();
    // The first use of the certificate and of random numbers takes a third of a second: before the first viewer. That
    // the servers can be used shows here, too.
    drop(servers.add_to(context.peer().with_loopback())?.open()?);
    let sessions = Sessions::new(context, hub.clone(), takes_publisher, args.sessions);
    let sessions = Arc::new(sessions.servers(servers).recorded(recordings.clone()));
    let server = serve(args, sessions.clone(), (takes_publisher, links))?;
    say_where(args, &server, takes_publisher);
    let film = Film::new(sources.len(), &interrupt);
    let shown = show(args, &film, &hub, (sources, readers));
    hub.end();
    sessions.drain(TAIL_TIME);
    // From here on there are no further sessions.
    drop(server);
    sessions.end(if recordings.is_some() { RECORDING_END_TIME } else { END_TIME });
    shown?;
    report(args, &hub)?;
    let has_failed = recordings.is_some_and(|recordings| {
        recordings.note_unfinished();
        recordings.has_failed()
    });
    Ok(if has_failed { Outcome::Failed } else { Outcome::Done })
}

/// Says what was shown.
fn report(args: &ServeArgs, hub: &Hub) -> anyhow::Result<()> {
    let ((frames, _), left_out, limited) = (hub.counts(), hub.left_out(), hub.limited());
    if args.output.json {
        let shown = json!({ "frames": frames, "left_out": left_out, "paths_limited": limited });
        return Ok(crate::report::print_line(json!({ "shown": shown }))?);
    }
    if !args.output.quiet {
        note!(
            "shown: {frames} frames; {left_out} not sent to viewers that were behind or not reached, \
             or whose path carries less"
        );
    }
    Ok(())
}

/// Returns where what is published goes, if it is recorded.
fn recordings(args: &ServeArgs) -> anyhow::Result<Option<Arc<Recordings>>> {
    let new = |file: &PathBuf| Recordings::new(file, args.overwrite, args.output.quiet);
    Ok(args.output_file.as_ref().map(new).transpose()?.map(Arc::new))
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
                let requested = rate_of(args, &source);
                let rate = declared.or(source.frame_rate);
                let schedule = Schedule::new(requested, rate, source.clock_rate);
                let schedule = if source.is_track() {
                    schedule.with_origin(beginning.decoded)
                } else {
                    schedule.with_delay(beginning.delay())
                };
                let (frames, is_quiet) = (frames_of(&source)?, args.output.quiet);
                let (repeat, requests) = (args.repeat, args.key_frames.open(&source)?);
                let feed = Feed {
                    source,
                    track,
                    schedule,
                    film,
                    hub,
                    repeat,
                    fps: requested,
                    frames,
                    requests,
                    is_quiet,
                };
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
        if source.is_live() { Ok(None) } else { source.open(rate_of(args, source)).map(Some) }
    };
    sources.iter_mut().map(open).collect()
}

/// Returns the requested frame rate of a source: that of a file alone, or of its video.
fn rate_of(args: &ServeArgs, source: &Source) -> Option<FrameRate> {
    args.fps.filter(|_| source.codec.media == "video")
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

/// Returns the STUN and TURN servers for the `Link` fields, by the names that were given as options.
fn links(args: &ServeArgs, servers: &IceServers) -> anyhow::Result<Vec<IceServer>> {
    let has_token = args.token.token.is_some() || args.token.token_file.is_some();
    if args.share_turn && !has_token {
        let reason = "--share-turn without a token gives the user name and password of the TURN server to everyone \
            who reaches this server: add --token-file FILE";
        return Err(Usage(reason.to_owned()).into());
    }
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
    let is_plain = |text: &str| text.bytes().all(|octet| matches!(octet, b' '..=b'~'));
    let is_sent = |link: &IceServer| {
        let login = [link.username.as_deref(), link.credential.as_ref().map(|it| it.as_str())];
        is_plain(&link.uri) && login.into_iter().flatten().all(is_plain)
    };
    if !links.iter().all(is_sent) {
        let reason = "--stun and --share-turn: clients can be told of servers, user names and passwords in ASCII only";
        return Err(Usage(reason.to_owned()).into());
    }
    Ok(links)
}

/// Starts the HTTP server.
fn serve(
    args: &ServeArgs,
    sessions: Arc<Sessions>,
    (publish, ice_servers): (bool, Vec<IceServer>),
) -> anyhow::Result<Server> {
    let read = |file: &PathBuf| fs::read(file).with_context(|| file.display().to_string());
    let identity = match (&args.tls_certificate, &args.tls_key) {
        (Some(chain), Some(key)) => {
            let key = crate::secret_file::read(key)?;
            Some(Identity::from_pem(&read(chain)?, key.as_bytes())?)
        }
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

/// Says where the page is: at addresses that reach this machine.
fn say_where(args: &ServeArgs, server: &Server, publish: bool) {
    if args.output.quiet {
        return;
    }
    let scheme = if server.is_encrypted() { "https" } else { "http" };
    let entries = if publish { "WHEP at /whep, WHIP at /whip" } else { "WHEP at /whep" };
    for address in server.local_addresses().iter().flat_map(|bound| reached_at(*bound)) {
        note!("open {scheme}://{address}/ in a browser; {entries}");
    }
}

/// Returns the addresses at which a server is reached that listens on `bound`.
fn reached_at(bound: SocketAddr) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    let hosts = rushes::net::local_addresses(false).unwrap_or_default();
    let is_reached = |host: &IpAddr| host.is_ipv4() || bound.is_ipv6();
    let mut all: Vec<_> = hosts
        .into_iter()
        .filter(is_reached)
        .map(|host| SocketAddr::new(host, bound.port()))
        .collect();
    if all.is_empty() {
        all.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), bound.port()));
    }
    all
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
