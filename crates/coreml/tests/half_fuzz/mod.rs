//! Random graphs as programs of FP16, beside the same graphs in FP32: no answer lacks numbers that FP32 has, and none is
//! grossly another one.
//!
//! `GALATEA_HALF_GRAPHS` sets the number of graphs; 10,000 take a few minutes with `--release`.

mod codes;
mod grower;
mod movement;
mod norms;
mod operators;
mod products;

use std::sync::Arc;

use galatea_coreml::{ConvertOptions, CoreMlProvider, CoreMlSettings, convert, islands};
use galatea_formats::coreml::interpret;
use galatea_graph::Graph;
use galatea_providers::cpu::CpuProvider;
use galatea_runtime::quantize::{NamedInputs, OutputComparison, QuantizeContext, compare};
use galatea_runtime::{ExecutionProvider, OptimiseLevel, Run, Session, SessionOptions};
use galatea_tensor::{OrderedSet, Tensor};

use grower::Grower;

/// Largest magnitudes of inputs, from next to nothing to what models hardly see.
const REACHES: &[f32] = &[1e-4, 0.1, 1.0, 10.0, 100.0, 1000.0, 1e4];
/// The largest share of the whole that an answer may be off by. The first answers are held to 0.05; later ones differ
/// from these by their digits alone.
const GROSS: f64 = 0.5;

/// The most that an answer may be off by where its input is off by half a step of FP16.
const STEADY: f64 = 0.02;

fn count() -> u64 {
    let given = std::env::var("GALATEA_HALF_GRAPHS").ok();
    given.map_or(150, |text| text.parse().unwrap())
}

fn cpu() -> Vec<Arc<dyn ExecutionProvider>> {
    vec![Arc::new(CpuProvider::new())]
}

fn single(level: OptimiseLevel) -> SessionOptions {
    SessionOptions { threads: 1, optimise: level, ..SessionOptions::default() }
}

fn run(session: &Session, x: &Tensor) -> Option<Vec<f32>> {
    session.run_tensors(Run::named(&[("x", x.clone())])).ok()?[0].to_vec().ok()
}

fn is_lost(found: f32, expected: f32) -> bool {
    !found.is_finite() && expected.is_finite() || found.is_nan() && !expected.is_nan()
}

fn lost(found: &[f32], expected: &[f32]) -> bool {
    found.len() != expected.len()
        || found.iter().zip(expected).any(|(found, expected)| is_lost(*found, *expected))
}

/// The root of the sum of squared differences, as a share of that of what is expected; elements beyond FP16 are left
/// out.
fn share_off(found: &[f32], expected: &[f32]) -> f64 {
    let both = found.iter().zip(expected).map(|(a, b)| (f64::from(*a), f64::from(*b)));
    let held: Vec<(f64, f64)> =
        both.filter(|(a, b)| a.is_finite() && b.abs() <= 65_504.0).collect();
    let apart: f64 = held.iter().map(|(a, b)| (a - b).powi(2)).sum();
    let size: f64 = held.iter().map(|(_, b)| b.powi(2)).sum();
    // Steps of FP16 near zero are nothing.
    (apart / (size + 1e-6 * held.len() as f64).max(f64::MIN_POSITIVE)).sqrt()
}

/// The same input as far as FP16 tells numbers apart.
fn nearly(grower: &mut Grower, x: &Tensor) -> Tensor {
    let all = x.to_vec::<f32>().unwrap();
    let mut off = |value: f32| value * (1.0 + (grower.share() - 0.5) / 1024.0);
    let all = all.into_iter().map(&mut off).collect();
    Tensor::from_vec(x.shape(), all).unwrap()
}

/// Returns whether an answer to nearly the same input is nearly the same: FP16 can only be near where FP32 is.
fn is_steady(exact: &Session, grower: &mut Grower, x: &Tensor, expected: &[f32]) -> bool {
    let near = run(exact, &nearly(grower, x));
    !grower.jumps && near.is_some_and(|near| share_off(&near, expected) < STEADY)
}

fn described(seed: u64, grower: &Grower) -> String {
    let nodes = grower.graph.nodes.iter().map(|node| node.op_type.as_str());
    format!("{seed}: {}", nodes.collect::<Vec<_>>().join(" "))
}

