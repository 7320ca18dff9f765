use galatea_tensor::{bf16, f16};
use proptest::prelude::*;

use super::{PagedAttentionStep, PagedCaches, paged_attention};
use crate::attention::AttentionRows;
use crate::gemm::test_values as values;
use crate::{Isa, KernelContext, ThreadPool};

/// Type of the elements of a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Fp32,
    Fp16,
    Bf16,
    Int8,
}

const KINDS: [Kind; 4] = [Kind::Fp32, Kind::Fp16, Kind::Bf16, Kind::Int8];

/// Caches that own their memory; what nobody has written is 0.25.
#[derive(Clone, Debug)]
enum Caches {
    Fp32([Vec<f32>; 2]),
    Fp16([Vec<f16>; 2]),
    Bf16([Vec<bf16>; 2]),
    Int8([Vec<i8>; 2], [Vec<f32>; 2]),
}

impl Caches {
    fn new(kind: Kind, keys: usize, values: usize, vectors: usize) -> Self {
        match kind {
            Kind::Fp32 => Self::Fp32([keys, values].map(|n| vec![0.25; n])),
            Kind::Fp16 => Self::Fp16([keys, values].map(|n| vec![f16::from_f32(0.25); n])),
            Kind::Bf16 => Self::Bf16([keys, values].map(|n| vec![bf16::from_f32(0.25); n])),
            Kind::Int8 => Self::Int8(
                [keys, values].map(|n| vec![64; n]),
                [(); 2].map(|()| vec![0.25 / 64.0; vectors]),
            ),
        }
    }

    fn lend(&mut self) -> PagedCaches<'_> {
        match self {
            Self::Fp32(all) => PagedCaches::Fp32(all.each_mut().map(Vec::as_mut_slice)),
            Self::Fp16(all) => PagedCaches::Fp16(all.each_mut().map(Vec::as_mut_slice)),
            Self::Bf16(all) => PagedCaches::Bf16(all.each_mut().map(Vec::as_mut_slice)),
            Self::Int8(all, scales) => PagedCaches::Int8 {
                caches: all.each_mut().map(Vec::as_mut_slice),
                scales: scales.each_mut().map(Vec::as_mut_slice),
            },
        }
    }

    /// An element of the keys (0) or values (1), in blocks of so many positions.
    fn at(&self, part: usize, vector: usize, size: usize, block: usize, i: usize) -> f64 {
        let at = place(part, vector, size, block, i);
        match self {
            Self::Fp32(all) => f64::from(all[part][at]),
            Self::Fp16(all) => all[part][at].to_f64(),
            Self::Bf16(all) => all[part][at].to_f64(),
            Self::Int8(all, scales) => f64::from(all[part][at]) * f64::from(scales[part][vector]),
        }
    }
}

/// Where an element of the keys (0) or values (1) lies.
fn place(part: usize, vector: usize, size: usize, block: usize, i: usize) -> usize {
    if part == 0 { (vector / block * size + i) * block + vector % block } else { vector * size + i }
}

/// A step over sequences that have some new rows and some positions.
#[derive(Clone, Debug)]
struct Case {
    heads: usize,
    kv_heads: usize,
    sizes: [usize; 2],
    block_size: usize,
    window: usize,
    softcap: f32,
    /// New rows and positions, new ones included.
    sequences: Vec<(usize, usize)>,
    kind: Kind,
}

impl Case {
    fn rows(&self) -> usize {
        self.sequences.iter().map(|&(rows, _)| rows).sum()
    }

    fn starts(&self) -> Vec<usize> {
        let mut starts = vec![0];
        for (rows, _) in &self.sequences {
            starts.push(starts[starts.len() - 1] + rows);
        }
        starts
    }

    fn lengths(&self) -> Vec<usize> {
        self.sequences.iter().map(|&(_, length)| length).collect()
    }

