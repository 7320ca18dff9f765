//! `galatea hwbench`: every kernel of matrix products at one shape.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use galatea_kernels::bf16::{PackedBf16, gemm_bf16};
use galatea_kernels::blocks::{BlockAccuracy, BlockFormat, PackedBlocks, StoredZeros, gemm_blocks};
use galatea_kernels::gemm::{GemmBlocking, gemm_cut};
use galatea_kernels::int8::{
    ByteForm, ColumnScales, Int8Target, PackedInt8, QuantizedBytes, gemm_int8,
};
use galatea_kernels::isa::{Bf16Isa, DotIsa};
use galatea_kernels::peak::flops_per_ns;
use galatea_kernels::{
    GemmEpilogue, Isa, KernelContext, MatrixSize, PackedB, StridedMatrix, ThreadPool, Transposition,
};
use galatea_runtime::tune::{
    ConfigAxis, ConfigSpace, SearchLimits, StrategyKind, TuningOutcome, TuningSearch, TuningTarget,
};
use serde_json::json;

use super::arguments::{number, threads, time};
use super::step_profile::{peaks_json, peaks_text};
use super::{engine, say};
use crate::table::table;

/// Command line of `galatea hwbench`.
#[derive(Debug, Args)]
pub(super) struct HwbenchArguments {
    #[arg(value_name = "M,K,N", value_parser = BenchLengths::parse)]
    lengths: Option<BenchLengths>,
    #[arg(
        long,
        value_name = "N",
        value_parser = threads,
        default_value_t = 0,
        help = "the most threads [all fast cores]"
    )]
    threads: usize,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        default_value_t = 15,
        help = "times that a kernel is run [15]"
    )]
    samples: usize,
    #[arg(
        long = "seconds",
        value_name = "S",
        value_parser = time,
        default_value = "20",
        help = "the most time for a precision [20]"
    )]
    time: Duration,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        conflicts_with = "lengths",
        help = "instead, without M,K,N: what the GPU of this number reaches at most"
    )]
    gpu: Option<usize>,
    #[arg(long, help = "print one line of JSON")]
    json: bool,
}

/// The most multiplications of a shape: one run takes seconds beyond it.
const MAX_STEPS: usize = 1 << 40;
/// Elements of the largest matrix.
const MAX_ELEMENTS: usize = 1 << 28;

/// Lengths of a product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BenchLengths {
    /// Rows.
    pub(super) m: usize,
    /// Terms of a sum.
    pub(super) k: usize,
    /// Columns.
    pub(super) n: usize,
}

impl BenchLengths {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected M,K,N, three lengths from 1 on, got '{text}'");
        let lengths: Result<Vec<usize>, _> = text.split(',').map(str::parse).collect();
        let lengths = lengths.map_err(|_| wrong())?;
        let &[m, k, n] = lengths.as_slice() else { return Err(wrong()) };
        if m == 0 || k == 0 || n == 0 {
            return Err(wrong());
        }
        let largest = [(m, k), (k, n), (m, n)].map(|(a, b)| a.saturating_mul(b));
        let steps = m.saturating_mul(k).saturating_mul(n);
        if steps > MAX_STEPS || largest.iter().any(|&elements| elements > MAX_ELEMENTS) {
            return Err(format!(
                "'{text}' is too large: the limit is {MAX_ELEMENTS} elements of a \
                                matrix and {MAX_STEPS} multiplications"
            ));
        }
        Ok(Self { m, k, n })
    }

    fn operations(self) -> f64 {
        2.0 * self.m as f64 * self.k as f64 * self.n as f64
    }
}

