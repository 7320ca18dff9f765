// Sums of a convolution of bytes to bytes: four elements that follow one another a thread, a word of the result.
@group(0) @binding(0) var<storage, read_write> sums: array<i32>;
@group(0) @binding(1) var<storage, read_write> scale_x: array<{{ x }}>;
@group(0) @binding(2) var<storage, read_write> scale_w: array<{{ w }}>;
@group(0) @binding(3) var<storage, read_write> scale_y: array<{{ y }}>;
@group(0) @binding(4) var<storage, read_write> zero_y: array<u32>;
@group(0) @binding(5) var<storage, read_write> out: array<u32>;
{% if bias %}
@group(0) @binding(6) var<storage, read_write> bias: array<i32>;
{% endif %}
{% if other.given %}
@group(0) @binding({{ other.first }}) var<storage, read_write> other: array<u32>;
@group(0) @binding({{ other.first + 1 }}) var<storage, read_write> scale_other: array<{{ other.scale }}>;
@group(0) @binding({{ other.first + 2 }}) var<storage, read_write> scale_sum: array<{{ other.sum }}>;
@group(0) @binding({{ other.first + 3 }}) var<storage, read_write> zero_sum: array<u32>;
{% if other.zero %}
@group(0) @binding({{ other.first + 4 }}) var<storage, read_write> zero_other: array<u32>;
{% endif %}
{% endif %}

struct Params {
    elements: u32,
    // Elements of a channel that follow one another, and channels.
    inner: u32,
    channels: u32,
    // The step of scales of weights.
    w: u32,
}
@group(0) @binding({{ params }}) var<uniform> params: Params;

fn signed_byte(word: u32, at: u32) -> i32 {
    return bitcast<i32>(word << (24u - 8u * at)) >> 24u;
}

fn plain_byte(word: u32, at: u32) -> i32 {
    return i32((word >> (8u * at)) & 0xffu);
}

// A float that is rounded, moved by a zero point and limited. What is beyond is limited anyway.
fn limited(value: f32, zero: i32, low: i32, high: i32) -> i32 {
    return clamp(i32(clamp(round(value), -1024.0, 1024.0)) + zero, low, high);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let word = (group.x + group.y * groups.x) * 64u + thread;
    if word * 4u >= params.elements {
        return;
    }
    let zero = {{ "signed_byte" if signed else "plain_byte" }}(zero_y[0], 0u);
    let scale = f32(scale_x[0]) / f32(scale_y[0]);
    var bytes = 0u;
    for (var i = 0u; i < 4u; i++) {
        let at = min(word * 4u + i, params.elements - 1u);
        let channel = at / params.inner % params.channels;
        let sum = f32(sums[at]{{ " + bias[channel]" if bias }});
        var value = limited(sum * (scale * f32(scale_w[channel * params.w])), zero, {{ "-128, 127" if signed else "0, 255" }});
        {% if other.given %}
        var added = {{ "signed_byte" if other.signed else "plain_byte" }}(other[at >> 2u], at & 3u);
        {% if other.zero %}
        added -= {{ "signed_byte" if other.signed else "plain_byte" }}(zero_other[0], 0u);
        {% endif %}
        let both = f32(value - zero) * f32(scale_y[0]) + f32(added) * f32(scale_other[0]);
        let last = {{ "signed_byte" if other.sum_signed else "plain_byte" }}(zero_sum[0], 0u);
        value = limited(both / f32(scale_sum[0]), last, {{ "-128, 127" if other.sum_signed else "0, 255" }});
        {% endif %}
        bytes |= (bitcast<u32>(value) & 0xffu) << (8u * i);
    }
    out[word] = bytes;
}
