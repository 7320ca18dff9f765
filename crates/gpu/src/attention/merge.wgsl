// Puts the parts of positions together: sums of values, each with the greatest of its scores and the sum of its
// weights. Some columns of a row and head a thread.
@group(0) @binding(0) var<storage, read_write> sums: array<{{ column }}>;
@group(0) @binding(1) var<storage, read_write> weights: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<{{ y }}>;

struct Params {
    count: u32,
    columns: u32,
    splits: u32,
}
@group(0) @binding(3) var<uniform> params: Params;

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
    y[at] = {{ y }}(sum / max(total, 1e-37));
}
