//! Choices of the GPU's kernels: what is asked, that all answers compute the same, and that what was measured
//! is taken.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::matrices::{Made, formats};
use crate::support;
use crate::support::node::floats;
use galatea_graph::ops::fused::BlockMatMul;
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, evaluate};
use galatea_runtime::tune::{
    ChoiceSource, MachineTuning, SearchLimits, StrategyKind, TuningCache, TuningOutcome,
    TuningProblem, TuningRecord, TuningSearch,
};
use galatea_runtime::{Precision, Run, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor, Tolerance, compare};

fn empty() -> Graph {
    let mut graph = Graph::new("one");
    for (domain, version) in [("", 23), ("ai.galatea", 1), ("com.microsoft", 1)] {
        graph.opsets.insert(domain.to_owned(), version);
    }
    graph
}

fn feed(graph: &mut Graph, tensor: &Tensor) -> Option<galatea_graph::ValueId> {
    let id = graph.value_named(&format!("x{}", graph.inputs.len()));
    let dims = tensor.shape().iter().map(|&len| Dim::Known(len)).collect();
    graph.value_mut(id).declared = Some(Fact::new(tensor.dtype(), dims));
    graph.inputs.push(id);
    Some(id)
}

/// A graph of one node; inputs of which the second is said to be so are constants.
fn one(
    name: (&str, &str),
    attributes: &[(&str, AttributeValue)],
    inputs: &[(Tensor, bool)],
    outputs: usize,
) -> (Graph, Vec<Tensor>) {
    let mut graph = empty();
    let (mut ids, mut fed) = (Vec::new(), Vec::new());
    for (tensor, constant) in inputs {
        if *constant {
            ids.push(Some(graph.add_constant("weight", tensor.clone())));
            continue;
        }
        ids.push(feed(&mut graph, tensor));
        fed.push(tensor.clone());
    }
    let results: Vec<_> = (0..outputs).map(|at| graph.value_named(&format!("y{at}"))).collect();
    let attributes: Attributes =
        attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let wanted = results.iter().map(|&id| Some(id)).collect();
    graph.add_node(name.0, name.1, "node", &attributes, ids, wanted).unwrap();
    graph.outputs = results;
    (graph, fed)
}

fn blocks() -> (Graph, Vec<Tensor>) {
    let (_, format, scales) = formats().into_iter().find(|(name, ..)| *name == "q4_0").unwrap();
    let made = Made { rows: 24, columns: 96, format, scales, seed: 3, at: None };
    let op = BlockMatMul::new(vec![Arc::new(made)]).unwrap();
    let (mut graph, x) = (empty(), floats(&[6, 96], 1.0));
    let id = feed(&mut graph, &x);
    let y = graph.value_named("y");
    graph.outputs.push(y);
    graph.add_operator("ai.galatea", "BlockMatMul", Arc::new(op), vec![id], vec![Some(y)]);
    (graph, vec![x])
}

/// Two sequences, of three rows together, over caches of four blocks of four positions.
fn paged() -> (Graph, Vec<Tensor>) {
    let [heads, kv_heads, width] = [4, 2, 8];
    let int = |value: usize| AttributeValue::Int(i64::try_from(value).unwrap());
    let x = |shape: &[usize]| (floats(shape, 1.0), false);
    let inputs = [
        x(&[3, heads * width]),
        x(&[3, kv_heads * width]),
        x(&[3, kv_heads * width]),
        x(&[4, kv_heads, width, 4]),
        x(&[4, kv_heads, 4, width]),
        (Tensor::vector(vec![0_i64, 2, 3]), false),
        (Tensor::vector(vec![7_i64, 5]), false),
        (Tensor::from_vec(&[2, 2], vec![0_i64, 2, 1, 3]).unwrap(), false),
    ];
    let attributes = [("num_heads", int(heads)), ("kv_num_heads", int(kv_heads))];
    one(("ai.galatea", "PagedAttention"), &attributes, &inputs, 3)
}

fn session(
    device: &Arc<galatea_gpu::GpuDevice>,
    graph: &Graph,
    options: SessionOptions,
) -> Session {
    support::session(device, graph, &options).unwrap()
}

fn named(fed: &[Tensor]) -> Vec<(String, Tensor)> {
    fed.iter().enumerate().map(|(at, tensor)| (format!("x{at}"), tensor.clone())).collect()
}

