// Reading four elements of an operand as {{ cell }}: along k where they lie so, along rows of A or columns of B otherwise.
// Indices beyond the last row or column read that one, and what is beyond k counts as 0.
{% if windows %}
// Where a window starts.
fn window(number: u32) -> u32 {
    let pixel = number % params.pixels;
    return number / params.pixels * params.step_image + pixel / params.across * params.step_y + pixel % params.across * params.step_x;
}

// Where four of its elements lie, in fours.
fn seen(start: u32, k: u32) -> u32 {
    let at = start + k + k / params.run * params.jump;
    {% if filled %}
    return select(at, params.zeros, k >= params.terms) >> 2u;
    {% else %}
    return at >> 2u;
    {% endif %}
}
{% endif %}

{% for x, o, len in [("a", a, "m"), ("b", b, "n")] %}
fn load_{{ x }}(start: u32, outer: u32, k: u32) -> vec4<{{ cell }}> {
    {% if edge and (o.wide or not o.inner) %}
    if k >= params.k {
        return vec4<{{ cell }}>(0.0);
    }
    {% endif %}
    {% if windows == x %}
    return vec4<{{ cell }}>({{ x }}[seen(start + window(min(outer, params.{{ len }} - 1u)), k)]);
    {% elif o.wide and o.inner %}
    let row = min(outer, params.{{ len }} - 1u);
    return vec4<{{ cell }}>({{ x }}[(start + row * params.{{ x }}_outer + k) >> 2u]);
    {% elif o.wide %}
    let columns = min(outer, (params.{{ len }} - 1u) & 0xfffffffcu);
    return vec4<{{ cell }}>({{ x }}[(start + k * params.{{ x }}_inner + columns) >> 2u]);
    {% elif o.inner %}
    let row = start + min(outer, params.{{ len }} - 1u) * params.{{ x }}_outer;
    {% if edge %}
    let ks = vec4<u32>(k) + vec4<u32>(0u, 1u, 2u, 3u);
    let at = row + min(ks, vec4<u32>(params.k - 1u)) * params.{{ x }}_inner;
    let v = vec4<{{ cell }}>({{ cell }}({{ x }}[at.x]), {{ cell }}({{ x }}[at.y]), {{ cell }}({{ x }}[at.z]), {{ cell }}({{ x }}[at.w]));
    return select(vec4<{{ cell }}>(0.0), v, ks < vec4<u32>(params.k));
    {% else %}
    let at = row + (vec4<u32>(k) + vec4<u32>(0u, 1u, 2u, 3u)) * params.{{ x }}_inner;
    return vec4<{{ cell }}>({{ cell }}({{ x }}[at.x]), {{ cell }}({{ x }}[at.y]), {{ cell }}({{ x }}[at.z]), {{ cell }}({{ x }}[at.w]));
    {% endif %}
    {% else %}
    let columns = min(vec4<u32>(outer) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.{{ len }} - 1u));
    let at = start + k * params.{{ x }}_inner + columns * params.{{ x }}_outer;
    return vec4<{{ cell }}>({{ cell }}({{ x }}[at.x]), {{ cell }}({{ x }}[at.y]), {{ cell }}({{ x }}[at.z]), {{ cell }}({{ x }}[at.w]));
    {% endif %}
}
{% endfor %}
