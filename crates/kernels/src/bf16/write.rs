//! From sums to results.

use half::bf16;

use super::Bf16Summand;
use super::pack::PANEL;
use crate::activation::{ActivateRows, ActivationFunction};
use crate::cell::{RealCell, RealsMut};
use crate::gemm::check_matrix;
use crate::gemm::{MatrixJoin, TileFinish};
use crate::isa::{Amx, Simd};
use crate::matrix::StridedMatrix;
use crate::tiles::{TileResults, TileSums};

/// Rows that are activated at once before they are rounded.
const AT_ONCE: usize = 16;

/// Where results go.
#[derive(Clone, Copy)]
pub(crate) enum Bf16ResultCells {
    Fp32(*mut f32),
    Bf16(*mut bf16),
}

// SAFETY: only a pointer; whoever dereferences it vouches that tasks write disjoint elements.
unsafe impl Send for Bf16ResultCells {}
// SAFETY: as for Send.
unsafe impl Sync for Bf16ResultCells {}

impl Bf16ResultCells {
    pub(crate) fn of(y: RealsMut<'_>) -> Self {
        match y {
            RealsMut::Fp32(y) => Self::Fp32(y.as_mut_ptr()),
            RealsMut::Bf16(y) => Self::Bf16(y.as_mut_ptr()),
        }
    }

    /// The elements from `offset` on.
    #[inline(always)]
    pub(crate) fn at(self, offset: usize) -> Self {
        match self {
            Self::Fp32(y) => Self::Fp32(y.wrapping_add(offset)),
            Self::Bf16(y) => Self::Bf16(y.wrapping_add(offset)),
        }
    }

    /// Returns whether they are BF16, which cannot hold sums.
    #[inline(always)]
    pub(crate) fn is_half(self) -> bool {
        matches!(self, Self::Bf16(_))
    }

    /// Bytes of an element.
    #[inline(always)]
    pub(crate) fn size_bytes(self) -> usize {
        if self.is_half() { size_of::<bf16>() } else { size_of::<f32>() }
    }
}

/// A matrix of BF16 that joins a product, by its strides.
#[derive(Clone, Copy)]
pub(crate) struct JoinedBf16Matrix {
    data: *const bf16,
    ld: usize,
    join: MatrixJoin,
}

// SAFETY: a read-only view of a slice that the caller of the product holds while tasks run.
unsafe impl Send for JoinedBf16Matrix {}
// SAFETY: as for Send.
unsafe impl Sync for JoinedBf16Matrix {}

impl JoinedBf16Matrix {
    /// For an `m` x `n` product that is written to `c`.
    ///
    /// # Panics
    /// Panics when there are fewer values than the product has, or none and C is not BF16.
    pub(crate) fn of(beside: &Bf16Summand<'_>, m: usize, n: usize, c: Bf16ResultCells) -> Self {
        let own = match c {
            Bf16ResultCells::Bf16(c) => c.cast_const(),
            Bf16ResultCells::Fp32(_) => std::ptr::null(),
        };
        let data = match beside.data {
            Some(data) => {
                check_matrix("what joins", data.len(), m, n, beside.ld);
                data.as_ptr()
            }
            None => own,
        };
        assert!(!data.is_null(), "C of FP32 holds nothing of BF16 that could join");
        Self { data, ld: beside.ld, join: beside.join }
    }

    /// The same for the part of C that starts at (`row`, `column`).
    #[inline(always)]
    pub(crate) fn shifted(&self, row: usize, column: usize) -> Self {
        Self { data: self.data.wrapping_add(row * self.ld + column), ..*self }
    }

    /// A vector of the product with that of a row.
    ///
    /// # Safety
    /// The row is there.
    #[inline(always)]
    unsafe fn join<S: Simd>(&self, s: S, x: S::F, row: usize, mask: Option<S::M>) -> S::F {
        // SAFETY: the caller vouches for the row.
        let other = unsafe { bf16::load(s, self.data.add(row * self.ld), mask) };
        match self.join {
            MatrixJoin::Add => s.add(x, other),
            MatrixJoin::Multiply => s.mul(x, other),
        }
    }
}

