//! The libraries' log messages on the program's error output.

use crate::rig::{media, run, rushes, text};

/// A buffer larger than any kernel grants.
const GIANT: [&str; 2] = ["--socket-buffer", "64G"];

const ADVICE: &str = "Try: sudo sysctl -w net.core.rmem_max=";

fn lines(log: &str) -> Vec<&str> {
    log.lines().collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_socket_buffer_that_the_system_limits_is_a_warning_with_the_line_to_type() {
    let output = run(&[&["loopback", "--json"][..], &GIANT].concat());
    let log = text(&output.stderr);
    assert!(output.status.success(), "{log}");
    // Sender and receiver each have a socket; the equal warnings are shown once.
    let warnings = lines(&log);
    let of = |buffer: &str| {
        let begin = format!("rushes: warning: the system limits the {buffer} buffer to ");
        warnings.iter().filter(|line| line.starts_with(&begin)).count()
    };
    assert_eq!((warnings.len(), of("send"), of("receive")), (2, 1, 1), "{log}");
    assert!(log.contains(" of 68719476736 octets") && log.contains(ADVICE), "{log}");
    // Only the report is on the standard output.
    assert_eq!(crate::rig::json(&output)["identical"], true);
}

#[test]
#[cfg(target_os = "linux")]
fn quiet_programs_do_not_warn_and_the_environment_overrides_the_options() {
    let film = media(crate::rig::MEDIA[1]);
    let errors = |environment: &str, more: &[&str]| {
        let arguments = [&["loopback", &film][..], &GIANT, more].concat();
        let output = rushes(&arguments).env("RUST_LOG", environment).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    assert_eq!(errors("", &["-q"]), "");
    assert_eq!(errors("off", &[]), "");
    assert_eq!(errors("rushes_proto=trace", &[]), "");
    let asked = errors("rushes_net=warn", &["-q"]);
    assert!(asked.contains(ADVICE), "{asked}");
    let wrong = errors("rushes=loud", &[]);
    assert!(wrong.contains("rushes: warning: RUST_LOG is ignored: "), "{wrong}");
    assert!(wrong.contains("Try: RUST_LOG=debug") && wrong.contains(ADVICE), "{wrong}");
    assert_eq!(run(&["loopback", &film, "-q", "-v"]).status.code(), Some(2));
}

#[test]
#[cfg(unix)]
fn verbose_servers_say_why_they_refuse_a_client() {
    use crate::texture_rig::{serving, texture};
    let logs = [&[][..], &["-v"], &["-vv"]].map(|options| {
        let server = serving("pattern:64x64@30", options);
        let view = ["view", &server.address, "--null", "--format", "astc-8x8"];
        assert_eq!(texture(&view).status.code(), Some(1));
        server.interrupt().1
    });
    let refusal = "rushes: info: a client was refused: ";
    assert!(!logs[0].contains("info"), "{}", logs[0]);
    for log in &logs[1..] {
        let line = log.lines().find(|line| line.starts_with(refusal));
        assert!(line.is_some_and(|line| line.contains("(peer 127.0.0.1:")), "{log}");
    }
}
