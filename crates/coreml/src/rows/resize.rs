//! `Resize` and `Upsample`.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_graph::ops::resize::{
    AspectRatio, CoordinateMode, Resize, ResizeInterpolation, WeightedSample,
};
use galatea_graph::{Dim, Fact, Node};
use galatea_tensor::Tensor;

use super::EmitRow;
use super::take::looked_up;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, UnwritableNode, refuse, small};

/// Where in the input a position of the result lies, of axes of these lengths.
type SourcePlace = fn(f64, f64, f64) -> f64;

pub(super) const ROWS: &[EmitRow] =
    &[EmitRow::onnx("Resize", resize), EmitRow::onnx("Upsample", resize)];

/// Axis that gets another length, with the elements that make up each of its places.
#[derive(Clone, Debug)]
struct ResizedAxis {
    at: usize,
    /// Its length before.
    len: usize,
    samples: Vec<WeightedSample>,
}

fn resize(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Resize>() else { return refuse("another kind") };
    let operator = operator.clone();
    let id = emit.input(node, 0)?;
    let dims = emit.dims(id)?;
    let out = emit.output_dims(node, 0)?;
    let dtype = emit.dtype(id)?;
    let nearest = matches!(operator.interpolation, ResizeInterpolation::Nearest(_));
    if !nearest && !dtype.is_float() {
        return refuse(format!("elements between elements of {dtype}"));
    }
    let changes = |at: usize| !dims[at].same(&out[at]);
    if (0..dims.len()).any(|at| changes(at) && dims[at].known().is_none()) {
        let factors = factors(emit, node, &operator, dims.len())?;
        let x = emit.var(node, 0)?;
        return Ok(vec![by_factors(emit, &x, &operator, factors)?]);
    }
    let samples = samples(emit, node, &operator, &dims)?;
    let axes = samples.into_iter().enumerate().filter_map(|(at, samples)| {
        let axis = ResizedAxis { at, len: dims[at].known()?, samples };
        (!axis.is_still()).then_some(axis)
    });
    let axes: Vec<ResizedAxis> = axes.collect();
    let x = emit.var(node, 0)?;
    let is_float = matches!(emit.element_of(&x)?, MilElement::Fp16 | MilElement::Fp32);
    if let (Some(form), true) = (PlaneOperator::of(&axes, dims.len(), nearest), is_float) {
        return Ok(vec![form.add(emit, &x, &dims)?]);
    }
    let mut result = x;
    for axis in &axes {
        result = match nearest {
            true => looked_up(emit, &result, axis.at, &axis.places())?,
            false => axis.mixed(emit, &result, dims.len())?,
        };
    }
    #[allow(clippy::cast_possible_truncation, reason = "a value of the elements' own type")]
    let outside = operator.extrapolation_value as f32;
    Ok(vec![around(emit, &result, &axes, &out, outside)?])
}

/// The numbers of an input where they are known, and there are some.
fn given(emit: &ProgramEmitter<'_>, node: &Node, at: Option<usize>) -> Result<Option<Tensor>> {
    let Some((at, id)) = at.and_then(|at| Some((at, node.input(at)?))) else { return Ok(None) };
    if emit.fact(id)?.known_shape().is_some_and(|shape| shape.contains(&0)) {
        return Ok(None);
    }
    match emit.known(node, at) {
        Some(tensor) => Ok(Some(tensor)),
        None => refuse(format!("input {at} is known in a run only")),
    }
}

/// Returns the elements that make up each place of every axis. Axes of unknown lengths are not
/// resized, so any length stands for theirs.
fn samples(
    emit: &ProgramEmitter<'_>,
    node: &Node,
    operator: &Resize,
    dims: &[Dim],
) -> Result<Vec<Vec<WeightedSample>>> {
    let shape: Vec<usize> = dims.iter().map(|dim| dim.known().unwrap_or(1)).collect();
    let scales = given(emit, node, operator.scales_input)?;
    let sizes = match given(emit, node, operator.sizes_input) {
        Ok(sizes) => sizes,
        Err(refused) => Some(partly(emit, node, operator, dims).ok_or(refused)?),
    };
    let roi = match operator.coordinates {
        CoordinateMode::TfCropAndResize => given(emit, node, operator.roi_input)?,
        _ => None,
    };
    let found = operator.samples(&shape, scales.as_ref(), sizes.as_ref(), roi.as_ref());
    found.map_err(|error| UnwritableNode(error.to_string()))
}

