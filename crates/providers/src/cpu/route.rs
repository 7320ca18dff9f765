//! Placement of a matrix multiplication: the kernels, or a BLAS that reaches the chip's matrix
//! unit.

use galatea_apple::accelerate::BlasLibrary;
use galatea_apple::bnns::BnnsLibrary;
use galatea_kernels::gemm::GemmBlocking;
use galatea_runtime::chips::{self, ChipFigure};

use crate::capabilities::HostCapabilities;

/// Figures from which the cost of a matrix multiplication is estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProductCosts {
    /// Gflop/s of the kernels on one thread.
    pub kernel_gflops: f64,
    /// Gflop/s of the BLAS, whatever the threads.
    pub blas_gflops: f64,
    /// 10⁹ bytes of memory a second.
    pub bandwidth_gb_per_s: f64,
}

/// Libraries beside the kernels.
#[derive(Clone, Copy, Debug)]
pub struct BlasRoute {
    /// The library for single precision, if there is one.
    pub blas: Option<BlasLibrary>,
    /// The figures for estimates. Without them the kernels are the default, and measurements may
    /// say otherwise.
    pub costs: Option<ProductCosts>,
    /// The library for weights of FP16 or BF16, if there is one.
    pub bnns: Option<BnnsLibrary>,
}

/// Nanoseconds of a call of the library.
const CALL_NS: f64 = 2_000.0;
/// Share of a core's peak that kernels reach.
const KERNEL_SHARE: f64 = 0.85;

impl ProductCosts {
    /// Returns the estimates for a machine; `None` without a matrix unit. What the chip's own file does not state is
    /// estimated by that of a relative: for this choice it need not be exact.
    fn of(found: &HostCapabilities) -> Option<Self> {
        found.matrix_unit?;
        let chip = found.chip.as_deref()?;
        let facts = chips::find(chip)?.facts;
        Some(Self {
            kernel_gflops: chips::figure(chip, ChipFigure::VectorGflops)? * KERNEL_SHARE,
            blas_gflops: chips::matrix_gflops(facts, 0)?,
            bandwidth_gb_per_s: chips::figure(chip, ChipFigure::Bandwidth)?,
        })
    }

    /// Returns whether the BLAS is estimated to be faster than the kernels on so many threads: a
    /// product of few rows waits for memory, which the kernels draw from no slower, and what comes
    /// after the sums is another pass over them.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    fn prefers_blas(&self, of: ProductSubject, lengths: [usize; 3], threads: usize) -> bool {
        let [m, k, n] = lengths;
        let operations = 2.0 * m as f64 * k as f64 * n as f64;
        // One operation of 10⁹ in a second is one in a nanosecond.
        let bytes = |elements: f64| elements * size_of::<f32>() as f64 / self.bandwidth_gb_per_s;
        let weights = bytes(k as f64 * n as f64) * of.weight_share();
        let kernels = self.kernel_gflops * of.kernel_speed() * threads.max(1) as f64;
        let own = (operations / kernels).max(weights);
        let blas = (operations / self.blas_gflops).max(weights);
        blas + CALL_NS + bytes(2.0 * m as f64 * n as f64) < own
    }
}

/// Types of the operands of a matrix multiplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProductSubject {
    /// Floats of single precision.
    Fp32,
    /// Weights of FP16, which the kernels widen.
    Fp16,
    /// BF16, which the kernels multiply as they are or widen.
    Bf16 {
        /// True if they multiply them as they are.
        whole: bool,
    },
}

impl ProductSubject {
    /// Bytes of a weight in those of single precision.
    fn weight_share(self) -> f64 {
        if self == Self::Fp32 { 1.0 } else { 0.5 }
    }

    /// How much faster than in single precision the kernels multiply: an instruction on squares of
    /// BF16 has four times the products. The matrix unit is not faster.
    fn kernel_speed(self) -> f64 {
        if self == (Self::Bf16 { whole: true }) { 4.0 } else { 1.0 }
    }
}

/// How a product is computed.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProductMethod {
    /// By the kernels.
    Kernel(GemmBlocking),
    /// By a BLAS.
    Blas(BlasLibrary),
    /// By BNNS.
    Bnns(BnnsLibrary),
}

