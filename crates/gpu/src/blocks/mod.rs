//! Products with weights of few bits, and rows of them.
//!
//! Numbers stay packed on the device; [`layout`] says how. A few rows are multiplied by `gemv`, which reads
//! every number once; for many rows, `tiled` makes tiles of numbers whole.

mod codes;
mod gather;
mod gemv;
mod layout;
mod mat_mul;
mod n_bits;
mod pack;
mod product;
mod shared;
mod tiled;

pub use gemv::{GEMV_CONFIGS, GemvConfig};
pub use mat_mul::{BlockProducts, kernel};
pub use tiled::{TILED_CONFIGS, TiledConfig};

use galatea_tensor::DataType;

use crate::device::Device;
use crate::kernel::{KernelRow, Step};
use product::{Call, Product};

/// This family's kernels.
pub(crate) const ROWS: &[KernelRow] = &[mat_mul::ROW, gather::ROW, n_bits::ROW];

/// What kernels are forced to be; by default they are chosen by sizes and device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Of products of few rows.
    pub gemv: Option<GemvConfig>,
    /// Of products of many rows.
    pub tiled: Option<TiledConfig>,
    /// From how many rows on they are many.
    pub many: Option<usize>,
    /// The most bytes of a binding, where that is less than the device has.
    pub binding_bytes: Option<u64>,
}

/// Rows that still are few where nothing else is chosen and the device has products of matrices: of floats, and
/// of bytes.
const FEW: (usize, usize) = (8, 16);
/// The same without products of matrices.
const FEW_PLAIN: usize = 16;

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
    let capabilities = device.capabilities();
    let halves = call.x.dtype == DataType::Fp16 || product.halves;
    let tiled = TiledConfig::choose(capabilities, call.m, product.packed.rows, halves);
    let tiled = choice.tiled.or(tiled);
    let few = match tiled {
        Some(config) if config.cooperative && gemv::rounds(capabilities, product) => FEW.1,
        Some(config) if config.cooperative => FEW.0,
        _ => FEW_PLAIN,
    };
    let many = choice.many.unwrap_or(few + 1);
    match tiled.filter(|_| call.m >= many) {
        Some(config) => tiled::dispatch(capabilities, product, call, config, step),
        None => gemv::dispatch(capabilities, product, call, choice.gemv, step),
    }
}
