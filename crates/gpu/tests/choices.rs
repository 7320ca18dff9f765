//! Tests of choosing tokens: the largest of rows as long as vocabularies, and runs that return no more than
//! that.

use std::sync::atomic::Ordering;

use crate::support;
use galatea_gpu::GpuDevice;
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, ValueId};
use galatea_runtime::{Precision, Run, SessionOptions};
use galatea_tensor::{DataType, Tensor};

/// A vocabulary of today, which is no multiple of what workgroups take.
const VOCABULARY: usize = 151_936;

const TOP: usize = 64;

fn add(graph: &mut Graph, op: &str, inputs: &[ValueId], outputs: &[ValueId]) {
    let axis: Attributes = [("axis".to_owned(), AttributeValue::Int(-1))].into_iter().collect();
    let axis = if op == "Neg" { Attributes::new() } else { axis };
    let inputs = inputs.iter().copied().map(Some).collect();
    let outputs = outputs.iter().copied().map(Some).collect();
    graph.add_node("", op, op, &axis, inputs, outputs).unwrap();
}

/// Logits, the best of each row, and the first of each row.
fn graph() -> Graph {
    let mut graph = Graph::new("choices");
    graph.opsets.insert(String::new(), 21);
    let x = graph.value_named("x");
    let dims = vec![Dim::symbol("rows"), Dim::symbol("vocabulary")];
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
    graph.inputs.push(x);
    let count = graph.add_constant("count", Tensor::vector(vec![TOP as i64]));
    let names = ["logits", "best", "best_logit", "top_logits", "top"];
    let [logits, best, best_logit, top_logits, top] = names.map(|name| graph.value_named(name));
    add(&mut graph, "Neg", &[x], &[logits]);
    add(&mut graph, "ArgMax", &[logits], &[best]);
    add(&mut graph, "GatherElements", &[logits, best], &[best_logit]);
    add(&mut graph, "TopK", &[logits, count], &[top_logits, top]);
    graph.outputs.extend([logits, best, best_logit, top_logits, top]);
    graph
}

/// Logits of which many are equal; what stands at the ends of rows and pieces differs by row.
fn logits(rows: usize, vocabulary: usize) -> Vec<f32> {
    let noise = |at: usize| ((at * 7919 + at / 13) % 4099) as f32 / 64.0 - 40.0;
    let mut all: Vec<f32> = (0..rows * vocabulary).map(noise).collect();
    for (at, row) in all.chunks_mut(vocabulary).enumerate() {
        let last = vocabulary - 1;
        match at % 8 {
            // The same at both ends, at the very end, at the start.
            0 => (row[0], row[last]) = (90.0, 90.0),
            1 => row[last] = 91.0,
            2 => row[0] = 92.0,
            // All equal; none possible; all but one impossible.
            3 => row.fill(1.5),
            4 => row.fill(f32::NEG_INFINITY),
            5 => {
                row.fill(f32::NEG_INFINITY);
                row[vocabulary / 2] = -300.0;
            }
            // Zeros of both signs, and the rest below.
            6 => {
                row.iter_mut().for_each(|logit| *logit = -logit.abs() - 1.0);
                row[vocabulary / 3..vocabulary / 3 + 5].fill(-0.0);
                row[last] = 0.0;
            }
            _ => {}
        }
    }
    all
}

/// The places of the largest values of a row, of equal ones the first.
fn largest(row: &[f32], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[b].partial_cmp(&row[a]).unwrap().then(a.cmp(&b)));
    order.truncate(count);
    order
}

fn integers(tensor: &Tensor) -> Vec<usize> {
    tensor.to_vec::<i64>().unwrap().into_iter().map(|at| usize::try_from(at).unwrap()).collect()
}

fn negated(all: &[f32], shape: &[usize]) -> Tensor {
    Tensor::from_vec(shape, all.iter().map(|logit| -logit).collect()).unwrap()
}

/// Bytes brought back and shaders started so far.
fn done(device: &GpuDevice) -> [u64; 2] {
    let counters = &device.counters;
    [&counters.download_bytes, &counters.dispatches].map(|count| count.load(Ordering::Relaxed))
}

