{% from "blocks/codes" import numbers, stored, factor %}
// Rows of a matrix of few bits by their numbers. A unit a thread. What names no row of the matrix becomes 0.
@group(0) @binding(0) var<storage, read_write> indices: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> y: array<{{ y if not aligned else "vec4<" ~ y ~ ">" }}>;
{% for d in bindings %}
@group(0) @binding({{ loop.index0 + 2 }}) var<storage, read> {{ d.name }}: array<{{ d.of }}>;
{% endfor %}

struct Params {
    units: u32,
    columns: u32,
    count: u32,
    factor_words: u32,
    wholes: u32,
    // The rows that lie here, and how many there are in all.
    first: u32,
    rows: u32,
    all: u32,
}
@group(0) @binding({{ bindings | length + 2 }}) var<uniform> params: Params;

{% include "blocks/entries" %}

fn put(at: u32, k: u32, numbers: vec4<f32>) {
{% if aligned %}
    if k < params.columns {
        y[(at * params.columns + k) >> 2u] = vec4<{{ y }}>(numbers);
    }
{% else %}
    for (var j = 0u; j < 4u; j++) {
        if k + j < params.columns {
            y[at * params.columns + k + j] = {{ y }}(numbers[j]);
        }
    }
{% endif %}
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
{% if codes.table %}
    fill_entries(local);
    workgroupBarrier();
{% endif %}
    let number = (group.x + group.y * groups.x) * 64u + local;
    let at = number / params.units;
    let unit = number % params.units;
    if at >= params.count {
        return;
    }
    let index = indices[at];
    if index.y != 0u || index.x >= params.all {
        if params.first == 0u {
            for (var k = 0u; k < {{ codes.unit }}u; k += 4u) {
                put(at, unit * {{ codes.unit }}u + k, vec4<f32>());
            }
        }
        return;
    }
    let row = index.x - params.first;
    if index.x < params.first || row >= params.rows {
        return;
    }
    let q = low[row * params.units + unit];
{% if codes.high %}
    let h = high[row * params.units + unit];
{% endif %}
{% if codes.factors %}
    let start = row * params.factor_words;
{% for p in range(parts) %}
{% if parts > 1 %}
    let block{{ p }} = unit * {{ parts }}u + {{ p }}u;
{% else %}
    let block{{ p }} = unit >> {{ per_block }}u;
{% endif %}
    let words{{ p }} = {{ stored(codes, "start", "start + params.wholes", "block" ~ p) }};
    let f{{ p }} = {{ factor(codes, "words" ~ p, "block" ~ p) }};
{% endfor %}
{% endif %}
{% for g in range(codes.groups) %}
{% set whole = numbers(codes, g, "q", "h") %}
{% set f = "f" ~ (g * parts // codes.groups) %}
    put(at, unit * {{ codes.unit }}u + {{ 4 * g }}u, {{ whole }}{% if codes.factors %} * vec4<f32>({{ unscale[g] }}) * {{ f }}.x{% if codes.pairs %} + vec4<f32>({{ f }}.y){% endif %}{% endif %});
{% endfor %}
}
