// A convolution of bytes whose groups have few channels: each thread sums one window. Pixels outside the image are zero
// points, which count nothing.
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> w: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<i32>;
{% if zx %}
@group(0) @binding({{ zx }}) var<storage, read_write> zero_x: array<u32>;
{% endif %}
{% if zw %}
@group(0) @binding({{ zw }}) var<storage, read_write> zero_w: array<u32>;
{% endif %}

struct Params {
    // Elements of the result, its channels, those of a group, and those of the image in a group; pixels.
    total: u32,
    all: u32,
    m: u32,
    channels: u32,
    pixels: u32,
    // The step of zero points of weights, and whether channels come last.
    zw_step: u32,
    last: u32,
{% include "conv/lengths" %}
}
@group(0) @binding({{ params }}) var<uniform> params: Params;

{% for name, signed in [("x", x_signed), ("w", w_signed)] %}
// A byte of four as a number.
fn number_{{ name }}(word: u32, at: u32) -> i32 {
    {% if signed %}
    return bitcast<i32>(word << (24u - 8u * (at & 3u))) >> 24u;
    {% else %}
    return bitcast<i32>((word >> (8u * (at & 3u))) & 0xffu);
    {% endif %}
}
{% endfor %}

fn sum(image: u32, channel: u32, pixel: u32) -> i32 {
    let left = pixel % params.out_x * params.stride_x - params.pad_x;
    let rest = pixel / params.out_x;
    let top = rest % params.out_y * params.stride_y - params.pad_y;
    let front = rest / params.out_y * params.stride_z - params.pad_z;
    let part = channel / params.m;
    {% if zx %}
    let from_x = number_x(zero_x[0], 0u);
    {% else %}
    let from_x = 0;
    {% endif %}
    {% if zw %}
    let own = channel * params.zw_step;
    let from_w = number_w(zero_w[own >> 2u], own);
    {% else %}
    let from_w = 0;
    {% endif %}
    var total = 0;
    for (var c = 0u; c < params.channels; c++) {
        let start = image * params.x_image + (part * params.channels + c) * params.x_channel;
        let weights = (channel * params.channels + c) * {{ kz * ky * kx }}u;
        for (var i = 0u; i < {{ kz * ky }}u; i++) {
            let z = front + i / {{ ky }}u * params.step_z;
            let y = top + i % {{ ky }}u * params.step_y;
            let inside = z < params.in_z && y < params.in_y;
            let row = select(0u, (z * params.in_y + y) * params.in_x, inside);
            {% for j in range(kx) %}
            {
                let at = left + {{ j }}u * params.step_x;
                let there = inside && at < params.in_x;
                let source = start + select(0u, row + at, there) * params.x_pixel;
                let place = weights + i * {{ kx }}u + {{ j }}u;
                let seen = number_x(x[source >> 2u], source) - from_x;
                total += select(0, seen, there) * (number_w(w[place >> 2u], place) - from_w);
            }
            {% endfor %}
        }
    }
    return total;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = (group.x + group.y * groups.x) * 256u + lane;
    if at >= params.total {
        return;
    }
    var channel = (at / params.pixels) % params.all;
    var pixel = at % params.pixels;
    if params.last == 1u {
        channel = at % params.all;
        pixel = (at / params.all) % params.pixels;
    }
    let image = at / (params.pixels * params.all);
    // What lies last in memory is written side by side.
    out[image * params.y_image + channel * params.y_channel + pixel * params.y_pixel] = sum(image, channel, pixel);
}
