//! Products with a constant matrix of many zeros.
//!
//! Tiles pass over parts of k in which their columns have nothing. Few rows read no blocks of zeros, or, where two
//! of each four elements are zeros, the other two only. A zero that is passed over gives 0 whatever it would be
//! multiplied with, infinities among them.

mod zeros;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use galatea_runtime::Precision;
use galatea_runtime::tune::ConfigSpace;
use galatea_tensor::DataType;

use super::problem::MatMulProblem;
use super::spec::MatMulSpec;
use super::stack::adopt;
use super::tiled::TileSizes;
use super::variant::MatMulVariant;
use super::vector::{FEW, MatrixZeros, VectorConfig};
use crate::choices::{KernelFamily, label, ways};
use crate::device::{GpuCapabilities, GpuDevice};
use crate::kernel::{DispatchStep, GpuNodeView, ShaderBinding};
use crate::memory::DeviceBlock;
use zeros::{FullBlocks, KeptHalf, SearchedMatrix};

/// These kernels, as records of measurements name them.
const FAMILY: KernelFamily = KernelFamily::new(
    "matmul sparse",
    &[include_str!("../tiled.wgsl"), include_str!("../vector.wgsl"), include_str!("zeros.rs")],
);

/// Matrices of fewer bytes are read in no time.
const LEAST_BYTES: usize = 256 << 10;

/// Part of a dense product's time below which leaving zeros out is worth its lists.
const WORTH: f64 = 0.85;

/// Part of the bytes that are read where two of four elements are kept: they, and two bits for each.
const HALF: f64 = 0.54;

/// The most rows for which picking two of four elements takes less than reading all four.
const HALF_ROWS: usize = 1;

/// A way to leave zeros out.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SparseWay {
    /// By tiles, which pass over parts of k.
    Tiles(TileSizes),
    /// A few rows, which pass over blocks.
    Blocks(VectorConfig),
    /// A few rows with two of each four elements.
    Half(VectorConfig),
}

impl SparseWay {
    fn name(&self) -> String {
        match self {
            Self::Tiles(config) => format!("tiles {}", label(config)),
            Self::Blocks(config) => format!("blocks {}", label(config)),
            Self::Half(config) => format!("half {}", label(config)),
        }
    }
}

/// Kept elements on the device, FP32.
#[derive(Debug)]
struct HalfOnDevice {
    values: Arc<DeviceBlock>,
    places: Arc<DeviceBlock>,
}

/// A constant matrix with many zeros.
#[derive(Debug)]
pub(super) struct SparseMatrix {
    device: Arc<GpuDevice>,
    blocks: FullBlocks,
    /// Part of the parts of k that each tile has to compute.
    shares: Vec<(TileSizes, f64)>,
    half: Option<HalfOnDevice>,
    /// Lists of parts by a tile's columns and depth; the bits of blocks have neither.
    lists: Mutex<HashMap<Option<[usize; 2]>, Arc<DeviceBlock>>>,
}

impl SparseMatrix {
    /// Returns the zeros of a node's constant matrix, where there are enough.
    pub(super) fn of(view: &GpuNodeView<'_>, spec: &MatMulSpec) -> Option<Self> {
        let tensor = view.constant(1)?.contiguous().ok()?;
        let bytes = tensor.elements() * tensor.dtype().size_bytes()?;
        let device = view.device;
        if bytes < LEAST_BYTES || bytes as u64 > device.capabilities().binding_bytes {
            return None;
        }
        let matrix = SearchedMatrix::of(&tensor, spec.b.matrix)?;
        if !matrix.seems_sparse() {
            return None;
        }
        let blocks = FullBlocks::of(&matrix);
        let fitting = TileSizes::ALL.iter().filter(|one| one.fits(device.capabilities()));
        let share = |one: &TileSizes| (*one, blocks.share_of(one.columns, one.deep));
        let shares: Vec<_> = fitting.map(share).collect();
        // FP16 is read as fast as it is picked.
        let single = tensor.dtype() == DataType::Fp32 && view.precision != Precision::Fp16;
        let half = if single { KeptHalf::of(&matrix) } else { None };
        let half = half.map(|half| HalfOnDevice::new(device, &half));
        let half = half.transpose().ok()?;
        let sparse = blocks.share() <= WORTH || half.is_some();
        let device = Arc::clone(device);
        sparse.then(|| Self { device, blocks, shares, half, lists: Mutex::default() })
    }

    /// Bytes of it on the device.
    pub(super) fn bytes(&self) -> u64 {
        let half = self.half.as_ref().map_or(0, |half| half.values.bytes() + half.places.bytes());
        let lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        half + lists.values().map(|block| block.bytes()).sum::<u64>()
    }

    /// Adds the dispatches of a product that leaves zeros out, where that is faster; returns whether it is.
    ///
    /// # Errors
    /// Fails when lengths are beyond the device.
    pub(super) fn run(
        &self,
        problem: &MatMulProblem,
        step: &mut DispatchStep,
    ) -> Result<bool, String> {
        let capabilities = self.device.capabilities();
        let usual = self.usual_way(problem, capabilities);
        let all = self.ways(problem, capabilities);
        let found = step.choose(&FAMILY, || {
            let names = all.iter().map(SparseWay::name).chain(["dense".to_owned()]);
            let mut question = problem.question(ConfigSpace::new(vec![ways("way", names)]));
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
            question.lengths.push(("full", (self.blocks.share() * 100.0) as usize));
            question
        });
        let way = match found.checked_sub(1) {
            None => usual,
            Some(at) => all.get(at).copied(),
        };
        way.map_or(Ok(false), |way| self.run_by(way, problem, step).map(|()| true))
    }

