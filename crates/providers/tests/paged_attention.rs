//! Attention over blocks of caches: the kernel against the reference, and where caches stay.

use crate::support::{Maker, assert_kernel, floats, ints};
use galatea_graph::{AttributeValue, ValueId};
use galatea_runtime::{OptimiseLevel, Run};
use galatea_tensor::{DataType, Tensor, Tolerance, bf16, compare, f16};

/// Six query heads share two key heads.
const HEADS: usize = 6;
const KV_HEADS: usize = 2;
const WIDTH: usize = 20;
const BLOCKS: usize = 9;
const BLOCK: usize = 4;
const KERNEL: &str = "paged_attention-f32-online";

fn attributes(window: i64, softcap: f32) -> Vec<(&'static str, AttributeValue)> {
    vec![
        ("num_heads", AttributeValue::Int(HEADS as i64)),
        ("kv_num_heads", AttributeValue::Int(KV_HEADS as i64)),
        ("window", AttributeValue::Int(window)),
        ("softcap", AttributeValue::Float(softcap)),
    ]
}

/// Three sequences: a prompt that goes on, one token, and a prompt.
fn places() -> [Tensor; 3] {
    let blocks = [7, 2, 0, 5, -1, -1, 8, 1, -1];
    [ints(&[4], &[0, 5, 6, 13]), ints(&[3], &[11, 3, 7]), ints(&[3, 3], &blocks)]
}

/// One sequence of 16 positions, of which the last ones are new.
fn decoding(rows: usize) -> [Tensor; 3] {
    let rows = i64::try_from(rows).unwrap();
    [ints(&[2], &[0, rows]), ints(&[1], &[16]), ints(&[1, 4], &[3, 6, 0, 4])]
}

/// Caches of a type, with their scales.
#[allow(clippy::cast_possible_truncation, reason = "values are between -1 and 1")]
fn caches(dtype: DataType, seed: u32) -> [Vec<Tensor>; 2] {
    let shape = [BLOCKS, KV_HEADS, BLOCK, WIDTH];
    let keys = floats(&[BLOCKS, KV_HEADS, WIDTH, BLOCK], seed);
    let values = floats(&shape, seed + 1);
    let halves = |x: &Tensor| -> Tensor {
        let shape = x.shape();
        let all = x.to_vec::<f32>().unwrap();
        match dtype {
            DataType::Fp16 => {
                Tensor::from_vec(shape, all.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>())
            }
            DataType::Bf16 => {
                Tensor::from_vec(shape, all.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>())
            }
            DataType::Int8 => {
                Tensor::from_vec(shape, all.iter().map(|x| (x * 127.0) as i8).collect::<Vec<_>>())
            }
            _ => Ok(x.clone()),
        }
        .unwrap()
    };
    let scales = [seed + 2, seed + 3].map(|seed| {
        let all: Vec<f32> =
            floats(&shape[..3], seed).to_vec::<f32>().unwrap().iter().map(|x| x.abs()).collect();
        Tensor::from_vec(&shape[..3], all).unwrap()
    });
    let scales = if dtype == DataType::Int8 { scales.to_vec() } else { Vec::new() };
    [vec![halves(&keys), halves(&values)], scales]
}

#[test]
fn every_type_of_cache_equals_the_reference() {
    let types = [DataType::Fp32, DataType::Fp16, DataType::Bf16, DataType::Int8];
    for dtype in types {
        for (window, softcap) in [(0, 0.0), (3, 0.0), (0, 0.6)] {
            let mut maker = Maker::new();
            let columns = [HEADS, KV_HEADS, KV_HEADS].map(|heads| heads * WIDTH);
            let mut ids: Vec<Option<ValueId>> = ["q", "k", "v"]
                .into_iter()
                .zip(columns)
                .zip(1..)
                .map(|((name, columns), seed)| maker.input(name, floats(&[13, columns], seed)))
                .collect();
            let [own, scales] = caches(dtype, 10);
            for (name, cache) in ["keys", "values"].into_iter().zip(own) {
                ids.push(maker.input(name, cache));
            }
            for (name, places) in ["starts", "lengths", "blocks"].into_iter().zip(places()) {
                ids.push(maker.input(name, places));
            }
            for (name, scales) in ["key_scales", "value_scales"].into_iter().zip(scales) {
                ids.push(maker.input(name, scales));
            }
            let outputs = if dtype == DataType::Int8 { 5 } else { 3 };
            let attributes = attributes(window, softcap);
            let made = maker.node("ai.galatea:PagedAttention", &attributes, &ids, outputs);
            let (_, rows) = maker.check(&made, 64);
            assert_kernel(&rows, KERNEL);
        }
    }
}