/// Sizes of which only those are not known that axes have already.
fn partly(
    emit: &ProgramEmitter<'_>,
    node: &Node,
    operator: &Resize,
    dims: &[Dim],
) -> Option<Tensor> {
    if operator.aspect_ratio != AspectRatio::Stretch {
        return None;
    }
    let id = node.input(operator.sizes_input?)?;
    let lengths = emit.fact(id).ok().and_then(Fact::lengths)?;
    let axes: Vec<i64> = match &operator.axes {
        Some(axes) => axes.clone(),
        None => (0..).take(dims.len()).collect(),
    };
    let size = |(len, &axis): (Dim, &i64)| match len.known() {
        Some(len) => i64::try_from(len).ok(),
        None => len.same(dims.get(emit.axis(axis, dims.len()).ok()?)?).then_some(1),
    };
    let sizes = lengths.into_iter().zip(&axes).map(size).collect::<Option<Vec<i64>>>()?;
    Some(Tensor::vector(sizes))
}

impl ResizedAxis {
    /// Returns whether every place is the element at that place.
    fn is_still(&self) -> bool {
        let same = |(at, sample): (usize, &WeightedSample)| matches!(sample.as_deref(), Some([(from, weight)]) if *from == at && *weight == 1.0);
        self.samples.len() == self.len && self.samples.iter().enumerate().all(same)
    }

    /// The element at each place, where it is one.
    fn places(&self) -> Vec<usize> {
        let place = |sample: &WeightedSample| sample.as_ref()?.first().map(|(from, _)| *from);
        self.samples.iter().map(|sample| place(sample).unwrap_or(0)).collect()
    }

    /// The weight of each element at each place: a row for each place.
    fn matrix(&self) -> Vec<f64> {
        let mut all = vec![0.0; self.samples.len() * self.len];
        for (row, sample) in self.samples.iter().enumerate() {
            for (from, weight) in sample.iter().flatten() {
                all[row * self.len + from] += weight;
            }
        }
        all
    }

    /// How much longer the axis becomes, where each element is simply repeated.
    fn factor(&self) -> Option<usize> {
        let factor = self.samples.len() / self.len.max(1);
        let repeats =
            self.places().iter().enumerate().all(|(at, &from)| from == at / factor.max(1));
        let inside = self.samples.iter().all(Option::is_some);
        (factor * self.len == self.samples.len() && factor > 0 && repeats && inside)
            .then_some(factor)
    }

    /// Returns whether the weights are those of points at `place(position, length, length of the
    /// result)`.
    fn is_at(&self, place: SourcePlace) -> bool {
        let len = number(self.len);
        let count = number(self.samples.len());
        let found = self.matrix();
        (0..self.samples.len()).all(|row| {
            let point = place(number(row), len, count).clamp(0.0, len - 1.0);
            (0..self.len).all(|at| {
                let weight = (1.0 - (point - number(at)).abs()).max(0.0);
                (weight - found[row * self.len + at]).abs() < 1e-6
            })
        })
    }

    /// The axis as products with the weights.
    fn mixed(&self, emit: &mut ProgramEmitter<'_>, x: &MilVar, rank: usize) -> Result<MilVar> {
        #[allow(clippy::cast_possible_truncation, reason = "weights are about 1")]
        let weights = self.matrix().into_iter().map(|weight| weight as f32).collect();
        let weights = emit.floats(&[self.samples.len(), self.len], weights)?;
        let product = |emit: &mut ProgramEmitter<'_>, x: MilArg, y: MilArg, turned: bool| {
            let inputs = vec![
                ("x", x),
                ("y", y),
                ("transpose_x", MilArg::Bool(false)),
                ("transpose_y", MilArg::Bool(turned)),
            ];
            emit.op("matmul", inputs)
        };
        if rank == 1 {
            let row = emit.unsqueeze(x, &[0])?;
            let found = product(emit, MilArg::Var(row), MilArg::Var(weights), true)?;
            return emit.squeeze(&found, &[0]);
        }
        if self.at + 2 == rank {
            return product(emit, MilArg::Var(weights), x.into(), false);
        }
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(self.at, rank - 1);
        let turned = emit.transpose(x, &order)?;
        let found = product(emit, MilArg::Var(turned), MilArg::Var(weights), true)?;
        emit.transpose(&found, &order)
    }
}

