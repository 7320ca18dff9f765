//! Subjects about the system and the CPU, the same on every system.

use galatea_apple::ChipIdentity;
use galatea_kernels::peak;
use galatea_providers::HostCapabilities;
use galatea_tensor::SharedBlock;

use super::line::{SubjectOutcome, SubjectReport};
use super::task::{SelftestEffort, SubjectTask};

/// Bytes of the block of shared memory that is tried.
const BLOCK_BYTES: usize = 1 << 20;

/// Tells the system, its version and build, memory and page size.
pub(super) fn system(_: &SubjectTask) -> SubjectOutcome {
    let memory = galatea::host::machine_memory_bytes();
    let identity = ChipIdentity::detect().ok();
    let release = || {
        let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
        Some(text.trim().to_owned())
    };
    let version = identity.as_ref().and_then(|chip| chip.system.version.clone()).or_else(release);
    let build = identity.as_ref().and_then(|chip| chip.system.build.clone());
    #[allow(clippy::cast_precision_loss, reason = "a number for people")]
    let number = |value: u64| value as f64;
    Ok(SubjectReport::passed()
        .fact("os", std::env::consts::OS.to_owned())
        .fact("arch", std::env::consts::ARCH.to_owned())
        .fact("version", version)
        .fact("build", build)
        .figure("memory_bytes", memory.map(number))
        .figure("page_bytes", identity.map(|chip| number(chip.page_bytes)))
        .checked(
            memory.is_none().then(|| "the system does not tell how much memory it has".to_owned()),
        ))
}

/// Tells the chip's name, cores and instruction sets.
pub(super) fn chip(_: &SubjectTask) -> SubjectOutcome {
    let found = HostCapabilities::detect();
    let cores: u64 = found.cores.iter().map(|kind| kind.cores).sum();
    let features = found.features.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>();
    let [f32, bf16, int8] = found.kernels;
    let none = cores == 0;
    Ok(SubjectReport::passed()
        .fact("chip", found.chip)
        .fact("kernels", format!("FP32 {f32}, BF16 {bf16}, INT8 {int8}"))
        .fact("features", Some(features.join(" ")).filter(|text| !text.is_empty()))
        .fact("figures_of", found.figures_of)
        .figure("cores", cores as f64)
        .checked(none.then(|| "no core was found".to_owned())))
}

/// Measures what the CPU reaches at most.
pub(super) fn peaks(task: &SubjectTask) -> SubjectOutcome {
    let found = HostCapabilities::detect();
    let threads = match task.effort {
        SelftestEffort::Quick => 1,
        SelftestEffort::Full => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let flops = peak::flops_per_ns();
    let bytes = peak::read_bytes_per_ns(threads);
    let wrong = [("Gflop/s", flops), ("GB/s", bytes)].into_iter().find_map(|(unit, rate)| {
        (!(0.01..1e5).contains(&rate)).then(|| format!("{rate} {unit} cannot be right"))
    });
    let name = if threads == 1 { "peak_read_one_thread_gbps" } else { "peak_read_gbps" };
    let mut report = SubjectReport::passed()
        .figure("peak_core_gflops", flops)
        .figure(name, bytes)
        .figure("stated_peak_read_gbps", found.bandwidth_gb_per_s);
    for estimate in &found.peaks {
        report = report.figure(&format!("stated_{}_gflops", estimate.unit), estimate.gflops);
    }
    Ok(report.checked(wrong))
}

/// Writes to shared memory and reads it through a second mapping.
pub(super) fn shared_memory(_: &SubjectTask) -> SubjectOutcome {
    let name = format!("/galatea-self-{}", std::process::id());
    let failed = |error: std::io::Error| error.to_string();
    let mut one = SharedBlock::create(&name, BLOCK_BYTES, 1).map_err(failed)?;
    let other = SharedBlock::open(&name, BLOCK_BYTES, 1);
    SharedBlock::unlink(&name);
    let mut other = other.map_err(failed)?;
    for (byte, value) in one.as_bytes_mut().iter_mut().zip((0..=250_u8).cycle()) {
        *byte = value;
    }
    let same =
        other.as_bytes_mut().iter().zip((0..=250_u8).cycle()).all(|(byte, value)| *byte == value);
    let gone = SharedBlock::open(&name, BLOCK_BYTES, 1).is_err();
    let wrong = match (same, gone) {
        (true, true) => None,
        (false, _) => Some("the second mapping has other bytes".to_owned()),
        (true, false) => Some("a name that was taken away is still there".to_owned()),
    };
    Ok(SubjectReport::passed().figure("bytes", BLOCK_BYTES as f64).checked(wrong))
}

/// Writes a file to the folder of temporary files and reads it again.
pub(super) fn temporary_files(task: &SubjectTask) -> SubjectOutcome {
    let file = task.folder.join("written");
    let bytes: Vec<u8> = (0..=250_u8).cycle().take(BLOCK_BYTES).collect();
    std::fs::write(&file, &bytes).map_err(|error| error.to_string())?;
    let found = std::fs::read(&file).map_err(|error| error.to_string())?;
    let wrong = (found != bytes).then(|| "a file has other bytes than were written".to_owned());
    Ok(SubjectReport::passed().figure("bytes", BLOCK_BYTES as f64).checked(wrong))
}
