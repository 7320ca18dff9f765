//! Weights that become numbers of few bits when they are loaded.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use galatea_graph::OpError;
use galatea_graph::blocks::{BlockRow, BlockWeights, CodeFormat, CodeMeaning, SuperScales};
use galatea_tensor::{DataType, Tensor};

use super::rounding::{as_half, best_scale, best_steps, greatest, inverse, multiples, steps};
use super::{CheckpointWeights, FloatMatrix};
use crate::error::{self, LlmError, LlmErrorKind};

/// Numbers of a superblock, whose blocks' scales are small multiples of one.
const SUPERBLOCK: usize = 256;

/// How matrices are rounded: a type of ggml.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GgmlQuantization {
    name: &'static str,
    bits: u32,
    block: usize,
    method: RoundingMethod,
    /// Type of rows that are no whole superblocks.
    instead: &'static str,
    /// Type of the matrix of logits, whose errors are seen the most.
    last: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum RoundingMethod {
    /// Multiples of a scale from the negative half on; of the greatest number or, in whole bytes, of its magnitude.
    Multiples,
    /// Steps of a scale from an offset on.
    Steps,
    /// Multiples, whose scales are themselves multiples.
    NestedMultiples,
    /// Steps, whose scales and offsets are themselves multiples.
    NestedSteps,
}

const fn row(
    name: &'static str,
    bits: u32,
    block: usize,
    method: RoundingMethod,
    instead: &'static str,
    last: &'static str,
) -> GgmlQuantization {
    GgmlQuantization { name, bits, block, method, instead, last }
}

/// All types.
const QUANTIZATIONS: &[GgmlQuantization] = &[
    row("q8_0", 8, 32, RoundingMethod::Multiples, "q8_0", "q8_0"),
    row("q6_k", 6, 16, RoundingMethod::NestedMultiples, "q8_0", "q6_k"),
    row("q5_k", 5, 32, RoundingMethod::NestedSteps, "q5_1", "q6_k"),
    row("q5_1", 5, 32, RoundingMethod::Steps, "q5_1", "q6_k"),
    row("q5_0", 5, 32, RoundingMethod::Multiples, "q5_0", "q6_k"),
    row("q4_k", 4, 32, RoundingMethod::NestedSteps, "q5_0", "q6_k"),
    row("q4_1", 4, 32, RoundingMethod::Steps, "q4_1", "q6_k"),
    row("q4_0", 4, 32, RoundingMethod::Multiples, "q4_0", "q6_k"),
];

