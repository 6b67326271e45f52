//! `rushes texture view` of a server whose last frames do not arrive: they are counted, however the
//! stream ends.

use std::net::{Shutdown, TcpListener, UdpSocket};
use std::thread;

use rushes::delivery::UnitHeader;
use rushes::delivery::control::{
    Abilities, FrameNotice, FrameRate, Message, Offer, Reason, Token, VideoMode,
};
use rushes::texture::{Format, Transport};

use crate::rig::{json, text};
use crate::stranger::Stranger;
use crate::texture_rig::texture;

/// Octets of each packet of a BC1 frame of 64 x 64.
const PACKETS: [usize; 2] = [1_408, 64 * 64 / 2 - 1_408];

fn offer(port: u16) -> Offer {
    let rate = FrameRate { numerator: 50, denominator: 1 };
    Offer {
        token: Token([7; 16]),
        epoch: 0,
        mode: VideoMode { width: 64, height: 64, rate, format: Format::Bc1.number() },
        transport: Transport::Udp,
        units: [1, 0, 0],
        stripe_rows: 100,
        payload: PACKETS[0] as u32,
        first_frame: 0,
        ports: vec![port],
        ssrcs: Vec::new(),
        clock_rate: 0,
        abilities: Abilities::default(),
        colour: [0; 4],
        group: None,
    }
}

/// Serves frames 0 to 5 to one client: frame 3 lacks a packet, and 4 and 5 are lost. Ends with a
/// Stop message or closes the connection.
fn serve(listener: &TcpListener, says_stop: bool) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut client = Stranger::new(listener.accept().unwrap().0);
    client.receive_opening().unwrap();
    let offer = offer(socket.local_addr().unwrap().port());
    assert!(client.send(&Message::Offer(Box::new(offer))));
    assert!(matches!(client.receive(), Some(Message::Accept(_))));
    let (_, unit) = socket.recv_from(&mut [0; 100]).unwrap();
    assert!(client.send(&Message::Start { epoch: 0 }));
    for frame in 0..6 {
        let packets = PACKETS.iter().take([2, 2, 2, 1, 0, 0][frame]);
        for (index, octets) in (0..).zip(packets) {
            let header = UnitHeader { frame: frame as u8, index }.write();
            socket.send_to(&[&header, &vec![0; *octets][..]].concat(), unit).unwrap();
        }
        let notice = FrameNotice { number: frame as u64, ..FrameNotice::default() };
        assert!(client.send(&Message::Frame(notice)));
    }
    if says_stop {
        assert!(client.send(&Message::Stop { reason: Reason::Ended, text: "over".into() }));
    } else {
        client.socket.shutdown(Shutdown::Write).unwrap();
    }
    // Waits until the client has read the message.
    while client.receive().is_some() {}
}

#[test]
fn sent_frames_that_did_not_arrive_are_counted_at_every_kind_of_end() {
    for (says_stop, more, code) in
        [(true, &[][..], 1), (true, &["--allow-loss"], 0), (false, &["--allow-loss"], 1)]
    {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("copy.y4m").to_str().unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = thread::spawn(move || serve(&listener, says_stop));
        let view = ["view", &address, "-o", &name, "--every-frame", "--json"];
        let viewed = texture(&[&view, more].concat());
        server.join().unwrap();
        let log = text(&viewed.stderr);
        assert_eq!(viewed.status.code(), Some(code), "{more:?}: {log}");
        let report = json(&viewed);
        let counts = ["frames", "frames_damaged", "frames_lost", "frames_cut_off"];
        assert_eq!(counts.map(|name| report[name].as_u64()), [4, 1, 2, 0].map(Some), "{report}");
        assert_eq!(report["complete"], false);
    }
}
