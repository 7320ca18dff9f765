//! A chip as a roofline for each of its units.

use super::correction::CostCorrections;
use super::unit::ComputeUnit;
use super::workload::{DecoderWork, GraphWork, OperatorWork};
use crate::chips::{self, ChipFacts, ChipFigure};

/// Throughput of a device and the time that starts on it take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitCost {
    /// The unit.
    pub unit: ComputeUnit,
    /// Multiplications and additions a second that products reach.
    pub operations: f64,
    /// Operations a second that all others reach.
    pub vector: f64,
    /// Bytes a second that it reaches.
    pub bytes: f64,
    /// Seconds that it takes to hand a model's run over and to wait for it.
    pub start: f64,
    /// Seconds that an operator takes which has nothing to do.
    pub each: f64,
    /// Seconds that a decoder's layer takes besides.
    pub layer: f64,
    /// Watts that it adds to the chip's at full work.
    pub watts: f64,
    /// True if weights are widened to halves on their way, which makes narrower ones save nothing.
    pub widens: bool,
}

impl UnitCost {
    /// Returns the cost of a CPU of which only the cores are known; `operations` is what a matrix
    /// multiplication reaches on one of them, in operations a second.
    #[must_use]
    pub fn of_cores(cores: usize, operations: f64) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "cores are few")]
        let cores = cores.max(1) as f64;
        let [start, each, layer] = CPU_TIMES;
        Self {
            unit: ComputeUnit::Cpu,
            operations: cores * operations,
            vector: cores * operations * VECTOR_SHARE,
            bytes: (cores * OTHER_CORE_BYTES).min(OTHER_BYTES),
            start,
            each,
            layer,
            watts: cores * WATTS[0],
            widens: false,
        }
    }

    /// Seconds of so many operations, of a product or of anything else, that read and write so many bytes.
    #[must_use]
    pub fn seconds(&self, operations: f64, bytes: f64, product: ArithmeticClass) -> f64 {
        let rate = match product {
            ArithmeticClass::Yes => self.operations,
            ArithmeticClass::No => self.vector,
        };
        (operations / rate).max(bytes / self.bytes) + self.each
    }
}

/// Marks arithmetic that is a matrix multiplication; devices do more of it per second than of anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithmeticClass {
    /// Products and convolutions.
    Yes,
    /// Everything else.
    No,
}

/// Share of the GPU's peak that products of weights with few bits reach: fits the published rates of prompts
/// of a 7B model (M1 to M4 Max) within a tenth; published ranges are 0.6 to 0.8.
const GPU_SHARE: f64 = 0.64;
/// The same of a processor's matrix units: an estimate.
const CPU_SHARE: f64 = 0.8;
/// The same of a Neural Engine: measured on an M4 for layers that it likes, 5.7 of 19 Tflop/s.
const ENGINE_SHARE: f64 = 0.3;
/// Factor by which the GPU takes longer for bytes than memory's figure says. Together with [`GPU_LAYER`] it
/// fits the published rates of a 7B model on 15 chips within a fifth.
const GPU_BYTES: f64 = 1.1;
/// Seconds of a decoder's layer on the GPU besides its bytes: 4.7 ms for 32 layers.
const GPU_LAYER: f64 = 4.7e-3 / 32.0;
/// Seconds of a kernel on the GPU that has nothing to do: those 4.7 ms over some 1150 kernels of a token.
const GPU_EACH: f64 = 4.1e-6;
/// Seconds to hand work over to the GPU and to wait for it; published figures are 100 to 200 µs.
const GPU_START: f64 = 150e-6;
/// Bytes a second that a fast core draws: an estimate.
const CORE_BYTES: f64 = 25e9;
/// The share of a core's multiply-adds that functions of single elements reach; and that of what products reach on
/// cores without a unit for them: estimates.
const VECTOR_SHARE: f64 = 0.25;
/// Bytes a second of a core of another processor, and of all of them: estimates.
const OTHER_CORE_BYTES: f64 = 10e9;
/// See [`OTHER_CORE_BYTES`].
const OTHER_BYTES: f64 = 60e9;
/// The share of memory that the processor gets, and the Neural Engine: estimates.
const BYTES_SHARE: [f64; 2] = [0.9, 0.8];
/// The most bytes a second of a Neural Engine: published figures are 60 to 120 · 10⁹ on any chip.
const ENGINE_BYTES: f64 = 90e9;
/// Seconds of a model's run, of an operator and of a decoder's layer on the processor: estimates.
const CPU_TIMES: [f64; 3] = [5e-6, 1e-6, 20e-6];
/// Watts of a fast core (one with its matrix unit draws 8 on an M1 Max, published; all of them draw less
/// each), and for 10¹² operations a second of the GPU's FP32 and of the Neural Engine's FP16: estimates;
/// engines draw a few watts.
const WATTS: [f64; 3] = [4.0, 4.0, 0.2];
/// Watts of a chip without work, for each of its 10⁹ bytes of memory a second and at least: estimates.
const IDLE_WATTS: [f64; 2] = [0.005, 0.5];

