// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
};

typedef metal::float4 type_2[1];
typedef metal::half4 type_5[1];
struct Params {
    uint m;
    uint n;
    uint k;
    uint share;
    uint shares;
    uint tiles_m;
    uint tiles_n;
    uint total;
    uint products;
    uint middle;
    uint inner;
    uint a_at;
    uint a_0_;
    uint a_1_;
    uint a_2_;
    uint a_outer;
    uint a_inner;
    uint b_at;
    uint b_0_;
    uint b_1_;
    uint b_2_;
    uint b_outer;
    uint b_inner;
    uint more_at;
    uint more_0_;
    uint more_1_;
    uint more_2_;
    uint more_outer;
    uint more_inner;
    uint bias_step;
    uint out_at;
    float alpha;
    float beta;
    float p;
    float q;
};
struct Starts {
    uint a;
    uint b;
    uint more;
    uint out;
};
struct Work {
    uint row;
    uint column;
    uint k;
    uint k_end;
    uint product;
    uint part;
};
struct type_8 {
    half inner[2560];
};
struct type_9 {
    float inner[256];
};

Starts starts(
    uint product,
    constant Params& params
) {
    uint _e3 = params.inner;
    uint i2_ = product % _e3;
    uint _e7 = params.inner;
    uint rest = product / _e7;
    uint _e11 = params.middle;
    uint i1_ = rest % _e11;
    uint _e15 = params.middle;
    uint i0_ = rest / _e15;
    uint _e19 = params.a_at;
    uint _e22 = params.a_0_;
    uint _e27 = params.a_1_;
    uint _e32 = params.a_2_;
    uint _e37 = params.b_at;
    uint _e40 = params.b_0_;
    uint _e45 = params.b_1_;
    uint _e50 = params.b_2_;
    uint _e55 = params.more_at;
    uint _e58 = params.more_0_;
    uint _e63 = params.more_1_;
    uint _e68 = params.more_2_;
    uint _e73 = params.out_at;
    uint _e76 = params.m;
    uint _e80 = params.n;
    return Starts {((_e19 + (i0_ * _e22)) + (i1_ * _e27)) + (i2_ * _e32), ((_e37 + (i0_ * _e40)) + (i1_ * _e45)) + (i2_ * _e50), ((_e55 + (i0_ * _e58)) + (i1_ * _e63)) + (i2_ * _e68), _e73 + ((product * _e76) * _e80)};
}

metal::half4 load_a(
    uint start,
    uint outer,
    uint k_1,
    device type_2 const& a,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.m;
    uint row_1 = metal::min(outer, _e5 - 1u);
    uint _e12 = params.a_outer;
    metal::float4 _e19 = a[((start + (row_1 * _e12)) + k_1) >> 2u];
    return static_cast<metal::half4>(_e19);
}

metal::half4 load_b(
    uint start_1,
    uint outer_1,
    uint k_2,
    device type_5 const& b,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.n;
    uint columns = metal::min(outer_1, (_e5 - 1u) & 4294967292u);
    uint _e14 = params.b_inner;
    metal::half4 _e21 = b[((start_1 + (k_2 * _e14)) + columns) >> 2u];
    return static_cast<metal::half4>(_e21);
}

metal::float4 activate(
    metal::float4 v
) {
    return v;
}

void put(
    uint part,
    Starts base,
    uint row,
    uint column,
    metal::float4 sums,
    device type_2& out,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local = {};
    metal::float4 v_1 = {};
    uint _e7 = params.m;
    if (!((row >= _e7))) {
        uint _e14 = params.n;
        local = column >= _e14;
    } else {
        local = true;
    }
    bool _e17 = local;
    if (_e17) {
        return;
    }
    float _e20 = params.alpha;
    v_1 = sums * _e20;
    uint _e26 = params.n;
    uint at = (base.out + (row * _e26)) + column;
    metal::float4 _e34 = v_1;
    metal::float4 _e35 = activate(_e34);
    out[at >> 2u] = static_cast<metal::float4>(_e35);
    return;
}

