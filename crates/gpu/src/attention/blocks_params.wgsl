// What a tile of queries over blocks of keys and values is given.
@group(0) @binding(0) var<storage, read_write> q: array<{{ q }}>;
@group(0) @binding(1) var<storage, read_write> keys: array<{{ key_word }}>;
@group(0) @binding(2) var<storage, read_write> values: array<{{ value_word }}>;
@group(0) @binding(3) var<storage, read_write> starts: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> lengths: array<vec2<u32>>;
@group(0) @binding(5) var<storage, read_write> blocks: array<vec2<u32>>;
@group(0) @binding(6) var<storage, read_write> y: array<{{ y }}>;
{% if cache == "i8" %}
@group(0) @binding(7) var<storage, read_write> key_scales: array<{{ "vec4<f32>" if key_quads else "f32" }}>;
@group(0) @binding(8) var<storage, read_write> value_scales: array<f32>;
{% endif %}

struct Params {
    rows: u32,
    sequences: u32,
    most: u32,
    kv_heads: u32,
    key_width: u32,
    value_width: u32,
    block: u32,
    count: u32,
    window: u32,
    shared_heads: u32,
    // Tiles at most, and parts of the columns of values.
    tiles: u32,
    parts: u32,
    // Sequences of at most so many rows have no tiles: others compute them.
    few: u32,
    scale: f32,
    softcap: f32,
}
@group(0) @binding({{ 9 if cache == "i8" else 7 }}) var<uniform> params: Params;
