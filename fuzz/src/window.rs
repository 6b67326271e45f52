//! Arbitrary credits for outgoing datagrams.

use rushes_delivery::{CREDIT_BYTES, Credit, Window};

/// Sends while the window permits it, and reads credits from the rest of `octets`: after a silence,
/// sending must always be possible.
pub fn send(octets: &[u8]) {
    let mut window = Window::new(1 << 20);
    let mut next = 0_u32;
    for chunk in octets.chunks(CREDIT_BYTES + 1) {
        let Some((&first, rest)) = chunk.split_first() else { continue };
        let len = usize::from(first) << 10;
        if window.has_room(len) {
            let end = (next + 1 + u32::from(first)) & 0x00ff_ffff;
            window.note_sent(first & 3, next.min(end)..end, len);
            next = end;
        } else if first & 1 == 0 {
            window.handle_silence();
            assert!(window.has_room(len));
        }
        if let Some(credit) = Credit::parse(rest) {
            assert_eq!(Credit::parse(&credit.write()), Some(credit));
            window.handle_credit(credit);
        }
    }
}
