//! Commands and options that need cargo features, and the error of a build without them.

use crate::Usage;
use crate::command_line::Command;

/// The cargo features of this build.
pub(crate) const BUILT: &[&str] = &[
    #[cfg(feature = "bench")]
    "bench",
    #[cfg(feature = "webrtc")]
    "webrtc",
    #[cfg(feature = "window")]
    "window",
];

/// Refuses a command that needs a feature missing in `built`, before anything is opened.
pub(crate) fn check(command: &Command, built: &[&str]) -> Result<(), Usage> {
    let (feature, part, instead) = match command {
        Command::Bench(_) => ("bench", "measurements", ""),
        Command::Serve(_) => ("webrtc", "WebRTC", ". send and recv need none with --to and --from"),
        Command::Send(args) if args.whip.is_some() => ("webrtc", "WebRTC", ". --to needs none"),
        Command::Recv(args) if args.whep.is_some() => ("webrtc", "WebRTC", ". --from needs none"),
        Command::Recv(args) if args.window.window => {
            ("window", "windows", ". --output-file FILE needs none")
        }
        Command::Texture(args) if args.has_window() => {
            ("window", "windows", ". --output FILE and --null need none")
        }
        Command::Texture(args) if args.has_gpu() => {
            ("window", "graphics", ". --format bc1, bc3 and ycocg-bc3 need none without --gpu")
        }
        _ => return Ok(()),
    };
    if built.contains(&feature) {
        return Ok(());
    }
    let line = format!("cargo install --path crates/cli --features {feature}");
    Err(Usage(format!("this build has no {part}; install it with: {line}{instead}")))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command_line::Cli;

    fn answer(line: &str, built: &[&str]) -> Result<(), String> {
        let cli = Cli::try_parse_from(line.split(' ')).unwrap();
        check(&cli.command, built).map_err(|error| error.to_string())
    }

    #[test]
    fn a_build_without_a_feature_explains_how_to_get_it() {
        let window = [
            "rushes recv --from 5004 --codec h265 --window",
            "rushes recv --from 5004 --codec h265 -o copy.265 --window",
            "rushes texture view 127.0.0.1:7000 --window",
            "rushes texture serve pattern --listen 7000 --format bc1 --gpu",
        ];
        for (feature, other, lines) in
            [("window", "bench", &window[..]), ("bench", "window", &["rushes bench"])]
        {
            let hint =
                format!("install it with: cargo install --path crates/cli --features {feature}");
            for line in lines {
                for built in [&[][..], &[other]] {
                    let error = answer(line, built).unwrap_err();
                    assert!(error.starts_with("this build has no "), "{line}: {error}");
                    assert!(error.contains(&hint), "{line}: {error}");
                }
                assert_eq!(answer(line, &[feature]), Ok(()), "{line}");
            }
        }
    }

    #[test]
    fn everything_else_needs_no_feature() {
        for line in [
            "rushes loopback",
            "rushes recv --from 5004 --codec h265 -o copy.265",
            "rushes texture view 127.0.0.1:7000 --null",
            "rushes texture serve pattern --listen 7000 --format bc1",
            "rushes inspect call.pcap",
            "rushes man",
        ] {
            assert_eq!(answer(line, &[]), Ok(()), "{line}");
        }
    }

    #[test]
    fn this_program_of_the_tests_has_every_feature() {
        assert_eq!(BUILT, ["bench", "webrtc", "window"]);
    }
}
