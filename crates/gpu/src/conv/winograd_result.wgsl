// From products [cells, channels, tiles] to {{ tile }} × {{ tile }} pixels. A tile of a channel a thread.
@group(0) @binding(0) var<storage, read_write> products: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<{{ y }}>;
{% include "conv/added" %}

{% set binding = at.params %}
{% set functions = true %}
{% include "conv/winograd_params" %}

{% set lanes = 4 if tile > 4 else tile %}
{% include "conv/result" %}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = (group.x + group.y * groups.x) * 64u + lane;
    if at >= params.count * params.m {
        return;
    }
    let tile = at % params.count;
    let channel = at / params.count;
    let image = params.first + tile / (params.down * params.across);
    let top = tile / params.across % params.down * {{ tile }}u;
    let left = tile % params.across * {{ tile }}u;
    let from_cell = channel * params.columns + tile;
    let cell = params.columns * params.m;
{% for i in range(side) %}
{% for j in range(side) %}
    let d{{ i }}_{{ j }} = products[from_cell + {{ i * side + j }}u * cell];
{% endfor %}
{% endfor %}
{% for line in lines %}
    {{ line }}
{% endfor %}
    let start = image * params.y_image + channel * params.y_channel;
{% for i in range(tile) %}
{% for first in range(0, tile, 4) %}
    if top + {{ i }}u < params.out_y && left{{ " + " ~ first ~ "u" if first }} < params.out_x {
        let to = start + ((top + {{ i }}u) * params.out_x + left{{ " + " ~ first ~ "u" if first }}) * params.y_pixel;
        let row = vec4<f32>({% for j in range(first, first + 4) %}{{ "y" ~ i ~ "_" ~ j if j < tile else "0.0" }}{{ ", " if not loop.last }}{% endfor %});
        put(row, channel, to, {{ "params.out_x - left" if not first else "min(params.out_x - left - " ~ first ~ "u, " ~ (tile - first) ~ "u)" }});
    }
{% endfor %}
{% endfor %}
}
