//! `Scatter`, `ScatterElements` and `ScatterND`: a copy of a tensor with some elements written.

use galatea_tensor::{ByteString, DataType, Element, SmallType, Tensor, bf16, f16, with_number};

use super::{check_inside, position};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::expect_same;
use crate::ops::{bounds, picks};

/// Effect of an update on the element that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScatterReduction {
    /// Replaces it.
    None,
    /// Is added.
    Add,
    /// Is multiplied.
    Mul,
    /// The larger one stays.
    Max,
    /// The smaller one stays.
    Min,
}

impl ScatterReduction {
    /// Reads the attribute `reduction`, which is there from opset 16 on. ONNX Runtime takes `max` and `min` before
    /// opset 18 too.
    fn parse(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        if context.opset < 16 {
            return Ok(Self::None);
        }
        let names = ["none", "add", "mul", "max", "min"];
        let choice = context.attributes.choice("reduction", &names, 0)?;
        Ok([Self::None, Self::Add, Self::Mul, Self::Max, Self::Min][choice])
    }
}

/// Elements that updates combine with; integers wrap, booleans add as "or".
trait ScatterElement: Element {
    /// The sum or the product; strings are joined, and have no product.
    fn arithmetic(&self, other: &Self, product: bool) -> Option<Self>;
}

macro_rules! combine {
    ($($rust:ty: |$a:ident, $b:ident| $sum:expr, $product:expr;)*) => {$(
        impl ScatterElement for $rust {
            fn arithmetic(&self, other: &Self, product: bool) -> Option<Self> {
                let ($a, $b) = (self.clone(), other.clone());
                if product { $product } else { $sum }
            }
        }
    )*};
}

combine! {
    bool: |a, b| Some(a | b), Some(a & b);
    u8: |a, b| Some(a.wrapping_add(b)), Some(a.wrapping_mul(b));
    u16: |a, b| Some(a.wrapping_add(b)), Some(a.wrapping_mul(b));
    u32: |a, b| Some(a.wrapping_add(b)), Some(a.wrapping_mul(b));
    u64: |a, b| Some(a.wrapping_add(b)), Some(a.wrapping_mul(b));
    i8: |a, b| Some(a.wrapping_add(b)), Some(a.wrapping_mul(b));
    i16: |a, b| Some(a.wrapping_add(b)), Some(a.wrapping_mul(b));
    i32: |a, b| Some(a.wrapping_add(b)), Some(a.wrapping_mul(b));
    i64: |a, b| Some(a.wrapping_add(b)), Some(a.wrapping_mul(b));
    f16: |a, b| Some(a + b), Some(a * b);
    bf16: |a, b| Some(a + b), Some(a * b);
    f32: |a, b| Some(a + b), Some(a * b);
    f64: |a, b| Some(a + b), Some(a * b);
    ByteString: |a, b| Some([a.as_bytes(), b.as_bytes()].concat().into()), None;
}

/// Runs of adjacent elements that the updates, one run after the other, go to.
struct ScatterTargets {
    /// The offset of each run.
    starts: Vec<usize>,
    /// Elements of a run.
    run: usize,
}

impl ScatterTargets {
    fn scatter(
        &self,
        data: &Tensor,
        updates: &Tensor,
        reduction: ScatterReduction,
    ) -> Result<Tensor, OpError> {
        expect_same(data.dtype(), updates.dtype())?;
        if reduction == ScatterReduction::None {
            return picks::overwritten(data, updates, &self.starts, self.run);
        }
        let combined = with_number!(data.dtype(), T => {
            self.combined::<T>(data, updates, reduction)?
        }, else {
            match data.dtype() {
                DataType::Small(small) => self.combined_small(data, updates, reduction, small)?,
                DataType::Bool => self.combined::<bool>(data, updates, reduction)?,
                _ => self.combined::<ByteString>(data, updates, reduction)?,
            }
        });
        combined.ok_or_else(|| {
            OpError::new(format!("type {} neither adds nor multiplies", data.dtype()))
        })
    }

    fn combined<T: ScatterElement + PartialOrd>(
        &self,
        data: &Tensor,
        updates: &Tensor,
        reduction: ScatterReduction,
    ) -> Result<Option<Tensor>, OpError> {
        let mut values = data.to_vec::<T>()?;
        let updates = updates.to_vec::<T>()?;
        let done = self.each(&mut values, &updates, |slot, value| update(slot, value, reduction));
        Ok(if done { Some(Tensor::from_vec(data.shape(), values)?) } else { None })
    }

