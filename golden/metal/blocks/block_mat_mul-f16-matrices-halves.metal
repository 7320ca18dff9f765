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
typedef metal::uint4 type_5[1];
typedef float type_6[1];
struct type_7 {
    metal::uint4 inner[4];
};
struct Params {
    uint units;
    uint columns;
    uint m;
    uint factor_words;
    uint wholes;
    uint end;
    uint cuts;
    uint part;
    metal::uint4 widths;
    type_7 outputs;
};
struct type_9 {
    half inner[2304];
};
struct type_10 {
    half inner[4608];
};
struct type_11 {
    float inner[256];
};

void store(
    uint which_1,
    uint row,
    uint column,
    float value,
    device type_6& y0_,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e7 = params.widths[which_1];
    uint at_8 = (row * _e7) + column;
    {
        y0_[at_8] = static_cast<float>(value);
        return;
    }
}

void put_x(
    uint row_1,
    uint k,
    metal::float4 numbers,
    threadgroup type_9& tile_x
) {
    metal::half4 v = static_cast<metal::half4>(metal::clamp(numbers, metal::float4(-65504.0), metal::float4(65504.0)));
    uint at_9 = (row_1 * 72u) + ((k >> 2u) * 4u);
    tile_x.inner[at_9 + 0u] = v.x;
    tile_x.inner[at_9 + 1u] = v.y;
    tile_x.inner[at_9 + 2u] = v.z;
    tile_x.inner[at_9 + 3u] = v.w;
    return;
}

void put_w(
    uint row_2,
    uint k_1,
    metal::float4 numbers_1,
    threadgroup type_10& tile_w
) {
    metal::half4 v_1 = static_cast<metal::half4>(metal::clamp(numbers_1, metal::float4(-65504.0), metal::float4(65504.0)));
    uint at_10 = (row_2 * 72u) + ((k_1 >> 2u) * 4u);
    tile_w.inner[at_10 + 0u] = v_1.x;
    tile_w.inner[at_10 + 1u] = v_1.y;
    tile_w.inner[at_10 + 2u] = v_1.z;
    tile_w.inner[at_10 + 3u] = v_1.w;
    return;
}

