//! Doubles of `sysctlbyname`, `sysctl` and `sysconf`.
//!
//! Source: Apple, `sysctlbyname(3)` and "Determining Instruction Set Characteristics".

use std::ffi::CStr;

use super::darwin::{
    _SC_PAGESIZE, CTL_HW, CTL_VM, HW_MEMSIZE, VM_SWAPUSAGE, c_char, c_int, c_uint, c_void,
    xsw_usage,
};
use super::played::{EnergyCounters, PlayedMac};
use super::refuse;

/// Bytes of a page.
pub(super) const PAGE_BYTES: u64 = 16_384;

/// Numbers of errors, as macOS has them.
const ENOENT: c_int = 2;
const ENOMEM: c_int = 12;
const EFAULT: c_int = 14;

/// A value of the kernel.
#[derive(Debug, Clone, PartialEq)]
enum KernelValue {
    Text(String),
    Wide(u64),
    Narrow(u32),
}

impl KernelValue {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes().into_iter().chain([0]).collect(),
            Self::Wide(value) => value.to_ne_bytes().to_vec(),
            Self::Narrow(value) => value.to_ne_bytes().to_vec(),
        }
    }
}

impl PlayedMac {
    /// Returns the bytes of a value, or nothing where this Mac has none of that name.
    fn value(&self, key: &str) -> Option<Vec<u8>> {
        if self.lacks(key) {
            return None;
        }
        let mut bytes = self.kernel_value(key)?.bytes();
        if let Some(&size) = self.sizes.get(key) {
            bytes.resize(size, 0);
        }
        Some(bytes)
    }

    fn kernel_value(&self, key: &str) -> Option<KernelValue> {
        use KernelValue::{Narrow, Text, Wide};
        let fact = match key {
            "machdep.cpu.brand_string" => Text(self.chip.name.clone()),
            "hw.model" => Text("Double1,1".to_owned()),
            "kern.hostname" => Text("double.local".to_owned()),
            "kern.osproductversion" => {
                Text(format!("{}.{}", self.version.major, self.version.minor))
            }
            "kern.osversion" => Text(self.build()),
            "hw.memsize" => Wide(self.memory_gib << 30),
            "hw.pagesize" => Wide(PAGE_BYTES),
            "hw.ncpu" | "hw.physicalcpu" | "hw.logicalcpu" => Narrow(self.cores()),
            "hw.nperflevels" => Narrow(u32::try_from(self.chip.kinds.len()).ok()?),
            "kern.memorystatus_vm_pressure_level" => Narrow(1),
            "kern.hv_vmm_present" => Narrow(u32::from(self.counters == EnergyCounters::Absent)),
            _ if key.starts_with("hw.perflevel") => return self.level_value(key),
            _ => return self.feature(key),
        };
        Some(fact)
    }

    /// A build that is told apart by its version.
    fn build(&self) -> String {
        // The number of Darwin: 22 for macOS 13, and one more each year but for the leap of names to 26.
        let darwin = match self.version.major {
            major @ ..=15 => major + 9,
            major => major - 1,
        };
        let letter = ["A", "B", "C", "D", "E", "F", "G"][self.version.minor.min(6) as usize];
        format!("{darwin}{letter}100")
    }

    /// A value of a kind of core.
    fn level_value(&self, key: &str) -> Option<KernelValue> {
        use KernelValue::{Narrow, Text};
        let (level, field) = key.strip_prefix("hw.perflevel")?.split_once('.')?;
        let kind = self.chip.kinds.get(level.parse::<usize>().ok()?)?;
        Some(match field {
            "name" => Text(kind.name.to_owned()),
            "physicalcpu" | "logicalcpu" => Narrow(kind.cores),
            "l1icachesize" => Narrow(kind.instruction_bytes),
            "l1dcachesize" => Narrow(kind.data_bytes),
            "l2cachesize" => Narrow(kind.second_bytes),
            "cpusperl2" => Narrow(kind.cores.min(6)),
            _ => return None,
        })
    }

    /// A part of the instruction set. Kernels do not know the names of what is younger than they are.
    fn feature(&self, key: &str) -> Option<KernelValue> {
        let name = key.strip_prefix("hw.optional.arm.")?;
        let has = |feature: &str| u32::from(self.chip.has(feature));
        let young = name.contains("SME") || name.contains("sme");
        if young && self.version.major < 15 {
            return None;
        }
        Some(KernelValue::Narrow(match name {
            "FEAT_FP16" | "FEAT_FHM" | "FEAT_DotProd" => 1,
            "FEAT_BF16" => has("bf16"),
            "FEAT_I8MM" => has("i8mm"),
            "FEAT_SME" | "SME_F32F32" | "SME_F16F32" | "SME_I8I32" | "SME_BI32I32"
            | "FEAT_SME_I16I64" | "FEAT_SME_F64F64" => has("sme"),
            "FEAT_SME2" => has("sme2"),
            "sme_max_svl_b" => has("sme") * 64,
            _ => return None,
        }))
    }
}

/// Sets the number of the error of the calling thread.
fn fail(error: c_int) -> c_int {
    unsafe extern "C" {
        fn __errno_location() -> *mut c_int;
    }
    // SAFETY: it takes nothing.
    let place = unsafe { __errno_location() };
    // SAFETY: the place is the calling thread's own.
    unsafe { *place = error };
    -1
}