/// Times every kernel.
pub(super) fn hwbench(arguments: &HwbenchArguments) -> Result<ExitCode, String> {
    if let Some(index) = arguments.gpu {
        return gpu(index, arguments);
    }
    let lengths = arguments.lengths.ok_or("M,K,N is missing")?;
    let threads = match arguments.threads {
        0 => galatea_providers::HostCores::detect().fast,
        given => given,
    };
    let HwbenchArguments { samples, time, .. } = *arguments;
    let limits = SearchLimits { samples, time, ..SearchLimits::default() };
    let halves = std::iter::successors(Some(threads), |&n| (n > 1).then_some(n.div_ceil(2)));
    let counts: Vec<usize> = halves.collect();
    let mut rows = Vec::new();
    for precision in PRECISIONS {
        rows.extend(precision.measure(lengths, &counts, limits)?);
    }
    if arguments.json {
        let rows: Vec<_> = rows.iter().map(BenchRow::json).collect();
        let BenchLengths { m, k, n } = lengths;
        let machine = galatea_providers::machine();
        say(&json!({"m": m, "k": k, "n": n, "machine": machine, "kernels": rows}).to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let head = ["Kernel", "Threads", "µs", "Operations", "Peak share", "Choice"];
    say(&table(&head, rows.iter().map(BenchRow::cells)));
    say(
        "Peak: what as many threads reach that only multiply and add FP32 in registers with the best \
         instructions here. * is the tuner's choice among kernels of one precision.",
    );
    Ok(ExitCode::SUCCESS)
}

/// Returns the highest GFLOP/s that a kernel of a precision reaches on the given threads, and its name.
///
/// # Errors
/// Fails when there is no such precision, or its kernels fail.
pub(super) fn best(
    precision: &str,
    lengths: BenchLengths,
    threads: usize,
    limits: SearchLimits,
) -> Result<(f64, String), String> {
    let found = PRECISIONS.iter().find(|one| one.name == precision);
    let found = found.ok_or_else(|| format!("there is no precision '{precision}'"))?;
    let rows = found.measure(lengths, &[threads], limits)?;
    let fastest = rows.into_iter().max_by(|a, b| a.giga.total_cmp(&b.giga));
    fastest
        .map(|row| (row.giga, row.kernel))
        .ok_or_else(|| format!("no kernel of {precision} was measured"))
}

/// Measures the peaks of a GPU.
fn gpu(index: usize, arguments: &HwbenchArguments) -> Result<ExitCode, String> {
    let (name, peaks) = engine().gpus().peaks(index)?;
    say(&match arguments.json {
        true => peaks_json(&name, &peaks).to_string(),
        false => format!("{name}: {}", peaks_text(&peaks)),
    });
    Ok(ExitCode::SUCCESS)
}

/// A figure.
struct BenchRow {
    kernel: String,
    threads: usize,
    time_ns: f64,
    giga: f64,
    share: f64,
    chosen: bool,
    refused: Option<String>,
}

impl BenchRow {
    fn cells(&self) -> Vec<String> {
        if let Some(why) = &self.refused {
            return vec![self.kernel.clone(), self.threads.to_string(), String::new(), why.clone()];
        }
        vec![
            self.kernel.clone(),
            self.threads.to_string(),
            format!("{:.1}", self.time_ns / 1e3),
            format!("{:.1} G/s", self.giga),
            format!("{:.0} %", self.share * 100.0),
            if self.chosen { "*" } else { "" }.to_owned(),
        ]
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "kernel": self.kernel, "threads": self.threads, "time_ns": self.time_ns,
            "gflops": self.giga, "peak_share": self.share, "chosen": self.chosen,
            "refused": self.refused,
        })
    }
}

/// A product with its weights packed.
type BenchProduct = Box<dyn Fn(&ThreadPool, &mut Vec<f32>)>;

/// Kernels whose results are alike.
struct BenchPrecision {
    name: &'static str,
    tolerance: f32,
    /// True if the FP32 peak bounds them.
    bounded: bool,
    kernels: fn(BenchLengths) -> Vec<(String, BenchProduct)>,
}

