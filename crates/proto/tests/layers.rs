//! A sender leaves out temporal layers: which frames arrive, and which layers they tell.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use proptest::prelude::*;
use rushes_proto::payload::{Delivery, Layers};
use rushes_proto::stream::{Sender, SenderConfig};
use rushes_proto::{Batch, FrameRate, RtpTimestamp, SequenceNumber};
use world::{Kind, Listener, PAYLOAD_TYPE, SSRC};

use std::time::Duration;

/// What a picture of a test is, besides its temporal layer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Picture {
    Ordinary,
    /// It needs no earlier one of its layer.
    Switch,
    /// It needs none at all, and is of the base layer.
    Key,
}

/// Returns a frame of one picture.
fn frame(kind: Kind, picture: Picture, temporal_id: u8, number: u8) -> Vec<u8> {
    let body = [0x80 | number >> 4, 0x80 | number & 15].repeat(300);
    let next = temporal_id + 1;
    let nal = |header: &[u8]| [&[0, 0, 0, 1], header, &body[..]].concat();
    match (kind, picture) {
        // A prefix unit of SVC with `idr_flag`, then the slice.
        (Kind::H264, Picture::Key) => {
            [&[0, 0, 0, 1, 0x6e, 0xc0, 0x80, 0x0f], &nal(&[0x65])[..]].concat()
        }
        (Kind::H264, _) => {
            let prefix = [0, 0, 0, 1, 0x6e, 0x80, 0x80, temporal_id << 5 | 7];
            [&prefix, &nal(&[0x61])[..]].concat()
        }
        // IDR_W_RADL, TSA_R, TRAIL_R.
        (Kind::H265, Picture::Key) => nal(&[19 << 1, 1]),
        (Kind::H265, Picture::Switch) => nal(&[3 << 1, next]),
        (Kind::H265, Picture::Ordinary) => nal(&[1 << 1, next]),
        // IDR_W_RADL, STSA, TRAIL.
        (Kind::H266, Picture::Key) => nal(&[0, 7 << 3 | 1]),
        (Kind::H266, Picture::Switch) => nal(&[0, 1 << 3 | next]),
        (Kind::H266, Picture::Ordinary) => nal(&[0, next]),
        _ => {
            let shown = if picture == Picture::Key { 0x10 } else { 0x30 };
            // 601 in groups of seven bits.
            let size = [0xd9, 0x04];
            [&[0x12, 0, 0x36, temporal_id << 5], &size[..], &[shown], &body].concat()
        }
    }
}

/// Returns the layers that a frame must tell.
fn layers(kind: Kind, picture: Picture, temporal_id: u8) -> Layers {
    let tells_switches = matches!(kind, Kind::H265 | Kind::H266);
    let is_switch = picture == Picture::Switch && tells_switches;
    Layers {
        temporal_id,
        spatial_id: 0,
        begins_layer: picture == Picture::Key || is_switch,
        begins_higher: picture == Picture::Key || is_switch && kind == Kind::H265,
        needs_earlier: false,
    }
}

fn sender(kind: Kind) -> Sender {
    let format = kind.format();
    let config = SenderConfig {
        ssrc: SSRC,
        payload_type: PAYLOAD_TYPE,
        first_sequence: SequenceNumber(0),
        first_timestamp: RtpTimestamp(0),
        clock_rate: format.clock_rate(),
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: 300,
    };
    Sender::new(format.packetiser(), config).unwrap()
}

/// A picture, its temporal layer, and the highest layer that is asked for from it on.
fn any_picture() -> impl Strategy<Value = (Picture, u8, Option<u8>)> {
    let picture = prop_oneof![
        4 => Just(Picture::Ordinary), 3 => Just(Picture::Switch), 1 => Just(Picture::Key)
    ];
    (picture, 0_u8..4, prop::option::of(0_u8..4)).prop_map(|(picture, temporal_id, max)| {
        (picture, if picture == Picture::Key { 0 } else { temporal_id }, max)
    })
}

