//! `MRotaryEmbedding`: pairs that turn by positions in time, height and width.

use galatea_tensor::Tensor;

use super::rotary_embedding::RotaryCaches;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::transformer::RotaryEmbedding;
use crate::ops::transformer::heads::WideHeads;
use crate::ops::values::expect_float;

/// Kinds of positions: time, height and width.
const KINDS: usize = 3;

/// `MRotaryEmbedding` of domain `com.microsoft`, of models that read pictures and videos.
///
/// Inputs: `X` `[B, S, heads · width]` or `[B, heads, S, width]`, positions `[3, B, S]`, and the caches
/// `[longest, pairs]` of cosines and sines.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiRotaryEmbedding {
    /// How pairs turn.
    pub rotary: RotaryEmbedding,
    /// Pairs of each kind of position.
    pub sections: [usize; KINDS],
    /// True if kinds take turns; else pairs of one kind lie side by side.
    pub alternates: bool,
    /// The factor of cosines and sines.
    pub scale: f32,
}

impl MultiRotaryEmbedding {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        // It allows positions beyond the length of the caches, whose rows are checked here one by one.
        context.attributes.ignore("is_packed_batching");
        let scale = context.attributes.float_or("scale", 1.0)?;
        let mut length =
            |name: &'static str| bounds::length(context.attributes.int_or(name, 0)?, name);
        let heads = length("num_heads")?;
        let rotary_dim = length("rotary_embedding_dim")?;
        let interleaved = context.attributes.flag("interleaved", false)?;
        let alternates = match context.attributes.int_or("mrope_layout", 0)? {
            0 => false,
            1 => true,
            other => {
                let text = format!("attribute 'mrope_layout' is {other}, expected 0 or 1");
                return Err(OpError::new(text));
            }
        };
        let sections = context.attributes.ints("mrope_section")?.unwrap_or_default();
        let sections = bounds::lengths(&sections, "a number of 'mrope_section'")?;
        let sections = sections.try_into().map_err(|found: Vec<usize>| {
            let text = "attribute 'mrope_section' has";
            OpError::new(format!("{text} {} numbers, expected {KINDS}", found.len()))
        })?;
        let num_heads = Some(heads).filter(|heads| *heads > 0);
        let rotary = RotaryEmbedding { interleaved, rotary_dim, num_heads };
        Ok(Box::new(Self { rotary, sections, alternates, scale }))
    }

    /// The kind of position of each pair.
    fn kinds(&self, pairs: usize) -> Result<Vec<usize>, OpError> {
        let sum = self.sections.iter().try_fold(0_usize, |sum, one| sum.checked_add(*one));
        if sum != Some(pairs) {
            let text = format!("sections {:?} of {pairs} pairs", self.sections);
            return Err(OpError::new(text));
        }
        if !self.alternates {
            let all = self.sections.iter().enumerate();
            return Ok(all.flat_map(|(kind, &count)| std::iter::repeat_n(kind, count)).collect());
        }
        let kind = |pair: usize| match pair % KINDS {
            0 => 0,
            kind if pair < self.sections[kind] * KINDS => kind,
            _ => 0,
        };
        Ok((0..pairs).map(kind).collect())
    }
}

