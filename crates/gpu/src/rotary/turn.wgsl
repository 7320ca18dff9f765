// Pairs of elements, each turned by an angle whose cosine and sine are given. A thread a pair, or an element
// that does not turn.
@group(0) @binding(0) var<storage, read_write> x: array<{{ x }}>;
@group(0) @binding(1) var<storage, read_write> cosines: array<{{ cos }}>;
@group(0) @binding(2) var<storage, read_write> sines: array<{{ sin }}>;
@group(0) @binding(3) var<storage, read_write> y: array<{{ y }}>;
{% if positions %}
@group(0) @binding(4) var<storage, read_write> positions: array<vec2<u32>>;
{% endif %}
{% if other %}
@group(0) @binding({{ 5 if positions else 4 }}) var<storage, read_write> other_x: array<{{ other[0] }}>;
@group(0) @binding({{ 6 if positions else 5 }}) var<storage, read_write> other_y: array<{{ other[1] }}>;
{% endif %}

struct Params {
    // Lengths of batch, heads and sequence, and what a vector has of pairs and elements that do not turn.
    lengths: vec4<u32>,
    x_steps: vec4<u32>,
    y_steps: vec4<u32>,
    cos_steps: vec4<u32>,
    sin_steps: vec4<u32>,
    // Of what is turned by the same angles, whose heads follow the first ones.
    other_steps: vec4<u32>,
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
    // Heads of the first.
    heads: u32,
}
@group(0) @binding({{ (5 if positions else 4) + (other | length) }}) var<uniform> params: Params;

{% if other %}
fn read(is_other: bool, at: u32) -> f32 {
    if is_other {
        return f32(other_x[at]);
    }
    return f32(x[at]);
}

fn write(is_other: bool, at: u32, value: f32) {
    if is_other {
        other_y[at] = {{ other[1] }}(value);
    } else {
        y[at] = {{ y }}(value);
    }
}
{% else %}
fn read(at: u32) -> f32 {
    return f32(x[at]);
}

fn write(at: u32, value: f32) {
    y[at] = {{ y }}(value);
}
{% endif %}

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
{% if other %}
    let is_other = h >= params.heads;
    let x_steps = select(params.x_steps, params.other_steps, is_other);
    let y_steps = select(params.y_steps, params.other_steps, is_other);
    let own = select(h, h - params.heads, is_other);
{% else %}
    let x_steps = params.x_steps;
    let y_steps = params.y_steps;
    let own = h;
{% endif %}
    let from_vector = b * x_steps.x + own * x_steps.y + s * x_steps.z;
    let to_vector = b * y_steps.x + own * y_steps.y + s * y_steps.z;
    if unit >= params.pairs {
        let i = unit + params.pairs;
        let value = {{ "read(is_other, " if other else "read(" }}from_vector + i * x_steps.w);
        {{ "write(is_other, " if other else "write(" }}to_vector + i * y_steps.w, value);
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
{% set which = "is_other, " if other else "" %}
    let a = read({{ which }}from_vector + first * x_steps.w);
    let c = read({{ which }}from_vector + second * x_steps.w);
    write({{ which }}to_vector + first * y_steps.w, a * f32(cosines[at_cos]) - c * f32(sines[at_sin]));
    write({{ which }}to_vector + second * y_steps.w, c * f32(cosines[at_cos + params.cos_apart]) + a * f32(sines[at_sin + params.sin_apart]));
}
