//! Chunks of language models whose packages an engine runs: Core ML or the interpreter, here or in a worker.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use galatea_coreml::NeuralEngine;
use galatea_coreml::engine::{
    self, CompiledCache, CompiledPackage, CoreMlEngine, EngineError, EngineErrorKind,
    EngineLoadOptions, EngineModel, NamedTensor, StateNumber,
};
use galatea_graph::converted;
use galatea_llm::chunked::{ChunkEngine, ChunkFunctions, ChunkManifest, ChunkPlace, function_name};
use galatea_llm::{LlmError, LlmErrorKind};
use galatea_runtime::{ExecutionProvider, IntervalKind, IntervalSource};
use galatea_tensor::{OrderedMap, Tensor};

use super::MAIN;
use crate::devices;

type Result<T> = std::result::Result<T, LlmError>;

/// Loads folders of chunks in an engine.
#[derive(Debug)]
pub struct ChunkRunner {
    engine: Arc<dyn CoreMlEngine>,
    cache: CompiledCache,
    options: EngineLoadOptions,
    intervals: IntervalSource,
}

impl ChunkRunner {
    /// Loads in this engine, which keeps what it compiles in the cache.
    #[must_use]
    pub fn new(
        engine: Arc<dyn CoreMlEngine>,
        cache: CompiledCache,
        options: EngineLoadOptions,
    ) -> Self {
        Self { engine, cache, options, intervals: IntervalSource::default() }
    }

    /// The same, with a recorder that each prediction is told to.
    #[must_use]
    pub fn recorded(self, intervals: IntervalSource) -> Self {
        Self { intervals, ..self }
    }

    /// Returns the engine for a provider's name: one for Core ML if the name is Core ML's. Without a name, or
    /// for `auto`, it returns one only if this machine has a Neural Engine. The settings are `worker` and
    /// `power_mode`. Predictions are told to the recorder of `intervals`.
    ///
    /// # Errors
    /// Fails for an invalid setting.
    pub fn named(
        name: Option<&str>,
        settings: &OrderedMap<String, String>,
        intervals: &IntervalSource,
    ) -> std::result::Result<Option<Arc<dyn ChunkEngine>>, String> {
        let chosen = engine::chosen(settings)?;
        let automatic = name.is_none_or(|name| name == devices::AUTO);
        let is_meant = devices::is_core_ml(name) || automatic && NeuralEngine::detect().is_some();
        Ok(chosen.filter(|_| is_meant).map(|(engine, cache, options)| -> Arc<dyn ChunkEngine> {
            Arc::new(Self::new(engine, cache, options).recorded(intervals.clone()))
        }))
    }

    /// A package with some of its functions, by rows.
    fn package(
        &self,
        folder: &Path,
        file: &str,
        rows: &[(usize, Option<String>)],
    ) -> Result<EnginePackage> {
        let failed = |error: EngineError| told(file, error);
        let path = folder.join(file);
        let compiled = self.cache.compiled(&*self.engine, &path, &engine::facts());
        let compiled = compiled.map_err(failed)?;
        let mut functions: OrderedMap<usize, Arc<dyn EngineModel>> = OrderedMap::new();
        for (rows, name) in rows {
            let options = EngineLoadOptions { function: name.clone(), ..self.options.clone() };
            let loaded = match functions.values().next() {
                None => self.engine.load(compiled.path(), &options),
                Some(first) => first.beside(&options),
            };
            let place = || format!("{file}: function '{}'", name.as_deref().unwrap_or(MAIN));
            functions.insert(*rows, loaded.map_err(|error| told(&place(), error))?);
        }
        Ok(EnginePackage { file: file.to_owned(), functions, _compiled: compiled })
    }
}

