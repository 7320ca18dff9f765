//! Name of this machine in records of measurements.

use galatea_apple::ChipIdentity;
use galatea_kernels::Isa;

/// The chip, its instruction set and cores, and the build of the operating system: times of another
/// one say nothing here.
#[must_use]
pub fn machine() -> String {
    let (chip, system) = match ChipIdentity::detect() {
        Ok(chip) => (Some(chip.name), chip.system.build),
        Err(_) => (linux_chip(), read("/proc/sys/kernel/osrelease")),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let known = |part: Option<String>| part.unwrap_or_else(|| "unknown".to_owned());
    let chip = known(chip);
    let system = known(system);
    format!("{chip}, {}, {cores} cores, {system}", Isa::detect().name())
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The name of the first processor in Linux' list.
pub(crate) fn linux_chip() -> Option<String> {
    let text = read("/proc/cpuinfo")?;
    let named = |line: &str| {
        let (key, value) = line.split_once(':')?;
        let is_name = ["model name", "CPU part"].contains(&key.trim());
        is_name.then(|| value.trim().to_owned())
    };
    text.lines().find_map(named)
}
