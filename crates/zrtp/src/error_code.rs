//! The codes of Error messages (RFC 6189 section 5.9).

use std::fmt;

/// Defines [`ErrorCode`] from rows of name, value and the RFC's meaning.
macro_rules! error_codes {
    ($($name:ident = $value:literal, $meaning:literal;)*) => {
        /// The reason why a key agreement ends with an Error message (RFC 6189 table 8).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $(#[doc = concat!($meaning, ".")] $name,)*
            /// A value that RFC 6189 does not define.
            Other(u32),
        }

        impl ErrorCode {
            /// All codes of RFC 6189 table 8.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }

        impl From<u32> for ErrorCode {
            fn from(value: u32) -> Self {
                match value {
                    $($value => Self::$name,)*
                    other => Self::Other(other),
                }
            }
        }

        impl From<ErrorCode> for u32 {
            fn from(code: ErrorCode) -> Self {
                match code {
                    $(ErrorCode::$name => $value,)*
                    ErrorCode::Other(value) => value,
                }
            }
        }

        impl fmt::Display for ErrorCode {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name => f.write_str($meaning),)*
                    Self::Other(value) => write!(f, "Unknown error {value:#x}"),
                }
            }
        }
    };
}

error_codes! {
    MalformedPacket = 0x10, "Malformed packet (CRC OK, but wrong structure)";
    CriticalSoftware = 0x20, "Critical software error";
    UnsupportedVersion = 0x30, "Unsupported ZRTP version";
    HelloMismatch = 0x40, "Hello components mismatch";
    HashType = 0x51, "Hash Type not supported";
    CipherType = 0x52, "Cipher Type not supported";
    KeyExchange = 0x53, "Public key exchange not supported";
    AuthTag = 0x54, "SRTP auth tag not supported";
    SasScheme = 0x55, "SAS rendering scheme not supported";
    NoSharedSecret = 0x56, "No shared secret available, DH mode required";
    BadPublicValue = 0x61, "DH Error: bad pvi or pvr ( == 1, 0, or p-1)";
    HashedData = 0x62, "DH Error: hvi != hashed data";
    UntrustedRelay = 0x63, "Received relayed SAS from untrusted MiTM";
    BadConfirmMac = 0x70, "Auth Error: Bad Confirm pkt MAC";
    NonceReuse = 0x80, "Nonce reuse";
    EqualZids = 0x90, "Equal ZIDs in Hello";
    SsrcCollision = 0x91, "SSRC collision";
    ServiceUnavailable = 0xa0, "Service unavailable";
    ProtocolTimeout = 0xb0, "Protocol timeout error";
    GoClearNotAllowed = 0x100, "GoClear message received, but not allowed";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_its_value() {
        assert_eq!(ErrorCode::ALL.len(), 20);
        for &code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from(u32::from(code)), code);
        }
    }

    #[test]
    fn a_value_outside_the_table_is_kept() {
        assert_eq!(ErrorCode::from(0x57), ErrorCode::Other(0x57));
        assert_eq!(u32::from(ErrorCode::Other(0x57)), 0x57);
        assert_eq!(ErrorCode::Other(0x57).to_string(), "Unknown error 0x57");
    }

    #[test]
    fn a_code_reads_as_the_rfc_names_it() {
        assert_eq!(ErrorCode::from(0x70).to_string(), "Auth Error: Bad Confirm pkt MAC");
    }
}
