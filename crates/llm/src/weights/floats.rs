//! Matrices of floats, as operators hold weights that stay where the checkpoint has them.

use std::fmt;
use std::sync::Arc;

use galatea_graph::OpError;
use galatea_graph::blocks::{BlockRow, BlockWeights, CodeFormat};
use galatea_tensor::{DataType, Tensor, bf16, f16};

/// A tensor of two axes as rows of floats: in a mapped file until somebody asks for a row.
pub(crate) struct FloatMatrix {
    tensor: Tensor,
    /// Whether a row of the matrix is a column of the tensor.
    turned: bool,
    rows: usize,
    columns: usize,
}

impl fmt::Debug for FloatMatrix {
    /// Where the matrix is instead of what it holds: no other one is there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tensor, turned, rows, columns } = self;
        let at = tensor.unaligned_bytes().map_or(std::ptr::null(), <[u8]>::as_ptr);
        let dtype = tensor.dtype();
        write!(f, "FloatMatrix {{ [{rows}, {columns}] {dtype}, turned: {turned}, at: {at:?} }}")
    }
}

impl FloatMatrix {
    /// The rows of a matrix `[rows, columns]`; `None` of other tensors.
    pub(crate) fn of(tensor: &Tensor) -> Option<Arc<dyn BlockWeights>> {
        Self::matrix(tensor, false)
    }

    /// The columns of a matrix `[columns, rows]` as rows; `None` of other tensors.
    pub(crate) fn turned(tensor: &Tensor) -> Option<Arc<dyn BlockWeights>> {
        Self::matrix(tensor, true)
    }

    fn matrix(tensor: &Tensor, turned: bool) -> Option<Arc<dyn BlockWeights>> {
        let &[first, second] = tensor.shape() else { return None };
        let known = matches!(tensor.dtype(), DataType::Fp32 | DataType::Fp16 | DataType::Bf16);
        // Views have no bytes in one piece.
        if !known || tensor.unaligned_bytes().is_err() {
            return None;
        }
        let (rows, columns) = if turned { (second, first) } else { (first, second) };
        Some(Arc::new(Self { tensor: tensor.clone(), turned, rows, columns }))
    }

    /// The bytes of a row from its first number on, and how many numbers further the next one is.
    fn start(&self, row: usize) -> Result<(&[u8], usize), OpError> {
        let size = self.tensor.dtype().size_bytes().unwrap_or(1);
        let bytes = self.tensor.unaligned_bytes()?;
        let (start, step) = if self.turned { (row, self.rows) } else { (row * self.columns, 1) };
        let found = bytes.get(start * size..).filter(|_| row < self.rows);
        let missing =
            || OpError::new(format!("there is no row {row}, the matrix has {}", self.rows));
        Ok((found.ok_or_else(missing)?, step))
    }

    /// The bytes of the numbers of a row, one after the other.
    fn numbers(&self, row: usize) -> Result<impl Iterator<Item = &[u8]>, OpError> {
        let size = self.tensor.dtype().size_bytes().unwrap_or(1);
        let (from, step) = self.start(row)?;
        Ok(from.chunks_exact(size).step_by(step.max(1)).take(self.columns))
    }
}

/// That a slice has room for a row.
fn room(found: usize, expected: usize) -> Result<(), OpError> {
    if found == expected {
        return Ok(());
    }
    Err(OpError::new(format!("room for {found} numbers, the row has {expected}")))
}

impl BlockWeights for FloatMatrix {
    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn format(&self) -> CodeFormat {
        CodeFormat::floats(self.tensor.dtype())
    }

    fn size_bytes(&self) -> usize {
        self.tensor.size_bytes()
    }

    fn source(&self) -> Option<(usize, usize)> {
        // Turned bytes are other rows.
        let bytes = self.tensor.unaligned_bytes().ok().filter(|_| !self.turned)?;
        Some((bytes.as_ptr().addr(), bytes.len()))
    }

    fn unpack_row(&self, row: usize, to: BlockRow<'_>) -> Result<(), OpError> {
        let size = self.format().code_bytes();
        room(to.codes.len(), self.columns * size)?;
        if self.turned {
            for (to, number) in to.codes.chunks_exact_mut(size).zip(self.numbers(row)?) {
                to.copy_from_slice(number);
            }
            return Ok(());
        }
        let found = self.start(row)?.0.get(..to.codes.len());
        to.codes.copy_from_slice(found.ok_or_else(|| OpError::new("the tensor ends early"))?);
        Ok(())
    }

    fn dequantize_row(&self, row: usize, out: &mut [f32]) -> Result<(), OpError> {
        room(out.len(), self.columns)?;
        let two = |number: &[u8]| number.first_chunk().copied().unwrap_or_default();
        let numbers = out.iter_mut().zip(self.numbers(row)?);
        match self.tensor.dtype() {
            DataType::Fp16 => {
                numbers.for_each(|(to, n)| *to = f16::from_le_bytes(two(n)).to_f32());
            }
            DataType::Bf16 => {
                numbers.for_each(|(to, n)| *to = bf16::from_le_bytes(two(n)).to_f32());
            }
            _ => numbers.for_each(|(to, n)| {
                *to = f32::from_le_bytes(n.first_chunk().copied().unwrap_or_default());
            }),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_are_those_of_the_tensor() {
        let values: Vec<f32> = vec![1.0, 2.5, -3.0, 0.25, 5.0, 6.0];
        let halves: Vec<f16> = values.iter().copied().map(f16::from_f32).collect();
        let brain: Vec<bf16> = values.iter().copied().map(bf16::from_f32).collect();
        for tensor in [
            Tensor::from_vec(&[2, 3], values).unwrap(),
            Tensor::from_vec(&[2, 3], halves).unwrap(),
            Tensor::from_vec(&[2, 3], brain).unwrap(),
        ] {
            let plain = FloatMatrix::of(&tensor).unwrap();
            let turned = FloatMatrix::turned(&tensor).unwrap();
            assert_eq!([plain.rows(), plain.columns()], [2, 3]);
            assert_eq!([turned.rows(), turned.columns()], [3, 2]);
            let mut row = [0.0; 3];
            let mut column = [0.0; 2];
            plain.dequantize_row(1, &mut row).unwrap();
            turned.dequantize_row(2, &mut column).unwrap();
            assert_eq!((row, column), ([0.25, 5.0, 6.0], [-3.0, 6.0]));
            let size = tensor.dtype().size_bytes().unwrap();
            for (matrix, length) in [(&plain, 3), (&turned, 2)] {
                let mut codes = vec![0; length * size];
                let to = BlockRow { codes: &mut codes, scales: &mut [], offsets: &mut [] };
                matrix.unpack_row(1, to).unwrap();
                let found = Tensor::from_bytes(tensor.dtype(), &[length], &codes).unwrap();
                let mut expected = vec![0.0; length];
                matrix.dequantize_row(1, &mut expected).unwrap();
                let widened = FloatMatrix::of(&found.reshape(&[1, length]).unwrap()).unwrap();
                let mut numbers = vec![0.0; length];
                widened.dequantize_row(0, &mut numbers).unwrap();
                assert_eq!(numbers, expected);
            }
            assert!(plain.dequantize_row(2, &mut row).is_err());
            assert!(plain.dequantize_row(0, &mut column).is_err());
        }
        assert!(FloatMatrix::of(&Tensor::vector(vec![1.0_f32])).is_none());
        assert!(FloatMatrix::of(&Tensor::from_vec(&[1, 1], vec![1_i64]).unwrap()).is_none());
    }
}
