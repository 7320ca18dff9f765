// A product by tiles in workgroup memory: each thread keeps {{ 4 * rm }} × {{ 4 * rn }} sums in registers. A tile
// of A lies with its rows along vectors, one of B with its columns.
{% include "matmul/bindings" %}
{% include "matmul/operands" %}
{% include "matmul/result" %}
{% include "matmul/work" %}

{% set a_step = bm // 4 + 1 %}
{% set b_step = bn // 4 + 1 %}
var<workgroup> tile_a: array<vec4<f32>, {{ stages * bk * a_step }}>;
var<workgroup> tile_b: array<vec4<f32>, {{ stages * bk * b_step }}>;

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let id = group.x + group.y * groups.x;
    if id >= params.total {
        return;
    }
    let job = work(id);
    let base = starts(job.product);
    // Threads that run together own a patch of {{ wy }} × {{ wx }}.
    let crew = thread / {{ wy * wx }}u;
    let lane = thread % {{ wy * wx }}u;
    let ty = crew / {{ tx // wx }}u * {{ wy }}u + lane / {{ wx }}u;
    let tx = crew % {{ tx // wx }}u * {{ wx }}u + lane % {{ wx }}u;

    {% for x, o, len, count in [("a", a, bm, a_loads), ("b", b, bn, b_loads)] %}
    {% set along = (bk if o.inner else len) // 4 %}
    let {{ x }}_along = thread % {{ along }}u * 4u;
    let {{ x }}_across = thread % {{ loaders }}u / {{ along }}u{{ " * 4u" if o.inner and count % 4 == 0 else "" }};
    {% if not split %}
    {% for i in range(count) %}
    var next_{{ x }}{{ i }} = vec4<f32>();
    {% endfor %}
    {% endif %}
    {% endfor %}
    {% if split %}
    // Half of the threads read A, the others B.
    {% for i in range([a_loads, b_loads] | max) %}
    var next{{ i }} = vec4<f32>();
    {% endfor %}
    {% endif %}
    {% for i in range(4 * rm) %}
    {% for j in range(rn) %}
    var sum_{{ i }}_{{ j }} = vec4<f32>();
    {% endfor %}
    {% endfor %}

    {# Four rows of a thread follow one another where they are turned into vectors. #}
    {% macro row_of(o, count, along, i) %}{{ (i // 4 * (loaders // along) * 4 + i % 4) if o.inner and count % 4 == 0 else i * (loaders // along) }}u{% endmacro %}
    {% for x, o, len, count, first in [("a", a, bm, a_loads, "job.row"), ("b", b, bn, b_loads, "job.column")] if windows == x %}
    {% for i in range(count) %}
    let from{{ i }} = base.{{ x }} + window(min({{ first }} + {{ x }}_across + {{ row_of(o, count, bk // 4, i) }}, params.{{ "m" if x == "a" else "n" }} - 1u));
    {% endfor %}
    {% endfor %}
    {% macro fetch(indent) %}
    {% for x, o, len, count, first in [("a", a, bm, a_loads, "job.row"), ("b", b, bn, b_loads, "job.column")] %}
    {% set along = (bk if o.inner else len) // 4 %}
    {% if split %}
    {{ indent }}{{ "if thread < " ~ loaders ~ "u {" if x == "a" else "} else {" }}
    {% endif %}
    {% for i in range(count) %}
    {% set across = x ~ "_across + " ~ row_of(o, count, along, i) %}
    {% set next = "next" ~ ("" if split else "_" ~ x) ~ i %}
    {% if windows == x %}
    {{ indent }}{{ next }} = vec4<f32>({{ x }}[seen(from{{ i }}, k_ahead + {{ x }}_along)]);
    {% elif o.inner %}
    {{ indent }}{{ next }} = load_{{ x }}(base.{{ x }}, {{ first }} + {{ across }}, k_ahead + {{ x }}_along);
    {% else %}
    {{ indent }}{{ next }} = load_{{ x }}(base.{{ x }}, {{ first }} + {{ x }}_along, k_ahead + {{ across }});
    {% endif %}
    {% endfor %}
    {% endfor %}
    {% if split %}
    {{ indent }}}
    {% endif %}
    {% endmacro %}
    {% if zeros %}
    // The parts of k in which these columns of B have anything.
    let parts_end = zeros[job.column / {{ bn }}u + 1u];
    var part = zeros[job.column / {{ bn }}u];
    var k_ahead = 0u;
    {% else %}
    var k = job.k;
    var k_ahead = k;
    let k_last = job.k + (max(job.k_end, job.k + 1u) - 1u - job.k) / {{ bk }}u * {{ bk }}u;
    {% endif %}
    var stage = 0u;
    {% if zeros %}
    if part < parts_end {
    k_ahead = zeros[part];
    {% else %}
    if k < job.k_end {
    {% endif %}
    {{ fetch("    ") }}
    }
    loop {
        if {{ "part >= parts_end" if zeros else "k >= job.k_end" }} {
            break;
        }
        {% for x, o, len, count, step in [("a", a, bm, a_loads, a_step), ("b", b, bn, b_loads, b_step)] %}
        {% set along = (bk if o.inner else len) // 4 %}
        {% set name = "next" if split else "next_" ~ x %}
        {% if split %}
        {{ "if thread < " ~ loaders ~ "u {" if x == "a" else "} else {" }}
        {% endif %}
        {% for i in range(count) %}
        {% if not (o.inner and count % 4 == 0) %}
        {
            let across = {{ x }}_across + {{ row_of(o, count, along, i) }};
            {% if o.inner %}
            let at = stage * {{ bk * step }}u + {{ x }}_along * {{ step }}u + (across >> 2u);
            {% for c in range(4) %}
            tile_{{ x }}[at + {{ c * step }}u][across & 3u] = {{ name }}{{ i }}[{{ c }}];
            {% endfor %}
            {% else %}
            tile_{{ x }}[stage * {{ bk * step }}u + across * {{ step }}u + ({{ x }}_along >> 2u)] = {{ name }}{{ i }};
            {% endif %}
        }
        {% elif i % 4 == 0 %}
        {
            let across = {{ x }}_across + {{ row_of(o, count, along, i) }};
            let at = stage * {{ bk * step }}u + {{ x }}_along * {{ step }}u + (across >> 2u);
            {% for c in range(4) %}
            tile_{{ x }}[at + {{ c * step }}u] = vec4<f32>({{ name }}{{ i }}[{{ c }}], {{ name }}{{ i + 1 }}[{{ c }}], {{ name }}{{ i + 2 }}[{{ c }}], {{ name }}{{ i + 3 }}[{{ c }}]);
            {% endfor %}
        }
        {% endif %}
        {% endfor %}
        {% endfor %}
        {% if split %}
        }
        {% endif %}
        workgroupBarrier();
        // The last part is read again where there is no other: a branch would wait for what it loads.
        {% if zeros %}
        part += 1u;
        k_ahead = zeros[min(part, parts_end - 1u)];
        {% else %}
        k += {{ bk }}u;
        k_ahead = min(k, k_last);
        {% endif %}
        {{ fetch("        ") }}
        for (var deep = 0u; deep < {{ bk }}u; deep += {{ unroll }}u) {
            let a_at = stage * {{ bk * a_step }}u + deep * {{ a_step }}u + ty;
            let b_at = stage * {{ bk * b_step }}u + deep * {{ b_step }}u + tx;
            {% for d in range(unroll) %}
            {
                {% for i in range(rm) %}
                let a{{ i }} = tile_a[a_at + {{ d * a_step + i * ty }}u];
                {% endfor %}
                {% for j in range(rn) %}
                let b{{ j }} = tile_b[b_at + {{ d * b_step + j * tx }}u];
                {% endfor %}
                {% for i in range(rm) %}
                {% for c in range(4) %}
                {% for j in range(rn) %}
                sum_{{ 4 * i + c }}_{{ j }} = fma(vec4<f32>(a{{ i }}[{{ c }}]), b{{ j }}, sum_{{ 4 * i + c }}_{{ j }});
                {% endfor %}
                {% endfor %}
                {% endfor %}
            }
            {% endfor %}
        }
        {% if stages == 2 %}
        stage = 1u - stage;
        {% else %}
        workgroupBarrier();
        {% endif %}
    }
    {% for i in range(rm) %}
    {% for c in range(4) %}
    {% for j in range(rn) %}
    put(job.part, base, job.row + {{ 4 * i * ty + c }}u + ty * 4u, job.column + {{ 4 * j * tx }}u + tx * 4u, sum_{{ 4 * i + c }}_{{ j }});
    {% endfor %}
    {% endfor %}
    {% endfor %}
}
