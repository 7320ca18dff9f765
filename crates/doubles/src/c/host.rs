//! Doubles of Mach's questions to the host: time of its cores, and pages of its memory.
//!
//! Source: Apple, `mach/mach_host.h`, `mach/host_info.h` and `mach/vm_statistics.h`.

use std::sync::OnceLock;
use std::time::Instant;

use super::darwin::{
    HOST_CPU_LOAD_INFO, HOST_CPU_LOAD_INFO_COUNT, HOST_VM_INFO64, HOST_VM_INFO64_COUNT,
    KERN_SUCCESS, PROCESSOR_CPU_LOAD_INFO, host_flavor_t, integer_t, kern_return_t, mach_port_t,
    vm_statistics64,
};
use super::played::PlayedMac;
use super::refuse;
use super::sysctl::PAGE_BYTES;

/// The host's port, and the task's.
const HOST: mach_port_t = 0x0b03;
const TASK: mach_port_t = 0x0203;

const KERN_FAILURE: kern_return_t = 5;

/// Integers of the oldest form of [`vm_statistics64`], and of the form before macOS 26.
const OLDEST_COUNT: u32 = 24;
const OLDER_COUNT: u32 = 38;

/// Ticks of a second.
const TICKS: u32 = 100;

/// Ticks before a counter begins again, when the process starts.
const LEFT: u32 = 1;

/// Double of `mach_host_self`.
#[unsafe(no_mangle)]
extern "C" fn mach_host_self() -> mach_port_t {
    HOST
}

/// Double of `mach_task_self`.
#[unsafe(no_mangle)]
pub(super) extern "C" fn mach_task_self() -> mach_port_t {
    TASK
}

/// Ticks of one core since its start: user, system, idle, nice. A quarter is work, and the counter of
/// programs begins again soon.
fn core_ticks() -> [u32; 4] {
    static START: OnceLock<Instant> = OnceLock::new();
    let milliseconds = START.get_or_init(Instant::now).elapsed().as_millis();
    // A counter of 32 bits begins again, so bits that are cut are lost in the kernel, too.
    let ticks = u32::try_from((milliseconds * u128::from(TICKS) / 1000) & 0xffff_ffff).unwrap_or(0);
    let user = (u32::MAX - LEFT).wrapping_add(ticks / 8);
    [user, 1000 + ticks / 16, 100_000_u32.wrapping_add(ticks / 4 * 3), ticks / 16]
}

/// Pages of a machine with so much memory.
fn pages(mac: &PlayedMac) -> vm_statistics64 {
    let all = u32::try_from((mac.memory_gib << 30) / PAGE_BYTES).unwrap_or(u32::MAX);
    vm_statistics64 {
        free_count: all / 4,
        active_count: all / 4,
        inactive_count: all / 4,
        wire_count: all / 8,
        purgeable_count: all / 64,
        compressor_page_count: all / 32,
        external_page_count: all / 8,
        internal_page_count: all / 4,
        // What a program that takes the wrong place would read.
        zero_fill_count: u64::MAX,
        tagged_compressions: u64::MAX,
        ..vm_statistics64::default()
    }
}

/// Checks what every question has in common; its error is the kernel's.
///
/// # Safety
/// `count` is null or points to a number.
unsafe fn room(
    function: &str,
    host: mach_port_t,
    info: *mut integer_t,
    count: *mut u32,
    least: u32,
) -> Result<u32, kern_return_t> {
    if host != HOST {
        refuse(function, &format!("{host} is not the host's port"));
    }
    if info.is_null() || count.is_null() {
        refuse(function, "there is no place for the answer");
    }
    // SAFETY: the caller gives a number.
    let room = unsafe { *count };
    let fails = room < least || PlayedMac::here().refuses(function);
    if fails { Err(KERN_FAILURE) } else { Ok(room) }
}

/// Double of `host_statistics`.
///
/// # Safety
/// `info` has as many integers as `count` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn host_statistics(
    host: mach_port_t,
    flavor: host_flavor_t,
    info: *mut integer_t,
    count: *mut u32,
) -> kern_return_t {
    const NAME: &str = "host_statistics";
    if flavor != HOST_CPU_LOAD_INFO {
        refuse(NAME, &format!("no answer to question {flavor} is known"));
    }
    // SAFETY: the caller gives a number.
    if let Err(error) = unsafe { room(NAME, host, info, count, HOST_CPU_LOAD_INFO_COUNT) } {
        return error;
    }
    let cores = PlayedMac::here().cores();
    let ticks = core_ticks().map(|of_core| of_core.wrapping_mul(cores));
    // SAFETY: there is room for four integers.
    unsafe { std::ptr::copy_nonoverlapping(ticks.as_ptr(), info.cast(), ticks.len()) };
    // SAFETY: the caller gives a number.
    unsafe { *count = HOST_CPU_LOAD_INFO_COUNT };
    KERN_SUCCESS
}

