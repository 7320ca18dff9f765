//! Ways to compute a convolution.

use super::cooperative::ConvConfig;
use super::tiles::ConvTiles;
use super::winograd::WinogradConfig;
use crate::choices::label;

/// A way to compute a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvAlgorithm {
    /// A window a thread, weights as they are.
    Direct,
    /// A product of weights and pixels where they lie.
    Product,
    /// A product of weights and windows of an image that is written with its channels last.
    Windows,
    /// A product of weights and pixels, summed where a convolution that goes the other way puts them.
    Columns,
    /// A product of weights and windows where they lie, in FP32.
    Tiled(ConvTiles),
    /// The same by cooperative matrices of FP16.
    Cooperative(ConvConfig),
    /// Winograd's short products.
    Winograd(WinogradConfig),
}

impl ConvAlgorithm {
    pub(super) fn label(&self) -> String {
        match self {
            Self::Direct => "direct".to_owned(),
            Self::Product => "product".to_owned(),
            Self::Windows => "windows".to_owned(),
            Self::Columns => "columns".to_owned(),
            Self::Tiled(own) => format!("tiled({})", label(own)),
            Self::Cooperative(own) => format!("cooperative({})", label(own)),
            Self::Winograd(own) => format!("winograd({})", label(own)),
        }
    }
}
