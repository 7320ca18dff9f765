//! A convolution as a kernel: it takes the way that fits the lengths of a run.

use std::sync::Arc;

use galatea_graph::ops::convolution::{ConvTranspose, FusedConv};
use galatea_runtime::Precision;
use galatea_tensor::{DataType, Tensor};

use super::algorithm::ConvAlgorithm;
use super::columns;
use super::direct;
use super::gemm::{self, ConvTile};
use super::node::ConvNode;
use super::packed::{ConvWeightLayout, PackedConvWeights, WeightRequester};
use super::product;
use super::run_shape::ConvRunShape;
use super::tiles::WeightPacking;
use super::windows::{self, SpreadImage};
use super::winograd::{self, WinogradConv};
use crate::device::GpuDevice;
use crate::kernel::{DispatchStep, GpuKernel, ShaderBinding};
use crate::matmul::MatMulVariant;
use galatea_runtime::NodeShapes;

/// A convolution with what is known of it beforehand.
#[derive(Debug)]
pub struct GpuConvKernel {
    device: Arc<GpuDevice>,
    convolution: ConvNode,
    /// Weights that are known before a run.
    weights: Option<Tensor>,
    packed: PackedConvWeights,
    /// True if operands may be rounded to FP16; `narrow` is true if weights are stored as FP16.
    halves: bool,
    narrow: bool,
    forced: Option<ConvAlgorithm>,
    by: Option<MatMulVariant>,
}

impl GpuConvKernel {
    /// A convolution with constant weights.
    #[must_use]
    pub fn new(
        fused: &FusedConv,
        weights: &Tensor,
        device: &Arc<GpuDevice>,
        precision: Precision,
    ) -> Self {
        Self::constant(ConvNode::fused(fused), weights, device, precision)
    }

    /// The same for one that goes the other way.
    #[must_use]
    pub fn transposed(
        back: &ConvTranspose,
        weights: &Tensor,
        device: &Arc<GpuDevice>,
        precision: Precision,
    ) -> Self {
        Self::constant(ConvNode::back(back), weights, device, precision)
    }

    fn constant(
        convolution: ConvNode,
        weights: &Tensor,
        device: &Arc<GpuDevice>,
        precision: Precision,
    ) -> Self {
        let halves = precision == Precision::Fp16 && device.capabilities().f16;
        let own = Self::of(convolution, Some(weights.clone()), device, halves);
        Self { halves: halves || weights.dtype() == DataType::Fp16, ..own }
    }

    pub(super) fn of(
        convolution: ConvNode,
        weights: Option<Tensor>,
        device: &Arc<GpuDevice>,
        narrow: bool,
    ) -> Self {
        let device = Arc::clone(device);
        let packed = PackedConvWeights::default();
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
    pub fn forcing(mut self, algorithm: ConvAlgorithm) -> Self {
        self.forced = Some(algorithm);
        self
    }

    /// The same with plain products in one way, where it is a plain product.
    #[must_use]
    pub fn by(mut self, variant: MatMulVariant) -> Self {
        self.by = Some(variant);
        self
    }

    /// The way that lengths suggest, and all that a tuner may choose, each with an estimate of nanoseconds.
    ///
    /// # Errors
    /// Fails when the shapes do not fit each other.
    pub fn ways(&self, shapes: &NodeShapes) -> Result<Vec<(ConvAlgorithm, f64)>, String> {
        let case = self.case(shapes)?;
        let all = std::iter::once(case.chosen()).chain(case.candidates());
        Ok(all.map(|one| (one, case.cost_ns(&one))).collect())
    }

    fn case(&self, shapes: &NodeShapes) -> Result<ConvRunShape<'_>, String> {
        Ok(ConvRunShape {
            convolution: &self.convolution,
            lengths: self.convolution.lengths(shapes)?,
            stored: [shapes.dtype(0)?, self.kept(shapes)?, shapes.output_dtype(0)?],
            packing: WeightPacking::of(&self.convolution, shapes.input(1)?)?,
            constant: self.weights.is_some(),
            halves: self.halves,
            capabilities: self.device.capabilities(),
            by: self.by,
        })
    }

