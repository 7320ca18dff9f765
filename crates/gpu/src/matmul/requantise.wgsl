// Sums of products of bytes to bytes: four elements that follow one another a thread, a word of the result.
@group(0) @binding(0) var<storage, read_write> sums: array<i32>;
@group(0) @binding(1) var<storage, read_write> scale_a: array<{{ a }}>;
@group(0) @binding(2) var<storage, read_write> scale_b: array<{{ b }}>;
@group(0) @binding(3) var<storage, read_write> scale_y: array<{{ y }}>;
@group(0) @binding(4) var<storage, read_write> zero_y: array<u32>;
@group(0) @binding(5) var<storage, read_write> out: array<u32>;

struct Params {
    elements: u32,
    columns: u32,
    // Rows that have scales and zero points of their own, and the steps of these.
    rows: u32,
    a: u32,
    b: u32,
    y: u32,
    zero: u32,
}
@group(0) @binding(6) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let word = (group.x + group.y * groups.x) * 64u + thread;
    if word * 4u >= params.elements {
        return;
    }
    var bytes = 0u;
    for (var i = 0u; i < 4u; i++) {
        let at = min(word * 4u + i, params.elements - 1u);
        let column = at % params.columns;
        let row = at / params.columns % params.rows;
        let scale = f32(scale_a[row * params.a]) * f32(scale_b[column * params.b]) / f32(scale_y[row * params.y]);
        let zero_at = row * params.zero;
        let byte = (zero_y[zero_at >> 2u] >> (8u * (zero_at & 3u))) & 0xffu;
        let zero = {{ "bitcast<i32>(byte << 24u) >> 24u" if signed else "i32(byte)" }};
        // What is beyond is clamped anyway.
        let rounded = i32(clamp(round(f32(sums[at]) * scale), -1024.0, 1024.0));
        let value = clamp(rounded + zero, {{ "-128, 127" if signed else "0, 255" }});
        bytes |= (bitcast<u32>(value) & 0xffu) << (8u * i);
    }
    out[word] = bytes;
}
