//! The figures that a file about a chip may hold.

/// A figure of a chip. Figures of several sizes of a chip stand in lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ChipFigure {
    /// Cores of the fastest kind.
    PerformanceCores,
    /// Cores of the other kind.
    EfficiencyCores,
    /// FP32 Gflop/s of the vectors of one fast core.
    VectorGflops,
    /// FP32 Gflop/s that products of matrices reach on all fast cores.
    ProductGflops,
    /// The same with BF16 operands.
    ProductGflopsBf16,
    /// 10⁹ operations a second that products of bytes reach on all fast cores.
    ProductGopsInt8,
    /// FP32 Gflop/s of the matrix units of the fast cores.
    MatrixGflops,
    /// Cores of the GPU.
    GpuCores,
    /// FP32 Tflop/s of the GPU's ordinary instructions.
    GpuTflops,
    /// FP16 Tflop/s of the GPU's instructions on matrices, where it has units of their own for them.
    GpuMatrixTflops,
    /// FP16 Tflop/s of neural accelerators in the GPU's cores, which only Metal 4's tensor operations reach.
    /// No kernel here has them, so costs do not count them.
    NeuralAcceleratorTflops,
    /// 10⁹ bytes a second of the GPU's memory, where it has its own.
    GpuBandwidth,
    /// Milliseconds to hand work over to the GPU and to wait for it.
    GpuStartMs,
    /// Cores of all neural engines.
    EngineCores,
    /// Operations that Apple states for the neural engines, in 10¹² a second.
    StatedTops,
    /// Number of engines, each with its share of cores and operations.
    Engines,
    /// 10¹² operations on halves a second, of all engines.
    Fp16Tops,
    /// Milliseconds that a start on the engine takes.
    DispatchMs,
    /// 10⁹ bytes of memory a second.
    Bandwidth,
    /// The most memory, 10⁹ bytes.
    MaxGb,
    /// Watts of a machine without work, at its plug.
    MachineIdleWatts,
    /// The most watts of a machine, at its plug.
    MachineMaxWatts,
    /// Watts of the chip without work.
    IdleWatts,
    /// Watts that the processor adds at full work.
    CpuWatts,
    /// Watts that the GPU adds at full work.
    GpuWatts,
    /// Watts that the neural engine adds at full work.
    EngineWatts,
}

/// A figure's place in files, and how it is shown.
#[derive(Clone, Copy, Debug)]
pub struct FigureRow {
    /// The figure.
    pub figure: ChipFigure,
    /// Its place, `section.key`.
    pub key: &'static str,
    /// Title of the figure, for people.
    pub title: &'static str,
    /// Unit of measurement of the figure.
    pub unit: &'static str,
}

const fn row(
    figure: ChipFigure,
    key: &'static str,
    title: &'static str,
    unit: &'static str,
) -> FigureRow {
    FigureRow { figure, key, title, unit }
}

/// Every figure in the order in which files have them.
pub const FIGURES: &[FigureRow] = &[
    row(ChipFigure::PerformanceCores, "cpu.performance_cores", "Performance cores", ""),
    row(ChipFigure::EfficiencyCores, "cpu.efficiency_cores", "Efficiency cores", ""),
    row(ChipFigure::VectorGflops, "cpu.vector_gflops_f32", "Vectors of a fast core", "Gflop/s"),
    row(ChipFigure::ProductGflops, "cpu.product_gflops_f32", "Products, FP32", "Gflop/s"),
    row(ChipFigure::ProductGflopsBf16, "cpu.product_gflops_bf16", "Products, BF16", "Gflop/s"),
    row(ChipFigure::ProductGopsInt8, "cpu.product_gops_int8", "Products, INT8", "Gop/s"),
    row(ChipFigure::MatrixGflops, "matrix.gflops_f32", "Matrix units, FP32", "Gflop/s"),
    row(ChipFigure::GpuCores, "gpu.cores", "GPU cores", ""),
    row(ChipFigure::GpuTflops, "gpu.tflops_f32", "GPU, FP32", "Tflop/s"),
    row(
        ChipFigure::GpuMatrixTflops,
        "gpu.matrix_tflops_f16",
        "GPU's matrix units, FP16",
        "Tflop/s",
    ),
    row(
        ChipFigure::NeuralAcceleratorTflops,
        "gpu.neural_accelerator_tflops_f16",
        "GPU's neural accelerators, FP16",
        "Tflop/s",
    ),
    row(ChipFigure::GpuBandwidth, "gpu.bandwidth_gb_per_s", "GPU's own memory", "GB/s"),
    row(ChipFigure::GpuStartMs, "gpu.start_ms", "Start on the GPU", "ms"),
    row(ChipFigure::EngineCores, "neural_engine.cores", "Neural Engine cores", ""),
    row(ChipFigure::StatedTops, "neural_engine.stated_tops", "Neural Engine, stated", "TOPS"),
    row(ChipFigure::Engines, "neural_engine.engines", "Neural Engines", ""),
    row(ChipFigure::Fp16Tops, "neural_engine.fp16_tops", "Neural Engine, FP16", "Tflop/s"),
    row(ChipFigure::DispatchMs, "neural_engine.dispatch_ms", "Start on the engine", "ms"),
    row(ChipFigure::Bandwidth, "memory.bandwidth_gb_per_s", "Memory", "GB/s"),
    row(ChipFigure::MaxGb, "memory.max_gb", "Most memory", "GB"),
    row(ChipFigure::MachineIdleWatts, "power.machine_idle_watts", "Machine without work", "W"),
    row(ChipFigure::MachineMaxWatts, "power.machine_max_watts", "Machine at most", "W"),
    row(ChipFigure::IdleWatts, "power.idle_watts", "Chip without work", "W"),
    row(ChipFigure::CpuWatts, "power.cpu_watts", "Processor at full work", "W"),
    row(ChipFigure::GpuWatts, "power.gpu_watts", "GPU at full work", "W"),
    row(ChipFigure::EngineWatts, "power.neural_engine_watts", "Neural Engine at full work", "W"),
];

impl ChipFigure {
    /// Its place in files, `section.key`.
    #[must_use]
    pub fn key(self) -> &'static str {
        FIGURES.iter().find(|row| row.figure == self).map_or("", |row| row.key)
    }
}
