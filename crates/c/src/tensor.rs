//! Tensors: copies, the caller's own memory without a copy, and results.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use galatea::{DataType, Tensor};
use galatea_tensor::{ByteString, MemoryKind, TensorError};

use crate::api_status::{ApiStatus, CallFailure};
use crate::caller::{CallerPointers, SizedStruct};
use crate::handle_table::HandleTable;
use crate::value_type::{ValueType, data_type};

/// A tensor. It never changes, and may be used by several threads.
#[derive(Debug)]
pub struct OpaqueTensor(());

/// Type and shape of a tensor.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct TensorInfo {
    /// `sizeof(galatea_tensor_info)`, set by the caller.
    pub size: usize,
    /// Type of the elements, a `galatea_type`.
    pub value_type: i32,
    /// Number of axes.
    pub rank: usize,
    /// Lengths of the axes; they belong to the tensor.
    pub lengths: *const i64,
    /// Number of elements.
    pub elements: usize,
    /// Bytes of all elements; 0 for byte strings.
    pub bytes: usize,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for TensorInfo {}

/// Called once when the library does not need memory any more, on any thread.
pub type ReleaseCallback = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// A tensor whose elements are adjacent, with its lengths as C reads them.
#[derive(Debug)]
pub(crate) struct TensorObject {
    pub(crate) tensor: Tensor,
    lengths: Vec<i64>,
}

pub(crate) static TENSORS: HandleTable<TensorObject, OpaqueTensor> = HandleTable::new(3, "tensor");

impl TensorObject {
    pub(crate) fn new(tensor: &Tensor) -> Result<Self, CallFailure> {
        let tensor = tensor.contiguous().map_err(run_failure)?;
        let lengths = tensor.shape().iter().map(|&len| i64::try_from(len).unwrap_or(i64::MAX));
        Ok(Self { lengths: lengths.collect(), tensor })
    }
}

fn run_failure(error: impl std::fmt::Display) -> CallFailure {
    CallFailure::new(ApiStatus::Run, error.to_string())
}

fn wrong(error: impl std::fmt::Display) -> CallFailure {
    CallFailure::argument(error.to_string())
}

/// Hands a tensor to C.
pub(crate) fn new_handle(tensor: &Tensor) -> Result<*mut OpaqueTensor, CallFailure> {
    TENSORS.insert(TensorObject::new(tensor)?)
}

/// Reads a shape.
pub(crate) fn shape(
    caller: CallerPointers,
    lengths: *const i64,
    rank: usize,
) -> Result<Vec<usize>, CallFailure> {
    let read = |&len: &i64| {
        usize::try_from(len).map_err(|_| CallFailure::argument(format!("a length is {len}")))
    };
    caller.slice(lengths, rank, "lengths")?.iter().map(read).collect()
}

/// Memory of the caller, which is given back when nobody needs it.
#[derive(Debug)]
struct CallerMemory {
    start: *const u8,
    len: usize,
    release: ReleaseCallback,
    context: *mut c_void,
    /// True if the memory is not given back, since the caller was refused.
    keeps: AtomicBool,
}

// SAFETY: the caller promises that the bytes may be read, and the callback called, on every thread.
unsafe impl Send for CallerMemory {}
// SAFETY: nobody writes to the bytes, which the caller promises.
unsafe impl Sync for CallerMemory {}

// SAFETY: the bytes stay where they are and unchanged until `release` is called, which the caller promises.
unsafe impl galatea_tensor::Allocation for CallerMemory {
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }
    fn as_ptr(&self) -> Result<*const u8, TensorError> {
        Ok(self.start)
    }
    fn len_bytes(&self) -> usize {
        self.len
    }
}

impl Drop for CallerMemory {
    fn drop(&mut self) {
        if let (Some(release), false) = (self.release, *self.keeps.get_mut()) {
            // SAFETY: the caller promises that the callback may be called once with its context.
            unsafe { release(self.context) };
        }
    }
}

/// Makes a tensor of a copy of bytes. `bytes` must be those that the shape needs.
///
/// Ownership: the tensor is the caller's, who frees it with `galatea_tensor_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_tensor_create(
    value_type: i32,
    lengths: *const i64,
    rank: usize,
    data: *const c_void,
    bytes: usize,
    tensor: *mut *mut OpaqueTensor,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        caller.check(tensor, 1, "tensor")?;
        let shape = shape(caller, lengths, rank)?;
        let data = caller.slice(data.cast::<u8>(), bytes, "data")?;
        let made = Tensor::from_bytes(data_type(value_type)?, &shape, data).map_err(wrong)?;
        caller.put(tensor, new_handle(&made)?, "tensor")
    })
}