impl Operator for MultiRotaryEmbedding {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        Ok(vec![Fact { value: None, elements: None, ..x.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let caches = RotaryCaches::read(inputs.required(2)?, inputs.required(3)?)?;
        let mut all = WideHeads::read(x, self.rotary.num_heads, "X")?;
        let [batch, _, length, width] = all.shape;
        let pairs = self.rotary.pairs(width)?;
        if pairs != caches.pairs() {
            return Err(OpError::new(format!("{pairs} pairs with caches of {}", caches.pairs())));
        }
        let kinds = self.kinds(pairs)?;
        let positions = inputs.required(1)?;
        if positions.shape() != [KINDS, batch, length] {
            let (found, expected) = (positions.shape(), [KINDS, batch, length]);
            let text = format!("positions of shape {found:?}, expected {expected:?}");
            return Err(OpError::new(text));
        }
        let numbers = positions.to_i64_vec()?;
        let scale = f64::from(self.scale);
        self.rotary.turn(&mut all, |b, s| {
            let mut found = (vec![0.0; pairs], vec![0.0; pairs]);
            for kind in 0..KINDS {
                let (cos, sin) = caches.at(numbers[(kind * batch + b) * length + s])?;
                for pair in (0..pairs).filter(|&pair| kinds[pair] == kind) {
                    (found.0[pair], found.1[pair]) = (cos[pair] * scale, sin[pair] * scale);
                }
            }
            Ok(found)
        })?;
        let packed = x.rank() == 3;
        Ok(vec![if packed { all.write_packed(x.dtype())? } else { all.write(x.dtype())? }])
    }
}

#[cfg(test)]
mod tests {
    use crate::AttributeValue;
    use crate::attribute::Attributes;
    use crate::ops::testing::{attributes, int, ints, one, run, tensor};

    // Expected values are those of ONNX Runtime.
    #[test]
    fn pairs_turn_by_the_position_of_their_kind() {
        let quarters = |shape: &[usize]| {
            let count = shape.iter().product::<usize>();
            tensor(shape, &(0..count).map(|n| n as f32 / 4.0).collect::<Vec<_>>())
        };
        let positions = tensor(&[3, 1, 2], &[0_i64, 1, 1, 2, 2, 0]);
        let cos = tensor(&[3, 3], &[1.0_f32, 0.5, 0.25, 0.8, 0.4, 0.2, 0.6, 0.3, 0.1]);
        let sin = tensor(&[3, 3], &[0.6_f32, 0.3, 0.1, 0.8, 0.4, 0.2, 1.0, 0.5, 0.25]);
        let list = |more: &[(&str, i64)]| -> Attributes {
            let own = [("mrope_section", ints(&[1, 1, 1])), ("num_heads", int(1))];
            let more = more.iter().map(|&(name, value)| (name, int(value)));
            own.into_iter().chain(more).map(|(name, value)| (name.to_owned(), value)).collect()
        };
        let name = "com.microsoft:MRotaryEmbedding";
        let x = quarters(&[1, 2, 6]);
        let near = |found: &[f32], expected: &[f32]| {
            assert_eq!(found.len(), expected.len());
            let pairs = found.iter().zip(expected);
            pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-6, "{found:?}"));
        };
        let split =
            [-0.45, -0.3, -0.2625, 0.75, 0.5, 0.25, -0.6, -0.725, 0.225, 3.0, 1.625, 0.8875];
        let side = [-0.15, 0.25, -0.1, 0.5, -0.2125, 0.375, -0.2, 2.6, -0.525, 1.675, 0.35, 0.9375];
        for (more, expected) in
            [(&[][..], &split), (&[("interleaved", 1)], &side), (&[("mrope_layout", 1)], &split)]
        {
            let found = one(name, 1, &list(more), &[&x, &positions, &cos, &sin]);
            near(&found.to_vec::<f32>().unwrap(), expected);
        }
        let heads = quarters(&[1, 2, 2, 4]);
        let part = attributes([
            ("mrope_section", ints(&[0, 0, 1])),
            ("num_heads", int(2)),
            ("rotary_embedding_dim", int(2)),
            ("scale", AttributeValue::Float(2.0)),
        ]);
        let (one_cos, one_sin) =
            (tensor(&[3, 1], &[1.0_f32, 0.8, 0.6]), tensor(&[3, 1], &[0.6_f32, 0.8, 1.0]));
        let found = one(name, 1, &part, &[&heads, &positions, &one_cos, &one_sin]);
        let expected =
            [-0.5, 0.3, 0.5, 0.75, 0.5, 3.7, 1.5, 1.75, -2.1, 6.7, 2.5, 2.75, 2.1, 10.1, 3.5, 3.75];
        near(&found.to_vec::<f32>().unwrap(), &expected);
        let inputs = [Some(&x), Some(&positions), Some(&one_cos), Some(&one_sin)];
        assert!(run(name, 1, &list(&[]), &inputs, 1).is_err());
        assert!(run(name, 1, &list(&[("mrope_layout", 2)]), &inputs, 1).is_err());
        let two = attributes([("mrope_section", ints(&[1, 2]))]);
        assert!(run(name, 1, &two, &inputs, 1).unwrap_err().contains("2 numbers, expected 3"));
    }
}