const PRECISIONS: &[BenchPrecision] = &[
    BenchPrecision { name: "f32", tolerance: 1e-4, bounded: true, kernels: single },
    BenchPrecision { name: "bf16", tolerance: 1e-2, bounded: false, kernels: bf16 },
    BenchPrecision { name: "int8", tolerance: 1e-6, bounded: false, kernels: int8 },
    BenchPrecision { name: "f32_q8", tolerance: 1e-4, bounded: true, kernels: blocks::<8> },
    BenchPrecision { name: "f32_q4", tolerance: 1e-4, bounded: true, kernels: blocks::<4> },
    BenchPrecision { name: "bf16_q4", tolerance: 3e-2, bounded: false, kernels: rough_blocks },
];

/// Repeatable values between -1 and 1.
fn values(count: usize) -> Vec<f32> {
    let mut state = 7_u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from(u16::try_from(state >> 16).unwrap_or(0)) / 32_768.0 - 1.0
    };
    (0..count).map(next).collect()
}

fn single(of: BenchLengths) -> Vec<(String, BenchProduct)> {
    let a = Arc::new(values(of.m * of.k));
    let b = values(of.k * of.n);
    let mut all: Vec<(String, BenchProduct)> = Vec::new();
    for isa in Isa::available() {
        let packed = Arc::new(PackedB::pack(isa, of.k, of.n, &b, of.n, Transposition::No));
        let cuts = if GemmBlocking::matters(of.m) {
            GemmBlocking::ALL
        } else {
            GemmBlocking::ALL.get(..1).unwrap_or_default()
        };
        for &(name, blocking) in cuts {
            let a = Arc::clone(&a);
            let packed = Arc::clone(&packed);
            let run = move |pool: &ThreadPool, c: &mut Vec<f32>| {
                c.resize(of.m * of.n, 0.0);
                let exec = KernelContext { pool, isa };
                let none = GemmEpilogue::default();
                let a = StridedMatrix::new(&a[..], of.k);
                let c = StridedMatrix::new(&mut c[..], of.n);
                gemm_cut(exec, blocking, of.m, a, &packed, c, &none);
            };
            all.push((format!("{}-{name}", isa.name()), Box::new(run)));
        }
    }
    all
}

/// Products with weights of so many bits in blocks.
fn blocks<const BITS: u32>(of: BenchLengths) -> Vec<(String, BenchProduct)> {
    in_blocks(of, BITS, BlockAccuracy::Full)
}

fn rough_blocks(of: BenchLengths) -> Vec<(String, BenchProduct)> {
    in_blocks(of, 4, BlockAccuracy::Reduced)
}

/// Weights that share a scale.
const BLOCK: usize = 32;

fn in_blocks(of: BenchLengths, bits: u32, accuracy: BlockAccuracy) -> Vec<(String, BenchProduct)> {
    let Some(format) = BlockFormat::new(bits, BLOCK) else { return Vec::new() };
    let a = Arc::new(values(of.m * of.k));
    let scales = vec![0.01; of.n * of.k.div_ceil(BLOCK)];
    #[allow(clippy::cast_possible_truncation, reason = "any bits do")]
    let number = |row: usize, column: usize| (row * 7 + column * 13 + row * column) as u8;
    let zero = StoredZeros::One((1_u32 << (bits - 1)) as f32);
    let size = MatrixSize { rows: of.k, columns: of.n };
    let packed = PackedBlocks::pack(&ThreadPool::new(1), format, size, number, &scales, zero);
    let packed = Arc::new(packed);
    let product = |isa: Isa| -> (String, BenchProduct) {
        let a = Arc::clone(&a);
        let packed = Arc::clone(&packed);
        let run = move |pool: &ThreadPool, c: &mut Vec<f32>| {
            c.resize(of.m * of.n, 0.0);
            let exec = KernelContext { pool, isa };
            let none = GemmEpilogue::default();
            let a = StridedMatrix::new(&a[..], of.k);
            let c = StridedMatrix::new(&mut c[..], of.n);
            gemm_blocks(exec, of.m, a, &packed, c, &none, accuracy);
        };
        (isa.name().to_owned(), Box::new(run))
    };
    Isa::available().into_iter().map(product).collect()
}