#[allow(clippy::cast_precision_loss, reason = "lengths are far below 2^52")]
fn number(value: usize) -> f64 {
    value as f64
}

/// Fills the places outside of the region of interest.
fn around(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    axes: &[ResizedAxis],
    out: &[Dim],
    outside: f32,
) -> Result<MilVar> {
    if axes.iter().all(|axis| axis.samples.iter().all(Option::is_some)) {
        return Ok(x.clone());
    }
    let mut shape = vec![1; out.len()];
    for axis in axes {
        shape[axis.at] = axis.samples.len();
    }
    let count: usize = shape.iter().product();
    let inside = |index: usize| {
        let at = |axis: &ResizedAxis| {
            let inner: usize = shape.iter().skip(axis.at + 1).product();
            index / inner % axis.samples.len()
        };
        i32::from(axes.iter().all(|axis| axis.samples[at(axis)].is_some()))
    };
    let table = emit.table(&shape, (0..count).map(inside).collect())?;
    let inside = emit.cast(&table, MilElement::Bool)?;
    let outside = match emit.element_of(x)? {
        MilElement::Int32 => MilArg::Int(0),
        MilElement::Bool => MilArg::Bool(false),
        _ => emit.float(outside),
    };
    emit.select(&inside, x.into(), outside)
}

/// Whole factors that the last two axes become longer by.
#[derive(Clone, Copy)]
struct PlaneFactors {
    /// The factor of the last axis but one.
    height: usize,
    /// The factor of the last axis.
    width: usize,
}

/// An operator that does the same to the last two axes.
enum PlaneOperator {
    Repeated(PlaneFactors),
    Bilinear([Option<usize>; 2], &'static str),
}

impl PlaneOperator {
    fn of(axes: &[ResizedAxis], rank: usize, nearest: bool) -> Option<Self> {
        if rank < 3 || axes.is_empty() || axes.iter().any(|axis| axis.at + 2 < rank) {
            return None;
        }
        let of = |at: usize| axes.iter().find(|axis| axis.at == at);
        let last = [of(rank - 2), of(rank - 1)];
        if nearest {
            let [height, width] = last.map(|axis| axis.map_or(Some(1), ResizedAxis::factor));
            return Some(Self::Repeated(PlaneFactors { height: height?, width: width? }));
        }
        if axes.iter().any(|axis| axis.samples.iter().any(Option::is_none)) {
            return None;
        }
        let modes: [(&'static str, SourcePlace); 3] = [
            ("UNALIGN_CORNERS", |at, len, count| (at + 0.5) * len / count - 0.5),
            ("STRICT_ALIGN_CORNERS", |at, len, count| at * (len - 1.0) / (count - 1.0).max(1.0)),
            ("DEFAULT", |at, len, count| at * len / count),
        ];
        let fits = |axis: &ResizedAxis, place| axis.samples.len() > 1 && axis.is_at(place);
        let (mode, _) =
            modes.into_iter().find(|&(_, place)| axes.iter().all(|axis| fits(axis, place)))?;
        Some(Self::Bilinear(last.map(|axis| axis.map(|axis| axis.samples.len())), mode))
    }

    fn add(&self, emit: &mut ProgramEmitter<'_>, x: &MilVar, dims: &[Dim]) -> Result<MilVar> {
        match self {
            Self::Repeated(factors) => repeated(emit, x, *factors),
            Self::Bilinear(lengths, mode) => {
                let mut whole = [0; 2];
                for (at, (slot, len)) in whole.iter_mut().zip(lengths).enumerate() {
                    let there = dims[dims.len() - 2 + at].known();
                    let Some(len) = len.or(there) else {
                        return refuse("a length beside that is known in a run only");
                    };
                    *slot = small(len)?;
                }
                let [height, width] = whole;
                let inputs = vec![
                    ("x", x.into()),
                    ("target_size_height", MilArg::Int(height)),
                    ("target_size_width", MilArg::Int(width)),
                    ("sampling_mode", MilArg::Text(mode)),
                ];
                emit.op("resize_bilinear", inputs)
            }
        }
    }
}

fn repeated(emit: &mut ProgramEmitter<'_>, x: &MilVar, factors: PlaneFactors) -> Result<MilVar> {
    let inputs = vec![
        ("x", x.into()),
        ("scale_factor_height", MilArg::Int(small(factors.height)?)),
        ("scale_factor_width", MilArg::Int(small(factors.width)?)),
    ];
    emit.op("upsample_nearest_neighbor", inputs)
}

/// The whole factors of the last two axes, where no other axis has one.
fn factors(
    emit: &ProgramEmitter<'_>,
    node: &Node,
    operator: &Resize,
    rank: usize,
) -> Result<PlaneFactors> {
    let scales = match (&operator.scales, operator.scales_input) {
        (Some(scales), _) => scales.clone(),
        (None, Some(at)) if node.input(at).is_some() => {
            emit.numbers(node, at)?.into_iter().map(f64::from).collect()
        }
        _ => Vec::new(),
    };
    let axes: Vec<i64> = match &operator.axes {
        Some(axes) => axes.clone(),
        None => (0..).take(rank).collect(),
    };
    let mut found = vec![1.0; rank];
    if scales.len() != axes.len() {
        return refuse("lengths to resize from or to that only a run knows");
    }
    for (&axis, scale) in axes.iter().zip(scales) {
        found[emit.axis(axis, rank)?] = scale;
    }
    match found.as_slice() {
        &[ref others @ .., height, width]
            if rank >= 3
                && others.iter().all(|&scale| scale == 1.0)
                && [height, width].iter().all(|scale| scale.fract() == 0.0 && *scale >= 1.0) =>
        {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole numbers of 1 and more"
            )]
            let whole = PlaneFactors { height: height as usize, width: width as usize };
            Ok(whole)
        }
        _ => refuse(format!("factors {found:?} of axes whose lengths only a run knows")),
    }
}

