//! Limits of memory that flags give.

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

/// A limit of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryBound {
    /// Number of bytes.
    Bytes(u64),
    /// Hundredths of the whole memory.
    Percent(u64),
}

/// Reads the limit that a flag means: a whole number of bytes or of a unit, or a percentage. `whole` names
/// the memory that a percentage refers to. Returns nothing if there is no limit.
///
/// # Errors
/// Fails for any other text, and for 0.
pub fn of(flag: &str, whole: &str, text: &str) -> Result<Option<MemoryBound>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let expected = || {
        format!(
            "--{flag} expects bytes from 1 on, such as 8589934592 or 8GiB, or a percentage of {whole} from 1% to 100%, \
             got '{text}'"
        )
    };
    let number = |digits: &str| digits.trim().parse::<u64>().ok().filter(|number| *number > 0);
    if let Some(percent) = text.strip_suffix('%') {
        let percent = number(percent).filter(|percent| *percent <= 100);
        return percent.map(|percent| Some(MemoryBound::Percent(percent))).ok_or_else(expected);
    }
    let of_unit = |(name, bytes): &(&str, u64)| {
        let (at, end) = text.split_at_checked(text.len().checked_sub(name.len())?)?;
        end.eq_ignore_ascii_case(name).then_some((at, *bytes))
    };
    let (digits, unit) = UNITS.iter().find_map(of_unit).unwrap_or((text, 1));
    let bytes = number(digits).and_then(|number| number.checked_mul(unit));
    bytes.map(|bytes| Some(MemoryBound::Bytes(bytes))).ok_or_else(expected)
}

/// Returns the bytes that `--model-memory-limit` means, where `machine` is the machine's memory.
///
/// # Errors
/// Fails as [`of`] does, and for a percentage when the machine's memory is unknown.
pub fn of_models(text: &str, machine: Option<u64>) -> Result<Option<u64>, String> {
    match of("model-memory-limit", "the machine's memory", text)? {
        None => Ok(None),
        Some(MemoryBound::Bytes(bytes)) => Ok(Some(bytes)),
        Some(MemoryBound::Percent(percent)) => {
            let unknown = || {
                format!(
                    "--model-memory-limit is {percent}%, but this machine's memory is not known"
                )
            };
            machine.map(|bytes| Some(bytes / 100 * percent)).ok_or_else(unknown)
        }
    }
}

/// Reads the limit that `--gpu-memory-limit` means.
///
/// # Errors
/// Fails as [`of`] does.
pub fn of_gpus(text: &str) -> Result<Option<MemoryBound>, String> {
    of("gpu-memory-limit", "the GPU's memory", text)
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
            assert_eq!(of_models(text, machine), Ok(expected), "{text}");
        }
        for text in ["0", "-1", "x", "GiB", "1.5GiB", "101%", "0%", "99999999999TiB", "é"] {
            let error = of_models(text, machine).unwrap_err();
            assert!(error.contains("expects bytes") && error.contains(text), "{error}");
        }
        assert!(of_models("5%", None).unwrap_err().contains("not known"));
    }

    #[test]
    fn a_limit_of_gpus_is_told_with_its_own_flag() {
        assert_eq!(of_gpus(" 60 %"), Ok(Some(MemoryBound::Percent(60))));
        assert_eq!(of_gpus("4GiB"), Ok(Some(MemoryBound::Bytes(4 << 30))));
        assert_eq!(of_gpus(""), Ok(None));
        let error = of_gpus("much").unwrap_err();
        assert!(error.starts_with("--gpu-memory-limit expects bytes"), "{error}");
        assert!(error.contains("the GPU's memory from 1% to 100%, got 'much'"), "{error}");
    }
}