impl ChunkEngine for ChunkRunner {
    fn load(&self, folder: &Path, manifest: &ChunkManifest) -> Result<Box<dyn ChunkFunctions>> {
        let rows: Vec<(usize, Option<String>)> =
            manifest.rows.iter().map(|&rows| (rows, Some(function_name(rows)))).collect();
        let layers = manifest.chunks.iter().map(|file| self.package(folder, file, &rows));
        // Core ML wants no name where a model has one function.
        let head = std::iter::once_with(|| self.package(folder, &manifest.head, &[(1, None)]));
        let packages = layers.chain(head).collect::<Result<Vec<EnginePackage>>>()?;
        tracing::info!(engine = self.engine.name(), packages = packages.len(), "chunks are loaded");
        let intervals = self.intervals.clone();
        Ok(Box::new(EngineChunks { packages, states: HashMap::new(), intervals }))
    }

    fn behind(&self) -> Vec<Arc<dyn ExecutionProvider>> {
        devices::processor()
    }
}

/// An engine's failure as the step has it.
fn told(place: &str, error: EngineError) -> LlmError {
    let kind = match error.kind {
        EngineErrorKind::Died
        | EngineErrorKind::Hung
        | EngineErrorKind::Resting
        | EngineErrorKind::StateLost => LlmErrorKind::Lost,
        EngineErrorKind::Refused | EngineErrorKind::Unavailable => LlmErrorKind::Unavailable,
        _ => LlmErrorKind::Model,
    };
    LlmError::new(kind, place, error.text)
}

/// A package in an engine.
#[derive(Debug)]
struct EnginePackage {
    /// Its name in the folder.
    file: String,
    /// By rows. They share their states.
    functions: OrderedMap<usize, Arc<dyn EngineModel>>,
    /// Stays in the cache for as long as it is loaded.
    _compiled: CompiledPackage,
}

/// The functions of a folder in an engine.
#[derive(Debug)]
struct EngineChunks {
    /// Packages of the layers, followed by the package that computes the logits.
    packages: Vec<EnginePackage>,
    /// By chunk and sequence; none before the first run.
    states: HashMap<(usize, usize), StateNumber>,
    intervals: IntervalSource,
}

