//! Images of other sizes.

use galatea_graph::{Dim, Fact, ValueId};
use galatea_tensor::DataType;

use super::LoweringRow;
use super::activation::single;
use super::lowering::{ProgramLowering, Result, attributes, bounded, text};
use super::operation::LoweredOperation;
use super::shape::signed;
use crate::coreml::error::CoreMlError;
use crate::coreml::mil::MilType;

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::since(7, "resize", resize),
    LoweringRow::new("resize_bilinear", resize_bilinear),
    LoweringRow::new("resize_nearest_neighbor", resize_nearest_neighbor),
    LoweringRow::new("upsample_bilinear", upsample_bilinear),
    LoweringRow::new("upsample_nearest_neighbor", upsample_nearest_neighbor),
];

/// Where the points of a result lie in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PointGrid {
    /// The first points are the same, and the distance is that of lengths.
    Default,
    /// The first and last points are the same.
    StrictAlignCorners,
    /// The first and last points are the same, but a single point lies in the middle.
    AlignCorners,
    /// Points lie in the middles of equal parts of the way from the first to the last element.
    OffsetCorners,
    /// Elements are areas, and points their centres.
    UnalignCorners,
}

impl PointGrid {
    /// Reads the input `sampling_mode`.
    pub(super) fn read(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<Self> {
        let names = [
            "DEFAULT",
            "STRICT_ALIGN_CORNERS",
            "ALIGN_CORNERS",
            "OFFSET_CORNERS",
            "UNALIGN_CORNERS",
        ];
        let all = [
            Self::Default,
            Self::StrictAlignCorners,
            Self::AlignCorners,
            Self::OffsetCorners,
            Self::UnalignCorners,
        ];
        let chosen = low.choice(op, "sampling_mode", &names)?;
        Ok(all.get(chosen).copied().unwrap_or(Self::Default))
    }

    /// ONNX's name of it, where it has one for these lengths of the result.
    fn onnx(self, counts: &[Option<usize>]) -> Option<&'static str> {
        match self {
            Self::Default => Some("asymmetric"),
            Self::StrictAlignCorners => Some("align_corners"),
            Self::AlignCorners => {
                let several = |count: &Option<usize>| count.is_some_and(|count| count > 1);
                counts.iter().all(several).then_some("align_corners")
            }
            Self::OffsetCorners => None,
            Self::UnalignCorners => Some("half_pixel"),
        }
    }
}

/// A value whose last axes get other lengths.
struct ResizedValue {
    x: ValueId,
    /// The first of these axes.
    first: usize,
    /// Their lengths: a vector of INT64.
    sizes: ValueId,
    /// The lengths where they are known.
    counts: Vec<Option<usize>>,
}

impl ResizedValue {
    fn new(low: &ProgramLowering, x: ValueId, first: usize, sizes: ValueId) -> Result<Self> {
        let count = low.rank(x)? - first;
        let known = low.fact(sizes).ok().and_then(Fact::lengths);
        let counts = known.map(|all| all.iter().map(Dim::known).collect());
        Ok(Self { x, first, sizes, counts: counts.unwrap_or_else(|| vec![None; count]) })
    }

    fn axes(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.counts.len()
    }

    /// Along straight lines between elements.
    fn linear(&self, low: &mut ProgramLowering, grid: PointGrid) -> Result<ValueId> {
        if let Some(grid) = grid.onnx(&self.counts) {
            return self.node(low, [("mode", "linear"), ("coordinate_transformation_mode", grid)]);
        }
        let mut x = self.x;
        for axis in self.axes() {
            let points = self.points(low, axis, grid)?;
            x = interpolated(low, x, axis, points)?;
        }
        Ok(x)
    }

