//! Products of matrices by Accelerate and BNNS, as each macOS has them.

use galatea_apple::accelerate::{
    BlasLibrary, BlasOperand, BlasSizes, GemmScaling, OperandOrientation, SgemmError, sgemm,
};
use galatea_apple::bnns::{BnnsElements, BnnsFactor, BnnsLibrary, MatMulError};

use crate::{on, passes_on};

const ORIENTATIONS: [OperandOrientation; 2] =
    [OperandOrientation::Plain, OperandOrientation::Transposed];

/// A stored factor: small whole numbers, with elements between its rows that belong to nobody.
struct StoredFactor {
    single: Vec<f32>,
    fp16: Vec<u16>,
    bf16: Vec<u16>,
    stride: usize,
    orientation: OperandOrientation,
}

impl StoredFactor {
    fn new(rows: usize, columns: usize, orientation: OperandOrientation) -> Self {
        let (stored, across) = match orientation {
            OperandOrientation::Plain => (rows, columns),
            OperandOrientation::Transposed => (columns, rows),
        };
        let stride = across + 3;
        let single: Vec<f32> = (0..stored * stride).map(|at| (at * 7 % 11) as f32 - 5.0).collect();
        let fp16 = single.iter().map(|value| of_fp16(*value)).collect();
        let upper = |value: &f32| u16::try_from(value.to_bits() >> 16).unwrap();
        let bf16 = single.iter().map(upper).collect();
        Self { single, fp16, bf16, stride, orientation }
    }

    fn at(&self, row: usize, column: usize) -> f32 {
        match self.orientation {
            OperandOrientation::Plain => self.single[row * self.stride + column],
            OperandOrientation::Transposed => self.single[column * self.stride + row],
        }
    }

    fn operand(&self) -> BlasOperand<'_> {
        BlasOperand { data: &self.single, stride: self.stride, orientation: self.orientation }
    }

    /// The factor with elements of each type.
    fn factors(&self) -> [BnnsFactor<'_>; 3] {
        let types = [
            BnnsElements::Fp32(&self.single),
            BnnsElements::Fp16(&self.fp16),
            BnnsElements::Bf16(&self.bf16),
        ];
        let of = |data| BnnsFactor { data, stride: self.stride, orientation: self.orientation };
        types.map(of)
    }
}

/// Bits of a small whole number in FP16.
fn of_fp16(value: f32) -> u16 {
    let wide = value.to_bits();
    // The exponent counts from 15 in the place of 127.
    let exponent = (wide >> 23 & 0xff).saturating_sub(112);
    u16::try_from(wide >> 16 & 0x8000 | exponent << 10 | wide >> 13 & 0x3ff).unwrap()
}

/// A product with what it gives.
struct ProductCase {
    sizes: BlasSizes,
    a: StoredFactor,
    b: StoredFactor,
}

impl ProductCase {
    fn all() -> Vec<Self> {
        let sizes = [(1, 1, 1), (5, 3, 7), (2, 9, 4), (16, 8, 33)];
        let turned = ORIENTATIONS.map(|a| ORIENTATIONS.map(|b| (a, b)));
        let cases = sizes.into_iter().flat_map(|sizes| {
            turned.into_iter().flatten().map(move |orientations| (sizes, orientations))
        });
        cases
            .map(|((m, n, k), (of_a, of_b))| Self {
                sizes: BlasSizes { m, n, k },
                a: StoredFactor::new(m, k, of_a),
                b: StoredFactor::new(k, n, of_b),
            })
            .collect()
    }

    /// Compares a result whose rows are `stride` apart, and which held `before` everywhere.
    fn check(&self, found: &[f32], stride: usize, of: impl Fn(f32) -> f32) {
        for (at, found) in found.iter().enumerate() {
            let (row, column) = (at / stride, at % stride);
            if column >= self.sizes.n {
                assert_eq!(*found, 4.0, "wrote between the rows");
                continue;
            }
            let term = |k| self.a.at(row, k) * self.b.at(k, column);
            assert_eq!(*found, of((0..self.sizes.k).map(term).sum()));
        }
    }
}

