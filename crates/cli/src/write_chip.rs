//! `galatea tune --write-chip`: a file of facts about this host, as measured here.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use galatea_apple::accelerate::{
    BlasLibrary, BlasOperand, BlasSizes, GemmScaling, OperandOrientation,
};
use galatea_coreml::NeuralEngine;
use galatea_kernels::peak::{flops_per_ns, read_bytes_per_ns};
use galatea_providers::{HostCapabilities, HostCores};
use galatea_runtime::chips::{ChipFacts, ChipFigure, FigureConfidence, FigureSource};
use galatea_runtime::tune::SearchLimits;
use galatea_tensor::OrderedMap;

use super::hwbench::{self, BenchLengths};
use super::{engine, say};
use galatea::host;
use galatea_server::logging;

/// Times that the system's library multiplies; the fastest counts.
const ROUNDS: usize = 7;
/// Rows, terms and columns of the products that are measured.
const LENGTHS: BenchLengths = BenchLengths { m: 768, k: 768, n: 768 };
/// The most time for products of a precision.
const TIME: Duration = Duration::from_secs(5);

/// Measures this host and writes the file.
///
/// # Errors
/// Fails when kernels disagree, or the file cannot be written.
pub(super) fn write(file: &Path) -> Result<(), String> {
    let facts = measure(LENGTHS)?;
    let shown = file.display();
    fs::write(file, facts.write())
        .map_err(|error| format!("'{shown}' cannot be written: {error}"))?;
    say(&format!("facts about {} in {shown}; galatea chip {shown} prints them", facts.name));
    Ok(())
}

/// Measures this host, with products of so many rows, terms and columns.
fn measure(lengths: BenchLengths) -> Result<ChipFacts, String> {
    let found = HostCapabilities::detect();
    let cores = HostCores::detect().fast.max(1);
    let day = logging::day(SystemTime::now());
    let measured = |what: &str| FigureSource {
        confidence: FigureConfidence::High,
        provenance: format!("measured on this host on {day}: {what}"),
    };
    let told = FigureSource {
        confidence: FigureConfidence::High,
        provenance: format!("what the system said on {day}"),
    };
    let mut facts = ChipFacts {
        name: found.chip.clone().unwrap_or_else(|| "This host".to_owned()),
        source: told,
        matrix_unit: found.matrix_unit,
        matrix_version: found.matrix_version,
        features: Vec::new(),
        metal_family: None,
        narrow: NeuralEngine::of_host().map_or([None; 2], |engine| [engine.int8, engine.int4]),
        figures: OrderedMap::new(),
        sources: OrderedMap::new(),
    };
    let mut put = |figure: ChipFigure, value: f64, source: Option<FigureSource>| {
        if value.is_finite() && value > 0.0 {
            facts.figures.insert(figure, vec![rounded(value)]);
            facts.sources.extend(source.map(|source| (figure, source)));
        }
    };
    put(ChipFigure::PerformanceCores, cores as f64, None);
    let memory = host::machine_memory_bytes().map_or(0.0, |bytes| bytes as f64 / 1e9);
    put(ChipFigure::MaxGb, memory, None);
    let vector = flops_per_ns();
    put(ChipFigure::VectorGflops, vector, Some(measured("one core's multiply-adds in registers")));
    put(
        ChipFigure::Bandwidth,
        read_bytes_per_ns(cores),
        Some(measured(&format!("reading, {cores} threads"))),
    );
    let limits = SearchLimits { samples: 9, time: TIME, ..SearchLimits::default() };
    for (precision, figure) in [
        ("f32", ChipFigure::ProductGflops),
        ("bf16", ChipFigure::ProductGflopsBf16),
        ("int8", ChipFigure::ProductGopsInt8),
    ] {
        let (mut giga, mut kernel) = hwbench::best(precision, lengths, cores, limits)?;
        if let Some(found) = system_gflops(lengths).filter(|of| precision == "f32" && *of > giga) {
            (giga, kernel) = (found, "the system's library".to_owned());
        }
        let BenchLengths { m, k, n } = lengths;
        put(figure, giga, Some(measured(&format!("{kernel}, {m}×{k}×{n}, {cores} threads"))));
    }
    // What a GPU does not say is absent.
    if let Ok((name, peaks)) = engine().gpus().peaks(0) {
        let of = |what: &str| Some(measured(&format!("{what}, {name}")));
        let tera = |peak: Option<f64>| peak.unwrap_or(0.0) / 1e12;
        put(ChipFigure::GpuTflops, tera(peaks.vector_f32), of("multiply-adds in registers"));
        put(ChipFigure::GpuMatrixTflops, tera(peaks.matrix_f16), of("products of matrices"));
        put(ChipFigure::GpuBandwidth, peaks.bytes.unwrap_or(0.0) / 1e9, of("copies"));
        let ms = peaks.submit.map_or(0.0, |time| time.as_secs_f64() * 1e3);
        put(ChipFigure::GpuStartMs, ms, of("handing an empty kernel over"));
    }
    Ok(facts)
}

/// FP32 Gflop/s of the system's library, which reaches a chip's matrix unit; none where there is none.
fn system_gflops(lengths: BenchLengths) -> Option<f64> {
    let BenchLengths { m, k, n } = lengths;
    let blas = BlasLibrary::system().ok()?;
    let plain = |data, stride| BlasOperand { data, stride, orientation: OperandOrientation::Plain };
    let a = vec![0.5_f32; m * k];
    let b = vec![0.25_f32; k * n];
    let mut c = vec![0.0_f32; m * n];
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        blas.sgemm(
            BlasSizes { m, n, k },
            GemmScaling { alpha: 1.0, beta: 0.0 },
            plain(&a, k),
            plain(&b, n),
            &mut c,
            n,
        )
        .ok()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    std::hint::black_box(&c);
    Some(2.0 * (m * k * n) as f64 / best.max(1e-9) / 1e9)
}

/// Four digits that count.
fn rounded(value: f64) -> f64 {
    let scale = 10_f64.powf(3.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_about_this_host_can_be_planned_with() {
        let facts = measure(BenchLengths { m: 64, k: 64, n: 64 }).unwrap();
        let again = ChipFacts::read(&facts.write()).unwrap();
        assert_eq!(again, facts);
        for figure in [ChipFigure::Bandwidth, ChipFigure::VectorGflops, ChipFigure::ProductGflops] {
            assert!(again.least(figure).is_some_and(|value| value > 0.0));
            let source = again.source_of(figure);
            assert!(source.provenance.starts_with("measured on this host on 2"), "{source}");
        }
        let cost = galatea_runtime::cost::CostModel::of(&again, 0);
        assert!(cost.unit(galatea_runtime::cost::ComputeUnit::Cpu).is_some());
    }

    #[test]
    fn figures_keep_four_digits() {
        assert_eq!([rounded(1234.567), rounded(0.123_456)], [1235.0, 0.1235]);
    }
}
