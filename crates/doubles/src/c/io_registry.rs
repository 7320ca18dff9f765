//! Doubles of IOKit's registry, as far as the sensor crate looks into it.
//!
//! Source: Apple, `IOKitLib.h`; the crate `macmon`, which says what entries Macs have.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, PoisonError};

use super::core_foundation::{CfContents, CfReference};
use super::played::{EnergyCounters, PlayedMac};
use super::refuse;
use super::smc;

/// Frequencies of the slow cores, of the fast ones and of the GPU (whose first state is off), in MHz.
const FREQUENCIES: [&[u32]; 3] = [&[600, 1300, 2064], &[600, 2000, 3204], &[0, 400, 900, 1278]];

/// Keys of the tables of [`FREQUENCIES`].
const TABLES: [&str; 3] = ["voltage-states1-sram", "voltage-states5-sram", "voltage-states9"];

const NOT_FOUND: i32 = 0xe000_02f0_u32.cast_signed();
const NOT_PERMITTED: i32 = 0xe000_02e2_u32.cast_signed();

/// Object of the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RegistryEntry {
    Gpu,
    PowerManager,
    SmcKeys,
}

impl RegistryEntry {
    fn name(self) -> &'static str {
        match self {
            Self::Gpu => "AGXAcceleratorG13G",
            Self::PowerManager => "pmgr",
            Self::SmcKeys => "AppleSMCKeysEndpoint",
        }
    }

    /// The entries of a class. A virtual machine has none of those that are known here.
    fn of_class(mac: &PlayedMac, class: &str) -> Vec<Self> {
        let found = match class {
            "AGXAccelerator" => Self::Gpu,
            "AppleARMIODevice" => Self::PowerManager,
            "AppleSMC" => Self::SmcKeys,
            _ => return Vec::new(),
        };
        let there = mac.counters != EnergyCounters::Absent && !mac.lacks(class);
        there.then_some(found).into_iter().collect()
    }

    fn properties(self, mac: &PlayedMac) -> CfReference {
        let pairs = match self {
            Self::Gpu => {
                let cores = CfReference::new(CfContents::Number(mac.chip.gpu_cores.into()));
                vec![("gpu-core-count", cores)]
            }
            Self::PowerManager => {
                // The older chips count in Hz, and the GPU's in all of them.
                let old = ["M1", "M2", "M3"].iter().any(|name| mac.chip.name.contains(name));
                let table = |(key, of): (&'static str, &[u32])| {
                    let unit = if old || key == TABLES[2] { 1_000_000 } else { 1_000 };
                    let states = of.iter().flat_map(|mhz| [mhz * unit, 700]);
                    let bytes = states.flat_map(u32::to_le_bytes).collect();
                    (key, CfReference::new(CfContents::Data(bytes)))
                };
                TABLES.into_iter().zip(FREQUENCIES).map(table).collect()
            }
            Self::SmcKeys => Vec::new(),
        };
        CfReference::dictionary(&pairs)
    }
}

/// Object that a number of IOKit stands for.
#[derive(Debug)]
enum RegistryObject {
    /// Entries that are still to be given.
    Iterator(Vec<RegistryEntry>),
    Entry(RegistryEntry),
    /// A connection to the entry of the SMC.
    Connection,
}

/// Objects by their numbers.
static OBJECTS: Mutex<BTreeMap<u32, RegistryObject>> = Mutex::new(BTreeMap::new());

fn objects<R>(work: impl FnOnce(&mut BTreeMap<u32, RegistryObject>) -> R) -> R {
    work(&mut OBJECTS.lock().unwrap_or_else(PoisonError::into_inner))
}

fn added(object: RegistryObject) -> u32 {
    objects(|all| {
        let number = all.last_key_value().map_or(0x1003, |(last, _)| last + 0x100);
        all.insert(number, object);
        number
    })
}

fn entry(function: &str, number: u32) -> RegistryEntry {
    objects(|all| match all.get(&number) {
        Some(RegistryObject::Entry(entry)) => *entry,
        other => refuse(function, &format!("{number:#x} is no entry but {other:?}")),
    })
}

/// Double of `IOServiceMatching`.
///
/// # Safety
/// The name ends with a zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn IOServiceMatching(name: *const c_char) -> *const c_void {
    if name.is_null() {
        refuse("IOServiceMatching", "there is no name");
    }
    // SAFETY: the caller gives a name that ends with a zero.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    CfReference::dictionary(&[("IOProviderClass", CfReference::text(&name))]).pointer()
}

/// Double of `IOServiceGetMatchingServices`, which takes the dictionary over.
///
/// # Safety
/// `found` is there to be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn IOServiceGetMatchingServices(
    _port: u32,
    matching: *const c_void,
    found: *mut u32,
) -> i32 {
    const NAME: &str = "IOServiceGetMatchingServices";
    let matching = CfReference::given(NAME, matching);
    let key = CfContents::Text("IOProviderClass".to_owned());
    let class = matching.value(NAME, &key).map(|class| class.as_text(NAME));
    matching.release(NAME);
    let mac = PlayedMac::here();
    if mac.refuses(NAME) {
        return NOT_FOUND;
    }
    let entries = RegistryEntry::of_class(&mac, &class.unwrap_or_default());
    // SAFETY: the caller gives the place.
    unsafe { *found = added(RegistryObject::Iterator(entries)) };
    0
}

