//! Two peers that send and receive at the same time: each stream is split between two threads.

use std::thread;
use std::time::Duration;

use rushes::{Codec, Context, Error, MediaStream, Session};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = Context::new().session("127.0.0.1")?;
    let (left_port, right_port) = (free_port(&session)?, free_port(&session)?);
    let left = open(&session, left_port, right_port)?;
    let right = open(&session, right_port, left_port)?;

    let talks = [("left", left), ("right", right)]
        .map(|(name, stream)| thread::spawn(move || talk(name, stream)));
    for talk in talks {
        talk.join().map_err(|_| "a peer panicked")??;
    }
    Ok(())
}

fn free_port(session: &Session) -> Result<u16, Error> {
    Ok(session.stream(Codec::Opus).open()?.local_address().port())
}

fn open(session: &Session, local: u16, remote: u16) -> Result<MediaStream, Error> {
    session.stream(Codec::Opus).local_port(local).remote_port(remote).open()
}

/// Sends fifty packets of 20 ms and receives fifty.
fn talk(name: &str, stream: MediaStream) -> Result<(), Error> {
    let (mut sender, mut receiver) = stream.split()?;
    let sending = thread::spawn(move || -> Result<(), Error> {
        for number in 0..50_u8 {
            sender.push_frame(&[0x08, number], None)?;
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    });
    let mut heard = 0;
    while heard < 50 && receiver.pull_frame(Duration::from_millis(500))?.is_some() {
        heard += 1;
    }
    println!("{name} heard {heard} packets");
    sending.join().unwrap_or(Ok(()))
}
