//! `crop_resize`: boxes of an image, each brought to one size.

use galatea_graph::{Attributes, Dim, ValueId};
use galatea_tensor::DataType;

use super::LoweringRow;
use super::activation::single;
use super::lowering::{ProgramLowering, Result, attributes};
use super::operation::LoweredOperation;
use super::resample::bilinear;
use super::resize::{PointGrid, spread};
use super::shape::signed;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[LoweringRow] = &[LoweringRow::new("crop_resize", crop_resize)];

/// The points of all crops, in elements of the image.
struct CropPoints {
    /// `[boxes, height]`, of FP32.
    rows: ValueId,
    /// `[boxes, width]`, of FP32.
    columns: ValueId,
    height: i64,
    width: i64,
}

/// Boxes with an image each, or each box of every image. Points outside of an image are
/// `pad_value`.
fn crop_resize(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    if low.rank(x)? != 4 {
        return Err(CoreMlError::invalid(format!("x has {} axes, expected 4", low.rank(x)?)));
    }
    let (boxes, images) = if op.opset >= 7 { boxes(low, op)? } else { regions(low, op)? };
    let points = CropPoints::read(low, op, x, boxes)?;
    let pad = match op.opset {
        ..6 => 0.0,
        _ => low.float(op, "pad_value")?.unwrap_or(0.0),
    };
    let result = match images {
        Some(images) => {
            let named = attributes([("axis", 0_i64.into())]);
            let each = low.node("Gather", &named, &[x, images])?;
            let grid = points.grid(low)?;
            let found = bilinear(low, each, grid)?;
            let outside = points.outside(low, x)?;
            let outside = low.unsqueeze(outside, &[1])?;
            let found = replaced(low, found, outside, pad)?;
            if op.opset >= 7 { found } else { low.unsqueeze(found, &[1])? }
        }
        None => of_every_image(low, x, &points, pad)?,
    };
    low.give(op, &[result])
}

/// The value where a condition does not hold, else a number.
fn replaced(
    low: &mut ProgramLowering,
    found: ValueId,
    by: ValueId,
    number: f64,
) -> Result<ValueId> {
    let dtype = low.dtype(found)?;
    let number = low.number(number, dtype)?;
    low.plain("Where", &[by, number, found])
}

/// Boxes `[n, 4]` of FP32, and the place of the image of each.
fn boxes(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
) -> Result<(ValueId, Option<ValueId>)> {
    let boxes = low.required(op, "boxes")?;
    let dims = low.dims(boxes)?;
    if dims.len() != 2 || dims.get(1).and_then(Dim::known).is_some_and(|len| len != 4) {
        let text = format!("boxes are {}, expected four numbers each", low.fact(boxes)?);
        return Err(CoreMlError::invalid(text));
    }
    let images = match low.optional(op, "box_indices")? {
        Some(images) => low.cast(images, DataType::Int64)?,
        None => {
            let named = attributes([("start", 0_i64.into()), ("end", 1_i64.into())]);
            let count = low.node("Shape", &named, &[boxes])?;
            let count = low.squeeze(count, &[0])?;
            let zero = low.scalar(0_i64);
            let one = low.scalar(1_i64);
            low.plain("Range", &[zero, count, one])?
        }
    };
    Ok((low.cast(boxes, DataType::Fp32)?, Some(images)))
}

/// Boxes `[n, 4]` of FP32 from regions `[n, 1, 4, 1, 1]`, or `[n, 1, 5, 1, 1]` where the first of
/// five numbers is the place of the image.
fn regions(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
) -> Result<(ValueId, Option<ValueId>)> {
    let regions = low.required(op, "roi")?;
    let numbers = match low.rank(regions)? {
        5 => low.known_len(regions, 2)?,
        _ => 0,
    };
    if numbers != 4 && numbers != 5 {
        let text = format!("roi is {}, expected [n, 1, 4 or 5, 1, 1]", low.fact(regions)?);
        return Err(CoreMlError::invalid(text));
    }
    let flat = low.reshape(regions, &[-1, signed(numbers)])?;
    let flat = low.cast(flat, DataType::Fp32)?;
    if numbers == 4 {
        return Ok((flat, None));
    }
    let images = low.slice(flat, &[1], &[0], &[1])?;
    let images = low.squeeze(images, &[1])?;
    let images = low.cast(images, DataType::Int64)?;
    Ok((low.slice(flat, &[1], &[1], &[5])?, Some(images)))
}

impl CropPoints {
    fn read(
        low: &mut ProgramLowering,
        op: &LoweredOperation<'_>,
        x: ValueId,
        boxes: ValueId,
    ) -> Result<Self> {
        let height = low.int(op, "target_height")?.unwrap_or(1);
        let width = low.int(op, "target_width")?.unwrap_or(1);
        if height < 1 || width < 1 {
            return Err(CoreMlError::invalid(format!("crops of {height} by {width} elements")));
        }
        let [top, left, bottom, right] = corners(low, op, x, boxes)?;
        let grid = PointGrid::read(low, op)?;
        let rows = points(low, grid, top, bottom, height)?;
        let columns = points(low, grid, left, right, width)?;
        Ok(Self { rows, columns, height, width })
    }

    /// `[boxes, height, width, 2]`: column and row of each point.
    fn grid(&self, low: &mut ProgramLowering) -> Result<ValueId> {
        let rows = low.unsqueeze(self.rows, &[2, 3])?;
        let columns = low.unsqueeze(self.columns, &[1, 3])?;
        let wide = low.integers(&[1, 1, self.width, 1]);
        let rows = low.plain("Expand", &[rows, wide])?;
        let tall = low.integers(&[1, self.height, 1, 1]);
        let columns = low.plain("Expand", &[columns, tall])?;
        low.node("Concat", &attributes([("axis", 3_i64.into())]), &[columns, rows])
    }

