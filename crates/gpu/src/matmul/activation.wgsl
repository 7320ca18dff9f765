{% if activation in ["tanh", "gelu_tanh"] %}
// Beyond 15 it is 1 in FP32, and some compilers overflow there.
fn tangent(v: vec4<f32>) -> vec4<f32> {
    return tanh(clamp(v, vec4<f32>(-15.0), vec4<f32>(15.0)));
}
{% endif %}
{% if activation in ["elu"] %}
// e^v - 1 without the loss of digits near 0.
fn exp_minus_one(v: vec4<f32>) -> vec4<f32> {
    let near = v * (1.0 + v * (0.5 + v * (0.16666667 + v * (0.041666668 + v * 0.008333334))));
    return select(exp(v) - 1.0, near, abs(v) < vec4<f32>(0.25));
}
{% endif %}
{% set coarse = out is defined and out.elem is defined and out.elem == "f16" %}
{% if activation == "gelu" and not coarse %}
// 1 - erf(z) for z >= 0, of which every digit counts where it is small: t * e^(P(t) - z * z), where P is the
// polynomial through Chebyshev's points; within 6e-8 of the value.
fn erf_complement(z: vec4<f32>) -> vec4<f32> {
    let t = 1.0 / (1.0 + 0.5 * z);
    var p = vec4<f32>(0.152171283);
    p = p * t - 0.720157549;
    p = p * t + 1.248985032;
    p = p * t - 0.818536592;
    p = p * t + 0.020350492;
    p = p * t - 0.051861518;
    p = p * t + 0.052532700;
    p = p * t + 0.382924554;
    p = p * t + 0.999060409;
    p = p * t - 1.265468758;
    return t * exp(p - z * z);
}
{% endif %}

{% if activation == "none" %}
fn activate(v: vec4<f32>) -> vec4<f32> {
    return v;
}
{% else %}
// Bounds lose a NaN, and compilers may take NaNs to be absent: bits are asked, and chosen between.
fn activate(v: vec4<f32>) -> vec4<f32> {
    let bits = bitcast<vec4<u32>>(v);
    let lacks = (bits & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
    return bitcast<vec4<f32>>(select(bitcast<vec4<u32>>(activated(v)), bits, lacks));
}

fn activated(v: vec4<f32>) -> vec4<f32> {
    {% if activation == "relu" %}
    return max(v, vec4<f32>(0.0));
    {% elif activation == "clip" %}
    return min(max(v, vec4<f32>(params.p)), vec4<f32>(params.q));
    {% elif activation == "leaky" %}
    return select(v, v * params.p, v < vec4<f32>(0.0));
    {% elif activation == "elu" %}
    return params.q * select(v, params.p * exp_minus_one(min(v, vec4<f32>(0.0))), v < vec4<f32>(0.0));
    {% elif activation == "sigmoid" %}
    return 1.0 / (1.0 + exp(-v));
    {% elif activation == "hard_sigmoid" %}
    return clamp(v * params.p + params.q, vec4<f32>(0.0), vec4<f32>(1.0));
    {% elif activation == "tanh" %}
    return tangent(v);
    {% elif activation == "hard_swish" %}
    return v * clamp(v / 6.0 + 0.5, vec4<f32>(0.0), vec4<f32>(1.0));
    {% elif activation == "silu" %}
    return v / (1.0 + exp(-v));
    {% elif activation == "softplus" %}
    return max(v, vec4<f32>(0.0)) + log(1.0 + exp(-abs(v)));
    {% elif activation == "softsign" %}
    return v / (1.0 + abs(v));
    {% elif activation == "threshold" %}
    return select(vec4<f32>(0.0), v, v > vec4<f32>(params.p));
    {% elif activation == "gelu" and coarse %}
    // v times the normal distribution as a logistic function of v * P(v^2), where P is fitted (minimax, weighted by
    // FP16's steps) on [0, 5.8]; the result is within a tenth of a step of FP16.
    let square = min(v * v, vec4<f32>(33.64));
    var p = vec4<f32>(1.712774e-9);
    p = p * square - 1.5377229e-7;
    p = p * square + 5.404877e-6;
    p = p * square - 8.376169e-5;
    p = p * square - 2.0121693e-4;
    p = p * square + 0.07295766;
    p = p * square + 1.5955918;
    // Below -12 nothing is left of it, and e to more than 88 overflows.
    return v / (1.0 + exp(-max(v, vec4<f32>(-12.0)) * p));
    {% elif activation == "gelu" %}
    let half_complement = 0.5 * erf_complement(abs(v) * 0.70710678);
    return v * select(half_complement, 1.0 - half_complement, v >= vec4<f32>(0.0));
    {% elif activation == "gelu_tanh" %}
    return 0.5 * v * (1.0 + tangent(0.79788456 * (v + 0.044715 * v * v * v)));
    {% endif %}
}
{% endif %}
