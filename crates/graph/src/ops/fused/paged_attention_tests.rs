use galatea_tensor::{DataType, Tensor, Tolerance, compare};

use crate::attribute::Attributes;
use crate::ops::testing::{attributes, int, one, run};

/// Four query heads share two key heads.
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
/// Lengths of keys and of values.
const WIDTH: usize = 6;
const VALUE_WIDTH: usize = 3;
/// Blocks and their positions.
const BLOCKS: usize = 7;
const BLOCK: usize = 4;

fn noise(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from(u16::try_from(state >> 16).unwrap()) / 32_768.0 - 1.0
    };
    (0..count).map(next).collect()
}

fn heads(window: i64) -> Attributes {
    attributes([("num_heads", int(4)), ("kv_num_heads", int(2)), ("window", int(window))])
}

/// A sequence: its rows of Q, K and V.
struct Rows([Vec<f32>; 3]);

const COLUMNS: [usize; 3] = [HEADS * WIDTH, KV_HEADS * WIDTH, KV_HEADS * VALUE_WIDTH];

impl Rows {
    fn new(count: usize, seed: u32) -> Self {
        let mut part = 0;
        Self(COLUMNS.map(|columns| {
            part += 1;
            noise(count * columns, seed + part)
        }))
    }

    fn part(&self, rows: std::ops::Range<usize>) -> [&[f32]; 3] {
        std::array::from_fn(|i| &self.0[i][rows.start * COLUMNS[i]..rows.end * COLUMNS[i]])
    }
}

/// A step: for each sequence its new rows, its length after them and its blocks.
type Step<'a> = Vec<([&'a [f32]; 3], usize, Vec<i64>)>;

fn caches(dtype: DataType) -> Vec<Tensor> {
    let zeros = |shape: &[usize], dtype| Tensor::zeros(dtype, shape).unwrap();
    let keys = [BLOCKS, 2, WIDTH, BLOCK];
    let values = [BLOCKS, 2, BLOCK, VALUE_WIDTH];
    let mut all = vec![zeros(&keys, dtype), zeros(&values, dtype)];
    if dtype == DataType::Int8 {
        all.extend([zeros(&values[..3], DataType::Fp32), zeros(&values[..3], DataType::Fp32)]);
    }
    all
}

/// Runs a step; gives the rows and keeps the caches.
fn run_step(
    attributes: &Attributes,
    caches: &mut Vec<Tensor>,
    step: &Step<'_>,
) -> Result<Tensor, String> {
    let joined = |i: usize| {
        let all: Vec<f32> = step.iter().flat_map(|(rows, ..)| rows[i].iter().copied()).collect();
        Tensor::from_vec(&[all.len() / COLUMNS[i], COLUMNS[i]], all).unwrap()
    };
    let q = joined(0);
    let k = joined(1);
    let v = joined(2);
    let mut starts = vec![0_i64];
    for (rows, ..) in step {
        let count = i64::try_from(rows[0].len() / COLUMNS[0]).unwrap();
        starts.push(starts.last().unwrap() + count);
    }
    let lengths: Vec<i64> = step.iter().map(|(_, length, _)| *length as i64).collect();
    let most = step.iter().map(|(.., blocks)| blocks.len()).max().unwrap_or(0);
    let mut blocks: Vec<i64> = Vec::new();
    for (.., own) in step {
        blocks.extend(own);
        // What is behind a sequence's blocks is not looked at.
        blocks.extend(vec![-1; most - own.len()]);
    }
    let blocks = Tensor::from_vec(&[step.len(), most], blocks).unwrap();
    let starts = Tensor::vector(starts);
    let lengths = Tensor::vector(lengths);
    let first = [&q, &k, &v, &caches[0], &caches[1], &starts, &lengths, &blocks];
    let inputs: Vec<Option<&Tensor>> = first.into_iter().chain(&caches[2..]).map(Some).collect();
    let mut found = run("ai.galatea:PagedAttention", 1, attributes, &inputs, caches.len() + 1)?;
    let rows = found.remove(0);
    *caches = found;
    Ok(rows)
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec::<f32>().unwrap()
}

fn near(found: &[f32], expected: &[f32], distance: f32) {
    assert_eq!(found.len(), expected.len());
    for (at, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= distance, "{at}: {a} and {b}");
    }
}

#[test]
fn a_sequence_in_scattered_blocks_equals_dense_causal_attention() {
    let rows = Rows::new(10, 1);
    let step = vec![(rows.part(0..10), 10, vec![5, 0, 3])];
    let found = run_step(&heads(0), &mut caches(DataType::Fp32), &step).unwrap();
    let packed =
        |i: usize, values: &[f32]| Tensor::from_slice(&[1, 10, COLUMNS[i]], values).unwrap();
    let [q, k, v] = [0, 1, 2].map(|i| packed(i, &rows.0[i]));
    let dense =
        attributes([("is_causal", int(1)), ("q_num_heads", int(4)), ("kv_num_heads", int(2))]);
    let expected = one("Attention", 23, &dense, &[&q, &k, &v]).reshape(&[10, 12]).unwrap();
    compare(&found, &expected, Tolerance::Within(1e-6)).unwrap();
}

