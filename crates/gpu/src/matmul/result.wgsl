// Writing four columns of a row of the result.
{% if partial %}
fn put(part: u32, base: Starts, row: u32, column: u32, sums: vec4<f32>) {
    if row >= params.m || column >= params.n {
        return;
    }
    let at = (part * params.m + row) * params.n + column;
    {% if out.wide %}
    out[at >> 2u] = sums;
    {% else %}
    {% for i in range(4) %}
    if column + {{ i }}u < params.n {
        out[at + {{ i }}u] = sums[{{ i }}];
    }
    {% endfor %}
    {% endif %}
}
{% else %}
{% include "matmul/activation" %}
{% if windows == "b" %}

// Where a pixel lies in a result of [images, m, pixels].
fn pixel(row: u32, column: u32) -> u32 {
    return (column / params.pixels * params.m + row) * params.pixels + column % params.pixels;
}
{% endif %}

fn put(part: u32, base: Starts, row: u32, column: u32, sums: vec4<f32>) {
    if row >= params.m || column >= params.n {
        return;
    }
    var v = sums * params.alpha;
    {% if windows == "b" %}
    let at = pixel(row, column);
    {% else %}
    let at = base.out + row * params.n + column;
    {% endif %}
    {% if bias and bias_rows %}
    v += f32(bias[row]);
    {% endif %}
    {% if out.wide %}
    {% if bias and not bias_rows %}
    v += vec4<f32>(bias[column >> 2u]);
    {% endif %}
    {% if more %}
    {% if windows == "b" %}
    let other = vec4<f32>(more[at >> 2u]);
    {% else %}
    let other = vec4<f32>(more[(base.more + row * params.more_outer + column) >> 2u]);
    {% endif %}
    v = {{ "v * other" if gated else "v + params.beta * other" }};
    {% endif %}
    out[at >> 2u] = vec4<{{ out.elem }}>(activate(v));
    {% elif windows == "b" %}
    // Pixels beside one another may be of two images.
    {% if more %}
    {% for i in range(4) %}
    if column + {{ i }}u < params.n {
        v[{{ i }}] += params.beta * f32(more[pixel(row, column + {{ i }}u)]);
    }
    {% endfor %}
    {% endif %}
    v = activate(v);
    {% for i in range(4) %}
    if column + {{ i }}u < params.n {
        out[pixel(row, column + {{ i }}u)] = {{ out.elem }}(v[{{ i }}]);
    }
    {% endfor %}
    {% else %}
    {% if bias or more %}
    let columns = min(vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.n - 1u));
    {% endif %}
    {% if bias and not bias_rows %}
    let row_at = columns * params.bias_step;
    v += vec4<f32>(f32(bias[row_at.x]), f32(bias[row_at.y]), f32(bias[row_at.z]), f32(bias[row_at.w]));
    {% endif %}
    {% if more %}
    let more_at = base.more + row * params.more_outer + columns * params.more_inner;
    let other = vec4<f32>(f32(more[more_at.x]), f32(more[more_at.y]), f32(more[more_at.z]), f32(more[more_at.w]));
    v = {{ "v * other" if gated else "v + params.beta * other" }};
    {% endif %}
    v = activate(v);
    {% for i in range(4) %}
    if column + {{ i }}u < params.n {
        out[at + {{ i }}u] = {{ out.elem }}(v[{{ i }}]);
    }
    {% endfor %}
    {% endif %}
}
{% endif %}
