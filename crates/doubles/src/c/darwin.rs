//! Declarations of macOS's C library, as far as the workspace and its sensor crate use them. The definitions are beside this
//! file.
//!
//! Types and numbers are Apple's: `mach/*.h`, `sys/sysctl.h`, `sys/qos.h`, `dlfcn.h`. Functions that Linux has under the same name
//! with another meaning are bound to a name of their own.

#![allow(
    non_camel_case_types,
    missing_docs,
    dead_code,
    unreachable_pub,
    reason = "names of another language, as in the crate `libc`"
)]

pub use std::ffi::{c_char, c_int, c_uint, c_void};

pub type size_t = usize;
pub type boolean_t = c_uint;
pub type natural_t = c_uint;
pub type integer_t = c_int;
pub type kern_return_t = c_int;
pub type mach_port_t = c_uint;
pub type host_t = c_uint;
pub type host_flavor_t = c_int;
pub type host_info_t = *mut integer_t;
pub type host_info64_t = *mut integer_t;
pub type processor_flavor_t = c_int;
pub type processor_info_array_t = *mut integer_t;
pub type mach_msg_type_number_t = natural_t;
pub type pthread_t = usize;

pub const KERN_SUCCESS: kern_return_t = 0;
pub const HOST_CPU_LOAD_INFO: host_flavor_t = 3;
pub const HOST_VM_INFO64: host_flavor_t = 4;
pub const PROCESSOR_CPU_LOAD_INFO: processor_flavor_t = 2;
pub const HOST_CPU_LOAD_INFO_COUNT: mach_msg_type_number_t = 4;
pub const HOST_VM_INFO64_COUNT: mach_msg_type_number_t = 104;
pub const CTL_VM: c_int = 2;
pub const CTL_HW: c_int = 6;
pub const VM_SWAPUSAGE: c_int = 5;
pub const HW_MEMSIZE: c_int = 24;
pub const _SC_PAGESIZE: c_int = 29;
pub const RTLD_DEFAULT: *mut c_void = std::ptr::without_provenance_mut(usize::MAX - 1);

const _: () = assert!(size_of::<vm_statistics64>() == 104 * size_of::<integer_t>());

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct host_cpu_load_info {
    /// User, system, idle, nice.
    pub cpu_ticks: [natural_t; 4],
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct xsw_usage {
    pub xsu_total: u64,
    pub xsu_avail: u64,
    pub xsu_used: u64,
    pub xsu_pagesize: u32,
    pub xsu_encrypted: boolean_t,
}

/// Statistics of memory in the form of macOS 26; older kernels write a part of it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct vm_statistics64 {
    pub free_count: natural_t,
    pub active_count: natural_t,
    pub inactive_count: natural_t,
    pub wire_count: natural_t,
    pub zero_fill_count: u64,
    pub reactivations: u64,
    pub pageins: u64,
    pub pageouts: u64,
    pub faults: u64,
    pub cow_faults: u64,
    pub lookups: u64,
    pub hits: u64,
    pub purges: u64,
    pub purgeable_count: natural_t,
    pub speculative_count: natural_t,
    pub decompressions: u64,
    pub compressions: u64,
    pub swapins: u64,
    pub swapouts: u64,
    pub compressor_page_count: natural_t,
    pub throttled_count: natural_t,
    pub external_page_count: natural_t,
    pub internal_page_count: natural_t,
    pub total_uncompressed_pages_in_compressor: u64,
    pub swapped_count: u64,
    pub total_tag_storage_pages: u64,
    pub nontag_pageable_tag_storage_pages: u64,
    pub nontag_wired_tag_storage_pages: u64,
    pub free_tag_storage_pages: u64,
    pub tag_storing_tag_storage_pages: u64,
    pub total_tagged_pages: u64,
    pub resident_tagged_pages: u64,
    pub compressed_tagged_pages: u64,
    pub tagged_compressions: u64,
    pub tagged_decompressions: u64,
    pub compressed_tag_storage_bytes: u64,
    pub speculative_pages_created: u64,
    pub speculative_pages_activated: u64,
    pub swap_count: u64,
    pub empty_tag_storing_tag_storage_pages: u64,
    pub executable_count: u64,
    pub shared_region_count: u64,
    pub boot_stolen_count: u64,
    pub secluded_count: u64,
    pub active_internal_count: u64,
    pub inactive_internal_count: u64,
    pub active_external_count: u64,
    pub inactive_external_count: u64,
    pub purgeable_pageable_count: u64,
    pub purgeable_wired_count: u64,
    pub background_internal_count: u64,
    pub background_external_count: u64,
    pub donated_count: u64,
    pub realtime_count: u64,
    pub max_mem_count: u64,
    pub phantom_ghosts_found: u64,
    pub phantom_ghosts_added: u64,
}

#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum qos_class_t {
    QOS_CLASS_USER_INTERACTIVE = 0x21,
    QOS_CLASS_USER_INITIATED = 0x19,
    QOS_CLASS_DEFAULT = 0x15,
    QOS_CLASS_UTILITY = 0x11,
    QOS_CLASS_BACKGROUND = 0x09,
    QOS_CLASS_UNSPECIFIED = 0x00,
}

unsafe extern "C" {
    pub fn sysctlbyname(
        name: *const c_char,
        oldp: *mut c_void,
        oldlenp: *mut size_t,
        newp: *mut c_void,
        newlen: size_t,
    ) -> c_int;
    #[link_name = "galatea_double_sysctl"]
    pub fn sysctl(
        name: *mut c_int,
        namelen: c_uint,
        oldp: *mut c_void,
        oldlenp: *mut size_t,
        newp: *mut c_void,
        newlen: size_t,
    ) -> c_int;
    #[link_name = "galatea_double_sysconf"]
    pub fn sysconf(name: c_int) -> std::ffi::c_long;
    #[link_name = "galatea_double_dlsym"]
    pub fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *mut c_void;
    pub fn pthread_self() -> pthread_t;
    pub fn pthread_get_qos_class_np(
        thread: pthread_t,
        class: *mut qos_class_t,
        relative: *mut c_int,
    ) -> c_int;
    pub fn pthread_set_qos_class_self_np(class: qos_class_t, relative: c_int) -> c_int;
    pub fn mach_host_self() -> mach_port_t;
    pub fn mach_task_self() -> mach_port_t;
    pub fn host_statistics(
        host: host_t,
        flavor: host_flavor_t,
        info: host_info_t,
        count: *mut mach_msg_type_number_t,
    ) -> kern_return_t;
    pub fn host_statistics64(
        host: host_t,
        flavor: host_flavor_t,
        info: host_info64_t,
        count: *mut mach_msg_type_number_t,
    ) -> kern_return_t;
    pub fn host_processor_info(
        host: host_t,
        flavor: processor_flavor_t,
        processors: *mut natural_t,
        info: *mut processor_info_array_t,
        count: *mut mach_msg_type_number_t,
    ) -> kern_return_t;
    pub fn vm_deallocate(task: mach_port_t, address: usize, size: usize) -> kern_return_t;
}
