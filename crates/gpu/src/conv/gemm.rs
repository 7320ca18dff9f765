//! Convolutions as products of weights and windows.

use std::sync::Arc;

use galatea_runtime::tune::Space;
use galatea_tensor::{DataType, Tensor, f16};
use minijinja::context;

use super::build::Convolution;
use super::cooperative::{CONFIGS as MATRICES, ConvConfig};
use super::direct::{More, more};
use super::geometry::Lengths;
use crate::device::{Capabilities, Device, Shader};
use crate::kernel::{Binding, Kernel, Shapes, Step, fold, param, wgsl_float};
use crate::memory::Block;
use crate::template::render;
use crate::tune::{Family, Question, label, near, ways};

/// Sizes of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Config {
    /// Channels of the result that a workgroup computes.
    bm: usize,
    /// Pixels that it computes.
    bn: usize,
    /// Terms that it holds at a time.
    bk: usize,
    /// Channels that a thread computes.
    tm: usize,
}

/// Pixels that a thread computes.
const TN: usize = 4;

/// The tiles to choose from: wide ones, and one for few channels.
const CONFIGS: &[Config] = &[
    Config { bm: 64, bn: 64, bk: 16, tm: 4 },
    Config { bm: 128, bn: 64, bk: 16, tm: 8 },
    Config { bm: 32, bn: 64, bk: 16, tm: 4 },
];

/// Convolutions, as records of measurements name them.
const FAMILY: Family = Family::new(
    "conv",
    &[
        include_str!("cooperative.wgsl"),
        include_str!("gemm.wgsl"),
        include_str!("gemm_params.wgsl"),
    ],
);

/// Terms are filled up to a multiple of this, and channels to the tile's.
const K_STEP: usize = 32;

/// Elements of the result of an image from which on matrices are worth their tiles.
const LEAST: usize = 4096;

impl Config {
    /// The tile for so many channels in a group. Weights are laid out for it.
    fn for_channels(m: usize) -> Self {
        match m {
            ..=32 => CONFIGS[2],
            m if m.is_multiple_of(128) => CONFIGS[1],
            _ => CONFIGS[0],
        }
    }
}

/// How weights lie on the device.
#[derive(Clone, Copy, Debug)]
struct Packing {
    config: Config,
    m: usize,
    m_padded: usize,
    k: usize,
    k_padded: usize,
    places: usize,
    groups: usize,
}

/// A way to compute tiles.
#[derive(Clone, Copy, Debug)]
enum Tile {
    Plain(Config),
    Matrices(ConvConfig),
}

impl Tile {
    fn label(&self) -> String {
        match self {
            Self::Plain(own) => format!("tiled({})", label(own)),
            Self::Matrices(own) => format!("cooperative({})", label(own)),
        }
    }
}

impl Packing {
    fn of(convolution: &Convolution, weights: &[usize]) -> Result<Self, String> {
        let (m, k, places) = convolution.product(weights)?;
        let config = Config::for_channels(m);
        let (m_padded, k_padded) = (m.next_multiple_of(config.bm), k.next_multiple_of(K_STEP));
        Ok(Self { config, m, m_padded, k, k_padded, places, groups: convolution.groups() })
    }

    fn elements(&self) -> usize {
        self.groups * self.k_padded * self.m_padded
    }

    /// The place in the tensor of each element, and none for those that fill up.
    fn sources(self, transposed: bool) -> impl Iterator<Item = Option<usize>> {
        let channels = self.k / self.places.max(1);
        (0..self.elements()).map(move |at| {
            let m = at % self.m_padded;
            let k = at / self.m_padded % self.k_padded;
            let part = at / (self.m_padded * self.k_padded);
            let inside = m < self.m && k < self.k;
            inside.then(|| match transposed {
                true => {
                    let channel = part * channels + k / self.places;
                    (channel * self.m + m) * self.places + k % self.places
                }
                false => (part * self.m + m) * self.k + k,
            })
        })
    }
}

/// Weights that were packed beforehand.
#[derive(Debug)]
pub(super) struct Weights {
    block: Arc<Block>,
    dtype: DataType,
}

