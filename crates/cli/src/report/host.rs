//! Where, when and how the numbers of a report were measured.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::page::{ReportPage, TableCell};
use crate::engine;

/// Facts about a measurement; what the host does not tell is absent.
pub(super) fn facts() -> Value {
    let devices = engine().device_list();
    let cpu = devices.first();
    let fact = |name: &str| cpu.and_then(|cpu| cpu.facts.get(name)).cloned();
    let mut facts = serde_json::Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            facts.insert(name.to_owned(), value);
        }
    };
    put("host", host_name().map(Value::from));
    put("system", Some(format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH).into()));
    put("cpu", cpu.and_then(|cpu| cpu.name.clone()).map(Value::from));
    put("cores", fact("cores"));
    put("memory_bytes", fact("memory_bytes"));
    put("date", Some(date(SystemTime::now()).into()));
    put("version", Some(concat!("galatea ", env!("CARGO_PKG_VERSION")).into()));
    put("command", Some(command().into()));
    Value::Object(facts)
}

/// Writes the facts as the end of a page.
pub(super) fn write(facts: &Value, page: &mut ReportPage) {
    page.section("Where and how");
    let row = |(name, value): (&String, &Value)| {
        let text = match (name.as_str(), value) {
            ("memory_bytes", value) => {
                let bytes = value.as_f64().unwrap_or_default();
                return vec![
                    TableCell::text("memory"),
                    TableCell::text(format!("{:.1} GB", bytes / 1e9)),
                ];
            }
            (_, Value::String(text)) => text.clone(),
            (_, other) => other.to_string(),
        };
        vec![TableCell::text(name), TableCell::text(text)]
    };
    let rows: Vec<Vec<TableCell>> = facts.as_object().into_iter().flatten().map(row).collect();
    page.table(&["", ""], &rows);
}

/// Day and time in UTC.
fn date(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let [days, minutes] = [seconds / 86_400, seconds / 60 % 1440];
    // Years begin in March here, so that the day of a leap year is the last one.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

/// Name of the host, where the system has a file with it.
fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = name.or_else(|_| std::fs::read_to_string("/etc/hostname")).ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// The command line, with quotes where a shell needs them.
fn command() -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./=,:+%@".contains(letter);
    let quoted = |argument: String| match !argument.is_empty() && argument.chars().all(plain) {
        true => argument,
        false => format!("'{}'", argument.replace('\'', "'\\''")),
    };
    let words = std::env::args_os().map(|one| quoted(one.to_string_lossy().into_owned()));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59 UTC"),
            (1_796_083_200, "2026-12-01 00:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn a_page_says_where_and_how_its_numbers_were_measured() {
        let facts = facts();
        for name in ["system", "date", "version", "command"] {
            assert!(facts[name].as_str().is_some_and(|text| !text.is_empty()), "{name}");
        }
        assert!(facts["date"].as_str().unwrap().ends_with("UTC"));
        let mut page = ReportPage::new("t");
        write(&facts, &mut page);
        let text = page.end(&facts);
        assert!(
            text.contains(env!("CARGO_PKG_VERSION")) && text.contains("Where and how"),
            "{text}"
        );
    }
}
