// Multiplies and adds in registers: {{ chains }} chains of vectors that do not wait for each other, {{ unrolled }} times
// in a round. Values come near a fixed point, so that none becomes infinite or too small.
@group(0) @binding(0) var<storage, read_write> results: array<vec4<f32>>;
@group(0) @binding(1) var<uniform> params: vec4<u32>;

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let start = {{ float }}(thread) * {{ float }}(0.001);
    let factor = vec4<{{ float }}>({{ float }}(0.5) + {{ float }}(params.y));
    let more = vec4<{{ float }}>({{ float }}(0.25) + start);
    {% for i in range(chains) %}
    var x{{ i }} = vec4<{{ float }}>(start + {{ float }}({{ i }}));
    {% endfor %}
    for (var round = 0u; round < params.x; round += 1u) {
        {% for u in range(unrolled) %}
        {% for i in range(chains) %}
        x{{ i }} = fma(x{{ i }}, factor, more);
        {% endfor %}
        {% endfor %}
    }
    var sum = vec4<{{ float }}>();
    {% for i in range(chains) %}
    sum += x{{ i }};
    {% endfor %}
    results[(group.x + group.y * groups.x) * {{ threads }}u + thread] = vec4<f32>(sum);
}