    /// The element at or before each point where points begin at the first element; else the one
    /// that is nearest, of two the one behind.
    fn nearest(&self, low: &mut ProgramLowering, grid: PointGrid) -> Result<ValueId> {
        let uneven = if grid == PointGrid::Default { self.uneven(low)? } else { None };
        if let Some(lengths) = uneven {
            return self.looked_up(low, &lengths);
        }
        let rounding = if grid == PointGrid::Default { "floor" } else { "round_prefer_ceil" };
        if let Some(grid) = grid.onnx(&self.counts) {
            return self.node(
                low,
                [
                    ("mode", "nearest"),
                    ("nearest_mode", rounding),
                    ("coordinate_transformation_mode", grid),
                ],
            );
        }
        let mut x = self.x;
        for axis in self.axes() {
            let points = self.points(low, axis, grid)?;
            let half = low.scalar(0.5_f32);
            let places = low.plain("Add", &[points, half])?;
            let places = low.plain("Floor", &[places])?;
            let places = low.cast(places, DataType::Int64)?;
            x = low.node("Gather", &attributes([("axis", signed(axis).into())]), &[x, places])?;
        }
        Ok(x)
    }

    fn node<const N: usize>(
        &self,
        low: &mut ProgramLowering,
        words: [(&'static str, &str); N],
    ) -> Result<ValueId> {
        let mut named = attributes(words.map(|(name, word)| (name, text(word))));
        let axes: Vec<usize> = self.axes().collect();
        named.insert("axes".to_owned(), axes.as_slice().into());
        low.node_with("Resize", &named, &[Some(self.x), None, None, Some(self.sizes)])
    }

    /// All lengths before and after, where they are known and a result is no multiple: quotients of
    /// floats may lie below the whole number that they stand for.
    fn uneven(&self, low: &ProgramLowering) -> Result<Option<Vec<(usize, usize)>>> {
        let dims = low.dims(self.x)?;
        let mut all = Vec::new();
        for (axis, count) in self.axes().zip(&self.counts) {
            let len = dims.get(axis).and_then(Dim::known).filter(|&len| len > 0);
            let Some((len, count)) = len.zip(*count) else { return Ok(None) };
            all.push((len, count));
        }
        for (_, count) in &all {
            bounded(&[*count])?;
        }
        let even = all.iter().all(|(len, count)| count.is_multiple_of(*len));
        Ok((!even).then_some(all))
    }

    /// Elements by tables of their places.
    fn looked_up(&self, low: &mut ProgramLowering, lengths: &[(usize, usize)]) -> Result<ValueId> {
        let mut x = self.x;
        for (axis, (len, count)) in self.axes().zip(lengths) {
            let place = |at: usize| signed(at.saturating_mul(*len) / count);
            let places: Vec<i64> = (0..*count).map(place).collect();
            let places = low.integers(&places);
            x = low.node("Gather", &attributes([("axis", signed(axis).into())]), &[x, places])?;
        }
        Ok(x)
    }

    /// The points of an axis that ONNX's operator has no name for: a vector of FP32.
    fn points(&self, low: &mut ProgramLowering, axis: usize, grid: PointGrid) -> Result<ValueId> {
        let named =
            attributes([("start", signed(axis).into()), ("end", (signed(axis) + 1).into())]);
        let len = low.node("Shape", &named, &[self.x])?;
        let len = low.squeeze(len, &[0])?;
        let len = low.cast(len, DataType::Fp32)?;
        let at = signed(axis - self.first);
        let count = low.slice(self.sizes, &[0], &[at], &[at + 1])?;
        let count = low.squeeze(count, &[0])?;
        let count = low.cast(count, DataType::Fp32)?;
        let zero = low.scalar(0.0_f32);
        let one = low.scalar(1.0_f32);
        let steps = low.plain("Range", &[zero, count, one])?;
        let last = low.plain("Sub", &[len, one])?;
        let points = spread(low, grid, steps, count, last)?;
        low.plain("Clip", &[points, zero, last])
    }
}

/// Points from 0 to `last`, as many as there are `steps` (0, 1 and so on); all are FP32 and
/// broadcast. They are not limited to 0 and `last`.
pub(super) fn spread(
    low: &mut ProgramLowering,
    grid: PointGrid,
    steps: ValueId,
    count: ValueId,
    last: ValueId,
) -> Result<ValueId> {
    let zero = low.scalar(0.0_f32);
    let half = low.scalar(0.5_f32);
    let one = low.scalar(1.0_f32);
    match grid {
        PointGrid::Default | PointGrid::UnalignCorners => {
            let len = low.plain("Add", &[last, one])?;
            let distance = low.plain("Div", &[len, count])?;
            if grid == PointGrid::Default {
                return low.plain("Mul", &[steps, distance]);
            }
            let centres = low.plain("Add", &[steps, half])?;
            let points = low.plain("Mul", &[centres, distance])?;
            low.plain("Sub", &[points, half])
        }
        PointGrid::StrictAlignCorners | PointGrid::AlignCorners => {
            let gaps = low.plain("Sub", &[count, one])?;
            let gaps = low.plain("Max", &[gaps, one])?;
            let distance = low.plain("Div", &[last, gaps])?;
            let points = low.plain("Mul", &[steps, distance])?;
            if grid == PointGrid::StrictAlignCorners {
                return Ok(points);
            }
            let single = low.plain("Equal", &[count, one])?;
            let middle = low.plain("Mul", &[last, half])?;
            let moved = low.plain("Where", &[single, middle, zero])?;
            low.plain("Add", &[points, moved])
        }
        PointGrid::OffsetCorners => {
            let way = low.plain("Max", &[last, one])?;
            let distance = low.plain("Div", &[way, count])?;
            let centres = low.plain("Add", &[steps, half])?;
            low.plain("Mul", &[centres, distance])
        }
    }
}

/// Values between elements of an axis, at points that lie inside of it.
fn interpolated(
    low: &mut ProgramLowering,
    x: ValueId,
    axis: usize,
    points: ValueId,
) -> Result<ValueId> {
    let dtype = low.dtype(x)?;
    let wide = low.cast(x, DataType::Fp32)?;
    let floor = low.plain("Floor", &[points])?;
    let share = low.plain("Sub", &[points, floor])?;
    let ceiling = low.plain("Ceil", &[points])?;
    let behind: Vec<i64> = (1..=signed(low.rank(x)? - axis - 1)).collect();
    let share = if behind.is_empty() { share } else { low.unsqueeze(share, &behind)? };
    let named = attributes([("axis", signed(axis).into())]);
    let mut at = |places: ValueId| -> Result<ValueId> {
        let places = low.cast(places, DataType::Int64)?;
        low.node("Gather", &named, &[wide, places])
    };
    let first = at(floor)?;
    let second = at(ceiling)?;
    let difference = low.plain("Sub", &[second, first])?;
    let part = low.plain("Mul", &[difference, share])?;
    let result = low.plain("Add", &[first, part])?;
    low.cast(result, dtype)
}

/// The rank of an image, which has two axes of space at least.
fn rank_of(low: &ProgramLowering, x: ValueId) -> Result<usize> {
    match low.rank(x)? {
        rank @ 2.. => Ok(rank),
        rank => Err(CoreMlError::invalid(format!("x has {rank} axes, expected 3 or more"))),
    }
}

/// The result of lengths that are given as numbers.
fn to_target(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<ResizedValue> {
    let x = low.required(op, "x")?;
    let rank = rank_of(low, x)?;
    let height = low.int(op, "target_size_height")?.unwrap_or(1);
    let width = low.int(op, "target_size_width")?.unwrap_or(1);
    if height < 1 || width < 1 {
        return Err(CoreMlError::invalid(format!("a result of {height} by {width} elements")));
    }
    let sizes = low.integers(&[height, width]);
    ResizedValue::new(low, x, rank - 2, sizes)
}

fn resize_bilinear(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let resized = to_target(low, op)?;
    let grid = PointGrid::read(low, op)?;
    let result = resized.linear(low, grid)?;
    low.give(op, &[result])
}

fn resize_nearest_neighbor(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let resized = to_target(low, op)?;
    let result = resized.nearest(low, PointGrid::Default)?;
    low.give(op, &[result])
}

/// The length of an axis times a factor, rounded down: as the program states it where it is known,
/// since producers differ in how wide they multiply.
fn scaled(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    x: ValueId,
    axis: usize,
    factor: f64,
) -> Result<ValueId> {
    if let Some(len) = low.dims(x)?.get(axis).and_then(Dim::known) {
        let stated = op.outputs().first().and_then(|(_, stated)| match stated {
            MilType::Tensor(stated) => *stated.shape.as_ref()?.get(axis)?,
            _ => None,
        });
        let exact = low.number(factor, DataType::Fp64)?;
        let len = low.number(f64::from(u32::try_from(len).unwrap_or(u32::MAX)), DataType::Fp64)?;
        let product = low.plain("Mul", &[len, exact])?;
        let near = low.fact(product)?.value.as_ref().map(galatea_tensor::Tensor::item::<f64>);
        let near = near.transpose()?.zip(stated).filter(|(product, stated)| {
            let stated = f64::from(u32::try_from(*stated).unwrap_or(u32::MAX));
            stated <= product * (1.0 + 1e-6) && *product < stated + 1.0
        });
        if let Some((_, stated)) = near {
            return Ok(low.integers(&[signed(stated)]));
        }
    }
    let named = attributes([("start", signed(axis).into()), ("end", (signed(axis) + 1).into())]);
    let len = low.node("Shape", &named, &[x])?;
    let len = low.cast(len, DataType::Fp32)?;
    let factor = low.scalar(single(factor));
    let product = low.plain("Mul", &[len, factor])?;
    let product = low.plain("Floor", &[product])?;
    low.cast(product, DataType::Int64)
}

/// The result of lengths that are given as factors.
fn by_factors(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<ResizedValue> {
    let x = low.required(op, "x")?;
    let rank = rank_of(low, x)?;
    let mut sizes = Vec::with_capacity(2);
    for (name, axis) in [("scale_factor_height", rank - 2), ("scale_factor_width", rank - 1)] {
        let factor = low.float(op, name)?.unwrap_or(1.0);
        if !factor.is_finite() || factor <= 0.0 {
            return Err(CoreMlError::invalid(format!("input '{name}' is {factor}")));
        }
        sizes.push(scaled(low, op, x, axis, factor)?);
    }
    let sizes = low.node("Concat", &attributes([("axis", 0_i64.into())]), &sizes)?;
    ResizedValue::new(low, x, rank - 2, sizes)
}

fn upsample_bilinear(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let resized = by_factors(low, op)?;
    let aligned = low.flag(op, "align_corners", true)?;
    let centres = match op.opset {
        ..6 => !aligned,
        _ => low.flag(op, "half_pixel_centers", !aligned)?,
    };
    let grid = match (aligned, centres) {
        (true, false) => PointGrid::StrictAlignCorners,
        (false, true) => PointGrid::UnalignCorners,
        (false, false) => PointGrid::Default,
        (true, true) => {
            let text = "corners cannot be aligned where elements are sampled at their centres";
            return Err(CoreMlError::invalid(text));
        }
    };
    let result = resized.linear(low, grid)?;
    low.give(op, &[result])
}

fn upsample_nearest_neighbor(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let resized = by_factors(low, op)?;
    let result = resized.nearest(low, PointGrid::Default)?;
    low.give(op, &[result])
}

/// The last `resized_dims` axes get the last lengths of `shape`; 0 is the length that is there.
fn resize(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let shape = low.required(op, "shape")?;
    let rank = low.rank(x)?;
    let shape = low.cast(shape, DataType::Int64)?;
    let given = low.known_len(shape, 0)?;
    let count = low.int(op, "resized_dims")?;
    let count = count.and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|&count| (1..=given).contains(&count) && given <= rank);
    let Some(count) = count else {
        let text = format!("input 'resized_dims' for {given} lengths and {rank} axes");
        return Err(CoreMlError::invalid(text));
    };
    let first = rank - count;
    let wanted = low.slice(shape, &[0], &[signed(given - count)], &[i64::MAX])?;
    let found = low.node("Shape", &attributes([("start", signed(first).into())]), &[x])?;
    let zero = low.integers(&[0]);
    let keeps = low.plain("Equal", &[wanted, zero])?;
    let sizes = low.plain("Where", &[keeps, found, wanted])?;
    let resized = ResizedValue::new(low, x, first, sizes)?;
    let nearest = low.choice(op, "interpolation_mode", &["LINEAR", "NEAREST_NEIGHBOR"])? == 1;
    let grid = PointGrid::read(low, op)?;
    let result = if nearest { resized.nearest(low, grid)? } else { resized.linear(low, grid)? };
    low.give(op, &[result])
}
