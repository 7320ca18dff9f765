//! Convolutions as plain products of weights and windows: an image is written once with its channels last and its
//! pads, so that a window is a few runs of elements that the product's own kernels read by fours, whatever it meets.

use std::sync::Arc;

use galatea_tensor::{DataType, Tensor, f16};
use minijinja::context;

use super::geometry::ConvLengths;
use super::product::{ConvOperands, problem};
use super::run_shape::ConvRunShape;
use crate::device::{GpuDevice, KernelShader};
use crate::kernel::{DispatchStep, ShaderBinding, fold, param, wgsl_float};
use crate::matmul::{ImageWindows, place};
use crate::memory::DeviceBlock;
use crate::template::render;
use galatea_runtime::NodeShapes;

/// Terms of a window are filled up to a multiple of this with weights of 0.
const K_STEP: usize = 32;

/// Threads of a workgroup that writes an image.
const THREADS: usize = 256;

/// An image as it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpreadImage {
    /// Channels, filled up to fours.
    channels: usize,
    height: usize,
    width: usize,
    /// Pixels of the image from one that is written to the next: those that windows of one pixel skip are left out.
    strides: [usize; 2],
    windows: ImageWindows,
    k: usize,
}

/// Returns whether an axis of the window has length 1.
fn is_single(len: usize) -> bool {
    len == 1
}

impl SpreadImage {
    /// Returns the spread of a convolution; `None` if windows are not contiguous runs, or images are too large.
    pub(super) fn of(case: &ConvRunShape<'_>) -> Option<Self> {
        let ConvLengths { window, input, output, pads, strides, dilations, .. } = &case.lengths;
        let flat = window[0] == 1 && input[0] == 1 && output[0] == 1 && pads[0] == 0;
        let runs = dilations[2] == 1 || is_single(window[2]);
        let plain = !case.convolution.is_transposed() && case.lengths.groups == 1;
        let empty = window.contains(&0) || output.contains(&0) || case.lengths.channels == 0;
        let empty = empty || case.lengths.images == 0;
        if !(flat && runs && plain && case.constant) || empty {
            return None;
        }
        let channels = case.lengths.channels.next_multiple_of(4);
        // Along one axis: elements that are written, steps between those, and between windows.
        let axis = |at: usize| match is_single(window[at]) {
            true => (output[at], strides[at], 1),
            false => {
                let reach = (window[at] - 1) * dilations[at];
                ((output[at] - 1) * strides[at] + reach + 1, 1, strides[at])
            }
        };
        let ((height, skip_y, step_y), (width, skip_x, step_x)) = (axis(1), axis(2));
        let row = width * channels;
        let terms = window[1] * window[2] * channels;
        let windows = ImageWindows {
            columns: !case.lengths.channels_last,
            across: output[2],
            pixels: output[1] * output[2],
            steps: [step_x * channels, step_y * row, height * row],
            run: window[2] * channels,
            pitch: dilations[1] * row,
            terms,
            zeros: case.lengths.images * height * row,
        };
        let strides = [skip_y, skip_x];
        let k = terms.next_multiple_of(K_STEP);
        let spread = Self { channels, height, width, strides, windows, k };
        case.has_room(windows.zeros + 4, case.stored[1]).then_some(spread)
    }

    /// Elements of k.
    pub(super) fn k(&self) -> usize {
        self.k
    }

    /// Elements that are written.
    pub(super) fn elements(&self) -> usize {
        self.windows.zeros
    }

    /// Returns whether the image already has the layout of the windows, and nothing beyond a window is read.
    pub(super) fn lies(&self, case: &ConvRunShape<'_>) -> bool {
        let ConvLengths { input, channels, channels_last, pads, .. } = &case.lengths;
        *channels_last
            && (self.channels, self.height, self.width) == (*channels, input[1], input[2])
            && *pads == [0; 3]
            && self.strides == [1; 2]
            && self.windows.terms.is_multiple_of(2 * K_STEP)
    }

