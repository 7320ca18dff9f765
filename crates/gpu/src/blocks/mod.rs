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
pub use tiled::{TILED_CONFIGS, TiledRowsConfig};

use galatea_runtime::tune::ConfigSpace;
use galatea_tensor::DataType;

use crate::choices::{KernelFamily, label, ways};
use crate::device::{GpuCapabilities, GpuDevice};
use crate::kernel::{DispatchStep, GpuKernelRow};
use product::{CodedProduct, CodedProductCall};

/// This family's kernels.
pub(crate) const ROWS: &[GpuKernelRow] = &[mat_mul::ROW, gather::ROW, n_bits::ROW];

/// Kernels that the caller forces; by default they are chosen by sizes and device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockKernelChoice {
    /// Kernel for few rows.
    pub gemv: Option<GemvConfig>,
    /// Kernel for many rows.
    pub tiled: Option<TiledRowsConfig>,
    /// From how many rows on they are many.
    pub many: Option<usize>,
    /// The most bytes of a binding, where that is less than the device has.
    pub binding_bytes: Option<u64>,
}

/// Products, as records of measurements name them.
const FAMILY: KernelFamily = KernelFamily::new(
    "blocks",
    &[
        include_str!("codes.wgsl"),
        include_str!("entries.wgsl"),
        include_str!("gate_part.wgsl"),
        include_str!("gemv.wgsl"),
        include_str!("merge.wgsl"),
        include_str!("params.wgsl"),
        include_str!("quad.wgsl"),
        include_str!("round.wgsl"),
        include_str!("store.wgsl"),
        include_str!("tiled.wgsl"),
    ],
);

/// More rows than these are never measured as few, and fewer never as many.
const MEASURED: (usize, usize) = (64, 4);

impl BlockKernelChoice {
    fn of_gemv(own: GemvConfig) -> Self {
        Self { gemv: Some(own), many: Some(usize::MAX), ..Self::default() }
    }

    fn of_tiled(own: TiledRowsConfig) -> Self {
        Self { tiled: Some(own), many: Some(0), ..Self::default() }
    }

    /// Returns the choices that are worth measuring for a matrix multiplication.
    fn sensible(
        device: &GpuCapabilities,
        product: &CodedProduct,
        call: &CodedProductCall,
    ) -> Vec<Self> {
        let m = call.m;
        let few = GEMV_CONFIGS.iter().filter(|own| {
            let rows = own.most == 8 || m >= 4;
            m <= MEASURED.0 && rows && own.is_valid(device)
        });
        let halves = call.x.dtype == DataType::Fp16 || product.halves;
        let many = TILED_CONFIGS.iter().filter(|own| {
            let filled = own.tile[0] <= 2 * m.next_power_of_two().max(16);
            m > MEASURED.1 && filled && (halves || !own.cooperative) && own.is_valid(device)
        });
        few.map(|own| Self::of_gemv(*own)).chain(many.map(|own| Self::of_tiled(*own))).collect()
    }

    fn label(&self) -> String {
        match (self.gemv, self.tiled) {
            (Some(own), _) => format!("gemv({})", label(&own)),
            (_, Some(own)) => format!("tiled({})", label(&own)),
            _ => String::new(),
        }
    }

    /// Returns the fastest choice on record, unless the caller forces one.
    fn or_measured(
        self,
        device: &GpuCapabilities,
        product: &CodedProduct,
        call: &CodedProductCall,
        step: &mut DispatchStep,
    ) -> Self {
        if self.gemv.is_some() || self.tiled.is_some() || self.many.is_some() {
            return self;
        }
        let all = || Self::sensible(device, product, call);
        let found = step.choose(&FAMILY, || {
            let space = ConfigSpace::new(vec![ways("way", all().iter().map(Self::label))]);
            product.question(call, space, gemv::rounds(device, product))
        });
        found.checked_sub(1).and_then(|at| all().get(at).copied()).unwrap_or(self)
    }
}

/// Rows that still are few where nothing else is chosen and the device has products of matrices: of floats, and
/// of bytes.
const FEW: (usize, usize) = (8, 16);
/// The same without products of matrices.
const FEW_PLAIN: usize = 16;

fn dispatch(
    device: &GpuDevice,
    product: &CodedProduct,
    call: &CodedProductCall,
    choice: BlockKernelChoice,
    step: &mut DispatchStep,
) -> Result<(), String> {
    if call.m == 0 || product.packed.rows == 0 {
        return Ok(());
    }
    let capabilities = device.capabilities();
    let choice = choice.or_measured(capabilities, product, call, step);
    let halves = call.x.dtype == DataType::Fp16 || product.halves;
    let tiled = TiledRowsConfig::choose(capabilities, call.m, product.packed.rows, halves);
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
