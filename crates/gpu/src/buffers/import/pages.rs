//! Pages of mapped files that a device reads where they lie.

use std::ptr::NonNull;

use galatea_tensor::Tensor;

/// Tensors with fewer bytes are copied: a buffer of their own costs more than that.
const MIN_BYTES: usize = 64 << 10;

/// Bytes of a mapped file as a part of the pages that hold them.
#[derive(Debug)]
pub(crate) struct MappedPages {
    /// The first page.
    pub(super) start: NonNull<u8>,
    /// Bytes of all pages.
    pub(crate) bytes: u64,
    /// Number of bytes before the wanted ones.
    pub(crate) offset: u64,
    /// Tensor that keeps the file mapped.
    pub(super) owner: Tensor,
}

impl MappedPages {
    /// Returns the pages of a tensor in a mapped file. Returns `None` for other tensors, for small ones, and
    /// for a start that is not aligned for the device's bindings.
    pub(crate) fn of(tensor: &Tensor, alignment: u64) -> Option<Self> {
        let bytes = tensor.unaligned_bytes().ok().filter(|_| tensor.is_mapped())?;
        if bytes.len() < MIN_BYTES {
            return None;
        }
        let address = bytes.as_ptr().addr();
        // Shaders may see the bytes as vectors of 16.
        let spread = around(address, bytes.len(), page_bytes(), alignment.max(16))?;
        let before = usize::try_from(spread.offset).ok()?;
        let start = NonNull::new(bytes.as_ptr().wrapping_sub(before).cast_mut())?;
        Some(Self { start, bytes: spread.bytes, offset: spread.offset, owner: tensor.clone() })
    }
}

/// Bytes of a page of this system.
pub(super) fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// Position of bytes in pages.
#[derive(Debug, PartialEq, Eq)]
struct PageSpread {
    offset: u64,
    bytes: u64,
}

/// Returns the position in pages of `len` bytes at an address, if they start at a multiple of `alignment` in
/// the first.
fn around(address: usize, len: usize, page: usize, alignment: u64) -> Option<PageSpread> {
    let before = address % page;
    let offset = u64::try_from(before).ok()?;
    let bytes = before.checked_add(len)?.checked_next_multiple_of(page)?;
    let starts = len > 0 && offset.is_multiple_of(alignment);
    starts.then_some(PageSpread { offset, bytes: u64::try_from(bytes).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_cover_bytes_that_start_where_a_binding_may() {
        let spread = |offset, bytes| Some(PageSpread { offset, bytes });
        for (address, len, page, expected) in [
            (0x1000, 1, 0x1000, spread(0, 0x1000)),
            (0x1000, 0x1000, 0x1000, spread(0, 0x1000)),
            (0x1000, 0x1001, 0x1000, spread(0, 0x2000)),
            (0x1020, 0xfe0, 0x1000, spread(0x20, 0x1000)),
            (0x1020, 0xfe1, 0x1000, spread(0x20, 0x2000)),
            // A page of an Apple chip.
            (0x1020, 0xfe1, 0x4000, spread(0x1020, 0x4000)),
            (0x1008, 64, 0x1000, None),
            (0x1000, 0, 0x1000, None),
            (0x1000, usize::MAX, 0x1000, None),
        ] {
            assert_eq!(around(address, len, page, 32), expected, "{len} bytes at {address:#x}");
        }
    }

    #[test]
    fn every_byte_of_a_tensor_lies_in_its_pages() {
        for address in (0..0x3000).step_by(16) {
            for len in [1, 15, 16, 4095, 4096, 4097, 9000] {
                let found =
                    around(address, len, 0x1000, 16).map(|found| (found.offset, found.bytes));
                let Some((offset, bytes)) = found else { panic!("16 bytes are aligned") };
                // What a binding takes is a multiple of 16.
                assert!(offset + len.next_multiple_of(16) as u64 <= bytes && offset < 0x1000);
            }
        }
    }

    #[test]
    fn what_is_in_no_file_has_no_pages() {
        let tensor = Tensor::from_vec(&[MIN_BYTES], vec![0.0_f32; MIN_BYTES]);
        assert!(tensor.is_ok_and(|tensor| MappedPages::of(&tensor, 16).is_none()));
    }
}
