//! Checks of SentencePiece's precompiled normalisation: a double-array trie of u32 units behind its
//! length in bytes, and behind it the replacements, each ended by a zero byte.
//!
//! The library follows the trie's offsets without looking whether they lie inside, so every state
//! that a text can reach is visited here first.

/// Checks a decoded map.
pub(super) fn check(map: &[u8]) -> Result<(), String> {
    let (length, rest) = map.split_first_chunk::<4>().ok_or("the trie's length is missing")?;
    let bytes = usize::try_from(u32::from_le_bytes(*length)).map_err(|e| e.to_string())? / 4 * 4;
    let trie = rest.get(..bytes).ok_or_else(|| {
        format!("a trie of {bytes} bytes found, expected at most the {} that follow", rest.len())
    })?;
    let units: Vec<u32> = trie
        .chunks_exact(4)
        .filter_map(|unit| unit.first_chunk::<4>().map(|unit| u32::from_le_bytes(*unit)))
        .collect();
    let text = std::str::from_utf8(rest.get(bytes..).unwrap_or(&[]))
        .map_err(|e| format!("the replacements are not UTF-8: {e}"))?;
    walk(&units, text)
}

fn walk(units: &[u32], text: &str) -> Result<(), String> {
    let outside = |at: usize| format!("state {at} found, expected one of {}", units.len());
    let unit_at = |at: usize| units.get(at).copied().ok_or_else(|| outside(at));
    let mut seen = vec![false; units.len()];
    let mut open = vec![offset(unit_at(0)?)];
    while let Some(at) = open.pop() {
        // Children of a state lie in the 256 units around it.
        unit_at(at | 0xFF)?;
        if std::mem::replace(seen.get_mut(at).ok_or_else(|| outside(at))?, true) {
            continue;
        }
        for byte in 1..=0xFFusize {
            let place = at ^ byte;
            let unit = unit_at(place)?;
            if usize::try_from(unit & 0x8000_00FF).map_err(|e| e.to_string())? != byte {
                continue;
            }
            let next = place ^ offset(unit);
            if unit & 0x100 != 0 {
                let value = unit_at(next)? & 0x7FFF_FFFF;
                let start = usize::try_from(value).map_err(|e| e.to_string())?;
                if start > text.len() || !text.is_char_boundary(start) {
                    return Err(format!("a replacement at byte {start} found, which is none"));
                }
            }
            open.push(next);
        }
    }
    Ok(())
}

fn offset(unit: u32) -> usize {
    // Widened first: the shift may leave 32 bits.
    let wide = u64::from(unit >> 10) << ((unit & 0x200) >> 6);
    usize::try_from(wide).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::check;

    fn map(units: &[u32], text: &[u8]) -> Vec<u8> {
        let mut bytes = u32::try_from(units.len() * 4).unwrap().to_le_bytes().to_vec();
        bytes.extend(units.iter().flat_map(|u| u.to_le_bytes()));
        bytes.extend_from_slice(text);
        bytes
    }

    #[test]
    fn maps_that_point_outside_are_refused() {
        let mut units = vec![0u32; 512];
        units[0] = 256 << 10;
        assert_eq!(check(&map(&units, b"x\0")), Ok(()));
        // "a" leads to a leaf whose replacement begins at byte 1.
        units[256 ^ usize::from(b'a')] = u32::from(b'a') | 0x100 | (1 << 10);
        let leaf = 256 ^ usize::from(b'a') ^ 1;
        units[leaf] = 0x8000_0001;
        assert_eq!(check(&map(&units, b"x\0")), Ok(()));
        units[leaf] = 0x8000_0007;
        assert!(check(&map(&units, b"x\0")).unwrap_err().contains("byte 7"));
        units[leaf] = 0x8000_0001;
        assert!(check(&map(&units, "é\0".as_bytes())).is_err(), "inside a character");
        units[0] = 4096 << 10;
        assert!(check(&map(&units, b"x\0")).unwrap_err().contains("512"));
        assert!(check(&map(&[], b"")).is_err());
        assert!(check(&[1, 0]).is_err());
        assert!(check(&[255, 255, 255, 255, 0]).is_err());
    }
}
