// Products of a few rows with a matrix of few bits. `{{ lanes }}` lanes share the units of {{ rows }} packed rows and add
// up what each of them has; X lies in workgroup memory, transposed so that lanes read neighbouring vectors.
{% for d in bindings %}
@group(0) @binding({{ loop.index0 }}) var<storage, {{ d.access }}> {{ d.name }}: array<{{ d.of }}>;
{% endfor %}

{% include "blocks/params" %}
@group(0) @binding({{ bindings | length }}) var<uniform> params: Params;

{% include "blocks/codes" %}

{% set stride = tile + 1 %}
var<workgroup> xs: array<vec4<f32>, {{ m * codes.groups * stride }}>;
{% set slots = threads // fast %}
{% if fast < lanes %}
var<workgroup> sums: array<f32, {{ rows * slots }}>;
{% endif %}

{% include "blocks/quad" %}
{% include "blocks/store" %}

@compute @workgroup_size({{ threads }})
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
{% if subgroups %}
    @builtin(subgroup_size) subgroup: u32,
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
    let lane = local % {{ lanes }}u;
    let first = ((number - own.x) * {{ threads // lanes }}u + local / {{ lanes }}u) * {{ rows }}u;
    let last = own.y - 1u;
    let m0 = group.z * {{ m }}u;
{% for r in range(rows) %}
    let row{{ r }} = own.z + min(first + {{ r }}u, last);
    let at{{ r }} = row{{ r }} * params.units;
    let factors{{ r }} = row{{ r }} * params.factor_words;
{% for i in range(m) %}
    var sum{{ r }}_{{ i }} = 0.0;
{% endfor %}
{% endfor %}
{% if codes.table %}
    fill_entries(local);
{% endif %}
    for (var base = 0u; base < params.units; base += {{ tile }}u) {
        for (var v = local; v < {{ m * codes.groups * tile }}u; v += {{ threads }}u) {
            let i = v / {{ codes.groups * tile }}u;
            let w = v % {{ codes.groups * tile }}u;
            let g = w % {{ codes.groups }}u;
            let all = quad(m0 + i, base * {{ codes.groups }}u + w);
{% if scaled %}
{% if codes.bits == 4 %}
            let scale = select(vec4<f32>({{ unscale[0] }}), vec4<f32>({{ unscale[1] }}), (g & 1u) == 1u);
{% else %}
            let scale = vec4<f32>({{ unscale[0] }});
{% endif %}
            xs[(i * {{ codes.groups }}u + g) * {{ stride }}u + w / {{ codes.groups }}u] = all * scale;
{% else %}
            xs[(i * {{ codes.groups }}u + g) * {{ stride }}u + w / {{ codes.groups }}u] = all;
{% endif %}
        }
        workgroupBarrier();
        let count = min({{ tile }}u, params.units - base);
        for (var u = lane; u < count; u += {{ lanes }}u) {
            let unit = base + u;
{% for r in range(rows) %}
            let q{{ r }} = low[at{{ r }} + unit];
{% if codes.high %}
            let h{{ r }} = high[at{{ r }} + unit];
{% endif %}
{% endfor %}
{% if codes.factors %}
{% for r in range(rows) %}
{% for p in range(parts) %}
{% if parts > 1 %}
            let f{{ r }}_{{ p }} = factor(factors{{ r }}, factors{{ r }} + params.wholes, unit * {{ parts }}u + {{ p }}u);
{% else %}
            let f{{ r }}_{{ p }} = factor(factors{{ r }}, factors{{ r }} + params.wholes, unit >> {{ per_block }}u);
{% endif %}
{% endfor %}
{% endfor %}
{% endif %}
{% for p in range(parts) %}
            {
{% for i in range(m) %}
{% for r in range(rows) %}
                var part{{ r }}_{{ i }} = 0.0;
{% endfor %}
{% if codes.pairs %}
                var plain{{ i }} = 0.0;
{% endif %}
{% endfor %}
{% for g in range(p * codes.groups // parts, (p + 1) * codes.groups // parts) %}
                {
{% for r in range(rows) %}
                    let w{{ r }} = numbers{{ g }}(q{{ r }}{% if codes.high %}, h{{ r }}{% endif %});
{% endfor %}
{% for i in range(m) %}
                    let x{{ i }} = xs[{{ (i * codes.groups + g) * stride }}u + u];
{% if codes.pairs %}
                    plain{{ i }} += dot(x{{ i }}, vec4<f32>({{ restore[g] }}));
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
{% for r in range(rows) %}
{% for i in range(m) %}
{% if codes.factors %}
                sum{{ r }}_{{ i }} = fma(f{{ r }}_{{ p }}.x, part{{ r }}_{{ i }}, sum{{ r }}_{{ i }});
{% if codes.pairs %}
                sum{{ r }}_{{ i }} = fma(f{{ r }}_{{ p }}.y, plain{{ i }}, sum{{ r }}_{{ i }});
{% endif %}
{% else %}
                sum{{ r }}_{{ i }} += part{{ r }}_{{ i }};
{% endif %}
{% endfor %}
{% endfor %}
            }
{% endfor %}
        }
        workgroupBarrier();
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
{% if gated %}
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
{% set results = rows * (threads // lanes) // (2 if gated else 1) %}
    for (var at = local; at < {{ results }}u; at += {{ threads }}u) {
        let part = at % {{ threads // lanes }}u;
        let r = at / {{ threads // lanes }}u{% if gated %} * 2u{% endif %};
        var total = 0.0;
        for (var j = 0u; j < each; j++) {
            total += sums[r * {{ slots }}u + part * each + j];
        }
{% if gated %}
        var second = 0.0;
        for (var j = 0u; j < each; j++) {
            second += sums[(r + 1u) * {{ slots }}u + part * each + j];
        }
        total = gate(total) * second;
{% endif %}
        let row = ((number - own.x) * {{ threads // lanes }}u + part) * {{ rows }}u + r;
        if row < own.y && m0 + {{ i }}u < params.m {
            store(which, m0 + {{ i }}u, own.w + row{% if gated %} / 2u{% endif %}, total);
        }
    }
    workgroupBarrier();
{% endfor %}
{% endif %}
}