Work work(
    uint id,
    constant Params& params
) {
    uint _e3 = params.tiles_m;
    uint _e6 = params.tiles_n;
    uint tiles = _e3 * _e6;
    uint tile = id % tiles;
    uint rest_1 = id / tiles;
    uint _e12 = params.shares;
    uint share = rest_1 % _e12;
    uint _e16 = params.shares;
    uint product_1 = rest_1 / _e16;
    uint _e21 = params.tiles_n;
    uint in_band = 8u * _e21;
    uint first = (tile / in_band) * 8u;
    uint _e29 = params.tiles_m;
    uint rows = metal::min(8u, _e29 - first);
    uint at_1 = tile % in_band;
    uint _e35 = params.share;
    uint k_3 = share * _e35;
    uint _e46 = params.share;
    uint _e50 = params.k;
    uint _e54 = params.products;
    return Work {(first + (at_1 % rows)) * 32u, (at_1 / rows) * 32u, k_3, metal::min(k_3 + _e46, _e50), product_1, (share * _e54) + product_1};
}
metal::simdgroup_half8x8 NagaCooperativeLoad(const threadgroup half* ptr, int stride, bool is_row_major) {
    metal::simdgroup_half8x8 m;
    simdgroup_load(m, ptr, stride, 0, is_row_major);
    return m;
}

metal::simdgroup_float8x8 NagaCooperativeMultiplyAdd(const thread metal::simdgroup_half8x8& a, const thread metal::simdgroup_half8x8& b, const thread metal::simdgroup_float8x8& c) {
    metal::simdgroup_float8x8 d;
    simdgroup_multiply_accumulate(d,a,b,c);
    return d;
}


