//! Encoders: vectors of texts, and scores of pairs of texts.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use galatea_llm::embed::{EncoderEngine, TextEncoder, TextTokens};
use galatea_llm::tokens::SpecialTokens;
use galatea_serving::backend::llm::EngineArguments;

use crate::llm::checkpoint;
use crate::models::load_encoder;
use crate::{Engine, Error, ErrorKind};

/// A model that makes vectors of texts, or scores pairs of texts. Clones are the same model.
///
/// ```
/// let encoder = galatea::Engine::new().encoder("../../examples/encoder")?;
/// let vectors = encoder.embed(&["A cat.", "A dog."])?;
/// assert_eq!(vectors.len(), 2);
/// # Ok::<(), galatea::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Encoder(Arc<EncoderEngine>);

impl Engine {
    /// Loads an encoder from a folder of safetensors.
    ///
    /// # Errors
    /// Fails when there is no encoder, or it cannot be loaded.
    ///
    /// ```
    /// let encoder = galatea::Engine::new().encoder("../../examples/encoder")?;
    /// println!("{:?} dimensions", encoder.dimensions());
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn encoder(&self, path: impl AsRef<Path>) -> Result<Encoder, Error> {
        self.encoder_with(path, &EngineArguments::default())
    }

    /// Loads an encoder with arguments, whose names are vLLM's.
    ///
    /// # Errors
    /// Fails as [`encoder`](Self::encoder) does, and for a wrong argument.
    ///
    /// ```
    /// use galatea::{Engine, EngineArguments};
    ///
    /// let arguments = EngineArguments { max_model_len: Some(16), ..EngineArguments::default() };
    /// let encoder = Engine::new().encoder_with("../../examples/encoder", &arguments)?;
    /// assert_eq!(encoder.context(), 16);
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn encoder_with(
        &self,
        path: impl AsRef<Path>,
        arguments: &EngineArguments,
    ) -> Result<Encoder, Error> {
        let path = checkpoint(path.as_ref())?;
        let encodes = path.is_dir() && TextEncoder::recognises(&path).unwrap_or(false);
        if !encodes {
            let text = format!("'{}' holds no encoder", path.display());
            return Err(Error::new(ErrorKind::File, text));
        }
        let options = self.load_options(arguments).map_err(Error::of(ErrorKind::Input))?;
        let engine = load_encoder(&path, arguments, &options);
        Ok(Encoder(Arc::new(engine.map_err(Error::of(ErrorKind::Model))?)))
    }
}

impl Encoder {
    /// Returns the number of dimensions of a vector; none of a model that scores pairs.
    ///
    /// ```
    /// let encoder = galatea::Engine::new().encoder("../../examples/encoder")?;
    /// assert_eq!(encoder.dimensions(), Some(encoder.embed(&["A cat."])?[0].len()));
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn dimensions(&self) -> Option<usize> {
        self.0.model().encoder().dimensions()
    }

    /// Returns the largest number of tokens of a text.
    ///
    /// ```
    /// let encoder = galatea::Engine::new().encoder("../../examples/encoder")?;
    /// assert!(encoder.context() > 0);
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn context(&self) -> usize {
        self.0.model().encoder().context()
    }

    /// Computes the vector of each text. Calls of several threads are computed together.
    ///
    /// # Errors
    /// Fails for a text with too many tokens, and when a step fails.
    ///
    /// ```
    /// let encoder = galatea::Engine::new().encoder("../../examples/encoder")?;
    /// let [cat, kitten] = &encoder.embed(&["A cat.", "A kitten."])?[..] else { unreachable!() };
    /// let cosine: f32 = cat.iter().zip(kitten).map(|(a, b)| a * b).sum();
    /// println!("{cosine}");
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        let model = self.0.model();
        let tokens = texts.iter().map(|text| model.text(text, None, SpecialTokens::Add, None));
        let tokens = tokens.collect::<Result<Vec<TextTokens>, _>>();
        self.results(tokens.map_err(Error::of(ErrorKind::Input))?)
    }

    /// Scores how well each document answers the query: by a cross-encoder, or by the angle between vectors.
    ///
    /// # Errors
    /// Fails as [`embed`](Self::embed) does.
    ///
    /// ```
    /// let encoder = galatea::Engine::new().encoder("../../examples/encoder")?;
    /// let scores = encoder.rank("Where do cats sleep?", &["Cats sleep in boxes.", "Rain is wet."])?;
    /// assert_eq!(scores.len(), 2);
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn rank(&self, query: &str, documents: &[&str]) -> Result<Vec<f32>, Error> {
        let model = self.0.model();
        let tokens = model.ranked(query, documents, None).map_err(Error::of(ErrorKind::Input))?;
        Ok(model.scores(self.results(tokens)?))
    }

    fn results(&self, texts: Vec<TextTokens>) -> Result<Vec<Vec<f32>>, Error> {
        let (sender, answer) = sync_channel(1);
        let sink = Box::new(move |result| {
            // Nobody waits any more where the caller's thread has ended.
            drop(sender.send(result));
        });
        let _ticket = self.0.submit(texts, sink).map_err(Error::of(ErrorKind::Input))?;
        let result = answer.recv().map_err(Error::of(ErrorKind::Run))?;
        result.map(|encoded| encoded.results).map_err(Error::of(ErrorKind::Run))
    }
}
