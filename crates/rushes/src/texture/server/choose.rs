//! Chooses an offer by the client's requests and the server's options.

use std::sync::Arc;

use rushes_delivery::control::{Abilities, FrameRate, Offer, Reason, Transport, VideoMode, Wishes};
use rushes_delivery::{HEADER_BYTES, PAYLOAD_MAX};
use rushes_texture::{Colour, Encoder, Format, Layout, Quality, Scaler, fitted};

use super::super::rtp;
use super::super::shape::TextureShape;
use super::binding::Binding;
use super::encoding::Encoding;
use super::fec::Fec;
use super::feed::SourceLayout;
use super::group::NO_GROUP;
use super::options::{ServerOptions, default_payload};

/// Maximum octets of a packet after its header in a datagram.
const UDP_PAYLOAD_MAX: usize = 65_507 - HEADER_BYTES;

/// The encoding, transport and rate of an offer.
pub(super) struct Choice {
    pub(super) encoding: Arc<Encoding>,
    pub(super) transport: Transport,
    pub(super) rate: FrameRate,
    pub(super) abilities: Abilities,
}

/// Why nothing can be offered.
pub(super) type Refusal = (Reason, String);

/// Chooses for a new client.
pub(super) fn choose(
    wishes: &Wishes,
    source: &SourceLayout,
    rate: FrameRate,
    (options, units_left): (&ServerOptions, usize),
    format: Option<Format>,
) -> Result<Choice, Refusal> {
    let format = choose_format(wishes, source.layout.format(), format)?;
    let transport = transport_of(wishes, options);
    if options.security.is_some() && transport != Transport::Rtp {
        let text = "the server sends nothing unencrypted: use RTP, secured as on the server";
        return Err((Reason::Key, text.into()));
    }
    if !wishes.transports.contains(transport) {
        return Err((Reason::Transport, format!("the server sends by {transport} only")));
    }
    if transport == Transport::Multicast {
        check_group(wishes, options)?;
    }
    let units = if wishes.units == 0 { options.units } else { usize::from(wishes.units) };
    let units = units.min(units_left);
    let payload = payload_of(wishes, options, transport)?;
    let has_colour = wishes.abilities.contains(Abilities::COLOUR);
    let quality = options.quality;
    let encoded = |is_packed| {
        let source = (source, None);
        encode(source, (format, has_colour), quality, (units, payload), is_packed)
    };
    let mut encoding = encoded(false)?;
    let is_recovered = options.recovery
        && transport.has_datagrams()
        && wishes.abilities.contains(Abilities::RECOVERY);
    // A packet with an odd number of octets has repair packets that are longer by one.
    let has_fec = options.fec != Fec::Off
        && transport.has_datagrams()
        // The losses of one client say nothing of those of others.
        && (transport == Transport::Udp || matches!(options.fec, Fec::Percent(_)))
        && wishes.abilities.contains(Abilities::FEC)
        && encoding.shape().plan().can_repair()
        && payload.next_multiple_of(2) <= UDP_PAYLOAD_MAX;
    let mut abilities = Abilities::default();
    // Repair packets are those of stripes as they are.
    let is_packed = options.packing
        && transport != Transport::Multicast
        && !has_fec
        && wishes.abilities.contains(Abilities::PACKING)
        && encoding.shape().plan().can_pack();
    if is_packed {
        encoding = encoded(true)?;
    }
    let is_scaled = options.scaling
        && transport != Transport::Multicast
        && wishes.abilities.contains(Abilities::SIZES)
        && Scaler::supports(source.layout.format());
    let used = [
        (is_recovered, Abilities::RECOVERY),
        (has_fec, Abilities::FEC),
        (is_packed, Abilities::PACKING),
        (has_colour, Abilities::COLOUR),
        (is_scaled, Abilities::SIZES),
    ];
    for (is_used, ability) in used {
        abilities = if is_used { abilities.with(ability) } else { abilities };
    }
    let encoding = Arc::new(encoding);
    Ok(Choice { encoding, transport, rate: slower(rate, wishes.rate), abilities })
}

