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
{% set quads = size * across // 4 %}
{% set turns = (quads * subgroups + threads - 1) // threads %}
var<workgroup> results: array<f32, {{ results * subgroups * size * across }}>;

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32, @builtin(subgroup_id) subgroup: u32) {
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

    // Parts of k.
    let count = (max(job.k_end, job.k) - job.k + {{ bk - 1 }}u) / {{ bk }}u;
    {% for x, o, len, loads, first, last in [("a", a, bm, a_loads, "job.row", "params.m"), ("b", b, bn, b_loads, "job.column", "params.n")] %}
    {% set along = (bk if o.inner else len) // 4 %}
    {% for i in range(loads) %}
    {% set number = "(thread + " ~ (i * threads) ~ "u)" %}
    let {{ x }}_along{{ i }} = {{ number }} % {{ along }}u * 4u;
    {% if o.inner and along == 8 %}
    // Sixteen threads that write at a time have rows four apart, which lie in different banks.
    let {{ x }}_line{{ i }} = {{ number }} / {{ along }}u;
    let {{ x }}_across{{ i }} = ({{ x }}_line{{ i }} & 0xfffffff8u) | (({{ x }}_line{{ i }} & 1u) << 2u) | (({{ x }}_line{{ i }} >> 1u) & 3u);
    {% else %}
    let {{ x }}_across{{ i }} = {{ number }} / {{ along }}u;
    {% endif %}
    {% if windows == x %}
    let {{ x }}_from{{ i }} = base.{{ x }} + window(min({{ first }} + {{ x }}_across{{ i }}, {{ last }} - 1u));
    {% elif remembers and o.inner %}
    let {{ x }}_from{{ i }} = (base.{{ x }} + min({{ first }} + {{ x }}_across{{ i }}, {{ last }} - 1u) * params.{{ x }}_outer + {{ x }}_along{{ i }} + job.k) >> 2u;
    {% elif remembers %}
    let {{ x }}_from{{ i }} = (base.{{ x }} + min({{ first }} + {{ x }}_along{{ i }}, ({{ last }} - 1u) & 0xfffffffcu) + ({{ x }}_across{{ i }} + job.k) * params.{{ x }}_inner) >> 2u;
    {% endif %}
    {% for s in range(ahead) %}
    var next_{{ x }}{{ i }}_{{ s }} = vec4<f16>();
    {% endfor %}
    {% endfor %}
    {% endfor %}
    {% for i in range(sm // size) %}
    {% for j in range(sn // size) %}
    var sum_{{ i }}_{{ j }}: coop_mat{{ size }}x{{ size }}<f32, C>;
    {% endfor %}
    {% endfor %}

    {# Reads part `number` of k into set `s`. #}
    {% macro fetch(s, number) %}
        {
            let k = {{ number }} * {{ bk }}u;
            {% for x, o, loads, first in [("a", a, a_loads, "job.row"), ("b", b, b_loads, "job.column")] %}
            {% for i in range(loads) %}
            {% if windows == x %}
            {# Threads go along k in the same way for each of their vectors. #}
            next_{{ x }}{{ i }}_{{ s }} = vec4<f16>({{ x }}[seen({{ x }}_from{{ i }}, job.k + k + {{ x }}_along{{ 0 if threads % (bk // 4) == 0 else i }})]);
            {% elif remembers %}
            next_{{ x }}{{ i }}_{{ s }} = vec4<f16>({{ x }}[{{ x }}_from{{ i }} + (k{{ "" if o.inner else " * params." ~ x ~ "_inner" }} >> 2u)]);
            {% elif o.inner %}
            next_{{ x }}{{ i }}_{{ s }} = load_{{ x }}(base.{{ x }}, {{ first }} + {{ x }}_across{{ i }}, job.k + k + {{ x }}_along{{ i }});
            {% else %}
            next_{{ x }}{{ i }}_{{ s }} = load_{{ x }}(base.{{ x }}, {{ first }} + {{ x }}_along{{ i }}, job.k + k + {{ x }}_across{{ i }});
            {% endif %}
            {% endfor %}
            {% endfor %}
        }
    {% endmacro %}
    var stage = 0u;
    if count > 0u {
        {% for s in range(ahead) %}
        {{ fetch(s, "min(" ~ s ~ "u, count - 1u)") }}
        {% endfor %}
    }
    var number = 0u;
    loop {
        {% for s in range(ahead) %}
        if number >= count {
            break;
        }
        {
        let a_start = stage * {{ a_rows * a_step }}u;
        let b_start = stage * {{ b_rows * b_step }}u;
        {% for x, loads, step in [("a", a_loads, a_step), ("b", b_loads, b_step)] %}
        {% for i in range(loads) %}
        {
            let at = {{ x }}_start + {{ x }}_across{{ i }} * {{ step }}u + {{ x }}_along{{ i }} / {{ unit }}u;
            {% if wide %}
            tile_{{ x }}[at] = next_{{ x }}{{ i }}_{{ s }};
            {% else %}
            {% for c in range(4) %}
            tile_{{ x }}[at + {{ c }}u] = next_{{ x }}{{ i }}_{{ s }}[{{ c }}];
            {% endfor %}
            {% endif %}
        }
        {% endfor %}
        {% endfor %}
        workgroupBarrier();
        number += 1u;
        // The last part is read again where there is no other: a branch would wait for what it loads.
        {{ fetch(s, "min(number + " ~ (ahead - 1) ~ "u, count - 1u)") }}
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
        {% endfor %}
    }

    // Nobody sees the elements of a matrix: they go through workgroup memory, where threads take fours of them
    // whoever summed them. {{ "While some are taken, the next are written." if results == 2 else "" }}
    {% for t in range(turns) %}
    let taken{{ t }} = min(thread + {{ t * threads }}u, {{ quads * subgroups - 1 }}u);
    let owner{{ t }} = taken{{ t }} / {{ quads }}u;
    let row{{ t }} = job.row + owner{{ t }} / {{ bn // sn }}u * {{ sm }}u + taken{{ t }} % {{ quads }}u / {{ across // 4 }}u;
    let column{{ t }} = job.column + owner{{ t }} % {{ bn // sn }}u * {{ sn }}u + taken{{ t }} % {{ across // 4 }}u * 4u;
    {% endfor %}
    {% set biased = bias and not partial %}
    {% set adds = more and not partial %}
    // What is added is read before it is needed, all of a bias at once.
    {% if biased %}
    {% for part in (range(sm // size) if bias_rows else range(0, sn // size, strip)) %}
    {% for t in range(turns) %}
    let first{{ part }}_{{ t }} = biased(row{{ t }}{{ " + " ~ part * size ~ "u" if bias_rows }}, column{{ t }}{{ " + " ~ part * size ~ "u" if not bias_rows }});
    {% endfor %}
    {% endfor %}
    {% endif %}
    {% macro read_added(i, strip_at) %}
    {% for t in range(turns) %}
    let other_{{ i }}_{{ strip_at }}_{{ t }} = added(base, row{{ t }} + {{ i * size }}u, column{{ t }} + {{ strip_at * size }}u);
    {% endfor %}
    {% endmacro %}
    {% if adds %}
    {{ read_added(0, 0) }}
    {% endif %}
    {% set state = namespace(half=0) %}
    {% for strip_at in range(0, sn // size, strip) %}
    {% for i in range(sm // size) %}
    {% set half = state.half * subgroups * size * across %}
    {% for j in range(strip) %}
    let to_{{ i }}_{{ strip_at + j }} = team * {{ size * across }}u + {{ half + j * size }}u;
    coopStoreT(sum_{{ i }}_{{ strip_at + j }}, &results[to_{{ i }}_{{ strip_at + j }}], {{ across }}u);
    {% endfor %}
    {% if adds and i + 1 < sm // size %}
    {{ read_added(i + 1, strip_at) }}
    {% elif adds and strip_at + strip < sn // size %}
    {{ read_added(0, strip_at + strip) }}
    {% endif %}
    workgroupBarrier();
    {
        {% for t in range(turns) %}
        let at{{ t }} = taken{{ t }} * 4u + {{ half }}u;
        let sums{{ t }} = vec4<f32>(results[at{{ t }}], results[at{{ t }} + 1u], results[at{{ t }} + 2u], results[at{{ t }} + 3u]);
        let v{{ t }} = finish(sums{{ t }}{{ ", first" ~ (i if bias_rows else strip_at) ~ "_" ~ t if biased }}{{ ", other_" ~ i ~ "_" ~ strip_at ~ "_" ~ t if adds }});
        {% endfor %}
        {% for t in range(turns) %}
        {% if (t + 1) * threads > quads * subgroups %}
        if thread + {{ t * threads }}u < {{ quads * subgroups }}u {
            keep(job.part, base, row{{ t }} + {{ i * size }}u, column{{ t }} + {{ strip_at * size }}u, v{{ t }});
        }
        {% else %}
        keep(job.part, base, row{{ t }} + {{ i * size }}u, column{{ t }} + {{ strip_at * size }}u, v{{ t }});
        {% endif %}
        {% endfor %}
    }
    {% if results == 2 %}
    {% set state.half = 1 - state.half %}
    {% else %}
    workgroupBarrier();
    {% endif %}
    {% endfor %}
    {% endfor %}
}
