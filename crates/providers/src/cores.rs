//! Which cores are for kernels: the fast ones, where a chip has several kinds.
//!
//! On Apple chips sysctl counts them, and the class of a thread's work keeps it there. Linux tells of
//! each processor in files, and a thread's affinity keeps it on those that are given.

use galatea_tensor::OrderedSet;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use galatea_apple::ChipIdentity;
use galatea_apple::qos::ThreadQos;
use galatea_runtime::device_selector::DeviceLanes;

/// Runs shorter than this wait for nobody: that would take them as long as it takes to wake a thread.
const SHORT: Duration = Duration::from_micros(200);

/// The cores of this machine that the process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCores {
    /// How many threads of kernels have a fast core each.
    pub fast: usize,
    /// True if there are slower ones beside them.
    pub mixed: bool,
    /// The fast ones by the system's numbers, where a thread can be kept on them.
    numbers: OrderedSet<usize>,
}

impl HostCores {
    /// This machine's.
    pub fn detect() -> &'static Self {
        static FOUND: OnceLock<HostCores> = OnceLock::new();
        FOUND.get_or_init(|| {
            let all = std::thread::available_parallelism().map_or(1, usize::from);
            match ChipIdentity::detect() {
                Ok(chip) => Self::of_chip(&chip, all),
                Err(_) => Self::of_system(all),
            }
        })
    }

    /// How many runs are under way at a time: each is computed by the thread that brings it, and helped by those of
    /// the pool as far as cores are left.
    pub(crate) fn lanes() -> DeviceLanes {
        DeviceLanes { runs: Self::detect().fast.max(1), short: SHORT }
    }

    /// Returns the cores of a detected chip.
    fn of_chip(chip: &ChipIdentity, all: usize) -> Self {
        let fast = usize::try_from(chip.fastest_cores()).unwrap_or(all).clamp(1, all.max(1));
        Self { fast, mixed: chip.clusters.len() > 1 && fast < all, numbers: OrderedSet::new() }
    }

    #[cfg(target_os = "linux")]
    fn of_system(all: usize) -> Self {
        let allowed = std::fs::read_to_string("/proc/self/status").ok().and_then(|status| {
            let mut lines = status.lines();
            let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            numbers(list.trim())
        });
        let fast = linux::fast(Path::new("/sys/devices"));
        Self::of_numbers(fast, allowed.unwrap_or_default(), all)
    }

    #[cfg(not(target_os = "linux"))]
    fn of_system(all: usize) -> Self {
        Self { fast: all, mixed: false, numbers: OrderedSet::new() }
    }

    /// Returns the cores by CPU number: `fast` are the fast ones if any differ, `allowed` those
    /// that the process may use. A quota may give it fewer than these: `all`.
    #[cfg(target_os = "linux")]
    fn of_numbers(fast: Option<OrderedSet<usize>>, allowed: OrderedSet<usize>, all: usize) -> Self {
        let fast: OrderedSet<usize> =
            fast.unwrap_or_default().intersection(&allowed).copied().collect();
        if fast.is_empty() || fast == allowed {
            return Self { fast: all, mixed: false, numbers: OrderedSet::new() };
        }
        Self { fast: fast.len().min(all), mixed: true, numbers: fast }
    }

    /// Keeps the calling thread on the fast cores, as far as the system can be told.
    pub(crate) fn prefer_fast() {
        // Where the front end is closed the system's own choice stays.
        let _ = ThreadQos::Initiated.set();
        #[cfg(target_os = "linux")]
        linux::keep_on(&Self::detect().numbers);
    }
}

/// A list as the system prints them: `0-3,8`.
#[cfg(any(target_os = "linux", test))]
fn numbers(list: &str) -> Option<OrderedSet<usize>> {
    let mut found = OrderedSet::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        // More than any machine has would be a misreading.
        if first > last || last >= 1 << 16 {
            return None;
        }
        found.extend(first..=last);
    }
    Some(found)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::Path;

    use galatea_tensor::OrderedSet;
    use rustix::thread::{CpuSet, sched_setaffinity};

    use super::numbers;

    /// A processor is fast that has this share of the fastest one's figure: those of a kind differ by
    /// less, those of two kinds by more.
    const SHARE: f64 = 0.75;

    fn read(path: &Path) -> Option<String> {
        std::fs::read_to_string(path).ok()
    }

    /// The fast processors under `devices`, where the system tells them apart.
    pub(super) fn fast(devices: &Path) -> Option<OrderedSet<usize>> {
        // Processors with two kinds of core have a device for each kind.
        if devices.join("cpu_atom/cpus").exists() {
            return read(&devices.join("cpu_core/cpus")).and_then(|list| numbers(&list));
        }
        let cpus = devices.join("system/cpu");
        let present = numbers(&read(&cpus.join("present"))?)?;
        ["cpu_capacity", "cpufreq/cpuinfo_max_freq"].into_iter().find_map(|figure| {
            let of = |&number: &usize| {
                let text = read(&cpus.join(format!("cpu{number}")).join(figure))?;
                Some((number, text.trim().parse::<f64>().ok()?))
            };
            let figures: Vec<(usize, f64)> = present.iter().map(of).collect::<Option<_>>()?;
            let most = figures.iter().map(|(_, figure)| *figure).fold(0.0, f64::max);
            let fast = figures.iter().filter(|(_, figure)| *figure >= SHARE * most);
            let fast: OrderedSet<usize> = fast.map(|(number, _)| *number).collect();
            (fast.len() < present.len()).then_some(fast)
        })
    }

    /// Keeps the calling thread on these processors, if there are any.
    pub(super) fn keep_on(numbers: &OrderedSet<usize>) {
        if numbers.is_empty() {
            return;
        }
        let mut set = CpuSet::new();
        for &number in numbers.iter().filter(|&&number| number < CpuSet::MAX_CPU) {
            set.set(number);
        }
        // A refusal leaves the thread where it may be in any case.
        let _ = sched_setaffinity(None, &set);
    }
}

