//! Hints on how memory of the caller is going to be read.

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use galatea_tensor::{AccessAdvice, advise};

use crate::api_status::{ApiStatus, CallFailure};
use crate::caller::{CallerPointers, SizedStruct};
use crate::handle_table::HandleTable;

/// A range of memory that hints are given for.
#[derive(Debug)]
pub struct OpaqueRegion(());

/// Pattern in which a region is read.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessPattern {
    /// The system decides.
    Usual = 0,
    /// Once, from the begin to the end: the system reads far ahead and drops what was read.
    Streaming = 1,
    /// Again and again: it is brought to memory at once, and stays as long as the system has room.
    Temporal = 2,
    /// Here and there: the system does not read ahead.
    Scattered = 3,
    /// The next accesses are foreseen from those that `galatea_region_access` tells of.
    Adaptive = 4,
}

impl AccessPattern {
    const ALL: [Self; 5] =
        [Self::Usual, Self::Streaming, Self::Temporal, Self::Scattered, Self::Adaptive];

    fn advice(self) -> AccessAdvice {
        match self {
            Self::Usual | Self::Adaptive => AccessAdvice::Usual,
            Self::Streaming => AccessAdvice::Streaming,
            Self::Temporal => AccessAdvice::Soon,
            Self::Scattered => AccessAdvice::Scattered,
        }
    }
}

/// Statistics of a region.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RegionStatistics {
    /// `sizeof(galatea_region_statistics)`, set by the caller.
    pub size: usize,
    /// Accesses that were told.
    pub accesses: u64,
    /// Number of them that lay in what had been foreseen.
    pub foreseen: u64,
    /// Hints that were given to the system.
    pub hints: u64,
    /// Bytes of these hints.
    pub hinted_bytes: u64,
    /// Bytes ahead of an access that are foreseen at present.
    pub distance_bytes: usize,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for RegionStatistics {}

/// Bytes ahead with which foreseeing begins, and the most.
const MIN_DISTANCE: usize = 64 << 10;
const MAX_DISTANCE: usize = 32 << 20;

/// Knowledge of the accesses to a region.
#[derive(Debug, Default)]
struct AccessHistory {
    /// Begin of the last access, and its distance from the one before.
    last: Option<usize>,
    step: Option<isize>,
    /// Begin and end of what was foreseen.
    ahead: std::ops::Range<usize>,
    statistics: RegionStatistics,
}

impl AccessHistory {
    /// Notes an access, and returns what to bring ahead: nothing until two steps are equal.
    fn note(&mut self, offset: usize, len: usize) -> Option<std::ops::Range<usize>> {
        self.statistics.accesses += 1;
        let hit = self.ahead.contains(&offset);
        self.statistics.foreseen += u64::from(hit);
        let step = self.last.map(|last| offset.wrapping_sub(last).cast_signed());
        let steady = step.is_some() && step == self.step;
        self.last = Some(offset);
        self.step = step;
        let step = step.filter(|step| steady && *step != 0)?;
        let distance = self.statistics.distance_bytes;
        // Who is foreseen is foreseen farther; who is not begins anew.
        let distance = match hit {
            true => (distance * 2).clamp(MIN_DISTANCE, MAX_DISTANCE),
            false => MIN_DISTANCE.max(step.unsigned_abs().saturating_mul(2)),
        };
        self.statistics.distance_bytes = distance;
        let next = match step > 0 {
            true => offset.saturating_add(len)..offset.saturating_add(len).saturating_add(distance),
            false => offset.saturating_sub(distance)..offset,
        };
        self.ahead = next.clone();
        Some(next)
    }
}

#[derive(Debug)]
struct RegionObject {
    /// Address of the first byte. It is never followed.
    start: *const u8,
    len: usize,
    pattern: AccessPattern,
    history: Mutex<AccessHistory>,
}

// SAFETY: the address is handed to the system, which checks it, and never followed.
unsafe impl Send for RegionObject {}
// SAFETY: as above.
unsafe impl Sync for RegionObject {}

static REGIONS: HandleTable<RegionObject, OpaqueRegion> = HandleTable::new(10, "region");

