// A convolution whose groups have few channels, such as a depthwise one: each thread sums the windows of four pixels
// beside one another.
@group(0) @binding(0) var<storage, read_write> x: array<{{ x }}>;
@group(0) @binding(1) var<storage, read_write> w: array<{{ w }}>;
@group(0) @binding(2) var<storage, read_write> y: array<{{ y }}>;
{% include "conv/added" %}

struct Params {
    // Fours of the result's pixels, those of a channel and of a row; its channels, those of a group, and those of the
    // image in a group.
    total: u32,
    fours: u32,
    across: u32,
    all: u32,
    m: u32,
    channels: u32,
{% include "conv/lengths" %}
    // Whether channels come last.
    last: u32,
    p: f32,
    q: f32,
}
@group(0) @binding({{ at.params }}) var<uniform> params: Params;

{% set lanes = 4 %}
{% include "conv/result" %}

// Nothing waits for what it reads: what lies outside the image reads an element that counts 0.
fn sums(image: u32, channel: u32, four: u32) -> vec4<f32> {
    let left = four % params.across * 4u * params.stride_x - params.pad_x;
    let rest = four / params.across;
    let top = rest % params.out_y * params.stride_y - params.pad_y;
    let front = rest / params.out_y * params.stride_z - params.pad_z;
    let part = channel / params.m;
    var total = vec4<f32>();
    for (var c = 0u; c < params.channels; c++) {
        let start = image * params.x_image + (part * params.channels + c) * params.x_channel;
        let weights = (channel * params.channels + c) * {{ kz * ky * kx }}u;
        {% for z in range(kz) %}
        {% for y in range(ky) %}
        {
            let from_z = front + {{ z }}u * params.step_z;
            let from_y = top + {{ y }}u * params.step_y;
            let inside = from_z < params.in_z && from_y < params.in_y;
            let row = start + select(0u, (from_z * params.in_y + from_y) * params.in_x * params.x_pixel, inside);
            {% if close %}
            {% for i in range(kx + 3) %}
            let there{{ i }} = inside && left + {{ i }}u < params.in_x;
            let seen{{ i }} = x[row + select(0u, (left + {{ i }}u) * params.x_pixel, there{{ i }})];
            {% endfor %}
            {% for i in range(kx + 3) %}
            let v{{ i }} = select(0.0, f32(seen{{ i }}), there{{ i }});
            {% endfor %}
            {% for i in range(kx) %}
            total += vec4<f32>(v{{ i }}, v{{ i + 1 }}, v{{ i + 2 }}, v{{ i + 3 }}) * f32(w[weights + {{ (z * ky + y) * kx + i }}u]);
            {% endfor %}
            {% else %}
            for (var i = 0u; i < {{ kx }}u; i++) {
                let from_x = vec4<u32>(left + i * params.step_x) + vec4<u32>(0u, 1u, 2u, 3u) * params.stride_x;
                let there = (from_x < vec4<u32>(params.in_x)) & vec4<bool>(inside);
                let at = vec4<u32>(row) + select(vec4<u32>(), from_x * params.x_pixel, there);
                let seen = vec4<f32>(f32(x[at.x]), f32(x[at.y]), f32(x[at.z]), f32(x[at.w]));
                total += select(vec4<f32>(), seen, there) * f32(w[weights + {{ (z * ky + y) * kx }}u + i]);
            }
            {% endif %}
        }
        {% endfor %}
        {% endfor %}
    }
    return total;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = (group.x + group.y * groups.x) * 256u + lane;
    if at >= params.total {
        return;
    }
    var channel = (at / params.fours) % params.all;
    var four = at % params.fours;
    if params.last == 1u {
        channel = at % params.all;
        four = (at / params.all) % params.fours;
    }
    let image = at / (params.fours * params.all);
    let column = four % params.across * 4u;
    let pixel = four / params.across * params.out_x + column;
    let to = image * params.y_image + channel * params.y_channel + pixel * params.y_pixel;
    put(sums(image, channel, four), channel, to, params.out_x - column);
}
