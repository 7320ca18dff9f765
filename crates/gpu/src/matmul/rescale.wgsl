// Sums of products of bytes to floats: four elements that follow one another a thread.
@group(0) @binding(0) var<storage, read_write> sums: array<i32>;
@group(0) @binding(1) var<storage, read_write> scale_a: array<{{ a }}>;
@group(0) @binding(2) var<storage, read_write> scale_b: array<{{ b }}>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<{{ y }}>>;
{% if bias %}
@group(0) @binding(4) var<storage, read_write> bias: array<{{ bias }}>;
{% endif %}

struct Params {
    elements: u32,
    columns: u32,
    // Steps along the columns.
    b: u32,
    bias: u32,
}
@group(0) @binding({{ 5 if bias else 4 }}) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let quad = (group.x + group.y * groups.x) * 64u + thread;
    if quad * 4u >= params.elements {
        return;
    }
    let scale = f32(scale_a[0]);
    var all = vec4<f32>();
    for (var i = 0u; i < 4u; i++) {
        let at = min(quad * 4u + i, params.elements - 1u);
        let column = at % params.columns;
        all[i] = f32(sums[at]) * (scale * f32(scale_b[column * params.b])){{ " + f32(bias[column * params.bias])" if bias }};
    }
    out[quad] = vec4<{{ y }}>(all);
}
