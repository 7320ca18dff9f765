//! A convolution as a kernel: it takes the way that fits the lengths of a run.

use std::sync::Arc;

use galatea_graph::ops::convolution::{ConvTranspose, FusedConv};
use galatea_runtime::Precision;
use galatea_tensor::{DataType, Tensor};

use super::algorithm::{Algorithm, Case};
use super::build::Convolution;
use super::columns;
use super::direct;
use super::gemm::{self, Packing, Tile};
use super::packed::{Asks, Layout, Packed};
use super::product;
use super::windows::{self, Spread};
use super::winograd::{self, Winograd};
use crate::device::Device;
use crate::kernel::{Binding, Kernel, Shapes, Step};
use crate::matmul::Variant;

/// A convolution with what is known of it beforehand.
#[derive(Debug)]
pub struct ConvKernel {
    device: Arc<Device>,
    convolution: Convolution,
    /// Weights that are known before a run.
    weights: Option<Tensor>,
    packed: Packed,
    /// Whether operands may be rounded to FP16, and whether weights are kept so.
    halves: bool,
    narrow: bool,
    forced: Option<Algorithm>,
    by: Option<Variant>,
}

impl ConvKernel {
    /// A convolution with constant weights.
    #[must_use]
    pub fn new(
        fused: &FusedConv,
        weights: &Tensor,
        device: &Arc<Device>,
        precision: Precision,
    ) -> Self {
        Self::constant(Convolution::fused(fused), weights, device, precision)
    }

    /// The same for one that goes the other way.
    #[must_use]
    pub fn transposed(
        back: &ConvTranspose,
        weights: &Tensor,
        device: &Arc<Device>,
        precision: Precision,
    ) -> Self {
        Self::constant(Convolution::back(back), weights, device, precision)
    }

    fn constant(
        convolution: Convolution,
        weights: &Tensor,
        device: &Arc<Device>,
        precision: Precision,
    ) -> Self {
        let halves = precision == Precision::Fp16 && device.capabilities().f16;
        let own = Self::of(convolution, Some(weights.clone()), device, halves);
        Self { halves: halves || weights.dtype() == DataType::Fp16, ..own }
    }

    pub(super) fn of(
        convolution: Convolution,
        weights: Option<Tensor>,
        device: &Arc<Device>,
        narrow: bool,
    ) -> Self {
        let (device, packed) = (Arc::clone(device), Packed::default());
        Self {
            device,
            convolution,
            weights,
            packed,
            halves: narrow,
            narrow,
            forced: None,
            by: None,
        }
    }

    /// The same where all operands are FP16.
    pub(super) fn of_halves(self) -> Self {
        Self { halves: true, ..self }
    }

    /// The same in one way, whatever is known.
    #[must_use]
    pub fn forcing(mut self, algorithm: Algorithm) -> Self {
        self.forced = Some(algorithm);
        self
    }

    /// The same with plain products in one way, where it is a plain product.
    #[must_use]
    pub fn by(mut self, variant: Variant) -> Self {
        self.by = Some(variant);
        self
    }

    /// The way that lengths suggest, and all that a tuner may choose, each with an estimate of nanoseconds.
    ///
    /// # Errors
    /// When the shapes do not fit each other.
    pub fn ways(&self, shapes: &Shapes) -> Result<Vec<(Algorithm, f64)>, String> {
        let case = self.case(shapes)?;
        let all = std::iter::once(case.chosen()).chain(case.candidates());
        Ok(all.map(|one| (one, case.cost_ns(&one))).collect())
    }

    fn case(&self, shapes: &Shapes) -> Result<Case<'_>, String> {
        Ok(Case {
            convolution: &self.convolution,
            lengths: self.convolution.lengths(shapes)?,
            stored: [shapes.dtype(0)?, self.kept(shapes)?, shapes.output_dtype(0)?],
            packing: Packing::of(&self.convolution, shapes.input(1)?)?,
            constant: self.weights.is_some(),
            halves: self.halves,
            capabilities: self.device.capabilities(),
            by: self.by,
        })
    }

    /// The type that weights are kept in.
    fn kept(&self, shapes: &Shapes) -> Result<DataType, String> {
        match &self.weights {
            Some(_) if self.narrow => Ok(DataType::Fp16),
            Some(weights) => Ok(weights.dtype()),
            None => shapes.dtype(1),
        }
    }

    /// Packs weights as a run of these shapes will read them, so that it finds them.
    ///
    /// # Errors
    /// When the shapes do not fit each other, or the device has no room.
    pub(super) fn prepare(&self, shapes: &Shapes) -> Result<(), String> {
        let case = self.case(shapes)?;
        let layout = match case.chosen() {
            Algorithm::Direct | Algorithm::Product | Algorithm::Columns => return Ok(()),
            Algorithm::Tiled(_) | Algorithm::Cooperative(_) => Layout::Terms,
            Algorithm::Winograd(config) => Layout::Short(config),
            Algorithm::Windows => Layout::Windows,
        };
        self.packed(&case, layout, Asks::Build).map(drop)
    }

    /// Constant weights in a layout.
    fn packed(&self, case: &Case<'_>, layout: Layout, asks: Asks) -> Result<Binding, String> {
        let weights = self.weights.as_ref().ok_or("weights are known only in a run")?;
        let half = case.stored[1] == DataType::Fp16;
        let made = || match layout {
            Layout::Terms => {
                gemm::pack(&self.device, weights, &self.convolution, &case.packing, half)
            }
            Layout::Short(config) => winograd::pack(&self.device, weights, config, half),
            Layout::Windows => {
                let spread = Spread::of(case).ok_or("windows are no runs")?;
                windows::pack(&self.device, weights, (case, &spread), half)
            }
        };
        self.packed.get(layout, asks, made).map(Binding::Weights)
    }
}

impl Kernel for ConvKernel {
    fn bind(&self, shapes: &Shapes, step: &mut Step) -> Result<(), String> {
        let case = self.case(shapes)?;
        let asks = if step.is_measured() { Asks::Measurement } else { Asks::Run };
        let tile = match self.forced.unwrap_or_else(|| case.tuned(step)) {
            Algorithm::Direct => {
                return direct::run(&self.convolution, &case.lengths, shapes, step);
            }
            Algorithm::Columns => return columns::run(&case, shapes, step),
            Algorithm::Product => return product::run(&case, shapes, step),
            Algorithm::Windows => {
                let spread = Spread::of(&case).ok_or("windows are no runs")?;
                let weights = self.packed(&case, Layout::Windows, asks)?;
                return windows::run((&case, &spread), weights, shapes, step);
            }
            Algorithm::Winograd(config) => {
                let weights = self.packed(&case, Layout::Short(config), asks)?;
                return Winograd { case: &case, config, weights }.run(shapes, step);
            }
            Algorithm::Tiled(config) => Tile::Plain(config),
            Algorithm::Cooperative(config) => Tile::Matrices(config),
        };
        let weights = match self.weights {
            Some(_) => self.packed(&case, Layout::Terms, asks)?,
            None => gemm::pack_in_run(&case, step)?,
        };
        gemm::run(&case, tile, weights, shapes, step)
    }

    fn weight_bytes(&self) -> u64 {
        self.packed.bytes()
    }
}