#[test]
fn tokens_one_by_one_and_beside_others_give_what_they_give_at_once_and_alone() {
    for (dtype, window) in [(DataType::Fp32, 0), (DataType::Fp16, 3), (DataType::Int8, 0)] {
        let first = Rows::new(9, 1);
        let second = Rows::new(6, 40);
        let own = vec![2, 6, 1];
        let other = vec![0, 4];
        let mut alone = caches(dtype);
        let step = vec![(first.part(0..9), 9, own.clone())];
        let whole = run_step(&heads(window), &mut alone, &step).unwrap();
        let mut together = caches(dtype);
        let step = vec![(first.part(0..5), 5, own.clone()), (second.part(0..2), 2, other.clone())];
        let mut found = floats(&run_step(&heads(window), &mut together, &step).unwrap());
        found.truncate(5 * 12);
        for at in 5..9 {
            let seen = at - 3;
            let step = vec![
                (second.part(seen..seen + 1), seen + 1, other.clone()),
                (first.part(at..at + 1), at + 1, own.clone()),
            ];
            let row = floats(&run_step(&heads(window), &mut together, &step).unwrap());
            found.extend(&row[12..]);
        }
        near(&found, &floats(&whole), 1e-6);
    }
}

#[test]
fn a_window_of_one_position_gives_values_and_bytes_are_near_floats() {
    let rows = Rows::new(5, 7);
    let step = vec![(rows.part(0..5), 5, vec![1, 3])];
    let found = floats(&run_step(&heads(1), &mut caches(DataType::Fp32), &step).unwrap());
    let value = |row: usize, head: usize| {
        let at = (row * KV_HEADS + head / 2) * VALUE_WIDTH;
        &rows.0[2][at..at + VALUE_WIDTH]
    };
    let expected: Vec<f32> =
        (0..5 * HEADS).flat_map(|at| value(at / HEADS, at % HEADS).to_vec()).collect();
    near(&found, &expected, 1e-6);
    let exact = floats(&run_step(&heads(0), &mut caches(DataType::Fp32), &step).unwrap());
    let mut bytes = caches(DataType::Int8);
    near(&floats(&run_step(&heads(0), &mut bytes, &step).unwrap()), &exact, 0.02);
    // The greatest of a vector is 127 of its scale.
    let keys = bytes[0].to_vec::<i8>().unwrap();
    let scales = floats(&bytes[2]);
    let vector = BLOCK * KV_HEADS;
    // The elements of the first key of a block are as far apart as it has positions.
    let key = keys[vector * WIDTH..].iter().step_by(BLOCK).take(WIDTH);
    assert_eq!(key.map(|x| x.abs()).max(), Some(127));
    let greatest = rows.0[1][..WIDTH].iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    near(&scales[vector..=vector], &[greatest / 127.0], 1e-9);
}

#[test]
fn scores_are_capped() {
    let mut capped = heads(0);
    capped.insert("softcap".to_owned(), 0.5_f32.into());
    let q = [100.0_f32, 0.0, 0.0, 0.0, 0.0, 0.0].repeat(HEADS * 2);
    let mut k = vec![0.0_f32; 2 * COLUMNS[1]];
    k[0] = 100.0;
    let v: Vec<f32> = vec![1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let step = vec![([&q[..], &k[..], &v[..]], 2, vec![0])];
    let found = floats(&run_step(&capped, &mut caches(DataType::Fp32), &step).unwrap());
    // The second row of the first head sees scores of the cap and of 0.
    let weight = 0.5_f32.exp() / (0.5_f32.exp() + 1.0);
    near(&found[12..15], &[weight; 3], 1e-6);
}

#[test]
fn what_does_not_fit_is_refused() {
    let rows = Rows::new(5, 7);
    let refused = |attributes: &Attributes, step: &Step<'_>, text: &str| {
        let error = run_step(attributes, &mut caches(DataType::Fp32), step).unwrap_err();
        assert!(error.contains(text), "{error}");
    };
    let plain = heads(0);
    refused(&plain, &vec![(rows.part(0..5), 5, vec![0, 7])], "block 7, the caches have 7");
    refused(&plain, &vec![(rows.part(0..5), 5, vec![0, -1])], "block -1");
    refused(&plain, &vec![(rows.part(0..5), 4, vec![0])], "5 rows and 4 positions");
    refused(&plain, &vec![(rows.part(0..5), 9, vec![0, 1])], "9 positions in 2 blocks of 4");
    let three = attributes([("num_heads", int(3)), ("kv_num_heads", int(2))]);
    refused(&three, &vec![(rows.part(0..1), 1, vec![0])], "3 heads of queries");
    let two = attributes([("num_heads", int(2)), ("kv_num_heads", int(2))]);
    refused(&two, &vec![(rows.part(0..1), 1, vec![0])], "Q is [1, 24], expected [1, 12]");
    let eight = attributes([("num_heads", int(4)), ("kv_num_heads", int(4))]);
    refused(&eight, &vec![(rows.part(0..1), 1, vec![0])], "for 4 heads");
    let mut mixed = caches(DataType::Fp32);
    mixed.extend(caches(DataType::Int8).split_off(2));
    let step = vec![(rows.part(0..1), 1, vec![0])];
    let error = run_step(&plain, &mut mixed, &step).unwrap_err();
    assert!(error.contains("scales"), "{error}");
}
