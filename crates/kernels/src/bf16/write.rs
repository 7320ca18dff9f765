//! From sums to results.

use crate::activation::ActivateRows;
use crate::gemm::Finish;
use crate::isa::{Amx, Simd};
use crate::tiles::Results;

/// A part of C that becomes complete, or is added to.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) c: *mut f32,
    pub(crate) c_stride: usize,
    pub(crate) columns: usize,
    /// Whether C already holds the sums of earlier blocks.
    pub(crate) accumulate: bool,
    /// Whether C is too large to be near.
    pub(crate) far: bool,
    /// On the last block: bias, residual and clamp, from this part's first row and column on.
    pub(crate) finish: Option<Finish>,
}

impl<S: Simd> Results<S> for Place {
    #[inline(always)]
    fn below(&self, rows: usize) -> Self {
        Self::below(self, rows)
    }

    #[inline(always)]
    fn columns(&self) -> usize {
        self.columns
    }

    #[inline(always)]
    unsafe fn write(&self, s: S, rows: usize, sums: *const f32, strides: (usize, usize)) {
        // SAFETY: the caller vouches for sums and C.
        unsafe {
            Self::write(self, s, rows, sums, strides);
            self.activate(s, rows);
        }
    }

    #[inline(always)]
    fn fetch(&self, amx: Amx, rows: std::ops::Range<usize>) {
        if !self.far {
            return;
        }
        for row in rows {
            let c = self.c.wrapping_add(row * self.c_stride);
            amx.prefetch_to_write(c);
            amx.prefetch_to_write(c.wrapping_add(self.columns.min(17) - 1));
            amx.prefetch_to_write(c.wrapping_add(self.columns - 1));
        }
    }
}

impl Place {
    /// The same from a row on.
    #[inline(always)]
    pub(crate) fn below(&self, rows: usize) -> Self {
        Self {
            c: self.c.wrapping_add(rows * self.c_stride),
            finish: self.finish.map(|finish| finish.shifted(rows, 0)),
            ..*self
        }
    }

    /// Writes `rows` rows of sums; those of 16 columns are adjacent, the next 16 of the same row lie
    /// `next` further, the next row `stride` further.
    ///
    /// # Safety
    /// C, bias and residual cover the rows; the sums have rows of whole tiles.
    #[inline(always)]
    pub(crate) unsafe fn write<S: Simd>(
        &self,
        s: S,
        rows: usize,
        sums: *const f32,
        (stride, next): (usize, usize),
    ) {
        let mut column = 0;
        while column < self.columns {
            let sums = sums.wrapping_add(column / 16 * next + column % 16);
            let c = self.c.wrapping_add(column);
            let finish = self.finish.map(|finish| finish.shifted(0, column));
            let left = self.columns - column;
            // SAFETY: a vector of columns, of which the last may be cut.
            unsafe {
                if left >= S::LANES {
                    self.write_column(s, rows, (sums, stride), c, finish, None);
                } else {
                    self.write_column(s, rows, (sums, stride), c, finish, Some(s.tail(left)));
                }
            }
            column += S::LANES;
        }
    }

    /// [`Place::write`] for a vector of columns.
    ///
    /// # Safety
    /// As there; `mask` covers what is left of the columns.
    #[inline(always)]
    unsafe fn write_column<S: Simd>(
        &self,
        s: S,
        rows: usize,
        (sums, stride): (*const f32, usize),
        c: *mut f32,
        finish: Option<Finish>,
        mask: Option<S::M>,
    ) {
        // SAFETY: the caller vouches for the memory.
        unsafe {
            let bias = match finish.and_then(|finish| finish.bias_at(0)) {
                Some(bias) => load(s, bias, mask),
                None => s.splat(0.0),
            };
            if let (false, Some(plain)) = (self.accumulate, finish.filter(Finish::is_plain)) {
                let (low, high) = (s.splat(plain.low), s.splat(plain.high));
                for row in 0..rows {
                    let x = s.add(s.load(sums.add(row * stride)), bias);
                    store(s, c.add(row * self.c_stride), s.min(high, s.max(low, x)), mask);
                }
                return;
            }
            for row in 0..rows {
                let c = c.add(row * self.c_stride);
                let mut x = s.load(sums.add(row * stride));
                if self.accumulate {
                    x = s.add(x, load(s, c, mask));
                }
                if let Some(finish) = &finish {
                    x = s.add(x, bias);
                    if let Some(residual) = finish.residual_at(row, 0) {
                        x = finish.joined(s, x, load(s, residual, mask));
                    }
                    x = s.min(s.splat(finish.high), s.max(s.splat(finish.low), x));
                }
                store(s, c, x, mask);
            }
        }
    }

    /// Applies what a clamp cannot do, once C is complete.
    ///
    /// # Safety
    /// C has the rows.
    #[inline(always)]
    pub(crate) unsafe fn activate<S: Simd>(&self, s: S, rows: usize) {
        if let Some(activation) = self.finish.and_then(|finish| finish.late) {
            let (data, columns, stride) = (self.c, self.columns, self.c_stride);
            let on = ActivateRows { activation, data, rows, columns, stride };
            // SAFETY: the caller vouches for C.
            unsafe { on.run(s) };
        }
    }
}

/// Loads a vector, or what a mask chooses of it.
///
/// # Safety
/// `p` is valid for that.
#[inline(always)]
unsafe fn load<S: Simd>(s: S, p: *const f32, mask: Option<S::M>) -> S::F {
    // SAFETY: the caller vouches for the memory.
    unsafe {
        match mask {
            Some(mask) => s.load_tail(p, mask),
            None => s.load(p),
        }
    }
}

/// Stores a vector, or what a mask chooses of it.
///
/// # Safety
/// `p` is valid for that.
#[inline(always)]
unsafe fn store<S: Simd>(s: S, p: *mut f32, x: S::F, mask: Option<S::M>) {
    // SAFETY: the caller vouches for the memory.
    unsafe {
        match mask {
            Some(mask) => s.store_tail(p, mask, x),
            None => s.store(p, x),
        }
    }
}