fn bf16(of: BenchLengths) -> Vec<(String, BenchProduct)> {
    let a = Arc::new(values(of.m * of.k));
    let b = values(of.k * of.n);
    let packed = Arc::new(PackedBf16::pack(of.k, of.n, &b, of.n, Transposition::No));
    let product = |isa: Isa| -> (String, BenchProduct) {
        let a = Arc::clone(&a);
        let packed = Arc::clone(&packed);
        let run = move |pool: &ThreadPool, c: &mut Vec<f32>| {
            c.resize(of.m * of.n, 0.0);
            let none = GemmEpilogue::default();
            gemm_bf16(KernelContext { pool, isa }, of.m, &a, of.k, &packed, c, of.n, &none);
        };
        (Bf16Isa::of(isa).name().to_owned(), Box::new(run))
    };
    let mut all: Vec<(String, BenchProduct)> = Isa::available().into_iter().map(product).collect();
    // Two instruction sets may have the same instructions for BF16.
    all.dedup_by(|later, earlier| later.0 == earlier.0);
    all
}

fn int8(of: BenchLengths) -> Vec<(String, BenchProduct)> {
    #[allow(clippy::cast_possible_truncation, reason = "between -127 and 127")]
    let bytes = |count: usize| -> Vec<u8> {
        values(count).into_iter().map(|value| ((value * 127.0) as i8).cast_unsigned()).collect()
    };
    let a = Arc::new(bytes(of.m * of.k));
    let b = bytes(of.k * of.n);
    let product = |isa: Isa| -> (String, BenchProduct) {
        let dot = DotIsa::of(isa);
        let at = |row: usize, column: usize| b.get(row * of.n + column).copied().unwrap_or(0);
        let packed = PackedInt8::pack(dot, of.k, of.n, true, at);
        let columns = ColumnScales::new(&packed, ByteForm { signed: true, zero: 0 }, &[0]);
        let a = Arc::clone(&a);
        let run = move |pool: &ThreadPool, c: &mut Vec<f32>| {
            c.resize(of.m * of.n, 0.0);
            let a = QuantizedBytes { data: &a, signed: true, zero: 0 };
            let exec = KernelContext { pool, isa };
            gemm_int8(exec, of.m, a, &packed, &columns, Int8Target::Floats(c));
        };
        (dot.name().to_owned(), Box::new(run))
    };
    let mut all: Vec<(String, BenchProduct)> = Isa::available().into_iter().map(product).collect();
    all.dedup_by(|later, earlier| later.0 == earlier.0);
    all
}

impl BenchPrecision {
    fn measure(
        &self,
        lengths: BenchLengths,
        counts: &[usize],
        limits: SearchLimits,
    ) -> Result<Vec<BenchRow>, String> {
        let kernels = (self.kernels)(lengths);
        let names: Vec<&str> = kernels.iter().map(|(name, _)| name.as_str()).collect();
        let axes =
            vec![ConfigAxis::names("kernel", &names), ConfigAxis::numbers("threads", counts)];
        let space = ConfigSpace::new(axes);
        let mut device = PrecisionProducts {
            space: space.clone(),
            kernels,
            pools: counts.iter().map(|&count| ThreadPool::new(count)).collect(),
            results: Vec::new(),
            operations: self.bounded.then(|| lengths.operations()),
        };
        let start = Instant::now();
        let search = TuningSearch {
            space: &space,
            device: &mut device,
            limits: SearchLimits { tolerance: self.tolerance, ..limits },
            clock: &mut || start.elapsed(),
            progress: &mut |_, _| {},
        };
        let outcome = search.run(&mut *StrategyKind::Exhaustive.start(1))?;
        Ok(self.rows(lengths, &device, &outcome))
    }

