// Steps of recurrent layers. A workgroup has some units of some sequences of a direction: {{ lanes }} threads multiply
// the state with a unit's weights, and one of them computes the cell.
{% macro element(name, at) %}{{ name ~ "[(" ~ at ~ ") / 4u][(" ~ at ~ ") % 4u]" if wide else name ~ "[" ~ at ~ "]" }}{% endmacro %}
{% set memory = "held" if resident else "states" %}
{% set stride = "stride" %}
{{ declarations }}
struct Params {
    // Steps of all; those whose products with inputs are here; those of this dispatch.
    steps: u32,
    first: u32,
    end: u32,
    turn: u32,
    last: u32,
    // Sequences, units, and elements from one vector that is kept to the next.
    batch: u32,
    hidden: u32,
    stride: u32,
}
@group(0) @binding({{ params }}) var<uniform> params: Params;

{% if not products %}
var<workgroup> part: array<{{ vector }}, {{ threads * rows }}>;
{% endif %}
{% if resident %}
var<workgroup> held: array<{{ "vec4<f32>" if wide else "f32" }}, {{ kept * rows * hidden // 4 if wide else kept * rows * hidden }}>;
{% endif %}

{{ functions }}
// The product of an input with its weights.
fn given(direction: u32, place: u32) -> f32 {
{% if passes == 2 %}
    if direction == 1u {
        return inputs1[place];
    }
{% endif %}
    return inputs0[place];
}
{% if bias %}
// Of both biases, or one of them.
fn bias_of(direction: u32, which: u32, row: u32) -> f32 {
    return f32(biases[(direction * 2u + which) * {{ gates }}u * params.hidden + row]);
}
{% endif %}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let direction = group.z;
    let hidden = {{ hidden ~ "u" if resident else "params.hidden" }};
    let stride = {{ (rows * hidden) ~ "u" if resident else "params.stride" }};
{% if not products %}
    let quads = {{ "hidden / 4u" if wide else "hidden" }};
    let t = index % {{ lanes }}u;
    let slot = index / {{ lanes }}u;
{% endif %}
    let backward = {{ backward }};
    let own_unit = index % {{ units }}u;
    let own_row = index / {{ units }}u;
    let blocks = (hidden + {{ units - 1 }}u) / {{ units }}u;
    let row_blocks = (params.batch + {{ rows - 1 }}u) / {{ rows }}u;
    for (var row_block = group.y; row_block < row_blocks; row_block += groups.y) {
        let row0 = row_block * {{ rows }}u;
        let row = row0 + own_row;
        let sequence = direction * params.batch + min(row, params.batch - 1u);
        let own = {{ "own_row * hidden" if resident else "sequence * hidden" }};
{% if lengths %}
        let length = u32(max(sequence_lengths[min(row, params.batch - 1u)], 0));
{% endif %}
{% if not products %}
{% for r in range(rows) %}
{% if resident %}
        let start{{ r }} = {{ r }}u * quads;
{% else %}
        let start{{ r }} = (direction * params.batch + min(row0 + {{ r }}u, params.batch - 1u)) * quads;
{% endif %}
{% endfor %}
{% endif %}
{% if resident %}
        for (var i = index; i < stride; i += {{ threads }}u) {
            let origin = (direction * params.batch + min(row0 + i / hidden, params.batch - 1u)) * hidden + i % hidden;
            let to = params.turn % 2u * stride + i;
            {{ element("held", "to") }} = {{ element("states", "params.turn % 2u * params.stride + origin") }};
{% if cell %}
            {{ element("held", "2u * stride + i") }} = {{ element("states", "2u * params.stride + origin") }};
{% endif %}
        }
        workgroupBarrier();
{% endif %}
        for (var turn = params.turn; turn < params.last; turn++) {
            let before = turn % 2u * stride;
            let after = stride - before;
            let at = select(turn, params.steps - 1u - turn, backward);
            let local = select(turn - params.first, params.end - 1u - turn, backward);
            let place = ({{ "row * (params.end - params.first) + local" if batch_first else "local * params.batch + row" }}) * {{ gates }}u * hidden;
{% for phase in phases %}
            for (var block = group.x; block < blocks; block += groups.x) {
                let unit = block * {{ units }}u + own_unit;
                let mine = own_row < {{ rows }}u && unit < hidden && row < params.batch;
                // Asked for before the sums, which take their time.
{% for g in range(phase.gates) %}
                var x{{ g }} = 0.0;
{% endfor %}
                if mine {
{% for g in range(phase.gates) %}
{% set gate = phase.first + g %}
                    x{{ g }} = given(direction, place + {{ gate }}u * hidden + unit);
{% if bias %}
                    x{{ g }} += bias_of(direction, 0u, {{ gate }}u * hidden + unit){{ " + bias_of(direction, 1u, " ~ gate ~ "u * hidden + unit)" if not (phase.name == "gru" and g == 2) }};
{% endif %}
{% endfor %}
                }
{% if not products %}
                let weight = (direction * {{ gates }}u + {{ phase.first }}u) * hidden * quads + min(block * {{ units }}u + slot, hidden - 1u) * quads;
                let source = {{ "2u * stride" if phase.from_reset else "before" }}{{ " / 4u" if wide }};
{% for r in range(rows) %}
                var sum{{ r }} = {{ vector }}();
{% endfor %}
                for (var k = t; k < quads; k += {{ lanes }}u) {
{% for g in range(phase.gates) %}
                    let w{{ g }} = {{ weights }}(weights[weight + {{ g }}u * hidden * quads + k]);
{% endfor %}
{% for r in range(rows) %}
                    let h{{ r }} = {{ memory }}[source + start{{ r }} + k];
{% for g in range(phase.gates) %}
                    sum{{ r }}{{ "." ~ "xyzw"[g] if vector != "f32" }} += {{ "dot(w" ~ g ~ ", h" ~ r ~ ")" if wide else "w" ~ g ~ " * h" ~ r }};
{% endfor %}
{% endfor %}
                }
{% for r in range(rows) %}
                part[{{ r * threads }}u + index] = sum{{ r }};
{% endfor %}
                workgroupBarrier();
                for (var s = {{ lanes // 2 }}u; s > 0u; s = s / 2u) {
                    if t < s {
{% for r in range(rows) %}
                        part[{{ r * threads }}u + index] += part[{{ r * threads }}u + index + s];
{% endfor %}
                    }
                    workgroupBarrier();
                }
{% endif %}
                if mine {
{% if products %}
                    let sums = sequence * {{ phase.gates }}u * hidden + unit;
{% for g in range(phase.gates) %}
                    let s{{ g }} = products[sums + {{ g }}u * hidden];
{% endfor %}
{% else %}
                    let sums = part[own_row * {{ threads }}u + own_unit * {{ lanes }}u];
{% for g in range(phase.gates) %}
                    let s{{ g }} = sums{{ "." ~ "xyzw"[g] if vector != "f32" }};
{% endfor %}
{% endif %}
                    let e = own + unit;
{% if phase.name == "lstm" %}
                    let c0 = {{ element(memory, "2u * stride + e") }};
{% if peepholes %}
                    let hole = direction * 3u * hidden + unit;
                    let inner = vec4<f32>(x0 + s0 + f32(peepholes[hole]) * c0, 0.0, x2 + s2 + f32(peepholes[hole + 2u * hidden]) * c0, 0.0);
{% else %}
                    let inner = vec4<f32>(x0 + s0, x1 + s1, x2 + s2, 0.0);
{% endif %}
                    let opened = cell0(limited(inner), direction);
                    let fresh = cell1(limited(vec4<f32>(x3 + s3)), direction).x;
                    let forget = {{ "1.0 - opened.x" if input_forget else "opened.z" }};
                    var c = forget * c0 + opened.x * fresh;
{% if peepholes %}
                    let shown = cell0(limited(vec4<f32>(x1 + s1 + f32(peepholes[hole + hidden]) * c)), direction).x;
{% else %}
                    let shown = opened.y;
{% endif %}
                    var h = shown * cell2(vec4<f32>(c), direction).x;
{% elif phase.name == "rnn" %}
                    var h = cell0(limited(vec4<f32>(x0 + s0)), direction).x;
{% elif phase.name == "gru" %}
                    let opened = cell0(limited(vec4<f32>(x0 + s0, x1 + s1, 0.0, 0.0)), direction);
                    let turned = s2{{ " + bias_of(direction, 1u, 2u * hidden + unit)" if bias }};
                    let fresh = cell1(limited(vec4<f32>(x2 + opened.y * turned)), direction).x;
                    var h = (1.0 - opened.x) * fresh + opened.x * {{ element(memory, "before + e") }};
{% elif phase.name == "gru-gates" %}
                    let opened = cell0(limited(vec4<f32>(x0 + s0, x1 + s1, 0.0, 0.0)), direction);
                    {{ element(memory, "2u * stride + e") }} = opened.y * {{ element(memory, "before + e") }};
                    {{ element(memory, "3u * stride + e") }} = opened.x;
{% elif phase.name == "gru-hidden" %}
                    let fresh = cell1(limited(vec4<f32>(x0 + s0)), direction).x;
                    let update = {{ element(memory, "3u * stride + e") }};
                    var h = (1.0 - update) * fresh + update * {{ element(memory, "before + e") }};
{% endif %}
{% if phase.last %}
{% if y %}
                    var shown_h = h;
{% endif %}
{% if lengths %}
                    // Behind its end a sequence keeps its state, and gives zeros.
                    if at >= length {
                        h = {{ element(memory, "before + e") }};
{% if y %}
                        shown_h = 0.0;
{% endif %}
{% if cell %}
                        c = c0;
{% endif %}
                    }
{% endif %}
                    {{ element(memory, "after + e") }} = h;
{% if cell %}
                    {{ element(memory, "2u * stride + e") }} = c;
{% endif %}
{% if y %}
                    let to = ({{ "(row * params.steps + at) * " ~ passes ~ "u + direction" if batch_first else "(at * " ~ passes ~ "u + direction) * params.batch + row" }}) * hidden + unit;
                    y[to] = {{ y }}(shown_h);
{% endif %}
{% endif %}
                }
{% if not products %}
                workgroupBarrier();
{% endif %}
            }
{% endfor %}
        }
{% if resident %}
        for (var i = index; i < stride; i += {{ threads }}u) {
            if row0 + i / hidden < params.batch {
                let to = (direction * params.batch + row0 + i / hidden) * hidden + i % hidden;
                {{ element("states", "params.last % 2u * params.stride + to") }} = {{ element("held", "params.last % 2u * stride + i") }};
{% if cell %}
                {{ element("states", "2u * params.stride + to") }} = {{ element("held", "2u * stride + i") }};
{% endif %}
            }
        }
        workgroupBarrier();
{% endif %}
    }
}
