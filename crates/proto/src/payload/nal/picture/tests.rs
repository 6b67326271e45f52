//! Positions from picture order counts.

use std::collections::HashSet;

use proptest::prelude::*;

use super::reading::Picture;
use super::step::Step;
use super::timeline::Timeline;

fn picture(count: i64) -> Picture {
    Picture { count, starts: false, may_have_leading: false }
}

fn start(count: i64, may_have_leading: bool) -> Picture {
    Picture { count, starts: true, may_have_leading }
}

/// Returns the positions of a sequence of frames, in decoding order.
fn sequence(timeline: &mut Timeline, counts: &[i64]) -> Vec<i64> {
    let [first, rest @ ..] = counts else { return Vec::new() };
    let mut positions = vec![timeline.push(start(*first, true), false)];
    positions.extend(rest.iter().map(|count| timeline.push(picture(*count), false)));
    positions
}

/// Returns positions in frame intervals.
fn frames(positions: &[i64]) -> Vec<f64> {
    positions.iter().map(|position| *position as f64 / 120.0).collect()
}

#[test]
fn positions_count_the_frames_before_a_picture() {
    let mut timeline = Timeline::new(2);
    assert_eq!(sequence(&mut timeline, &[0, 8, 4, 2, 6]), [0, 480, 240, 120, 360]);
    assert_eq!(sequence(&mut timeline, &[0, 4, 2, 12, 8]), [600, 840, 720, 1320, 1080]);
    assert_eq!(sequence(&mut timeline, &[0]), [1440]);
}

#[test]
fn a_gap_in_the_counts_is_a_gap_in_the_positions() {
    let mut timeline = Timeline::new(1);
    assert_eq!(frames(&sequence(&mut timeline, &[0, 1, 5, 6])), [0.0, 1.0, 5.0, 6.0]);
}

#[test]
fn fields_are_half_an_interval_apart() {
    let mut timeline = Timeline::new(2);
    let mut push = |picture| timeline.push(picture, true);
    assert_eq!(push(start(0, true)), 0);
    assert_eq!([1, 4, 5, 2, 3].map(|count| push(picture(count))), [60, 240, 300, 120, 180]);
    assert_eq!(push(start(0, true)), 360);
    // Both fields of a frame may have the same count.
    assert_eq!([0, 2, 2].map(|count| push(picture(count))), [420, 480, 540]);
    assert_eq!(push(start(0, true)), 600);
}

#[test]
fn a_picture_that_was_taken_for_two_takes_no_time() {
    let mut timeline = Timeline::new(2);
    assert_eq!(sequence(&mut timeline, &[0, 4, 4, 2, 2, 8]), [0, 240, 241, 120, 121, 480]);
}

#[test]
fn leading_pictures_of_the_first_sequence_have_negative_positions() {
    let mut timeline = Timeline::new(1);
    assert_eq!(frames(&sequence(&mut timeline, &[8, 4, 6, 9])), [0.0, -4.0, -2.0, 1.0]);
    assert_eq!(frames(&sequence(&mut timeline, &[0, -2]))[..1], [6.0]);
}

#[test]
fn the_number_of_leading_pictures_is_learnt() {
    let mut timeline = Timeline::new(1);
    sequence(&mut timeline, &[0, 2, 1]);
    // There is no room for two pictures before the first. The fourth has its right position.
    assert_eq!(sequence(&mut timeline, &[0, -2, -1, 1]), [360, 358, 359, 720]);
    let learnt = sequence(&mut timeline, &[0, -1, -2, 2, 1]);
    assert_eq!(frames(&learnt), [9.0, 8.0, 7.0, 11.0, 10.0]);
    // The next sequence begins two positions later, in case two more pictures of this one follow.
    assert_eq!(frames(&sequence(&mut timeline, &[0])), [14.0]);
    assert_eq!(frames(&sequence(&mut timeline, &[0, 1, 2])), [13.0 + 2.0, 16.0, 17.0]);
}

#[test]
fn too_much_room_for_leading_pictures_is_given_back() {
    let mut timeline = Timeline::new(1);
    sequence(&mut timeline, &[0, -2, -1, 1]);
    assert_eq!(sequence(&mut timeline, &[0, 1, 2, 3, 4]), [480, 481, 482, 600, 720]);
}

#[test]
fn a_picture_that_can_have_no_leading_pictures_has_no_room_for_them() {
    let mut timeline = Timeline::new(1);
    sequence(&mut timeline, &[0, -2, -1, 1]);
    assert_eq!(timeline.push(start(0, false), false), 240);
}

#[test]
fn a_foreseen_sequence_needs_no_guess() {
    let mut timeline = Timeline::new(1);
    timeline.foresee(Step::new(2), Some(2));
    assert_eq!(sequence(&mut timeline, &[0, -2, 4, 2]), [120, 0, 360, 240]);
    let step = timeline.end();
    timeline.foresee(step, Some(0));
    assert_eq!(sequence(&mut timeline, &[0, 4, 2]), [480, 720, 600]);
}

#[test]
fn frames_whose_counts_differ_by_one_show_the_step_of_h264() {
    let mut timeline = Timeline::new(2);
    let positions = sequence(&mut timeline, &[0, 4, 2, 1, 3, 8, 6, 5, 7]);
    assert_eq!(positions[..3], [0, 240, 120]);
    assert!(positions[3] < 120 && (121..240).contains(&positions[4]));
    assert_eq!(frames(&positions[5..]), [8.0, 6.0, 5.0, 7.0]);
    assert_eq!(frames(&sequence(&mut timeline, &[0, 2, 1])), [9.0, 11.0, 10.0]);
}

