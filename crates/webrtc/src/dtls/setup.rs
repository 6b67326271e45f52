//! Which end begins the handshake, as in `a=setup` (RFC 4145, RFC 8842 section 5).

use std::fmt;
use std::str::FromStr;

use super::error::SetupError;

/// Which end begins the handshake. Its text is the value of `a=setup`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Setup {
    /// The author of the description is the client of DTLS.
    Active,
    /// The author of the description is the server of DTLS, and waits.
    Passive,
    /// The author can be either: the answer decides. Only offers say so.
    ActPass,
}

impl Setup {
    /// Returns what the answer to an offer should say. It begins if it may (RFC 8842 section 5.3),
    /// because the answer need not reach the offerer first.
    #[must_use]
    pub fn answer(self) -> Self {
        match self {
            Self::Active => Self::Passive,
            Self::Passive | Self::ActPass => Self::Active,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Passive => "passive",
            Self::ActPass => "actpass",
        }
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Setup {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<Self, SetupError> {
        let all = [Self::Active, Self::Passive, Self::ActPass];
        let is_named = |one: &Self| one.name().eq_ignore_ascii_case(text.trim());
        all.into_iter().find(is_named).ok_or(SetupError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_end_of_an_offer_and_its_answer_is_the_client() {
        for setup in [Setup::Active, Setup::Passive, Setup::ActPass] {
            assert_eq!(setup.to_string().to_uppercase().parse(), Ok(setup));
            let answer = setup.answer();
            assert_ne!(answer, Setup::ActPass);
            assert_ne!(answer, setup);
        }
        assert_eq!("holdconn".parse::<Setup>(), Err(SetupError));
    }
}
