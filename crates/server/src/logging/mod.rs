//! The process's log: lines in Triton's two forms, to the console or a file, with settings that clients can change.

pub mod detail;
mod line;
mod writer;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use detail::DetailModules;
pub use line::TimeFormat;
pub use line::day;
use line::{LogMessage, MessageQuoting, line};
use writer::{LogPlace, LogStream, LogWriter};

/// Environment variable that turns the quoting of messages off.
const ESCAPE: &str = "TRITON_SERVER_ESCAPE_LOG_MESSAGES";

/// Settings of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// File in the place of the console; empty for none.
    pub file: String,
    /// True if informative lines are written.
    pub info: bool,
    /// True if warnings are written.
    pub warning: bool,
    /// True if errors are written.
    pub error: bool,
    /// Verbosity of further lines: 0 for none.
    pub verbose: u32,
    /// Form of the time.
    pub format: TimeFormat,
}

impl Default for LogSettings {
    fn default() -> Self {
        let format = TimeFormat::Default;
        Self { file: String::new(), info: true, warning: true, error: true, verbose: 0, format }
    }
}

/// Settings to change; those that are `None` stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogChange {
    /// True if informative lines are written.
    pub info: Option<bool>,
    /// True if warnings are written.
    pub warning: Option<bool>,
    /// True if errors are written.
    pub error: Option<bool>,
    /// Verbosity of further lines.
    pub verbose: Option<u32>,
    /// Form of the time.
    pub format: Option<TimeFormat>,
}

impl LogSettings {
    fn apply(&mut self, change: LogChange) {
        self.info = change.info.unwrap_or(self.info);
        self.warning = change.warning.unwrap_or(self.warning);
        self.error = change.error.unwrap_or(self.error);
        self.verbose = change.verbose.unwrap_or(self.verbose);
        self.format = change.format.unwrap_or(self.format);
    }

    fn shows(&self, level: Level) -> bool {
        match level {
            Level::ERROR => self.error,
            Level::WARN => self.warning,
            Level::INFO => self.info,
            Level::DEBUG => self.verbose >= 1,
            Level::TRACE => self.verbose >= 2,
        }
    }

    /// The least severe level that is written.
    fn least(&self) -> LevelFilter {
        [Level::TRACE, Level::DEBUG, Level::INFO, Level::WARN, Level::ERROR]
            .into_iter()
            .find(|&level| self.shows(level))
            .map_or(LevelFilter::OFF, LevelFilter::from_level)
    }
}

/// The file of the log.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    open: Arc<Mutex<File>>,
}

impl LogFile {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), open: Arc::new(Mutex::new(append_to(path)?)) })
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    private(File::options().create(true).append(true)).open(path)
}

/// Lets nobody but their owner read files that are created: names, addresses and texts of clients may be in them.
pub(crate) fn private(options: &mut std::fs::OpenOptions) -> &mut std::fs::OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// The log of the process.
#[derive(Debug)]
struct ProcessLog {
    settings: RwLock<LogSettings>,
    file: Option<LogFile>,
    writer: LogWriter,
    quoting: MessageQuoting,
    /// Modules that are logged in more detail than the settings say.
    detail: DetailModules,
}

/// There is one log in a process: a second server in it, as in tests, shares the first one's.
static LOG: OnceLock<ProcessLog> = OnceLock::new();

fn log() -> &'static ProcessLog {
    LOG.get_or_init(|| {
        let writer = LogWriter::immediate();
        ProcessLog::new(LogSettings::default(), None, writer, DetailModules::default())
    })
}

/// Starts the log of the process. `environment` gives variables that ask for details of some modules.
///
/// # Errors
/// Fails when the log file cannot be opened.
pub fn start<'e>(
    settings: LogSettings,
    environment: impl Fn(&str) -> Option<&'e str>,
) -> io::Result<()> {
    let file = match settings.file.as_str() {
        "" => None,
        path => Some(LogFile::open(Path::new(path))?),
    };
    let detail = DetailModules::of(environment);
    if LOG.get().is_some() {
        return Ok(());
    }
    let place = LogPlace { file: file.as_ref().map(|file| Arc::clone(&file.open)) };
    if LOG.set(ProcessLog::new(settings, file, LogWriter::start(place), detail)).is_ok() {
        let lines = tracing_subscriber::registry().with(LineSubscriber);
        tracing::subscriber::set_global_default(lines).ok();
    }
    Ok(())
}

