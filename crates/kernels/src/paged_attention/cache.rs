//! Caches of keys and values: rows are rounded to their type and widened to FP32.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::gemm::copy_run;
use crate::isa::Simd;
use crate::memory::Shared;

/// The greatest magnitude of a byte.
const MOST: f32 = 127.0;

/// The caches of a step, `[blocks, kv_heads, block_size, size]` each, which it also writes.
#[derive(Debug)]
pub enum PagedCaches<'a> {
    /// Keys and values of single precision.
    Fp32([&'a mut [f32]; 2]),
    /// Keys and values of half precision.
    Fp16([&'a mut [f16]; 2]),
    /// Keys and values of BF16.
    Bf16([&'a mut [bf16]; 2]),
    /// Keys and values as bytes that a scale of each vector multiplies: the 127th part of its
    /// greatest magnitude.
    Int8 {
        /// Keys and values.
        caches: [&'a mut [i8]; 2],
        /// The scales of keys and of values, `[blocks, kv_heads, block_size]`.
        scales: [&'a mut [f32]; 2],
    },
}

impl PagedCaches<'_> {
    /// Elements of the caches, and numbers of scales where there are some.
    pub(super) fn lens(&self) -> ([usize; 2], Option<[usize; 2]>) {
        match self {
            Self::Fp32([k, v]) => ([k.len(), v.len()], None),
            Self::Fp16([k, v]) => ([k.len(), v.len()], None),
            Self::Bf16([k, v]) => ([k.len(), v.len()], None),
            Self::Int8 { caches: [k, v], scales: [a, b] } => {
                ([k.len(), v.len()], Some([a.len(), b.len()]))
            }
        }
    }

    /// The caches of keys and of values for tasks, with the lengths of their vectors.
    pub(super) fn shared(self, sizes: [usize; 2]) -> [Cache; 2] {
        let cells = match self {
            Self::Fp32(all) => all.map(|x| Cells::Fp32(Shared::new(x))),
            Self::Fp16(all) => all.map(|x| Cells::Fp16(Shared::new(x))),
            Self::Bf16(all) => all.map(|x| Cells::Bf16(Shared::new(x))),
            Self::Int8 { caches: [k, v], scales: [a, b] } => [
                Cells::Int8(Shared::new(k), Shared::new(a)),
                Cells::Int8(Shared::new(v), Shared::new(b)),
            ],
        };
        let [keys, values] = cells;
        [Cache { cells: keys, size: sizes[0] }, Cache { cells: values, size: sizes[1] }]
    }
}

#[derive(Clone, Copy)]
enum Cells {
    Fp32(Shared<f32>),
    Fp16(Shared<f16>),
    Bf16(Shared<bf16>),
    Int8(Shared<i8>, Shared<f32>),
}

/// A cache of keys or of values.
#[derive(Clone, Copy)]
pub(super) struct Cache {
    cells: Cells,
    /// Elements of a vector.
    pub(super) size: usize,
}

impl Cache {
    /// Rounds a row to the vector with this number.
    ///
    /// # Safety
    /// The cache has the vector, and no other task touches it.
    pub(super) unsafe fn write(self, vector: usize, row: &[f32]) {
        let range = vector * self.size..vector * self.size + row.len();
        // SAFETY: the caller vouches for the vector and for exclusive use.
        unsafe {
            match self.cells {
                Cells::Fp32(to) => to.range(range).copy_from_slice(row),
                Cells::Fp16(to) => to.range(range).convert_from_f32_slice(row),
                Cells::Bf16(to) => to.range(range).convert_from_f32_slice(row),
                Cells::Int8(to, scales) => {
                    scales.range(vector..vector + 1)[0] = quantize(row, to.range(range));
                }
            }
        }
    }

    /// Whether [`Cache::rows`] finds vectors as they lie, without a copy.
    #[inline(always)]
    pub(super) fn is_plain(self) -> bool {
        matches!(self.cells, Cells::Fp32(_))
    }

    /// `count` vectors from this one on as FP32, side by side: where they lie, or widened to `near`.
    ///
    /// # Safety
    /// The cache has the vectors, `near` has room for them, and no task writes them meanwhile.
    #[inline(always)]
    pub(super) unsafe fn rows<S: Simd>(
        self,
        s: S,
        vector: usize,
        count: usize,
        near: *mut f32,
    ) -> *const f32 {
        if let Cells::Fp32(cells) = self.cells {
            return cells.at(vector * self.size).ptr();
        }
        // SAFETY: as the caller says.
        unsafe { self.widen(s, vector, count, near) };
        near
    }

    /// Copies `count` vectors from this one on to `near`, as FP32.
    ///
    /// # Safety
    /// As [`Cache::rows`].
    #[inline(always)]
    pub(super) unsafe fn widen<S: Simd>(self, s: S, vector: usize, count: usize, near: *mut f32) {
        let (at, n) = (vector * self.size, count * self.size);
        // SAFETY: the caller vouches for the vectors and for the room.
        unsafe {
            match self.cells {
                Cells::Fp32(cells) => copy_run(s, cells.at(at).ptr(), n, near),
                Cells::Fp16(cells) => {
                    let from = cells.at(at).ptr().cast::<u16>().cast_const();
                    let mut i = 0;
                    while i + S::LANES <= n {
                        s.store(near.add(i), s.load_f16(from.add(i)));
                        i += S::LANES;
                    }
                    while i < n {
                        *near.add(i) = f16::from_bits(*from.add(i)).to_f32();
                        i += 1;
                    }
                }
                Cells::Bf16(cells) => {
                    let from = cells.at(at).ptr().cast::<u16>().cast_const();
                    let mut i = 0;
                    while i + S::LANES <= n {
                        s.store(near.add(i), s.load_bf16(from.add(i)));
                        i += S::LANES;
                    }
                    while i < n {
                        *near.add(i) = f32::from_bits(u32::from(*from.add(i)) << 16);
                        i += 1;
                    }
                }
                Cells::Int8(cells, scales) => {
                    let from = cells.at(at).ptr().cast_const();
                    let scales = scales.at(vector).ptr().cast_const();
                    for row in 0..count {
                        let scale = *scales.add(row);
                        let (from, near) = (from.add(row * self.size), near.add(row * self.size));
                        for i in 0..self.size {
                            *near.add(i) = f32::from(*from.add(i)) * scale;
                        }
                    }
                }
            }
        }
    }
}

/// Makes bytes of a row and gives their scale.
#[allow(clippy::cast_possible_truncation, reason = "scales are FP32, and bytes are limited")]
fn quantize(row: &[f32], to: &mut [i8]) -> f32 {
    let greatest = row.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let scale = (f64::from(greatest) / f64::from(MOST)) as f32;
    for (to, &x) in to.iter_mut().zip(row) {
        let whole = if scale > 0.0 { f64::from(x) / f64::from(scale) } else { 0.0 };
        *to = whole.round_ties_even().clamp(-f64::from(MOST), f64::from(MOST)) as i8;
    }
    scale
}
