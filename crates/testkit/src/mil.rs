//! The cases of `golden/mil`: ML programs with values for their inputs and what they must give.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use galatea_formats::coreml::{self, CoreMlFunction, LoadedCoreMl};
use galatea_formats::npy;
use galatea_graph::{Graph, ValueId, converted};
use galatea_tensor::{ByteString, DataType, Tensor};
use serde_json::Value;

/// A case.
#[derive(Debug)]
pub struct MilCase {
    /// The archive and the folder inside it.
    pub name: String,
    /// Fields of `case.json`.
    pub about: Value,
    files: BTreeMap<String, Vec<u8>>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/mil")
}

fn archives() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).expect("golden/mil is there");
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "zip")).collect();
    found.sort();
    found
}

/// All cases, by archive and name.
///
/// # Panics
/// When an archive is damaged.
#[must_use]
pub fn cases() -> Vec<MilCase> {
    archives().iter().flat_map(|archive| cases_of(archive)).collect()
}

/// The case of a name, such as `control/list_gathered`.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn case(name: &str) -> MilCase {
    let archive = name.split_once('/').map_or("", |(archive, _)| archive);
    let cases = cases_of(&folder().join(format!("{archive}.zip")));
    let found = cases.into_iter().find(|case| case.name == name);
    found.unwrap_or_else(|| panic!("there is no case '{name}'"))
}

fn cases_of(path: &Path) -> Vec<MilCase> {
    let file = File::open(path).expect("the archive can be opened");
    let mut archive = zip::ZipArchive::new(file).expect("it is an archive");
    let mut cases: BTreeMap<String, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).expect("the archive is whole");
        let name = file.name().expect("names are UTF-8").into_owned();
        let (case, path) = name.split_once('/').expect("files lie in the folder of a case");
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("the file is whole");
        cases.entry(case.to_owned()).or_default().insert(path.to_owned(), bytes);
    }
    let stem = path.file_stem().unwrap_or_default().display();
    let case = |(name, files): (String, BTreeMap<String, Vec<u8>>)| MilCase {
        name: format!("{stem}/{name}"),
        about: serde_json::from_slice(&files["case.json"]).expect("case.json is JSON"),
        files,
    };
    cases.into_iter().map(case).collect()
}