void finish(
    uint which_2,
    metal::uint4 own,
    uint row_3,
    uint first,
    metal::float4 sums,
    device type_6& y0_,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e7 = params.m;
    if (row_3 >= _e7) {
        return;
    }
    if ((first + 0u) < own.y) {
        store(which_2, row_3, (own.w + first) + 0u, sums.x, y0_, params, _buffer_sizes);
    }
    if ((first + 1u) < own.y) {
        store(which_2, row_3, (own.w + first) + 1u, sums.y, y0_, params, _buffer_sizes);
    }
    if ((first + 2u) < own.y) {
        store(which_2, row_3, (own.w + first) + 2u, sums.z, y0_, params, _buffer_sizes);
    }
    if ((first + 3u) < own.y) {
        store(which_2, row_3, (own.w + first) + 3u, sums.w, y0_, params, _buffer_sizes);
        return;
    } else {
        return;
    }
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
, uint local [[thread_index_in_threadgroup]]
, uint subgroup [[simdgroup_index_in_threadgroup]]
, uint lane [[thread_index_in_simdgroup]]
, uint lanes [[threads_per_simdgroup]]
, device type_2 const& x [[buffer(0)]]
, device type_5 const& low [[buffer(1)]]
, device type_6& y0_ [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, threadgroup type_9& tile_x
, threadgroup type_10& tile_w
, threadgroup type_11& results
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    uint which = 0u;
    metal::float4 x0_ = metal::float4 {};
    metal::float4 x1_ = metal::float4 {};
    metal::float4 x2_ = metal::float4 {};
    metal::float4 x3_ = metal::float4 {};
    metal::uint4 q0_ = metal::uint4 {};
    metal::uint4 q1_ = metal::uint4 {};
    metal::uint4 q2_ = metal::uint4 {};
    metal::uint4 q3_ = metal::uint4 {};
    metal::simdgroup_float8x8 sum_0_0_ = {};
    metal::simdgroup_float8x8 sum_0_1_ = {};
    metal::simdgroup_float8x8 sum_0_2_ = {};
    metal::simdgroup_float8x8 sum_0_3_ = {};
    metal::simdgroup_float8x8 sum_1_0_ = {};
    metal::simdgroup_float8x8 sum_1_1_ = {};
    metal::simdgroup_float8x8 sum_1_2_ = {};
    metal::simdgroup_float8x8 sum_1_3_ = {};
    uint base = 0u;
    uint at = {};
    uint at_1 = {};
    uint at_2 = {};
    uint at_3 = {};
    uint at_4 = {};
    uint at_5 = {};
    uint at_6 = {};
    uint at_7 = {};
    uint number = group.x + (group.y * groups.x);
    uint _e13 = params.end;
    if (number >= _e13) {
        return;
    }
    uint _e19 = which;
    metal::uint4 own_1 = params.outputs.inner[_e19];
    uint first_1 = (number - own_1.x) * 64u;
    uint last = own_1.y - 1u;
    uint m0_ = group.z * 32u;
    uint _e34 = params.columns;
    uint x_quads = _e34 >> 2u;
    uint w_at0_ = local + 0u;
    uint w_row0_ = own_1.z + metal::min(first_1 + (w_at0_ % 64u), last);
    uint w_at1_ = local + 128u;
    uint w_row1_ = own_1.z + metal::min(first_1 + (w_at1_ % 64u), last);
    uint w_at2_ = local + 256u;
    uint w_row2_ = own_1.z + metal::min(first_1 + (w_at2_ % 64u), last);
    uint w_at3_ = local + 384u;
    uint w_row3_ = own_1.z + metal::min(first_1 + (w_at3_ % 64u), last);
    uint x_at0_ = local + 0u;
    uint x_row0_ = x_at0_ / 16u;
    uint x_quad0_ = x_at0_ % 16u;
    uint x_at1_ = local + 128u;
    uint x_row1_ = x_at1_ / 16u;
    uint x_quad1_ = x_at1_ % 16u;
    uint x_at2_ = local + 256u;
    uint x_row2_ = x_at2_ / 16u;
    uint x_quad2_ = x_at2_ % 16u;
    uint x_at3_ = local + 384u;
    uint x_row3_ = x_at3_ / 16u;
    uint x_quad3_ = x_at3_ % 16u;
    uint team = metal::min(subgroup, 3u);
    uint team_row = (team / 2u) * 16u;
    uint team_column = (team % 2u) * 32u;
    uint _e131 = params.units;
    uint last_base = ((metal::max(_e131, 1u) - 1u) / 8u) * 8u;
    uint _e142 = params.units;
    if (_e142 > 0u) {
        {
            uint row_4 = m0_ + x_row0_;
            uint quad_ = 0u + x_quad0_;
            uint _e151 = params.m;
            metal::float4 _e158 = x[(metal::min(row_4, _e151 - 1u) * x_quads) + quad_];
            x0_ = _e158;
        }
        {
            uint row_5 = m0_ + x_row1_;
            uint quad_1 = 0u + x_quad1_;
            uint _e165 = params.m;
            metal::float4 _e172 = x[(metal::min(row_5, _e165 - 1u) * x_quads) + quad_1];
            x1_ = _e172;
        }
        {
            uint row_6 = m0_ + x_row2_;
            uint quad_2 = 0u + x_quad2_;
            uint _e179 = params.m;
            metal::float4 _e186 = x[(metal::min(row_6, _e179 - 1u) * x_quads) + quad_2];
            x2_ = _e186;
        }
        {
            uint row_7 = m0_ + x_row3_;
            uint quad_3 = 0u + x_quad3_;
            uint _e193 = params.m;
            metal::float4 _e200 = x[(metal::min(row_7, _e193 - 1u) * x_quads) + quad_3];
            x3_ = _e200;
        }
        {
            uint _e207 = params.units;
            uint unit = metal::min(0u + (w_at0_ / 64u), _e207 - 1u);
            uint _e213 = params.units;
            uint w_from = (w_row0_ * _e213) + unit;
            metal::uint4 _e218 = low[w_from];
            q0_ = _e218;
        }
        {
            uint _e225 = params.units;
            uint unit_1 = metal::min(0u + (w_at1_ / 64u), _e225 - 1u);
            uint _e231 = params.units;
            uint w_from_1 = (w_row1_ * _e231) + unit_1;
            metal::uint4 _e236 = low[w_from_1];
            q1_ = _e236;
        }
        {
            uint _e243 = params.units;
            uint unit_2 = metal::min(0u + (w_at2_ / 64u), _e243 - 1u);
            uint _e249 = params.units;
            uint w_from_2 = (w_row2_ * _e249) + unit_2;
            metal::uint4 _e254 = low[w_from_2];
            q2_ = _e254;
        }
        {
            uint _e261 = params.units;
            uint unit_3 = metal::min(0u + (w_at3_ / 64u), _e261 - 1u);
            uint _e267 = params.units;
            uint w_from_3 = (w_row3_ * _e267) + unit_3;
            metal::uint4 _e272 = low[w_from_3];
            q3_ = _e272;
        }
    }
    while(true) {
        uint _e273 = base;
        uint _e276 = params.units;
        if (_e273 >= _e276) {
            break;
        }
        {
            metal::float4 _e280 = x0_;
            put_x(x_row0_, x_quad0_ * 4u, static_cast<metal::float4>(_e280), tile_x);
        }
        {
            metal::float4 _e284 = x1_;
            put_x(x_row1_, x_quad1_ * 4u, static_cast<metal::float4>(_e284), tile_x);
        }
        {
            metal::float4 _e288 = x2_;
            put_x(x_row2_, x_quad2_ * 4u, static_cast<metal::float4>(_e288), tile_x);
        }
        {
            metal::float4 _e292 = x3_;
            put_x(x_row3_, x_quad3_ * 4u, static_cast<metal::float4>(_e292), tile_x);
        }
        {
            uint to = w_at0_ % 64u;
            uint k_2 = (w_at0_ / 64u) * 8u;
            uint _e300 = base;
            uint unit_4 = _e300 + (w_at0_ / 64u);
            uint _e307 = q0_.x;
            uint _e310 = q0_.y;
            put_w(to, k_2 + 0u, metal::float4(float2(as_type<half2>(_e307)), float2(as_type<half2>(_e310))), tile_w);
            uint _e316 = q0_.z;
            uint _e319 = q0_.w;
            put_w(to, k_2 + 4u, metal::float4(float2(as_type<half2>(_e316)), float2(as_type<half2>(_e319))), tile_w);
        }
        {
            uint to_1 = w_at1_ % 64u;
            uint k_3 = (w_at1_ / 64u) * 8u;
            uint _e328 = base;
            uint unit_5 = _e328 + (w_at1_ / 64u);
            uint _e335 = q1_.x;
            uint _e338 = q1_.y;
            put_w(to_1, k_3 + 0u, metal::float4(float2(as_type<half2>(_e335)), float2(as_type<half2>(_e338))), tile_w);
            uint _e344 = q1_.z;
            uint _e347 = q1_.w;
            put_w(to_1, k_3 + 4u, metal::float4(float2(as_type<half2>(_e344)), float2(as_type<half2>(_e347))), tile_w);
        }
        {
            uint to_2 = w_at2_ % 64u;
            uint k_4 = (w_at2_ / 64u) * 8u;
            uint _e356 = base;
            uint unit_6 = _e356 + (w_at2_ / 64u);
            uint _e363 = q2_.x;
            uint _e366 = q2_.y;
            put_w(to_2, k_4 + 0u, metal::float4(float2(as_type<half2>(_e363)), float2(as_type<half2>(_e366))), tile_w);
            uint _e372 = q2_.z;
            uint _e375 = q2_.w;
            put_w(to_2, k_4 + 4u, metal::float4(float2(as_type<half2>(_e372)), float2(as_type<half2>(_e375))), tile_w);
        }
        {
            uint to_3 = w_at3_ % 64u;
            uint k_5 = (w_at3_ / 64u) * 8u;
            uint _e384 = base;
            uint unit_7 = _e384 + (w_at3_ / 64u);
            uint _e391 = q3_.x;
            uint _e394 = q3_.y;
            put_w(to_3, k_5 + 0u, metal::float4(float2(as_type<half2>(_e391)), float2(as_type<half2>(_e394))), tile_w);
            uint _e400 = q3_.z;
            uint _e403 = q3_.w;
            put_w(to_3, k_5 + 4u, metal::float4(float2(as_type<half2>(_e400)), float2(as_type<half2>(_e403))), tile_w);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e406 = base;
        base = _e406 + 8u;
        {
            uint row_8 = m0_ + x_row0_;
            uint _e410 = base;
            uint quad_4 = ((metal::min(_e410, last_base) * 8u) >> 2u) + x_quad0_;
            uint _e420 = params.m;
            metal::float4 _e427 = x[(metal::min(row_8, _e420 - 1u) * x_quads) + quad_4];
            x0_ = _e427;
        }
        {
            uint row_9 = m0_ + x_row1_;
            uint _e429 = base;
            uint quad_5 = ((metal::min(_e429, last_base) * 8u) >> 2u) + x_quad1_;
            uint _e439 = params.m;
            metal::float4 _e446 = x[(metal::min(row_9, _e439 - 1u) * x_quads) + quad_5];
            x1_ = _e446;
        }
        {
            uint row_10 = m0_ + x_row2_;
            uint _e448 = base;
            uint quad_6 = ((metal::min(_e448, last_base) * 8u) >> 2u) + x_quad2_;
            uint _e458 = params.m;
            metal::float4 _e465 = x[(metal::min(row_10, _e458 - 1u) * x_quads) + quad_6];
            x2_ = _e465;
        }
        {
            uint row_11 = m0_ + x_row3_;
            uint _e467 = base;
            uint quad_7 = ((metal::min(_e467, last_base) * 8u) >> 2u) + x_quad3_;
            uint _e477 = params.m;
            metal::float4 _e484 = x[(metal::min(row_11, _e477 - 1u) * x_quads) + quad_7];
            x3_ = _e484;
        }
        {
            uint _e485 = base;
            uint _e492 = params.units;
            uint unit_8 = metal::min(metal::min(_e485, last_base) + (w_at0_ / 64u), _e492 - 1u);
            uint _e498 = params.units;
            uint w_from_4 = (w_row0_ * _e498) + unit_8;
            metal::uint4 _e503 = low[w_from_4];
            q0_ = _e503;
        }
        {
            uint _e504 = base;
            uint _e511 = params.units;
            uint unit_9 = metal::min(metal::min(_e504, last_base) + (w_at1_ / 64u), _e511 - 1u);
            uint _e517 = params.units;
            uint w_from_5 = (w_row1_ * _e517) + unit_9;
            metal::uint4 _e522 = low[w_from_5];
            q1_ = _e522;
        }
        {
            uint _e523 = base;
            uint _e530 = params.units;
            uint unit_10 = metal::min(metal::min(_e523, last_base) + (w_at2_ / 64u), _e530 - 1u);
            uint _e536 = params.units;
            uint w_from_6 = (w_row2_ * _e536) + unit_10;
            metal::uint4 _e541 = low[w_from_6];
            q2_ = _e541;
        }
        {
            uint _e542 = base;
            uint _e549 = params.units;
            uint unit_11 = metal::min(metal::min(_e542, last_base) + (w_at3_ / 64u), _e549 - 1u);
            uint _e555 = params.units;
            uint w_from_7 = (w_row3_ * _e555) + unit_11;
            metal::uint4 _e560 = low[w_from_7];
            q3_ = _e560;
        }
        {
            uint at_x0_ = ((team_row + 0u) * 72u) + 0u;
            metal::simdgroup_half8x8 a0_ = NagaCooperativeLoad(&tile_x.inner[at_x0_], 72u, false);
            uint at_x1_ = ((team_row + 8u) * 72u) + 0u;
            metal::simdgroup_half8x8 a1_ = NagaCooperativeLoad(&tile_x.inner[at_x1_], 72u, false);
            uint at_w0_ = ((team_column + 0u) * 72u) + 0u;
            metal::simdgroup_half8x8 b0_ = NagaCooperativeLoad(&tile_w.inner[at_w0_], 72u, true);
            metal::simdgroup_float8x8 _e591 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_, b0_, _e591);
            metal::simdgroup_float8x8 _e593 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_, b0_, _e593);
            uint at_w1_ = ((team_column + 8u) * 72u) + 0u;
            metal::simdgroup_half8x8 b1_ = NagaCooperativeLoad(&tile_w.inner[at_w1_], 72u, true);
            metal::simdgroup_float8x8 _e605 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_, b1_, _e605);
            metal::simdgroup_float8x8 _e607 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_, b1_, _e607);
            uint at_w2_ = ((team_column + 16u) * 72u) + 0u;
            metal::simdgroup_half8x8 b2_ = NagaCooperativeLoad(&tile_w.inner[at_w2_], 72u, true);
            metal::simdgroup_float8x8 _e619 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_, b2_, _e619);
            metal::simdgroup_float8x8 _e621 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_, b2_, _e621);
            uint at_w3_ = ((team_column + 24u) * 72u) + 0u;
            metal::simdgroup_half8x8 b3_ = NagaCooperativeLoad(&tile_w.inner[at_w3_], 72u, true);
            metal::simdgroup_float8x8 _e633 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_, b3_, _e633);
            metal::simdgroup_float8x8 _e635 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_, b3_, _e635);
        }
        {
            uint at_x0_1 = ((team_row + 0u) * 72u) + 8u;
            metal::simdgroup_half8x8 a0_1 = NagaCooperativeLoad(&tile_x.inner[at_x0_1], 72u, false);
            uint at_x1_1 = ((team_row + 8u) * 72u) + 8u;
            metal::simdgroup_half8x8 a1_1 = NagaCooperativeLoad(&tile_x.inner[at_x1_1], 72u, false);
            uint at_w0_1 = ((team_column + 0u) * 72u) + 8u;
            metal::simdgroup_half8x8 b0_1 = NagaCooperativeLoad(&tile_w.inner[at_w0_1], 72u, true);
            metal::simdgroup_float8x8 _e667 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_1, b0_1, _e667);
            metal::simdgroup_float8x8 _e669 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_1, b0_1, _e669);
            uint at_w1_1 = ((team_column + 8u) * 72u) + 8u;
            metal::simdgroup_half8x8 b1_1 = NagaCooperativeLoad(&tile_w.inner[at_w1_1], 72u, true);
            metal::simdgroup_float8x8 _e681 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_1, b1_1, _e681);
            metal::simdgroup_float8x8 _e683 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_1, b1_1, _e683);
            uint at_w2_1 = ((team_column + 16u) * 72u) + 8u;
            metal::simdgroup_half8x8 b2_1 = NagaCooperativeLoad(&tile_w.inner[at_w2_1], 72u, true);
            metal::simdgroup_float8x8 _e695 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_1, b2_1, _e695);
            metal::simdgroup_float8x8 _e697 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_1, b2_1, _e697);
            uint at_w3_1 = ((team_column + 24u) * 72u) + 8u;
            metal::simdgroup_half8x8 b3_1 = NagaCooperativeLoad(&tile_w.inner[at_w3_1], 72u, true);
            metal::simdgroup_float8x8 _e709 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_1, b3_1, _e709);
            metal::simdgroup_float8x8 _e711 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_1, b3_1, _e711);
        }
        {
            uint at_x0_2 = ((team_row + 0u) * 72u) + 16u;
            metal::simdgroup_half8x8 a0_2 = NagaCooperativeLoad(&tile_x.inner[at_x0_2], 72u, false);
            uint at_x1_2 = ((team_row + 8u) * 72u) + 16u;
            metal::simdgroup_half8x8 a1_2 = NagaCooperativeLoad(&tile_x.inner[at_x1_2], 72u, false);
            uint at_w0_2 = ((team_column + 0u) * 72u) + 16u;
            metal::simdgroup_half8x8 b0_2 = NagaCooperativeLoad(&tile_w.inner[at_w0_2], 72u, true);
            metal::simdgroup_float8x8 _e743 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_2, b0_2, _e743);
            metal::simdgroup_float8x8 _e745 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_2, b0_2, _e745);
            uint at_w1_2 = ((team_column + 8u) * 72u) + 16u;
            metal::simdgroup_half8x8 b1_2 = NagaCooperativeLoad(&tile_w.inner[at_w1_2], 72u, true);
            metal::simdgroup_float8x8 _e757 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_2, b1_2, _e757);
            metal::simdgroup_float8x8 _e759 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_2, b1_2, _e759);
            uint at_w2_2 = ((team_column + 16u) * 72u) + 16u;
            metal::simdgroup_half8x8 b2_2 = NagaCooperativeLoad(&tile_w.inner[at_w2_2], 72u, true);
            metal::simdgroup_float8x8 _e771 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_2, b2_2, _e771);
            metal::simdgroup_float8x8 _e773 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_2, b2_2, _e773);
            uint at_w3_2 = ((team_column + 24u) * 72u) + 16u;
            metal::simdgroup_half8x8 b3_2 = NagaCooperativeLoad(&tile_w.inner[at_w3_2], 72u, true);
            metal::simdgroup_float8x8 _e785 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_2, b3_2, _e785);
            metal::simdgroup_float8x8 _e787 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_2, b3_2, _e787);
        }
        {
            uint at_x0_3 = ((team_row + 0u) * 72u) + 24u;
            metal::simdgroup_half8x8 a0_3 = NagaCooperativeLoad(&tile_x.inner[at_x0_3], 72u, false);
            uint at_x1_3 = ((team_row + 8u) * 72u) + 24u;
            metal::simdgroup_half8x8 a1_3 = NagaCooperativeLoad(&tile_x.inner[at_x1_3], 72u, false);
            uint at_w0_3 = ((team_column + 0u) * 72u) + 24u;
            metal::simdgroup_half8x8 b0_3 = NagaCooperativeLoad(&tile_w.inner[at_w0_3], 72u, true);
            metal::simdgroup_float8x8 _e819 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_3, b0_3, _e819);
            metal::simdgroup_float8x8 _e821 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_3, b0_3, _e821);
            uint at_w1_3 = ((team_column + 8u) * 72u) + 24u;
            metal::simdgroup_half8x8 b1_3 = NagaCooperativeLoad(&tile_w.inner[at_w1_3], 72u, true);
            metal::simdgroup_float8x8 _e833 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_3, b1_3, _e833);
            metal::simdgroup_float8x8 _e835 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_3, b1_3, _e835);
            uint at_w2_3 = ((team_column + 16u) * 72u) + 24u;
            metal::simdgroup_half8x8 b2_3 = NagaCooperativeLoad(&tile_w.inner[at_w2_3], 72u, true);
            metal::simdgroup_float8x8 _e847 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_3, b2_3, _e847);
            metal::simdgroup_float8x8 _e849 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_3, b2_3, _e849);
            uint at_w3_3 = ((team_column + 24u) * 72u) + 24u;
            metal::simdgroup_half8x8 b3_3 = NagaCooperativeLoad(&tile_w.inner[at_w3_3], 72u, true);
            metal::simdgroup_float8x8 _e861 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_3, b3_3, _e861);
            metal::simdgroup_float8x8 _e863 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_3, b3_3, _e863);
        }
        {
            uint at_x0_4 = ((team_row + 0u) * 72u) + 32u;
            metal::simdgroup_half8x8 a0_4 = NagaCooperativeLoad(&tile_x.inner[at_x0_4], 72u, false);
            uint at_x1_4 = ((team_row + 8u) * 72u) + 32u;
            metal::simdgroup_half8x8 a1_4 = NagaCooperativeLoad(&tile_x.inner[at_x1_4], 72u, false);
            uint at_w0_4 = ((team_column + 0u) * 72u) + 32u;
            metal::simdgroup_half8x8 b0_4 = NagaCooperativeLoad(&tile_w.inner[at_w0_4], 72u, true);
            metal::simdgroup_float8x8 _e895 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_4, b0_4, _e895);
            metal::simdgroup_float8x8 _e897 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_4, b0_4, _e897);
            uint at_w1_4 = ((team_column + 8u) * 72u) + 32u;
            metal::simdgroup_half8x8 b1_4 = NagaCooperativeLoad(&tile_w.inner[at_w1_4], 72u, true);
            metal::simdgroup_float8x8 _e909 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_4, b1_4, _e909);
            metal::simdgroup_float8x8 _e911 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_4, b1_4, _e911);
            uint at_w2_4 = ((team_column + 16u) * 72u) + 32u;
            metal::simdgroup_half8x8 b2_4 = NagaCooperativeLoad(&tile_w.inner[at_w2_4], 72u, true);
            metal::simdgroup_float8x8 _e923 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_4, b2_4, _e923);
            metal::simdgroup_float8x8 _e925 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_4, b2_4, _e925);
            uint at_w3_4 = ((team_column + 24u) * 72u) + 32u;
            metal::simdgroup_half8x8 b3_4 = NagaCooperativeLoad(&tile_w.inner[at_w3_4], 72u, true);
            metal::simdgroup_float8x8 _e937 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_4, b3_4, _e937);
            metal::simdgroup_float8x8 _e939 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_4, b3_4, _e939);
        }
        {
            uint at_x0_5 = ((team_row + 0u) * 72u) + 40u;
            metal::simdgroup_half8x8 a0_5 = NagaCooperativeLoad(&tile_x.inner[at_x0_5], 72u, false);
            uint at_x1_5 = ((team_row + 8u) * 72u) + 40u;
            metal::simdgroup_half8x8 a1_5 = NagaCooperativeLoad(&tile_x.inner[at_x1_5], 72u, false);
            uint at_w0_5 = ((team_column + 0u) * 72u) + 40u;
            metal::simdgroup_half8x8 b0_5 = NagaCooperativeLoad(&tile_w.inner[at_w0_5], 72u, true);
            metal::simdgroup_float8x8 _e971 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_5, b0_5, _e971);
            metal::simdgroup_float8x8 _e973 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_5, b0_5, _e973);
            uint at_w1_5 = ((team_column + 8u) * 72u) + 40u;
            metal::simdgroup_half8x8 b1_5 = NagaCooperativeLoad(&tile_w.inner[at_w1_5], 72u, true);
            metal::simdgroup_float8x8 _e985 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_5, b1_5, _e985);
            metal::simdgroup_float8x8 _e987 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_5, b1_5, _e987);
            uint at_w2_5 = ((team_column + 16u) * 72u) + 40u;
            metal::simdgroup_half8x8 b2_5 = NagaCooperativeLoad(&tile_w.inner[at_w2_5], 72u, true);
            metal::simdgroup_float8x8 _e999 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_5, b2_5, _e999);
            metal::simdgroup_float8x8 _e1001 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_5, b2_5, _e1001);
            uint at_w3_5 = ((team_column + 24u) * 72u) + 40u;
            metal::simdgroup_half8x8 b3_5 = NagaCooperativeLoad(&tile_w.inner[at_w3_5], 72u, true);
            metal::simdgroup_float8x8 _e1013 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_5, b3_5, _e1013);
            metal::simdgroup_float8x8 _e1015 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_5, b3_5, _e1015);
        }
        {
            uint at_x0_6 = ((team_row + 0u) * 72u) + 48u;
            metal::simdgroup_half8x8 a0_6 = NagaCooperativeLoad(&tile_x.inner[at_x0_6], 72u, false);
            uint at_x1_6 = ((team_row + 8u) * 72u) + 48u;
            metal::simdgroup_half8x8 a1_6 = NagaCooperativeLoad(&tile_x.inner[at_x1_6], 72u, false);
            uint at_w0_6 = ((team_column + 0u) * 72u) + 48u;
            metal::simdgroup_half8x8 b0_6 = NagaCooperativeLoad(&tile_w.inner[at_w0_6], 72u, true);
            metal::simdgroup_float8x8 _e1047 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_6, b0_6, _e1047);
            metal::simdgroup_float8x8 _e1049 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_6, b0_6, _e1049);
            uint at_w1_6 = ((team_column + 8u) * 72u) + 48u;
            metal::simdgroup_half8x8 b1_6 = NagaCooperativeLoad(&tile_w.inner[at_w1_6], 72u, true);
            metal::simdgroup_float8x8 _e1061 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_6, b1_6, _e1061);
            metal::simdgroup_float8x8 _e1063 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_6, b1_6, _e1063);
            uint at_w2_6 = ((team_column + 16u) * 72u) + 48u;
            metal::simdgroup_half8x8 b2_6 = NagaCooperativeLoad(&tile_w.inner[at_w2_6], 72u, true);
            metal::simdgroup_float8x8 _e1075 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_6, b2_6, _e1075);
            metal::simdgroup_float8x8 _e1077 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_6, b2_6, _e1077);
            uint at_w3_6 = ((team_column + 24u) * 72u) + 48u;
            metal::simdgroup_half8x8 b3_6 = NagaCooperativeLoad(&tile_w.inner[at_w3_6], 72u, true);
            metal::simdgroup_float8x8 _e1089 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_6, b3_6, _e1089);
            metal::simdgroup_float8x8 _e1091 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_6, b3_6, _e1091);
        }
        {
            uint at_x0_7 = ((team_row + 0u) * 72u) + 56u;
            metal::simdgroup_half8x8 a0_7 = NagaCooperativeLoad(&tile_x.inner[at_x0_7], 72u, false);
            uint at_x1_7 = ((team_row + 8u) * 72u) + 56u;
            metal::simdgroup_half8x8 a1_7 = NagaCooperativeLoad(&tile_x.inner[at_x1_7], 72u, false);
            uint at_w0_7 = ((team_column + 0u) * 72u) + 56u;
            metal::simdgroup_half8x8 b0_7 = NagaCooperativeLoad(&tile_w.inner[at_w0_7], 72u, true);
            metal::simdgroup_float8x8 _e1123 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_7, b0_7, _e1123);
            metal::simdgroup_float8x8 _e1125 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_7, b0_7, _e1125);
            uint at_w1_7 = ((team_column + 8u) * 72u) + 56u;
            metal::simdgroup_half8x8 b1_7 = NagaCooperativeLoad(&tile_w.inner[at_w1_7], 72u, true);
            metal::simdgroup_float8x8 _e1137 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_7, b1_7, _e1137);
            metal::simdgroup_float8x8 _e1139 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_7, b1_7, _e1139);
            uint at_w2_7 = ((team_column + 16u) * 72u) + 56u;
            metal::simdgroup_half8x8 b2_7 = NagaCooperativeLoad(&tile_w.inner[at_w2_7], 72u, true);
            metal::simdgroup_float8x8 _e1151 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_7, b2_7, _e1151);
            metal::simdgroup_float8x8 _e1153 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_7, b2_7, _e1153);
            uint at_w3_7 = ((team_column + 24u) * 72u) + 56u;
            metal::simdgroup_half8x8 b3_7 = NagaCooperativeLoad(&tile_w.inner[at_w3_7], 72u, true);
            metal::simdgroup_float8x8 _e1165 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_7, b3_7, _e1165);
            metal::simdgroup_float8x8 _e1167 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_7, b3_7, _e1167);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    uint place = team * 64u;
    metal::simdgroup_float8x8 _e1171 = sum_0_0_;
    simdgroup_store(_e1171, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at = lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e1219 = at;
            at = _e1219 + lanes;
        }
        loop_init = false;
        uint _e1176 = at;
        if (_e1176 < 16u) {
        } else {
            break;
        }
        {
            uint _e1179 = at;
            uint cell = place + (_e1179 * 4u);
            uint _e1186 = at;
            uint row_12 = ((m0_ + team_row) + 0u) + (_e1186 / 2u);
            uint _e1193 = at;
            uint column_1 = ((first_1 + team_column) + 0u) + ((_e1193 % 2u) * 4u);
            uint _e1199 = which;
            float _e1202 = results.inner[cell];
            float _e1207 = results.inner[cell + 1u];
            float _e1212 = results.inner[cell + 2u];
            float _e1217 = results.inner[cell + 3u];
            finish(_e1199, own_1, row_12, column_1, metal::float4(_e1202, _e1207, _e1212, _e1217), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1221 = sum_0_1_;
    simdgroup_store(_e1221, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_1 = lane;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e1269 = at_1;
            at_1 = _e1269 + lanes;
        }
        loop_init_1 = false;
        uint _e1226 = at_1;
        if (_e1226 < 16u) {
        } else {
            break;
        }
        {
            uint _e1229 = at_1;
            uint cell_1 = place + (_e1229 * 4u);
            uint _e1236 = at_1;
            uint row_13 = ((m0_ + team_row) + 0u) + (_e1236 / 2u);
            uint _e1243 = at_1;
            uint column_2 = ((first_1 + team_column) + 8u) + ((_e1243 % 2u) * 4u);
            uint _e1249 = which;
            float _e1252 = results.inner[cell_1];
            float _e1257 = results.inner[cell_1 + 1u];
            float _e1262 = results.inner[cell_1 + 2u];
            float _e1267 = results.inner[cell_1 + 3u];
            finish(_e1249, own_1, row_13, column_2, metal::float4(_e1252, _e1257, _e1262, _e1267), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1271 = sum_0_2_;
    simdgroup_store(_e1271, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_2 = lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e1319 = at_2;
            at_2 = _e1319 + lanes;
        }
        loop_init_2 = false;
        uint _e1276 = at_2;
        if (_e1276 < 16u) {
        } else {
            break;
        }
        {
            uint _e1279 = at_2;
            uint cell_2 = place + (_e1279 * 4u);
            uint _e1286 = at_2;
            uint row_14 = ((m0_ + team_row) + 0u) + (_e1286 / 2u);
            uint _e1293 = at_2;
            uint column_3 = ((first_1 + team_column) + 16u) + ((_e1293 % 2u) * 4u);
            uint _e1299 = which;
            float _e1302 = results.inner[cell_2];
            float _e1307 = results.inner[cell_2 + 1u];
            float _e1312 = results.inner[cell_2 + 2u];
            float _e1317 = results.inner[cell_2 + 3u];
            finish(_e1299, own_1, row_14, column_3, metal::float4(_e1302, _e1307, _e1312, _e1317), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1321 = sum_0_3_;
    simdgroup_store(_e1321, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_3 = lane;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e1369 = at_3;
            at_3 = _e1369 + lanes;
        }
        loop_init_3 = false;
        uint _e1326 = at_3;
        if (_e1326 < 16u) {
        } else {
            break;
        }
        {
            uint _e1329 = at_3;
            uint cell_3 = place + (_e1329 * 4u);
            uint _e1336 = at_3;
            uint row_15 = ((m0_ + team_row) + 0u) + (_e1336 / 2u);
            uint _e1343 = at_3;
            uint column_4 = ((first_1 + team_column) + 24u) + ((_e1343 % 2u) * 4u);
            uint _e1349 = which;
            float _e1352 = results.inner[cell_3];
            float _e1357 = results.inner[cell_3 + 1u];
            float _e1362 = results.inner[cell_3 + 2u];
            float _e1367 = results.inner[cell_3 + 3u];
            finish(_e1349, own_1, row_15, column_4, metal::float4(_e1352, _e1357, _e1362, _e1367), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1371 = sum_1_0_;
    simdgroup_store(_e1371, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_4 = lane;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e1419 = at_4;
            at_4 = _e1419 + lanes;
        }
        loop_init_4 = false;
        uint _e1376 = at_4;
        if (_e1376 < 16u) {
        } else {
            break;
        }
        {
            uint _e1379 = at_4;
            uint cell_4 = place + (_e1379 * 4u);
            uint _e1386 = at_4;
            uint row_16 = ((m0_ + team_row) + 8u) + (_e1386 / 2u);
            uint _e1393 = at_4;
            uint column_5 = ((first_1 + team_column) + 0u) + ((_e1393 % 2u) * 4u);
            uint _e1399 = which;
            float _e1402 = results.inner[cell_4];
            float _e1407 = results.inner[cell_4 + 1u];
            float _e1412 = results.inner[cell_4 + 2u];
            float _e1417 = results.inner[cell_4 + 3u];
            finish(_e1399, own_1, row_16, column_5, metal::float4(_e1402, _e1407, _e1412, _e1417), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1421 = sum_1_1_;
    simdgroup_store(_e1421, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_5 = lane;
    bool loop_init_5 = true;
    while(true) {
        if (!loop_init_5) {
            uint _e1469 = at_5;
            at_5 = _e1469 + lanes;
        }
        loop_init_5 = false;
        uint _e1426 = at_5;
        if (_e1426 < 16u) {
        } else {
            break;
        }
        {
            uint _e1429 = at_5;
            uint cell_5 = place + (_e1429 * 4u);
            uint _e1436 = at_5;
            uint row_17 = ((m0_ + team_row) + 8u) + (_e1436 / 2u);
            uint _e1443 = at_5;
            uint column_6 = ((first_1 + team_column) + 8u) + ((_e1443 % 2u) * 4u);
            uint _e1449 = which;
            float _e1452 = results.inner[cell_5];
            float _e1457 = results.inner[cell_5 + 1u];
            float _e1462 = results.inner[cell_5 + 2u];
            float _e1467 = results.inner[cell_5 + 3u];
            finish(_e1449, own_1, row_17, column_6, metal::float4(_e1452, _e1457, _e1462, _e1467), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1471 = sum_1_2_;
    simdgroup_store(_e1471, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_6 = lane;
    bool loop_init_6 = true;
    while(true) {
        if (!loop_init_6) {
            uint _e1519 = at_6;
            at_6 = _e1519 + lanes;
        }
        loop_init_6 = false;
        uint _e1476 = at_6;
        if (_e1476 < 16u) {
        } else {
            break;
        }
        {
            uint _e1479 = at_6;
            uint cell_6 = place + (_e1479 * 4u);
            uint _e1486 = at_6;
            uint row_18 = ((m0_ + team_row) + 8u) + (_e1486 / 2u);
            uint _e1493 = at_6;
            uint column_7 = ((first_1 + team_column) + 16u) + ((_e1493 % 2u) * 4u);
            uint _e1499 = which;
            float _e1502 = results.inner[cell_6];
            float _e1507 = results.inner[cell_6 + 1u];
            float _e1512 = results.inner[cell_6 + 2u];
            float _e1517 = results.inner[cell_6 + 3u];
            finish(_e1499, own_1, row_18, column_7, metal::float4(_e1502, _e1507, _e1512, _e1517), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1521 = sum_1_3_;
    simdgroup_store(_e1521, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_7 = lane;
    bool loop_init_7 = true;
    while(true) {
        if (!loop_init_7) {
            uint _e1569 = at_7;
            at_7 = _e1569 + lanes;
        }
        loop_init_7 = false;
        uint _e1526 = at_7;
        if (_e1526 < 16u) {
        } else {
            break;
        }
        {
            uint _e1529 = at_7;
            uint cell_7 = place + (_e1529 * 4u);
            uint _e1536 = at_7;
            uint row_19 = ((m0_ + team_row) + 8u) + (_e1536 / 2u);
            uint _e1543 = at_7;
            uint column_8 = ((first_1 + team_column) + 24u) + ((_e1543 % 2u) * 4u);
            uint _e1549 = which;
            float _e1552 = results.inner[cell_7];
            float _e1557 = results.inner[cell_7 + 1u];
            float _e1562 = results.inner[cell_7 + 2u];
            float _e1567 = results.inner[cell_7 + 3u];
            finish(_e1549, own_1, row_19, column_8, metal::float4(_e1552, _e1557, _e1562, _e1567), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
