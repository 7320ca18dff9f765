// Reading eight halves of an operand, as they lie: along k, or along rows of A or columns of B. Indices beyond the last
// row or column read the last ones, and what is beyond k counts as 0.
{% for x, o, len in [("a", a, "m"), ("b", b, "n")] %}
fn load_{{ x }}(start: u32, outer: u32, k: u32) -> Octet {
    {% if edge %}
    if k >= params.k {
        return Octet();
    }
    {% endif %}
    {% if o.inner %}
    let row = min(outer, params.{{ len }} - 1u);
    return {{ x }}[(start + row * params.{{ x }}_outer + k) >> 3u];
    {% else %}
    let columns = min(outer, (params.{{ len }} - 1u) & 0xfffffff8u);
    return {{ x }}[(start + k * params.{{ x }}_inner + columns) >> 3u];
    {% endif %}
}
{% endfor %}