    /// `[boxes, height, width]`: whether a point lies outside of the image.
    fn outside(&self, low: &mut ProgramLowering, x: ValueId) -> Result<ValueId> {
        let mut each = Vec::with_capacity(2);
        for (points, axis, new) in [(self.rows, 2, 2), (self.columns, 3, 1)] {
            let last = last_element(low, x, axis)?;
            let zero = low.scalar(0.0_f32);
            let before = low.plain("Less", &[points, zero])?;
            let behind = low.plain("Greater", &[points, last])?;
            let either = low.plain("Or", &[before, behind])?;
            each.push(low.unsqueeze(either, &[new])?);
        }
        low.plain("Or", &each)
    }
}

/// The place of the last element of an axis, in FP32.
fn last_element(low: &mut ProgramLowering, x: ValueId, axis: i64) -> Result<ValueId> {
    let named = attributes([("start", axis.into()), ("end", (axis + 1).into())]);
    let len = low.node("Shape", &named, &[x])?;
    let len = low.cast(len, DataType::Fp32)?;
    let one = low.scalar(1.0_f32);
    low.plain("Sub", &[len, one])
}

/// Top, left, bottom and right of boxes, in elements: `[boxes, 1]` each.
fn corners(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    x: ValueId,
    boxes: ValueId,
) -> Result<[ValueId; 4]> {
    let names = [
        "CORNERS_HEIGHT_FIRST",
        "CORNERS_WIDTH_FIRST",
        "CENTER_SIZE_HEIGHT_FIRST",
        "CENTER_SIZE_WIDTH_FIRST",
    ];
    let convention = low.choice(op, "box_coordinate_mode", &names)?;
    let scale = single(low.float(op, "spatial_scale")?.unwrap_or(1.0));
    let shares = low.flag(op, "normalized_coordinates", false)?;
    let scale = low.scalar(scale);
    let boxes = low.plain("Mul", &[boxes, scale])?;
    let mut number = |at: i64| low.slice(boxes, &[1], &[at], &[at + 1]);
    let all = [number(0)?, number(1)?, number(2)?, number(3)?];
    // Both numbers of the rows, then both of the columns.
    let [a, b, c, d] = all;
    let by_axis = if convention % 2 == 0 { [(a, c), (b, d)] } else { [(b, d), (a, c)] };
    let mut found = Vec::with_capacity(2);
    for ((first, second), axis) in by_axis.into_iter().zip([2, 3]) {
        let mut start = first;
        let mut end = second;
        if convention >= 2 {
            let half = low.scalar(0.5_f32);
            let reach = low.plain("Mul", &[second, half])?;
            (start, end) = (low.plain("Sub", &[first, reach])?, low.plain("Add", &[first, reach])?);
        }
        if shares {
            let last = last_element(low, x, axis)?;
            (start, end) = (low.plain("Mul", &[start, last])?, low.plain("Mul", &[end, last])?);
        }
        found.push((start, end));
    }
    match found.as_slice() {
        &[(top, bottom), (left, right)] => Ok([top, left, bottom, right]),
        _ => Err(CoreMlError::invalid("a box without corners")),
    }
}

/// Points from `start` to `end`, `[boxes, count]`: they lie as those of `resize_bilinear` do.
fn points(
    low: &mut ProgramLowering,
    grid: PointGrid,
    start: ValueId,
    end: ValueId,
    count: i64,
) -> Result<ValueId> {
    let whole = low.scalar(count);
    let zero = low.scalar(0_i64);
    let one = low.scalar(1_i64);
    let steps = low.plain("Range", &[zero, whole, one])?;
    let steps = low.cast(steps, DataType::Fp32)?;
    let count = low.cast(whole, DataType::Fp32)?;
    let last = low.plain("Sub", &[end, start])?;
    let found = spread(low, grid, steps, count, last)?;
    let zero = low.scalar(0.0_f32);
    let least = low.plain("Min", &[last, zero])?;
    let most = low.plain("Max", &[last, zero])?;
    let found = low.plain("Max", &[found, least])?;
    let found = low.plain("Min", &[found, most])?;
    low.plain("Add", &[start, found])
}

/// Each box of every image: `[boxes, images, channels, height, width]`. The points of all boxes are
/// rows of one grid.
fn of_every_image(
    low: &mut ProgramLowering,
    x: ValueId,
    points: &CropPoints,
    pad: f64,
) -> Result<ValueId> {
    let height = points.height;
    let width = points.width;
    let grid = points.grid(low)?;
    let grid = low.reshape(grid, &[1, -1, width, 2])?;
    let batch = low.node("Shape", &attributes([("end", 1_i64.into())]), &[x])?;
    let rest = low.integers(&[1, 1, 1]);
    let joined = attributes([("axis", 0_i64.into())]);
    let wanted = low.node("Concat", &joined, &[batch, rest])?;
    let grid = low.plain("Expand", &[grid, wanted])?;
    let found = bilinear(low, x, grid)?;
    // Images and channels stay, and the rows fall apart into boxes again.
    let parts = low.integers(&[0, 0, -1, height, width]);
    let found = low.node("Reshape", &Attributes::new(), &[found, parts])?;
    let found = low.transpose(found, &[2, 0, 1, 3, 4])?;
    let outside = points.outside(low, x)?;
    let outside = low.unsqueeze(outside, &[1, 2])?;
    replaced(low, found, outside, pad)
}