fn problems(session: &Session, fed: &[Tensor]) -> Vec<TuningProblem> {
    let named = named(fed);
    let named: Vec<(&str, Tensor)> =
        named.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    session.problems(&named).unwrap()
}

fn search(problem: &mut TuningProblem, trials: usize) -> TuningOutcome {
    let start = Instant::now();
    let search = TuningSearch {
        space: &problem.space,
        device: &mut *problem.device,
        limits: SearchLimits {
            trials,
            samples: 1,
            time: Duration::from_secs(60),
            ..SearchLimits::default()
        },
        clock: &mut || start.elapsed(),
        progress: &mut |_, _| {},
    };
    search.run(&mut *StrategyKind::Exhaustive.start(1)).unwrap()
}

/// A node's choices, of which so many candidates are measured, and whether their results are right.
fn check(
    family: &str,
    (graph, fed): (Graph, Vec<Tensor>),
    (precision, trials): (Precision, usize),
    near: f64,
) {
    let Some(device) = support::device() else { return };
    let options = |choices| SessionOptions { precision, choices, ..SessionOptions::default() };
    let plain = session(&device, &graph, options(ChoiceSource::default()));
    let problems = problems(&plain, &fed);
    let families: Vec<String> = problems.iter().map(|one| one.family.clone()).collect();
    let found = problems.into_iter().find(|one| one.family.starts_with(&format!("gpu {family} ")));
    assert!(found.is_some(), "{family} is not among {families:?}");
    let mut problem = found.unwrap();
    assert!(problem.space.len() > 1 && problem.unit.is_some(), "{problem:?}");
    let outcome = search(&mut problem, trials);
    assert!(outcome.refused.is_empty(), "{family}: {:?}", outcome.refused);
    assert_eq!(outcome.trials.len(), problem.space.len().min(trials));
    // Whatever is measured last is taken for the best, so that something else than usual is chosen.
    let last = outcome.trials.last().unwrap().candidate;
    let outcome = TuningOutcome { best: last, ..outcome };
    let mut tuning = MachineTuning { machine: "here".to_owned(), ..MachineTuning::default() };
    let key = problem.key("here");
    tuning.database.insert(key.clone(), TuningRecord::new(&problem.space, &outcome));
    let unit = problem.unit.as_deref().unwrap();
    let choose = |space| tuning.choose_on(unit, &problem.family, &problem.bucket, space);
    assert_eq!(choose(&problem.space), Some(last));
    let tuned = session(&device, &graph, options(ChoiceSource(Some(Arc::new(tuning)))));
    let expected = evaluate::run(&graph, &fed).unwrap();
    let results = tuned.run_tensors(Run::owned(fed)).unwrap();
    compare(&results[0], &expected[0], Tolerance::Within(near)).unwrap();
}

#[test]
fn products_have_tiles_and_shares_to_choose_from() {
    let inputs = [(floats(&[20, 272], 1.0), false), (floats(&[272, 24], 1.0), true)];
    check("matmul", one(("", "MatMul"), &[], &inputs, 1), (Precision::Fp32, 7), 1e-3);
}

#[test]
fn products_of_one_row_have_threads_to_choose_from() {
    let inputs = [(floats(&[1, 96], 1.0), false), (floats(&[96, 40], 1.0), true)];
    check("matmul", one(("", "MatMul"), &[], &inputs, 1), (Precision::Fp16, 6), 2e-2);
}

#[test]
fn products_with_weights_of_few_bits_have_many_ways() {
    check("blocks", blocks(), (Precision::Fp32, 6), 5e-2);
}

#[test]
fn attention_over_caches_has_rows_and_tiles() {
    check("paged_attention", paged(), (Precision::Fp32, 9), 1e-3);
}

#[test]
fn attention_over_whole_tensors_has_tiles() {
    let x = || (floats(&[1, 2, 9, 8], 1.0), false);
    check(
        "attention",
        one(("", "Attention"), &[], &[x(), x(), x()], 1),
        (Precision::Fp32, 4),
        1e-3,
    );
}

#[test]
fn convolutions_have_tiles_that_their_weights_can_be_read_by() {
    let inputs = [(floats(&[1, 3, 9, 7], 1.0), false), (floats(&[40, 3, 3, 3], 1.0), true)];
    check("conv", one(("", "Conv"), &[], &inputs, 1), (Precision::Fp32, 4), 1e-3);
}

