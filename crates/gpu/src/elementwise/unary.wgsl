// One function of each element. Four elements a thread.
@group(0) @binding(0) var<storage, read_write> x: array<vec4<{{ x }}>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<{{ y }}>>;

struct Params {
    quads: u32,
}
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = (group.x + group.y * groups.x) * 256u + lane;
    if at >= params.quads {
        return;
    }
    let v = vec4<f32>(x[at]);
    y[at] = vec4<{{ y }}>({{ function }});
}
