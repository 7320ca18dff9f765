//! The sample models on `cpu` beside `reference`, and what must hold of any model.

use std::path::{Path, PathBuf};

use crate::support::values;
use galatea_graph::Dim;
use galatea_providers::{all, by_name};
use galatea_runtime::{IoInfo, Run, Session, SessionOptions};
use galatea_tensor::{ByteString, DataType, Tensor, Tolerance, compare, with_number};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models")
}

fn load(name: &str, provider: &str) -> Session {
    let path = samples().join(name).join("1/model.onnx");
    let graph = galatea_formats::onnx::load(&path).unwrap();
    let options = SessionOptions { threads: 2, ..SessionOptions::default() };
    Session::new(graph, &[by_name(provider).unwrap()], &options).unwrap()
}

/// An input of a batch: letters for bytes, small numbers for strings, anything for floats.
fn made_up(info: &IoInfo, batch: usize, seed: u32) -> Tensor {
    let len = |dim: &Dim| match dim {
        Dim::Known(len) => *len,
        Dim::Symbol(name) if name.contains("batch") => batch,
        _ => 24,
    };
    let shape: Vec<usize> = info.dims.iter().map(len).collect();
    let count: usize = shape.iter().product();
    let numbers: Vec<f64> =
        values(count, seed).iter().map(|value| f64::from(value.abs() * 100.0).floor()).collect();
    match info.dtype {
        DataType::Fp32 => Tensor::from_vec(&shape, values(count, seed)).unwrap(),
        DataType::Bool => {
            let odd = numbers.iter().map(|number| number % 2.0 > 0.5).collect::<Vec<bool>>();
            Tensor::from_vec(&shape, odd).unwrap()
        }
        DataType::Bytes => {
            let texts = numbers.iter().map(|number| ByteString::from(number.to_string()));
            Tensor::from_vec(&shape, texts.collect::<Vec<_>>()).unwrap()
        }
        dtype => with_number!(dtype, T => {
            let cast = |number: &f64| num_traits::NumCast::from(*number).unwrap_or_default();
            Tensor::from_vec(&shape, numbers.iter().map(cast).collect::<Vec<T>>()).unwrap()
        }, else { unreachable!("handled above") }),
    }
}

fn run(session: &Session, batch: usize, seed: u32) -> Vec<Tensor> {
    let made: Vec<Tensor> =
        session.inputs().iter().map(|info| made_up(info, batch, seed)).collect();
    let names = session.inputs().iter().map(|info| info.name.as_str());
    session.run_tensors(Run::named(&names.zip(made).collect::<Vec<_>>())).unwrap()
}

fn assert_close(found: &[Tensor], expected: &[Tensor]) {
    assert_eq!(found.len(), expected.len());
    let tolerance = Tolerance::Accumulated { terms: 1024, accumulator: DataType::Fp32 };
    for (found, expected) in found.iter().zip(expected) {
        compare(found, expected, tolerance).unwrap();
    }
}

#[test]
fn every_sample_model_gives_what_the_reference_gives() {
    let mut tried = 0;
    for entry in std::fs::read_dir(samples()).unwrap() {
        let path = entry.unwrap().path();
        if !path.join("1/model.onnx").exists() {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        let (cpu, reference) = (load(name, "cpu"), load(name, "reference"));
        for batch in [1, 3] {
            assert_close(&run(&cpu, batch, 7), &run(&reference, batch, 7));
        }
        tried += 1;
    }
    assert!(tried >= 5, "only {tried} sample models were found");
}

#[test]
fn a_row_in_a_batch_equals_the_row_alone() {
    for name in ["digits", "sentence", "lstm"] {
        let session = load(name, "cpu");
        let info = &session.inputs()[0];
        let batch = made_up(info, 4, 3);
        let together = session.run_tensors(Run::named(&[(&info.name, batch.clone())])).unwrap();
        for row in 0..4 {
            let one = batch.slice_axis(0, row, 1, 1).unwrap();
            let alone = session.run_tensors(Run::named(&[(&info.name, one)])).unwrap();
            let of_batch: Vec<Tensor> =
                together.iter().map(|all| all.slice_axis(0, row, 1, 1).unwrap()).collect();
            assert_close(&alone, &of_batch);
        }
    }
}

#[test]
fn threads_share_a_session_with_different_shapes() {
    let session = load("digits", "cpu");
    let expected: Vec<Vec<Tensor>> = (1..5).map(|batch| run(&session, batch, 9)).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (session, expected) = (&session, &expected);
            scope.spawn(move || {
                for round in 0..20 {
                    let batch = (thread + round) % 4 + 1;
                    let found = run(session, batch, 9);
                    for (found, expected) in found.iter().zip(&expected[batch - 1]) {
                        compare(found, expected, Tolerance::Exact).unwrap();
                    }
                }
            });
        }
    });
    assert!(session.report().memory.arena_bytes > 0);
}

#[test]
fn arenas_are_within_a_tenth_of_what_lives_at_once_and_plans_are_few() {
    let session = load("sentence", "cpu");
    for batch in 1..100 {
        run(&session, batch, 7);
        let report = session.report().plans;
        assert!(report.live_bytes > 0, "{report:?}");
        assert!(report.arena_bytes >= report.live_bytes, "{report:?}");
        assert!(report.arena_bytes * 10 <= report.live_bytes * 11 + 64 * 10, "{report:?}");
    }
    let report = session.report().plans;
    assert_eq!((report.plans, report.made), (SessionOptions::default().plan_cache, 99));
}

#[test]
fn all_providers_together_prefer_kernels() {
    let path = samples().join("digits/1/model.onnx");
    let graph = galatea_formats::onnx::load(&path).unwrap();
    let session = Session::new(graph, &all(), &SessionOptions::default()).unwrap();
    assert_eq!(session.partition_providers(), ["cpu"]);
    let text = session.explain().to_string();
    assert!(text.contains("fused_conv-f32-packed"), "{text}");
}

#[test]
fn a_memory_limit_refuses_a_run_and_says_what_it_needs() {
    let graph = galatea_formats::onnx::load(&samples().join("digits/1/model.onnx")).unwrap();
    let options = SessionOptions { memory_limit_bytes: Some(64), ..SessionOptions::default() };
    let session = Session::new(graph, &[by_name("cpu").unwrap()], &options).unwrap();
    let info = &session.inputs()[0];
    let error = session.run_tensors(Run::named(&[(&info.name, made_up(info, 1, 1))])).unwrap_err();
    assert!(error.to_string().contains("64 are allowed"), "{error}");
}