#[test]
fn rows_have_threads_to_choose_from() {
    let x = (floats(&[5, 132], 2.0), false);
    let soft = one(("", "Softmax"), &[], std::slice::from_ref(&x), 1);
    check("softmax", soft, (Precision::Fp32, 6), 1e-5);
    let across =
        one(("", "Softmax"), &[("axis", AttributeValue::Int(0))], std::slice::from_ref(&x), 1);
    check("softmax", across, (Precision::Fp32, 6), 1e-5);
    let scale = (floats(&[132], 1.0), true);
    let normal = one(("", "LayerNormalization"), &[], &[x.clone(), scale], 1);
    check("normalize", normal, (Precision::Fp32, 6), 1e-4);
    let axes = (Tensor::vector(vec![1_i64]), true);
    check("reduce", one(("", "ReduceSum"), &[], &[x, axes], 1), (Precision::Fp32, 6), 1e-4);
}

#[test]
fn a_wrong_candidate_is_reported_and_not_chosen() {
    let Some(device) = support::device() else { return };
    let inputs = [(floats(&[5, 132], 2.0), false)];
    let (graph, fed) = one(("", "Softmax"), &[], &inputs, 1);
    let plain = session(&device, &graph, SessionOptions::default());
    let mut problem = problems(&plain, &fed).remove(0);
    let right = problem.device.compute(0).unwrap();
    let expected = problem.device.expected().unwrap().unwrap();
    assert_eq!(right.len(), expected.len());
    let far = right
        .iter()
        .zip(&expected)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0_f32, |worst, far| if far.is_nan() { f32::INFINITY } else { worst.max(far) });
    assert!(far < 1e-5, "{far}");
    // A candidate that is none falls back on the usual one, and another one computes the same.
    assert_eq!(problem.device.compute(problem.space.len() + 5).unwrap(), right);
    assert!(problem.device.sample(1).unwrap() > 0.0);
}

#[test]
fn records_of_another_device_are_not_taken() {
    let Some(device) = support::device() else { return };
    let inputs = [(floats(&[5, 132], 2.0), false)];
    let (graph, fed) = one(("", "Softmax"), &[], &inputs, 1);
    let plain = session(&device, &graph, SessionOptions::default());
    let mut problem = problems(&plain, &fed).remove(0);
    let name = &device.capabilities().name;
    assert!(problem.unit.as_ref().unwrap().contains(name.as_str()), "{:?}", problem.unit);
    let outcome = search(&mut problem, 3);
    let mut tuning = MachineTuning { machine: "here".to_owned(), ..MachineTuning::default() };
    tuning.database.insert(problem.key("here"), TuningRecord::new(&problem.space, &outcome));
    let ask = |tuning: &MachineTuning, unit: &str| {
        tuning.choose_on(unit, &problem.family, &problem.bucket, &problem.space)
    };
    assert_eq!(ask(&tuning, problem.unit.as_deref().unwrap()), Some(outcome.best));
    assert_eq!(ask(&tuning, "another device, Metal"), None);
    assert_eq!(tuning.choose(&problem.family, &problem.bucket, &problem.space), None);
    tuning.machine = "there".to_owned();
    assert_eq!(ask(&tuning, problem.unit.as_deref().unwrap()), None);
}

#[test]
fn values_between_kernels_are_measured_as_they_lie() {
    let Some(device) = support::device().filter(|d| d.capabilities().f16) else { return };
    let (mut graph, x) = (empty(), floats(&[4, 16], 1.0));
    let id = feed(&mut graph, &x).unwrap();
    let mut last = id;
    for op in ["Softmax", "Softmax"] {
        let next = graph.fresh_value("value");
        let inputs = vec![Some(last)];
        graph.add_node("", op, op, &Attributes::new(), inputs, vec![Some(next)]).unwrap();
        last = next;
    }
    graph.outputs.push(last);
    let options = SessionOptions { precision: Precision::Fp16, ..SessionOptions::default() };
    let all = problems(&session(&device, &graph, options), &[x]);
    let families: Vec<&str> = all.iter().map(|problem| problem.family.as_str()).collect();
    let half = DataType::Fp16.to_string();
    assert_eq!(families.len(), 2, "{families:?}");
    assert!(families.iter().all(|family| family.contains(&half)), "{families:?}");
}