#[test]
fn the_largest_of_vocabularies_are_those_that_the_processor_finds() {
    let Some(device) = support::device() else { return };
    let options = SessionOptions::default();
    let session = support::session(&device, &graph(), &options).unwrap();
    for (rows, vocabulary) in [(1, VOCABULARY), (8, 32_003), (16, 4099), (7, 100), (1, 64)] {
        let all = logits(rows, vocabulary);
        let input = || vec![negated(&all, &[rows, vocabulary])];
        let best = session
            .run_tensors(Run::owned(input()).only(&[false, true, true, false, false]))
            .unwrap();
        let top = session
            .run_tensors(Run::owned(input()).only(&[false, false, false, true, true]))
            .unwrap();
        assert_eq!((best.len(), top.len()), (2, 2));
        let (found, found_top) = (integers(&best[0]), integers(&top[1]));
        let (values, top_values) = (best[1].to_vec().unwrap(), top[0].to_vec::<f32>().unwrap());
        for (at, row) in all.chunks(vocabulary).enumerate() {
            let expected = largest(row, TOP);
            assert_eq!((found[at], values[at]), (expected[0], row[expected[0]]), "row {at}");
            let own = at * TOP..(at + 1) * TOP;
            assert_eq!(found_top[own.clone()], expected, "row {at} of {vocabulary}");
            let expected: Vec<f32> = expected.into_iter().map(|at| row[at]).collect();
            assert_eq!(top_values[own], expected, "row {at} of {vocabulary}");
        }
    }
}

#[test]
fn a_row_that_has_a_nan_shows_it_first() {
    let Some(device) = support::device() else { return };
    let session = support::session(&device, &graph(), &SessionOptions::default()).unwrap();
    for at in [0, 77, 9000, 20_002] {
        let mut all = logits(2, 20_003);
        all[20_003 + at] = f32::NAN;
        let outputs =
            session.run_tensors(Run::named(&[("x", negated(&all, &[2, 20_003]))])).unwrap();
        assert_eq!(integers(&outputs[1]), [0, at]);
        let best = outputs[2].to_vec::<f32>().unwrap();
        let top = outputs[3].to_vec::<f32>().unwrap();
        assert!(best[1].is_nan() && top[TOP].is_nan());
        assert!(!best[0].is_nan() && !top[..TOP].iter().any(|logit| logit.is_nan()));
    }
}

#[test]
fn a_run_computes_and_brings_back_what_is_wanted_alone() {
    let Some(device) = support::own_device() else { return };
    let narrow = SessionOptions { precision: Precision::Fp16, ..SessionOptions::default() };
    for options in [SessionOptions::default(), narrow] {
        let session = support::session(&device, &graph(), &options).unwrap();
        let (rows, vocabulary) = (3, 20_003);
        let all = logits(rows, vocabulary);
        let run = |wanted: [bool; 5]| {
            let before = done(&device);
            let input = vec![negated(&all, &[rows, vocabulary])];
            let outputs = session.run_tensors(Run::owned(input).only(&wanted)).unwrap();
            let after = done(&device);
            let bytes: usize = outputs.iter().map(Tensor::size_bytes).sum();
            (outputs, bytes, [after[0] - before[0], after[1] - before[1]])
        };
        let (everything, _, whole) = run([true; 5]);
        for (wanted, expected) in [
            ([false, true, true, false, false], rows * 12),
            ([false, false, false, true, true], rows * TOP * 12),
            ([false, true, false, false, false], rows * 8),
            ([true, false, false, false, false], rows * vocabulary * 4),
        ] {
            let (outputs, bytes, [read, started]) = run(wanted);
            assert_eq!(bytes, expected);
            // Where memory is shared, outputs are read where they are.
            assert!(read <= bytes as u64, "{read} bytes are read of {bytes}");
            assert!(started < whole[1], "{started} shaders of {}", whole[1]);
            let both = everything.iter().zip(wanted).filter(|(_, wanted)| *wanted);
            let same = both.map(|(output, _)| output.clone()).collect::<Vec<_>>();
            assert_eq!(outputs, same);
        }
        let error =
            session.run_tensors(Run::owned(vec![negated(&all, &[rows, vocabulary])]).only(&[true]));
        assert!(error.unwrap_err().to_string().contains("the model has 5"));
    }
}
