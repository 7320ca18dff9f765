//! `GatherPacked`: rows of a table whose numbers lie in blocks of bytes, as floats.

use galatea_tensor::{DataType, Tensor};
use half::{bf16, f16};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext, onnx_data_type};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_type, from_floats};

/// How the numbers of a block lie in its bytes, by the names of ggml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackedFormat {
    /// FP32.
    F32,
    /// FP16.
    F16,
    /// BF16.
    Bf16,
    /// A factor and 32 numbers of 4 bits.
    Q4_0,
    /// A factor and 32 numbers of 5 bits.
    Q5_0,
    /// A factor and 32 numbers of 8 bits.
    Q8_0,
    /// Factors and 256 numbers of 5 bits.
    Q5K,
    /// Factors and 256 numbers of 6 bits.
    Q6K,
    /// A factor and 32 places in a table.
    Iq4Nl,
    /// Factors and 256 places in a table.
    Iq4Xs,
    /// A factor and 64 numbers of 2 bits.
    Q2_0,
}

/// A row of the table of formats.
struct FormatRow {
    /// The value of the attribute.
    number: i64,
    format: PackedFormat,
    /// Numbers of a block.
    count: usize,
    /// Bytes of a block.
    bytes: usize,
}

const fn format(number: i64, format: PackedFormat, count: usize, bytes: usize) -> FormatRow {
    FormatRow { number, format, count, bytes }
}

/// The formats that can be read.
const FORMATS: &[FormatRow] = &[
    format(0, PackedFormat::F32, 1, 4),
    format(1, PackedFormat::F16, 1, 2),
    format(2, PackedFormat::Q4_0, 32, 18),
    format(6, PackedFormat::Q5_0, 32, 22),
    format(8, PackedFormat::Q8_0, 32, 34),
    format(13, PackedFormat::Q5K, 256, 176),
    format(14, PackedFormat::Q6K, 256, 210),
    format(20, PackedFormat::Iq4Nl, 32, 18),
    format(23, PackedFormat::Iq4Xs, 256, 136),
    format(30, PackedFormat::Bf16, 1, 2),
    format(42, PackedFormat::Q2_0, 64, 18),
];

/// The values of `Iq4Nl` and `Iq4Xs`.
const PLACES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// `GatherPacked` of domain `com.microsoft`: an index outside the table picks its first row.
///
/// Inputs: the table `[V, bytes of a row]` and the indices. Output: the indices' shape and `K` behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatherPacked {
    /// How the numbers lie.
    pub format: PackedFormat,
    /// Numbers of a row.
    pub width: usize,
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Numbers of a block.
    pub block: usize,
    /// The type of the result.
    pub output_dtype: DataType,
}

impl GatherPacked {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let mut needed = |name: &'static str| {
            let found = context.attributes.int(name)?;
            found.ok_or_else(|| OpError::new(format!("attribute '{name}' is missing")))
        };
        let (number, width) = (needed("packed_type")?, needed("K")?);
        let width = bounds::length(width, "attribute 'K'")?;
        let output_dtype = onnx_data_type(context.attributes.int_or("output_dtype", 16)?)?;
        let allowed = |dtype| matches!(dtype, DataType::Fp32 | DataType::Fp16 | DataType::Bf16);
        expect_type("the output", output_dtype, allowed, "FP32, FP16 or BF16")?;
        let Some(row) = FORMATS.iter().find(|row| row.number == number) else {
            let known: Vec<i64> = FORMATS.iter().map(|row| row.number).collect();
            let text = format!("attribute 'packed_type' is {number}, expected one of {known:?}");
            return Err(OpError::new(text));
        };
        if width == 0 || !width.is_multiple_of(row.count) {
            let text = format!("attribute 'K' is {width}, expected a multiple of {}", row.count);
            return Err(OpError::new(text));
        }
        let row_bytes = (width / row.count).checked_mul(row.bytes);
        let row_bytes = row_bytes.ok_or_else(|| OpError::new("attribute 'K' is too large"))?;
        let block = row.count;
        Ok(Box::new(Self { format: row.format, width, row_bytes, block, output_dtype }))
    }

    fn check(&self, shape: &[Dim]) -> Result<(), OpError> {
        let fits = matches!(shape, [_, bytes] if bytes.known().is_none_or(|b| b == self.row_bytes));
        if fits {
            return Ok(());
        }
        let found: Vec<String> = shape.iter().map(Dim::to_string).collect();
        let expected = self.row_bytes;
        Err(OpError::new(format!("a table of shape {found:?}, expected [_, {expected}] bytes")))
    }
}