impl Weights {
    /// Packs constant weights, as FP16 where that is asked for.
    pub(super) fn pack(
        device: &Arc<Device>,
        tensor: &Tensor,
        convolution: &Convolution,
        shapes: &Shapes,
        halves: bool,
    ) -> Result<Self, String> {
        let packing = Packing::of(convolution, shapes.input(1)?)?;
        let failed = |error: &dyn std::fmt::Display| error.to_string();
        let sources = packing.sources(convolution.is_transposed());
        let half = halves || tensor.dtype() == DataType::Fp16;
        let bytes: Vec<u8> = if tensor.dtype() == DataType::Fp16 {
            let values = tensor.to_vec::<f16>().map_err(|error| failed(&error))?;
            let value = |at: Option<usize>| at.map_or(f16::ZERO, |at| values[at]);
            sources.flat_map(|at| value(at).to_le_bytes()).collect()
        } else {
            let values = tensor.to_vec::<f32>().map_err(|error| failed(&error))?;
            let value = |at: Option<usize>| at.map_or(0.0, |at| values[at]);
            match half {
                true => sources.flat_map(|at| f16::from_f32(value(at)).to_le_bytes()).collect(),
                false => sources.flat_map(|at| value(at).to_le_bytes()).collect(),
            }
        };
        let block = Block::weights(device, &bytes).map_err(|error| failed(&error))?;
        Ok(Self { block, dtype: if half { DataType::Fp16 } else { DataType::Fp32 } })
    }
}

pub(super) struct Gemm {
    pub(super) convolution: Convolution,
    pub(super) weights: Option<Weights>,
    /// The device, where operands may be FP16 and it has matrices for them.
    pub(super) matrices: Option<Capabilities>,
}

impl Gemm {
    /// Packs weights that a run computes.
    fn pack(&self, packing: &Packing, dtype: DataType, step: &mut Step) -> Result<Binding, String> {
        let transposed = self.convolution.is_transposed();
        let w = wgsl_float(dtype)?;
        let source = render(include_str!("pack.wgsl"), context!(w, transposed))?;
        let total = packing.elements();
        let scratch = step.scratch((total * dtype.size_bytes().unwrap_or(4)) as u64);
        let Packing { m, m_padded, k, k_padded, places, groups, .. } = *packing;
        let params = [total, m, m_padded, k, k_padded, places, groups].map(param);
        let params = params.into_iter().collect::<Result<_, _>>()?;
        let bindings = vec![Binding::Input(1), Binding::Scratch(scratch)];
        let shader = Shader::new("conv-f32-pack", source).proved();
        step.dispatch(shader, bindings, params, fold(total.div_ceil(256))?);
        Ok(Binding::Scratch(scratch))
    }

    /// The device, where cooperative matrices can compute the product.
    fn matrices(&self, lengths: &Lengths) -> Option<&Capabilities> {
        let flat = lengths.window[0] == 1 && lengths.input[0] == 1 && lengths.pads[0] == 0;
        let (m, pixels) = (lengths.m, lengths.pixels());
        let enough = m >= 16 && pixels >= 16 && m * pixels >= LEAST;
        if !flat || !enough || self.convolution.is_transposed() {
            return None;
        }
        self.matrices.as_ref()
    }

    /// The tiles that weights laid out like this can be read by.
    fn readers(&self, lengths: &Lengths, packing: &Packing) -> Vec<Tile> {
        let (m, k) = (packing.m_padded, packing.k_padded);
        let plain =
            CONFIGS.iter().filter(|own| m.is_multiple_of(own.bm) && k.is_multiple_of(own.bk));
        let matrices = self.matrices(lengths).into_iter().flat_map(|capabilities| {
            MATRICES.iter().filter(move |own| {
                let [rows, _, deep] = own.tile;
                m.is_multiple_of(rows) && k.is_multiple_of(deep) && own.fits(capabilities)
            })
        });
        let matrices = matrices.map(|own| Tile::Matrices(*own));
        plain.map(|own| Tile::Plain(*own)).chain(matrices).collect()
    }

