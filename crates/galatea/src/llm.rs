//! Language models: chats and completions.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use galatea_llm::chat::{
    AnswerMessage, AnswerPiece, AnswerReader, AnswerReading, ChatPrompt, GenerationSettings,
    generation, prompt_tokens,
};
use galatea_llm::engine::{GenerationEvent, GenerationRequest, TokenUsage};
use galatea_llm::model::LanguageModel;
use galatea_llm::sampling::SamplingParameters;
use galatea_llm::stop::FinishReason;
use galatea_llm::tokens::{SpecialText, SpecialTokens};
use galatea_serving::backend::llm::EngineArguments;

use crate::cancellation::{AnswerCancellation, StreamTicket};
use crate::chat_input::{ChatInput, ChatMessage};
use crate::{Engine, Error, ErrorKind, files};

/// Events of an answer that may wait for who reads it. An answer that is not read ends with an error.
const MAX_WAITING_EVENTS: usize = 1 << 16;

/// A language model: a checkpoint in safetensors, GGUF or MLX form, or a folder of Core ML chunks.
///
/// Clones are the same model.
///
/// ```
/// use galatea::{ChatMessage, Engine};
///
/// let llm = Engine::new().llm("../../examples/models/chat")?;
/// let answer = llm.chat(&[ChatMessage::user("Hello!")])?;
/// println!("{}", answer.content);
/// # Ok::<(), galatea::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Llm(Arc<LanguageModel>);

impl Engine {
    /// Loads a language model: a GGUF file, a folder of safetensors, or a folder with version folders.
    ///
    /// # Errors
    /// Fails when there is no checkpoint, or it cannot be loaded.
    ///
    /// ```
    /// let llm = galatea::Engine::new().llm("../../examples/models/chat")?;
    /// assert!(llm.context() > 0);
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn llm(&self, path: impl AsRef<Path>) -> Result<Llm, Error> {
        self.llm_with(path, &EngineArguments::default())
    }

    /// Loads a language model with arguments, whose names and defaults are vLLM's.
    ///
    /// # Errors
    /// Fails as [`llm`](Self::llm) does, and for a wrong argument.
    ///
    /// ```
    /// use galatea::{Engine, EngineArguments};
    ///
    /// let arguments = EngineArguments { max_model_len: Some(64), ..EngineArguments::default() };
    /// let llm = Engine::new().llm_with("../../examples/models/chat", &arguments)?;
    /// assert_eq!(llm.context(), 64);
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn llm_with(
        &self,
        path: impl AsRef<Path>,
        arguments: &EngineArguments,
    ) -> Result<Llm, Error> {
        let path = checkpoint(path.as_ref())?;
        let options = self.load_options(arguments).map_err(Error::of(ErrorKind::Input))?;
        let model = LanguageModel::load(&path, &options).map_err(Error::of(ErrorKind::Model))?;
        Ok(Llm(Arc::new(model)))
    }
}

/// Returns the checkpoint that a path stands for; the path itself, if nothing better is found.
pub(crate) fn checkpoint(path: &Path) -> Result<PathBuf, Error> {
    let found = files::find_checkpoint(path).map_err(Error::of(ErrorKind::File))?;
    Ok(found.unwrap_or_else(|| path.to_owned()))
}

impl Llm {
    /// Returns the model behind this, for what this type has no method for.
    ///
    /// ```
    /// let llm = galatea::Engine::new().llm("../../examples/models/chat")?;
    /// assert!(llm.language_model().template().is_some());
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn language_model(&self) -> &Arc<LanguageModel> {
        &self.0
    }

    /// Returns the largest number of tokens of a prompt and its answer together.
    ///
    /// ```
    /// let llm = galatea::Engine::new().llm("../../examples/models/chat")?;
    /// println!("{} tokens", llm.context());
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn context(&self) -> usize {
        self.0.context()
    }

