// A product of few rows, {{ few }} at a time, with many: of the operand {{ w }}, whose elements are read once. Where
// these lie along k, {{ team }} threads compute {{ rows }} of its rows; otherwise each thread computes four of its
// columns over a slice of k, one of {{ slices }}.
{% include "matmul/bindings" %}
{% include "matmul/operands" %}
{% include "matmul/result" %}
{% include "matmul/work" %}

{% if zeros and not half %}
// Whether a block of 8 elements along k and 32 columns has anything.
fn is_full(column: u32, k: u32) -> bool {
    let word = zeros[min(column, params.n - 1u) / 32u * ((params.k + 255u) / 256u) + k / 256u];
    return ((word >> (k / 8u % 32u)) & 1u) == 1u;
}
{% endif %}

{% if along %}
{% set values = few * rows %}
{% if subgroups %}
var<workgroup> parts: array<f32, {{ values * (threads // least) }}>;
{% else %}
var<workgroup> parts: array<f32, {{ values * threads // 4 }}>;
{% endif %}
{% else %}
var<workgroup> parts: array<vec4<f32>, {{ threads }}>;
{% endif %}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) index: u32{% if along and subgroups %}, @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_size) lanes: u32{% endif %}) {
    let id = group.x + group.y * groups.x;
    if id >= params.total {
        return;
    }
    let job = work(id);
    let base = starts(job.product);
    {% set x_first, w_first = ("job.row", "job.column") if w == "b" else ("job.column", "job.row") %}
    {% if along %}
    {% if subgroups %}
    let thread = subgroup * lanes + lane;
    {% else %}
    let thread = index;
    {% endif %}
    let team = thread / {{ team }}u;
    let first = {{ w_first }} + team * {{ rows }}u;
    {% for i in range(values) %}
    var sum{{ i }} = 0.0;
    {% endfor %}
    for (var k = job.k + thread % {{ team }}u * 4u; k < job.k_end; k += {{ team * 4 }}u) {
        {% if zeros and not half %}
        if !is_full(first, k) {
            continue;
        }
        {% endif %}
        {% for j in range(rows) %}
        let w{{ j }} = load_{{ w }}(base.{{ w }}, first + {{ j }}u, k);
        {% if half %}
        // Two bits for the place of each of four that are kept of eight.
        let kept{{ j }} = (min(first + {{ j }}u, params.n - 1u) * params.k + k) / 4u;
        let code{{ j }} = zeros[kept{{ j }} / 4u] >> (kept{{ j }} % 4u * 8u);
        {% endif %}
        {% endfor %}
        {% for r in range(few) %}
        {
            {% if half %}
            let from_row = base.a + min(job.row + {{ r }}u, params.m - 1u) * params.a_outer + 2u * k;
            let v = vec4<f32>(a[from_row >> 2u]);
            let next = vec4<f32>(a[(from_row >> 2u) + 1u]);
            {% for j in range(rows) %}
            let own{{ j }} = vec4<f32>(v[code{{ j }} & 3u], v[(code{{ j }} >> 2u) & 3u], next[(code{{ j }} >> 4u) & 3u], next[(code{{ j }} >> 6u) & 3u]);
            sum{{ r * rows + j }} += dot(own{{ j }}, w{{ j }});
            {% endfor %}
            {% else %}
            let v = load_{{ x }}(base.{{ x }}, {{ x_first }} + {{ r }}u, k);
            {% for j in range(rows) %}
            sum{{ r * rows + j }} += dot(v, w{{ j }});
            {% endfor %}
            {% endif %}
        }
        {% endfor %}
    }
    {% if subgroups %}
    // Within a subgroup by exchange, as far as the team reaches; the rest through workgroup memory.
    {% for i in range(values) %}
    {% for step in [1, 2, 4, 8, 16, 32] if step < team %}
    if {{ step }}u < lanes {
        sum{{ i }} += subgroupShuffleXor(sum{{ i }}, {{ step }}u);
    }
    {% endfor %}
    {% endfor %}
    let width = min(lanes, {{ team }}u);
    if thread % width == 0u {
        {% for i in range(values) %}
        parts[thread / width * {{ values }}u + {{ i }}u] = sum{{ i }};
        {% endfor %}
    }
    workgroupBarrier();
    let count = {{ team }}u / width;
    {% else %}
    // Four threads add theirs up where they put them; a quarter of the team's sums remain.
    {% for turn in range(4) %}
    if thread % 4u == {{ turn }}u {
        {% for i in range(values) %}
        parts[thread / 4u * {{ values }}u + {{ i }}u] {{ "=" if turn == 0 else "+=" }} sum{{ i }};
        {% endfor %}
    }
    workgroupBarrier();
    {% endfor %}
    let count = {{ team // 4 }}u;
    {% endif %}
    {% set quads = (few if w == "b" else (few + 3) // 4 * rows) %}
    // A thread adds four sums that are neighbours in the result.
    if thread < {{ threads // team * quads }}u {
        let own = thread / {{ quads }}u;
        let quad = thread % {{ quads }}u;
        var sum = vec4<f32>();
        for (var part = 0u; part < count; part++) {
            let at = (own * count + part) * {{ values }}u;
            {% if w == "b" %}
            let start = at + quad * {{ rows }}u;
            sum += vec4<f32>(parts[start], parts[start + 1u], parts[start + 2u], parts[start + 3u]);
            {% else %}
            let start = at + quad % {{ rows }}u;
            {% for c in range(4) %}
            {% if few > c %}
            sum[{{ c }}] += parts[start + (quad / {{ rows }}u * 4u + {{ c }}u) * {{ rows }}u];
            {% endif %}
            {% endfor %}
            {% endif %}
        }
        {% if w == "b" %}
        put(job.part, base, job.row + quad, job.column + own * {{ rows }}u, sum);
        {% else %}
        put(job.part, base, job.row + own * {{ rows }}u + quad % {{ rows }}u, job.column + quad / {{ rows }}u * 4u, sum);
        {% endif %}
    }
    {% else %}
    let column = job.column + index % {{ across }}u * 4u;
    let slice = index / {{ across }}u;
    {% for r in range(few) %}
    var sum{{ r }} = vec4<f32>();
    {% endfor %}
    for (var k = job.k + slice * 4u; k < job.k_end; k += {{ slices * 4 }}u) {
        {% if zeros %}
        if !is_full(column, k) {
            continue;
        }
        {% endif %}
        {% for c in range(4) %}
        let w{{ c }} = load_b(base.b, column, k + {{ c }}u);
        {% endfor %}
        {% for r in range(few) %}
        let v{{ r }} = load_a(base.a, job.row + {{ r }}u, k);
        {% for c in range(4) %}
        sum{{ r }} = fma(vec4<f32>(v{{ r }}[{{ c }}]), w{{ c }}, sum{{ r }});
        {% endfor %}
        {% endfor %}
    }
    {% for r in range(few) %}
    parts[index] = sum{{ r }};
    workgroupBarrier();
    if slice == 0u {
        var sum = sum{{ r }};
        {% for s in range(1, slices) %}
        sum += parts[index + {{ s * across }}u];
        {% endfor %}
        put(job.part, base, job.row + {{ r }}u, column, sum);
    }
    workgroupBarrier();
    {% endfor %}
    {% endif %}
}
