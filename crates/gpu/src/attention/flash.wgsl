// Attention of a tile of {{ rows }} queries by cooperative matrices of {{ size }} × {{ size }}: operands of FP16, sums
// in FP32. Keys and values pass by in tiles of {{ keys }}. Nobody sees the elements of a matrix, so scores go through
// workgroup memory, where threads make weights of them; sums of values stay in matrices, and go the same way only
// where a row's greatest score grows by much.
{% set unit = 4 if wide else 1 %}
{% set team = threads // rows %}
{% set looks = keys // (4 * team) %}
{% set q_pitch = (d + 8) // unit %}
{# Keys lie as rows of their elements; in blocks, elements lie as rows of keys. #}
{% set k_pitch = (keys + 8) // unit if paged else q_pitch %}
{% set v_pitch = (e + 8) // unit %}
{% set w_pitch = (keys + 8) // unit %}
{% set s_pitch = score_pitch %}
{% set band = bands * size %}
{% set key_share = keys // across %}
{% set share = e // across %}
{% set columns = share // size %}
{% set strips = (share + key_share - 1) // key_share %}
{% set half = "vec4<f16>" if wide else "f16" %}
{% set matrix = "coop_mat" ~ size ~ "x" ~ size %}
{% if paged %}
{% include "attention/blocks_params" %}

{% if cache != "f16" %}
{% include "attention/loads" %}

{% endif %}
{% else %}
{% include "attention/params" %}

{% endif %}

const THREADS = {{ threads }}u;
const ROWS = {{ rows }}u;
const KEYS = {{ keys }}u;
const EACH = vec4<u32>(0u, 1u, 2u, 3u);
// Scores of keys that are seen are more than that of those that are not.
const HIDDEN = -3.4028234e38;
const LEAST = -3.4e38;
// Weights may exceed 1 by the exponential of this before sums are corrected: FP16 has room for them.
const SLACK = 8.0;
{% if paged %}

{% include "attention/blocks_tile" %}
{% endif %}

// Queries, then keys and values in turn.
var<workgroup> stage: array<{{ half }}, {{ stage // unit }}>;
var<workgroup> scores: array<f32, {{ rows * s_pitch }}>;
var<workgroup> weights: array<{{ half }}, {{ rows * w_pitch }}>;
var<workgroup> shared_rows: array<f32, {{ threads }}>;
var<workgroup> factors: array<f32, {{ rows }}>;
// As long as all others are multiples of: matrices are read from addresses that are multiples of 16 bytes.
var<workgroup> grown: array<u32, 4>;
{% if paged %}
var<workgroup> job: Tile;
// Where the keys' values are, as numbers of vectors.
var<workgroup> vectors: array<u32, KEYS>;

// Where the elements of a row begin: rows follow each other by heads that share keys.
fn row_of(i: u32, first_row: u32, head: u32, width: u32) -> u32 {
    let row = (first_row + i / params.shared_heads) * params.kv_heads + head;
    return (row * params.shared_heads + i % params.shared_heads) * width;
}
{% for name in ["keys", "values"] %}

fn half_{{ name }}(at: u32) -> vec4<f16> {
{% if cache == "f16" %}
    return {{ name }}[at / 4u];
{% else %}
    return vec4<f16>({{ name }}_at(at));
{% endif %}
}
{% endfor %}
{% else %}

{% for x, quads in [("q", q_quads), ("k", k_quads), ("v", v_quads)] %}
// Four elements of the row that begins at `start`.
fn {{ x }}_at(start: u32, column: u32) -> vec4<f16> {
    {% if quads %}
    return vec4<f16>({{ x }}[(start + column) / 4u]);
    {% else %}
    let at = vec4<u32>(start) + (vec4<u32>(column) + EACH) * params.{{ x }}_steps.w;
    return vec4<f16>(f16({{ x }}[at.x]), f16({{ x }}[at.y]), f16({{ x }}[at.z]), f16({{ x }}[at.w]));
    {% endif %}
}
{% endfor %}
{% endif %}

{% macro put_half(array, at, value) %}
{% if wide %}
{{ array }}[{{ at }}] = {{ value }};
{% else %}
{% for c in range(4) %}
{{ array }}[{{ at }} + {{ c }}u] = {{ value }}[{{ c }}];
{% endfor %}
{% endif %}
{% endmacro %}
// Brings rows of four elements each to the stage, all loads of a thread before its stores as far as registers go.
// `value` is an expression of the row and of the column of the four. Where it depends on the thread as well, those
// beyond the last element store nothing; elsewhere they repeat it.
{% macro bring(count, width, pitch, value, own=false) %}
{% set quads = width // 4 %}
{% set all = count * quads %}
{% set most = 8 %}
for (var block = 0u; block < {{ all }}u; block += {{ threads * most }}u) {
{% for i in range(most) %}
{% if i * threads < all %}
    let i{{ i }} = min(block + {{ i * threads }}u + thread, {{ all - 1 }}u);
    let loaded{{ i }} = {{ value | replace("ROW", "(i" ~ i ~ " / " ~ quads ~ "u)") | replace("COLUMN", "(i" ~ i ~ " % " ~ quads ~ "u * 4u)") }};
{% endif %}
{% endfor %}
{% for i in range(most) %}
{% if i * threads < all %}
    {% if own %}if block + {{ i * threads }}u + thread < {{ all }}u {% endif %}{
        let at = i{{ i }} / {{ quads }}u * {{ pitch }}u + i{{ i }} % {{ quads }}u * {{ 4 // unit }}u;
        {{ put_half("stage", "at", "loaded" ~ i) }}
    }
{% endif %}
{% endfor %}
}
{% endmacro %}
// Where a matrix of sums lies among the scores.
{% macro place(b, j) %}(band_row + {{ b * size }}u) * {{ s_pitch }}u + side * {{ key_share }}u + {{ j % (key_share // size) * size }}u{% endmacro %}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32, @builtin(subgroup_id) subgroup: u32) {
    let number = group.x + group.y * groups.x;
{% if paged %}
    let tile_number = number % params.tiles;
    let head = number / params.tiles;
    if head >= params.kv_heads {
        return;
    }
    if thread == 0u {
        job = find_tile(tile_number);
    }
    let found = workgroupUniformLoad(&job);
    if found.count == 0u {
        return;
    }
    let before = found.before;
    let table = found.table;
    let first_row = found.first_row;
    let first = found.number * ROWS;
    let last = found.count - 1u;
{% else %}
    let head = number / params.tiles;
    let b = head / params.heads;
    if b >= params.batch {
        return;
    }
{% endif %}
    // Where subgroups are smaller than expected, those beyond repeat the last one.
    let team = min(subgroup, {{ down * across - 1 }}u);
    let band_row = team / {{ across }}u * {{ band }}u;
    let side = team % {{ across }}u;
{% if not paged %}
    let kv_head = head % params.heads / params.shared_heads;
    let q_base = b * params.q_steps.x + head % params.heads * params.q_steps.y;
    let k_base = b * params.k_steps.x + kv_head * params.k_steps.y;
    let v_base = b * params.v_steps.x + kv_head * params.v_steps.y;
    let y_base = b * params.y_steps.x + head % params.heads * params.y_steps.y;
    let first = number % params.tiles * {{ rows }}u;
    let last = params.queries - 1u;
{% endif %}

    // What the tile sees, and the row that this thread makes weights for: from `low` to before `high`.
    let row = thread / {{ team }}u;
    let part = thread % {{ team }}u;
    let query = min(first + row, last);
{% if mask %}
    let mask_base = b * params.mask_steps.x + head % params.heads * params.mask_steps.y + query * params.mask_steps.z;
{% endif %}
{% if paged %}
    let top = before + first / params.shared_heads + 1u;
    let tile_low = select(0u, max(top, params.window) - params.window, params.window > 0u);
    let tile_high = min(before + min(first + {{ rows - 1 }}u, last) / params.shared_heads + 1u, found.positions);
    let high = before + query / params.shared_heads + 1u;
    let low = select(0u, max(high, params.window) - params.window, params.window > 0u);
{% else %}
    let top = params.offset + i32(first);
    let middle = params.offset + i32(query);
    let bottom = params.offset + i32(min(first + {{ rows - 1 }}u, last));
    let tile_low = select(0u, u32(max(top - params.left, 0)), params.left >= 0);
    let tile_high = select(params.keys, min(params.keys, u32(max(bottom + params.right + 1, 0))), params.right >= 0);
    let low = select(0u, u32(max(middle - params.left, 0)), params.left >= 0);
    let high = select(params.keys, min(params.keys, u32(max(middle + params.right + 1, 0))), params.right >= 0);
{% endif %}

{% if paged %}
    {{ bring(rows, d, q_pitch, "vec4<f16>(q[(row_of(min(first + ROW, last), first_row, head, " ~ d ~ "u) + COLUMN) / 4u])") }}
{% else %}
    {{ bring(rows, d, q_pitch, "q_at(q_base + min(first + ROW, last) * params.q_steps.z, COLUMN)") }}
{% endif %}
    workgroupBarrier();
{% for b in range(bands) %}
{% for i in range(d // size) %}
    let at_q{{ b }}_{{ i }} = (band_row + {{ b * size }}u) * {{ q_pitch }}u + {{ i * size // unit }}u;
    let q{{ b }}_{{ i }} = coopLoadT<{{ matrix }}<f16, A>>(&stage[at_q{{ b }}_{{ i }}], {{ q_pitch }}u);
{% endfor %}
{% for j in range(columns) %}
    var sum{{ b }}_{{ j }}: {{ matrix }}<f32, C>;
{% endfor %}
{% endfor %}
    var none: {{ matrix }}<f32, C>;
    var most = HIDDEN;
    var total = 0.0;
    workgroupBarrier();

    for (var start = tile_low / KEYS * KEYS; start < tile_high; start += KEYS) {
        let stop = min(KEYS, tile_high - start);
        if thread == 0u {
            grown[0] = 0u;
        }
{% if paged %}
        for (var i = thread; i < KEYS; i += THREADS) {
            let p = min(start + i, tile_high - 1u);
            let own_block = min(blocks[table + p / params.block].x, params.count - 1u);
            vectors[i] = (own_block * params.kv_heads + head) * params.block + p % params.block;
        }
        // A thread has the same keys of all elements that it loads.
        let own_key = min(start + thread % {{ keys // 4 }}u * 4u, (tile_high - 1u) / 4u * 4u);
        let own_tile = min(blocks[table + own_key / params.block].x, params.count - 1u) * params.kv_heads + head;
        let own_start = own_tile * {{ d }}u * params.block + own_key % params.block;
{% if cache == "i8" %}
        let own_scale = vec4<f16>(key_scales[(own_tile * params.block + own_key % params.block) / 4u]);
        {{ bring(d, keys, k_pitch, "half_keys(own_start + ROW * params.block) * own_scale", true) }}
{% else %}
        {{ bring(d, keys, k_pitch, "half_keys(own_start + ROW * params.block)", true) }}
{% endif %}
{% else %}
        {{ bring(keys, d, k_pitch, "k_at(k_base + min(start + ROW, params.keys - 1u) * params.k_steps.z, COLUMN)") }}
{% endif %}
        workgroupBarrier();
        for (var j = side; j * {{ size }}u < stop; j += {{ across }}u) {
            let from_key = j * {{ size * k_pitch if not paged else size // unit }}u;
{% for i in range(d // size) %}
            let at_k{{ i }} = from_key + {{ i * size * k_pitch if paged else i * size // unit }}u;
            let k{{ i }} = coopLoad{{ "T" if paged }}<{{ matrix }}<f16, B>>(&stage[at_k{{ i }}], {{ k_pitch }}u);
{% for b in range(bands) %}
            let score{{ b }}_{{ i }} = coopMultiplyAdd(q{{ b }}_{{ i }}, k{{ i }}, {{ "none" if i == 0 else "score" ~ b ~ "_" ~ (i - 1) }});
{% endfor %}
{% endfor %}
{% for b in range(bands) %}
            let to_{{ b }} = (band_row + {{ b * size }}u) * {{ s_pitch }}u + j * {{ size }}u;
            coopStoreT(score{{ b }}_{{ d // size - 1 }}, &scores[to_{{ b }}], {{ s_pitch }}u);
{% endfor %}
        }
        workgroupBarrier();

{% if paged and cache == "i8" %}
        {{ bring(keys, e, v_pitch, "half_values(vectors[ROW] * " ~ e ~ "u + COLUMN) * f16(value_scales[vectors[ROW]])") }}
{% elif paged %}
        {{ bring(keys, e, v_pitch, "half_values(vectors[ROW] * " ~ e ~ "u + COLUMN)") }}
{% else %}
        {{ bring(keys, e, v_pitch, "v_at(v_base + min(start + ROW, params.keys - 1u) * params.v_steps.z, COLUMN)") }}
{% endif %}
        var highest = HIDDEN;
{% for n in range(looks) %}
{% set quad = "part + " ~ (n * team) ~ "u" %}
        var score{{ n }} = vec4<f32>(HIDDEN);
        {
            let key = vec4<u32>(start + ({{ quad }}) * 4u) + EACH;
            let at = row * {{ s_pitch }}u + ({{ quad }}) * 4u;
            var score = vec4<f32>(scores[at], scores[at + 1u], scores[at + 2u], scores[at + 3u]) * params.scale;
            if params.softcap > 0.0 {
                score = params.softcap * tanh(clamp(score / params.softcap, vec4<f32>(-20.0), vec4<f32>(20.0)));
            }
            var hidden = (key < vec4<u32>(low)) | (key >= vec4<u32>(high));
{% if mask %}
            let places = vec4<u32>(mask_base) + min(key, vec4<u32>(params.keys - 1u)) * params.mask_steps.w;
{% if mask == "u32" %}
            let bytes = vec4<u32>(mask[places.x / 4u], mask[places.y / 4u], mask[places.z / 4u], mask[places.w / 4u]);
            hidden = hidden | ((bytes >> (places % 4u * 8u) & vec4<u32>(0xffu)) == vec4<u32>(0u));
{% else %}
            let added = vec4<f32>(f32(mask[places.x]), f32(mask[places.y]), f32(mask[places.z]), f32(mask[places.w]));
            score += added;
            // Minus infinity, which compilers may take for impossible.
            hidden = hidden | (bitcast<vec4<u32>>(added) == vec4<u32>(0xff800000u));
{% endif %}
{% endif %}
            score{{ n }} = select(max(score, vec4<f32>(LEAST)), vec4<f32>(HIDDEN), hidden);
            highest = max(highest, max(max(score{{ n }}.x, score{{ n }}.y), max(score{{ n }}.z, score{{ n }}.w)));
        }
{% endfor %}
        shared_rows[thread] = highest;
        workgroupBarrier();
{% for t in range(team) %}
        highest = max(highest, shared_rows[row * {{ team }}u + {{ t }}u]);
{% endfor %}
        var factor = 1.0;
        if most <= HIDDEN {
            most = highest;
        } else if highest - most > SLACK {
            factor = exp(most - highest);
            most = highest;
            grown[0] = 1u;
        }
        if part == 0u {
            factors[row] = factor;
        }
        total *= factor;
{% for n in range(looks) %}
        {
            let weight = vec4<f16>(select(exp(score{{ n }} - most), vec4<f32>(0.0), score{{ n }} <= vec4<f32>(HIDDEN)));
            total += dot(vec4<f32>(weight), vec4<f32>(1.0));
            let at = row * {{ w_pitch }}u + (part + {{ n * team }}u) * {{ 4 // unit }}u;
            {{ put_half("weights", "at", "weight") }}
        }
{% endfor %}
        if workgroupUniformLoad(&grown[0]) != 0u {
{% for strip in range(strips) %}
{% for b in range(bands) %}
{% for j in range(columns) %}
{% if j // (key_share // size) == strip %}
            let to_{{ b }}_{{ j }} = {{ place(b, j) }};
            coopStoreT(sum{{ b }}_{{ j }}, &scores[to_{{ b }}_{{ j }}], {{ s_pitch }}u);
{% endif %}
{% endfor %}
{% endfor %}
            workgroupBarrier();
            for (var i = thread; i < {{ rows * keys }}u; i += THREADS) {
                let line = i / {{ keys }}u;
                scores[line * {{ s_pitch }}u + i % {{ keys }}u] *= factors[line];
            }
            workgroupBarrier();
{% for b in range(bands) %}
{% for j in range(columns) %}
{% if j // (key_share // size) == strip %}
            sum{{ b }}_{{ j }} = coopLoadT<{{ matrix }}<f32, C>>(&scores[to_{{ b }}_{{ j }}], {{ s_pitch }}u);
{% endif %}
{% endfor %}
{% endfor %}
            workgroupBarrier();
{% endfor %}
        }
        for (var i = 0u; i * {{ size }}u < stop; i++) {
{% for b in range(bands) %}
            let at_w{{ b }} = (band_row + {{ b * size }}u) * {{ w_pitch }}u + i * {{ size // unit }}u;
            let w{{ b }} = coopLoadT<{{ matrix }}<f16, A>>(&weights[at_w{{ b }}], {{ w_pitch }}u);
{% endfor %}
{% for j in range(columns) %}
            let at_v{{ j }} = i * {{ size * v_pitch }}u + side * {{ share // unit }}u + {{ j * size // unit }}u;
            let v{{ j }} = coopLoadT<{{ matrix }}<f16, B>>(&stage[at_v{{ j }}], {{ v_pitch }}u);
{% for b in range(bands) %}
            sum{{ b }}_{{ j }} = coopMultiplyAdd(w{{ b }}, v{{ j }}, sum{{ b }}_{{ j }});
{% endfor %}
{% endfor %}
        }
        workgroupBarrier();
    }

    shared_rows[thread] = total;
    workgroupBarrier();
    if part == 0u {
{% for t in range(1, team) %}
        total += shared_rows[thread + {{ t }}u];
{% endfor %}
        factors[row] = total;
    }
{% for strip in range(strips) %}
{% for b in range(bands) %}
{% for j in range(columns) %}
{% if j // (key_share // size) == strip %}
    let out_{{ b }}_{{ j }} = {{ place(b, j) }};
    coopStoreT(sum{{ b }}_{{ j }}, &scores[out_{{ b }}_{{ j }}], {{ s_pitch }}u);
{% endif %}
{% endfor %}
{% endfor %}
    workgroupBarrier();
    for (var i = thread; i < {{ rows * (keys // 4) }}u; i += THREADS) {
        let line = i / {{ keys // 4 }}u;
        let x = i % {{ keys // 4 }}u * 4u;
        let inside = x % {{ key_share }}u + {{ strip * key_share }}u;
        if first + line {{ "<= last" if paged else "< params.queries" }} && inside < {{ share }}u {
            let at = line * {{ s_pitch }}u + x;
            let sum = vec4<f32>(scores[at], scores[at + 1u], scores[at + 2u], scores[at + 3u]);
            let own = factors[line];
{% if paged %}
            y[(row_of(first + line, first_row, head, {{ e }}u) + x / {{ key_share }}u * {{ share }}u + inside) / 4u] = {{ y }}(sum / own);
{% else %}
            let result = select(sum / own, vec4<f32>(params.empty), vec4<bool>(own == 0.0));
            let to = y_base + (first + line) * params.y_steps.z + (x / {{ key_share }}u * {{ share }}u + inside) * {{ "1u" if y_quads else "params.y_steps.w" }};
{% if y_quads %}
            y[to / 4u] = {{ y }}(result);
{% else %}
{% for c in range(4) %}
            y[to + {{ c }}u * params.y_steps.w] = {{ y }}(result[{{ c }}]);
{% endfor %}
{% endif %}
{% endif %}
        }
    }
    workgroupBarrier();
{% endfor %}
}
