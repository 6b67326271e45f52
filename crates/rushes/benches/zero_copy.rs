//! What zero-copy sending saves: octets into a device that throws them away, in a network namespace
//! of this program's own, by copied and by lent slabs in turn.
//!
//! The device is an `ifb`, or a `dummy` where there is none: both take segmented messages as they
//! are, which is checked by counting what they throw away. Rows are medians; needs root and `ip`,
//! and says so without. Numbers choose the turns and the octets of a turn:
//! `cargo bench -p rushes --bench zero_copy -- 15 268435456`.
#![allow(clippy::unwrap_used, reason = "a benchmark may")]

#[cfg(target_os = "linux")]
mod sink;

#[cfg(target_os = "linux")]
fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let turns = numbers.first().copied().unwrap_or(11);
    let octets = numbers.get(1).copied().unwrap_or(128 << 20);
    match sink::measure(turns, octets) {
        Ok(rows) => sink::print(&rows),
        Err(reason) => println!("not measured: {reason}"),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("not measured: zero-copy sending is for Linux");
}
