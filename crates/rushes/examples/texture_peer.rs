//! A texture server of noise, or a client that checks every octet of it: for trials on lossy
//! networks.
//!
//! `cargo run --example texture_peer -- serve 127.0.0.1:7000 rgb24 640 360 4 30 100` serves a
//! hundred pictures of four units at 30 a second to one client, and
//! `cargo run --example texture_peer -- view 127.0.0.1:7000 udp 100` checks them, prints the number of
//! the latest frame as `frame 7` and, at the end or after the line `leave` of the standard input, a
//! report as JSON. A further argument is the time to wait for missing packets, in milliseconds.
//!
//! `serve … 239.255.0.1:7100` serves a multicast group, whose frames `view … multicast …` checks; after the
//! group, a number of repair packets for 100 packets replaces requests. `disturb 192.0.2.4 239.255.0.1:7100 4 1000`
//! hears a group of four units, prints `ready` and, after a line of the standard input, sends a thousand altered
//! packets to it, and prints how many.
//!
//! Without arguments, a server and a client run in this process.

#[path = "../tests/texture_world/noise.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod noise;
#[path = "../tests/texture_world/witness.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod witness;

#[path = "../tests/netns/disturber.rs"]
mod disturber;

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use noise::Noise;
use rushes::texture::{
    ClientOptions, Fec, Format, Layout, MulticastGroup, ServerOptions, Stopped, TextureClient,
    TextureServer, Timing, Transport,
};
use witness::{Pictures, Witness};

/// Maximum duration of a stream.
const LONGEST: Duration = Duration::from_secs(60);

/// How often the frames are looked at.
const LOOKS: Duration = Duration::from_millis(10);

const USAGE: &str = "usage: texture_peer serve ADDRESS FORMAT WIDTH HEIGHT UNITS FPS FRAMES [GROUP [FEC]]\n\
            texture_peer view ADDRESS udp|tcp|rtp|multicast FRAMES [DEADLINE]\n\
            texture_peer disturb ADDRESS GROUP UNITS PACKETS";

type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match *arguments {
        ["serve", ref rest @ ..] => serve(rest).and_then(|server| wait(&server)),
        ["view", ref rest @ ..] => view(rest),
        ["disturb", ref rest @ ..] => disturb(rest),
        [] => serve(&["127.0.0.1:0", "bc1", "320", "180", "2", "60", "30"])
            .and_then(|server| view(&[&server.local_address().to_string(), "udp", "30"])),
        _ => Err(USAGE.into()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn serve(arguments: &[&str]) -> Result<TextureServer, Error> {
    let [address, format, width, height, units, fps, frames, ref group @ ..] = *arguments else {
        return Err(USAGE.into());
    };
    let layout = Layout::new(format.parse::<Format>()?, width.parse()?, height.parse()?)?;
    let mut options = ServerOptions::default();
    (options.units, options.timing) = (units.parse()?, Timing::EveryFrame);
    // Fits the buffers of any network.
    options.in_flight = 64 << 10;
    if let Some(group) = group.first() {
        options.multicast = Some(MulticastGroup::new(group.parse()?));
    }
    if let Some(percent) = group.get(1) {
        (options.fec, options.recovery) = (Fec::Percent(percent.parse()?), false);
    }
    let noise = Noise::new(layout, fps.parse()?, frames.parse()?);
    Ok(TextureServer::serve(address.parse()?, noise, options)?)
}

/// Serves until the standard input ends.
fn wait(server: &TextureServer) -> Result<bool, Error> {
    println!("{}", server.local_address());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(true)
}

/// Sends noise to a group.
fn disturb(arguments: &[&str]) -> Result<bool, Error> {
    let [address, group, units, packets] = *arguments else {
        return Err(USAGE.into());
    };
    let units = disturber::units(address.parse()?, group.parse()?, units.parse()?)?;
    println!("ready");
    std::io::stdin().read_line(&mut String::new())?;
    let sent = disturber::disturb(&units, packets.parse()?, Instant::now() + LONGEST)?;
    println!("{sent}");
    Ok(true)
}

/// Prints the numbers of frames until the stream ends, or is to be left.
fn watch(client: &TextureClient, witness: &Witness) -> Option<Stopped> {
    let (leave, until) = (Arc::new(AtomicBool::new(false)), Instant::now() + LONGEST);
    let told = leave.clone();
    std::thread::spawn(move || {
        let is_told = std::io::stdin().lines().map_while(Result::ok).any(|line| line == "leave");
        told.store(is_told, Ordering::Release);
    });
    let mut latest = None;
    loop {
        let end = client.wait(LOOKS);
        let last = witness.seen().last;
        if let Some(last) = last.filter(|_| last != latest) {
            println!("frame {last}");
        }
        latest = last;
        if end.is_some() || leave.load(Ordering::Acquire) || Instant::now() > until {
            return end;
        }
    }
}

fn view(arguments: &[&str]) -> Result<bool, Error> {
    let [address, transport, frames, ref deadline @ ..] = *arguments else {
        return Err(USAGE.into());
    };
    let transport = match transport {
        "udp" => Transport::Udp,
        "tcp" => Transport::Tcp,
        "rtp" => Transport::Rtp,
        "multicast" => Transport::Multicast,
        _ => return Err(USAGE.into()),
    };
    let witness = Arc::new(Witness::new(Pictures::Numbered(frames.parse()?)));
    let mut options = ClientOptions::default();
    options.transport = Some(transport);
    if let Some(deadline) = deadline.first() {
        let deadline = Duration::from_millis(deadline.parse()?);
        (options.deadline_min, options.deadline_max) = (deadline, deadline);
    }
    let client = TextureClient::connect(address.parse()?, witness.clone(), options)?;
    let packets = client.shape().map_or(0, |shape| shape.plan().packets());
    let end = watch(&client, &witness);
    let statistics = client.stop();
    let seen = witness.seen();
    let report = serde_json::json!({
        "end": end.map_or_else(|| "none".into(), |end| end.to_string()),
        "frames": seen.frames,
        "first": seen.first,
        "last": seen.last,
        "first_damaged": seen.first_damaged,
        "faults": seen.faults,
        "packets_of_a_frame": packets,
        "frames_whole": statistics.frames_whole,
        "frames_damaged": statistics.frames_damaged,
        "frames_lost": statistics.frames_lost,
        "packets": statistics.packets,
        "packets_lost": statistics.packets_lost,
        "packets_duplicate": statistics.packets_duplicate,
        "packets_late": statistics.packets_late,
        "packets_invalid": statistics.packets_invalid,
        "packets_recovered": statistics.packets_recovered,
        "packets_repaired": statistics.packets_repaired,
    });
    println!("{report}");
    Ok(seen.faults.is_empty() && seen.frames > 0)
}
