//! Double of the SMC's keys.
//!
//! Source: the crate `macmon`, and what it cites.

use super::played::PlayedMac;

/// Commands of a request.
const READ: u8 = 5;
const NAME_OF: u8 = 8;
const KIND_OF: u8 = 9;

/// Result of a key that there is not.
const NO_KEY: u8 = 132;

/// Kind of a key's value.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KeyKind {
    bytes: u32,
    name: u32,
    attributes: u8,
}

/// Request to the SMC, and its answer.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KeyRequest {
    key: u32,
    version: [u16; 3],
    limits: [u32; 4],
    kind: KeyKind,
    result: u8,
    status: u8,
    command: u8,
    index: u32,
    value: [u8; 32],
}

const _: () = assert!(size_of::<KeyRequest>() == 80);

/// Key with its value.
struct SmcKey {
    name: &'static [u8; 4],
    kind: &'static [u8; 4],
    value: [u8; 4],
}

/// The keys of a Mac: watts of the machine and, from macOS 14 on, temperatures.
fn keys(mac: &PlayedMac) -> Vec<SmcKey> {
    let float = |name, value: f32| SmcKey { name, kind: b"flt ", value: value.to_le_bytes() };
    let mut keys = vec![float(b"PSTR", 12.5)];
    if mac.version.major >= 14 {
        keys.extend([float(b"Tp01", 44.0), float(b"Tp05", 46.0), float(b"Tg05", 41.5)]);
    }
    let missing = |key: &SmcKey| std::str::from_utf8(key.name).is_ok_and(|name| mac.lacks(name));
    keys.retain(|key| !missing(key));
    let count = u32::try_from(keys.len() + 1).unwrap_or(0);
    keys.push(SmcKey { name: b"#KEY", kind: b"ui32", value: count.to_be_bytes() });
    keys
}

impl KeyRequest {
    /// Returns the answer of this Mac's SMC.
    pub(super) fn answered(self, mac: &PlayedMac) -> Self {
        let keys = keys(mac);
        let none = Self { result: NO_KEY, ..self };
        if self.command == NAME_OF {
            let found = keys.get(self.index as usize);
            return found.map_or(none, |key| Self { key: u32::from_be_bytes(*key.name), ..self });
        }
        let wanted = self.key.to_be_bytes();
        let Some(key) = keys.iter().find(|key| *key.name == wanted) else { return none };
        let kind = KeyKind { bytes: 4, name: u32::from_be_bytes(*key.kind), attributes: 0x80 };
        match self.command {
            KIND_OF => Self { kind, ..self },
            READ if self.kind.bytes == 4 => {
                let mut value = [0; 32];
                value[..4].copy_from_slice(&key.value);
                Self { value, ..self }
            }
            _ => Self { result: 1, ..self },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures_are_there_from_their_macos_on() {
        let answer = |mac: &str, name: &[u8; 4]| {
            let key = u32::from_be_bytes(*name);
            let request = KeyRequest { key, command: KIND_OF, ..KeyRequest::default() };
            request.answered(&PlayedMac::parse(mac).unwrap()).result
        };
        assert_eq!(answer("m1-16gb,macos=13.0", b"Tp01"), NO_KEY);
        assert_eq!(answer("m1-16gb,macos=15.0", b"Tp01"), 0);
        assert_eq!(answer("m1-16gb,without=PSTR", b"PSTR"), NO_KEY);
    }
}
