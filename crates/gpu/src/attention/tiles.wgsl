// Attention of a tile of queries: keys and values pass by in tiles, and the softmax is corrected as its scores
// come. Each thread has {{ per }} of the rows with four keys, then with columns of the values.
{% set many = per == 4 %}
{% if paged %}
{% include "attention/blocks_params" %}

{% include "attention/loads" %}

{% else %}
{% include "attention/params" %}

{% endif %}

{% if many %}
alias Rows = vec4<f32>;
alias Numbers = vec4<u32>;
{% else %}
alias Rows = f32;
alias Numbers = u32;
{% endif %}
const PER = {{ per }}u;
const ROWS = 16u * PER;
const KEYS = 64u;
// Elements of queries and keys at a time, and what a row of them takes.
const DEPTH = 16u;
const PITCH = 17u;
// Fours of columns, of which each thread has every sixteenth, and keys whose values are there at a time.
const COLUMNS = {{ quads }}u;
const SLICE = {{ slice }}u;
// Scores of keys that are seen are more than that of those that are not.
const HIDDEN = -3.4028234e38;
const LEAST = -3.4e38;

var<workgroup> queries: array<Rows, DEPTH * PITCH>;
var<workgroup> stage: array<vec4<f32>, 512>;
var<workgroup> weights: array<Rows, KEYS * 16u>;

{% if paged %}
{% include "attention/blocks_tile" %}