    /// Returns how tokens are chosen where a request does not say so.
    ///
    /// ```
    /// let llm = galatea::Engine::new().llm("../../examples/models/chat")?;
    /// let input = galatea::ChatInput::new(&[]).with_sampling(llm.defaults().clone());
    /// # drop(input);
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn defaults(&self) -> &SamplingParameters {
        self.0.defaults()
    }

    /// Divides a text into tokens, with the special ones that a prompt begins with.
    ///
    /// # Errors
    /// Fails when the tokenizer refuses the text.
    ///
    /// ```
    /// let llm = galatea::Engine::new().llm("../../examples/models/chat")?;
    /// let tokens = llm.tokens("Hello!")?;
    /// assert!(llm.text_of(&tokens).contains("Hello"));
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn tokens(&self, text: &str) -> Result<Vec<u32>, Error> {
        self.0.tokenizer().encode(text, SpecialTokens::Add).map_err(Error::of(ErrorKind::Input))
    }

    /// Puts tokens together to a text, without special ones.
    ///
    /// ```
    /// let llm = galatea::Engine::new().llm("../../examples/models/chat")?;
    /// assert_eq!(llm.text_of(&[]), "");
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn text_of(&self, tokens: &[u32]) -> String {
        self.0.tokenizer().decode(tokens, SpecialText::Skip)
    }

    /// Answers a conversation, and waits for the whole answer.
    ///
    /// # Errors
    /// Fails when the model has no chat template, the conversation is too long, or a step fails.
    ///
    /// ```
    /// use galatea::{ChatMessage, Engine};
    ///
    /// let llm = Engine::new().llm("../../examples/models/chat")?;
    /// let answer = llm.chat(&[ChatMessage::user("Hello!")])?;
    /// assert!(!answer.content.is_empty());
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn chat(&self, messages: &[ChatMessage]) -> Result<AnswerMessage, Error> {
        let input = ChatInput::new(messages).with_sampling(self.defaults().clone());
        self.stream_chat(input)?.message()
    }

    /// Answers a conversation piece by piece. Dropping the stream cancels the request.
    ///
    /// # Errors
    /// Fails as [`chat`](Self::chat) does, before the first piece.
    ///
    /// ```
    /// use galatea::{AnswerPiece, ChatInput, ChatMessage, Engine};
    ///
    /// let llm = Engine::new().llm("../../examples/models/chat")?;
    /// let input = ChatInput::new(&[ChatMessage::user("Hello!")]).with_max_tokens(8);
    /// for piece in llm.stream_chat(input)? {
    ///     if let AnswerPiece::Content(text) = piece? {
    ///         print!("{text}");
    ///     }
    /// }
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn stream_chat(&self, input: ChatInput) -> Result<AnswerStream, Error> {
        let ChatInput { conversation, options, mut settings } = input;
        let prompt = ChatPrompt::new(&self.0, &conversation, &options, &mut settings)
            .map_err(Error::of(ErrorKind::Input))?;
        let request =
            generation(&self.0, &settings, prompt.tokens).map_err(Error::of(ErrorKind::Input))?;
        self.start(request, Some(prompt.reading))
    }

    /// Continues a text piece by piece. Dropping the stream cancels the request.
    ///
    /// # Errors
    /// Fails when the text is empty or too long.
    ///
    /// ```
    /// use galatea::{Engine, GenerationSettings};
    ///
    /// let llm = Engine::new().llm("../../examples/models/chat")?;
    /// let mut settings = GenerationSettings::default();
    /// settings.sampling.max_tokens = Some(4);
    /// let text = llm.complete("Once upon a time", &settings)?.message()?.content;
    /// println!("{text}");
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn complete(
        &self,
        text: &str,
        settings: &GenerationSettings,
    ) -> Result<AnswerStream, Error> {
        let tokens = prompt_tokens(&self.0, text, SpecialTokens::Add);
        let tokens = tokens.map_err(Error::of(ErrorKind::Input))?;
        let request = generation(&self.0, settings, tokens).map_err(Error::of(ErrorKind::Input))?;
        self.start(request, None)
    }

