// A convolution of images as a product by cooperative matrices of {{ size }} × {{ size }}: weights [M, K] times the windows
// of an image [K, pixels], in FP16 with sums in FP32. A workgroup computes {{ bm }} channels of {{ bn }} pixels, a
// subgroup {{ sm }} of {{ sn }}. Windows are read where they lie, four pixels a thread at a time.
{% include "conv/gemm_params" %}

{% set lanes = 4 %}
{% include "conv/result" %}

{% set unit = 4 if wide else 1 %}
{% set w_step = (bm + 8) // unit %}
{% set x_step = (bn + 8) // unit %}
{% set half = "vec4<f16>" if wide else "f16" %}
{% set matrix = "coop_mat" ~ size ~ "x" ~ size %}
{% set across = strip * size %}
var<workgroup> w_tile: array<{{ half }}, {{ bk * w_step }}>;
var<workgroup> x_tile: array<{{ half }}, {{ bk * x_step }}>;
var<workgroup> results: array<f32, {{ subgroups * size * across }}>;

// Where what the windows that begin at `ys` and `xs` meet at a place of K lies, and a bit for each that is inside the
// image: the others read the image's first element.
struct Met {
    at: vec4<u32>,
    inside: u32,
}

fn windows(start: u32, ys: vec4<u32>, xs: vec4<u32>, k: u32) -> Met {
{% if ky * kx > 1 %}
    let channel = k / {{ ky * kx }}u;
    let place = k % {{ ky * kx }}u;
    let y = ys + place / {{ kx }}u * params.step_y;
    let x_at = xs + place % {{ kx }}u * params.step_x;
{% else %}
    let channel = k;
    let y = ys;
    let x_at = xs;
{% endif %}
    // What lies before the image is beyond it as a number without a sign.
    let seen = (y < vec4<u32>(params.in_y)) & (x_at < vec4<u32>(params.in_x)) & vec4<bool>(k < params.k);
    let from_channel = start + channel * params.x_channel;
    let at = select(vec4<u32>(start), vec4<u32>(from_channel) + (y * params.in_x + x_at) * params.x_pixel, seen);
    return Met(at, dot(select(vec4<u32>(), vec4<u32>(1u, 2u, 4u, 8u), seen), vec4<u32>(1u)));
}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32, @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_size) lanes: u32) {
    let id = group.x + group.y * groups.x;
    if id >= params.total {
        return;
    }
    let tile_n = id % params.tiles_n;
    let tile_m = (id / params.tiles_n) % params.tiles_m;
    let stack = id / (params.tiles_n * params.tiles_m);
    let part = stack % params.groups;
    let image = stack / params.groups;
    // Where subgroups are smaller than expected, those beyond repeat the last one.
    let team = min(subgroup, {{ subgroups - 1 }}u);
    let team_row = team / {{ bn // sn }}u * {{ sm }}u;
    let team_column = team % {{ bn // sn }}u * {{ sn }}u;

    // The four pixels whose windows this thread reads; those beyond the last begin outside the image.
    let quad = thread % {{ bn // 4 }}u;
    let pixel = vec4<u32>(tile_n * {{ bn }}u + quad * 4u) + vec4<u32>(0u, 1u, 2u, 3u);
    let inside = pixel < vec4<u32>(params.pixels);
    let ys = select(vec4<u32>(0x80000000u), pixel / params.out_x * params.stride_y - params.pad_y, inside);
    let xs = pixel % params.out_x * params.stride_x - params.pad_x;
    let x_start = image * params.x_image + part * params.channels * params.x_channel;
    let x_row = thread / {{ bn // 4 }}u;
    let w_start = (part * params.k_padded * params.m_padded + tile_m * {{ bm }}u) / 4u;
    let w_row = thread / {{ bm // 4 }}u;
    let w_quad = thread % {{ bm // 4 }}u;

{% for i in range(w_loads) %}
    var next_w{{ i }} = vec4<{{ w }}>();
{% endfor %}
{% for i in range(x_loads) %}
    var next_x{{ i }} = vec4<{{ x }}>();
{% endfor %}
{% for i in range((x_loads + 7) // 8) %}
    // A bit for each of what was read, whether it counts.
    var counts{{ i }} = 0u;
{% endfor %}
{% for i in range(sm // size) %}
{% for j in range(sn // size) %}
    var sum_{{ i }}_{{ j }}: {{ matrix }}<f32, C>;
{% endfor %}
{% endfor %}

{% macro fetch() %}
{% for i in range(w_loads) %}
    next_w{{ i }} = vec4<{{ w }}>(w[w_start + (k_ahead + w_row + {{ i * (threads // (bm // 4)) }}u) * params.m_padded / 4u + w_quad]);
{% endfor %}
{% for i in range(x_loads) %}
    {
        let met = windows(x_start, ys, xs, k_ahead + x_row + {{ i * (threads // (bn // 4)) }}u);
        next_x{{ i }} = vec4<{{ x }}>(x[met.at.x], x[met.at.y], x[met.at.z], x[met.at.w]);
        counts{{ i // 8 }} = {{ "counts" ~ (i // 8) ~ " | " if i % 8 else "" }}(met.inside << {{ i % 8 * 4 }}u);
    }
{% endfor %}
{% endmacro %}
    // What is read is masked and converted when it is put into workgroup memory: nothing waits for it before.
    var k = 0u;
    var k_ahead = 0u;
    {{ fetch() }}
    loop {
        if k >= params.k_padded {
            break;
        }
{% for name, loads, step, wide_len in [("w", w_loads, w_step, bm), ("x", x_loads, x_step, bn)] %}
{% for i in range(loads) %}
        {
            let at = ({{ name }}_row + {{ i * (threads // (wide_len // 4)) }}u) * {{ step }}u + {{ "w_quad" if name == "w" else "quad" }}{{ "" if wide else " * 4u" }};
{% if name == "w" %}
            let value = vec4<f16>(next_w{{ i }});
{% else %}
            let bits = (vec4<u32>(counts{{ i // 8 }}) >> vec4<u32>({{ i % 8 * 4 }}u, {{ i % 8 * 4 + 1 }}u, {{ i % 8 * 4 + 2 }}u, {{ i % 8 * 4 + 3 }}u)) & vec4<u32>(1u);
            let value = select(vec4<f16>(), vec4<f16>(next_x{{ i }}), bits != vec4<u32>());
{% endif %}
{% if wide %}
            {{ name }}_tile[at] = value;
{% else %}
{% for c in range(4) %}
            {{ name }}_tile[at + {{ c }}u] = value[{{ c }}];
{% endfor %}
{% endif %}
        }
{% endfor %}
{% endfor %}
        workgroupBarrier();
        k += {{ bk }}u;
        // The last terms are read again where there are no others: a branch would wait for what it loads.
        k_ahead = min(k, params.k_padded - {{ bk }}u);
        {{ fetch() }}
{% for deep in range(0, bk, size) %}
        {
{% for i in range(sm // size) %}
            let at_w{{ i }} = {{ deep * w_step + i * size // unit }}u + team_row / {{ unit }}u;
            let w{{ i }} = coopLoad<{{ matrix }}<f16, A>>(&w_tile[at_w{{ i }}], {{ w_step }}u);
{% endfor %}
{% for j in range(sn // size) %}
            let at_x{{ j }} = {{ deep * x_step + j * size // unit }}u + team_column / {{ unit }}u;
            let x{{ j }} = coopLoadT<{{ matrix }}<f16, B>>(&x_tile[at_x{{ j }}], {{ x_step }}u);
{% for i in range(sm // size) %}
            sum_{{ i }}_{{ j }} = coopMultiplyAdd(w{{ i }}, x{{ j }}, sum_{{ i }}_{{ j }});
{% endfor %}
{% endfor %}
        }
{% endfor %}
        workgroupBarrier();
    }

    // Nobody sees the elements of a matrix: they go through workgroup memory.
    let own = team * {{ size * across }}u;
{% for i in range(sm // size) %}
{% for strip_at in range(0, sn // size, strip) %}
{% for j in range(strip) %}
    let to_{{ i }}_{{ strip_at + j }} = own + {{ j * size }}u;
    coopStoreT(sum_{{ i }}_{{ strip_at + j }}, &results[to_{{ i }}_{{ strip_at + j }}], {{ across }}u);
{% endfor %}
    workgroupBarrier();
    for (var i = lane; i < {{ size * across // 4 }}u; i += lanes) {
        let channel = tile_m * {{ bm }}u + team_row + {{ i * size }}u + i / {{ across // 4 }}u;
        let first = tile_n * {{ bn }}u + team_column + {{ strip_at * size }}u + i % {{ across // 4 }}u * 4u;
        if channel < params.m && first < params.pixels {
            let whole = part * params.m + channel;
            let at = own + i * 4u;
            let found = vec4<f32>(results[at], results[at + 1u], results[at + 2u], results[at + 3u]);
            let to = image * params.y_image + whole * params.y_channel + first * params.y_pixel;
            put(found, whole, to, params.pixels - first);
        }
    }
    workgroupBarrier();
{% endfor %}
{% endfor %}
}
