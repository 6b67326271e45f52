//! `rushes serve`: shows a file or a live source to browsers, and takes what they publish.

mod feed;
mod hub;
mod publisher;
mod session;
mod sessions;
mod viewer;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use rushes::file::MediaReader;
use rushes::{Context, FrameRate};
use rushes_whip::{Identity, Origins, Server, ServerConfig, Token};

use self::feed::Feed;
use self::hub::{Hub, Track};
use self::sessions::Sessions;
use crate::args::{OutputArgs, StreamArgs};
use crate::endpoint::{Endpoint, parse_http};
use crate::interrupt::Interrupt;
use crate::progress::note;
use crate::schedule::Schedule;
use crate::send::{Film, beginning};
use crate::source::Source;
use crate::{Outcome, Usage, describe, secret_file};

const NO_THREAD: &str = "cannot start a thread";
/// How often the counts are shown.
const SHOW_INTERVAL: Duration = Duration::from_millis(500);

/// Show a file or a live source to browsers, or what one of them publishes
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// File to show, from its beginning to its end and again; - for the standard input. A pipe or a device is a
    /// live source. Without a file, what a browser or another program publishes is shown
    pub(crate) file: Option<PathBuf>,
    /// Audio file to show with it
    #[arg(long, value_name = "FILE", requires = "file")]
    pub(crate) audio: Option<PathBuf>,
    /// Address and port of the page, and of WHIP (/whip) and WHEP (/whep)
    #[arg(long, value_parser = parse_http, value_name = "[BIND:]PORT", default_value = "127.0.0.1:8080")]
    pub(crate) http: Endpoint,
    /// Token that viewers and publishers must give, from the first line of a file
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Certificate chain for HTTPS (PEM). Browsers give a page the camera only over HTTPS or on the machine itself
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Site whose pages may use the server, too, such as https://studio.example; may be given several times
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub(crate) origins: Vec<String>,
    /// Maximum number of viewers and publishers at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 64)]
    pub(crate) sessions: usize,
    /// Times to show the file; 0 until Ctrl-C
    #[arg(long = "loop", value_name = "TIMES", default_value_t = 0)]
    pub(crate) repeat: u64,
    /// Frames per second, for a file that does not say
    #[arg(long, value_name = "RATE")]
    pub(crate) fps: Option<FrameRate>,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<Outcome> {
    let interrupt = Interrupt::install()?;
    let mut sources = match &args.file {
        Some(file) => Source::all(file, args.audio.as_deref(), &args.stream, args.output.quiet)?,
        None => Vec::new(),
    };
    let mut readers = open_all(args, &mut sources)?;
    let tracks = sources.iter().map(track).collect::<anyhow::Result<Vec<_>>>()?;
    let takes_publisher = tracks.is_empty();
    let hub = Arc::new(Hub::new(tracks));
    let sessions = Sessions::new(Context::new(), hub.clone(), takes_publisher);
    let sessions = Arc::new(sessions);
    let server = serve(args, sessions.clone(), takes_publisher)?;
    say_where(args, &server);
    let film = Film::new(sources.len(), &interrupt);
    let beginning = beginning(&mut readers)?;
    let shown = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, (source, reader)) in sources.into_iter().zip(readers).enumerate() {
            let declared = reader.as_ref().and_then(MediaReader::frame_rate).or(source.frame_rate);
            let requested = args.fps.filter(|_| number == 0);
            let schedule = Schedule::new(requested, declared, source.clock_rate);
            let schedule = if source.is_track() {
                schedule.with_origin(beginning.decoded)
            } else {
                schedule.with_delay(beginning.delay())
            };
            let (film, hub, repeat, fps) = (&film, &*hub, args.repeat, args.fps);
            let feed = Feed { source, track: number, schedule, film, hub, repeat, fps };
            let run = move || {
                let _guard = film.stop.guard();
                feed.run(reader).inspect_err(|_| film.stop.fail())
            };
            let named = thread::Builder::new().name("rushes-show".to_owned());
            threads.push(named.spawn_scoped(scope, run).context(NO_THREAD)?);
        }
        wait(args, &film, &hub, || threads.iter().all(thread::ScopedJoinHandle::is_finished));
        for thread in threads {
            thread.join().map_err(|_| anyhow::anyhow!("a thread that shows frames panicked"))??;
        }
        anyhow::Ok(())
    });
    hub.end();
    sessions.end();
    drop(server);
    shown?;
    let (frames, _) = hub.counts();
    if !args.output.quiet {
        note!("shown: {frames} frames; {} left out for viewers that were behind", sessions.left_out());
    }
    Ok(Outcome::Done)
}

/// Opens all files; a live source is opened later.
fn open_all(
    args: &ServeArgs,
    sources: &mut [Source],
) -> anyhow::Result<Vec<Option<MediaReader>>> {
    let open = |source: &mut Source| {
        if source.is_live() { Ok(None) } else { source.open(args.fps).map(Some) }
    };
    sources.iter_mut().map(open).collect()
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

/// Starts the HTTP server.
fn serve(args: &ServeArgs, sessions: Arc<Sessions>, publish: bool) -> anyhow::Result<Server> {
    let read = |file: &PathBuf| fs::read(file).with_context(|| file.display().to_string());
    let identity = match (&args.tls_certificate, &args.tls_key) {
        (Some(chain), Some(key)) => Some(Identity::from_pem(&read(chain)?, &read(key)?)?),
        _ => None,
    };
    let token = match &args.token_file {
        Some(file) => Some(token(file)?),
        None => None,
    };
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
        ..ServerConfig::default()
    };
    let host = args.http.host.as_deref().unwrap_or("127.0.0.1");
    let address = rushes::net::resolve(host, args.http.port)?;
    Ok(Server::bind(&[address], config, sessions)?)
}

/// Reads a token from the first line of a file.
pub(crate) fn token(file: &std::path::Path) -> anyhow::Result<Token> {
    let line = secret_file::first_line(file)?;
    Ok(Token::new(&line)?)
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
