//! `QMoE`: a mixture of experts with quantized weights.

use galatea_tensor::{DataType, Tensor};

use super::moe::{ExpertActivation, ExpertLayer, ExpertRouting, RoutedExpert};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_float, expect_type, floats, from_floats};

/// Inputs that the operator takes for types of weights or layers which no CPU computes.
const OTHER_INPUTS: [usize; 11] = [8, 9, 10, 13, 15, 16, 17, 18, 19, 20, 21];

/// Quantization of the weights of one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightCodes {
    /// Bits of a weight: 2, 3, 4 or 8.
    pub bits: usize,
    /// Weights of a row that share a scale; all of the row if absent.
    pub block: Option<usize>,
}

/// `QMoE` of domain `com.microsoft`.
///
/// Inputs: tokens `[…, hidden]`, scores of experts `[tokens, experts]`, then for both layers their codes
/// `[experts, rows, bytes]`, the scales of rows or blocks and optionally biases. Numbers that stand for zero are inputs
/// 11 and 12, and weights of the chosen experts input 14. Output: tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantizedExperts {
    /// Choice of experts.
    pub routing: ExpertRouting,
    /// Function between the layers.
    pub activation: ExpertActivation,
    /// Codes of the first and the second layer.
    pub codes: [WeightCodes; 2],
}

impl QuantizedExperts {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let routing = ExpertRouting::parse(context)?;
        let activation = ExpertActivation::parse(context)?;
        let attributes = &mut context.attributes;
        // How exact products are at least: here they always are.
        attributes.ignore("accuracy_level");
        attributes.ignore("fc3_expert_weight_bits");
        attributes.choice("quant_type", &["int"], 0)?;
        if attributes.int_or("weights_prepacked", -1)? == 1 {
            return Err(OpError::new(
                "attribute 'weights_prepacked' is 1: packed for another device",
            ));
        }
        let block = match attributes.int_or("block_size", 0)? {
            size if size <= 0 => None,
            size => Some(bounds::length(size, "attribute 'block_size'")?),
        };
        let all = attributes.int_or("expert_weight_bits", 4)?;
        let mut codes = |name: &'static str| match attributes.int(name)?.unwrap_or(all) {
            bits @ (2 | 3 | 4 | 8) => Ok(WeightCodes { bits: bounds::length(bits, name)?, block }),
            bits => Err(OpError::new(format!("weights of {bits} bits, expected 2, 3, 4 or 8"))),
        };
        let codes = [codes("fc1_expert_weight_bits")?, codes("fc2_expert_weight_bits")?];
        Ok(Box::new(Self { routing, activation, codes }))
    }
}

/// Numbers of so many bits, packed with the lowest first, of which each row begins at a byte.
struct ExpertCodes {
    bytes: Vec<u8>,
    row_bytes: usize,
    bits: usize,
}

impl ExpertCodes {
    /// Reads codes of which a row has so many.
    fn read(tensor: &Tensor, bits: usize, rows: usize, columns: usize) -> Result<Self, OpError> {
        let row_bytes = (columns * bits).div_ceil(8);
        let bytes = tensor.to_vec::<u8>()?;
        if bytes.len() != rows.saturating_mul(row_bytes) {
            let text = format!("codes of shape {:?}", tensor.shape());
            return Err(OpError::new(format!("{text} for {rows} rows of {columns} codes")));
        }
        Ok(Self { bytes, row_bytes, bits })
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        let bit = column * self.bits;
        let byte = |at: usize| self.bytes.get(row * self.row_bytes + at).copied().unwrap_or(0);
        // Codes of three bits cross bytes.
        let pair = u16::from_le_bytes([byte(bit / 8), byte(bit / 8 + 1)]);
        f64::from((pair >> (bit % 8)) & ((1 << self.bits) - 1))
    }
}

/// Inputs of one layer.
struct QuantizedLayer<'a> {
    codes: &'a Tensor,
    scales: &'a Tensor,
    zeros: Option<&'a Tensor>,
    bias: Option<&'a Tensor>,
}