impl RegionObject {
    fn history(&self) -> MutexGuard<'_, AccessHistory> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hint(&self, offset: usize, len: usize, advice: AccessAdvice) -> Result<(), CallFailure> {
        let len = len.min(self.len.saturating_sub(offset));
        advise(self.start.wrapping_add(offset), len, advice).map_err(|error| {
            CallFailure::new(ApiStatus::Unsupported, format!("the system took no hint: {error}"))
        })?;
        let mut history = self.history();
        history.statistics.hints += 1;
        history.statistics.hinted_bytes += len as u64;
        Ok(())
    }

    fn check(&self, offset: usize, len: usize) -> Result<(), CallFailure> {
        match offset.checked_add(len).is_some_and(|end| end <= self.len) {
            true => Ok(()),
            false => {
                let text = format!("bytes {offset} to {offset}+{len} of {} do not exist", self.len);
                Err(CallFailure::argument(text))
            }
        }
    }
}

/// Registers memory, such as a mapped file, and hints how it is going to be read. `pattern` is a
/// `galatea_access`. Hints bring parts of files to memory; memory that is no file is near already.
///
/// Ownership: the memory stays the caller's and must be mapped until the region is freed with `galatea_region_free`. Its
/// contents are neither read nor changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_region_register(
    data: *const c_void,
    bytes: usize,
    pattern: i32,
    region: *mut *mut OpaqueRegion,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        caller.check(region, 1, "region")?;
        if data.is_null() {
            return Err(CallFailure::null("data"));
        }
        let known = AccessPattern::ALL.into_iter().find(|known| *known as i32 == pattern);
        let pattern =
            known.ok_or_else(|| CallFailure::argument(format!("there is no pattern {pattern}")))?;
        let history = Mutex::default();
        let object = RegionObject { start: data.cast(), len: bytes, pattern, history };
        object.hint(0, bytes, pattern.advice())?;
        caller.put(region, REGIONS.insert(object)?, "region")
    })
}

/// Hints that a part of a region is read soon.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_region_prefetch(
    region: *const OpaqueRegion,
    offset: usize,
    bytes: usize,
) -> ApiStatus {
    // SAFETY: no pointer is followed.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|_| {
        let region = REGIONS.get(region)?;
        region.check(offset, bytes)?;
        region.hint(offset, bytes, AccessAdvice::Soon)
    })
}

/// Tells of an access to a region. An adaptive region brings what comes next by equal steps, farther ahead the more
/// often it was right.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_region_access(
    region: *const OpaqueRegion,
    offset: usize,
    bytes: usize,
) -> ApiStatus {
    // SAFETY: no pointer is followed.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|_| {
        let region = REGIONS.get(region)?;
        region.check(offset, bytes)?;
        let ahead = region.history().note(offset, bytes);
        match ahead.filter(|_| region.pattern == AccessPattern::Adaptive) {
            Some(ahead) if ahead.start < region.len && !ahead.is_empty() => {
                region.hint(ahead.start, ahead.len(), AccessAdvice::Soon)
            }
            _ => Ok(()),
        }
    })
}

/// Tells the statistics of a region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_region_read(
    region: *const OpaqueRegion,
    statistics: *mut RegionStatistics,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let found = REGIONS.get(region)?.history().statistics;
        caller.report(found, statistics, "statistics")
    })
}

/// Frees a region. Its memory is read as usual again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_region_free(region: *mut OpaqueRegion) -> ApiStatus {
    // SAFETY: no pointer is followed.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|_| {
        let region = REGIONS.remove(region)?;
        // Memory that is gone already needs no hint.
        region.hint(0, region.len, AccessAdvice::Usual).ok();
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_steps_are_foreseen_farther_and_farther_and_jumps_begin_anew() {
        let mut history = AccessHistory::default();
        assert_eq!(history.note(0, 4096), None);
        assert_eq!(history.note(4096, 4096), None);
        assert_eq!(history.note(8192, 4096), Some(12288..12288 + MIN_DISTANCE));
        assert_eq!(history.note(12288, 4096), Some(16384..16384 + 2 * MIN_DISTANCE));
        assert_eq!(history.statistics.foreseen, 1);
        assert_eq!(history.note(1 << 30, 4096), None);
        assert_eq!(history.note(5, 4096), None);
        assert_eq!(history.statistics.accesses, 6);
    }

    #[test]
    fn steps_back_are_foreseen_too() {
        let mut history = AccessHistory::default();
        for offset in [1 << 20, (1 << 20) - 4096] {
            assert_eq!(history.note(offset, 4096), None);
        }
        let begin = (1 << 20) - 8192;
        assert_eq!(history.note(begin, 4096), Some(begin - MIN_DISTANCE..begin));
    }
}
