// What a tile of queries over whole keys and values is given.
@group(0) @binding(0) var<storage, read_write> q: array<{{ q }}>;
@group(0) @binding(1) var<storage, read_write> k: array<{{ k }}>;
@group(0) @binding(2) var<storage, read_write> v: array<{{ v }}>;
@group(0) @binding(3) var<storage, read_write> y: array<{{ y }}>;
{% if mask %}
@group(0) @binding(4) var<storage, read_write> mask: array<{{ mask }}>;
{% endif %}

struct Params {
    // Of batch, heads, positions and elements.
    q_steps: vec4<u32>,
    k_steps: vec4<u32>,
    v_steps: vec4<u32>,
    y_steps: vec4<u32>,
    mask_steps: vec4<u32>,
    heads: u32,
    shared_heads: u32,
    queries: u32,
    keys: u32,
    key_width: u32,
    value_width: u32,
    tiles: u32,
    parts: u32,
    // The position of the first query, and how far one sees to either side.
    offset: i32,
    left: i32,
    right: i32,
    scale: f32,
    softcap: f32,
    // What a query gives that sees no key.
    empty: f32,
    batch: u32,
}
@group(0) @binding({{ 5 if mask else 4 }}) var<uniform> params: Params;
