// A product of bytes by dot products of four at a time. Bytes without sign have 128 taken off, and so have their zero
// points: a sum of (a - za) · (b - zb) is that of a · b less za times the sum of b, less zb times the sum of a, plus
// k · za · zb.
{% include "matmul/bindings" %}
{% include "matmul/work" %}
{% if za.given %}
@group(0) @binding({{ at.za }}) var<storage, read_write> zero_a: array<u32>;
{% endif %}
{% if zb.given %}
@group(0) @binding({{ at.zb }}) var<storage, read_write> zero_b: array<u32>;
{% endif %}

var<workgroup> tile_a: array<vec4<u32>, {{ 16 * 17 }}>;
var<workgroup> tile_b: array<vec4<u32>, {{ 16 * 17 }}>;

// What of four bytes from k on there is.
fn present(k: u32) -> u32 {
    if k + 4u <= params.k {
        return 0xffffffffu;
    }
    if k >= params.k {
        return 0u;
    }
    return (1u << (8u * (params.k - k))) - 1u;
}

{% for x, o, z, len in [("a", a, za, "m"), ("b", b, zb, "n")] %}
fn byte_{{ x }}(at: u32) -> u32 {
    return ({{ x }}[at >> 2u] >> (8u * (at & 3u))) & 0xffu;
}

// Four bytes along k of each of four rows of A or columns of B.
fn block_{{ x }}(start: u32, outer: u32, k: u32) -> vec4<u32> {
    var block = vec4<u32>();
    {% if o.quads == "along" %}
    if k < params.k {
        {% for i in range(4) %}
        block[{{ i }}] = {{ x }}[(start + min(outer + {{ i }}u, params.{{ len }} - 1u) * params.{{ x }}_outer + k) >> 2u];
        {% endfor %}
    }
    {% elif o.quads == "across" %}
    let column = min(outer, (params.{{ len }} - 1u) & 0xfffffffcu);
    {% for i in range(4) %}
    let word{{ i }} = {{ x }}[(start + min(k + {{ i }}u, params.k - 1u) * params.{{ x }}_inner + column) >> 2u];
    {% endfor %}
    {% for i in range(4) %}
    block[{{ i }}] = {% for j in range(4) %}{{ " | " if j else "" }}(((word{{ j }} >> {{ 8 * i }}u) & 0xffu) << {{ 8 * j }}u){% endfor %};
    {% endfor %}
    {% else %}
    {% for i in range(4) %}
    {
        let row = start + min(outer + {{ i }}u, params.{{ len }} - 1u) * params.{{ x }}_outer;
        {% for j in range(4) %}
        block[{{ i }}] |= byte_{{ x }}(row + min(k + {{ j }}u, params.k - 1u) * params.{{ x }}_inner) << {{ 8 * j }}u;
        {% endfor %}
    }
    {% endfor %}
    {% endif %}
    return (block ^ vec4<u32>({{ "0u" if z.signed else "0x80808080u" }})) & vec4<u32>(present(k));
}

fn zero_of_{{ x }}(index: u32) -> i32 {
    {% if z.given %}
    let byte = (zero_{{ x }}[index >> 2u] >> (8u * (index & 3u))) & 0xffu;
    {% else %}
    let byte = 0u;
    {% endif %}
    return {{ "bitcast<i32>(byte << 24u) >> 24u" if z.signed else "i32(byte) - 128" }};
}
{% endfor %}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let id = group.x + group.y * groups.x;
    if id >= params.total {
        return;
    }
    let job = work(id);
    let base = starts(job.product);
    let ty = thread / 16u;
    let tx = thread % 16u;
    {% for i in range(4) %}
    var sum{{ i }} = vec4<i32>();
    {% endfor %}
    var sums_a = vec4<i32>();
    var sums_b = vec4<i32>();
    for (var k = 0u; k < params.k; k += 64u) {
        // Neighbours read what lies side by side.
        {% for x, o, first in [("a", a, "job.row"), ("b", b, "job.column")] %}
        {
            let deep = {{ "ty" if o.quads == "across" else "tx" }};
            let outer = {{ "tx" if o.quads == "across" else "ty" }};
            tile_{{ x }}[deep * 17u + outer] = block_{{ x }}(base.{{ x }}, {{ first }} + outer * 4u, k + deep * 4u);
        }
        {% endfor %}
        workgroupBarrier();
        for (var deep = 0u; deep < 16u; deep++) {
            let bytes_a = tile_a[deep * 17u + ty];
            let bytes_b = tile_b[deep * 17u + tx];
            {% for i in range(4) %}
            sum{{ i }} += vec4<i32>(dot4I8Packed(bytes_a[{{ i }}], bytes_b.x), dot4I8Packed(bytes_a[{{ i }}], bytes_b.y), dot4I8Packed(bytes_a[{{ i }}], bytes_b.z), dot4I8Packed(bytes_a[{{ i }}], bytes_b.w));
            {% endfor %}
            {% for x, other in [("a", zb), ("b", za)] %}
            {% if other.counts %}
            sums_{{ x }} += vec4<i32>(dot4I8Packed(bytes_{{ x }}.x, 0x01010101u), dot4I8Packed(bytes_{{ x }}.y, 0x01010101u), dot4I8Packed(bytes_{{ x }}.z, 0x01010101u), dot4I8Packed(bytes_{{ x }}.w, 0x01010101u));
            {% endif %}
            {% endfor %}
        }
        workgroupBarrier();
    }
    let column = job.column + tx * 4u;
    var zeros = vec4<i32>();
    {% if zb.counts %}
    for (var c = 0u; c < 4u; c++) {
        zeros[c] = zero_of_b(min(column + c, params.n - 1u) * params.zb_step);
    }
    {% endif %}
    {% for i in range(4) %}
    {
        let row = job.row + ty * 4u + {{ i }}u;
        var v = sum{{ i }};
        {% if zb.counts %}
        v -= zeros * sums_a[{{ i }}];
        {% endif %}
        {% if za.counts %}
        let zero = zero_of_a(min(row, params.m - 1u) % params.za_rows * params.za_step);
        v -= zero * (sums_b - zeros * i32(params.k));
        {% endif %}
        if row < params.m {
            let to = base.out + row * params.n + column;
            {% for c in range(4) %}
            if column + {{ c }}u < params.n {
                out[to + {{ c }}u] = v[{{ c }}];
            }
            {% endfor %}
        }
    }
    {% endfor %}
}
