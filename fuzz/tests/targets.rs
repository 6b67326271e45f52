//! Every fuzz target runs with its stored inputs, its seeds, and changes of both, for a second. `.ci/fuzz` looks
//! for more.

use std::process::Command;

#[test]
fn every_target_accepts_its_stored_inputs_and_changes_of_them() {
    let replay = Command::new(env!("CARGO_BIN_EXE_replay")).args(["--seconds", "1"]).output();
    let replay = replay.expect("the program was built");
    let [output, errors] = [&replay.stdout, &replay.stderr].map(|it| String::from_utf8_lossy(it));
    println!("{output}");
    assert!(replay.status.success(), "{errors}");
}
