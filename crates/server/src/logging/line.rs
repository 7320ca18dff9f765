//! Format of log lines.

use std::fmt::{self, Write as _};
use std::time::{Duration, SystemTime};

use tracing::field::{Field, Visit};
use tracing::{Level, Metadata};

use crate::json;

/// Form of the time in a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TimeFormat {
    /// `I0826 12:34:56.789012 1234 file.rs:99] "message"`
    #[default]
    Default,
    /// `2026-08-26T12:34:56Z I 1234 file.rs:99] "message"`
    Iso8601,
}

impl TimeFormat {
    /// The name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Iso8601 => "ISO8601",
        }
    }

    /// The format of that name, which is compared exactly.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        [Self::Default, Self::Iso8601].into_iter().find(|format| format.name() == name)
    }
}

/// Quoting of messages as JSON strings, so that no message can look like two lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageQuoting {
    Quoted,
    Plain,
}

/// The message with its fields behind it.
#[derive(Default)]
pub(super) struct LogMessage {
    pub(super) text: String,
}

impl Visit for LogMessage {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        if field.name() == "message" {
            let rest = std::mem::take(&mut self.text);
            write!(self.text, "{value:?}{rest}").ok();
        } else {
            write!(self.text, " {}={value:?}", field.name()).ok();
        }
    }
}

/// A line. A message that is a table stands as it is behind the head; others are quoted.
pub(super) fn line(
    format: TimeFormat,
    quoting: MessageQuoting,
    metadata: &Metadata<'_>,
    now: Duration,
    message: &str,
) -> String {
    let letter = match *metadata.level() {
        Level::ERROR => 'E',
        Level::WARN => 'W',
        Level::INFO | Level::DEBUG | Level::TRACE => 'I',
    };
    let file = metadata.file().unwrap_or("").rsplit('/').next().unwrap_or("");
    let place = format!("{} {file}:{}", std::process::id(), metadata.line().unwrap_or(0));
    let time = civil(now.as_secs());
    let y = time.year;
    let m = time.month;
    let d = time.day;
    let h = time.hour;
    let min = time.minute;
    let s = time.second;
    let head = match format {
        TimeFormat::Default => {
            let micros = now.subsec_micros();
            format!("{letter}{m:02}{d:02} {h:02}:{min:02}:{s:02}.{micros:06} {place}] ")
        }
        TimeFormat::Iso8601 => {
            format!("{y:04}-{m:02}-{d:02}T{h:02}:{min:02}:{s:02}Z {letter} {place}] ")
        }
    };
    if quoting == MessageQuoting::Plain || message.starts_with("\n+-") {
        return format!("{head}{message}\n");
    }
    let mut quoted = Vec::new();
    json::write_str(&mut quoted, message.as_bytes());
    format!("{head}{}\n", String::from_utf8_lossy(&quoted))
}

/// The day of a time, such as `2026-03-01`, UTC.
pub fn day(now: SystemTime) -> String {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let CivilTime { year, month, day, .. } = civil(since.as_secs());
    format!("{year:04}-{month:02}-{day:02}")
}

/// Date and time of day, UTC.
#[derive(Debug, PartialEq, Eq)]
struct CivilTime {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

/// The civil time of seconds since 1970, in the proleptic Gregorian calendar whose years are counted from March.
fn civil(seconds: u64) -> CivilTime {
    let days = seconds / 86_400 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    CivilTime {
        year: era * 400 + year_of_era + u64::from(month <= 2),
        month,
        day: day_of_year - (153 * shifted + 2) / 5 + 1,
        hour: seconds / 3600 % 24,
        minute: seconds / 60 % 60,
        second: seconds % 60,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_time_is_right_around_leap_days() {
        let date = |seconds| {
            let time = civil(seconds);
            (time.year, time.month, time.day, time.hour, time.minute, time.second)
        };
        assert_eq!(date(0), (1970, 1, 1, 0, 0, 0));
        assert_eq!(date(951_782_400), (2000, 2, 29, 0, 0, 0));
        assert_eq!(date(1_772_323_199), (2026, 2, 28, 23, 59, 59));
        assert_eq!(date(1_772_323_200), (2026, 3, 1, 0, 0, 0));
    }
}