/// Returns the octets of a packet after its header: those that a client requested, or those of the options.
fn payload_of(
    wishes: &Wishes,
    options: &ServerOptions,
    transport: Transport,
) -> Result<usize, Refusal> {
    let wished = if wishes.payload == 0 { options.payload } else { wishes.payload as usize };
    let payload = if wished == 0 { default_payload(transport) } else { wished };
    let max = match transport {
        Transport::Udp | Transport::Multicast => UDP_PAYLOAD_MAX,
        Transport::Tcp => PAYLOAD_MAX,
        Transport::Rtp => rtp::PAYLOAD_MAX,
    };
    if payload > max {
        let text = format!("{payload} octets per packet exceed {max} for {transport}");
        return Err((Reason::PacketSize, text));
    }
    Ok(payload)
}

/// Returns the transport that a client requested, or that of the options.
pub(super) fn transport_of(wishes: &Wishes, options: &ServerOptions) -> Transport {
    let preferred = if options.security.is_some() { Transport::Rtp } else { options.transport };
    wishes.transport.unwrap_or(preferred)
}

/// Checks that a client can get what all clients of the group get.
fn check_group(wishes: &Wishes, options: &ServerOptions) -> Result<(), Refusal> {
    if options.multicast.is_none() {
        return Err((Reason::Transport, NO_GROUP.to_owned()));
    }
    // A client without these abilities misreads the group's repair packets and colours.
    let needed = Abilities::FEC.with(Abilities::COLOUR);
    if !wishes.abilities.contains(needed) {
        return Err((Reason::Transport, "an older client cannot join the group".to_owned()));
    }
    if wishes.units > 0 || wishes.payload > 0 || wishes.rate.is_some() {
        let text = "clients of a group share its units, packets and rate: request none of them";
        return Err((Reason::Unsupported, text.to_owned()));
    }
    Ok(())
}

/// Returns the width and height of the pictures that are encoded for a client with this largest size.
pub(super) fn size_within(source: &Layout, size_max: Option<(u32, u32)>) -> (u32, u32) {
    let own = (source.width(), source.height());
    // What cannot be scaled is sent as it is.
    let size_max = size_max.filter(|_| Scaler::supports(source.format()));
    size_max.map_or(own, |size_max| fitted(own, size_max))
}

/// Creates the encoding of the source's pictures, scaled down to the largest size if there is one, to frames of a
/// format, whose stripes may be packed if `is_packed`.
///
/// A client that does not know colours takes YUV for that of [`Colour::default`], and gets it so.
pub(super) fn encode(
    (source, size_max): (&SourceLayout, Option<(u32, u32)>),
    (format, has_colour): (Format, bool),
    quality: Quality,
    (units, payload): (usize, usize),
    is_packed: bool,
) -> Result<Encoding, Refusal> {
    let (width, height) = size_within(&source.layout, size_max);
    let is_scaled = (width, height) != (source.layout.width(), source.layout.height());
    let scaler = is_scaled.then(|| Scaler::new(source.layout, width, height)).transpose();
    let scaler = scaler.map_err(|error| (Reason::Format, error.to_string()))?;
    let input = scaler.as_ref().map_or(source.layout, |scaler| *scaler.output());
    let mut layout = input.in_format(format);
    if !has_colour {
        // Curve and primaries stay: nothing is converted for them, and blocks must remain as they are.
        let Colour { transfer, primaries, .. } = layout.colour();
        layout = layout.with_colour(Colour { transfer, primaries, ..Colour::default() });
    }
    let shape = TextureShape::choose_for(layout, units, payload);
    let shape = shape.and_then(|shape| if is_packed { shape.packed() } else { Ok(shape) });
    let shape = shape.map_err(|error| (Reason::PacketSize, error.to_string()))?;
    let encoding = Encoding::new(input, shape);
    let encoding = encoding.map_err(|error| (Reason::Format, error.to_string()))?;
    Ok(encoding.with_quality(quality).with_version(source.version).with_scaler(scaler))
}

fn choose_format(
    wishes: &Wishes,
    source: Format,
    preferred: Option<Format>,
) -> Result<Format, Refusal> {
    let refuse = |text: String| Err((Reason::Format, text));
    let wished = match wishes.format {
        0 => preferred.unwrap_or(source),
        number => match Format::from_number(number) {
            Some(format) => format,
            None => return refuse(format!("the server does not know format number {number}")),
        },
    };
    if !wishes.formats.contains(wished.number()) {
        return refuse(format!("the server sends {wished}, which the client does not accept"));
    }
    if !Encoder::supports(source, wished) {
        return refuse(format!("the server cannot encode {source} to {wished}"));
    }
    Ok(wished)
}

