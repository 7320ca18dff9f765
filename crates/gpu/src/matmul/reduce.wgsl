// Adds the sums of workgroups that shared the tiles of a product. Four elements of a row a thread.
{% include "matmul/bindings" %}
{% include "matmul/result" %}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let across = (params.n + 3u) / 4u;
    let at = (group.x + group.y * groups.x) * 64u + thread;
    let column = at % across * 4u;
    let rest = at / across;
    let row = rest % params.m;
    let product = rest / params.m;
    if product >= params.products {
        return;
    }
    var sum = vec4<f32>();
    for (var share = 0u; share < params.shares; share++) {
        let start = ((share * params.products + product) * params.m + row) * params.n + column;
        {% if out.wide %}
        sum += sums[start >> 2u];
        {% else %}
        let last = params.n - 1u - column;
        sum += vec4<f32>(sums[start], sums[start + min(1u, last)], sums[start + min(2u, last)], sums[start + min(3u, last)]);
        {% endif %}
    }
    put(0u, starts(product), row, column, sum);
}
