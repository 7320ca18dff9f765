//! Capabilities of this machine, for the program's command, metrics and cost models.

use galatea_apple::{ChipIdentity, CpuFeature};
use galatea_kernels::Isa;
use galatea_kernels::isa::{Bf16Isa, DotIsa};
use galatea_runtime::chips::{self, ChipFigure, MachineSize, MatrixUnit};

use crate::machine::linux_chip;

/// Cores of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreKind {
    /// The system's name for them, such as `Performance`.
    pub name: Option<String>,
    /// Their number.
    pub cores: u64,
    /// Bytes of the first-level data cache of each.
    pub l1_data_bytes: Option<u64>,
    /// Bytes of the second-level cache that some share.
    pub l2_bytes: Option<u64>,
}

/// The most that a unit computes, as the chip's file states it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeakEstimate {
    /// The unit and the type of its numbers, such as `vector-f32`.
    pub unit: &'static str,
    /// Gflop/s of all fast cores together.
    pub gflops: f64,
}

/// Capabilities of this machine. Unknown ones are absent.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCapabilities {
    /// The chip.
    pub chip: Option<String>,
    /// The instruction sets of the kernels that run here: of FP32, of BF16, of INT8.
    pub kernels: [&'static str; 3],
    /// Optional features of the instruction set that the system tells of.
    pub features: Vec<CpuFeature>,
    /// Kinds of core, the fastest first.
    pub cores: Vec<CoreKind>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// The matrix unit of the processor that Accelerate uses.
    pub matrix_unit: Option<MatrixUnit>,
    /// Version of the unit's instructions, of a chip that there is a file of.
    pub matrix_version: Option<String>,
    /// Peaks that the file of [`HostCapabilities::figures_of`] states for this size of the chip.
    pub peaks: Vec<PeakEstimate>,
    /// Bandwidth of memory by that file, 10⁹ bytes a second; `None` where sizes differ that this machine may be.
    pub bandwidth_gb_per_s: Option<f64>,
    /// Chip whose figures these are: this one, or a relative.
    pub figures_of: Option<String>,
}

impl HostCapabilities {
    /// Detects the capabilities of this machine.
    #[must_use]
    pub fn detect() -> Self {
        match ChipIdentity::detect() {
            Ok(chip) => Self::of(&chip, Isa::detect()),
            Err(_) => {
                let cores = std::thread::available_parallelism().map_or(1, usize::from);
                let cores = u64::try_from(cores).unwrap_or(u64::MAX);
                let kind = CoreKind { name: None, cores, l1_data_bytes: None, l2_bytes: None };
                Self { chip: linux_chip(), cores: vec![kind], ..Self::unknown(Isa::detect()) }
            }
        }
    }

    fn unknown(isa: Isa) -> Self {
        Self {
            chip: None,
            kernels: [isa.name(), Bf16Isa::of(isa).name(), DotIsa::of(isa).name()],
            features: Vec::new(),
            cores: Vec::new(),
            memory_bytes: None,
            matrix_unit: None,
            matrix_version: None,
            peaks: Vec::new(),
            bandwidth_gb_per_s: None,
            figures_of: None,
        }
    }

    /// Returns the capabilities of a detected chip, with kernels of this instruction set.
    #[must_use]
    pub fn of(chip: &ChipIdentity, isa: Isa) -> Self {
        let kind = |cluster: &galatea_apple::CoreCluster| CoreKind {
            name: cluster.name.clone(),
            cores: cluster.physical_cores,
            l1_data_bytes: cluster.l1_data_bytes,
            l2_bytes: cluster.l2_bytes,
        };
        let known = chips::find(&chip.name);
        let size = machine_size(chip);
        let figure = |figure| known?.facts.of_machine(figure, &size);
        // What the chip says of itself goes before what a file says of its relatives.
        let told = chip.has(CpuFeature::Sme).then_some(MatrixUnit::Sme);
        let matrix_unit = told.or_else(|| known?.facts.matrix_unit);
        let own = known.filter(|known| known.exact);
        #[allow(clippy::cast_precision_loss, reason = "a number of cores")]
        let fast = chip.fastest_cores() as f64;
        let vector = figure(ChipFigure::VectorGflops);
        let vector = vector.map(|core| PeakEstimate { unit: "vector-f32", gflops: core * fast });
        let matrix = figure(ChipFigure::MatrixGflops).filter(|_| matrix_unit.is_some());
        let matrix = matrix.map(|gflops| PeakEstimate { unit: "matrix-f32", gflops });
        Self {
            chip: Some(chip.name.clone()),
            features: chip.features.iter().copied().collect(),
            cores: chip.clusters.iter().map(kind).collect(),
            memory_bytes: Some(chip.memory_bytes),
            matrix_unit,
            matrix_version: own.and_then(|known| known.facts.matrix_version.clone()),
            peaks: vector.into_iter().chain(matrix).collect(),
            bandwidth_gb_per_s: figure(ChipFigure::Bandwidth),
            figures_of: known.map(|known| known.facts.name.clone()),
            ..Self::unknown(isa)
        }
    }

