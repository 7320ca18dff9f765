//! Advice to the system on how memory is going to be read.

use std::io;

/// Pattern in which a range of memory is going to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessAdvice {
    /// The system's usual treatment.
    Usual,
    /// Soon: parts of files are read ahead.
    Soon,
    /// Once, from the begin to the end: the system reads far ahead and drops what was read early.
    Streaming,
    /// Here and there: the system does not read ahead.
    Scattered,
}

/// Advises the system on a range of memory. Whole pages are advised: those that the range touches for
/// [`AccessAdvice::Soon`], and those inside it for the others. Nothing that can be read changes.
///
/// # Errors
/// Fails where the system takes no such advice, or the range is not mapped.
#[cfg(unix)]
pub fn advise(start: *const u8, len: usize, advice: AccessAdvice) -> io::Result<()> {
    use rustix::mm::Advice;
    let page = rustix::param::page_size();
    let first = start.addr();
    let end = first.saturating_add(len);
    let (from, to, advice) = match advice {
        AccessAdvice::Soon => (first / page * page, end, Advice::WillNeed),
        AccessAdvice::Usual => (first.next_multiple_of(page), end / page * page, Advice::Normal),
        AccessAdvice::Streaming => {
            (first.next_multiple_of(page), end / page * page, Advice::Sequential)
        }
        AccessAdvice::Scattered => {
            (first.next_multiple_of(page), end / page * page, Advice::Random)
        }
    };
    if from >= to {
        return Ok(());
    }
    let start = start.with_addr(from).cast_mut().cast();
    // SAFETY: none of these pieces of advice changes contents; a range that is not mapped is an error.
    unsafe { rustix::mm::madvise(start, to - from, advice) }.map_err(io::Error::from)
}

/// Advises nothing: this system takes no advice.
///
/// # Errors
/// Always fails.
#[cfg(not(unix))]
pub fn advise(_start: *const u8, _len: usize, _advice: AccessAdvice) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn advice_changes_nothing_and_ranges_without_memory_are_refused() {
        let bytes = vec![7_u8; 100_000];
        for advice in [
            AccessAdvice::Soon,
            AccessAdvice::Streaming,
            AccessAdvice::Scattered,
            AccessAdvice::Usual,
        ] {
            advise(bytes.as_ptr(), bytes.len(), advice).unwrap();
            advise(bytes.as_ptr(), 3, advice).unwrap();
        }
        assert!(bytes.iter().all(|&byte| byte == 7));
        let nowhere = bytes.as_ptr().with_addr(1 << 12);
        assert!(advise(nowhere, 8192, AccessAdvice::Soon).is_err());
    }
}