    /// Blocks in a mixed order, -1 behind those of a sequence, and how many the caches need.
    fn blocks(&self) -> (Vec<i64>, usize) {
        let used: Vec<usize> =
            self.sequences.iter().map(|(_, length)| length.div_ceil(self.block_size)).collect();
        let most = used.iter().copied().max().unwrap_or(0);
        let count = used.iter().sum::<usize>() + 2;
        // A step without a common divisor with the count visits every block once.
        let step = (3..).find(|step| gcd(*step, count) == 1).unwrap();
        let mut next = 1;
        let mut blocks = Vec::new();
        for used in used {
            for at in 0..most {
                blocks.push(if at < used { (next * step % count) as i64 } else { -1 });
                next += usize::from(at < used);
            }
        }
        (blocks, count)
    }

    fn caches(&self) -> Caches {
        let vectors = self.blocks().1 * self.kv_heads * self.block_size;
        Caches::new(self.kind, vectors * self.sizes[0], vectors * self.sizes[1], vectors)
    }

    /// Repeatable rows of Q, K and V.
    fn inputs(&self) -> [Vec<f32>; 3] {
        let columns = [
            self.heads * self.sizes[0],
            self.kv_heads * self.sizes[0],
            self.kv_heads * self.sizes[1],
        ];
        let mut seed = 0;
        columns.map(|columns| {
            seed += 1;
            values(self.rows() * columns, seed)
        })
    }

    fn run(
        &self,
        exec: KernelContext<'_>,
        inputs: &[Vec<f32>; 3],
        caches: &mut Caches,
    ) -> Vec<f32> {
        let (starts, lengths, (blocks, _)) = (self.starts(), self.lengths(), self.blocks());
        let a = PagedAttentionStep {
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_size: self.sizes[0],
            value_size: self.sizes[1],
            block_size: self.block_size,
            scale: 0.4,
            window: self.window,
            softcap: self.softcap,
            starts: &starts,
            lengths: &lengths,
            blocks: &blocks,
        };
        let mut y = vec![f32::NAN; self.rows() * self.heads * self.sizes[1]];
        let [q, k, v] = inputs;
        paged_attention(exec, &a, AttentionRows { q, k, v }, caches.lend(), &mut y);
        y
    }

    fn vector(&self, sequence: usize, head: usize, position: usize) -> usize {
        let (blocks, _) = self.blocks();
        let most = blocks.len() / self.sequences.len();
        let block = blocks[sequence * most + position / self.block_size];
        let block = usize::try_from(block).unwrap();
        (block * self.kv_heads + head) * self.block_size + position % self.block_size
    }

    /// The rows of Y by the formula, from caches that hold this step's rows already.
    fn expected(&self, q: &[f32], caches: &Caches) -> Vec<f64> {
        let [size, value_size] = self.sizes;
        let starts = self.starts();
        let mut y = Vec::new();
        for (sequence, &(rows, length)) in self.sequences.iter().enumerate() {
            for row in 0..rows {
                let position = length - rows + row;
                let first = match self.window {
                    0 => 0,
                    window => (position + 1).saturating_sub(window),
                };
                for head in 0..self.heads {
                    let kv = head / (self.heads / self.kv_heads);
                    let at = ((starts[sequence] + row) * self.heads + head) * size;
                    let vectors: Vec<usize> =
                        (first..=position).map(|p| self.vector(sequence, kv, p)).collect();
                    let score = |&vector: &usize| {
                        let dot: f64 = (0..size)
                            .map(|i| {
                                f64::from(q[at + i])
                                    * caches.at(0, vector, size, self.block_size, i)
                            })
                            .sum();
                        let scaled = dot * f64::from(0.4_f32);
                        let cap = f64::from(self.softcap);
                        if cap > 0.0 { cap * (scaled / cap).tanh() } else { scaled }
                    };
                    let scores: Vec<f64> = vectors.iter().map(score).collect();
                    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let weights: Vec<f64> = scores.iter().map(|x| (x - most).exp()).collect();
                    let total: f64 = weights.iter().sum();
                    for i in 0..value_size {
                        let sum: f64 = vectors
                            .iter()
                            .zip(&weights)
                            .map(|(&vector, w)| {
                                w * caches.at(1, vector, value_size, self.block_size, i)
                            })
                            .sum();
                        y.push(sum / total);
                    }
                }
            }
        }
        y
    }

