//! Several residual streams side by side: `BranchwiseRMSNorm`, `HyperConnectionPreMix`, `HyperConnectionPostMix`.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::{expect_float, floats, from_floats};

/// How streams lie in a tensor: `[…, branches, width]`, or `[…, branches · width]` with a given number of branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResidualLayout {
    branches: Option<usize>,
}

/// Lengths of streams.
struct StreamLengths {
    /// Positions before the streams.
    prefix: Vec<usize>,
    branches: usize,
    width: usize,
}

impl ResidualLayout {
    fn parse(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        let found = context.attributes.int_or("num_branches", 0)?;
        let found = bounds::length(found, "attribute 'num_branches'")?;
        Ok(Self { branches: Some(found).filter(|&count| count > 0) })
    }

    fn lengths(self, shape: &[usize]) -> Result<StreamLengths, OpError> {
        let lengths = match (self.branches, shape) {
            (Some(branches), [prefix @ .., width]) if width.is_multiple_of(branches) => {
                StreamLengths { prefix: prefix.to_vec(), branches, width: width / branches }
            }
            (None, [prefix @ .., branches, width]) => {
                StreamLengths { prefix: prefix.to_vec(), branches: *branches, width: *width }
            }
            (branches, shape) => {
                let text = format!("streams of shape {shape:?} in {branches:?} branches");
                return Err(OpError::new(text));
            }
        };
        match lengths.branches > 0 && lengths.width > 0 {
            true => Ok(lengths),
            false => Err(OpError::new(format!("streams of shape {shape:?} are empty"))),
        }
    }

    /// Lengths of one stream: `[…, width]`.
    fn reduced(self, dims: &[Dim]) -> Result<Vec<Dim>, OpError> {
        match (self.branches, dims) {
            (Some(branches), [prefix @ .., width]) => {
                let width = width.known().map(|width| width / branches);
                let width = width.map_or(Dim::Unknown, Dim::Known);
                Ok([prefix, &[width]].concat())
            }
            (None, [prefix @ .., _, width]) => Ok([prefix, std::slice::from_ref(width)].concat()),
            _ => Err(OpError::new(format!("streams of {} axes", dims.len()))),
        }
    }
}

impl StreamLengths {
    fn reduced(&self) -> Vec<usize> {
        [&self.prefix[..], &[self.width]].concat()
    }

    /// Reads a tensor of one number for each branch, or for each element: `[…, branches]`, `[…, branches, 1]`,
    /// `[…, branches, width]`, and `[…, branches · width]` where streams lie so.
    fn gates(&self, of: &Tensor, layout: ResidualLayout) -> Result<GateNumbers, OpError> {
        let suffix = of.shape().strip_prefix(&self.prefix[..]);
        let (branches, width) = (self.branches, self.width);
        let each_element = match suffix {
            Some(&[found]) | Some(&[found, 1]) if found == branches => false,
            Some(&[found, inner]) if (found, inner) == (branches, width) => true,
            Some(&[found]) if layout.branches.is_some() && found == branches * width => true,
            _ => {
                let (found, prefix) = (of.shape(), &self.prefix);
                let text = format!("gates of shape {found:?} for {branches} branches of {width}");
                return Err(OpError::new(format!("{text} behind {prefix:?}")));
            }
        };
        Ok(GateNumbers { values: floats(of)?, width: if each_element { width } else { 1 } })
    }
}

/// Numbers of gates.
struct GateNumbers {
    values: Vec<f64>,
    /// Numbers of a branch.
    width: usize,
}

impl GateNumbers {
    fn get(&self, branch: usize, element: usize) -> f64 {
        self.values[branch * self.width + element.min(self.width - 1)]
    }
}

/// `BranchwiseRMSNorm` of domain `com.microsoft`: each stream over the root of its mean square.
///
/// Inputs: streams, and optionally a scale `[width]`, `[branches · width]` or `[branches, width]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BranchwiseRmsNorm {
    layout: ResidualLayout,
    /// Added to the mean square.
    pub epsilon: f32,
}

impl BranchwiseRmsNorm {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let epsilon = context.attributes.float_or("epsilon", 1e-5)?;
        Ok(Box::new(Self { layout: ResidualLayout::parse(context)?, epsilon }))
    }
}