/// The number at the end of a name such as `logits_10`: Core ML gives outputs in the order of their names.
fn number(name: &str) -> usize {
    name.rsplit_once('_').and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

impl EngineChunks {
    fn package(&self, chunk: usize) -> Result<&EnginePackage> {
        let missing =
            || LlmError::new(LlmErrorKind::Model, format!("chunk {chunk}"), "there is none");
        self.packages.get(chunk).ok_or_else(missing)
    }

    /// A function, and where it is for messages.
    fn function(&self, place: ChunkPlace) -> Result<(Arc<dyn EngineModel>, String)> {
        let package = self.package(place.chunk)?;
        let layers = place.chunk + 1 < self.packages.len();
        let name = if layers { function_name(place.rows) } else { MAIN.to_owned() };
        let text = format!("{}: function '{name}'", package.file);
        match package.functions.get(&place.rows) {
            Some(function) => Ok((Arc::clone(function), text)),
            None => Err(LlmError::new(LlmErrorKind::Model, text, "there is none")),
        }
    }

    /// The state of a sequence in a chunk.
    fn state(
        &mut self,
        chunk: usize,
        sequence: usize,
        model: &dyn EngineModel,
    ) -> std::result::Result<StateNumber, EngineError> {
        if let Some(&state) = self.states.get(&(chunk, sequence)) {
            return Ok(state);
        }
        let state = model.new_state()?;
        self.states.insert((chunk, sequence), state);
        Ok(state)
    }

    /// Lets go of all states: after a failure nothing that they hold is used again.
    fn forget(&mut self) {
        for ((chunk, _), state) in std::mem::take(&mut self.states) {
            let package = self.packages.get(chunk);
            if let Some(model) = package.and_then(|package| package.functions.values().next()) {
                model.drop_state(state);
            }
        }
    }

    /// Runs a function; `what` names it to who records.
    fn predict(
        &mut self,
        place: ChunkPlace,
        what: &str,
        model: &dyn EngineModel,
        given: &[NamedTensor],
    ) -> std::result::Result<Vec<NamedTensor>, EngineError> {
        let stateful = !model.interface().states.is_empty();
        let state = match stateful {
            true => Some(self.state(place.chunk, place.sequence, model)?),
            false => None,
        };
        engine::count_prediction();
        let _recorded = self.intervals.begin(IntervalKind::Prediction, what);
        engine::predict(model, given.to_vec(), state)
    }

    fn attempt(
        &mut self,
        place: ChunkPlace,
        inputs: &HashMap<String, Tensor>,
    ) -> Result<Vec<Tensor>> {
        let (model, name) = self.function(place)?;
        let given =
            fed(&*model, inputs).map_err(|text| LlmError::new(LlmErrorKind::Model, &name, text))?;
        let mut found = self.predict(place, &name, &*model, &given);
        // What is computed from the first position on needs nothing of a state that a worker had.
        let lost = found.as_ref().is_err_and(|error| error.kind == EngineErrorKind::StateLost);
        if lost && begins(inputs) {
            if let Some(state) = self.states.remove(&(place.chunk, place.sequence)) {
                model.drop_state(state);
            }
            found = self.predict(place, &name, &*model, &given);
        }
        let mut found = found.map_err(|error| told(&name, error))?;
        found.sort_by_key(|(name, _)| number(name));
        Ok(found.into_iter().map(|(_, tensor)| tensor).collect())
    }
}

/// Returns whether the first row of a run is the first of its sequence.
fn begins(inputs: &HashMap<String, Tensor>) -> bool {
    let start = inputs.get("start").and_then(|start| start.to_i64_vec().ok());
    start.is_some_and(|start| start == [0])
}

/// Collects the inputs of a function, converted to the data types that it takes.
fn fed(
    model: &dyn EngineModel,
    inputs: &HashMap<String, Tensor>,
) -> std::result::Result<Vec<NamedTensor>, String> {
    let all = model.interface().inputs.iter().map(|feature| {
        let name = &feature.name;
        let tensor = inputs.get(name).ok_or_else(|| format!("input '{name}' is not known"))?;
        let wanted =
            engine::element(feature).ok_or_else(|| format!("input '{name}' is no tensor"))?;
        let tensor =
            converted(tensor, wanted).map_err(|error| format!("input '{name}': {error}"))?;
        Ok((name.clone(), tensor))
    });
    all.collect()
}

impl ChunkFunctions for EngineChunks {
    fn run(&mut self, place: ChunkPlace, inputs: &HashMap<String, Tensor>) -> Result<Vec<Tensor>> {
        let found = self.attempt(place, inputs);
        if found.is_err() {
            self.forget();
        }
        found
    }

    fn copy(&mut self, from: usize, to: usize) -> Result<()> {
        let layers = self.packages.len().saturating_sub(1);
        for chunk in 0..layers {
            let Some(&source) = self.states.get(&(chunk, from)) else { continue };
            let package = self.package(chunk)?;
            let file = package.file.clone();
            let Some(model) = package.functions.values().next().cloned() else { continue };
            let copied =
                self.state(chunk, to, &*model).and_then(|target| model.copy_state(source, target));
            if let Err(error) = copied {
                self.forget();
                return Err(told(&file, error));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use galatea_coreml::engine::{EngineInterface, EnginePlannedOperator, PredictionCallback};
    use galatea_formats::coreml::{FeatureShapes, FeatureType, ModelFeature};
    use galatea_llm::arch::ModelShape;
    use galatea_runtime::IntervalRecorder;
    use galatea_tensor::DataType;

    use super::*;

    /// Calls in their order, and the number of predictions that are to fail with a lost state.
    #[derive(Debug, Default)]
    struct Log {
        said: Mutex<Vec<String>>,
        last: AtomicU64,
        losses: AtomicU64,
    }

    impl Log {
        fn say(&self, text: String) {
            self.said.lock().unwrap().push(text);
        }

        fn next(&self) -> u64 {
            self.last.fetch_add(1, Ordering::Relaxed) + 1
        }
    }

    /// Writes down what it is asked for and computes nothing.
    #[derive(Debug, Default)]
    struct Recording(Arc<Log>);

    #[derive(Debug)]
    struct RecordedFunction {
        function: String,
        interface: EngineInterface,
        log: Arc<Log>,
    }

    fn array(name: &str, dtype: DataType, shape: &[usize]) -> ModelFeature {
        let shape = shape.to_vec();
        let shapes = FeatureShapes::Fixed;
        let kind = FeatureType::Array { dtype, shape, shapes, default: None };
        ModelFeature { name: name.to_owned(), description: String::new(), kind, optional: false }
    }

    impl RecordedFunction {
        fn made(log: &Arc<Log>, options: &EngineLoadOptions) -> Arc<dyn EngineModel> {
            let hidden = array("hidden", DataType::Fp16, &[1, 2]);
            let (function, interface) = match &options.function {
                None => {
                    let outputs = ["logits_0", "logits_1", "logits_10", "logits_2"];
                    let outputs = outputs.map(|name| array(name, DataType::Fp16, &[1, 1]));
                    (MAIN.to_owned(), (vec![hidden], outputs.to_vec(), Vec::new()))
                }
                Some(name) => {
                    let inputs = vec![hidden.clone(), array("start", DataType::Int32, &[1])];
                    let state = array("key", DataType::Fp16, &[1, 2]);
                    (name.clone(), (inputs, vec![hidden], vec![state]))
                }
            };
            let (inputs, outputs, states) = interface;
            let interface = EngineInterface { inputs, outputs, states };
            Arc::new(Self { function, interface, log: Arc::clone(log) })
        }
    }

    impl CoreMlEngine for Recording {
        fn name(&self) -> &'static str {
            "recording"
        }

        fn compile(&self, package: &Path, into: &Path) -> std::result::Result<(), EngineError> {
            let name = package.file_name().unwrap().to_string_lossy();
            self.0.say(format!("compile {name}"));
            std::fs::create_dir(into).unwrap();
            std::fs::write(into.join("made"), name.as_bytes()).unwrap();
            Ok(())
        }

        fn load(
            &self,
            _: &Path,
            options: &EngineLoadOptions,
        ) -> std::result::Result<Arc<dyn EngineModel>, EngineError> {
            self.0.say(format!("load {:?}", options.function));
            Ok(RecordedFunction::made(&self.0, options))
        }

        fn plan(
            &self,
            _: &Path,
            _: &EngineLoadOptions,
        ) -> std::result::Result<Vec<EnginePlannedOperator>, EngineError> {
            Ok(Vec::new())
        }
    }

    impl EngineModel for RecordedFunction {
        fn interface(&self) -> &EngineInterface {
            &self.interface
        }

        fn submit(
            &self,
            inputs: Vec<NamedTensor>,
            state: Option<StateNumber>,
            done: PredictionCallback,
        ) {
            let types: Vec<String> =
                inputs.iter().map(|(name, tensor)| format!("{name} {}", tensor.dtype())).collect();
            self.log.say(format!("{} on {state:?}: {}", self.function, types.join(", ")));
            if self.log.losses.load(Ordering::Relaxed) > 0 {
                self.log.losses.fetch_sub(1, Ordering::Relaxed);
                let kind = EngineErrorKind::StateLost;
                let text = "lost".to_owned();
                return done(Err(EngineError { kind, text }));
            }
            let outputs = self.interface.outputs.iter().map(|feature| {
                let value = u8::try_from(number(&feature.name)).unwrap();
                let tensor = Tensor::from_vec(&[1, 1], vec![f32::from(value)]).unwrap();
                (feature.name.clone(), tensor)
            });
            done(Ok(outputs.collect()));
        }

        fn new_state(&self) -> std::result::Result<StateNumber, EngineError> {
            let number = self.log.next();
            self.log.say(format!("{} makes {number}", self.function));
            Ok(number)
        }

        fn drop_state(&self, state: StateNumber) {
            self.log.say(format!("drop {state}"));
        }

        fn copy_state(
            &self,
            from: StateNumber,
            to: StateNumber,
        ) -> std::result::Result<(), EngineError> {
            self.log.say(format!("copy {from} to {to}"));
            Ok(())
        }

        fn beside(
            &self,
            options: &EngineLoadOptions,
        ) -> std::result::Result<Arc<dyn EngineModel>, EngineError> {
            self.log.say(format!("beside {}: {:?}", self.function, options.function));
            Ok(Self::made(&self.log, options))
        }
    }

    /// A folder of one chunk and a head in a recording engine, what was said until it was loaded, and the log.
    fn loaded() -> (Box<dyn ChunkFunctions>, Vec<String>, Arc<Log>, tempfile::TempDir) {
        loaded_with(IntervalSource::default())
    }

    fn loaded_with(
        intervals: IntervalSource,
    ) -> (Box<dyn ChunkFunctions>, Vec<String>, Arc<Log>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        for file in ["layers_0.mlpackage", "head.mlpackage"] {
            std::fs::create_dir(folder.path().join(file)).unwrap();
            std::fs::write(folder.path().join(file).join("program"), file).unwrap();
        }
        let shape =
            ModelShape { layers: 1, kv_heads: 1, head_size: 2, vocabulary: 4, positions: 16 };
        let mut manifest = ChunkManifest::new("llama", &shape, 16);
        manifest.rows = vec![1, 8];
        manifest.chunks = vec!["layers_0.mlpackage".to_owned()];
        manifest.head = "head.mlpackage".to_owned();
        let engine = Recording::default();
        let log = Arc::clone(&engine.0);
        let cache = CompiledCache::new(folder.path().join("cache"), 1 << 30);
        let runner = ChunkRunner::new(Arc::new(engine), cache, EngineLoadOptions::default())
            .recorded(intervals);
        let functions = runner.load(folder.path(), &manifest).unwrap();
        let said = std::mem::take(&mut *log.said.lock().unwrap());
        (functions, said, log, folder)
    }

    fn inputs(start: i64) -> HashMap<String, Tensor> {
        let hidden = Tensor::from_vec(&[1, 2], vec![0.0_f32; 2]).unwrap();
        let start = Tensor::vector(vec![start]);
        HashMap::from([("hidden".to_owned(), hidden), ("start".to_owned(), start)])
    }

    fn place(chunk: usize, rows: usize, sequence: usize) -> ChunkPlace {
        ChunkPlace { chunk, rows, sequence }
    }

    /// Writes intervals to the log of what an engine does.
    #[derive(Default)]
    struct NotedIntervals {
        told: Mutex<Vec<String>>,
        off: AtomicBool,
    }

    impl IntervalRecorder for NotedIntervals {
        fn is_recording(&self) -> bool {
            !self.off.load(Ordering::Relaxed)
        }

        fn begin(&self, kind: IntervalKind, what: &str) -> u64 {
            let mut told = self.told.lock().unwrap();
            told.push(format!("{kind:?} {what}"));
            told.len() as u64
        }

        fn end(&self, _: IntervalKind, number: u64) {
            self.told.lock().unwrap().push(format!("end {number}"));
        }
    }

    #[test]
    fn each_prediction_of_a_chunk_is_an_interval_with_its_function() {
        let listed = Arc::new(NotedIntervals::default());
        let recorder = Arc::clone(&listed) as Arc<dyn IntervalRecorder>;
        let (mut functions, _, log, _folder) = loaded_with(IntervalSource(Some(recorder)));
        functions.run(place(0, 8, 0), &inputs(0)).unwrap();
        functions.run(place(1, 1, 0), &inputs(0)).unwrap();
        // A prediction that fails ends, and the one that replaces it is another.
        log.losses.store(1, Ordering::Relaxed);
        functions.run(place(0, 1, 1), &inputs(0)).unwrap();
        let expected = [
            "Prediction layers_0.mlpackage: function 'prefill_8'",
            "end 1",
            "Prediction head.mlpackage: function 'main'",
            "end 3",
            "Prediction layers_0.mlpackage: function 'decode'",
            "end 5",
            "Prediction layers_0.mlpackage: function 'decode'",
            "end 7",
        ];
        assert_eq!(*listed.told.lock().unwrap(), expected);
        listed.off.store(true, Ordering::Relaxed);
        functions.run(place(0, 1, 1), &inputs(0)).unwrap();
        assert_eq!(listed.told.lock().unwrap().len(), expected.len());
    }

    #[test]
    fn functions_are_loaded_once_and_share_the_states_of_sequences() {
        let (mut functions, said, log, _folder) = loaded();
        let expected = [
            "compile layers_0.mlpackage",
            "load Some(\"decode\")",
            "beside decode: Some(\"prefill_8\")",
            "compile head.mlpackage",
            "load None",
        ];
        assert_eq!(said, expected);
        functions.run(place(0, 8, 0), &inputs(0)).unwrap();
        functions.run(place(0, 1, 0), &inputs(8)).unwrap();
        functions.run(place(0, 1, 1), &inputs(0)).unwrap();
        functions.copy(0, 2).unwrap();
        let logits = functions.run(place(1, 1, 0), &inputs(0)).unwrap();
        let logits: Vec<f32> = logits.iter().map(|part| part.item().unwrap()).collect();
        assert_eq!(logits, [0.0, 1.0, 2.0, 10.0]);
        let fed = "hidden FP16, start INT32";
        let expected = [
            "prefill_8 makes 1".to_owned(),
            format!("prefill_8 on Some(1): {fed}"),
            format!("decode on Some(1): {fed}"),
            "decode makes 2".to_owned(),
            format!("decode on Some(2): {fed}"),
            "decode makes 3".to_owned(),
            "copy 1 to 3".to_owned(),
            "main on None: hidden FP16".to_owned(),
        ];
        assert_eq!(*log.said.lock().unwrap(), expected);
    }

    #[test]
    fn lost_states_are_made_anew_where_nothing_of_them_is_needed() {
        let (mut functions, _, log, _folder) = loaded();
        log.losses.store(1, Ordering::Relaxed);
        functions.run(place(0, 8, 0), &inputs(0)).unwrap();
        log.losses.store(1, Ordering::Relaxed);
        let error = functions.run(place(0, 1, 0), &inputs(8)).unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::Lost);
        assert_eq!(error.to_string(), "layers_0.mlpackage: function 'decode': lost");
        let said = log.said.lock().unwrap();
        let states: Vec<&String> = said.iter().filter(|text| !text.contains(" on ")).collect();
        assert_eq!(states, ["prefill_8 makes 1", "drop 1", "prefill_8 makes 2", "drop 2"]);
    }

    #[test]
    fn what_is_missing_is_named_with_its_package_and_function() {
        let (mut functions, ..) = loaded();
        let mut given = inputs(0);
        given.remove("start");
        let error = functions.run(place(0, 8, 0), &given).unwrap_err().to_string();
        assert_eq!(error, "layers_0.mlpackage: function 'prefill_8': input 'start' is not known");
        let error = functions.run(place(0, 2, 0), &inputs(0)).unwrap_err().to_string();
        assert_eq!(error, "layers_0.mlpackage: function 'prefill_2': there is none");
    }
}
