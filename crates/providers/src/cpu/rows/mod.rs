//! The kernel rows, one file per family of operators.

mod elementwise;
mod matrix;
mod rowwise;

use super::KernelRow;

/// Every family's table; within an operator the first row that supports a node runs it.
pub const FAMILIES: &[&[KernelRow]] = &[elementwise::ROWS, matrix::ROWS, rowwise::ROWS];