/// A part of C that becomes complete, or is added to.
#[derive(Clone, Copy)]
pub(crate) struct ResultPart {
    pub(crate) c: Bf16ResultCells,
    pub(crate) c_stride: usize,
    pub(crate) columns: usize,
    /// True if C already holds the sums of earlier blocks.
    pub(crate) accumulate: bool,
    /// True if C is too large to be near.
    pub(crate) far: bool,
    /// On the last block: bias, residual and clamp, from this part's first row and column on.
    pub(crate) finish: Option<TileFinish>,
    /// On the last block: a matrix of BF16 that joins, from there on.
    pub(crate) beside: Option<JoinedBf16Matrix>,
}

impl<S: Simd> TileResults<S> for ResultPart {
    #[inline(always)]
    fn below(&self, rows: usize) -> Self {
        Self::below(self, rows)
    }

    #[inline(always)]
    fn columns(&self) -> usize {
        self.columns
    }

    #[inline(always)]
    unsafe fn write(&self, s: S, rows: usize, sums: TileSums) {
        // SAFETY: the caller vouches for sums and C.
        unsafe {
            Self::write(self, s, rows, sums);
            self.activate(s, rows);
        }
    }

    #[inline(always)]
    fn fetch(&self, amx: Amx, row: usize) {
        if !self.far {
            return;
        }
        match self.c.at(row * self.c_stride) {
            Bf16ResultCells::Fp32(c) => {
                amx.prefetch_to_write(c);
                amx.prefetch_to_write(c.wrapping_add(self.columns.min(17) - 1));
                amx.prefetch_to_write(c.wrapping_add(self.columns - 1));
            }
            Bf16ResultCells::Bf16(c) => {
                amx.prefetch_to_write(c.cast());
                amx.prefetch_to_write(c.wrapping_add(self.columns - 1).cast());
            }
        }
    }
}

impl ResultPart {
    /// The same from a row on.
    #[inline(always)]
    pub(crate) fn below(&self, rows: usize) -> Self {
        Self {
            c: self.c.at(rows * self.c_stride),
            finish: self.finish.map(|finish| finish.shifted(rows, 0)),
            beside: self.beside.map(|beside| beside.shifted(rows, 0)),
            ..*self
        }
    }

    /// Writes `rows` rows of sums.
    ///
    /// # Safety
    /// C, bias and residual cover the rows; the sums have rows of whole tiles.
    #[inline(always)]
    pub(crate) unsafe fn write<S: Simd>(&self, s: S, rows: usize, sums: TileSums) {
        // SAFETY: the caller vouches for sums and C.
        unsafe {
            match (self.c, self.finish.and_then(|finish| finish.late)) {
                (Bf16ResultCells::Fp32(c), _) => {
                    self.write_to(s, rows, sums, StridedMatrix::new(c, self.c_stride));
                }
                (Bf16ResultCells::Bf16(c), None) => {
                    self.write_to(s, rows, sums, StridedMatrix::new(c, self.c_stride));
                }
                (Bf16ResultCells::Bf16(c), Some(late)) => {
                    self.write_late(s, rows, sums, c, late);
                }
            }
        }
    }

    /// [`ResultPart::write`] to elements of a type.
    ///
    /// # Safety
    /// The same as for [`ResultPart::write`].
    #[inline(always)]
    unsafe fn write_to<S: Simd, C: RealCell>(
        &self,
        s: S,
        rows: usize,
        sums: TileSums,
        c: StridedMatrix<*mut C>,
    ) {
        let mut column = 0;
        while column < self.columns {
            let data = sums.data.wrapping_add(column / 16 * sums.next + column % 16);
            let from = StridedMatrix::new(data, sums.stride);
            let to = StridedMatrix::new(c.data.wrapping_add(column), c.stride);
            let part = Self {
                columns: self.columns - column,
                finish: self.finish.map(|finish| finish.shifted(0, column)),
                beside: self.beside.map(|beside| beside.shifted(0, column)),
                ..*self
            };
            let mask = (part.columns < S::LANES).then(|| s.tail(part.columns));
            // SAFETY: a vector of columns, of which the last may be cut.
            unsafe { part.write_column(s, rows, from, to, mask) };
            column += S::LANES;
        }
    }

