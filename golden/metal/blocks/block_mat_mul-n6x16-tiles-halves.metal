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
struct type_11 {
    metal::float4 inner[288];
};
struct type_12 {
    metal::float4 inner[544];
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
    uint at = (row * _e7) + column;
    {
        y0_[at] = static_cast<float>(value);
        return;
    }
}

void put_x(
    uint row_1,
    uint k,
    metal::float4 numbers,
    threadgroup type_11& tile_x
) {
    uint at_1 = (k * 9u) + (row_1 >> 2u);
    tile_x.inner[at_1 + 0u][row_1 & 3u] = numbers.x;
    tile_x.inner[at_1 + 9u][row_1 & 3u] = numbers.y;
    tile_x.inner[at_1 + 18u][row_1 & 3u] = numbers.z;
    tile_x.inner[at_1 + 27u][row_1 & 3u] = numbers.w;
    return;
}

void put_w(
    uint row_2,
    uint k_1,
    metal::float4 numbers_1,
    threadgroup type_12& tile_w
) {
    uint at_2 = (k_1 * 17u) + (row_2 >> 2u);
    tile_w.inner[at_2 + 0u][row_2 & 3u] = numbers_1.x;
    tile_w.inner[at_2 + 17u][row_2 & 3u] = numbers_1.y;
    tile_w.inner[at_2 + 34u][row_2 & 3u] = numbers_1.z;
    tile_w.inner[at_2 + 51u][row_2 & 3u] = numbers_1.w;
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

struct main_Input {
};
[[max_total_threads_per_threadgroup(128)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint local [[thread_index_in_threadgroup]]
, device type_2 const& x [[buffer(0)]]
, device type_5 const& low [[buffer(1)]]
, device type_7 const& high [[buffer(2)]]
, device type_8 const& factors [[buffer(3)]]
, device type_9& y0_ [[buffer(4)]]
, constant Params& params [[buffer(5)]]
, threadgroup type_11& tile_x
, threadgroup type_12& tile_w
, constant _mslBufferSizes& _buffer_sizes [[buffer(6)]]
) {
    uint which = 0u;
    metal::float4 x0_ = metal::float4 {};
    metal::float4 x1_ = metal::float4 {};
    metal::uint4 q0_ = metal::uint4 {};
    metal::uint2 h0_ = metal::uint2 {};
    metal::uint2 s0_0_ = metal::uint2 {};
    metal::uint2 s0_1_ = metal::uint2 {};
    metal::float4 sum_0_0_ = metal::float4 {};
    metal::float4 sum_1_0_ = metal::float4 {};
    metal::float4 sum_2_0_ = metal::float4 {};
    metal::float4 sum_3_0_ = metal::float4 {};
    uint base = 0u;
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    bool local_4 = {};
    uint deep = {};
    uint number = group.x + (group.y * groups.x);
    uint _e10 = params.end;
    if (number >= _e10) {
        return;
    }
    uint _e16 = which;
    metal::uint4 own_1 = params.outputs.inner[_e16];
    uint first_1 = (number - own_1.x) * 64u;
    uint last = own_1.y - 1u;
    uint m0_ = group.z * 32u;
    uint _e31 = params.columns;
    uint x_quads = _e31 >> 2u;
    uint w_at0_ = local + 0u;
    uint w_row0_ = own_1.z + metal::min(first_1 + (w_at0_ % 64u), last);
    uint column_1 = local % 16u;
    uint row_4 = local / 16u;
    uint _e70 = params.units;
    if (_e70 > 0u) {
        {
            uint at_3 = local + 0u;
            uint _e82 = params.m;
            uint _e87 = base;
            metal::float4 _e100 = x[(metal::min(m0_ + (at_3 / 8u), _e82 - 1u) * x_quads) + metal::min(((_e87 * 32u) >> 2u) + (at_3 % 8u), x_quads - 1u)];
            uint _e107 = params.m;
            if ((m0_ + (at_3 / 8u)) < _e107) {
                uint _e111 = base;
                local_1 = (((_e111 * 32u) >> 2u) + (at_3 % 8u)) < x_quads;
            } else {
                local_1 = false;
            }
            bool _e121 = local_1;
            x0_ = _e121 ? static_cast<metal::float4>(_e100) : metal::float4 {};
        }
        {
            uint at_4 = local + 128u;
            uint _e132 = params.m;
            uint _e137 = base;
            metal::float4 _e150 = x[(metal::min(m0_ + (at_4 / 8u), _e132 - 1u) * x_quads) + metal::min(((_e137 * 32u) >> 2u) + (at_4 % 8u), x_quads - 1u)];
            uint _e157 = params.m;
            if ((m0_ + (at_4 / 8u)) < _e157) {
                uint _e161 = base;
                local_2 = (((_e161 * 32u) >> 2u) + (at_4 % 8u)) < x_quads;
            } else {
                local_2 = false;
            }
            bool _e171 = local_2;
            x1_ = _e171 ? static_cast<metal::float4>(_e150) : metal::float4 {};
        }
        {
            uint _e173 = base;
            uint unit = _e173 + (w_at0_ / 64u);
            uint _e179 = params.units;
            bool inside = unit < _e179;
            uint _e183 = params.units;
            uint _e187 = params.units;
            uint w_from = (w_row0_ * _e183) + metal::min(unit, _e187 - 1u);
            metal::uint4 _e195 = low[w_from];
            q0_ = inside ? _e195 : metal::uint4 {};
            metal::uint2 _e200 = high[w_from];
            h0_ = inside ? _e200 : metal::uint2 {};
            uint _e204 = params.factor_words;
            uint start = w_row0_ * _e204;
            uint _e209 = params.units;
            uint _e221 = factors[start + (((metal::min(unit, _e209 - 1u) * 2u) + 0u) >> 2u)];
            uint _e225 = params.wholes;
            uint _e229 = params.units;
            uint _e241 = factors[(start + _e225) + (((metal::min(unit, _e229 - 1u) * 2u) + 0u) >> 5u)];
            s0_0_ = metal::uint2(_e221, _e241);
            uint _e246 = params.units;
            uint _e258 = factors[start + (((metal::min(unit, _e246 - 1u) * 2u) + 1u) >> 2u)];
            uint _e262 = params.wholes;
            uint _e266 = params.units;
            uint _e278 = factors[(start + _e262) + (((metal::min(unit, _e266 - 1u) * 2u) + 1u) >> 5u)];
            s0_1_ = metal::uint2(_e258, _e278);
        }
    }
    while(true) {
        uint _e280 = base;
        uint _e283 = params.units;
        if (_e280 >= _e283) {
            break;
        }
        {
            uint at_5 = local + 0u;
            metal::float4 _e293 = x0_;
            put_x(at_5 / 8u, (at_5 % 8u) * 4u, _e293, tile_x);
        }
        {
            uint at_6 = local + 128u;
            metal::float4 _e302 = x1_;
            put_x(at_6 / 8u, (at_6 % 8u) * 4u, _e302, tile_x);
        }
        if (w_at0_ < 64u) {
            uint to = w_at0_ % 64u;
            uint k_2 = (w_at0_ / 64u) * 32u;
            uint _e311 = base;
            uint unit_1 = _e311 + (w_at0_ / 64u);
            uint block0_ = (unit_1 * 2u) + 0u;
            uint _e321 = s0_0_.x;
            uint _e334 = s0_0_.y;
            uint _e349 = params.units;
            metal::float2 f0_0_ = (unit_1 < _e349) ? metal::float2(static_cast<float>(as_type<int>(_e321 << (24u - ((block0_ & 3u) * 8u))) >> 24u) * float2(as_type<half2>((_e334 >> (((block0_ >> 4u) & 1u) * 16u)))).x, 0.0) : metal::float2 {};
            uint block1_ = (unit_1 * 2u) + 1u;
            uint _e358 = s0_1_.x;
            uint _e371 = s0_1_.y;
            uint _e386 = params.units;
            metal::float2 f0_1_ = (unit_1 < _e386) ? metal::float2(static_cast<float>(as_type<int>(_e358 << (24u - ((block1_ & 3u) * 8u))) >> 24u) * float2(as_type<half2>((_e371 >> (((block1_ >> 4u) & 1u) * 16u)))).x, 0.0) : metal::float2 {};
            uint _e392 = q0_.x;
            uint _e398 = h0_.x;
            put_w(to, k_2 + 0u, (as_type<metal::float4>(((metal::uint4(((_e392 >> 0u) & 252645135u) | (((_e398 >> 0u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e440 = q0_.x;
            uint _e446 = h0_.x;
            put_w(to, k_2 + 4u, (as_type<metal::float4>(((metal::uint4(((_e440 >> 4u) & 252645135u) | (((_e446 >> 2u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e488 = q0_.y;
            uint _e494 = h0_.x;
            put_w(to, k_2 + 8u, (as_type<metal::float4>(((metal::uint4(((_e488 >> 0u) & 252645135u) | (((_e494 >> 4u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e536 = q0_.y;
            uint _e542 = h0_.x;
            put_w(to, k_2 + 12u, (as_type<metal::float4>(((metal::uint4(((_e536 >> 4u) & 252645135u) | (((_e542 >> 6u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e584 = q0_.z;
            uint _e590 = h0_.y;
            put_w(to, k_2 + 16u, (as_type<metal::float4>(((metal::uint4(((_e584 >> 0u) & 252645135u) | (((_e590 >> 0u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_1_.x), tile_w);
            uint _e632 = q0_.z;
            uint _e638 = h0_.y;
            put_w(to, k_2 + 20u, (as_type<metal::float4>(((metal::uint4(((_e632 >> 4u) & 252645135u) | (((_e638 >> 2u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_1_.x), tile_w);
            uint _e680 = q0_.w;
            uint _e686 = h0_.y;
            put_w(to, k_2 + 24u, (as_type<metal::float4>(((metal::uint4(((_e680 >> 0u) & 252645135u) | (((_e686 >> 4u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_1_.x), tile_w);
            uint _e728 = q0_.w;
            uint _e734 = h0_.y;
            put_w(to, k_2 + 28u, (as_type<metal::float4>(((metal::uint4(((_e728 >> 4u) & 252645135u) | (((_e734 >> 6u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_1_.x), tile_w);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e773 = base;
        base = _e773 + 1u;
        uint _e776 = base;
        uint _e779 = params.units;
        if (_e776 < _e779) {
            {
                uint at_7 = local + 0u;
                uint _e790 = params.m;
                uint _e795 = base;
                metal::float4 _e808 = x[(metal::min(m0_ + (at_7 / 8u), _e790 - 1u) * x_quads) + metal::min(((_e795 * 32u) >> 2u) + (at_7 % 8u), x_quads - 1u)];
                uint _e815 = params.m;
                if ((m0_ + (at_7 / 8u)) < _e815) {
                    uint _e819 = base;
                    local_3 = (((_e819 * 32u) >> 2u) + (at_7 % 8u)) < x_quads;
                } else {
                    local_3 = false;
                }
                bool _e829 = local_3;
                x0_ = _e829 ? static_cast<metal::float4>(_e808) : metal::float4 {};
            }
            {
                uint at_8 = local + 128u;
                uint _e840 = params.m;
                uint _e845 = base;
                metal::float4 _e858 = x[(metal::min(m0_ + (at_8 / 8u), _e840 - 1u) * x_quads) + metal::min(((_e845 * 32u) >> 2u) + (at_8 % 8u), x_quads - 1u)];
                uint _e865 = params.m;
                if ((m0_ + (at_8 / 8u)) < _e865) {
                    uint _e869 = base;
                    local_4 = (((_e869 * 32u) >> 2u) + (at_8 % 8u)) < x_quads;
                } else {
                    local_4 = false;
                }
                bool _e879 = local_4;
                x1_ = _e879 ? static_cast<metal::float4>(_e858) : metal::float4 {};
            }
            {
                uint _e881 = base;
                uint unit_2 = _e881 + (w_at0_ / 64u);
                uint _e887 = params.units;
                bool inside_1 = unit_2 < _e887;
                uint _e891 = params.units;
                uint _e895 = params.units;
                uint w_from_1 = (w_row0_ * _e891) + metal::min(unit_2, _e895 - 1u);
                metal::uint4 _e903 = low[w_from_1];
                q0_ = inside_1 ? _e903 : metal::uint4 {};
                metal::uint2 _e908 = high[w_from_1];
                h0_ = inside_1 ? _e908 : metal::uint2 {};
                uint _e912 = params.factor_words;
                uint start_1 = w_row0_ * _e912;
                uint _e917 = params.units;
                uint _e929 = factors[start_1 + (((metal::min(unit_2, _e917 - 1u) * 2u) + 0u) >> 2u)];
                uint _e933 = params.wholes;
                uint _e937 = params.units;
                uint _e949 = factors[(start_1 + _e933) + (((metal::min(unit_2, _e937 - 1u) * 2u) + 0u) >> 5u)];
                s0_0_ = metal::uint2(_e929, _e949);
                uint _e954 = params.units;
                uint _e966 = factors[start_1 + (((metal::min(unit_2, _e954 - 1u) * 2u) + 1u) >> 2u)];
                uint _e970 = params.wholes;
                uint _e974 = params.units;
                uint _e986 = factors[(start_1 + _e970) + (((metal::min(unit_2, _e974 - 1u) * 2u) + 1u) >> 5u)];
                s0_1_ = metal::uint2(_e966, _e986);
            }
        }
        deep = 0u;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e1028 = deep;
                deep = _e1028 + 1u;
            }
            loop_init = false;
            uint _e990 = deep;
            if (_e990 < 32u) {
            } else {
                break;
            }
            {
                uint _e994 = deep;
                metal::float4 a0_ = tile_x.inner[((_e994 * 9u) + row_4) + 0u];
                uint _e1003 = deep;
                metal::float4 b0_ = tile_w.inner[((_e1003 * 17u) + column_1) + 0u];
                metal::float4 _e1013 = sum_0_0_;
                sum_0_0_ = metal::fma(metal::float4(a0_.x), b0_, _e1013);
                metal::float4 _e1017 = sum_1_0_;
                sum_1_0_ = metal::fma(metal::float4(a0_.y), b0_, _e1017);
                metal::float4 _e1021 = sum_2_0_;
                sum_2_0_ = metal::fma(metal::float4(a0_.z), b0_, _e1021);
                metal::float4 _e1025 = sum_3_0_;
                sum_3_0_ = metal::fma(metal::float4(a0_.w), b0_, _e1025);
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    uint _e1030 = which;
    metal::float4 _e1043 = sum_0_0_;
    finish(_e1030, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 0u, first_1 + ((column_1 + 0u) * 4u), _e1043, y0_, params, _buffer_sizes);
    uint _e1044 = which;
    metal::float4 _e1057 = sum_1_0_;
    finish(_e1044, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 1u, first_1 + ((column_1 + 0u) * 4u), _e1057, y0_, params, _buffer_sizes);
    uint _e1058 = which;
    metal::float4 _e1071 = sum_2_0_;
    finish(_e1058, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 2u, first_1 + ((column_1 + 0u) * 4u), _e1071, y0_, params, _buffer_sizes);
    uint _e1072 = which;
    metal::float4 _e1085 = sum_3_0_;
    finish(_e1072, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 3u, first_1 + ((column_1 + 0u) * 4u), _e1085, y0_, params, _buffer_sizes);
    return;
}
