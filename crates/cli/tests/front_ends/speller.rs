//! A language model that spells: behind each letter comes the next one of the alphabet, and behind the last one the
//! end. Every other character is followed by `a`.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use galatea_llm::arch::ModelShape;
use galatea_llm::cache::BlockCopy;
use galatea_llm::engine::{EngineOptions, GenerationEngine, LogitRows, StepBatch, StepModel};
use galatea_llm::error::Result;
use galatea_llm::model::LanguageModel;
use galatea_llm::sampling::SamplingParameters;
use galatea_llm::template::ChatTemplate;
use galatea_llm::tokens::{GgufVocabulary, Tokenizer};
use galatea_llm::tools::ToolFormat;
use galatea_serving::backend::llm::{EngineArguments, LlmBackend, LoadModel, ModelMemory};
use galatea_serving::backend::{CheckpointHandle, KernelTuningPolicy, ModelBackend};
use galatea_serving::{ControlMode, Core, CoreOptions};

const BLOCK: usize = 16;
const BLOCKS: usize = 4096;
/// The longest prompt with its answer.
pub(crate) const CONTEXT: usize = BLOCK * BLOCKS;

struct Speller {
    shape: ModelShape,
    /// The token that follows each token.
    next: Vec<u32>,
}

impl Speller {
    fn new(tokenizer: &Tokenizer) -> Self {
        let letter = |letter: char| tokenizer.token_to_id(&letter.to_string()).unwrap();
        let vocabulary = tokenizer.vocabulary_size();
        let mut next = vec![letter('a'); vocabulary];
        for (this, then) in ('a'..='y').zip('b'..='z') {
            next[letter(this) as usize] = letter(then);
        }
        next[letter('z') as usize] = 0;
        let shape =
            ModelShape { layers: 1, kv_heads: 1, head_size: 1, vocabulary, positions: CONTEXT };
        Self { shape, next }
    }
}

impl StepModel for Speller {
    fn shape(&self) -> &ModelShape {
        &self.shape
    }

    fn block_size(&self) -> NonZeroUsize {
        NonZeroUsize::new(BLOCK).unwrap()
    }

    fn block_count(&self) -> usize {
        BLOCKS
    }

    fn copy(&mut self, _copies: &[BlockCopy]) -> Result<()> {
        Ok(())
    }

    fn step(&mut self, batch: &StepBatch) -> Result<LogitRows> {
        let width = self.shape.vocabulary;
        let mut values = vec![0.0; batch.wanted.len() * width];
        for (row, wanted) in values.chunks_mut(width).zip(&batch.wanted) {
            let token = batch.tokens[usize::try_from(*wanted).unwrap()];
            row[self.next[usize::try_from(token).unwrap()] as usize] = 30.0;
        }
        LogitRows::new(values, width)
    }
}

/// A vocabulary of an end token and all bytes.
fn tokenizer() -> Tokenizer {
    let mut vocabulary = GgufVocabulary {
        model: "gpt2".to_owned(),
        pre: "gpt-2".to_owned(),
        tokens: vec!["<end>".to_owned()],
        token_types: vec![3],
        eos: Some(0),
        ..GgufVocabulary::default()
    };
    for code in (0x21..=0x7E).chain(0xA1..=0xAC).chain(0xAE..=0xFF).chain(0x100..=0x143) {
        vocabulary.tokens.push(char::from_u32(code).unwrap().to_string());
    }
    vocabulary.token_types.resize(vocabulary.tokens.len(), 1);
    Tokenizer::from_gguf(&vocabulary).unwrap()
}

fn load(_: &Path, arguments: &EngineArguments) -> Result<CheckpointHandle> {
    let tokenizer = Arc::new(tokenizer());
    let options = EngineOptions {
        context: arguments.max_model_len,
        max_waiting: arguments.max_waiting.unwrap_or(100),
        ..EngineOptions::default()
    };
    let model = Box::new(Speller::new(&tokenizer));
    let engine = GenerationEngine::start(model, Arc::clone(&tokenizer), options)?;
    let defaults =
        SamplingParameters { temperature: 0.0, max_tokens: None, ..SamplingParameters::default() };
    let template = Some(ChatTemplate::chatml()?);
    let model = LanguageModel::new(tokenizer, template, ToolFormat::Hermes, defaults, engine);
    Ok(CheckpointHandle::Language(Arc::new(model)))
}

/// The backends of language models, all of which spell.
pub(crate) fn backends() -> Vec<Arc<dyn ModelBackend>> {
    let load: LoadModel = Arc::new(|_, path, arguments| load(path, arguments));
    LlmBackend::all(&load)
}

/// A core whose spellers share so many bytes of memory, and how often one was loaded.
pub(crate) fn core_within(repository: &Path, limit: u64) -> (Arc<Core>, Arc<AtomicUsize>) {
    let loads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&loads);
    let load: LoadModel = Arc::new(move |_, path, arguments| {
        counted.fetch_add(1, Ordering::SeqCst);
        load(path, arguments)
    });
    let options = CoreOptions {
        repositories: vec![repository.to_owned()],
        exit_on_error: false,
        ..CoreOptions::default()
    };
    let backends =
        LlmBackend::within(&load, &ModelMemory::new(Some(limit)), KernelTuningPolicy::default());
    (Core::start(options, backends).unwrap(), loads)
}

/// Makes a folder that looks like a checkpoint.
pub(crate) fn write_checkpoint(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for file in ["config.json", "model.safetensors"] {
        fs::write(folder.join(file), "{}").unwrap();
    }
}

/// A core on the folders and files of a repository.
pub(crate) fn core(repository: &Path) -> Arc<Core> {
    let repositories = vec![repository.to_owned()];
    let control_mode = ControlMode::Explicit { load: vec!["*".to_owned()] };
    let options = CoreOptions { repositories, control_mode, ..CoreOptions::default() };
    let backends = galatea::Engine::new().backends(None).into_iter();
    // These are found first.
    Core::start(options, self::backends().into_iter().chain(backends).collect()).unwrap()
}
