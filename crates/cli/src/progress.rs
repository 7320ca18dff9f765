//! Progress of long work: a line on the terminal's standard error, and nothing anywhere else.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Time between two pictures of the line.
const TICK: Duration = Duration::from_millis(120);

/// A line that says what goes on and for how long; it goes when this is dropped.
#[derive(Debug)]
pub(crate) struct ProgressLine(ProgressBar);

impl ProgressLine {
    /// Shows what is done now.
    #[must_use]
    pub(crate) fn start(text: impl Into<String>) -> Self {
        let line = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            line.set_style(style);
        }
        line.set_message(text.into());
        line.enable_steady_tick(TICK);
        Self(line)
    }

    /// Shows something else.
    pub(crate) fn say(&self, text: impl Into<String>) {
        self.0.set_message(text.into());
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
