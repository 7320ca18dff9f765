//! Operators that compute each element of the same place of what they are given; inputs broadcast as with NumPy.

use galatea_tensor::{DataType, Tensor};

use super::{InputPlaces, PaddedValue, PaddedValueAxes, PaddingContent, PaddingWalk};
use crate::collect::collected_some;
use crate::{Node, OperatorInputs, ValueId, converted};

pub(super) fn map(walk: &mut PaddingWalk<'_>, node: &Node) -> Result<Vec<PaddedValue>, String> {
    let given: Vec<Option<(ValueId, PaddedValue)>> =
        (0..node.inputs.len()).map(|at| walk.given(node, at)).collect();
    let lengths = |one: &(ValueId, PaddedValue)| one.1 == PaddedValue::Lengths;
    if given.iter().flatten().any(lengths) {
        let only = given.iter().flatten().all(|one| match &one.1 {
            PaddedValue::Lengths => true,
            PaddedValue::Data(axes) => axes.is_empty(),
        });
        return match only && node.traits().on_lengths {
            true => Ok(vec![PaddedValue::Lengths]),
            false => Err("it computes with lengths".to_owned()),
        };
    }
    let output = node.outputs.first().copied().flatten().ok_or("it gives nothing")?;
    let rank = walk.dims(output)?.len();
    let mut axes = PaddedValueAxes::new();
    for axis in walk.axes(output)? {
        let mut operands = Vec::new();
        for one in &given {
            operands.push(match one {
                None => None,
                Some((id, PaddedValue::Data(own))) => {
                    // Counted from the last axis.
                    let at = (axis + walk.dims(*id)?.len()).checked_sub(rank);
                    let behind = at.and_then(|at| own.get(&at)).copied();
                    Some(behind.unwrap_or_else(|| constant(walk, *id)))
                }
                Some((_, PaddedValue::Lengths)) => {
                    return Err("it computes with lengths".to_owned());
                }
            });
        }
        axes.insert(axis, combined(walk, node, &operands));
    }
    Ok(vec![PaddedValue::Data(axes)])
}

/// A value that is the same at each place, where it is one number.
fn constant(walk: &PaddingWalk<'_>, id: ValueId) -> PaddingContent {
    let known = walk.fact(id).and_then(|fact| fact.value.as_ref());
    let tensor = walk.graph.constant(id).or(known);
    let wide = tensor.filter(|one| one.elements() <= MAX_ELEMENTS).and_then(number_all);
    wide.map_or(PaddingContent::Any, |number| {
        PaddingContent::Number(number, InputPlaces::default())
    })
}

/// Constants of more elements are not looked at.
const MAX_ELEMENTS: usize = 1 << 16;

/// The number that all elements are.
fn number_all(tensor: &Tensor) -> Option<f64> {
    let all = converted(tensor, DataType::Fp64).ok()?.to_vec::<f64>().ok()?;
    let first = *all.first()?;
    all.iter().all(|one| *one == first).then_some(first)
}

/// Returns the values behind the real positions of the result, from those of the operands.
fn combined(
    walk: &PaddingWalk<'_>,
    node: &Node,
    operands: &[Option<PaddingContent>],
) -> PaddingContent {
    let given: Vec<PaddingContent> = operands.iter().flatten().copied().collect();
    if let Some(number) = computed(walk, node, operands) {
        let by = given.iter().fold(InputPlaces::default(), |sum, one| match one {
            PaddingContent::Number(_, by) => sum.with(*by),
            _ => sum,
        });
        return PaddingContent::Number(number, by);
    }
    let hiding = || given.iter().find_map(|one| one.hides());
    match (node.op_type.as_str(), given.as_slice()) {
        // Whatever the score was, unless something as great is added as well.
        ("Add", all) if all.iter().all(is_score) => {
            hiding().map_or(PaddingContent::Any, PaddingContent::Hidden)
        }
        ("Sub", [first, PaddingContent::Number(number, by)]) if -number <= super::HIDING => {
            if is_score(first) {
                PaddingContent::Hidden(*by)
            } else {
                PaddingContent::Any
            }
        }
        ("Sub", [first, second]) if second.hides().is_none() => {
            first.hides().map_or(PaddingContent::Any, PaddingContent::Hidden)
        }
        ("Mul", all) => {
            let zero = all.iter().find(|one| one.is_zero());
            zero.copied().unwrap_or(PaddingContent::Any)
        }
        ("Where", [PaddingContent::Number(chosen, by), yes, no]) => {
            match if *chosen != 0.0 { *yes } else { *no } {
                PaddingContent::Number(number, own) => {
                    PaddingContent::Number(number, own.with(*by))
                }
                PaddingContent::Hidden(own) => PaddingContent::Hidden(own.with(*by)),
                PaddingContent::Any => PaddingContent::Any,
            }
        }
        // As far down as numbers of the type go.
        ("Max", all) if all.iter().all(|one| one.hides().is_some()) => {
            hiding().map_or(PaddingContent::Any, PaddingContent::Hidden)
        }
        ("Identity" | "Cast", [PaddingContent::Hidden(by)]) => PaddingContent::Hidden(*by),
        _ => PaddingContent::Any,
    }
}

/// Returns whether something is a score or hides one, and is not as far above as hidden ones are
/// below.
fn is_score(one: &PaddingContent) -> bool {
    !matches!(one, PaddingContent::Number(number, _) if *number >= -super::HIDING)
}

/// The number that a node computes of numbers.
fn computed(
    walk: &PaddingWalk<'_>,
    node: &Node,
    operands: &[Option<PaddingContent>],
) -> Option<f64> {
    let scalar = |(at, one): (usize, &Option<PaddingContent>)| match one {
        None => Some(None),
        Some(PaddingContent::Number(number, _)) => {
            let dtype = walk.fact(node.input(at)?)?.dtype;
            let wide = Tensor::from_vec(&[1], vec![*number]).ok()?;
            converted(&wide, dtype).ok().map(Some)
        }
        Some(_) => None,
    };
    let given: Vec<Option<Tensor>> = collected_some(&mut operands.iter().enumerate().map(scalar))?;
    let given: Vec<Option<&Tensor>> = given.iter().map(Option::as_ref).collect();
    let found = node.operator.reference(OperatorInputs::new(&given)).ok()?;
    number_all(found.first()?).filter(|number| !number.is_nan())
}