    /// Writes the image.
    fn write(
        &self,
        case: &ConvRunShape<'_>,
        shapes: &NodeShapes,
        step: &mut DispatchStep,
    ) -> Result<ShaderBinding, String> {
        let ConvLengths { images, channels, input, pads, channels_last, .. } = &case.lengths;
        let dtype = case.stored[1];
        let deep = self.channels.next_power_of_two().clamp(4, 32);
        let pixels = (4 * THREADS / deep).max(64);
        let source = render(
            include_str!("spread.wgsl"),
            context! {
                x => wgsl_float(shapes.dtype(0)?)?,
                v => wgsl_float(dtype)?,
                last => *channels_last,
                deep, pixels,
            },
        )?;
        let tiles = (self.height * self.width).div_ceil(pixels);
        let tiles_deep = self.channels.div_ceil(deep);
        let total = tiles * tiles_deep * images;
        let all: usize = input.iter().product();
        let [x_image, x_channel, x_pixel] = match channels_last {
            true => [channels * all, 1, *channels],
            false => [channels * all, all, 1],
        };
        let params = [
            total,
            tiles,
            tiles_deep,
            *channels,
            self.channels / 4,
            self.height,
            self.width,
            input[1],
            input[2],
            self.strides[0],
            self.strides[1],
            pads[1],
            pads[2],
            x_image,
            x_channel,
            x_pixel,
            self.windows.zeros,
        ];
        let params = params.into_iter().map(param).collect::<Result<_, _>>()?;
        let bytes = (self.windows.zeros + 4) * dtype.size_bytes().unwrap_or(4);
        let spread = ShaderBinding::Scratch(step.scratch(bytes as u64));
        let shader = KernelShader::new("conv-spread", source).proved();
        step.dispatch(shader, vec![ShaderBinding::Input(0), spread.clone()], params, fold(total)?);
        Ok(spread)
    }
}

/// Packs constant weights as `[M, places, channels]`, filled up with zeros, and as FP16 where that is asked for.
///
/// # Errors
/// Fails when the weights are no floats, or the device has no room.
pub(super) fn pack(
    device: &GpuDevice,
    tensor: &Tensor,
    case: &ConvRunShape<'_>,
    spread: &SpreadImage,
    half: bool,
) -> Result<Arc<DeviceBlock>, String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let ConvLengths { window, channels, .. } = &case.lengths;
    let places: usize = window.iter().product();
    let k = spread.k;
    let filled = spread.channels;
    let sources = (0..case.lengths.m * k).map(|at| {
        let m = at / k;
        let place = at % k / filled;
        let channel = at % k % filled;
        (place < places && channel < *channels).then(|| (m * channels + channel) * places + place)
    });
    let bytes: Vec<u8> = if tensor.dtype() == DataType::Fp16 {
        let values = tensor.to_vec::<f16>().map_err(|error| failed(&error))?;
        let value = |at: Option<usize>| at.map_or(f16::ZERO, |at| values[at]);
        sources.flat_map(|at| value(at).to_le_bytes()).collect()
    } else {
        let values = tensor.to_vec::<f32>().map_err(|error| failed(&error))?;
        let value = |at: Option<usize>| at.map_or(0.0, |at| values[at]);
        match half {
            true => sources.flat_map(|at| f16::from_f32(value(at)).to_le_bytes()).collect(),
            false => sources.flat_map(|at| value(at).to_le_bytes()).collect(),
        }
    };
    DeviceBlock::weights(device, &bytes).map_err(|error| failed(&error))
}

/// Adds the dispatches, with packed weights.
///
/// # Errors
/// Fails when lengths are beyond the device.
pub(super) fn run(
    case: &ConvRunShape<'_>,
    spread: &SpreadImage,
    weights: ShaderBinding,
    shapes: &NodeShapes,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let dtype = case.stored[1];
    let lies = spread.lies(case);
    let image = if lies { ShaderBinding::Input(0) } else { spread.write(case, shapes, step)? };
    let sides = ConvOperands {
        weights: dtype,
        image: if lies { shapes.dtype(0)? } else { dtype },
        k: spread.k,
        windows: Some(spread.windows),
    };
    let inputs = if spread.windows.columns { [weights, image] } else { [image, weights] };
    let problem = problem(case, shapes, &sides)?;
    place(&problem, &inputs, &ShaderBinding::Output(0), case.capabilities, case.by, step)
}
