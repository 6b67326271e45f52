//! Network namespaces joined by a link, or by a hub that loses and delays frames, and programs in them. They need
//! root, `ip` and, for the hub, `python3`.
#![allow(dead_code, reason = "each test program uses only some items")]

mod hub;
pub(crate) mod viewer;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hub::Hub;

/// How long to wait for a program before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a system command; on failure, the error holds its message.
pub(crate) fn run(command: &str) -> Result<(), String> {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|error| format!("{command}: {error}"))?;
    let said = || format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim());
    if output.status.success() { Ok(()) } else { Err(said()) }
}

/// The namespaces of a server and its clients, which are deleted on drop.
pub(crate) struct Network {
    /// What the names of its namespaces begin with.
    name: String,
    pub(crate) server: String,
    pub(crate) clients: Vec<String>,
    /// What forwards frames between them, in a namespace of its own.
    hub: Option<Hub>,
    middle: String,
}

impl Network {
    /// Creates a server and a client whose interfaces `veth0` are the ends of one link.
    pub(crate) fn link(name: &str) -> Result<Self, String> {
        let mut network = Self::new(name);
        network.add_ends(1)?;
        let (server, client) = (&network.server, &network.clients[0]);
        run(&format!("ip -n {server} link add veth0 type veth peer name veth0 netns {client}"))?;
        network.set_up()?;
        Ok(network)
    }

    /// Creates a server and clients, each with a link to a hub, which draws what it loses from `seed`.
    pub(crate) fn hub(name: &str, clients: usize, seed: u64) -> Result<Self, String> {
        let mut network = Self::new(name);
        network.add_ends(clients)?;
        let middle = &network.middle;
        run(&format!("ip netns add {middle}"))?;
        for (port, end) in network.ends().enumerate() {
            let peer = format!("peer name port{port} netns {middle}");
            run(&format!("ip -n {end} link add veth0 type veth {peer}"))?;
            // Each packet is a frame of its own.
            run(&format!("ip -n {end} link set veth0 gso_max_segs 1"))?;
            run(&format!("ip -n {middle} link set port{port} mtu 1500 up"))?;
        }
        network.set_up()?;
        network.hub = Some(Hub::start(middle, clients + 1, seed)?);
        Ok(network)
    }

    fn new(name: &str) -> Self {
        let name = format!("rtx{}{name}", std::process::id());
        delete_abandoned();
        let (server, middle) = (format!("{name}s"), format!("{name}h"));
        Self { name, server, clients: Vec::new(), hub: None, middle }
    }

    /// Creates the namespaces of the server and the clients.
    fn add_ends(&mut self, clients: usize) -> Result<(), String> {
        run(&format!("ip netns add {}", self.server))?;
        for client in 0..clients {
            let client = format!("{}c{client}", self.name);
            run(&format!("ip netns add {client}"))?;
            self.clients.push(client);
        }
        Ok(())
    }

    fn ends(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.server).chain(&self.clients)
    }

    /// Gives the server and the clients their addresses: 192.0.2.1 and those that follow.
    fn set_up(&self) -> Result<(), String> {
        for (host, namespace) in (1..).zip(self.ends()) {
            run(&format!("ip -n {namespace} link set lo up"))?;
            run(&format!("ip -n {namespace} address add 192.0.2.{host}/24 dev veth0"))?;
            run(&format!("ip -n {namespace} link set veth0 mtu 1500 up"))?;
        }
        Ok(())
    }

    /// Returns the only client, or the first one.
    pub(crate) fn client(&self) -> &str {
        &self.clients[0]
    }

    /// Sets the queueing discipline of the link for the server's packets.
    pub(crate) fn set_queue(&self, queue: &str) -> Result<(), String> {
        let server = &self.server;
        run(&format!("ip netns exec {server} tc qdisc replace dev veth0 root {queue}"))
    }

    /// Sets the conditions of frames towards a client, as `interop/weather.py` names them.
    pub(crate) fn set_weather(&mut self, client: usize, weather: &str) {
        self.hub.as_mut().unwrap().set(client + 1, weather);
    }

    /// Starts a server of texture video (`texture_peer`); returns it and its address.
    pub(crate) fn serve(&self, arguments: &[&str]) -> (Running, String) {
        let server = Running::peer(&self.server, &[&["serve", "192.0.2.1:0"], arguments].concat());
        let address = server.line();
        (server, address)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.hub = None;
        for namespace in self.ends().chain([&self.middle]) {
            // Deleting a namespace that was not created fails.
            let _ = run(&format!("ip netns delete {namespace}"));
        }
    }
}

/// Deletes the namespaces of test programs that were killed.
fn delete_abandoned() {
    for entry in std::fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let namespace = entry.file_name().to_string_lossy().into_owned();
        let Some(rest) = namespace.strip_prefix("rtx") else { continue };
        let id: String = rest.chars().take_while(char::is_ascii_digit).collect();
        if !id.is_empty() && !Path::new("/proc").join(id).exists() {
            // Another program may have deleted it meanwhile.
            let _ = run(&format!("ip netns delete {namespace}"));
        }
    }
}

/// Returns a command that runs a program in a namespace.
pub(crate) fn command(namespace: &str, program: &Path) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Returns the example that was built beside this test's program.
pub(crate) fn peer() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let path = own
        .parent()
        .and_then(|folder| folder.parent())
        .map(|folder| folder.join("examples").join("texture_peer"));
    path.filter(|path| path.exists()).ok_or_else(|| "the example is not built".into())
}

/// A program whose input and output are pipes, and that is killed on drop.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Result<Self, String> {
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let said = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            said.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Ok(Self { child, lines })
    }

    /// Starts `texture_peer` in a namespace.
    pub(crate) fn peer(namespace: &str, arguments: &[&str]) -> Self {
        Self::start(command(namespace, &peer().unwrap()).args(arguments)).unwrap()
    }

    /// Returns the next line that it prints; an empty one if none follows.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap_or_default()
    }

    /// Returns the next line that it has printed, if there is one.
    pub(crate) fn line_now(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    /// Writes a line to its input, which stays open.
    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Ends it; returns what it wrote to a piped standard error.
    fn complaint(&mut self) -> String {
        let _ = self.child.kill();
        let stderr = self.child.stderr.take();
        stderr.and_then(|stderr| std::io::read_to_string(stderr).ok()).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
