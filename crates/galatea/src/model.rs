//! Models that are graphs: ONNX files and Core ML packages.

use std::path::Path;

use galatea_runtime::{IoInfo, OptimiseLevel, Precision, Run, Session, SessionOptions};
use galatea_serving::graph_model::{self, FunctionInterface, ModelFormat, RunState};
use galatea_serving::model_cache::{self, ModelCache, SessionOrigin};
use galatea_tensor::{DataType, Tensor};

use crate::{Engine, Error, ErrorKind, files};

/// Options for loading a model.
///
/// ```
/// use galatea::ModelOptions;
///
/// let options = ModelOptions { device: Some("cpu".to_owned()), threads: 2, ..ModelOptions::default() };
/// assert!(options.function.is_none());
/// ```
#[derive(Debug, Default)]
pub struct ModelOptions {
    /// Device or list of devices, as `--provider` names them; all that are present, if none is named.
    pub device: Option<String>,
    /// Threads inside an operator; 0 for all cores.
    pub threads: usize,
    /// Level up to which the graph is rewritten; chosen by the device, if none is given.
    pub level: Option<OptimiseLevel>,
    /// Precision of matrix multiplications and convolutions.
    pub precision: Precision,
    /// Function of a Core ML package that has several.
    pub function: Option<String>,
    /// Cache of prepared models; each load prepares anew without one.
    pub cache: Option<ModelCache>,
}

/// A model that is ready to run. It may be shared between threads.
///
/// ```
/// use galatea::{Engine, Tensor};
///
/// let model = Engine::new().model("../../examples/models/simple")?;
/// let ones = Tensor::from_vec(&[1, 16], vec![1_i32; 16])?;
/// let outputs = model.run(&[("INPUT0", ones.clone()), ("INPUT1", ones)])?;
/// assert_eq!(outputs[0].0, "OUTPUT0");
/// assert_eq!(outputs[0].1.to_vec::<i32>()?, vec![2; 16]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Model {
    session: Session,
    origin: SessionOrigin,
    interface: Option<FunctionInterface>,
}

impl Engine {
    /// Loads a model: an ONNX file, a Core ML package, or a folder with one of them, on all devices of this machine.
    ///
    /// # Errors
    /// Fails when there is no model, or it cannot be prepared.
    ///
    /// ```
    /// let engine = galatea::Engine::new();
    /// let model = engine.model("../../examples/models/digits")?;
    /// println!("{:?}", model.inputs());
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn model(&self, path: impl AsRef<Path>) -> Result<Model, Error> {
        self.model_with(path, &ModelOptions::default())
    }

    /// Loads a model with options.
    ///
    /// # Errors
    /// Fails as [`model`](Self::model) does, and for a device that is not there.
    ///
    /// ```
    /// use galatea::{Engine, ModelOptions};
    ///
    /// let options = ModelOptions { device: Some("reference".to_owned()), ..ModelOptions::default() };
    /// let model = Engine::new().model_with("../../examples/models/simple", &options)?;
    /// assert_eq!(model.devices(), ["reference"]);
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn model_with(
        &self,
        path: impl AsRef<Path>,
        options: &ModelOptions,
    ) -> Result<Model, Error> {
        let path = files::find_model(path.as_ref()).map_err(Error::of(ErrorKind::File))?;
        let format = files::format(&path).map_err(Error::of(ErrorKind::File))?;
        let device = options.device.as_deref();
        let providers = self.graph_providers(device).map_err(Error::of(ErrorKind::Device))?;
        let session_options = SessionOptions {
            routing: self.routing(device, &providers),
            threads: options.threads,
            optimise: options.level.unwrap_or_else(|| usual_level(device)),
            precision: options.precision,
            choices: self.choices(),
            pace: self.power().pace(),
            watch: self.profiler().watch(&path.display().to_string()),
            ..SessionOptions::default()
        };
        if format == ModelFormat::CoreMl {
            let model = graph_model::read_core_ml(&path, options.function.as_deref())
                .map_err(Error::of(ErrorKind::File))?;
            let session = Session::new(model.graph, &providers, &session_options)
                .map_err(|error| Error::new(ErrorKind::Model, at(&path, &error)))?;
            let interface = Some(model.interface);
            return Ok(Model { session, origin: SessionOrigin::Model, interface });
        }
        if let Some(name) = options.function.as_deref().filter(|&name| name != "main") {
            let text = format!("the model has no function '{name}'; its only one is 'main'");
            return Err(Error::new(ErrorKind::Input, text));
        }
        let cache = options.cache.as_ref();
        let (session, origin) = model_cache::session(cache, &path, &providers, &session_options)
            .map_err(Error::of(ErrorKind::Model))?;
        Ok(Model { session, origin, interface: None })
    }
}