    /// The peak of a unit, Gflop/s.
    #[must_use]
    pub fn peak(&self, unit: &str) -> Option<f64> {
        self.peaks.iter().find(|peak| peak.unit == unit).map(|peak| peak.gflops)
    }
}

/// Returns what a machine tells of the size of its chip.
#[allow(clippy::cast_precision_loss, reason = "numbers of cores, and a memory")]
fn machine_size(chip: &ChipIdentity) -> MachineSize {
    let all: u64 = chip.clusters.iter().map(|cluster| cluster.physical_cores).sum();
    let fast = chip.fastest_cores();
    let known = |cores: u64| (cores > 0).then_some(cores as f64);
    MachineSize {
        fast_cores: known(fast),
        other_cores: known(all.saturating_sub(fast)),
        memory_gb: chip.memory_bytes as f64 / (1_u64 << 30) as f64,
    }
}

#[cfg(test)]
mod tests {
    use galatea_apple::RecordedSysctl;

    use super::*;

    fn chip(name: &str, more: &str) -> ChipIdentity {
        let text = format!(
            "machdep.cpu.brand_string: {name}\nhw.memsize: 17179869184\nhw.pagesize: 16384\n\
             hw.nperflevels: 2\nhw.perflevel0.name: Performance\nhw.perflevel0.physicalcpu: 4\n\
             hw.perflevel0.logicalcpu: 4\nhw.perflevel1.name: Efficiency\n\
             hw.perflevel1.physicalcpu: 4\nhw.perflevel1.logicalcpu: 4\n{more}"
        );
        ChipIdentity::from_source(&RecordedSysctl::parse(&text).unwrap()).unwrap()
    }

    #[test]
    fn a_known_chip_has_its_peaks() {
        let found = HostCapabilities::of(&chip("Apple M1", ""), Isa::detect());
        assert_eq!(found.matrix_unit, Some(MatrixUnit::Amx));
        // Nobody has published a measurement of it; that of a relative is another chip's.
        assert_eq!((found.peak("matrix-f32"), found.matrix_version.as_deref()), (None, Some("M1")));
        assert_eq!(found.peak("vector-f32"), Some(4.0 * 102.0));
        assert_eq!((found.bandwidth_gb_per_s, found.cores.len()), (Some(68.0), 2));
        assert_eq!(found.figures_of.as_deref(), Some("Apple M1"));
    }

    #[test]
    fn sizes_of_a_chip_that_cannot_be_told_apart_have_no_bandwidth() {
        let of = |name: &str, more: &str| HostCapabilities::of(&chip(name, more), Isa::detect());
        let cores = |fast: u32| {
            format!("hw.perflevel0.physicalcpu: {fast}\nhw.perflevel0.logicalcpu: {fast}\n")
        };
        assert_eq!(of("Apple M4 Max", &cores(10)).bandwidth_gb_per_s, Some(410.0));
        assert_eq!(of("Apple M4 Max", &cores(12)).bandwidth_gb_per_s, Some(546.0));
        let two = "hw.perflevel0.physicalcpu: 6\nhw.perflevel1.physicalcpu: 12\n";
        let found = of("Apple M5 Max", two);
        assert_eq!((found.bandwidth_gb_per_s, found.peak("matrix-f32")), (None, None));
        assert_eq!(found.peak("vector-f32"), None);
        assert_eq!(found.matrix_version.as_deref(), Some("SME2p1"));
        assert_eq!(found.figures_of.as_deref(), Some("Apple M5 Max"));
    }

    #[test]
    fn a_newer_chip_is_judged_by_what_it_says_and_by_its_nearest_relative() {
        let sme = "hw.optional.arm.FEAT_SME: 1\n";
        let found = HostCapabilities::of(&chip("Apple M6 Pro", sme), Isa::detect());
        assert_eq!(found.matrix_unit, Some(MatrixUnit::Sme));
        assert_eq!(found.figures_of.as_deref(), Some("Apple M5 Pro"));
        assert_eq!(found.matrix_version, None);
    }

    #[test]
    fn a_chip_of_no_family_has_no_estimates() {
        let found = HostCapabilities::of(&chip("Some Other", ""), Isa::detect());
        assert_eq!((found.matrix_unit, found.figures_of), (None, None));
        assert!(found.peaks.is_empty() && found.bandwidth_gb_per_s.is_none());
    }

    #[test]
    fn this_machine_has_cores_and_kernels() {
        let found = HostCapabilities::detect();
        assert!(found.cores.iter().map(|kind| kind.cores).sum::<u64>() >= 1);
        assert!(found.kernels.iter().all(|name| !name.is_empty()));
    }
}
