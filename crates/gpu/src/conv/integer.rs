//! Convolutions of bytes with zero points, as products that are summed in 32 bits.

use galatea_tensor::DataType;
use minijinja::context;

use super::geometry::ConvLengths;
use super::node::ConvNode;
use crate::device::KernelShader;
use crate::kernel::{
    DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding, fold, param, wgsl_float,
};
use crate::template::render;
use galatea_runtime::NodeShapes;

pub(super) const ONNX: GpuKernelRow = GpuKernelRow {
    name: "conv-i8-tiled",
    domain: "",
    ops: &["ConvInteger", "QLinearConv"],
    supports,
    build: |view| {
        let form = IntegerConvResult::of(view);
        let w_zero = form.places().w_zero;
        let values = view.constant(w_zero).and_then(|zero| zero.to_i64_vec().ok());
        let none = values.is_some_and(|all| all.iter().all(|&value| value == 0));
        Ok(Box::new(IntegerConv {
            form,
            convolution: ConvNode::of(view)?,
            w_zero: (view.has(w_zero) && !none).then_some(w_zero),
        }))
    },
};

pub(super) const CONTRIB: GpuKernelRow =
    GpuKernelRow { domain: "com.microsoft", ops: &["QLinearConv"], ..ONNX };

pub(super) const FUSED: GpuKernelRow =
    GpuKernelRow { domain: galatea_graph::GALATEA_DOMAIN, ops: &["QLinearConvAdd"], ..ONNX };

/// Rows and columns of a tile; as many bytes of a sum are read at a time.
const TILE: usize = 64;

/// Products of channels in a group up to which a thread sums a window by itself.
const NARROW: usize = 64;

/// Use of the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IntegerConvResult {
    /// They are the result.
    Sums,
    /// Bytes with a scale.
    Bytes,
    /// The same, and another value is added.
    Added,
}

/// Positions of the inputs of a form.
struct IntegerConvInputs {
    w: usize,
    x_zero: usize,
    w_zero: usize,
}

/// Inputs of those whose results are bytes: scales of image, weights and result, the result's zero point, the
/// bias, and what is added.
const SCALES: [usize; 3] = [1, 4, 6];
const Y_ZERO: usize = 7;
const BIAS: usize = 8;
const OTHER: usize = 9;
const OTHER_ZERO: usize = 11;
/// The scale and the zero point of a sum with something else.
const SUM: [usize; 2] = [12, 13];

impl IntegerConvResult {
    fn of(view: &GpuNodeView<'_>) -> Self {
        match view.node.op_type.as_str() {
            "ConvInteger" => Self::Sums,
            "QLinearConvAdd" => Self::Added,
            _ => Self::Bytes,
        }
    }

    fn places(self) -> IntegerConvInputs {
        match self {
            Self::Sums => IntegerConvInputs { w: 1, x_zero: 2, w_zero: 3 },
            Self::Bytes | Self::Added => IntegerConvInputs { w: 3, x_zero: 2, w_zero: 5 },
        }
    }
}

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    let form = IntegerConvResult::of(view);
    ConvNode::of(view)?;
    let IntegerConvInputs { w, x_zero, w_zero } = form.places();
    let dtype = |index: usize| view.input(index).map(|fact| fact.dtype);
    let is_byte = |index: usize| matches!(dtype(index), Some(DataType::Int8 | DataType::Uint8));
    if !is_byte(0) || !is_byte(w) {
        return Err("it is of no bytes".into());
    }
    if view.input(w).and_then(|fact| fact.known_shape()).is_none() {
        return Err("the shape of the weights is known only in a run".into());
    }
    let rank = view.rank(0)?;
    if !(3..=5).contains(&rank) {
        return Err(format!("an image of {rank} axes, expected 3 to 5"));
    }
    let mut numbers = vec![x_zero, w_zero];
    let mut scales = Vec::new();
    if form != IntegerConvResult::Sums {
        numbers.extend([Y_ZERO, BIAS]);
        scales.extend(SCALES);
    }
    if form == IntegerConvResult::Added {
        if !is_byte(OTHER) || !is_byte(SUM[1]) {
            return Err("it adds no bytes".into());
        }
        numbers.extend([OTHER_ZERO, SUM[1]]);
        scales.extend([OTHER + 1, SUM[0]]);
    }
    if let Some(&scale) = scales.iter().find(|&&at| !dtype(at).is_some_and(|d| view.is_float(d))) {
        return Err(format!("the scale that is input {scale} is neither FP32 nor FP16"));
    }
    for parameter in numbers.into_iter().chain(scales).filter(|&index| view.has(index)) {
        if view.rank(parameter)? > 1 {
            return Err(format!("input {parameter} has more than one axis"));
        }
    }
    Ok(())
}

