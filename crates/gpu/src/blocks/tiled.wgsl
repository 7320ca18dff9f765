{% from "blocks/codes" import numbers, stored, factor %}
// Products of many rows with a matrix of few bits, by tiles of {{ bm }} rows of X and {{ bn }} packed rows of the matrix,
// whose numbers become whole in workgroup memory.
{% for d in bindings %}
@group(0) @binding({{ loop.index0 }}) var<storage, {{ d.access }}> {{ d.name }}: array<{{ d.of }}>;
{% endfor %}

{% include "blocks/params" %}
@group(0) @binding({{ bindings | length }}) var<uniform> params: Params;

{% include "blocks/entries" %}
{% include "blocks/quad" %}
{% include "blocks/store" %}

{% set units = bk // codes.unit %}
{% if cooperative %}
{# Rows are padded so that those of a matrix lie in different banks. #}
{% set lone = 1 if wide else 4 %}
{% set step = (bk + 8) // 4 * lone %}
{% set cell = "vec4<f16>" if wide else "f16" %}
{% set across = size %}
var<workgroup> tile_x: array<{{ cell }}, {{ bm * step }}>;
var<workgroup> tile_w: array<{{ cell }}, {{ bn * step }}>;
var<workgroup> results: array<f32, {{ subgroups * size * across }}>;

{% for name in ["x", "w"] %}
fn put_{{ name }}(row: u32, k: u32, numbers: vec4<f32>) {
    let v = vec4<f16>(clamp(numbers, vec4<f32>(-65504.0), vec4<f32>(65504.0)));
    let at = row * {{ step }}u + (k >> 2u) * {{ lone }}u;
{% if wide %}
    tile_{{ name }}[at] = v;
{% else %}
{% for c in range(4) %}
    tile_{{ name }}[at + {{ c }}u] = v[{{ c }}];
{% endfor %}
{% endif %}
}
{% endfor %}
{% else %}
{% set x_step = bm // 4 + 1 %}
{% set w_step = bn // 4 + 1 %}
var<workgroup> tile_x: array<vec4<f32>, {{ bk * x_step }}>;
var<workgroup> tile_w: array<vec4<f32>, {{ bk * w_step }}>;

{% for name, step in [("x", x_step), ("w", w_step)] %}
fn put_{{ name }}(row: u32, k: u32, numbers: vec4<f32>) {
    let at = k * {{ step }}u + (row >> 2u);
{% for c in range(4) %}
    tile_{{ name }}[at + {{ c * step }}u][row & 3u] = numbers[{{ c }}];
{% endfor %}
}
{% endfor %}
{% endif %}

// Four neighbouring packed rows of one row of the result.
fn finish(which: u32, own: vec4<u32>, row: u32, first: u32, sums: vec4<f32>) {
    if row >= params.m {
        return;
    }
{% if gated %}
    if first < own.y {
        store(which, row, own.w + first / 2u, gate(sums.x) * sums.y);
    }
    if first + 2u < own.y {
        store(which, row, own.w + first / 2u + 1u, gate(sums.z) * sums.w);
    }
{% else %}
{% for c in range(4) %}
    if first + {{ c }}u < own.y {
        store(which, row, own.w + first + {{ c }}u, sums[{{ c }}]);
    }
{% endfor %}
{% endif %}
}

@compute @workgroup_size({{ threads }})
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
{% if cooperative %}
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) lanes: u32,
{% endif %}
) {
    let number = group.x + group.y * groups.x;
    if number >= params.end {
        return;
    }
    var which = 0u;
{% for s in range(1, outputs) %}
    if number >= params.outputs[{{ s }}].x {
        which = {{ s }}u;
    }
{% endfor %}
    let own = params.outputs[which];
    let first = (number - own.x) * {{ bn }}u;
    let last = own.y - 1u;
    let m0 = group.z * {{ bm }}u;
{% if aligned %}
    let x_quads = params.columns >> 2u;
{% endif %}
{% if codes.table %}
    fill_entries(local);
    workgroupBarrier();
{% endif %}

{% set x_loads = (bm * bk // 4 + threads - 1) // threads %}
{% set w_loads = (bn * units + threads - 1) // threads %}
{% set x_whole = bm * bk // 4 % threads == 0 %}
{% set w_whole = bn * units % threads == 0 %}
{% set x_held = x_of if aligned else "vec4<f32>" %}
{% for i in range(w_loads) %}
    let w_at{{ i }} = local + {{ i * threads }}u;
    let w_row{{ i }} = own.z + min(first + w_at{{ i }} % {{ bn }}u, last);
{% endfor %}
{% for i in range(x_loads) %}
    let x_at{{ i }} = local + {{ i * threads }}u;
{% if cooperative and bk == 32 %}
    // Sixteen threads that write at a time have rows four apart, which lie in different banks.
    let x_line{{ i }} = x_at{{ i }} / 8u;
    let x_row{{ i }} = (x_line{{ i }} & 0xfffffff8u) | ((x_line{{ i }} & 1u) << 2u) | ((x_line{{ i }} >> 1u) & 3u);
{% else %}
    let x_row{{ i }} = x_at{{ i }} / {{ bk // 4 }}u;
{% endif %}
    let x_quad{{ i }} = x_at{{ i }} % {{ bk // 4 }}u;
    var x{{ i }} = {{ x_held }}();
{% endfor %}
{% for i in range(w_loads) %}
    var q{{ i }} = {{ codes.low }}();
{% if codes.high %}
    var h{{ i }} = {{ codes.high }}();
{% endif %}
{% for p in range(parts if codes.factors else 0) %}
    var s{{ i }}_{{ p }} = vec2<u32>();
{% endfor %}
{% endfor %}
{# Nothing is computed of what is loaded, so that nobody waits for it before it is kept. #}
{% macro fetch(base) %}
{% for i in range(x_loads) %}
    {
        let row = m0 + x_row{{ i }};
        let quad = ({{ base }} * {{ codes.unit }}u >> 2u) + x_quad{{ i }};
{% if aligned %}
        x{{ i }} = x[min(row, params.m - 1u) * x_quads + {{ "min(quad, x_quads - 1u)" if edge else "quad" }}];
{% else %}
        x{{ i }} = quad_of(row, quad);
{% endif %}
    }
{% endfor %}
{% for i in range(w_loads) %}
    {
        let unit = min({{ base }} + w_at{{ i }} / {{ bn }}u, params.units - 1u);
        let w_from = w_row{{ i }} * params.units + unit;
        q{{ i }} = low[w_from];
{% if codes.high %}
        h{{ i }} = high[w_from];
{% endif %}
{% if codes.factors %}
        let start = w_row{{ i }} * params.factor_words;
{% for p in range(parts) %}
{% set block = "(unit * " ~ parts ~ "u + " ~ p ~ "u)" if parts > 1 else "(unit >> " ~ per_block ~ "u)" %}
        s{{ i }}_{{ p }} = {{ stored(codes, "start", "start + params.wholes", block) }};
{% endfor %}
{% endif %}
    }
{% endfor %}
{% endmacro %}
{% macro keep() %}
{% for i in range(x_loads) %}
{% set whole = "vec4<f32>(x" ~ i ~ ")" %}
        {{ "{" if x_whole else "if x_at" ~ i ~ " < " ~ (bm * bk // 4) ~ "u {" }}
{% if edge and aligned %}
            let quad = (base * {{ codes.unit }}u >> 2u) + x_quad{{ i }};
            put_x(x_row{{ i }}, x_quad{{ i }} * 4u, select(vec4<f32>(), {{ whole }}, quad < x_quads));
{% else %}
            put_x(x_row{{ i }}, x_quad{{ i }} * 4u, {{ whole }});
{% endif %}
        }
{% endfor %}
{% for i in range(w_loads) %}
        {{ "{" if w_whole else "if w_at" ~ i ~ " < " ~ (bn * units) ~ "u {" }}
            let to = w_at{{ i }} % {{ bn }}u;
            let k = w_at{{ i }} / {{ bn }}u * {{ codes.unit }}u;
            let unit = base + w_at{{ i }} / {{ bn }}u;
{% set q = "q" ~ i %}
{% set h = "h" ~ i %}
{% if codes.factors %}
{% for p in range(parts) %}
            let block{{ p }} = {{ "unit * " ~ parts ~ "u + " ~ p ~ "u" if parts > 1 else "unit >> " ~ per_block ~ "u" }};
{% set found = factor(codes, "s" ~ i ~ "_" ~ p, "block" ~ p) %}
            let f{{ i }}_{{ p }} = {{ "select(vec2<f32>(), " ~ found ~ ", unit < params.units)" if edge else found }};
{% endfor %}
{% endif %}
{% for g in range(codes.groups) %}
{% set f = "f" ~ i ~ "_" ~ (g * parts // codes.groups) %}
{% set whole = numbers(codes, g, q, h) %}
{% if codes.pairs %}
            put_w(to, k + {{ 4 * g }}u, fma({{ whole }}, vec4<f32>({{ unscale[g] }}) * {{ f }}.x, vec4<f32>({{ f }}.y)));
{% elif codes.factors %}
            put_w(to, k + {{ 4 * g }}u, {{ whole }} * (vec4<f32>({{ unscale[g] }}) * {{ f }}.x));
{% elif edge %}
            put_w(to, k + {{ 4 * g }}u, select(vec4<f32>(), {{ whole }}, unit < params.units));
{% else %}
            put_w(to, k + {{ 4 * g }}u, {{ whole }});
{% endif %}
{% endfor %}
        }
{% endfor %}
{% endmacro %}
{% if cooperative %}
    // Where subgroups are smaller than expected, those beyond repeat the last one.
    let team = min(subgroup, {{ subgroups - 1 }}u);
    let team_row = team / {{ bn // pn }}u * {{ pm }}u;
    let team_column = team % {{ bn // pn }}u * {{ pn }}u;
{% for i in range(pm // size) %}
{% for j in range(pn // size) %}
    var sum_{{ i }}_{{ j }}: coop_mat{{ size }}x{{ size }}<f32, C>;
{% endfor %}
{% endfor %}
{% else %}
{% set tx = bn // pn %}
{% set ty = bm // pm %}
    let column = local % {{ tx }}u;
    let row = local / {{ tx }}u;
{% for i in range(pm) %}
{% for j in range(pn // 4) %}
    var sum_{{ i }}_{{ j }} = vec4<f32>();
{% endfor %}
{% endfor %}
{% endif %}
{% macro multiply() %}
{% if cooperative %}
{% for deep in range(0, bk, size) %}
        {
{% for i in range(pm // size) %}
            let at_x{{ i }} = (team_row + {{ i * size }}u) * {{ step }}u + {{ deep // 4 * lone }}u;
            let a{{ i }} = coopLoadT<coop_mat{{ size }}x{{ size }}<f16, A>>(&tile_x[at_x{{ i }}], {{ step }}u);
{% endfor %}
{% for j in range(pn // size) %}
            let at_w{{ j }} = (team_column + {{ j * size }}u) * {{ step }}u + {{ deep // 4 * lone }}u;
            let b{{ j }} = coopLoad<coop_mat{{ size }}x{{ size }}<f16, B>>(&tile_w[at_w{{ j }}], {{ step }}u);
{% for i in range(pm // size) %}
            sum_{{ i }}_{{ j }} = coopMultiplyAdd(a{{ i }}, b{{ j }}, sum_{{ i }}_{{ j }});
{% endfor %}
{% endfor %}
        }
{% endfor %}
{% else %}
        for (var deep = 0u; deep < {{ bk }}u; deep++) {
{% for i in range(pm // 4) %}
            let a{{ i }} = tile_x[deep * {{ x_step }}u + row + {{ i * ty }}u];
{% endfor %}
{% for j in range(pn // 4) %}
            let b{{ j }} = tile_w[deep * {{ w_step }}u + column + {{ j * tx }}u];
{% endfor %}
{% for i in range(pm) %}
{% for j in range(pn // 4) %}
            sum_{{ i }}_{{ j }} = fma(vec4<f32>(a{{ i // 4 }}[{{ i % 4 }}]), b{{ j }}, sum_{{ i }}_{{ j }});
{% endfor %}
{% endfor %}
        }
{% endif %}
{% endmacro %}
    var base = 0u;
    // The last tile is read again where there is no other, since a branch would wait for its loads.
    let last_base = (max(params.units, 1u) - 1u) / {{ units }}u * {{ units }}u;
    if params.units > 0u {
{{ fetch("0u") }}
    }
    loop {
        if base >= params.units {
            break;
        }
{{ keep() }}
        workgroupBarrier();
        base += {{ units }}u;
{{ fetch("min(base, last_base)") }}
{{ multiply() }}
        workgroupBarrier();
    }
{% if cooperative %}
    // Nobody sees the elements of a matrix: they go through workgroup memory.
    let place = team * {{ size * across }}u;
{% for i in range(pm // size) %}
{% for j in range(pn // size) %}
    coopStoreT(sum_{{ i }}_{{ j }}, &results[place], {{ across }}u);
    workgroupBarrier();
    for (var at = lane; at < {{ size * across // 4 }}u; at += lanes) {
        let cell = place + at * 4u;
        let row = m0 + team_row + {{ i * size }}u + at / {{ across // 4 }}u;
        let column = first + team_column + {{ j * size }}u + at % {{ across // 4 }}u * 4u;
        finish(which, own, row, column, vec4<f32>(results[cell], results[cell + 1u], results[cell + 2u], results[cell + 3u]));
    }
    workgroupBarrier();
{% endfor %}
{% endfor %}
{% else %}
{% for i in range(pm) %}
{% for j in range(pn // 4) %}
    finish(which, own, m0 + (row + {{ i // 4 * ty }}u) * 4u + {{ i % 4 }}u, first + (column + {{ j * tx }}u) * 4u, sum_{{ i }}_{{ j }});
{% endfor %}
{% endfor %}
{% endif %}
}
