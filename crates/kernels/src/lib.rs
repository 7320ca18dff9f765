//! CPU compute for slices: matrix products, convolution, attention, reductions, with instruction
//! sets proved by type.
//!
//! The crate knows slices, shapes and strides, never graphs. Every function takes an [`KernelContext`]
//! first: the thread pool that shares the work and the instruction set that does it. Weights are
//! packed once ([`gemm::PackedB`], [`conv::PackedConv`]) and used many times.
//!
//! Layout words: a matrix is row-major with a leading dimension (`ld`, the distance in elements
//! between rows); images are NHWC, channels last.
//!
//! Every public function checks the lengths of its slices before it computes, so no argument can
//! reach memory out of bounds: a wrong length is a panic with a message.

pub mod activation;
pub mod attention;
pub mod bf16;
pub mod blocks;
pub mod conv;
pub mod convert;
pub mod elementwise;
pub mod gather;
pub mod gemm;
pub mod int8;
pub mod isa;
pub mod lstm;
pub mod moves;
pub mod norm;
pub mod norm_channels;
pub mod order;
pub mod paged_attention;
pub mod peak;
pub mod permute;
pub mod plain_product;
pub mod pooling;
pub mod recurrent;
pub mod reduce;
pub mod resize;
pub mod rotary;
pub mod sampling;
pub mod softmax;
pub mod threads;
pub mod trees;

mod cell;
#[cfg(test)]
mod fused_tests;
#[cfg(target_arch = "x86_64")]
mod lines;
mod math;
mod matrix;
mod memory;
mod pieces;
#[cfg(test)]
mod sparse_tests;
mod tiles;
mod zero_groups;

pub use activation::ActivationFunction;
pub use cell::{RealSlice, RealsMut};
pub use gemm::{GemmEpilogue, MatrixJoin, PackedB, ResidualMatrix, Transposition};
pub use isa::Isa;
pub use matrix::{MatrixSize, ProductSize, StridedMatrix};
pub use threads::{MAX_POOL_THREADS, TaskPriority, ThreadPool};
pub use zero_groups::ZeroGroup;

/// Where a kernel runs: the threads that share its work and the instruction set that does it.
#[derive(Clone, Copy, Debug)]
pub struct KernelContext<'a> {
    /// The threads.
    pub pool: &'a ThreadPool,
    /// The instruction set. Packed weights must have been packed for the same one.
    pub isa: Isa,
}

impl<'a> KernelContext<'a> {
    /// Runs on `pool` with the best instruction set of this processor.
    #[must_use]
    pub fn new(pool: &'a ThreadPool) -> Self {
        Self { pool, isa: Isa::detect() }
    }
}