    /// The ways that a tuner may choose.
    fn ways(&self, problem: &MatMulProblem, capabilities: &GpuCapabilities) -> Vec<SparseWay> {
        if problem.products() != 1 || problem.windows.is_some() {
            return Vec::new();
        }
        if problem.m > FEW {
            return self.shares.iter().map(|(config, _)| SparseWay::Tiles(*config)).collect();
        }
        let fitting = VectorConfig::ALL.iter().filter(|config| config.fits(capabilities));
        let halves = fitting.clone().filter(|_| self.takes_half(problem));
        let halves = halves.map(|config| SparseWay::Half(*config));
        fitting.map(|config| SparseWay::Blocks(*config)).chain(halves).collect()
    }

    /// Returns whether rows can be read by fours beside kept elements.
    fn takes_half(&self, problem: &MatMulProblem) -> bool {
        self.half.is_some() && problem.a.inner == 1 && problem.a.quads(true, problem.k)
    }

    /// The way that lengths suggest; none where the dense product is as fast.
    fn usual_way(
        &self,
        problem: &MatMulProblem,
        capabilities: &GpuCapabilities,
    ) -> Option<SparseWay> {
        let all = self.ways(problem, capabilities);
        if problem.m <= FEW {
            let share = self.blocks.share();
            let first = |half: bool| {
                all.iter().copied().find(|way| matches!(way, SparseWay::Half(_)) == half)
            };
            let half = first(true).filter(|_| problem.m <= HALF_ROWS && HALF < share);
            return half.or_else(|| first(false).filter(|_| share <= WORTH));
        }
        // Cooperative matrices are several times as fast as tiles, whatever these leave out.
        let MatMulVariant::Tiled(dense, _) = MatMulVariant::choose(problem, capabilities) else {
            return None;
        };
        let cost = |(config, share): &(TileSizes, f64)| share / speed(config, problem);
        let best = self.shares.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
        (cost(best) < WORTH / speed(&dense, problem)).then_some(SparseWay::Tiles(best.0))
    }

    fn run_by(
        &self,
        way: SparseWay,
        problem: &MatMulProblem,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let capabilities = self.device.capabilities();
        match way {
            SparseWay::Tiles(config) => {
                let list = self.list(Some(&config))?;
                config.run_listed(problem, list, step)
            }
            SparseWay::Blocks(config) => {
                let bits = self.list(None)?;
                let zeros = MatrixZeros::Blocks(bits);
                config.run_sparse(problem, zeros, capabilities, step)
            }
            SparseWay::Half(config) => {
                let half = self.half.as_ref().ok_or("the matrix has another pattern")?;
                let mut packed = problem.clone();
                packed.k = problem.k / 2;
                (packed.b.dtype, packed.b.outer, packed.b.inner) = (DataType::Fp32, packed.k, 1);
                let places = MatrixZeros::Half(Arc::clone(&half.places));
                let mut own = DispatchStep::default();
                config.run_sparse(&packed, places, capabilities, &mut own)?;
                let values = ShaderBinding::Weights(Arc::clone(&half.values));
                step.in_place.extend(own.in_place.iter().copied());
                adopt(own, &[ShaderBinding::Input(0), values], &ShaderBinding::Output(0), step);
                Ok(())
            }
        }
    }

    /// Lists of parts for tiles of these sizes, or the bits of blocks.
    fn list(&self, tile: Option<&TileSizes>) -> Result<Arc<DeviceBlock>, String> {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let key = tile.map(|tile| [tile.columns, tile.deep]);
        if let Some(known) = lists.get(&key) {
            return Ok(Arc::clone(known));
        }
        let words = tile.map(|tile| self.blocks.parts(tile.columns, tile.deep));
        let words = words.unwrap_or_else(|| self.blocks.words().to_vec());
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let block =
            DeviceBlock::weights(&self.device, &bytes).map_err(|error| error.to_string())?;
        lists.insert(key, Arc::clone(&block));
        Ok(block)
    }
}

impl HalfOnDevice {
    fn new(device: &GpuDevice, half: &KeptHalf) -> Result<Self, String> {
        let block = |bytes: &[u8]| DeviceBlock::weights(device, bytes);
        let failed = |error: crate::error::GpuError| error.to_string();
        Ok(Self {
            values: block(&half.values).map_err(failed)?,
            places: block(&half.places).map_err(failed)?,
        })
    }
}

/// About how fast tiles are beside each other, where both keep the device busy.
fn speed(config: &TileSizes, problem: &MatMulProblem) -> f64 {
    let own = match (config.rows, config.columns) {
        (128, 128) => 1.1,
        (128, 64) | (64, 64) => 1.0,
        (32, 64) => 0.75,
        _ => 0.55,
    };
    // Rows beyond the last are computed too, and few workgroups leave most of a device idle.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    let used = problem.m as f64 / problem.m.next_multiple_of(config.rows) as f64;
    let groups = problem.m.div_ceil(config.rows) * problem.n.div_ceil(config.columns);
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    let busy = (groups as f64 / 96.0).min(1.0);
    own * used * busy
}
