// Products of a few rows with a matrix of few bits. {{ lanes }} lanes share the units of {{ rows }} packed rows and add up what
// each of them has. {% if split %}A workgroup has a part of the units only, and leaves sums for others to add.
// {% endif %}{% if ahead %}X was rounded to bytes beforehand, 32 of which share a scale.
{%- else %}X lies in workgroup memory, so that lanes read neighbouring vectors{% if bytes %}: rounded to bytes, 32 of
// which share a scale{% endif %}.
{%- endif %}

{% from "blocks/codes" import word, numbers, stored, factor, quad %}
{% for d in bindings %}
@group(0) @binding({{ loop.index0 }}) var<storage, {{ d.access }}> {{ d.name }}: array<{{ d.of }}>;
{% endfor %}

{% include "blocks/params" %}
@group(0) @binding({{ bindings | length }}) var<uniform> params: Params;

{% include "blocks/entries" %}
{% if not ahead %}
{% include "blocks/quad" %}
{% endif %}
{% if split %}
fn leave(part: u32, row: u32, line: u32, value: f32) {
    partial[(part * params.m + row) * (params.end * {{ per_group }}u) + line] = value;
}
{% else %}
{% include "blocks/store" %}
{% endif %}

{% set quads = codes.groups * tile %}
{% set vectors = [codes.groups // 4, 1] | max %}
{% if ahead %}
{% elif bytes %}
var<workgroup> xs: array<vec4<u32>, {{ m * vectors * tile }}>;
// The scale of each 32 numbers, and the sum of each 16 as bytes.
var<workgroup> x_scales: array<f32, {{ m * [quads // 8, 1] | max }}>;
var<workgroup> x_sums: array<f32, {{ m * [quads // 4, 1] | max }}>;
{% else %}
{% set stride = tile + 1 %}
var<workgroup> xs: array<vec4<f32>, {{ m * codes.groups * stride }}>;
{% endif %}
{% set slots = threads // fast %}
{% if fast < lanes %}
var<workgroup> sums: array<f32, {{ rows * slots }}>;
{% endif %}

@compute @workgroup_size({{ threads }})
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
{% if subgroups %}
    @builtin(subgroup_size) subgroup: u32,
{% endif %}
) {
    // Workgroups that follow one another have the same numbers of the matrix and other rows of X.
    let index = group.x + group.y * groups.x;
    let number = index / params.cuts;
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
    let lane = local % {{ lanes }}u;
    let first = ((number - own.x) * {{ threads // lanes }}u + local / {{ lanes }}u) * {{ rows }}u;
    let last = own.y - 1u;
    let m0 = index % params.cuts * {{ m }}u;
{% if split %}
    let part_from = group.z * params.part;
    let part_to = min(part_from + params.part, params.units);
{% endif %}
{% set from_unit = "part_from" if split else "0u" %}
{% set to_unit = "part_to" if split else "params.units" %}
{% if ahead %}
    let x_blocks = (params.units * {{ codes.groups }}u + 7u) >> 3u;
{% for i in range(m) %}
    let x_row{{ i }} = min(m0 + {{ i }}u, params.m - 1u) * x_blocks;
{% endfor %}
{% elif aligned %}
    let x_quads = params.columns >> 2u;
{% endif %}
{% for r in range(rows) %}
    let row{{ r }} = own.z + min(first + {{ r }}u, last);
    let at{{ r }} = row{{ r }} * params.units;
    let factors{{ r }} = row{{ r }} * params.factor_words;
    var q{{ r }} = {{ codes.low }}();
{% if codes.high %}
    var h{{ r }} = {{ codes.high }}();
{% endif %}
{% for p in range(parts if codes.factors else 0) %}
    var s{{ r }}_{{ p }} = vec2<u32>();
{% endfor %}
{% for i in range(m) %}
    var sum{{ r }}_{{ i }} = 0.0;
{% endfor %}
{% endfor %}
{% macro fetch(u) %}
        {
            let unit = min(base + {{ u }}, params.units - 1u);
{% for r in range(rows) %}
            q{{ r }} = low[at{{ r }} + unit];
{% if codes.high %}
            h{{ r }} = high[at{{ r }} + unit];
{% endif %}
{% for p in range(parts if codes.factors else 0) %}
{% set block = "(unit * " ~ parts ~ "u + " ~ p ~ "u)" if parts > 1 else "(unit >> " ~ per_block ~ "u)" %}
            s{{ r }}_{{ p }} = {{ stored(codes, "factors" ~ r, "factors" ~ r ~ " + params.wholes", block) }};
{% endfor %}
{% endfor %}
        }
{% endmacro %}
{% if codes.table %}
    fill_entries(local);
{% endif %}
{% if ahead %}
    let base = 0u;
    if params.units > 0u {
        {{ fetch(from_unit ~ " + lane") }}
        let count = {{ to_unit }};
{% else %}
    for (var base = {{ from_unit }}; base < {{ to_unit }}; base += {{ tile }}u) {
        // The first numbers are on their way while X is brought.
        {{ fetch("lane") }}
{% set loads = (m * quads + threads - 1) // threads %}
{% for batch in range(0, loads, 8) %}
{% for j in range(batch, [batch + 8, loads] | min) %}
        let v{{ j }} = local + {{ j * threads }}u;
        let x{{ j }} = {{ quad(aligned, "(m0 + v" ~ j ~ " / " ~ quads ~ "u)", "(base * " ~ codes.groups ~ "u + v" ~ j ~ " % " ~ quads ~ "u)") }};
{% endfor %}
{% for j in range(batch, [batch + 8, loads] | min) %}
        {
            let i = v{{ j }} / {{ quads }}u;
            let w = v{{ j }} % {{ quads }}u;
{% if bytes %}
            let size = abs(x{{ j }});
            var most = max(max(size.x, size.y), max(size.z, size.w));
            most = max(most, subgroupShuffleXor(most, 1u));
            most = max(most, subgroupShuffleXor(most, 2u));
            most = max(most, subgroupShuffleXor(most, 4u));
            let times = select(0.0, 127.0 / most, most > 0.0);
            let packed = pack4xI8(vec4<i32>(round(x{{ j }} * times)));
            var sum = dot4I8Packed(packed, 0x01010101u);
            sum += subgroupShuffleXor(sum, 1u);
            sum += subgroupShuffleXor(sum, 2u);
            if v{{ j }} < {{ m * quads }}u {
                let u = w / {{ codes.groups }}u;
                let g = w % {{ codes.groups }}u;
                xs[(i * {{ vectors }}u + (g >> 2u)) * {{ tile }}u + u][g & 3u] = packed;
                if (w & 7u) == 0u {
                    x_scales[i * {{ [quads // 8, 1] | max }}u + (w >> 3u)] = most / 127.0;
                }
                if (w & 3u) == 0u {
                    x_sums[i * {{ [quads // 4, 1] | max }}u + (w >> 2u)] = f32(sum);
                }
            }
{% else %}
            let g = w % {{ codes.groups }}u;
            if v{{ j }} < {{ m * quads }}u {
{% if scaled and codes.bits == 4 %}
                let scale = select(vec4<f32>({{ unscale[0] }}), vec4<f32>({{ unscale[1] }}), (g & 1u) == 1u);
{% elif scaled %}
                let scale = vec4<f32>({{ unscale[0] }});
{% endif %}
                xs[(i * {{ codes.groups }}u + g) * {{ stride }}u + w / {{ codes.groups }}u] = x{{ j }}{{ " * scale" if scaled else "" }};
            }
{% endif %}
        }
{% endfor %}
{% endfor %}
        workgroupBarrier();
        let count = min({{ tile }}u, {{ to_unit }} - base);
{% endif %}
        for (var u = {{ from_unit ~ " + lane" if ahead else "lane" }}; u < count; u += {{ lanes }}u) {
            let unit = base + u;
{% for r in range(rows) %}
            let c{{ r }} = q{{ r }};
{% if codes.high %}
            let d{{ r }} = h{{ r }};
{% endif %}
{% for p in range(parts if codes.factors else 0) %}
            let t{{ r }}_{{ p }} = s{{ r }}_{{ p }};
{% endfor %}
{% endfor %}
            {{ fetch("u + " ~ lanes ~ "u") }}
{% for p in range(parts) %}
            {
{% if codes.factors %}
                let block = {{ "unit * " ~ parts ~ "u + " ~ p ~ "u" if parts > 1 else "unit >> " ~ per_block ~ "u" }};
{% for r in range(rows) %}
                let f{{ r }} = {{ factor(codes, "t" ~ r ~ "_" ~ p, "block") }};
{% endfor %}
{% endif %}
{% set from = p * codes.groups // parts %}
{% set to = (p + 1) * codes.groups // parts %}
{% if bytes %}
{% for i in range(m) %}
{% for r in range(rows) %}
                var part{{ r }}_{{ i }} = 0;
{% endfor %}
{% for v in range(from // 4, (to + 3) // 4) %}
{% if ahead %}
                let x{{ i }}_{{ v }} = x[(x_row{{ i }} << 1u) + u * {{ vectors }}u + {{ v }}u];
{% else %}
                let x{{ i }}_{{ v }} = xs[{{ (i * vectors + v) * tile }}u + u];
{% endif %}
{% endfor %}
{% endfor %}
{% for g in range(from, to) %}
                {
{% for r in range(rows) %}
                    let w{{ r }} = {{ word(codes, g, "c" ~ r, "d" ~ r) }}{{ " ^ 0x80808080u" if codes.bits == 8 else "" }};
{% for i in range(m) %}
                    part{{ r }}_{{ i }} += dot4I8Packed(w{{ r }}, x{{ i }}_{{ g // 4 }}[{{ g % 4 }}]);
{% endfor %}
{% endfor %}
                }
{% endfor %}
{% for i in range(m) %}
{% if ahead %}
                let steps{{ i }} = steps[x_row{{ i }} + {{ "u" if codes.groups == 8 else "(u >> 1u)" }}];
                let size{{ i }} = steps{{ i }}.x;
{% if codes.groups == 4 %}
                let plain{{ i }} = select(steps{{ i }}.y, steps{{ i }}.z, (u & 1u) == 1u);
{% elif parts == 2 %}
                let plain{{ i }} = steps{{ i }}[{{ p + 1 }}];
{% else %}
                let plain{{ i }} = steps{{ i }}.y + steps{{ i }}.z;
{% endif %}
{% else %}
                let size{{ i }} = x_scales[{{ i * ([quads // 8, 1] | max) }}u + {{ "u" if codes.groups == 8 else "(u >> 1u)" }}];
{% set sums_at = i * ([quads // 4, 1] | max) %}
{% if codes.groups == 4 %}
                let plain{{ i }} = x_sums[{{ sums_at }}u + u];
{% elif parts == 2 %}
                let plain{{ i }} = x_sums[{{ sums_at + p }}u + 2u * u];
{% else %}
                let plain{{ i }} = x_sums[{{ sums_at }}u + 2u * u] + x_sums[{{ sums_at + 1 }}u + 2u * u];
{% endif %}
{% endif %}
{% for r in range(rows) %}
                sum{{ r }}_{{ i }} = fma(size{{ i }} * f{{ r }}.x, f32(part{{ r }}_{{ i }}) - {{ zero }} * plain{{ i }}, sum{{ r }}_{{ i }});
{% if codes.pairs %}
                sum{{ r }}_{{ i }} = fma(size{{ i }} * f{{ r }}.y, plain{{ i }}, sum{{ r }}_{{ i }});
{% endif %}
{% endfor %}
{% endfor %}
{% else %}
{% for i in range(m) %}
{% for r in range(rows) %}
                var part{{ r }}_{{ i }} = 0.0;
{% endfor %}
{% if codes.pairs %}
                var plain{{ i }} = vec4<f32>();
{% endif %}
{% endfor %}
{% for g in range(from, to) %}
                {
{% for r in range(rows) %}
                    let w{{ r }} = {{ numbers(codes, g, "c" ~ r, "d" ~ r) }};
{% endfor %}
{% for i in range(m) %}
                    let x{{ i }} = xs[{{ (i * codes.groups + g) * stride }}u + u];
{% if codes.pairs %}
                    plain{{ i }} = fma(x{{ i }}, vec4<f32>({{ restore[g] }}), plain{{ i }});
{% endif %}
{% for r in range(rows) %}
                    part{{ r }}_{{ i }} = fma(w{{ r }}.x, x{{ i }}.x, part{{ r }}_{{ i }});
                    part{{ r }}_{{ i }} = fma(w{{ r }}.y, x{{ i }}.y, part{{ r }}_{{ i }});
                    part{{ r }}_{{ i }} = fma(w{{ r }}.z, x{{ i }}.z, part{{ r }}_{{ i }});
                    part{{ r }}_{{ i }} = fma(w{{ r }}.w, x{{ i }}.w, part{{ r }}_{{ i }});
{% endfor %}
{% endfor %}
                }
{% endfor %}
{% for i in range(m) %}
{% if codes.pairs %}
                let all{{ i }} = plain{{ i }}.x + plain{{ i }}.y + plain{{ i }}.z + plain{{ i }}.w;
{% endif %}
{% for r in range(rows) %}
{% if codes.factors %}
                sum{{ r }}_{{ i }} = fma(f{{ r }}.x, part{{ r }}_{{ i }}, sum{{ r }}_{{ i }});
{% if codes.pairs %}
                sum{{ r }}_{{ i }} = fma(f{{ r }}.y, all{{ i }}, sum{{ r }}_{{ i }});
{% endif %}
{% else %}
                sum{{ r }}_{{ i }} += part{{ r }}_{{ i }};
{% endif %}
{% endfor %}
{% endfor %}
{% endif %}
            }
{% endfor %}
        }
{% if not ahead %}
        workgroupBarrier();
{% endif %}
    }
{% if subgroups %}
    // Lanes that follow one another are lanes of a subgroup.
    let near = min(subgroup, {{ lanes }}u);
{% for r in range(rows) %}
{% for i in range(m) %}
{% if fast == lanes %}
{% for step in steps %}
    sum{{ r }}_{{ i }} += subgroupShuffleXor(sum{{ r }}_{{ i }}, {{ step }}u);
{% endfor %}
{% else %}
    for (var step = 1u; step < near; step <<= 1u) {
        sum{{ r }}_{{ i }} += subgroupShuffleXor(sum{{ r }}_{{ i }}, step);
    }
{% endif %}
{% endfor %}
{% endfor %}
{% else %}
    let near = 1u;
{% endif %}
{% if fast == lanes %}
    if lane == 0u {
{% for i in range(m) %}
{% if split %}
{% for r in range(rows) %}
        if first + {{ r }}u < own.y && m0 + {{ i }}u < params.m {
            leave(group.z, m0 + {{ i }}u, own.x * {{ per_group }}u + first + {{ r }}u, sum{{ r }}_{{ i }});
        }
{% endfor %}
{% elif gated %}
{% for r in range(0, rows, 2) %}
        if first + {{ r }}u < own.y && m0 + {{ i }}u < params.m {
            store(which, m0 + {{ i }}u, own.w + (first + {{ r }}u) / 2u, gate(sum{{ r }}_{{ i }}) * sum{{ r + 1 }}_{{ i }});
        }
{% endfor %}
{% else %}
{% for r in range(rows) %}
        if first + {{ r }}u < own.y && m0 + {{ i }}u < params.m {
            store(which, m0 + {{ i }}u, own.w + first + {{ r }}u, sum{{ r }}_{{ i }});
        }
{% endfor %}
{% endif %}
{% endfor %}
    }
{% else %}
    let each = {{ lanes }}u / near;
    let slot = local / near;
{% for i in range(m) %}
    if local % near == 0u {
{% for r in range(rows) %}
        sums[{{ r * slots }}u + slot] = sum{{ r }}_{{ i }};
{% endfor %}
    }
    workgroupBarrier();
{% set pairs = gated and not split %}
{% set results = rows * (threads // lanes) // (2 if pairs else 1) %}
    for (var at = local; at < {{ results }}u; at += {{ threads }}u) {
        let part = at % {{ threads // lanes }}u;
        let r = at / {{ threads // lanes }}u{% if pairs %} * 2u{% endif %};
        var total = 0.0;
        for (var j = 0u; j < each; j++) {
            total += sums[r * {{ slots }}u + part * each + j];
        }
{% if pairs %}
        var second = 0.0;
        for (var j = 0u; j < each; j++) {
            second += sums[(r + 1u) * {{ slots }}u + part * each + j];
        }
        total = gate(total) * second;
{% endif %}
        let row = ((number - own.x) * {{ threads // lanes }}u + part) * {{ rows }}u + r;
        if row < own.y && m0 + {{ i }}u < params.m {
{% if split %}
            leave(group.z, m0 + {{ i }}u, own.x * {{ per_group }}u + row, total);
{% else %}
            store(which, m0 + {{ i }}u, own.w + row{% if gated %} / 2u{% endif %}, total);
{% endif %}
        }
    }
    workgroupBarrier();
{% endfor %}
{% endif %}
}
