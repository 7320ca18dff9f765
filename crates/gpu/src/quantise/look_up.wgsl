// Bytes by a table of 256, four a thread.
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

struct Params {
    words: u32,
}
@group(0) @binding(3) var<uniform> params: Params;

fn found(byte: u32) -> u32 {
    return (table[byte >> 2u] >> (8u * (byte & 3u))) & 0xffu;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let at = (group.x + group.y * groups.x) * 256u + thread;
    if at >= params.words {
        return;
    }
    let word = x[at];
    y[at] = found(word & 0xffu) | (found((word >> 8u) & 0xffu) << 8u) | (found((word >> 16u) & 0xffu) << 16u) | (found(word >> 24u) << 24u);
}
