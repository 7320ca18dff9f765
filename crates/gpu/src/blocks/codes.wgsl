{# Numbers of a unit of a matrix of few bits. `codes` says how they lie; see layout.rs and codes.rs. #}
{% set high = codes.high %}
{% if codes.table %}
var<workgroup> entries: array<f32, 16>;

fn fill_entries(local: u32) {
    var known = array<f32, 16>({{ codes.table }});
    if local < 16u {
        entries[local] = known[local];
    }
}
{% endif %}

// What a code in the middle of a word stands for: its bits become the lower ones of a float of 2^23.
fn exact(bits: vec4<u32>, zero: vec4<f32>) -> vec4<f32> {
{% if codes.convert %}
    return vec4<f32>(bits) - zero;
{% else %}
    return bitcast<vec4<f32>>(bits | vec4<u32>(0x4b000000u)) - (zero + vec4<f32>(8388608.0));
{% endif %}
}

{% for g in range(codes.groups) %}
// The numbers {{ 4 * g }} to {{ 4 * g + 3 }} of a unit, each times what `unscale{{ g }}` takes back.
fn numbers{{ g }}(q: {{ codes.low }}{% if high %}, h: {{ high }}{% endif %}) -> vec4<f32> {
{% if codes.float == "f32" %}
    return bitcast<vec4<f32>>(q);
{% elif codes.float == "f16" %}
    return vec4<f32>(unpack2x16float(q[{{ 2 * g }}]), unpack2x16float(q[{{ 2 * g + 1 }}]));
{% elif codes.float == "bf16" %}
    let a = q[{{ 2 * g }}];
    let b = q[{{ 2 * g + 1 }}];
    return bitcast<vec4<f32>>(vec4<u32>(a << 16u, a & 0xffff0000u, b << 16u, b & 0xffff0000u));
{% else %}
{% if codes.bits == 4 %}
    let word = q[{{ g // 2 }}]{% if codes.table and g % 2 == 1 %} >> 4u{% endif %};
{% elif codes.bits == 8 %}
    let word = q[{{ g }}];
{% elif codes.bits == 2 %}
    let word = (q[{{ g // 4 }}] >> {{ 2 * (g % 4) }}u) & 0x03030303u;
{% elif codes.bits == 3 %}
    let word = ((q[{{ g // 4 }}] >> {{ 2 * (g % 4) }}u) & 0x03030303u) | (((h >> {{ g }}u) & 0x01010101u) << 2u);
{% elif codes.bits == 5 %}
    let word = ((q[{{ g // 2 }}] >> {{ 4 * (g % 2) }}u) & 0x0f0f0f0fu) | (((h >> {{ g }}u) & 0x01010101u) << 4u);
{% else %}
    let word = ((q[{{ g // 2 }}] >> {{ 4 * (g % 2) }}u) & 0x0f0f0f0fu) | (((h[{{ g // 4 }}] >> {{ 2 * (g % 4) }}u) & 0x03030303u) << 4u);
{% endif %}
{% if codes.table %}
    return vec4<f32>(entries[word & 15u], entries[(word >> 8u) & 15u], entries[(word >> 16u) & 15u], entries[(word >> 24u) & 15u]);
{% else %}
    let upper = word >> 16u;
    return exact(vec4<u32>(word, word, upper, upper) & vec4<u32>({{ codes.masks[g] }}), vec4<f32>({{ codes.zeros[g] }}));
{% endif %}
{% endif %}
}
{% endfor %}

{% if codes.factors %}
fn half_of(at: u32, index: u32) -> f32 {
    let pair = unpack2x16float(factors[at + (index >> 1u)]);
    return select(pair.x, pair.y, (index & 1u) == 1u);
}

fn byte_of(word: u32, index: u32) -> f32 {
    return f32(bitcast<i32>(word << (24u - 8u * index)) >> 24u);
}

// The scale of a block, and what is added to its scaled numbers. The row's factors start at `at`, those of its
// superblocks at `wholes`.
fn factor(at: u32, wholes: u32, block: u32) -> vec2<f32> {
{% if codes.factors == "nested" %}
{% if codes.pairs %}
    let word = factors[at + (block >> 1u)] >> ((block & 1u) * 16u);
    let own = vec2<f32>(byte_of(word, 0u), byte_of(word, 1u));
    let both = own * unpack2x16float(factors[wholes + (block >> {{ codes.per_super }}u)]);
{% else %}
    let own = byte_of(factors[at + (block >> 2u)], block & 3u);
    let both = vec2<f32>(own * half_of(wholes, block >> {{ codes.per_super }}u), 0.0);
{% endif %}
{% elif codes.factors == "f32" %}
{% if codes.pairs %}
    let both = bitcast<vec2<f32>>(vec2<u32>(factors[at + 2u * block], factors[at + 2u * block + 1u]));
{% else %}
    let both = vec2<f32>(bitcast<f32>(factors[at + block]), 0.0);
{% endif %}
{% elif codes.factors == "f16" %}
{% if codes.pairs %}
    let both = unpack2x16float(factors[at + block]);
{% else %}
    let both = vec2<f32>(half_of(at, block), 0.0);
{% endif %}
{% else %}
{% if codes.pairs %}
    let word = factors[at + block];
    let both = bitcast<vec2<f32>>(vec2<u32>(word << 16u, word & 0xffff0000u));
{% else %}
    let word = factors[at + (block >> 1u)];
    let both = vec2<f32>(bitcast<f32>(select(word << 16u, word & 0xffff0000u, (block & 1u) == 1u)), 0.0);
{% endif %}
{% endif %}
    return {% if codes.zero_points %}vec2<f32>(both.x, -both.y * both.x){% else %}both{% endif %};
}
{% endif %}
