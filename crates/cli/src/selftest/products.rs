//! Matrix multiplications with each instruction set of the CPU, by the type of the weights.

use std::time::Instant;

use galatea_kernels::bf16::{PackedBf16, gemm_bf16};
use galatea_kernels::gemm::{PackedFp16, gemm, gemm_fp16};
use galatea_kernels::{GemmEpilogue, Isa, KernelContext, PackedB, ThreadPool, Transposition};

use super::line::{SubjectOutcome, SubjectReport};
use super::task::{SelftestEffort, SubjectTask};

/// Rows, terms and columns of a product.
struct ProductShape {
    m: usize,
    k: usize,
    n: usize,
}

/// Shapes whose rests do not fill a register tile; the last one in a full test only.
const SHAPES: [ProductShape; 4] = [
    ProductShape { m: 1, k: 64, n: 96 },
    ProductShape { m: 7, k: 33, n: 50 },
    ProductShape { m: 65, k: 128, n: 129 },
    ProductShape { m: 256, k: 512, n: 384 },
];

/// Factors of a product on an instruction set.
struct IsaProduct<'a> {
    context: KernelContext<'a>,
    shape: &'a ProductShape,
    a: &'a [f32],
    b: &'a [f32],
}

type Multiply = fn(&IsaProduct<'_>, &mut [f32]);

/// Names the unit of an instruction set.
pub(super) fn unit(isa: Isa) -> String {
    format!("cpu-{}", isa.name())
}

/// Multiplies matrices of FP32.
pub(super) fn fp32(task: &SubjectTask) -> SubjectOutcome {
    run(task, |product, c| {
        let ProductShape { m, k, n } = *product.shape;
        let packed = PackedB::pack(product.context.isa, k, n, product.b, n, Transposition::No);
        gemm(product.context, m, product.a, k, &packed, c, n, &GemmEpilogue::default());
    })
}

/// Multiplies with weights of FP16.
pub(super) fn fp16(task: &SubjectTask) -> SubjectOutcome {
    run(task, |product, c| {
        let ProductShape { m, k, n } = *product.shape;
        let packed = PackedFp16::pack(product.context.isa, k, n, product.b, n, Transposition::No);
        gemm_fp16(product.context, m, product.a, k, &packed, c, n, &GemmEpilogue::default());
    })
}

/// Multiplies with weights of BF16.
pub(super) fn bf16(task: &SubjectTask) -> SubjectOutcome {
    run(task, |product, c| {
        let ProductShape { m, k, n } = *product.shape;
        let packed = PackedBf16::pack(k, n, product.b, n, Transposition::No);
        gemm_bf16(product.context, m, product.a, k, &packed, c, n, &GemmEpilogue::default());
    })
}

/// Multiplies small whole numbers, whose sums are exact in every type, and compares with plain loops.
fn run(task: &SubjectTask, multiply: Multiply) -> SubjectOutcome {
    let isa = Isa::available().into_iter().find(|isa| unit(*isa) == task.unit);
    let isa = isa.ok_or_else(|| format!("there is no unit '{}'", task.unit))?;
    let pool = ThreadPool::new(2);
    let context = KernelContext { pool: &pool, isa };
    let count = if task.effort == SelftestEffort::Full { SHAPES.len() } else { SHAPES.len() - 1 };
    let mut report = SubjectReport::passed();
    for shape in &SHAPES[..count] {
        let ProductShape { m, k, n } = *shape;
        let whole = |place: usize, period: usize| {
            f32::from(u8::try_from(place % period).unwrap_or(0)) - 2.0
        };
        let a: Vec<f32> = (0..m * k).map(|place| whole(place, 5)).collect();
        let b: Vec<f32> = (0..k * n).map(|place| whole(place, 7)).collect();
        let mut c = vec![f32::NAN; m * n];
        let product = IsaProduct { context, shape, a: &a, b: &b };
        let started = Instant::now();
        multiply(&product, &mut c);
        report = report.figure("last_ms", started.elapsed().as_secs_f64() * 1e3);
        for (at, found) in c.iter().enumerate() {
            let terms = (0..k).map(|term| a[at / n * k + term] * b[term * n + at % n]);
            let expected: f32 = terms.sum();
            if *found != expected {
                let text = format!("{m}x{k}x{n}: element {at} is {found}, expected {expected}");
                return Ok(SubjectReport::failed(text));
            }
        }
    }
    Ok(report.figure("shapes", count as f64))
}
