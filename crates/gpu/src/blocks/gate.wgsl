// One product through a function, times another. Four elements a thread.
@group(0) @binding(0) var<storage, read_write> a: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> b: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<{{ y }}>>;

struct Params {
    quads: u32,
}
@group(0) @binding(3) var<uniform> params: Params;

{% include "blocks/gate" %}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = (group.x + group.y * groups.x) * 256u + lane;
    if at >= params.quads {
        return;
    }
    let v = a[at];
    y[at] = vec4<{{ y }}>(vec4<f32>(gate(v.x), gate(v.y), gate(v.z), gate(v.w)) * b[at]);
}
