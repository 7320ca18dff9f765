//! Doubles of the functions behind `os/signpost.h`, for a tool that a test plays with [`SignpostRecording`].

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, c_char, c_void};
use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::refuse;

/// Variable with the file of a tool that records a process from its start: a line for each begin and end.
pub const RECORD_VARIABLE: &str = "GALATEA_DOUBLE_SIGNPOSTS";

const EMIT: &str = "_os_signpost_emit_with_name_impl";
/// Category of logs that are off unless a tool records.
const DYNAMIC_TRACING: &str = "DynamicTracing";
const BEGIN: u8 = 1;
const END: u8 = 2;
/// Kind and privacy of the argument of `%{public}s`.
const PUBLIC_TEXT: u8 = 0x22;

unsafe extern "C" {
    /// Header of the program.
    static __dso_handle: u8;
    /// Begin of the section with texts of the log.
    #[link_name = "__start_oslogstring"]
    static SECTION_BEGIN: u8;
    /// End of that section.
    #[link_name = "__stop_oslogstring"]
    static SECTION_END: u8;
}

/// A text that makes the section be there in every program.
#[used]
#[unsafe(link_section = "oslogstring")]
static PRESENT: [u8; 1] = [0];

/// An interval that a tool has recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedInterval {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Its number.
    pub id: u64,
    /// True once it has ended.
    pub ended: bool,
}

/// A log.
struct PlayedLog {
    dynamic: bool,
}

/// State of all logs.
struct SignpostState {
    /// Logs by their addresses.
    logs: BTreeMap<usize, PlayedLog>,
    /// Their addresses by subsystem and category.
    names: BTreeMap<(String, String), usize>,
    intervals: Vec<PlayedInterval>,
    /// Name and number of those that have not ended.
    open: BTreeSet<(String, u64)>,
    /// Recordings that go on.
    recordings: usize,
}

static STATE: Mutex<SignpostState> = Mutex::new(SignpostState {
    logs: BTreeMap::new(),
    names: BTreeMap::new(),
    intervals: Vec::new(),
    open: BTreeSet::new(),
    recordings: 0,
});

fn state() -> MutexGuard<'static, SignpostState> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A tool that records signposts of the whole process until this is dropped.
#[derive(Debug)]
#[must_use = "the tool records until this is dropped"]
pub struct SignpostRecording(());

impl SignpostRecording {
    /// Starts the tool.
    pub fn start() -> Self {
        state().recordings += 1;
        Self(())
    }

    /// Returns the intervals with this text, in the order of their begins.
    #[must_use]
    pub fn of(&self, text: &str) -> Vec<PlayedInterval> {
        let state = state();
        state.intervals.iter().filter(|one| one.text == text).cloned().collect()
    }
}

impl Drop for SignpostRecording {
    fn drop(&mut self) {
        state().recordings -= 1;
    }
}

/// File of a tool that records the process from its start, where the variable names one.
fn record() -> Option<MutexGuard<'static, File>> {
    static RECORD: OnceLock<Option<Mutex<File>>> = OnceLock::new();
    let open = || {
        let path = std::env::var_os(RECORD_VARIABLE)?;
        let file = File::options().create(true).append(true).open(path);
        Some(Mutex::new(file.unwrap_or_else(|error| refuse(RECORD_VARIABLE, &error.to_string()))))
    };
    let file = RECORD.get_or_init(open).as_ref()?;
    Some(file.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Adds a line to that file.
fn note(line: &str) {
    if let Some(mut file) = record()
        && let Err(error) = file.write_all(format!("{line}\n").as_bytes())
    {
        refuse(RECORD_VARIABLE, &error.to_string());
    }
}

/// Double of `os_log_create`: the same log for the same names, which is never freed.
///
/// # Safety
/// Both names end with a zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn os_log_create(
    subsystem: *const c_char,
    category: *const c_char,
) -> *mut c_void {
    static NEXT: AtomicUsize = AtomicUsize::new(0x1000);
    if subsystem.is_null() || category.is_null() {
        refuse("os_log_create", "expected a subsystem and a category");
    }
    // SAFETY: the caller gives texts that end with a zero.
    let subsystem = unsafe { CStr::from_ptr(subsystem) }.to_string_lossy().into_owned();
    // SAFETY: as above.
    let category = unsafe { CStr::from_ptr(category) }.to_string_lossy().into_owned();
    let mut state = state();
    let dynamic = category == DYNAMIC_TRACING;
    let fresh = || NEXT.fetch_add(16, Ordering::Relaxed);
    let address = *state.names.entry((subsystem, category)).or_insert_with(fresh);
    state.logs.insert(address, PlayedLog { dynamic });
    std::ptr::without_provenance_mut(address)
}

