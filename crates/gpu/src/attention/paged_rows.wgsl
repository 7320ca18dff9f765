// Attention of single rows over blocks of keys and values: a workgroup takes the query heads that share a
// key head, and a part of the positions. Scores of a chunk of positions first, then their sum of values.
@group(0) @binding(0) var<storage, read_write> q: array<{{ q }}>;
@group(0) @binding(1) var<storage, read_write> keys: array<{{ key_word }}>;
@group(0) @binding(2) var<storage, read_write> values: array<{{ value_word }}>;
@group(0) @binding(3) var<storage, read_write> starts: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> lengths: array<vec2<u32>>;
@group(0) @binding(5) var<storage, read_write> blocks: array<vec2<u32>>;
{% if direct %}
@group(0) @binding(6) var<storage, read_write> y: array<{{ y }}>;
{% else %}
@group(0) @binding(6) var<storage, read_write> sums: array<{{ column }}>;
@group(0) @binding(7) var<storage, read_write> weights: array<vec2<f32>>;
{% endif %}
{% set next = 7 if direct else 8 %}
{% if cache == "i8" %}
@group(0) @binding({{ next }}) var<storage, read_write> key_scales: array<{{ score }}>;
@group(0) @binding({{ next + 1 }}) var<storage, read_write> value_scales: array<f32>;
{% endif %}

struct Params {
    rows: u32,
    sequences: u32,
    most: u32,
    kv_heads: u32,
    key_width: u32,
    value_width: u32,
    block: u32,
    count: u32,
    splits: u32,
    // Positions of a split, a multiple of a chunk.
    span: u32,
    window: u32,
    // Query heads of a key head, and how many workgroups share them.
    shared_heads: u32,
    parts: u32,
    // Places of a sequence where rows are those of sequences of at most so many.
    few: u32,
    scale: f32,
    softcap: f32,
}
@group(0) @binding({{ next + 2 if cache == "i8" else next }}) var<uniform> params: Params;

const THREADS = {{ threads }}u;
const CHUNK = {{ chunk }}u;
const HEADS = {{ heads }}u;
// Threads {{ "along positions, and beside each other" if shuffled else "beside each other along positions, and" }} along the elements of keys.
const GROUPS = {{ groups }}u;
const SLICES = {{ slices }}u;
// Threads that reduce the scores of a head.
const PER_HEAD = {{ per_head }}u;
const WIDTH4 = {{ width }}u / 4u;
const LOWEST = -3.0e38;

var<workgroup> queries: array<vec4<f32>, HEADS * WIDTH4>;
var<workgroup> partial: array<vec4<f32>, THREADS{% if not shuffled %} * HEADS{% endif %}>;
var<workgroup> scores: array<f32, HEADS * CHUNK>;
var<workgroup> reduced: array<vec2<f32>, PER_HEAD * HEADS>;
var<workgroup> vectors: array<u32, CHUNK>;
var<workgroup> most: array<f32, HEADS>;
var<workgroup> total: array<f32, HEADS>;
var<workgroup> shrink: array<f32, HEADS>;
{% if not mixed %}
var<workgroup> sequence: u32;
{% endif %}

