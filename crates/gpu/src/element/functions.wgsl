//# bytes
fn bytes(word: u32) -> vec4<u32> {
    return (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
}
//# signed_bytes
fn signed_bytes(word: u32) -> vec4<i32> {
    return (vec4<i32>(bitcast<i32>(word)) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
}
//# byte
fn byte(word: u32, at: u32) -> u32 {
    return (word >> ((at % 4u) * 8u)) & 255u;
}
//# signed_byte
fn signed_byte(word: u32, at: u32) -> i32 {
    return bitcast<i32>(word << ((3u - at % 4u) * 8u)) >> 24u;
}
//# packed
fn packed(v: vec4<u32>) -> u32 {
    let low = v & vec4<u32>(255u);
    return low.x | (low.y << 8u) | (low.z << 16u) | (low.w << 24u);
}
//# is_nan
// Compilers may take for granted that there are none, so the bits are asked.
fn is_nan(v: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}
//# is_infinity
fn is_infinity(v: vec4<f32>, bits: u32) -> vec4<bool> {
    return bitcast<vec4<u32>>(v) == vec4<u32>(bits);
}
//# chosen4
// Compilers that take NaNs and infinities to be absent drop a choice of them between floats, not between bits.
fn chosen4(r: vec4<f32>, bits: vec4<u32>, instead: vec4<bool>) -> vec4<f32> {
    return bitcast<vec4<f32>>(select(bitcast<vec4<u32>>(r), bits, instead));
}
//# kept_nan4
fn kept_nan4(r: vec4<f32>, x: vec4<f32>) -> vec4<f32> {
    return chosen4(r, bitcast<vec4<u32>>(x), is_nan(x));
}
//# with_sign
fn with_sign(size: vec4<f32>, sign: vec4<f32>) -> vec4<f32> {
    return bitcast<vec4<f32>>((bitcast<vec4<u32>>(size) & vec4<u32>(0x7fffffffu)) | (bitcast<vec4<u32>>(sign) & vec4<u32>(0x80000000u)));
}
//# exp_sum4
// The exponential of a sum whose second part is much the smaller.
fn exp_sum4(x: vec4<f32>, rest: vec4<f32>) -> vec4<f32> {
    let near = clamp(x, vec4<f32>(-104.0), vec4<f32>(89.0));
    let n = round(near * 1.442695);
    var r = fma(n, vec4<f32>(-0.69314575), near);
    r = fma(n, vec4<f32>(-1.4286068e-6), r) + rest;
    var q = vec4<f32>(0.001395049);
    q = fma(q, r, vec4<f32>(0.00836889));
    q = fma(q, r, vec4<f32>(0.041666206));
    q = fma(q, r, vec4<f32>(0.16666518));
    q = fma(q, r, vec4<f32>(0.5));
    let e = fma(fma(q, r, vec4<f32>(1.0)), r, vec4<f32>(1.0));
    // In two halves, as the whole power may be beyond a float.
    let half = vec4<i32>(n) >> vec4<u32>(1u);
    let first = bitcast<vec4<f32>>((half + vec4<i32>(127)) << vec4<u32>(23u));
    let second = bitcast<vec4<f32>>((vec4<i32>(n) - half + vec4<i32>(127)) << vec4<u32>(23u));
    return kept_nan4(e * first * second, x);
}
//# exp4
fn exp4(x: vec4<f32>) -> vec4<f32> {
    return exp_sum4(x, vec4<f32>(0.0));
}
//# log_parts4
// The logarithm of (1 + f) 2^e for 1 + f between the roots of 1/2 and 2.
fn log_parts4(f: vec4<f32>, e: vec4<f32>) -> vec4<f32> {
    var q = vec4<f32>(0.06746601);
    q = fma(q, f, vec4<f32>(-0.11675641));
    q = fma(q, f, vec4<f32>(0.11888175));
    q = fma(q, f, vec4<f32>(-0.124055915));
    q = fma(q, f, vec4<f32>(0.14219551));
    q = fma(q, f, vec4<f32>(-0.16667996));
    q = fma(q, f, vec4<f32>(0.20002119));
    q = fma(q, f, vec4<f32>(-0.2500001));
    q = fma(q, f, vec4<f32>(0.33333313));
    let f2 = f * f;
    var r = fma(e, vec4<f32>(1.4286068e-6), f2 * f * q);
    r = fma(f2, vec4<f32>(-0.5), r);
    return r + fma(e, vec4<f32>(0.69314575), f);
}
//# log4
fn log4(x: vec4<f32>) -> vec4<f32> {
    let tiny = x < vec4<f32>(1.1754944e-38);
    // Subnormal numbers are first made normal.
    let y = select(x, x * 16777216.0, tiny);
    let offset = bitcast<vec4<i32>>(y) + vec4<i32>(0x3f800000 - 0x3f3504f3);
    let e = vec4<f32>((offset - vec4<i32>(0x3f800000)) >> vec4<u32>(23u)) - select(vec4<f32>(0.0), vec4<f32>(24.0), tiny);
    let m = bitcast<vec4<f32>>((offset & vec4<i32>(0x007fffff)) + vec4<i32>(0x3f3504f3));
    let f = m - 1.0;
    var r = log_parts4(f, e);
    r = chosen4(r, vec4<u32>(0xff800000u), x == vec4<f32>(0.0));
    r = chosen4(r, vec4<u32>(0x7fc00000u), x < vec4<f32>(0.0));
    return chosen4(r, bitcast<vec4<u32>>(x), is_nan(x) | is_infinity(x, 0x7f800000u));
}
//# log1p4
// Of what is not below 0.
fn log1p4(u: vec4<f32>) -> vec4<f32> {
    return select(log4(1.0 + u), log_parts4(u, vec4<f32>(0.0)), u < vec4<f32>(0.4));
}
//# erf4
// Within 1e-6: a polynomial near 0, one of the logarithm of 1 - erf further out.
fn erf4(x: vec4<f32>) -> vec4<f32> {
    let a = abs(x);
    let u = min(a * a, vec4<f32>(1.0));
    var p = vec4<f32>(7.853858e-5);
    p = fma(p, u, vec4<f32>(-0.00080101925));
    p = fma(p, u, vec4<f32>(0.0051883277));
    p = fma(p, u, vec4<f32>(-0.026853811));
    p = fma(p, u, vec4<f32>(0.112835854));
    p = fma(p, u, vec4<f32>(-0.37612626));
    p = fma(p, u, vec4<f32>(0.12837916));
    let near = fma(a, p, a);
    let t = min(a, vec4<f32>(3.95));
    var q = vec4<f32>(0.00018638006);
    q = fma(q, t, vec4<f32>(-0.0029476664));
    q = fma(q, t, vec4<f32>(0.021838095));
    q = fma(q, t, vec4<f32>(-0.10310682));
    q = fma(q, t, vec4<f32>(-0.63814473));
    q = fma(q, t, vec4<f32>(-1.1270893));
    q = fma(q, t, vec4<f32>(-0.00034151296));
    let far = 1.0 - exp4(q);
    return kept_nan4(with_sign(select(near, far, a >= vec4<f32>(1.0)), x), x);
}
//# tanh4
fn tanh4(x: vec4<f32>) -> vec4<f32> {
    let a = abs(x);
    let u = min(a * a, vec4<f32>(1.0));
    var p = vec4<f32>(0.002147537);
    p = fma(p, u, vec4<f32>(-0.008182674));
    p = fma(p, u, vec4<f32>(0.021702968));
    p = fma(p, u, vec4<f32>(-0.053947203));
    p = fma(p, u, vec4<f32>(0.1333321));
    p = fma(p, u, vec4<f32>(-0.3333333));
    let near = fma(p * u, a, a);
    let far = 1.0 - 2.0 / (exp4(2.0 * min(a, vec4<f32>(15.0))) + 1.0);
    return kept_nan4(with_sign(select(near, far, a >= vec4<f32>(0.625)), x), x);
}
//# sigmoid4
fn sigmoid4(x: vec4<f32>) -> vec4<f32> {
    let s = 1.0 / (1.0 + exp4(-x));
    return kept_nan4(s, x);
}
//# expm14
fn expm14(x: vec4<f32>) -> vec4<f32> {
    let r = clamp(x, vec4<f32>(-0.35), vec4<f32>(0.35));
    var q = vec4<f32>(0.001395049);
    q = fma(q, r, vec4<f32>(0.00836889));
    q = fma(q, r, vec4<f32>(0.041666206));
    q = fma(q, r, vec4<f32>(0.16666518));
    q = fma(q, r, vec4<f32>(0.5));
    let near = fma(q * r, r, r);
    return select(near, exp4(x) - 1.0, abs(x) > vec4<f32>(0.35));
}
//# softplus4
fn softplus4(x: vec4<f32>) -> vec4<f32> {
    let rest = log1p4(exp4(-abs(x)));
    return kept_nan4(max(x, vec4<f32>(0.0)) + rest, x);
}
//# gelu4
// Near 0 a polynomial; further out what the lower tail lacks, so that nothing cancels there.
fn gelu4(x: vec4<f32>) -> vec4<f32> {
    let a = min(abs(x), vec4<f32>(15.0));
    let u = a * a;
    var p = vec4<f32>(0.000102940576);
    p = fma(p, u, vec4<f32>(-0.001181285));
    p = fma(p, u, vec4<f32>(0.009972349));
    p = fma(p, u, vec4<f32>(-0.06649029));
    p = fma(p, u, vec4<f32>(0.3989423));
    let near = x * fma(x, p, vec4<f32>(0.5));
    let rest = fma(a, a, -u) * -0.5;
    let b = a - 2.25;
    var m = vec4<f32>(1.5834343e-7);
    m = fma(m, b, vec4<f32>(-8.820017e-7));
    m = fma(m, b, vec4<f32>(2.6973821e-6));
    m = fma(m, b, vec4<f32>(-1.0093662e-5));
    m = fma(m, b, vec4<f32>(4.2605283e-5));
    m = fma(m, b, vec4<f32>(-0.0001616518));
    m = fma(m, b, vec4<f32>(0.0005673454));
    m = fma(m, b, vec4<f32>(-0.0018654483));
    m = fma(m, b, vec4<f32>(0.005626841));
    m = fma(m, b, vec4<f32>(-0.015093986));
    m = fma(m, b, vec4<f32>(0.033894755));
    m = fma(m, b, vec4<f32>(0.34571686));
    let inverse = 1.0 / max(u, vec4<f32>(1.0));
    var w = vec4<f32>(-78.25337);
    w = fma(w, inverse, vec4<f32>(26.80323));
    w = fma(w, inverse, vec4<f32>(-5.527159));
    w = fma(w, inverse, vec4<f32>(1.1892989));
    w = fma(w, inverse, vec4<f32>(-0.39888343));
    w = fma(w, inverse, vec4<f32>(0.3989421));
    let t = select(m, w, a > vec4<f32>(4.0)) * exp_sum4(u * -0.5, rest);
    return kept_nan4(select(max(x, vec4<f32>(0.0)) - t, near, a < vec4<f32>(0.75)), x);
}
//# gelu_tanh4
fn gelu_tanh4(x: vec4<f32>) -> vec4<f32> {
    let y = x * 0.79788456 * fma(x * x, vec4<f32>(0.044715), vec4<f32>(1.0));
    return x * sigmoid4(2.0 * y);
}
//# turn4
// Quarter turns away from the nearest multiple of them, and which multiple.
fn turn4(x: vec4<f32>) -> array<vec4<f32>, 2> {
    let n = round(x * 0.63661977);
    var r = fma(n, vec4<f32>(-1.5703125), x);
    r = fma(n, vec4<f32>(-0.0004837513), r);
    r = fma(n, vec4<f32>(-7.5497901e-8), r);
    return array<vec4<f32>, 2>(r, n);
}
//# sine4
// The sine of an angle that lies so many quarter turns further.
fn sine4(x: vec4<f32>, further: i32) -> vec4<f32> {
    let turn = turn4(x);
    let r = turn[0];
    let quarter = vec4<i32>(turn[1]) + vec4<i32>(further);
    let u = r * r;
    var s = vec4<f32>(2.7557319e-6);
    s = fma(s, u, vec4<f32>(-0.00019841270));
    s = fma(s, u, vec4<f32>(0.0083333333));
    s = fma(s, u, vec4<f32>(-0.16666667));
    s = fma(s * u, r, r);
    var c = vec4<f32>(-2.7557319e-7);
    c = fma(c, u, vec4<f32>(2.4801587e-5));
    c = fma(c, u, vec4<f32>(-0.0013888889));
    c = fma(c, u, vec4<f32>(0.041666667));
    c = fma(c, u, vec4<f32>(-0.5));
    c = fma(c, u, vec4<f32>(1.0));
    let v = select(s, c, (quarter & vec4<i32>(1)) != vec4<i32>(0));
    return select(v, -v, (quarter & vec4<i32>(2)) != vec4<i32>(0));
}
//# tan4
fn tan4(x: vec4<f32>) -> vec4<f32> {
    return sine4(x, 0) / sine4(x, 1);
}
//# atan4
fn atan4(x: vec4<f32>) -> vec4<f32> {
    let a = abs(x);
    let above = a > vec4<f32>(2.4142136);
    let middle = (a > vec4<f32>(0.41421356)) & !above;
    // atan a = b + atan t with t at most tan of an eighth of a half turn.
    var t = select(a, (a - 1.0) / (a + 1.0), middle);
    t = select(t, -1.0 / a, above);
    let b = select(select(vec4<f32>(0.0), vec4<f32>(0.78539816), middle), vec4<f32>(1.5707963), above);
    let u = t * t;
    var p = vec4<f32>(-0.06666667);
    p = fma(p, u, vec4<f32>(0.07692308));
    p = fma(p, u, vec4<f32>(-0.09090909));
    p = fma(p, u, vec4<f32>(0.11111111));
    p = fma(p, u, vec4<f32>(-0.14285714));
    p = fma(p, u, vec4<f32>(0.2));
    p = fma(p, u, vec4<f32>(-0.33333333));
    return with_sign(b + fma(p * u, t, t), x);
}
//# asin4
fn asin4(x: vec4<f32>) -> vec4<f32> {
    return atan4(x / sqrt((1.0 - x) * (1.0 + x)));
}
//# acos4
fn acos4(x: vec4<f32>) -> vec4<f32> {
    return 2.0 * atan4(sqrt((1.0 - x) / (1.0 + x)));
}
//# sinh4
fn sinh4(x: vec4<f32>) -> vec4<f32> {
    let u = min(x * x, vec4<f32>(1.0));
    var p = vec4<f32>(2.7557319e-6);
    p = fma(p, u, vec4<f32>(0.00019841270));
    p = fma(p, u, vec4<f32>(0.0083333333));
    p = fma(p, u, vec4<f32>(0.16666667));
    let near = fma(p * u, x, x);
    return select(near, 0.5 * (exp4(x) - exp4(-x)), abs(x) > vec4<f32>(1.0));
}
//# asinh4
fn asinh4(x: vec4<f32>) -> vec4<f32> {
    let a = abs(x);
    let u = min(a * a, vec4<f32>(0.0625));
    var p = vec4<f32>(0.03038194);
    p = fma(p, u, vec4<f32>(-0.04464286));
    p = fma(p, u, vec4<f32>(0.075));
    p = fma(p, u, vec4<f32>(-0.16666667));
    let near = fma(p * u, a, a);
    let far = log4(a + sqrt(fma(a, a, vec4<f32>(1.0))));
    return with_sign(select(near, far, a > vec4<f32>(0.25)), x);
}
//# atanh4
fn atanh4(x: vec4<f32>) -> vec4<f32> {
    let u = min(x * x, vec4<f32>(0.0625));
    var p = vec4<f32>(0.11111111);
    p = fma(p, u, vec4<f32>(0.14285714));
    p = fma(p, u, vec4<f32>(0.2));
    p = fma(p, u, vec4<f32>(0.33333333));
    let near = fma(p * u, x, x);
    return select(near, 0.5 * log4((1.0 + x) / (1.0 - x)), abs(x) > vec4<f32>(0.25));
}
//# power4
// The power of a negative number is one of its size, negative where the exponent is odd; it does not exist
// where the exponent is no whole number.
fn power4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let size = abs(a);
    let whole = floor(b) == b;
    let odd = whole & (floor(b * 0.5) * 2.0 != b) & (abs(b) < vec4<f32>(16777216.0));
    var p = pow(size, b);
    // Exact where most models need it.
    p = select(p, size, b == vec4<f32>(1.0));
    p = select(p, size * size, b == vec4<f32>(2.0));
    p = select(p, size * size * size, b == vec4<f32>(3.0));
    let infinite = select(vec4<u32>(), vec4<u32>(0x7f800000u), b < vec4<f32>(0.0));
    p = chosen4(p, infinite, size == vec4<f32>(0.0));
    let sign = bitcast<vec4<u32>>(a) & vec4<u32>(0x80000000u);
    p = chosen4(p, bitcast<vec4<u32>>(p) ^ sign, odd);
    let lacks = (a < vec4<f32>(0.0)) & !whole;
    p = chosen4(p, vec4<u32>(0x7fc00000u), lacks | is_nan(a) | is_nan(b));
    // Compared by bits, since a NaN may equal anything.
    let size_b = bitcast<vec4<u32>>(b) & vec4<u32>(0x7fffffffu);
    let one = (size_b == vec4<u32>()) | (bitcast<vec4<u32>>(a) == vec4<u32>(0x3f800000u));
    return chosen4(p, vec4<u32>(0x3f800000u), one);
}
//# whole_power4
fn whole_power4(a: vec4<i32>, b: vec4<i32>) -> vec4<i32> {
    var left = max(b, vec4<i32>(0));
    var square = a;
    var result = vec4<i32>(1);
    for (var i = 0u; i < 31u; i++) {
        result = select(result, result * square, (left & vec4<i32>(1)) != vec4<i32>(0));
        square = square * square;
        left = left >> vec4<u32>(1u);
    }
    // A negative power is a fraction, but for those of 1 and -1.
    let odd = (b & vec4<i32>(1)) != vec4<i32>(0);
    var unit = select(vec4<i32>(0), vec4<i32>(1), a == vec4<i32>(1));
    unit = select(unit, select(vec4<i32>(1), vec4<i32>(-1), odd), a == vec4<i32>(-1));
    return select(result, unit, b < vec4<i32>(0));
}
//# min4
fn min4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    return kept_nan4(kept_nan4(min(a, b), a), b);
}
//# max4
fn max4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    return kept_nan4(kept_nan4(max(a, b), a), b);
}
//# sign4
fn sign4(x: vec4<f32>) -> vec4<f32> {
    return kept_nan4(sign(x), x);
}
//# c_remainder4
fn c_remainder4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let rest = fma(-trunc(a / b), b, a);
    // The quotient may be rounded up to the next whole number.
    let low = select(rest, rest + abs(b), (rest * sign(a) < vec4<f32>(0.0)) & (a > vec4<f32>(0.0)));
    let fixed = select(low, rest - abs(b), (rest * sign(a) < vec4<f32>(0.0)) & (a < vec4<f32>(0.0)));
    return select(with_sign(fixed, a), a, is_infinity(abs(b), 0x7f800000u));
}
//# floor_remainder4
fn floor_remainder4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let rest = c_remainder4(a, b);
    let moved = select(rest, rest + b, (rest < vec4<f32>(0.0)) != (b < vec4<f32>(0.0)));
    return select(moved, with_sign(vec4<f32>(0.0), b), rest == vec4<f32>(0.0));
}
//# to_signed4
fn to_signed4(v: vec4<f32>) -> vec4<i32> {
    let near = vec4<i32>(clamp(v, vec4<f32>(-2147483648.0), vec4<f32>(2147483520.0)));
    let full = select(near, vec4<i32>(2147483647), v >= vec4<f32>(2147483648.0));
    return select(full, vec4<i32>(0), is_nan(v));
}
//# to_wide4
fn to_wide4(v: vec4<f32>) -> vec4<i64> {
    let near = vec4<i64>(clamp(v, vec4<f32>(-9223372036854775808.0), vec4<f32>(9223371487098961920.0)));
    let full = select(near, vec4<i64>(9223372036854775807li), v >= vec4<f32>(9223372036854775808.0));
    return select(full, vec4<i64>(0li), is_nan(v));
}
