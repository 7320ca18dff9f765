//! `BlockMatMul`: matrix multiplications with quantized weights, and `BlockGather`: rows of them.

use std::sync::Arc;

use galatea_tensor::{DataType, Tensor};

use super::FusedActivation;
use crate::blocks::BlockWeights;
use crate::collect::collected;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::expect_type;

/// `Yᵢ = X Wᵢᵀ + bᵢ` for several matrices of as many columns, or `activation(Y₀) ⊙ Y₁` where it is gated.
///
/// Inputs: `X` `[…, K]`; then optionally a bias `[Nᵢ]` for each matrix; then, where there is one matrix and no gate,
/// optionally what is added to the product, of its shape. Outputs: `[…, Nᵢ]` for each matrix, or one where it is gated. Types: FP32. The matrices are no inputs: they stay as the checkpoint stores them.
#[derive(Clone, Debug)]
pub struct BlockMatMul {
    /// The matrices, `[Nᵢ, K]`.
    weights: Vec<Arc<dyn BlockWeights>>,
    /// The activation of the first result, which then multiplies the second; `None` without a gate.
    gate: Option<FusedActivation>,
    /// True if rows of `X` may be rounded to 8 bits, with a scale for each block, where that is faster.
    rounded_rows: bool,
}

impl BlockMatMul {
    /// Multiplications by each of some matrices.
    ///
    /// # Errors
    /// Fails when there are none, or they have different numbers of columns.
    pub fn new(weights: Vec<Arc<dyn BlockWeights>>) -> Result<Self, OpError> {
        let columns: Vec<usize> = weights.iter().map(|matrix| matrix.columns()).collect();
        if columns.is_empty() || columns.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(OpError::new(format!("matrices of {columns:?} columns")));
        }
        Ok(Self { weights, gate: None, rounded_rows: false })
    }

    /// `activation(X W₀ᵀ) ⊙ X W₁ᵀ`.
    ///
    /// # Errors
    /// Fails when the matrices have different shapes.
    pub fn gated(
        weights: [Arc<dyn BlockWeights>; 2],
        activation: FusedActivation,
    ) -> Result<Self, OpError> {
        let rows = [weights[0].rows(), weights[1].rows()];
        if rows[0] != rows[1] {
            return Err(OpError::new(format!("gated matrices of {rows:?} rows")));
        }
        Ok(Self { gate: Some(activation), ..Self::new(weights.to_vec())? })
    }

    /// The same where rows of `X` may be rounded to 8 bits.
    #[must_use]
    pub fn with_rounded_rows(self, rounded_rows: bool) -> Self {
        Self { rounded_rows, ..self }
    }

    /// Returns whether rows of `X` may be rounded to 8 bits.
    #[must_use]
    pub fn rounds_rows(&self) -> bool {
        self.rounded_rows
    }

    /// The matrices.
    #[must_use]
    pub fn weights(&self) -> &[Arc<dyn BlockWeights>] {
        &self.weights
    }

    /// Returns the activation of the first result, if that multiplies the second.
    #[must_use]
    pub fn gate(&self) -> Option<FusedActivation> {
        self.gate
    }

    /// The input that is added to the product, for a node that has one.
    ///
    /// # Errors
    /// Fails when several products, or a gate, are to have one.
    pub fn addend(&self, inputs: usize) -> Result<Option<usize>, OpError> {
        let index = self.weights.len() + 1;
        match inputs.saturating_sub(index) {
            0 => Ok(None),
            1 if self.gate.is_none() && self.weights.len() == 1 => Ok(Some(index)),
            _ => Err(OpError::new(format!(
                "{inputs} inputs for {} matrices{}",
                self.weights.len(),
                if self.gate.is_some() { " with a gate" } else { "" }
            ))),
        }
    }

    /// Numbers of a row of `X`.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.weights.first().map_or(0, |matrix| matrix.columns())
    }

    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        holds_weights()
    }

    fn results(&self) -> impl Iterator<Item = usize> + '_ {
        let count = if self.gate.is_some() { 1 } else { self.weights.len() };
        self.weights.iter().take(count).map(|matrix| matrix.rows())
    }
}

