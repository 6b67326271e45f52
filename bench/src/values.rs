//! Parsing of option values.

/// Returns a size in octets: a number, optionally with K, M or G for powers of 1024.
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

/// Returns a number of runs: 1 or more.
pub(crate) fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("there must be at least one run".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("{text:?} is not a number of runs")),
    }
}

#[cfg(test)]
mod tests {
    use super::{parse_count, parse_size};

    #[test]
    fn nothing_is_measured_in_no_run() {
        assert_eq!(parse_count("3"), Ok(3));
        for wrong in ["0", "-1", "three", ""] {
            assert!(parse_count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("667000"), Ok(667_000));
        assert_eq!(parse_size("2K"), Ok(2048));
        for wrong in ["", "0", "1.5M", "K", "1T", "99999999999999999999G", "9999999999999999G"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