struct IntegerConv {
    form: IntegerConvResult,
    convolution: ConvNode,
    /// The zero points of the weights, if they are not all 0.
    w_zero: Option<usize>,
}

/// Returns 1 if an input has a value for each channel, else 0.
fn own(shapes: &NodeShapes, index: usize) -> u32 {
    u32::from(shapes.input(index).is_ok_and(|shape| shape.iter().product::<usize>() > 1))
}

impl GpuKernel for IntegerConv {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let w = self.form.places().w;
        let lengths = self.convolution.lengths_of(shapes.input(0)?, shapes.input(w)?)?;
        let all = lengths.groups * lengths.m;
        let elements = lengths.images * all * lengths.pixels();
        param(elements)?;
        if elements == 0 {
            return Ok(());
        }
        let sums =
            (self.form != IntegerConvResult::Sums).then(|| step.scratch((elements * 4) as u64));
        self.sum(
            &lengths,
            shapes,
            sums.map_or(ShaderBinding::Output(0), ShaderBinding::Scratch),
            step,
        )?;
        match sums {
            Some(sums) => self.requantise(&lengths, shapes, sums, elements, step),
            None => Ok(()),
        }
    }
}

impl IntegerConv {
    fn sum(
        &self,
        lengths: &ConvLengths,
        shapes: &NodeShapes,
        out: ShaderBinding,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        if lengths.groups > 1 && lengths.m * lengths.channels <= NARROW {
            return self.sum_narrow(lengths, shapes, out, step);
        }
        let IntegerConvInputs { w, x_zero, .. } = self.form.places();
        let places: usize = lengths.window.iter().product();
        let k = lengths.channels * places;
        let mut bindings = vec![ShaderBinding::Input(0), ShaderBinding::Input(w), out];
        let mut zero = |index: Option<usize>| {
            let index = index.filter(|&index| shapes.has(index));
            bindings.extend(index.map(ShaderBinding::Input));
            index.map_or(0, |_| bindings.len() - 1)
        };
        let zx = zero(Some(x_zero));
        let zw = zero(self.w_zero);
        let signed = |index: usize| shapes.dtype(index).map(|dtype| dtype == DataType::Int8);
        let x_signed = signed(0)?;
        let w_signed = signed(w)?;
        let along = k.is_multiple_of(4);
        let count = bindings.len();
        let context = context!(zx, zw, x_signed, w_signed, along, params => count);
        let source = render(include_str!("integer.wgsl"), context)?;
        let tiles_m = lengths.m.div_ceil(TILE);
        let tiles_n = lengths.pixels().div_ceil(TILE);
        let total = (tiles_m * tiles_n).checked_mul(lengths.groups * lengths.images);
        let total = total.ok_or("tiles are too many")?;
        let [_, window_y, window_x] = lengths.window;
        let own_step = self.w_zero.map_or(0, |index| own(shapes, index) as usize);
        let own = [
            total,
            tiles_n,
            tiles_m,
            lengths.groups,
            lengths.channels,
            lengths.m,
            lengths.pixels(),
            k,
            places,
            window_y,
            window_x,
            own_step,
        ];
        let mut params = own.into_iter().map(param).collect::<Result<Vec<_>, _>>()?;
        params.extend(lengths.params()?);
        step.dispatch(
            KernelShader::new(ONNX.name, source).proved(),
            bindings,
            params,
            fold(total)?,
        );
        Ok(())
    }