impl Operator for BlockMatMul {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_type("X", x.dtype, |dtype| dtype == DataType::Fp32, "FP32")?;
        let Some(dims) = &x.shape else {
            return Ok(self.results().map(|_| Fact::unranked(x.dtype)).collect());
        };
        let Some((last, lead)) = dims.split_last() else {
            return Err(OpError::new("X must have one axis or more"));
        };
        if last.known().is_some_and(|columns| columns != self.columns()) {
            return Err(OpError::new(format!("X has {last} columns, expected {}", self.columns())));
        }
        for (at, matrix) in self.weights.iter().enumerate() {
            let Some(bias) = inputs.optional(at + 1) else { continue };
            let found = bias.known_shape();
            if found.as_ref().is_some_and(|shape| *shape != [matrix.rows()]) {
                let text = format!("bias {at} is {found:?}, expected [{}]", matrix.rows());
                return Err(OpError::new(text));
            }
        }
        let shape = |rows| lead.iter().cloned().chain([Dim::Known(rows)]).collect::<Vec<_>>();
        if let Some(index) = self.addend(inputs.len())? {
            let found = inputs.required(index)?.known_shape();
            let expected = self
                .results()
                .next()
                .and_then(|rows| Fact::new(x.dtype, shape(rows)).known_shape());
            if found.is_some() && expected.is_some() && found != expected {
                return Err(OpError::new(format!("{found:?} is added to {expected:?}")));
            }
        }
        Ok(self.results().map(|rows| Fact::new(x.dtype, shape(rows))).collect())
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let Some((&columns, lead)) = x.shape().split_last() else {
            return Err(OpError::new("X must have one axis or more"));
        };
        if columns != self.columns() {
            return Err(OpError::new(format!("X has {columns} columns of {}", self.columns())));
        }
        let terms = x.to_vec::<f32>()?;
        let products = self.weights.iter().enumerate().map(|(at, matrix)| {
            let bias = inputs.optional(at + 1).map(Tensor::to_vec::<f32>).transpose()?;
            product(&terms, &**matrix, bias.as_deref())
        });
        let products = products.collect::<Result<Vec<_>, OpError>>()?;
        let mut products = products;
        if let Some(index) = self.addend(inputs.len())? {
            let added = inputs.required(index)?.to_vec::<f32>()?;
            for (sum, value) in products.iter_mut().flatten().zip(added) {
                *sum += f64::from(value);
            }
        }
        let joined = match (self.gate, products.as_slice()) {
            (Some(gate), [first, second]) => {
                let pairs = first.iter().zip(second);
                vec![pairs.map(|(&a, &b)| gate.apply(a) * b).collect()]
            }
            _ => products,
        };
        let shaped = |(values, rows): (Vec<f64>, usize)| {
            let shape: Vec<usize> = lead.iter().copied().chain([rows]).collect();
            #[allow(clippy::cast_possible_truncation, reason = "results are FP32")]
            let values = values.into_iter().map(|value| value as f32).collect();
            Ok(Tensor::from_vec(&shape, values)?)
        };
        collected(&mut joined.into_iter().zip(self.results()).map(shaped))
    }
}

/// No text of a model can hold such an operator.
fn holds_weights() -> Result<Box<dyn Operator>, OpError> {
    Err(OpError::new("the operator holds weights, only the reader of a checkpoint makes it"))
}

/// Rows times a matrix.
fn product(
    x: &[f32],
    matrix: &dyn BlockWeights,
    bias: Option<&[f32]>,
) -> Result<Vec<f64>, OpError> {
    let columns = matrix.columns();
    let rows = matrix.rows();
    let count = x.len().checked_div(columns).unwrap_or(0);
    let mut sums = vec![0.0; count * rows];
    let mut numbers = vec![0.0; columns];
    for row in 0..rows {
        matrix.dequantize_row(row, &mut numbers)?;
        for (at, x) in x.chunks_exact(columns.max(1)).enumerate() {
            let sum: f64 = x.iter().zip(&numbers).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            sums[at * rows + row] =
                sum + bias.and_then(|bias| bias.get(row)).map_or(0.0, |&bias| bias.into());
        }
    }
    Ok(sums)
}

/// Rows of a matrix of few bits by their numbers, as FP32.
///
/// Inputs: `indices`, INT64 of any shape. Outputs: `[…, K]`. An index outside the matrix is an error.
#[derive(Clone, Debug)]
pub struct BlockGather {
    weights: Arc<dyn BlockWeights>,
}

impl BlockGather {
    /// Rows of this matrix.
    #[must_use]
    pub fn new(weights: Arc<dyn BlockWeights>) -> Self {
        Self { weights }
    }

    /// The matrix.
    #[must_use]
    pub fn weights(&self) -> &Arc<dyn BlockWeights> {
        &self.weights
    }

    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        holds_weights()
    }

    /// Writes the rows that indices name, one after the other.
    ///
    /// # Errors
    /// Fails when an index names no row, or `out` has not a row for each.
    pub fn rows(&self, indices: &[i64], out: &mut [f32]) -> Result<(), OpError> {
        let rows = self.weights.rows();
        let columns = self.weights.columns();
        if out.len() != indices.len() * columns {
            return Err(OpError::new(format!("room for {} numbers", out.len())));
        }
        for (&index, out) in indices.iter().zip(out.chunks_exact_mut(columns.max(1))) {
            let row = bounds::length(index, "an index")?;
            if row >= rows {
                return Err(OpError::new(format!("index {index} of {rows} rows")));
            }
            self.weights.dequantize_row(row, out)?;
        }
        Ok(())
    }
}

impl Operator for BlockGather {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let indices = inputs.required(0)?;
        expect_type("the indices", indices.dtype, |dtype| dtype == DataType::Int64, "INT64")?;
        let dims = indices
            .shape
            .as_ref()
            .map(|dims| dims.iter().cloned().chain([Dim::Known(self.weights.columns())]).collect());
        Ok(vec![Fact::shaped(DataType::Fp32, dims)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let indices = inputs.required(0)?;
        let all = indices.to_i64_vec()?;
        let mut out = vec![0.0; all.len() * self.weights.columns()];
        self.rows(&all, &mut out)?;
        let shape: Vec<usize> =
            indices.shape().iter().copied().chain([self.weights.columns()]).collect();
        Ok(vec![Tensor::from_vec(&shape, out)?])
    }
}
