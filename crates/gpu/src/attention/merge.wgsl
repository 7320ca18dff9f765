// Puts the parts of positions together: sums of values, each with the greatest of its scores and the sum of its
// weights. Some columns of a row and head a thread.
@group(0) @binding(0) var<storage, read_write> sums: array<{{ column }}>;
@group(0) @binding(1) var<storage, read_write> weights: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<{{ y }}>;
{% if mixed %}
@group(0) @binding(3) var<storage, read_write> starts: array<vec2<u32>>;
{% endif %}

struct Params {
    count: u32,
    columns: u32,
    splits: u32,
{% if mixed %}
    // Places of a sequence, and heads of a row.
    few: u32,
    heads: u32,
{% endif %}
}
@group(0) @binding({{ 4 if mixed else 3 }}) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = (group.x + group.y * groups.x) * 64u + lane;
    if at >= params.count {
        return;
    }
    let vector = at / params.columns * params.splits;
    var most = -3.0e38;
    for (var s = 0u; s < params.splits; s++) {
        most = max(most, weights[vector + s].x);
    }
    var total = 0.0;
    var sum = {{ column }}(0.0);
    for (var s = 0u; s < params.splits; s++) {
        let weight = weights[vector + s];
        if weight.y > 0.0 {
            let factor = exp(weight.x - most);
            total += factor * weight.y;
            sum += factor * sums[(vector + s) * params.columns + at % params.columns];
        }
    }
{% if mixed %}
    let width = params.heads * params.columns;
    let place = at / width;
    // Places without a row have no weights.
    if total > 0.0 {
        y[(starts[place / params.few].x + place % params.few) * width + at % width] = {{ y }}(sum / total);
    }
{% else %}
    y[at] = {{ y }}(sum / max(total, 1e-37));
{% endif %}
}
