//! Activations behind every kind of product, on values that are no ordinary numbers.

use half::bf16;

use crate::bf16::{ConvBf16, PackedBf16, conv_bf16, gemm_bf16, gemm_reals};
use crate::blocks::{BlockAccuracy, BlockFormat, PackedBlocks, StoredZeros, gemm_blocks};
use crate::conv::{ConvParams, CpuConvAlgorithm, ImageBatch, PackedConv, conv};
use crate::elementwise::{ScalarFunction, unary};
use crate::gemm::{
    BatchedOperand, PackedFp16, PackedSparse, PlainMatrix, SparseLayout, finish, gemm, gemm_fp16,
    gemm_sparse, matmul_batched,
};
use crate::{
    ActivationFunction, GemmEpilogue, Isa, KernelContext, MatrixSize, PackedB, ProductSize,
    StridedMatrix, ThreadPool, Transposition,
};

/// Every activation.
const ACTIVATIONS: [ActivationFunction; 12] = [
    ActivationFunction::None,
    ActivationFunction::Relu,
    ActivationFunction::Clip { min: -1.5, max: 6.0 },
    ActivationFunction::Clip { min: f32::NEG_INFINITY, max: 2.0 },
    ActivationFunction::Gelu,
    ActivationFunction::GeluTanh,
    ActivationFunction::Sigmoid,
    ActivationFunction::Tanh,
    ActivationFunction::Silu,
    ActivationFunction::HardSwish,
    ActivationFunction::HardSigmoid { alpha: 0.2, beta: 0.5 },
    ActivationFunction::LeakyRelu { alpha: 0.25 },
];

const SPECIAL: [f32; 9] =
    [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0, 1.5, -1.5, 90.0, -90.0];

/// Value of an activation at a point, in double precision.
fn exact(function: ActivationFunction, x: f64) -> f64 {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let limited = |x: f64, low: f64, high: f64| if x.is_nan() { x } else { x.max(low).min(high) };
    match function {
        ActivationFunction::None => x,
        ActivationFunction::Relu => limited(x, 0.0, f64::INFINITY),
        ActivationFunction::Clip { min, max } => limited(x, min.into(), max.into()),
        // Only these points are asked for: at 1.5 the normal distribution is 0.9331927987.
        ActivationFunction::Gelu => match x {
            x if x.is_nan() || x == f64::NEG_INFINITY => f64::NAN,
            x if x.abs() == 1.5 => x * (0.5 + 0.433_192_798_731_141_9_f64.copysign(x)),
            x => x.max(0.0),
        },
        ActivationFunction::GeluTanh => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
            0.5 * x * (1.0 + inner.tanh())
        }
        ActivationFunction::Sigmoid => sigmoid(x),
        ActivationFunction::Tanh => x.tanh(),
        ActivationFunction::Silu => x * sigmoid(x),
        ActivationFunction::HardSwish => x * limited(x / 6.0 + 0.5, 0.0, 1.0),
        ActivationFunction::HardSigmoid { alpha, beta } => {
            limited(f64::from(alpha) * x + f64::from(beta), 0.0, 1.0)
        }
        ActivationFunction::LeakyRelu { alpha } => {
            if x < 0.0 {
                x * f64::from(alpha)
            } else {
                x
            }
        }
    }
}

/// Checks `rows` equal rows of results, whose columns are made of special values in their order.
#[track_caller]
fn check(name: &str, isa: Isa, function: ActivationFunction, found: &[f32], columns: usize) {
    for (at, &found) in found.iter().enumerate() {
        let x = special(at % columns);
        let want = exact(function, f64::from(x));
        let near = (f64::from(found) - want).abs() <= 0.01 * want.abs().max(0.01);
        let same = if want.is_nan() { found.is_nan() } else { f64::from(found) == want || near };
        assert!(same, "{name} {function:?} {}: {found} of {x} at {at}", isa.name());
        if want == 0.0 && x == 0.0 && function != ActivationFunction::None {
            assert_eq!(found.to_bits() << 1, 0, "{name} {function:?}: {found} of {x}");
        }
    }
}

fn special(column: usize) -> f32 {
    SPECIAL[column % SPECIAL.len()]
}

/// Products of zeros to which special values are added: the only summand that matters is known.
struct ZeroProducts {
    k: usize,
    n: usize,
    a: Vec<f32>,
    b: Vec<f32>,
    bias: Vec<f32>,
}

impl ZeroProducts {
    fn new(m: usize, k: usize, n: usize) -> Self {
        let bias = (0..n).map(special).collect();
        Self { k, n, a: vec![0.0; m * k], b: vec![0.5; k * n], bias }
    }

