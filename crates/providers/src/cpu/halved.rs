//! What BNNS multiplies: weights in the model's order, of 16 bits each.

use std::sync::OnceLock;

use galatea_apple::bnns::Elements;
use galatea_kernels::{Exec, Reals, convert};
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use half::{bf16, f16};

use super::route::Of;

/// The weights of a product as 16 bits each; made by the first run that wants them.
#[derive(Debug, Default)]
pub(super) struct Halved(OnceLock<Vec<u16>>);

impl Halved {
    /// The weights, where they are of 16 bits.
    pub(super) fn weights<'a>(&'a self, of: Of, exec: Exec<'_>, from: &'a [f32]) -> Elements<'a> {
        let bits = |convert: fn(Exec<'_>, &[f32], &mut [u16])| {
            self.0.get_or_init(|| {
                let mut bits = vec![0; from.len()];
                convert(exec, from, &mut bits);
                bits
            })
        };
        match of {
            Of::Fp32 => Elements::Fp32(from),
            Of::Fp16 => Elements::Fp16(bits(|exec, from, to| {
                convert::f32_to_f16(exec, from, to.reinterpret_cast_mut::<f16>());
            })),
            Of::Bf16 { .. } => Elements::Bf16(bits(|exec, from, to| {
                convert::f32_to_bf16(exec, from, to.reinterpret_cast_mut::<bf16>());
            })),
        }
    }

    /// Values of a run, as they lie.
    pub(super) fn elements(values: Reals<'_>) -> Elements<'_> {
        match values {
            Reals::Fp32(values) => Elements::Fp32(values),
            Reals::Bf16(values) => Elements::Bf16(values.reinterpret_cast()),
        }
    }
}
