//! Blocks of shared memory that tensors lie in: handed out, found again, and reused from call to call.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use galatea_tensor::{
    ByteString, DataType, SharedBlock, Tensor, decode_byte_strings, encode_byte_strings,
};

use super::wire::PlacedTensor;
use super::{EngineError, EngineErrorKind};

/// The least bytes of a block: a page of an Apple chip.
const MIN_BYTES: usize = 16 << 10;
/// Blocks up to here have powers of two as their sizes, larger ones whole units of it.
const UNIT_BYTES: usize = 1 << 20;
/// The most bytes of blocks that nobody uses.
const MAX_IDLE_BYTES: usize = 256 << 20;

/// The blocks of one worker.
#[derive(Debug, Default)]
pub(super) struct WorkerBlockPool {
    blocks: Mutex<Vec<Arc<SharedBlock>>>,
}

/// A block that only the caller has.
pub(super) struct LeasedBlock {
    pub(super) block: Arc<SharedBlock>,
    /// Its name, where the worker has yet to open it.
    pub(super) new: Option<String>,
    /// Blocks that are given up for it.
    pub(super) closed: Vec<u64>,
}

fn memory(error: impl std::fmt::Display) -> EngineError {
    EngineError::new(EngineErrorKind::Memory, format!("shared memory: {error}"))
}

fn rounded(bytes: usize) -> usize {
    let bytes = bytes.max(MIN_BYTES);
    let larger = match bytes <= UNIT_BYTES {
        true => bytes.checked_next_power_of_two(),
        false => bytes.checked_next_multiple_of(UNIT_BYTES),
    };
    larger.unwrap_or(bytes)
}

impl WorkerBlockPool {
    /// A block of at least so many bytes; the smallest one that nobody uses, where there is one.
    pub(super) fn lease(&self, bytes: usize) -> Result<LeasedBlock, EngineError> {
        use galatea_tensor::Allocation;
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut idle: Vec<(usize, usize)> = Vec::new();
        for (at, block) in blocks.iter_mut().enumerate() {
            if let Some(block) = Arc::get_mut(block) {
                idle.push((block.len_bytes(), at));
            }
        }
        idle.sort_unstable();
        if let Some(&(_, at)) = idle.iter().find(|(len, _)| *len >= bytes) {
            return Ok(LeasedBlock {
                block: blocks.swap_remove(at),
                new: None,
                closed: Vec::new(),
            });
        }
        let mut held: usize = idle.iter().map(|(len, _)| len).sum();
        let mut gone: Vec<usize> = Vec::new();
        while held > MAX_IDLE_BYTES
            && let Some((len, at)) = idle.pop()
        {
            held -= len;
            gone.push(at);
        }
        // From behind, so that what is yet to go stays where it is.
        gone.sort_unstable_by(|a, b| b.cmp(a));
        let closed = gone.into_iter().map(|at| blocks.swap_remove(at).number()).collect();
        let (block, name) = create(rounded(bytes))?;
        Ok(LeasedBlock { block: Arc::new(block), new: Some(name), closed })
    }

    /// Knows a block from now on, to hand it out again when nobody else has it.
    pub(super) fn keep(&self, block: &Arc<SharedBlock>) {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(block));
    }

    /// The block of this pool that a tensor lies in, and the byte that it begins at.
    pub(super) fn holds(&self, tensor: &Tensor) -> Option<(Arc<SharedBlock>, usize)> {
        let (memory, offset) = tensor.memory()?;
        let number = memory.as_any()?.downcast_ref::<SharedBlock>()?.number();
        let blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let block = blocks.iter().find(|block| block.number() == number)?;
        Some((Arc::clone(block), offset))
    }
}

/// A new block under a name of its own.
fn create(bytes: usize) -> Result<(SharedBlock, String), EngineError> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // A process of the same number that was ended in the wrong moment may have left a name.
    let mut tries = 16;
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("/galatea-{:x}-{number:x}", std::process::id());
        match SharedBlock::create(&name, bytes, number) {
            Ok(block) => return Ok((block, name)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && tries > 0 => {
                tries -= 1;
            }
            Err(error) => return Err(memory(error)),
        }
    }
}

/// Texts with their lengths before them.
fn payload(tensor: &Tensor) -> Result<Vec<u8>, EngineError> {
    let texts: Vec<ByteString> = tensor.to_vec().map_err(memory)?;
    encode_byte_strings(&texts).map_err(memory)
}

/// The bytes that a tensor takes in a block.
pub(super) fn payload_bytes(tensor: &Tensor) -> Result<usize, EngineError> {
    match tensor.dtype() {
        DataType::Bytes => Ok(payload(tensor)?.len()),
        _ => Ok(tensor.size_bytes()),
    }
}

/// Copies a tensor to the start of a block, and says what lies there.
pub(super) fn put(
    name: &str,
    tensor: &Tensor,
    block: &mut SharedBlock,
) -> Result<PlacedTensor, EngineError> {
    let all = tensor.contiguous().map_err(memory)?;
    let bytes = match tensor.dtype() {
        DataType::Bytes => Cow::Owned(payload(tensor)?),
        _ => Cow::Borrowed(all.unaligned_bytes().map_err(memory)?),
    };
    let number = block.number();
    let room = block.as_bytes_mut().get_mut(..bytes.len()).ok_or_else(|| {
        memory(format!("'{name}' has {} bytes, more than block {number}", bytes.len()))
    })?;
    room.copy_from_slice(&bytes);
    Ok(placed(name, tensor, (number, 0, bytes.len())))
}

