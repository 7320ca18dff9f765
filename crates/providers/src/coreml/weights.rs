//! How weights are stored.

use galatea_formats::coreml::mil::{Builder, Element, Var};
use galatea_tensor::Tensor;

use super::emit::Result;

/// How weights are stored in a package.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Compression {
    /// As they are computed with.
    #[default]
    None,
}

impl Compression {
    /// The constant as an operation that makes it of compressed ones; none where it is stored as it is.
    pub(super) fn apply(
        self,
        _builder: &mut Builder,
        _name: &str,
        _element: Element,
        _tensor: &Tensor,
    ) -> Result<Option<Var>> {
        match self {
            Self::None => Ok(None),
        }
    }
}
