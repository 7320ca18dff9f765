//! Messages of the user, from an editor on the terminal or from the lines of the standard input.

use std::io::{BufRead, IsTerminal, stdin, stdout};

use tokio::sync::mpsc::{Receiver, channel};

use super::editor::{MessageEditor, TypedInput};
use super::message::MessageLines;
use crate::complain;

/// Messages that may wait to be said.
const MAX_MESSAGES: usize = 16;

/// Source of messages.
pub(super) enum MessageSource {
    /// Somebody types them.
    Terminal(Box<MessageEditor>),
    /// A pipe or a file has them.
    Lines(Receiver<String>),
}

impl MessageSource {
    /// Opens the terminal where both ends of the program are one, and the standard input otherwise.
    ///
    /// # Errors
    /// Fails when the terminal refuses.
    pub(super) fn open() -> Result<Self, String> {
        match stdin().is_terminal() && stdout().is_terminal() {
            true => Ok(Self::Terminal(Box::new(MessageEditor::new()?))),
            false => Ok(Self::Lines(piped_messages())),
        }
    }

    /// Waits for the next message; none is the end of the conversation.
    ///
    /// # Errors
    /// Fails when the terminal cannot be read.
    pub(super) async fn next(&mut self) -> Result<Option<String>, String> {
        match self {
            // Nothing else is to be done meanwhile: the model works on threads of its own.
            Self::Terminal(editor) => loop {
                match editor.read("> ")? {
                    TypedInput::Message(text) => return Ok(Some(text)),
                    TypedInput::Interrupted => complain("Ctrl-D or /bye ends the conversation."),
                    TypedInput::Ended => return Ok(None),
                }
            },
            Self::Lines(messages) => Ok(tokio::select! {
                message = messages.recv() => message,
                _ = tokio::signal::ctrl_c() => None,
            }),
        }
    }
}

/// Reads messages on a thread that may wait.
fn piped_messages() -> Receiver<String> {
    let (to, messages) = channel(MAX_MESSAGES);
    tokio::task::spawn_blocking(move || {
        let mut lines = MessageLines::default();
        for line in stdin().lock().lines() {
            let Ok(line) = line else { break };
            if let Some(message) = lines.push(&line)
                && to.blocking_send(message).is_err()
            {
                return;
            }
        }
        if let Some(rest) = lines.rest() {
            // Nobody waits for it any more where this fails.
            drop(to.blocking_send(rest));
        }
    });
    messages
}