{% include "attention/loads" %}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let number = group.x + group.y * groups.x;
    let places = {{ "params.sequences * params.few" if mixed else "params.rows" }};
    if number >= params.splits * params.parts * params.kv_heads * places {
        return;
    }
    let split = number % params.splits;
    let part = number / params.splits % params.parts;
    let head = number / (params.splits * params.parts) % params.kv_heads;
    let place = number / (params.splits * params.parts * params.kv_heads);
{% if mixed %}
    var b = place / params.few;
    let row = starts[b].x + place % params.few;
    let own_rows = starts[b + 1u].x - starts[b].x;
    if own_rows > params.few || place % params.few >= own_rows {
        b = params.sequences;
    }
{% else %}
    let row = place;
    if lane == 0u {
        sequence = params.sequences;
    }
    workgroupBarrier();
    for (var b = lane; b < params.sequences; b += THREADS) {
        if starts[b].x <= row && row < starts[b + 1u].x {
            sequence = b;
        }
    }
    let b = workgroupUniformLoad(&sequence);
{% endif %}
    // The first of this workgroup's query heads within a row, and how many there are.
    let first_head = head * params.shared_heads + part * HEADS;
    let heads = min(HEADS, params.shared_heads - part * HEADS);
    let result = row * params.kv_heads * params.shared_heads + first_head;
    // Where parts of its result are.
    let kept = place * params.kv_heads * params.shared_heads + first_head;
    var position = 0u;
    var first = 0u;
    var from_position = 1u;
    if b < params.sequences {
        position = lengths[b].x - (starts[b + 1u].x - row);
        if params.window > 0u {
            first = max(position + 1u, params.window) - params.window;
        }
        from_position = first - first % CHUNK + split * params.span;
    }
    if from_position > position {
{% if not direct %}
        if lane < heads {
            weights[(kept + lane) * params.splits + split] = vec2<f32>(LOWEST, 0.0);
        }
{% endif %}
        return;
    }
    let end = min(from_position + params.span, position + 1u);

    for (var i = lane; i < HEADS * WIDTH4; i += THREADS) {
{% if not shuffled %}
        let at = i % WIDTH4 * 4u;
{% endif %}
        let from_query = (result + min(i / WIDTH4, heads - 1u)) * params.key_width;
        var x = vec4<f32>(0.0);
        for (var c = 0u; c < 4u; c++) {
{% if shuffled %}
            // Four elements that a thread takes are as far apart as there are threads for a key.
            let d = (i % WIDTH4 / SLICES * 4u + c) * SLICES + i % SLICES;
{% else %}
            let d = at + c;
{% endif %}
            if d < params.key_width {
                x[c] = f32(q[from_query + d]);
            }
        }
        queries[i] = x * params.scale;
    }
    if lane < HEADS {
        most[lane] = LOWEST;
        total[lane] = 0.0;
    }
    let columns = (params.value_width + {{ value_step - 1 }}u) / {{ value_step }}u;
    let column = lane % columns;
    let slice_count = THREADS / columns;
    let value_slice = lane / columns;
{% for g in range(heads) %}
    var sum{{ g }} = {{ column }}(0.0);
{% endfor %}
    workgroupBarrier();

    for (var start = from_position; start < end; start += CHUNK) {
        let stop = min(start + CHUNK, end);
        // Where the vectors of each position are.
        for (var i = lane; i < CHUNK; i += THREADS) {
            let p = min(start + i, end - 1u);
            let block = min(blocks[b * params.most + p / params.block].x, params.count - 1u);
            vectors[i] = (block * params.kv_heads + head) * params.block + p % params.block;
        }
{% if shuffled %}
        workgroupBarrier();
        let slice = lane % SLICES;
        for (var quad = lane / SLICES; quad < CHUNK / {{ key_step }}u; quad += GROUPS) {
            let at = start + quad * {{ key_step }}u;
{% for g in range(heads) %}
            var score{{ g }} = {{ score }}(0.0);
{% endfor %}
            if at < end {
                let vector = vectors[quad * {{ key_step }}u];
                let within = vector % params.block;
                let from_key = (vector - within) * params.key_width + within;
                let last = params.key_width - 1u;
                for (var d = slice; d - slice < (params.key_width + 3u) / 4u; d += {{ key_unrolled }}u * SLICES) {
{% for u in range(key_unrolled) %}
{% for c in range(4) %}
                    let key{{ u }}_{{ c }} = keys_at(from_key + min((d - slice) * 4u + {{ 4 * u + c }}u * SLICES + slice, last) * params.block);
{% endfor %}
{% endfor %}
{% for u in range(key_unrolled) %}
{% for g in range(heads) %}
                    let query{{ u }}_{{ g }} = queries[{{ g }}u * WIDTH4 + d + {{ u }}u * SLICES];
                    score{{ g }} += query{{ u }}_{{ g }}.x * key{{ u }}_0 + query{{ u }}_{{ g }}.y * key{{ u }}_1 + query{{ u }}_{{ g }}.z * key{{ u }}_2 + query{{ u }}_{{ g }}.w * key{{ u }}_3;
{% endfor %}
{% endfor %}
                }
{% if cache == "i8" %}
                let key_scale = key_scales[vector / {{ key_step }}u];
{% for g in range(heads) %}
                score{{ g }} *= key_scale;
{% endfor %}
{% endif %}
            }
            for (var apart = 1u; apart < SLICES; apart *= 2u) {
{% for g in range(heads) %}
                score{{ g }} += subgroupShuffleXor(score{{ g }}, apart);
{% endfor %}
            }
{% for g in range(heads) %}
            if slice == {{ g }}u % SLICES {
                if params.softcap > 0.0 {
                    score{{ g }} = params.softcap * tanh(clamp(score{{ g }} / params.softcap, {{ score }}(-20.0), {{ score }}(20.0)));
                }
{% for c in range(key_step) %}
                scores[{{ g }}u * CHUNK + quad * {{ key_step }}u + {{ c }}u] = select(LOWEST, score{{ g }}{% if key_step > 1 %}[{{ c }}]{% endif %}, at + {{ c }}u >= first && at + {{ c }}u < end);
{% endfor %}
            }
{% endfor %}
        }
        workgroupBarrier();
{% else %}
        let p = start + lane % GROUPS * {{ key_step }}u;
{% for g in range(heads) %}
        var score{{ g }} = {{ score }}(0.0);
{% endfor %}
        if p < end {
            let block = min(blocks[b * params.most + p / params.block].x, params.count - 1u);
            let tile = block * params.kv_heads + head;
            let from_key = tile * params.key_width * params.block + p % params.block;
            let last = params.key_width - 1u;
            for (var d = lane / GROUPS; d * 4u < params.key_width; d += SLICES) {
{% for c in range(4) %}
                let key{{ c }} = keys_at(from_key + min(d * 4u + {{ c }}u, last) * params.block);
{% endfor %}
{% for g in range(heads) %}
                let query{{ g }} = queries[{{ g }}u * WIDTH4 + d];
                score{{ g }} += query{{ g }}.x * key0 + query{{ g }}.y * key1 + query{{ g }}.z * key2 + query{{ g }}.w * key3;
{% endfor %}
            }
{% if cache == "i8" %}
            let key_scale = key_scales[(tile * params.block + p % params.block) / {{ key_step }}u];
{% for g in range(heads) %}
            score{{ g }} *= key_scale;
{% endfor %}
{% endif %}
        }
{% for g in range(heads) %}
        partial[(lane / GROUPS * HEADS + {{ g }}u) * GROUPS + lane % GROUPS] = {% if key_quads %}score{{ g }}{% else %}vec4<f32>(score{{ g }}){% endif %};
{% endfor %}
        workgroupBarrier();
        for (var i = lane; i < HEADS * GROUPS; i += THREADS) {
            var x = partial[i];
            for (var s = 1u; s < SLICES; s++) {
                x += partial[s * HEADS * GROUPS + i];
            }
            if params.softcap > 0.0 {
                x = params.softcap * tanh(clamp(x / params.softcap, vec4<f32>(-20.0), vec4<f32>(20.0)));
            }
            let at = start + i % GROUPS * {{ key_step }}u;
            let to = i / GROUPS * CHUNK + i % GROUPS * {{ key_step }}u;
{% for c in range(key_step) %}
            scores[to + {{ c }}u] = select(LOWEST, x[{{ c }}], at + {{ c }}u >= first && at + {{ c }}u < end);
{% endfor %}
        }
        workgroupBarrier();
{% endif %}
        // The softmax so far, some threads a head.
        let own = lane / PER_HEAD;
        if own < HEADS {
            var x = LOWEST;
            for (var i = lane % PER_HEAD; i < CHUNK; i += PER_HEAD) {
                x = max(x, scores[own * CHUNK + i]);
            }
            reduced[lane].x = x;
        }
        workgroupBarrier();
        var highest = LOWEST;
        if own < HEADS {
            highest = most[own];
            for (var i = 0u; i < PER_HEAD; i++) {
                highest = max(highest, reduced[own * PER_HEAD + i].x);
            }
            var sum = 0.0;
            for (var i = lane % PER_HEAD; i < CHUNK; i += PER_HEAD) {
                let weight = exp(scores[own * CHUNK + i] - highest);
                scores[own * CHUNK + i] = weight;
                sum += weight;
            }
            reduced[lane].y = sum;
            if lane % PER_HEAD == 0u {
                shrink[own] = exp(most[own] - highest);
            }
        }
        workgroupBarrier();
        if own < HEADS && lane % PER_HEAD == 0u {
            var sum = total[own] * shrink[own];
            for (var i = 0u; i < PER_HEAD; i++) {
                sum += reduced[own * PER_HEAD + i].y;
            }
            total[own] = sum;
            most[own] = highest;
        }
        // Values, weighed.
{% for g in range(heads) %}
        sum{{ g }} *= shrink[{{ g }}];
{% endfor %}
        if value_slice < slice_count {
            var p = max(start, first) - start + value_slice;
            let length = stop - start;
            for (; p + {{ unrolled - 1 }}u * slice_count < length; p += {{ unrolled }}u * slice_count) {
{% for u in range(unrolled) %}
                let vector{{ u }} = vectors[p + {{ u }}u * slice_count];
                let value{{ u }} = values_at(vector{{ u }} * params.value_width + column * {{ value_step }}u){% if cache == "i8" %} * value_scales[vector{{ u }}]{% endif %};
{% endfor %}
{% for g in range(heads) %}
                sum{{ g }} += {% for u in range(unrolled) %}{% if u %} + {% endif %}scores[{{ g }}u * CHUNK + p + {{ u }}u * slice_count] * value{{ u }}{% endfor %};
{% endfor %}
            }
            for (; p < length; p += slice_count) {
                let vector = vectors[p];
                let value = values_at(vector * params.value_width + column * {{ value_step }}u){% if cache == "i8" %} * value_scales[vector]{% endif %};
{% for g in range(heads) %}
                sum{{ g }} += scores[{{ g }}u * CHUNK + p] * value;
{% endfor %}
            }
        }
        workgroupBarrier();
    }

    // The sums of all slices.
{% if shuffled %}
{% for g in range(heads) %}
    if value_slice < slice_count {
        partial[value_slice * columns + column] = {% if value_quads %}sum{{ g }}{% else %}vec4<f32>(sum{{ g }}){% endif %};
    }
    workgroupBarrier();
    if {{ g }}u < heads && lane < columns {
        var x = partial[lane];
        for (var s = 1u; s < slice_count; s++) {
            x += partial[s * columns + lane];
        }
{% if direct %}
        y[(result + {{ g }}u) * columns + lane] = {{ y }}(x{% if not value_quads %}.x{% endif %} / total[{{ g }}]);
{% else %}
        sums[((kept + {{ g }}u) * params.splits + split) * columns + lane] = x{% if not value_quads %}.x{% endif %};
{% endif %}
    }
    workgroupBarrier();
{% endfor %}
{% else %}
    if value_slice < slice_count {
{% for g in range(heads) %}
        partial[(value_slice * HEADS + {{ g }}u) * columns + column] = {% if value_quads %}sum{{ g }}{% else %}vec4<f32>(sum{{ g }}){% endif %};
{% endfor %}
    }
    workgroupBarrier();
    for (var i = lane; i < heads * columns; i += THREADS) {
        var x = partial[i];
        for (var s = 1u; s < slice_count; s++) {
            x += partial[s * HEADS * columns + i];
        }
        let own = i / columns;
{% if direct %}
        y[(result + own) * columns + i % columns] = {{ y }}(x{% if not value_quads %}.x{% endif %} / total[own]);
{% else %}
        sums[((kept + own) * params.splits + split) * columns + i % columns] = x{% if not value_quads %}.x{% endif %};
{% endif %}
    }
{% endif %}
{% if not direct %}
    if lane < heads {
        weights[(kept + lane) * params.splits + split] = vec2<f32>(most[lane], total[lane]);
    }
{% endif %}
}
