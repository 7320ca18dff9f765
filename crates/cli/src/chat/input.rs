//! Messages of the user, from the lines of the standard input.

use std::io::{BufRead, stdin};

use tokio::sync::mpsc::{Receiver, channel};

use super::message::MessageLines;

/// Messages that may wait to be said.
const MAX_MESSAGES: usize = 16;

/// Reads messages on a thread that may wait.
pub(super) fn messages() -> Receiver<String> {
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
