//! Pooling.

use galatea_graph::AttributeValue;

use super::LoweringRow;
use super::convolution::{SpatialWindows, space};
use super::lowering::{ProgramLowering, Result};
use super::operation::LoweredOperation;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::new("avg_pool", |low, op| pool(low, op, "AveragePool")),
    LoweringRow::new("max_pool", |low, op| pool(low, op, "MaxPool")),
    LoweringRow::new("l2_pool", |low, op| pool(low, op, "LpPool")),
];

fn pool(low: &mut ProgramLowering, op: &LoweredOperation<'_>, operator: &str) -> Result<()> {
    let x = low.required(op, "x")?;
    let axes = space(low, x)?;
    let sizes = low.ints(op, "kernel_sizes")?;
    let sizes = sizes.filter(|sizes| sizes.len() == axes).ok_or_else(|| {
        CoreMlError::invalid(format!("input 'kernel_sizes' must have {axes} numbers"))
    })?;
    let mut named = SpatialWindows::read(low, op, axes)?.attributes();
    named.insert("kernel_shape".to_owned(), AttributeValue::Ints(sizes));
    if low.flag(op, "ceil_mode", false)? {
        named.insert("ceil_mode".to_owned(), 1.into());
    }
    let outside =
        operator == "AveragePool" && !low.flag(op, "exclude_padding_from_average", false)?;
    if outside {
        named.insert("count_include_pad".to_owned(), 1.into());
    }
    let result = low.node(operator, &named, &[x])?;
    low.give(op, &[result])
}
