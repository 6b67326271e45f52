//! Files that hold a secret: nobody but their owner may read them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context as _;
use zeroize::Zeroizing;

use crate::Usage;

/// Octets of the longest such file.
const LEN_MAX: u64 = 64 << 10;

/// The text of `file`, without the space around it.
///
/// # Errors
/// [`Usage`] if others than its owner may read or write it.
pub(crate) fn read(file: &Path) -> anyhow::Result<Zeroizing<String>> {
    let name = file.display();
    let opened = File::open(file).with_context(|| name.to_string())?;
    let metadata = opened.metadata().with_context(|| name.to_string())?;
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
        if metadata.is_file() && mode & 0o077 != 0 {
            let reason = format!(
                "{name} holds a secret, and others may read or write it (mode {mode:03o}); \
                 first: chmod 600 {name}"
            );
            return Err(Usage(reason).into());
        }
    }
    let mut text = Zeroizing::new(String::with_capacity(metadata.len().min(LEN_MAX) as usize + 1));
    opened.take(LEN_MAX).read_to_string(&mut text).with_context(|| name.to_string())?;
    Ok(Zeroizing::new(text.trim().to_owned()))
}
