// What a convolution as a product is given.
@group(0) @binding(0) var<storage, read_write> x: array<{{ x }}>;
@group(0) @binding(1) var<storage, {{ "read" if packed else "read_write" }}> w: array<vec4<{{ w }}>>;
@group(0) @binding(2) var<storage, read_write> y: array<{{ y }}>;
{% include "conv/added" %}

struct Params {
    // Workgroups, those along the pixels, and along the channels of a group.
    total: u32,
    tiles_n: u32,
    tiles_m: u32,
    groups: u32,
    // Channels of a group: of the image and of the result; the latter in memory, and the length of K there.
    channels: u32,
    m: u32,
    m_padded: u32,
    k: u32,
    k_padded: u32,
    pixels: u32,
{% include "conv/lengths" %}
    p: f32,
    q: f32,
}
@group(0) @binding({{ at.params }}) var<uniform> params: Params;
