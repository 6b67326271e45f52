//! Texture video.

mod block;
mod canvas;
mod client;
mod gpu;
mod options;
mod server;
mod source;

use std::net::SocketAddr;

use rushes::texture::{Format, Transport};

use crate::error::Failure;
use crate::options::argument;
pub use client::TextureFrame;
pub use gpu::MemoryHandle;
pub use options::{TextureAdaptation, TextureTiming};

fn address(text: &str) -> Result<SocketAddr, Failure> {
    let (host, port) = text
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host, port.parse().ok()?)))
        .ok_or_else(|| {
            argument(format!(
                "{text:?} is not a host and a port; type \"localhost:7000\" or \"[::1]:7000\""
            ))
        })?;
    Ok(rushes::net::resolve(host.trim_start_matches('[').trim_end_matches(']'), port)?)
}

fn format(name: &str) -> Result<Format, Failure> {
    name.parse().map_err(|_| argument(format!("{name:?} is not a texture format")))
}

fn transport(name: &str) -> Result<Transport, Failure> {
    Ok(match name {
        "udp" => Transport::Udp,
        "tcp" => Transport::Tcp,
        "rtp" => Transport::Rtp,
        "multicast" => Transport::Multicast,
        _ => {
            return Err(argument(format!(
                "{name:?} is not a transport: udp, tcp, rtp or multicast"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        let both = |text| address(text).map(|address| address.to_string()).ok();
        assert_eq!(both("127.0.0.1:7000").as_deref(), Some("127.0.0.1:7000"));
        assert_eq!(both("[::1]:0").as_deref(), Some("[::1]:0"));
        for wrong in ["", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000"] {
            assert_eq!(both(wrong), None);
        }
    }
}