impl MilCase {
    /// The operators that the case is about.
    pub fn operators(&self) -> impl Iterator<Item = &str> {
        self.about["operators"].as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    /// The bytes of the model, and a folder with its weights.
    ///
    /// # Panics
    /// When no folder can be made.
    #[must_use]
    pub fn model(&self) -> (Vec<u8>, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("folders can be made");
        if let Some(weights) = self.files.get("weights/weight.bin") {
            let inner = folder.path().join("weights");
            std::fs::create_dir(&inner).expect("folders can be made");
            std::fs::write(inner.join("weight.bin"), weights).expect("files can be written");
        }
        (self.files["model.mlmodel"].clone(), folder)
    }

    /// Reads the model and compares what its runs give, one after the other on the same states.
    /// `prepare` makes of the graph what runs it.
    ///
    /// # Errors
    /// When the model is refused or gives something else.
    ///
    /// # Panics
    /// When the case is damaged.
    pub fn check<R: FnMut(&[Tensor]) -> Result<Vec<Tensor>, String>>(
        &self,
        prepare: impl FnOnce(&Graph) -> Result<R, String>,
    ) -> Result<(), String> {
        let (bytes, folder) = self.model();
        let model = coreml::read_model(bytes.into(), Some(folder.path()));
        self.check_model(&model.map_err(|error| error.to_string())?, prepare)
    }

    /// Compares what the runs of a model give that was read from another form of the case's.
    ///
    /// # Errors
    /// When the model gives something else.
    ///
    /// # Panics
    /// When the case is damaged.
    pub fn check_model<R: FnMut(&[Tensor]) -> Result<Vec<Tensor>, String>>(
        &self,
        model: &LoadedCoreMl,
        prepare: impl FnOnce(&Graph) -> Result<R, String>,
    ) -> Result<(), String> {
        let function = model.function(None).map_err(|error| error.to_string())?;
        let mut run = prepare(&function.graph)?;
        let mut states = zeros(function);
        for prefix in self.runs() {
            let inputs = self.inputs(function, &prefix, &states)?;
            let mut outputs = run(&inputs).map_err(|error| format!("{prefix}{error}"))?;
            states = outputs.split_off(function.outputs.len());
            for (feature, found) in function.outputs.iter().zip(&outputs) {
                let compared = self.compare(&prefix, &feature.name, found);
                compared.map_err(|text| format!("output {prefix}{}: {text}", feature.name))?;
            }
        }
        Ok(())
    }

    /// The folders of the runs: several where states connect them.
    fn runs(&self) -> Vec<String> {
        let is_there = |run: &String| self.files.keys().any(|path| path.starts_with(run.as_str()));
        let runs: Vec<String> = (0..).map(|run| format!("{run}/")).take_while(is_there).collect();
        if runs.is_empty() { vec![String::new()] } else { runs }
    }

    fn read(&self, path: &str) -> Result<Tensor, String> {
        let bytes = self.files.get(path).ok_or_else(|| format!("there is no {path}"))?;
        Ok(npy::read_npy(bytes).expect("the file is one of NumPy"))
    }

    fn inputs(
        &self,
        function: &CoreMlFunction,
        prefix: &str,
        states: &[Tensor],
    ) -> Result<Vec<Tensor>, String> {
        let given = function.inputs.iter().zip(&function.graph.inputs).map(|(feature, &id)| {
            let found = self.read(&format!("{prefix}inputs/{}.npy", feature.name))?;
            let declared = function.graph.value(id).declared.as_ref();
            let dtype = declared.expect("inputs have types").dtype;
            let tensor = converted(&found, dtype).map_err(|error| error.to_string())?;
            feature.check_shape(tensor.shape()).map_err(|error| error.to_string())?;
            Ok(tensor)
        });
        given.chain(states.iter().cloned().map(Ok)).collect()
    }

    fn compare(&self, prefix: &str, name: &str, found: &Tensor) -> Result<(), String> {
        match self.about["oracle"].as_str() {
            Some("range") => self.in_range(name, found),
            _ => self.close(found, &self.read(&format!("{prefix}outputs/{name}.npy"))?),
        }
    }

    fn number(&self, key: &str) -> f64 {
        self.about[key].as_f64().expect("case.json has the number")
    }

    /// Compares with what is recorded.
    fn close(&self, found: &Tensor, expected: &Tensor) -> Result<(), String> {
        if found.shape() != expected.shape() {
            return Err(format!("shape {:?}, expected {:?}", found.shape(), expected.shape()));
        }
        if found.dtype() == DataType::Bytes || expected.dtype() == DataType::Bytes {
            let texts = |tensor: &Tensor| tensor.to_vec::<ByteString>();
            return match (texts(found), texts(expected)) {
                (Ok(found), Ok(expected)) if found == expected => Ok(()),
                (found, expected) => Err(format!("{found:?}, expected {expected:?}")),
            };
        }
        let absolute = self.number("tolerance_abs");
        let relative = self.number("tolerance_rel");
        let pairs = numbers(found).into_iter().zip(numbers(expected)).enumerate();
        for (at, (found, expected)) in pairs {
            let same = found == expected || (found.is_nan() && expected.is_nan());
            // An infinity is near nothing: what is allowed beside it would be infinite too.
            let near = expected.is_finite()
                && (found - expected).abs() <= absolute + relative * expected.abs();
            if !same && !near {
                return Err(format!("element {at} is {found}, expected {expected}"));
            }
        }
        Ok(())
    }

    /// Compares what chance decides with its bounds.
    fn in_range(&self, name: &str, found: &Tensor) -> Result<(), String> {
        let shape = self.about["shapes"][name].as_array();
        let shape = shape.ok_or_else(|| format!("case.json has no shape of {name}"))?;
        let same = |(stated, len): (&Value, &usize)| {
            stated.as_u64().and_then(|stated| usize::try_from(stated).ok()) == Some(*len)
        };
        if shape.len() != found.rank() || !shape.iter().zip(found.shape()).all(same) {
            return Err(format!("shape {:?}, expected {shape:?}", found.shape()));
        }
        let low = self.number("low");
        let high = self.number("high");
        match numbers(found).into_iter().find(|value| !(low..=high).contains(value)) {
            None => Ok(()),
            Some(value) => Err(format!("{value} is not in {low} to {high}")),
        }
    }
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    let wide = converted(tensor, DataType::Fp64).expect("numbers convert");
    wide.to_vec::<f64>().expect("it is of FP64")
}

/// Contents of states before the first run.
fn zeros(function: &CoreMlFunction) -> Vec<Tensor> {
    let zero = |id: &ValueId| {
        let fact = function.graph.value(*id).declared.clone().expect("states have types");
        let shape = fact.known_shape().expect("states have known shapes");
        Tensor::zeros(fact.dtype, &shape).expect("states are small")
    };
    function.graph.inputs[function.inputs.len()..].iter().map(zero).collect()
}
