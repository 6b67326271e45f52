//! One sender and several receivers, of which FFmpeg is one.

use crate::ffmpeg::{GOODBYE, ffmpeg_receives, format};
use crate::media::{H265, assert_same};
use crate::rig::{describe, have, ports, receive, received, send};

/// Sends one file to FFmpeg, two of `rushes recv` and a port without a program.
fn to_four(more: &[&str], receiving: &[&str]) {
    if !have(&["ffmpeg"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for file in &H265.files(folder.path()) {
        let [first, second, closed, third] = [(); 4].map(|()| ports());
        let sdp = describe(file, first, folder.path(), more);
        let copies = ["of_ffmpeg", "second", "third"];
        let copies = copies.map(|name| folder.path().join(format!("{name}.{}", H265.extension)));
        let output = ["-c", "copy", "-f", format(H265), "-y", copies[0].to_str().unwrap()];
        let process = ffmpeg_receives(&sdp, first, &output);
        let others = [(&copies[1], second), (&copies[2], third)].map(|(copy, port)| {
            receive(copy, port, &[&["--codec", H265.name()], receiving].concat())
        });
        let to = [second, closed, third].map(|port| format!("127.0.0.1:{port}"));
        let mut arguments: Vec<&str> = to.iter().flat_map(|to| ["--to", to]).collect();
        arguments.extend(more);
        let sent = send(file, first, &arguments);
        process.stop_after(GOODBYE);
        let packets = &sent["sent"]["packets"];
        for report in others.map(received) {
            assert_eq!(&report["received"]["packets"], packets, "{report} {sent}");
            assert_eq!(report["received"]["packets_lost"], 0, "{report}");
        }
        for copy in &copies {
            assert_same(file, copy);
        }
        assert_eq!(sent["destinations"].as_array().unwrap().len(), 4, "{sent}");
        assert!(sent["sent"]["refused"].as_u64().unwrap() > 0, "{sent}");
    }
}

#[test]
fn ffmpeg_is_one_of_several_receivers() {
    to_four(&["--recovery", "rtx"], &["--recovery", "rtx"]);
}
