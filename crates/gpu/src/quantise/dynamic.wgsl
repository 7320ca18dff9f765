// Floats to bytes with the scale that spans them and 0, in three dispatches: the ranges of parts, the scale, the bytes.
struct Params {
    elements: u32,
    quads: u32,
    // Workgroups that look for the range.
    groups: u32,
}
{% if stage == "range" %}
@group(0) @binding(0) var<storage, read_write> x: array<vec4<{{ x }}>>;
@group(0) @binding(1) var<storage, read_write> parts: array<vec2<f32>>;
@group(0) @binding(2) var<uniform> params: Params;
{% elif stage == "scale" %}
@group(0) @binding(0) var<storage, read_write> parts: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read_write> own: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> scale_out: array<{{ scale }}>;
@group(0) @binding(3) var<storage, read_write> zero_out: array<u32>;
@group(0) @binding(4) var<uniform> params: Params;
{% else %}
@group(0) @binding(0) var<storage, read_write> x: array<vec4<{{ x }}>>;
@group(0) @binding(1) var<storage, read_write> own: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;
{% endif %}

{% if stage != "bytes" %}
var<workgroup> shared_parts: array<vec2<f32>, 256>;

// The lowest and the highest of all threads of a workgroup.
fn meet(own_part: vec2<f32>, thread: u32) -> vec2<f32> {
    shared_parts[thread] = own_part;
    workgroupBarrier();
    for (var s = 128u; s > 0u; s = s / 2u) {
        if thread < s {
            let other = shared_parts[thread + s];
            let mine = shared_parts[thread];
            shared_parts[thread] = vec2<f32>(min(mine.x, other.x), max(mine.y, other.y));
        }
        workgroupBarrier();
    }
    return shared_parts[0];
}
{% endif %}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let id = group.x + group.y * groups.x;
{% if stage == "range" %}
    // 0 is always in the range, and so are quads that nobody has.
    var low = vec4<f32>();
    var high = vec4<f32>();
    for (var q = id * 256u + thread; q < params.quads; q += params.groups * 256u) {
        let left = params.elements - 4u * q;
        let v = select(vec4<f32>(), vec4<f32>(x[q]), vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(left));
        low = min(low, v);
        high = max(high, v);
    }
    let mine = vec2<f32>(min(min(low.x, low.y), min(low.z, low.w)), max(max(high.x, high.y), max(high.z, high.w)));
    let all = meet(mine, thread);
    if thread == 0u && id < params.groups {
        parts[id] = all;
    }
{% elif stage == "scale" %}
    var mine = vec2<f32>();
    if thread < params.groups {
        mine = parts[thread];
    }
    let all = meet(mine, thread);
    if thread == 0u {
        // Data that is zero everywhere fits any scale.
        let scale = select(1.0, (all.y - all.x) / 255.0, all.y > all.x);
        let zero = clamp(round(-all.x / scale), 0.0, 255.0);
        own[0] = vec2<f32>(scale, zero);
        scale_out[0] = {{ scale }}(scale);
        zero_out[0] = u32(zero);
    }
{% else %}
    let q = id * 256u + thread;
    if q >= params.quads {
        return;
    }
    let scale = own[0].x;
    let zero = own[0].y;
    let v = vec4<u32>(clamp(round(vec4<f32>(x[q]) / scale) + zero, vec4<f32>(), vec4<f32>(255.0)));
    y[q] = v.x | (v.y << 8u) | (v.z << 16u) | (v.w << 24u);
{% endif %}
}