/// Makes a tensor of the caller's memory without a copy. Bytes that are not aligned for their type are copied.
///
/// Ownership: the memory stays the caller's. It must not change until `release` is called with `context`, once and on
/// any thread; a copied memory is given back before the call returns. `release` may be null for memory that outlives
/// the tensor and every run that uses it. Where the call fails, `release` is not called. The tensor is the caller's, who
/// frees it with `galatea_tensor_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_tensor_wrap(
    value_type: i32,
    lengths: *const i64,
    rank: usize,
    data: *const c_void,
    bytes: usize,
    release: ReleaseCallback,
    context: *mut c_void,
    tensor: *mut *mut OpaqueTensor,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        caller.check(tensor, 1, "tensor")?;
        let shape = shape(caller, lengths, rank)?;
        let dtype = data_type(value_type)?;
        let start = data.cast::<u8>();
        caller.check(start, bytes.max(1), "data")?;
        let expected = byte_count(dtype, &shape)?;
        if bytes != expected {
            let text = format!("{bytes} bytes found, expected {expected} for shape {shape:?}");
            return Err(CallFailure::argument(text));
        }
        let keeps = AtomicBool::new(false);
        let memory = Arc::new(CallerMemory { start, len: bytes, release, context, keeps });
        let made = Tensor::from_allocation(dtype, &shape, Arc::clone(&memory) as Arc<_>, 0);
        let handle = made.map_err(wrong).and_then(|made| new_handle(&made));
        // A caller whose call fails has the memory still.
        memory.keeps.store(handle.is_err(), Ordering::Release);
        caller.put(tensor, handle?, "tensor")
    })
}

/// Returns the elements of a tensor, brought to the host where they lie elsewhere.
fn bytes_of(tensor: &Tensor) -> Result<&[u8], CallFailure> {
    match tensor.dtype() {
        DataType::Bytes => Err(wrong("the tensor has byte strings; ask for each of them")),
        _ => tensor.as_bytes().map_err(run_failure),
    }
}

fn byte_count(dtype: DataType, shape: &[usize]) -> Result<usize, CallFailure> {
    let each = dtype.size_bytes();
    let each = each.ok_or_else(|| CallFailure::argument("byte strings have no fixed size"))?;
    let count = shape.iter().try_fold(each, |count, &len| count.checked_mul(len));
    count.ok_or_else(|| CallFailure::argument(format!("shape {shape:?} has too many elements")))
}

/// Makes a tensor of byte strings. `sizes` may be null where each text ends with a zero byte.
///
/// Ownership: the texts are copied. The tensor is the caller's, who frees it with `galatea_tensor_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_tensor_create_strings(
    lengths: *const i64,
    rank: usize,
    texts: *const *const c_char,
    sizes: *const usize,
    count: usize,
    tensor: *mut *mut OpaqueTensor,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        caller.check(tensor, 1, "tensor")?;
        let shape = shape(caller, lengths, rank)?;
        let texts = caller.slice(texts, count, "texts")?;
        let mut strings = Vec::with_capacity(count);
        for (at, &text) in texts.iter().enumerate() {
            let bytes = if sizes.is_null() {
                caller.text(text, "texts")?.as_bytes()
            } else {
                let size = caller.slice(sizes, count, "sizes")?[at];
                caller.slice(text.cast::<u8>(), size, "texts")?
            };
            strings.push(ByteString::from(bytes));
        }
        let made = Tensor::from_vec(&shape, strings).map_err(wrong)?;
        caller.put(tensor, new_handle(&made)?, "tensor")
    })
}

/// Tells type and shape of a tensor.
///
/// Ownership: `lengths` belongs to the tensor and is valid until it is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_tensor_describe(
    tensor: *const OpaqueTensor,
    info: *mut TensorInfo,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let object = TENSORS.get(tensor)?;
        let found = TensorInfo {
            size: size_of::<TensorInfo>(),
            value_type: ValueType::of(object.tensor.dtype()) as i32,
            rank: object.lengths.len(),
            lengths: object.lengths.as_ptr(),
            elements: object.tensor.elements(),
            bytes: match object.tensor.dtype() {
                DataType::Bytes => 0,
                _ => object.tensor.size_bytes(),
            },
        };
        caller.report(found, info, "info")
    })
}

/// Gives the elements of a tensor, row after row, without a copy. Byte strings are read by `galatea_tensor_string`.
///
/// Ownership: the bytes belong to the tensor, must not be changed, and are valid until it is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_tensor_data(
    tensor: *const OpaqueTensor,
    data: *mut *const c_void,
    bytes: *mut usize,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let object = TENSORS.get(tensor)?;
        let found = bytes_of(&object.tensor)?;
        if !bytes.is_null() {
            caller.put(bytes, found.len(), "bytes")?;
        }
        caller.put(data, found.as_ptr().cast(), "data")
    })
}

/// Copies the elements of a tensor to memory of the caller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_tensor_copy(
    tensor: *const OpaqueTensor,
    data: *mut c_void,
    capacity_bytes: usize,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let object = TENSORS.get(tensor)?;
        let found = bytes_of(&object.tensor)?;
        caller.copy_to(found, data.cast::<u8>(), capacity_bytes, "data")
    })
}

/// Gives one byte string of a tensor. It does not end with a zero byte.
///
/// Ownership: the bytes belong to the tensor and are valid until it is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_tensor_string(
    tensor: *const OpaqueTensor,
    index: usize,
    data: *mut *const c_char,
    length: *mut usize,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        caller.check(data, 1, "data")?;
        let object = TENSORS.get(tensor)?;
        let strings = object.tensor.as_slice::<ByteString>().map_err(wrong)?;
        let text = strings.get(index).ok_or_else(|| {
            CallFailure::argument(format!("string {index} of {} does not exist", strings.len()))
        })?;
        caller.put(length, text.as_bytes().len(), "length")?;
        caller.put(data, text.as_bytes().as_ptr().cast(), "data")
    })
}

/// Frees a tensor. Runs that use it go on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_tensor_free(tensor: *mut OpaqueTensor) -> ApiStatus {
    // SAFETY: no pointer is followed.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|_| TENSORS.remove(tensor).map(drop))
}
