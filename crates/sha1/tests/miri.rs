//! Every instruction set compared with the others, in few enough steps for Miri (`.ci/miri`).

use rushes_sha1::{HmacLanes, InstructionSet, Message};

#[test]
fn lanes_of_every_set_compute_the_same_tags() {
    let bodies: Vec<Vec<u8>> = (0..18).map(|n| vec![n as u8; 9 * n]).collect();
    let message = |body| Message { body, suffix: [1, 2, 3, 4] };
    let messages: Vec<_> = bodies.iter().map(|body| message(&body[..])).collect();
    let sets = InstructionSet::ALL.into_iter().filter_map(|set| HmacLanes::with(set, b"a key"));
    let mut first: Option<Vec<[u8; 20]>> = None;
    for lanes in sets.chain(HmacLanes::new(b"a key")) {
        let mut tags = vec![[0; 20]; messages.len()];
        lanes.tags(&messages, &mut tags);
        assert_eq!(*first.get_or_insert_with(|| tags.clone()), tags, "{lanes:?}");
    }
    // HMAC-SHA1 of 01 02 03 04, computed by Python's module `hmac`.
    let expected = "22d0879381d13795e5a9bcdebf80721109c3f683";
    let of_first = first.map(|tags| tags[0].map(|octet| format!("{octet:02x}")).concat());
    assert!(of_first.is_none_or(|tag| tag == expected), "a wrong tag");
}
