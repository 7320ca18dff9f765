//! Matrix multiplications with each instruction set of the CPU, by the type of the weights.

use std::time::Instant;

use galatea_kernels::bf16::{PackedBf16, gemm_bf16};
use galatea_kernels::gemm::{PackedFp16, gemm, gemm_fp16};
use galatea_kernels::int8::{
    ByteForm, ColumnScales, Int8Target, PackedInt8, QuantizedBytes, gemm_int8,
};
use galatea_kernels::isa::DotIsa;
use galatea_kernels::{GemmEpilogue, Isa, KernelContext, PackedB, ThreadPool, Transposition};

use super::line::{SubjectOutcome, SubjectReport};
use super::task::{SelftestEffort, SubjectTask};
use super::units;

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

/// Names the unit of a set of integer instructions.
pub(super) fn integer_unit(dot: DotIsa) -> String {
    format!("cpu-{}", dot.name())
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

/// Value at a place of a matrix of small whole numbers.
fn whole(place: usize, period: usize) -> u8 {
    u8::try_from(place % period).unwrap_or(0)
}

/// Byte of zero of the left factors, and the number that stands for zero in the right ones.
const ZERO: u8 = 128;
const RIGHT_ZERO: i32 = 2;

/// Multiplies bytes, whose sums are exact, and compares with plain loops.
pub(super) fn int8(task: &SubjectTask) -> SubjectOutcome {
    let dot = DotIsa::available().into_iter().find(|dot| integer_unit(*dot) == task.unit);
    let dot = dot.ok_or_else(|| format!("there is no unit '{}'", task.unit))?;
    let pool = ThreadPool::new(2);
    let context = KernelContext { pool: &pool, isa: Isa::detect() };
    let shapes = of_effort(task.effort);
    let mut report = SubjectReport::passed();
    for ProductShape { m, k, n } in shapes {
        let (m, k, n) = (*m, *k, *n);
        let a: Vec<u8> = (0..m * k).map(|place| ZERO - 2 + whole(place, 5)).collect();
        let b = PackedInt8::pack(dot, k, n, false, |row, column| whole(row * n + column, 7));
        let form = ByteForm { signed: false, zero: i32::from(ZERO) };
        let columns = ColumnScales::new(&b, form, &[RIGHT_ZERO]).with_scales(|_| 1.0);
        let mut c = vec![f32::NAN; m * n];
        let started = Instant::now();
        let bytes = QuantizedBytes { data: &a, signed: false, zero: i32::from(ZERO) };
        gemm_int8(context, m, bytes, &b, &columns, Int8Target::Floats(&mut c));
        report = report.figure("last_ms", started.elapsed().as_secs_f64() * 1e3);
        for (at, found) in c.iter().enumerate() {
            let terms = (0..k).map(|term| {
                let left = i32::from(a[at / n * k + term]) - i32::from(ZERO);
                left * (i32::from(whole(term * n + at % n, 7)) - RIGHT_ZERO)
            });
            let expected: i32 = terms.sum();
            if f64::from(*found) != f64::from(expected) {
                let text = format!("{m}x{k}x{n}: element {at} is {found}, expected {expected}");
                return Ok(SubjectReport::failed(text));
            }
        }
    }
    Ok(report.figure("shapes", shapes.len() as f64))
}

/// Shapes of a test.
fn of_effort(effort: SelftestEffort) -> &'static [ProductShape] {
    if effort == SelftestEffort::Full { &SHAPES } else { &SHAPES[..SHAPES.len() - 1] }
}

/// Multiplies small whole numbers, whose sums are exact in every type, and compares with plain loops.
fn run(task: &SubjectTask, multiply: Multiply) -> SubjectOutcome {
    let isa = Isa::available().into_iter().find(|isa| units::of_isa(*isa) == task.unit);
    let isa = isa.ok_or_else(|| format!("there is no unit '{}'", task.unit))?;
    let pool = ThreadPool::new(2);
    let context = KernelContext { pool: &pool, isa };
    let shapes = of_effort(task.effort);
    let mut report = SubjectReport::passed();
    for shape in shapes {
        let ProductShape { m, k, n } = *shape;
        let whole = |place: usize, period: usize| f32::from(whole(place, period)) - 2.0;
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
    Ok(report.figure("shapes", shapes.len() as f64))
}
