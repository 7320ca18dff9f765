//! Products that go to a BLAS: what macOS does with Accelerate, here with the library that
//! `GALATEA_CBLAS` names, such as the OpenBLAS inside NumPy's wheels. Without it the tests say that
//! they skipped.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::floats;
use galatea_apple::accelerate::BlasLibrary;
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, ValueId};
use galatea_providers::cpu::{BlasRoute, CpuProvider, ProductCosts};
use galatea_providers::{by_name, reference};
use galatea_runtime::tune::{SearchLimits, StrategyKind, TuningSearch};
use galatea_runtime::{ExecutionProvider, Run, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor};

fn library() -> Option<BlasLibrary> {
    let Some(path) = std::env::var_os("GALATEA_CBLAS") else {
        eprintln!("skipped: GALATEA_CBLAS names no library");
        return None;
    };
    Some(BlasLibrary::open(Path::new(&path)).unwrap())
}

/// Costs with which every product of more than a few rows goes to the library.
const CHEAP: ProductCosts =
    ProductCosts { kernel_gflops: 1e-3, blas_gflops: 1e3, bandwidth_gb_per_s: 1e3 };

fn providers(blas: BlasLibrary, costs: Option<ProductCosts>) -> Vec<Arc<dyn ExecutionProvider>> {
    let cpu = CpuProvider::new().with_blas(Some(BlasRoute { blas: Some(blas), costs, bnns: None }));
    vec![Arc::new(cpu), by_name(reference::NAME).unwrap()]
}

struct Net(Graph);

impl Net {
    fn node(
        &mut self,
        op: &str,
        attributes: &[(&str, AttributeValue)],
        inputs: &[ValueId],
    ) -> ValueId {
        let output = self.0.value_named(&format!("{op}{}", self.0.nodes.len()));
        let attributes: Attributes =
            attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let inputs = inputs.iter().copied().map(Some).collect();
        let name = format!("{}/{op}", self.0.nodes.len());
        self.0.add_node("", op, &name, &attributes, inputs, vec![Some(output)]).unwrap();
        output
    }

    fn constant(&mut self, shape: &[usize], seed: u32) -> ValueId {
        self.0.add_constant("c", floats(shape, seed))
    }
}

/// Products of all kinds one after the other: plain, with a bias and an activation that are fused
/// into it, of transposed weights with a factor, joined by what came before.
fn net() -> Graph {
    let mut net = Net(Graph::new("net"));
    net.0.opsets.insert(String::new(), 17);
    let x = net.0.value_named("x");
    net.0.value_mut(x).declared =
        Some(Fact::new(DataType::Fp32, vec![Dim::symbol("n"), Dim::Known(40)]));
    net.0.inputs.push(x);
    let (w, b) = (net.constant(&[40, 33], 1), net.constant(&[33], 2));
    let y = net.node("MatMul", &[], &[x, w]);
    let y = net.node("Add", &[], &[y, b]);
    let y = net.node("Relu", &[], &[y]);
    let (w, b) = (net.constant(&[40, 33], 3), net.constant(&[40], 4));
    let attributes = [("transB", AttributeValue::Int(1)), ("alpha", AttributeValue::Float(0.25))];
    let y = net.node("Gemm", &attributes, &[y, w, b]);
    let w = net.constant(&[40, 40], 5);
    let z = net.node("MatMul", &[], &[y, w]);
    let z = net.node("Add", &[], &[z, y]);
    let z = net.node("Tanh", &[], &[z]);
    net.0.outputs.extend([y, z]);
    net.0
}

fn session(providers: &[Arc<dyn ExecutionProvider>]) -> Session {
    let options = SessionOptions { threads: 2, ..SessionOptions::default() };
    Session::new(net(), providers, &options).unwrap()
}

#[test]
fn products_of_a_library_give_what_the_reference_gives() {
    let Some(blas) = library() else { return };
    let plain = session(&[by_name(reference::NAME).unwrap()]);
    let routed = session(&providers(blas, Some(CHEAP)));
    for rows in [1, 3, 17, 130] {
        let x = floats(&[rows, 40], 9);
        let (found, wanted) = (
            routed.run_tensors(Run::named(&[("x", x.clone())])).unwrap(),
            plain.run_tensors(Run::named(&[("x", x)])).unwrap(),
        );
        for (found, wanted) in found.iter().zip(&wanted) {
            let (a, b) = (found.to_vec::<f32>().unwrap(), wanted.to_vec::<f32>().unwrap());
            // Forty terms of products that are at most a few in size, three layers of them.
            a.iter().zip(&b).for_each(|(a, b)| assert!((a - b).abs() < 2e-4, "{rows}: {a} {b}"));
        }
    }
}

#[test]
fn costs_choose_the_library_and_measurements_compare_it() {
    let Some(blas) = library() else { return };
    let inputs = [("x", floats(&[64, 40], 9))];
    let inputs: Vec<(&str, Tensor)> = inputs.to_vec();
    let first = |costs: Option<ProductCosts>| {
        let problems = session(&providers(blas, costs)).problems(&inputs).unwrap();
        let found: Vec<_> =
            problems.into_iter().filter(|problem| problem.family.starts_with("gemm-f32")).collect();
        assert!(!found.is_empty());
        found
    };
    for (costs, name) in [(Some(CHEAP), "way=library"), (None, "way=usual")] {
        for mut problem in first(costs) {
            assert_eq!(problem.space.name(0), name);
            assert!(problem.space.names().contains(&"way=library".to_owned()));
            let start = Instant::now();
            let search = TuningSearch {
                space: &problem.space,
                device: &mut *problem.device,
                limits: SearchLimits {
                    samples: 1,
                    time: Duration::from_secs(20),
                    ..SearchLimits::default()
                },
                clock: &mut || start.elapsed(),
                progress: &mut |_, _| {},
            };
            let outcome = search.run(&mut *StrategyKind::Exhaustive.start(1)).unwrap();
            // All ways compute the same.
            assert!(outcome.refused.is_empty(), "{:?}", outcome.refused);
            assert_eq!(outcome.trials.len(), problem.space.len());
        }
    }
}
