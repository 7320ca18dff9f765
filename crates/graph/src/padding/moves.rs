//! Operators that give elements other places.

use super::{PaddedValue, PaddedValueAxes, PaddingContent, PaddingWalk, padded_axes, resolved};
use crate::ops::index::Gather;
use crate::ops::shape::{Concat, Split, Transpose};
use crate::{Dim, Node};

pub(super) fn shape(walk: &mut PaddingWalk<'_>, node: &Node) -> Result<Vec<PaddedValue>, String> {
    match walk.given(node, 0) {
        Some((_, PaddedValue::Data(axes))) if axes.is_empty() => Ok(vec![PaddedValue::Data(axes)]),
        Some(_) => Ok(vec![PaddedValue::Lengths]),
        None => Err("it is given nothing".to_owned()),
    }
}

/// `ConstantOfShape` and `Range`: made of lengths.
pub(super) fn filled(walk: &mut PaddingWalk<'_>, node: &Node) -> Result<Vec<PaddedValue>, String> {
    // A range that begins elsewhere would hold other numbers at the same places.
    let begins = node.op_type != "Range"
        || (walk.integers(node, 0) == Some(vec![0]) && walk.integers(node, 2) == Some(vec![1]));
    let of_lengths =
        (0..node.inputs.len()).filter_map(|at| walk.given(node, at)).all(|(_, kind)| {
            kind == PaddedValue::Lengths || kind == PaddedValue::Data(PaddedValueAxes::new())
        });
    match begins && of_lengths {
        true => Ok(vec![walk.anything(node)?]),
        false => Err("what it makes depends on the length in another way".to_owned()),
    }
}

pub(super) fn expand(walk: &mut PaddingWalk<'_>, node: &Node) -> Result<Vec<PaddedValue>, String> {
    let (id, own) = walk.data(node, 0)?;
    let PaddedValue::Data(mut axes) = walk.anything(node)? else {
        return Err("no tensor".to_owned());
    };
    let output = node.outputs.first().copied().flatten().ok_or("it gives nothing")?;
    let rank = walk.dims(output)?.len();
    let inner = walk.dims(id)?.len();
    for (&axis, behind) in &mut axes {
        let at = (axis + inner).checked_sub(rank);
        if let Some(own) = at.and_then(|at| own.get(&at)) {
            *behind = *own;
        }
    }
    Ok(vec![PaddedValue::Data(axes)])
}

/// How many elements lengths are: numbers multiplied, and names in their order.
fn volume(dims: &[Dim]) -> (usize, Vec<String>) {
    let number = dims.iter().filter_map(Dim::known).fold(1, usize::saturating_mul);
    let named = dims.iter().filter(|dim| dim.known().is_none());
    let mut names: Vec<String> = named.map(|dim| format!("{dim:?}")).collect();
    names.sort();
    (number, names)
}

/// `Reshape`, `Flatten`, `Squeeze`, `Unsqueeze`: the axes stay whole, with as many elements before each as there were.
pub(super) fn reshape(walk: &mut PaddingWalk<'_>, node: &Node) -> Result<Vec<PaddedValue>, String> {
    let (id, own) = match walk.given(node, 0) {
        Some((_, PaddedValue::Lengths)) => return Ok(vec![PaddedValue::Lengths]),
        _ => walk.data(node, 0)?,
    };
    let output = node.outputs.first().copied().flatten().ok_or("it gives nothing")?;
    let before = walk.dims(id)?;
    let after = walk.dims(output)?;
    let to = walk.axes(output)?;
    let same = |from: usize, to: usize| volume(&before[..from]) == volume(&after[..to]);
    if to.len() != own.len() || !own.keys().zip(&to).all(|(&from, &to)| same(from, to)) {
        return Err("positions are cut up or put together with other axes".to_owned());
    }
    Ok(vec![PaddedValue::Data(padded_axes(to.into_iter().zip(own.into_values())))])
}

pub(super) fn transpose(
    walk: &mut PaddingWalk<'_>,
    node: &Node,
) -> Result<Vec<PaddedValue>, String> {
    let (id, own) = walk.data(node, 0)?;
    let rank = walk.dims(id)?.len();
    let perm = node.operator::<Transpose>().ok_or("no order of axes")?.perm.clone();
    let perm = perm.unwrap_or_else(|| (0..rank).rev().collect());
    let moved = perm.iter().enumerate();
    Ok(vec![PaddedValue::Data(padded_axes(
        moved.filter_map(|(to, from)| Some((to, *own.get(from)?))),
    ))])
}