impl WeightCodes {
    /// Reads the weights of all experts.
    fn layer(
        self,
        layer: &QuantizedLayer<'_>,
        experts: usize,
        columns: usize,
    ) -> Result<ExpertLayer, OpError> {
        let rows = match *layer.codes.shape() {
            [count, rows, _] if count == experts => rows,
            _ => {
                let text = format!("codes of shape {:?}", layer.codes.shape());
                return Err(OpError::new(format!("{text} for {experts} experts")));
            }
        };
        let block = self.block.unwrap_or(columns).max(1);
        if !columns.is_multiple_of(block) {
            return Err(OpError::new(format!("blocks of {block} weights in rows of {columns}")));
        }
        let (blocks, all) = (columns / block, experts.saturating_mul(rows));
        let count = bounded(DataType::Fp64, &[all, columns])?;
        let codes = ExpertCodes::read(layer.codes, self.bits, all, columns)?;
        let scales = floats(layer.scales)?;
        if scales.len() != all * blocks {
            let text = format!("scales of shape {:?}", layer.scales.shape());
            return Err(OpError::new(format!("{text}, expected {blocks} of each of {all} rows")));
        }
        // Zeros of rows lie along them, those of blocks along the blocks of each row.
        let (groups, zeros) = if self.block.is_some() { (all, blocks) } else { (experts, rows) };
        let packed = |zero: &Tensor| ExpertCodes::read(zero, self.bits, groups, zeros);
        let packed = layer.zeros.map(packed).transpose()?;
        let middle = f64::from(1_u8 << (self.bits - 1));
        let weight = |at: usize| {
            let (row, column) = (at / columns, at % columns);
            let group = row * blocks + column / block;
            let zero = packed.as_ref().map_or(middle, |all| all.at(group / zeros, group % zeros));
            (codes.at(row, column) - zero) * scales[group]
        };
        let weights = (0..count).map(weight).collect();
        ExpertLayer::of(weights, layer.bias, [experts, rows, columns])
    }
}

