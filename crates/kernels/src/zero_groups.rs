//! Groups of terms of a matrix that are zero over a vector of columns.
//!
//! Instructions that multiply bytes or BF16 take several terms of a column at once. A product passes
//! over such a group where it is zero in all columns of a vector. What is left is multiplied as in a
//! dense product, so that results are the same.

use crate::matrix::MatrixSize;

/// Fewest elements of a matrix whose zeros are looked for.
const MIN_ELEMENTS: usize = 4096;

/// Stretches of elements that are looked at first, and the elements of each.
const PROBES: (usize, usize) = (16, 128);

/// Least share of zeros in the stretches that is worth a closer look.
const PROBED_ZEROS: f64 = 0.25;

/// Size of the groups that a kernel can pass over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroGroup {
    /// Adjacent terms.
    pub terms: usize,
    /// Adjacent columns.
    pub columns: usize,
}

impl ZeroGroup {
    /// Returns the share of a matrix's groups that hold anything but zeros, from 0 to 1.
    ///
    /// `is_zero(row, column)` tells of an element. `None` where the matrix is small, or where samples
    /// have few zeros.
    #[must_use]
    pub fn full_share(
        self,
        size: MatrixSize,
        is_zero: &dyn Fn(usize, usize) -> bool,
    ) -> Option<f64> {
        let MatrixSize { rows, columns } = size;
        let elements = rows.checked_mul(columns).filter(|count| *count >= MIN_ELEMENTS)?;
        let (probes, probe) = PROBES;
        let last = elements - probe;
        let probed = (0..probes).flat_map(|at| {
            let first = last * at / (probes - 1);
            first..first + probe
        });
        let zeros = probed.filter(|at| is_zero(at / columns, at % columns)).count();
        if (zeros as f64) < PROBED_ZEROS * (probes * probe) as f64 {
            return None;
        }
        let (mut full, mut all) = (0_usize, 0_usize);
        for first in (0..columns).step_by(self.columns) {
            let end = columns.min(first + self.columns);
            for row in (0..rows).step_by(self.terms) {
                let mut group = (row..rows.min(row + self.terms))
                    .flat_map(|row| (first..end).map(move |column| (row, column)));
                all += 1;
                full += usize::from(!group.all(|(row, column)| is_zero(row, column)));
            }
        }
        Some(full as f64 / all.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: ZeroGroup = ZeroGroup { terms: 4, columns: 16 };

    #[test]
    fn groups_are_full_where_one_element_is_not_zero() {
        // One element of each second group, those cut off at both ends among them.
        let size = MatrixSize { rows: 66, columns: 72 };
        let is_zero = |row: usize, column: usize| {
            row % 4 != 1 || column % 16 != 7 || !(row / 4 + column / 16).is_multiple_of(2)
        };
        let share = GROUP.full_share(size, &is_zero).unwrap();
        let full = (0..17).flat_map(|row| (0..5).map(move |column| (row, column)));
        // The last two rows have no element of that kind.
        let full = full.filter(|(row, column)| (row + column) % 2 == 0).count();
        assert!((share - full as f64 / 85.0).abs() < 1e-9, "{share} for {full} of 85");
    }

    #[test]
    fn small_matrices_and_those_with_few_zeros_are_left_alone() {
        let small = MatrixSize { rows: 16, columns: 16 };
        assert_eq!(GROUP.full_share(small, &|_, _| true), None);
        let large = MatrixSize { rows: 128, columns: 128 };
        assert_eq!(GROUP.full_share(large, &|row, column| (row + column) % 8 == 0), None);
        assert_eq!(GROUP.full_share(large, &|_, _| true), Some(0.0));
    }
}
