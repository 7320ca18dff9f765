// Weights as the product reads them: [groups, K, M], M and K filled up with zeros.
@group(0) @binding(0) var<storage, read_write> w: array<{{ w }}>;
@group(0) @binding(1) var<storage, read_write> packed: array<{{ w }}>;

struct Params {
    total: u32,
    m: u32,
    m_padded: u32,
    k: u32,
    k_padded: u32,
    window: u32,
    groups: u32,
}
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = (group.x + group.y * groups.x) * 256u + lane;
    if at >= params.total {
        return;
    }
    let m = at % params.m_padded;
    let k = (at / params.m_padded) % params.k_padded;
    let part = at / (params.m_padded * params.k_padded);
    var value = {{ w }}(0.0);
    if m < params.m && k < params.k {
        {% if transposed %}
        // [channels of the image, M, window]
        let channel = part * (params.k / params.window) + k / params.window;
        value = w[(channel * params.m + m) * params.window + k % params.window];
        {% else %}
        value = w[(part * params.m + m) * params.k + k];
        {% endif %}
    }
    packed[at] = value;
}