/// Returns the level up to which graphs are rewritten for a device, if nobody says.
///
/// ```
/// use galatea::{OptimiseLevel, usual_level};
///
/// assert_eq!(usual_level(Some("coreml")), OptimiseLevel::O1);
/// assert_eq!(usual_level(None), OptimiseLevel::default());
/// ```
#[must_use]
pub fn usual_level(device: Option<&str>) -> OptimiseLevel {
    match crate::devices::is_core_ml(device) {
        // Programs have no operations for what larger fusions make.
        true => OptimiseLevel::O1,
        false => OptimiseLevel::default(),
    }
}

fn at(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

impl Model {
    /// Returns names, types and shapes of the inputs.
    ///
    /// ```
    /// let model = galatea::Engine::new().model("../../examples/models/simple")?;
    /// let names: Vec<&str> = model.inputs().iter().map(|input| input.name.as_str()).collect();
    /// assert_eq!(names, ["INPUT0", "INPUT1"]);
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn inputs(&self) -> &[IoInfo] {
        self.session.inputs()
    }

    /// Returns names, types and shapes of the outputs.
    ///
    /// ```
    /// let model = galatea::Engine::new().model("../../examples/models/simple")?;
    /// assert_eq!(model.outputs().len(), 2);
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn outputs(&self) -> &[IoInfo] {
        self.session.outputs()
    }

    /// Returns the inputs that a run is given: all but the states of a Core ML model.
    ///
    /// ```
    /// let model = galatea::Engine::new().model("../../examples/models/simple")?;
    /// assert_eq!(model.call_inputs().count(), 2);
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn call_inputs(&self) -> impl Iterator<Item = &IoInfo> {
        let is_state = |info: &IoInfo| self.states().any(|state| state.input == info.name);
        self.inputs().iter().filter(move |info| !is_state(info))
    }

    /// Returns the outputs that a run gives, in its order: all but the states of a Core ML model.
    ///
    /// ```
    /// let model = galatea::Engine::new().model("../../examples/models/simple")?;
    /// assert_eq!(model.call_outputs().count(), 2);
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn call_outputs(&self) -> impl Iterator<Item = &IoInfo> {
        let is_state = |info: &IoInfo| self.states().any(|state| state.output == info.name);
        self.outputs().iter().filter(move |info| !is_state(info))
    }

    fn states(&self) -> impl Iterator<Item = &RunState> {
        self.interface.iter().flat_map(|interface| &interface.states)
    }

    /// Returns the names of the devices that run the model, such as `cpu`.
    ///
    /// ```
    /// let model = galatea::Engine::new().model("../../examples/models/digits")?;
    /// assert!(model.devices().contains(&"cpu"));
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn devices(&self) -> Vec<&'static str> {
        let mut names = self.session.partition_providers();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns the session behind the model, for what this type has no method for.
    ///
    /// ```
    /// let model = galatea::Engine::new().model("../../examples/models/digits")?;
    /// assert!(model.session().report().memory.initializer_bytes > 0);
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the session and forgets the rest.
    ///
    /// ```
    /// let session = galatea::Engine::new().model("../../examples/models/simple")?.into_session();
    /// assert_eq!(session.inputs().len(), 2);
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn into_session(self) -> Session {
        self.session
    }

    /// Returns whether the model came from its file or from the cache of prepared models.
    ///
    /// ```
    /// let model = galatea::Engine::new().model("../../examples/models/digits")?;
    /// println!("{}", model.origin());
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn origin(&self) -> SessionOrigin {
        self.origin
    }

    /// Runs the model on named inputs, and returns the outputs with their names. States of a Core ML model are those
    /// of a first run; [`runs`](Self::runs) keeps them.
    ///
    /// # Errors
    /// Fails when an input is missing, unknown, or of another type or shape.
    ///
    /// ```
    /// let model = galatea::Engine::new().model("../../examples/models/simple")?;
    /// let error = model.run(&[]).unwrap_err();
    /// assert!(error.to_string().contains("INPUT0"));
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn run(&self, inputs: &[(&str, Tensor)]) -> Result<Vec<(String, Tensor)>, Error> {
        self.runs().next(inputs)
    }

    /// Returns a series of runs, in which the states of a model go from one run to the next.
    ///
    /// ```
    /// use galatea::{Engine, Tensor};
    ///
    /// let model = Engine::new().model("../../examples/models/simple")?;
    /// let mut runs = model.runs();
    /// for value in 0..3_i32 {
    ///     let input = Tensor::from_vec(&[1, 16], vec![value; 16])?;
    ///     runs.next(&[("INPUT0", input.clone()), ("INPUT1", input)])?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn runs(&self) -> ModelRuns<'_> {
        let states =
            self.states().map(|state| (state.input.clone(), state.zeros.clone())).collect();
        ModelRuns { model: self, states }
    }

    /// A number of another width than a Core ML model declares, in the declared type: Core ML converts arrays itself.
    fn as_declared(&self, name: &str, tensor: &Tensor) -> Result<Tensor, Error> {
        let Some(input) = self.inputs().iter().find(|input| input.name == name) else {
            return Ok(tensor.clone());
        };
        let is_float = |dtype| {
            matches!(dtype, DataType::Fp16 | DataType::Fp32 | DataType::Fp64 | DataType::Bf16)
        };
        let (from, to) = (tensor.dtype(), input.dtype);
        let is_number = |dtype| !matches!(dtype, DataType::Bool | DataType::Bytes);
        match from != to && is_number(from) && is_number(to) && is_float(from) == is_float(to) {
            true => galatea_graph::converted(tensor, to).map_err(Error::of(ErrorKind::Input)),
            false => Ok(tensor.clone()),
        }
    }
}