    fn start(
        &self,
        request: GenerationRequest,
        reading: Option<AnswerReading>,
    ) -> Result<AnswerStream, Error> {
        let (sender, events) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&waiting);
        let mut sender: Option<Sender<GenerationEvent>> = Some(sender);
        let sink = move |event| {
            // An answer that nobody reads must not fill the memory.
            let fits = counted.fetch_add(1, Ordering::Relaxed) < MAX_WAITING_EVENTS;
            if !fits || sender.as_ref().is_some_and(|sender| sender.send(event).is_err()) {
                sender = None;
            }
        };
        let ticket = self.0.engine().submit(request, Box::new(sink));
        let ticket = ticket.map_err(Error::of(ErrorKind::Run))?;
        Ok(AnswerStream {
            events,
            waiting,
            reader: reading.clone().map(AnswerReader::new),
            reading,
            pieces: VecDeque::new(),
            text: String::new(),
            finish: None,
            usage: None,
            ended: false,
            ticket: StreamTicket(AnswerCancellation::new(ticket)),
            _model: Arc::clone(&self.0),
        })
    }
}

/// An answer under way, as an iterator over its pieces. Dropping it cancels the request.
///
/// ```
/// use galatea::{ChatInput, ChatMessage, Engine};
///
/// let llm = Engine::new().llm("../../examples/models/chat")?;
/// let stream = llm.stream_chat(ChatInput::new(&[ChatMessage::user("Hi")]).with_max_tokens(4))?;
/// let pieces = stream.collect::<Result<Vec<_>, _>>()?;
/// println!("{pieces:?}");
/// # Ok::<(), galatea::Error>(())
/// ```
#[derive(Debug)]
pub struct AnswerStream {
    events: Receiver<GenerationEvent>,
    /// Events that the engine has told and nobody has read.
    waiting: Arc<AtomicUsize>,
    /// Reads reasoning and calls; a continued text is all content.
    reader: Option<AnswerReader>,
    reading: Option<AnswerReading>,
    pieces: VecDeque<AnswerPiece>,
    text: String,
    finish: Option<FinishReason>,
    usage: Option<TokenUsage>,
    ended: bool,
    ticket: StreamTicket,
    /// An engine lives as long as its model.
    _model: Arc<LanguageModel>,
}

impl AnswerStream {
    /// Waits for the rest, and returns the whole answer.
    ///
    /// # Errors
    /// Fails when a step fails.
    ///
    /// ```
    /// use galatea::{ChatInput, ChatMessage, Engine};
    ///
    /// let llm = Engine::new().llm("../../examples/models/chat")?;
    /// let input = ChatInput::new(&[ChatMessage::user("Hello!")]).with_max_tokens(4);
    /// let answer = llm.stream_chat(input)?.message()?;
    /// println!("{}", answer.content);
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn message(mut self) -> Result<AnswerMessage, Error> {
        for piece in self.by_ref() {
            piece?;
        }
        let content = std::mem::take(&mut self.text);
        Ok(match &self.reading {
            Some(reading) => reading.whole(&content),
            None => AnswerMessage { content, ..AnswerMessage::default() },
        })
    }

    /// Returns why the answer ended; `None` while it goes on.
    ///
    /// ```
    /// use galatea::{ChatInput, ChatMessage, Engine};
    ///
    /// let llm = Engine::new().llm("../../examples/models/chat")?;
    /// let mut stream = llm.stream_chat(ChatInput::new(&[ChatMessage::user("Hi")]).with_max_tokens(1))?;
    /// for piece in stream.by_ref() {
    ///     piece?;
    /// }
    /// assert!(stream.finish_reason().is_some());
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn finish_reason(&self) -> Option<&FinishReason> {
        self.finish.as_ref()
    }

    /// Returns what cancels the answer from another thread.
    ///
    /// ```
    /// use galatea::{ChatInput, ChatMessage, Engine};
    ///
    /// let llm = Engine::new().llm("../../examples/models/chat")?;
    /// let stream = llm.stream_chat(ChatInput::new(&[ChatMessage::user("Hi")]))?;
    /// stream.cancellation().cancel();
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn cancellation(&self) -> AnswerCancellation {
        self.ticket.0.clone()
    }