/// The ways of a product of these lengths, by name; the first is estimated to be the fastest.
pub(super) fn ways(
    route: Option<BlasRoute>,
    lengths: [usize; 3],
    threads: usize,
) -> Vec<(&'static str, ProductMethod)> {
    let few = !GemmBlocking::matters(lengths[0]);
    let cuts = if few { &GemmBlocking::ALL[..1] } else { GemmBlocking::ALL };
    let mut ways: Vec<_> =
        cuts.iter().map(|&(name, cut)| (name, ProductMethod::Kernel(cut))).collect();
    if let Some((route, blas)) = route.and_then(|route| Some((route, route.blas?))) {
        let first = route
            .costs
            .is_some_and(|costs| costs.prefers_blas(ProductSubject::Fp32, lengths, threads));
        let at = if first { 0 } else { ways.len() };
        ways.insert(at, (blas.name(), ProductMethod::Blas(blas)));
    }
    ways
}

/// The same where weights are FP16 or BF16.
pub(super) fn half_ways(
    route: Option<BlasRoute>,
    of: ProductSubject,
    lengths: [usize; 3],
    threads: usize,
) -> Vec<(&'static str, ProductMethod)> {
    let mut ways = vec![("kernel", ProductMethod::Kernel(GemmBlocking::Usual))];
    if let Some((route, bnns)) = route.and_then(|route| Some((route, route.bnns?))) {
        let first = route.costs.is_some_and(|costs| costs.prefers_blas(of, lengths, threads));
        ways.insert(usize::from(!first), (BnnsLibrary::NAME, ProductMethod::Bnns(bnns)));
    }
    ways
}

impl BlasRoute {
    /// The system's BLAS, where there is one.
    pub(super) fn system() -> Option<Self> {
        let blas = BlasLibrary::system().ok()?;
        let costs = ProductCosts::of(&HostCapabilities::detect());
        Some(Self { blas: Some(blas), costs, bnns: BnnsLibrary::system().ok() })
    }
}

#[cfg(test)]
mod tests {
    use galatea_apple::{ChipIdentity, RecordedSysctl};
    use galatea_kernels::Isa;

    use super::*;

    const COSTS: ProductCosts =
        ProductCosts { kernel_gflops: 90.0, blas_gflops: 1300.0, bandwidth_gb_per_s: 68.0 };

    #[test]
    fn large_products_go_to_the_matrix_unit_and_few_rows_stay() {
        assert!(COSTS.prefers_blas(ProductSubject::Fp32, [512, 768, 768], 4));
        assert!(COSTS.prefers_blas(ProductSubject::Fp32, [128, 768, 3072], 1));
        // A vector times a matrix waits for the matrix in either place.
        assert!(!COSTS.prefers_blas(ProductSubject::Fp32, [1, 4096, 4096], 4));
        // Handing a small one over takes longer than computing it.
        assert!(!COSTS.prefers_blas(ProductSubject::Fp32, [16, 32, 32], 1));
        // Without a gain in arithmetic there is none.
        let slow = ProductCosts { blas_gflops: 300.0, ..COSTS };
        assert!(!slow.prefers_blas(ProductSubject::Fp32, [512, 768, 768], 4));
    }

    #[test]
    fn costs_are_known_where_the_chip_is() {
        let of = |name: &str| {
            let text = format!(
                "machdep.cpu.brand_string: {name}\nhw.memsize: 1\nhw.pagesize: 1\n\
                 hw.nperflevels: 1\nhw.perflevel0.physicalcpu: 4\nhw.perflevel0.logicalcpu: 4\n"
            );
            let chip = ChipIdentity::from_source(&RecordedSysctl::parse(&text).unwrap()).unwrap();
            ProductCosts::of(&HostCapabilities::of(&chip, Isa::detect()))
        };
        let found = of("Apple M1").unwrap();
        assert!(found.blas_gflops > 4.0 * found.kernel_gflops, "{found:?}");
        assert_eq!(of("Some Other"), None);
    }

    #[test]
    fn without_a_blas_there_are_the_cuts_of_the_kernels() {
        assert_eq!(ways(None, [64, 64, 64], 2).len(), GemmBlocking::ALL.len());
        assert_eq!(ways(None, [1, 64, 64], 2).len(), 1);
        assert_eq!(half_ways(None, ProductSubject::Fp16, [64, 64, 64], 2).len(), 1);
    }

    #[test]
    fn kernels_that_multiply_bf16_are_worth_more_threads_of_their_own() {
        let product = [128, 768, 768];
        let threads = 4;
        assert!(COSTS.prefers_blas(ProductSubject::Fp16, product, threads));
        assert!(COSTS.prefers_blas(ProductSubject::Bf16 { whole: false }, product, threads));
        assert!(!COSTS.prefers_blas(ProductSubject::Bf16 { whole: true }, product, threads));
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_there_is_no_route() {
        assert!(BlasRoute::system().is_none());
    }
}
