//! Convolutions, and those that go the other way, of one to three spatial axes.

mod algorithm;
mod build;
mod choose;
mod columns;
mod cooperative;
mod cost;
mod direct;
mod extras;
mod gemm;
mod geometry;
mod integer;
mod kernel;
mod node;
mod packed;
mod product;
mod run_shape;
mod tiles;
mod windows;
mod winograd;

use crate::kernel::GpuKernelRow;

pub use algorithm::ConvAlgorithm;
pub use cooperative::{CONFIGS as CONV_CONFIGS, ConvConfig};
pub use kernel::GpuConvKernel;
pub use tiles::{CONFIGS as CONV_TILES, ConvTiles};
pub use winograd::{CONFIGS as WINOGRAD_CONFIGS, WinogradConfig};

/// This family's kernels.
pub(crate) const ROWS: &[GpuKernelRow] = &[
    GpuKernelRow {
        name: "conv-f32-direct",
        domain: "",
        ops: &["Conv"],
        supports: build::few_channels,
        build: build::conv,
    },
    GpuKernelRow {
        name: "conv-f32-gemm",
        domain: "",
        ops: &["Conv", "ConvTranspose"],
        supports: build::supports,
        build: build::conv,
    },
    GpuKernelRow {
        name: "conv-f32-fused",
        domain: galatea_graph::GALATEA_DOMAIN,
        ops: &["FusedConv", "ConvNhwc"],
        supports: build::supports,
        build: build::conv,
    },
    GpuKernelRow {
        name: "conv-f32-fused",
        domain: "com.microsoft",
        ops: &["FusedConv", "NhwcFusedConv", "NhwcConv"],
        supports: build::supports,
        build: build::conv,
    },
    integer::ONNX,
    integer::CONTRIB,
    integer::FUSED,
];
