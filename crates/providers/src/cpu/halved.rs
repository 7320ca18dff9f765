//! Weights for BNNS: in the model's order, of 16 bits each.

use std::sync::OnceLock;

use galatea_apple::bnns::BnnsElements;
use galatea_kernels::{KernelContext, RealSlice, convert};
use galatea_tensor::InterruptibleScope;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use half::{bf16, f16};

use super::route::ProductSubject;

/// Weights of a matrix multiplication as 16 bits each; made by the first run that needs them.
#[derive(Debug, Default)]
pub(super) struct HalvedWeights(OnceLock<Vec<u16>>);

impl HalvedWeights {
    /// The weights, where they are of 16 bits.
    pub(super) fn weights<'a>(
        &'a self,
        of: ProductSubject,
        exec: KernelContext<'_>,
        from: &'a [f32],
    ) -> BnnsElements<'a> {
        let bits = |convert: fn(KernelContext<'_>, &[f32], &mut [u16])| {
            self.0.get_or_init(|| {
                // Later runs use them too, whatever becomes of this one.
                let _whole = InterruptibleScope::new(None);
                let mut bits = vec![0; from.len()];
                convert(exec, from, &mut bits);
                bits
            })
        };
        match of {
            ProductSubject::Fp32 => BnnsElements::Fp32(from),
            ProductSubject::Fp16 => BnnsElements::Fp16(bits(|exec, from, to| {
                convert::f32_to_f16(exec, from, to.reinterpret_cast_mut::<f16>());
            })),
            ProductSubject::Bf16 { .. } => BnnsElements::Bf16(bits(|exec, from, to| {
                convert::f32_to_bf16(exec, from, to.reinterpret_cast_mut::<bf16>());
            })),
        }
    }

    /// Values of a run, as they lie.
    pub(super) fn elements(values: RealSlice<'_>) -> BnnsElements<'_> {
        match values {
            RealSlice::Fp32(values) => BnnsElements::Fp32(values),
            RealSlice::Bf16(values) => BnnsElements::Bf16(values.reinterpret_cast()),
        }
    }
}