/// The description of a tensor that lies at a block, an offset and so many bytes.
pub(super) fn placed(name: &str, tensor: &Tensor, at: (u64, usize, usize)) -> PlacedTensor {
    PlacedTensor {
        name: name.to_owned(),
        dtype: tensor.dtype().wire_name().to_owned(),
        shape: tensor.shape().iter().map(|&len| len as u64).collect(),
        block: at.0,
        offset: at.1 as u64,
        bytes: at.2 as u64,
    }
}

/// The tensor that the other side has described, without a copy where that can be.
///
/// # Errors
/// Fails when it does not lie within the block.
pub(super) fn found(
    placed: &PlacedTensor,
    block: &Arc<SharedBlock>,
) -> Result<Tensor, EngineError> {
    use galatea_tensor::Allocation;
    let wrong = |what: String| memory(format!("tensor '{}': {what}", placed.name));
    let dtype: DataType = placed.dtype.parse().map_err(|error| wrong(format!("{error}")))?;
    let size = |value: u64| usize::try_from(value).map_err(|error| wrong(error.to_string()));
    let shape = placed.shape.iter().map(|&len| size(len)).collect::<Result<Vec<usize>, _>>()?;
    let offset = size(placed.offset)?;
    let bytes = size(placed.bytes)?;
    let len = block.len_bytes();
    if offset.checked_add(bytes).is_none_or(|end| end > len) {
        return Err(wrong(format!("{bytes} bytes from {offset} on, the block has {len}")));
    }
    let memory = Arc::clone(block) as Arc<dyn Allocation>;
    let tensor = if dtype == DataType::Bytes {
        let raw = Tensor::from_allocation(DataType::Uint8, &[bytes], memory, offset);
        let raw = raw.map_err(|error| wrong(error.to_string()))?;
        let raw = raw.unaligned_bytes().map_err(|error| wrong(error.to_string()))?;
        let texts = decode_byte_strings(raw).map_err(|error| wrong(error.to_string()))?;
        Tensor::from_vec(&shape, texts)
    } else {
        Tensor::from_allocation(dtype, &shape, memory, offset)
    };
    tensor.map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use galatea_tensor::Allocation;

    use super::*;

    fn made(pool: &WorkerBlockPool, bytes: usize) -> LeasedBlock {
        let leased = pool.lease(bytes).unwrap();
        if let Some(name) = &leased.new {
            SharedBlock::unlink(name);
        }
        pool.keep(&leased.block);
        leased
    }

    #[test]
    fn a_block_is_handed_out_again_when_nobody_uses_it() {
        let pool = WorkerBlockPool::default();
        let first = made(&pool, 100);
        let second = made(&pool, 100);
        assert_ne!(first.block.number(), second.block.number());
        let number = second.block.number();
        drop(second);
        assert_eq!(made(&pool, 200).block.number(), number);
        assert_eq!(first.block.len_bytes(), MIN_BYTES);
        assert_eq!(made(&pool, (1 << 20) + 1).block.len_bytes(), 2 << 20);
    }

    #[test]
    fn tensors_are_found_where_they_were_put() {
        let pool = WorkerBlockPool::default();
        let mut leased = pool.lease(64).unwrap();
        SharedBlock::unlink(&leased.new.unwrap());
        let block = Arc::get_mut(&mut leased.block).unwrap();
        let texts = Tensor::vector(vec![ByteString::from("a"), ByteString::from("bcd")]);
        let place = put("t", &texts, block).unwrap();
        assert_eq!(payload_bytes(&texts).unwrap() as u64, place.bytes);
        let read = found(&place, &leased.block).unwrap();
        assert_eq!(read.to_vec::<ByteString>().unwrap(), texts.to_vec::<ByteString>().unwrap());
        let numbers = Tensor::from_vec(&[2, 2], vec![1_i32, 2, 3, 4]).unwrap();
        let block = Arc::get_mut(&mut leased.block).unwrap();
        let place = put("n", &numbers.permute(&[1, 0]).unwrap(), block).unwrap();
        pool.keep(&leased.block);
        let read = found(&place, &leased.block).unwrap();
        assert_eq!(read.to_vec::<i32>().unwrap(), [1, 3, 2, 4]);
        assert_eq!(pool.holds(&read).unwrap().1, 0);
        assert!(pool.holds(&numbers).is_none());
    }

    #[test]
    fn descriptions_that_leave_the_block_are_refused() {
        let pool = WorkerBlockPool::default();
        let leased = made(&pool, 64);
        let good = placed("x", &Tensor::vector(vec![0_f32; 4]), (leased.block.number(), 0, 16));
        assert!(found(&good, &leased.block).is_ok());
        let refused = |change: fn(&mut PlacedTensor)| {
            let mut bad = good.clone();
            change(&mut bad);
            found(&bad, &leased.block).unwrap_err().text
        };
        assert!(refused(|bad| bad.offset = u64::MAX).contains("'x'"));
        assert!(refused(|bad| bad.offset = 1 << 20).contains("the block has 16384"));
        assert!(refused(|bad| bad.dtype = "FP31".to_owned()).contains("FP31"));
        assert!(refused(|bad| bad.shape = vec![u64::MAX, 2]).contains("'x'"));
        assert!(refused(|bad| bad.shape = vec![1 << 20]).contains("'x'"));
    }
}
