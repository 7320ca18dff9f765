//! Everything that happens to a model before and while it runs, for models that may be wrong: what
//! fuzzers and tests of fixed mutations walk through. An error is fine, a panic is a finding.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use galatea_formats::onnx::{parse, read_tensor, read_value};
use galatea_graph::rewrite::{RewriteLevel, channels_last, optimise};
use galatea_graph::{
    Datum, Dim, Fact, FactKind, Graph, TensorSequence, ValueId, infer, onnx_data_type,
};
use galatea_runtime::{ExecutionProvider, IoInfo, Run, Session, SessionOptions};
use galatea_tensor::{ByteString, DataType, Tensor, bf16, f16};

use crate::noise::NoiseGenerator;

/// A run is tried where no value has more elements than this, as far as inference knows.
const MAX_ELEMENTS: usize = 2048;
/// A run is tried on graphs of up to this many nodes.
const MAX_NODES: usize = 48;
/// A run is tried where bodies nest this deep at most.
const MAX_NESTING: usize = 2;

/// Bytes as a model; the graph if they are one.
#[must_use]
pub fn import(bytes: &[u8]) -> Option<Graph> {
    parse(Bytes::copy_from_slice(bytes), None).ok()
}

/// Bytes as the values of ONNX's test data.
pub fn values(bytes: &[u8]) {
    let _ = read_tensor(bytes.to_vec());
    for (number, kind) in [(1, FactKind::Sequence), (7, FactKind::OptionalSequence)] {
        if let Ok(dtype) = onnx_data_type(number) {
            let _ = read_value(bytes.to_vec(), &Fact::unranked(dtype).within(kind));
        }
    }
}

/// Inference, and rewriting at every level. A rewritten graph hangs together and has the same
/// outputs.
///
/// # Panics
/// When it does not.
pub fn rewrite(graph: &Graph) {
    let Ok(before) = infer::facts(graph, &HashMap::new()) else { return };
    for level in RewriteLevel::ALL {
        let mut rewritten = graph.clone();
        if optimise(&mut rewritten, level).is_err() {
            continue;
        }
        check(graph, &before, &mut rewritten);
        if level == RewriteLevel::O3 && channels_last(&mut rewritten).is_ok() {
            check(graph, &before, &mut rewritten);
        }
    }
}

#[allow(clippy::expect_used, reason = "a broken rewrite fails the test")]
fn check(graph: &Graph, before: &[Option<Fact>], rewritten: &mut Graph) {
    rewritten.sort().expect("a rewritten graph can be sorted");
    let after = infer::facts(rewritten, &HashMap::new());
    let after = after.expect("the shapes of a rewritten graph can be inferred");
    assert_eq!(graph.outputs.len(), rewritten.outputs.len(), "outputs");
    for (&old, &new) in graph.outputs.iter().zip(&rewritten.outputs) {
        let old = before[old.index()].as_ref();
        let new = after[new.index()].as_ref();
        if let (Some(old), Some(new)) = (old, new) {
            assert_eq!((old.kind, old.dtype), (new.kind, new.dtype), "type of an output");
        }
    }
}

/// Splits a graph between providers, plans a run for lengths that are made up, and runs it once
/// where that is cheap. Says whether a run was tried.
pub fn run(
    graph: &Graph,
    providers: &[Arc<dyn ExecutionProvider>],
    noise: &mut NoiseGenerator,
) -> bool {
    let level = RewriteLevel::ALL[noise.below(RewriteLevel::ALL.len())];
    let options = SessionOptions {
        threads: 1,
        optimise: level,
        memory_limit_bytes: Some(1 << 22),
        ..SessionOptions::default()
    };
    let Ok(session) = Session::new(graph.clone(), providers, &options) else { return false };
    let _ = session.explain();
    let mut lengths = HashMap::new();
    let made: Option<Vec<Datum>> =
        session.inputs().iter().map(|info| value(info, &mut lengths, noise)).collect();
    let Some(made) = made else { return false };
    let facts = facts_of(session.graph(), &made);
    if !is_cheap(session.graph(), &facts) {
        return false;
    }
    let named: Vec<(&str, Datum)> =
        session.inputs().iter().map(|info| info.name.as_str()).zip(made).collect();
    let outputs = session.run(Run::values(&named)).map(|ran| ran.outputs);
    // A body may declare another shape than it gives: where it never runs, the declared one counts.
    let plain = session.graph().nodes.iter().all(|node| node.operator.bodies().is_empty());
    if let (Ok(outputs), true) = (outputs, plain) {
        for (id, output) in session.graph().outputs.iter().zip(&outputs) {
            agrees(facts.get(id.index()).and_then(Option::as_ref), output);
        }
    }
    true
}

/// Returns the inferred fact of every value in a run of these inputs; nothing where it refuses them.
fn facts_of(graph: &Graph, inputs: &[Datum]) -> Vec<Option<Fact>> {
    let fact = |(&id, input): (&ValueId, &Datum)| {
        input.as_tensor().map(|tensor| (id, Fact::fixed(tensor.dtype(), tensor.shape())))
    };
    let known = graph.inputs.iter().zip(inputs).filter_map(fact).collect();
    infer::facts(graph, &known).unwrap_or_default()
}

