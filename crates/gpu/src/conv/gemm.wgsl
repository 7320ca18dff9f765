// A convolution as a product: weights [M, K] times the windows of an image [K, pixels], K running over channels
// and places of the window. Windows are read where they lie; nothing is unfolded in memory.
// A workgroup computes {{ bm }} channels of {{ bn }} pixels, a thread {{ tm }} of {{ tn }}.
{% include "conv/gemm_params" %}

{% set threads = (bm // tm) * (bn // tn) %}
{% set rows = threads // bn %}
{% set lanes = 4 %}
{% include "conv/result" %}

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

// Where the element that a window meets at a place of K lies, and whether it is inside the image: otherwise its first
// element is read, so that nothing waits.
struct Met {
    at: u32,
    inside: bool,
}

fn window(start: u32, origin: vec3<i32>, k: u32) -> Met {
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
    let between = any(far < vec3<i32>(0)) || any(far % stride != vec3<i32>(0));
    let seen = vec3<u32>(far / stride);
    {% else %}
    // What lies before the image is beyond it as a number without a sign.
    let seen = vec3<u32>(origin + step);
    let between = false;
    {% endif %}
    let outside = channel >= params.channels || seen.z >= params.in_x || seen.y >= params.in_y || seen.x >= params.in_z;
    let inside = !(between || outside);
    let pixel = (seen.x * params.in_y + seen.y) * params.in_x + seen.z;
    return Met(start + select(0u, channel * params.x_channel + pixel * params.x_pixel, inside), inside);
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

    {# Reads the terms from `k_ahead` on. #}
    {% macro fetch() %}
    {% for i in range(bk * bm // 4 // threads) %}
    next_w{{ i }} = w[(w_start + (k_ahead + (lane + {{ i * threads }}u) / {{ bm // 4 }}u) * params.m_padded) / 4u + (lane + {{ i * threads }}u) % {{ bm // 4 }}u];
    {% endfor %}
    {% for i in range(bk // rows) %}
    {
        let met = window(x_start, begin, k_ahead + first_row + {{ i * rows }}u);
        next_x{{ i }} = x[met.at];
        counts{{ i }} = inside && met.inside;
    }
    {% endfor %}
    {% endmacro %}
    {% for i in range(bk * bm // 4 // threads) %}
    var next_w{{ i }} = vec4<{{ w }}>();
    {% endfor %}
    {% for i in range(bk // rows) %}
    var next_x{{ i }} = {{ x }}(0.0);
    var counts{{ i }} = false;
    {% endfor %}
    var k_ahead = 0u;
    if params.k_padded > 0u {
        {{ fetch() }}
    }
    for (var k0 = 0u; k0 < params.k_padded; k0 += {{ bk }}u) {
        {% for i in range(bk * bm // 4 // threads) %}
        w_tile[lane + {{ i * threads }}u] = vec4<f32>(next_w{{ i }});
        {% endfor %}
        {% for i in range(bk // rows) %}
        x_tile[(first_row + {{ i * rows }}u) * {{ bn // 4 }}u + column / 4u][column % 4u] = select(0.0, f32(next_x{{ i }}), counts{{ i }});
        {% endfor %}
        workgroupBarrier();
        // The last terms are read again where there are no others: a branch would wait for what it loads.
        k_ahead = min(k0 + {{ bk }}u, params.k_padded - {{ bk }}u);
        {{ fetch() }}
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
        if channel < params.m && first_pixel < params.pixels {
            let whole = part * params.m + channel;
            let to = image * params.y_image + whole * params.y_channel + first_pixel * params.y_pixel;
            put(sums_{{ i }}, whole, to, params.pixels - first_pixel);
        }
    }
    {% endfor %}
}
