//! Products with weights of few bits, and rows of them.
//!
//! Numbers stay packed on the device; [`layout`] says how. A few rows are multiplied by `gemv`, which reads
//! every number once.

mod codes;
mod gemv;
mod layout;
mod mat_mul;
mod pack;
mod product;

pub use gemv::{GEMV_CONFIGS, GemvConfig};
pub use mat_mul::{BlockProducts, kernel};

use crate::device::Device;
use crate::kernel::{KernelRow, Step};
use product::{Call, Product};

/// This family's kernels.
pub(crate) const ROWS: &[KernelRow] = &[mat_mul::ROW];

/// What kernels are forced to be; by default they are chosen by sizes and device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Of products of few rows.
    pub gemv: Option<GemvConfig>,
}

fn dispatch(
    device: &Device,
    product: &Product,
    call: &Call,
    choice: Choice,
    step: &mut Step,
) -> Result<(), String> {
    if call.m == 0 || product.packed.rows == 0 {
        return Ok(());
    }
    gemv::dispatch(device.capabilities(), product, call, choice.gemv, step)
}