struct main_Input {
};
[[max_total_threads_per_threadgroup(128)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint thread_ [[thread_index_in_threadgroup]]
, uint subgroup [[simdgroup_index_in_threadgroup]]
, uint lane [[thread_index_in_simdgroup]]
, uint lanes [[threads_per_simdgroup]]
, device type_2 const& a [[buffer(0)]]
, device type_5 const& b [[buffer(1)]]
, device type_2& out [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, threadgroup type_8& tile_a
, threadgroup type_8& tile_b
, threadgroup type_9& results
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    metal::half4 next_a0_ = metal::half4 {};
    metal::half4 next_a1_ = metal::half4 {};
    metal::half4 next_b0_ = metal::half4 {};
    metal::half4 next_b1_ = metal::half4 {};
    metal::simdgroup_float8x8 sum_0_0_ = {};
    metal::simdgroup_float8x8 sum_0_1_ = {};
    metal::simdgroup_float8x8 sum_1_0_ = {};
    metal::simdgroup_float8x8 sum_1_1_ = {};
    uint k = {};
    uint stage = 0u;
    uint quad_ = {};
    uint quad_1 = {};
    uint quad_2 = {};
    uint quad_3 = {};
    uint id_1 = group.x + (group.y * groups.x);
    uint _e13 = params.total;
    if (id_1 >= _e13) {
        return;
    }
    Work _e15 = work(id_1, params);
    Starts _e17 = starts(_e15.product, params);
    uint team = metal::min(subgroup, 3u);
    uint team_row = (team / 2u) * 16u;
    uint team_column = (team % 2u) * 16u;
    uint a_along = (thread_ % 8u) * 4u;
    uint a_across = thread_ / 8u;
    uint b_along = (thread_ % 8u) * 4u;
    uint b_across = thread_ / 8u;
    k = _e15.k;
    uint _e56 = k;
    if (_e56 < _e15.k_end) {
        uint _e64 = k;
        metal::half4 _e66 = load_a(_e17.a, (_e15.row + a_across) + 0u, _e64 + a_along, a, params, _buffer_sizes);
        next_a0_ = _e66;
        uint _e72 = k;
        metal::half4 _e74 = load_a(_e17.a, (_e15.row + a_across) + 16u, _e72 + a_along, a, params, _buffer_sizes);
        next_a1_ = _e74;
        uint _e78 = k;
        metal::half4 _e82 = load_b(_e17.b, _e15.column + b_along, (_e78 + b_across) + 0u, b, params, _buffer_sizes);
        next_b0_ = _e82;
        uint _e86 = k;
        metal::half4 _e90 = load_b(_e17.b, _e15.column + b_along, (_e86 + b_across) + 16u, b, params, _buffer_sizes);
        next_b1_ = _e90;
    }
    while(true) {
        uint _e91 = k;
        if (_e91 >= _e15.k_end) {
            break;
        }
        uint _e94 = stage;
        uint a_start = _e94 * 1280u;
        uint _e97 = stage;
        uint b_start = _e97 * 1280u;
        {
            uint at_2 = (a_start + ((a_across + 0u) * 40u)) + (a_along / 1u);
            half _e113 = next_a0_.x;
            tile_a.inner[at_2 + 0u] = _e113;
            half _e119 = next_a0_.y;
            tile_a.inner[at_2 + 1u] = _e119;
            half _e125 = next_a0_.z;
            tile_a.inner[at_2 + 2u] = _e125;
            half _e131 = next_a0_.w;
            tile_a.inner[at_2 + 3u] = _e131;
        }
        {
            uint at_3 = (a_start + ((a_across + 16u) * 40u)) + (a_along / 1u);
            half _e145 = next_a1_.x;
            tile_a.inner[at_3 + 0u] = _e145;
            half _e151 = next_a1_.y;
            tile_a.inner[at_3 + 1u] = _e151;
            half _e157 = next_a1_.z;
            tile_a.inner[at_3 + 2u] = _e157;
            half _e163 = next_a1_.w;
            tile_a.inner[at_3 + 3u] = _e163;
        }
        {
            uint at_4 = (b_start + ((b_across + 0u) * 40u)) + (b_along / 1u);
            half _e177 = next_b0_.x;
            tile_b.inner[at_4 + 0u] = _e177;
            half _e183 = next_b0_.y;
            tile_b.inner[at_4 + 1u] = _e183;
            half _e189 = next_b0_.z;
            tile_b.inner[at_4 + 2u] = _e189;
            half _e195 = next_b0_.w;
            tile_b.inner[at_4 + 3u] = _e195;
        }
        {
            uint at_5 = (b_start + ((b_across + 16u) * 40u)) + (b_along / 1u);
            half _e209 = next_b1_.x;
            tile_b.inner[at_5 + 0u] = _e209;
            half _e215 = next_b1_.y;
            tile_b.inner[at_5 + 1u] = _e215;
            half _e221 = next_b1_.z;
            tile_b.inner[at_5 + 2u] = _e221;
            half _e227 = next_b1_.w;
            tile_b.inner[at_5 + 3u] = _e227;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e228 = k;
        k = _e228 + 32u;
        uint _e231 = k;
        if (_e231 < _e15.k_end) {
            uint _e239 = k;
            metal::half4 _e241 = load_a(_e17.a, (_e15.row + a_across) + 0u, _e239 + a_along, a, params, _buffer_sizes);
            next_a0_ = _e241;
            uint _e247 = k;
            metal::half4 _e249 = load_a(_e17.a, (_e15.row + a_across) + 16u, _e247 + a_along, a, params, _buffer_sizes);
            next_a1_ = _e249;
            uint _e253 = k;
            metal::half4 _e257 = load_b(_e17.b, _e15.column + b_along, (_e253 + b_across) + 0u, b, params, _buffer_sizes);
            next_b0_ = _e257;
            uint _e261 = k;
            metal::half4 _e265 = load_b(_e17.b, _e15.column + b_along, (_e261 + b_across) + 16u, b, params, _buffer_sizes);
            next_b1_ = _e265;
        }
        {
            uint at_a0_ = (a_start + ((team_row + 0u) * 40u)) + 0u;
            metal::simdgroup_half8x8 a0_ = NagaCooperativeLoad(&tile_a.inner[at_a0_], 40u, false);
            uint at_a1_ = (a_start + ((team_row + 8u) * 40u)) + 0u;
            metal::simdgroup_half8x8 a1_ = NagaCooperativeLoad(&tile_a.inner[at_a1_], 40u, false);
            uint at_b0_ = (b_start + 0u) + (team_column / 1u);
            metal::simdgroup_half8x8 b0_ = NagaCooperativeLoad(&tile_b.inner[at_b0_], 40u, false);
            metal::simdgroup_float8x8 _e297 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_, b0_, _e297);
            metal::simdgroup_float8x8 _e299 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_, b0_, _e299);
            uint at_b1_ = (b_start + 8u) + (team_column / 1u);
            metal::simdgroup_half8x8 b1_ = NagaCooperativeLoad(&tile_b.inner[at_b1_], 40u, false);
            metal::simdgroup_float8x8 _e310 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_, b1_, _e310);
            metal::simdgroup_float8x8 _e312 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_, b1_, _e312);
        }
        {
            uint at_a0_1 = (a_start + ((team_row + 0u) * 40u)) + 8u;
            metal::simdgroup_half8x8 a0_1 = NagaCooperativeLoad(&tile_a.inner[at_a0_1], 40u, false);
            uint at_a1_1 = (a_start + ((team_row + 8u) * 40u)) + 8u;
            metal::simdgroup_half8x8 a1_1 = NagaCooperativeLoad(&tile_a.inner[at_a1_1], 40u, false);
            uint at_b0_1 = (b_start + 320u) + (team_column / 1u);
            metal::simdgroup_half8x8 b0_1 = NagaCooperativeLoad(&tile_b.inner[at_b0_1], 40u, false);
            metal::simdgroup_float8x8 _e345 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_1, b0_1, _e345);
            metal::simdgroup_float8x8 _e347 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_1, b0_1, _e347);
            uint at_b1_1 = (b_start + 328u) + (team_column / 1u);
            metal::simdgroup_half8x8 b1_1 = NagaCooperativeLoad(&tile_b.inner[at_b1_1], 40u, false);
            metal::simdgroup_float8x8 _e358 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_1, b1_1, _e358);
            metal::simdgroup_float8x8 _e360 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_1, b1_1, _e360);
        }
        {
            uint at_a0_2 = (a_start + ((team_row + 0u) * 40u)) + 16u;
            metal::simdgroup_half8x8 a0_2 = NagaCooperativeLoad(&tile_a.inner[at_a0_2], 40u, false);
            uint at_a1_2 = (a_start + ((team_row + 8u) * 40u)) + 16u;
            metal::simdgroup_half8x8 a1_2 = NagaCooperativeLoad(&tile_a.inner[at_a1_2], 40u, false);
            uint at_b0_2 = (b_start + 640u) + (team_column / 1u);
            metal::simdgroup_half8x8 b0_2 = NagaCooperativeLoad(&tile_b.inner[at_b0_2], 40u, false);
            metal::simdgroup_float8x8 _e393 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_2, b0_2, _e393);
            metal::simdgroup_float8x8 _e395 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_2, b0_2, _e395);
            uint at_b1_2 = (b_start + 648u) + (team_column / 1u);
            metal::simdgroup_half8x8 b1_2 = NagaCooperativeLoad(&tile_b.inner[at_b1_2], 40u, false);
            metal::simdgroup_float8x8 _e406 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_2, b1_2, _e406);
            metal::simdgroup_float8x8 _e408 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_2, b1_2, _e408);
        }
        {
            uint at_a0_3 = (a_start + ((team_row + 0u) * 40u)) + 24u;
            metal::simdgroup_half8x8 a0_3 = NagaCooperativeLoad(&tile_a.inner[at_a0_3], 40u, false);
            uint at_a1_3 = (a_start + ((team_row + 8u) * 40u)) + 24u;
            metal::simdgroup_half8x8 a1_3 = NagaCooperativeLoad(&tile_a.inner[at_a1_3], 40u, false);
            uint at_b0_3 = (b_start + 960u) + (team_column / 1u);
            metal::simdgroup_half8x8 b0_3 = NagaCooperativeLoad(&tile_b.inner[at_b0_3], 40u, false);
            metal::simdgroup_float8x8 _e441 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_3, b0_3, _e441);
            metal::simdgroup_float8x8 _e443 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_3, b0_3, _e443);
            uint at_b1_3 = (b_start + 968u) + (team_column / 1u);
            metal::simdgroup_half8x8 b1_3 = NagaCooperativeLoad(&tile_b.inner[at_b1_3], 40u, false);
            metal::simdgroup_float8x8 _e454 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_3, b1_3, _e454);
            metal::simdgroup_float8x8 _e456 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_3, b1_3, _e456);
        }
        uint _e459 = stage;
        stage = 1u - _e459;
    }
    uint own = team * 64u;
    uint to_0_0_ = own + 0u;
    metal::simdgroup_float8x8 _e465 = sum_0_0_;
    simdgroup_store(_e465, &results.inner[to_0_0_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_ = lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e515 = quad_;
            quad_ = _e515 + lanes;
        }
        loop_init = false;
        uint _e470 = quad_;
        if (_e470 < 16u) {
        } else {
            break;
        }
        {
            uint _e473 = quad_;
            uint at_6 = own + (_e473 * 4u);
            uint _e481 = quad_;
            uint row_2 = ((_e15.row + team_row) + 0u) + (_e481 / 2u);
            uint _e489 = quad_;
            uint column_1 = ((_e15.column + team_column) + 0u) + ((_e489 % 2u) * 4u);
            float _e498 = results.inner[at_6];
            float _e503 = results.inner[at_6 + 1u];
            float _e508 = results.inner[at_6 + 2u];
            float _e513 = results.inner[at_6 + 3u];
            put(_e15.part, _e17, row_2, column_1, metal::float4(_e498, _e503, _e508, _e513), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_0_1_ = own + 0u;
    metal::simdgroup_float8x8 _e519 = sum_0_1_;
    simdgroup_store(_e519, &results.inner[to_0_1_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_1 = lane;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e569 = quad_1;
            quad_1 = _e569 + lanes;
        }
        loop_init_1 = false;
        uint _e524 = quad_1;
        if (_e524 < 16u) {
        } else {
            break;
        }
        {
            uint _e527 = quad_1;
            uint at_7 = own + (_e527 * 4u);
            uint _e535 = quad_1;
            uint row_3 = ((_e15.row + team_row) + 0u) + (_e535 / 2u);
            uint _e543 = quad_1;
            uint column_2 = ((_e15.column + team_column) + 8u) + ((_e543 % 2u) * 4u);
            float _e552 = results.inner[at_7];
            float _e557 = results.inner[at_7 + 1u];
            float _e562 = results.inner[at_7 + 2u];
            float _e567 = results.inner[at_7 + 3u];
            put(_e15.part, _e17, row_3, column_2, metal::float4(_e552, _e557, _e562, _e567), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_0_ = own + 0u;
    metal::simdgroup_float8x8 _e573 = sum_1_0_;
    simdgroup_store(_e573, &results.inner[to_1_0_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_2 = lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e623 = quad_2;
            quad_2 = _e623 + lanes;
        }
        loop_init_2 = false;
        uint _e578 = quad_2;
        if (_e578 < 16u) {
        } else {
            break;
        }
        {
            uint _e581 = quad_2;
            uint at_8 = own + (_e581 * 4u);
            uint _e589 = quad_2;
            uint row_4 = ((_e15.row + team_row) + 8u) + (_e589 / 2u);
            uint _e597 = quad_2;
            uint column_3 = ((_e15.column + team_column) + 0u) + ((_e597 % 2u) * 4u);
            float _e606 = results.inner[at_8];
            float _e611 = results.inner[at_8 + 1u];
            float _e616 = results.inner[at_8 + 2u];
            float _e621 = results.inner[at_8 + 3u];
            put(_e15.part, _e17, row_4, column_3, metal::float4(_e606, _e611, _e616, _e621), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_1_ = own + 0u;
    metal::simdgroup_float8x8 _e627 = sum_1_1_;
    simdgroup_store(_e627, &results.inner[to_1_1_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_3 = lane;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e677 = quad_3;
            quad_3 = _e677 + lanes;
        }
        loop_init_3 = false;
        uint _e632 = quad_3;
        if (_e632 < 16u) {
        } else {
            break;
        }
        {
            uint _e635 = quad_3;
            uint at_9 = own + (_e635 * 4u);
            uint _e643 = quad_3;
            uint row_5 = ((_e15.row + team_row) + 8u) + (_e643 / 2u);
            uint _e651 = quad_3;
            uint column_4 = ((_e15.column + team_column) + 8u) + ((_e651 % 2u) * 4u);
            float _e660 = results.inner[at_9];
            float _e665 = results.inner[at_9 + 1u];
            float _e670 = results.inner[at_9 + 2u];
            float _e675 = results.inner[at_9 + 3u];
            put(_e15.part, _e17, row_5, column_4, metal::float4(_e660, _e665, _e670, _e675), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
