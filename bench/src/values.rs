//! Parsing of option values.

/// A size in octets: a number, optionally with K, M or G for powers of 1024.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return Err(format!("{unit:?} is not one of K, M, G")),
    };
    let number: usize = number.parse().map_err(|_| format!("{text:?} is not a size"))?;
    if number == 0 {
        return Err("a size is 1 or more".to_owned());
    }
    number.checked_mul(factor).ok_or_else(|| format!("{text:?} is too large"))
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("667000"), Ok(667_000));
        assert_eq!(parse_size("2K"), Ok(2048));
        for wrong in ["", "0", "1.5M", "K", "1T", "99999999999999999999G", "9999999999999999G"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
