//! `EngramGate`: how much of a remembered value streams take.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{expect_float, floats, from_floats};

/// Least product under the root of a gate.
const LEAST: f64 = 1e-6;

/// `EngramGate` of domain `com.microsoft`.
///
/// Inputs: keys and streams `[B, S, C, H]`, values `[B, S, H]`, scales `[C, H]` of keys and of streams, and `[C, H]` of
/// the second output. Outputs: values times gates `[B, S, C, H]`, and the same over the root of their mean square.
///
/// A gate is the sigmoid of the signed root of the product of a key and a stream, both over the roots of their mean
/// squares, by the root of their length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngramGate {
    /// Added to mean squares.
    pub epsilon: f32,
    outputs: usize,
}

impl EngramGate {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let epsilon = context.attributes.float_or("epsilon", 1e-5)?;
        Ok(Box::new(Self { epsilon, outputs: context.outputs }))
    }

    #[allow(clippy::cast_precision_loss, reason = "a count of elements divides their sum")]
    fn inverse_root(&self, row: &[f64]) -> f64 {
        let mean = row.iter().map(|x| x * x).sum::<f64>() / row.len().max(1) as f64;
        (mean + f64::from(self.epsilon)).sqrt().recip()
    }
}

/// Inputs as numbers, each of its shape.
struct EngramInputs<'a>(OperatorInputs<'a, Tensor>);

impl EngramInputs<'_> {
    /// The numbers of an input.
    fn read(&self, at: usize, shape: &[usize]) -> Result<Vec<f64>, OpError> {
        let tensor = self.0.required(at)?;
        if tensor.shape() == shape {
            return floats(tensor);
        }
        let found = tensor.shape();
        Err(OpError::new(format!("input {at} has shape {found:?}, expected {shape:?}")))
    }
}

impl Operator for EngramGate {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        for at in [0, 2, 3, 4] {
            expect_float(inputs.required(at)?.dtype)?;
        }
        if self.outputs > 1 {
            inputs.required(5)?;
        }
        let streams = inputs.required(1)?;
        expect_float(streams.dtype)?;
        Ok(vec![Fact::shaped(streams.dtype, streams.shape.clone()); self.outputs])
    }

    #[allow(clippy::cast_precision_loss, reason = "a length divides a sum")]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let streams = inputs.required(1)?;
        let &[batch, length, branches, width] = streams.shape() else {
            return Err(OpError::new(format!("streams of {} axes, expected 4", streams.rank())));
        };
        let given = EngramInputs(inputs);
        let each = [branches, width];
        let keys = given.read(0, streams.shape())?;
        let all = floats(streams)?;
        let values = given.read(2, &[batch, length, width])?;
        let (key_scales, scales) = (given.read(3, &each)?, given.read(4, &each)?);
        let last_scales = if self.outputs > 1 { given.read(5, &each)? } else { vec![] };
        let (mut gated, mut normed) = (Vec::with_capacity(all.len()), Vec::new());
        let rows = all.chunks(width.max(1)).zip(keys.chunks(width.max(1)));
        for (at, (stream, key)) in rows.enumerate() {
            let (token, branch) = (at / branches, at % branches);
            let own = branch * width..(branch + 1) * width;
            let pairs = key.iter().zip(&key_scales[own.clone()]);
            let pairs = pairs.zip(stream.iter().zip(&scales[own.clone()]));
            let sum: f64 = pairs.map(|((key, a), (x, b))| key * a * x * b).sum();
            let product = sum * self.inverse_root(key) * self.inverse_root(stream);
            let product = product / (width as f64).sqrt();
            let root = product.abs().max(LEAST).sqrt();
            let argument = if product == 0.0 { 0.0 } else { root.copysign(product) };
            let gate = 1.0 / (1.0 + (-argument).exp());
            let value = &values[token * width..(token + 1) * width];
            let row: Vec<f64> = value.iter().map(|value| gate * value).collect();
            if self.outputs > 1 {
                let inverse = self.inverse_root(&row);
                let scaled = row.iter().zip(&last_scales[own]);
                normed.extend(scaled.map(|(value, scale)| value * inverse * scale));
            }
            gated.extend(row);
        }
        let result = |all| from_floats(streams.dtype(), streams.shape(), all);
        let mut results = vec![result(gated)?];
        if self.outputs > 1 {
            results.push(result(normed)?);
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, run, tensor};

    #[test]
    fn values_are_taken_by_how_keys_fit_streams() {
        let stream = tensor(&[1, 1, 2, 1], &[2.0_f32, 3.0]);
        let key = tensor(&[1, 1, 2, 1], &[2.0_f32, -3.0]);
        let value = tensor(&[1, 1, 1], &[4.0_f32]);
        let ones = tensor(&[2, 1], &[1.0_f32, 1.0]);
        let name = "com.microsoft:EngramGate";
        let inputs = [&key, &stream, &value, &ones, &ones, &ones].map(Some);
        let found = run(name, 1, &attributes([]), &inputs, 2).unwrap();
        // Products of 1 and -1, whose sigmoids are 0.731 and 0.269.
        for (found, expected) in found[0].to_vec::<f32>().unwrap().iter().zip([2.924, 1.076]) {
            assert!((found - expected).abs() < 1e-3, "{found}");
        }
        assert!(found[1].to_vec::<f32>().unwrap().iter().all(|x| (x - 1.0).abs() < 1e-3));
        assert!(run(name, 1, &attributes([]), &inputs[..5], 2).is_err());
        assert!(
            run(name, 1, &attributes([]), &[inputs[0], inputs[2], None, None, None], 1).is_err()
        );
    }
}
