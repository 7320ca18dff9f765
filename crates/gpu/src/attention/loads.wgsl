// Elements of caches, four at once or one, as they are stored.
{% for name, wide in [("keys", key_quads), ("values", value_quads)] %}
// From the element `at` on.
{% if wide %}
fn {{ name }}_at(at: u32) -> vec4<f32> {
    let word = {{ name }}[at / 4u];
{% if cache == "f32" %}
    return word;
{% elif cache == "f16" %}
    return vec4<f32>(unpack2x16float(word.x), unpack2x16float(word.y));
{% elif cache == "bf16" %}
    return bitcast<vec4<f32>>(vec4<u32>(word.x << 16u, word.x & 0xffff0000u, word.y << 16u, word.y & 0xffff0000u));
{% else %}
    return vec4<f32>(vec4<i32>(bitcast<vec4<i32>>(vec4<u32>(word << 24u, word << 16u, word << 8u, word)) >> vec4<u32>(24u)));
{% endif %}
}
{% else %}
fn {{ name }}_at(at: u32) -> f32 {
{% if cache == "f32" %}
    return {{ name }}[at];
{% elif cache == "f16" %}
    return unpack2x16float({{ name }}[at / 2u] >> ((at % 2u) * 16u)).x;
{% elif cache == "bf16" %}
    return bitcast<f32>(({{ name }}[at / 2u] >> ((at % 2u) * 16u)) << 16u);
{% else %}
    return f32(bitcast<i32>({{ name }}[at / 4u] << (24u - (at % 4u) * 8u)) >> 24u);
{% endif %}
}
{% endif %}
{% endfor %}
