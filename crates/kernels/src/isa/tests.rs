use super::*;

struct Vectors;

impl IsaKernel for Vectors {
    type Output = Vec<(&'static str, Vec<f32>)>;
    /// Every operation on the first four lanes, which all instruction sets have.
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Self::Output {
        let mut x = [0.0f32; 64];
        let mut y = [0.0f32; 64];
        x[..4].copy_from_slice(&[1.5, -2.5, 0.0, 1e-40]);
        y[..4].copy_from_slice(&[-1.0, 3.0, -0.0, f32::NAN]);
        x[60..].copy_from_slice(&[11.0, 12.0, 13.0, 14.0]);
        let mut out = Vec::new();
        let mut put = |name, v: S::F| {
            let mut lanes = [0.0f32; 64];
            // SAFETY: a vector is at most 64 lanes.
            unsafe { s.store(lanes.as_mut_ptr(), v) };
            out.push((name, lanes[..4].to_vec()));
        };
        // SAFETY: a vector is at most 64 lanes.
        let (a, b) = unsafe { (s.load(x.as_ptr()), s.load(y.as_ptr())) };
        put("add", s.add(a, b));
        put("sub", s.sub(a, b));
        put("mul", s.mul(a, b));
        put("div", s.div(b, a));
        put("fma", s.fma(a, s.splat(2.0), b));
        put("fnma", s.fnma(a, s.splat(2.0), b));
        put("max", s.max(a, b));
        put("max of nan first", s.max(b, a));
        put("min", s.min(a, b));
        put("sqrt", s.sqrt(s.splat(2.0)));
        put("round", s.round(a));
        put("select", s.select(s.lt(a, b), a, b));
        put("scale up", s.scale_pow2(a, s.splat(127.0)));
        put("scale down", s.scale_pow2(a, s.splat(-148.0)));
        put("sign", s.of_bits(s.and_i(s.bits(a), s.splat_i(i32::MIN))));
        put("exponent", s.to_float(s.shr23(s.bits(s.splat(8.0)))));
        put("shl16", s.of_bits(s.shl16(s.splat_i(0x1_3f80))));
        let signs = s.splat_i(i32::MIN | 0x40);
        put("xor_i", s.of_bits(s.xor_i(s.bits(a), signs)));
        put("shift_right", s.of_bits(s.shift_right(signs, 5)));
        put("shift_left", s.of_bits(s.shift_left(signs, 20)));
        put("or", s.of_bits(s.or_i(s.bits(a), s.splat_i(1))));
        put("add_i", s.of_bits(s.add_i(s.bits(a), s.splat_i(1))));
        let three = s.mul_i(s.splat_i(3), s.splat_i(-5));
        put("mul_i", s.to_float(three));
        // SAFETY: the mask chooses three lanes.
        put("tail", unsafe { s.load_tail(x.as_ptr(), s.tail(3)) });
        let bits = s.of_bits(s.splat_i(0b10_11_01_10));
        // SAFETY: four values are there.
        let four = unsafe { s.load_four(x.as_ptr().add(60)) };
        put("load_four", four);
        put("pick", s.pick(four, s.picks(s.bits(bits))));
        put("pick of the next", s.pick(four, s.picks(s.shift_right(s.bits(bits), 2))));
        let mut stored = [9.0f32; 64];
        // SAFETY: the mask chooses two lanes.
        unsafe { s.store_tail(stored.as_mut_ptr(), s.tail(2), a) };
        out.push(("store_tail", stored[..4].to_vec()));
        let one_to = s.add(s.splat(1.0), s.splat(0.0));
        out.push(("sum", vec![s.reduce_add(one_to) / S::LANES as f32, s.reduce_max(one_to)]));
        out
    }
}

#[test]
fn every_isa_means_what_portable_means() {
    let want = Isa::Portable(Portable).run(Vectors);
    for isa in Isa::available() {
        for ((name, got), (_, want)) in isa.run(Vectors).iter().zip(&want) {
            for (g, w) in got.iter().zip(want) {
                let same = g.to_bits() == w.to_bits() || g.is_nan() && w.is_nan();
                assert!(same, "{name} on {}: {got:?} for {want:?}", isa.name());
            }
        }
    }
}

struct Transposed;

impl IsaKernel for Transposed {
    type Output = bool;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> bool {
        let n = S::LANES;
        let x: Vec<f32> = (0..n * (n + 1)).map(|v| v as f32).collect();
        let mut y = vec![0.0; n * (n + 2)];
        // SAFETY: both have n rows of at least n values.
        unsafe { s.transpose_block(x.as_ptr(), n + 1, y.as_mut_ptr(), n + 2) };
        (0..n * n).all(|i| y[i % n * (n + 2) + i / n] == x[i / n * (n + 1) + i % n])
    }
}

#[test]
fn blocks_are_transposed() {
    for isa in Isa::available() {
        assert!(isa.run(Transposed), "{}", isa.name());
    }
}

#[test]
fn the_best_isa_comes_first() {
    let available = Isa::available();
    assert_eq!(available[0], Isa::detect());
    assert_eq!(available[available.len() - 1].name(), "portable");
    assert!(available.windows(2).all(|pair| pair[0].lanes() >= pair[1].lanes()));
}