proptest! {
    #[test]
    fn what_is_sent_needs_nothing_that_is_left_out(
        kind in prop::sample::select(vec![Kind::H264, Kind::H265, Kind::H266, Kind::Av1]),
        pictures in prop::collection::vec(any_picture(), 1..60),
    ) {
        let (mut sender, mut batch) = (sender(kind), Batch::new());
        let mut listener = Listener::with(kind, Delivery::AccessUnit, |config| config.probation = 1);
        let (mut sent, mut number) = (Vec::new(), 0);
        // Whether the last picture of each layer was sent.
        let mut has_last = [true; 4];
        for (picture, temporal_id, max) in pictures {
            sender.set_max_temporal_id(max);
            let octets = frame(kind, picture, temporal_id, number);
            let at = sender.next_timestamp();
            let packets = sender.statistics().packets;
            let mut outgoing = sender.push(&octets, None).unwrap();
            prop_assert_eq!(outgoing.timestamp(), at);
            let is_left_out = outgoing.is_left_out();
            let mut datagrams: Vec<Vec<u8>> = Vec::new();
            while outgoing.fill(&mut batch) {
                datagrams.extend(batch.datagrams().map(<[u8]>::to_vec));
            }
            drop(outgoing);
            let is_sent = !datagrams.is_empty();
            prop_assert_eq!(is_left_out, !is_sent);
            prop_assert_eq!(sender.statistics().packets - packets, datagrams.len() as u64);
            let own = usize::from(temporal_id);
            let expected = layers(kind, picture, temporal_id);
            if is_sent {
                prop_assert!(has_last[..own].iter().all(|has| *has));
                prop_assert!(own == 0 || has_last[own] || expected.begins_layer);
                prop_assert!(max.is_none_or(|max| temporal_id <= max));
                sent.push((octets, at, expected));
            } else {
                prop_assert!(own > 0, "the base is always sent");
            }
            has_last[own] = is_sent;
            if expected.begins_higher && is_sent {
                has_last[own + 1..].fill(true);
            }
            for datagram in &datagrams {
                listener.take(Duration::from_millis(u64::from(number)), datagram);
            }
            number += 1;
        }
        let statistics = sender.statistics();
        prop_assert_eq!(statistics.frames, sent.len() as u64);
        prop_assert_eq!(statistics.frames + statistics.frames_left_out, u64::from(number));
        prop_assert_eq!(statistics.frames_cut, 0);
        let frames = listener.frames.iter();
        let arrived: Vec<_> = frames
            .map(|frame| (frame.to_vec(), frame.timestamp(), frame.layers().unwrap()))
            .collect();
        prop_assert_eq!(arrived, sent);
        prop_assert_eq!(listener.receiver.statistics().packets_lost, 0);
    }
}

#[test]
fn all_layers_return_with_the_next_key_frame() {
    for kind in [Kind::H264, Kind::H265, Kind::H266, Kind::Av1] {
        let (mut sender, mut batch) = (sender(kind), Batch::new());
        let mut is_sent = |picture, temporal_id, max| {
            sender.set_max_temporal_id(max);
            let octets = frame(kind, picture, temporal_id, 0);
            sender.push(&octets, None).unwrap().fill(&mut batch)
        };
        assert!(is_sent(Picture::Key, 0, Some(0)) && !is_sent(Picture::Ordinary, 1, Some(0)));
        assert!(!is_sent(Picture::Ordinary, 1, None), "it may need the one before");
        assert!(is_sent(Picture::Key, 0, None) && is_sent(Picture::Ordinary, 3, None));
    }
}

#[test]
fn frames_that_tell_no_layer_are_sent() {
    for kind in [Kind::Vp8, Kind::Vp9, Kind::Opus, Kind::Generic] {
        let (mut sender, mut batch) = (sender(kind), Batch::new());
        sender.set_max_temporal_id(Some(0));
        let frame = kind.unit(1, 40, &mut world::Seeded(1));
        assert!(sender.push(&frame, None).unwrap().fill(&mut batch), "{kind:?}");
    }
}
