//! Times a product with a constant matrix of which more and more is zero, in the way that is taken unasked: one JSON
//! line each, beside the matrix without zeros.
//!
//! `sparse ROWS K N [f16]`, on the device that `GALATEA_GPU_DEVICE` numbers.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a program for people who measure"
)]

mod measuring;

use std::collections::HashMap;
use std::sync::Arc;

use galatea_gpu::{DispatchStep, GpuDevice, GpuNodeView, KERNELS, StepTrial};
use galatea_graph::{Attributes, Dim, Fact, Graph, infer};
use galatea_runtime::{NodeShapes, Precision, ValueShape};
use galatea_tensor::{DataType, Tensor};
use measuring::{Arguments, best, device, random};

/// Elements along k and along columns of the blocks that are zero.
const BLOCK: [usize; 2] = [64, 128];

/// Elements of a matrix that are left, by their places.
type Pattern = fn(usize, usize) -> bool;

/// Patterns by name. Blocks are left without order.
const PATTERNS: &[(&str, Pattern)] = &[
    ("dense", |_, _| true),
    ("two of four", |k, n| (k % 4 + n).is_multiple_of(2)),
    ("blocks, 50 % zeros", |k, n| block(k, n).is_multiple_of(2)),
    ("blocks, 75 % zeros", |k, n| block(k, n).is_multiple_of(4)),
    ("blocks, 90 % zeros", |k, n| block(k, n).is_multiple_of(10)),
];

fn block(k: usize, n: usize) -> usize {
    let number = (k / BLOCK[0] * 7919 + n / BLOCK[1] * 104_729) as u32;
    (number.wrapping_mul(2_654_435_761) >> 16) as usize
}

struct Product {
    rows: usize,
    k: usize,
    n: usize,
    precision: Precision,
}

impl Product {
    fn weights(&self, left: Pattern) -> Tensor {
        let bytes = random(self.k * self.n, DataType::Fp32);
        let mut values: Vec<f32> =
            bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        for (at, value) in values.iter_mut().enumerate() {
            if !left(at / self.n, at % self.n) {
                *value = 0.0;
            }
        }
        Tensor::from_vec(&[self.k, self.n], values).unwrap()
    }

    /// Nanoseconds of the product, and the names of its kernels.
    fn measured(&self, device: &Arc<GpuDevice>, left: Pattern) -> Result<(f64, String), String> {
        let mut graph = Graph::new("product");
        graph.opsets.insert(String::new(), 21);
        let x = graph.value_named("x");
        let dims = [self.rows, self.k].map(Dim::Known).to_vec();
        graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
        let weights = self.weights(left);
        let w = graph.add_constant("w", weights.clone());
        let y = graph.value_named("y");
        let inputs = vec![Some(x), Some(w)];
        graph.add_node("", "MatMul", "", &Attributes::new(), inputs, vec![Some(y)]).unwrap();
        (graph.inputs, graph.outputs) = (vec![x], vec![y]);
        let facts = infer::facts(&graph, &HashMap::new()).unwrap();
        let node = &graph.nodes[0];
        let view =
            GpuNodeView { graph: &graph, node, facts: &facts, device, precision: self.precision };
        let kernel = (KERNELS.find(&view)?.build)(&view)?;
        let dtype = match self.precision {
            Precision::Fp16 => DataType::Fp16,
            _ => DataType::Fp32,
        };
        let shape = |lengths: [usize; 2]| Some(ValueShape::new(dtype, lengths.to_vec()));
        let shapes = NodeShapes {
            inputs: vec![shape([self.rows, self.k]), shape([self.k, self.n])],
            outputs: vec![shape([self.rows, self.n])],
            constants: vec![None, Some(weights.clone())],
        };
        let mut step = DispatchStep::default();
        kernel.bind(&shapes, &mut step)?;
        let x = random(self.rows * self.k, dtype);
        let w = match dtype {
            DataType::Fp16 => random(self.k * self.n, dtype),
            _ => weights.as_bytes().unwrap().to_vec(),
        };
        let outputs = [(self.rows * self.n * 4) as u64 + 16];
        let trial = StepTrial::new(device, &step, &[Some(&x), Some(&w)], &outputs, 1);
        let trial = trial.map_err(|error| error.to_string())?;
        let names: Vec<&str> = step.dispatches().iter().map(|one| &*one.shader.name).collect();
        Ok((best(&trial).map_err(|error| error.to_string())?, names.join(" ")))
    }
}

fn main() {
    let args = Arguments::new();
    let precision = if args.has("f16") { Precision::Fp16 } else { Precision::Fp32 };
    let product = Product {
        rows: args.number(0, 512),
        k: args.number(1, 4096),
        n: args.number(2, 4096),
        precision,
    };
    let device = device();
    let mut dense = None;
    for (name, left) in PATTERNS {
        match product.measured(&device, *left) {
            Ok((ns, kernels)) => {
                let whole = *dense.get_or_insert(ns);
                println!(
                    "{{\"rows\":{},\"k\":{},\"n\":{},\"zeros\":\"{name}\",\"kernels\":\"{kernels}\",\"us\":{:.1},\"times_dense\":{:.2}}}",
                    product.rows,
                    product.k,
                    product.n,
                    ns / 1e3,
                    whole / ns,
                );
            }
            Err(error) => println!("{{\"zeros\":\"{name}\",\"error\":{error:?}}}"),
        }
    }
}
