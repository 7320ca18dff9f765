//! Models that are graphs: ONNX files and Core ML packages.

use std::ffi::{CString, c_char};

use galatea::{IoInfo, Model, ModelOptions, Tensor};

use crate::api_status::{ApiStatus, CallFailure};
use crate::caller::{CallerPointers, SizedStruct};
use crate::engine::{ENGINES, OpaqueEngine};
use crate::handle_table::HandleTable;
use crate::owned_text::{OpaqueText, put_text};
use crate::tensor::{OpaqueTensor, TENSORS, new_handle};
use crate::value_type::ValueType;

/// A model that is ready to run. Several threads may run it at once.
#[derive(Debug)]
pub struct OpaqueModel(());

/// Options for loading a model. Zeros stand for the usual values.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ModelLoadOptions {
    /// `sizeof(galatea_model_options)`.
    pub size: usize,
    /// Device or list of devices: "auto", "cpu", "gpu", "gpu:N", "coreml", "reference", or "gpu,cpu"; null for all.
    pub device: *const c_char,
    /// Precision of matrix multiplications and convolutions: "fp32", "bf16" or "fp16"; null for that of the model.
    pub precision: *const c_char,
    /// Function of a Core ML package that has several; null for the main one.
    pub function: *const c_char,
    /// Threads inside an operator; 0 for all cores.
    pub threads: u32,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for ModelLoadOptions {}

/// An input or output of a model.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ValueInfo {
    /// `sizeof(galatea_value_info)`, set by the caller.
    pub size: usize,
    /// Name; it belongs to the model.
    pub name: *const c_char,
    /// Type of the elements, a `galatea_type`.
    pub value_type: i32,
    /// 1 if the number of axes is known, else 0: then every shape is accepted.
    pub is_ranked: i32,
    /// Number of axes.
    pub rank: usize,
    /// Lengths of the axes, -1 for those that a run decides; they belong to the model.
    pub lengths: *const i64,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for ValueInfo {}

/// A tensor by the name of an input.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ApiNamedTensor {
    /// Name of the input.
    pub name: *const c_char,
    /// The tensor.
    pub tensor: *const OpaqueTensor,
}

/// An input or output as C reads it.
#[derive(Debug)]
struct ValueDescription {
    name: CString,
    value_type: ValueType,
    is_ranked: bool,
    lengths: Vec<i64>,
}

impl ValueDescription {
    fn of(info: &IoInfo) -> Self {
        let known = |len: usize| i64::try_from(len).unwrap_or(i64::MAX);
        Self {
            name: CString::new(info.name.as_str()).unwrap_or_default(),
            value_type: ValueType::of(info.dtype),
            is_ranked: info.ranked,
            lengths: info.dims.iter().map(|dim| dim.known().map_or(-1, known)).collect(),
        }
    }

    fn info(&self) -> ValueInfo {
        ValueInfo {
            size: size_of::<ValueInfo>(),
            name: self.name.as_ptr(),
            value_type: self.value_type as i32,
            is_ranked: i32::from(self.is_ranked),
            rank: self.lengths.len(),
            lengths: self.lengths.as_ptr(),
        }
    }
}

/// A model with its inputs and outputs as C reads them.
#[derive(Debug)]
pub(crate) struct ModelObject {
    pub(crate) model: Model,
    inputs: Vec<ValueDescription>,
    outputs: Vec<ValueDescription>,
}

pub(crate) static MODELS: HandleTable<ModelObject, OpaqueModel> = HandleTable::new(4, "model");

/// Loads a model: an ONNX file, a Core ML package, or a folder with one of them. `options` may be null.
///
/// Ownership: the model is the caller's, who frees it with `galatea_model_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_model_load(
    engine: *const OpaqueEngine,
    path: *const c_char,
    options: *const ModelLoadOptions,
    model: *mut *mut OpaqueModel,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        caller.check(model, 1, "model")?;
        let engine = ENGINES.get(engine)?;
        let path = caller.text(path, "path")?;
        let options = model_options(caller, options)?;
        let loaded = engine.engine.model_with(path, &options)?;
        let object = ModelObject {
            inputs: loaded.call_inputs().map(ValueDescription::of).collect(),
            outputs: loaded.call_outputs().map(ValueDescription::of).collect(),
            model: loaded,
        };
        caller.put(model, MODELS.insert(object)?, "model")
    })
}

fn model_options(
    caller: CallerPointers,
    options: *const ModelLoadOptions,
) -> Result<ModelOptions, CallFailure> {
    let options = caller.options(options, "options")?;
    let text = |pointer, name| caller.optional_text(pointer, name);
    let precision = text(options.precision, "precision")?.map(str::parse).transpose();
    Ok(ModelOptions {
        device: text(options.device, "device")?.map(str::to_owned),
        threads: usize::try_from(options.threads).unwrap_or(usize::MAX),
        precision: precision.map_err(CallFailure::argument)?.unwrap_or_default(),
        function: text(options.function, "function")?.map(str::to_owned),
        ..ModelOptions::default()
    })
}