    /// Small types have an order only.
    fn combined_small(
        &self,
        data: &Tensor,
        updates: &Tensor,
        reduction: ScatterReduction,
        small: SmallType,
    ) -> Result<Option<Tensor>, OpError> {
        let mut codes = data.to_carriers::<u8>()?;
        let updates = updates.to_carriers::<u8>()?;
        let done = self.each(&mut codes, &updates, |slot, code| {
            if replaces(&small.value(*slot), &small.value(*code), reduction) {
                *slot = *code;
            }
            matches!(reduction, ScatterReduction::Max | ScatterReduction::Min)
        });
        let whole = || Tensor::from_carriers(data.dtype(), data.shape(), codes);
        Ok(if done { Some(whole()?) } else { None })
    }

    /// Gives every element that is written and its update to a function that says whether it did it.
    fn each<T>(
        &self,
        values: &mut [T],
        updates: &[T],
        update: impl Fn(&mut T, &T) -> bool,
    ) -> bool {
        updates.iter().enumerate().all(|(at, value)| {
            update(&mut values[self.starts[at / self.run] + at % self.run], value)
        })
    }
}

/// Combines an element with an update; returns whether its type can.
fn update<T: ScatterElement + PartialOrd>(
    slot: &mut T,
    value: &T,
    reduction: ScatterReduction,
) -> bool {
    let combined = match reduction {
        ScatterReduction::Add => slot.arithmetic(value, false),
        ScatterReduction::Mul => slot.arithmetic(value, true),
        _ if replaces(slot, value, reduction) => Some(value.clone()),
        _ => return true,
    };
    combined.map(|combined| *slot = combined).is_some()
}

/// Returns whether an update takes the place of an element where nothing is added or multiplied.
fn replaces<T: PartialOrd>(slot: &T, value: &T, reduction: ScatterReduction) -> bool {
    // A NaN compares with nothing, and stays.
    let is_nan = || value.partial_cmp(value).is_none();
    match reduction {
        ScatterReduction::Max => *value > *slot || is_nan(),
        ScatterReduction::Min => *value < *slot || is_nan(),
        _ => true,
    }
}

/// The output of every scatter: like the data.
fn like_data(inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
    let data = inputs.required(0)?;
    let updates = inputs.required(2)?;
    if data.dtype != updates.dtype {
        let text = format!("updates of type {} for data of type {}", updates.dtype, data.dtype);
        return Err(OpError::new(text));
    }
    Ok(vec![Fact::shaped(data.dtype, data.shape.clone())])
}

/// ONNX `ScatterElements`, and `Scatter` before it had that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScatterElements {
    /// The axis whose position the indices replace; may count from the end.
    pub axis: i64,
    /// How updates combine.
    pub reduction: ScatterReduction,
}

impl ScatterElements {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let axis = context.attributes.int_or("axis", 0)?;
        Ok(Box::new(Self { axis, reduction: ScatterReduction::parse(context)? }))
    }

    fn scatter(
        &self,
        data: &Tensor,
        indices: &Tensor,
        updates: &Tensor,
    ) -> Result<Tensor, OpError> {
        let axis = bounds::axis(self.axis, data.rank())?;
        check_inside(data.shape(), indices.shape(), axis)?;
        if indices.shape() != updates.shape() {
            return Err(OpError::new(format!(
                "indices of shape {:?} with updates of shape {:?}",
                indices.shape(),
                updates.shape()
            )));
        }
        let steps = bounds::steps(data.shape());
        let mut starts = Vec::with_capacity(indices.elements());
        for (mut index, at) in bounds::indices(indices.shape()).zip(indices.to_i64_vec()?) {
            index[axis] = position(at, data.shape()[axis])?;
            starts.push(index.iter().zip(&steps).map(|(at, step)| at * step).sum());
        }
        ScatterTargets { starts, run: 1 }.scatter(data, updates, self.reduction)
    }
}

impl Operator for ScatterElements {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        if let Some(rank) = inputs.required(0)?.rank() {
            bounds::axis(self.axis, rank)?;
        }
        like_data(inputs)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let indices = inputs.required(1)?;
        let updates = inputs.required(2)?;
        bounds::bounded(data.dtype(), data.shape())?;
        Ok(vec![self.scatter(data, indices, updates)?])
    }
}

/// ONNX `ScatterND`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScatterND {
    /// How updates combine.
    pub reduction: ScatterReduction,
}