    fn rows(
        &self,
        lengths: BenchLengths,
        device: &PrecisionProducts,
        outcome: &TuningOutcome,
    ) -> Vec<BenchRow> {
        let mut trials = outcome.trials.clone();
        trials.sort_by_key(|trial| trial.candidate);
        let row = |trial: &galatea_runtime::tune::MeasuredCandidate| {
            let point = device.space.point(trial.candidate);
            let kernel = point.first().and_then(|&at| device.kernels.get(at));
            let pool = point.get(1).and_then(|&at| device.pools.get(at));
            let threads = pool.map_or(1, ThreadPool::threads);
            let giga = trial.time_ns.map_or(0.0, |time| lengths.operations() / time);
            let refused = outcome.refused.iter().find(|r| r.candidate == trial.candidate);
            BenchRow {
                kernel: format!("{}-{}", self.name, kernel.map_or("", |(name, _)| name.as_str())),
                threads,
                time_ns: trial.time_ns.unwrap_or(0.0),
                giga,
                share: giga / (flops_per_ns() * threads as f64),
                chosen: trial.candidate == outcome.best,
                refused: refused.map(|refused| refused.reason.clone()),
            }
        };
        trials.iter().map(row).collect()
    }
}

/// The kernels of a precision on some numbers of threads.
struct PrecisionProducts {
    space: ConfigSpace,
    kernels: Vec<(String, BenchProduct)>,
    pools: Vec<ThreadPool>,
    results: Vec<f32>,
    /// FLOPs of one matrix multiplication, where the FP32 peak is a bound.
    operations: Option<f64>,
}

impl PrecisionProducts {
    fn run(&mut self, candidate: usize) -> Result<Duration, String> {
        let point = self.space.point(candidate);
        let missing = || "there is no such kernel".to_owned();
        let (_, product) =
            point.first().and_then(|&at| self.kernels.get(at)).ok_or_else(missing)?;
        let pool = point.get(1).and_then(|&at| self.pools.get(at)).ok_or_else(missing)?;
        let start = Instant::now();
        product(pool, &mut self.results);
        Ok(start.elapsed())
    }
}

impl TuningTarget for PrecisionProducts {
    fn compute(&mut self, candidate: usize) -> Result<Vec<f32>, String> {
        self.run(candidate)?;
        Ok(self.results.clone())
    }

    fn sample(&mut self, candidate: usize) -> Result<f64, String> {
        Ok(self.run(candidate)?.as_secs_f64() * 1e9)
    }

    fn least_ns(&self, candidate: usize) -> Option<f64> {
        let pool = self.pools.get(*self.space.point(candidate).get(1)?)?;
        Some(self.operations? / (flops_per_ns() * pool.threads() as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_and_mistakes_are_named() {
        assert_eq!(BenchLengths::parse("1,2,3").unwrap(), BenchLengths { m: 1, k: 2, n: 3 });
        for text in ["1,2", "1,2,3,4", "0,1,1", "a,b,c", ""] {
            assert!(BenchLengths::parse(text).unwrap_err().contains("expected M,K,N"), "{text}");
        }
        assert!(BenchLengths::parse("100000,100000,1").unwrap_err().contains("too large"));
    }

    #[test]
    fn every_kernel_of_a_precision_computes_the_same() {
        let limits = SearchLimits { samples: 1, ..SearchLimits::default() };
        let lengths = BenchLengths { m: 5, k: 37, n: 19 };
        for precision in PRECISIONS {
            let rows = precision.measure(lengths, &[2, 1], limits).unwrap();
            assert!(rows.len() >= 2, "{}", precision.name);
            assert!(rows.iter().all(|row| row.refused.is_none() && row.time_ns > 0.0));
            assert_eq!(rows.iter().filter(|row| row.chosen).count(), 1);
        }
    }
}