    /// The tile that was measured the fastest, or the one that sizes suggest.
    fn tile(
        &self,
        [x, w, y]: [DataType; 3],
        lengths: &Lengths,
        packing: &Packing,
        step: &mut Step,
    ) -> Tile {
        let (pixels, products) = (lengths.pixels(), lengths.images * lengths.groups);
        let found = step.choose(&FAMILY, || {
            let halves = self.matrices.is_some() || [x, w, y].contains(&DataType::Fp16);
            let back = if self.convolution.is_transposed() { " transposed" } else { "" };
            let (places, strides) = (packing.places, lengths.strides);
            Question {
                variant: format!("{x}·{w}→{y}{back} window {places} {strides:?}"),
                lengths: vec![
                    ("n", products),
                    ("pixels", pixels),
                    ("m", packing.m),
                    ("k", packing.k),
                ],
                space: Space::new(vec![ways(
                    "tile",
                    self.readers(lengths, packing).iter().map(Tile::label),
                )]),
                tolerance: if halves { near::HALVES } else { near::SUMS },
            }
        });
        let other =
            found.checked_sub(1).and_then(|at| self.readers(lengths, packing).get(at).copied());
        let matrices = || {
            let capabilities = self.matrices(lengths)?;
            ConvConfig::choose(capabilities, packing.m_padded, pixels, products)
        };
        other.or_else(|| matrices().map(Tile::Matrices)).unwrap_or(Tile::Plain(packing.config))
    }

    /// The shader, and the channels and pixels of its tiles.
    fn shader(
        &self,
        shapes: &Shapes,
        lengths: &Lengths,
        (tile, weights): (Tile, DataType),
        (added, packed): (&More, bool),
    ) -> Result<(Shader, usize, usize), String> {
        let [kz, ky, kx] = lengths.window;
        let at = context! {
            bias => 3,
            residual => 3 + u32::from(added.bias.is_some()),
            params => 3 + added.bindings.len(),
        };
        let own = context! {
            x => wgsl_float(shapes.dtype(0)?)?,
            w => wgsl_float(weights)?,
            y => wgsl_float(shapes.output_dtype(0)?)?,
            bias => added.bias, residual => added.residual, at, packed, kz, ky, kx,
            transposed => self.convolution.is_transposed(),
            activation => self.convolution.activation.name,
        };
        match tile {
            Tile::Matrices(config) => {
                let capabilities = self.matrices.as_ref().ok_or("the device has no matrices")?;
                let [bm, bn, _] = config.tile;
                Ok((config.shader(capabilities, own)?, bm, bn))
            }
            Tile::Plain(Config { bm, bn, bk, tm }) => {
                let sizes = context!(bm, bn, bk, tm, tn => TN);
                let source = render(include_str!("gemm.wgsl"), context!(..sizes, ..own))?;
                Ok((Shader::new("conv-f32-gemm", source), bm, bn))
            }
        }
    }
}

impl Kernel for Gemm {
    fn bind(&self, shapes: &Shapes, step: &mut Step) -> Result<(), String> {
        let lengths = self.convolution.lengths(shapes)?;
        let packing = Packing::of(&self.convolution, shapes.input(1)?)?;
        let (weights, dtype) = match &self.weights {
            Some(weights) => (Binding::Weights(Arc::clone(&weights.block)), weights.dtype),
            None => {
                let dtype = shapes.dtype(1)?;
                (self.pack(&packing, dtype, step)?, dtype)
            }
        };
        let stored = [shapes.dtype(0)?, dtype, shapes.output_dtype(0)?];
        let tile = self.tile(stored, &lengths, &packing, step);
        let added = more(shapes)?;
        let packed = self.weights.is_some();
        let (shader, bm, bn) = self.shader(shapes, &lengths, (tile, dtype), (&added, packed))?;
        let tiles_n = lengths.pixels().div_ceil(bn);
        let tiles_m = packing.m_padded / bm;
        let total = tiles_n * tiles_m * lengths.groups * lengths.images;
        let own = [
            total,
            tiles_n,
            tiles_m,
            lengths.groups,
            lengths.channels,
            packing.m,
            packing.m_padded,
            packing.k,
            packing.k_padded,
            lengths.pixels(),
        ];
        let mut params: Vec<u32> = own.into_iter().map(param).collect::<Result<_, _>>()?;
        params.extend(lengths.params()?);
        let activation = self.convolution.activation;
        params.extend([activation.p.to_bits(), activation.q.to_bits()]);
        let bindings = [Binding::Input(0), weights, Binding::Output(0)];
        let bindings = bindings.into_iter().chain(added.bindings).collect();
        step.dispatch(shader, bindings, params, fold(total)?);
        Ok(())
    }

    fn weight_bytes(&self) -> u64 {
        self.weights.as_ref().map_or(0, |weights| weights.block.bytes())
    }
}
