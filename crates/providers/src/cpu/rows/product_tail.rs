//! Operations behind the sums of a matrix multiplication: what is added to them, a residual or a gate, and
//! an activation.

use galatea_graph::OpError;
use galatea_graph::ops::fused::FusedMatMul;
use galatea_graph::ops::matrix::Gemm;
use galatea_kernels::bf16::Bf16Summand;
use galatea_kernels::{ActivationFunction, GemmEpilogue, MatrixJoin, RealSlice, ResidualMatrix};

use super::elementwise::fused;
use crate::cpu::{NodeShapes, StepCall};

/// Operations after a matrix multiplication.
#[derive(Clone, Copy)]
pub(super) struct ProductTailSpec {
    join: MatrixJoin,
    activation: ActivationFunction,
    /// The factor of what is added.
    factor: f32,
    /// True if input 2 broadcasts to the product; else it is a row.
    spreads: bool,
}

impl Default for ProductTailSpec {
    fn default() -> Self {
        let activation = ActivationFunction::default();
        Self { join: MatrixJoin::default(), activation, factor: 1.0, spreads: false }
    }
}

impl ProductTailSpec {
    pub(super) fn of(op: &FusedMatMul) -> Self {
        let join = if op.gated { MatrixJoin::Multiply } else { MatrixJoin::Add };
        Self { join, activation: fused(op.activation), ..Self::default() }
    }

    pub(super) fn of_gemm(op: &Gemm, activation: ActivationFunction) -> Self {
        Self { factor: op.beta, spreads: true, activation, ..Self::default() }
    }
}

/// Form of input 2, which is added to a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddendForm {
    /// There is none.
    Absent,
    /// One value for each column.
    Row,
    /// A value for each element.
    Matrix,
    /// The element of row `i` and column `j` is at `i * rows + j * columns`.
    Spread { rows: usize, columns: usize },
}

impl AddendForm {
    /// The form of what has this shape, for a product of two axes where it spreads.
    fn of(shape: &[usize], product: &[usize], spec: ProductTailSpec) -> Result<Self, String> {
        let columns = product.last().copied().unwrap_or(1);
        if shape.iter().product::<usize>() == columns && shape.last() == Some(&columns) {
            return Ok(Self::Row);
        }
        let refused = || format!("a bias of shape {shape:?}");
        let &[m, n] = product else { return Err(refused()) };
        let (height, width) = match *shape {
            _ if !spec.spreads => return Err(refused()),
            [] => (1, 1),
            [width] => (1, width),
            [height, width] => (height, width),
            _ => return Err(refused()),
        };
        if (height != m && height != 1) || (width != n && width != 1) {
            return Err(refused());
        }
        if (height, width) == (m, n) && is_one(spec.factor) {
            return Ok(Self::Matrix);
        }
        let rows = if height == 1 { 0 } else { width };
        Ok(Self::Spread { rows, columns: usize::from(width != 1) })
    }
}

fn is_one(factor: f32) -> bool {
    factor.to_bits() == 1.0_f32.to_bits()
}

/// Sources of the operands behind the sums.
#[derive(Clone, Copy)]
pub(super) struct ProductTail {
    addend: AddendForm,
    residual: bool,
    /// Rows of all products.
    rows: usize,
    columns: usize,
    spec: ProductTailSpec,
}

impl ProductTail {
    /// Checks the shapes of inputs 2 (what is added) and 3 (residual) against a result.
    pub(super) fn bind(
        shapes: &NodeShapes,
        product: &[usize],
        spec: ProductTailSpec,
    ) -> Result<Self, String> {
        let columns = product.last().copied().unwrap_or(1);
        let rows = product.split_last().map_or(1, |(_, lead)| lead.iter().product());
        let present = |index: usize| matches!(shapes.inputs.get(index), Some(Some(_)));
        let addend = match present(2) {
            true => AddendForm::of(shapes.input(2)?, product, spec)?,
            false => AddendForm::Absent,
        };
        if present(3)
            && (shapes.input(3)?.iter().product::<usize>() != product.iter().product::<usize>()
                || shapes.output(0)?.iter().product::<usize>() != product.iter().product::<usize>())
        {
            return Err(format!("a residual of shape {:?}", shapes.input(3)?));
        }
        Ok(Self { addend, residual: present(3), rows, columns, spec })
    }

