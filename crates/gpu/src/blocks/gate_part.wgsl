{# What becomes of a gate: `gate(v)`. #}
// The error function as Abramowitz and Stegun's 7.1.26 has it, which is off by less than 1.5e-7.
fn gelu(v: f32) -> f32 {
    let z = abs(v) * 0.7071067811865476;
    let t = 1.0 / (1.0 + 0.3275911 * z);
    let tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    return 0.5 * v * (1.0 + sign(v) * (1.0 - tail * exp(-z * z)));
}

fn gate(v: f32) -> f32 {
    return {{ gated }};
}
