{# How results leave: `lanes` says how many at most are given at a time. #}
{% include "matmul/activation" %}

// Adds what is added, and writes so many neighbouring pixels of a channel from `to` on.
fn put(sums: vec4<f32>, channel: u32, to: u32, count: u32) {
    var v = sums;
    {% if bias %}
    v += f32(bias[channel]);
    {% endif %}
    {% if residual %}
    {% for lane in range(lanes) %}
    if {{ lane }}u < count {
        v[{{ lane }}] += f32(residual[to + {{ lane }}u * params.y_pixel]);
    }
    {% endfor %}
    {% endif %}
    v = activate(v);
    {% for lane in range(lanes) %}
    if {{ lane }}u < count {
        y[to + {{ lane }}u * params.y_pixel] = {{ y }}(v[{{ lane }}]);
    }
    {% endfor %}
}
