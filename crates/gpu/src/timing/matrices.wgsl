// Multiplies matrices of {{ size }} × {{ size }} that stay where they are, {{ unrolled }} times in a round to each of
// {{ chains }} sums that do not wait for each other.
@group(0) @binding(0) var<storage, read_write> results: array<f32>;
@group(0) @binding(1) var<uniform> params: vec4<u32>;

var<workgroup> operand: array<f16, {{ size * size }}>;
var<workgroup> sums: array<f32, {{ subgroups * size * size }}>;

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32, @builtin(subgroup_id) subgroup: u32) {
    for (var at = thread; at < {{ size * size }}u; at += {{ threads }}u) {
        operand[at] = f16(f32(at % 7u) * 0.01);
    }
    workgroupBarrier();
    let zero = params.y;
    let a = coopLoad<coop_mat{{ size }}x{{ size }}<f16, A>>(&operand[zero], {{ size }}u);
    let b = coopLoad<coop_mat{{ size }}x{{ size }}<f16, B>>(&operand[zero], {{ size }}u);
    {% for i in range(chains) %}
    var sum{{ i }}: coop_mat{{ size }}x{{ size }}<f32, C>;
    {% endfor %}
    for (var round = 0u; round < params.x; round += 1u) {
        {% for u in range(unrolled) %}
        {% for i in range(chains) %}
        sum{{ i }} = coopMultiplyAdd(a, b, sum{{ i }});
        {% endfor %}
        {% endfor %}
    }
    let team = min(subgroup, {{ subgroups - 1 }}u) * {{ size * size }}u;
    var total = 0.0;
    {% for i in range(chains) %}
    coopStore(sum{{ i }}, &sums[team], {{ size }}u);
    workgroupBarrier();
    total += sums[team];
    workgroupBarrier();
    {% endfor %}
    results[(group.x + group.y * groups.x) * {{ threads }}u + thread] = total;
}