/// The chip that [`CostModel::untrained`] takes others for.
const SMALLEST: &str = "Apple M1";

/// Predicts the time that work takes on the devices of a chip.
#[derive(Clone, Debug, PartialEq)]
pub struct CostModel {
    /// The chip.
    pub chip: String,
    /// Its units, as far as enough is known of them.
    pub units: Vec<UnitCost>,
    /// Watts without work.
    pub idle_watts: f64,
    /// Bytes of memory a second, which units without memory of their own share.
    pub bandwidth: f64,
    /// The most memory, in bytes.
    pub memory_bytes: Option<f64>,
    /// Corrections from measurements.
    pub corrections: CostCorrections,
}

impl CostModel {
    /// Returns the model of one size of a chip, counted from the smallest; a device without figures is left
    /// out.
    #[must_use]
    pub fn of(facts: &ChipFacts, size: usize) -> Self {
        let figure = |figure| facts.of_size(figure, size);
        let memory = figure(ChipFigure::Bandwidth).unwrap_or(0.0) * 1e9;
        let units =
            [cpu(facts, size, memory), gpu(facts, size, memory), engine(facts, size, memory)];
        let least = (memory / 1e9 * IDLE_WATTS[0]).max(IDLE_WATTS[1]);
        Self {
            chip: facts.name.clone(),
            units: units.into_iter().flatten().collect(),
            idle_watts: figure(ChipFigure::IdleWatts).unwrap_or(least),
            bandwidth: memory,
            memory_bytes: figure(ChipFigure::MaxGb).map(|gb| gb * 1e9),
            corrections: CostCorrections::default(),
        }
    }

    /// Returns the model to use for an Apple chip of which nothing is known: that of the first and smallest
    /// chip with all devices. It gives small matrix multiplications and work bound by memory to the CPU, large
    /// matrix multiplications to the GPU, and whole encoders and convolutions to the Neural Engine.
    #[must_use]
    pub fn untrained() -> Option<Self> {
        chips::find(SMALLEST).map(|known| Self::of(known.facts, 0))
    }

    /// A unit of the chip.
    #[must_use]
    pub fn unit(&self, unit: ComputeUnit) -> Option<&UnitCost> {
        self.units.iter().find(|cost| cost.unit == unit)
    }

    /// Watts of the chip with all units at full work.
    #[must_use]
    pub fn full_watts(&self) -> f64 {
        self.idle_watts + self.units.iter().map(|unit| unit.watts).sum::<f64>()
    }

    /// Seconds of an operator for a batch of so many rows, without what starting the model takes.
    #[must_use]
    pub fn operator_seconds(&self, unit: &UnitCost, work: &OperatorWork, rows: f64) -> f64 {
        let arithmetic = rows * work.operations / unit.operations;
        let moved = (work.weight_bytes + rows * work.moved_bytes) / unit.bytes;
        let factor = self.corrections.factor(unit.unit, &work.operator);
        (arithmetic.max(moved) + unit.each) * factor
    }

