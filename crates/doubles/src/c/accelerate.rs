//! Doubles of Accelerate's `cblas_sgemm`, with integers of 32 and of 64 bits.
//!
//! Source: the CBLAS interface (netlib's `cblas.h` and `cblas_sgemm.c`).

use super::darwin::c_int;
use super::refuse;

/// Arguments of a product, as the caller gave them.
struct SgemmCall {
    function: &'static str,
    order: c_int,
    transposed: [c_int; 2],
    /// Rows and columns of the result, and length of its sums.
    sizes: [i64; 3],
    alpha: f32,
    a: *const f32,
    b: *const f32,
    beta: f32,
    c: *mut f32,
    /// Leading dimensions.
    leading: [i64; 3],
}

/// Place of a matrix's elements.
#[derive(Clone, Copy)]
struct MatrixElement {
    row: usize,
    column: usize,
}

impl SgemmCall {
    /// Checks the arguments as the interface states them, which ends the program with a message, too.
    fn checked(&self) {
        let wrong = |argument: &str, found: i64, expected: &str| -> ! {
            refuse(self.function, &format!("{argument} is {found}, expected {expected}"))
        };
        if ![101, 102].contains(&self.order) {
            wrong("Order", self.order.into(), "101 or 102");
        }
        for (name, code) in ["TransA", "TransB"].into_iter().zip(self.transposed) {
            if ![111, 112, 113].contains(&code) {
                wrong(name, code.into(), "111, 112 or 113");
            }
        }
        for (name, size) in ["M", "N", "K"].into_iter().zip(self.sizes) {
            if size < 0 {
                wrong(name, size, "no negative size");
            }
        }
        let [m, n, k] = self.sizes;
        let stored = [(m, k, self.plain(0)), (k, n, self.plain(1)), (m, n, true)];
        for (at, (rows, columns, plain)) in stored.into_iter().enumerate() {
            // The dimension that lies together: columns of rows, rows of columns.
            let together = if plain == (self.order == 101) { columns } else { rows };
            let name = ["lda", "ldb", "ldc"][at];
            if self.leading[at] < together.max(1) {
                wrong(name, self.leading[at], &format!("{} at least", together.max(1)));
            }
        }
        let empty = m == 0 || n == 0;
        if !empty && (self.c.is_null() || (k > 0 && (self.a.is_null() || self.b.is_null()))) {
            refuse(self.function, "a matrix is null");
        }
    }

    fn plain(&self, factor: usize) -> bool {
        self.transposed[factor] == 111
    }

    /// Distance of an element of a stored matrix from the first.
    fn index(&self, matrix: usize, place: MatrixElement) -> usize {
        let leading = usize::try_from(self.leading[matrix]).unwrap_or(0);
        match self.order {
            101 => place.row * leading + place.column,
            _ => place.column * leading + place.row,
        }
    }

    /// An element of a factor, which may be stored transposed.
    ///
    /// # Safety
    /// The factor has the element.
    unsafe fn element(&self, factor: usize, place: MatrixElement) -> f32 {
        let stored = match self.plain(factor) {
            true => place,
            false => MatrixElement { row: place.column, column: place.row },
        };
        let from = if factor == 0 { self.a } else { self.b };
        // SAFETY: the caller vouches for the element.
        unsafe { *from.add(self.index(factor, stored)) }
    }

    /// Computes the product.
    ///
    /// # Safety
    /// The matrices are where and as large as the arguments say.
    unsafe fn run(&self) {
        self.checked();
        let [rows, columns, terms] = self.sizes.map(|size| usize::try_from(size).unwrap_or(0));
        for row in 0..rows {
            for column in 0..columns {
                let product = |term: usize| {
                    // SAFETY: the caller vouches for the matrices.
                    let a = unsafe { self.element(0, MatrixElement { row, column: term }) };
                    // SAFETY: as above.
                    let b = unsafe { self.element(1, MatrixElement { row: term, column }) };
                    a * b
                };
                let sum: f32 = (0..terms).map(product).sum();
                // SAFETY: as above.
                let place = unsafe { self.c.add(self.index(2, MatrixElement { row, column })) };
                // Without a share of what was there it is not read: it may be no number.
                let before = match self.beta {
                    0.0 => 0.0,
                    // SAFETY: as above.
                    beta => beta * unsafe { *place },
                };
                // SAFETY: as above.
                unsafe { *place = self.alpha * sum + before };
            }
        }
    }
}

/// Double of `cblas_sgemm`.
///
/// # Safety
/// The matrices are where and as large as the arguments say.
pub(super) unsafe extern "C" fn narrow_sgemm(
    order: c_int,
    trans_a: c_int,
    trans_b: c_int,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: f32,
    a: *const f32,
    lda: c_int,
    b: *const f32,
    ldb: c_int,
    beta: f32,
    c: *mut f32,
    ldc: c_int,
) {
    let call = SgemmCall {
        function: "cblas_sgemm",
        order,
        transposed: [trans_a, trans_b],
        sizes: [m, n, k].map(i64::from),
        alpha,
        a,
        b,
        beta,
        c,
        leading: [lda, ldb, ldc].map(i64::from),
    };
    // SAFETY: as for this function.
    unsafe { call.run() };
}

/// Double of `cblas_sgemm$NEWLAPACK$ILP64`.
///
/// # Safety
/// The matrices are where and as large as the arguments say.
pub(super) unsafe extern "C" fn wide_sgemm(
    order: c_int,
    trans_a: c_int,
    trans_b: c_int,
    m: i64,
    n: i64,
    k: i64,
    alpha: f32,
    a: *const f32,
    lda: i64,
    b: *const f32,
    ldb: i64,
    beta: f32,
    c: *mut f32,
    ldc: i64,
) {
    let call = SgemmCall {
        function: "cblas_sgemm$NEWLAPACK$ILP64",
        order,
        transposed: [trans_a, trans_b],
        sizes: [m, n, k],
        alpha,
        a,
        b,
        beta,
        c,
        leading: [lda, ldb, ldc],
    };
    // SAFETY: as for this function.
    unsafe { call.run() };
}
