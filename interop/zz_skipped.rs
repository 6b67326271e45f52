//! The end of `cargo test --workspace`: which tests were skipped, why, and what to install.
//!
//! Cargo runs test programs in the order of their packages' names and then of their own, so this one
//! comes last, before the tests in the documentation.

#[path = "skipped.rs"]
mod skipped;

fn main() {
    let file = skipped::run();
    if let Ok(notes) = std::fs::read_to_string(&file) {
        let _ = std::fs::remove_file(&file);
        print!("{}", skipped::summary(&notes));
    }
}
