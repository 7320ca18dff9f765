// A convolution of bytes as a product: rows are channels of the result, columns its pixels, and sums go over channels
// and places of the window. Bytes without sign have 128 taken off, and so have their zero points; see the product of
// bytes for how zero points are taken away. Pixels outside the image are zero points.
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> w: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<i32>;
{% if zx %}
@group(0) @binding({{ zx }}) var<storage, read_write> zero_x: array<u32>;
{% endif %}
{% if zw %}
@group(0) @binding({{ zw }}) var<storage, read_write> zero_w: array<u32>;
{% endif %}

struct Params {
    // Workgroups, those along the pixels, and along the channels of a group.
    total: u32,
    tiles_n: u32,
    tiles_m: u32,
    groups: u32,
    // Channels of a group: of the image and of the result; pixels, and terms of a sum.
    channels: u32,
    m: u32,
    n: u32,
    k: u32,
    // Places of the window, and its lengths.
    places: u32,
    window_y: u32,
    window_x: u32,
    // The step of zero points of weights.
    zw_step: u32,
{% include "conv/lengths" %}
}
@group(0) @binding({{ params }}) var<uniform> params: Params;

var<workgroup> tile_w: array<vec4<u32>, {{ 16 * 17 }}>;
var<workgroup> tile_x: array<vec4<u32>, {{ 16 * 17 }}>;

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

// Four terms of each of four channels.
fn block_w(start: u32, row: u32, k: u32) -> vec4<u32> {
    var block = vec4<u32>();
    {% for i in range(4) %}
    {
        let own = start + min(row + {{ i }}u, params.m - 1u) * params.k;
        {% if along %}
        if k < params.k {
            block[{{ i }}] = w[(own + k) >> 2u];
        }
        {% else %}
        {% for j in range(4) %}
        {
            let at = own + min(k + {{ j }}u, params.k - 1u);
            block[{{ i }}] |= ((w[at >> 2u] >> (8u * (at & 3u))) & 0xffu) << {{ 8 * j }}u;
        }
        {% endfor %}
        {% endif %}
    }
    {% endfor %}
    return (block ^ vec4<u32>({{ "0u" if w_signed else "0x80808080u" }})) & vec4<u32>(present(k));
}

fn centred(byte: u32) -> i32 {
    return bitcast<i32>(byte << 24u) >> 24u;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let id = group.x + group.y * groups.x;
    if id >= params.total {
        return;
    }
    let column = id % params.tiles_n * 64u;
    let row = id / params.tiles_n % params.tiles_m * 64u;
    let rest = id / (params.tiles_n * params.tiles_m);
    let part = rest % params.groups;
    let image = rest / params.groups;
    let from_w = part * params.m * params.k;
    let from_x = image * params.x_image + part * params.channels * params.x_channel;
    {% if zx %}
    let outside = zero_x[0] & 0xffu;
    {% else %}
    let outside = 0u;
    {% endif %}
    let ty = thread / 16u;
    let tx = thread % 16u;
    // Where the windows of four pixels start; what is left of an image goes round.
    {% for i in range(4) %}
    let pixel{{ i }} = min(column + tx * 4u + {{ i }}u, params.n - 1u);
    let corner{{ i }} = vec3<u32>(
        pixel{{ i }} / (params.out_x * params.out_y) * params.stride_z - params.pad_z,
        pixel{{ i }} / params.out_x % params.out_y * params.stride_y - params.pad_y,
        pixel{{ i }} % params.out_x * params.stride_x - params.pad_x,
    );
    var sum{{ i }} = vec4<i32>();
    {% endfor %}
    let size = vec3<u32>(params.in_z, params.in_y, params.in_x);
    var sums_w = vec4<i32>();
    var sums_x = vec4<i32>();
    for (var k = 0u; k < params.k; k += 64u) {
        tile_w[tx * 17u + ty] = block_w(from_w, row + ty * 4u, k + tx * 4u);
        let deep = k + ty * 4u;
        var block = vec4<u32>();
        for (var j = 0u; j < 4u; j++) {
            let term = min(deep + j, params.k - 1u);
            let place = term % params.places;
            let start = from_x + term / params.places * params.x_channel;
            let moved = vec3<u32>(
                place / (params.window_x * params.window_y) * params.step_z,
                place / params.window_x % params.window_y * params.step_y,
                place % params.window_x * params.step_x,
            );
            {% for i in range(4) %}
            {
                let at = corner{{ i }} + moved;
                var byte = outside;
                if all(at < size) {
                    let source = start + ((at.x * params.in_y + at.y) * params.in_x + at.z) * params.x_pixel;
                    byte = (x[source >> 2u] >> (8u * (source & 3u))) & 0xffu;
                }
                block[{{ i }}] |= byte << (8u * j);
            }
            {% endfor %}
        }
        tile_x[ty * 17u + tx] = (block ^ vec4<u32>({{ "0u" if x_signed else "0x80808080u" }})) & vec4<u32>(present(deep));
        workgroupBarrier();
        for (var deep = 0u; deep < 16u; deep++) {
            let bytes_w = tile_w[deep * 17u + ty];
            let bytes_x = tile_x[deep * 17u + tx];
            {% for i in range(4) %}
            sum{{ i }} += vec4<i32>(dot4I8Packed(bytes_w[{{ i }}], bytes_x.x), dot4I8Packed(bytes_w[{{ i }}], bytes_x.y), dot4I8Packed(bytes_w[{{ i }}], bytes_x.z), dot4I8Packed(bytes_w[{{ i }}], bytes_x.w));
            {% endfor %}
            {% if zx or not x_signed %}
            sums_w += vec4<i32>(dot4I8Packed(bytes_w.x, 0x01010101u), dot4I8Packed(bytes_w.y, 0x01010101u), dot4I8Packed(bytes_w.z, 0x01010101u), dot4I8Packed(bytes_w.w, 0x01010101u));
            {% endif %}
            {% if zw or not w_signed %}
            sums_x += vec4<i32>(dot4I8Packed(bytes_x.x, 0x01010101u), dot4I8Packed(bytes_x.y, 0x01010101u), dot4I8Packed(bytes_x.z, 0x01010101u), dot4I8Packed(bytes_x.w, 0x01010101u));
            {% endif %}
        }
        workgroupBarrier();
    }
    let zero = centred(outside ^ {{ "0u" if x_signed else "0x80u" }});
    {% for i in range(4) %}
    {
        let own = row + ty * 4u + {{ i }}u;
        if own < params.m {
            let channel = part * params.m + own;
            var v = sum{{ i }};
            {% if zx or not x_signed %}
            v -= vec4<i32>(zero * sums_w[{{ i }}]);
            {% endif %}
            {% if zw or not w_signed %}
            {% if zw %}
            let place = channel * params.zw_step;
            let byte = (zero_w[place >> 2u] >> (8u * (place & 3u))) & 0xffu;
            {% else %}
            let byte = 0u;
            {% endif %}
            v -= centred(byte ^ {{ "0u" if w_signed else "0x80u" }}) * (sums_x - vec4<i32>(zero * i32(params.k)));
            {% endif %}
            let to = image * params.y_image + channel * params.y_channel;
            {% for c in range(4) %}
            if column + tx * 4u + {{ c }}u < params.n {
                out[to + (column + tx * 4u + {{ c }}u) * params.y_pixel] = v[{{ c }}];
            }
            {% endfor %}
        }
    }
    {% endfor %}
}
