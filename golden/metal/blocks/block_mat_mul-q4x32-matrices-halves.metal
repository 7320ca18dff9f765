// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
    uint size3;
};

typedef metal::float4 type_2[1];
typedef metal::uint4 type_5[1];
typedef uint type_6[1];
typedef float type_7[1];
struct type_8 {
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
    type_8 outputs;
};
struct type_10 {
    half inner[2304];
};
struct type_11 {
    half inner[4608];
};
struct type_12 {
    float inner[256];
};

void store(
    uint which_1,
    uint row,
    uint column,
    float value,
    device type_7& y0_,
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
    threadgroup type_10& tile_x
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
    threadgroup type_11& tile_w
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
    device type_7& y0_,
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
, device type_6 const& factors [[buffer(2)]]
, device type_7& y0_ [[buffer(3)]]
, constant Params& params [[buffer(4)]]
, threadgroup type_10& tile_x
, threadgroup type_11& tile_w
, threadgroup type_12& results
, constant _mslBufferSizes& _buffer_sizes [[buffer(5)]]
) {
    uint which = 0u;
    metal::float4 x0_ = metal::float4 {};
    metal::float4 x1_ = metal::float4 {};
    metal::float4 x2_ = metal::float4 {};
    metal::float4 x3_ = metal::float4 {};
    metal::uint4 q0_ = metal::uint4 {};
    metal::uint2 s0_0_ = metal::uint2 {};
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
    uint _e103 = params.units;
    uint last_base = ((metal::max(_e103, 1u) - 1u) / 2u) * 2u;
    uint _e114 = params.units;
    if (_e114 > 0u) {
        {
            uint row_4 = m0_ + x_row0_;
            uint quad_ = 0u + x_quad0_;
            uint _e123 = params.m;
            metal::float4 _e130 = x[(metal::min(row_4, _e123 - 1u) * x_quads) + quad_];
            x0_ = _e130;
        }
        {
            uint row_5 = m0_ + x_row1_;
            uint quad_1 = 0u + x_quad1_;
            uint _e137 = params.m;
            metal::float4 _e144 = x[(metal::min(row_5, _e137 - 1u) * x_quads) + quad_1];
            x1_ = _e144;
        }
        {
            uint row_6 = m0_ + x_row2_;
            uint quad_2 = 0u + x_quad2_;
            uint _e151 = params.m;
            metal::float4 _e158 = x[(metal::min(row_6, _e151 - 1u) * x_quads) + quad_2];
            x2_ = _e158;
        }
        {
            uint row_7 = m0_ + x_row3_;
            uint quad_3 = 0u + x_quad3_;
            uint _e165 = params.m;
            metal::float4 _e172 = x[(metal::min(row_7, _e165 - 1u) * x_quads) + quad_3];
            x3_ = _e172;
        }
        {
            uint _e179 = params.units;
            uint unit = metal::min(0u + (w_at0_ / 64u), _e179 - 1u);
            uint _e185 = params.units;
            uint w_from = (w_row0_ * _e185) + unit;
            metal::uint4 _e190 = low[w_from];
            q0_ = _e190;
            uint _e193 = params.factor_words;
            uint start = w_row0_ * _e193;
            uint _e200 = factors[start + (unit >> 0u)];
            s0_0_ = metal::uint2(_e200, 0u);
        }
    }
    while(true) {
        uint _e203 = base;
        uint _e206 = params.units;
        if (_e203 >= _e206) {
            break;
        }
        {
            metal::float4 _e210 = x0_;
            put_x(x_row0_, x_quad0_ * 4u, static_cast<metal::float4>(_e210), tile_x);
        }
        {
            metal::float4 _e214 = x1_;
            put_x(x_row1_, x_quad1_ * 4u, static_cast<metal::float4>(_e214), tile_x);
        }
        {
            metal::float4 _e218 = x2_;
            put_x(x_row2_, x_quad2_ * 4u, static_cast<metal::float4>(_e218), tile_x);
        }
        {
            metal::float4 _e222 = x3_;
            put_x(x_row3_, x_quad3_ * 4u, static_cast<metal::float4>(_e222), tile_x);
        }
        {
            uint to = w_at0_ % 64u;
            uint k_2 = (w_at0_ / 64u) * 32u;
            uint _e230 = base;
            uint unit_1 = _e230 + (w_at0_ / 64u);
            uint block0_ = unit_1 >> 0u;
            metal::uint2 _e236 = s0_0_;
            metal::float2 f0_0_ = as_type<metal::float2>(_e236);
            uint _e241 = q0_.x;
            put_w(to, k_2 + 0u, (as_type<metal::float4>(((metal::uint4(_e241) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e276 = q0_.x;
            put_w(to, k_2 + 4u, (as_type<metal::float4>(((metal::uint4(_e276) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * (metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) * f0_0_.x), tile_w);
            uint _e311 = q0_.y;
            put_w(to, k_2 + 8u, (as_type<metal::float4>(((metal::uint4(_e311) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e346 = q0_.y;
            put_w(to, k_2 + 12u, (as_type<metal::float4>(((metal::uint4(_e346) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * (metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) * f0_0_.x), tile_w);
            uint _e381 = q0_.z;
            put_w(to, k_2 + 16u, (as_type<metal::float4>(((metal::uint4(_e381) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e416 = q0_.z;
            put_w(to, k_2 + 20u, (as_type<metal::float4>(((metal::uint4(_e416) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * (metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) * f0_0_.x), tile_w);
            uint _e451 = q0_.w;
            put_w(to, k_2 + 24u, (as_type<metal::float4>(((metal::uint4(_e451) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e486 = q0_.w;
            put_w(to, k_2 + 28u, (as_type<metal::float4>(((metal::uint4(_e486) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * (metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) * f0_0_.x), tile_w);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e518 = base;
        base = _e518 + 2u;
        {
            uint row_8 = m0_ + x_row0_;
            uint _e522 = base;
            uint quad_4 = ((metal::min(_e522, last_base) * 32u) >> 2u) + x_quad0_;
            uint _e532 = params.m;
            metal::float4 _e539 = x[(metal::min(row_8, _e532 - 1u) * x_quads) + quad_4];
            x0_ = _e539;
        }
        {
            uint row_9 = m0_ + x_row1_;
            uint _e541 = base;
            uint quad_5 = ((metal::min(_e541, last_base) * 32u) >> 2u) + x_quad1_;
            uint _e551 = params.m;
            metal::float4 _e558 = x[(metal::min(row_9, _e551 - 1u) * x_quads) + quad_5];
            x1_ = _e558;
        }
        {
            uint row_10 = m0_ + x_row2_;
            uint _e560 = base;
            uint quad_6 = ((metal::min(_e560, last_base) * 32u) >> 2u) + x_quad2_;
            uint _e570 = params.m;
            metal::float4 _e577 = x[(metal::min(row_10, _e570 - 1u) * x_quads) + quad_6];
            x2_ = _e577;
        }
        {
            uint row_11 = m0_ + x_row3_;
            uint _e579 = base;
            uint quad_7 = ((metal::min(_e579, last_base) * 32u) >> 2u) + x_quad3_;
            uint _e589 = params.m;
            metal::float4 _e596 = x[(metal::min(row_11, _e589 - 1u) * x_quads) + quad_7];
            x3_ = _e596;
        }
        {
            uint _e597 = base;
            uint _e604 = params.units;
            uint unit_2 = metal::min(metal::min(_e597, last_base) + (w_at0_ / 64u), _e604 - 1u);
            uint _e610 = params.units;
            uint w_from_1 = (w_row0_ * _e610) + unit_2;
            metal::uint4 _e615 = low[w_from_1];
            q0_ = _e615;
            uint _e618 = params.factor_words;
            uint start_1 = w_row0_ * _e618;
            uint _e625 = factors[start_1 + (unit_2 >> 0u)];
            s0_0_ = metal::uint2(_e625, 0u);
        }
        {
            uint at_x0_ = ((team_row + 0u) * 72u) + 0u;
            metal::simdgroup_half8x8 a0_ = NagaCooperativeLoad(&tile_x.inner[at_x0_], 72u, false);
            uint at_x1_ = ((team_row + 8u) * 72u) + 0u;
            metal::simdgroup_half8x8 a1_ = NagaCooperativeLoad(&tile_x.inner[at_x1_], 72u, false);
            uint at_w0_ = ((team_column + 0u) * 72u) + 0u;
            metal::simdgroup_half8x8 b0_ = NagaCooperativeLoad(&tile_w.inner[at_w0_], 72u, true);
            metal::simdgroup_float8x8 _e658 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_, b0_, _e658);
            metal::simdgroup_float8x8 _e660 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_, b0_, _e660);
            uint at_w1_ = ((team_column + 8u) * 72u) + 0u;
            metal::simdgroup_half8x8 b1_ = NagaCooperativeLoad(&tile_w.inner[at_w1_], 72u, true);
            metal::simdgroup_float8x8 _e672 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_, b1_, _e672);
            metal::simdgroup_float8x8 _e674 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_, b1_, _e674);
            uint at_w2_ = ((team_column + 16u) * 72u) + 0u;
            metal::simdgroup_half8x8 b2_ = NagaCooperativeLoad(&tile_w.inner[at_w2_], 72u, true);
            metal::simdgroup_float8x8 _e686 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_, b2_, _e686);
            metal::simdgroup_float8x8 _e688 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_, b2_, _e688);
            uint at_w3_ = ((team_column + 24u) * 72u) + 0u;
            metal::simdgroup_half8x8 b3_ = NagaCooperativeLoad(&tile_w.inner[at_w3_], 72u, true);
            metal::simdgroup_float8x8 _e700 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_, b3_, _e700);
            metal::simdgroup_float8x8 _e702 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_, b3_, _e702);
        }
        {
            uint at_x0_1 = ((team_row + 0u) * 72u) + 8u;
            metal::simdgroup_half8x8 a0_1 = NagaCooperativeLoad(&tile_x.inner[at_x0_1], 72u, false);
            uint at_x1_1 = ((team_row + 8u) * 72u) + 8u;
            metal::simdgroup_half8x8 a1_1 = NagaCooperativeLoad(&tile_x.inner[at_x1_1], 72u, false);
            uint at_w0_1 = ((team_column + 0u) * 72u) + 8u;
            metal::simdgroup_half8x8 b0_1 = NagaCooperativeLoad(&tile_w.inner[at_w0_1], 72u, true);
            metal::simdgroup_float8x8 _e734 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_1, b0_1, _e734);
            metal::simdgroup_float8x8 _e736 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_1, b0_1, _e736);
            uint at_w1_1 = ((team_column + 8u) * 72u) + 8u;
            metal::simdgroup_half8x8 b1_1 = NagaCooperativeLoad(&tile_w.inner[at_w1_1], 72u, true);
            metal::simdgroup_float8x8 _e748 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_1, b1_1, _e748);
            metal::simdgroup_float8x8 _e750 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_1, b1_1, _e750);
            uint at_w2_1 = ((team_column + 16u) * 72u) + 8u;
            metal::simdgroup_half8x8 b2_1 = NagaCooperativeLoad(&tile_w.inner[at_w2_1], 72u, true);
            metal::simdgroup_float8x8 _e762 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_1, b2_1, _e762);
            metal::simdgroup_float8x8 _e764 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_1, b2_1, _e764);
            uint at_w3_1 = ((team_column + 24u) * 72u) + 8u;
            metal::simdgroup_half8x8 b3_1 = NagaCooperativeLoad(&tile_w.inner[at_w3_1], 72u, true);
            metal::simdgroup_float8x8 _e776 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_1, b3_1, _e776);
            metal::simdgroup_float8x8 _e778 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_1, b3_1, _e778);
        }
        {
            uint at_x0_2 = ((team_row + 0u) * 72u) + 16u;
            metal::simdgroup_half8x8 a0_2 = NagaCooperativeLoad(&tile_x.inner[at_x0_2], 72u, false);
            uint at_x1_2 = ((team_row + 8u) * 72u) + 16u;
            metal::simdgroup_half8x8 a1_2 = NagaCooperativeLoad(&tile_x.inner[at_x1_2], 72u, false);
            uint at_w0_2 = ((team_column + 0u) * 72u) + 16u;
            metal::simdgroup_half8x8 b0_2 = NagaCooperativeLoad(&tile_w.inner[at_w0_2], 72u, true);
            metal::simdgroup_float8x8 _e810 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_2, b0_2, _e810);
            metal::simdgroup_float8x8 _e812 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_2, b0_2, _e812);
            uint at_w1_2 = ((team_column + 8u) * 72u) + 16u;
            metal::simdgroup_half8x8 b1_2 = NagaCooperativeLoad(&tile_w.inner[at_w1_2], 72u, true);
            metal::simdgroup_float8x8 _e824 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_2, b1_2, _e824);
            metal::simdgroup_float8x8 _e826 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_2, b1_2, _e826);
            uint at_w2_2 = ((team_column + 16u) * 72u) + 16u;
            metal::simdgroup_half8x8 b2_2 = NagaCooperativeLoad(&tile_w.inner[at_w2_2], 72u, true);
            metal::simdgroup_float8x8 _e838 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_2, b2_2, _e838);
            metal::simdgroup_float8x8 _e840 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_2, b2_2, _e840);
            uint at_w3_2 = ((team_column + 24u) * 72u) + 16u;
            metal::simdgroup_half8x8 b3_2 = NagaCooperativeLoad(&tile_w.inner[at_w3_2], 72u, true);
            metal::simdgroup_float8x8 _e852 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_2, b3_2, _e852);
            metal::simdgroup_float8x8 _e854 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_2, b3_2, _e854);
        }
        {
            uint at_x0_3 = ((team_row + 0u) * 72u) + 24u;
            metal::simdgroup_half8x8 a0_3 = NagaCooperativeLoad(&tile_x.inner[at_x0_3], 72u, false);
            uint at_x1_3 = ((team_row + 8u) * 72u) + 24u;
            metal::simdgroup_half8x8 a1_3 = NagaCooperativeLoad(&tile_x.inner[at_x1_3], 72u, false);
            uint at_w0_3 = ((team_column + 0u) * 72u) + 24u;
            metal::simdgroup_half8x8 b0_3 = NagaCooperativeLoad(&tile_w.inner[at_w0_3], 72u, true);
            metal::simdgroup_float8x8 _e886 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_3, b0_3, _e886);
            metal::simdgroup_float8x8 _e888 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_3, b0_3, _e888);
            uint at_w1_3 = ((team_column + 8u) * 72u) + 24u;
            metal::simdgroup_half8x8 b1_3 = NagaCooperativeLoad(&tile_w.inner[at_w1_3], 72u, true);
            metal::simdgroup_float8x8 _e900 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_3, b1_3, _e900);
            metal::simdgroup_float8x8 _e902 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_3, b1_3, _e902);
            uint at_w2_3 = ((team_column + 16u) * 72u) + 24u;
            metal::simdgroup_half8x8 b2_3 = NagaCooperativeLoad(&tile_w.inner[at_w2_3], 72u, true);
            metal::simdgroup_float8x8 _e914 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_3, b2_3, _e914);
            metal::simdgroup_float8x8 _e916 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_3, b2_3, _e916);
            uint at_w3_3 = ((team_column + 24u) * 72u) + 24u;
            metal::simdgroup_half8x8 b3_3 = NagaCooperativeLoad(&tile_w.inner[at_w3_3], 72u, true);
            metal::simdgroup_float8x8 _e928 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_3, b3_3, _e928);
            metal::simdgroup_float8x8 _e930 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_3, b3_3, _e930);
        }
        {
            uint at_x0_4 = ((team_row + 0u) * 72u) + 32u;
            metal::simdgroup_half8x8 a0_4 = NagaCooperativeLoad(&tile_x.inner[at_x0_4], 72u, false);
            uint at_x1_4 = ((team_row + 8u) * 72u) + 32u;
            metal::simdgroup_half8x8 a1_4 = NagaCooperativeLoad(&tile_x.inner[at_x1_4], 72u, false);
            uint at_w0_4 = ((team_column + 0u) * 72u) + 32u;
            metal::simdgroup_half8x8 b0_4 = NagaCooperativeLoad(&tile_w.inner[at_w0_4], 72u, true);
            metal::simdgroup_float8x8 _e962 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_4, b0_4, _e962);
            metal::simdgroup_float8x8 _e964 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_4, b0_4, _e964);
            uint at_w1_4 = ((team_column + 8u) * 72u) + 32u;
            metal::simdgroup_half8x8 b1_4 = NagaCooperativeLoad(&tile_w.inner[at_w1_4], 72u, true);
            metal::simdgroup_float8x8 _e976 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_4, b1_4, _e976);
            metal::simdgroup_float8x8 _e978 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_4, b1_4, _e978);
            uint at_w2_4 = ((team_column + 16u) * 72u) + 32u;
            metal::simdgroup_half8x8 b2_4 = NagaCooperativeLoad(&tile_w.inner[at_w2_4], 72u, true);
            metal::simdgroup_float8x8 _e990 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_4, b2_4, _e990);
            metal::simdgroup_float8x8 _e992 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_4, b2_4, _e992);
            uint at_w3_4 = ((team_column + 24u) * 72u) + 32u;
            metal::simdgroup_half8x8 b3_4 = NagaCooperativeLoad(&tile_w.inner[at_w3_4], 72u, true);
            metal::simdgroup_float8x8 _e1004 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_4, b3_4, _e1004);
            metal::simdgroup_float8x8 _e1006 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_4, b3_4, _e1006);
        }
        {
            uint at_x0_5 = ((team_row + 0u) * 72u) + 40u;
            metal::simdgroup_half8x8 a0_5 = NagaCooperativeLoad(&tile_x.inner[at_x0_5], 72u, false);
            uint at_x1_5 = ((team_row + 8u) * 72u) + 40u;
            metal::simdgroup_half8x8 a1_5 = NagaCooperativeLoad(&tile_x.inner[at_x1_5], 72u, false);
            uint at_w0_5 = ((team_column + 0u) * 72u) + 40u;
            metal::simdgroup_half8x8 b0_5 = NagaCooperativeLoad(&tile_w.inner[at_w0_5], 72u, true);
            metal::simdgroup_float8x8 _e1038 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_5, b0_5, _e1038);
            metal::simdgroup_float8x8 _e1040 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_5, b0_5, _e1040);
            uint at_w1_5 = ((team_column + 8u) * 72u) + 40u;
            metal::simdgroup_half8x8 b1_5 = NagaCooperativeLoad(&tile_w.inner[at_w1_5], 72u, true);
            metal::simdgroup_float8x8 _e1052 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_5, b1_5, _e1052);
            metal::simdgroup_float8x8 _e1054 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_5, b1_5, _e1054);
            uint at_w2_5 = ((team_column + 16u) * 72u) + 40u;
            metal::simdgroup_half8x8 b2_5 = NagaCooperativeLoad(&tile_w.inner[at_w2_5], 72u, true);
            metal::simdgroup_float8x8 _e1066 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_5, b2_5, _e1066);
            metal::simdgroup_float8x8 _e1068 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_5, b2_5, _e1068);
            uint at_w3_5 = ((team_column + 24u) * 72u) + 40u;
            metal::simdgroup_half8x8 b3_5 = NagaCooperativeLoad(&tile_w.inner[at_w3_5], 72u, true);
            metal::simdgroup_float8x8 _e1080 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_5, b3_5, _e1080);
            metal::simdgroup_float8x8 _e1082 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_5, b3_5, _e1082);
        }
        {
            uint at_x0_6 = ((team_row + 0u) * 72u) + 48u;
            metal::simdgroup_half8x8 a0_6 = NagaCooperativeLoad(&tile_x.inner[at_x0_6], 72u, false);
            uint at_x1_6 = ((team_row + 8u) * 72u) + 48u;
            metal::simdgroup_half8x8 a1_6 = NagaCooperativeLoad(&tile_x.inner[at_x1_6], 72u, false);
            uint at_w0_6 = ((team_column + 0u) * 72u) + 48u;
            metal::simdgroup_half8x8 b0_6 = NagaCooperativeLoad(&tile_w.inner[at_w0_6], 72u, true);
            metal::simdgroup_float8x8 _e1114 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_6, b0_6, _e1114);
            metal::simdgroup_float8x8 _e1116 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_6, b0_6, _e1116);
            uint at_w1_6 = ((team_column + 8u) * 72u) + 48u;
            metal::simdgroup_half8x8 b1_6 = NagaCooperativeLoad(&tile_w.inner[at_w1_6], 72u, true);
            metal::simdgroup_float8x8 _e1128 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_6, b1_6, _e1128);
            metal::simdgroup_float8x8 _e1130 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_6, b1_6, _e1130);
            uint at_w2_6 = ((team_column + 16u) * 72u) + 48u;
            metal::simdgroup_half8x8 b2_6 = NagaCooperativeLoad(&tile_w.inner[at_w2_6], 72u, true);
            metal::simdgroup_float8x8 _e1142 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_6, b2_6, _e1142);
            metal::simdgroup_float8x8 _e1144 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_6, b2_6, _e1144);
            uint at_w3_6 = ((team_column + 24u) * 72u) + 48u;
            metal::simdgroup_half8x8 b3_6 = NagaCooperativeLoad(&tile_w.inner[at_w3_6], 72u, true);
            metal::simdgroup_float8x8 _e1156 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_6, b3_6, _e1156);
            metal::simdgroup_float8x8 _e1158 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_6, b3_6, _e1158);
        }
        {
            uint at_x0_7 = ((team_row + 0u) * 72u) + 56u;
            metal::simdgroup_half8x8 a0_7 = NagaCooperativeLoad(&tile_x.inner[at_x0_7], 72u, false);
            uint at_x1_7 = ((team_row + 8u) * 72u) + 56u;
            metal::simdgroup_half8x8 a1_7 = NagaCooperativeLoad(&tile_x.inner[at_x1_7], 72u, false);
            uint at_w0_7 = ((team_column + 0u) * 72u) + 56u;
            metal::simdgroup_half8x8 b0_7 = NagaCooperativeLoad(&tile_w.inner[at_w0_7], 72u, true);
            metal::simdgroup_float8x8 _e1190 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_7, b0_7, _e1190);
            metal::simdgroup_float8x8 _e1192 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_7, b0_7, _e1192);
            uint at_w1_7 = ((team_column + 8u) * 72u) + 56u;
            metal::simdgroup_half8x8 b1_7 = NagaCooperativeLoad(&tile_w.inner[at_w1_7], 72u, true);
            metal::simdgroup_float8x8 _e1204 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_7, b1_7, _e1204);
            metal::simdgroup_float8x8 _e1206 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_7, b1_7, _e1206);
            uint at_w2_7 = ((team_column + 16u) * 72u) + 56u;
            metal::simdgroup_half8x8 b2_7 = NagaCooperativeLoad(&tile_w.inner[at_w2_7], 72u, true);
            metal::simdgroup_float8x8 _e1218 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_7, b2_7, _e1218);
            metal::simdgroup_float8x8 _e1220 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_7, b2_7, _e1220);
            uint at_w3_7 = ((team_column + 24u) * 72u) + 56u;
            metal::simdgroup_half8x8 b3_7 = NagaCooperativeLoad(&tile_w.inner[at_w3_7], 72u, true);
            metal::simdgroup_float8x8 _e1232 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_7, b3_7, _e1232);
            metal::simdgroup_float8x8 _e1234 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_7, b3_7, _e1234);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    uint place = team * 64u;
    metal::simdgroup_float8x8 _e1238 = sum_0_0_;
    simdgroup_store(_e1238, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at = lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e1286 = at;
            at = _e1286 + lanes;
        }
        loop_init = false;
        uint _e1243 = at;
        if (_e1243 < 16u) {
        } else {
            break;
        }
        {
            uint _e1246 = at;
            uint cell = place + (_e1246 * 4u);
            uint _e1253 = at;
            uint row_12 = ((m0_ + team_row) + 0u) + (_e1253 / 2u);
            uint _e1260 = at;
            uint column_1 = ((first_1 + team_column) + 0u) + ((_e1260 % 2u) * 4u);
            uint _e1266 = which;
            float _e1269 = results.inner[cell];
            float _e1274 = results.inner[cell + 1u];
            float _e1279 = results.inner[cell + 2u];
            float _e1284 = results.inner[cell + 3u];
            finish(_e1266, own_1, row_12, column_1, metal::float4(_e1269, _e1274, _e1279, _e1284), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1288 = sum_0_1_;
    simdgroup_store(_e1288, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_1 = lane;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e1336 = at_1;
            at_1 = _e1336 + lanes;
        }
        loop_init_1 = false;
        uint _e1293 = at_1;
        if (_e1293 < 16u) {
        } else {
            break;
        }
        {
            uint _e1296 = at_1;
            uint cell_1 = place + (_e1296 * 4u);
            uint _e1303 = at_1;
            uint row_13 = ((m0_ + team_row) + 0u) + (_e1303 / 2u);
            uint _e1310 = at_1;
            uint column_2 = ((first_1 + team_column) + 8u) + ((_e1310 % 2u) * 4u);
            uint _e1316 = which;
            float _e1319 = results.inner[cell_1];
            float _e1324 = results.inner[cell_1 + 1u];
            float _e1329 = results.inner[cell_1 + 2u];
            float _e1334 = results.inner[cell_1 + 3u];
            finish(_e1316, own_1, row_13, column_2, metal::float4(_e1319, _e1324, _e1329, _e1334), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1338 = sum_0_2_;
    simdgroup_store(_e1338, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_2 = lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e1386 = at_2;
            at_2 = _e1386 + lanes;
        }
        loop_init_2 = false;
        uint _e1343 = at_2;
        if (_e1343 < 16u) {
        } else {
            break;
        }
        {
            uint _e1346 = at_2;
            uint cell_2 = place + (_e1346 * 4u);
            uint _e1353 = at_2;
            uint row_14 = ((m0_ + team_row) + 0u) + (_e1353 / 2u);
            uint _e1360 = at_2;
            uint column_3 = ((first_1 + team_column) + 16u) + ((_e1360 % 2u) * 4u);
            uint _e1366 = which;
            float _e1369 = results.inner[cell_2];
            float _e1374 = results.inner[cell_2 + 1u];
            float _e1379 = results.inner[cell_2 + 2u];
            float _e1384 = results.inner[cell_2 + 3u];
            finish(_e1366, own_1, row_14, column_3, metal::float4(_e1369, _e1374, _e1379, _e1384), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1388 = sum_0_3_;
    simdgroup_store(_e1388, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_3 = lane;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e1436 = at_3;
            at_3 = _e1436 + lanes;
        }
        loop_init_3 = false;
        uint _e1393 = at_3;
        if (_e1393 < 16u) {
        } else {
            break;
        }
        {
            uint _e1396 = at_3;
            uint cell_3 = place + (_e1396 * 4u);
            uint _e1403 = at_3;
            uint row_15 = ((m0_ + team_row) + 0u) + (_e1403 / 2u);
            uint _e1410 = at_3;
            uint column_4 = ((first_1 + team_column) + 24u) + ((_e1410 % 2u) * 4u);
            uint _e1416 = which;
            float _e1419 = results.inner[cell_3];
            float _e1424 = results.inner[cell_3 + 1u];
            float _e1429 = results.inner[cell_3 + 2u];
            float _e1434 = results.inner[cell_3 + 3u];
            finish(_e1416, own_1, row_15, column_4, metal::float4(_e1419, _e1424, _e1429, _e1434), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1438 = sum_1_0_;
    simdgroup_store(_e1438, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_4 = lane;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e1486 = at_4;
            at_4 = _e1486 + lanes;
        }
        loop_init_4 = false;
        uint _e1443 = at_4;
        if (_e1443 < 16u) {
        } else {
            break;
        }
        {
            uint _e1446 = at_4;
            uint cell_4 = place + (_e1446 * 4u);
            uint _e1453 = at_4;
            uint row_16 = ((m0_ + team_row) + 8u) + (_e1453 / 2u);
            uint _e1460 = at_4;
            uint column_5 = ((first_1 + team_column) + 0u) + ((_e1460 % 2u) * 4u);
            uint _e1466 = which;
            float _e1469 = results.inner[cell_4];
            float _e1474 = results.inner[cell_4 + 1u];
            float _e1479 = results.inner[cell_4 + 2u];
            float _e1484 = results.inner[cell_4 + 3u];
            finish(_e1466, own_1, row_16, column_5, metal::float4(_e1469, _e1474, _e1479, _e1484), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1488 = sum_1_1_;
    simdgroup_store(_e1488, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_5 = lane;
    bool loop_init_5 = true;
    while(true) {
        if (!loop_init_5) {
            uint _e1536 = at_5;
            at_5 = _e1536 + lanes;
        }
        loop_init_5 = false;
        uint _e1493 = at_5;
        if (_e1493 < 16u) {
        } else {
            break;
        }
        {
            uint _e1496 = at_5;
            uint cell_5 = place + (_e1496 * 4u);
            uint _e1503 = at_5;
            uint row_17 = ((m0_ + team_row) + 8u) + (_e1503 / 2u);
            uint _e1510 = at_5;
            uint column_6 = ((first_1 + team_column) + 8u) + ((_e1510 % 2u) * 4u);
            uint _e1516 = which;
            float _e1519 = results.inner[cell_5];
            float _e1524 = results.inner[cell_5 + 1u];
            float _e1529 = results.inner[cell_5 + 2u];
            float _e1534 = results.inner[cell_5 + 3u];
            finish(_e1516, own_1, row_17, column_6, metal::float4(_e1519, _e1524, _e1529, _e1534), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1538 = sum_1_2_;
    simdgroup_store(_e1538, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_6 = lane;
    bool loop_init_6 = true;
    while(true) {
        if (!loop_init_6) {
            uint _e1586 = at_6;
            at_6 = _e1586 + lanes;
        }
        loop_init_6 = false;
        uint _e1543 = at_6;
        if (_e1543 < 16u) {
        } else {
            break;
        }
        {
            uint _e1546 = at_6;
            uint cell_6 = place + (_e1546 * 4u);
            uint _e1553 = at_6;
            uint row_18 = ((m0_ + team_row) + 8u) + (_e1553 / 2u);
            uint _e1560 = at_6;
            uint column_7 = ((first_1 + team_column) + 16u) + ((_e1560 % 2u) * 4u);
            uint _e1566 = which;
            float _e1569 = results.inner[cell_6];
            float _e1574 = results.inner[cell_6 + 1u];
            float _e1579 = results.inner[cell_6 + 2u];
            float _e1584 = results.inner[cell_6 + 3u];
            finish(_e1566, own_1, row_18, column_7, metal::float4(_e1569, _e1574, _e1579, _e1584), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1588 = sum_1_3_;
    simdgroup_store(_e1588, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_7 = lane;
    bool loop_init_7 = true;
    while(true) {
        if (!loop_init_7) {
            uint _e1636 = at_7;
            at_7 = _e1636 + lanes;
        }
        loop_init_7 = false;
        uint _e1593 = at_7;
        if (_e1593 < 16u) {
        } else {
            break;
        }
        {
            uint _e1596 = at_7;
            uint cell_7 = place + (_e1596 * 4u);
            uint _e1603 = at_7;
            uint row_19 = ((m0_ + team_row) + 8u) + (_e1603 / 2u);
            uint _e1610 = at_7;
            uint column_8 = ((first_1 + team_column) + 24u) + ((_e1610 % 2u) * 4u);
            uint _e1616 = which;
            float _e1619 = results.inner[cell_7];
            float _e1624 = results.inner[cell_7 + 1u];
            float _e1629 = results.inner[cell_7 + 2u];
            float _e1634 = results.inner[cell_7 + 3u];
            finish(_e1616, own_1, row_19, column_8, metal::float4(_e1619, _e1624, _e1629, _e1634), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
