//! The vector vocabulary that every algorithm of this crate is written in.

use std::fmt::Debug;

use super::IsaKernel;

/// The nearest BF16, ties to even; a NaN stays one.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "the upper half")]
pub(crate) fn nearest(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
    if x.is_nan() { (bits >> 16) as u16 | 0x40 } else { (rounded >> 16) as u16 }
}

/// One instruction set, as a token: holding a value proves that the processor has it.
///
/// Algorithms are generic functions over `S: Simd`, inlined into an entry function compiled with
/// the instruction set's target features (see [`Isa::run`](super::Isa::run)), so one source serves
/// every processor.
///
/// NaN rule: [`max`](Simd::max) and [`min`](Simd::min) return their **second** operand when
/// either is NaN, so `max(limit, x)` keeps a NaN in `x`.
pub trait Simd: Copy + Send + Sync + Debug + 'static {
    /// Number of `f32` lanes in a vector.
    const LANES: usize;
    /// Rows of the matrix-product register tile.
    const TILE_ROWS: usize;
    /// Vectors in a row of the matrix-product register tile.
    const TILE_VECTORS: usize;
    /// True if [`Simd::fma`] and [`Simd::fnma`] round once.
    const FUSED: bool = true;

    /// Rows of a register tile of one, two, three and four vectors; 0 for those wider than
    /// [`TILE_VECTORS`](Self::TILE_VECTORS). Narrower tiles have registers for more rows.
    const TILE_ROWS_BY_VECTORS: [usize; 4];

    /// Rows of a register tile of so many vectors.
    #[inline(always)]
    fn tile_rows(vectors: usize) -> usize {
        Self::TILE_ROWS_BY_VECTORS[vectors.clamp(1, Self::TILE_VECTORS) - 1]
    }

    /// A vector of `f32`.
    type F: Copy;
    /// A vector of `i32` with as many lanes.
    type I: Copy;
    /// A choice per lane.
    type M: Copy;

    /// Runs `kernel` as a function of its own, compiled with these instructions.
    fn enter<K: IsaKernel>(self, kernel: K) -> K::Output;

    /// A vector with `value` in every lane.
    fn splat(self, value: f32) -> Self::F;
    /// Loads [`Simd::LANES`] values.
    ///
    /// # Safety
    /// `p` is valid for reading that many `f32`.
    unsafe fn load(self, p: *const f32) -> Self::F;
    /// Stores [`Simd::LANES`] values.
    ///
    /// # Safety
    /// `p` is valid for writing that many `f32`.
    unsafe fn store(self, p: *mut f32, v: Self::F);
    /// Chooses the first `n` lanes (all when `n >= LANES`).
    fn tail(self, n: usize) -> Self::M;
    /// Loads the lanes that `m` (made by [`Simd::tail`]) chooses; the others are zero.
    ///
    /// # Safety
    /// `p` is valid for reading the chosen lanes.
    unsafe fn load_tail(self, p: *const f32, m: Self::M) -> Self::F;
    /// Stores the lanes that `m` (made by [`Simd::tail`]) chooses.
    ///
    /// # Safety
    /// `p` is valid for writing the chosen lanes.
    unsafe fn store_tail(self, p: *mut f32, m: Self::M, v: Self::F);

    /// `a + b`.
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a - b`.
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b`.
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a / b`.
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c`, fused where the processor has it.
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// `a * b + c` with one rounding, also where that takes longer: what a product has lost.
    #[inline(always)]
    fn fma_once(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        self.fma(a, b, c)
    }
    /// `c - a * b`, fused where the processor has it.
    fn fnma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// The greater; `b` when either is NaN.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    /// The smaller; `b` when either is NaN.
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// Square root, correctly rounded.
    fn sqrt(self, a: Self::F) -> Self::F;
    /// Nearest whole number, ties to even.
    fn round(self, a: Self::F) -> Self::F;
    /// Lanes where `a < b` (false for NaN).
    fn lt(self, a: Self::F, b: Self::F) -> Self::M;
    /// `a` where chosen, `b` elsewhere.
    fn select(self, m: Self::M, a: Self::F, b: Self::F) -> Self::F;
    /// Returns whether any lane is chosen.
    fn any(self, m: Self::M) -> bool;
    /// `v * 2^n` for whole `n` in -260..=254, with gradual underflow and overflow to infinity.
    fn scale_pow2(self, v: Self::F, n: Self::F) -> Self::F;

    /// The bit patterns of the lanes.
    fn bits(self, a: Self::F) -> Self::I;
    /// Lanes from bit patterns.
    fn of_bits(self, a: Self::I) -> Self::F;
    /// A vector with `value` in every lane.
    fn splat_i(self, value: i32) -> Self::I;
    /// Wrapping `a + b`.
    fn add_i(self, a: Self::I, b: Self::I) -> Self::I;
    /// Wrapping `a * b`.
    fn mul_i(self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise and.
    fn and_i(self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise or.
    fn or_i(self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise exclusive or.
    fn xor_i(self, a: Self::I, b: Self::I) -> Self::I;
    /// Logical shift right by less than 32.
    fn shift_right(self, a: Self::I, bits: u32) -> Self::I;
    /// Shift left by less than 32.
    fn shift_left(self, a: Self::I, bits: u32) -> Self::I;
    /// Arithmetic shift right by 23: the exponent field of a positive `f32`.
    fn shr23(self, a: Self::I) -> Self::I;
    /// Shift left by 16.
    fn shl16(self, a: Self::I) -> Self::I;
    /// Nearest `f32` of each `i32`.
    fn to_float(self, a: Self::I) -> Self::F;

    /// Loads four values and repeats them over the vector.
    ///
    /// # Safety
    /// `p` is valid for reading four `f32`.
    #[inline(always)]
    unsafe fn load_four(self, p: *const f32) -> Self::F {
        let mut wide = [0.0_f32; MAX_LANES];
        for (i, wide) in wide.iter_mut().enumerate().take(Self::LANES) {
            // SAFETY: one of the four that the caller vouches for.
            *wide = unsafe { *p.add(i % 4) };
        }
        // SAFETY: there are as many as any vector has.
        unsafe { self.load(wide.as_ptr()) }
    }

    /// Positions for [`Simd::pick`] from the two lowest bits of each lane.
    #[inline(always)]
    fn picks(self, bits: Self::I) -> Self::I {
        bits
    }

    /// In each lane one of the four values that [`Simd::load_four`] has repeated.
    #[inline(always)]
    fn pick(self, four: Self::F, picks: Self::I) -> Self::F {
        let mut values = [0.0_f32; MAX_LANES];
        let mut at = [0.0_f32; MAX_LANES];
        // SAFETY: there are as many as any vector has.
        unsafe { self.store(values.as_mut_ptr(), four) };
        // SAFETY: as above.
        unsafe { self.store(at.as_mut_ptr(), self.of_bits(picks)) };
        let picked: [f32; MAX_LANES] =
            std::array::from_fn(|lane| values[(at[lane].to_bits() & 3) as usize]);
        // SAFETY: there are as many as any vector has.
        unsafe { self.load(picked.as_ptr()) }
    }

    /// Sum of the lanes.
    fn reduce_add(self, a: Self::F) -> f32;
    /// Greatest lane.
    fn reduce_max(self, a: Self::F) -> f32;

    /// Loads [`Simd::LANES`] BF16.
    ///
    /// # Safety
    /// `p` is valid for reading that many.
    #[inline(always)]
    unsafe fn load_bf16(self, p: *const u16) -> Self::F {
        let mut wide = [0.0_f32; MAX_LANES];
        for (i, wide) in wide.iter_mut().enumerate().take(Self::LANES) {
            // SAFETY: i is below LANES; the caller vouches for those values.
            *wide = f32::from_bits(u32::from(unsafe { *p.add(i) }) << 16);
        }
        // SAFETY: there are as many as any vector has.
        unsafe { self.load(wide.as_ptr()) }
    }

    /// Loads [`Simd::LANES`] FP16.
    ///
    /// # Safety
    /// `p` is valid for reading that many.
    #[inline(always)]
    unsafe fn load_f16(self, p: *const u16) -> Self::F {
        let mut wide = [0.0_f32; MAX_LANES];
        for (i, wide) in wide.iter_mut().enumerate().take(Self::LANES) {
            // SAFETY: i is below LANES; the caller vouches for those values.
            *wide = widened(unsafe { *p.add(i) });
        }
        // SAFETY: there are as many as any vector has.
        unsafe { self.load(wide.as_ptr()) }
    }

    /// Loads [`Simd::LANES`] signed bytes as numbers.
    ///
    /// # Safety
    /// `p` is valid for reading that many.
    #[inline(always)]
    unsafe fn load_i8(self, p: *const i8) -> Self::F {
        let mut wide = [0.0_f32; MAX_LANES];
        for (i, wide) in wide.iter_mut().enumerate().take(Self::LANES) {
            // SAFETY: i is below LANES; the caller vouches for those values.
            *wide = f32::from(unsafe { *p.add(i) });
        }
        // SAFETY: there are as many as any vector has.
        unsafe { self.load(wide.as_ptr()) }
    }

    /// Every byte of a vector, which is below 16, replaced by the one that a table has for it.
    #[inline(always)]
    fn look_up(self, table: &[u8; 16], indices: Self::I) -> Self::I {
        let mut lanes = [0.0_f32; MAX_LANES];
        // SAFETY: there are as many as any vector has.
        unsafe { self.store(lanes.as_mut_ptr(), self.of_bits(indices)) };
        for lane in lanes.iter_mut().take(Self::LANES) {
            let mut bytes = lane.to_bits().to_ne_bytes();
            for byte in &mut bytes {
                *byte = table[usize::from(*byte & 15)];
            }
            *lane = f32::from_bits(u32::from_ne_bytes(bytes));
        }
        // SAFETY: there are as many as any vector has.
        self.bits(unsafe { self.load(lanes.as_ptr()) })
    }

    /// Stores [`Simd::LANES`] values as the nearest BF16, ties to even; a NaN stays one.
    ///
    /// # Safety
    /// `p` is valid for writing that many.
    #[inline(always)]
    unsafe fn store_bf16(self, p: *mut u16, v: Self::F) {
        let mut wide = [0.0_f32; MAX_LANES];
        // SAFETY: there are as many as any vector has.
        unsafe { self.store(wide.as_mut_ptr(), v) };
        for (i, &wide) in wide.iter().enumerate().take(Self::LANES) {
            // SAFETY: i is below LANES; the caller vouches for those values.
            unsafe { *p.add(i) = nearest(wide) };
        }
    }

    /// [`Simd::load_bf16`] of the lanes that `m` (made by [`Simd::tail`]) chooses; the others are zero.
    ///
    /// # Safety
    /// `p` is valid for reading the chosen lanes.
    #[inline(always)]
    unsafe fn load_bf16_tail(self, p: *const u16, m: Self::M) -> Self::F {
        let mut wide = [0.0_f32; MAX_LANES];
        for (i, wide) in wide.iter_mut().enumerate().take(chosen(self, m)) {
            // SAFETY: the caller vouches for the chosen lanes.
            *wide = f32::from_bits(u32::from(unsafe { *p.add(i) }) << 16);
        }
        // SAFETY: there are as many as any vector has.
        unsafe { self.load(wide.as_ptr()) }
    }

    /// [`Simd::store_bf16`] of the lanes that `m` (made by [`Simd::tail`]) chooses.
    ///
    /// # Safety
    /// `p` is valid for writing the chosen lanes.
    #[inline(always)]
    unsafe fn store_bf16_tail(self, p: *mut u16, m: Self::M, v: Self::F) {
        let mut wide = [0.0_f32; MAX_LANES];
        // SAFETY: there are as many as any vector has.
        unsafe { self.store(wide.as_mut_ptr(), v) };
        for (i, &wide) in wide.iter().enumerate().take(chosen(self, m)) {
            // SAFETY: the caller vouches for the chosen lanes.
            unsafe { *p.add(i) = nearest(wide) };
        }
    }

    /// Asks for the cache line of `p`; any address is allowed.
    #[inline(always)]
    fn prefetch(self, _p: *const f32) {}

    /// Prefetches like [`Simd::prefetch`], for a line that is going to be written.
    #[inline(always)]
    fn prefetch_to_write(self, p: *const f32) {
        self.prefetch(p);
    }

    /// Transposes a [`Simd::LANES`] x [`Simd::LANES`] block: `dst[j][i] = src[i][j]`.
    ///
    /// # Safety
    /// Rows of `src` (`src_stride` apart) and `dst` (`dst_stride` apart) are valid for reading and
    /// writing `LANES` values each, and do not overlap.
    #[inline(always)]
    unsafe fn transpose_block(
        self,
        src: *const f32,
        src_stride: usize,
        dst: *mut f32,
        dst_stride: usize,
    ) {
        for i in 0..Self::LANES {
            for j in 0..Self::LANES {
                // SAFETY: i and j are below LANES; the caller vouches for those elements.
                unsafe { *dst.add(j * dst_stride + i) = *src.add(i * src_stride + j) };
            }
        }
    }
}

/// Lanes of the widest vector.
const MAX_LANES: usize = 16;

/// An FP16 as FP32, by operations that a compiler makes vectors of: the exponent moved by a product,
/// which also makes subnormal numbers normal.
#[inline(always)]
fn widened(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let rest = u32::from(half & 0x7fff);
    // 2^112: the distance of the exponents' zeros.
    let wide = f32::from_bits(rest << 13) * f32::from_bits(0x7780_0000);
    // Infinities and NaN keep their greatest exponent.
    let most = if rest >= 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(wide.to_bits() | most | sign)
}

/// How many lanes a mask made by [`Simd::tail`] chooses.
#[inline(always)]
fn chosen<S: Simd>(s: S, m: S::M) -> usize {
    let mut ones = [0.0_f32; MAX_LANES];
    // SAFETY: there are as many as any vector has.
    unsafe { s.store(ones.as_mut_ptr(), s.select(m, s.splat(1.0), s.splat(0.0))) };
    ones.iter().filter(|&&one| one > 0.0).count()
}