impl GgmlQuantization {
    /// The names of all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        QUANTIZATIONS.iter().map(|row| row.name)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    fn named(name: &str) -> Option<Self> {
        QUANTIZATIONS.iter().find(|row| row.name == name).copied()
    }

    fn nested(self) -> bool {
        matches!(self.method, RoundingMethod::NestedMultiples | RoundingMethod::NestedSteps)
    }

    /// The type for rows of so many numbers, if there is one.
    fn for_rows(self, columns: usize) -> Option<Self> {
        let own = if self.nested() && !columns.is_multiple_of(SUPERBLOCK) {
            Self::named(self.instead)?
        } else {
            self
        };
        (columns > 0 && columns.is_multiple_of(own.block)).then_some(own)
    }

    fn format(self) -> CodeFormat {
        let half = f32::from(1_u8 << (self.bits - 1));
        let meaning = match self.method {
            RoundingMethod::Multiples | RoundingMethod::NestedMultiples => CodeMeaning::Zero(half),
            RoundingMethod::Steps | RoundingMethod::NestedSteps => CodeMeaning::Offset,
        };
        CodeFormat::new(self.bits, self.block, meaning)
    }

    /// Takes a row apart; of nested types also into what scales and offsets are multiples of.
    fn round(self, x: &[f32], to: BlockRow<'_>, wholes: SuperScales<'_>) {
        let half = f32::from(1_u8 << (self.bits - 1));
        let most = 2.0 * half - 1.0;
        let BlockRow { codes, scales, offsets } = to;
        let blocks = x.chunks_exact(self.block).zip(codes.chunks_exact_mut(self.block));
        match self.method {
            RoundingMethod::Multiples => {
                for ((x, codes), scale) in blocks.zip(scales) {
                    let most = greatest(x);
                    // Bytes have room on both sides; the fewer bits of others reach further below.
                    let own = if self.bits == 8 { most.abs() / 127.0 } else { -most / half };
                    *scale = as_half(own);
                    multiples(x, *scale, half, codes);
                }
            }
            RoundingMethod::Steps => {
                for (((x, codes), scale), offset) in blocks.zip(scales).zip(offsets) {
                    let least = x.iter().copied().fold(f32::INFINITY, f32::min);
                    let greatest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                    (*scale, *offset) = (as_half((greatest - least) / most), as_half(least));
                    steps(x, *scale, *offset, most, codes);
                }
            }
            RoundingMethod::NestedMultiples => {
                let per = SUPERBLOCK / self.block;
                for (x, scale) in x.chunks_exact(self.block).zip(&mut *scales) {
                    *scale = best_scale(x, half);
                }
                for (scales, whole) in scales.chunks_mut(per).zip(wholes.scales) {
                    *whole = as_half(-greatest(scales) / 128.0);
                    let inverse = inverse(*whole);
                    for scale in scales {
                        *scale = *whole * (*scale * inverse).round_ties_even().clamp(-128.0, 127.0);
                    }
                }
                for ((x, codes), &mut scale) in blocks.zip(scales) {
                    multiples(x, scale, half, codes);
                }
            }
            RoundingMethod::NestedSteps => {
                let per = SUPERBLOCK / self.block;
                let own = scales.iter_mut().zip(&mut *offsets);
                for (x, (scale, offset)) in x.chunks_exact(self.block).zip(own) {
                    (*scale, *offset) = best_steps(x, most);
                }
                for (all, wholes) in
                    [(&mut *scales, wholes.scales), (&mut *offsets, wholes.offsets)]
                {
                    for (all, whole) in all.chunks_mut(per).zip(wholes) {
                        // As many bits as files of this type have for it.
                        *whole = as_half(greatest(all).abs() / 63.0);
                        let inverse = inverse(*whole);
                        for value in all {
                            *value =
                                *whole * (*value * inverse).round_ties_even().clamp(-63.0, 63.0);
                        }
                    }
                }
                for (((x, codes), &mut scale), &mut offset) in blocks.zip(scales).zip(offsets) {
                    steps(x, scale, offset, most, codes);
                }
            }
        }
    }
}

impl fmt::Display for GgmlQuantization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for GgmlQuantization {
    type Err = LlmError;

    fn from_str(name: &str) -> error::Result<Self> {
        Self::named(&name.to_ascii_lowercase()).ok_or_else(|| {
            let known: Vec<&str> = Self::names().collect();
            let known = known.join(", ");
            let text = format!("'{name}' found, expected one of {known}");
            LlmError::new(LlmErrorKind::Parameter, "quantization", text)
        })
    }
}

/// A matrix of floats that is rounded row by row, whenever a row is asked for.
#[derive(Debug)]
struct RoundedWeight {
    source: Arc<dyn BlockWeights>,
    to: GgmlQuantization,
}

/// A row taken apart, with all that may belong to it.
struct RoundedRow {
    codes: Vec<u8>,
    scales: Vec<f32>,
    offsets: Vec<f32>,
    super_scales: Vec<f32>,
    super_offsets: Vec<f32>,
}

impl RoundedWeight {
    fn row(&self, row: usize) -> Result<RoundedRow, OpError> {
        let columns = self.columns();
        let format = self.format();
        let mut x = vec![0.0; columns];
        self.source.dequantize_row(row, &mut x)?;
        let supers = if self.to.nested() { columns / SUPERBLOCK } else { 0 };
        let mut all = RoundedRow {
            codes: vec![0; columns],
            scales: vec![0.0; format.blocks(columns)],
            offsets: vec![0.0; format.offsets(columns)],
            super_scales: vec![0.0; supers],
            super_offsets: vec![0.0; supers],
        };
        let RoundedRow { codes, scales, offsets, super_scales, super_offsets } = &mut all;
        let wholes = SuperScales { scales: super_scales, offsets: super_offsets };
        self.to.round(&x, BlockRow { codes, scales, offsets }, wholes);
        Ok(all)
    }
}

/// Copies a part of a row to where it is wanted.
fn copy<T: Copy>(from: &[T], to: &mut [T]) -> Result<(), OpError> {
    if from.len() != to.len() {
        return Err(OpError::new(format!("room for {}, the row has {}", to.len(), from.len())));
    }
    to.copy_from_slice(from);
    Ok(())
}

impl BlockWeights for RoundedWeight {
    fn rows(&self) -> usize {
        self.source.rows()
    }