impl ScatterND {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { reduction: ScatterReduction::parse(context)? }))
    }

    fn scatter(
        &self,
        data: &Tensor,
        indices: &Tensor,
        updates: &Tensor,
    ) -> Result<Tensor, OpError> {
        let misfit = || {
            OpError::new(format!(
                "indices of shape {:?} and updates of shape {:?} do not fit data of shape {:?}",
                indices.shape(),
                updates.shape(),
                data.shape()
            ))
        };
        let (&tuple, outer) = indices.shape().split_last().ok_or_else(misfit)?;
        if tuple > data.rank() || updates.shape() != [outer, &data.shape()[tuple..]].concat() {
            return Err(misfit());
        }
        let picks = indices.to_i64_vec()?;
        let steps = bounds::steps(data.shape());
        let run: usize = data.shape()[tuple..].iter().product();
        let rows = outer.iter().product::<usize>();
        let mut starts = Vec::with_capacity(rows);
        for row in 0..rows {
            let mut offset = 0;
            for (axis, &pick) in picks[row * tuple..(row + 1) * tuple].iter().enumerate() {
                offset += position(pick, data.shape()[axis])? * steps[axis];
            }
            starts.push(offset);
        }
        ScatterTargets { starts, run }.scatter(data, updates, self.reduction)
    }
}

impl Operator for ScatterND {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        like_data(inputs)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let indices = inputs.required(1)?;
        let updates = inputs.required(2)?;
        bounds::bounded(data.dtype(), data.shape())?;
        Ok(vec![self.scatter(data, indices, updates)?])
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::{ByteString, DataType, SmallType, Tensor};

    use crate::ops::testing::{attributes, int, one, run, tensor, text};

    #[test]
    fn elements_are_written_or_combined() {
        let data = tensor(&[1, 3], &[1_f32, 2.0, 3.0]);
        let indices = tensor::<i64>(&[1, 2], &[1, -1]);
        let updates = tensor(&[1, 2], &[5_f32, 1.0]);
        let of = |reduction: &str| {
            let attributes = attributes([("axis", int(1)), ("reduction", text(reduction))]);
            let result = one("ScatterElements", 18, &attributes, &[&data, &indices, &updates]);
            result.to_vec::<f32>().unwrap()
        };
        assert_eq!(of("none"), [1.0, 5.0, 1.0]);
        assert_eq!(of("add"), [1.0, 7.0, 4.0]);
        assert_eq!(of("mul"), [1.0, 10.0, 3.0]);
        assert_eq!(of("max"), [1.0, 5.0, 3.0]);
        assert_eq!(of("min"), [1.0, 2.0, 1.0]);
    }

    #[test]
    fn rows_are_written_by_tuple() {
        let data = tensor(&[2, 2], &[1_i64, 2, 3, 4]);
        let rows = tensor::<i64>(&[1, 1], &[1]);
        let updates = tensor(&[1, 2], &[8_i64, 9]);
        let result = one("ScatterND", 11, &attributes([]), &[&data, &rows, &updates]);
        assert_eq!(result, tensor(&[2, 2], &[1_i64, 2, 8, 9]));
    }

    #[test]
    fn misfits_are_errors() {
        let data = tensor(&[2, 2], &[1_i64, 2, 3, 4]);
        let far = tensor::<i64>(&[1, 1], &[2]);
        let updates = tensor(&[1, 2], &[8_i64, 9]);
        let inputs = [Some(&data), Some(&far), Some(&updates)];
        assert!(run("ScatterND", 11, &attributes([]), &inputs, 1).is_err());
        assert!(run("ScatterElements", 11, &attributes([]), &inputs, 1).is_err());
        assert!(run("Scatter", 9, &attributes([]), &inputs, 1).is_err());
    }

    #[test]
    fn strings_are_joined() {
        let of = |all: [&str; 2]| Tensor::vector(all.map(ByteString::from).to_vec());
        let indices = tensor::<i64>(&[2], &[1, 1]);
        let list = attributes([("reduction", text("add"))]);
        let data = of(["a", "b"]);
        let updates = of(["c", "d"]);
        let inputs = [Some(&data), Some(&indices), Some(&updates)];
        let joined = run("ScatterElements", 18, &list, &inputs, 1).unwrap();
        assert_eq!(joined[0], of(["a", "bcd"]));
        let list = attributes([("reduction", text("mul"))]);
        assert!(run("ScatterElements", 18, &list, &inputs, 1).is_err());
    }

    #[test]
    fn small_types_have_extremes_and_no_sums() {
        let int4 = DataType::Small(SmallType::Int4);
        let of = |codes: &[u8]| Tensor::from_bytes(int4, &[codes.len()], codes).unwrap();
        let (data, updates) = (of(&[15, 3]), of(&[2, 14]));
        let indices = tensor::<i64>(&[2], &[0, 1]);
        let scattered = |reduction: &str| {
            let attributes = attributes([("reduction", text(reduction))]);
            let inputs = [Some(&data), Some(&indices), Some(&updates)];
            run("ScatterElements", 18, &attributes, &inputs, 1).map(|mut all| all.remove(0))
        };
        assert_eq!(scattered("max").unwrap(), of(&[2, 3]));
        assert_eq!(scattered("min").unwrap(), of(&[15, 14]));
        assert!(scattered("add").unwrap_err().to_string().contains("neither adds"));
    }
}
