//! The ONNX backend node cases, run on every provider.
//!
//! Each case is a folder with `model.onnx` and folders `test_data_set_N` of `input_I.pb` and
//! `output_I.pb`; `python/onnx_node_cases.py` writes them.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use galatea_formats::onnx;
use galatea_formats::onnx::proto::{GraphProto, ModelProto, NodeProto};
use galatea_graph::{Datum, Fact, Graph, ValueId, ops};
use galatea_tensor::{DataType, Tensor, Tolerance, compare};
use libtest_mimic::{Arguments, Conclusion, Trial};
use prost::Message;

use crate::expectations::{CaseExpectations, ResultComparison};
use crate::mutation::mutants;
use crate::schemas;
use crate::tolerance::tolerance;

/// The environment variable that names the folder of the cases.
pub const NODE_DATA: &str = "GALATEA_ONNX_NODE_DATA";

/// Computes the outputs of a graph from its inputs.
pub type GraphRunner = dyn Fn(&Graph, Vec<Datum>) -> Result<Vec<Datum>, String> + Send + Sync;

/// A provider under test.
pub struct TestedProvider {
    /// Its name, the first part of each test's name.
    pub name: &'static str,
    /// The text of its expectations file.
    pub expectations: &'static str,
    /// How it runs a graph.
    pub run: Box<GraphRunner>,
    /// Whether it takes a graph, for a provider that leaves some to others: those cases are not run.
    pub claims: Option<Box<WholeClaim>>,
}

/// Whether a provider takes a graph as a whole.
pub type WholeClaim = dyn Fn(&Graph) -> bool + Send + Sync;

impl std::fmt::Debug for TestedProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The name of the provider that evaluates operators by their reference.
const REFERENCE: &str = "reference";

/// A domain and an operator of it.
type OperatorName = (String, String);

/// One case: a model that uses only known operators.
struct ConformanceCase {
    name: String,
    folder: PathBuf,
    operators: BTreeSet<String>,
    nodes: usize,
}

/// Runs every case on every provider, with the command line of a test program. On the reference
/// evaluation the cases of one node also run with inputs that do not fit, which must not panic.
///
/// Without [`NODE_DATA`] the suite is one ignored test that says so. Operators that occur in the
/// data and have no definition are ignored tests too, with the number of cases that need them.
///
/// # Panics
/// When an expectations file does not parse or the folder cannot be read.
pub fn run(providers: Vec<TestedProvider>) -> Conclusion {
    run_with(providers, |_| Vec::new())
}

/// Runs like [`run`], with further tests that know the folder of the cases.
///
/// # Panics
/// Panics like [`run`].
#[allow(clippy::panic, reason = "a broken suite fails the test program")]
pub fn run_with(
    providers: Vec<TestedProvider>,
    more: impl FnOnce(&Path) -> Vec<Trial>,
) -> Conclusion {
    let arguments = Arguments::from_args();
    let Some(root) = std::env::var_os(NODE_DATA) else {
        let name = format!("onnx nodes (skipped: {NODE_DATA} names no folder of cases)");
        let skipped = Trial::test(name, || Ok(())).with_ignored_flag(true);
        return libtest_mimic::run(&arguments, vec![skipped]);
    };
    let (cases, absent) = cases(Path::new(&root)).unwrap_or_else(|error| panic!("{error}"));
    let mut trials: Vec<Trial> = absent
        .into_iter()
        .map(|(name, count)| {
            Trial::test(format!("no operator {name} ({count} cases)"), || Ok(()))
                .with_ignored_flag(true)
        })
        .collect();
    trials.extend(more(Path::new(&root)));
    trials.extend(schemas::trials(Path::new(&root)).unwrap_or_else(|error| panic!("{error}")));
    let cases: Vec<Arc<ConformanceCase>> = cases.into_iter().map(Arc::new).collect();
    for provider in providers {
        let expectations = CaseExpectations::parse(provider.expectations)
            .unwrap_or_else(|error| panic!("expectations of {}: {error}", provider.name));
        let shared = Arc::new((provider, expectations));
        let taken = |case: &&Arc<ConformanceCase>| takes(&shared.0, case);
        for case in cases.iter().filter(|case| shared.0.name == REFERENCE && case.nodes == 1) {
            let shared = Arc::clone(&shared);
            let case = Arc::clone(case);
            trials.push(Trial::test(format!("mutated::{}", case.name), move || {
                survives(&case, &shared.0.run).map_err(Into::into)
            }));
        }
        for case in cases.iter().filter(taken) {
            let shared = Arc::clone(&shared);
            let case = Arc::clone(case);
            let name = format!("{}::{}", shared.0.name, case.name);
            trials.push(Trial::test(name, move || {
                let (provider, expectations) = &*shared;
                let comparison = expectations.comparison(&case.name);
                let outcome = outcome(&case, comparison, &provider.run);
                expectations.judge(&case.name, outcome).map_err(Into::into)
            }));
        }
    }
    libtest_mimic::run(&arguments, trials)
}