/// Opens the log file anew by its path: whoever has renamed it, so that it does not grow for ever, gets no more lines in
/// the old one.
///
/// # Errors
/// Returns a sentence that names the file that cannot be opened; the lines then still go to the old one.
pub fn reopen() -> Result<(), String> {
    let Some(file) = &log().file else { return Ok(()) };
    let new = append_to(&file.path)
        .map_err(|error| format!("cannot open the log file '{}': {error}", file.path.display()))?;
    *file.open.lock().unwrap_or_else(PoisonError::into_inner) = new;
    Ok(())
}

/// Writes the lines of the log that wait when this is dropped, unless whoever reads them has stalled.
#[derive(Debug)]
pub struct FlushOnDrop;

impl Drop for FlushOnDrop {
    fn drop(&mut self) {
        log().writer.flush();
    }
}

/// The settings in force.
#[must_use]
pub fn settings() -> LogSettings {
    log().settings.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Changes settings from the next line on.
pub fn change(change: LogChange) {
    log().settings.write().unwrap_or_else(PoisonError::into_inner).apply(change);
    // What each place of the program remembers of whether it is heard is out of date.
    tracing::callsite::rebuild_interest_cache();
}

impl ProcessLog {
    fn new(
        settings: LogSettings,
        file: Option<LogFile>,
        writer: LogWriter,
        detail: DetailModules,
    ) -> Self {
        let plain = std::env::var(ESCAPE)
            .is_ok_and(|value| value == "0" || value.eq_ignore_ascii_case("false"));
        let quoting = if plain { MessageQuoting::Plain } else { MessageQuoting::Quoted };
        Self { settings: RwLock::new(settings), file, writer, quoting, detail }
    }

    fn read<T>(&self, look: impl FnOnce(&LogSettings) -> T) -> T {
        look(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write(&self, level: Level, text: String) {
        let stream = if level <= Level::WARN { LogStream::Error } else { LogStream::Output };
        self.writer.put(stream, text);
    }
}

/// Writes events of this workspace's crates as lines.
struct LineSubscriber;

impl<S: Subscriber> Layer<S> for LineSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        let level = *metadata.level();
        let target = metadata.target();
        let log = log();
        let told = || log.detail.tells(target) || log.read(|settings| settings.shows(level));
        target.starts_with("galatea") && told()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let log = log();
        Some(log.read(LogSettings::least).max(log.detail.least()))
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut message = LogMessage::default();
        event.record(&mut message);
        let log = log();
        let format = log.read(|settings| settings.format);
        let metadata = event.metadata();
        log.write(*metadata.level(), line(format, log.quoting, metadata, now(), &message.text));
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_leave_the_rest_and_levels_follow() {
        let mut settings = LogSettings::default();
        assert_eq!(settings.least(), LevelFilter::INFO);
        settings.apply(LogChange { verbose: Some(1), ..LogChange::default() });
        assert_eq!(settings, LogSettings { verbose: 1, ..LogSettings::default() });
        assert_eq!(settings.least(), LevelFilter::DEBUG);
        settings.apply(LogChange {
            verbose: Some(0),
            info: Some(false),
            warning: Some(false),
            format: Some(TimeFormat::Iso8601),
            ..LogChange::default()
        });
        assert_eq!(settings.least(), LevelFilter::ERROR);
        assert!(!settings.shows(Level::WARN) && settings.shows(Level::ERROR));
        settings.apply(LogChange { error: Some(false), ..LogChange::default() });
        assert_eq!(settings.least(), LevelFilter::OFF);
    }
}