    fn check_fp32(&self, exec: KernelContext<'_>, m: usize, f: ActivationFunction) {
        let (k, n) = (self.k, self.n);
        let epilogue = GemmEpilogue::bias(&self.bias).with_activation(f);
        let isa = exec.isa;
        let rows = StridedMatrix::new(&self.a[..], k);
        let mut c = vec![7.0; m * n];
        let b = PackedB::pack(isa, k, n, &self.b, n, Transposition::No);
        gemm(exec, m, &self.a, k, &b, &mut c, n, &epilogue);
        check("gemm", isa, f, &c, n);
        let b = PackedFp16::pack(isa, k, n, &self.b, n, Transposition::No);
        gemm_fp16(exec, m, &self.a, k, &b, &mut c, n, &epilogue);
        check("gemm of FP16", isa, f, &c, n);
        let offsets = &[0][..];
        let trans = Transposition::No;
        let a = BatchedOperand { data: &self.a, offsets, ld: k, trans };
        let b = BatchedOperand { data: &self.b, offsets, ld: n, trans };
        matmul_batched(exec, ProductSize { m, k, n }, a, b, &mut c, &epilogue);
        check("batch", isa, f, &c, n);
        c.fill(0.0);
        let size = MatrixSize { rows: m, columns: n };
        finish(exec, size, StridedMatrix::new(&mut c[..], n), &epilogue);
        check("finish", isa, f, &c, n);
        let zeros = vec![0.0; k * n];
        let data = StridedMatrix::new(&zeros[..], n);
        for layout in SparseLayout::ALL.into_iter().filter(|layout| layout.is_offered(isa)) {
            let Some(b) = PackedSparse::pack(isa, PlainMatrix { data, k, n, trans }, layout) else {
                continue;
            };
            gemm_sparse(exec, m, rows, &b, StridedMatrix::new(&mut c[..], n), &epilogue);
            check(layout.name(), isa, f, &c, n);
        }
    }

    fn check_reduced(&self, exec: KernelContext<'_>, m: usize, f: ActivationFunction) {
        let (k, n) = (self.k, self.n);
        let epilogue = GemmEpilogue::bias(&self.bias).with_activation(f);
        let mut c = vec![7.0; m * n];
        let b = PackedBf16::pack(k, n, &self.b, n, Transposition::No);
        gemm_bf16(exec, m, &self.a, k, &b, &mut c, n, &epilogue);
        check("gemm of BF16", exec.isa, f, &c, n);
        let mut half = vec![bf16::ONE; m * n];
        let a = StridedMatrix::new(self.a[..].into(), k);
        let to = StridedMatrix::new((&mut half[..]).into(), n);
        gemm_reals(exec, m, a, &b, to, &epilogue, None);
        let wide: Vec<f32> = half.iter().map(|x| x.to_f32()).collect();
        check("gemm to BF16", exec.isa, f, &wide, n);
        let size = MatrixSize { rows: k, columns: n };
        for bits in [4, 8] {
            let Some(format) = BlockFormat::new(bits, 32) else { continue };
            let scales = vec![1.0; n * k.div_ceil(32)];
            let zeros = StoredZeros::One(0.0);
            let b = PackedBlocks::pack(exec.pool, format, size, |_, _| 1, &scales, zeros);
            for accuracy in [BlockAccuracy::Full, BlockAccuracy::Reduced] {
                let to = StridedMatrix::new(&mut c[..], n);
                let a = StridedMatrix::new(&self.a[..], k);
                gemm_blocks(exec, m, a, &b, to, &epilogue, accuracy);
                check("gemm of blocks", exec.isa, f, &c, n);
            }
        }
    }
}

#[test]
fn products_keep_what_is_no_number_behind_every_activation() {
    let pool = ThreadPool::new(2);
    for isa in Isa::available() {
        let exec = KernelContext { pool: &pool, isa };
        for (m, k, n) in [(1, 4, 9), (3, 32, 70), (13, 36, 33), (40, 516, 31)] {
            let products = ZeroProducts::new(m, k, n);
            for function in ACTIVATIONS {
                products.check_fp32(exec, m, function);
                products.check_reduced(exec, m, function);
            }
        }
    }
}

#[test]
fn convolutions_keep_what_is_no_number_behind_every_activation() {
    let pool = ThreadPool::new(2);
    let (channels, size) = (19, [1, 9, 11]);
    let bias: Vec<f32> = (0..channels).map(special).collect();
    let x = vec![0.0; size.iter().product::<usize>() * channels];
    for groups in [1, channels] {
        let padded = [0, 1, 1];
        let plain = ConvParams::new_2d(channels, channels, [3, 3]);
        let params = ConvParams { groups, pads_begin: padded, pads_end: padded, ..plain };
        let weights = vec![0.5; channels * channels / groups * 9];
        let all = [
            CpuConvAlgorithm::Packed,
            CpuConvAlgorithm::Direct,
            CpuConvAlgorithm::Depthwise,
            CpuConvAlgorithm::Winograd2,
            CpuConvAlgorithm::Winograd4,
            CpuConvAlgorithm::Winograd6,
        ];
        for isa in Isa::available() {
            let exec = KernelContext { pool: &pool, isa };
            let mut y = vec![7.0; x.len()];
            for function in ACTIVATIONS {
                let epilogue = GemmEpilogue::bias(&bias).with_activation(function);
                for algorithm in all.into_iter().filter(|algorithm| algorithm.fits(&params)) {
                    let packed = PackedConv::pack_with(isa, params, &weights, algorithm);
                    conv(exec, &packed, &x, 1, size, &mut y, &epilogue);
                    check(algorithm.name(), isa, function, &y, channels);
                }
                let packed = ConvBf16::pack(params, &weights);
                let image = ImageBatch { batch: 1, size };
                conv_bf16(exec, &packed, x[..].into(), image, (&mut y[..]).into(), &epilogue, None);
                check("conv of BF16", isa, function, &y, channels);
            }
        }
    }
}

#[test]
fn functions_of_elements_keep_what_is_no_number() {
    let pool = ThreadPool::new(1);
    for isa in Isa::available() {
        let exec = KernelContext { pool: &pool, isa };
        for n in [1, 9, 40] {
            let x: Vec<f32> = (0..n).map(special).collect();
            let mut y = vec![7.0; n];
            for function in ACTIVATIONS {
                unary(exec, ScalarFunction::Activation(function), &x, &mut y);
                check("unary", isa, function, &y, n);
            }
        }
    }
}