/// Whether a case is the provider's to run. A model that cannot be read is: its test says why.
fn takes(provider: &TestedProvider, case: &ConformanceCase) -> bool {
    let Some(claims) = &provider.claims else { return true };
    onnx::load(&case.folder.join("model.onnx")).map_or(true, |graph| claims(&graph))
}

/// Cases whose operators are all known, and the unknown operators with the cases that need them.
fn cases(root: &Path) -> Result<(Vec<ConformanceCase>, BTreeMap<String, usize>), String> {
    let failed =
        |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut folders: Vec<PathBuf> = std::fs::read_dir(root)
        .map_err(|error| failed(root, &error))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("model.onnx").is_file())
        .collect();
    folders.sort();
    let mut cases = Vec::new();
    let mut absent = BTreeMap::new();
    for folder in folders {
        let file = folder.join("model.onnx");
        let bytes = std::fs::read(&file).map_err(|error| failed(&file, &error))?;
        let model =
            ModelProto::decode(Bytes::from(bytes)).map_err(|error| failed(&file, &error))?;
        let mut found = BTreeSet::new();
        let mut nodes = 0;
        if let Some(graph) = &model.graph {
            operators(graph, &mut found, &mut nodes);
        }
        let unknown: Vec<String> = found
            .iter()
            .filter(|(domain, name)| !ops::all().any(|d| d.domain == domain && d.name == name))
            .map(
                |(domain, name)| {
                    if domain.is_empty() { name.clone() } else { format!("{domain}:{name}") }
                },
            )
            .collect();
        if unknown.is_empty() {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let operators = found.into_iter().map(|(_, name)| name).collect();
            cases.push(ConformanceCase { name, folder, operators, nodes });
        }
        for name in unknown {
            *absent.entry(name).or_insert(0) += 1;
        }
    }
    Ok((cases, absent))
}

/// The operators of a graph and of those inside it.
pub(crate) fn operators(graph: &GraphProto, found: &mut BTreeSet<OperatorName>, nodes: &mut usize) {
    *nodes += graph.node.len();
    for NodeProto { domain, op_type, attribute, .. } in &graph.node {
        let domain = if domain == "ai.onnx" { "" } else { domain };
        found.insert((domain.to_owned(), op_type.clone()));
        for inner in attribute.iter().filter_map(|attribute| attribute.g.as_deref()) {
            operators(inner, found, nodes);
        }
    }
}

/// Runs all data sets of a case. A panic is a failure like any other.
fn outcome(
    case: &ConformanceCase,
    comparison: ResultComparison,
    run: &GraphRunner,
) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| run_case(case, comparison, run))).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|&text| text.to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

/// Runs a case with inputs that do not fit; only a panic is a failure.
fn survives(case: &ConformanceCase, run: &GraphRunner) -> Result<(), String> {
    // Whether a case can be read is another test's matter.
    let Ok(graph) = onnx::load(&case.folder.join("model.onnx")) else { return Ok(()) };
    let folder = case.folder.join("test_data_set_0");
    let Ok(inputs) = values(&folder, "input", &graph, &graph.inputs) else { return Ok(()) };
    for mutant in mutants(&inputs) {
        let shown: Vec<String> = mutant.iter().map(|input| input.describe().to_string()).collect();
        let answer = catch_unwind(AssertUnwindSafe(|| run(&graph, mutant)));
        answer.map_err(|_| format!("panicked with {}", shown.join(", ")))?.ok();
    }
    Ok(())
}