/// Runs of a model, one after the other: its states go from one to the next.
///
/// ```
/// let model = galatea::Engine::new().model("../../examples/models/simple")?;
/// let mut runs = model.runs();
/// assert!(runs.next(&[]).is_err());
/// # Ok::<(), galatea::Error>(())
/// ```
#[derive(Debug)]
pub struct ModelRuns<'m> {
    model: &'m Model,
    /// Inputs that are states, and their values.
    states: Vec<(String, Tensor)>,
}

impl ModelRuns<'_> {
    /// Runs the model on named inputs, and returns the outputs with their names.
    ///
    /// # Errors
    /// Fails as [`Model::run`] does.
    ///
    /// ```
    /// let model = galatea::Engine::new().model("../../examples/models/simple")?;
    /// assert!(model.runs().next(&[]).is_err());
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn next(&mut self, inputs: &[(&str, Tensor)]) -> Result<Vec<(String, Tensor)>, Error> {
        let model = self.model;
        let mut named: Vec<(&str, Tensor)> = Vec::with_capacity(inputs.len());
        for (name, tensor) in inputs {
            let tensor = match &model.interface {
                Some(_) => model.as_declared(name, tensor)?,
                None => tensor.clone(),
            };
            named.push((name, tensor));
        }
        if let Some(interface) = &model.interface {
            let given = named.iter().map(|(name, tensor)| (*name, tensor));
            interface.check(given).map_err(Error::of(ErrorKind::Input))?;
        }
        let optional = model.interface.iter().flat_map(|interface| &interface.defaults);
        for (name, value) in optional {
            if inputs.iter().all(|(given, _)| given != name) {
                named.push((name, value.clone()));
            }
        }
        named.extend(self.states.iter().map(|(name, value)| (name.as_str(), value.clone())));
        let outputs =
            model.session.run_tensors(Run::named(&named)).map_err(Error::of(ErrorKind::Run))?;
        let names = model.outputs().iter().map(|output| output.name.clone());
        let mut outputs: Vec<(String, Tensor)> = names.zip(outputs).collect();
        for (state, (_, value)) in model.states().zip(&mut self.states) {
            let Some(at) = outputs.iter().position(|(name, _)| *name == state.output) else {
                continue;
            };
            *value = outputs.remove(at).1;
        }
        Ok(outputs)
    }
}

/// Returns the cache of prepared models in the system's own folder; none where the system has no such folder.
///
/// ```
/// use galatea::{ModelOptions, usual_cache};
///
/// let options = ModelOptions { cache: usual_cache(), ..ModelOptions::default() };
/// # drop(options);
/// ```
#[must_use]
pub fn usual_cache() -> Option<ModelCache> {
    crate::models::model_cache("", model_cache::DEFAULT_LIMIT_BYTES)
}
