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
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    bool local_4 = {};
    bool local_5 = {};
    bool local_6 = {};
    bool local_7 = {};
    bool local_8 = {};
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
    uint team = metal::min(subgroup, 3u);
    uint team_row = (team / 2u) * 16u;
    uint team_column = (team % 2u) * 32u;
    uint _e79 = params.units;
    if (_e79 > 0u) {
        {
            uint at_11 = local + 0u;
            uint _e91 = params.m;
            uint _e96 = base;
            metal::float4 _e109 = x[(metal::min(m0_ + (at_11 / 16u), _e91 - 1u) * x_quads) + metal::min(((_e96 * 32u) >> 2u) + (at_11 % 16u), x_quads - 1u)];
            uint _e116 = params.m;
            if ((m0_ + (at_11 / 16u)) < _e116) {
                uint _e120 = base;
                local_1 = (((_e120 * 32u) >> 2u) + (at_11 % 16u)) < x_quads;
            } else {
                local_1 = false;
            }
            bool _e130 = local_1;
            x0_ = _e130 ? static_cast<metal::float4>(_e109) : metal::float4 {};
        }
        {
            uint at_12 = local + 128u;
            uint _e141 = params.m;
            uint _e146 = base;
            metal::float4 _e159 = x[(metal::min(m0_ + (at_12 / 16u), _e141 - 1u) * x_quads) + metal::min(((_e146 * 32u) >> 2u) + (at_12 % 16u), x_quads - 1u)];
            uint _e166 = params.m;
            if ((m0_ + (at_12 / 16u)) < _e166) {
                uint _e170 = base;
                local_2 = (((_e170 * 32u) >> 2u) + (at_12 % 16u)) < x_quads;
            } else {
                local_2 = false;
            }
            bool _e180 = local_2;
            x1_ = _e180 ? static_cast<metal::float4>(_e159) : metal::float4 {};
        }
        {
            uint at_13 = local + 256u;
            uint _e191 = params.m;
            uint _e196 = base;
            metal::float4 _e209 = x[(metal::min(m0_ + (at_13 / 16u), _e191 - 1u) * x_quads) + metal::min(((_e196 * 32u) >> 2u) + (at_13 % 16u), x_quads - 1u)];
            uint _e216 = params.m;
            if ((m0_ + (at_13 / 16u)) < _e216) {
                uint _e220 = base;
                local_3 = (((_e220 * 32u) >> 2u) + (at_13 % 16u)) < x_quads;
            } else {
                local_3 = false;
            }
            bool _e230 = local_3;
            x2_ = _e230 ? static_cast<metal::float4>(_e209) : metal::float4 {};
        }
        {
            uint at_14 = local + 384u;
            uint _e241 = params.m;
            uint _e246 = base;
            metal::float4 _e259 = x[(metal::min(m0_ + (at_14 / 16u), _e241 - 1u) * x_quads) + metal::min(((_e246 * 32u) >> 2u) + (at_14 % 16u), x_quads - 1u)];
            uint _e266 = params.m;
            if ((m0_ + (at_14 / 16u)) < _e266) {
                uint _e270 = base;
                local_4 = (((_e270 * 32u) >> 2u) + (at_14 % 16u)) < x_quads;
            } else {
                local_4 = false;
            }
            bool _e280 = local_4;
            x3_ = _e280 ? static_cast<metal::float4>(_e259) : metal::float4 {};
        }
        {
            uint _e282 = base;
            uint unit = _e282 + (w_at0_ / 64u);
            uint _e288 = params.units;
            bool inside = unit < _e288;
            uint _e292 = params.units;
            uint _e296 = params.units;
            uint w_from = (w_row0_ * _e292) + metal::min(unit, _e296 - 1u);
            metal::uint4 _e304 = low[w_from];
            q0_ = inside ? _e304 : metal::uint4 {};
            uint _e308 = params.factor_words;
            uint start = w_row0_ * _e308;
            uint _e313 = params.units;
            uint _e321 = factors[start + (metal::min(unit, _e313 - 1u) >> 0u)];
            s0_0_ = metal::uint2(_e321, 0u);
        }
    }
    while(true) {
        uint _e324 = base;
        uint _e327 = params.units;
        if (_e324 >= _e327) {
            break;
        }
        {
            uint at_15 = local + 0u;
            metal::float4 _e337 = x0_;
            put_x(at_15 / 16u, (at_15 % 16u) * 4u, _e337, tile_x);
        }
        {
            uint at_16 = local + 128u;
            metal::float4 _e346 = x1_;
            put_x(at_16 / 16u, (at_16 % 16u) * 4u, _e346, tile_x);
        }
        {
            uint at_17 = local + 256u;
            metal::float4 _e355 = x2_;
            put_x(at_17 / 16u, (at_17 % 16u) * 4u, _e355, tile_x);
        }
        {
            uint at_18 = local + 384u;
            metal::float4 _e364 = x3_;
            put_x(at_18 / 16u, (at_18 % 16u) * 4u, _e364, tile_x);
        }
        {
            uint to = w_at0_ % 64u;
            uint k_2 = (w_at0_ / 64u) * 32u;
            uint _e371 = base;
            uint unit_1 = _e371 + (w_at0_ / 64u);
            uint block0_ = unit_1 >> 0u;
            metal::uint2 _e378 = s0_0_;
            uint _e382 = params.units;
            metal::float2 f0_0_ = (unit_1 < _e382) ? as_type<metal::float2>(_e378) : metal::float2 {};
            uint _e388 = q0_.x;
            put_w(to, k_2 + 0u, (as_type<metal::float4>(((metal::uint4(_e388) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e423 = q0_.x;
            put_w(to, k_2 + 4u, (as_type<metal::float4>(((metal::uint4(_e423) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * (metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) * f0_0_.x), tile_w);
            uint _e458 = q0_.y;
            put_w(to, k_2 + 8u, (as_type<metal::float4>(((metal::uint4(_e458) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e493 = q0_.y;
            put_w(to, k_2 + 12u, (as_type<metal::float4>(((metal::uint4(_e493) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * (metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) * f0_0_.x), tile_w);
            uint _e528 = q0_.z;
            put_w(to, k_2 + 16u, (as_type<metal::float4>(((metal::uint4(_e528) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e563 = q0_.z;
            put_w(to, k_2 + 20u, (as_type<metal::float4>(((metal::uint4(_e563) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * (metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) * f0_0_.x), tile_w);
            uint _e598 = q0_.w;
            put_w(to, k_2 + 24u, (as_type<metal::float4>(((metal::uint4(_e598) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e633 = q0_.w;
            put_w(to, k_2 + 28u, (as_type<metal::float4>(((metal::uint4(_e633) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * (metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) * f0_0_.x), tile_w);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e665 = base;
        base = _e665 + 2u;
        uint _e668 = base;
        uint _e671 = params.units;
        if (_e668 < _e671) {
            {
                uint at_19 = local + 0u;
                uint _e682 = params.m;
                uint _e687 = base;
                metal::float4 _e700 = x[(metal::min(m0_ + (at_19 / 16u), _e682 - 1u) * x_quads) + metal::min(((_e687 * 32u) >> 2u) + (at_19 % 16u), x_quads - 1u)];
                uint _e707 = params.m;
                if ((m0_ + (at_19 / 16u)) < _e707) {
                    uint _e711 = base;
                    local_5 = (((_e711 * 32u) >> 2u) + (at_19 % 16u)) < x_quads;
                } else {
                    local_5 = false;
                }
                bool _e721 = local_5;
                x0_ = _e721 ? static_cast<metal::float4>(_e700) : metal::float4 {};
            }
            {
                uint at_20 = local + 128u;
                uint _e732 = params.m;
                uint _e737 = base;
                metal::float4 _e750 = x[(metal::min(m0_ + (at_20 / 16u), _e732 - 1u) * x_quads) + metal::min(((_e737 * 32u) >> 2u) + (at_20 % 16u), x_quads - 1u)];
                uint _e757 = params.m;
                if ((m0_ + (at_20 / 16u)) < _e757) {
                    uint _e761 = base;
                    local_6 = (((_e761 * 32u) >> 2u) + (at_20 % 16u)) < x_quads;
                } else {
                    local_6 = false;
                }
                bool _e771 = local_6;
                x1_ = _e771 ? static_cast<metal::float4>(_e750) : metal::float4 {};
            }
            {
                uint at_21 = local + 256u;
                uint _e782 = params.m;
                uint _e787 = base;
                metal::float4 _e800 = x[(metal::min(m0_ + (at_21 / 16u), _e782 - 1u) * x_quads) + metal::min(((_e787 * 32u) >> 2u) + (at_21 % 16u), x_quads - 1u)];
                uint _e807 = params.m;
                if ((m0_ + (at_21 / 16u)) < _e807) {
                    uint _e811 = base;
                    local_7 = (((_e811 * 32u) >> 2u) + (at_21 % 16u)) < x_quads;
                } else {
                    local_7 = false;
                }
                bool _e821 = local_7;
                x2_ = _e821 ? static_cast<metal::float4>(_e800) : metal::float4 {};
            }
            {
                uint at_22 = local + 384u;
                uint _e832 = params.m;
                uint _e837 = base;
                metal::float4 _e850 = x[(metal::min(m0_ + (at_22 / 16u), _e832 - 1u) * x_quads) + metal::min(((_e837 * 32u) >> 2u) + (at_22 % 16u), x_quads - 1u)];
                uint _e857 = params.m;
                if ((m0_ + (at_22 / 16u)) < _e857) {
                    uint _e861 = base;
                    local_8 = (((_e861 * 32u) >> 2u) + (at_22 % 16u)) < x_quads;
                } else {
                    local_8 = false;
                }
                bool _e871 = local_8;
                x3_ = _e871 ? static_cast<metal::float4>(_e850) : metal::float4 {};
            }
            {
                uint _e873 = base;
                uint unit_2 = _e873 + (w_at0_ / 64u);
                uint _e879 = params.units;
                bool inside_1 = unit_2 < _e879;
                uint _e883 = params.units;
                uint _e887 = params.units;
                uint w_from_1 = (w_row0_ * _e883) + metal::min(unit_2, _e887 - 1u);
                metal::uint4 _e895 = low[w_from_1];
                q0_ = inside_1 ? _e895 : metal::uint4 {};
                uint _e899 = params.factor_words;
                uint start_1 = w_row0_ * _e899;
                uint _e904 = params.units;
                uint _e912 = factors[start_1 + (metal::min(unit_2, _e904 - 1u) >> 0u)];
                s0_0_ = metal::uint2(_e912, 0u);
            }
        }
        {
            uint at_x0_ = ((team_row + 0u) * 72u) + 0u;
            metal::simdgroup_half8x8 a0_ = NagaCooperativeLoad(&tile_x.inner[at_x0_], 72u, false);
            uint at_x1_ = ((team_row + 8u) * 72u) + 0u;
            metal::simdgroup_half8x8 a1_ = NagaCooperativeLoad(&tile_x.inner[at_x1_], 72u, false);
            uint at_w0_ = ((team_column + 0u) * 72u) + 0u;
            metal::simdgroup_half8x8 b0_ = NagaCooperativeLoad(&tile_w.inner[at_w0_], 72u, true);
            metal::simdgroup_float8x8 _e945 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_, b0_, _e945);
            metal::simdgroup_float8x8 _e947 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_, b0_, _e947);
            uint at_w1_ = ((team_column + 8u) * 72u) + 0u;
            metal::simdgroup_half8x8 b1_ = NagaCooperativeLoad(&tile_w.inner[at_w1_], 72u, true);
            metal::simdgroup_float8x8 _e959 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_, b1_, _e959);
            metal::simdgroup_float8x8 _e961 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_, b1_, _e961);
            uint at_w2_ = ((team_column + 16u) * 72u) + 0u;
            metal::simdgroup_half8x8 b2_ = NagaCooperativeLoad(&tile_w.inner[at_w2_], 72u, true);
            metal::simdgroup_float8x8 _e973 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_, b2_, _e973);
            metal::simdgroup_float8x8 _e975 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_, b2_, _e975);
            uint at_w3_ = ((team_column + 24u) * 72u) + 0u;
            metal::simdgroup_half8x8 b3_ = NagaCooperativeLoad(&tile_w.inner[at_w3_], 72u, true);
            metal::simdgroup_float8x8 _e987 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_, b3_, _e987);
            metal::simdgroup_float8x8 _e989 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_, b3_, _e989);
        }
        {
            uint at_x0_1 = ((team_row + 0u) * 72u) + 8u;
            metal::simdgroup_half8x8 a0_1 = NagaCooperativeLoad(&tile_x.inner[at_x0_1], 72u, false);
            uint at_x1_1 = ((team_row + 8u) * 72u) + 8u;
            metal::simdgroup_half8x8 a1_1 = NagaCooperativeLoad(&tile_x.inner[at_x1_1], 72u, false);
            uint at_w0_1 = ((team_column + 0u) * 72u) + 8u;
            metal::simdgroup_half8x8 b0_1 = NagaCooperativeLoad(&tile_w.inner[at_w0_1], 72u, true);
            metal::simdgroup_float8x8 _e1021 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_1, b0_1, _e1021);
            metal::simdgroup_float8x8 _e1023 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_1, b0_1, _e1023);
            uint at_w1_1 = ((team_column + 8u) * 72u) + 8u;
            metal::simdgroup_half8x8 b1_1 = NagaCooperativeLoad(&tile_w.inner[at_w1_1], 72u, true);
            metal::simdgroup_float8x8 _e1035 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_1, b1_1, _e1035);
            metal::simdgroup_float8x8 _e1037 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_1, b1_1, _e1037);
            uint at_w2_1 = ((team_column + 16u) * 72u) + 8u;
            metal::simdgroup_half8x8 b2_1 = NagaCooperativeLoad(&tile_w.inner[at_w2_1], 72u, true);
            metal::simdgroup_float8x8 _e1049 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_1, b2_1, _e1049);
            metal::simdgroup_float8x8 _e1051 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_1, b2_1, _e1051);
            uint at_w3_1 = ((team_column + 24u) * 72u) + 8u;
            metal::simdgroup_half8x8 b3_1 = NagaCooperativeLoad(&tile_w.inner[at_w3_1], 72u, true);
            metal::simdgroup_float8x8 _e1063 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_1, b3_1, _e1063);
            metal::simdgroup_float8x8 _e1065 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_1, b3_1, _e1065);
        }
        {
            uint at_x0_2 = ((team_row + 0u) * 72u) + 16u;
            metal::simdgroup_half8x8 a0_2 = NagaCooperativeLoad(&tile_x.inner[at_x0_2], 72u, false);
            uint at_x1_2 = ((team_row + 8u) * 72u) + 16u;
            metal::simdgroup_half8x8 a1_2 = NagaCooperativeLoad(&tile_x.inner[at_x1_2], 72u, false);
            uint at_w0_2 = ((team_column + 0u) * 72u) + 16u;
            metal::simdgroup_half8x8 b0_2 = NagaCooperativeLoad(&tile_w.inner[at_w0_2], 72u, true);
            metal::simdgroup_float8x8 _e1097 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_2, b0_2, _e1097);
            metal::simdgroup_float8x8 _e1099 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_2, b0_2, _e1099);
            uint at_w1_2 = ((team_column + 8u) * 72u) + 16u;
            metal::simdgroup_half8x8 b1_2 = NagaCooperativeLoad(&tile_w.inner[at_w1_2], 72u, true);
            metal::simdgroup_float8x8 _e1111 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_2, b1_2, _e1111);
            metal::simdgroup_float8x8 _e1113 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_2, b1_2, _e1113);
            uint at_w2_2 = ((team_column + 16u) * 72u) + 16u;
            metal::simdgroup_half8x8 b2_2 = NagaCooperativeLoad(&tile_w.inner[at_w2_2], 72u, true);
            metal::simdgroup_float8x8 _e1125 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_2, b2_2, _e1125);
            metal::simdgroup_float8x8 _e1127 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_2, b2_2, _e1127);
            uint at_w3_2 = ((team_column + 24u) * 72u) + 16u;
            metal::simdgroup_half8x8 b3_2 = NagaCooperativeLoad(&tile_w.inner[at_w3_2], 72u, true);
            metal::simdgroup_float8x8 _e1139 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_2, b3_2, _e1139);
            metal::simdgroup_float8x8 _e1141 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_2, b3_2, _e1141);
        }
        {
            uint at_x0_3 = ((team_row + 0u) * 72u) + 24u;
            metal::simdgroup_half8x8 a0_3 = NagaCooperativeLoad(&tile_x.inner[at_x0_3], 72u, false);
            uint at_x1_3 = ((team_row + 8u) * 72u) + 24u;
            metal::simdgroup_half8x8 a1_3 = NagaCooperativeLoad(&tile_x.inner[at_x1_3], 72u, false);
            uint at_w0_3 = ((team_column + 0u) * 72u) + 24u;
            metal::simdgroup_half8x8 b0_3 = NagaCooperativeLoad(&tile_w.inner[at_w0_3], 72u, true);
            metal::simdgroup_float8x8 _e1173 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_3, b0_3, _e1173);
            metal::simdgroup_float8x8 _e1175 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_3, b0_3, _e1175);
            uint at_w1_3 = ((team_column + 8u) * 72u) + 24u;
            metal::simdgroup_half8x8 b1_3 = NagaCooperativeLoad(&tile_w.inner[at_w1_3], 72u, true);
            metal::simdgroup_float8x8 _e1187 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_3, b1_3, _e1187);
            metal::simdgroup_float8x8 _e1189 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_3, b1_3, _e1189);
            uint at_w2_3 = ((team_column + 16u) * 72u) + 24u;
            metal::simdgroup_half8x8 b2_3 = NagaCooperativeLoad(&tile_w.inner[at_w2_3], 72u, true);
            metal::simdgroup_float8x8 _e1201 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_3, b2_3, _e1201);
            metal::simdgroup_float8x8 _e1203 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_3, b2_3, _e1203);
            uint at_w3_3 = ((team_column + 24u) * 72u) + 24u;
            metal::simdgroup_half8x8 b3_3 = NagaCooperativeLoad(&tile_w.inner[at_w3_3], 72u, true);
            metal::simdgroup_float8x8 _e1215 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_3, b3_3, _e1215);
            metal::simdgroup_float8x8 _e1217 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_3, b3_3, _e1217);
        }
        {
            uint at_x0_4 = ((team_row + 0u) * 72u) + 32u;
            metal::simdgroup_half8x8 a0_4 = NagaCooperativeLoad(&tile_x.inner[at_x0_4], 72u, false);
            uint at_x1_4 = ((team_row + 8u) * 72u) + 32u;
            metal::simdgroup_half8x8 a1_4 = NagaCooperativeLoad(&tile_x.inner[at_x1_4], 72u, false);
            uint at_w0_4 = ((team_column + 0u) * 72u) + 32u;
            metal::simdgroup_half8x8 b0_4 = NagaCooperativeLoad(&tile_w.inner[at_w0_4], 72u, true);
            metal::simdgroup_float8x8 _e1249 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_4, b0_4, _e1249);
            metal::simdgroup_float8x8 _e1251 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_4, b0_4, _e1251);
            uint at_w1_4 = ((team_column + 8u) * 72u) + 32u;
            metal::simdgroup_half8x8 b1_4 = NagaCooperativeLoad(&tile_w.inner[at_w1_4], 72u, true);
            metal::simdgroup_float8x8 _e1263 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_4, b1_4, _e1263);
            metal::simdgroup_float8x8 _e1265 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_4, b1_4, _e1265);
            uint at_w2_4 = ((team_column + 16u) * 72u) + 32u;
            metal::simdgroup_half8x8 b2_4 = NagaCooperativeLoad(&tile_w.inner[at_w2_4], 72u, true);
            metal::simdgroup_float8x8 _e1277 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_4, b2_4, _e1277);
            metal::simdgroup_float8x8 _e1279 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_4, b2_4, _e1279);
            uint at_w3_4 = ((team_column + 24u) * 72u) + 32u;
            metal::simdgroup_half8x8 b3_4 = NagaCooperativeLoad(&tile_w.inner[at_w3_4], 72u, true);
            metal::simdgroup_float8x8 _e1291 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_4, b3_4, _e1291);
            metal::simdgroup_float8x8 _e1293 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_4, b3_4, _e1293);
        }
        {
            uint at_x0_5 = ((team_row + 0u) * 72u) + 40u;
            metal::simdgroup_half8x8 a0_5 = NagaCooperativeLoad(&tile_x.inner[at_x0_5], 72u, false);
            uint at_x1_5 = ((team_row + 8u) * 72u) + 40u;
            metal::simdgroup_half8x8 a1_5 = NagaCooperativeLoad(&tile_x.inner[at_x1_5], 72u, false);
            uint at_w0_5 = ((team_column + 0u) * 72u) + 40u;
            metal::simdgroup_half8x8 b0_5 = NagaCooperativeLoad(&tile_w.inner[at_w0_5], 72u, true);
            metal::simdgroup_float8x8 _e1325 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_5, b0_5, _e1325);
            metal::simdgroup_float8x8 _e1327 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_5, b0_5, _e1327);
            uint at_w1_5 = ((team_column + 8u) * 72u) + 40u;
            metal::simdgroup_half8x8 b1_5 = NagaCooperativeLoad(&tile_w.inner[at_w1_5], 72u, true);
            metal::simdgroup_float8x8 _e1339 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_5, b1_5, _e1339);
            metal::simdgroup_float8x8 _e1341 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_5, b1_5, _e1341);
            uint at_w2_5 = ((team_column + 16u) * 72u) + 40u;
            metal::simdgroup_half8x8 b2_5 = NagaCooperativeLoad(&tile_w.inner[at_w2_5], 72u, true);
            metal::simdgroup_float8x8 _e1353 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_5, b2_5, _e1353);
            metal::simdgroup_float8x8 _e1355 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_5, b2_5, _e1355);
            uint at_w3_5 = ((team_column + 24u) * 72u) + 40u;
            metal::simdgroup_half8x8 b3_5 = NagaCooperativeLoad(&tile_w.inner[at_w3_5], 72u, true);
            metal::simdgroup_float8x8 _e1367 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_5, b3_5, _e1367);
            metal::simdgroup_float8x8 _e1369 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_5, b3_5, _e1369);
        }
        {
            uint at_x0_6 = ((team_row + 0u) * 72u) + 48u;
            metal::simdgroup_half8x8 a0_6 = NagaCooperativeLoad(&tile_x.inner[at_x0_6], 72u, false);
            uint at_x1_6 = ((team_row + 8u) * 72u) + 48u;
            metal::simdgroup_half8x8 a1_6 = NagaCooperativeLoad(&tile_x.inner[at_x1_6], 72u, false);
            uint at_w0_6 = ((team_column + 0u) * 72u) + 48u;
            metal::simdgroup_half8x8 b0_6 = NagaCooperativeLoad(&tile_w.inner[at_w0_6], 72u, true);
            metal::simdgroup_float8x8 _e1401 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_6, b0_6, _e1401);
            metal::simdgroup_float8x8 _e1403 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_6, b0_6, _e1403);
            uint at_w1_6 = ((team_column + 8u) * 72u) + 48u;
            metal::simdgroup_half8x8 b1_6 = NagaCooperativeLoad(&tile_w.inner[at_w1_6], 72u, true);
            metal::simdgroup_float8x8 _e1415 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_6, b1_6, _e1415);
            metal::simdgroup_float8x8 _e1417 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_6, b1_6, _e1417);
            uint at_w2_6 = ((team_column + 16u) * 72u) + 48u;
            metal::simdgroup_half8x8 b2_6 = NagaCooperativeLoad(&tile_w.inner[at_w2_6], 72u, true);
            metal::simdgroup_float8x8 _e1429 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_6, b2_6, _e1429);
            metal::simdgroup_float8x8 _e1431 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_6, b2_6, _e1431);
            uint at_w3_6 = ((team_column + 24u) * 72u) + 48u;
            metal::simdgroup_half8x8 b3_6 = NagaCooperativeLoad(&tile_w.inner[at_w3_6], 72u, true);
            metal::simdgroup_float8x8 _e1443 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_6, b3_6, _e1443);
            metal::simdgroup_float8x8 _e1445 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_6, b3_6, _e1445);
        }
        {
            uint at_x0_7 = ((team_row + 0u) * 72u) + 56u;
            metal::simdgroup_half8x8 a0_7 = NagaCooperativeLoad(&tile_x.inner[at_x0_7], 72u, false);
            uint at_x1_7 = ((team_row + 8u) * 72u) + 56u;
            metal::simdgroup_half8x8 a1_7 = NagaCooperativeLoad(&tile_x.inner[at_x1_7], 72u, false);
            uint at_w0_7 = ((team_column + 0u) * 72u) + 56u;
            metal::simdgroup_half8x8 b0_7 = NagaCooperativeLoad(&tile_w.inner[at_w0_7], 72u, true);
            metal::simdgroup_float8x8 _e1477 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_7, b0_7, _e1477);
            metal::simdgroup_float8x8 _e1479 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_7, b0_7, _e1479);
            uint at_w1_7 = ((team_column + 8u) * 72u) + 56u;
            metal::simdgroup_half8x8 b1_7 = NagaCooperativeLoad(&tile_w.inner[at_w1_7], 72u, true);
            metal::simdgroup_float8x8 _e1491 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_7, b1_7, _e1491);
            metal::simdgroup_float8x8 _e1493 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_7, b1_7, _e1493);
            uint at_w2_7 = ((team_column + 16u) * 72u) + 56u;
            metal::simdgroup_half8x8 b2_7 = NagaCooperativeLoad(&tile_w.inner[at_w2_7], 72u, true);
            metal::simdgroup_float8x8 _e1505 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_7, b2_7, _e1505);
            metal::simdgroup_float8x8 _e1507 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_7, b2_7, _e1507);
            uint at_w3_7 = ((team_column + 24u) * 72u) + 56u;
            metal::simdgroup_half8x8 b3_7 = NagaCooperativeLoad(&tile_w.inner[at_w3_7], 72u, true);
            metal::simdgroup_float8x8 _e1519 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_7, b3_7, _e1519);
            metal::simdgroup_float8x8 _e1521 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_7, b3_7, _e1521);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    uint place = team * 64u;
    metal::simdgroup_float8x8 _e1525 = sum_0_0_;
    simdgroup_store(_e1525, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at = lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e1573 = at;
            at = _e1573 + lanes;
        }
        loop_init = false;
        uint _e1530 = at;
        if (_e1530 < 16u) {
        } else {
            break;
        }
        {
            uint _e1533 = at;
            uint cell = place + (_e1533 * 4u);
            uint _e1540 = at;
            uint row_4 = ((m0_ + team_row) + 0u) + (_e1540 / 2u);
            uint _e1547 = at;
            uint column_1 = ((first_1 + team_column) + 0u) + ((_e1547 % 2u) * 4u);
            uint _e1553 = which;
            float _e1556 = results.inner[cell];
            float _e1561 = results.inner[cell + 1u];
            float _e1566 = results.inner[cell + 2u];
            float _e1571 = results.inner[cell + 3u];
            finish(_e1553, own_1, row_4, column_1, metal::float4(_e1556, _e1561, _e1566, _e1571), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1575 = sum_0_1_;
    simdgroup_store(_e1575, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_1 = lane;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e1623 = at_1;
            at_1 = _e1623 + lanes;
        }
        loop_init_1 = false;
        uint _e1580 = at_1;
        if (_e1580 < 16u) {
        } else {
            break;
        }
        {
            uint _e1583 = at_1;
            uint cell_1 = place + (_e1583 * 4u);
            uint _e1590 = at_1;
            uint row_5 = ((m0_ + team_row) + 0u) + (_e1590 / 2u);
            uint _e1597 = at_1;
            uint column_2 = ((first_1 + team_column) + 8u) + ((_e1597 % 2u) * 4u);
            uint _e1603 = which;
            float _e1606 = results.inner[cell_1];
            float _e1611 = results.inner[cell_1 + 1u];
            float _e1616 = results.inner[cell_1 + 2u];
            float _e1621 = results.inner[cell_1 + 3u];
            finish(_e1603, own_1, row_5, column_2, metal::float4(_e1606, _e1611, _e1616, _e1621), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1625 = sum_0_2_;
    simdgroup_store(_e1625, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_2 = lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e1673 = at_2;
            at_2 = _e1673 + lanes;
        }
        loop_init_2 = false;
        uint _e1630 = at_2;
        if (_e1630 < 16u) {
        } else {
            break;
        }
        {
            uint _e1633 = at_2;
            uint cell_2 = place + (_e1633 * 4u);
            uint _e1640 = at_2;
            uint row_6 = ((m0_ + team_row) + 0u) + (_e1640 / 2u);
            uint _e1647 = at_2;
            uint column_3 = ((first_1 + team_column) + 16u) + ((_e1647 % 2u) * 4u);
            uint _e1653 = which;
            float _e1656 = results.inner[cell_2];
            float _e1661 = results.inner[cell_2 + 1u];
            float _e1666 = results.inner[cell_2 + 2u];
            float _e1671 = results.inner[cell_2 + 3u];
            finish(_e1653, own_1, row_6, column_3, metal::float4(_e1656, _e1661, _e1666, _e1671), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1675 = sum_0_3_;
    simdgroup_store(_e1675, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_3 = lane;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e1723 = at_3;
            at_3 = _e1723 + lanes;
        }
        loop_init_3 = false;
        uint _e1680 = at_3;
        if (_e1680 < 16u) {
        } else {
            break;
        }
        {
            uint _e1683 = at_3;
            uint cell_3 = place + (_e1683 * 4u);
            uint _e1690 = at_3;
            uint row_7 = ((m0_ + team_row) + 0u) + (_e1690 / 2u);
            uint _e1697 = at_3;
            uint column_4 = ((first_1 + team_column) + 24u) + ((_e1697 % 2u) * 4u);
            uint _e1703 = which;
            float _e1706 = results.inner[cell_3];
            float _e1711 = results.inner[cell_3 + 1u];
            float _e1716 = results.inner[cell_3 + 2u];
            float _e1721 = results.inner[cell_3 + 3u];
            finish(_e1703, own_1, row_7, column_4, metal::float4(_e1706, _e1711, _e1716, _e1721), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1725 = sum_1_0_;
    simdgroup_store(_e1725, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_4 = lane;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e1773 = at_4;
            at_4 = _e1773 + lanes;
        }
        loop_init_4 = false;
        uint _e1730 = at_4;
        if (_e1730 < 16u) {
        } else {
            break;
        }
        {
            uint _e1733 = at_4;
            uint cell_4 = place + (_e1733 * 4u);
            uint _e1740 = at_4;
            uint row_8 = ((m0_ + team_row) + 8u) + (_e1740 / 2u);
            uint _e1747 = at_4;
            uint column_5 = ((first_1 + team_column) + 0u) + ((_e1747 % 2u) * 4u);
            uint _e1753 = which;
            float _e1756 = results.inner[cell_4];
            float _e1761 = results.inner[cell_4 + 1u];
            float _e1766 = results.inner[cell_4 + 2u];
            float _e1771 = results.inner[cell_4 + 3u];
            finish(_e1753, own_1, row_8, column_5, metal::float4(_e1756, _e1761, _e1766, _e1771), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1775 = sum_1_1_;
    simdgroup_store(_e1775, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_5 = lane;
    bool loop_init_5 = true;
    while(true) {
        if (!loop_init_5) {
            uint _e1823 = at_5;
            at_5 = _e1823 + lanes;
        }
        loop_init_5 = false;
        uint _e1780 = at_5;
        if (_e1780 < 16u) {
        } else {
            break;
        }
        {
            uint _e1783 = at_5;
            uint cell_5 = place + (_e1783 * 4u);
            uint _e1790 = at_5;
            uint row_9 = ((m0_ + team_row) + 8u) + (_e1790 / 2u);
            uint _e1797 = at_5;
            uint column_6 = ((first_1 + team_column) + 8u) + ((_e1797 % 2u) * 4u);
            uint _e1803 = which;
            float _e1806 = results.inner[cell_5];
            float _e1811 = results.inner[cell_5 + 1u];
            float _e1816 = results.inner[cell_5 + 2u];
            float _e1821 = results.inner[cell_5 + 3u];
            finish(_e1803, own_1, row_9, column_6, metal::float4(_e1806, _e1811, _e1816, _e1821), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1825 = sum_1_2_;
    simdgroup_store(_e1825, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_6 = lane;
    bool loop_init_6 = true;
    while(true) {
        if (!loop_init_6) {
            uint _e1873 = at_6;
            at_6 = _e1873 + lanes;
        }
        loop_init_6 = false;
        uint _e1830 = at_6;
        if (_e1830 < 16u) {
        } else {
            break;
        }
        {
            uint _e1833 = at_6;
            uint cell_6 = place + (_e1833 * 4u);
            uint _e1840 = at_6;
            uint row_10 = ((m0_ + team_row) + 8u) + (_e1840 / 2u);
            uint _e1847 = at_6;
            uint column_7 = ((first_1 + team_column) + 16u) + ((_e1847 % 2u) * 4u);
            uint _e1853 = which;
            float _e1856 = results.inner[cell_6];
            float _e1861 = results.inner[cell_6 + 1u];
            float _e1866 = results.inner[cell_6 + 2u];
            float _e1871 = results.inner[cell_6 + 3u];
            finish(_e1853, own_1, row_10, column_7, metal::float4(_e1856, _e1861, _e1866, _e1871), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1875 = sum_1_3_;
    simdgroup_store(_e1875, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_7 = lane;
    bool loop_init_7 = true;
    while(true) {
        if (!loop_init_7) {
            uint _e1923 = at_7;
            at_7 = _e1923 + lanes;
        }
        loop_init_7 = false;
        uint _e1880 = at_7;
        if (_e1880 < 16u) {
        } else {
            break;
        }
        {
            uint _e1883 = at_7;
            uint cell_7 = place + (_e1883 * 4u);
            uint _e1890 = at_7;
            uint row_11 = ((m0_ + team_row) + 8u) + (_e1890 / 2u);
            uint _e1897 = at_7;
            uint column_8 = ((first_1 + team_column) + 24u) + ((_e1897 % 2u) * 4u);
            uint _e1903 = which;
            float _e1906 = results.inner[cell_7];
            float _e1911 = results.inner[cell_7 + 1u];
            float _e1916 = results.inner[cell_7 + 2u];
            float _e1921 = results.inner[cell_7 + 3u];
            finish(_e1903, own_1, row_11, column_8, metal::float4(_e1906, _e1911, _e1916, _e1921), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
