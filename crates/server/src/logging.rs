//! Log lines in Triton's two forms.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::flags::Flags;
use crate::json;

/// Form of the time in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `I0826 12:34:56.789012 1234 file.rs:99] "message"`
    Default,
    /// `2026-08-26T12:34:56Z I 1234 file.rs:99] "message"`
    Iso8601,
}

/// Writes events of this workspace's crates as lines.
struct Lines {
    format: Format,
    info: bool,
    warning: bool,
    error: bool,
    verbose: u64,
    out: Mutex<Box<dyn Write + Send>>,
}

/// Makes the flags' log the process's.
///
/// # Errors
/// When the log file cannot be opened.
pub fn start(flags: &Flags) -> io::Result<()> {
    let path = flags.text("log-file");
    let out: Box<dyn Write + Send> = if path.is_empty() {
        Box::new(io::stderr())
    } else {
        Box::new(File::options().create(true).append(true).open(Path::new(path))?)
    };
    let iso = flags.text("log-format").eq_ignore_ascii_case("iso8601");
    let lines = Lines {
        format: if iso { Format::Iso8601 } else { Format::Default },
        info: flags.bool("log-info"),
        warning: flags.bool("log-warning"),
        error: flags.bool("log-error"),
        verbose: flags.number("log-verbose"),
        out: Mutex::new(out),
    };
    // A second server in one process, as in tests, writes to the first one's log.
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines)).ok();
    Ok(())
}

impl<S: Subscriber> Layer<S> for Lines {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target().starts_with("galatea")
            && match *metadata.level() {
                Level::ERROR => self.error,
                Level::WARN => self.warning,
                Level::INFO => self.info,
                Level::DEBUG => self.verbose >= 1,
                Level::TRACE => self.verbose >= 2,
            }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut message = Message::default();
        event.record(&mut message);
        let text = line(self.format, event.metadata(), now(), &message.text);
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // There is no place left to report that the log cannot be written.
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The message with its fields behind it.
#[derive(Default)]
struct Message {
    text: String,
}

impl Visit for Message {
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

/// A line. A message of several lines, such as a table, stands as it is behind the head; others are quoted.
fn line(format: Format, metadata: &Metadata<'_>, now: Duration, message: &str) -> String {
    let letter = match *metadata.level() {
        Level::ERROR => 'E',
        Level::WARN => 'W',
        Level::INFO | Level::DEBUG | Level::TRACE => 'I',
    };
    let file = metadata.file().unwrap_or("").rsplit('/').next().unwrap_or("");
    let place = format!("{} {file}:{}", std::process::id(), metadata.line().unwrap_or(0));
    let time = civil(now.as_secs());
    let (y, m, d) = (time.year, time.month, time.day);
    let (h, min, s) = (time.hour, time.minute, time.second);
    let head = match format {
        Format::Default => {
            let micros = now.subsec_micros();
            format!("{letter}{m:02}{d:02} {h:02}:{min:02}:{s:02}.{micros:06} {place}] ")
        }
        Format::Iso8601 => {
            format!("{y:04}-{m:02}-{d:02}T{h:02}:{min:02}:{s:02}Z {letter} {place}] ")
        }
    };
    if message.contains("\n+-") {
        return format!("{head}{message}\n");
    }
    let mut quoted = Vec::new();
    json::write_str(&mut quoted, message.as_bytes());
    format!("{head}{}\n", String::from_utf8_lossy(&quoted))
}

/// Date and time of day, UTC.
#[derive(Debug, PartialEq, Eq)]
struct Civil {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

/// The civil time of seconds since 1970, in the proleptic Gregorian calendar whose years are counted from March.
fn civil(seconds: u64) -> Civil {
    let days = seconds / 86_400 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    Civil {
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
