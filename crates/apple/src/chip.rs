//! Identity and features of the chip.

use std::collections::BTreeSet;

use crate::{LiveSysctl, SysctlSource, Unavailable};

/// An optional part of the Arm instruction set that kernels ask about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CpuFeature {
    /// Half-precision arithmetic.
    Fp16,
    /// Half-precision products added to single precision (`FMLAL`).
    Fp16MultiplyAdd,
    /// 8-bit dot products (`SDOT`, `UDOT`).
    DotProduct,
    /// bfloat16 dot and matrix products.
    Bf16,
    /// 8-bit integer matrix products (`SMMLA`).
    Int8Matrix,
    /// The scalable matrix extension.
    Sme,
    /// The scalable matrix extension, version 2.
    Sme2,
    /// Outer products of single precision.
    SmeF32,
    /// Outer products of half precision into single.
    SmeF16F32,
    /// Outer products of 8-bit integers into 32 bits.
    SmeI8I32,
    /// Outer products of single bits into 32 bits.
    SmeBI32,
    /// Outer products of 16-bit integers into 64 bits.
    SmeI16I64,
    /// Outer products of double precision.
    SmeF64,
}

/// The kernel's name for a feature.
#[derive(Debug, Clone, Copy)]
pub struct FeatureKey {
    /// The feature.
    pub feature: CpuFeature,
    /// The sysctl key; 1 where the feature is there, absent on systems older than the feature.
    pub key: &'static str,
}

const fn row(feature: CpuFeature, key: &'static str) -> FeatureKey {
    FeatureKey { feature, key }
}

/// Every feature with its key. Source: the `hw.optional.arm` names that macOS documents under
/// "Determining Instruction Set Characteristics".
pub const FEATURES: &[FeatureKey] = &[
    row(CpuFeature::Fp16, "hw.optional.arm.FEAT_FP16"),
    row(CpuFeature::Fp16MultiplyAdd, "hw.optional.arm.FEAT_FHM"),
    row(CpuFeature::DotProduct, "hw.optional.arm.FEAT_DotProd"),
    row(CpuFeature::Bf16, "hw.optional.arm.FEAT_BF16"),
    row(CpuFeature::Int8Matrix, "hw.optional.arm.FEAT_I8MM"),
    row(CpuFeature::Sme, "hw.optional.arm.FEAT_SME"),
    row(CpuFeature::Sme2, "hw.optional.arm.FEAT_SME2"),
    row(CpuFeature::SmeF32, "hw.optional.arm.SME_F32F32"),
    row(CpuFeature::SmeF16F32, "hw.optional.arm.SME_F16F32"),
    row(CpuFeature::SmeI8I32, "hw.optional.arm.SME_I8I32"),
    row(CpuFeature::SmeBI32, "hw.optional.arm.SME_BI32I32"),
    row(CpuFeature::SmeI16I64, "hw.optional.arm.FEAT_SME_I16I64"),
    row(CpuFeature::SmeF64, "hw.optional.arm.FEAT_SME_F64F64"),
];

const STREAMING_VECTOR_KEY: &str = "hw.optional.arm.sme_max_svl_b";

/// More kinds of core than any known chip has: a bound on what a kernel may claim.
const MAX_CLUSTER_KINDS: u64 = 8;

/// One kind of core. A figure that the kernel does not give is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreCluster {
    /// The kernel's word for the kind, such as `Performance`.
    pub name: Option<String>,
    /// Cores of this kind.
    pub physical_cores: u64,
    /// Hardware threads of this kind.
    pub logical_cores: u64,
    /// First-level instruction cache of one core, bytes.
    pub l1_instruction_bytes: Option<u64>,
    /// First-level data cache of one core, bytes.
    pub l1_data_bytes: Option<u64>,
    /// Second-level cache, bytes, shared by [`Self::cores_per_l2`] cores.
    pub l2_bytes: Option<u64>,
    /// Number of cores that share one second-level cache.
    pub cores_per_l2: Option<u64>,
}

/// The running system's version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatingSystem {
    /// Version such as `15.3.1` (`kern.osproductversion`).
    pub version: Option<String>,
    /// Build such as `24D70` (`kern.osversion`); tuning records are kept per build.
    pub build: Option<String>,
}

/// The chip's identity and abilities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChipIdentity {
    /// The maker's name, such as `Apple M2 Pro`. For people and records: code asks
    /// [`Self::has`].
    pub name: String,
    /// Physical memory, bytes.
    pub memory_bytes: u64,
    /// Page size, bytes.
    pub page_bytes: u64,
    /// Kinds of core, fastest first.
    pub clusters: Vec<CoreCluster>,
    /// The features that are there.
    pub features: BTreeSet<CpuFeature>,
    /// Width of a streaming-mode vector, bytes; `None` without SME.
    pub streaming_vector_bytes: Option<u64>,
    /// The system.
    pub system: OperatingSystem,
}

impl ChipIdentity {
    /// Asks the running kernel.
    ///
    /// # Errors
    /// [`Unavailable`] off macOS, or when the kernel does not answer a key that every Mac has.
    pub fn detect() -> Result<Self, Unavailable> {
        Self::from_source(&LiveSysctl::open()?)
    }

    /// Asks any source of sysctl values.
    ///
    /// # Errors
    /// [`Unavailable`] with the key when a key that every Mac has is missing.
    pub fn from_source(source: &impl SysctlSource) -> Result<Self, Unavailable> {
        let needed = |key: &str| source.integer(key).ok_or_else(|| missing(key));
        let name_key = "machdep.cpu.brand_string";
        let is_on = |row: &&FeatureKey| source.integer(row.key).is_some_and(|value| value != 0);
        let features = FEATURES.iter().filter(is_on).map(|row| row.feature).collect();
        Ok(Self {
            name: source.text(name_key).ok_or_else(|| missing(name_key))?,
            memory_bytes: needed("hw.memsize")?,
            page_bytes: needed("hw.pagesize")?,
            clusters: clusters(source)?,
            features,
            streaming_vector_bytes: source.integer(STREAMING_VECTOR_KEY).filter(|&n| n > 0),
            system: OperatingSystem {
                version: source.text("kern.osproductversion"),
                build: source.text("kern.osversion"),
            },
        })
    }