impl Operator for BranchwiseRmsNorm {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        inputs.optional(1).map_or(Ok(()), |scale| expect_float(scale.dtype))?;
        if let Some(dims) = &x.shape {
            self.layout.reduced(dims)?;
        }
        Ok(vec![Fact::shaped(x.dtype, x.shape.clone())])
    }

    #[allow(clippy::cast_precision_loss, reason = "a count of elements divides their sum")]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let lengths = self.layout.lengths(x.shape())?;
        let StreamLengths { branches, width, .. } = lengths;
        let scale = match inputs.optional(1) {
            None => vec![1.0; width],
            Some(scale) => match *scale.shape() {
                [len] if len == width || len == branches * width => floats(scale)?,
                [a, b] if (a, b) == (branches, width) => floats(scale)?,
                _ => {
                    let text = format!("a scale of shape {:?} for", scale.shape());
                    return Err(OpError::new(format!("{text} {branches} branches of {width}")));
                }
            },
        };
        let mut all = floats(x)?;
        for (row, scale) in all.chunks_mut(width).zip(scale.chunks(width).cycle()) {
            let mean = row.iter().map(|x| x * x).sum::<f64>() / width as f64;
            let inverse = (mean + f64::from(self.epsilon)).sqrt().recip();
            row.iter_mut().zip(scale).for_each(|(x, scale)| *x = *x * inverse * scale);
        }
        Ok(vec![from_floats(x.dtype(), x.shape(), all)?])
    }
}

/// `HyperConnectionPreMix` of domain `com.microsoft`: the sum of all streams, each with its gate.
///
/// Inputs: streams and gates. Output: one stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamPreMix {
    layout: ResidualLayout,
    /// The factor of the sum.
    pub scale: f32,
}

impl StreamPreMix {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let scale = context.attributes.float_or("reduction_scale", 1.0)?;
        Ok(Box::new(Self { layout: ResidualLayout::parse(context)?, scale }))
    }
}

impl Operator for StreamPreMix {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        expect_float(inputs.required(1)?.dtype)?;
        let shape = x.shape.as_ref().map(|dims| self.layout.reduced(dims)).transpose()?;
        Ok(vec![Fact::shaped(x.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let lengths = self.layout.lengths(x.shape())?;
        let gates = lengths.gates(inputs.required(1)?, self.layout)?;
        let (branches, width) = (lengths.branches, lengths.width);
        let mut sums = vec![0.0; bounds::bounded(x.dtype(), &lengths.reduced())?];
        for (at, stream) in floats(x)?.chunks(width).enumerate() {
            let row = at / branches * width;
            for (element, value) in stream.iter().enumerate() {
                sums[row + element] += value * gates.get(at, element);
            }
        }
        sums.iter_mut().for_each(|sum| *sum *= f64::from(self.scale));
        Ok(vec![from_floats(x.dtype(), &lengths.reduced(), sums)?])
    }
}

/// `HyperConnectionPostMix` of domain `com.microsoft`: streams, mixed with each other, and what a block gives, added to
/// each of them with its gate.
///
/// Inputs: streams, what the block gives `[…, width]`, gates, and optionally the share of each stream (the first axis)
/// in each other `[…, branches, branches]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPostMix {
    layout: ResidualLayout,
}

impl StreamPostMix {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { layout: ResidualLayout::parse(context)? }))
    }
}

/// Streams of one position, mixed by shares `[branches, branches]`.
fn mixed(streams: &[f64], shares: &[f64], width: usize) -> Vec<f64> {
    let branches = streams.len() / width.max(1);
    let mut all = vec![0.0; streams.len()];
    for (from, stream) in streams.chunks(width.max(1)).enumerate() {
        for (to, sum) in all.chunks_mut(width.max(1)).enumerate() {
            let share = shares[from * branches + to];
            sum.iter_mut().zip(stream).for_each(|(sum, value)| *sum += share * value);
        }
    }
    all
}