#[test]
fn no_random_graph_is_answered_wrong() {
    let mut wrong = Vec::new();
    let mut served = 0;
    let mut operators = OrderedSet::new();
    for seed in 0..count() {
        let mut grower = Grower::grown(seed);
        // With the fusions of the session: one may have numbers where the operators have none.
        let Ok(exact) = Session::new(grower.graph.clone(), &cpu(), &single(OptimiseLevel::O1))
        else {
            continue;
        };
        let provider = CoreMlProvider::new().with_settings(CoreMlSettings::default()).forced();
        let providers = [provider, Arc::new(CpuProvider::new()) as Arc<dyn ExecutionProvider>];
        let session =
            Session::new(grower.graph.clone(), &providers, &single(OptimiseLevel::O1)).unwrap();
        if !session.partition_providers().contains(&"coreml") {
            continue;
        }
        served += 1;
        operators.extend(grower.operators());
        let shape = grower.values[0].shape.clone();
        for _ in 0..5 {
            let reach = REACHES[grower.noise.below(REACHES.len())];
            let x = grower.floats(&shape, -reach, reach);
            let Some(expected) = run(&exact, &x) else { continue };
            let found = run(&session, &x).unwrap_or_default();
            let gross = share_off(&found, &expected) > GROSS
                && is_steady(&exact, &mut grower, &x, &expected);
            if lost(&found, &expected) || gross {
                wrong.push(format!("{reach} {}", described(seed, &grower)));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {served}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(served * 10 > count() * 7, "{served} of {} are programs", count());
    eprintln!("{served} programs of {} operators", operators.len());
}

/// A program on samples, beside the graph in FP32; none where one of both does not run.
fn compared(
    graph: &Graph,
    options: &ConvertOptions,
    samples: &[NamedInputs],
) -> Option<OutputComparison> {
    let package = convert(graph, options).ok()?;
    let program = interpret("main", package.program.functions.get("main")?).ok()?;
    // As it stands: a fusion may have numbers where the operators have none.
    let exact = Session::new(graph.clone(), &cpu(), &single(OptimiseLevel::O0)).ok()?;
    let program = Session::new(program, &cpu(), &single(OptimiseLevel::O1)).ok()?;
    Some(compare(&exact, &program, samples).ok()?.remove(0))
}

#[test]
fn islands_hold_what_samples_bring() {
    let mut wrong = Vec::new();
    let mut all = 0;
    let mut plainly_lost = 0;
    for seed in 0..count() {
        let mut grower = Grower::grown(seed);
        let shape = grower.values[0].shape.clone();
        let reach = REACHES[grower.noise.below(REACHES.len())];
        let samples: Vec<NamedInputs> =
            (0..2).map(|_| vec![("x".to_owned(), grower.floats(&shape, -reach, reach))]).collect();
        let graph = &grower.graph;
        let level = [OptimiseLevel::O1, OptimiseLevel::O2, OptimiseLevel::O3][seed as usize % 3];
        let mut options = ConvertOptions { level, ..ConvertOptions::default() };
        let Some(plain) = compared(graph, &options, &samples) else { continue };
        all += 1;
        plainly_lost += usize::from(plain.broken > 0);
        let context = QuantizeContext {
            providers: &cpu(),
            session: &single(OptimiseLevel::O1),
            calibration: &samples,
            evaluation: &[],
        };
        let found = islands(graph, &options, &context).unwrap();
        options.islands = found.into_iter().map(|island| island.result).collect();
        let held = compared(graph, &options, &samples).unwrap();
        let exact = Session::new(grower.graph.clone(), &cpu(), &single(OptimiseLevel::O2)).unwrap();
        let steady = samples.iter().all(|sample| {
            let x = &sample[0].1;
            run(&exact, x).is_some_and(|expected| is_steady(&exact, &mut grower, x, &expected))
        });
        if held.broken > 0 || steady && held.relative > GROSS {
            wrong.push(format!("{reach} {level:?} {held:?} {}", described(seed, &grower)));
        }
    }
    eprintln!("{plainly_lost} of {all} lose numbers without islands");
    assert!(wrong.is_empty(), "{} of {all}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(all * 10 > count() * 7, "{all} of {} are programs", count());
}
