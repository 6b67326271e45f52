//! What a server's response refers to, for fuzzing: these texts are a stranger's.

use super::url::Url;
use super::{ClientError, link};

/// Reads the references of a response as a client does: the URL that `location` names in a response of `base`, and the
/// number of servers in the `Link` field `links`.
///
/// # Errors
/// [`ClientError::Url`].
#[doc(hidden)]
pub fn read_fields(
    base: &str,
    location: &str,
    links: &str,
) -> Result<(String, usize), ClientError> {
    let url = Url::parse(base)?.join(location)?;
    // A second reading finds the same URL, which a request can name.
    let again = Url::parse(url.as_str())?;
    debug_assert_eq!(again, url);
    url.target()?;
    if url.is_encrypted() {
        url.server_name()?;
    }
    Ok((url.as_str().to_owned(), link::parse(links).len()))
}
