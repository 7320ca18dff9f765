//! The limit of `--model-memory-limit`.

/// Units behind a number, with their bytes.
const UNITS: [(&str, u64); 8] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// Bytes that a limit means: a whole number of them or of a unit, or a percentage of `machine`, the machine's memory.
/// Nothing where there is no limit.
///
/// # Errors
/// Another text, 0, and a percentage where nobody knows the machine's memory.
pub(super) fn bytes(text: &str, machine: Option<u64>) -> Result<Option<u64>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let expected = || {
        format!(
            "--model-memory-limit expects bytes from 1 on, such as 8589934592 or 8GiB, or a percentage of the machine's \
             memory from 1% to 100%, got '{text}'"
        )
    };
    let number = |digits: &str| digits.trim().parse::<u64>().ok().filter(|number| *number > 0);
    if let Some(percent) = text.strip_suffix('%') {
        let percent = number(percent).filter(|percent| *percent <= 100).ok_or_else(expected)?;
        let unknown =
            || format!("--model-memory-limit is {text}, but this machine's memory is not known");
        return machine.ok_or_else(unknown).map(|bytes| Some(bytes / 100 * percent));
    }
    let of_unit = |(name, bytes): &(&str, u64)| {
        let (at, end) = text.split_at_checked(text.len().checked_sub(name.len())?)?;
        end.eq_ignore_ascii_case(name).then_some((at, *bytes))
    };
    let (digits, unit) = UNITS.iter().find_map(of_unit).unwrap_or((text, 1));
    number(digits).and_then(|number| number.checked_mul(unit)).map(Some).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_of_bytes_or_a_share_of_the_machine() {
        let machine = Some(16_u64 << 30);
        for (text, expected) in [
            ("", None),
            ("1500", Some(1500)),
            ("2GiB", Some(2 << 30)),
            ("2 gib", Some(2 << 30)),
            ("3MB", Some(3_000_000)),
            ("25%", Some((16_u64 << 30) / 100 * 25)),
        ] {
            assert_eq!(bytes(text, machine), Ok(expected), "{text}");
        }
        for text in ["0", "-1", "x", "GiB", "1.5GiB", "101%", "0%", "99999999999TiB", "é"] {
            let error = bytes(text, machine).unwrap_err();
            assert!(error.contains("expects bytes") && error.contains(text), "{error}");
        }
        assert!(bytes("5%", None).unwrap_err().contains("not known"));
    }
}
