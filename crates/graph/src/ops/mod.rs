//! Every operator: one file each, one row each in its family's table.

pub mod activation;
#[cfg(test)]
mod agreement;
mod append;
pub mod blocked;
mod bounds;
pub mod cast;
pub mod contrib;
pub mod control;
pub mod convolution;
pub mod experimental;
mod facts;
pub mod fused;
pub mod generate;
pub mod index;
mod lanes;
mod legacy;
pub mod logic;
pub mod loss;
pub mod math;
pub mod matrix;
pub mod ml;
mod nearest;
pub mod normalize;
mod picks;
pub mod pooling;
#[cfg(test)]
mod properties;
pub mod quantize;
pub mod random;
pub mod recurrent;
pub mod reduce;
#[cfg(test)]
mod refusals;
pub mod resize;
pub mod sequence;
pub mod shape;
pub mod signal;
#[cfg(test)]
mod testing;
pub mod text;
pub mod training;
pub mod transformer;
mod values;
pub mod vision;

pub use facts::{traits, views};

use crate::attribute::Attributes;
use crate::error::{GraphErrorKind, OpError};
use crate::operator::{OpDef, Operator, ParseContext};

/// How a row reads a node's attributes.
pub(crate) type AttributeParser = fn(&mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError>;

/// Every family's table.
pub const FAMILIES: &[&[OpDef]] = &[
    activation::OPS,
    cast::OPS,
    control::OPS,
    fused::OPS,
    index::OPS,
    logic::OPS,
    math::OPS,
    matrix::OPS,
    ml::OPS,
    normalize::OPS,
    reduce::OPS,
    shape::OPS,
    convolution::OPS,
    pooling::OPS,
    generate::OPS,
    recurrent::OPS,
    quantize::OPS,
    resize::OPS,
    sequence::OPS,
    text::OPS,
    transformer::OPS,
    signal::OPS,
    vision::OPS,
    loss::OPS,
    random::OPS,
    training::OPS,
    contrib::OPS,
    blocked::OPS,
    experimental::OPS,
];

/// All rows.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The definition that holds for an operator in a version of its domain: the newest one that is not
/// newer than the version. Without a version (a domain that the model does not import) the newest.
#[must_use]
pub fn find(domain: &str, name: &str, opset: Option<i64>) -> Option<&'static OpDef> {
    all()
        .filter(|def| def.domain == domain && def.name == name)
        .filter(|def| opset.is_none_or(|version| def.since <= version))
        .max_by_key(|def| def.since)
}

/// Parses the operator of a node.
///
/// # Errors
/// Fails when there is no such operator in this version, the number of inputs or outputs is
/// impossible, an attribute is refused, or an attribute is unknown to the operator.
pub fn parse(
    domain: &str,
    name: &str,
    opset: Option<i64>,
    attributes: &Attributes,
    inputs: usize,
    outputs: usize,
) -> Result<Box<dyn Operator>, GraphErrorKind> {
    let Some(def) = find(domain, name, opset) else {
        return Err(GraphErrorKind::UnknownOperator(nearest::unknown(domain, name, opset)));
    };
    let check = |what: &str, arity: crate::Arity, found: usize| {
        if arity.allows(found) {
            return Ok(());
        }
        let bound = if arity.max == usize::MAX {
            format!("at least {}", arity.min)
        } else if arity.min == arity.max {
            arity.min.to_string()
        } else {
            format!("{} to {}", arity.min, arity.max)
        };
        Err(GraphErrorKind::Operator(OpError::new(format!(
            "the node has {found} {what}, expected {bound}"
        ))))
    };
    check("inputs", def.inputs, inputs)?;
    check("outputs", def.outputs, outputs)?;
    let opset = opset.unwrap_or(def.since);
    let mut context = ParseContext::new(attributes, inputs, outputs, opset);
    if domain.is_empty() && opset < 6 {
        // Said which inputs may be overwritten.
        context.attributes.ignore("consumed_inputs");
    }
    let operator = (def.parse)(&mut context).map_err(GraphErrorKind::Operator)?;
    context.attributes.finish().map_err(GraphErrorKind::Operator)?;
    Ok(operator)
}
