//! `--stun` and `--turn`: servers by which a peer is reached.

use std::path::PathBuf;

use clap::Args;

/// Servers of ICE.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct IceArgs {
    /// STUN server, which tells the address under which this machine is seen from outside; port 3478 by default
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "WebRTC")]
    pub(crate) stun: Option<String>,
    /// TURN server, through which the media goes if no direct path is found. It is used over UDP; port 3478 by default
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "WebRTC",
        requires_all = ["turn_user", "turn_password_file"])]
    pub(crate) turn: Option<String>,
    /// User name at the TURN server
    #[arg(long, value_name = "NAME", requires = "turn", help_heading = "WebRTC")]
    pub(crate) turn_user: Option<String>,
    /// File with the password at the TURN server, readable by its owner only
    #[arg(long, value_name = "FILE", requires = "turn", help_heading = "WebRTC")]
    pub(crate) turn_password_file: Option<PathBuf>,
}

#[cfg(feature = "webrtc")]
mod servers {
    use std::net::SocketAddr;

    use rushes::peer::PeerBuilder;
    use rushes_whip::IceServer;
    use zeroize::Zeroizing;

    use super::IceArgs;
    use crate::{Usage, secret_file};

    /// The servers, found by name.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct IceServers {
        pub(crate) stun: Option<SocketAddr>,
        pub(crate) turn: Option<Turn>,
    }

    /// A TURN server and how it is entered.
    #[derive(Clone, Debug)]
    pub(crate) struct Turn {
        pub(crate) address: SocketAddr,
        pub(crate) user: String,
        pub(crate) password: Secret,
    }

    /// A password, which is not shown.
    #[derive(Clone)]
    pub(crate) struct Secret(pub(crate) Zeroizing<String>);

    impl std::fmt::Debug for Secret {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("(secret)")
        }
    }

    impl IceArgs {
        /// Finds the servers, and reads the password.
        pub(crate) fn read(&self) -> anyhow::Result<IceServers> {
            let of_stun = |text| address("--stun", Scheme::Stun, text);
            let stun = self.stun.as_deref().map(of_stun).transpose()?;
            let mut servers = IceServers { stun, turn: None };
            if let (Some(turn), Some(user), Some(file)) =
                (&self.turn, &self.turn_user, &self.turn_password_file)
            {
                let address = address("--turn", Scheme::Turn, turn)?;
                let password = Secret(secret_file::read(file)?);
                servers.turn = Some(Turn { address, user: user.clone(), password });
            }
            Ok(servers)
        }

        /// Finds the servers that a server of WHIP or WHEP recommends, of each kind that no option names the first.
        /// Those that are not reached over UDP, or by no name, are left out.
        pub(crate) fn recommended(&self, links: &[IceServer]) -> IceServers {
            let find = |scheme| {
                let known = links.iter().filter_map(|link| Some((link, parse(&link.uri).ok()?)));
                let mut of_scheme = known.filter(|(_, (of, ..))| *of == Some(scheme));
                let has_login =
                    |link: &IceServer| link.username.is_some() && link.credential.is_some();
                let (link, (_, host, port)) =
                    of_scheme.find(|(link, _)| scheme == Scheme::Stun || has_login(link))?;
                // One only: to find a name takes time.
                Some((link, rushes::net::resolve(host, port).ok()?))
            };
            let mut found = IceServers::default();
            if self.stun.is_none() {
                found.stun = find(Scheme::Stun).map(|(_, address)| address);
            }
            if self.turn.is_none()
                && let Some((link, address)) = find(Scheme::Turn)
                && let (Some(user), Some(password)) = (&link.username, &link.credential)
            {
                let (user, password) = (user.clone(), Secret(password.clone()));
                found.turn = Some(Turn { address, user, password });
            }
            found
        }
    }

    impl IceServers {
        /// Lets a peer ask these servers.
        pub(crate) fn add_to(
            &self,
            mut builder: PeerBuilder,
        ) -> Result<PeerBuilder, rushes::Error> {
            if let Some(stun) = self.stun {
                builder = builder.stun_server(stun);
            }
            if let Some(Turn { address, user, password }) = &self.turn {
                builder = builder.turn_server(*address, user, &password.0)?;
            }
            Ok(builder)
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Scheme {
        Stun,
        Turn,
    }

    /// Reads the value of an option: a host and a port, or a URI (RFC 7064, RFC 7065).
    fn address(option: &str, scheme: Scheme, text: &str) -> anyhow::Result<SocketAddr> {
        let refused = |reason| Usage(format!("{option} {text}: {reason}. Try: {option} HOST:3478"));
        let (given, host, port) = parse(text).map_err(refused)?;
        if given.is_some_and(|given| given != scheme) {
            return Err(refused("that is a server of the other kind").into());
        }
        let address = rushes::net::resolve(host, port)?;
        if address.is_ipv6() {
            return Err(refused("STUN and TURN servers are reached over IPv4 only").into());
        }
        Ok(address)
    }

    /// Splits `[stun:|turn:]HOST[:PORT][?transport=udp]`.
    fn parse(text: &str) -> Result<(Option<Scheme>, &str, u16), &'static str> {
        let (rest, query) = text.split_once('?').unwrap_or((text, ""));
        if !query.is_empty() && !query.eq_ignore_ascii_case("transport=udp") {
            return Err("only UDP is supported");
        }
        let after = |scheme: &str| {
            let head = rest.get(..scheme.len())?;
            head.eq_ignore_ascii_case(scheme).then(|| rest.get(scheme.len()..)).flatten()
        };
        if after("turns:").is_some() || after("stuns:").is_some() {
            return Err("TLS is not supported");
        }
        let (scheme, rest) = match (after("stun:"), after("turn:")) {
            (Some(rest), _) => (Some(Scheme::Stun), rest),
            (_, Some(rest)) => (Some(Scheme::Turn), rest),
            _ => (None, rest),
        };
        // An IPv6 address without brackets has several colons, and no port.
        let is_bare = rest.matches(':').count() > 1 && !rest.starts_with('[');
        let split = rest.rsplit_once(':').filter(|_| !is_bare && !rest.ends_with(']'));
        let (host, port) = split.map_or((rest, Ok(3478)), |(host, port)| (host, port.parse()));
        let port = port.ok().filter(|port| *port != 0).ok_or("its port is no port")?;
        if host.is_empty() {
            return Err("there is no host");
        }
        Ok((scheme, host, port))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn servers_are_hosts_or_uris_over_udp() {
            let cases = [
                ("a", (None, "a", 3478)),
                ("a:1", (None, "a", 1)),
                ("turn:a", (Some(Scheme::Turn), "a", 3478)),
                ("STUN:a:5", (Some(Scheme::Stun), "a", 5)),
                ("turn:a:5?transport=udp", (Some(Scheme::Turn), "a", 5)),
                ("turn:[::1]:5", (Some(Scheme::Turn), "[::1]", 5)),
                ("[::1]", (None, "[::1]", 3478)),
                ("::1", (None, "::1", 3478)),
            ];
            for (text, expected) in cases {
                assert_eq!(parse(text), Ok(expected), "{text}");
            }
            for text in ["", "turn:", "a:x", "a:0", "a:99999", "turns:a", "turn:a?transport=tcp"] {
                assert!(parse(text).is_err(), "{text}");
            }
        }

        #[test]
        fn recommended_servers_fill_gaps_only() {
            let link = |uri: &str, user: Option<&str>| IceServer {
                uri: uri.to_owned(),
                username: user.map(str::to_owned),
                credential: user.map(|_| Zeroizing::new("secret".to_owned())),
            };
            let links = [
                link("turns:127.0.0.1", Some("a")),
                link("turn:127.0.0.2", None),
                link("turn:127.0.0.3", Some("b")),
                link("stun:127.0.0.4", None),
            ];
            let found = IceArgs::default().recommended(&links);
            let turn = found.turn.clone().unwrap();
            assert_eq!((turn.address, &*turn.user), ("127.0.0.3:3478".parse().unwrap(), "b"));
            assert_eq!(found.stun, Some("127.0.0.4:3478".parse().unwrap()));
            assert!(!format!("{found:?}").contains("\"secret\""));
            let (stun, turn) = (Some("a".to_owned()), Some("b".to_owned()));
            let none = IceArgs { stun, turn, ..IceArgs::default() }.recommended(&links);
            assert!(none.stun.is_none() && none.turn.is_none());
        }
    }
}

#[cfg(feature = "webrtc")]
pub(crate) use servers::IceServers;
