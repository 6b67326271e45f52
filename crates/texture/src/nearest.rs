//! Finds the known name that a misspelled one most probably stands for.

/// Returns the name among `known` that differs least from `name`, ignoring case, or `None` if even
/// that name differs in more than a third of its letters.
///
/// ```
/// use rushes_texture::nearest;
///
/// assert_eq!(nearest("remote_prot", ["local_port", "remote_port"]), Some("remote_port"));
/// assert_eq!(nearest("colour", ["local_port", "remote_port"]), None);
/// ```
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let letters = |text: &str| text.to_lowercase().chars().collect::<Vec<_>>();
    let name = letters(name);
    let differs = |other: &str| differences(&name, &letters(other));
    let (least, nearest) = known.into_iter().map(|other| (differs(other), other)).min()?;
    (least <= (nearest.chars().count() / 3).max(1)).then_some(nearest)
}

/// Returns the question whether [`nearest`] was meant, to append to the text of an error; empty if
/// no name is near.
pub fn did_you_mean<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    nearest(name, known).map_or_else(String::new, |nearest| format!("; did you mean {nearest:?}?"))
}

/// Returns the number of letters to insert, remove, replace, or exchange with the next one.
fn differences(one: &[char], other: &[char]) -> usize {
    // The table has a row for each letter of `one`; a row depends on the two before it.
    let mut before = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, theirs) in other.iter().enumerate() {
            let replaced = last[j] + usize::from(letter != theirs);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == other[j - 1] && one[i - 1] == *theirs {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_inserted_removed_replaced_and_exchanged() {
        let differences = |one: &str, other: &str| {
            let letters = |text: &str| text.chars().collect::<Vec<_>>();
            differences(&letters(one), &letters(other))
        };
        for (one, other, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("abc", "abcd", 1),
            ("abc", "ac", 1),
            ("abc", "adc", 1),
            ("abc", "bac", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(differences(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn only_similar_names_are_suggested() {
        let known = ["rgb24", "rgba8", "bc1", "bc3", "ycocg-bc3"];
        assert_eq!(nearest("RGBA", known), Some("rgba8"));
        assert_eq!(nearest("ycocgbc3", known), Some("ycocg-bc3"));
        assert_eq!(nearest("h265", known), None);
        assert_eq!(nearest("bc1", []), None);
        assert_eq!(did_you_mean("bc", ["bc1"]), "; did you mean \"bc1\"?");
        assert_eq!(did_you_mean("film", ["bc1"]), "");
    }
}