    /// The type that weights are kept in.
    fn kept(&self, shapes: &NodeShapes) -> Result<DataType, String> {
        match &self.weights {
            Some(_) if self.narrow => Ok(DataType::Fp16),
            Some(weights) => Ok(weights.dtype()),
            None => shapes.dtype(1),
        }
    }

    /// Packs weights as a run of these shapes will read them, so that it finds them.
    ///
    /// # Errors
    /// Fails when the shapes do not fit each other, or the device has no room.
    pub(super) fn prepare(&self, shapes: &NodeShapes) -> Result<(), String> {
        let case = self.case(shapes)?;
        let layout = match case.chosen() {
            ConvAlgorithm::Direct | ConvAlgorithm::Product | ConvAlgorithm::Columns => {
                return Ok(());
            }
            ConvAlgorithm::Tiled(_) | ConvAlgorithm::Cooperative(_) => ConvWeightLayout::Terms,
            ConvAlgorithm::Winograd(config) => ConvWeightLayout::Short(config),
            ConvAlgorithm::Windows => ConvWeightLayout::Windows,
        };
        self.packed(&case, layout, WeightRequester::Build).map(drop)
    }

    /// Constant weights in a layout.
    fn packed(
        &self,
        case: &ConvRunShape<'_>,
        layout: ConvWeightLayout,
        asks: WeightRequester,
    ) -> Result<ShaderBinding, String> {
        let weights = self.weights.as_ref().ok_or("weights are known only in a run")?;
        let half = case.stored[1] == DataType::Fp16;
        let made = || match layout {
            ConvWeightLayout::Terms => {
                gemm::pack(&self.device, weights, &self.convolution, &case.packing, half)
            }
            ConvWeightLayout::Short(config) => winograd::pack(&self.device, weights, config, half),
            ConvWeightLayout::Windows => {
                let spread = SpreadImage::of(case).ok_or("windows are no runs")?;
                windows::pack(&self.device, weights, case, &spread, half)
            }
        };
        self.packed.get(layout, asks, made).map(ShaderBinding::Weights)
    }
}

impl GpuKernel for GpuConvKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let case = self.case(shapes)?;
        let asks =
            if step.is_measured() { WeightRequester::Measurement } else { WeightRequester::Run };
        let tile = match self.forced.unwrap_or_else(|| case.tuned(step)) {
            ConvAlgorithm::Direct => {
                return direct::run(&self.convolution, &case.lengths, shapes, step);
            }
            ConvAlgorithm::Columns => return columns::run(&case, shapes, step),
            ConvAlgorithm::Product => return product::run(&case, shapes, step),
            ConvAlgorithm::Windows => {
                let spread = SpreadImage::of(&case).ok_or("windows are no runs")?;
                let weights = self.packed(&case, ConvWeightLayout::Windows, asks)?;
                return windows::run(&case, &spread, weights, shapes, step);
            }
            ConvAlgorithm::Winograd(config) => {
                let weights = self.packed(&case, ConvWeightLayout::Short(config), asks)?;
                return WinogradConv { case: &case, config, weights }.run(shapes, step);
            }
            ConvAlgorithm::Tiled(config) => ConvTile::Plain(config),
            ConvAlgorithm::Cooperative(config) => ConvTile::Matrices(config),
        };
        let weights = match self.weights {
            Some(_) => self.packed(&case, ConvWeightLayout::Terms, asks)?,
            None => gemm::pack_in_run(&case, step)?,
        };
        gemm::run(&case, tile, weights, shapes, step)
    }

    fn weight_bytes(&self) -> u64 {
        self.packed.bytes()
    }
}