#[test]
fn accelerate_multiplies_on_every_macos() {
    // The oldest has integers of C alone, and the later ones both.
    for mac in ["m1-16gb,macos=13.0", "m1-16gb,macos=13.3", "m5-max-128gb,macos=27.0"] {
        passes_on(mac, "arithmetic::accelerate_multiplies");
    }
}

#[test]
#[ignore = "runs in processes of its own"]
fn accelerate_multiplies() {
    let library = BlasLibrary::system().unwrap();
    assert_eq!(library.name(), "accelerate");
    for case in ProductCase::all() {
        for beta in [0.0, 0.5] {
            let (a, b) = (case.a.operand(), case.b.operand());
            let stride = case.sizes.n + 2;
            let mut c = vec![4.0; case.sizes.m * stride];
            let scaling = GemmScaling { alpha: 2.0, beta };
            library.sgemm(case.sizes, scaling, a, b, &mut c, stride).unwrap();
            case.check(&c, stride, |sum| 2.0 * sum + 4.0 * beta);
        }
    }
}

#[test]
fn without_the_functions_the_libraries_say_so() {
    let none = "m1-16gb,without=cblas_sgemm,without=cblas_sgemm$NEWLAPACK$ILP64";
    passes_on(none, "arithmetic::accelerate_is_unavailable");
    passes_on("m1-16gb,without=BNNSMatMul", "arithmetic::bnns_is_unavailable");
    passes_on("m1-16gb,without=BNNSMatMulWorkspaceSize", "arithmetic::bnns_is_unavailable");
}

#[test]
#[ignore = "runs in processes of its own"]
fn accelerate_is_unavailable() {
    let operand = BlasOperand { data: &[1.0], stride: 1, orientation: OperandOrientation::Plain };
    let mut c = [7.0];
    let sizes = BlasSizes { m: 1, n: 1, k: 1 };
    let error = sgemm(sizes, 1.0, operand, operand, 0.0, &mut c, 1).unwrap_err();
    assert!(matches!(error, SgemmError::Unavailable(_)), "{error}");
    assert_eq!(c, [7.0]);
}

#[test]
#[ignore = "runs in processes of its own"]
fn bnns_is_unavailable() {
    assert_eq!(BnnsLibrary::system().unwrap_err().reason, "this macOS has no BNNSMatMul");
}

#[test]
fn bnns_multiplies_each_type_with_each() {
    let library = BnnsLibrary::system().unwrap();
    for case in ProductCase::all() {
        let factors = case.a.factors();
        let pairs = factors.iter().flat_map(|a| case.b.factors().map(|b| (*a, b)));
        for (a, b) in pairs {
            let stride = case.sizes.n + 2;
            let mut c = vec![4.0; case.sizes.m * stride];
            library.multiply(case.sizes, 2.0, a, b, &mut c, stride).unwrap();
            case.check(&c, stride, |sum| 2.0 * sum);
        }
    }
}

#[test]
fn bnns_that_refuses_or_fails_says_so() {
    let library = BnnsLibrary::system().unwrap();
    let case = &ProductCase::all()[0];
    let multiply = || {
        let [a, ..] = case.a.factors();
        let [b, ..] = case.b.factors();
        let mut c = [7.0];
        let result = library.multiply(case.sizes, 1.0, a, b, &mut c, 1);
        (result, c)
    };
    let refused = on("m1-16gb,refused=BNNSMatMulWorkspaceSize", multiply);
    assert_eq!(refused, (Err(MatMulError::Refused), [7.0]));
    let failed = on("m1-16gb,refused=BNNSMatMul", multiply);
    assert_eq!(failed.0, Err(MatMulError::Failed { status: 1 }));
}
