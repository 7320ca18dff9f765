// A convolution whose groups have few channels, such as a depthwise one: each thread sums one window.
@group(0) @binding(0) var<storage, read_write> x: array<{{ x }}>;
@group(0) @binding(1) var<storage, read_write> w: array<{{ w }}>;
@group(0) @binding(2) var<storage, read_write> y: array<{{ y }}>;
{% include "conv/added" %}

struct Params {
    // Elements of the result, its channels, those of a group, and those of the image in a group.
    total: u32,
    all: u32,
    m: u32,
    channels: u32,
    pixels: u32,
{% include "conv/lengths" %}
    // From one element of the result to the next along its last axis: channels where they come last.
    last: u32,
    p: f32,
    q: f32,
}
@group(0) @binding({{ at.params }}) var<uniform> params: Params;

{% set lanes = 1 %}
{% include "conv/result" %}

fn sum(image: u32, channel: u32, pixel: u32) -> f32 {
    let ox = pixel % params.out_x;
    let rest = pixel / params.out_x;
    let oy = rest % params.out_y;
    let oz = rest / params.out_y;
    let part = channel / params.m;
    var total = 0.0;
    for (var c = 0u; c < params.channels; c++) {
        let start = image * params.x_image + (part * params.channels + c) * params.x_channel;
        let weights = (channel * params.channels + c) * {{ kz * ky * kx }}u;
        {% for z in range(kz) %}
        {% for y in range(ky) %}
        {
            let from_z = oz * params.stride_z + {{ z }}u * params.step_z - params.pad_z;
            let from_y = oy * params.stride_y + {{ y }}u * params.step_y - params.pad_y;
            if from_z < params.in_z && from_y < params.in_y {
                let row = (from_z * params.in_y + from_y) * params.in_x;
                for (var kx = 0u; kx < {{ kx }}u; kx++) {
                    let from_x = ox * params.stride_x + kx * params.step_x - params.pad_x;
                    if from_x < params.in_x {
                        let seen = f32(x[start + (row + from_x) * params.x_pixel]);
                        total += seen * f32(w[weights + {{ (z * ky + y) * kx }}u + kx]);
                    }
                }
            }
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
    var channel = (at / params.pixels) % params.all;
    var pixel = at % params.pixels;
    if params.last == 1u {
        channel = at % params.all;
        pixel = (at / params.all) % params.pixels;
    }
    let image = at / (params.pixels * params.all);
    let to = image * params.y_image + channel * params.y_channel + pixel * params.y_pixel;
    put(vec4<f32>(sum(image, channel, pixel)), channel, to, 1u);
}
