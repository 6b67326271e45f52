//! The list of skipped tests at the end of `cargo test`.

use crate::skipped::summary;

#[test]
fn skipped_tests_are_counted_by_reason_with_what_to_install() {
    let notes = "missing: ffmpeg\tffmpeg\tinterop ffmpeg::a\n\
                 no IPv6\t\tpaths b\n\
                 missing: ffmpeg\tffmpeg\tinterop ffmpeg::c\n\
                 missing: xvfb, cc\txvfb gcc\tprogram d\n\
                 no IPv6\t\tpaths b\n";
    assert_eq!(
        summary(notes),
        "\nSKIPPED 4 tests, wholly or in part:\n\
         SKIPPED    2 missing: ffmpeg: interop ffmpeg::a, ...\n\
         SKIPPED    1 missing: xvfb, cc: program d\n\
         SKIPPED    1 no IPv6: paths b\n\
         SKIPPED Try: sudo apt-get install ffmpeg gcc xvfb\n\
         SKIPPED or .ci/peers and .ci/screen, for all that the tests use\n"
    );
    assert!(summary("no IPv6\t\tpaths b\n").ends_with("no IPv6: paths b\n"));
    assert_eq!(summary(""), "");
}
