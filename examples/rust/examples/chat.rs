//! Asks a language model and prints its answer: `chat [MODEL] [QUESTION]`.

#![allow(clippy::print_stdout, reason = "a command-line program")]

use galatea::{ChatMessage, Engine};
use galatea_examples::{ExampleResult, arguments_or};

fn main() -> ExampleResult<()> {
    let arguments = arguments_or(&["examples/models/chat"]);
    let question = arguments.get(1).map_or("What is Galatea?", String::as_str);
    let llm = Engine::new().llm(&arguments[0])?;
    let answer = llm.chat(&[ChatMessage::user(question)])?;
    println!("{}", answer.content);
    Ok(())
}