    /// Returns whether the caches hold this step's rows, as near as their type allows.
    fn check_written(&self, inputs: &[Vec<f32>; 3], caches: &Caches) {
        let limit = match self.kind {
            Kind::Fp32 => 0.0,
            Kind::Fp16 => 1.0 / 2048.0,
            Kind::Bf16 => 1.0 / 256.0,
            Kind::Int8 => 1.0 / 250.0,
        };
        let starts = self.starts();
        for (sequence, &(rows, length)) in self.sequences.iter().enumerate() {
            for (row, head) in (0..rows).flat_map(|r| (0..self.kv_heads).map(move |h| (r, h))) {
                let vector = self.vector(sequence, head, length - rows + row);
                for part in 0..2 {
                    let size = self.sizes[part];
                    let at = ((starts[sequence] + row) * self.kv_heads + head) * size;
                    for i in 0..size {
                        let wrote = f64::from(inputs[part + 1][at + i]);
                        let found = caches.at(part, vector, size, self.block_size, i);
                        assert!((wrote - found).abs() <= limit, "{self:?} {wrote} {found}");
                    }
                }
            }
        }
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn check(case: &Case) {
    let inputs = case.inputs();
    for threads in [1, 2] {
        let pool = ThreadPool::new(threads);
        for isa in Isa::available() {
            let mut caches = case.caches();
            let y = case.run(KernelContext { pool: &pool, isa }, &inputs, &mut caches);
            case.check_written(&inputs, &caches);
            for (at, (found, want)) in y.iter().zip(case.expected(&inputs[0], &caches)).enumerate()
            {
                let near = (f64::from(*found) - want).abs() < 4e-6;
                assert!(near, "{} {threads} {case:?} {at}: {found} {want}", isa.name());
            }
        }
    }
}

fn case(heads: usize, kv_heads: usize, size: usize, sequences: &[(usize, usize)]) -> Case {
    Case {
        heads,
        kv_heads,
        sizes: [size; 2],
        block_size: 16,
        window: 0,
        softcap: 0.0,
        sequences: sequences.to_vec(),
        kind: Kind::Fp32,
    }
}

#[test]
fn steps_of_language_models_equal_the_formula() {
    for kind in KINDS {
        // Decoding, prompts, both, and a prompt that goes on.
        for sequences in [
            &[(1, 700)][..],
            &[(1, 1), (1, 33), (1, 300)],
            &[(130, 130)],
            &[(1, 40), (20, 20), (0, 5), (7, 290)],
        ] {
            for (heads, kv_heads) in [(2, 2), (4, 2), (7, 1), (8, 1)] {
                check(&Case { kind, ..case(heads, kv_heads, 64, sequences) });
            }
        }
    }
}

#[test]
fn windows_caps_and_odd_sizes_equal_the_formula() {
    for (window, softcap) in [(1, 0.0), (5, 0.0), (100, 0.7), (0, 0.5), (1000, 0.0)] {
        for sizes in [[5, 3], [33, 70], [80, 16]] {
            for kind in KINDS {
                let some = case(6, 2, 0, &[(1, 270), (50, 60), (3, 40)]);
                check(&Case { window, softcap, sizes, kind, block_size: 7, ..some });
            }
        }
    }
    check(&case(2, 1, 600, &[(1, 20), (12, 30)]));
}

#[test]
fn a_prompt_at_once_gives_what_its_tokens_give_one_by_one() {
    let pool = ThreadPool::new(2);
    let exec = KernelContext::new(&pool);
    for kind in KINDS {
        let whole = Case { kind, ..case(7, 1, 24, &[(60, 60)]) };
        let inputs = whole.inputs();
        let mut caches = whole.caches();
        let at_once = whole.run(exec, &inputs, &mut caches);
        let mut caches = whole.caches();
        let columns = [7 * 24, 24, 24];
        for (row, expected) in at_once.chunks_exact(7 * 24).enumerate() {
            // The blocks of a sequence stay the same while it grows in them.
            let part: Vec<Vec<f32>> = inputs
                .iter()
                .zip(columns)
                .map(|(all, n)| all[row * n..(row + 1) * n].to_vec())
                .collect();
            let part: [Vec<f32>; 3] = part.try_into().unwrap();
            let (blocks, _) = whole.blocks();
            let a = PagedAttentionStep {
                heads: 7,
                kv_heads: 1,
                head_size: 24,
                value_size: 24,
                block_size: 16,
                scale: 0.4,
                window: 0,
                softcap: 0.0,
                starts: &[0, 1],
                lengths: &[row + 1],
                blocks: &blocks,
            };
            let mut y = vec![f32::NAN; 7 * 24];
            let [q, k, v] = &part;
            paged_attention(exec, &a, AttentionRows { q, k, v }, caches.lend(), &mut y);
            for (found, want) in y.iter().zip(expected) {
                assert!((found - want).abs() < 3e-6, "{kind:?} {row}: {found} {want}");
            }
        }
    }
}

#[test]
fn what_lies_behind_a_sequence_is_not_looked_at() {
    let pool = ThreadPool::new(2);
    let case = case(4, 2, 16, &[(1, 19), (9, 37)]);
    let inputs = case.inputs();
    for isa in Isa::available() {
        let exec = KernelContext { pool: &pool, isa };
        let expected = case.run(exec, &inputs, &mut case.caches());
        let mut caches = case.caches();
        let Caches::Fp32(all) = &mut caches else { unreachable!() };
        for (part, all) in all.iter_mut().enumerate() {
            let mut own = vec![false; all.len()];
            for (sequence, &(_, length)) in case.sequences.iter().enumerate() {
                for (position, head) in (0..length).flat_map(|p| [(p, 0), (p, 1)]) {
                    let vector = case.vector(sequence, head, position);
                    (0..16).for_each(|i| own[place(part, vector, 16, 16, i)] = true);
                }
            }
            for (x, own) in all.iter_mut().zip(&own) {
                *x = if *own { *x } else { f32::NAN };
            }
        }
        assert_eq!(case.run(exec, &inputs, &mut caches), expected, "{}", isa.name());
    }
}

#[test]
#[should_panic(expected = "the caches have 3")]
fn a_block_that_the_caches_do_not_have_is_refused() {
    let pool = ThreadPool::new(1);
    let case = case(1, 1, 4, &[(1, 5)]);
    let mut caches = [[0.0; 3 * 16 * 4]; 2];
    let [keys, values] = &mut caches;
    let a = PagedAttentionStep {
        heads: 1,
        kv_heads: 1,
        head_size: 4,
        value_size: 4,
        block_size: 16,
        scale: 1.0,
        window: 0,
        softcap: 0.0,
        starts: &case.starts(),
        lengths: &case.lengths(),
        blocks: &[3],
    };
    let caches = PagedCaches::Fp32([keys, values]);
    let q = &[0.0; 4][..];
    let x = AttentionRows { q, k: q, v: q };
    paged_attention(KernelContext::new(&pool), &a, x, caches, &mut [0.0; 4]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_step_equals_the_formula(
        kv_heads in 1usize..3, group in 1usize..5,
        sizes in [1usize..50, 1usize..50], block_size in 1usize..40,
        window in prop_oneof![Just(0usize), 1usize..80],
        capped in proptest::bool::ANY,
        sequences in proptest::collection::vec((0usize..40, 0usize..300), 1..4),
        kind in proptest::sample::select(KINDS.to_vec()),
    ) {
        let sequences = sequences.into_iter().map(|(rows, before)| (rows, rows + before));
        check(&Case {
            heads: kv_heads * group,
            kv_heads,
            sizes,
            block_size,
            window,
            softcap: if capped { 0.8 } else { 0.0 },
            sequences: sequences.collect(),
            kind,
        });
    }
}