    /// Seconds of a graph for a batch of so many rows.
    #[must_use]
    pub fn graph_seconds(&self, unit: &UnitCost, work: &GraphWork, rows: f64) -> f64 {
        let each = work.operators.iter().map(|one| self.operator_seconds(unit, one, rows));
        unit.start + each.sum::<f64>()
    }

    /// Seconds of a decoder for a piece of a text: `tokens` tokens behind `past` others.
    #[must_use]
    pub fn prefill_seconds(
        &self,
        unit: &UnitCost,
        work: &DecoderWork,
        tokens: f64,
        past: f64,
    ) -> f64 {
        let arithmetic = work.operations(tokens, past) / unit.operations;
        let bytes = weights(unit, work) + (past + tokens) * work.kv_bytes_per_token;
        let factor = self.corrections.factor(unit.unit, "prefill");
        (arithmetic.max(bytes / unit.bytes) + unit.start + work.layers * unit.layer) * factor
    }

    /// Seconds of a decoder for the next token of each of so many texts, which have `tokens` tokens together.
    #[must_use]
    pub fn step_seconds(
        &self,
        unit: &UnitCost,
        work: &DecoderWork,
        texts: f64,
        tokens: f64,
    ) -> f64 {
        let met = 4.0 * tokens * work.hidden * work.layers;
        let arithmetic = (2.0 * work.parameters * texts + met) / unit.operations;
        let bytes = weights(unit, work) + tokens * work.kv_bytes_per_token;
        let factor = self.corrections.factor(unit.unit, "decode");
        // What starts take is in the layers' time where that was fitted to whole tokens.
        let start = if unit.unit == ComputeUnit::Gpu { 0.0 } else { unit.start };
        (arithmetic.max(bytes / unit.bytes) + start + work.layers * unit.layer) * factor
    }

    /// Takes over what a kind of work (an operator's name, `prefill` or `decode`) took on a unit, in seconds,
    /// without corrections and as measured.
    pub fn correct(&mut self, unit: ComputeUnit, kind: &str, predicted: f64, measured: f64) {
        self.corrections.learn(unit, kind, predicted, measured);
    }
}

/// Bytes of weights that a token needs.
fn weights(unit: &UnitCost, work: &DecoderWork) -> f64 {
    let halves = 2.0 * work.parameters;
    if unit.widens { work.weight_bytes.max(halves) } else { work.weight_bytes }
}

fn cpu(facts: &ChipFacts, size: usize, memory: f64) -> Option<UnitCost> {
    let figure = |figure| facts.of_size(figure, size);
    let cores = figure(ChipFigure::PerformanceCores).unwrap_or(1.0);
    let measured = figure(ChipFigure::ProductGflops).map(|giga| giga * 1e9);
    let matrix = chips::matrix_gflops(facts, size).map(|giga| giga * 1e9 * CPU_SHARE);
    let adds = figure(ChipFigure::VectorGflops).map(|giga| giga * 1e9 * cores);
    let operations = measured.or(matrix).or_else(|| adds.map(|adds| adds * CPU_SHARE))?;
    let vector = adds.unwrap_or(operations) * VECTOR_SHARE;
    let bytes = match measured {
        // Who measured products has measured memory from the processor, too.
        Some(_) => memory,
        None => (memory * BYTES_SHARE[0]).min(cores * CORE_BYTES),
    };
    let [start, each, layer] = CPU_TIMES;
    let watts = figure(ChipFigure::CpuWatts).unwrap_or(cores * WATTS[0]);
    let unit = ComputeUnit::Cpu;
    let cost =
        UnitCost { unit, operations, vector, bytes, start, each, layer, watts, widens: false };
    (operations > 0.0 && bytes > 0.0).then_some(cost)
}