impl Operator for QuantizedExperts {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        let mut others = OTHER_INPUTS.into_iter();
        if let Some(index) = others.find(|&index| inputs.optional(index).is_some()) {
            let text = "is of layers or types of weights that no CPU computes";
            return Err(OpError::new(format!("input {index} {text}")));
        }
        for index in [2, 5] {
            let codes = inputs.required(index)?.dtype;
            expect_type("codes of weights", codes, |dtype| dtype == DataType::Uint8, "UINT8")?;
        }
        Ok(vec![Fact::shaped(x.dtype, x.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let scores = inputs.required(1)?;
        let (hidden, tokens) = match x.shape().split_last() {
            Some((&hidden, outer)) => (hidden, outer.iter().product::<usize>()),
            None => return Err(OpError::new("a token without axes")),
        };
        let experts = match *scores.shape() {
            [rows, experts] if rows == tokens && experts > 0 => experts,
            _ => {
                let text = format!("scores of shape {:?} for {tokens} tokens", scores.shape());
                return Err(OpError::new(text));
            }
        };
        let mixing = inputs.optional(14);
        if let Some(mixing) = mixing
            && mixing.shape() != scores.shape()
        {
            return Err(OpError::new(format!("weights of shape {:?}", mixing.shape())));
        }
        let layer = |codes: usize, zeros: usize| -> Result<QuantizedLayer<'_>, OpError> {
            Ok(QuantizedLayer {
                codes: inputs.required(codes)?,
                scales: inputs.required(codes + 1)?,
                bias: inputs.optional(codes + 2),
                zeros: inputs.optional(zeros),
            })
        };
        let first = self.codes[0].layer(&layer(2, 11)?, experts, hidden)?;
        let inner = first.rows() / self.activation.fusion();
        let second = self.codes[1].layer(&layer(5, 12)?, experts, inner)?;
        if second.rows() != hidden || !first.rows().is_multiple_of(self.activation.fusion()) {
            return Err(OpError::new(format!("experts give {} of {hidden}", second.rows())));
        }
        let mut result = vec![0.0; bounded(DataType::Fp64, x.shape())?];
        let (all, scores) = (floats(x)?, floats(scores)?);
        let mixing = mixing.map(floats).transpose()?;
        for token in 0..tokens {
            let x = &all[token * hidden..(token + 1) * hidden];
            let sums = &mut result[token * hidden..(token + 1) * hidden];
            let own = token * experts..(token + 1) * experts;
            let mixing = mixing.as_ref().map(|all| &all[own.clone()]);
            for RoutedExpert { index, weight } in self.routing.mixed(&scores[own], mixing) {
                let inside = self.activation.apply(first.apply(index, x));
                let outputs = second.apply(index, &inside);
                sums.iter_mut().zip(outputs).for_each(|(sum, y)| *sum += weight * y);
            }
        }
        Ok(vec![from_floats(x.dtype(), x.shape(), result)?])
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::Tensor;

    use crate::ops::testing::{attributes, int, parse, run, tensor, text};

    const NAME: &str = "com.microsoft:QMoE";
    const EXPERTS: usize = 3;
    const WIDTH: usize = 16;

    #[allow(clippy::cast_possible_truncation, reason = "codes are the low bytes")]
    fn codes(rows: usize, bits: usize, pattern: [usize; 2]) -> Tensor {
        let columns = WIDTH * bits / 8;
        let code = |at: usize| (at * pattern[0] + pattern[1]) as u8;
        let all: Vec<u8> = (0..EXPERTS * rows * columns).map(code).collect();
        tensor(&[EXPERTS, rows, columns], &all)
    }

    #[allow(clippy::cast_precision_loss, reason = "numbers below 16")]
    fn scales(rows: usize, cycle: usize, blocks: bool) -> Tensor {
        let scale = |at: usize| ((at % cycle + 1) as f32) / 64.0;
        let all: Vec<f32> = (0..EXPERTS * rows).map(scale).collect();
        let shape = [EXPERTS, rows, 1];
        tensor(if blocks { &shape } else { &shape[..2] }, &all)
    }

    fn zeros(rows: usize, pattern: [usize; 2]) -> Tensor {
        let zero = |at: usize| u8::try_from((at * pattern[0] + pattern[1]) % 256 % 16).unwrap();
        let all: Vec<u8> = (0..EXPERTS * rows).map(zero).collect();
        tensor(&[EXPERTS, rows, 1], &all)
    }

    struct ExpertCase {
        activation: &'static str,
        bits: usize,
        block: bool,
        has_zeros: bool,
        is_mixed: bool,
        first: [f32; 3],
        sum: f32,
    }

    fn check(case: &ExpertCase) {
        #[allow(clippy::cast_precision_loss, reason = "numbers below 8")]
        let x: Vec<f32> = (0..2 * WIDTH).map(|at| ((at % 7) as f32 - 3.0) / 4.0).collect();
        let x = tensor(&[2, WIDTH], &x);
        let scores = tensor(&[2, 3], &[0.5_f32, 1.0, -1.0, 2.0, 0.0, 1.5]);
        let mixing = tensor(&[2, 3], &[0.1_f32, 0.2, 0.3, 0.4, 0.5, 0.6]);
        let rows = if case.activation == "swiglu" { 2 * WIDTH } else { WIDTH };
        let (first, second) = (codes(rows, case.bits, [37, 11]), codes(WIDTH, case.bits, [53, 5]));
        let (scale_1, scale_2) = (scales(rows, 5, case.block), scales(WIDTH, 3, case.block));
        let (zero_1, zero_2) = (zeros(rows, [3, 6]), zeros(WIDTH, [5, 4]));
        let mut list = attributes([
            ("k", int(2)),
            ("expert_weight_bits", int(i64::try_from(case.bits).unwrap())),
            ("activation_type", text(case.activation)),
            ("swiglu_fusion", int(i64::from(case.activation == "swiglu"))),
        ]);
        if case.block {
            list.insert("block_size".to_owned(), int(16));
        }
        let given = |tensor, is_given: bool| Some(tensor).filter(|_| is_given);
        let inputs = [
            Some(&x),
            Some(&scores),
            Some(&first),
            Some(&scale_1),
            None,
            Some(&second),
            Some(&scale_2),
            None,
            None,
            None,
            None,
            given(&zero_1, case.has_zeros),
            given(&zero_2, case.has_zeros),
            None,
            given(&mixing, case.is_mixed),
        ];
        let found = run(NAME, 1, &list, &inputs, 1).unwrap().remove(0).to_vec::<f32>().unwrap();
        for (found, expected) in found.iter().zip(case.first) {
            let error = (found - expected).abs();
            assert!(error < 2e-5 * expected.abs().max(1.0), "{}: {found}", case.activation);
        }
        let sum: f32 = found.iter().sum();
        assert!((sum - case.sum).abs() < 2e-3, "{} of {} bits: {sum}", case.activation, case.bits);
    }

    // Expected values are those of ONNX Runtime.
    #[test]
    fn codes_of_each_width_are_weights_of_experts() {
        for (activation, bits, block, has_zeros, is_mixed, first, sum) in [
            (
                "silu",
                4,
                false,
                false,
                false,
                [0.049_581_09, 0.061_543_837, -0.009_743_04],
                0.861_324_7,
            ),
            ("relu", 8, true, false, false, [10.989_632, -144.055_57, -77.057_83], -38.160_614),
            (
                "silu",
                4,
                true,
                true,
                false,
                [0.121_569_26, 0.002_382_196_5, -0.091_954],
                1.136_822_8,
            ),
            (
                "silu",
                2,
                false,
                false,
                true,
                [0.000_109_674, -0.000_953_013_9, 0.000_918_43],
                0.180_680_78,
            ),
            (
                "swiglu",
                4,
                false,
                false,
                false,
                [0.011_148_17, 0.030_955_244, 0.043_348_733],
                1.286_586_5,
            ),
        ] {
            check(&ExpertCase { activation, bits, block, has_zeros, is_mixed, first, sum });
        }
    }

    #[test]
    fn codes_that_no_cpu_reads_are_refused() {
        for (name, value, text) in [
            ("expert_weight_bits", int(5), "weights of 5 bits"),
            ("weights_prepacked", int(1), "packed for another device"),
            ("quant_type", text("fp8"), "quant_type"),
        ] {
            let list = attributes([(name, value)]);
            let refused = parse(NAME, 1, &list, 6, 1).map(drop).unwrap_err();
            assert!(refused.contains(text), "{refused}");
        }
    }
}
