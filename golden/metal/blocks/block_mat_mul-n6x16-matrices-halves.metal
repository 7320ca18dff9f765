// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
    uint size3;
    uint size4;
};

typedef metal::float4 type_2[1];
typedef metal::uint4 type_5[1];
typedef metal::uint2 type_7[1];
typedef uint type_8[1];
typedef float type_9[1];
struct type_10 {
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
    type_10 outputs;
};
struct type_12 {
    half inner[2304];
};
struct type_13 {
    half inner[4608];
};
struct type_14 {
    float inner[256];
};

void store(
    uint which_1,
    uint row,
    uint column,
    float value,
    device type_9& y0_,
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
    threadgroup type_12& tile_x
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
    threadgroup type_13& tile_w
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
    device type_9& y0_,
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
, device type_7 const& high [[buffer(2)]]
, device type_8 const& factors [[buffer(3)]]
, device type_9& y0_ [[buffer(4)]]
, constant Params& params [[buffer(5)]]
, threadgroup type_12& tile_x
, threadgroup type_13& tile_w
, threadgroup type_14& results
, constant _mslBufferSizes& _buffer_sizes [[buffer(6)]]
) {
    uint which = 0u;
    metal::float4 x0_ = metal::float4 {};
    metal::float4 x1_ = metal::float4 {};
    metal::float4 x2_ = metal::float4 {};
    metal::float4 x3_ = metal::float4 {};
    metal::uint4 q0_ = metal::uint4 {};
    metal::uint2 h0_ = metal::uint2 {};
    metal::uint2 s0_0_ = metal::uint2 {};
    metal::uint2 s0_1_ = metal::uint2 {};
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
    uint _e107 = params.units;
    uint last_base = ((metal::max(_e107, 1u) - 1u) / 2u) * 2u;
    uint _e118 = params.units;
    if (_e118 > 0u) {
        {
            uint row_4 = m0_ + x_row0_;
            uint quad_ = 0u + x_quad0_;
            uint _e127 = params.m;
            metal::float4 _e134 = x[(metal::min(row_4, _e127 - 1u) * x_quads) + quad_];
            x0_ = _e134;
        }
        {
            uint row_5 = m0_ + x_row1_;
            uint quad_1 = 0u + x_quad1_;
            uint _e141 = params.m;
            metal::float4 _e148 = x[(metal::min(row_5, _e141 - 1u) * x_quads) + quad_1];
            x1_ = _e148;
        }
        {
            uint row_6 = m0_ + x_row2_;
            uint quad_2 = 0u + x_quad2_;
            uint _e155 = params.m;
            metal::float4 _e162 = x[(metal::min(row_6, _e155 - 1u) * x_quads) + quad_2];
            x2_ = _e162;
        }
        {
            uint row_7 = m0_ + x_row3_;
            uint quad_3 = 0u + x_quad3_;
            uint _e169 = params.m;
            metal::float4 _e176 = x[(metal::min(row_7, _e169 - 1u) * x_quads) + quad_3];
            x3_ = _e176;
        }
        {
            uint _e183 = params.units;
            uint unit = metal::min(0u + (w_at0_ / 64u), _e183 - 1u);
            uint _e189 = params.units;
            uint w_from = (w_row0_ * _e189) + unit;
            metal::uint4 _e194 = low[w_from];
            q0_ = _e194;
            metal::uint2 _e197 = high[w_from];
            h0_ = _e197;
            uint _e200 = params.factor_words;
            uint start = w_row0_ * _e200;
            uint _e211 = factors[start + (((unit * 2u) + 0u) >> 2u)];
            uint _e215 = params.wholes;
            uint _e225 = factors[(start + _e215) + (((unit * 2u) + 0u) >> 5u)];
            s0_0_ = metal::uint2(_e211, _e225);
            uint _e236 = factors[start + (((unit * 2u) + 1u) >> 2u)];
            uint _e240 = params.wholes;
            uint _e250 = factors[(start + _e240) + (((unit * 2u) + 1u) >> 5u)];
            s0_1_ = metal::uint2(_e236, _e250);
        }
    }
    while(true) {
        uint _e252 = base;
        uint _e255 = params.units;
        if (_e252 >= _e255) {
            break;
        }
        {
            metal::float4 _e259 = x0_;
            put_x(x_row0_, x_quad0_ * 4u, static_cast<metal::float4>(_e259), tile_x);
        }
        {
            metal::float4 _e263 = x1_;
            put_x(x_row1_, x_quad1_ * 4u, static_cast<metal::float4>(_e263), tile_x);
        }
        {
            metal::float4 _e267 = x2_;
            put_x(x_row2_, x_quad2_ * 4u, static_cast<metal::float4>(_e267), tile_x);
        }
        {
            metal::float4 _e271 = x3_;
            put_x(x_row3_, x_quad3_ * 4u, static_cast<metal::float4>(_e271), tile_x);
        }
        {
            uint to = w_at0_ % 64u;
            uint k_2 = (w_at0_ / 64u) * 32u;
            uint _e279 = base;
            uint unit_1 = _e279 + (w_at0_ / 64u);
            uint block0_ = (unit_1 * 2u) + 0u;
            uint _e288 = s0_0_.x;
            uint _e301 = s0_0_.y;
            metal::float2 f0_0_ = metal::float2(static_cast<float>(as_type<int>(_e288 << (24u - ((block0_ & 3u) * 8u))) >> 24u) * float2(as_type<half2>((_e301 >> (((block0_ >> 4u) & 1u) * 16u)))).x, 0.0);
            uint block1_ = (unit_1 * 2u) + 1u;
            uint _e319 = s0_1_.x;
            uint _e332 = s0_1_.y;
            metal::float2 f0_1_ = metal::float2(static_cast<float>(as_type<int>(_e319 << (24u - ((block1_ & 3u) * 8u))) >> 24u) * float2(as_type<half2>((_e332 >> (((block1_ >> 4u) & 1u) * 16u)))).x, 0.0);
            uint _e348 = q0_.x;
            uint _e354 = h0_.x;
            put_w(to, k_2 + 0u, (as_type<metal::float4>(((metal::uint4(((_e348 >> 0u) & 252645135u) | (((_e354 >> 0u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e396 = q0_.x;
            uint _e402 = h0_.x;
            put_w(to, k_2 + 4u, (as_type<metal::float4>(((metal::uint4(((_e396 >> 4u) & 252645135u) | (((_e402 >> 2u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e444 = q0_.y;
            uint _e450 = h0_.x;
            put_w(to, k_2 + 8u, (as_type<metal::float4>(((metal::uint4(((_e444 >> 0u) & 252645135u) | (((_e450 >> 4u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e492 = q0_.y;
            uint _e498 = h0_.x;
            put_w(to, k_2 + 12u, (as_type<metal::float4>(((metal::uint4(((_e492 >> 4u) & 252645135u) | (((_e498 >> 6u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e540 = q0_.z;
            uint _e546 = h0_.y;
            put_w(to, k_2 + 16u, (as_type<metal::float4>(((metal::uint4(((_e540 >> 0u) & 252645135u) | (((_e546 >> 0u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_1_.x), tile_w);
            uint _e588 = q0_.z;
            uint _e594 = h0_.y;
            put_w(to, k_2 + 20u, (as_type<metal::float4>(((metal::uint4(((_e588 >> 4u) & 252645135u) | (((_e594 >> 2u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_1_.x), tile_w);
            uint _e636 = q0_.w;
            uint _e642 = h0_.y;
            put_w(to, k_2 + 24u, (as_type<metal::float4>(((metal::uint4(((_e636 >> 0u) & 252645135u) | (((_e642 >> 4u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_1_.x), tile_w);
            uint _e684 = q0_.w;
            uint _e690 = h0_.y;
            put_w(to, k_2 + 28u, (as_type<metal::float4>(((metal::uint4(((_e684 >> 4u) & 252645135u) | (((_e690 >> 6u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_1_.x), tile_w);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e729 = base;
        base = _e729 + 2u;
        {
            uint row_8 = m0_ + x_row0_;
            uint _e733 = base;
            uint quad_4 = ((metal::min(_e733, last_base) * 32u) >> 2u) + x_quad0_;
            uint _e743 = params.m;
            metal::float4 _e750 = x[(metal::min(row_8, _e743 - 1u) * x_quads) + quad_4];
            x0_ = _e750;
        }
        {
            uint row_9 = m0_ + x_row1_;
            uint _e752 = base;
            uint quad_5 = ((metal::min(_e752, last_base) * 32u) >> 2u) + x_quad1_;
            uint _e762 = params.m;
            metal::float4 _e769 = x[(metal::min(row_9, _e762 - 1u) * x_quads) + quad_5];
            x1_ = _e769;
        }
        {
            uint row_10 = m0_ + x_row2_;
            uint _e771 = base;
            uint quad_6 = ((metal::min(_e771, last_base) * 32u) >> 2u) + x_quad2_;
            uint _e781 = params.m;
            metal::float4 _e788 = x[(metal::min(row_10, _e781 - 1u) * x_quads) + quad_6];
            x2_ = _e788;
        }
        {
            uint row_11 = m0_ + x_row3_;
            uint _e790 = base;
            uint quad_7 = ((metal::min(_e790, last_base) * 32u) >> 2u) + x_quad3_;
            uint _e800 = params.m;
            metal::float4 _e807 = x[(metal::min(row_11, _e800 - 1u) * x_quads) + quad_7];
            x3_ = _e807;
        }
        {
            uint _e808 = base;
            uint _e815 = params.units;
            uint unit_2 = metal::min(metal::min(_e808, last_base) + (w_at0_ / 64u), _e815 - 1u);
            uint _e821 = params.units;
            uint w_from_1 = (w_row0_ * _e821) + unit_2;
            metal::uint4 _e826 = low[w_from_1];
            q0_ = _e826;
            metal::uint2 _e829 = high[w_from_1];
            h0_ = _e829;
            uint _e832 = params.factor_words;
            uint start_1 = w_row0_ * _e832;
            uint _e843 = factors[start_1 + (((unit_2 * 2u) + 0u) >> 2u)];
            uint _e847 = params.wholes;
            uint _e857 = factors[(start_1 + _e847) + (((unit_2 * 2u) + 0u) >> 5u)];
            s0_0_ = metal::uint2(_e843, _e857);
            uint _e868 = factors[start_1 + (((unit_2 * 2u) + 1u) >> 2u)];
            uint _e872 = params.wholes;
            uint _e882 = factors[(start_1 + _e872) + (((unit_2 * 2u) + 1u) >> 5u)];
            s0_1_ = metal::uint2(_e868, _e882);
        }
        {
            uint at_x0_ = ((team_row + 0u) * 72u) + 0u;
            metal::simdgroup_half8x8 a0_ = NagaCooperativeLoad(&tile_x.inner[at_x0_], 72u, false);
            uint at_x1_ = ((team_row + 8u) * 72u) + 0u;
            metal::simdgroup_half8x8 a1_ = NagaCooperativeLoad(&tile_x.inner[at_x1_], 72u, false);
            uint at_w0_ = ((team_column + 0u) * 72u) + 0u;
            metal::simdgroup_half8x8 b0_ = NagaCooperativeLoad(&tile_w.inner[at_w0_], 72u, true);
            metal::simdgroup_float8x8 _e914 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_, b0_, _e914);
            metal::simdgroup_float8x8 _e916 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_, b0_, _e916);
            uint at_w1_ = ((team_column + 8u) * 72u) + 0u;
            metal::simdgroup_half8x8 b1_ = NagaCooperativeLoad(&tile_w.inner[at_w1_], 72u, true);
            metal::simdgroup_float8x8 _e928 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_, b1_, _e928);
            metal::simdgroup_float8x8 _e930 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_, b1_, _e930);
            uint at_w2_ = ((team_column + 16u) * 72u) + 0u;
            metal::simdgroup_half8x8 b2_ = NagaCooperativeLoad(&tile_w.inner[at_w2_], 72u, true);
            metal::simdgroup_float8x8 _e942 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_, b2_, _e942);
            metal::simdgroup_float8x8 _e944 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_, b2_, _e944);
            uint at_w3_ = ((team_column + 24u) * 72u) + 0u;
            metal::simdgroup_half8x8 b3_ = NagaCooperativeLoad(&tile_w.inner[at_w3_], 72u, true);
            metal::simdgroup_float8x8 _e956 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_, b3_, _e956);
            metal::simdgroup_float8x8 _e958 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_, b3_, _e958);
        }
        {
            uint at_x0_1 = ((team_row + 0u) * 72u) + 8u;
            metal::simdgroup_half8x8 a0_1 = NagaCooperativeLoad(&tile_x.inner[at_x0_1], 72u, false);
            uint at_x1_1 = ((team_row + 8u) * 72u) + 8u;
            metal::simdgroup_half8x8 a1_1 = NagaCooperativeLoad(&tile_x.inner[at_x1_1], 72u, false);
            uint at_w0_1 = ((team_column + 0u) * 72u) + 8u;
            metal::simdgroup_half8x8 b0_1 = NagaCooperativeLoad(&tile_w.inner[at_w0_1], 72u, true);
            metal::simdgroup_float8x8 _e990 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_1, b0_1, _e990);
            metal::simdgroup_float8x8 _e992 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_1, b0_1, _e992);
            uint at_w1_1 = ((team_column + 8u) * 72u) + 8u;
            metal::simdgroup_half8x8 b1_1 = NagaCooperativeLoad(&tile_w.inner[at_w1_1], 72u, true);
            metal::simdgroup_float8x8 _e1004 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_1, b1_1, _e1004);
            metal::simdgroup_float8x8 _e1006 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_1, b1_1, _e1006);
            uint at_w2_1 = ((team_column + 16u) * 72u) + 8u;
            metal::simdgroup_half8x8 b2_1 = NagaCooperativeLoad(&tile_w.inner[at_w2_1], 72u, true);
            metal::simdgroup_float8x8 _e1018 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_1, b2_1, _e1018);
            metal::simdgroup_float8x8 _e1020 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_1, b2_1, _e1020);
            uint at_w3_1 = ((team_column + 24u) * 72u) + 8u;
            metal::simdgroup_half8x8 b3_1 = NagaCooperativeLoad(&tile_w.inner[at_w3_1], 72u, true);
            metal::simdgroup_float8x8 _e1032 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_1, b3_1, _e1032);
            metal::simdgroup_float8x8 _e1034 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_1, b3_1, _e1034);
        }
        {
            uint at_x0_2 = ((team_row + 0u) * 72u) + 16u;
            metal::simdgroup_half8x8 a0_2 = NagaCooperativeLoad(&tile_x.inner[at_x0_2], 72u, false);
            uint at_x1_2 = ((team_row + 8u) * 72u) + 16u;
            metal::simdgroup_half8x8 a1_2 = NagaCooperativeLoad(&tile_x.inner[at_x1_2], 72u, false);
            uint at_w0_2 = ((team_column + 0u) * 72u) + 16u;
            metal::simdgroup_half8x8 b0_2 = NagaCooperativeLoad(&tile_w.inner[at_w0_2], 72u, true);
            metal::simdgroup_float8x8 _e1066 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_2, b0_2, _e1066);
            metal::simdgroup_float8x8 _e1068 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_2, b0_2, _e1068);
            uint at_w1_2 = ((team_column + 8u) * 72u) + 16u;
            metal::simdgroup_half8x8 b1_2 = NagaCooperativeLoad(&tile_w.inner[at_w1_2], 72u, true);
            metal::simdgroup_float8x8 _e1080 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_2, b1_2, _e1080);
            metal::simdgroup_float8x8 _e1082 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_2, b1_2, _e1082);
            uint at_w2_2 = ((team_column + 16u) * 72u) + 16u;
            metal::simdgroup_half8x8 b2_2 = NagaCooperativeLoad(&tile_w.inner[at_w2_2], 72u, true);
            metal::simdgroup_float8x8 _e1094 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_2, b2_2, _e1094);
            metal::simdgroup_float8x8 _e1096 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_2, b2_2, _e1096);
            uint at_w3_2 = ((team_column + 24u) * 72u) + 16u;
            metal::simdgroup_half8x8 b3_2 = NagaCooperativeLoad(&tile_w.inner[at_w3_2], 72u, true);
            metal::simdgroup_float8x8 _e1108 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_2, b3_2, _e1108);
            metal::simdgroup_float8x8 _e1110 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_2, b3_2, _e1110);
        }
        {
            uint at_x0_3 = ((team_row + 0u) * 72u) + 24u;
            metal::simdgroup_half8x8 a0_3 = NagaCooperativeLoad(&tile_x.inner[at_x0_3], 72u, false);
            uint at_x1_3 = ((team_row + 8u) * 72u) + 24u;
            metal::simdgroup_half8x8 a1_3 = NagaCooperativeLoad(&tile_x.inner[at_x1_3], 72u, false);
            uint at_w0_3 = ((team_column + 0u) * 72u) + 24u;
            metal::simdgroup_half8x8 b0_3 = NagaCooperativeLoad(&tile_w.inner[at_w0_3], 72u, true);
            metal::simdgroup_float8x8 _e1142 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_3, b0_3, _e1142);
            metal::simdgroup_float8x8 _e1144 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_3, b0_3, _e1144);
            uint at_w1_3 = ((team_column + 8u) * 72u) + 24u;
            metal::simdgroup_half8x8 b1_3 = NagaCooperativeLoad(&tile_w.inner[at_w1_3], 72u, true);
            metal::simdgroup_float8x8 _e1156 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_3, b1_3, _e1156);
            metal::simdgroup_float8x8 _e1158 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_3, b1_3, _e1158);
            uint at_w2_3 = ((team_column + 16u) * 72u) + 24u;
            metal::simdgroup_half8x8 b2_3 = NagaCooperativeLoad(&tile_w.inner[at_w2_3], 72u, true);
            metal::simdgroup_float8x8 _e1170 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_3, b2_3, _e1170);
            metal::simdgroup_float8x8 _e1172 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_3, b2_3, _e1172);
            uint at_w3_3 = ((team_column + 24u) * 72u) + 24u;
            metal::simdgroup_half8x8 b3_3 = NagaCooperativeLoad(&tile_w.inner[at_w3_3], 72u, true);
            metal::simdgroup_float8x8 _e1184 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_3, b3_3, _e1184);
            metal::simdgroup_float8x8 _e1186 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_3, b3_3, _e1186);
        }
        {
            uint at_x0_4 = ((team_row + 0u) * 72u) + 32u;
            metal::simdgroup_half8x8 a0_4 = NagaCooperativeLoad(&tile_x.inner[at_x0_4], 72u, false);
            uint at_x1_4 = ((team_row + 8u) * 72u) + 32u;
            metal::simdgroup_half8x8 a1_4 = NagaCooperativeLoad(&tile_x.inner[at_x1_4], 72u, false);
            uint at_w0_4 = ((team_column + 0u) * 72u) + 32u;
            metal::simdgroup_half8x8 b0_4 = NagaCooperativeLoad(&tile_w.inner[at_w0_4], 72u, true);
            metal::simdgroup_float8x8 _e1218 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_4, b0_4, _e1218);
            metal::simdgroup_float8x8 _e1220 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_4, b0_4, _e1220);
            uint at_w1_4 = ((team_column + 8u) * 72u) + 32u;
            metal::simdgroup_half8x8 b1_4 = NagaCooperativeLoad(&tile_w.inner[at_w1_4], 72u, true);
            metal::simdgroup_float8x8 _e1232 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_4, b1_4, _e1232);
            metal::simdgroup_float8x8 _e1234 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_4, b1_4, _e1234);
            uint at_w2_4 = ((team_column + 16u) * 72u) + 32u;
            metal::simdgroup_half8x8 b2_4 = NagaCooperativeLoad(&tile_w.inner[at_w2_4], 72u, true);
            metal::simdgroup_float8x8 _e1246 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_4, b2_4, _e1246);
            metal::simdgroup_float8x8 _e1248 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_4, b2_4, _e1248);
            uint at_w3_4 = ((team_column + 24u) * 72u) + 32u;
            metal::simdgroup_half8x8 b3_4 = NagaCooperativeLoad(&tile_w.inner[at_w3_4], 72u, true);
            metal::simdgroup_float8x8 _e1260 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_4, b3_4, _e1260);
            metal::simdgroup_float8x8 _e1262 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_4, b3_4, _e1262);
        }
        {
            uint at_x0_5 = ((team_row + 0u) * 72u) + 40u;
            metal::simdgroup_half8x8 a0_5 = NagaCooperativeLoad(&tile_x.inner[at_x0_5], 72u, false);
            uint at_x1_5 = ((team_row + 8u) * 72u) + 40u;
            metal::simdgroup_half8x8 a1_5 = NagaCooperativeLoad(&tile_x.inner[at_x1_5], 72u, false);
            uint at_w0_5 = ((team_column + 0u) * 72u) + 40u;
            metal::simdgroup_half8x8 b0_5 = NagaCooperativeLoad(&tile_w.inner[at_w0_5], 72u, true);
            metal::simdgroup_float8x8 _e1294 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_5, b0_5, _e1294);
            metal::simdgroup_float8x8 _e1296 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_5, b0_5, _e1296);
            uint at_w1_5 = ((team_column + 8u) * 72u) + 40u;
            metal::simdgroup_half8x8 b1_5 = NagaCooperativeLoad(&tile_w.inner[at_w1_5], 72u, true);
            metal::simdgroup_float8x8 _e1308 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_5, b1_5, _e1308);
            metal::simdgroup_float8x8 _e1310 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_5, b1_5, _e1310);
            uint at_w2_5 = ((team_column + 16u) * 72u) + 40u;
            metal::simdgroup_half8x8 b2_5 = NagaCooperativeLoad(&tile_w.inner[at_w2_5], 72u, true);
            metal::simdgroup_float8x8 _e1322 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_5, b2_5, _e1322);
            metal::simdgroup_float8x8 _e1324 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_5, b2_5, _e1324);
            uint at_w3_5 = ((team_column + 24u) * 72u) + 40u;
            metal::simdgroup_half8x8 b3_5 = NagaCooperativeLoad(&tile_w.inner[at_w3_5], 72u, true);
            metal::simdgroup_float8x8 _e1336 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_5, b3_5, _e1336);
            metal::simdgroup_float8x8 _e1338 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_5, b3_5, _e1338);
        }
        {
            uint at_x0_6 = ((team_row + 0u) * 72u) + 48u;
            metal::simdgroup_half8x8 a0_6 = NagaCooperativeLoad(&tile_x.inner[at_x0_6], 72u, false);
            uint at_x1_6 = ((team_row + 8u) * 72u) + 48u;
            metal::simdgroup_half8x8 a1_6 = NagaCooperativeLoad(&tile_x.inner[at_x1_6], 72u, false);
            uint at_w0_6 = ((team_column + 0u) * 72u) + 48u;
            metal::simdgroup_half8x8 b0_6 = NagaCooperativeLoad(&tile_w.inner[at_w0_6], 72u, true);
            metal::simdgroup_float8x8 _e1370 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_6, b0_6, _e1370);
            metal::simdgroup_float8x8 _e1372 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_6, b0_6, _e1372);
            uint at_w1_6 = ((team_column + 8u) * 72u) + 48u;
            metal::simdgroup_half8x8 b1_6 = NagaCooperativeLoad(&tile_w.inner[at_w1_6], 72u, true);
            metal::simdgroup_float8x8 _e1384 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_6, b1_6, _e1384);
            metal::simdgroup_float8x8 _e1386 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_6, b1_6, _e1386);
            uint at_w2_6 = ((team_column + 16u) * 72u) + 48u;
            metal::simdgroup_half8x8 b2_6 = NagaCooperativeLoad(&tile_w.inner[at_w2_6], 72u, true);
            metal::simdgroup_float8x8 _e1398 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_6, b2_6, _e1398);
            metal::simdgroup_float8x8 _e1400 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_6, b2_6, _e1400);
            uint at_w3_6 = ((team_column + 24u) * 72u) + 48u;
            metal::simdgroup_half8x8 b3_6 = NagaCooperativeLoad(&tile_w.inner[at_w3_6], 72u, true);
            metal::simdgroup_float8x8 _e1412 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_6, b3_6, _e1412);
            metal::simdgroup_float8x8 _e1414 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_6, b3_6, _e1414);
        }
        {
            uint at_x0_7 = ((team_row + 0u) * 72u) + 56u;
            metal::simdgroup_half8x8 a0_7 = NagaCooperativeLoad(&tile_x.inner[at_x0_7], 72u, false);
            uint at_x1_7 = ((team_row + 8u) * 72u) + 56u;
            metal::simdgroup_half8x8 a1_7 = NagaCooperativeLoad(&tile_x.inner[at_x1_7], 72u, false);
            uint at_w0_7 = ((team_column + 0u) * 72u) + 56u;
            metal::simdgroup_half8x8 b0_7 = NagaCooperativeLoad(&tile_w.inner[at_w0_7], 72u, true);
            metal::simdgroup_float8x8 _e1446 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_7, b0_7, _e1446);
            metal::simdgroup_float8x8 _e1448 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_7, b0_7, _e1448);
            uint at_w1_7 = ((team_column + 8u) * 72u) + 56u;
            metal::simdgroup_half8x8 b1_7 = NagaCooperativeLoad(&tile_w.inner[at_w1_7], 72u, true);
            metal::simdgroup_float8x8 _e1460 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_7, b1_7, _e1460);
            metal::simdgroup_float8x8 _e1462 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_7, b1_7, _e1462);
            uint at_w2_7 = ((team_column + 16u) * 72u) + 56u;
            metal::simdgroup_half8x8 b2_7 = NagaCooperativeLoad(&tile_w.inner[at_w2_7], 72u, true);
            metal::simdgroup_float8x8 _e1474 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_7, b2_7, _e1474);
            metal::simdgroup_float8x8 _e1476 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_7, b2_7, _e1476);
            uint at_w3_7 = ((team_column + 24u) * 72u) + 56u;
            metal::simdgroup_half8x8 b3_7 = NagaCooperativeLoad(&tile_w.inner[at_w3_7], 72u, true);
            metal::simdgroup_float8x8 _e1488 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_7, b3_7, _e1488);
            metal::simdgroup_float8x8 _e1490 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_7, b3_7, _e1490);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    uint place = team * 64u;
    metal::simdgroup_float8x8 _e1494 = sum_0_0_;
    simdgroup_store(_e1494, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at = lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e1542 = at;
            at = _e1542 + lanes;
        }
        loop_init = false;
        uint _e1499 = at;
        if (_e1499 < 16u) {
        } else {
            break;
        }
        {
            uint _e1502 = at;
            uint cell = place + (_e1502 * 4u);
            uint _e1509 = at;
            uint row_12 = ((m0_ + team_row) + 0u) + (_e1509 / 2u);
            uint _e1516 = at;
            uint column_1 = ((first_1 + team_column) + 0u) + ((_e1516 % 2u) * 4u);
            uint _e1522 = which;
            float _e1525 = results.inner[cell];
            float _e1530 = results.inner[cell + 1u];
            float _e1535 = results.inner[cell + 2u];
            float _e1540 = results.inner[cell + 3u];
            finish(_e1522, own_1, row_12, column_1, metal::float4(_e1525, _e1530, _e1535, _e1540), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1544 = sum_0_1_;
    simdgroup_store(_e1544, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_1 = lane;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e1592 = at_1;
            at_1 = _e1592 + lanes;
        }
        loop_init_1 = false;
        uint _e1549 = at_1;
        if (_e1549 < 16u) {
        } else {
            break;
        }
        {
            uint _e1552 = at_1;
            uint cell_1 = place + (_e1552 * 4u);
            uint _e1559 = at_1;
            uint row_13 = ((m0_ + team_row) + 0u) + (_e1559 / 2u);
            uint _e1566 = at_1;
            uint column_2 = ((first_1 + team_column) + 8u) + ((_e1566 % 2u) * 4u);
            uint _e1572 = which;
            float _e1575 = results.inner[cell_1];
            float _e1580 = results.inner[cell_1 + 1u];
            float _e1585 = results.inner[cell_1 + 2u];
            float _e1590 = results.inner[cell_1 + 3u];
            finish(_e1572, own_1, row_13, column_2, metal::float4(_e1575, _e1580, _e1585, _e1590), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1594 = sum_0_2_;
    simdgroup_store(_e1594, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_2 = lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e1642 = at_2;
            at_2 = _e1642 + lanes;
        }
        loop_init_2 = false;
        uint _e1599 = at_2;
        if (_e1599 < 16u) {
        } else {
            break;
        }
        {
            uint _e1602 = at_2;
            uint cell_2 = place + (_e1602 * 4u);
            uint _e1609 = at_2;
            uint row_14 = ((m0_ + team_row) + 0u) + (_e1609 / 2u);
            uint _e1616 = at_2;
            uint column_3 = ((first_1 + team_column) + 16u) + ((_e1616 % 2u) * 4u);
            uint _e1622 = which;
            float _e1625 = results.inner[cell_2];
            float _e1630 = results.inner[cell_2 + 1u];
            float _e1635 = results.inner[cell_2 + 2u];
            float _e1640 = results.inner[cell_2 + 3u];
            finish(_e1622, own_1, row_14, column_3, metal::float4(_e1625, _e1630, _e1635, _e1640), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1644 = sum_0_3_;
    simdgroup_store(_e1644, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_3 = lane;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e1692 = at_3;
            at_3 = _e1692 + lanes;
        }
        loop_init_3 = false;
        uint _e1649 = at_3;
        if (_e1649 < 16u) {
        } else {
            break;
        }
        {
            uint _e1652 = at_3;
            uint cell_3 = place + (_e1652 * 4u);
            uint _e1659 = at_3;
            uint row_15 = ((m0_ + team_row) + 0u) + (_e1659 / 2u);
            uint _e1666 = at_3;
            uint column_4 = ((first_1 + team_column) + 24u) + ((_e1666 % 2u) * 4u);
            uint _e1672 = which;
            float _e1675 = results.inner[cell_3];
            float _e1680 = results.inner[cell_3 + 1u];
            float _e1685 = results.inner[cell_3 + 2u];
            float _e1690 = results.inner[cell_3 + 3u];
            finish(_e1672, own_1, row_15, column_4, metal::float4(_e1675, _e1680, _e1685, _e1690), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1694 = sum_1_0_;
    simdgroup_store(_e1694, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_4 = lane;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e1742 = at_4;
            at_4 = _e1742 + lanes;
        }
        loop_init_4 = false;
        uint _e1699 = at_4;
        if (_e1699 < 16u) {
        } else {
            break;
        }
        {
            uint _e1702 = at_4;
            uint cell_4 = place + (_e1702 * 4u);
            uint _e1709 = at_4;
            uint row_16 = ((m0_ + team_row) + 8u) + (_e1709 / 2u);
            uint _e1716 = at_4;
            uint column_5 = ((first_1 + team_column) + 0u) + ((_e1716 % 2u) * 4u);
            uint _e1722 = which;
            float _e1725 = results.inner[cell_4];
            float _e1730 = results.inner[cell_4 + 1u];
            float _e1735 = results.inner[cell_4 + 2u];
            float _e1740 = results.inner[cell_4 + 3u];
            finish(_e1722, own_1, row_16, column_5, metal::float4(_e1725, _e1730, _e1735, _e1740), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1744 = sum_1_1_;
    simdgroup_store(_e1744, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_5 = lane;
    bool loop_init_5 = true;
    while(true) {
        if (!loop_init_5) {
            uint _e1792 = at_5;
            at_5 = _e1792 + lanes;
        }
        loop_init_5 = false;
        uint _e1749 = at_5;
        if (_e1749 < 16u) {
        } else {
            break;
        }
        {
            uint _e1752 = at_5;
            uint cell_5 = place + (_e1752 * 4u);
            uint _e1759 = at_5;
            uint row_17 = ((m0_ + team_row) + 8u) + (_e1759 / 2u);
            uint _e1766 = at_5;
            uint column_6 = ((first_1 + team_column) + 8u) + ((_e1766 % 2u) * 4u);
            uint _e1772 = which;
            float _e1775 = results.inner[cell_5];
            float _e1780 = results.inner[cell_5 + 1u];
            float _e1785 = results.inner[cell_5 + 2u];
            float _e1790 = results.inner[cell_5 + 3u];
            finish(_e1772, own_1, row_17, column_6, metal::float4(_e1775, _e1780, _e1785, _e1790), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1794 = sum_1_2_;
    simdgroup_store(_e1794, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_6 = lane;
    bool loop_init_6 = true;
    while(true) {
        if (!loop_init_6) {
            uint _e1842 = at_6;
            at_6 = _e1842 + lanes;
        }
        loop_init_6 = false;
        uint _e1799 = at_6;
        if (_e1799 < 16u) {
        } else {
            break;
        }
        {
            uint _e1802 = at_6;
            uint cell_6 = place + (_e1802 * 4u);
            uint _e1809 = at_6;
            uint row_18 = ((m0_ + team_row) + 8u) + (_e1809 / 2u);
            uint _e1816 = at_6;
            uint column_7 = ((first_1 + team_column) + 16u) + ((_e1816 % 2u) * 4u);
            uint _e1822 = which;
            float _e1825 = results.inner[cell_6];
            float _e1830 = results.inner[cell_6 + 1u];
            float _e1835 = results.inner[cell_6 + 2u];
            float _e1840 = results.inner[cell_6 + 3u];
            finish(_e1822, own_1, row_18, column_7, metal::float4(_e1825, _e1830, _e1835, _e1840), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1844 = sum_1_3_;
    simdgroup_store(_e1844, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_7 = lane;
    bool loop_init_7 = true;
    while(true) {
        if (!loop_init_7) {
            uint _e1892 = at_7;
            at_7 = _e1892 + lanes;
        }
        loop_init_7 = false;
        uint _e1849 = at_7;
        if (_e1849 < 16u) {
        } else {
            break;
        }
        {
            uint _e1852 = at_7;
            uint cell_7 = place + (_e1852 * 4u);
            uint _e1859 = at_7;
            uint row_19 = ((m0_ + team_row) + 8u) + (_e1859 / 2u);
            uint _e1866 = at_7;
            uint column_8 = ((first_1 + team_column) + 24u) + ((_e1866 % 2u) * 4u);
            uint _e1872 = which;
            float _e1875 = results.inner[cell_7];
            float _e1880 = results.inner[cell_7 + 1u];
            float _e1885 = results.inner[cell_7 + 2u];
            float _e1890 = results.inner[cell_7 + 3u];
            finish(_e1872, own_1, row_19, column_8, metal::float4(_e1875, _e1880, _e1885, _e1890), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