fn gpu(facts: &ChipFacts, size: usize, memory: f64) -> Option<UnitCost> {
    let figure = |figure| facts.of_size(figure, size);
    let plain = figure(ChipFigure::GpuTflops);
    let all = plain.into_iter().chain(figure(ChipFigure::GpuMatrixTflops));
    let best = all.reduce(f64::max)?;
    let memory = figure(ChipFigure::GpuBandwidth).map_or(memory, |own| own * 1e9);
    let cost = UnitCost {
        unit: ComputeUnit::Gpu,
        operations: best * 1e12 * GPU_SHARE,
        vector: plain.unwrap_or(best) * 1e12 * VECTOR_SHARE,
        bytes: memory / GPU_BYTES,
        start: figure(ChipFigure::GpuStartMs).map_or(GPU_START, |ms| ms / 1e3),
        each: GPU_EACH,
        layer: GPU_LAYER,
        watts: figure(ChipFigure::GpuWatts).unwrap_or(plain.unwrap_or(best) * WATTS[1]),
        widens: false,
    };
    (cost.operations > 0.0 && cost.bytes > 0.0).then_some(cost)
}

/// One of the chip's engines, on which a program runs.
fn engine(facts: &ChipFacts, size: usize, memory: f64) -> Option<UnitCost> {
    let figure = |figure| facts.of_size(figure, size);
    let tera = figure(ChipFigure::Fp16Tops)? / figure(ChipFigure::Engines).unwrap_or(1.0).max(1.0);
    let start = figure(ChipFigure::DispatchMs);
    let start = start.or_else(|| chips::figure(&facts.name, ChipFigure::DispatchMs))? / 1e3;
    let cost = UnitCost {
        unit: ComputeUnit::NeuralEngine,
        operations: tera * 1e12 * ENGINE_SHARE,
        vector: tera * 1e12 * ENGINE_SHARE * VECTOR_SHARE,
        bytes: (memory * BYTES_SHARE[1]).min(ENGINE_BYTES),
        start,
        each: 0.0,
        layer: 0.0,
        watts: figure(ChipFigure::EngineWatts).unwrap_or(tera * WATTS[2]),
        widens: true,
    };
    (cost.operations > 0.0 && cost.bytes > 0.0).then_some(cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str) -> CostModel {
        let facts = chips::find(name).unwrap().facts;
        CostModel::of(facts, usize::MAX)
    }

    #[test]
    fn work_takes_what_takes_longer_of_arithmetic_and_bytes() {
        let model = model("Apple M1");
        let gpu = *model.unit(ComputeUnit::Gpu).unwrap();
        let work = |operations, moved_bytes| OperatorWork {
            operations,
            moved_bytes,
            ..OperatorWork::default()
        };
        let heavy = model.operator_seconds(&gpu, &work(2.6e12, 1.0), 1.0);
        assert!((heavy - 1.0 / GPU_SHARE).abs() < 1e-3, "{heavy}");
        let wide = model.operator_seconds(&gpu, &work(1.0, 68e9), 2.0);
        assert!((wide - 2.0 * GPU_BYTES).abs() < 1e-3, "{wide}");
        let graph = GraphWork::alike(10, &work(0.0, 0.0));
        let empty = model.graph_seconds(&gpu, &graph, 1.0);
        assert!((empty - GPU_START - 10.0 * GPU_EACH).abs() < 1e-9, "{empty}");
    }

    #[test]
    fn measurements_correct_predictions() {
        let mut model = model("Apple M2");
        let cpu = *model.unit(ComputeUnit::Cpu).unwrap();
        let work = OperatorWork {
            operator: "MatMul".to_owned(),
            operations: 1e9,
            ..OperatorWork::default()
        };
        let before = model.operator_seconds(&cpu, &work, 1.0);
        model.correct(ComputeUnit::Cpu, "MatMul", before, 3.0 * before);
        let after = model.operator_seconds(&cpu, &work, 1.0);
        assert!((after / before - 3.0).abs() < 1e-6);
    }

    /// Seconds of a product of two square matrices of which all three together have so many elements.
    fn product(model: &CostModel, unit: ComputeUnit, elements: f64) -> f64 {
        let side = (elements / 3.0).sqrt();
        let own = model.unit(unit).unwrap();
        own.start + own.seconds(2.0 * side.powi(3), 4.0 * elements, ArithmeticClass::Yes)
    }

    #[test]
    fn without_measurements_small_products_are_the_processors_and_great_ones_the_gpus() {
        let model = CostModel::untrained().unwrap();
        let faster = |elements: f64| {
            let [cpu, gpu] = [ComputeUnit::Cpu, ComputeUnit::Gpu];
            product(&model, cpu, elements) < product(&model, gpu, elements)
        };
        assert!([1e3, 1e5, 0.9e6].into_iter().all(faster));
        assert!(![11e6, 1e8, 1e9].into_iter().any(faster));
    }

    #[test]
    fn without_measurements_memory_bounds_work_for_the_processor_and_arithmetic_for_the_gpu() {
        let model = CostModel::untrained().unwrap();
        let [cpu, gpu] =
            [ComputeUnit::Cpu, ComputeUnit::Gpu].map(|unit| *model.unit(unit).unwrap());
        let seconds = |unit: &UnitCost, operations, bytes| {
            unit.start + unit.seconds(operations, bytes, ArithmeticClass::Yes)
        };
        for bytes in [1e4, 1e6, 1e8] {
            // One operation for a byte, and a thousand.
            assert!(seconds(&cpu, bytes, bytes) < seconds(&gpu, bytes, bytes), "{bytes}");
        }
        for bytes in [1e6, 1e8] {
            assert!(seconds(&cpu, 1e3 * bytes, bytes) > seconds(&gpu, 1e3 * bytes, bytes));
        }
    }

    #[test]
    fn without_measurements_encoders_and_convolutions_are_the_neural_engines() {
        let model = CostModel::untrained().unwrap();
        // MiniLM of 6 layers for 128 tokens, BERT base, and ResNet-50 in bytes.
        for (operations, weights, operators) in
            [(2.8e9, 21e6, 90), (22e9, 170e6, 180), (8.2e9, 25e6, 70)]
        {
            let all = OperatorWork {
                operations,
                weight_bytes: weights,
                moved_bytes: weights / 4.0,
                ..OperatorWork::default()
            };
            let work = GraphWork::alike(operators, &all);
            let of = |unit| model.graph_seconds(model.unit(unit).unwrap(), &work, 1.0);
            let engine = of(ComputeUnit::NeuralEngine);
            assert!(engine < of(ComputeUnit::Gpu) && engine < of(ComputeUnit::Cpu), "{operations}");
        }
    }

    #[test]
    fn neural_accelerators_of_the_gpu_count_for_nothing_while_no_kernel_uses_them() {
        let text = |accelerators: &str| {
            format!(
                "name = \"X\"\nprovenance = \"stated\"\nconfidence = \"low\"\n\
                 [gpu]\ntflops_f32 = 4\n{accelerators}[memory]\nbandwidth_gb_per_s = 150\n"
            )
        };
        let gpu = |text: &str| {
            let model = CostModel::of(&ChipFacts::read(text).unwrap(), 0);
            *model.unit(ComputeUnit::Gpu).unwrap()
        };
        let plain = gpu(&text(""));
        assert_eq!(gpu(&text("neural_accelerator_tflops_f16 = 17\n")), plain);
        // What kernels do reach counts.
        assert!(gpu(&text("matrix_tflops_f16 = 17\n")).operations > 4.0 * plain.operations);
        for facts in chips::chips() {
            assert!(facts.list(ChipFigure::GpuMatrixTflops).is_empty(), "{}", facts.name);
        }
    }

    #[test]
    fn a_chip_has_the_units_that_enough_is_known_of() {
        for facts in chips::chips() {
            let model = CostModel::of(facts, 0);
            assert_eq!(model.units.len(), 3, "{}", facts.name);
            assert!(model.full_watts() > model.idle_watts);
        }
        let text = "name = \"X\"\nprovenance = \"measured\"\nconfidence = \"high\"\n\
                    [cpu]\nproduct_gflops_f32 = 100\n[memory]\nbandwidth_gb_per_s = 20\n";
        let model = CostModel::of(&ChipFacts::read(text).unwrap(), 0);
        let units: Vec<ComputeUnit> = model.units.iter().map(|unit| unit.unit).collect();
        assert_eq!(units, [ComputeUnit::Cpu]);
    }
}
