//! Two streams on one socket, distinguished by SSRC: picture and sound of one sender.

use std::time::Duration;

use rushes::{Codec, Context, Ssrc};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const PICTURE: Ssrc = Ssrc(0x0000_1111);
    const SOUND: Ssrc = Ssrc(0x0000_2222);

    let listener = Context::new().session("127.0.0.1")?;
    let mut picture = listener.stream(Codec::H265).remote_ssrc(PICTURE).open()?;
    let port = picture.local_address().port();
    // Equal session and port give the same socket.
    let mut sound = listener.stream(Codec::Opus).remote_ssrc(SOUND).local_port(port).open()?;

    let speaker = Context::new().session("127.0.0.1")?;
    let mut camera = speaker.stream(Codec::H265).ssrc(PICTURE).remote_port(port).open()?;
    let local = camera.local_address().port();
    let microphone = speaker.stream(Codec::Opus).ssrc(SOUND).remote_port(port);
    let mut microphone = microphone.local_port(local).open()?;

    camera.push_frame(&[0, 0, 0, 1, 0x26, 0x01, 0x80, 0x55], None)?;
    microphone.push_frame(&[0x08, 0x55], None)?;

    // A pull on either stream reads the socket for both, on any thread and in any order.
    let second = Duration::from_secs(1);
    let heard = sound.pull_frame(second)?.ok_or("no sound")?;
    let seen = picture.pull_frame(second)?.ok_or("no picture")?;
    println!("seen {} octets of {}", seen.len(), seen.ssrc());
    println!("heard {} octets of {}", heard.len(), heard.ssrc());
    Ok(())
}
