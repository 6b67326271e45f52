//! Command lines with words, quotes and placeholders.

/// Splits a command line into words, at white space outside of single and double quotes; a
/// backslash escapes the next character, except between single quotes.
pub(super) fn split(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (None, open @ ('"' | '\'')) => {
                quote = Some(open);
                // An empty pair of quotes is also a word.
                word.get_or_insert_default();
            }
            (None, space) if space.is_whitespace() => words.extend(word.take()),
            (None | Some('"'), '\\') => {
                let next = characters.next().ok_or("a backslash at the end")?;
                word.get_or_insert_default().push(next);
            }
            (_, other) => word.get_or_insert_default().push(other),
        }
    }
    if let Some(open) = quote {
        return Err(format!("no second {open} in {line:?}"));
    }
    words.extend(word);
    if words.is_empty() { Err("an empty command".to_owned()) } else { Ok(words) }
}

/// Replaces placeholders: `{name}` becomes the value of `name`.
pub(super) fn fill(word: &str, values: &[(&str, String)]) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), word);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}').ok_or_else(|| format!("no }} in {word:?}"))?;
        let value = values.iter().find(|(one, _)| *one == name);
        let (_, value) = value.ok_or_else(|| {
            let names: Vec<String> = values.iter().map(|(name, _)| format!("{{{name}}}")).collect();
            format!("{{{name}}} is not one of {}", names.join(", "))
        })?;
        filled.push_str(before);
        filled.push_str(value);
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_spaces_outside_of_quotes() {
        for (line, words) in [
            ("ffmpeg -i  a.265", &["ffmpeg", "-i", "a.265"][..]),
            (" one\ttwo\n", &["one", "two"]),
            ("sh -c 'a \"b\" | c'", &["sh", "-c", "a \"b\" | c"]),
            (r#"a"b c"'d e'f"#, &["ab cd ef"]),
            (r#"a\ b "\"c\"" '\'"#, &["a b", "\"c\"", "\\"]),
            ("a '' b", &["a", "", "b"]),
        ] {
            assert_eq!(split(line).unwrap(), words, "{line}");
        }
        for wrong in ["", "  ", "a 'b", "\"", "a\\"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_place_is_filled_with_its_value() {
        let values = [("port", "5004".to_owned()), ("host", "127.0.0.1".to_owned())];
        assert_eq!(fill("rtp://{host}:{port}?a=b", &values).unwrap(), "rtp://127.0.0.1:5004?a=b");
        assert_eq!(fill("plain", &values).unwrap(), "plain");
        for (wrong, word) in [("{prot}", "{port}"), ("{port", "no }"), ("{}", "{host}")] {
            assert!(fill(wrong, &values).unwrap_err().contains(word), "{wrong}");
        }
    }
}
