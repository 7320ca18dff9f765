//! Masks that hide keys from queries, beside scores that lie as (B, keys, 1, queries).

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_graph::{ValueId, converted};
use galatea_tensor::{DataType, Tensor};

use crate::ane_values::{AneMask, AneMaskKey, LayoutAxes};
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, UnwritableNode};

/// Returns the number that hides a key, and the number below which a mask's number counts as
/// hiding. FP16 keeps sums with -10⁴ apart from infinities; masks that add -10⁴ themselves hide no
/// key from a query that sees no other.
fn hidden(element: MilElement) -> (f32, f32) {
    match element {
        MilElement::Fp16 => (-1e4, -2e4),
        _ => (-1e30, -1e30),
    }
}

impl ProgramEmitter<'_> {
    /// The mask of scores `[batch, heads, queries, keys]`; none where nothing hides keys. `to_zero` is
    /// whether a query that sees none gives zeros.
    pub(super) fn mask(&mut self, key: AneMaskKey, to_zero: bool) -> Result<Option<AneMask>> {
        if let Some(known) = self.favoured.as_ref().and_then(|favoured| favoured.masks.get(&key)) {
            return Ok(Some(known.clone()));
        }
        let (id, causal, [_, _, queries, keys]) = key;
        let square = [1, 1, queries, keys];
        let found = match id.map(|id| (id, self.constant_tensor(id))) {
            None if !causal => return Ok(None),
            None => self.fixed_mask(&square, behind(queries, keys, 0.0))?,
            Some((_, Some(tensor))) => {
                let (shape, all) = known(&tensor, causal.then_some([queries, keys]))?;
                self.fixed_mask(&shape, all)?
            }
            Some((id, None)) => {
                let behind = match causal {
                    true => Some(self.turned_mask(&square, &behind(queries, keys, f32::MAX))?),
                    false => None,
                };
                self.found_mask(id, behind, to_zero)?
            }
        };
        if let Some(favoured) = &mut self.favoured {
            favoured.masks.insert(key, found.clone());
        }
        Ok(Some(found))
    }

    /// Numbers `[batch, heads, queries, keys]` as `(batch, keys, heads, queries)`.
    fn turned_mask(&mut self, shape: &[usize], all: &[f32]) -> Result<MilVar> {
        let failed = |error: galatea_tensor::TensorError| UnwritableNode(error.to_string());
        let tensor = Tensor::from_slice(shape, all).map_err(failed)?;
        let turned = tensor.permute(&[0, 3, 1, 2]).map_err(failed)?;
        self.tensor(&turned.contiguous().map_err(failed)?)
    }

    /// A mask that is known before a run.
    fn fixed_mask(&mut self, shape: &[usize], mut all: Vec<f32>) -> Result<AneMask> {
        let (value, limit) = hidden(self.float_element());
        let width = shape.last().copied().unwrap_or(1).max(1);
        let sees = |row: &[f32]| f32::from(u8::from(row.iter().any(|&value| value > limit)));
        let seen: Vec<f32> = all.chunks(width).map(sees).collect();
        all.iter_mut().for_each(|one| *one = one.max(value));
        let added = self.turned_mask(shape, &all)?;
        let rows = [shape[0], shape[1], shape[2], 1];
        let seen = match seen.contains(&0.0) {
            true => Some(self.turned_mask(&rows, &seen)?),
            false => None,
        };
        Ok(AneMask { added, seen })
    }

    /// A mask that a run brings, and what it hides besides.
    fn found_mask(
        &mut self,
        id: ValueId,
        behind: Option<MilVar>,
        to_zero: bool,
    ) -> Result<AneMask> {
        let shape = self.shape(id)?;
        let rank = shape.len();
        let heads = rank >= 3 && shape[rank - 3] > 1;
        let mut mask = if heads {
            let whole: Vec<usize> = (0..4 - rank).collect();
            let plain = self.value(id)?;
            let plain = self.unsqueeze(&plain, &whole)?;
            self.transpose(&plain, &[0, 3, 1, 2])?
        } else {
            let keys = rank.saturating_sub(1);
            let queries = rank.wrapping_sub(2);
            let batch = if rank == 4 { vec![0] } else { Vec::new() };
            let axes = LayoutAxes::new(&shape, [&batch, &[keys], &[queries]]);
            self.form_in(id, &axes)?
        };
        if let Some(behind) = behind {
            mask = self.pair("minimum", &mask, &behind)?;
        }
        let (value, limit) = hidden(self.float_element());
        // Heads that see nothing do so together.
        let axes = if heads && !to_zero { vec![1, 2] } else { vec![1] };
        let inputs = vec![
            ("x", (&mask).into()),
            ("axes", MilArg::Ints(axes)),
            ("keep_dims", MilArg::Bool(true)),
        ];
        let best = self.op("reduce_max", inputs)?;
        let limit = self.float(limit);
        let sees = self.pair("greater", &best, limit)?;
        let seen = self.cast(&sees, self.float_element())?;
        let least = self.float(value);
        let most = self.float(f32::MAX);
        let inputs = vec![("x", (&mask).into()), ("alpha", least), ("beta", most)];
        let added = self.op("clip", inputs)?;
        Ok(AneMask { added, seen: Some(seen) })
    }
}

/// Returns the mask that hides the keys behind each query, if the queries are the last positions;
/// `elsewhere` for all others.
fn behind(queries: usize, keys: usize, elsewhere: f32) -> Vec<f32> {
    let row = |row: usize| {
        let hides = move |key: usize| key + queries > row + keys;
        (0..keys).map(move |key| if hides(key) { f32::MIN } else { elsewhere })
    };
    (0..queries).flat_map(row).collect()
}

/// A constant mask as numbers with four axes; with the lengths of the scores where keys behind each query
/// are hidden too.
fn known(tensor: &Tensor, causal: Option<[usize; 2]>) -> Result<([usize; 4], Vec<f32>)> {
    let failed = |error: &dyn std::fmt::Display| UnwritableNode(error.to_string());
    let mut shape = [1; 4];
    let front = 4_usize.saturating_sub(tensor.rank());
    shape[front..].copy_from_slice(tensor.shape());
    let wide = converted(tensor, DataType::Fp32).map_err(|error| failed(&error))?;
    let wide = wide.reshape(&shape).map_err(|error| failed(&error))?;
    let Some([queries, keys]) = causal else {
        return Ok((shape, wide.to_vec().map_err(|error| failed(&error))?));
    };
    let whole = [shape[0], shape[1], queries, keys];
    let spread = wide.broadcast_to(&whole).map_err(|error| failed(&error))?;
    let all = spread.to_vec::<f32>().map_err(|error| failed(&error))?;
    let hides = behind(queries, keys, f32::MAX);
    let both = all.iter().zip(hides.iter().cycle()).map(|(mask, hides)| mask.min(*hides));
    Ok((whole, both.collect()))
}
