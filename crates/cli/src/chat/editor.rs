//! Line editor of a chat on a terminal: arrow keys, history, messages of several lines, names of commands.

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper};

use super::message::{is_complete, unfolded};

/// Messages that the arrow keys bring back.
const MAX_HISTORY: usize = 1000;

/// Commands that the tab key completes.
const COMMAND_NAMES: [&str; 3] = ["/reset", "/system ", "/bye"];

/// Input of a user at the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypedInput {
    Message(String),
    /// Ctrl-C, which gives up the line.
    Interrupted,
    Ended,
}

/// Editor of messages on the terminal. It forgets them with the program.
pub(super) struct MessageEditor(Editor<MessageHelper, MemHistory>);

impl MessageEditor {
    /// Makes an editor on standard input and output.
    ///
    /// # Errors
    /// Fails when the terminal refuses.
    pub(super) fn new() -> Result<Self, String> {
        let failed = |error: ReadlineError| format!("the terminal cannot be read: {error}");
        let config = Config::builder().max_history_size(MAX_HISTORY).map_err(failed)?;
        let config = config.auto_add_history(true).build();
        let history = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, history).map_err(failed)?;
        editor.set_helper(Some(MessageHelper));
        Ok(Self(editor))
    }

    /// Waits until the user has typed a message.
    ///
    /// # Errors
    /// Fails when the terminal cannot be read.
    pub(super) fn read(&mut self, prompt: &str) -> Result<TypedInput, String> {
        match self.0.readline(prompt) {
            Ok(text) => Ok(TypedInput::Message(unfolded(&text))),
            // A signal is a change of the window's size or the system's form of Ctrl-C.
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => {
                Ok(TypedInput::Interrupted)
            }
            Err(ReadlineError::Eof) => Ok(TypedInput::Ended),
            Err(error) => Err(format!("the terminal cannot be read: {error}")),
        }
    }
}

/// Rules about messages for the editor.
struct MessageHelper;

impl Helper for MessageHelper {}

impl Highlighter for MessageHelper {}

impl Hinter for MessageHelper {
    type Hint = String;
}

impl Validator for MessageHelper {
    /// Lets the enter key begin another line of a message that goes on.
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_complete(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Completer for MessageHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok((0, line.get(..at).map(commands).unwrap_or_default()))
    }
}

/// Commands that begin with a text.
fn commands(begun: &str) -> Vec<String> {
    let fits = |name: &&str| begun.starts_with('/') && name.starts_with(begun);
    COMMAND_NAMES.into_iter().filter(fits).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_commands_are_completed_and_other_words_are_not() {
        assert_eq!(commands("/r"), ["/reset"]);
        assert_eq!(commands("/"), COMMAND_NAMES);
        assert_eq!(commands(""), [""; 0]);
        assert_eq!(commands("/dance"), [""; 0]);
    }
}