/// Double of `host_statistics64`. It writes as much as the macOS that is played knows, and no more than asked for.
///
/// # Safety
/// `info` has as many integers as `count` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn host_statistics64(
    host: mach_port_t,
    flavor: host_flavor_t,
    info: *mut integer_t,
    count: *mut u32,
) -> kern_return_t {
    const NAME: &str = "host_statistics64";
    if flavor != HOST_VM_INFO64 {
        refuse(NAME, &format!("no answer to question {flavor} is known"));
    }
    // SAFETY: the caller gives a number.
    let room = match unsafe { room(NAME, host, info, count, OLDEST_COUNT) } {
        Ok(room) => room,
        Err(error) => return error,
    };
    let mac = PlayedMac::here();
    let known = if mac.version.major < 26 { OLDER_COUNT } else { HOST_VM_INFO64_COUNT };
    let written = room.min(known);
    let found = pages(&mac);
    let from = (&raw const found).cast::<integer_t>();
    // SAFETY: the structure has that many integers, and so has the caller's place.
    unsafe { std::ptr::copy_nonoverlapping(from, info, written as usize) };
    // SAFETY: the caller gives a number.
    unsafe { *count = written };
    KERN_SUCCESS
}

/// Double of `host_processor_info`.
///
/// # Safety
/// The three places are there to be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn host_processor_info(
    host: mach_port_t,
    flavor: i32,
    processors: *mut u32,
    info: *mut *mut integer_t,
    count: *mut u32,
) -> kern_return_t {
    const NAME: &str = "host_processor_info";
    if host != HOST || flavor != PROCESSOR_CPU_LOAD_INFO {
        refuse(NAME, "expected the host's port and a question about the load");
    }
    let mac = PlayedMac::here();
    if mac.refuses(NAME) {
        return KERN_FAILURE;
    }
    let all: Vec<u32> = (0..mac.cores()).flat_map(|_| core_ticks()).collect();
    // SAFETY: the caller gives the place.
    unsafe { *processors = mac.cores() };
    // SAFETY: as above.
    unsafe { *count = mac.cores() * 4 };
    let given = Box::into_raw(all.into_boxed_slice());
    // SAFETY: as above.
    unsafe { *info = given.cast() };
    KERN_SUCCESS
}

/// Double of `vm_deallocate`, for what `host_processor_info` gave.
///
/// # Safety
/// The memory is that.
#[unsafe(no_mangle)]
unsafe extern "C" fn vm_deallocate(
    task: mach_port_t,
    address: usize,
    size: usize,
) -> kern_return_t {
    if task != TASK || address == 0 || !size.is_multiple_of(16) {
        refuse("vm_deallocate", "expected the task's port and whole cores");
    }
    let given = std::ptr::with_exposed_provenance_mut::<u32>(address);
    let given = std::ptr::slice_from_raw_parts_mut(given, size / 4);
    // SAFETY: the caller gives back what it was given.
    drop(unsafe { Box::from_raw(given) });
    KERN_SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_writes_what_it_knows_and_no_more_than_there_is_room_for() {
        let written = |mac: &str, room: u32| {
            let mut info = [-1; HOST_VM_INFO64_COUNT as usize + 1];
            let mut count = room;
            let call = || {
                // SAFETY: the place has more integers than it says.
                unsafe {
                    host_statistics64(HOST, HOST_VM_INFO64, info.as_mut_ptr(), &raw mut count)
                }
            };
            let status = PlayedMac::parse(mac).unwrap().play(call);
            assert!(info[count as usize..].iter().all(|value| *value == -1) || status != 0);
            (status, count)
        };
        assert_eq!(written("m1-16gb,macos=13.0", HOST_VM_INFO64_COUNT), (0, OLDER_COUNT));
        assert_eq!(written("m1-16gb,macos=26.0", HOST_VM_INFO64_COUNT), (0, HOST_VM_INFO64_COUNT));
        assert_eq!(written("m1-16gb,macos=26.0", 30), (0, 30));
        assert_eq!(written("m1-16gb", 3), (KERN_FAILURE, 3));
        assert_eq!(written("m1-16gb,refused=host_statistics64", 104), (KERN_FAILURE, 104));
    }
}
