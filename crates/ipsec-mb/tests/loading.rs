//! Which library is loaded and accepted, with stand-ins that only start.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::path::Path;
use std::process::Command;

use rushes_ipsec_mb::Library;

/// A library with the functions that are called to load it, and a manager full of functions.
const SOURCE: &str = "
#include <stdint.h>
#include <string.h>
static uint64_t manager[512];
uint32_t imb_get_version(void) { return VERSION; }
void *alloc_mb_mgr(uint64_t flags) { (void) flags; return manager; }
void free_mb_mgr(void *it) { (void) it; }
void init_mb_mgr_auto(void *it, int *arch) {
    (void) it, (void) arch;
    memset(manager, 1, sizeof manager);
    manager[1] = FEATURES;
    ((int *) manager)[15] = ERROR;
}
";

/// `IMB_FEATURE_AVX512_SKX`, `_VAES`, `_VPCLMULQDQ` and `_SAFE_DATA`.
const FEATURES: u64 = 0x7f80;

const TESTED: u64 = 1 << 20;
const PASSED: u64 = 1 << 21;

/// The variable that says what the library is in a child of this test.
const EXPECTED: &str = "RUSHES_EXPECTED_IPSEC_MB";

/// Builds a stand-in called `name`; `false` without a compiler.
fn build(folder: &Path, name: &str, version: u32, features: u64, error: i32) -> bool {
    let source = folder.join("stand_in.c");
    std::fs::write(&source, SOURCE).unwrap();
    let compiler = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&folder.join(name), &source])
        .arg(format!("-DVERSION={version:#x}"))
        .arg(format!("-DFEATURES={features:#x}ull"))
        .arg(format!("-DERROR={error}"))
        .output();
    let Ok(output) = compiler else { return false };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    true
}

fn outcome() -> String {
    match Library::get() {
        Ok(library) => library.version().to_string(),
        Err(why) => why.to_string(),
    }
}

#[test]
fn only_a_known_version_that_has_started_without_errors_is_used() {
    if let Ok(expected) = std::env::var(EXPECTED) {
        assert_eq!(outcome(), expected);
        return;
    }
    let refused = "ipsec-mb could not be started";
    let unknown = "ipsec-mb 2.1.0 is not known: 1.3, 1.4, 1.5 and 2.0 are";
    let (one, two) = ("libIPSec_MB.so.1", "libIPSec_MB.so.2");
    let good = (one, 0x1_0300, FEATURES, 0);
    let cases = [
        (vec![good], "1.3.0"),
        (vec![(one, 0x1_0500, FEATURES | TESTED | PASSED, 0)], "1.5.0"),
        (vec![(one, 0x1_0500, FEATURES | TESTED, 0)], refused),
        (vec![(one, 0x1_0300, FEATURES, 2018)], refused),
        (vec![(two, 0x2_0100, FEATURES, 0), good], "1.3.0"),
        (vec![(two, 0x2_0100, FEATURES, 0), (one, 0x2_0100, FEATURES, 0)], unknown),
        (vec![(two, 0x2_0000, FEATURES, 0), good], "2.0.0"),
        // A library that is known and refuses is not replaced by an older one.
        (vec![(two, 0x2_0000, FEATURES, 2018), good], refused),
    ];
    for (n, (libraries, expected)) in cases.into_iter().enumerate() {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ipsec-mb-{n}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        for (name, version, features, error) in &libraries {
            if !build(&folder, name, *version, *features, *error) {
                return skipped::missing("cc", "gcc");
            }
        }
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "only_a_known_version_that_has_started_without_errors_is_used"])
            .env("LD_LIBRARY_PATH", &folder)
            .env(EXPECTED, expected)
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && out.contains("1 passed"), "{libraries:?}: {out}");
    }
}
