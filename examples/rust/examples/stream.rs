//! Prints an answer word by word, and how fast it came: `stream [MODEL] [QUESTION]`.

#![allow(clippy::print_stdout, reason = "a command-line program")]

use std::io::Write;

use galatea::{AnswerPiece, ChatInput, ChatMessage, Engine};
use galatea_examples::{ExampleResult, arguments_or};

fn main() -> ExampleResult<()> {
    let arguments = arguments_or(&["examples/models/chat"]);
    let question = arguments.get(1).map_or("What is Galatea?", String::as_str);
    let llm = Engine::new().llm(&arguments[0])?;
    let input = ChatInput::new(&[ChatMessage::user(question)])
        .with_sampling(llm.defaults().clone())
        .with_max_tokens(64);
    let mut stream = llm.stream_chat(input)?;
    for piece in stream.by_ref() {
        if let AnswerPiece::Content(text) = piece? {
            print!("{text}");
            std::io::stdout().flush()?;
        }
    }
    if let Some(usage) = stream.usage() {
        let seconds = std::time::Duration::from_nanos(usage.total_ns).as_secs_f64();
        println!("\n{} tokens in {seconds:.2} s", usage.completion_tokens);
    }
    Ok(())
}
