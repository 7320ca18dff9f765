// Transforms of tiles of an image, which overlap by two pixels: [cells, channels, tiles]. A tile of a channel a thread.
@group(0) @binding(0) var<storage, read_write> x: array<{{ x }}>;
@group(0) @binding(1) var<storage, read_write> tiles: array<{{ v }}>;

{% set binding = 2 %}
{% set functions = false %}
{% include "conv/winograd_params" %}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = (group.x + group.y * groups.x) * 64u + lane;
    if at >= params.columns * params.channels {
        return;
    }
    // Tiles beyond the last repeat it.
    let tile = min(at % params.columns, params.count - 1u);
    let channel = at / params.columns;
    let image = params.first + tile / (params.down * params.across);
    let top = tile / params.across % params.down * {{ tile }}u - params.pad_y;
    let left = tile % params.across * {{ tile }}u - params.pad_x;
    let start = image * params.x_image + channel * params.x_channel;
{% for i in range(side) %}
{% for j in range(side) %}
    var d{{ i }}_{{ j }} = 0.0;
{% endfor %}
    // What lies before the image is beyond it as a number without a sign.
    if top + {{ i }}u < params.in_y {
        let row = start + (top + {{ i }}u) * params.in_x * params.x_pixel;
{% for j in range(side) %}
        if left + {{ j }}u < params.in_x {
            d{{ i }}_{{ j }} = f32(x[row + (left + {{ j }}u) * params.x_pixel]);
        }
{% endfor %}
    }
{% endfor %}
{% for line in lines %}
    {{ line }}
{% endfor %}
    let cell = params.columns * params.channels;
{% for i in range(side) %}
{% for j in range(side) %}
    tiles[at + {{ i * side + j }}u * cell] = {{ v }}(v{{ i }}_{{ j }});
{% endfor %}
{% endfor %}
}
