//! A limit on the octets that may be sent to an unproved address.

/// Octets that may be sent for each octet received, as in RFC 9000 section 8.
const FACTOR: usize = 3;

/// The octets that may be sent to one address.
///
/// The source address of a datagram may be forged. Until an address is proved, at most three times
/// the octets received from it are sent there, so that an attacker gains nothing by directing an
/// endpoint's messages at a third party.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Credit {
    is_proved: bool,
    /// Octets that may be sent now.
    left: usize,
}

impl Credit {
    /// Creates the credit of an address that is known to be the peer's.
    pub(super) fn unlimited() -> Self {
        Self { is_proved: true, left: 0 }
    }

    pub(super) fn is_proved(&self) -> bool {
        self.is_proved
    }

    /// Marks the address as proved, because it has answered a message that was sent only to it.
    pub(super) fn prove(&mut self) {
        self.is_proved = true;
    }

    pub(super) fn receive(&mut self, len: usize) {
        self.left = self.left.saturating_add(FACTOR * len);
    }

    /// Returns whether `len` octets may be sent.
    pub(super) fn covers(&self, len: usize) -> bool {
        self.is_proved || len <= self.left
    }

    /// Deducts `len` octets; returns `false` if they may not be sent.
    pub(super) fn spend(&mut self, len: usize) -> bool {
        let covers = self.covers(len);
        if covers && !self.is_proved {
            self.left -= len;
        }
        covers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_three_times_what_it_sent_until_it_is_proved() {
        let mut credit = Credit::default();
        assert!(!credit.spend(1));
        credit.receive(100);
        assert!(credit.spend(200) && credit.covers(100) && !credit.covers(101));
        assert!(!credit.spend(101) && credit.spend(100) && !credit.spend(1));
        credit.prove();
        assert!(credit.spend(1 << 20) && credit.is_proved());
    }
}
