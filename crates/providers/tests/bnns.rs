//! Products of FP16 and BF16 that go to BNNS on macOS, here to functions that compute what BNNS
//! documents from the same arguments.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{Maker, floats, values};
use galatea_apple::bnns::BnnsLibrary;
use galatea_graph::{AttributeValue, ValueId};
use galatea_providers::cpu::{BlasRoute, CpuProvider, ProductCosts};
use galatea_providers::{by_name, reference};
use galatea_runtime::tune::{SearchLimits, StrategyKind, TuningSearch};
use galatea_runtime::{ExecutionProvider, OptimiseLevel, Precision, Run, Session, SessionOptions};
use galatea_tensor::{Tensor, Tolerance, compare};

/// Costs with which every product of more than a few rows goes to BNNS.
const CHEAP: ProductCosts =
    ProductCosts { kernel_gflops: 1e-3, blas_gflops: 1e3, bandwidth_gb_per_s: 1e3 };

/// Weights whose products with `shape[of]` values are about as large as these.
fn weights(shape: [usize; 2], terms: u16, seed: u32) -> Tensor {
    let mut found = values(shape.iter().product(), seed);
    found.iter_mut().for_each(|value| *value *= 1.7 / f32::from(terms).sqrt());
    Tensor::from_vec(&shape, found).unwrap()
}

/// Products of all kinds one after the other: plain, with a bias and an activation, of transposed
/// weights with a factor, joined by what came before.
fn net(rows: usize) -> Maker {
    let mut maker = Maker::new();
    let x = maker.input("x", floats(&[rows, 40], 9));
    let w = maker.constant(weights([40, 33], 40, 1));
    let y = maker.node("MatMul", &[], &[x, w], 1)[0];
    let b = maker.constant(floats(&[33], 2));
    let y = maker.node("Add", &[], &[y, b], 1)[0];
    let y = maker.node("Relu", &[], &[y], 1)[0];
    let w = maker.constant(weights([40, 33], 33, 3));
    let b = maker.constant(floats(&[40], 4));
    let attributes = [("transB", AttributeValue::Int(1)), ("alpha", AttributeValue::Float(0.25))];
    let y = maker.node("Gemm", &attributes, &[y, w, b], 1)[0];
    let w = maker.constant(weights([40, 40], 40, 5));
    let z = maker.node("MatMul", &[], &[y, w], 1)[0];
    let z = maker.node("Add", &[], &[z, y], 1)[0];
    let z = maker.node("Tanh", &[], &[z], 1)[0];
    let w = maker.constant(weights([40, 16], 40, 6));
    let z: Vec<Option<ValueId>> = maker.node("MatMul", &[], &[z, w], 1);
    maker.graph.outputs = z.into_iter().flatten().collect();
    maker
}

fn session(
    net: &Maker,
    precision: Precision,
    bnns: Option<BnnsLibrary>,
    costs: Option<ProductCosts>,
) -> Session {
    let route = bnns.map(|bnns| BlasRoute { blas: None, costs, bnns: Some(bnns) });
    let cpu: Arc<dyn ExecutionProvider> = Arc::new(CpuProvider::new().with_blas(route));
    let providers = [cpu, by_name(reference::NAME).unwrap()];
    let options = SessionOptions {
        threads: 2,
        precision,
        optimise: OptimiseLevel::O3,
        ..SessionOptions::default()
    };
    Session::new(net.graph.clone(), &providers, &options).unwrap()
}

fn inputs(net: &Maker) -> Vec<(&str, Tensor)> {
    net.inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect()
}

/// Values of a few are rounded some times one after the other: by 2^-9 each, or 2^-12.
const PRECISIONS: [(Precision, &str, f64); 2] =
    [(Precision::Bf16, "gemm-bf16", 0.05), (Precision::Fp16, "gemm-fp16", 0.006)];

#[test]
fn products_of_bnns_give_what_the_reference_gives() {
    for rows in [1, 3, 17, 130] {
        let net = net(rows);
        let plain = Session::new(
            net.graph.clone(),
            &[by_name(reference::NAME).unwrap()],
            &SessionOptions::default(),
        );
        let wanted = plain.unwrap().run_tensors(Run::named(&inputs(&net))).unwrap();
        for (precision, _, tolerance) in PRECISIONS {
            let routed = session(&net, precision, Some(BnnsLibrary::plain()), Some(CHEAP));
            // The second run finds the weights made.
            for _ in 0..2 {
                let found = routed.run_tensors(Run::named(&inputs(&net))).unwrap();
                compare(&found[0], &wanted[0], Tolerance::Within(tolerance)).unwrap();
            }
        }
    }
}

#[test]
fn what_bnns_refuses_the_kernels_compute() {
    let net = net(17);
    for (precision, ..) in PRECISIONS {
        let alone =
            session(&net, precision, None, None).run_tensors(Run::named(&inputs(&net))).unwrap();
        let refused = session(&net, precision, Some(BnnsLibrary::refusing()), Some(CHEAP));
        let found = refused.run_tensors(Run::named(&inputs(&net))).unwrap();
        compare(&found[0], &alone[0], Tolerance::Exact).unwrap();
    }
}

#[test]
fn costs_choose_bnns_and_measurements_compare_it() {
    let net = net(64);
    for ((precision, family, _), costs) in
        PRECISIONS.into_iter().flat_map(|of| [(of, Some(CHEAP)), (of, None)])
    {
        let session = session(&net, precision, Some(BnnsLibrary::plain()), costs);
        let problems = session.problems(&inputs(&net)).unwrap();
        let products = problems.into_iter().filter(|problem| problem.family.starts_with(family));
        let mut count = 0;
        for mut problem in products {
            count += 1;
            let first = if costs.is_some() { "way=bnns" } else { "way=kernel" };
            assert_eq!(problem.space.name(0), first);
            assert_eq!(problem.space.len(), 2);
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
            assert_eq!(outcome.trials.len(), 2);
        }
        assert!(count > 0, "{family}");
    }
}