/// Double of `IOIteratorNext`: 0 at the end.
#[unsafe(no_mangle)]
extern "C" fn IOIteratorNext(iterator: u32) -> u32 {
    let next = objects(|all| match all.get_mut(&iterator) {
        Some(RegistryObject::Iterator(entries)) => entries.pop(),
        other => refuse("IOIteratorNext", &format!("{iterator:#x} is {other:?}")),
    });
    next.map_or(0, |entry| added(RegistryObject::Entry(entry)))
}

/// Double of `IORegistryEntryGetName`.
///
/// # Safety
/// `place` has 128 bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn IORegistryEntryGetName(number: u32, place: *mut c_char) -> i32 {
    let name = entry("IORegistryEntryGetName", number).name();
    for (at, byte) in name.bytes().chain([0]).enumerate() {
        // SAFETY: the names here are shorter than the place.
        unsafe { place.cast::<u8>().add(at).write(byte) };
    }
    0
}

/// Double of `IORegistryEntryGetRegistryEntryID`.
///
/// # Safety
/// `id` is there to be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn IORegistryEntryGetRegistryEntryID(number: u32, id: *mut u64) -> i32 {
    entry("IORegistryEntryGetRegistryEntryID", number);
    // SAFETY: the caller gives the place.
    unsafe { *id = u64::from(number) << 8 };
    0
}

/// Double of `IORegistryEntryCreateCFProperties`.
///
/// # Safety
/// `place` is there to be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn IORegistryEntryCreateCFProperties(
    number: u32,
    place: *mut *const c_void,
    _allocator: *const c_void,
    _options: u32,
) -> i32 {
    const NAME: &str = "IORegistryEntryCreateCFProperties";
    let found = entry(NAME, number);
    let mac = PlayedMac::here();
    if mac.refuses(NAME) {
        return NOT_PERMITTED;
    }
    // SAFETY: the caller gives the place.
    unsafe { *place = found.properties(&mac).pointer() };
    0
}

/// Double of `IOObjectRelease`.
#[unsafe(no_mangle)]
extern "C" fn IOObjectRelease(number: u32) -> u32 {
    if objects(|all| all.remove(&number)).is_none() {
        refuse("IOObjectRelease", &format!("{number:#x} is no live object"));
    }
    0
}

/// Double of `IOServiceOpen`, of the SMC.
///
/// # Safety
/// `connection` is there to be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn IOServiceOpen(
    service: u32,
    task: u32,
    _kind: u32,
    connection: *mut u32,
) -> i32 {
    const NAME: &str = "IOServiceOpen";
    if entry(NAME, service) != RegistryEntry::SmcKeys || task != super::host::mach_task_self() {
        refuse(NAME, "expected the entry of the SMC and this task");
    }
    if PlayedMac::here().refuses(NAME) {
        return NOT_PERMITTED;
    }
    // SAFETY: the caller gives the place.
    unsafe { *connection = added(RegistryObject::Connection) };
    0
}

/// Double of `IOServiceClose`.
#[unsafe(no_mangle)]
extern "C" fn IOServiceClose(connection: u32) -> i32 {
    match objects(|all| all.remove(&connection)) {
        Some(RegistryObject::Connection) => 0,
        other => refuse("IOServiceClose", &format!("{connection:#x} is {other:?}")),
    }
}

/// Double of `IOConnectCallStructMethod`, of the SMC.
///
/// # Safety
/// Both structures have the sizes that are said.
#[unsafe(no_mangle)]
unsafe extern "C" fn IOConnectCallStructMethod(
    connection: u32,
    selector: u32,
    input: *const c_void,
    input_bytes: usize,
    output: *mut c_void,
    output_bytes: *mut usize,
) -> i32 {
    const NAME: &str = "IOConnectCallStructMethod";
    let open = objects(|all| matches!(all.get(&connection), Some(RegistryObject::Connection)));
    // SAFETY: the caller gives the size.
    let room = unsafe { *output_bytes };
    let whole = [input_bytes, room].iter().all(|&bytes| bytes == size_of::<smc::KeyRequest>());
    if !open || selector != 2 || !whole || input.is_null() || output.is_null() {
        refuse(NAME, &format!("{connection:#x}, selector {selector}, {input_bytes} bytes"));
    }
    // SAFETY: the caller gives a request of that size.
    let request = unsafe { input.cast::<smc::KeyRequest>().read_unaligned() };
    let answer = request.answered(&PlayedMac::here());
    // SAFETY: the caller's place has that size.
    unsafe { output.cast::<smc::KeyRequest>().write_unaligned(answer) };
    0
}