#[test]
fn a_sequence_shows_the_step_of_the_next() {
    let mut timeline = Timeline::new(1);
    assert_eq!(frames(&sequence(&mut timeline, &[0, 4, 2])), [0.0, 4.0, 2.0]);
    assert_eq!(frames(&sequence(&mut timeline, &[0, 4, 2])), [5.0, 7.0, 6.0]);
    // A step that frames contradict is replaced.
    assert_eq!(frames(&sequence(&mut timeline, &[0, 2, 1, 4, 3]))[3..], [12.0, 11.0]);
}

#[test]
fn a_long_sequence_shows_its_own_step() {
    let mut timeline = Timeline::new(1);
    let counts: Vec<i64> = (0..100).map(|n| 2 * n).collect();
    let positions = frames(&sequence(&mut timeline, &counts));
    let distances: HashSet<i64> =
        positions[40..].windows(2).map(|pair| (pair[1] - pair[0]) as i64).collect();
    assert_eq!(distances, HashSet::from([1]));
}

#[test]
fn a_picture_without_a_count_has_the_next_position() {
    let mut timeline = Timeline::new(2);
    assert_eq!([false; 3].map(|is_field| timeline.push_in_order(is_field)), [0, 120, 240]);
    assert_eq!(timeline.push_in_order(true), 360);
    assert_eq!(sequence(&mut timeline, &[0, 4, 2]), [420, 660, 540]);
    assert_eq!(timeline.push_in_order(false), 780);
    // The picture without a count ended the sequence, so no picture is known to precede this one.
    assert_eq!(timeline.push(picture(8), false), 900);
}

#[test]
fn a_count_that_contradicts_its_sequence_starts_another() {
    let mut timeline = Timeline::new(1);
    let counts: Vec<i64> = (0..100).collect();
    sequence(&mut timeline, &counts);
    assert_eq!(frames(&[timeline.push(picture(3), false)]), [100.0]);
    assert_eq!(frames(&[timeline.push(picture(1 << 40), false)]), [101.0]);
    assert_eq!(frames(&[timeline.push(picture(-(1 << 40)), false)]), [102.0]);
}

/// Returns a strategy for the counts of a sequence in frames, in decoding order: mini groups whose
/// last picture is first, some after leading pictures.
fn structure() -> impl Strategy<Value = Vec<i64>> {
    let leading = prop_oneof![2 => Just(0..0), 1 => (1..8_i64).prop_map(|n| -n..0)];
    let groups = prop::collection::vec((1..9_i64, any::<bool>()), 0..12);
    (leading, groups).prop_flat_map(|(leading, groups)| {
        let leading = Just(leading.collect::<Vec<i64>>()).prop_shuffle();
        let mut first = 1;
        let groups: Vec<_> = groups
            .into_iter()
            .map(|(len, is_shuffled)| {
                let group: Vec<i64> = (first..first + len).rev().collect();
                first += len;
                let group = Just(group);
                if is_shuffled { group.prop_shuffle().boxed() } else { group.boxed() }
            })
            .collect();
        (leading, groups).prop_map(|(leading, groups)| [vec![0], leading, groups.concat()].concat())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn positions_have_the_order_of_presentation_however_wrong_the_guesses_are(
        sequences in prop::collection::vec((structure(), 1..5_i64, any::<bool>()), 1..12),
        guess in 1..3_i64,
    ) {
        let mut timeline = Timeline::new(guess);
        let mut presented = Vec::new();
        for (number, (structure, step, has_gap)) in sequences.iter().enumerate() {
            let counts: Vec<i64> = structure
                .iter()
                .map(|count| count * step + if *has_gap && *count > 9 { 50 } else { 0 })
                .collect();
            let positions = sequence(&mut timeline, &counts);
            presented.extend(counts.iter().zip(positions).map(|(count, it)| (number, *count, it)));
        }
        presented.sort_unstable();
        prop_assert!(presented.windows(2).all(|pair| pair[0].2 < pair[1].2), "{presented:?}");
    }

    #[test]
    fn right_guesses_put_frames_one_interval_apart(
        sequences in prop::collection::vec(structure(), 1..8),
    ) {
        let mut timeline = Timeline::new(1);
        let mut positions = Vec::new();
        for structure in &sequences {
            let leading = -structure.iter().min().unwrap();
            let step = timeline.end();
            timeline.foresee(step, Some(leading));
            positions.extend(sequence(&mut timeline, structure));
        }
        positions.sort_unstable();
        let expected: Vec<i64> = (0..).map(|n| 120 * n).take(positions.len()).collect();
        prop_assert_eq!(positions, expected);
    }

    #[test]
    fn any_counts_have_positions_of_their_own(
        pictures in prop::collection::vec(
            (
                prop_oneof![
                    8 => -20..200_i64,
                    1 => any::<i32>().prop_map(i64::from),
                    1 => -(1_i64 << 49)..1 << 49,
                ],
                prop::bool::weighted(0.1),
                any::<bool>(),
                prop::bool::weighted(0.05),
            ),
            0..300,
        ),
    ) {
        let mut timeline = Timeline::new(2);
        let mut given = HashSet::new();
        for (count, starts, is_field, is_unknown) in pictures {
            let position = if is_unknown {
                timeline.push_in_order(is_field)
            } else {
                timeline.push(Picture { count, starts, may_have_leading: true }, is_field)
            };
            prop_assert!(given.insert(position));
        }
    }
}