fn run_case(
    case: &ConformanceCase,
    comparison: ResultComparison,
    run: &GraphRunner,
) -> Result<(), String> {
    let graph = onnx::load(&case.folder.join("model.onnx")).map_err(|error| error.to_string())?;
    let mut sets = 0;
    for index in 0.. {
        let folder = case.folder.join(format!("test_data_set_{index}"));
        if !folder.is_dir() {
            break;
        }
        run_set(case, &graph, &folder, comparison, run)
            .map_err(|error| format!("data set {index}: {error}"))?;
        sets += 1;
    }
    if sets == 0 { Err("the case has no data".to_owned()) } else { Ok(()) }
}

fn run_set(
    case: &ConformanceCase,
    graph: &Graph,
    folder: &Path,
    comparison: ResultComparison,
    run: &GraphRunner,
) -> Result<(), String> {
    let inputs = values(folder, "input", graph, &graph.inputs)?;
    let expected = values(folder, "output", graph, &graph.outputs)?;
    let mut given = Vec::new();
    for datum in &inputs {
        tensors(datum, &mut given);
    }
    let found = run(graph, inputs)?;
    if found.len() != expected.len() {
        return Err(format!("expected {} outputs, found {}", expected.len(), found.len()));
    }
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        same(case, comparison, &given, found, expected)
            .map_err(|error| format!("output {index}: {error}"))?;
    }
    Ok(())
}

/// All tensors in a value.
fn tensors(datum: &Datum, all: &mut Vec<Tensor>) {
    match datum {
        Datum::Tensor(tensor) => all.push(tensor.clone()),
        Datum::Sequence(sequence) => all.extend(sequence.items().iter().cloned()),
        Datum::Optional(Some(held)) => tensors(held, all),
        _ => {}
    }
}

/// Compares a value with the expected one, tensor by tensor.
fn same(
    case: &ConformanceCase,
    comparison: ResultComparison,
    inputs: &[Tensor],
    found: &Datum,
    expected: &Datum,
) -> Result<(), String> {
    let near = |found: &Tensor, expected: &Tensor| {
        let one_kind = found.dtype() == expected.dtype() && found.shape() == expected.shape();
        let tolerance = match comparison {
            ResultComparison::Full => tolerance(&case.operators, case.nodes, inputs, expected),
            ResultComparison::Within(distance) => Tolerance::Within(distance),
            ResultComparison::Shapes if one_kind => return Ok(()),
            ResultComparison::Shapes => Tolerance::Exact,
        };
        compare(found, expected, tolerance).map_err(|error| error.to_string())
    };
    match (found, expected) {
        (Datum::Tensor(found), Datum::Tensor(expected)) => near(found, expected),
        (Datum::Sequence(found), Datum::Sequence(expected)) => {
            let found = found.items();
            let expected = expected.items();
            if found.len() != expected.len() {
                return Err(format!("{} tensors, expected {}", found.len(), expected.len()));
            }
            let mut pairs = found.iter().zip(expected).enumerate();
            pairs.try_for_each(|(at, (found, expected))| {
                near(found, expected).map_err(|error| format!("item {at}: {error}"))
            })
        }
        (Datum::Optional(None), Datum::Optional(None)) => Ok(()),
        (Datum::Optional(Some(found)), Datum::Optional(Some(expected))) => {
            same(case, comparison, inputs, found, expected)
        }
        _ => Err(format!("{}, expected {}", found.describe(), expected.describe())),
    }
}

/// The values `KIND_0.pb`, `KIND_1.pb`, … of a data set, of the types that the graph declares.
fn values(folder: &Path, kind: &str, graph: &Graph, ids: &[ValueId]) -> Result<Vec<Datum>, String> {
    let mut all = Vec::new();
    let any = Fact::unranked(DataType::Fp32);
    for index in 0.. {
        let file = folder.join(format!("{kind}_{index}.pb"));
        if !file.is_file() {
            break;
        }
        let failed = |error: &dyn std::fmt::Display| format!("{kind}_{index}.pb: {error}");
        let declared = ids.get(index).and_then(|&id| graph.value(id).declared.as_ref());
        let bytes = std::fs::read(&file).map_err(|error| failed(&error))?;
        let value = onnx::read_value(bytes, declared.unwrap_or(&any));
        all.push(value.map_err(|error| failed(&error))?);
    }
    Ok(all)
}