    /// The same where groups have so few channels that tiles would be mostly empty.
    fn sum_narrow(
        &self,
        lengths: &ConvLengths,
        shapes: &NodeShapes,
        out: ShaderBinding,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let IntegerConvInputs { w, x_zero, .. } = self.form.places();
        let mut bindings = vec![ShaderBinding::Input(0), ShaderBinding::Input(w), out];
        let mut zero = |index: Option<usize>| {
            let index = index.filter(|&index| shapes.has(index));
            bindings.extend(index.map(ShaderBinding::Input));
            index.map_or(0, |_| bindings.len() - 1)
        };
        let zx = zero(Some(x_zero));
        let zw = zero(self.w_zero);
        let signed = |index: usize| shapes.dtype(index).map(|dtype| dtype == DataType::Int8);
        let x_signed = signed(0)?;
        let w_signed = signed(w)?;
        let [kz, ky, kx] = lengths.window;
        let count = bindings.len();
        let context = context!(zx, zw, x_signed, w_signed, kz, ky, kx, params => count);
        let source = render(include_str!("integer_direct.wgsl"), context)?;
        let all = lengths.groups * lengths.m;
        let total = lengths.images * all * lengths.pixels();
        let own_step = self.w_zero.map_or(0, |index| own(shapes, index) as usize);
        let last = usize::from(lengths.channels_last);
        let own = [total, all, lengths.m, lengths.channels, lengths.pixels(), own_step, last];
        let mut params = own.into_iter().map(param).collect::<Result<Vec<_>, _>>()?;
        params.extend(lengths.params()?);
        let shader = KernelShader::new("conv-i8-direct", source).proved();
        step.dispatch(shader, bindings, params, fold(total.div_ceil(256))?);
        Ok(())
    }

    fn requantise(
        &self,
        lengths: &ConvLengths,
        shapes: &NodeShapes,
        sums: usize,
        elements: usize,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let float = |index: usize| wgsl_float(shapes.dtype(index)?);
        let signed = |index: usize| shapes.dtype(index).map(|dtype| dtype == DataType::Int8);
        let added = self.form == IntegerConvResult::Added;
        let bias = shapes.has(BIAS);
        let mut bindings = vec![ShaderBinding::Scratch(sums)];
        bindings.extend(SCALES.map(ShaderBinding::Input));
        bindings.extend([ShaderBinding::Input(Y_ZERO), ShaderBinding::Output(0)]);
        bindings.extend(bias.then_some(ShaderBinding::Input(BIAS)));
        let mut other = context!(given => false);
        if added {
            let given = shapes.has(OTHER_ZERO);
            let inputs = [OTHER, OTHER + 1, SUM[0], SUM[1]];
            let first = bindings.len();
            bindings.extend(inputs.map(ShaderBinding::Input));
            bindings.extend(given.then_some(ShaderBinding::Input(OTHER_ZERO)));
            let scale = float(OTHER + 1)?;
            let sum = float(SUM[0])?;
            other = context!(
                given => true, first, zero => given, scale, sum,
                signed => signed(OTHER)?, sum_signed => signed(SUM[1])?
            );
        }
        let [x, w, y] = SCALES;
        let context = context!(
            x => float(x)?, w => float(w)?, y => float(y)?, bias, other,
            signed => signed(Y_ZERO)?, params => bindings.len()
        );
        let source = render(include_str!("requantise.wgsl"), context)?;
        let inner = if lengths.channels_last { 1 } else { lengths.pixels() };
        let all = [elements, inner, lengths.groups * lengths.m];
        let mut params = all.into_iter().map(param).collect::<Result<Vec<_>, _>>()?;
        params.push(own(shapes, w));
        let shader = KernelShader::new("conv-i8-requantise", source).proved();
        step.dispatch(shader, bindings, params, fold(elements.div_ceil(4 * 64))?);
        Ok(())
    }
}