    /// Returns whether the chip has the feature.
    pub fn has(&self, feature: CpuFeature) -> bool {
        self.features.contains(&feature)
    }

    /// Cores of all kinds.
    pub fn physical_cores(&self) -> u64 {
        self.clusters.iter().map(|cluster| cluster.physical_cores).sum()
    }

    /// Cores of the fastest kind: how many threads a matrix product should use.
    pub fn fastest_cores(&self) -> u64 {
        self.clusters.first().map_or(0, |cluster| cluster.physical_cores)
    }
}

/// Reads the kinds of core. Before macOS 12, and on Intel, there is one kind under plain names.
fn clusters(source: &impl SysctlSource) -> Result<Vec<CoreCluster>, Unavailable> {
    let kinds = source.integer("hw.nperflevels").unwrap_or(0).min(MAX_CLUSTER_KINDS);
    if kinds == 0 {
        return Ok(vec![cluster(source, "hw.", None)?]);
    }
    (0..kinds)
        .map(|level| {
            let prefix = format!("hw.perflevel{level}.");
            cluster(source, &prefix, source.text(&format!("{prefix}name")))
        })
        .collect()
}

fn cluster(
    source: &impl SysctlSource,
    prefix: &str,
    name: Option<String>,
) -> Result<CoreCluster, Unavailable> {
    let optional = |key: &str| source.integer(&format!("{prefix}{key}"));
    let needed = |key: &str| optional(key).ok_or_else(|| missing(&format!("{prefix}{key}")));
    Ok(CoreCluster {
        name,
        physical_cores: needed("physicalcpu")?,
        logical_cores: needed("logicalcpu")?,
        l1_instruction_bytes: optional("l1icachesize"),
        l1_data_bytes: optional("l1dcachesize"),
        l2_bytes: optional("l2cachesize"),
        cores_per_l2: optional("cpusperl2"),
    })
}

fn missing(key: &str) -> Unavailable {
    Unavailable::new("chip detection", format!("sysctl has no `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordedSysctl;

    const TWO_KINDS: &str = include_str!("../tests/data/two_kinds.sysctl");
    const MATRIX_UNIT: &str = include_str!("../tests/data/matrix_unit.sysctl");
    const ONE_KIND: &str = include_str!("../tests/data/one_kind.sysctl");

    fn chip(text: &str) -> Result<ChipIdentity, Unavailable> {
        ChipIdentity::from_source(&RecordedSysctl::parse(text).unwrap())
    }

    #[test]
    fn kinds_of_core_are_read_in_order() {
        let chip = chip(TWO_KINDS).unwrap();
        let names: Vec<_> = chip.clusters.iter().map(|c| c.name.as_deref()).collect();
        assert_eq!(names, [Some("Performance"), Some("Efficiency")]);
        assert_eq!((chip.fastest_cores(), chip.physical_cores()), (4, 8));
        assert_eq!(chip.clusters[0].l2_bytes, Some(12 << 20));
        assert_eq!(chip.clusters[1].cores_per_l2, Some(4));
    }

    #[test]
    fn a_missing_or_zero_key_is_an_absent_feature() {
        let chip = chip(TWO_KINDS).unwrap();
        assert!(chip.has(CpuFeature::DotProduct) && chip.has(CpuFeature::Fp16));
        assert!(!chip.has(CpuFeature::Bf16) && !chip.has(CpuFeature::Sme));
        assert_eq!(chip.streaming_vector_bytes, None);
    }

    #[test]
    fn the_matrix_extension_comes_with_its_vector_width() {
        let chip = chip(MATRIX_UNIT).unwrap();
        assert!(
            chip.has(CpuFeature::Sme) && chip.has(CpuFeature::Sme2) && chip.has(CpuFeature::SmeF32)
        );
        assert_eq!(chip.streaming_vector_bytes, Some(64));
    }

    #[test]
    fn without_performance_levels_there_is_one_kind() {
        let chip = chip(ONE_KIND).unwrap();
        assert_eq!(chip.clusters.len(), 1);
        assert_eq!((chip.clusters[0].physical_cores, chip.clusters[0].logical_cores), (4, 8));
        assert!(chip.features.is_empty());
    }

    #[test]
    fn a_missing_key_is_named() {
        let without: String = TWO_KINDS
            .lines()
            .filter(|l| !l.starts_with("hw.memsize"))
            .map(|l| format!("{l}\n"))
            .collect();
        let error = chip(&without).unwrap_err();
        assert_eq!(error.to_string(), "chip detection is unavailable: sysctl has no `hw.memsize`");
    }

    #[test]
    fn an_absurd_number_of_kinds_does_not_run_away() {
        let text = TWO_KINDS.replace("hw.nperflevels: 2", "hw.nperflevels: 18446744073709551615");
        assert!(chip(&text).unwrap_err().reason.contains("hw.perflevel2.physicalcpu"));
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_detection_says_so() {
        assert!(ChipIdentity::detect().unwrap_err().reason.contains("needs macOS"));
    }

    #[cfg(any(target_os = "macos", apple_doubles))]
    #[test]
    fn this_mac_is_detected() {
        let chip = ChipIdentity::detect().unwrap();
        assert!(chip.memory_bytes > 0 && chip.physical_cores() > 0 && !chip.name.is_empty());
    }
}