    /// Returns counts of tokens and times; `None` while the answer goes on.
    ///
    /// ```
    /// use galatea::{ChatInput, ChatMessage, Engine};
    ///
    /// let llm = Engine::new().llm("../../examples/models/chat")?;
    /// let mut stream = llm.stream_chat(ChatInput::new(&[ChatMessage::user("Hi")]).with_max_tokens(1))?;
    /// for piece in stream.by_ref() {
    ///     piece?;
    /// }
    /// assert_eq!(stream.usage().map(|usage| usage.completion_tokens), Some(1));
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn usage(&self) -> Option<&TokenUsage> {
        self.usage.as_ref()
    }

    /// Takes the next event of the engine.
    fn take(&mut self) -> Result<(), Error> {
        let Ok(event) = self.events.recv() else {
            self.ended = true;
            if self.ticket.0.is_cancelled() {
                return Ok(());
            }
            let text = "the answer was not read for too long, or the engine ended";
            return Err(Error::new(ErrorKind::Run, text));
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        match event {
            GenerationEvent::Started { .. } => {}
            GenerationEvent::Delta(delta) => {
                self.text.push_str(&delta.text);
                match &mut self.reader {
                    Some(reader) => {
                        self.pieces.extend(reader.push(&delta.text));
                        if delta.finish.is_some() {
                            self.pieces.extend(reader.finish());
                        }
                    }
                    None if delta.text.is_empty() => {}
                    None => self.pieces.push_back(AnswerPiece::Content(delta.text)),
                }
                self.finish = delta.finish.or(self.finish.take());
            }
            GenerationEvent::Finished(usage) => {
                self.usage = Some(usage);
                self.ended = true;
            }
            GenerationEvent::Failed(_) if self.ticket.0.is_cancelled() => self.ended = true,
            GenerationEvent::Failed(error) => {
                self.ended = true;
                return Err(Error::new(ErrorKind::Run, error));
            }
        }
        Ok(())
    }
}

impl Iterator for AnswerStream {
    type Item = Result<AnswerPiece, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Some(Ok(piece));
            }
            if self.ended {
                return None;
            }
            if let Err(error) = self.take() {
                return Some(Err(error));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Llm {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/models/chat");
        Engine::new().llm(path).unwrap()
    }

    #[test]
    fn pieces_add_up_to_the_message() {
        let llm = sample();
        let greedy = SamplingParameters { temperature: 0.0, ..llm.defaults().clone() };
        let input = ChatInput::new(&[ChatMessage::user("What is Galatea?")]).with_sampling(greedy);
        let whole = llm.stream_chat(input.clone()).unwrap().message().unwrap();
        let mut stream = llm.stream_chat(input).unwrap();
        let mut content = String::new();
        for piece in stream.by_ref() {
            if let AnswerPiece::Content(text) = piece.unwrap() {
                content.push_str(&text);
            }
        }
        assert_eq!(content, whole.content);
        assert!(!content.is_empty() && stream.usage().is_some());
        assert_eq!(stream.finish_reason(), Some(&FinishReason::EndOfText));
    }

    #[test]
    fn a_stream_that_is_dropped_cancels_its_request() {
        let llm = sample();
        let input = ChatInput::new(&[ChatMessage::user("What is Galatea?")]);
        drop(llm.stream_chat(input).unwrap());
        let begin = std::time::Instant::now();
        while llm.language_model().engine().statistics().running > 0 {
            assert!(begin.elapsed().as_secs() < 60, "the request goes on");
            std::thread::yield_now();
        }
        assert!(llm.chat(&[ChatMessage::user("Hello!")]).is_ok());
    }

    #[test]
    fn conversations_that_are_too_long_are_refused_with_all_numbers() {
        let llm = sample();
        let long = "What is Galatea? ".repeat(2000);
        let error = llm.chat(&[ChatMessage::user(long)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains("context"), "{error}");
    }
}