/// Holds a result against what inference said of it.
fn agrees(fact: Option<&Fact>, output: &Datum) {
    let (Some(fact), Datum::Tensor(tensor)) = (fact.filter(|fact| fact.is_tensor()), output) else {
        return;
    };
    assert_eq!(fact.dtype, tensor.dtype(), "inferred {fact}");
    let Some(dims) = &fact.shape else { return };
    let fits = |(dim, &len): (&Dim, &usize)| dim.known().is_none_or(|known| known == len);
    let same = dims.len() == tensor.rank() && dims.iter().zip(tensor.shape()).all(fits);
    assert!(same, "inferred {fact}, found {:?}", tensor.shape());
}

/// Whether a run takes little time, as far as inference knows.
fn is_cheap(graph: &Graph, facts: &[Option<Fact>]) -> bool {
    let small = |fact: &Fact| {
        fact.known_shape().is_none_or(|shape| {
            shape
                .iter()
                .try_fold(1, |n: usize, &len| n.checked_mul(len.max(1)))
                .is_some_and(|n| n <= MAX_ELEMENTS)
        })
    };
    count(graph, 0).is_some_and(|nodes| nodes <= MAX_NODES) && facts.iter().flatten().all(small)
}

/// The nodes of a graph and of the bodies inside; `None` where these nest deeply.
fn count(graph: &Graph, depth: usize) -> Option<usize> {
    if depth > MAX_NESTING {
        return None;
    }
    let bodies = graph.nodes.iter().flat_map(|node| node.operator.bodies());
    bodies
        .map(|body| count(body.graph(), depth + 1))
        .try_fold(graph.nodes.len(), |n, more| Some(n + more?))
}

/// A value for an input: lengths that the model leaves open are made up, the same for the same name.
fn value(
    info: &IoInfo,
    lengths: &mut HashMap<String, usize>,
    noise: &mut NoiseGenerator,
) -> Option<Datum> {
    let mut shape: Vec<usize> = Vec::with_capacity(info.dims.len());
    for dim in &info.dims {
        shape.push(match dim {
            Dim::Known(len) => *len,
            Dim::Symbol(name) => *lengths.entry(name.to_string()).or_insert_with(|| noise.below(5)),
            Dim::Unknown => noise.below(4),
        });
    }
    if !info.ranked {
        shape = (0..noise.below(4)).map(|_| noise.below(4)).collect();
    }
    let elements = shape.iter().try_fold(1_usize, |n, &len| n.checked_mul(len))?;
    if elements > MAX_ELEMENTS {
        return None;
    }
    let tensor = filled(info.dtype, &shape, elements, noise)?;
    Some(match info.kind {
        FactKind::Tensor => Datum::Tensor(tensor),
        FactKind::Sequence => {
            let items = vec![tensor; noise.below(3)];
            Datum::Sequence(TensorSequence::new(info.dtype, items).ok()?)
        }
        FactKind::Map(_) | FactKind::Maps(_) => return None,
        _ if noise.once_in(3) => Datum::Optional(None),
        FactKind::OptionalTensor => Datum::Optional(Some(Box::new(Datum::Tensor(tensor)))),
        FactKind::OptionalSequence => {
            let items = TensorSequence::new(info.dtype, vec![tensor]).ok()?;
            Datum::Optional(Some(Box::new(Datum::Sequence(items))))
        }
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "any number will do")]
fn filled(
    dtype: DataType,
    shape: &[usize],
    n: usize,
    noise: &mut NoiseGenerator,
) -> Option<Tensor> {
    let wild = noise.once_in(4);
    let mut whole = || if wild { noise.integer() } else { noise.below(5) as i64 - 1 };
    macro_rules! whole {
        ($T:ty) => {
            Tensor::from_vec(shape, (0..n).map(|_| whole() as $T).collect::<Vec<$T>>())
        };
    }
    match dtype {
        DataType::Bool => {
            Tensor::from_vec(shape, (0..n).map(|_| noise.once_in(2)).collect::<Vec<bool>>())
        }
        DataType::Uint8 => whole!(u8),
        DataType::Uint16 => whole!(u16),
        DataType::Uint32 => whole!(u32),
        DataType::Uint64 => whole!(u64),
        DataType::Int8 => whole!(i8),
        DataType::Int16 => whole!(i16),
        DataType::Int32 => whole!(i32),
        DataType::Int64 => whole!(i64),
        DataType::Fp16 => {
            let all = (0..n).map(|_| f16::from_f32(noise.float())).collect::<Vec<_>>();
            Tensor::from_vec(shape, all)
        }
        DataType::Bf16 => {
            let all = (0..n).map(|_| bf16::from_f32(noise.float())).collect::<Vec<_>>();
            Tensor::from_vec(shape, all)
        }
        DataType::Fp32 => {
            Tensor::from_vec(shape, (0..n).map(|_| noise.float()).collect::<Vec<_>>())
        }
        DataType::Fp64 => {
            Tensor::from_vec(shape, (0..n).map(|_| f64::from(noise.float())).collect::<Vec<_>>())
        }
        DataType::Small(_) => return None,
        DataType::Bytes => {
            let texts = ["", "a", "-1", "nan", "\u{e9}\u{301}", "1e400"];
            let all = (0..n).map(|_| ByteString::from(texts[noise.below(6)])).collect::<Vec<_>>();
            Tensor::from_vec(shape, all)
        }
    }
    .ok()
}