/// Whether signposts of a log are on; of one that is none, the process ends.
fn enabled(state: &SignpostState, function: &str, log: *mut c_void) -> bool {
    match state.logs.get(&log.addr()) {
        Some(found) => state.recordings > 0 || !found.dynamic || record().is_some(),
        None => refuse(function, "expected a log of os_log_create"),
    }
}

/// Double of `os_signpost_enabled`.
#[unsafe(no_mangle)]
extern "C" fn os_signpost_enabled(log: *mut c_void) -> bool {
    enabled(&state(), "os_signpost_enabled", log)
}

/// Double of `os_signpost_id_generate`.
#[unsafe(no_mangle)]
extern "C" fn os_signpost_id_generate(log: *mut c_void) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    enabled(&state(), "os_signpost_id_generate", log);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A text of the log's section; elsewhere the system finds no text.
fn static_text(what: &str, text: *const c_char) -> String {
    let section = (&raw const SECTION_BEGIN).addr()..(&raw const SECTION_END).addr();
    if !section.contains(&text.addr()) {
        refuse(EMIT, &format!("the {what} is no constant in the section of the log's texts"));
    }
    // SAFETY: texts of the section end with a zero.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// The text that arguments give a format.
///
/// # Safety
/// There are so many bytes, and an argument that is a text ends with a zero.
unsafe fn formatted(format: &str, arguments: *const u8, bytes: u32) -> String {
    if arguments.is_null() || bytes < 2 || !arguments.addr().is_multiple_of(16) {
        refuse(EMIT, "expected arguments at an address that 16 divides");
    }
    // SAFETY: the caller gives so many bytes.
    let given = unsafe { std::slice::from_raw_parts(arguments, bytes as usize) };
    match (format, given) {
        ("", [0, 0]) => String::new(),
        ("%{public}s", [0x02, 1, PUBLIC_TEXT, 8, address @ ..]) if address.len() == 8 => {
            let mut own = [0; 8];
            own.copy_from_slice(address);
            let address = usize::from_ne_bytes(own);
            let text: *const c_char = std::ptr::with_exposed_provenance(address);
            if text.is_null() {
                refuse(EMIT, "a text is null");
            }
            // SAFETY: the caller gives a text that ends with a zero.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        }
        _ => refuse(EMIT, &format!("the arguments {given:?} are not those of '{format}'")),
    }
}

/// Double of `_os_signpost_emit_with_name_impl`, which the macros of `os/signpost.h` call.
///
/// # Safety
/// There are so many bytes of arguments, and an argument that is a text ends with a zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn _os_signpost_emit_with_name_impl(
    dso: *const c_void,
    log: *mut c_void,
    kind: u8,
    id: u64,
    name: *const c_char,
    format: *const c_char,
    arguments: *mut u8,
    bytes: u32,
) {
    if dso.addr() != (&raw const __dso_handle).addr() {
        refuse(EMIT, "expected the header of the image with the names");
    }
    if id == 0 || id == u64::MAX {
        refuse(EMIT, "the number stands for no interval");
    }
    let name = static_text("name", name);
    let format = static_text("format", format);
    // SAFETY: the caller's arguments are those of the format.
    let text = unsafe { formatted(&format, arguments, bytes) };
    let mut state = state();
    enabled(&state, EMIT, log);
    match kind {
        BEGIN => {
            if !state.open.insert((name.clone(), id)) {
                refuse(EMIT, &format!("'{name}' has begun under the number {id} already"));
            }
            note(&format!("begin {id} {name}: {text}"));
            // Who records to a file wants nothing in memory, which would grow without end.
            if record().is_none() {
                state.intervals.push(PlayedInterval { name, text, id, ended: false });
            }
        }
        END => {
            if !state.open.remove(&(name.clone(), id)) {
                refuse(EMIT, &format!("no '{name}' has begun under the number {id}"));
            }
            note(&format!("end {id} {name}"));
            let ended = state.intervals.iter_mut().rfind(|one| one.id == id && one.name == name);
            ended.into_iter().for_each(|one| one.ended = true);
        }
        other => refuse(EMIT, &format!("{other} is no kind of an interval")),
    }
}
