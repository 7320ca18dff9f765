//! The product of stacks of matrices, with NumPy's rules for vectors and broadcasting.

use galatea_tensor::{DataType, Tensor, broadcast_shapes, checked_elements};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::ops::bounds::bounded;

/// The extents of a product: `rows × inner` times `inner × columns`, for each pair of a stack.
pub(super) struct ProductExtents {
    rows: usize,
    inner: usize,
    columns: usize,
    /// For each matrix of the result, which matrix of the first and of the second operand.
    pairs: Vec<(usize, usize)>,
    /// The shape of the result, without the axes that vectors lent.
    pub(super) shape: Vec<usize>,
}

fn scalar_operand() -> OpError {
    OpError::new("an operand is a scalar, expected one axis or more")
}

/// Which matrix of a stack each matrix of the broadcast stack is.
fn stack(shape: &[usize], to: &[usize]) -> Result<Vec<usize>, OpError> {
    let count = checked_elements(shape)?;
    let all = (0..count).map(|index| i64::try_from(index).unwrap_or(0)).collect::<Vec<_>>();
    let spread = Tensor::from_vec(shape, all)?.broadcast_to(to)?.to_vec::<i64>()?;
    Ok(spread.into_iter().map(|index| usize::try_from(index).unwrap_or(0)).collect())
}

impl ProductExtents {
    /// The extents for two shapes and the type of the result.
    pub(super) fn new(a: &[usize], b: &[usize], dtype: DataType) -> Result<Self, OpError> {
        let vector_a = a.len() == 1;
        let vector_b = b.len() == 1;
        let inner = *a.last().ok_or_else(scalar_operand)?;
        let (stack_a, rows) = match a {
            [before @ .., rows, _] => (before, *rows),
            _ => (&[][..], 1),
        };
        let (stack_b, inner_b, columns) = match b {
            [before @ .., inner, columns] => (before, *inner, *columns),
            [inner] => (&[][..], *inner, 1),
            [] => return Err(scalar_operand()),
        };
        if inner != inner_b {
            return Err(OpError::new(format!(
                "shapes {a:?} and {b:?} do not multiply: {inner} columns meet {inner_b} rows"
            )));
        }
        let batch = broadcast_shapes(stack_a, stack_b)?;
        let mut shape = batch.clone();
        if !vector_a {
            shape.push(rows);
        }
        if !vector_b {
            shape.push(columns);
        }
        bounded(dtype, &shape)?;
        let empty = rows == 0 || columns == 0;
        let pairs = if empty {
            Vec::new()
        } else {
            stack(stack_a, &batch)?.into_iter().zip(stack(stack_b, &batch)?).collect()
        };
        Ok(Self { rows, inner, columns, pairs, shape })
    }

    /// All products, in row-major order. `add(sum, x, y)` adds the product of two elements.
    pub(super) fn run<T: Copy + Default>(
        &self,
        a: &[T],
        b: &[T],
        add: impl Fn(T, T, T) -> T,
    ) -> Vec<T> {
        let rows = self.rows;
        let inner = self.inner;
        let columns = self.columns;
        let mut result = vec![T::default(); self.pairs.len() * rows * columns];
        let matrices = result.chunks_mut((rows * columns).max(1));
        for (&(at_a, at_b), matrix) in self.pairs.iter().zip(matrices) {
            for (row, sums) in matrix.chunks_mut(columns).enumerate() {
                for position in 0..inner {
                    let x = a[(at_a * rows + row) * inner + position];
                    let start = (at_b * inner + position) * columns;
                    for (sum, &y) in sums.iter_mut().zip(&b[start..start + columns]) {
                        *sum = add(*sum, x, y);
                    }
                }
            }
        }
        result
    }
}

/// The shape of a product from what is known of the operands.
pub(super) fn infer_shape(a: &Fact, b: &Fact) -> Result<Option<Vec<Dim>>, OpError> {
    let (Some(dims_a), Some(dims_b)) = (&a.shape, &b.shape) else { return Ok(None) };
    let (stack_a, rows, inner_a) = match dims_a.as_slice() {
        [before @ .., rows, inner] => (before, Some(rows), inner),
        [inner] => (&[][..], None, inner),
        [] => return Err(scalar_operand()),
    };
    let (stack_b, inner_b, columns) = match dims_b.as_slice() {
        [before @ .., inner, columns] => (before, inner, Some(columns)),
        [inner] => (&[][..], inner, None),
        [] => return Err(scalar_operand()),
    };
    if let (Some(x), Some(y)) = (inner_a.known(), inner_b.known())
        && x != y
    {
        return Err(OpError::new(format!(
            "{a} and {b} do not multiply: {x} columns meet {y} rows"
        )));
    }
    let fact = |dims: &[Dim]| Fact::new(a.dtype, dims.to_vec());
    let mut shape = Fact::broadcast(&[&fact(stack_a), &fact(stack_b)])?.unwrap_or_default();
    shape.extend(rows.into_iter().chain(columns).cloned());
    Ok(Some(shape))
}
