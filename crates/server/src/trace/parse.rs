//! Settings of traces as texts: from clients and from flags.

use galatea_serving::trace::TraceLevel;

/// Digits at the start of a text with their sign, as C's `stol` finds them; what follows does not count.
fn leading(text: &str) -> Option<Result<i64, ()>> {
    let trimmed = text.trim_start();
    let signed = trimmed.starts_with(['-', '+']);
    let digits = trimmed.chars().skip(usize::from(signed)).take_while(char::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    let number: String = trimmed.chars().take(digits + usize::from(signed)).collect();
    Some(number.parse().map_err(|_| ()))
}

/// A setting that is an unsigned 32-bit number; a negative one wraps around.
///
/// # Errors
/// Returns a sentence that names the setting, when the text is not a number or is out of range.
pub(crate) fn unsigned(setting: &str, text: &str) -> Result<u32, String> {
    let Some(number) = leading(text) else {
        return Err(format!("Unable to parse '{setting}', got: {text}"));
    };
    number
        .ok()
        .and_then(|number| {
            let size = u32::try_from(number.unsigned_abs()).ok()?;
            Some(if number < 0 { size.wrapping_neg() } else { size })
        })
        .ok_or_else(|| {
            format!(
                "Unable to parse '{setting}', value is out of range [ 0, {} ], got: {text}",
                u32::MAX
            )
        })
}

/// The number of traces still to be made; -1 for any. `got` stands before a value that is too small.
///
/// # Errors
/// Returns a sentence when the text is not a number or is out of range.
pub(crate) fn count(text: &str, got: &str) -> Result<i32, String> {
    let Some(number) = leading(text) else {
        return Err(format!("Unable to parse 'trace_count', got: {text}"));
    };
    match number.map(i32::try_from) {
        Ok(Ok(count)) if count >= -1 => Ok(count),
        Ok(Ok(count)) => {
            Err(format!("Unable to parse 'trace_count'. Expecting value >= -1, got:{got}{count}"))
        }
        _ => Err(format!(
            "Unable to parse 'trace_count', value is out of range [ -1, {} ], got: {text}",
            i32::MAX
        )),
    }
}

/// Levels by name. Unknown names do not count; where no name is known the level stays as it is.
///
/// # Errors
/// Fails when OFF is not alone.
pub(crate) fn level<'a>(
    names: impl ExactSizeIterator<Item = &'a str>,
) -> Result<Option<TraceLevel>, String> {
    let alone = names.len() == 1;
    let mut level = None;
    for name in names {
        let known = level.get_or_insert_with(TraceLevel::default);
        match name {
            "OFF" if !alone => {
                return Err("Expect only one trace level 'OFF' is specified".to_owned());
            }
            "OFF" => {}
            "TIMESTAMPS" => known.timestamps = true,
            "TENSORS" => known.tensors = true,
            _ if known.is_off() => level = None,
            _ => {}
        }
    }
    Ok(level)
}

/// The names of a level.
pub(crate) fn level_names(level: TraceLevel) -> Vec<&'static str> {
    let names = [("TIMESTAMPS", level.timestamps), ("TENSORS", level.tensors)];
    let mut names: Vec<&str> = names.iter().filter(|(_, on)| *on).map(|&(name, _)| name).collect();
    if names.is_empty() {
        names.push("OFF");
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_triton_reads_them() {
        let rate = |text| unsigned("trace_rate", text);
        assert_eq!(rate("5"), Ok(5));
        assert_eq!(rate("1abc"), Ok(1));
        assert_eq!(rate("-2"), Ok(4_294_967_294));
        assert_eq!(rate(""), Err("Unable to parse 'trace_rate', got: ".to_owned()));
        for text in ["99999999999", "-99999999999", "99999999999999999999"] {
            assert!(rate(text).unwrap_err().contains("out of range [ 0, 4294967295 ], got: "));
        }
        assert_eq!(count("5x", ""), Ok(5));
        assert_eq!(
            count("-5", " "),
            Err("Unable to parse 'trace_count'. Expecting value >= -1, got: -5".to_owned())
        );
        assert!(count("99999999999", "").unwrap_err().contains("[ -1, 2147483647 ]"));
    }

    #[test]
    fn levels_add_up_and_off_is_alone() {
        let read = |names: &[&'static str]| level(names.iter().copied());
        let both = TraceLevel { timestamps: true, tensors: true };
        assert_eq!(read(&["TENSORS", "TIMESTAMPS"]), Ok(Some(both)));
        assert_eq!(level_names(both), ["TIMESTAMPS", "TENSORS"]);
        assert_eq!(read(&["NOPE"]), Ok(None));
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&["OFF"]), Ok(Some(TraceLevel::default())));
        assert_eq!(level_names(TraceLevel::default()), ["OFF"]);
        assert!(read(&["TIMESTAMPS", "OFF"]).is_err());
    }
}