    /// [`ResultPart::write`] with an activation that a clamp cannot do: on FP32, before they are rounded.
    ///
    /// # Safety
    /// The same as for [`ResultPart::write`].
    #[inline(always)]
    unsafe fn write_late<S: Simd>(
        &self,
        s: S,
        rows: usize,
        sums: TileSums,
        c: *mut bf16,
        activation: ActivationFunction,
    ) {
        let mut results = [0.0_f32; AT_ONCE * PANEL];
        let data = results.as_mut_ptr();
        let mut start = 0;
        while start < rows {
            let rows = AT_ONCE.min(rows - start);
            let part = self.below(start);
            let sums = TileSums { data: sums.data.wrapping_add(start * sums.stride), ..sums };
            let on = ActivateRows { activation, data, rows, columns: self.columns, stride: PANEL };
            let c = c.wrapping_add(start * self.c_stride);
            // SAFETY: some of the caller's rows; there is room for them.
            unsafe {
                part.write_to(s, rows, sums, StridedMatrix::new(data, PANEL));
                on.run_short(s);
                let mut column = 0;
                while column < self.columns {
                    let left = self.columns - column;
                    let mask = (left < S::LANES).then(|| s.tail(left));
                    for row in 0..rows {
                        let x = f32::load(s, data.add(row * PANEL + column), mask);
                        bf16::store(s, c.add(row * self.c_stride + column), mask, x);
                    }
                    column += S::LANES;
                }
            }
            start += rows;
        }
    }

    /// [`ResultPart::write`] for the first vector of columns.
    ///
    /// # Safety
    /// The same as for [`ResultPart::write`]; the mask covers the columns where they are less than a
    /// vector.
    #[inline(always)]
    unsafe fn write_column<S: Simd, C: RealCell>(
        &self,
        s: S,
        rows: usize,
        sums: StridedMatrix<*const f32>,
        c: StridedMatrix<*mut C>,
        mask: Option<S::M>,
    ) {
        // SAFETY: the caller vouches for the memory.
        unsafe {
            let bias = match self.finish.and_then(|finish| finish.bias_at(0)) {
                Some(bias) => f32::load(s, bias, mask),
                None => s.splat(0.0),
            };
            let plain = self.finish.filter(|finish| finish.is_plain() && self.beside.is_none());
            if let (false, Some(plain)) = (self.accumulate, plain) {
                let low = s.splat(plain.low);
                let high = s.splat(plain.high);
                for row in 0..rows {
                    let x = s.add(s.load(sums.data.add(row * sums.stride)), bias);
                    C::store(s, c.data.add(row * c.stride), mask, s.min(high, s.max(low, x)));
                }
                return;
            }
            for row in 0..rows {
                let c = c.data.add(row * c.stride);
                let mut x = s.load(sums.data.add(row * sums.stride));
                if self.accumulate {
                    x = s.add(x, C::load(s, c, mask));
                }
                if let Some(finish) = &self.finish {
                    x = s.add(x, bias);
                    if let Some(residual) = finish.residual_at(row, 0) {
                        x = finish.joined(s, x, f32::load(s, residual, mask));
                    }
                    if let Some(beside) = self.beside {
                        x = beside.join(s, x, row, mask);
                    }
                    x = s.min(s.splat(finish.high), s.max(s.splat(finish.low), x));
                }
                C::store(s, c, mask, x);
            }
        }
    }

    /// Applies what a clamp cannot do, once C is complete; BF16 are complete when they are written.
    ///
    /// # Safety
    /// C has the rows.
    #[inline(always)]
    pub(crate) unsafe fn activate<S: Simd>(&self, s: S, rows: usize) {
        let late = self.finish.and_then(|finish| finish.late);
        if let (Some(activation), Bf16ResultCells::Fp32(data)) = (late, self.c) {
            let columns = self.columns;
            let stride = self.c_stride;
            let on = ActivateRows { activation, data, rows, columns, stride };
            // SAFETY: the caller vouches for C.
            unsafe { on.run(s) };
        }
    }
}