/// Counts the inputs and outputs of a model. Either place may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_model_counts(
    model: *const OpaqueModel,
    inputs: *mut usize,
    outputs: *mut usize,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let object = MODELS.get(model)?;
        if !inputs.is_null() {
            caller.put(inputs, object.inputs.len(), "inputs")?;
        }
        if !outputs.is_null() {
            caller.put(outputs, object.outputs.len(), "outputs")?;
        }
        Ok(())
    })
}

fn value(
    caller: CallerPointers,
    values: &[ValueDescription],
    index: usize,
    info: *mut ValueInfo,
) -> Result<(), CallFailure> {
    let found = values.get(index).ok_or_else(|| {
        CallFailure::argument(format!("number {index} found, there are {}", values.len()))
    })?;
    caller.report(found.info(), info, "info")
}

/// Describes an input of a model, numbered from 0.
///
/// Ownership: name and lengths belong to the model and are valid until it is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_model_input(
    model: *const OpaqueModel,
    index: usize,
    info: *mut ValueInfo,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| value(caller, &MODELS.get(model)?.inputs, index, info))
}

/// Describes an output of a model, numbered from 0 in the order in which runs give them.
///
/// Ownership: name and lengths belong to the model and are valid until it is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_model_output(
    model: *const OpaqueModel,
    index: usize,
    info: *mut ValueInfo,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| value(caller, &MODELS.get(model)?.outputs, index, info))
}

/// Names the devices that run the parts of a model, such as "cpu" or "cpu,gpu".
///
/// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_model_devices(
    model: *const OpaqueModel,
    devices: *mut *mut OpaqueText,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let names = MODELS.get(model)?.model.devices().join(",");
        put_text(caller, names, devices, "devices")
    })
}

/// Reads the tensors of a run.
pub(crate) fn named_tensors<'a>(
    caller: CallerPointers,
    inputs: *const ApiNamedTensor,
    count: usize,
) -> Result<Vec<(&'a str, Tensor)>, CallFailure> {
    let inputs = caller.slice(inputs, count, "inputs")?;
    let mut named = Vec::with_capacity(count);
    for input in inputs {
        let name = caller.text(input.name, "name")?;
        named.push((name, TENSORS.get(input.tensor)?.tensor.clone()));
    }
    Ok(named)
}

/// Hands all results to C, or none.
pub(crate) fn put_tensors(
    caller: CallerPointers,
    results: &[Tensor],
    outputs: *mut *mut OpaqueTensor,
    capacity: usize,
) -> Result<(), CallFailure> {
    let mut handles = Vec::with_capacity(results.len());
    let made = results.iter().try_for_each(|tensor| {
        handles.push(new_handle(tensor)?);
        Ok(())
    });
    let made = made.and_then(|()| caller.copy_to(&handles, outputs, capacity, "outputs"));
    if made.is_err() {
        for handle in handles {
            TENSORS.remove(handle)?;
        }
    }
    made
}

/// Runs a model on named tensors and waits for its outputs, in the order of `galatea_model_output`. `outputs` has room
/// for `capacity` handles; `count` tells how many there are.
///
/// Ownership: the inputs stay the caller's and may be freed or used again at once. The outputs are the caller's, who
/// frees each with `galatea_tensor_free`. Where the call fails there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_model_run(
    model: *const OpaqueModel,
    inputs: *const ApiNamedTensor,
    input_count: usize,
    outputs: *mut *mut OpaqueTensor,
    capacity: usize,
    count: *mut usize,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let object = MODELS.get(model)?;
        caller.check(outputs, capacity.max(1), "outputs")?;
        caller.put(count, object.outputs.len(), "count")?;
        if capacity < object.outputs.len() {
            let needed = object.outputs.len();
            let text = format!("'outputs' has room for {capacity} tensors, {needed} are needed");
            return Err(CallFailure::new(ApiStatus::TooSmall, text));
        }
        let named = named_tensors(caller, inputs, input_count)?;
        let results = object.model.run(&named)?;
        let results: Vec<Tensor> = results.into_iter().map(|(_, tensor)| tensor).collect();
        put_tensors(caller, &results, outputs, capacity)
    })
}

/// Frees a model. Runs under way end as usual.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_model_free(model: *mut OpaqueModel) -> ApiStatus {
    // SAFETY: no pointer is followed.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|_| MODELS.remove(model).map(drop))
}