#[cfg(test)]
mod tests {
    use galatea_apple::RecordedSysctl;

    use super::*;

    #[test]
    fn a_chip_with_two_kinds_has_its_fast_cores_for_kernels() {
        let of = |levels: &[(u64, &str)], all| {
            let mut text = format!(
                "machdep.cpu.brand_string: Some\nhw.memsize: 1\nhw.pagesize: 1\nhw.nperflevels: {}\n",
                levels.len()
            );
            for (level, (cores, name)) in levels.iter().enumerate() {
                for (key, value) in
                    [("physicalcpu", cores.to_string()), ("logicalcpu", cores.to_string())]
                {
                    text += &format!("hw.perflevel{level}.{key}: {value}\n");
                }
                text += &format!("hw.perflevel{level}.name: {name}\n");
            }
            let chip = ChipIdentity::from_source(&RecordedSysctl::parse(&text).unwrap()).unwrap();
            let HostCores { fast, mixed, .. } = HostCores::of_chip(&chip, all);
            (fast, mixed)
        };
        assert_eq!(of(&[(4, "Performance"), (6, "Efficiency")], 10), (4, true));
        assert_eq!(of(&[(8, "Performance")], 8), (8, false));
        // A process that may use fewer.
        assert_eq!(of(&[(4, "Performance"), (4, "Efficiency")], 2), (2, false));
    }

    #[test]
    fn lists_of_processors_are_read_as_the_system_prints_them() {
        assert_eq!(numbers("0-2,5\n"), Some([0, 1, 2, 5].into()));
        assert_eq!(numbers(""), Some(OrderedSet::new()));
        for wrong in ["a", "3-1", "0-99999999"] {
            assert_eq!(numbers(wrong), None, "{wrong}");
        }
    }

    #[cfg(target_os = "linux")]
    mod linux {
        use super::*;

        fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
            let folder = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = folder.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            folder
        }

        #[test]
        fn kinds_of_core_are_told_apart_by_what_the_system_says() {
            let fast = |files: &[(&str, &str)]| super::super::linux::fast(tree(files).path());
            let hybrid = [("cpu_core/cpus", "0-3\n"), ("cpu_atom/cpus", "4-11\n")];
            assert_eq!(fast(&hybrid), Some((0..4).collect()));
            let capacities = [
                ("system/cpu/present", "0-3"),
                ("system/cpu/cpu0/cpu_capacity", "400"),
                ("system/cpu/cpu1/cpu_capacity", "400"),
                ("system/cpu/cpu2/cpu_capacity", "1024"),
                ("system/cpu/cpu3/cpu_capacity", "980"),
            ];
            assert_eq!(fast(&capacities), Some([2, 3].into()));
            let clocks = [
                ("system/cpu/present", "0-1"),
                ("system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "5200000"),
                ("system/cpu/cpu1/cpufreq/cpuinfo_max_freq", "3800000"),
            ];
            assert_eq!(fast(&clocks), Some([0].into()));
            // Favoured cores of one kind, and a system that says nothing.
            let alike = [
                ("system/cpu/present", "0-1"),
                ("system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "5200000"),
                ("system/cpu/cpu1/cpufreq/cpuinfo_max_freq", "4900000"),
            ];
            assert_eq!(fast(&alike), None);
            assert_eq!(fast(&[("system/cpu/present", "0-1")]), None);
        }

        #[test]
        fn only_processors_that_the_process_may_use_count() {
            let of = |fast: &[usize], allowed: &[usize], all| {
                let fast = (!fast.is_empty()).then(|| fast.iter().copied().collect());
                let HostCores { fast, mixed, numbers } =
                    HostCores::of_numbers(fast, allowed.iter().copied().collect(), all);
                (fast, mixed, numbers.into_iter().collect::<Vec<_>>())
            };
            assert_eq!(of(&[0, 1], &[0, 1, 2, 3], 4), (2, true, vec![0, 1]));
            // A quota of one processor; only slow ones; one kind.
            assert_eq!(of(&[0, 1], &[0, 1, 2, 3], 1), (1, true, vec![0, 1]));
            assert_eq!(of(&[0, 1], &[2, 3], 2), (2, false, vec![]));
            assert_eq!(of(&[], &[0, 1], 2), (2, false, vec![]));
        }

        #[test]
        fn this_machine_has_cores() {
            assert!(HostCores::detect().fast >= 1);
            super::super::linux::keep_on(&OrderedSet::new());
        }
    }
}
