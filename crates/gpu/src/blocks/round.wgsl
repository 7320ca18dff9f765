// Rows of X as bytes: a scale for each 32 numbers, and the sums of their halves as bytes. Four numbers a thread.
{% from "blocks/codes" import quad %}
@group(0) @binding(0) var<storage, read_write> x: array<{{ x }}>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> steps: array<vec4<f32>>;

struct Params {
    columns: u32,
    m: u32,
    // Quads of a row, of whole blocks.
    quads: u32,
}
@group(0) @binding(3) var<uniform> params: Params;

{% include "blocks/quad" %}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let number = (group.x + group.y * groups.x) * 64u + local;
    let row = number / params.quads;
    let at = number % params.quads;
{% if aligned %}
    let x_quads = params.columns >> 2u;
{% endif %}
    let v = {{ quad(aligned, "row", "at") }};
    let size = abs(v);
    var most = max(max(size.x, size.y), max(size.z, size.w));
    most = max(most, subgroupShuffleXor(most, 1u));
    most = max(most, subgroupShuffleXor(most, 2u));
    most = max(most, subgroupShuffleXor(most, 4u));
    let packed = pack4xI8(vec4<i32>(round(v * select(0.0, 127.0 / most, most > 0.0))));
    var sum = dot4I8Packed(packed, 0x01010101u);
    sum += subgroupShuffleXor(sum, 1u);
    sum += subgroupShuffleXor(sum, 2u);
    let other = subgroupShuffleXor(sum, 4u);
    if row < params.m {
        y[number] = packed;
        if (at & 7u) == 0u {
            steps[number >> 3u] = vec4<f32>(most / 127.0, f32(sum), f32(other), 0.0);
        }
    }
}
