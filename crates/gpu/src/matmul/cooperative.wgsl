// A product by tiles of FP16 in workgroup memory, multiplied by cooperative matrices of {{ size }} × {{ size }} with
// sums in FP32. A subgroup computes {{ sm }} × {{ sn }} of the tile of {{ bm }} × {{ bn }}. Tiles lie as the operands
// do: rows are padded so that the rows of a matrix lie in different banks.
{% include "matmul/bindings" %}
{% include "matmul/operands" %}
{% include "matmul/result" %}
{% include "matmul/work" %}

{% set a_step = ((bk if a.inner else bm) + 8) // unit %}
{% set b_step = ((bk if b.inner else bn) + 8) // unit %}
{% set a_rows = bm if a.inner else bk %}
{% set b_rows = bn if b.inner else bk %}
{% set cell_type = "vec4<f16>" if wide else "f16" %}
{% set across = strip * size %}
var<workgroup> tile_a: array<{{ cell_type }}, {{ stages * a_rows * a_step }}>;
var<workgroup> tile_b: array<{{ cell_type }}, {{ stages * b_rows * b_step }}>;
var<workgroup> results: array<f32, {{ subgroups * size * across }}>;

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32, @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_size) lanes: u32) {
    let id = group.x + group.y * groups.x;
    if id >= params.total {
        return;
    }
    let job = work(id);
    let base = starts(job.product);
    // Where subgroups are smaller than expected, those beyond repeat the last one.
    let team = min(subgroup, {{ subgroups - 1 }}u);
    let team_row = team / {{ bn // sn }}u * {{ sm }}u;
    let team_column = team % {{ bn // sn }}u * {{ sn }}u;

    {% for x, o, len, count in [("a", a, bm, a_loads), ("b", b, bn, b_loads)] %}
    {% set along = (bk if o.inner else len) // 4 %}
    let {{ x }}_along = thread % {{ along }}u * 4u;
    let {{ x }}_across = thread / {{ along }}u;
    {% for i in range(count) %}
    var next_{{ x }}{{ i }} = vec4<f16>();
    {% endfor %}
    {% endfor %}
    {% for i in range(sm // size) %}
    {% for j in range(sn // size) %}
    var sum_{{ i }}_{{ j }}: coop_mat{{ size }}x{{ size }}<f32, C>;
    {% endfor %}
    {% endfor %}

    {% macro fetch(indent) %}
    {% for x, o, len, count, first in [("a", a, bm, a_loads, "job.row"), ("b", b, bn, b_loads, "job.column")] %}
    {% set along = (bk if o.inner else len) // 4 %}
    {% for i in range(count) %}
    {% set across = x ~ "_across + " ~ (i * (threads // along)) ~ "u" %}
    {% if o.inner %}
    {{ indent }}next_{{ x }}{{ i }} = load_{{ x }}(base.{{ x }}, {{ first }} + {{ across }}, k + {{ x }}_along);
    {% else %}
    {{ indent }}next_{{ x }}{{ i }} = load_{{ x }}(base.{{ x }}, {{ first }} + {{ x }}_along, k + {{ across }});
    {% endif %}
    {% endfor %}
    {% endfor %}
    {% endmacro %}
    var k = job.k;
    var stage = 0u;
    if k < job.k_end {
    {{ fetch("    ") }}
    }
    loop {
        if k >= job.k_end {
            break;
        }
        let a_start = stage * {{ a_rows * a_step }}u;
        let b_start = stage * {{ b_rows * b_step }}u;
        {% for x, o, len, count, step in [("a", a, bm, a_loads, a_step), ("b", b, bn, b_loads, b_step)] %}
        {% set along = (bk if o.inner else len) // 4 %}
        {% for i in range(count) %}
        {
            let at = {{ x }}_start + ({{ x }}_across + {{ i * (threads // along) }}u) * {{ step }}u + {{ x }}_along / {{ unit }}u;
            {% if wide %}
            tile_{{ x }}[at] = next_{{ x }}{{ i }};
            {% else %}
            {% for c in range(4) %}
            tile_{{ x }}[at + {{ c }}u] = next_{{ x }}{{ i }}[{{ c }}];
            {% endfor %}
            {% endif %}
        }
        {% endfor %}
        {% endfor %}
        workgroupBarrier();
        k += {{ bk }}u;
        if k < job.k_end {
        {{ fetch("        ") }}
        }
        {% for deep in range(0, bk, size) %}
        {
            {% for i in range(sm // size) %}
            {% if a.inner %}
            let at_a{{ i }} = a_start + (team_row + {{ i * size }}u) * {{ a_step }}u + {{ deep // unit }}u;
            let a{{ i }} = coopLoadT<coop_mat{{ size }}x{{ size }}<f16, A>>(&tile_a[at_a{{ i }}], {{ a_step }}u);
            {% else %}
            let at_a{{ i }} = a_start + {{ deep * a_step + i * size // unit }}u + team_row / {{ unit }}u;
            let a{{ i }} = coopLoad<coop_mat{{ size }}x{{ size }}<f16, A>>(&tile_a[at_a{{ i }}], {{ a_step }}u);
            {% endif %}
            {% endfor %}
            {% for j in range(sn // size) %}
            {% if b.inner %}
            let at_b{{ j }} = b_start + (team_column + {{ j * size }}u) * {{ b_step }}u + {{ deep // unit }}u;
            let b{{ j }} = coopLoad<coop_mat{{ size }}x{{ size }}<f16, B>>(&tile_b[at_b{{ j }}], {{ b_step }}u);
            {% else %}
            let at_b{{ j }} = b_start + {{ deep * b_step + j * size // unit }}u + team_column / {{ unit }}u;
            let b{{ j }} = coopLoadT<coop_mat{{ size }}x{{ size }}<f16, B>>(&tile_b[at_b{{ j }}], {{ b_step }}u);
            {% endif %}
            {% for i in range(sm // size) %}
            sum_{{ i }}_{{ j }} = coopMultiplyAdd(a{{ i }}, b{{ j }}, sum_{{ i }}_{{ j }});
            {% endfor %}
            {% endfor %}
        }
        {% endfor %}
        {% if stages == 2 %}
        stage = 1u - stage;
        {% else %}
        workgroupBarrier();
        {% endif %}
    }

    // Nobody sees the elements of a matrix: they go through workgroup memory.
    let own = team * {{ size * across }}u;
    {% for i in range(sm // size) %}
    {% for strip_at in range(0, sn // size, strip) %}
    {% for j in range(strip) %}
    let to_{{ i }}_{{ strip_at + j }} = own + {{ j * size }}u;
    coopStoreT(sum_{{ i }}_{{ strip_at + j }}, &results[to_{{ i }}_{{ strip_at + j }}], {{ across }}u);
    {% endfor %}
    workgroupBarrier();
    for (var quad = lane; quad < {{ size * across // 4 }}u; quad += lanes) {
        let at = own + quad * 4u;
        let row = job.row + team_row + {{ i * size }}u + quad / {{ across // 4 }}u;
        let column = job.column + team_column + {{ strip_at * size }}u + quad % {{ across // 4 }}u * 4u;
        put(job.part, base, row, column, vec4<f32>(results[at], results[at + 1u], results[at + 2u], results[at + 3u]));
    }
    workgroupBarrier();
    {% endfor %}
    {% endfor %}
}
