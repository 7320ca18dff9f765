// An image with its channels last, filled up to fours, and with its pads: [images, height, width, channels]. A workgroup
// turns {{ deep }} channels of {{ pixels }} pixels in its memory; both sides are read and written side by side.
@group(0) @binding(0) var<storage, read_write> x: array<{{ x }}>;
@group(0) @binding(1) var<storage, read_write> spread: array<vec4<{{ v }}>>;

struct Params {
    // Workgroups, and those along pixels and channels.
    total: u32,
    tiles: u32,
    tiles_deep: u32,
    channels: u32,
    // Fours of channels, and lengths of what is written.
    quads: u32,
    height: u32,
    width: u32,
    in_y: u32,
    in_x: u32,
    // Pixels of the image from one that is written to the next, and pads before the first.
    stride_y: u32,
    stride_x: u32,
    pad_y: u32,
    pad_x: u32,
    x_image: u32,
    x_channel: u32,
    x_pixel: u32,
    // Where four zeros are put.
    zeros: u32,
}
@group(0) @binding(2) var<uniform> params: Params;

{% set step = deep + 1 %}
{% set threads = 256 %}
var<workgroup> tile: array<f32, {{ pixels * step }}>;

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let id = group.x + group.y * groups.x;
    if id >= params.total {
        return;
    }
    if id == 0u && thread == 0u {
        spread[params.zeros >> 2u] = vec4<{{ v }}>();
    }
    let first = id % params.tiles * {{ pixels }}u;
    let channel = id / params.tiles % params.tiles_deep * {{ deep }}u;
    let image = id / (params.tiles * params.tiles_deep);
    let count = params.height * params.width;
    // Nothing waits for what it reads: what lies outside the image reads its first element.
    {% for i in range(pixels * deep // threads) %}
    {% if last %}
    let number{{ i }} = thread + {{ i * threads }}u;
    let own{{ i }} = number{{ i }} / {{ deep }}u;
    let c{{ i }} = number{{ i }} % {{ deep }}u;
    {% else %}
    let own{{ i }} = thread % {{ pixels }}u;
    let c{{ i }} = thread / {{ pixels }}u + {{ i * (threads // pixels) }}u;
    {% endif %}
    {% if last or i == 0 %}
    // What lies before the image is beyond it as a number without a sign.
    let y{{ i }} = (first + own{{ i }}) / params.width * params.stride_y - params.pad_y;
    let x{{ i }} = (first + own{{ i }}) % params.width * params.stride_x - params.pad_x;
    let inside{{ i }} = y{{ i }} < params.in_y && x{{ i }} < params.in_x && first + own{{ i }} < count;
    let from{{ i }} = image * params.x_image + (y{{ i }} * params.in_x + x{{ i }}) * params.x_pixel;
    {% endif %}
    {% set at = i if last else 0 %}
    let there{{ i }} = inside{{ at }} && channel + c{{ i }} < params.channels;
    let value{{ i }} = x[select(0u, from{{ at }} + (channel + c{{ i }}) * params.x_channel, there{{ i }})];
    {% endfor %}
    {% for i in range(pixels * deep // threads) %}
    tile[own{{ i }} * {{ step }}u + c{{ i }}] = select(0.0, f32(value{{ i }}), there{{ i }});
    {% endfor %}
    workgroupBarrier();
    {% for i in range(pixels * deep // threads // 4) %}
    {
        let number = thread + {{ i * threads }}u;
        let quad = number % {{ deep // 4 }}u;
        let own = number / {{ deep // 4 }}u;
        if first + own < count && channel / 4u + quad < params.quads {
            let at = own * {{ step }}u + quad * 4u;
            let found = vec4<f32>(tile[at], tile[at + 1u], tile[at + 2u], tile[at + 3u]);
            spread[(image * count + first + own) * params.quads + channel / 4u + quad] = vec4<{{ v }}>(found);
        }
    }
    {% endfor %}
}
