//! Data types, shapes, layouts, views, tolerant comparison and memory that several compute units
//! share.
//!
//! A [`Tensor`] is a typed, shared, immutable window on an [`Allocation`]; views (permuted, sliced,
//! broadcast) share the bytes. Memory that is being written is owned by one writer: an
//! [`OwnedTensor`] before it is frozen into a `Tensor`, or a window of an [`Arena`].

mod arena;
mod compare;
mod dispatch;
mod dtype;
mod element;
mod error;
mod interrupt;
mod layout;
mod mapped_file;
mod memory;
mod ordered;
mod page_faults;
mod parts;
mod shared_block;
mod shared_region;
mod small;
mod small_elements;
mod tensor;
mod view;
mod wire;

pub use arena::{Arena, ArenaError, StepWindows};
pub use compare::{Mismatch, Tolerance, compare};
pub use dtype::DataType;
pub use element::{ByteString, Element};
pub use error::{TensorError, TensorErrorKind};
pub use half::{bf16, f16};
pub use interrupt::{InterruptSource, InterruptibleScope, is_interrupted};
pub use layout::{MAX_RANK, ViewLayout, broadcast_shapes, checked_elements, contiguous_strides};
pub use mapped_file::{
    FileStamp, MappedFile, MappedFileSet, collect_mapped_files, read_plain_file, read_plain_text,
};
pub use memory::{
    ALIGNMENT, AccessAdvice, Allocation, HostBuffer, MemoryKind, SharedBytes, advise,
};
pub use ordered::{
    OccupiedEntry, OrderedEntry, OrderedIntoIter, OrderedIter, OrderedIterMut, OrderedKeys,
    OrderedMap, OrderedSet, VacantEntry,
};
pub use parts::{OwnedParts, check_part};
pub use shared_block::SharedBlock;
pub use shared_region::{SharedRegion, SharedRegionError};
pub use small::{ExponentRounding, NarrowingRule, OverflowRule, SmallType};
pub use small_elements::{
    Float4E2M1, Float8E4M3Fn, Float8E4M3FnUz, Float8E5M2, Float8E5M2FnUz, Float8E8M0, Int2, Int4,
    Uint2, Uint4,
};
pub use tensor::{OwnedTensor, Tensor};
pub use view::{TensorMut, TensorRef};
pub use wire::{decode_byte_strings, encode_byte_strings};