impl Operator for StreamPostMix {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        expect_float(inputs.required(1)?.dtype)?;
        expect_float(inputs.required(2)?.dtype)?;
        inputs.optional(3).map_or(Ok(()), |shares| expect_float(shares.dtype))?;
        if let Some(dims) = &x.shape {
            self.layout.reduced(dims)?;
        }
        Ok(vec![Fact::shaped(x.dtype, x.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let (x, block) = (inputs.required(0)?, inputs.required(1)?);
        let lengths = self.layout.lengths(x.shape())?;
        let (branches, width) = (lengths.branches, lengths.width);
        let expect = |tensor: &Tensor, expected: Vec<usize>, what: &str| {
            if tensor.shape() == expected {
                return Ok(());
            }
            let found = tensor.shape();
            Err(OpError::new(format!("{what} of shape {found:?}, expected {expected:?}")))
        };
        expect(block, lengths.reduced(), "what the block gives is")?;
        let gates = lengths.gates(inputs.required(2)?, self.layout)?;
        let mut all = floats(x)?;
        if let Some(shares) = inputs.optional(3) {
            let expected = [&lengths.prefix[..], &[branches, branches]].concat();
            expect(shares, expected, "shares are")?;
            let shares = floats(shares)?;
            let rows = all.chunks(branches * width).zip(shares.chunks(branches * branches));
            all = rows.flat_map(|(streams, shares)| mixed(streams, shares, width)).collect();
        }
        let block = floats(block)?;
        for (at, stream) in all.chunks_mut(width).enumerate() {
            let row = at / branches * width;
            for (element, value) in stream.iter_mut().enumerate() {
                *value += gates.get(at, element) * block[row + element];
            }
        }
        Ok(vec![from_floats(x.dtype(), x.shape(), all)?])
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::Tensor;

    use crate::AttributeValue;
    use crate::ops::testing::{attributes, int, one, run, tensor};

    #[test]
    fn streams_are_normalised_mixed_and_added_to() {
        let x = tensor(&[1, 2, 2], &[3.0_f32, 4.0, 0.0, 2.0]);
        let flat = tensor(&[1, 4], &[3.0_f32, 4.0, 0.0, 2.0]);
        let two = || ("num_branches", int(2));
        let exact = ("epsilon", AttributeValue::Float(0.0));
        let scale = Tensor::vector(vec![1.0_f32, 1.0, 1.0, 2.0]);
        let name = "com.microsoft:BranchwiseRMSNorm";
        let found = one(name, 1, &attributes([exact, two()]), &[&flat, &scale]);
        let root = 12.5_f32.sqrt();
        let expected = [3.0 / root, 4.0 / root, 0.0, 2.0 * 2.0_f32.sqrt()];
        for (found, expected) in found.to_vec::<f32>().unwrap().iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
        let gates = tensor(&[1, 2], &[1.0_f32, -1.0]);
        let name = "com.microsoft:HyperConnectionPreMix";
        let half = attributes([("reduction_scale", AttributeValue::Float(0.5))]);
        assert_eq!(one(name, 1, &half, &[&x, &gates]), tensor(&[1, 2], &[1.5_f32, 1.0]));
        let each = tensor(&[1, 4], &[1.0_f32, 0.0, 0.0, 1.0]);
        let found = one(name, 1, &attributes([two()]), &[&flat, &each]);
        assert_eq!(found, tensor(&[1, 2], &[3.0_f32, 2.0]));
        assert!(run(name, 1, &attributes([]), &[Some(&x), Some(&each)], 1).is_err());
        let block = tensor(&[1, 2], &[10.0_f32, 20.0]);
        let name = "com.microsoft:HyperConnectionPostMix";
        let found = one(name, 1, &attributes([]), &[&x, &block, &gates]);
        assert_eq!(found, tensor(&[1, 2, 2], &[13.0_f32, 24.0, -10.0, -18.0]));
        let shares = tensor(&[1, 2, 2], &[0.0_f32, 1.0, 2.0, 0.0]);
        let found = one(name, 1, &attributes([]), &[&x, &block, &gates, &shares]);
        assert_eq!(found, tensor(&[1, 2, 2], &[10.0_f32, 24.0, -7.0, -16.0]));
        let inputs = [Some(&x), Some(&gates), Some(&gates), Some(&gates)];
        assert!(run(name, 1, &attributes([]), &inputs, 1).is_err());
    }
}
