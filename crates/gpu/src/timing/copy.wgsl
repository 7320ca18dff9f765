// Copies vectors: a thread four of them, so that neighbours copy neighbours.
@group(0) @binding(0) var<storage, read_write> from_here: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> to_there: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> params: vec4<u32>;

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let first = (group.x + group.y * groups.x) * {{ threads * 4 }}u + thread;
    {% for i in range(4) %}
    if first + {{ i * threads }}u < params.x {
        to_there[first + {{ i * threads }}u] = from_here[first + {{ i * threads }}u];
    }
    {% endfor %}
}
