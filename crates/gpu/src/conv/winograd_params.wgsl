struct Params {
    // Tiles, and the room for them; the first image, tiles along its axes, and channels.
    count: u32,
    columns: u32,
    first: u32,
    down: u32,
    across: u32,
    channels: u32,
    m: u32,
{% include "conv/lengths" %}
{% if functions %}
    p: f32,
    q: f32,
{% endif %}
}
@group(0) @binding({{ binding }}) var<uniform> params: Params;
