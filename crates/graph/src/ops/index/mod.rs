//! Elements and slices picked or written by number.

mod gather;
mod gather_elements;
mod gather_nd;
mod non_zero;
mod one_hot;
mod scatter;
mod unique;

pub use gather::Gather;
pub use gather_elements::GatherElements;
pub use gather_nd::GatherND;
pub use non_zero::{Compress, NonZero};
pub use one_hot::OneHot;
pub use scatter::{ScatterElements, ScatterND, ScatterReduction};
pub use unique::Unique;

use crate::error::OpError;
use crate::operator::{Arity, OpDef};
use crate::ops::bounds;

const ONE: Arity = Arity::exactly(1);
const TWO: Arity = Arity::exactly(2);
const THREE: Arity = Arity::exactly(3);

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("Gather", 1, TWO, ONE, Gather::parse).on_lengths().moves_part(),
    OpDef::onnx("GatherElements", 11, TWO, ONE, GatherElements::parse).moves_part(),
    OpDef::onnx("GatherND", 11, TWO, ONE, GatherND::parse).moves_part(),
    OpDef::onnx("Scatter", 9, THREE, ONE, ScatterElements::parse).moves_several(),
    OpDef::onnx("ScatterElements", 11, THREE, ONE, ScatterElements::parse).moves_several(),
    OpDef::onnx("ScatterND", 11, THREE, ONE, ScatterND::parse).moves_several(),
    OpDef::onnx("OneHot", 9, THREE, ONE, OneHot::parse).converts(),
    OpDef::onnx("NonZero", 9, ONE, ONE, NonZero::parse),
    OpDef::onnx("Compress", 9, TWO, ONE, Compress::parse).moves(),
    OpDef::onnx("Unique", 11, ONE, Arity::between(1, 4), Unique::parse),
];

/// An index that may count from the end, as a position.
fn position(index: i64, len: usize) -> Result<usize, OpError> {
    bounds::axis(index, len)
        .map_err(|_| OpError::new(format!("index {index} is outside an axis of length {len}")))
}

/// Refuses indices that reach beyond the data on an axis other than the indexed one.
fn check_inside(data: &[usize], indices: &[usize], axis: usize) -> Result<(), OpError> {
    let fits = data.len() == indices.len()
        && (0..data.len()).all(|at| at == axis || indices[at] <= data[at]);
    if fits {
        return Ok(());
    }
    Err(OpError::new(format!("indices of shape {indices:?} for data of shape {data:?}")))
}
