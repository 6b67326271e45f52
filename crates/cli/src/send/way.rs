//! How the streams of a film leave: to addresses, or to a server that is entered over HTTP.

use rushes::{Context, MediaStream, StreamBuilder};

use super::destinations::{self, port};
use super::sending::Sending;
use crate::args::{ControlArgs, SendArgs, StreamArgs};
use crate::interrupt::Interrupt;
use crate::source::Source;
#[cfg(feature = "webrtc")]
use crate::webrtc::{self, Entered};
use crate::zrtp::Agreed;
use crate::{stream, zrtp};

/// Where the streams go.
pub(super) enum Way {
    /// To the addresses of `--to`.
    Addresses,
    /// To the server of `--whip`.
    #[cfg(feature = "webrtc")]
    Server(Box<rushes::peer::Peer>),
}

/// The open streams, one for each source; `None` for those that a server does not take.
#[derive(Default)]
pub(super) struct Opened {
    pub(super) streams: Vec<Option<(MediaStream, Option<Agreed>)>>,
    /// The connection to a server, which ends when this is dropped.
    #[cfg(feature = "webrtc")]
    pub(super) entered: Option<Entered>,
}

impl Opened {
    pub(super) fn take_streams(&mut self) -> Vec<Option<(MediaStream, Option<Agreed>)>> {
        std::mem::take(&mut self.streams)
    }

    /// Prepares the streams for browsers if they go to a server. They end when the connection to it ends.
    #[cfg_attr(not(feature = "webrtc"), allow(clippy::unused_self, clippy::unnecessary_wraps))]
    pub(super) fn watch(&self, sendings: &mut [Sending<'_>]) -> anyhow::Result<()> {
        #[cfg(feature = "webrtc")]
        if let Some(entered) = &self.entered {
            for sending in sendings {
                sending.follow(entered.handle())?;
            }
            return Ok(());
        }
        let _ = sendings;
        Ok(())
    }
}

#[cfg_attr(
    not(feature = "webrtc"),
    allow(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "without WebRTC there is one way"
    )
)]
impl Way {
    pub(super) fn new(args: &SendArgs, context: &Context) -> anyhow::Result<Self> {
        #[cfg(feature = "webrtc")]
        if let Some(url) = &args.whip {
            return Ok(Self::Server(Box::new(webrtc::peer(context, &args.entry, url)?)));
        }
        let _ = context;
        args.entry.check_unused("--whip")?;
        Ok(Self::Addresses)
    }

    /// Begins to set up stream `number`, of `source`.
    pub(super) fn stream(
        &self,
        args: &SendArgs,
        context: &Context,
        source: &Source,
        (number, of_stream, control): (u16, &StreamArgs, &ControlArgs),
    ) -> anyhow::Result<StreamBuilder> {
        #[cfg(feature = "webrtc")]
        if let Self::Server(peer) = self {
            let mut builder = peer.stream(source.codec).mtu(of_stream.mtu.min(webrtc::MTU));
            if let Some(recovery) = control.recovery {
                builder = builder.recovery(recovery.into());
            }
            return Ok(builder);
        }
        let to = destinations::first(args)?;
        let session = context.session(destinations::host(to))?;
        let local_port = if args.local_port == 0 { Some(0) } else { port(args.local_port, number) };
        let ports = local_port.zip(port(to.port, number));
        let (local_port, remote_port) = ports.ok_or_else(destinations::no_port)?;
        let builder = session.stream(source.codec);
        let builder = stream::set(builder, &session, of_stream, source.raw_video);
        let builder = builder.local_port(local_port).remote_port(remote_port);
        let builder = destinations::add(builder, args, number)?;
        Ok(stream::set_control(builder, control))
    }

    /// Opens the streams; returns `None` if the user stops it.
    pub(super) fn open(
        self,
        args: &SendArgs,
        builders: Vec<StreamBuilder>,
        sources: &[Source],
        interrupt: &Interrupt,
    ) -> anyhow::Result<Option<Opened>> {
        #[cfg(feature = "webrtc")]
        if let (Self::Server(peer), Some(url)) = (self, &args.whip) {
            return publish(args, (*peer, url), builders, sources, interrupt);
        }
        let _ = sources;
        let mut opened = Opened::default();
        for builder in builders {
            let stream = zrtp::open(builder, || interrupt.is_requested(), None, |_| Ok(()))?;
            let Some((stream, agreed)) = stream else { return Ok(None) };
            zrtp::print_agreed(agreed.as_ref(), args.output.quiet);
            opened.streams.push(Some((stream, agreed)));
        }
        Ok(Some(opened))
    }
}

/// Publishes the streams to a server.
#[cfg(feature = "webrtc")]
fn publish(
    args: &SendArgs,
    (mut peer, url): (rushes::peer::Peer, &str),
    builders: Vec<StreamBuilder>,
    sources: &[Source],
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Opened>> {
    use rushes::peer::Direction;

    use crate::progress::note;

    for (builder, source) in builders.into_iter().zip(sources) {
        match crate::describe::encoding_of(source) {
            Ok(encoding) => peer.add_described(builder, Direction::SendOnly, encoding),
            Err(_) => peer.add(builder, Direction::SendOnly),
        }
    }
    let mut entered = Entered::new(peer, &args.entry, url)?;
    let Some(streams) = entered.connect(|| interrupt.is_requested())? else { return Ok(None) };
    let mut opened = Opened::default();
    opened.streams.resize_with(sources.len(), || None);
    for stream in streams {
        if let Some(place) = opened.streams.get_mut(stream.index) {
            *place = Some((stream.stream, None));
        }
    }
    for (source, stream) in sources.iter().zip(&opened.streams) {
        if stream.is_none() && !args.output.quiet {
            note!("the server does not take {}: it is left out", source.codec.title);
        }
    }
    if !args.output.quiet {
        note!("publishing to {url}");
    }
    opened.entered = Some(entered);
    Ok(Some(opened))
}
