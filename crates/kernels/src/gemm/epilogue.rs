//! Epilogue of a GEMM, applied before the result is stored: bias, residual, activation.

use crate::activation::ActivationFunction;
use crate::isa::Simd;

/// `C = activation(A B + bias + residual)`, or with a gate `C = activation((A B + bias) * gate)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct GemmEpilogue<'a> {
    /// One value per column of C, added to every row.
    pub bias: Option<&'a [f32]>,
    /// A matrix of the shape of C, added or, as a gate, multiplied.
    pub residual: Option<ResidualMatrix<'a>>,
    /// Applied last.
    pub activation: ActivationFunction,
}

/// A matrix that joins a product.
#[derive(Clone, Copy, Debug)]
pub struct ResidualMatrix<'a> {
    /// Rows `ld` apart; none: what C holds, for those that say that they take it.
    pub data: Option<&'a [f32]>,
    /// Leading dimension.
    pub ld: usize,
    /// How it joins.
    pub join: MatrixJoin,
}

/// How a matrix joins a product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatrixJoin {
    /// It is added.
    #[default]
    Add,
    /// It is multiplied, element by element: a gate.
    Multiply,
}

impl<'a> GemmEpilogue<'a> {
    /// Only a bias.
    #[must_use]
    pub fn bias(bias: &'a [f32]) -> Self {
        Self { bias: Some(bias), ..Self::default() }
    }

    /// The same with another activation.
    #[must_use]
    pub fn with_activation(self, activation: ActivationFunction) -> Self {
        Self { activation, ..self }
    }

    /// The same with a residual.
    #[must_use]
    pub fn with_residual(self, data: &'a [f32], ld: usize) -> Self {
        Self {
            residual: Some(ResidualMatrix { data: Some(data), ld, join: MatrixJoin::Add }),
            ..self
        }
    }

    /// The same with a gate.
    #[must_use]
    pub fn with_gate(self, data: &'a [f32], ld: usize) -> Self {
        Self {
            residual: Some(ResidualMatrix { data: Some(data), ld, join: MatrixJoin::Multiply }),
            ..self
        }
    }

    /// The same with what C, whose rows are `ld` apart, holds as the residual.
    #[must_use]
    pub fn with_own_residual(self, ld: usize) -> Self {
        Self { residual: Some(ResidualMatrix { data: None, ld, join: MatrixJoin::Add }), ..self }
    }

    /// Checks the lengths against an `m` x `n` product that takes no residual from C.
    pub(crate) fn check(&self, m: usize, n: usize) {
        self.check_over(m, n, false);
    }

    /// Checks the lengths against an `m` x `n` product; `takes_own`: its residual may be what C holds.
    pub(crate) fn check_over(&self, m: usize, n: usize, takes_own: bool) {
        if let Some(bias) = self.bias {
            assert!(bias.len() >= n, "bias has {} values for {n} columns", bias.len());
        }
        match self.residual {
            Some(ResidualMatrix { data: Some(data), ld, .. }) => {
                super::check_matrix("residual", data.len(), m, n, ld);
            }
            Some(_) => assert!(takes_own, "what C holds is no residual of this product"),
            None => {}
        }
    }
}

/// An [`GemmEpilogue`] as pointers: what a register tile needs. Offsets are in rows and columns of C.
#[derive(Clone, Copy)]
pub(crate) struct TileFinish {
    bias: *const f32,
    residual: *const f32,
    pub(crate) residual_ld: usize,
    join: MatrixJoin,
    pub(crate) low: f32,
    pub(crate) high: f32,
    /// The activation that the clamp of a register tile cannot do; applied to C when a block is
    /// complete.
    pub(crate) late: Option<ActivationFunction>,
}

// SAFETY: read-only views of slices that the epilogue's owner holds while tasks run.
unsafe impl Send for TileFinish {}
// SAFETY: as for Send.
unsafe impl Sync for TileFinish {}

impl TileFinish {
    pub(crate) fn new(epilogue: &GemmEpilogue<'_>) -> Self {
        let clamp = epilogue.activation.as_clamp();
        let (low, high) = clamp.unwrap_or((f32::NEG_INFINITY, f32::INFINITY));
        Self {
            bias: epilogue.bias.map_or(std::ptr::null(), <[f32]>::as_ptr),
            residual: epilogue
                .residual
                .and_then(|r| r.data)
                .map_or(std::ptr::null(), <[f32]>::as_ptr),
            residual_ld: epilogue.residual.map_or(0, |r| r.ld),
            join: epilogue.residual.map_or(MatrixJoin::Add, |r| r.join),
            low,
            high,
            late: clamp.is_none().then_some(epilogue.activation),
        }
    }

    /// For a product that is written to `c`, where a residual may lie.
    pub(crate) fn over(epilogue: &GemmEpilogue<'_>, c: *const f32) -> Self {
        let finish = Self::new(epilogue);
        match epilogue.residual {
            Some(ResidualMatrix { data: None, .. }) => Self { residual: c, ..finish },
            _ => finish,
        }
    }

    /// A matrix is added, whose rows are `ld` apart.
    pub(crate) fn plus(matrix: *const f32, ld: usize) -> Self {
        Self { residual: matrix, residual_ld: ld, ..Self::new(&GemmEpilogue::default()) }
    }

    /// The same where a matrix, whose rows are `ld` apart, multiplies.
    pub(crate) fn times(self, matrix: *const f32, ld: usize) -> Self {
        Self { residual: matrix, residual_ld: ld, join: MatrixJoin::Multiply, ..self }
    }

    /// Returns whether no matrix joins.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.residual.is_null()
    }

    /// The bias from `column` on.
    #[inline(always)]
    pub(crate) fn bias_at(&self, column: usize) -> Option<*const f32> {
        (!self.bias.is_null()).then(|| self.bias.wrapping_add(column))
    }

    /// The residual from (`row`, `column`) on.
    #[inline(always)]
    pub(crate) fn residual_at(&self, row: usize, column: usize) -> Option<*const f32> {
        let offset = row * self.residual_ld + column;
        (!self.residual.is_null()).then(|| self.residual.wrapping_add(offset))
    }

    /// A vector of the product with the residual's.
    #[inline(always)]
    pub(crate) fn joined<S: Simd>(&self, s: S, product: S::F, residual: S::F) -> S::F {
        match self.join {
            MatrixJoin::Add => s.add(product, residual),
            MatrixJoin::Multiply => s.mul(product, residual),
        }
    }

    /// The same for the part of C that starts at (`row`, `column`).
    #[inline(always)]
    pub(crate) fn shifted(&self, row: usize, column: usize) -> Self {
        Self {
            bias: self.bias_at(column).unwrap_or_default(),
            residual: self.residual_at(row, column).unwrap_or_default(),
            ..*self
        }
    }
}