pub(super) fn concat(walk: &mut PaddingWalk<'_>, node: &Node) -> Result<Vec<PaddedValue>, String> {
    let all: Vec<_> = (0..node.inputs.len()).filter_map(|at| walk.given(node, at)).collect();
    if all.iter().any(|(_, kind)| *kind == PaddedValue::Lengths) {
        return Ok(vec![PaddedValue::Lengths]);
    }
    let output = node.outputs.first().copied().flatten().ok_or("it gives nothing")?;
    let axis = node.operator::<Concat>().ok_or("no axis")?.axis;
    let axis = resolved(axis, walk.dims(output)?.len())?;
    let mut axes = PaddedValueAxes::new();
    for at in walk.axes(output)? {
        let behind = all.iter().map(|(_, kind)| match kind {
            PaddedValue::Data(own) => own.get(&at).copied(),
            PaddedValue::Lengths => None,
        });
        let behind: Option<Vec<PaddingContent>> = behind.collect();
        let behind = behind.ok_or("one input lacks an axis of the length")?;
        let first = behind.first().copied().unwrap_or(PaddingContent::Any);
        axes.insert(
            at,
            if behind.iter().all(|one| *one == first) { first } else { PaddingContent::Any },
        );
    }
    let joins = all
        .iter()
        .any(|(_, kind)| matches!(kind, PaddedValue::Data(own) if own.contains_key(&axis)));
    match joins {
        true => Err("what stands behind would come between".to_owned()),
        false => Ok(vec![PaddedValue::Data(axes)]),
    }
}

pub(super) fn split(walk: &mut PaddingWalk<'_>, node: &Node) -> Result<Vec<PaddedValue>, String> {
    let (id, own) = walk.data(node, 0)?;
    let axis = node.operator::<Split>().ok_or("no axis")?.axis;
    match own.contains_key(&resolved(axis, walk.dims(id)?.len())?) {
        true => Err("it cuts the length".to_owned()),
        false => Ok(vec![PaddedValue::Data(own)]),
    }
}

pub(super) fn gather(walk: &mut PaddingWalk<'_>, node: &Node) -> Result<Vec<PaddedValue>, String> {
    if let Some((_, PaddedValue::Lengths)) = walk.given(node, 0) {
        return match walk.is_free_from(node, 1) {
            true => Ok(vec![PaddedValue::Lengths]),
            false => Err("it looks for a length by what it is given".to_owned()),
        };
    }
    let (id, own) = walk.data(node, 0)?;
    let (places, looked) = walk.data(node, 1)?;
    let axis = node.operator::<Gather>().ok_or("no axis")?.axis;
    let axis = resolved(axis, walk.dims(id)?.len())?;
    if own.contains_key(&axis)
        && walk.integers(node, 1).is_none_or(|all| all.iter().any(|&at| at != 0))
    {
        // The first position is there at any length; others may not be, and the last is another one.
        return Err("it looks for other positions than the first".to_owned());
    }
    let width = walk.dims(places)?.len();
    let mut axes = padded_axes(looked.keys().map(|at| (axis + at, PaddingContent::Any)));
    for (&at, &behind) in own.iter().filter(|(at, _)| **at != axis) {
        axes.insert(if at < axis { at } else { at + width - 1 }, behind);
    }
    Ok(vec![PaddedValue::Data(axes)])
}

pub(super) fn slice(walk: &mut PaddingWalk<'_>, node: &Node) -> Result<Vec<PaddedValue>, String> {
    if let Some((_, PaddedValue::Lengths)) = walk.given(node, 0) {
        return match walk.is_free_from(node, 1) {
            true => Ok(vec![PaddedValue::Lengths]),
            false => Err("it cuts lengths by what it is given".to_owned()),
        };
    }
    let (id, own) = walk.data(node, 0)?;
    let output = node.outputs.first().copied().flatten().ok_or("it gives nothing")?;
    let before = walk.dims(id)?;
    let after = walk.dims(output)?;
    let mut axes = PaddedValueAxes::new();
    let starts = walk.integers(node, 1);
    let count = starts.as_ref().map_or(0, Vec::len);
    let named = match node.input(3) {
        Some(_) => walk.integers(node, 3),
        None => Some((0..i64::try_from(count).unwrap_or(0)).collect()),
    };
    let steps = match node.input(4) {
        Some(_) => walk.integers(node, 4),
        None => Some(vec![1; count]),
    };
    for axis in 0..before.len() {
        let length = walk.axes(output)?.contains(&axis);
        if !length && !own.contains_key(&axis) {
            continue;
        }
        // The front of it: what is real stays where it is.
        let at = named
            .as_ref()
            .and_then(|all| all.iter().position(|&one| resolved(one, before.len()) == Ok(axis)));
        let from_front = match at {
            None => named.is_some(),
            Some(at) => {
                starts.as_ref().and_then(|all| all.get(at)) == Some(&0)
                    && steps.as_ref().and_then(|all| all.get(at)) == Some(&1)
            }
        };
        let kept = match (length, own.get(&axis)) {
            (true, behind) => Some(behind.copied().unwrap_or(PaddingContent::Any)),
            (false, _) => None,
        };
        let first = kept.is_some() || after.get(axis) == Some(&Dim::Known(1));
        if !from_front || !first {
            return Err("it cuts the length".to_owned());
        }
        axes.extend(kept.map(|behind| (axis, behind)));
    }
    Ok(vec![PaddedValue::Data(axes)])
}
