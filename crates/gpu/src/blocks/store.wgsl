{# Where results go: `store(which, row, column, value)`, and what becomes of a gate. #}
fn store(which: u32, row: u32, column: u32, value: f32) {
    let at = row * params.widths[which] + column;
{% for s in range(outputs) %}
    {% if not loop.first %}else {% endif %}{% if not loop.last %}if which == {{ s }}u {% endif %}{
        y{{ s }}[at] = {{ y[s] }}(value{% if biases[s] %} + f32(bias{{ s }}[column]){% endif %}{% if more %} + f32(more[at]){% endif %});
    }
{% endfor %}
}
{% if gated %}
{% include "blocks/gate" %}
{% endif %}