{% endif %}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let number = group.x + group.y * groups.x;
    let tile_number = number % params.tiles;
    let part = number / params.tiles % params.parts;
    let head = number / (params.tiles * params.parts);
    let across = lane % 16u;
    let down = lane / 16u;
{% if paged %}
    let found = find_tile(tile_number);
    if head >= params.kv_heads || found.count == 0u {
        return;
    }
    let count = found.count;
    let first_row = found.first_row;
    let before = found.before;
    let table = found.table;
    let tile = found.number;
{% else %}
    let b = head / params.heads;
    if b >= params.batch {
        return;
    }
    let tile = tile_number;
    let count = params.queries;
    let kv_head = head % params.heads / params.shared_heads;
    let q_base = b * params.q_steps.x + head % params.heads * params.q_steps.y;
    let k_base = b * params.k_steps.x + kv_head * params.k_steps.y;
    let v_base = b * params.v_steps.x + kv_head * params.v_steps.y;
    let y_base = b * params.y_steps.x + head % params.heads * params.y_steps.y;
{% if mask %}
    let mask_base = b * params.mask_steps.x + head % params.heads * params.mask_steps.y;
{% endif %}
{% endif %}
    let first = tile * ROWS;
    // What each of this thread's rows sees: from `low` to before `high`.
    var low: Numbers;
    var high: Numbers;
    var tile_low = 0u;
    var tile_high = 0u;
{% for r in range(per + 2) %}
    {
{% if r < per %}
        let i = min(first + down * PER + {{ r }}u, count - 1u);
{% elif r == per %}
        let i = first;
{% else %}
        let i = min(first + ROWS - 1u, count - 1u);
{% endif %}
{% if paged %}
        let position = before + i / params.shared_heads;
        let from_key = select(0u, max(position + 1u, params.window) - params.window, params.window > 0u);
        let to_key = min(position + 1u, found.positions);
{% else %}
        let position = params.offset + i32(i);
        let from_key = select(0u, u32(max(position - params.left, 0)), params.left >= 0);
        let to_key = select(params.keys, min(params.keys, u32(max(position + params.right + 1, 0))), params.right >= 0);
{% endif %}
{% if r < per %}
        low{% if many %}[{{ r }}]{% endif %} = from_key;
        high{% if many %}[{{ r }}]{% endif %} = to_key;
{% elif r == per %}
        tile_low = from_key;
{% else %}
        tile_high = to_key;
{% endif %}
    }
{% endfor %}
    // Where the queries that this thread loads begin: rows `down`, elements `across`.
{% for r in range(per) %}
{% if paged %}
    let load{{ r }} = min(first + down * PER + {{ r }}u, count - 1u);
    let from_query{{ r }} = ((first_row + load{{ r }} / params.shared_heads) * params.kv_heads + head) * params.shared_heads * params.key_width + load{{ r }} % params.shared_heads * params.key_width;
{% else %}
    let from_query{{ r }} = q_base + min(first + down * PER + {{ r }}u, count - 1u) * params.q_steps.z;
{% endif %}
{% endfor %}

    var most = Rows(HIDDEN);
    var total = Rows(0.0);
{% for c in range(blocks) %}
{% for i in range(4) %}
    var sum{{ c }}_{{ i }} = Rows(0.0);
{% endfor %}
{% endfor %}

    for (var start = tile_low / KEYS * KEYS; start < tile_high; start += KEYS) {
{% for j in range(4) %}
        var score{{ j }} = Rows(0.0);
{% endfor %}
{% if paged %}
        // A thread loads the positions `across`, elements `down`.
{% if key_quads %}
        let p = min(start + across * 4u, (tile_high - 1u) / 4u * 4u);
        let own_block = min(blocks[table + p / params.block].x, params.count - 1u);
        let from_key = (own_block * params.kv_heads + head) * params.key_width * params.block + p % params.block;
{% if cache == "i8" %}
        let key_scale = key_scales[((own_block * params.kv_heads + head) * params.block + p % params.block) / 4u];
{% endif %}
{% else %}
{% for j in range(4) %}
        let p{{ j }} = min(start + across * 4u + {{ j }}u, tile_high - 1u);
        let vector{{ j }} = min(blocks[table + p{{ j }} / params.block].x, params.count - 1u) * params.kv_heads + head;
        let from_key{{ j }} = vector{{ j }} * params.key_width * params.block + p{{ j }} % params.block;
{% endfor %}
{% if cache == "i8" %}
        let key_scale = vec4<f32>({% for j in range(4) %}key_scales[vector{{ j }} * params.block + p{{ j }} % params.block]{{ ", " if not loop.last }}{% endfor %});
{% endif %}
{% endif %}
{% else %}
        // A thread loads the keys `down`, elements `across`.
{% for j in range(4) %}
        let from_key{{ j }} = k_base + min(start + down * 4u + {{ j }}u, params.keys - 1u) * params.k_steps.z;
{% endfor %}
{% endif %}
        for (var depth = 0u; depth < params.key_width; depth += DEPTH) {
            let d = depth + across;
{% for r in range(per) %}
            var query{{ r }} = 0.0;
{% endfor %}
            if d < params.key_width {
{% for r in range(per) %}
{% if paged %}
                query{{ r }} = f32(q[from_query{{ r }} + d]);
{% else %}
                query{{ r }} = f32(q[from_query{{ r }} + d * params.q_steps.w]);
{% endif %}
{% endfor %}
            }
            queries[across * PITCH + down] = params.scale * {% if many %}vec4<f32>(query0, query1, query2, query3){% else %}query0{% endif %};
            var loaded = vec4<f32>(0.0);
{% if paged %}
            let e = depth + down;
            if e < params.key_width {
{% if key_quads %}
                loaded = keys_at(from_key + e * params.block);
{% else %}
                loaded = vec4<f32>({% for j in range(4) %}keys_at(from_key{{ j }} + e * params.block){{ ", " if not loop.last }}{% endfor %});
{% endif %}
{% if cache == "i8" %}
                loaded *= key_scale;
{% endif %}
            }
            stage[down * PITCH + across] = loaded;
{% else %}
            if d < params.key_width {
                loaded = vec4<f32>({% for j in range(4) %}f32(k[from_key{{ j }} + d * params.k_steps.w]){{ ", " if not loop.last }}{% endfor %});
            }
            stage[across * PITCH + down] = loaded;
{% endif %}
            workgroupBarrier();
            for (var i = 0u; i < DEPTH; i++) {
                let query = queries[i * PITCH + down];
                let key = stage[i * PITCH + across];
                score0 += query * key.x;
                score1 += query * key.y;
                score2 += query * key.z;
                score3 += query * key.w;
            }
            workgroupBarrier();
        }
        let key = start + across * 4u;
{% for j in range(4) %}
        {
            if params.softcap > 0.0 {
                score{{ j }} = params.softcap * tanh(clamp(score{{ j }} / params.softcap, Rows(-20.0), Rows(20.0)));
            }
            var hidden = (Numbers(key + {{ j }}u) < low) | (Numbers(key + {{ j }}u) >= high);
{% if mask %}
{% for r in range(per) %}
            {
                let at = mask_base + min(first + down * PER + {{ r }}u, count - 1u) * params.mask_steps.z + min(key + {{ j }}u, params.keys - 1u) * params.mask_steps.w;
{% if mask == "u32" %}
                let sees = (mask[at / 4u] >> (at % 4u * 8u) & 0xffu) != 0u;
                hidden{% if many %}[{{ r }}]{% endif %} = hidden{% if many %}[{{ r }}]{% endif %} | !sees;
{% else %}
                let added = f32(mask[at]);
                score{{ j }}{% if many %}[{{ r }}]{% endif %} += added;
                // Minus infinity, which compilers may take for impossible.
                hidden{% if many %}[{{ r }}]{% endif %} = hidden{% if many %}[{{ r }}]{% endif %} | (bitcast<u32>(added) == 0xff800000u);
{% endif %}
            }
{% endfor %}
{% endif %}
            score{{ j }} = select(max(score{{ j }}, Rows(LEAST)), Rows(HIDDEN), hidden);
        }
{% endfor %}
        weights[lane] = max(max(score0, score1), max(score2, score3));
        workgroupBarrier();
        var highest = most;
        for (var i = 0u; i < 16u; i++) {
            highest = max(highest, weights[down * 16u + i]);
        }
        workgroupBarrier();
{% for j in range(4) %}
        let weight{{ j }} = select(exp(score{{ j }} - highest), Rows(0.0), score{{ j }} <= Rows(HIDDEN));
        weights[(across * 4u + {{ j }}u) * 16u + down] = weight{{ j }};
{% endfor %}
        queries[lane] = weight0 + weight1 + weight2 + weight3;
        let shrink = exp(most - highest);
        most = highest;
        total *= shrink;
{% for c in range(blocks) %}
{% for i in range(4) %}
        sum{{ c }}_{{ i }} *= shrink;
{% endfor %}
{% endfor %}
        workgroupBarrier();
        for (var i = 0u; i < 16u; i++) {
            total += queries[down * 16u + i];
        }
        let stop = min(start + KEYS, tile_high) - start;
        for (var from_slice = 0u; from_slice < stop; from_slice += SLICE) {
            for (var i = lane; i < SLICE * COLUMNS; i += 256u) {
                let at = min(start + from_slice + i / COLUMNS, tile_high - 1u);
                let column = (part * COLUMNS + i % COLUMNS) * 4u;
                var loaded = vec4<f32>(0.0);
{% if paged %}
                let own_block = min(blocks[table + at / params.block].x, params.count - 1u);
                let vector = (own_block * params.kv_heads + head) * params.block + at % params.block;
                let from_value = vector * params.value_width + column;
{% if value_quads %}
                if column < params.value_width {
                    loaded = values_at(from_value);
                }
{% else %}
{% for c in range(4) %}
                if column + {{ c }}u < params.value_width {
                    loaded[{{ c }}] = values_at(from_value + {{ c }}u);
                }
{% endfor %}
{% endif %}
{% if cache == "i8" %}
                loaded *= value_scales[vector];
{% endif %}
{% else %}
                let from_value = v_base + at * params.v_steps.z;
{% for c in range(4) %}
                if column + {{ c }}u < params.value_width {
                    loaded[{{ c }}] = f32(v[from_value + (column + {{ c }}u) * params.v_steps.w]);
                }
{% endfor %}
{% endif %}
                stage[i] = loaded;
            }
            workgroupBarrier();
            for (var i = 0u; i < SLICE; i++) {
                let weight = weights[(from_slice + i) * 16u + down];
{% for c in range(blocks) %}
                let value{{ c }} = stage[i * COLUMNS + {{ c * 16 }}u + across];
                sum{{ c }}_0 += weight * value{{ c }}.x;
                sum{{ c }}_1 += weight * value{{ c }}.y;
                sum{{ c }}_2 += weight * value{{ c }}.z;
                sum{{ c }}_3 += weight * value{{ c }}.w;
{% endfor %}
            }
            workgroupBarrier();
        }
    }

{% for r in range(per) %}
    {
        let i = first + down * PER + {{ r }}u;
        if i < count {
{% if paged %}
            let result = ((first_row + i / params.shared_heads) * params.kv_heads + head) * params.shared_heads * params.value_width + i % params.shared_heads * params.value_width;
{% else %}
            let result = y_base + i * params.y_steps.z;
{% endif %}
            let own = total{% if many %}[{{ r }}]{% endif %};
{% for c in range(blocks) %}
            {
                let column = (part * COLUMNS + {{ c * 16 }}u + across) * 4u;
{% for e in range(4) %}
                if column + {{ e }}u < params.value_width {
                    let x = sum{{ c }}_{{ e }}{% if many %}[{{ r }}]{% endif %} / own;
{% if paged %}
                    y[result + column + {{ e }}u] = {{ y }}(x);
{% else %}
                    y[result + (column + {{ e }}u) * params.y_steps.w] = {{ y }}(select(x, params.empty, own == 0.0));
{% endif %}
                }
{% endfor %}
            }
{% endfor %}
        }
    }
{% endfor %}
}
