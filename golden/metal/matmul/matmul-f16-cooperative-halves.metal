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
    uint k,
    device type_2 const& a,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.m;
    uint row_1 = metal::min(outer, _e5 - 1u);
    uint _e12 = params.a_outer;
    metal::float4 _e19 = a[((start + (row_1 * _e12)) + k) >> 2u];
    return static_cast<metal::half4>(_e19);
}

metal::half4 load_b(
    uint start_1,
    uint outer_1,
    uint k_1,
    device type_5 const& b,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.n;
    uint columns = metal::min(outer_1, (_e5 - 1u) & 4294967292u);
    uint _e14 = params.b_inner;
    metal::half4 _e21 = b[((start_1 + (k_1 * _e14)) + columns) >> 2u];
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
    uint k_2 = share * _e35;
    uint _e46 = params.share;
    uint _e50 = params.k;
    uint _e54 = params.products;
    return Work {(first + (at_1 % rows)) * 32u, (at_1 / rows) * 32u, k_2, metal::min(k_2 + _e46, _e50), product_1, (share * _e54) + product_1};
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
    metal::half4 next_a0_0_ = metal::half4 {};
    metal::half4 next_a1_0_ = metal::half4 {};
    metal::half4 next_b0_0_ = metal::half4 {};
    metal::half4 next_b1_0_ = metal::half4 {};
    metal::simdgroup_float8x8 sum_0_0_ = {};
    metal::simdgroup_float8x8 sum_0_1_ = {};
    metal::simdgroup_float8x8 sum_1_0_ = {};
    metal::simdgroup_float8x8 sum_1_1_ = {};
    uint stage = 0u;
    uint number = 0u;
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
    uint count = ((metal::max(_e15.k_end, _e15.k) - _e15.k) + 31u) / 32u;
    uint a_along0_ = ((thread_ + 0u) % 8u) * 4u;
    uint a_line0_ = (thread_ + 0u) / 8u;
    uint a_across0_ = ((a_line0_ & 4294967288u) | ((a_line0_ & 1u) << 2u)) | ((a_line0_ >> 1u) & 3u);
    uint a_along1_ = ((thread_ + 128u) % 8u) * 4u;
    uint a_line1_ = (thread_ + 128u) / 8u;
    uint a_across1_ = ((a_line1_ & 4294967288u) | ((a_line1_ & 1u) << 2u)) | ((a_line1_ >> 1u) & 3u);
    uint b_along0_ = ((thread_ + 0u) % 8u) * 4u;
    uint b_across0_ = (thread_ + 0u) / 8u;
    uint b_along1_ = ((thread_ + 128u) % 8u) * 4u;
    uint b_across1_ = (thread_ + 128u) / 8u;
    if (count > 0u) {
        {
            uint k_3 = metal::min(0u, count - 1u) * 32u;
            metal::half4 _e129 = load_a(_e17.a, _e15.row + a_across0_, (_e15.k + k_3) + a_along0_, a, params, _buffer_sizes);
            next_a0_0_ = _e129;
            metal::half4 _e136 = load_a(_e17.a, _e15.row + a_across1_, (_e15.k + k_3) + a_along1_, a, params, _buffer_sizes);
            next_a1_0_ = _e136;
            metal::half4 _e143 = load_b(_e17.b, _e15.column + b_along0_, (_e15.k + k_3) + b_across0_, b, params, _buffer_sizes);
            next_b0_0_ = _e143;
            metal::half4 _e150 = load_b(_e17.b, _e15.column + b_along1_, (_e15.k + k_3) + b_across1_, b, params, _buffer_sizes);
            next_b1_0_ = _e150;
        }
    }
    while(true) {
        uint _e153 = number;
        if (_e153 >= count) {
            break;
        }
        {
            uint _e155 = stage;
            uint a_start = _e155 * 1280u;
            uint _e158 = stage;
            uint b_start = _e158 * 1280u;
            {
                uint at_2 = (a_start + (a_across0_ * 40u)) + (a_along0_ / 1u);
                half _e172 = next_a0_0_.x;
                tile_a.inner[at_2 + 0u] = _e172;
                half _e178 = next_a0_0_.y;
                tile_a.inner[at_2 + 1u] = _e178;
                half _e184 = next_a0_0_.z;
                tile_a.inner[at_2 + 2u] = _e184;
                half _e190 = next_a0_0_.w;
                tile_a.inner[at_2 + 3u] = _e190;
            }
            {
                uint at_3 = (a_start + (a_across1_ * 40u)) + (a_along1_ / 1u);
                half _e202 = next_a1_0_.x;
                tile_a.inner[at_3 + 0u] = _e202;
                half _e208 = next_a1_0_.y;
                tile_a.inner[at_3 + 1u] = _e208;
                half _e214 = next_a1_0_.z;
                tile_a.inner[at_3 + 2u] = _e214;
                half _e220 = next_a1_0_.w;
                tile_a.inner[at_3 + 3u] = _e220;
            }
            {
                uint at_4 = (b_start + (b_across0_ * 40u)) + (b_along0_ / 1u);
                half _e232 = next_b0_0_.x;
                tile_b.inner[at_4 + 0u] = _e232;
                half _e238 = next_b0_0_.y;
                tile_b.inner[at_4 + 1u] = _e238;
                half _e244 = next_b0_0_.z;
                tile_b.inner[at_4 + 2u] = _e244;
                half _e250 = next_b0_0_.w;
                tile_b.inner[at_4 + 3u] = _e250;
            }
            {
                uint at_5 = (b_start + (b_across1_ * 40u)) + (b_along1_ / 1u);
                half _e262 = next_b1_0_.x;
                tile_b.inner[at_5 + 0u] = _e262;
                half _e268 = next_b1_0_.y;
                tile_b.inner[at_5 + 1u] = _e268;
                half _e274 = next_b1_0_.z;
                tile_b.inner[at_5 + 2u] = _e274;
                half _e280 = next_b1_0_.w;
                tile_b.inner[at_5 + 3u] = _e280;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e281 = number;
            number = _e281 + 1u;
            {
                uint _e284 = number;
                uint k_4 = metal::min(_e284 + 0u, count - 1u) * 32u;
                metal::half4 _e298 = load_a(_e17.a, _e15.row + a_across0_, (_e15.k + k_4) + a_along0_, a, params, _buffer_sizes);
                next_a0_0_ = _e298;
                metal::half4 _e305 = load_a(_e17.a, _e15.row + a_across1_, (_e15.k + k_4) + a_along1_, a, params, _buffer_sizes);
                next_a1_0_ = _e305;
                metal::half4 _e312 = load_b(_e17.b, _e15.column + b_along0_, (_e15.k + k_4) + b_across0_, b, params, _buffer_sizes);
                next_b0_0_ = _e312;
                metal::half4 _e319 = load_b(_e17.b, _e15.column + b_along1_, (_e15.k + k_4) + b_across1_, b, params, _buffer_sizes);
                next_b1_0_ = _e319;
            }
            {
                uint at_a0_ = (a_start + ((team_row + 0u) * 40u)) + 0u;
                metal::simdgroup_half8x8 a0_ = NagaCooperativeLoad(&tile_a.inner[at_a0_], 40u, false);
                uint at_a1_ = (a_start + ((team_row + 8u) * 40u)) + 0u;
                metal::simdgroup_half8x8 a1_ = NagaCooperativeLoad(&tile_a.inner[at_a1_], 40u, false);
                uint at_b0_ = (b_start + 0u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_ = NagaCooperativeLoad(&tile_b.inner[at_b0_], 40u, false);
                metal::simdgroup_float8x8 _e351 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_, b0_, _e351);
                metal::simdgroup_float8x8 _e353 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_, b0_, _e353);
                uint at_b1_ = (b_start + 8u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_ = NagaCooperativeLoad(&tile_b.inner[at_b1_], 40u, false);
                metal::simdgroup_float8x8 _e364 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_, b1_, _e364);
                metal::simdgroup_float8x8 _e366 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_, b1_, _e366);
            }
            {
                uint at_a0_1 = (a_start + ((team_row + 0u) * 40u)) + 8u;
                metal::simdgroup_half8x8 a0_1 = NagaCooperativeLoad(&tile_a.inner[at_a0_1], 40u, false);
                uint at_a1_1 = (a_start + ((team_row + 8u) * 40u)) + 8u;
                metal::simdgroup_half8x8 a1_1 = NagaCooperativeLoad(&tile_a.inner[at_a1_1], 40u, false);
                uint at_b0_1 = (b_start + 320u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_1 = NagaCooperativeLoad(&tile_b.inner[at_b0_1], 40u, false);
                metal::simdgroup_float8x8 _e399 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_1, b0_1, _e399);
                metal::simdgroup_float8x8 _e401 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_1, b0_1, _e401);
                uint at_b1_1 = (b_start + 328u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_1 = NagaCooperativeLoad(&tile_b.inner[at_b1_1], 40u, false);
                metal::simdgroup_float8x8 _e412 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_1, b1_1, _e412);
                metal::simdgroup_float8x8 _e414 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_1, b1_1, _e414);
            }
            {
                uint at_a0_2 = (a_start + ((team_row + 0u) * 40u)) + 16u;
                metal::simdgroup_half8x8 a0_2 = NagaCooperativeLoad(&tile_a.inner[at_a0_2], 40u, false);
                uint at_a1_2 = (a_start + ((team_row + 8u) * 40u)) + 16u;
                metal::simdgroup_half8x8 a1_2 = NagaCooperativeLoad(&tile_a.inner[at_a1_2], 40u, false);
                uint at_b0_2 = (b_start + 640u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_2 = NagaCooperativeLoad(&tile_b.inner[at_b0_2], 40u, false);
                metal::simdgroup_float8x8 _e447 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_2, b0_2, _e447);
                metal::simdgroup_float8x8 _e449 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_2, b0_2, _e449);
                uint at_b1_2 = (b_start + 648u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_2 = NagaCooperativeLoad(&tile_b.inner[at_b1_2], 40u, false);
                metal::simdgroup_float8x8 _e460 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_2, b1_2, _e460);
                metal::simdgroup_float8x8 _e462 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_2, b1_2, _e462);
            }
            {
                uint at_a0_3 = (a_start + ((team_row + 0u) * 40u)) + 24u;
                metal::simdgroup_half8x8 a0_3 = NagaCooperativeLoad(&tile_a.inner[at_a0_3], 40u, false);
                uint at_a1_3 = (a_start + ((team_row + 8u) * 40u)) + 24u;
                metal::simdgroup_half8x8 a1_3 = NagaCooperativeLoad(&tile_a.inner[at_a1_3], 40u, false);
                uint at_b0_3 = (b_start + 960u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_3 = NagaCooperativeLoad(&tile_b.inner[at_b0_3], 40u, false);
                metal::simdgroup_float8x8 _e495 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_3, b0_3, _e495);
                metal::simdgroup_float8x8 _e497 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_3, b0_3, _e497);
                uint at_b1_3 = (b_start + 968u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_3 = NagaCooperativeLoad(&tile_b.inner[at_b1_3], 40u, false);
                metal::simdgroup_float8x8 _e508 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_3, b1_3, _e508);
                metal::simdgroup_float8x8 _e510 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_3, b1_3, _e510);
            }
            uint _e513 = stage;
            stage = 1u - _e513;
        }
    }
    uint own = team * 64u;
    uint to_0_0_ = own + 0u;
    metal::simdgroup_float8x8 _e519 = sum_0_0_;
    simdgroup_store(_e519, &results.inner[to_0_0_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_ = lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e569 = quad_;
            quad_ = _e569 + lanes;
        }
        loop_init = false;
        uint _e524 = quad_;
        if (_e524 < 16u) {
        } else {
            break;
        }
        {
            uint _e527 = quad_;
            uint at_6 = own + (_e527 * 4u);
            uint _e535 = quad_;
            uint row_2 = ((_e15.row + team_row) + 0u) + (_e535 / 2u);
            uint _e543 = quad_;
            uint column_1 = ((_e15.column + team_column) + 0u) + ((_e543 % 2u) * 4u);
            float _e552 = results.inner[at_6];
            float _e557 = results.inner[at_6 + 1u];
            float _e562 = results.inner[at_6 + 2u];
            float _e567 = results.inner[at_6 + 3u];
            put(_e15.part, _e17, row_2, column_1, metal::float4(_e552, _e557, _e562, _e567), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_0_1_ = own + 0u;
    metal::simdgroup_float8x8 _e573 = sum_0_1_;
    simdgroup_store(_e573, &results.inner[to_0_1_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_1 = lane;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e623 = quad_1;
            quad_1 = _e623 + lanes;
        }
        loop_init_1 = false;
        uint _e578 = quad_1;
        if (_e578 < 16u) {
        } else {
            break;
        }
        {
            uint _e581 = quad_1;
            uint at_7 = own + (_e581 * 4u);
            uint _e589 = quad_1;
            uint row_3 = ((_e15.row + team_row) + 0u) + (_e589 / 2u);
            uint _e597 = quad_1;
            uint column_2 = ((_e15.column + team_column) + 8u) + ((_e597 % 2u) * 4u);
            float _e606 = results.inner[at_7];
            float _e611 = results.inner[at_7 + 1u];
            float _e616 = results.inner[at_7 + 2u];
            float _e621 = results.inner[at_7 + 3u];
            put(_e15.part, _e17, row_3, column_2, metal::float4(_e606, _e611, _e616, _e621), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_0_ = own + 0u;
    metal::simdgroup_float8x8 _e627 = sum_1_0_;
    simdgroup_store(_e627, &results.inner[to_1_0_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_2 = lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e677 = quad_2;
            quad_2 = _e677 + lanes;
        }
        loop_init_2 = false;
        uint _e632 = quad_2;
        if (_e632 < 16u) {
        } else {
            break;
        }
        {
            uint _e635 = quad_2;
            uint at_8 = own + (_e635 * 4u);
            uint _e643 = quad_2;
            uint row_4 = ((_e15.row + team_row) + 8u) + (_e643 / 2u);
            uint _e651 = quad_2;
            uint column_3 = ((_e15.column + team_column) + 0u) + ((_e651 % 2u) * 4u);
            float _e660 = results.inner[at_8];
            float _e665 = results.inner[at_8 + 1u];
            float _e670 = results.inner[at_8 + 2u];
            float _e675 = results.inner[at_8 + 3u];
            put(_e15.part, _e17, row_4, column_3, metal::float4(_e660, _e665, _e670, _e675), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_1_ = own + 0u;
    metal::simdgroup_float8x8 _e681 = sum_1_1_;
    simdgroup_store(_e681, &results.inner[to_1_1_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_3 = lane;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e731 = quad_3;
            quad_3 = _e731 + lanes;
        }
        loop_init_3 = false;
        uint _e686 = quad_3;
        if (_e686 < 16u) {
        } else {
            break;
        }
        {
            uint _e689 = quad_3;
            uint at_9 = own + (_e689 * 4u);
            uint _e697 = quad_3;
            uint row_5 = ((_e15.row + team_row) + 8u) + (_e697 / 2u);
            uint _e705 = quad_3;
            uint column_4 = ((_e15.column + team_column) + 8u) + ((_e705 % 2u) * 4u);
            float _e714 = results.inner[at_9];
            float _e719 = results.inner[at_9 + 1u];
            float _e724 = results.inner[at_9 + 2u];
            float _e729 = results.inner[at_9 + 3u];
            put(_e15.part, _e17, row_5, column_4, metal::float4(_e714, _e719, _e724, _e729), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