/// Layers as those of a language model: each has caches of its own, and what it gives is named.
fn layers(count: usize, level: OptimiseLevel) -> Maker {
    let mut maker = Maker::new();
    maker.level = level;
    let width = HEADS * WIDTH;
    let mut x = maker.input("x", floats(&[1, width], 1));
    let places: Vec<_> = ["starts", "lengths", "blocks"]
        .into_iter()
        .zip(decoding(1))
        .map(|(name, value)| maker.input(name, value))
        .collect();
    let mut after = Vec::new();
    for layer in 0..count {
        let seed = u32::try_from(10 * layer).unwrap();
        let [own, _] = caches(DataType::Fp32, seed + 5);
        let caches: Vec<_> = ["key", "value"]
            .into_iter()
            .zip(own)
            .map(|(kind, cache)| maker.input(&format!("{kind}.{layer}"), cache))
            .collect();
        let mut projected = |columns: usize, seed: u32| {
            let weight = maker.constant(floats(&[width, columns], seed));
            maker.node("MatMul", &[], &[x, weight], 1)[0]
        };
        let kv = KV_HEADS * WIDTH;
        let mut inputs =
            vec![projected(width, seed), projected(kv, seed + 1), projected(kv, seed + 2)];
        inputs.extend(caches);
        inputs.extend(&places);
        let made = maker.node("ai.galatea:PagedAttention", &attributes(0, 0.0), &inputs, 3);
        x = maker.node("Add", &[], &[made[0], x], 1)[0];
        after.extend([made[1], made[2]]);
    }
    let named = |maker: &mut Maker, id| maker.node("Identity", &[], &[id], 1)[0].unwrap();
    let outputs = std::iter::once(x).chain(after).collect::<Vec<_>>();
    maker.graph.outputs = outputs.into_iter().map(|id| named(&mut maker, id)).collect();
    maker
}

#[test]
fn caches_of_all_layers_stay_where_they_are() {
    for level in [OptimiseLevel::O0, OptimiseLevel::default()] {
        let maker = layers(3, level);
        let inputs: Vec<(&str, Tensor)> =
            maker.inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
        let expected = maker.session("reference").run_tensors(Run::named(&inputs)).unwrap();
        let session = maker.session("cpu");
        let rows = session.run(Run::named(&inputs).profiled()).unwrap().rows;
        assert_eq!(rows.iter().filter(|row| row.kernel == KERNEL).count(), 3, "{rows:?}");
        let copied = |tensor: &Tensor| {
            Tensor::from_bytes(tensor.dtype(), tensor.shape(), tensor.as_bytes().unwrap()).unwrap()
        };
        let owned: Vec<Tensor> = inputs.iter().map(|(_, tensor)| copied(tensor)).collect();
        let at = |tensor: &Tensor| tensor.as_bytes().unwrap().as_ptr();
        let before: Vec<_> = owned[4..].iter().map(at).collect();
        let found = session.run_tensors(Run::owned(owned)).unwrap();
        let after: Vec<_> = found[1..].iter().map(at).collect();
        assert_eq!(before, after, "{level:?}: caches were copied");
        for (found, expected) in found.iter().zip(&expected) {
            let terms = Tolerance::Accumulated { terms: 4096, accumulator: DataType::Fp32 };
            compare(found, expected, terms).unwrap();
        }
    }
}

#[test]
fn places_that_do_not_fit_are_errors_that_say_what_was_found() {
    let maker = layers(1, OptimiseLevel::O0);
    let session = maker.session("cpu");
    let run = |name: &str, value: Tensor| {
        let inputs: Vec<(&str, Tensor)> = maker
            .inputs
            .iter()
            .map(|(other, tensor)| {
                (other.as_str(), if other == name { value.clone() } else { tensor.clone() })
            })
            .collect();
        session.run_tensors(Run::named(&inputs)).unwrap_err().to_string()
    };
    let text = run("blocks", ints(&[1, 4], &[3, 6, 0, 9]));
    assert!(text.contains("block 9, the caches have 9"), "{text}");
    let text = run("blocks", ints(&[1, 4], &[3, -6, 0, 1]));
    assert!(text.contains("block -6"), "{text}");
    let text = run("lengths", ints(&[1], &[0]));
    assert!(text.contains("1 rows and 0 positions"), "{text}");
    let text = run("lengths", ints(&[1], &[17]));
    assert!(text.contains("17 positions in 4 blocks"), "{text}");
    let text = run("starts", ints(&[2], &[0, 2]));
    assert!(text.contains("expected [2, 120]"), "{text}");
    let text = run("starts", ints(&[2], &[0, -1]));
    assert!(text.contains("-1"), "{text}");
}