    /// The epilogue of a call; `made` keeps what is added where that is not as the kernels take it.
    pub(super) fn epilogue<'b, 'a: 'b>(
        self,
        call: &StepCall<'a>,
        made: &'b mut Vec<f32>,
    ) -> Result<(GemmEpilogue<'b>, Option<Bf16Summand<'b>>), OpError> {
        let (ld, join) = (self.columns, self.spec.join);
        let plain = GemmEpilogue { activation: self.spec.activation, ..GemmEpilogue::default() };
        let matrix = |data| Some(ResidualMatrix { data: Some(data), ld, join: MatrixJoin::Add });
        let epilogue = match self.addend {
            AddendForm::Absent => plain,
            AddendForm::Row if is_one(self.spec.factor) => {
                GemmEpilogue { bias: Some(call.input::<f32>(2)?), ..plain }
            }
            AddendForm::Row => {
                made.extend(call.input::<f32>(2)?.iter().map(|bias| bias * self.spec.factor));
                GemmEpilogue { bias: Some(&made[..]), ..plain }
            }
            AddendForm::Matrix => GemmEpilogue { residual: matrix(call.input::<f32>(2)?), ..plain },
            AddendForm::Spread { rows, columns } => {
                self.spread(call.input::<f32>(2)?, [rows, columns], made)?;
                GemmEpilogue { residual: matrix(&made[..]), ..plain }
            }
        };
        if !self.residual {
            return Ok((epilogue, None));
        }
        Ok(match call.reals(3)? {
            RealSlice::Fp32(data) => {
                let residual = Some(ResidualMatrix { data: Some(data), ld, join });
                (GemmEpilogue { residual, ..epilogue }, None)
            }
            RealSlice::Bf16(data) => (epilogue, Some(Bf16Summand { data: Some(data), ld, join })),
        })
    }

    /// Makes the matrix that is added of fewer elements, with its factor.
    fn spread(self, from: &[f32], steps: [usize; 2], made: &mut Vec<f32>) -> Result<(), OpError> {
        let [row_step, column_step] = steps;
        let factor = self.spec.factor;
        made.reserve(self.rows * self.columns);
        for row in 0..self.rows {
            let line = from.get(row * row_step..).unwrap_or_default();
            let short = || OpError::new(format!("input 2 has {} elements", from.len()));
            match column_step {
                0 => {
                    let value = line.first().ok_or_else(short)? * factor;
                    made.resize(made.len() + self.columns, value);
                }
                _ => {
                    let line = line.get(..self.columns).ok_or_else(short)?;
                    made.extend(line.iter().map(|value| value * factor));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_a_row_a_matrix_or_spread() {
        let spread = |rows, columns| AddendForm::Spread { rows, columns };
        let gemm = |beta| Gemm { alpha: 1.0, beta, trans_a: false, trans_b: false };
        let of = |shape: &[usize], beta| {
            let spec = ProductTailSpec::of_gemm(&gemm(beta), ActivationFunction::None);
            AddendForm::of(shape, &[3, 5], spec)
        };
        assert_eq!(of(&[5], 2.0), Ok(AddendForm::Row));
        assert_eq!(of(&[1, 5], 1.0), Ok(AddendForm::Row));
        assert_eq!(of(&[3, 5], 1.0), Ok(AddendForm::Matrix));
        assert_eq!(of(&[3, 5], 2.0), Ok(spread(5, 1)));
        assert_eq!(of(&[3, 1], 1.0), Ok(spread(1, 0)));
        assert_eq!(of(&[], 1.0), Ok(spread(0, 0)));
        assert_eq!(of(&[1], 1.0), Ok(spread(0, 0)));
        assert_eq!(of(&[1, 1], 1.0), Ok(spread(0, 0)));
        assert!(of(&[3], 1.0).is_err() && of(&[5, 3], 1.0).is_err());
        let row_only = ProductTailSpec::default();
        assert!(AddendForm::of(&[3, 5], &[3, 5], row_only).is_err());
    }
}
