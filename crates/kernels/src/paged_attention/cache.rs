//! Caches of keys and values: rows are rounded to their type and widened to FP32.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::gemm::copy_run;
use crate::isa::Simd;
use crate::memory::DisjointSlice;

/// The greatest magnitude of a byte.
const MOST: f32 = 127.0;

/// Elements of a row that are rounded at once.
const CHUNK: usize = 64;

/// Bytes of a line of the processor's caches, or fewer.
const LINE: usize = 64;

/// Bytes that are asked for ahead.
const MAX_FORESEEN: usize = 16 * 1024;

/// The caches of a step, which it also writes: keys `[blocks, kv_heads, head_size, block_size]`, so
/// that an element of neighbouring positions is one vector, and values
/// `[blocks, kv_heads, block_size, value_size]`.
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

    /// The caches of keys and of values for tasks, with the lengths of their vectors and of blocks.
    pub(super) fn shared(self, sizes: [usize; 2], block: usize) -> [PagedCache; 2] {
        let cells = match self {
            Self::Fp32(all) => all.map(|x| CacheCells::Fp32(DisjointSlice::new(x))),
            Self::Fp16(all) => all.map(|x| CacheCells::Fp16(DisjointSlice::new(x))),
            Self::Bf16(all) => all.map(|x| CacheCells::Bf16(DisjointSlice::new(x))),
            Self::Int8 { caches: [k, v], scales: [a, b] } => [
                CacheCells::Int8(DisjointSlice::new(k), DisjointSlice::new(a)),
                CacheCells::Int8(DisjointSlice::new(v), DisjointSlice::new(b)),
            ],
        };
        let [keys, values] = cells;
        [
            PagedCache { cells: keys, size: sizes[0], step: block },
            PagedCache { cells: values, size: sizes[1], step: 1 },
        ]
    }
}

#[derive(Clone, Copy)]
enum CacheCells {
    Fp32(DisjointSlice<f32>),
    Fp16(DisjointSlice<f16>),
    Bf16(DisjointSlice<bf16>),
    Int8(DisjointSlice<i8>, DisjointSlice<f32>),
}

/// A cache of keys or of values, whose vectors have the number `(block · heads + head) · positions of
/// a block + position`.
#[derive(Clone, Copy)]
pub(super) struct PagedCache {
    cells: CacheCells,
    /// Elements of a vector.
    pub(super) size: usize,
    /// Distance between the elements of a vector: 1, or the positions of a block, whose vectors lie
    /// element by element then.
    step: usize,
}

impl PagedCache {
    /// Where the first element of a vector is.
    #[inline(always)]
    fn start(self, vector: usize) -> usize {
        vector / self.step * self.step * self.size + vector % self.step
    }

    /// Rounds a row to the vector with this number.
    ///
    /// # Safety
    /// The cache has the vector, and no other task touches it.
    pub(super) unsafe fn write(self, vector: usize, row: &[f32]) {
        let start = self.start(vector);
        // SAFETY: the caller vouches for the vector and for exclusive use.
        unsafe {
            match self.cells {
                CacheCells::Fp32(to) => self.spread(row, to.at(start)),
                CacheCells::Fp16(to) => {
                    for (at, part) in row.chunks(CHUNK).enumerate() {
                        let mut halves = [f16::ZERO; CHUNK];
                        halves[..part.len()].convert_from_f32_slice(part);
                        self.spread(&halves[..part.len()], to.at(start + at * CHUNK * self.step));
                    }
                }
                CacheCells::Bf16(to) => {
                    for (at, part) in row.chunks(CHUNK).enumerate() {
                        let mut halves = [bf16::ZERO; CHUNK];
                        halves[..part.len()].convert_from_f32_slice(part);
                        self.spread(&halves[..part.len()], to.at(start + at * CHUNK * self.step));
                    }
                }
                CacheCells::Int8(to, scales) => {
                    let scale = scale_of(row);
                    scales.at(vector).ptr().write(scale);
                    for (at, &x) in row.iter().enumerate() {
                        to.at(start + at * self.step).ptr().write(byte(x, scale));
                    }
                }
            }
        }
    }

