//! Credits of any kind for datagrams that go out.

use rushes_proto::delivery::CREDIT_BYTES;
use rushes_proto::delivery::Credit;
use rushes_proto::delivery::Window;

/// Sends while the window says so, and takes what is left of `octets` for credits: after a silence
/// something always may go out.
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