    fn columns(&self) -> usize {
        self.source.columns()
    }

    fn format(&self) -> CodeFormat {
        self.to.format()
    }

    fn size_bytes(&self) -> usize {
        self.source.size_bytes()
    }

    fn factors(&self) -> DataType {
        DataType::Fp16
    }

    fn unpack_row(&self, row: usize, to: BlockRow<'_>) -> Result<(), OpError> {
        let all = self.row(row)?;
        copy(&all.codes, to.codes)?;
        copy(&all.scales, to.scales)?;
        copy(&all.offsets, to.offsets)
    }

    fn superblock(&self) -> Option<usize> {
        self.to.nested().then_some(SUPERBLOCK)
    }

    fn super_scales(&self, row: usize, to: SuperScales<'_>) -> Result<(), OpError> {
        let all = self.row(row)?;
        copy(&all.super_scales, to.scales)?;
        if to.offsets.is_empty() {
            return Ok(());
        }
        copy(&all.super_offsets, to.offsets)
    }

    fn dequantize_row(&self, row: usize, out: &mut [f32]) -> Result<(), OpError> {
        let all = self.row(row)?;
        if out.len() != all.codes.len() {
            let text = format!("room for {} numbers, the row has {}", out.len(), all.codes.len());
            return Err(OpError::new(text));
        }
        let block = self.to.block;
        let meaning = self.format().meaning();
        let blocks = out.chunks_exact_mut(block).zip(all.codes.chunks_exact(block));
        for (at, ((out, codes), scale)) in blocks.zip(&all.scales).enumerate() {
            let offset = all.offsets.get(at).copied().unwrap_or(0.0);
            for (out, &code) in out.iter_mut().zip(codes) {
                *out = match meaning {
                    CodeMeaning::Zero(zero) => (f32::from(code) - zero) * scale,
                    _ => f32::from(code) * scale + offset,
                };
            }
        }
        Ok(())
    }
}

/// The names of matrices that give logits: in most checkpoints, and those that are also tables of tokens.
const LAST: &[&str] = &["lm_head.weight", "embed_tokens.weight", "wte.weight", "shared.weight"];

/// A checkpoint whose matrices of floats are rounded. Norms, biases and tables of tokens are not, and what
/// already is of few bits stays as it is.
pub struct RoundedCheckpoint<W> {
    weights: W,
    to: GgmlQuantization,
}

impl<W> fmt::Debug for RoundedCheckpoint<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quantized {{ to: {} }}", self.to)
    }
}

impl<W: CheckpointWeights> RoundedCheckpoint<W> {
    /// The weights of a checkpoint, rounded.
    pub fn new(weights: W, to: GgmlQuantization) -> Self {
        Self { weights, to }
    }

    fn rounded(&self, name: &str, source: Arc<dyn BlockWeights>) -> Arc<dyn BlockWeights> {
        if !matches!(source.format().meaning(), CodeMeaning::Float(_)) {
            return source;
        }
        let last = LAST.iter().any(|last| name.ends_with(last));
        let to = if last { GgmlQuantization::named(self.to.last) } else { Some(self.to) };
        match to.and_then(|to| to.for_rows(source.columns())) {
            Some(to) => Arc::new(RoundedWeight { source, to }),
            None => source,
        }
    }
}

impl<W: CheckpointWeights> CheckpointWeights for RoundedCheckpoint<W> {
    fn tensor(&self, name: &str) -> error::Result<Tensor> {
        self.weights.tensor(name)
    }

    fn blocks(&self, name: &str) -> error::Result<Option<Arc<dyn BlockWeights>>> {
        let source = match self.weights.blocks(name)? {
            Some(source) => Some(source),
            None => FloatMatrix::of(&self.weights.tensor(name)?),
        };
        // Floats that no type fits are products of floats.
        let fits = |matrix: &Arc<dyn BlockWeights>| {
            matrix.format().meaning() != CodeMeaning::Float(DataType::Fp32)
        };
        Ok(source.map(|source| self.rounded(name, source)).filter(fits))
    }

    fn turned_blocks(&self, name: &str) -> error::Result<Option<Arc<dyn BlockWeights>>> {
        let source = FloatMatrix::turned(&self.weights.tensor(name)?);
        let fits = |matrix: &Arc<dyn BlockWeights>| {
            matrix.format().meaning() != CodeMeaning::Float(DataType::Fp32)
        };
        Ok(source.map(|source| self.rounded(name, source)).filter(fits))
    }

