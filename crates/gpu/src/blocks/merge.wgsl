// Adds up what workgroups with parts of the units left. An element of an output for each thread.
{% for d in bindings %}
@group(0) @binding({{ loop.index0 }}) var<storage, {{ d.access }}> {{ d.name }}: array<{{ d.of }}>;
{% endfor %}

{% include "blocks/params" %}
@group(0) @binding({{ bindings | length }}) var<uniform> params: Params;

{% include "blocks/store" %}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = (group.x + group.y * groups.x) * 64u + local;
    let lines = params.end * {{ per_group }}u;
    let columns = lines{{ " / 2u" if gated else "" }};
    let row = index / columns;
    if row >= params.m {
        return;
    }
    let line = index % columns{{ " * 2u" if gated else "" }};
    let number = line / {{ per_group }}u;
    var which = 0u;
{% for s in range(1, outputs) %}
    if number >= params.outputs[{{ s }}].x {
        which = {{ s }}u;
    }
{% endfor %}
    let own = params.outputs[which];
    let at = line - own.x * {{ per_group }}u;
    if at >= own.y {
        return;
    }
    var sum = 0.0;
{% if gated %}
    var second = 0.0;
{% endif %}
    for (var part = 0u; part < params.cuts; part++) {
        let start = (part * params.m + row) * lines + line;
        sum += partial[start];
{% if gated %}
        second += partial[start + 1u];
{% endif %}
    }
{% if gated %}
    store(which, row, own.w + at / 2u, gate(sum) * second);
{% else %}
    store(which, row, own.w + at, sum);
{% endif %}
}
