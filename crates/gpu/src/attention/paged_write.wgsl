// Writes new keys and values to the blocks of their sequences. A workgroup a row and head.
@group(0) @binding(0) var<storage, read_write> k: array<{{ k }}>;
@group(0) @binding(1) var<storage, read_write> v: array<{{ v }}>;
@group(0) @binding(2) var<storage, read_write> starts: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> lengths: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> blocks: array<vec2<u32>>;
@group(0) @binding(5) var<storage, read_write> keys: array<{{ stored }}>;
@group(0) @binding(6) var<storage, read_write> values: array<{{ stored }}>;
{% if cache == "i8" %}
@group(0) @binding(7) var<storage, read_write> key_scales: array<f32>;
@group(0) @binding(8) var<storage, read_write> value_scales: array<f32>;
{% endif %}

struct Params {
    rows: u32,
    sequences: u32,
    most: u32,
    heads: u32,
    key_width: u32,
    value_width: u32,
    block: u32,
    count: u32,
}
@group(0) @binding({{ 9 if cache == "i8" else 7 }}) var<uniform> params: Params;

const THREADS = 64u;
var<workgroup> sequence: u32;
{% if cache == "i8" %}
var<workgroup> greatest: array<vec2<f32>, THREADS>;
{% endif %}

{% if cache == "f32" or native %}
{% for name in ["keys", "values"] %}
fn put_{{ name }}(at: u32, x: f32) {
    {{ name }}[at] = {{ stored }}(x);
}
{% endfor %}
{% else %}
// Neighbours in a word are written by other threads.
{% for name in ["keys", "values"] %}
fn put_{{ name }}(at: u32, x: f32) {
    let shift = (at % {{ per_word }}u) * {{ bits }}u;
    atomicAnd(&{{ name }}[at / {{ per_word }}u], ~({{ mask }}u << shift));
    atomicOr(&{{ name }}[at / {{ per_word }}u], packed(x) << shift);
}
{% endfor %}

fn packed(x: f32) -> u32 {
{% if cache == "f16" %}
    return pack2x16float(vec2<f32>(x, 0.0)) & 0xffffu;
{% elif cache == "bf16" %}
    let word = bitcast<u32>(x);
    // To the nearest, of two to the even one; what is no number stays none.
    let rounded = (word + 0x7fffu + ((word >> 16u) & 1u)) >> 16u;
    let none = (word & 0x7fffffffu) > 0x7f800000u;
    return select(rounded, (word >> 16u) | 0x40u, none);
{% else %}
    return u32(i32(x)) & 0xffu;
{% endif %}
}
{% endif %}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let number = group.x + group.y * groups.x;
    if number >= params.rows * params.heads {
        return;
    }
    let row = number / params.heads;
    let head = number % params.heads;
    if lane == 0u {
        sequence = params.sequences;
    }
    workgroupBarrier();
    for (var b = lane; b < params.sequences; b += THREADS) {
        if starts[b].x <= row && row < starts[b + 1u].x {
            sequence = b;
        }
    }
    let b = workgroupUniformLoad(&sequence);
    if b >= params.sequences {
        return;
    }
    let position = lengths[b].x - (starts[b + 1u].x - row);
    let at = position % params.block;
    let block = blocks[b * params.most + min(position / params.block, params.most - 1u)].x;
    if block >= params.count {
        return;
    }
    let tile = block * params.heads + head;
    let from_key = number * params.key_width;
    let from_value = number * params.value_width;
    let to_key = tile * params.key_width * params.block + at;
    let to_value = (tile * params.block + at) * params.value_width;
{% if cache == "i8" %}
    var most = vec2<f32>(0.0);
    for (var i = lane; i < params.key_width; i += THREADS) {
        most.x = max(most.x, abs(f32(k[from_key + i])));
    }
    for (var i = lane; i < params.value_width; i += THREADS) {
        most.y = max(most.y, abs(f32(v[from_value + i])));
    }
    greatest[lane] = most;
    workgroupBarrier();
    for (var half = THREADS / 2u; half > 0u; half /= 2u) {
        if lane < half {
            greatest[lane] = max(greatest[lane], greatest[lane + half]);
        }
        workgroupBarrier();
    }
    let scales = greatest[0] / 127.0;
    if lane == 0u {
        key_scales[tile * params.block + at] = scales.x;
        value_scales[tile * params.block + at] = scales.y;
    }
    for (var i = lane; i < params.key_width; i += THREADS) {
        let x = select(0.0, f32(k[from_key + i]) / scales.x, scales.x > 0.0);
        put_keys(to_key + i * params.block, clamp(round(x), -127.0, 127.0));
    }
    for (var i = lane; i < params.value_width; i += THREADS) {
        let x = select(0.0, f32(v[from_value + i]) / scales.y, scales.y > 0.0);
        put_values(to_value + i, clamp(round(x), -127.0, 127.0));
    }
{% else %}
    for (var i = lane; i < params.key_width; i += THREADS) {
        put_keys(to_key + i * params.block, f32(k[from_key + i]));
    }
    for (var i = lane; i < params.value_width; i += THREADS) {
        put_values(to_value + i, f32(v[from_value + i]));
    }
{% endif %}
}
