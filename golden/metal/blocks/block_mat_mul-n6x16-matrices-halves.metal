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
    uint _e83 = params.units;
    if (_e83 > 0u) {
        {
            uint at_11 = local + 0u;
            uint _e95 = params.m;
            uint _e100 = base;
            metal::float4 _e113 = x[(metal::min(m0_ + (at_11 / 16u), _e95 - 1u) * x_quads) + metal::min(((_e100 * 32u) >> 2u) + (at_11 % 16u), x_quads - 1u)];
            uint _e120 = params.m;
            if ((m0_ + (at_11 / 16u)) < _e120) {
                uint _e124 = base;
                local_1 = (((_e124 * 32u) >> 2u) + (at_11 % 16u)) < x_quads;
            } else {
                local_1 = false;
            }
            bool _e134 = local_1;
            x0_ = _e134 ? static_cast<metal::float4>(_e113) : metal::float4 {};
        }
        {
            uint at_12 = local + 128u;
            uint _e145 = params.m;
            uint _e150 = base;
            metal::float4 _e163 = x[(metal::min(m0_ + (at_12 / 16u), _e145 - 1u) * x_quads) + metal::min(((_e150 * 32u) >> 2u) + (at_12 % 16u), x_quads - 1u)];
            uint _e170 = params.m;
            if ((m0_ + (at_12 / 16u)) < _e170) {
                uint _e174 = base;
                local_2 = (((_e174 * 32u) >> 2u) + (at_12 % 16u)) < x_quads;
            } else {
                local_2 = false;
            }
            bool _e184 = local_2;
            x1_ = _e184 ? static_cast<metal::float4>(_e163) : metal::float4 {};
        }
        {
            uint at_13 = local + 256u;
            uint _e195 = params.m;
            uint _e200 = base;
            metal::float4 _e213 = x[(metal::min(m0_ + (at_13 / 16u), _e195 - 1u) * x_quads) + metal::min(((_e200 * 32u) >> 2u) + (at_13 % 16u), x_quads - 1u)];
            uint _e220 = params.m;
            if ((m0_ + (at_13 / 16u)) < _e220) {
                uint _e224 = base;
                local_3 = (((_e224 * 32u) >> 2u) + (at_13 % 16u)) < x_quads;
            } else {
                local_3 = false;
            }
            bool _e234 = local_3;
            x2_ = _e234 ? static_cast<metal::float4>(_e213) : metal::float4 {};
        }
        {
            uint at_14 = local + 384u;
            uint _e245 = params.m;
            uint _e250 = base;
            metal::float4 _e263 = x[(metal::min(m0_ + (at_14 / 16u), _e245 - 1u) * x_quads) + metal::min(((_e250 * 32u) >> 2u) + (at_14 % 16u), x_quads - 1u)];
            uint _e270 = params.m;
            if ((m0_ + (at_14 / 16u)) < _e270) {
                uint _e274 = base;
                local_4 = (((_e274 * 32u) >> 2u) + (at_14 % 16u)) < x_quads;
            } else {
                local_4 = false;
            }
            bool _e284 = local_4;
            x3_ = _e284 ? static_cast<metal::float4>(_e263) : metal::float4 {};
        }
        {
            uint _e286 = base;
            uint unit = _e286 + (w_at0_ / 64u);
            uint _e292 = params.units;
            bool inside = unit < _e292;
            uint _e296 = params.units;
            uint _e300 = params.units;
            uint w_from = (w_row0_ * _e296) + metal::min(unit, _e300 - 1u);
            metal::uint4 _e308 = low[w_from];
            q0_ = inside ? _e308 : metal::uint4 {};
            metal::uint2 _e313 = high[w_from];
            h0_ = inside ? _e313 : metal::uint2 {};
            uint _e317 = params.factor_words;
            uint start = w_row0_ * _e317;
            uint _e322 = params.units;
            uint _e334 = factors[start + (((metal::min(unit, _e322 - 1u) * 2u) + 0u) >> 2u)];
            uint _e338 = params.wholes;
            uint _e342 = params.units;
            uint _e354 = factors[(start + _e338) + (((metal::min(unit, _e342 - 1u) * 2u) + 0u) >> 5u)];
            s0_0_ = metal::uint2(_e334, _e354);
            uint _e359 = params.units;
            uint _e371 = factors[start + (((metal::min(unit, _e359 - 1u) * 2u) + 1u) >> 2u)];
            uint _e375 = params.wholes;
            uint _e379 = params.units;
            uint _e391 = factors[(start + _e375) + (((metal::min(unit, _e379 - 1u) * 2u) + 1u) >> 5u)];
            s0_1_ = metal::uint2(_e371, _e391);
        }
    }
    while(true) {
        uint _e393 = base;
        uint _e396 = params.units;
        if (_e393 >= _e396) {
            break;
        }
        {
            uint at_15 = local + 0u;
            metal::float4 _e406 = x0_;
            put_x(at_15 / 16u, (at_15 % 16u) * 4u, _e406, tile_x);
        }
        {
            uint at_16 = local + 128u;
            metal::float4 _e415 = x1_;
            put_x(at_16 / 16u, (at_16 % 16u) * 4u, _e415, tile_x);
        }
        {
            uint at_17 = local + 256u;
            metal::float4 _e424 = x2_;
            put_x(at_17 / 16u, (at_17 % 16u) * 4u, _e424, tile_x);
        }
        {
            uint at_18 = local + 384u;
            metal::float4 _e433 = x3_;
            put_x(at_18 / 16u, (at_18 % 16u) * 4u, _e433, tile_x);
        }
        {
            uint to = w_at0_ % 64u;
            uint k_2 = (w_at0_ / 64u) * 32u;
            uint _e440 = base;
            uint unit_1 = _e440 + (w_at0_ / 64u);
            uint block0_ = (unit_1 * 2u) + 0u;
            uint _e450 = s0_0_.x;
            uint _e463 = s0_0_.y;
            uint _e478 = params.units;
            metal::float2 f0_0_ = (unit_1 < _e478) ? metal::float2(static_cast<float>(as_type<int>(_e450 << (24u - ((block0_ & 3u) * 8u))) >> 24u) * float2(as_type<half2>((_e463 >> (((block0_ >> 4u) & 1u) * 16u)))).x, 0.0) : metal::float2 {};
            uint block1_ = (unit_1 * 2u) + 1u;
            uint _e487 = s0_1_.x;
            uint _e500 = s0_1_.y;
            uint _e515 = params.units;
            metal::float2 f0_1_ = (unit_1 < _e515) ? metal::float2(static_cast<float>(as_type<int>(_e487 << (24u - ((block1_ & 3u) * 8u))) >> 24u) * float2(as_type<half2>((_e500 >> (((block1_ >> 4u) & 1u) * 16u)))).x, 0.0) : metal::float2 {};
            uint _e521 = q0_.x;
            uint _e527 = h0_.x;
            put_w(to, k_2 + 0u, (as_type<metal::float4>(((metal::uint4(((_e521 >> 0u) & 252645135u) | (((_e527 >> 0u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e569 = q0_.x;
            uint _e575 = h0_.x;
            put_w(to, k_2 + 4u, (as_type<metal::float4>(((metal::uint4(((_e569 >> 4u) & 252645135u) | (((_e575 >> 2u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e617 = q0_.y;
            uint _e623 = h0_.x;
            put_w(to, k_2 + 8u, (as_type<metal::float4>(((metal::uint4(((_e617 >> 0u) & 252645135u) | (((_e623 >> 4u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e665 = q0_.y;
            uint _e671 = h0_.x;
            put_w(to, k_2 + 12u, (as_type<metal::float4>(((metal::uint4(((_e665 >> 4u) & 252645135u) | (((_e671 >> 6u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e713 = q0_.z;
            uint _e719 = h0_.y;
            put_w(to, k_2 + 16u, (as_type<metal::float4>(((metal::uint4(((_e713 >> 0u) & 252645135u) | (((_e719 >> 0u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_1_.x), tile_w);
            uint _e761 = q0_.z;
            uint _e767 = h0_.y;
            put_w(to, k_2 + 20u, (as_type<metal::float4>(((metal::uint4(((_e761 >> 4u) & 252645135u) | (((_e767 >> 2u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_1_.x), tile_w);
            uint _e809 = q0_.w;
            uint _e815 = h0_.y;
            put_w(to, k_2 + 24u, (as_type<metal::float4>(((metal::uint4(((_e809 >> 0u) & 252645135u) | (((_e815 >> 4u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_1_.x), tile_w);
            uint _e857 = q0_.w;
            uint _e863 = h0_.y;
            put_w(to, k_2 + 28u, (as_type<metal::float4>(((metal::uint4(((_e857 >> 4u) & 252645135u) | (((_e863 >> 6u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_1_.x), tile_w);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e902 = base;
        base = _e902 + 2u;
        uint _e905 = base;
        uint _e908 = params.units;
        if (_e905 < _e908) {
            {
                uint at_19 = local + 0u;
                uint _e919 = params.m;
                uint _e924 = base;
                metal::float4 _e937 = x[(metal::min(m0_ + (at_19 / 16u), _e919 - 1u) * x_quads) + metal::min(((_e924 * 32u) >> 2u) + (at_19 % 16u), x_quads - 1u)];
                uint _e944 = params.m;
                if ((m0_ + (at_19 / 16u)) < _e944) {
                    uint _e948 = base;
                    local_5 = (((_e948 * 32u) >> 2u) + (at_19 % 16u)) < x_quads;
                } else {
                    local_5 = false;
                }
                bool _e958 = local_5;
                x0_ = _e958 ? static_cast<metal::float4>(_e937) : metal::float4 {};
            }
            {
                uint at_20 = local + 128u;
                uint _e969 = params.m;
                uint _e974 = base;
                metal::float4 _e987 = x[(metal::min(m0_ + (at_20 / 16u), _e969 - 1u) * x_quads) + metal::min(((_e974 * 32u) >> 2u) + (at_20 % 16u), x_quads - 1u)];
                uint _e994 = params.m;
                if ((m0_ + (at_20 / 16u)) < _e994) {
                    uint _e998 = base;
                    local_6 = (((_e998 * 32u) >> 2u) + (at_20 % 16u)) < x_quads;
                } else {
                    local_6 = false;
                }
                bool _e1008 = local_6;
                x1_ = _e1008 ? static_cast<metal::float4>(_e987) : metal::float4 {};
            }
            {
                uint at_21 = local + 256u;
                uint _e1019 = params.m;
                uint _e1024 = base;
                metal::float4 _e1037 = x[(metal::min(m0_ + (at_21 / 16u), _e1019 - 1u) * x_quads) + metal::min(((_e1024 * 32u) >> 2u) + (at_21 % 16u), x_quads - 1u)];
                uint _e1044 = params.m;
                if ((m0_ + (at_21 / 16u)) < _e1044) {
                    uint _e1048 = base;
                    local_7 = (((_e1048 * 32u) >> 2u) + (at_21 % 16u)) < x_quads;
                } else {
                    local_7 = false;
                }
                bool _e1058 = local_7;
                x2_ = _e1058 ? static_cast<metal::float4>(_e1037) : metal::float4 {};
            }
            {
                uint at_22 = local + 384u;
                uint _e1069 = params.m;
                uint _e1074 = base;
                metal::float4 _e1087 = x[(metal::min(m0_ + (at_22 / 16u), _e1069 - 1u) * x_quads) + metal::min(((_e1074 * 32u) >> 2u) + (at_22 % 16u), x_quads - 1u)];
                uint _e1094 = params.m;
                if ((m0_ + (at_22 / 16u)) < _e1094) {
                    uint _e1098 = base;
                    local_8 = (((_e1098 * 32u) >> 2u) + (at_22 % 16u)) < x_quads;
                } else {
                    local_8 = false;
                }
                bool _e1108 = local_8;
                x3_ = _e1108 ? static_cast<metal::float4>(_e1087) : metal::float4 {};
            }
            {
                uint _e1110 = base;
                uint unit_2 = _e1110 + (w_at0_ / 64u);
                uint _e1116 = params.units;
                bool inside_1 = unit_2 < _e1116;
                uint _e1120 = params.units;
                uint _e1124 = params.units;
                uint w_from_1 = (w_row0_ * _e1120) + metal::min(unit_2, _e1124 - 1u);
                metal::uint4 _e1132 = low[w_from_1];
                q0_ = inside_1 ? _e1132 : metal::uint4 {};
                metal::uint2 _e1137 = high[w_from_1];
                h0_ = inside_1 ? _e1137 : metal::uint2 {};
                uint _e1141 = params.factor_words;
                uint start_1 = w_row0_ * _e1141;
                uint _e1146 = params.units;
                uint _e1158 = factors[start_1 + (((metal::min(unit_2, _e1146 - 1u) * 2u) + 0u) >> 2u)];
                uint _e1162 = params.wholes;
                uint _e1166 = params.units;
                uint _e1178 = factors[(start_1 + _e1162) + (((metal::min(unit_2, _e1166 - 1u) * 2u) + 0u) >> 5u)];
                s0_0_ = metal::uint2(_e1158, _e1178);
                uint _e1183 = params.units;
                uint _e1195 = factors[start_1 + (((metal::min(unit_2, _e1183 - 1u) * 2u) + 1u) >> 2u)];
                uint _e1199 = params.wholes;
                uint _e1203 = params.units;
                uint _e1215 = factors[(start_1 + _e1199) + (((metal::min(unit_2, _e1203 - 1u) * 2u) + 1u) >> 5u)];
                s0_1_ = metal::uint2(_e1195, _e1215);
            }
        }
        {
            uint at_x0_ = ((team_row + 0u) * 72u) + 0u;
            metal::simdgroup_half8x8 a0_ = NagaCooperativeLoad(&tile_x.inner[at_x0_], 72u, false);
            uint at_x1_ = ((team_row + 8u) * 72u) + 0u;
            metal::simdgroup_half8x8 a1_ = NagaCooperativeLoad(&tile_x.inner[at_x1_], 72u, false);
            uint at_w0_ = ((team_column + 0u) * 72u) + 0u;
            metal::simdgroup_half8x8 b0_ = NagaCooperativeLoad(&tile_w.inner[at_w0_], 72u, true);
            metal::simdgroup_float8x8 _e1247 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_, b0_, _e1247);
            metal::simdgroup_float8x8 _e1249 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_, b0_, _e1249);
            uint at_w1_ = ((team_column + 8u) * 72u) + 0u;
            metal::simdgroup_half8x8 b1_ = NagaCooperativeLoad(&tile_w.inner[at_w1_], 72u, true);
            metal::simdgroup_float8x8 _e1261 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_, b1_, _e1261);
            metal::simdgroup_float8x8 _e1263 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_, b1_, _e1263);
            uint at_w2_ = ((team_column + 16u) * 72u) + 0u;
            metal::simdgroup_half8x8 b2_ = NagaCooperativeLoad(&tile_w.inner[at_w2_], 72u, true);
            metal::simdgroup_float8x8 _e1275 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_, b2_, _e1275);
            metal::simdgroup_float8x8 _e1277 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_, b2_, _e1277);
            uint at_w3_ = ((team_column + 24u) * 72u) + 0u;
            metal::simdgroup_half8x8 b3_ = NagaCooperativeLoad(&tile_w.inner[at_w3_], 72u, true);
            metal::simdgroup_float8x8 _e1289 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_, b3_, _e1289);
            metal::simdgroup_float8x8 _e1291 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_, b3_, _e1291);
        }
        {
            uint at_x0_1 = ((team_row + 0u) * 72u) + 8u;
            metal::simdgroup_half8x8 a0_1 = NagaCooperativeLoad(&tile_x.inner[at_x0_1], 72u, false);
            uint at_x1_1 = ((team_row + 8u) * 72u) + 8u;
            metal::simdgroup_half8x8 a1_1 = NagaCooperativeLoad(&tile_x.inner[at_x1_1], 72u, false);
            uint at_w0_1 = ((team_column + 0u) * 72u) + 8u;
            metal::simdgroup_half8x8 b0_1 = NagaCooperativeLoad(&tile_w.inner[at_w0_1], 72u, true);
            metal::simdgroup_float8x8 _e1323 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_1, b0_1, _e1323);
            metal::simdgroup_float8x8 _e1325 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_1, b0_1, _e1325);
            uint at_w1_1 = ((team_column + 8u) * 72u) + 8u;
            metal::simdgroup_half8x8 b1_1 = NagaCooperativeLoad(&tile_w.inner[at_w1_1], 72u, true);
            metal::simdgroup_float8x8 _e1337 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_1, b1_1, _e1337);
            metal::simdgroup_float8x8 _e1339 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_1, b1_1, _e1339);
            uint at_w2_1 = ((team_column + 16u) * 72u) + 8u;
            metal::simdgroup_half8x8 b2_1 = NagaCooperativeLoad(&tile_w.inner[at_w2_1], 72u, true);
            metal::simdgroup_float8x8 _e1351 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_1, b2_1, _e1351);
            metal::simdgroup_float8x8 _e1353 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_1, b2_1, _e1353);
            uint at_w3_1 = ((team_column + 24u) * 72u) + 8u;
            metal::simdgroup_half8x8 b3_1 = NagaCooperativeLoad(&tile_w.inner[at_w3_1], 72u, true);
            metal::simdgroup_float8x8 _e1365 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_1, b3_1, _e1365);
            metal::simdgroup_float8x8 _e1367 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_1, b3_1, _e1367);
        }
        {
            uint at_x0_2 = ((team_row + 0u) * 72u) + 16u;
            metal::simdgroup_half8x8 a0_2 = NagaCooperativeLoad(&tile_x.inner[at_x0_2], 72u, false);
            uint at_x1_2 = ((team_row + 8u) * 72u) + 16u;
            metal::simdgroup_half8x8 a1_2 = NagaCooperativeLoad(&tile_x.inner[at_x1_2], 72u, false);
            uint at_w0_2 = ((team_column + 0u) * 72u) + 16u;
            metal::simdgroup_half8x8 b0_2 = NagaCooperativeLoad(&tile_w.inner[at_w0_2], 72u, true);
            metal::simdgroup_float8x8 _e1399 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_2, b0_2, _e1399);
            metal::simdgroup_float8x8 _e1401 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_2, b0_2, _e1401);
            uint at_w1_2 = ((team_column + 8u) * 72u) + 16u;
            metal::simdgroup_half8x8 b1_2 = NagaCooperativeLoad(&tile_w.inner[at_w1_2], 72u, true);
            metal::simdgroup_float8x8 _e1413 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_2, b1_2, _e1413);
            metal::simdgroup_float8x8 _e1415 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_2, b1_2, _e1415);
            uint at_w2_2 = ((team_column + 16u) * 72u) + 16u;
            metal::simdgroup_half8x8 b2_2 = NagaCooperativeLoad(&tile_w.inner[at_w2_2], 72u, true);
            metal::simdgroup_float8x8 _e1427 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_2, b2_2, _e1427);
            metal::simdgroup_float8x8 _e1429 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_2, b2_2, _e1429);
            uint at_w3_2 = ((team_column + 24u) * 72u) + 16u;
            metal::simdgroup_half8x8 b3_2 = NagaCooperativeLoad(&tile_w.inner[at_w3_2], 72u, true);
            metal::simdgroup_float8x8 _e1441 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_2, b3_2, _e1441);
            metal::simdgroup_float8x8 _e1443 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_2, b3_2, _e1443);
        }
        {
            uint at_x0_3 = ((team_row + 0u) * 72u) + 24u;
            metal::simdgroup_half8x8 a0_3 = NagaCooperativeLoad(&tile_x.inner[at_x0_3], 72u, false);
            uint at_x1_3 = ((team_row + 8u) * 72u) + 24u;
            metal::simdgroup_half8x8 a1_3 = NagaCooperativeLoad(&tile_x.inner[at_x1_3], 72u, false);
            uint at_w0_3 = ((team_column + 0u) * 72u) + 24u;
            metal::simdgroup_half8x8 b0_3 = NagaCooperativeLoad(&tile_w.inner[at_w0_3], 72u, true);
            metal::simdgroup_float8x8 _e1475 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_3, b0_3, _e1475);
            metal::simdgroup_float8x8 _e1477 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_3, b0_3, _e1477);
            uint at_w1_3 = ((team_column + 8u) * 72u) + 24u;
            metal::simdgroup_half8x8 b1_3 = NagaCooperativeLoad(&tile_w.inner[at_w1_3], 72u, true);
            metal::simdgroup_float8x8 _e1489 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_3, b1_3, _e1489);
            metal::simdgroup_float8x8 _e1491 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_3, b1_3, _e1491);
            uint at_w2_3 = ((team_column + 16u) * 72u) + 24u;
            metal::simdgroup_half8x8 b2_3 = NagaCooperativeLoad(&tile_w.inner[at_w2_3], 72u, true);
            metal::simdgroup_float8x8 _e1503 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_3, b2_3, _e1503);
            metal::simdgroup_float8x8 _e1505 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_3, b2_3, _e1505);
            uint at_w3_3 = ((team_column + 24u) * 72u) + 24u;
            metal::simdgroup_half8x8 b3_3 = NagaCooperativeLoad(&tile_w.inner[at_w3_3], 72u, true);
            metal::simdgroup_float8x8 _e1517 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_3, b3_3, _e1517);
            metal::simdgroup_float8x8 _e1519 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_3, b3_3, _e1519);
        }
        {
            uint at_x0_4 = ((team_row + 0u) * 72u) + 32u;
            metal::simdgroup_half8x8 a0_4 = NagaCooperativeLoad(&tile_x.inner[at_x0_4], 72u, false);
            uint at_x1_4 = ((team_row + 8u) * 72u) + 32u;
            metal::simdgroup_half8x8 a1_4 = NagaCooperativeLoad(&tile_x.inner[at_x1_4], 72u, false);
            uint at_w0_4 = ((team_column + 0u) * 72u) + 32u;
            metal::simdgroup_half8x8 b0_4 = NagaCooperativeLoad(&tile_w.inner[at_w0_4], 72u, true);
            metal::simdgroup_float8x8 _e1551 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_4, b0_4, _e1551);
            metal::simdgroup_float8x8 _e1553 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_4, b0_4, _e1553);
            uint at_w1_4 = ((team_column + 8u) * 72u) + 32u;
            metal::simdgroup_half8x8 b1_4 = NagaCooperativeLoad(&tile_w.inner[at_w1_4], 72u, true);
            metal::simdgroup_float8x8 _e1565 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_4, b1_4, _e1565);
            metal::simdgroup_float8x8 _e1567 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_4, b1_4, _e1567);
            uint at_w2_4 = ((team_column + 16u) * 72u) + 32u;
            metal::simdgroup_half8x8 b2_4 = NagaCooperativeLoad(&tile_w.inner[at_w2_4], 72u, true);
            metal::simdgroup_float8x8 _e1579 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_4, b2_4, _e1579);
            metal::simdgroup_float8x8 _e1581 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_4, b2_4, _e1581);
            uint at_w3_4 = ((team_column + 24u) * 72u) + 32u;
            metal::simdgroup_half8x8 b3_4 = NagaCooperativeLoad(&tile_w.inner[at_w3_4], 72u, true);
            metal::simdgroup_float8x8 _e1593 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_4, b3_4, _e1593);
            metal::simdgroup_float8x8 _e1595 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_4, b3_4, _e1595);
        }
        {
            uint at_x0_5 = ((team_row + 0u) * 72u) + 40u;
            metal::simdgroup_half8x8 a0_5 = NagaCooperativeLoad(&tile_x.inner[at_x0_5], 72u, false);
            uint at_x1_5 = ((team_row + 8u) * 72u) + 40u;
            metal::simdgroup_half8x8 a1_5 = NagaCooperativeLoad(&tile_x.inner[at_x1_5], 72u, false);
            uint at_w0_5 = ((team_column + 0u) * 72u) + 40u;
            metal::simdgroup_half8x8 b0_5 = NagaCooperativeLoad(&tile_w.inner[at_w0_5], 72u, true);
            metal::simdgroup_float8x8 _e1627 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_5, b0_5, _e1627);
            metal::simdgroup_float8x8 _e1629 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_5, b0_5, _e1629);
            uint at_w1_5 = ((team_column + 8u) * 72u) + 40u;
            metal::simdgroup_half8x8 b1_5 = NagaCooperativeLoad(&tile_w.inner[at_w1_5], 72u, true);
            metal::simdgroup_float8x8 _e1641 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_5, b1_5, _e1641);
            metal::simdgroup_float8x8 _e1643 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_5, b1_5, _e1643);
            uint at_w2_5 = ((team_column + 16u) * 72u) + 40u;
            metal::simdgroup_half8x8 b2_5 = NagaCooperativeLoad(&tile_w.inner[at_w2_5], 72u, true);
            metal::simdgroup_float8x8 _e1655 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_5, b2_5, _e1655);
            metal::simdgroup_float8x8 _e1657 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_5, b2_5, _e1657);
            uint at_w3_5 = ((team_column + 24u) * 72u) + 40u;
            metal::simdgroup_half8x8 b3_5 = NagaCooperativeLoad(&tile_w.inner[at_w3_5], 72u, true);
            metal::simdgroup_float8x8 _e1669 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_5, b3_5, _e1669);
            metal::simdgroup_float8x8 _e1671 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_5, b3_5, _e1671);
        }
        {
            uint at_x0_6 = ((team_row + 0u) * 72u) + 48u;
            metal::simdgroup_half8x8 a0_6 = NagaCooperativeLoad(&tile_x.inner[at_x0_6], 72u, false);
            uint at_x1_6 = ((team_row + 8u) * 72u) + 48u;
            metal::simdgroup_half8x8 a1_6 = NagaCooperativeLoad(&tile_x.inner[at_x1_6], 72u, false);
            uint at_w0_6 = ((team_column + 0u) * 72u) + 48u;
            metal::simdgroup_half8x8 b0_6 = NagaCooperativeLoad(&tile_w.inner[at_w0_6], 72u, true);
            metal::simdgroup_float8x8 _e1703 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_6, b0_6, _e1703);
            metal::simdgroup_float8x8 _e1705 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_6, b0_6, _e1705);
            uint at_w1_6 = ((team_column + 8u) * 72u) + 48u;
            metal::simdgroup_half8x8 b1_6 = NagaCooperativeLoad(&tile_w.inner[at_w1_6], 72u, true);
            metal::simdgroup_float8x8 _e1717 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_6, b1_6, _e1717);
            metal::simdgroup_float8x8 _e1719 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_6, b1_6, _e1719);
            uint at_w2_6 = ((team_column + 16u) * 72u) + 48u;
            metal::simdgroup_half8x8 b2_6 = NagaCooperativeLoad(&tile_w.inner[at_w2_6], 72u, true);
            metal::simdgroup_float8x8 _e1731 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_6, b2_6, _e1731);
            metal::simdgroup_float8x8 _e1733 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_6, b2_6, _e1733);
            uint at_w3_6 = ((team_column + 24u) * 72u) + 48u;
            metal::simdgroup_half8x8 b3_6 = NagaCooperativeLoad(&tile_w.inner[at_w3_6], 72u, true);
            metal::simdgroup_float8x8 _e1745 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_6, b3_6, _e1745);
            metal::simdgroup_float8x8 _e1747 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_6, b3_6, _e1747);
        }
        {
            uint at_x0_7 = ((team_row + 0u) * 72u) + 56u;
            metal::simdgroup_half8x8 a0_7 = NagaCooperativeLoad(&tile_x.inner[at_x0_7], 72u, false);
            uint at_x1_7 = ((team_row + 8u) * 72u) + 56u;
            metal::simdgroup_half8x8 a1_7 = NagaCooperativeLoad(&tile_x.inner[at_x1_7], 72u, false);
            uint at_w0_7 = ((team_column + 0u) * 72u) + 56u;
            metal::simdgroup_half8x8 b0_7 = NagaCooperativeLoad(&tile_w.inner[at_w0_7], 72u, true);
            metal::simdgroup_float8x8 _e1779 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_7, b0_7, _e1779);
            metal::simdgroup_float8x8 _e1781 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_7, b0_7, _e1781);
            uint at_w1_7 = ((team_column + 8u) * 72u) + 56u;
            metal::simdgroup_half8x8 b1_7 = NagaCooperativeLoad(&tile_w.inner[at_w1_7], 72u, true);
            metal::simdgroup_float8x8 _e1793 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_7, b1_7, _e1793);
            metal::simdgroup_float8x8 _e1795 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_7, b1_7, _e1795);
            uint at_w2_7 = ((team_column + 16u) * 72u) + 56u;
            metal::simdgroup_half8x8 b2_7 = NagaCooperativeLoad(&tile_w.inner[at_w2_7], 72u, true);
            metal::simdgroup_float8x8 _e1807 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_7, b2_7, _e1807);
            metal::simdgroup_float8x8 _e1809 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_7, b2_7, _e1809);
            uint at_w3_7 = ((team_column + 24u) * 72u) + 56u;
            metal::simdgroup_half8x8 b3_7 = NagaCooperativeLoad(&tile_w.inner[at_w3_7], 72u, true);
            metal::simdgroup_float8x8 _e1821 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_7, b3_7, _e1821);
            metal::simdgroup_float8x8 _e1823 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_7, b3_7, _e1823);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    uint place = team * 64u;
    metal::simdgroup_float8x8 _e1827 = sum_0_0_;
    simdgroup_store(_e1827, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at = lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e1875 = at;
            at = _e1875 + lanes;
        }
        loop_init = false;
        uint _e1832 = at;
        if (_e1832 < 16u) {
        } else {
            break;
        }
        {
            uint _e1835 = at;
            uint cell = place + (_e1835 * 4u);
            uint _e1842 = at;
            uint row_4 = ((m0_ + team_row) + 0u) + (_e1842 / 2u);
            uint _e1849 = at;
            uint column_1 = ((first_1 + team_column) + 0u) + ((_e1849 % 2u) * 4u);
            uint _e1855 = which;
            float _e1858 = results.inner[cell];
            float _e1863 = results.inner[cell + 1u];
            float _e1868 = results.inner[cell + 2u];
            float _e1873 = results.inner[cell + 3u];
            finish(_e1855, own_1, row_4, column_1, metal::float4(_e1858, _e1863, _e1868, _e1873), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1877 = sum_0_1_;
    simdgroup_store(_e1877, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_1 = lane;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e1925 = at_1;
            at_1 = _e1925 + lanes;
        }
        loop_init_1 = false;
        uint _e1882 = at_1;
        if (_e1882 < 16u) {
        } else {
            break;
        }
        {
            uint _e1885 = at_1;
            uint cell_1 = place + (_e1885 * 4u);
            uint _e1892 = at_1;
            uint row_5 = ((m0_ + team_row) + 0u) + (_e1892 / 2u);
            uint _e1899 = at_1;
            uint column_2 = ((first_1 + team_column) + 8u) + ((_e1899 % 2u) * 4u);
            uint _e1905 = which;
            float _e1908 = results.inner[cell_1];
            float _e1913 = results.inner[cell_1 + 1u];
            float _e1918 = results.inner[cell_1 + 2u];
            float _e1923 = results.inner[cell_1 + 3u];
            finish(_e1905, own_1, row_5, column_2, metal::float4(_e1908, _e1913, _e1918, _e1923), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1927 = sum_0_2_;
    simdgroup_store(_e1927, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_2 = lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e1975 = at_2;
            at_2 = _e1975 + lanes;
        }
        loop_init_2 = false;
        uint _e1932 = at_2;
        if (_e1932 < 16u) {
        } else {
            break;
        }
        {
            uint _e1935 = at_2;
            uint cell_2 = place + (_e1935 * 4u);
            uint _e1942 = at_2;
            uint row_6 = ((m0_ + team_row) + 0u) + (_e1942 / 2u);
            uint _e1949 = at_2;
            uint column_3 = ((first_1 + team_column) + 16u) + ((_e1949 % 2u) * 4u);
            uint _e1955 = which;
            float _e1958 = results.inner[cell_2];
            float _e1963 = results.inner[cell_2 + 1u];
            float _e1968 = results.inner[cell_2 + 2u];
            float _e1973 = results.inner[cell_2 + 3u];
            finish(_e1955, own_1, row_6, column_3, metal::float4(_e1958, _e1963, _e1968, _e1973), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1977 = sum_0_3_;
    simdgroup_store(_e1977, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_3 = lane;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e2025 = at_3;
            at_3 = _e2025 + lanes;
        }
        loop_init_3 = false;
        uint _e1982 = at_3;
        if (_e1982 < 16u) {
        } else {
            break;
        }
        {
            uint _e1985 = at_3;
            uint cell_3 = place + (_e1985 * 4u);
            uint _e1992 = at_3;
            uint row_7 = ((m0_ + team_row) + 0u) + (_e1992 / 2u);
            uint _e1999 = at_3;
            uint column_4 = ((first_1 + team_column) + 24u) + ((_e1999 % 2u) * 4u);
            uint _e2005 = which;
            float _e2008 = results.inner[cell_3];
            float _e2013 = results.inner[cell_3 + 1u];
            float _e2018 = results.inner[cell_3 + 2u];
            float _e2023 = results.inner[cell_3 + 3u];
            finish(_e2005, own_1, row_7, column_4, metal::float4(_e2008, _e2013, _e2018, _e2023), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e2027 = sum_1_0_;
    simdgroup_store(_e2027, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_4 = lane;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e2075 = at_4;
            at_4 = _e2075 + lanes;
        }
        loop_init_4 = false;
        uint _e2032 = at_4;
        if (_e2032 < 16u) {
        } else {
            break;
        }
        {
            uint _e2035 = at_4;
            uint cell_4 = place + (_e2035 * 4u);
            uint _e2042 = at_4;
            uint row_8 = ((m0_ + team_row) + 8u) + (_e2042 / 2u);
            uint _e2049 = at_4;
            uint column_5 = ((first_1 + team_column) + 0u) + ((_e2049 % 2u) * 4u);
            uint _e2055 = which;
            float _e2058 = results.inner[cell_4];
            float _e2063 = results.inner[cell_4 + 1u];
            float _e2068 = results.inner[cell_4 + 2u];
            float _e2073 = results.inner[cell_4 + 3u];
            finish(_e2055, own_1, row_8, column_5, metal::float4(_e2058, _e2063, _e2068, _e2073), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e2077 = sum_1_1_;
    simdgroup_store(_e2077, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_5 = lane;
    bool loop_init_5 = true;
    while(true) {
        if (!loop_init_5) {
            uint _e2125 = at_5;
            at_5 = _e2125 + lanes;
        }
        loop_init_5 = false;
        uint _e2082 = at_5;
        if (_e2082 < 16u) {
        } else {
            break;
        }
        {
            uint _e2085 = at_5;
            uint cell_5 = place + (_e2085 * 4u);
            uint _e2092 = at_5;
            uint row_9 = ((m0_ + team_row) + 8u) + (_e2092 / 2u);
            uint _e2099 = at_5;
            uint column_6 = ((first_1 + team_column) + 8u) + ((_e2099 % 2u) * 4u);
            uint _e2105 = which;
            float _e2108 = results.inner[cell_5];
            float _e2113 = results.inner[cell_5 + 1u];
            float _e2118 = results.inner[cell_5 + 2u];
            float _e2123 = results.inner[cell_5 + 3u];
            finish(_e2105, own_1, row_9, column_6, metal::float4(_e2108, _e2113, _e2118, _e2123), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e2127 = sum_1_2_;
    simdgroup_store(_e2127, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_6 = lane;
    bool loop_init_6 = true;
    while(true) {
        if (!loop_init_6) {
            uint _e2175 = at_6;
            at_6 = _e2175 + lanes;
        }
        loop_init_6 = false;
        uint _e2132 = at_6;
        if (_e2132 < 16u) {
        } else {
            break;
        }
        {
            uint _e2135 = at_6;
            uint cell_6 = place + (_e2135 * 4u);
            uint _e2142 = at_6;
            uint row_10 = ((m0_ + team_row) + 8u) + (_e2142 / 2u);
            uint _e2149 = at_6;
            uint column_7 = ((first_1 + team_column) + 16u) + ((_e2149 % 2u) * 4u);
            uint _e2155 = which;
            float _e2158 = results.inner[cell_6];
            float _e2163 = results.inner[cell_6 + 1u];
            float _e2168 = results.inner[cell_6 + 2u];
            float _e2173 = results.inner[cell_6 + 3u];
            finish(_e2155, own_1, row_10, column_7, metal::float4(_e2158, _e2163, _e2168, _e2173), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e2177 = sum_1_3_;
    simdgroup_store(_e2177, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_7 = lane;
    bool loop_init_7 = true;
    while(true) {
        if (!loop_init_7) {
            uint _e2225 = at_7;
            at_7 = _e2225 + lanes;
        }
        loop_init_7 = false;
        uint _e2182 = at_7;
        if (_e2182 < 16u) {
        } else {
            break;
        }
        {
            uint _e2185 = at_7;
            uint cell_7 = place + (_e2185 * 4u);
            uint _e2192 = at_7;
            uint row_11 = ((m0_ + team_row) + 8u) + (_e2192 / 2u);
            uint _e2199 = at_7;
            uint column_8 = ((first_1 + team_column) + 24u) + ((_e2199 % 2u) * 4u);
            uint _e2205 = which;
            float _e2208 = results.inner[cell_7];
            float _e2213 = results.inner[cell_7 + 1u];
            float _e2218 = results.inner[cell_7 + 2u];
            float _e2223 = results.inner[cell_7 + 3u];
            finish(_e2205, own_1, row_11, column_8, metal::float4(_e2208, _e2213, _e2218, _e2223), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