/// Lengths that only a run knows, times whole factors.
fn by_factors(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    operator: &Resize,
    factors: PlaneFactors,
) -> Result<MilVar> {
    if !matches!(emit.element_of(x)?, MilElement::Fp16 | MilElement::Fp32) {
        return refuse("a length that only a run knows of an image without floats");
    }
    let plain = operator.aspect_ratio == AspectRatio::Stretch && !operator.exclude_outside;
    match operator.interpolation {
        // Whether elements are repeated does not depend on their number.
        ResizeInterpolation::Nearest(_) if plain && repeats(operator, factors) => {
            repeated(emit, x, factors)
        }
        ResizeInterpolation::Linear
            if plain && operator.coordinates == CoordinateMode::HalfPixel && emit.opset() >= 6 =>
        {
            let inputs = vec![
                ("x", x.into()),
                ("scale_factor_height", MilArg::Int(small(factors.height)?)),
                ("scale_factor_width", MilArg::Int(small(factors.width)?)),
                ("align_corners", MilArg::Bool(false)),
                ("half_pixel_centers", MilArg::Bool(true)),
            ];
            emit.op("upsample_bilinear", inputs)
        }
        _ => refuse(format!(
            "{:?} at {:?} of a length that only a run knows",
            operator.interpolation, operator.coordinates
        )),
    }
}

/// Returns whether the nearest elements are those that are repeated.
fn repeats(operator: &Resize, factors: PlaneFactors) -> bool {
    let simple = !matches!(
        operator.coordinates,
        CoordinateMode::AlignCorners | CoordinateMode::TfCropAndResize
    );
    simple
        && [factors.height, factors.width].into_iter().all(|factor| {
            let len = 5;
            #[allow(clippy::cast_possible_truncation, reason = "a small whole number")]
            let scales = Tensor::vector(vec![number(factor) as f32]);
            let one = Resize { axes: None, scales: None, ..operator.clone() };
            let found = one.samples(&[len], Some(&scales), None, None);
            found.is_ok_and(|samples| {
                let samples = samples.into_iter().next().unwrap_or_default();
                ResizedAxis { at: 0, len, samples }.factor() == Some(factor)
            })
        })
}
