// A convolution as a product: weights [M, K] times the windows of an image [K, pixels], K running over channels
// and places of the window. Windows are read where they lie; nothing is unfolded in memory.
// A workgroup computes {{ bm }} channels of {{ bn }} pixels, a thread {{ tm }} of {{ tn }}.
@group(0) @binding(0) var<storage, read_write> x: array<{{ x }}>;
@group(0) @binding(1) var<storage, {{ "read" if packed else "read_write" }}> w: array<vec4<{{ w }}>>;
@group(0) @binding(2) var<storage, read_write> y: array<{{ y }}>;
{% if bias %}
@group(0) @binding({{ at.bias }}) var<storage, read_write> bias: array<{{ bias }}>;
{% endif %}
{% if residual %}
@group(0) @binding({{ at.residual }}) var<storage, read_write> residual: array<{{ residual }}>;
{% endif %}

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
    // Lengths of the image, of the result, and how the window moves.
    in_z: u32,
    in_y: u32,
    in_x: u32,
    out_y: u32,
    out_x: u32,
    stride_z: u32,
    stride_y: u32,
    stride_x: u32,
    pad_z: u32,
    pad_y: u32,
    pad_x: u32,
    step_z: u32,
    step_y: u32,
    step_x: u32,
    // From one image, channel or pixel to the next.
    x_image: u32,
    x_channel: u32,
    x_pixel: u32,
    y_image: u32,
    y_channel: u32,
    y_pixel: u32,
    p: f32,
    q: f32,
}
@group(0) @binding({{ at.params }}) var<uniform> params: Params;

{% set threads = (bm // tm) * (bn // tn) %}
{% set rows = threads // bn %}
{% include "matmul/activation" %}

var<workgroup> w_tile: array<vec4<f32>, {{ bk * bm // 4 }}>;
var<workgroup> x_tile: array<vec4<f32>, {{ bk * bn // 4 }}>;

// Where the window of a pixel begins, along each axis.
fn origin(pixel: u32) -> vec3<i32> {
    let ox = pixel % params.out_x;
    let rest = pixel / params.out_x;
    let oy = rest % params.out_y;
    let oz = rest / params.out_y;
    {% if transposed %}
    return vec3<i32>(i32(oz + params.pad_z), i32(oy + params.pad_y), i32(ox + params.pad_x));
    {% else %}
    return vec3<i32>(
        i32(oz * params.stride_z) - i32(params.pad_z),
        i32(oy * params.stride_y) - i32(params.pad_y),
        i32(ox * params.stride_x) - i32(params.pad_x),
    );
    {% endif %}
}

// The element that a window meets at a place of K; 0 outside the image.
fn window(start: u32, origin: vec3<i32>, k: u32) -> f32 {
    let channel = k / {{ kz * ky * kx }}u;
    {% if kz * ky * kx > 1 %}
    let place = k % {{ kz * ky * kx }}u;
    let at = vec3<u32>(place / {{ ky * kx }}u, (place / {{ kx }}u) % {{ ky }}u, place % {{ kx }}u);
    {% else %}
    let at = vec3<u32>(0u);
    {% endif %}
    let step = vec3<i32>(at * vec3<u32>(params.step_z, params.step_y, params.step_x));
    {% if transposed %}
    let far = origin - step;
    let stride = vec3<i32>(i32(params.stride_z), i32(params.stride_y), i32(params.stride_x));
    if any(far < vec3<i32>(0)) || any(far % stride != vec3<i32>(0)) {
        return 0.0;
    }
    let seen = vec3<u32>(far / stride);
    {% else %}
    // What lies before the image is beyond it as a number without a sign.
    let seen = vec3<u32>(origin + step);
    {% endif %}
    if channel >= params.channels || seen.z >= params.in_x || seen.y >= params.in_y || seen.x >= params.in_z {
        return 0.0;
    }
    let pixel = (seen.x * params.in_y + seen.y) * params.in_x + seen.z;
    return f32(x[start + channel * params.x_channel + pixel * params.x_pixel]);
}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let id = group.x + group.y * groups.x;
    if id >= params.total {
        return;
    }
    let tile_n = id % params.tiles_n;
    let tile_m = (id / params.tiles_n) % params.tiles_m;
    let stack = id / (params.tiles_n * params.tiles_m);
    let part = stack % params.groups;
    let image = stack / params.groups;

    let column = lane % {{ bn }}u;
    let first_row = lane / {{ bn }}u;
    let pixel = tile_n * {{ bn }}u + column;
    let inside = pixel < params.pixels;
    let begin = origin(pixel);
    let x_start = image * params.x_image + part * params.channels * params.x_channel;
    let w_start = part * params.k_padded * params.m_padded + tile_m * {{ bm }}u;

    let tx = lane % {{ bn // tn }}u;
    let ty = lane / {{ bn // tn }}u;
    {% for i in range(tm) %}
    var sums_{{ i }} = vec4<f32>(0.0);
    {% endfor %}

    for (var k0 = 0u; k0 < params.k_padded; k0 += {{ bk }}u) {
        {% for i in range(bk * bm // 4 // threads) %}
        {
            let at = lane + {{ i * threads }}u;
            let row = at / {{ bm // 4 }}u;
            w_tile[at] = vec4<f32>(w[(w_start + (k0 + row) * params.m_padded) / 4u + at % {{ bm // 4 }}u]);
        }
        {% endfor %}
        {% for i in range(bk // rows) %}
        {
            let row = first_row + {{ i * rows }}u;
            var value = 0.0;
            if inside {
                value = window(x_start, begin, k0 + row);
            }
            x_tile[row * {{ bn // 4 }}u + column / 4u][column % 4u] = value;
        }
        {% endfor %}
        workgroupBarrier();
        for (var k = 0u; k < {{ bk }}u; k++) {
            let seen = x_tile[k * {{ bn // 4 }}u + tx];
            {% for i in range(tm // 4) %}
            let weights_{{ i }} = w_tile[k * {{ bm // 4 }}u + ty * {{ tm // 4 }}u + {{ i }}u];
            {% for lane in range(4) %}
            sums_{{ i * 4 + lane }} += weights_{{ i }}[{{ lane }}] * seen;
            {% endfor %}
            {% endfor %}
        }
        workgroupBarrier();
    }

    let first_pixel = tile_n * {{ bn }}u + tx * 4u;
    {% for i in range(tm) %}
    {
        let channel = tile_m * {{ bm }}u + ty * {{ tm }}u + {{ i }}u;
        if channel < params.m {
            let whole = part * params.m + channel;
            var v = sums_{{ i }};
            {% if bias %}
            v += f32(bias[whole]);
            {% endif %}
            let start = image * params.y_image + whole * params.y_channel;
            {% if residual %}
            {% for lane in range(4) %}
            if first_pixel + {{ lane }}u < params.pixels {
                v[{{ lane }}] += f32(residual[start + (first_pixel + {{ lane }}u) * params.y_pixel]);
            }
            {% endfor %}
            {% endif %}
            v = activate(v);
            {% for lane in range(4) %}
            if first_pixel + {{ lane }}u < params.pixels {
                y[start + (first_pixel + {{ lane }}u) * params.y_pixel] = {{ y }}(v[{{ lane }}]);
            }
            {% endfor %}
        }
    }
    {% endfor %}
}
