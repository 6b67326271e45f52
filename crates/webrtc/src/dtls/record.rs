//! What is read of records outside the engine: enough to drop some before it sees them.

/// Octets of a record's header (RFC 6347 section 4.1).
const RECORD_LEN: usize = 13;
/// Octets of the header of a handshake message or its fragment (RFC 6347 section 4.2.2).
const HANDSHAKE_LEN: usize = 12;

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const HELLO_VERIFY_REQUEST: u8 = 3;
const FATAL: u8 = 2;

/// The random of a `ServerHello` that is a `HelloRetryRequest` (RFC 8446 section 4.1.3) begins with
/// these octets.
const RETRY: [u8; 4] = [0xcf, 0x21, 0xad, 0x74];

/// The first record of a datagram, if it is not encrypted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain<'a> {
    kind: u8,
    body: &'a [u8],
}

/// A handshake message, or the beginning of one.
#[derive(Clone, Copy, Debug)]
struct Message<'a> {
    kind: u8,
    number: u16,
    /// Whether the body begins with the message's first octet.
    is_beginning: bool,
    body: &'a [u8],
}

impl<'a> Plain<'a> {
    /// Returns the first record of a datagram if it is of epoch 0.
    pub(super) fn first(datagram: &'a [u8]) -> Option<Self> {
        let (header, rest) = datagram.split_at_checked(RECORD_LEN)?;
        // The first octet of a record of DTLS 1.3 that is encrypted is none of the plain types.
        let is_plain = (20..=26).contains(&header[0]) && header[3..5] == [0, 0];
        let len = usize::from(u16::from_be_bytes([header[11], header[12]]));
        Some(Self { kind: header[0], body: rest.get(..len)? }).filter(|_| is_plain)
    }

    /// Returns whether it carries handshake messages.
    pub(super) fn is_handshake(self) -> bool {
        self.kind == HANDSHAKE
    }

    /// Returns whether it can belong to a handshake.
    pub(super) fn is_of_handshake(self) -> bool {
        self.is_handshake() || (self.kind == CHANGE_CIPHER_SPEC && *self.body == [1])
    }

    /// Returns the description of a fatal alert.
    pub(super) fn fatal_alert(self) -> Option<u8> {
        match *self.body {
            [FATAL, description] if self.kind == ALERT => Some(description),
            _ => None,
        }
    }

    /// Returns whether it is a `ClientHello` or part of one.
    pub(super) fn is_client_hello(self) -> bool {
        self.message().is_some_and(|message| message.kind == CLIENT_HELLO)
    }

    /// Returns whether it begins the first message of a handshake.
    pub(super) fn is_first(self) -> bool {
        self.message().is_some_and(|message| message.is_beginning && message.number == 0)
    }

    /// Returns the random of a `ClientHello`.
    pub(super) fn random(self) -> Option<[u8; 32]> {
        let message = self.message()?;
        let has_random = message.kind == CLIENT_HELLO && message.is_beginning;
        message.body.get(2..34)?.try_into().ok().filter(|_| has_random)
    }

    /// Returns whether the record asks the client to prove its address.
    pub(super) fn asks_for_proof(self) -> bool {
        let Some(message) = self.message() else { return false };
        match message.kind {
            _ if !message.is_beginning => false,
            HELLO_VERIFY_REQUEST => true,
            SERVER_HELLO => message.body.get(2..6) == Some(&RETRY),
            _ => false,
        }
    }

    fn message(self) -> Option<Message<'a>> {
        let (header, body) = self.body.split_at_checked(HANDSHAKE_LEN)?;
        let number = u16::from_be_bytes([header[4], header[5]]);
        let is_beginning = header[6..9] == [0, 0, 0];
        Some(Message { kind: header[0], number, is_beginning, body })
            .filter(|_| self.is_handshake())
    }
}

/// Writes an alert that ends the handshake, before there are keys (RFC 6347 section 4.1.2.7).
pub(super) fn fatal_alert(description: u8) -> Vec<u8> {
    // A number that no earlier record has.
    vec![ALERT, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 2, FATAL, description]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_that_is_written_is_read() {
        let alert = fatal_alert(42);
        let record = Plain::first(&alert).unwrap();
        assert_eq!(record.fatal_alert(), Some(42));
        assert!(!record.is_of_handshake() && !record.is_client_hello());
        let mut encrypted = alert;
        encrypted[4] = 1;
        assert!(Plain::first(&encrypted).is_none());
    }

    proptest::proptest! {
        #[test]
        fn any_octets_are_read(mut octets: Vec<u8>, kind in 20..27_u8, message in 0..5_u8) {
            if octets.len() >= 26 {
                octets[0] = kind;
                octets[3..5].fill(0);
                octets[11..13].copy_from_slice(&[0, 13]);
                octets[13] = message;
                octets[19..22].fill(0);
            }
            if let Some(record) = Plain::first(&octets) {
                proptest::prop_assert!(!(record.is_client_hello() && record.asks_for_proof()));
                proptest::prop_assert!(record.random().is_none() || record.is_client_hello());
                proptest::prop_assert!(!(record.is_handshake() && record.fatal_alert().is_some()));
            }
        }
    }
}