fn half_at(bytes: &[u8], at: usize) -> f64 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f64()
}

/// Appends the numbers of a block.
fn unpack(format: PackedFormat, block: &[u8], out: &mut Vec<f64>) {
    let low = |byte: &u8| f64::from(byte & 15);
    let high = |byte: &u8| f64::from(byte >> 4);
    match format {
        PackedFormat::F32 => {
            out.push(f32::from_le_bytes([block[0], block[1], block[2], block[3]]).into());
        }
        PackedFormat::F16 => out.push(half_at(block, 0)),
        PackedFormat::Bf16 => out.push(bf16::from_le_bytes([block[0], block[1]]).to_f64()),
        PackedFormat::Q4_0 => {
            let factor = half_at(block, 0);
            out.extend(block[2..].iter().map(|byte| (low(byte) - 8.0) * factor));
            out.extend(block[2..].iter().map(|byte| (high(byte) - 8.0) * factor));
        }
        PackedFormat::Q5_0 => {
            let factor = half_at(block, 0);
            let fifth = u32::from_le_bytes([block[2], block[3], block[4], block[5]]);
            let bit = |at: usize| f64::from(fifth >> at & 1) * 16.0 - 16.0;
            let codes = block[6..].iter().map(low).chain(block[6..].iter().map(high));
            out.extend(codes.enumerate().map(|(at, code)| (code + bit(at)) * factor));
        }
        PackedFormat::Q8_0 => {
            let factor = half_at(block, 0);
            out.extend(block[2..].iter().map(|&byte| f64::from(byte.cast_signed()) * factor));
        }
        PackedFormat::Q5K => unpack_q5k(block, out),
        PackedFormat::Q6K => unpack_q6k(block, out),
        PackedFormat::Iq4Nl => {
            let factor = half_at(block, 0);
            out.extend(places(&block[2..]).map(|place| place * factor));
        }
        PackedFormat::Iq4Xs => {
            let factor = half_at(block, 0);
            let upper = u16::from_le_bytes([block[2], block[3]]);
            for (group, codes) in block[8..].chunks_exact(16).enumerate() {
                let lower = block[4 + group / 2] >> (4 * (group % 2)) & 15;
                let upper = upper >> (2 * group) & 3;
                let scale = f64::from(lower) + f64::from(upper) * 16.0 - 32.0;
                out.extend(places(codes).map(|place| place * factor * scale));
            }
        }
        PackedFormat::Q2_0 => {
            let factor = half_at(block, 0);
            for byte in &block[2..] {
                out.extend((0..4).map(|at| (f64::from(byte >> (2 * at) & 3) - 1.0) * factor));
            }
        }
    }
}

/// The values of places of 4 bits, those of the low halves first.
fn places(codes: &[u8]) -> impl Iterator<Item = f64> + '_ {
    let low = codes.iter().map(|byte| byte & 15);
    low.chain(codes.iter().map(|byte| byte >> 4)).map(|code| f64::from(PLACES[usize::from(code)]))
}