    /// Writes elements of a vector, from `to` on.
    ///
    /// # Safety
    /// The same as for [`PagedCache::write`].
    #[inline(always)]
    unsafe fn spread<T: Copy>(self, row: &[T], to: DisjointSlice<T>) {
        // SAFETY: the caller vouches for the vector.
        unsafe {
            if self.step == 1 {
                to.range(0..row.len()).copy_from_slice(row);
                return;
            }
            for (at, &x) in row.iter().enumerate() {
                to.at(at * self.step).ptr().write(x);
            }
        }
    }

    /// Where a vector lies that needs no widening.
    #[inline(always)]
    pub(super) fn plain(self, vector: usize) -> Option<*const f32> {
        match self.cells {
            CacheCells::Fp32(cells) => Some(cells.at(self.start(vector)).ptr().cast_const()),
            _ => None,
        }
    }

    /// Copies `count` vectors from this one on to `near` as FP32, side by side; these are vectors
    /// whose elements are.
    ///
    /// # Safety
    /// The cache has the vectors, `near` has room for them, and no task writes them meanwhile.
    #[inline(always)]
    pub(super) unsafe fn rows<S: Simd>(self, s: S, vector: usize, count: usize, near: *mut f32) {
        debug_assert_eq!(self.step, 1, "vectors that lie element by element");
        let at = vector * self.size;
        let n = self.size;
        // SAFETY: the caller vouches for the vectors and for the room.
        unsafe {
            if let CacheCells::Int8(cells, scales) = self.cells {
                for row in 0..count {
                    let scale = s.splat(*scales.at(vector + row).ptr());
                    widen_bytes(s, cells.at(at + row * n).ptr(), n, near.add(row * n), scale);
                }
            } else {
                self.cells.widen(s, at, count * n, near);
            }
        }
    }

    /// Copies `count` vectors of a block from this one on as FP32, element by element: those of all
    /// vectors side by side, the next ones `stride` behind. Where blocks and `stride` are whole
    /// vectors of the machine, what lies behind in the last one is copied too.
    ///
    /// # Safety
    /// The block has the vectors, `near` has room for them, and no task writes them meanwhile.
    #[inline(always)]
    pub(super) unsafe fn columns<S: Simd>(
        self,
        s: S,
        vector: usize,
        count: usize,
        near: *mut f32,
        stride: usize,
    ) {
        let start = self.start(vector);
        let whole = self.step.is_multiple_of(S::LANES) && stride.is_multiple_of(S::LANES);
        let mut i = 0;
        // SAFETY: the caller vouches for the vectors and for the room.
        unsafe {
            while whole && i < count {
                let at = start + i;
                let near = near.add(i);
                match self.cells {
                    CacheCells::Fp32(cells) => {
                        let from = cells.at(at).ptr();
                        for e in 0..self.size {
                            s.store(near.add(e * stride), s.load(from.add(e * self.step)));
                        }
                    }
                    CacheCells::Fp16(cells) => {
                        let from = cells.at(at).ptr().cast::<u16>();
                        for e in 0..self.size {
                            s.store(near.add(e * stride), s.load_f16(from.add(e * self.step)));
                        }
                    }
                    CacheCells::Bf16(cells) => {
                        let from = cells.at(at).ptr().cast::<u16>();
                        for e in 0..self.size {
                            s.store(near.add(e * stride), s.load_bf16(from.add(e * self.step)));
                        }
                    }
                    CacheCells::Int8(cells, scales) => {
                        let from = cells.at(at).ptr();
                        let scales = s.load(scales.at(vector + i).ptr());
                        for e in 0..self.size {
                            let x = s.mul(s.load_i8(from.add(e * self.step)), scales);
                            s.store(near.add(e * stride), x);
                        }
                    }
                }
                i += S::LANES;
            }
            if whole {
                return;
            }
            for e in 0..self.size {
                let near = near.add(e * stride);
                self.cells.widen(s, start + e * self.step, count, near);
                if let CacheCells::Int8(_, scales) = self.cells {
                    for i in 0..count {
                        *near.add(i) *= *scales.at(vector + i).ptr();
                    }
                }
            }
        }
    }

