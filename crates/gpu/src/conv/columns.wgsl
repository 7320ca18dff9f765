// Pixels of a convolution that goes the other way: each sums the products that reach it. A pixel of a channel a thread.
@group(0) @binding(0) var<storage, read_write> products: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<{{ y }}>;
{% include "conv/added" %}

struct Params {
    // Elements of the result, its channels, pixels of a channel, and of one of the image.
    total: u32,
    all: u32,
    pixels: u32,
    seen: u32,
{% include "conv/lengths" %}
    p: f32,
    q: f32,
}
@group(0) @binding({{ at.params }}) var<uniform> params: Params;

{% set lanes = 1 %}
{% include "conv/result" %}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = (group.x + group.y * groups.x) * 256u + lane;
    if at >= params.total {
        return;
    }
    let pixel = at % params.pixels;
    let channel = at / params.pixels % params.all;
    let image = at / (params.pixels * params.all);
    let far_x = pixel % params.out_x + params.pad_x;
    let far_y = pixel / params.out_x % params.out_y + params.pad_y;
    let far_z = pixel / (params.out_x * params.out_y) + params.pad_z;
    let start = (image * params.all + channel) * {{ kz * ky * kx }}u * params.seen;
    var total = 0.0;
    for (var i = 0u; i < {{ kz * ky }}u; i++) {
        // What lies before the image is beyond it as a number without a sign.
        let z = far_z - i / {{ ky }}u * params.step_z;
        let y = far_y - i % {{ ky }}u * params.step_y;
        let fits = z % params.stride_z == 0u && y % params.stride_y == 0u;
        if !fits || z / params.stride_z >= params.in_z || y / params.stride_y >= params.in_y {
            continue;
        }
        let row = start + i * {{ kx }}u * params.seen + (z / params.stride_z * params.in_y + y / params.stride_y) * params.in_x;
        for (var j = 0u; j < {{ kx }}u; j++) {
            let x = far_x - j * params.step_x;
            if x % params.stride_x == 0u && x / params.stride_x < params.in_x {
                total += products[row + j * params.seen + x / params.stride_x];
            }
        }
    }
    put(vec4<f32>(total), channel, image * params.y_image + channel * params.y_channel + pixel * params.y_pixel, 1u);
}