/// Returns the slower of two rates.
pub(super) fn slower(rate: FrameRate, wished: Option<FrameRate>) -> FrameRate {
    let Some(wished) = wished else { return rate };
    let of = |a: FrameRate, b: FrameRate| u64::from(a.numerator) * u64::from(b.denominator);
    if of(wished, rate) < of(rate, wished) { wished } else { rate }
}

/// Returns the first offer of a choice.
pub(super) fn offer(choice: &Choice, binding: &Binding) -> Offer {
    let shape = choice.encoding.shape();
    Offer {
        token: binding.token,
        epoch: 0,
        mode: mode(shape, choice.rate),
        transport: choice.transport,
        units: units(shape),
        stripe_rows: shape.stripe_rows(),
        payload: shape.plan().payload() as u32,
        first_frame: 0,
        ports: binding.ports(),
        ssrcs: binding.ssrcs(),
        clock_rate: if choice.transport == Transport::Rtp { rtp::CLOCK_RATE.hertz() } else { 0 },
        abilities: choice.abilities,
        colour: colour(shape, choice.abilities),
        group: None,
    }
}

/// Returns the offer that replaces `before` from `first_frame` on.
pub(super) fn next_offer(
    before: &Offer,
    binding: &Binding,
    shape: &TextureShape,
    (rate, first_frame): (FrameRate, u64),
) -> Offer {
    let mut next = Offer {
        epoch: before.epoch.wrapping_add(1),
        mode: mode(shape, rate),
        units: units(shape),
        stripe_rows: shape.stripe_rows(),
        colour: colour(shape, before.abilities),
        first_frame,
        ports: binding.ports(),
        ssrcs: binding.ssrcs(),
        ..before.clone()
    };
    // The new offer may have fewer units than are bound; these keep their addresses.
    let count = next.unit_count();
    next.ports.truncate(count);
    next.ssrcs.truncate(count);
    next
}

fn mode(shape: &TextureShape, rate: FrameRate) -> VideoMode {
    let layout = shape.layout();
    let format = layout.format().number();
    VideoMode { width: layout.width(), height: layout.height(), rate, format }
}

/// Returns the colours in the offer: the frames' own, or zeros for a client that does not know them.
fn colour(shape: &TextureShape, abilities: Abilities) -> [u8; 4] {
    if abilities.contains(Abilities::COLOUR) {
        shape.layout().colour().code_points()
    } else {
        [0; 4]
    }
}

fn units(shape: &TextureShape) -> [u8; 3] {
    let mut units = [0; 3];
    units.iter_mut().zip(shape.tiling().per_plane()).for_each(|(to, &from)| *to = from);
    units
}

#[cfg(test)]
mod tests {
    use rushes_texture::{ColourRange, Layout, Matrix, Primaries, Transfer};

    use super::*;

    fn fast(source: &Layout, format: (Format, bool)) -> Result<Encoding, Refusal> {
        let source = SourceLayout { layout: *source, version: 0 };
        encode((&source, None), format, Quality::Fast, (1, 1_000), false)
    }

    #[test]
    fn an_old_client_gets_the_colours_that_it_takes_yuv_for() {
        let colour =
            Colour { matrix: Matrix::Bt601, range: ColourRange::Full, ..Colour::default() };
        let source = Layout::new(Format::Yuv420, 64, 64).unwrap().with_colour(colour);
        let encoding = |has_colour| match fast(&source, (Format::Yuv420, has_colour)) {
            Ok(encoding) => encoding,
            Err((_, text)) => panic!("{text}"),
        };
        let (old, new) = (encoding(false), encoding(true));
        assert_eq!(old.shape().layout().colour(), Colour::default());
        assert!(!old.passes_through(), "the pictures are converted");
        assert!(new.passes_through() && *new.shape().layout() == source);
        assert_eq!(super::colour(old.shape(), Abilities::FEC), [0; 4]);
        assert_eq!(super::colour(new.shape(), Abilities::COLOUR), colour.code_points());
    }

    #[test]
    fn an_old_client_gets_blocks_of_high_dynamic_range_as_they_are() {
        let (transfer, primaries) = (Transfer::Pq, Primaries::Bt2020);
        let colour = Colour { transfer, primaries, ..Colour::default() };
        let source = Layout::new(Format::Bc1, 64, 64).unwrap().with_colour(colour);
        let Ok(encoding) = fast(&source, (Format::Bc1, false)) else {
            panic!("blocks can be sent as they are");
        };
        assert!(encoding.passes_through());
    }
}
