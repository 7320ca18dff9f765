// Writing four columns of a row of the result.
{% if partial %}
// What is written in place of sums: they, to which others are added later.
fn finish(sums: vec4<f32>) -> vec4<f32> {
    return sums;
}

fn settle(base: Starts, row: u32, column: u32, sums: vec4<f32>) -> vec4<f32> {
    return sums;
}

fn keep(part: u32, base: Starts, row: u32, column: u32, v: vec4<f32>) {
    if row >= params.m || column >= params.n {
        return;
    }
    let at = (part * params.m + row) * params.n + column;
    {% if out.wide %}
    out[at >> 2u] = v;
    {% else %}
    {% for i in range(4) %}
    if column + {{ i }}u < params.n {
        out[at + {{ i }}u] = v[{{ i }}];
    }
    {% endfor %}
    {% endif %}
}
{% else %}
{% include "matmul/activation" %}

// Where a row's column lies in the result.
fn place(base: Starts, row: u32, column: u32) -> u32 {
    {% if windows == "b" %}
    // A pixel of [images, m, pixels].
    return (column / params.pixels * params.m + row) * params.pixels + column % params.pixels;
    {% else %}
    return base.out + row * params.n + column;
    {% endif %}
}

// What follows reads the last row and columns in place of those beyond the result.
{% if bias and bias_rows %}
fn biased(row: u32, column: u32) -> vec4<f32> {
    return vec4<f32>(f32(bias[min(row, params.m - 1u)]));
}
{% elif bias %}
fn biased(row: u32, column: u32) -> vec4<f32> {
    {% if out.wide %}
    return vec4<f32>(bias[min(column, params.n - 4u) >> 2u]);
    {% else %}
    let at = min(vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.n - 1u)) * params.bias_step;
    return vec4<f32>(f32(bias[at.x]), f32(bias[at.y]), f32(bias[at.z]), f32(bias[at.w]));
    {% endif %}
}
{% endif %}
{% if more %}
fn added(base: Starts, row: u32, column: u32) -> vec4<f32> {
    let own = min(row, params.m - 1u);
    {% if out.wide %}
    let first = min(column, params.n - 4u);
    {% if windows == "b" %}
    return vec4<f32>(more[place(base, own, first) >> 2u]);
    {% else %}
    return vec4<f32>(more[(base.more + own * params.more_outer + first) >> 2u]);
    {% endif %}
    {% else %}
    let columns = min(vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.n - 1u));
    {% if windows == "b" %}
    let at = vec4<u32>(place(base, own, columns.x), place(base, own, columns.y), place(base, own, columns.z), place(base, own, columns.w));
    {% else %}
    let at = base.more + own * params.more_outer + columns * params.more_inner;
    {% endif %}
    return vec4<f32>(f32(more[at.x]), f32(more[at.y]), f32(more[at.z]), f32(more[at.w]));
    {% endif %}
}
{% endif %}

// What is written in place of sums.
fn finish(sums: vec4<f32>{{ ", first: vec4<f32>" if bias }}{{ ", other: vec4<f32>" if more }}) -> vec4<f32> {
    var v = sums * params.alpha;
    {% if bias %}
    v += first;
    {% endif %}
    {% if more %}
    v = {{ "v * other" if gated else "v + params.beta * other" }};
    {% endif %}
    return activate(v);
}

fn settle(base: Starts, row: u32, column: u32, sums: vec4<f32>) -> vec4<f32> {
    return finish(sums{{ ", biased(row, column)" if bias }}{{ ", added(base, row, column)" if more }});
}

fn keep(part: u32, base: Starts, row: u32, column: u32, v: vec4<f32>) {
    if row >= params.m || column >= params.n {
        return;
    }
    let at = place(base, row, column);
    {% if out.wide %}
    out[at >> 2u] = vec4<{{ out.elem }}>(v);
    {% else %}
    {% for i in range(4) %}
    if column + {{ i }}u < params.n {
        {% if windows == "b" %}
        // Pixels beside one another may be of two images.
        out[place(base, row, column + {{ i }}u)] = {{ out.elem }}(v[{{ i }}]);
        {% else %}
        out[at + {{ i }}u] = {{ out.elem }}(v[{{ i }}]);
        {% endif %}
    }
    {% endfor %}
    {% endif %}
}
{% endif %}

fn put(part: u32, base: Starts, row: u32, column: u32, sums: vec4<f32>) {
    if row >= params.m || column >= params.n {
        return;
    }
    keep(part, base, row, column, settle(base, row, column, sums));
}
