//! The stored inputs: all inputs of a target in one file, each preceded by its length in 32 bits.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Returns the folder of the stored inputs.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn file(target: &str) -> PathBuf {
    folder().join(target).with_extension("inputs")
}

/// Returns the inputs of a target; none if there is no file.
///
/// # Errors
/// The file cannot be read, or is cut short.
pub fn load(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let octets = match fs::read(file(target)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        octets => octets?,
    };
    let mut rest = &octets[..];
    let mut inputs = Vec::new();
    while let Some((len, behind)) = rest.split_first_chunk() {
        let len = u32::from_be_bytes(*len) as usize;
        let input = behind.get(..len).ok_or(io::ErrorKind::UnexpectedEof)?;
        inputs.push(input.to_vec());
        rest = &behind[len..];
    }
    if rest.is_empty() { Ok(inputs) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Stores these inputs of a target, the shortest first.
///
/// # Errors
/// The file cannot be written.
pub fn save(target: &str, mut inputs: Vec<Vec<u8>>) -> io::Result<()> {
    inputs.sort_by_key(|input| (input.len(), input.clone()));
    inputs.dedup();
    let mut octets = Vec::new();
    for input in inputs {
        octets.extend((input.len() as u32).to_be_bytes());
        octets.extend(input);
    }
    fs::create_dir_all(folder())?;
    fs::write(file(target), octets)
}
