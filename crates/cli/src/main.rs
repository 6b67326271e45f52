//! The program `rushes`.
fn main() {}