/// Hands out the bytes of a value, as `sysctl(3)` says.
///
/// # Safety
/// `old` is null or has as many bytes as `length` says.
unsafe fn answer(function: &str, bytes: &[u8], old: *mut c_void, length: *mut usize) -> c_int {
    if length.is_null() {
        if old.is_null() {
            return 0;
        }
        refuse(function, "there is a place for the value, but not for its length");
    }
    // SAFETY: the caller gives a length.
    let room = unsafe { *length };
    if old.is_null() {
        // SAFETY: as above.
        unsafe { *length = bytes.len() };
        return 0;
    }
    let count = room.min(bytes.len());
    // SAFETY: the caller has that much room.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), old.cast(), count) };
    // SAFETY: as above.
    unsafe { *length = count };
    if count < bytes.len() { fail(ENOMEM) } else { 0 }
}

/// Double of `sysctlbyname`.
///
/// # Safety
/// The pointers are what `sysctlbyname(3)` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn sysctlbyname(
    name: *const c_char,
    old: *mut c_void,
    length: *mut usize,
    new: *mut c_void,
    new_length: usize,
) -> c_int {
    const NAME: &str = "sysctlbyname";
    if name.is_null() {
        return fail(EFAULT);
    }
    if !new.is_null() || new_length != 0 {
        refuse(NAME, "a value of the kernel is set");
    }
    // SAFETY: the caller gives a name that ends with a zero.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let Some(bytes) = PlayedMac::here().value(&name) else { return fail(ENOENT) };
    // SAFETY: the caller gives the room that it says.
    unsafe { answer(NAME, &bytes, old, length) }
}

/// Double of `sysctl`, for the two values that the sensor crate reads by their numbers.
///
/// # Safety
/// The pointers are what `sysctl(3)` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn galatea_double_sysctl(
    name: *mut c_int,
    count: c_uint,
    old: *mut c_void,
    length: *mut usize,
    new: *mut c_void,
    new_length: usize,
) -> c_int {
    const NAME: &str = "sysctl";
    if name.is_null() || count != 2 || !new.is_null() || new_length != 0 {
        refuse(NAME, "expected a name of two numbers, and nothing to set");
    }
    // SAFETY: the caller says that there are two.
    let numbers = unsafe { std::slice::from_raw_parts(name, 2) };
    let bytes = match numbers {
        [CTL_HW, HW_MEMSIZE] => PlayedMac::here().value("hw.memsize"),
        [CTL_VM, VM_SWAPUSAGE] => Some(vec![0; size_of::<xsw_usage>()]),
        _ => refuse(NAME, &format!("no value {numbers:?} is known")),
    };
    let Some(bytes) = bytes else { return fail(ENOENT) };
    // SAFETY: the caller gives the room that it says.
    unsafe { answer(NAME, &bytes, old, length) }
}

/// Double of `sysconf`, whose numbers are others than Linux's.
#[unsafe(no_mangle)]
extern "C" fn galatea_double_sysconf(name: c_int) -> std::ffi::c_long {
    match name {
        _SC_PAGESIZE => PAGE_BYTES.cast_signed(),
        _ => refuse("sysconf", &format!("no value {name} is known")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(text: &str) -> PlayedMac {
        PlayedMac::parse(text).unwrap()
    }

    #[test]
    fn values_have_the_sizes_that_the_kernel_gives_them() {
        let mac = mac("m1-16gb");
        assert_eq!(mac.value("hw.memsize").unwrap(), (16_u64 << 30).to_ne_bytes());
        assert_eq!(mac.value("hw.nperflevels").unwrap(), 2_u32.to_ne_bytes());
        assert_eq!(mac.value("hw.perflevel1.name").unwrap(), b"Efficiency\0");
        assert_eq!(mac.value("hw.perflevel2.physicalcpu"), None);
        assert_eq!(mac.value("hw.odd"), None);
    }

    #[test]
    fn builds_and_features_are_those_of_the_version() {
        let on = |version: &str| mac(&format!("m4-16gb,macos={version}"));
        let build = |version: &str| on(version).value("kern.osversion").unwrap();
        let builds = ["13.0", "13.3", "15.0", "26.0", "27.0"].map(build);
        assert_eq!(builds, [b"22A100\0", b"22D100\0", b"24A100\0", b"25A100\0", b"26A100\0"]);
        let sme = |version: &str| on(version).value("hw.optional.arm.FEAT_SME");
        assert_eq!((sme("13.0"), sme("15.0")), (None, Some(1_u32.to_ne_bytes().to_vec())));
    }

    #[test]
    fn a_short_place_gets_what_fits_and_an_error() {
        let mut place = [7_u8; 4];
        let mut length = 4;
        // SAFETY: the name is terminated and the place has four bytes.
        let status = unsafe {
            sysctlbyname(
                c"hw.memsize".as_ptr(),
                place.as_mut_ptr().cast(),
                &raw mut length,
                std::ptr::null_mut(),
                0,
            )
        };
        assert_eq!((status, length), (-1, 4));
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(ENOMEM));
    }
}
