//! Load of a Mac: time that its cores were busy, and memory in use.
//!
//! Source: Apple, `mach/host_info.h` and `mach/vm_statistics.h`.

use crate::Unavailable;

/// Time of all cores since the start, in ticks. The kernel's counters begin again at 0 after 2³² ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoreTicks {
    /// Ticks in programs.
    pub user: u32,
    /// Ticks in the kernel.
    pub system: u32,
    /// Ticks without work.
    pub idle: u32,
    /// Ticks in programs of low priority.
    pub nice: u32,
}

impl CoreTicks {
    /// Reads the kernel's counters.
    ///
    /// # Errors
    /// Returns [`Unavailable`] off macOS, and where the kernel refuses.
    pub fn now() -> Result<Self, Unavailable> {
        system::ticks()
    }

    /// Returns the ticks from an earlier reading to this one.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.wrapping_sub(earlier.user),
            system: self.system.wrapping_sub(earlier.system),
            idle: self.idle.wrapping_sub(earlier.idle),
            nice: self.nice.wrapping_sub(earlier.nice),
        }
    }

    /// Returns the ticks with work.
    #[must_use]
    pub fn busy(self) -> u64 {
        u64::from(self.user) + u64::from(self.system) + u64::from(self.nice)
    }

    /// Returns the ticks with and without work.
    #[must_use]
    pub fn total(self) -> u64 {
        self.busy() + u64::from(self.idle)
    }
}

/// Pages of memory that cannot be had at once, by what holds them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsedPages {
    /// Pages of programs, without a file behind them.
    pub internal: u32,
    /// Pages among them that their programs let the kernel take.
    pub purgeable: u32,
    /// Pages that must stay where they are, such as the kernel's and those of GPUs.
    pub wired: u32,
    /// Pages that hold compressed ones.
    pub compressor: u32,
}

impl UsedPages {
    /// Reads the kernel's counts.
    ///
    /// # Errors
    /// Returns [`Unavailable`] off macOS, and where the kernel refuses.
    pub fn now() -> Result<Self, Unavailable> {
        system::pages()
    }

    /// Returns the bytes in use, as Activity Monitor counts them: those of programs, of the kernel, and of
    /// compressed pages. Files that the kernel keeps in memory are not used, since it can drop them.
    #[must_use]
    pub fn bytes(self, page_bytes: u64) -> u64 {
        let programs = u64::from(self.internal.saturating_sub(self.purgeable));
        let pages = programs + u64::from(self.wired) + u64::from(self.compressor);
        pages.saturating_mul(page_bytes)
    }
}

#[cfg(not(any(target_os = "macos", apple_doubles)))]
mod system {
    use super::{CoreTicks, UsedPages};
    use crate::Unavailable;

    pub(super) fn ticks() -> Result<CoreTicks, Unavailable> {
        Err(Unavailable::off_macos("time of cores"))
    }

    pub(super) fn pages() -> Result<UsedPages, Unavailable> {
        Err(Unavailable::off_macos("memory in use"))
    }
}

#[cfg(any(target_os = "macos", apple_doubles))]
mod system {
    use std::mem::{MaybeUninit, size_of};
    use std::sync::OnceLock;

    use super::{CoreTicks, UsedPages};
    use crate::{Unavailable, darwin};

    /// Returns this host's port, which is asked for once: each answer is another reference to it.
    fn host() -> darwin::mach_port_t {
        static HOST: OnceLock<darwin::mach_port_t> = OnceLock::new();
        #[allow(deprecated, reason = "another crate would be needed for one function")]
        // SAFETY: it takes nothing and gives a port.
        *HOST.get_or_init(|| unsafe { darwin::mach_host_self() })
    }

    fn refused(what: &'static str, code: darwin::kern_return_t) -> Unavailable {
        Unavailable::new(what, format!("the kernel answers {code}"))
    }

    pub(super) fn ticks() -> Result<CoreTicks, Unavailable> {
        let mut found = MaybeUninit::<darwin::host_cpu_load_info>::zeroed();
        let mut count = darwin::HOST_CPU_LOAD_INFO_COUNT;
        // SAFETY: the place has as many integers as `count` says, and the kernel writes no more.
        let code = unsafe {
            darwin::host_statistics(
                host(),
                darwin::HOST_CPU_LOAD_INFO,
                found.as_mut_ptr().cast(),
                &raw mut count,
            )
        };
        if code != darwin::KERN_SUCCESS {
            return Err(refused("time of cores", code));
        }
        // SAFETY: every pattern of bits is a value, and all were zero at first.
        let [user, system, idle, nice] = unsafe { found.assume_init() }.cpu_ticks;
        Ok(CoreTicks { user, system, idle, nice })
    }

    pub(super) fn pages() -> Result<UsedPages, Unavailable> {
        let mut found = MaybeUninit::<darwin::vm_statistics64>::zeroed();
        let integers = size_of::<darwin::vm_statistics64>() / size_of::<darwin::integer_t>();
        let mut count = u32::try_from(integers).unwrap_or(0);
        // SAFETY: the place has as many integers as `count` says, and the kernel writes no more; an older
        // one writes fewer.
        let code = unsafe {
            darwin::host_statistics64(
                host(),
                darwin::HOST_VM_INFO64,
                found.as_mut_ptr().cast(),
                &raw mut count,
            )
        };
        if code != darwin::KERN_SUCCESS {
            return Err(refused("memory in use", code));
        }
        // SAFETY: every pattern of bits is a value, and all were zero at first.
        let found = unsafe { found.assume_init() };
        Ok(UsedPages {
            internal: found.internal_page_count,
            purgeable: found.purgeable_count,
            wired: found.wire_count,
            compressor: found.compressor_page_count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_between_two_readings_are_right_where_counters_begin_again() {
        let before = CoreTicks { user: u32::MAX - 9, system: 5, idle: 100, nice: 0 };
        let after = CoreTicks { user: 20, system: 15, idle: 160, nice: 1 };
        let between = after.since(before);
        assert_eq!(between, CoreTicks { user: 30, system: 10, idle: 60, nice: 1 });
        assert_eq!((between.busy(), between.total()), (41, 101));
    }

    #[test]
    fn memory_in_use_is_that_of_programs_the_kernel_and_what_is_compressed() {
        let pages = UsedPages { internal: 10, purgeable: 3, wired: 5, compressor: 2 };
        assert_eq!(pages.bytes(16_384), 14 * 16_384);
        let odd = UsedPages { internal: 1, purgeable: 3, ..UsedPages::default() };
        assert_eq!(odd.bytes(16_384), 0);
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_the_load_is_unavailable() {
        assert!(CoreTicks::now().is_err() && UsedPages::now().is_err());
    }

    #[cfg(any(target_os = "macos", apple_doubles))]
    #[test]
    fn a_mac_has_a_load() {
        assert!(CoreTicks::now().unwrap().total() > 0);
        assert!(UsedPages::now().unwrap().bytes(16_384) > 0);
    }
}