    /// Asks for what a block holds of a head, where that is little: long stretches are foreseen by
    /// the processor.
    #[inline(always)]
    pub(super) fn prefetch<S: Simd>(self, s: S, first: usize, count: usize) {
        let elements = count * self.size;
        let (at, bytes) = match self.cells {
            CacheCells::Fp32(cells) => {
                (cells.at(first * self.size).ptr().cast::<u8>(), 4 * elements)
            }
            CacheCells::Fp16(cells) => (cells.at(first * self.size).ptr().cast(), 2 * elements),
            CacheCells::Bf16(cells) => (cells.at(first * self.size).ptr().cast(), 2 * elements),
            CacheCells::Int8(cells, _) => (cells.at(first * self.size).ptr().cast(), elements),
        };
        if bytes > MAX_FORESEEN {
            return;
        }
        for line in (0..bytes).step_by(LINE) {
            s.prefetch(at.wrapping_add(line).cast());
        }
    }
}

impl CacheCells {
    /// Copies `n` neighbours as FP32; of bytes the scales are still to be applied.
    ///
    /// # Safety
    /// The cells exist, and `near` has room.
    #[inline(always)]
    unsafe fn widen<S: Simd>(self, s: S, at: usize, n: usize, near: *mut f32) {
        let mut i = 0;
        // SAFETY: the caller vouches for the cells and for the room.
        unsafe {
            match self {
                Self::Fp32(cells) => copy_run(s, cells.at(at).ptr(), n, near),
                Self::Fp16(cells) => {
                    let from = cells.at(at).ptr().cast::<u16>().cast_const();
                    while i + S::LANES <= n {
                        s.store(near.add(i), s.load_f16(from.add(i)));
                        i += S::LANES;
                    }
                    while i < n {
                        *near.add(i) = f16::from_bits(*from.add(i)).to_f32();
                        i += 1;
                    }
                }
                Self::Bf16(cells) => {
                    let from = cells.at(at).ptr().cast::<u16>().cast_const();
                    while i + S::LANES <= n {
                        s.store(near.add(i), s.load_bf16(from.add(i)));
                        i += S::LANES;
                    }
                    while i < n {
                        *near.add(i) = f32::from_bits(u32::from(*from.add(i)) << 16);
                        i += 1;
                    }
                }
                Self::Int8(cells, _) => {
                    widen_bytes(s, cells.at(at).ptr(), n, near, s.splat(1.0));
                }
            }
        }
    }
}

/// Copies `n` bytes as FP32, times a factor.
///
/// # Safety
/// `from` and `near` are valid for `n` elements.
#[inline(always)]
unsafe fn widen_bytes<S: Simd>(s: S, from: *const i8, n: usize, near: *mut f32, factor: S::F) {
    let mut i = 0;
    // SAFETY: every access is below n.
    unsafe {
        while i + S::LANES <= n {
            s.store(near.add(i), s.mul(s.load_i8(from.add(i)), factor));
            i += S::LANES;
        }
        if i < n {
            let rest = near.add(i);
            let m = s.tail(n - i);
            for at in 0..n - i {
                *rest.add(at) = f32::from(*from.add(i + at));
            }
            s.store_tail(rest, m, s.mul(s.load_tail(rest, m), factor));
        }
    }
}

/// The scale of a row of bytes.
#[allow(clippy::cast_possible_truncation, reason = "scales are FP32")]
fn scale_of(row: &[f32]) -> f32 {
    let greatest = row.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    (f64::from(greatest) / f64::from(MOST)) as f32
}

/// A byte that stands for `x`.
#[allow(clippy::cast_possible_truncation, reason = "limited to bytes")]
fn byte(x: f32, scale: f32) -> i8 {
    let whole = if scale > 0.0 { f64::from(x) / f64::from(scale) } else { 0.0 };
    whole.round_ties_even().clamp(-f64::from(MOST), f64::from(MOST)) as i8
}
