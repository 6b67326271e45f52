//! Files that contain a secret, which only their owner may read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context as _;
use zeroize::Zeroizing;

use crate::Usage;

/// Maximum number of octets in a file.
const LEN_MAX: u64 = 64 << 10;

/// Reads `file`, without leading and trailing white space.
///
/// # Errors
/// [`Usage`] if others may read or write the file, or if it is too long.
pub(crate) fn read(file: &Path) -> anyhow::Result<Zeroizing<String>> {
    let name = file.display();
    let opened = File::open(file).with_context(|| name.to_string())?;
    let metadata = opened.metadata().with_context(|| name.to_string())?;
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
        if metadata.is_file() && mode & 0o077 != 0 {
            let reason = format!(
                "{name} holds a secret, and other users may read or write it (mode \
                 {mode:03o}); run: chmod 600 {name}"
            );
            return Err(Usage(reason).into());
        }
    }
    let mut text = Zeroizing::new(String::with_capacity(metadata.len().min(LEN_MAX) as usize + 1));
    opened.take(LEN_MAX + 1).read_to_string(&mut text).with_context(|| name.to_string())?;
    if text.len() as u64 > LEN_MAX {
        return Err(Usage(format!("{name} is longer than 64 KiB: not a key or secret")).into());
    }
    Ok(Zeroizing::new(text.trim().to_owned()))
}