fn unpack_q5k(block: &[u8], out: &mut Vec<f64>) {
    let (factor, least) = (half_at(block, 0), half_at(block, 2));
    let (scales, high, low) = (&block[4..16], &block[16..48], &block[48..176]);
    for group in 0..8 {
        // Six bits each: the upper ones of the last four groups lie above the first ones'.
        let (scale, offset) = if group < 4 {
            (scales[group] & 63, scales[group + 4] & 63)
        } else {
            let lower = scales[group + 4];
            let scale = lower & 15 | scales[group - 4] >> 6 << 4;
            (scale, lower >> 4 | scales[group] >> 6 << 4)
        };
        let codes = &low[group / 2 * 32..][..32];
        for (code, high) in codes.iter().zip(high) {
            let code = code >> (4 * (group % 2)) & 15 | (high >> group & 1) << 4;
            let value = factor * f64::from(scale) * f64::from(code);
            out.push(value - least * f64::from(offset));
        }
    }
}

fn unpack_q6k(block: &[u8], out: &mut Vec<f64>) {
    let (low, high, scales) = (&block[..128], &block[128..192], &block[192..208]);
    let factor = half_at(block, 208);
    for at in 0..256 {
        let (half, within) = (at / 128, at % 128);
        let (quarter, lane) = (within / 32, within % 32);
        let low = low[half * 64 + (quarter % 2) * 32 + lane] >> (4 * (quarter / 2)) & 15;
        let high = high[half * 32 + lane] >> (2 * quarter) & 3;
        let scale = scales[half * 8 + within / 16].cast_signed();
        out.push((f64::from(low | high << 4) - 32.0) * f64::from(scale) * factor);
    }
}

impl Operator for GatherPacked {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        expect_type("the table", data.dtype, |dtype| dtype == DataType::Uint8, "UINT8")?;
        if let Some(shape) = &data.shape {
            self.check(shape)?;
        }
        let shape = inputs.required(1)?.shape.as_ref();
        let shape = shape.map(|dims| [&dims[..], &[Dim::Known(self.width)]].concat());
        Ok(vec![Fact::shaped(self.output_dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let dims: Vec<Dim> = data.shape().iter().copied().map(Dim::Known).collect();
        self.check(&dims)?;
        let bytes = data.to_vec::<u8>()?;
        let rows = data.shape()[0];
        let indices = inputs.required(1)?;
        let shape = [indices.shape(), &[self.width]].concat();
        let mut result = Vec::with_capacity(bounded(DataType::Fp64, &shape)?);
        for index in indices.to_i64_vec()? {
            let row = usize::try_from(index).ok().filter(|&row| row < rows).unwrap_or(0);
            let row = bytes.get(row * self.row_bytes..(row + 1) * self.row_bytes);
            let row = row.ok_or_else(|| OpError::new("the table has no rows"))?;
            let blocks = self.width / self.block;
            for block in row.chunks_exact(self.row_bytes / blocks) {
                unpack(self.format, block, &mut result);
            }
        }
        Ok(vec![from_floats(self.output_dtype, &shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, one, run, tensor};
    use galatea_tensor::Tensor;

    #[test]
    fn rows_are_unpacked_and_indices_outside_pick_the_first() {
        let mut row = vec![0_u8; 18];
        (row[1], row[2]) = (0x3c, 0xf7);
        let table = Tensor::from_vec(&[1, 18], row).unwrap();
        let picks = tensor(&[1, 2], &[0_i64, 7]);
        let list = attributes([("packed_type", int(2)), ("K", int(32)), ("output_dtype", int(1))]);
        let found = one("com.microsoft:GatherPacked", 1, &list, &[&table, &picks]);
        assert_eq!(found.shape(), [1, 2, 32]);
        let all = found.to_vec::<f32>().unwrap();
        assert_eq!((all[0], all[1], all[16]), (-1.0, -8.0, 7.0));
        assert_eq!(all[..32], all[32..]);
        let other = attributes([("packed_type", int(16)), ("K", int(256))]);
        let inputs = [Some(&table), Some(&picks)];
        let error = run("com.microsoft:GatherPacked", 1, &other, &inputs, 1).unwrap_err();
        assert!(error.contains("packed_type"), "{error}");
    }
}