    fn table(&self, name: &str) -> error::Result<Option<Arc<dyn BlockWeights>>> {
        self.weights.table(name)
    }

    fn release(&self) {
        self.weights.release();
    }

    fn names(&self) -> Vec<String> {
        self.weights.names()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers as weights have them: most of them small.
    fn numbers(count: usize) -> Vec<f32> {
        let mut state = 12_345_u32;
        let mut uniform = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from((state >> 16) as u16) / 65_536.0 - 0.5
        };
        (0..count).map(|_| (0..6).map(|_| uniform()).sum::<f32>() * 0.05).collect()
    }

    fn rounded(name: &str, shape: &[usize; 2], values: Vec<f32>) -> RoundedWeight {
        let source = FloatMatrix::of(&Tensor::from_vec(shape, values).unwrap()).unwrap();
        RoundedWeight {
            to: GgmlQuantization::named(name).unwrap().for_rows(shape[1]).unwrap(),
            source,
        }
    }

    #[test]
    fn fewer_bits_miss_by_more_and_none_by_much() {
        let values = numbers(4 * 512);
        let size: f32 = values.iter().map(|x| x * x).sum();
        let missed = |name: &str| {
            let matrix = rounded(name, &[4, 512], values.clone());
            let mut row = vec![0.0; 512];
            let rows = (0..4).map(|at| {
                matrix.dequantize_row(at, &mut row).unwrap();
                let pairs = row.iter().zip(&values[at * 512..]);
                pairs.map(|(found, x)| (found - x) * (found - x)).sum::<f32>()
            });
            (rows.sum::<f32>() / size).sqrt()
        };
        // Shares of the numbers' own size, somewhat above what the steps of each type leave.
        for (name, most) in [
            ("q8_0", 0.007),
            ("q6_k", 0.025),
            ("q5_k", 0.045),
            ("q5_1", 0.045),
            ("q5_0", 0.06),
            ("q4_k", 0.09),
            ("q4_1", 0.095),
            ("q4_0", 0.11),
        ] {
            let missed = missed(name);
            assert!(missed < most && missed > most / 4.0, "{name}: {missed}");
        }
    }

    #[test]
    fn scales_are_exactly_what_they_are_stored_as() {
        for row in QUANTIZATIONS {
            let matrix = rounded(row.name, &[2, 512], numbers(1024));
            let all = matrix.row(1).unwrap();
            let per = SUPERBLOCK / row.block;
            for (wholes, values) in
                [(&all.super_scales, &all.scales), (&all.super_offsets, &all.offsets)]
            {
                for (at, &value) in values.iter().enumerate() {
                    let Some(&whole) = wholes.get(at / per) else {
                        assert_eq!(as_half(value), value, "{}", row.name);
                        continue;
                    };
                    let times = (value / whole).round();
                    assert!((-128.0..=127.0).contains(&times), "{}: {times}", row.name);
                    assert_eq!((times * whole, as_half(whole)), (value, whole), "{}", row.name);
                }
            }
        }
    }

    #[test]
    fn rows_of_nothing_and_rows_of_one_number_stay_what_they_are() {
        for row in QUANTIZATIONS {
            for value in [0.0, 0.5, -0.5] {
                let matrix = rounded(row.name, &[1, 512], vec![value; 512]);
                let mut found = vec![f32::NAN; 512];
                matrix.dequantize_row(0, &mut found).unwrap();
                let near = |x: &f32| (x - value).abs() <= 0.01 * value.abs();
                assert!(found.iter().all(near), "{} {value}: {found:?}", row.name);
            }
        }
    }

    #[test]
    fn lengths_that_do_not_fit_take_another_type_or_none() {
        let of = |name: &str, columns| {
            GgmlQuantization::named(name).unwrap().for_rows(columns).map(GgmlQuantization::name)
        };
        assert_eq!(of("q4_k", 512), Some("q4_k"));
        assert_eq!(of("q4_k", 96), Some("q5_0"));
        assert_eq!(of("q6_k", 96), Some("q8_0"));
        assert_eq!(of("q8_0", 40), None);
        let error = "int3".parse::<GgmlQuantization>().unwrap_err().to_string();
        assert!(error.contains("quantization: 'int3' found, expected one of q8_0"), "{error}");
        assert_eq!("Q4_K".parse::<GgmlQuantization>().unwrap().name(), "q4_k");
    }
}
