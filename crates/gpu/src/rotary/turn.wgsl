// Pairs of elements, each turned by an angle whose cosine and sine are given. A thread a pair, or an element
// that does not turn.
@group(0) @binding(0) var<storage, read_write> x: array<{{ x }}>;
@group(0) @binding(1) var<storage, read_write> cosines: array<{{ cos }}>;
@group(0) @binding(2) var<storage, read_write> sines: array<{{ sin }}>;
@group(0) @binding(3) var<storage, read_write> y: array<{{ y }}>;
{% if positions %}
@group(0) @binding(4) var<storage, read_write> positions: array<vec2<u32>>;
{% endif %}

struct Params {
    // Lengths of batch, heads and sequence, and what a vector has of pairs and elements that do not turn.
    lengths: vec4<u32>,
    x_steps: vec4<u32>,
    y_steps: vec4<u32>,
    cos_steps: vec4<u32>,
    sin_steps: vec4<u32>,
    pairs: u32,
    // Elements from the first to the second of a pair, and from pair to pair.
    apart: u32,
    along: u32,
    // From the cosine of the first to that of the second, and the same of sines.
    cos_apart: u32,
    sin_apart: u32,
    // Rows of the tables, where positions name them.
    rows: u32,
    count: u32,
}
@group(0) @binding({{ 5 if positions else 4 }}) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let number = (group.x + group.y * groups.x) * 64u + lane;
    if number >= params.count {
        return;
    }
    let unit = number % params.lengths.w;
    let s = number / params.lengths.w % params.lengths.z;
    let h = number / (params.lengths.w * params.lengths.z) % params.lengths.y;
    let b = number / (params.lengths.w * params.lengths.z * params.lengths.y);
    let from_vector = b * params.x_steps.x + h * params.x_steps.y + s * params.x_steps.z;
    let to_vector = b * params.y_steps.x + h * params.y_steps.y + s * params.y_steps.z;
    if unit >= params.pairs {
        let i = unit + params.pairs;
        y[to_vector + i * params.y_steps.w] = {{ y }}(x[from_vector + i * params.x_steps.w]);
        return;
    }
{% if positions == "each" %}
    let row = min(positions[b * params.lengths.z + s].x, params.rows - 1u);
{% elif positions == "first" %}
    let row = min(positions[0].x + s, params.rows - 1u);
{% else %}
    let row = s;
{% endif %}
    let at_cos = b * params.cos_steps.x + h * params.cos_steps.y + row * params.cos_steps.z + unit * params.cos_steps.w;
    let at_sin = b * params.sin_steps.x + h * params.sin_steps.y + row * params.sin_steps.z + unit * params.sin_steps.w;
    let first = unit * params.along;
    let second = first + params.apart;
    let a = f32(x[from_vector + first * params.x_steps.w]);
    let c = f32(x[from_vector + second * params.x_steps.w]);
    y[to_vector + first * params.y_steps.w] = {{ y }}(a * f32(cosines[at_cos]) - c * f32(sines[at_sin]));
    y[to_vector + second * params.y_steps.w] = {{ y }}(c * f32(cosines[at_cos + params.cos_apart]) + a * f32(sines[at_sin + params.sin_apart]));
}
