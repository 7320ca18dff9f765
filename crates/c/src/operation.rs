//! Matrix multiplication and convolution on a device of choice.

use std::ffi::c_char;

use galatea::{ConvolutionSettings, GemmSettings, OperationSettings, Tensor};

use crate::api_status::{ApiStatus, CallFailure};
use crate::caller::{CallerPointers, SizedStruct};
use crate::engine::{ENGINES, OpaqueEngine};
use crate::operation_cache::OperationKey;
use crate::tensor::{OpaqueTensor, TENSORS, new_handle};
use crate::unit::ComputeUnitKind;

/// Settings of a matrix multiplication. Zeros stand for the product of both matrices as they lie.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct GemmOptions {
    /// `sizeof(galatea_gemm_options)`.
    pub size: usize,
    /// Device: "cpu", "gpu", "gpu:N", "coreml" or "reference"; null or "auto" for the fastest.
    pub device: *const c_char,
    /// Factor of the product; 0 stands for 1.
    pub alpha: f32,
    /// Factor of C; 0 stands for 1. Without C it has no meaning.
    pub beta: f32,
    /// 1 if A lies transposed.
    pub transpose_a: i32,
    /// 1 if B lies transposed.
    pub transpose_b: i32,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for GemmOptions {}

/// Settings of a convolution. Zeros of strides, dilations and groups stand for 1.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ConvolutionOptions {
    /// `sizeof(galatea_convolution_options)`.
    pub size: usize,
    /// Device, as in `galatea_gemm_options`.
    pub device: *const c_char,
    /// Steps along height and width.
    pub strides: [u32; 2],
    /// Rows and columns of zeros: top, left, bottom, right.
    pub pads: [u32; 4],
    /// Distances between elements of the window.
    pub dilations: [u32; 2],
    /// Groups of channels.
    pub groups: u32,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for ConvolutionOptions {}

/// Reads tensors, of which the last may be null.
fn operands(
    first: *const OpaqueTensor,
    second: *const OpaqueTensor,
    third: *const OpaqueTensor,
) -> Result<Vec<Tensor>, CallFailure> {
    let mut all = vec![TENSORS.get(first)?.tensor.clone(), TENSORS.get(second)?.tensor.clone()];
    if !third.is_null() {
        all.push(TENSORS.get(third)?.tensor.clone());
    }
    Ok(all)
}

/// Operands of an operation, and places for its result and its device.
struct OperationCall {
    engine: *const OpaqueEngine,
    settings: OperationSettings,
    device: *const c_char,
    inputs: Vec<Tensor>,
    result: *mut *mut OpaqueTensor,
    unit: *mut i32,
}

impl OperationCall {
    fn run(self, caller: CallerPointers) -> Result<(), CallFailure> {
        caller.check(self.result, 1, "result")?;
        let engine = ENGINES.get(self.engine)?;
        let device = caller.optional_text(self.device, "device")?.map(str::to_owned);
        let shapes = self.inputs.iter().map(|tensor| tensor.shape().to_vec()).collect();
        let key = OperationKey { settings: self.settings, shapes, device };
        let operation = engine.operations.find(&engine.engine, &key)?;
        let result = operation.run(self.inputs)?;
        if !self.unit.is_null() {
            caller.put(self.unit, ComputeUnitKind::of(&operation.devices()) as i32, "unit")?;
        }
        caller.put(self.result, new_handle(&result)?, "result")
    }
}

/// Multiplies matrices of FP32: `alpha * A * B + beta * C`. `options`, `c` and `unit` may be null. `unit` tells the
/// device that computes, a `galatea_unit`. The first call with new shapes prepares what later ones use.
///
/// Ownership: the inputs stay the caller's. The result is the caller's, who frees it with `galatea_tensor_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_gemm(
    engine: *const OpaqueEngine,
    options: *const GemmOptions,
    a: *const OpaqueTensor,
    b: *const OpaqueTensor,
    c: *const OpaqueTensor,
    result: *mut *mut OpaqueTensor,
    unit: *mut i32,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let options = caller.options(options, "options")?;
        let or_one = |value: f32| if value == 0.0 { 1.0 } else { value };
        let settings = OperationSettings::Gemm(GemmSettings {
            alpha: or_one(options.alpha),
            beta: or_one(options.beta),
            transpose_a: options.transpose_a != 0,
            transpose_b: options.transpose_b != 0,
        });
        let inputs = operands(a, b, c)?;
        OperationCall { engine, settings, device: options.device, inputs, result, unit }.run(caller)
    })
}

/// Convolves images `[N, C, H, W]` of FP32 with weights `[M, C/groups, h, w]` and adds a bias `[M]`. `options`, `bias`
/// and `unit` may be null, as in `galatea_gemm`.
///
/// Ownership: as of `galatea_gemm`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_convolution(
    engine: *const OpaqueEngine,
    options: *const ConvolutionOptions,
    images: *const OpaqueTensor,
    weights: *const OpaqueTensor,
    bias: *const OpaqueTensor,
    result: *mut *mut OpaqueTensor,
    unit: *mut i32,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let options = caller.options(options, "options")?;
        let settings = OperationSettings::Convolution(ConvolutionSettings {
            strides: options.strides.map(|stride| stride.max(1)),
            pads: options.pads,
            dilations: options.dilations.map(|distance| distance.max(1)),
            groups: options.groups.max(1),
        });
        let inputs = operands(images, weights, bias)?;
        OperationCall { engine, settings, device: options.device, inputs, result, unit }.run(caller)
    })
}
