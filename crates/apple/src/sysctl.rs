//! Reading the kernel's named values, live or from a recording.

use std::collections::BTreeMap;

use crate::Unavailable;

/// Somewhere that sysctl values come from.
pub trait SysctlSource {
    /// The value of `key` as an integer; `None` where the key does not exist or is not one.
    fn integer(&self, key: &str) -> Option<u64>;
    /// The value of `key` as text; `None` where the key does not exist.
    fn text(&self, key: &str) -> Option<String>;
}

/// Values written down earlier, in the form that `sysctl hw machdep.cpu kern` prints: one
/// `key: value` a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedSysctl {
    values: BTreeMap<String, String>,
}

impl RecordedSysctl {
    /// Reads a recording. Blank lines and lines that start with `#` are skipped.
    ///
    /// # Errors
    /// The number of a line that has no `: `, and the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut values = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line.split_once(':').ok_or_else(|| {
                format!("line {}: expected `key: value`, found `{line}`", index + 1)
            })?;
            values.insert(key.trim().to_owned(), value.trim().to_owned());
        }
        Ok(Self { values })
    }
}

impl SysctlSource for RecordedSysctl {
    fn integer(&self, key: &str) -> Option<u64> {
        self.values.get(key)?.parse().ok()
    }

    fn text(&self, key: &str) -> Option<String> {
        self.values.get(key).cloned()
    }
}

/// The running kernel.
#[derive(Debug)]
pub struct LiveSysctl {
    _opened: (),
}

impl LiveSysctl {
    /// Opens the running kernel's values.
    ///
    /// # Errors
    /// [`Unavailable`] off macOS.
    pub fn open() -> Result<Self, Unavailable> {
        #[cfg(any(target_os = "macos", apple_doubles))]
        return Ok(Self { _opened: () });
        #[cfg(not(any(target_os = "macos", apple_doubles)))]
        Err(Unavailable::off_macos("sysctl"))
    }
}

impl SysctlSource for LiveSysctl {
    fn integer(&self, key: &str) -> Option<u64> {
        #[cfg(any(target_os = "macos", apple_doubles))]
        return macos::integer(key);
        #[cfg(not(any(target_os = "macos", apple_doubles)))]
        unreachable_off_macos(key)
    }

    fn text(&self, key: &str) -> Option<String> {
        #[cfg(any(target_os = "macos", apple_doubles))]
        return macos::text(key);
        #[cfg(not(any(target_os = "macos", apple_doubles)))]
        unreachable_off_macos(key)
    }
}

/// `LiveSysctl` cannot be made off macOS, so no key is ever asked for.
#[cfg(not(any(target_os = "macos", apple_doubles)))]
fn unreachable_off_macos<T>(_key: &str) -> Option<T> {
    None
}

#[cfg(any(target_os = "macos", apple_doubles))]
mod macos {
    use std::ffi::CString;
    use std::ptr;

    use crate::darwin;

    /// Fetches the bytes of one value.
    fn bytes(key: &str) -> Option<Vec<u8>> {
        let name = CString::new(key).ok()?;
        let mut length = 0_usize;
        // SAFETY: `name` is a terminated string; a null buffer asks for the length only, which is
        // written to `length`; nothing is set.
        let status = unsafe {
            darwin::sysctlbyname(
                name.as_ptr(),
                ptr::null_mut(),
                &raw mut length,
                ptr::null_mut(),
                0,
            )
        };
        if status != 0 {
            return None;
        }
        let mut buffer = vec![0_u8; length];
        // SAFETY: `buffer` has `length` writable bytes, and the kernel writes at most `length`.
        let status = unsafe {
            darwin::sysctlbyname(
                name.as_ptr(),
                buffer.as_mut_ptr().cast(),
                &raw mut length,
                ptr::null_mut(),
                0,
            )
        };
        buffer.truncate(length);
        (status == 0).then_some(buffer)
    }

    pub(super) fn integer(key: &str) -> Option<u64> {
        super::decode_integer(&bytes(key)?)
    }

    pub(super) fn text(key: &str) -> Option<String> {
        super::decode_text(&bytes(key)?)
    }
}

/// The kernel answers integers in 4 or 8 bytes of its own order.
#[cfg(any(target_os = "macos", apple_doubles, test))]
fn decode_integer(bytes: &[u8]) -> Option<u64> {
    match bytes.len() {
        4 => Some(u64::from(u32::from_ne_bytes(bytes.try_into().ok()?))),
        8 => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

/// Text ends at the first zero byte.
#[cfg(any(target_os = "macos", apple_doubles, test))]
fn decode_text(bytes: &[u8]) -> Option<String> {
    let text = bytes.split(|&byte| byte == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_yields_integers_and_text() {
        let recorded =
            RecordedSysctl::parse("# note\n\nhw.memsize: 17179869184\nkern.osversion: 24A335\n");
        let recorded = recorded.unwrap();
        assert_eq!(recorded.integer("hw.memsize"), Some(17_179_869_184));
        assert_eq!(recorded.text("kern.osversion").as_deref(), Some("24A335"));
        assert_eq!(recorded.integer("kern.osversion"), None);
        assert_eq!(recorded.text("hw.absent"), None);
    }

    #[test]
    fn a_line_without_a_colon_is_named() {
        let error = RecordedSysctl::parse("hw.ncpu: 8\nnonsense\n").unwrap_err();
        assert_eq!(error, "line 2: expected `key: value`, found `nonsense`");
    }

    #[test]
    fn integers_come_in_four_or_eight_bytes() {
        assert_eq!(decode_integer(&7_u32.to_ne_bytes()), Some(7));
        assert_eq!(decode_integer(&(1_u64 << 40).to_ne_bytes()), Some(1 << 40));
        assert_eq!(decode_integer(&[1, 2]), None);
    }

    #[test]
    fn text_ends_at_the_first_zero() {
        assert_eq!(decode_text(b"Apple M1\0rest").as_deref(), Some("Apple M1"));
        assert_eq!(decode_text(b"").as_deref(), Some(""));
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_there_is_no_live_source() {
        assert_eq!(LiveSysctl::open().unwrap_err().door, "sysctl");
    }
}
