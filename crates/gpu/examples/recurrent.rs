//! Times every way to compute a recurrent layer on a device: one JSON line each.
//!
//! `recurrent LSTM|GRU|RNN STEPS BATCH INPUT HIDDEN [f16] [bidirectional] [linear]`, on the device that
//! `GALATEA_GPU_DEVICE` numbers. With `linear`, gates of `GRU` are reset behind the product. The line with
//! `"chosen":true` is the way that is taken unasked.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a program for people who measure"
)]

mod measuring;

use galatea_gpu::recurrent::GpuRecurrentKernel;
use galatea_gpu::{DispatchStep, GpuKernel, StepTrial};
use galatea_graph::{AttributeValue, Attributes, Graph};
use galatea_runtime::{NodeShapes, ValueShape};
use galatea_tensor::DataType;
use measuring::{Arguments, device, random};

/// Measurements of which the least counts.
const RUNS: usize = 5;

fn main() {
    let args = Arguments::new();
    let op = args.word(0, "LSTM").to_owned();
    let gates = match op.as_str() {
        "LSTM" => 4,
        "GRU" => 3,
        _ => 1,
    };
    let number = |at: usize, usual: usize| args.number(at, usual);
    let (steps, batch) = (number(1, 100), number(2, 1));
    let (input, hidden) = (number(3, 256), number(4, 256));
    let dtype = if args.has("f16") { DataType::Fp16 } else { DataType::Fp32 };
    let passes = if args.has("bidirectional") { 2 } else { 1 };
    let direction = if passes == 2 { "bidirectional" } else { "forward" };
    let mut attributes = Attributes::new();
    attributes.insert("direction".into(), AttributeValue::String(direction.into()));
    if op == "GRU" {
        let linear = i64::from(args.has("linear"));
        attributes.insert("linear_before_reset".into(), AttributeValue::Int(linear));
    }
    let mut graph = Graph::new("layer");
    graph.opsets.insert(String::new(), 14);
    let inputs = ["x", "w", "r", "b"].map(|name| Some(graph.value_named(name))).to_vec();
    let outputs = ["y", "h"].map(|name| Some(graph.value_named(name))).to_vec();
    graph.add_node("", &op, "layer", &attributes, inputs, outputs).unwrap();
    let lengths = [
        vec![steps, batch, input],
        vec![passes, gates * hidden, input],
        vec![passes, gates * hidden, hidden],
        vec![passes, 2 * gates * hidden],
    ];
    let results = [vec![steps, passes, batch, hidden], vec![passes, batch, hidden]];
    let of = |all: &[Vec<usize>]| -> Vec<Option<ValueShape>> {
        all.iter().map(|shape| Some(ValueShape::new(dtype, shape.clone()))).collect()
    };
    let shapes = NodeShapes {
        inputs: of(&lengths),
        outputs: of(&results),
        constants: vec![None; lengths.len()],
    };
    let elements = |shape: &Vec<usize>| shape.iter().product::<usize>();
    let given: Vec<Vec<u8>> = lengths.iter().map(|shape| random(elements(shape), dtype)).collect();
    let given: Vec<Option<&[u8]>> = given.iter().map(|bytes| Some(&bytes[..])).collect();
    let sizes: Vec<u64> = results.iter().map(|shape| 4 * elements(shape) as u64 + 16).collect();
    let device = device();
    let kernel = || GpuRecurrentKernel::of(&graph.nodes[0], &device).expect("a layer");
    for (at, way) in kernel().ways(&shapes).unwrap().into_iter().enumerate() {
        let mut step = DispatchStep::default();
        kernel().forcing(way).bind(&shapes, &mut step).unwrap();
        let trial = StepTrial::new(&device, &step, &given, &sizes, 1);
        let times = trial.and_then(|trial| {
            trial.run(1)?;
            (0..RUNS).map(|_| trial.run(3)).collect::<Result<Vec<f64>, _>>()
        });
        let what = format!(
            "{op} steps {steps} batch {batch} input {input} hidden {hidden} {dtype} {direction}"
        );
        match times {
            Ok(times) => println!(
                "{{\"layer\":\"{what}\",\"way\":\"{way:?}\",\"chosen\":{},\"dispatches\":{},\"us\":{:.1}}}",
                at == 0,
                step.dispatches().len(),
                times.into_iter().fold(f64::MAX, f64::min) / 1e3,
            ),
            Err(error) => println!("{{\"way\":\"{way:?}\",\"error\":{:?}}}", error.to_string()),
        }
    }
}
