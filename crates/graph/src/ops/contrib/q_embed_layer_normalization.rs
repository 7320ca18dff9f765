//! `QEmbedLayerNormalization`: [`EmbedLayerNormalization`] with tables of bytes.

use galatea_tensor::{DataType, Tensor};

use super::embed_layer_normalization::EmbedLayerNormalization;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{expect_type, floats, from_floats, integers};

/// The first layer of BERT with tables of `INT8` or `UINT8`, of domain `com.microsoft`.
///
/// Inputs: word and segment numbers, the tables of words, positions and segments, `gamma`, `beta`, a mask, the scales
/// of these five tables, and their zero points. Outputs: `[B, S, hidden]`, and how many words each row of the
/// mask has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QEmbedLayerNormalization {
    /// The operator on floats.
    pub plain: EmbedLayerNormalization,
}

/// Input of the first table, of the first scale and of the first zero point; four others follow each.
const TABLES: [usize; 3] = [2, 8, 13];

impl QEmbedLayerNormalization {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let epsilon = context.attributes.float_or("epsilon", 1e-12)?;
        Ok(Box::new(Self { plain: EmbedLayerNormalization { epsilon } }))
    }
}

/// A table as floats.
fn dequantised(table: &Tensor, scale: &Tensor, zero: &Tensor) -> Result<Tensor, OpError> {
    let (&[scale], &[zero]) = (&floats(scale)?[..], &integers(zero)?[..]) else {
        return Err(OpError::new("a scale or zero point has more than one element"));
    };
    #[allow(clippy::cast_precision_loss, reason = "bytes")]
    let all = integers(table)?.into_iter().map(|q| (q - zero) as f64 * scale).collect();
    from_floats(DataType::Fp32, table.shape(), all)
}

impl Operator for QEmbedLayerNormalization {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let words = inputs.required(TABLES[0])?;
        let takes = |dtype| matches!(dtype, DataType::Int8 | DataType::Uint8);
        expect_type("the table of words", words.dtype, takes, "INT8 or UINT8")?;
        let words = Fact::shaped(DataType::Fp32, words.shape.clone());
        let operands = [Some(inputs.required(0)?), None, Some(&words)];
        let mut found = self.plain.infer(OperatorInputs::new(&operands))?;
        found.truncate(2);
        Ok(found)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let mut tables = Vec::with_capacity(5);
        for at in 0..5 {
            let [table, scale, zero] = TABLES.map(|first| inputs.optional(first + at));
            tables.push(match (table, scale, zero) {
                (Some(table), Some(scale), Some(zero)) => Some(dequantised(table, scale, zero)?),
                (None, None, None) if at == 2 => None,
                _ => {
                    let text = format!("table {at} lacks itself, its scale or its zero point");
                    return Err(OpError::new(text));
                }
            });
        }
        let segments = inputs.optional(1);
        if segments.is_some() != tables[2].is_some() {
            return Err(OpError::new("segments without their table, or the other way round"));
        }
        let mut operands = vec![Some(inputs.required(0)?), segments];
        operands.extend(tables.iter().map(Option::as_ref));
        operands.push(inputs.optional(7));
        let mut found = self.plain.reference(OperatorInputs::new(&operands))?;
        found.truncate(2);
        Ok(found)
    }
}
