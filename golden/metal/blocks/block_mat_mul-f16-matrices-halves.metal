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
    uint w_at1_ = local + 128u;
    uint w_row1_ = own_1.z + metal::min(first_1 + (w_at1_ % 64u), last);
    uint w_at2_ = local + 256u;
    uint w_row2_ = own_1.z + metal::min(first_1 + (w_at2_ % 64u), last);
    uint w_at3_ = local + 384u;
    uint w_row3_ = own_1.z + metal::min(first_1 + (w_at3_ % 64u), last);
    uint team = metal::min(subgroup, 3u);
    uint team_row = (team / 2u) * 16u;
    uint team_column = (team % 2u) * 32u;
    uint _e107 = params.units;
    if (_e107 > 0u) {
        {
            uint at_11 = local + 0u;
            uint _e119 = params.m;
            uint _e124 = base;
            metal::float4 _e137 = x[(metal::min(m0_ + (at_11 / 16u), _e119 - 1u) * x_quads) + metal::min(((_e124 * 8u) >> 2u) + (at_11 % 16u), x_quads - 1u)];
            uint _e144 = params.m;
            if ((m0_ + (at_11 / 16u)) < _e144) {
                uint _e148 = base;
                local_1 = (((_e148 * 8u) >> 2u) + (at_11 % 16u)) < x_quads;
            } else {
                local_1 = false;
            }
            bool _e158 = local_1;
            x0_ = _e158 ? static_cast<metal::float4>(_e137) : metal::float4 {};
        }
        {
            uint at_12 = local + 128u;
            uint _e169 = params.m;
            uint _e174 = base;
            metal::float4 _e187 = x[(metal::min(m0_ + (at_12 / 16u), _e169 - 1u) * x_quads) + metal::min(((_e174 * 8u) >> 2u) + (at_12 % 16u), x_quads - 1u)];
            uint _e194 = params.m;
            if ((m0_ + (at_12 / 16u)) < _e194) {
                uint _e198 = base;
                local_2 = (((_e198 * 8u) >> 2u) + (at_12 % 16u)) < x_quads;
            } else {
                local_2 = false;
            }
            bool _e208 = local_2;
            x1_ = _e208 ? static_cast<metal::float4>(_e187) : metal::float4 {};
        }
        {
            uint at_13 = local + 256u;
            uint _e219 = params.m;
            uint _e224 = base;
            metal::float4 _e237 = x[(metal::min(m0_ + (at_13 / 16u), _e219 - 1u) * x_quads) + metal::min(((_e224 * 8u) >> 2u) + (at_13 % 16u), x_quads - 1u)];
            uint _e244 = params.m;
            if ((m0_ + (at_13 / 16u)) < _e244) {
                uint _e248 = base;
                local_3 = (((_e248 * 8u) >> 2u) + (at_13 % 16u)) < x_quads;
            } else {
                local_3 = false;
            }
            bool _e258 = local_3;
            x2_ = _e258 ? static_cast<metal::float4>(_e237) : metal::float4 {};
        }
        {
            uint at_14 = local + 384u;
            uint _e269 = params.m;
            uint _e274 = base;
            metal::float4 _e287 = x[(metal::min(m0_ + (at_14 / 16u), _e269 - 1u) * x_quads) + metal::min(((_e274 * 8u) >> 2u) + (at_14 % 16u), x_quads - 1u)];
            uint _e294 = params.m;
            if ((m0_ + (at_14 / 16u)) < _e294) {
                uint _e298 = base;
                local_4 = (((_e298 * 8u) >> 2u) + (at_14 % 16u)) < x_quads;
            } else {
                local_4 = false;
            }
            bool _e308 = local_4;
            x3_ = _e308 ? static_cast<metal::float4>(_e287) : metal::float4 {};
        }
        {
            uint _e310 = base;
            uint unit = _e310 + (w_at0_ / 64u);
            uint _e316 = params.units;
            bool inside = unit < _e316;
            uint _e320 = params.units;
            uint _e324 = params.units;
            uint w_from = (w_row0_ * _e320) + metal::min(unit, _e324 - 1u);
            metal::uint4 _e332 = low[w_from];
            q0_ = inside ? _e332 : metal::uint4 {};
        }
        {
            uint _e334 = base;
            uint unit_1 = _e334 + (w_at1_ / 64u);
            uint _e340 = params.units;
            bool inside_1 = unit_1 < _e340;
            uint _e344 = params.units;
            uint _e348 = params.units;
            uint w_from_1 = (w_row1_ * _e344) + metal::min(unit_1, _e348 - 1u);
            metal::uint4 _e356 = low[w_from_1];
            q1_ = inside_1 ? _e356 : metal::uint4 {};
        }
        {
            uint _e358 = base;
            uint unit_2 = _e358 + (w_at2_ / 64u);
            uint _e364 = params.units;
            bool inside_2 = unit_2 < _e364;
            uint _e368 = params.units;
            uint _e372 = params.units;
            uint w_from_2 = (w_row2_ * _e368) + metal::min(unit_2, _e372 - 1u);
            metal::uint4 _e380 = low[w_from_2];
            q2_ = inside_2 ? _e380 : metal::uint4 {};
        }
        {
            uint _e382 = base;
            uint unit_3 = _e382 + (w_at3_ / 64u);
            uint _e388 = params.units;
            bool inside_3 = unit_3 < _e388;
            uint _e392 = params.units;
            uint _e396 = params.units;
            uint w_from_3 = (w_row3_ * _e392) + metal::min(unit_3, _e396 - 1u);
            metal::uint4 _e404 = low[w_from_3];
            q3_ = inside_3 ? _e404 : metal::uint4 {};
        }
    }
    while(true) {
        uint _e406 = base;
        uint _e409 = params.units;
        if (_e406 >= _e409) {
            break;
        }
        {
            uint at_15 = local + 0u;
            metal::float4 _e419 = x0_;
            put_x(at_15 / 16u, (at_15 % 16u) * 4u, _e419, tile_x);
        }
        {
            uint at_16 = local + 128u;
            metal::float4 _e428 = x1_;
            put_x(at_16 / 16u, (at_16 % 16u) * 4u, _e428, tile_x);
        }
        {
            uint at_17 = local + 256u;
            metal::float4 _e437 = x2_;
            put_x(at_17 / 16u, (at_17 % 16u) * 4u, _e437, tile_x);
        }
        {
            uint at_18 = local + 384u;
            metal::float4 _e446 = x3_;
            put_x(at_18 / 16u, (at_18 % 16u) * 4u, _e446, tile_x);
        }
        {
            uint to = w_at0_ % 64u;
            uint k_2 = (w_at0_ / 64u) * 8u;
            uint _e456 = q0_.x;
            uint _e459 = q0_.y;
            put_w(to, k_2 + 0u, metal::float4(float2(as_type<half2>(_e456)), float2(as_type<half2>(_e459))), tile_w);
            uint _e465 = q0_.z;
            uint _e468 = q0_.w;
            put_w(to, k_2 + 4u, metal::float4(float2(as_type<half2>(_e465)), float2(as_type<half2>(_e468))), tile_w);
        }
        {
            uint to_1 = w_at1_ % 64u;
            uint k_3 = (w_at1_ / 64u) * 8u;
            uint _e480 = q1_.x;
            uint _e483 = q1_.y;
            put_w(to_1, k_3 + 0u, metal::float4(float2(as_type<half2>(_e480)), float2(as_type<half2>(_e483))), tile_w);
            uint _e489 = q1_.z;
            uint _e492 = q1_.w;
            put_w(to_1, k_3 + 4u, metal::float4(float2(as_type<half2>(_e489)), float2(as_type<half2>(_e492))), tile_w);
        }
        {
            uint to_2 = w_at2_ % 64u;
            uint k_4 = (w_at2_ / 64u) * 8u;
            uint _e504 = q2_.x;
            uint _e507 = q2_.y;
            put_w(to_2, k_4 + 0u, metal::float4(float2(as_type<half2>(_e504)), float2(as_type<half2>(_e507))), tile_w);
            uint _e513 = q2_.z;
            uint _e516 = q2_.w;
            put_w(to_2, k_4 + 4u, metal::float4(float2(as_type<half2>(_e513)), float2(as_type<half2>(_e516))), tile_w);
        }
        {
            uint to_3 = w_at3_ % 64u;
            uint k_5 = (w_at3_ / 64u) * 8u;
            uint _e528 = q3_.x;
            uint _e531 = q3_.y;
            put_w(to_3, k_5 + 0u, metal::float4(float2(as_type<half2>(_e528)), float2(as_type<half2>(_e531))), tile_w);
            uint _e537 = q3_.z;
            uint _e540 = q3_.w;
            put_w(to_3, k_5 + 4u, metal::float4(float2(as_type<half2>(_e537)), float2(as_type<half2>(_e540))), tile_w);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e543 = base;
        base = _e543 + 8u;
        uint _e546 = base;
        uint _e549 = params.units;
        if (_e546 < _e549) {
            {
                uint at_19 = local + 0u;
                uint _e560 = params.m;
                uint _e565 = base;
                metal::float4 _e578 = x[(metal::min(m0_ + (at_19 / 16u), _e560 - 1u) * x_quads) + metal::min(((_e565 * 8u) >> 2u) + (at_19 % 16u), x_quads - 1u)];
                uint _e585 = params.m;
                if ((m0_ + (at_19 / 16u)) < _e585) {
                    uint _e589 = base;
                    local_5 = (((_e589 * 8u) >> 2u) + (at_19 % 16u)) < x_quads;
                } else {
                    local_5 = false;
                }
                bool _e599 = local_5;
                x0_ = _e599 ? static_cast<metal::float4>(_e578) : metal::float4 {};
            }
            {
                uint at_20 = local + 128u;
                uint _e610 = params.m;
                uint _e615 = base;
                metal::float4 _e628 = x[(metal::min(m0_ + (at_20 / 16u), _e610 - 1u) * x_quads) + metal::min(((_e615 * 8u) >> 2u) + (at_20 % 16u), x_quads - 1u)];
                uint _e635 = params.m;
                if ((m0_ + (at_20 / 16u)) < _e635) {
                    uint _e639 = base;
                    local_6 = (((_e639 * 8u) >> 2u) + (at_20 % 16u)) < x_quads;
                } else {
                    local_6 = false;
                }
                bool _e649 = local_6;
                x1_ = _e649 ? static_cast<metal::float4>(_e628) : metal::float4 {};
            }
            {
                uint at_21 = local + 256u;
                uint _e660 = params.m;
                uint _e665 = base;
                metal::float4 _e678 = x[(metal::min(m0_ + (at_21 / 16u), _e660 - 1u) * x_quads) + metal::min(((_e665 * 8u) >> 2u) + (at_21 % 16u), x_quads - 1u)];
                uint _e685 = params.m;
                if ((m0_ + (at_21 / 16u)) < _e685) {
                    uint _e689 = base;
                    local_7 = (((_e689 * 8u) >> 2u) + (at_21 % 16u)) < x_quads;
                } else {
                    local_7 = false;
                }
                bool _e699 = local_7;
                x2_ = _e699 ? static_cast<metal::float4>(_e678) : metal::float4 {};
            }
            {
                uint at_22 = local + 384u;
                uint _e710 = params.m;
                uint _e715 = base;
                metal::float4 _e728 = x[(metal::min(m0_ + (at_22 / 16u), _e710 - 1u) * x_quads) + metal::min(((_e715 * 8u) >> 2u) + (at_22 % 16u), x_quads - 1u)];
                uint _e735 = params.m;
                if ((m0_ + (at_22 / 16u)) < _e735) {
                    uint _e739 = base;
                    local_8 = (((_e739 * 8u) >> 2u) + (at_22 % 16u)) < x_quads;
                } else {
                    local_8 = false;
                }
                bool _e749 = local_8;
                x3_ = _e749 ? static_cast<metal::float4>(_e728) : metal::float4 {};
            }
            {
                uint _e751 = base;
                uint unit_4 = _e751 + (w_at0_ / 64u);
                uint _e757 = params.units;
                bool inside_4 = unit_4 < _e757;
                uint _e761 = params.units;
                uint _e765 = params.units;
                uint w_from_4 = (w_row0_ * _e761) + metal::min(unit_4, _e765 - 1u);
                metal::uint4 _e773 = low[w_from_4];
                q0_ = inside_4 ? _e773 : metal::uint4 {};
            }
            {
                uint _e775 = base;
                uint unit_5 = _e775 + (w_at1_ / 64u);
                uint _e781 = params.units;
                bool inside_5 = unit_5 < _e781;
                uint _e785 = params.units;
                uint _e789 = params.units;
                uint w_from_5 = (w_row1_ * _e785) + metal::min(unit_5, _e789 - 1u);
                metal::uint4 _e797 = low[w_from_5];
                q1_ = inside_5 ? _e797 : metal::uint4 {};
            }
            {
                uint _e799 = base;
                uint unit_6 = _e799 + (w_at2_ / 64u);
                uint _e805 = params.units;
                bool inside_6 = unit_6 < _e805;
                uint _e809 = params.units;
                uint _e813 = params.units;
                uint w_from_6 = (w_row2_ * _e809) + metal::min(unit_6, _e813 - 1u);
                metal::uint4 _e821 = low[w_from_6];
                q2_ = inside_6 ? _e821 : metal::uint4 {};
            }
            {
                uint _e823 = base;
                uint unit_7 = _e823 + (w_at3_ / 64u);
                uint _e829 = params.units;
                bool inside_7 = unit_7 < _e829;
                uint _e833 = params.units;
                uint _e837 = params.units;
                uint w_from_7 = (w_row3_ * _e833) + metal::min(unit_7, _e837 - 1u);
                metal::uint4 _e845 = low[w_from_7];
                q3_ = inside_7 ? _e845 : metal::uint4 {};
            }
        }
        {
            uint at_x0_ = ((team_row + 0u) * 72u) + 0u;
            metal::simdgroup_half8x8 a0_ = NagaCooperativeLoad(&tile_x.inner[at_x0_], 72u, false);
            uint at_x1_ = ((team_row + 8u) * 72u) + 0u;
            metal::simdgroup_half8x8 a1_ = NagaCooperativeLoad(&tile_x.inner[at_x1_], 72u, false);
            uint at_w0_ = ((team_column + 0u) * 72u) + 0u;
            metal::simdgroup_half8x8 b0_ = NagaCooperativeLoad(&tile_w.inner[at_w0_], 72u, true);
            metal::simdgroup_float8x8 _e877 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_, b0_, _e877);
            metal::simdgroup_float8x8 _e879 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_, b0_, _e879);
            uint at_w1_ = ((team_column + 8u) * 72u) + 0u;
            metal::simdgroup_half8x8 b1_ = NagaCooperativeLoad(&tile_w.inner[at_w1_], 72u, true);
            metal::simdgroup_float8x8 _e891 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_, b1_, _e891);
            metal::simdgroup_float8x8 _e893 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_, b1_, _e893);
            uint at_w2_ = ((team_column + 16u) * 72u) + 0u;
            metal::simdgroup_half8x8 b2_ = NagaCooperativeLoad(&tile_w.inner[at_w2_], 72u, true);
            metal::simdgroup_float8x8 _e905 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_, b2_, _e905);
            metal::simdgroup_float8x8 _e907 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_, b2_, _e907);
            uint at_w3_ = ((team_column + 24u) * 72u) + 0u;
            metal::simdgroup_half8x8 b3_ = NagaCooperativeLoad(&tile_w.inner[at_w3_], 72u, true);
            metal::simdgroup_float8x8 _e919 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_, b3_, _e919);
            metal::simdgroup_float8x8 _e921 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_, b3_, _e921);
        }
        {
            uint at_x0_1 = ((team_row + 0u) * 72u) + 8u;
            metal::simdgroup_half8x8 a0_1 = NagaCooperativeLoad(&tile_x.inner[at_x0_1], 72u, false);
            uint at_x1_1 = ((team_row + 8u) * 72u) + 8u;
            metal::simdgroup_half8x8 a1_1 = NagaCooperativeLoad(&tile_x.inner[at_x1_1], 72u, false);
            uint at_w0_1 = ((team_column + 0u) * 72u) + 8u;
            metal::simdgroup_half8x8 b0_1 = NagaCooperativeLoad(&tile_w.inner[at_w0_1], 72u, true);
            metal::simdgroup_float8x8 _e953 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_1, b0_1, _e953);
            metal::simdgroup_float8x8 _e955 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_1, b0_1, _e955);
            uint at_w1_1 = ((team_column + 8u) * 72u) + 8u;
            metal::simdgroup_half8x8 b1_1 = NagaCooperativeLoad(&tile_w.inner[at_w1_1], 72u, true);
            metal::simdgroup_float8x8 _e967 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_1, b1_1, _e967);
            metal::simdgroup_float8x8 _e969 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_1, b1_1, _e969);
            uint at_w2_1 = ((team_column + 16u) * 72u) + 8u;
            metal::simdgroup_half8x8 b2_1 = NagaCooperativeLoad(&tile_w.inner[at_w2_1], 72u, true);
            metal::simdgroup_float8x8 _e981 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_1, b2_1, _e981);
            metal::simdgroup_float8x8 _e983 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_1, b2_1, _e983);
            uint at_w3_1 = ((team_column + 24u) * 72u) + 8u;
            metal::simdgroup_half8x8 b3_1 = NagaCooperativeLoad(&tile_w.inner[at_w3_1], 72u, true);
            metal::simdgroup_float8x8 _e995 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_1, b3_1, _e995);
            metal::simdgroup_float8x8 _e997 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_1, b3_1, _e997);
        }
        {
            uint at_x0_2 = ((team_row + 0u) * 72u) + 16u;
            metal::simdgroup_half8x8 a0_2 = NagaCooperativeLoad(&tile_x.inner[at_x0_2], 72u, false);
            uint at_x1_2 = ((team_row + 8u) * 72u) + 16u;
            metal::simdgroup_half8x8 a1_2 = NagaCooperativeLoad(&tile_x.inner[at_x1_2], 72u, false);
            uint at_w0_2 = ((team_column + 0u) * 72u) + 16u;
            metal::simdgroup_half8x8 b0_2 = NagaCooperativeLoad(&tile_w.inner[at_w0_2], 72u, true);
            metal::simdgroup_float8x8 _e1029 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_2, b0_2, _e1029);
            metal::simdgroup_float8x8 _e1031 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_2, b0_2, _e1031);
            uint at_w1_2 = ((team_column + 8u) * 72u) + 16u;
            metal::simdgroup_half8x8 b1_2 = NagaCooperativeLoad(&tile_w.inner[at_w1_2], 72u, true);
            metal::simdgroup_float8x8 _e1043 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_2, b1_2, _e1043);
            metal::simdgroup_float8x8 _e1045 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_2, b1_2, _e1045);
            uint at_w2_2 = ((team_column + 16u) * 72u) + 16u;
            metal::simdgroup_half8x8 b2_2 = NagaCooperativeLoad(&tile_w.inner[at_w2_2], 72u, true);
            metal::simdgroup_float8x8 _e1057 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_2, b2_2, _e1057);
            metal::simdgroup_float8x8 _e1059 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_2, b2_2, _e1059);
            uint at_w3_2 = ((team_column + 24u) * 72u) + 16u;
            metal::simdgroup_half8x8 b3_2 = NagaCooperativeLoad(&tile_w.inner[at_w3_2], 72u, true);
            metal::simdgroup_float8x8 _e1071 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_2, b3_2, _e1071);
            metal::simdgroup_float8x8 _e1073 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_2, b3_2, _e1073);
        }
        {
            uint at_x0_3 = ((team_row + 0u) * 72u) + 24u;
            metal::simdgroup_half8x8 a0_3 = NagaCooperativeLoad(&tile_x.inner[at_x0_3], 72u, false);
            uint at_x1_3 = ((team_row + 8u) * 72u) + 24u;
            metal::simdgroup_half8x8 a1_3 = NagaCooperativeLoad(&tile_x.inner[at_x1_3], 72u, false);
            uint at_w0_3 = ((team_column + 0u) * 72u) + 24u;
            metal::simdgroup_half8x8 b0_3 = NagaCooperativeLoad(&tile_w.inner[at_w0_3], 72u, true);
            metal::simdgroup_float8x8 _e1105 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_3, b0_3, _e1105);
            metal::simdgroup_float8x8 _e1107 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_3, b0_3, _e1107);
            uint at_w1_3 = ((team_column + 8u) * 72u) + 24u;
            metal::simdgroup_half8x8 b1_3 = NagaCooperativeLoad(&tile_w.inner[at_w1_3], 72u, true);
            metal::simdgroup_float8x8 _e1119 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_3, b1_3, _e1119);
            metal::simdgroup_float8x8 _e1121 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_3, b1_3, _e1121);
            uint at_w2_3 = ((team_column + 16u) * 72u) + 24u;
            metal::simdgroup_half8x8 b2_3 = NagaCooperativeLoad(&tile_w.inner[at_w2_3], 72u, true);
            metal::simdgroup_float8x8 _e1133 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_3, b2_3, _e1133);
            metal::simdgroup_float8x8 _e1135 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_3, b2_3, _e1135);
            uint at_w3_3 = ((team_column + 24u) * 72u) + 24u;
            metal::simdgroup_half8x8 b3_3 = NagaCooperativeLoad(&tile_w.inner[at_w3_3], 72u, true);
            metal::simdgroup_float8x8 _e1147 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_3, b3_3, _e1147);
            metal::simdgroup_float8x8 _e1149 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_3, b3_3, _e1149);
        }
        {
            uint at_x0_4 = ((team_row + 0u) * 72u) + 32u;
            metal::simdgroup_half8x8 a0_4 = NagaCooperativeLoad(&tile_x.inner[at_x0_4], 72u, false);
            uint at_x1_4 = ((team_row + 8u) * 72u) + 32u;
            metal::simdgroup_half8x8 a1_4 = NagaCooperativeLoad(&tile_x.inner[at_x1_4], 72u, false);
            uint at_w0_4 = ((team_column + 0u) * 72u) + 32u;
            metal::simdgroup_half8x8 b0_4 = NagaCooperativeLoad(&tile_w.inner[at_w0_4], 72u, true);
            metal::simdgroup_float8x8 _e1181 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_4, b0_4, _e1181);
            metal::simdgroup_float8x8 _e1183 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_4, b0_4, _e1183);
            uint at_w1_4 = ((team_column + 8u) * 72u) + 32u;
            metal::simdgroup_half8x8 b1_4 = NagaCooperativeLoad(&tile_w.inner[at_w1_4], 72u, true);
            metal::simdgroup_float8x8 _e1195 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_4, b1_4, _e1195);
            metal::simdgroup_float8x8 _e1197 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_4, b1_4, _e1197);
            uint at_w2_4 = ((team_column + 16u) * 72u) + 32u;
            metal::simdgroup_half8x8 b2_4 = NagaCooperativeLoad(&tile_w.inner[at_w2_4], 72u, true);
            metal::simdgroup_float8x8 _e1209 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_4, b2_4, _e1209);
            metal::simdgroup_float8x8 _e1211 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_4, b2_4, _e1211);
            uint at_w3_4 = ((team_column + 24u) * 72u) + 32u;
            metal::simdgroup_half8x8 b3_4 = NagaCooperativeLoad(&tile_w.inner[at_w3_4], 72u, true);
            metal::simdgroup_float8x8 _e1223 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_4, b3_4, _e1223);
            metal::simdgroup_float8x8 _e1225 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_4, b3_4, _e1225);
        }
        {
            uint at_x0_5 = ((team_row + 0u) * 72u) + 40u;
            metal::simdgroup_half8x8 a0_5 = NagaCooperativeLoad(&tile_x.inner[at_x0_5], 72u, false);
            uint at_x1_5 = ((team_row + 8u) * 72u) + 40u;
            metal::simdgroup_half8x8 a1_5 = NagaCooperativeLoad(&tile_x.inner[at_x1_5], 72u, false);
            uint at_w0_5 = ((team_column + 0u) * 72u) + 40u;
            metal::simdgroup_half8x8 b0_5 = NagaCooperativeLoad(&tile_w.inner[at_w0_5], 72u, true);
            metal::simdgroup_float8x8 _e1257 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_5, b0_5, _e1257);
            metal::simdgroup_float8x8 _e1259 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_5, b0_5, _e1259);
            uint at_w1_5 = ((team_column + 8u) * 72u) + 40u;
            metal::simdgroup_half8x8 b1_5 = NagaCooperativeLoad(&tile_w.inner[at_w1_5], 72u, true);
            metal::simdgroup_float8x8 _e1271 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_5, b1_5, _e1271);
            metal::simdgroup_float8x8 _e1273 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_5, b1_5, _e1273);
            uint at_w2_5 = ((team_column + 16u) * 72u) + 40u;
            metal::simdgroup_half8x8 b2_5 = NagaCooperativeLoad(&tile_w.inner[at_w2_5], 72u, true);
            metal::simdgroup_float8x8 _e1285 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_5, b2_5, _e1285);
            metal::simdgroup_float8x8 _e1287 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_5, b2_5, _e1287);
            uint at_w3_5 = ((team_column + 24u) * 72u) + 40u;
            metal::simdgroup_half8x8 b3_5 = NagaCooperativeLoad(&tile_w.inner[at_w3_5], 72u, true);
            metal::simdgroup_float8x8 _e1299 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_5, b3_5, _e1299);
            metal::simdgroup_float8x8 _e1301 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_5, b3_5, _e1301);
        }
        {
            uint at_x0_6 = ((team_row + 0u) * 72u) + 48u;
            metal::simdgroup_half8x8 a0_6 = NagaCooperativeLoad(&tile_x.inner[at_x0_6], 72u, false);
            uint at_x1_6 = ((team_row + 8u) * 72u) + 48u;
            metal::simdgroup_half8x8 a1_6 = NagaCooperativeLoad(&tile_x.inner[at_x1_6], 72u, false);
            uint at_w0_6 = ((team_column + 0u) * 72u) + 48u;
            metal::simdgroup_half8x8 b0_6 = NagaCooperativeLoad(&tile_w.inner[at_w0_6], 72u, true);
            metal::simdgroup_float8x8 _e1333 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_6, b0_6, _e1333);
            metal::simdgroup_float8x8 _e1335 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_6, b0_6, _e1335);
            uint at_w1_6 = ((team_column + 8u) * 72u) + 48u;
            metal::simdgroup_half8x8 b1_6 = NagaCooperativeLoad(&tile_w.inner[at_w1_6], 72u, true);
            metal::simdgroup_float8x8 _e1347 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_6, b1_6, _e1347);
            metal::simdgroup_float8x8 _e1349 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_6, b1_6, _e1349);
            uint at_w2_6 = ((team_column + 16u) * 72u) + 48u;
            metal::simdgroup_half8x8 b2_6 = NagaCooperativeLoad(&tile_w.inner[at_w2_6], 72u, true);
            metal::simdgroup_float8x8 _e1361 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_6, b2_6, _e1361);
            metal::simdgroup_float8x8 _e1363 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_6, b2_6, _e1363);
            uint at_w3_6 = ((team_column + 24u) * 72u) + 48u;
            metal::simdgroup_half8x8 b3_6 = NagaCooperativeLoad(&tile_w.inner[at_w3_6], 72u, true);
            metal::simdgroup_float8x8 _e1375 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_6, b3_6, _e1375);
            metal::simdgroup_float8x8 _e1377 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_6, b3_6, _e1377);
        }
        {
            uint at_x0_7 = ((team_row + 0u) * 72u) + 56u;
            metal::simdgroup_half8x8 a0_7 = NagaCooperativeLoad(&tile_x.inner[at_x0_7], 72u, false);
            uint at_x1_7 = ((team_row + 8u) * 72u) + 56u;
            metal::simdgroup_half8x8 a1_7 = NagaCooperativeLoad(&tile_x.inner[at_x1_7], 72u, false);
            uint at_w0_7 = ((team_column + 0u) * 72u) + 56u;
            metal::simdgroup_half8x8 b0_7 = NagaCooperativeLoad(&tile_w.inner[at_w0_7], 72u, true);
            metal::simdgroup_float8x8 _e1409 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_7, b0_7, _e1409);
            metal::simdgroup_float8x8 _e1411 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_7, b0_7, _e1411);
            uint at_w1_7 = ((team_column + 8u) * 72u) + 56u;
            metal::simdgroup_half8x8 b1_7 = NagaCooperativeLoad(&tile_w.inner[at_w1_7], 72u, true);
            metal::simdgroup_float8x8 _e1423 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_7, b1_7, _e1423);
            metal::simdgroup_float8x8 _e1425 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_7, b1_7, _e1425);
            uint at_w2_7 = ((team_column + 16u) * 72u) + 56u;
            metal::simdgroup_half8x8 b2_7 = NagaCooperativeLoad(&tile_w.inner[at_w2_7], 72u, true);
            metal::simdgroup_float8x8 _e1437 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_7, b2_7, _e1437);
            metal::simdgroup_float8x8 _e1439 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_7, b2_7, _e1439);
            uint at_w3_7 = ((team_column + 24u) * 72u) + 56u;
            metal::simdgroup_half8x8 b3_7 = NagaCooperativeLoad(&tile_w.inner[at_w3_7], 72u, true);
            metal::simdgroup_float8x8 _e1451 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_7, b3_7, _e1451);
            metal::simdgroup_float8x8 _e1453 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_7, b3_7, _e1453);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    uint place = team * 64u;
    metal::simdgroup_float8x8 _e1457 = sum_0_0_;
    simdgroup_store(_e1457, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at = lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e1505 = at;
            at = _e1505 + lanes;
        }
        loop_init = false;
        uint _e1462 = at;
        if (_e1462 < 16u) {
        } else {
            break;
        }
        {
            uint _e1465 = at;
            uint cell = place + (_e1465 * 4u);
            uint _e1472 = at;
            uint row_4 = ((m0_ + team_row) + 0u) + (_e1472 / 2u);
            uint _e1479 = at;
            uint column_1 = ((first_1 + team_column) + 0u) + ((_e1479 % 2u) * 4u);
            uint _e1485 = which;
            float _e1488 = results.inner[cell];
            float _e1493 = results.inner[cell + 1u];
            float _e1498 = results.inner[cell + 2u];
            float _e1503 = results.inner[cell + 3u];
            finish(_e1485, own_1, row_4, column_1, metal::float4(_e1488, _e1493, _e1498, _e1503), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1507 = sum_0_1_;
    simdgroup_store(_e1507, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_1 = lane;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e1555 = at_1;
            at_1 = _e1555 + lanes;
        }
        loop_init_1 = false;
        uint _e1512 = at_1;
        if (_e1512 < 16u) {
        } else {
            break;
        }
        {
            uint _e1515 = at_1;
            uint cell_1 = place + (_e1515 * 4u);
            uint _e1522 = at_1;
            uint row_5 = ((m0_ + team_row) + 0u) + (_e1522 / 2u);
            uint _e1529 = at_1;
            uint column_2 = ((first_1 + team_column) + 8u) + ((_e1529 % 2u) * 4u);
            uint _e1535 = which;
            float _e1538 = results.inner[cell_1];
            float _e1543 = results.inner[cell_1 + 1u];
            float _e1548 = results.inner[cell_1 + 2u];
            float _e1553 = results.inner[cell_1 + 3u];
            finish(_e1535, own_1, row_5, column_2, metal::float4(_e1538, _e1543, _e1548, _e1553), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1557 = sum_0_2_;
    simdgroup_store(_e1557, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_2 = lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e1605 = at_2;
            at_2 = _e1605 + lanes;
        }
        loop_init_2 = false;
        uint _e1562 = at_2;
        if (_e1562 < 16u) {
        } else {
            break;
        }
        {
            uint _e1565 = at_2;
            uint cell_2 = place + (_e1565 * 4u);
            uint _e1572 = at_2;
            uint row_6 = ((m0_ + team_row) + 0u) + (_e1572 / 2u);
            uint _e1579 = at_2;
            uint column_3 = ((first_1 + team_column) + 16u) + ((_e1579 % 2u) * 4u);
            uint _e1585 = which;
            float _e1588 = results.inner[cell_2];
            float _e1593 = results.inner[cell_2 + 1u];
            float _e1598 = results.inner[cell_2 + 2u];
            float _e1603 = results.inner[cell_2 + 3u];
            finish(_e1585, own_1, row_6, column_3, metal::float4(_e1588, _e1593, _e1598, _e1603), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1607 = sum_0_3_;
    simdgroup_store(_e1607, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_3 = lane;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e1655 = at_3;
            at_3 = _e1655 + lanes;
        }
        loop_init_3 = false;
        uint _e1612 = at_3;
        if (_e1612 < 16u) {
        } else {
            break;
        }
        {
            uint _e1615 = at_3;
            uint cell_3 = place + (_e1615 * 4u);
            uint _e1622 = at_3;
            uint row_7 = ((m0_ + team_row) + 0u) + (_e1622 / 2u);
            uint _e1629 = at_3;
            uint column_4 = ((first_1 + team_column) + 24u) + ((_e1629 % 2u) * 4u);
            uint _e1635 = which;
            float _e1638 = results.inner[cell_3];
            float _e1643 = results.inner[cell_3 + 1u];
            float _e1648 = results.inner[cell_3 + 2u];
            float _e1653 = results.inner[cell_3 + 3u];
            finish(_e1635, own_1, row_7, column_4, metal::float4(_e1638, _e1643, _e1648, _e1653), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1657 = sum_1_0_;
    simdgroup_store(_e1657, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_4 = lane;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e1705 = at_4;
            at_4 = _e1705 + lanes;
        }
        loop_init_4 = false;
        uint _e1662 = at_4;
        if (_e1662 < 16u) {
        } else {
            break;
        }
        {
            uint _e1665 = at_4;
            uint cell_4 = place + (_e1665 * 4u);
            uint _e1672 = at_4;
            uint row_8 = ((m0_ + team_row) + 8u) + (_e1672 / 2u);
            uint _e1679 = at_4;
            uint column_5 = ((first_1 + team_column) + 0u) + ((_e1679 % 2u) * 4u);
            uint _e1685 = which;
            float _e1688 = results.inner[cell_4];
            float _e1693 = results.inner[cell_4 + 1u];
            float _e1698 = results.inner[cell_4 + 2u];
            float _e1703 = results.inner[cell_4 + 3u];
            finish(_e1685, own_1, row_8, column_5, metal::float4(_e1688, _e1693, _e1698, _e1703), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1707 = sum_1_1_;
    simdgroup_store(_e1707, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_5 = lane;
    bool loop_init_5 = true;
    while(true) {
        if (!loop_init_5) {
            uint _e1755 = at_5;
            at_5 = _e1755 + lanes;
        }
        loop_init_5 = false;
        uint _e1712 = at_5;
        if (_e1712 < 16u) {
        } else {
            break;
        }
        {
            uint _e1715 = at_5;
            uint cell_5 = place + (_e1715 * 4u);
            uint _e1722 = at_5;
            uint row_9 = ((m0_ + team_row) + 8u) + (_e1722 / 2u);
            uint _e1729 = at_5;
            uint column_6 = ((first_1 + team_column) + 8u) + ((_e1729 % 2u) * 4u);
            uint _e1735 = which;
            float _e1738 = results.inner[cell_5];
            float _e1743 = results.inner[cell_5 + 1u];
            float _e1748 = results.inner[cell_5 + 2u];
            float _e1753 = results.inner[cell_5 + 3u];
            finish(_e1735, own_1, row_9, column_6, metal::float4(_e1738, _e1743, _e1748, _e1753), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1757 = sum_1_2_;
    simdgroup_store(_e1757, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_6 = lane;
    bool loop_init_6 = true;
    while(true) {
        if (!loop_init_6) {
            uint _e1805 = at_6;
            at_6 = _e1805 + lanes;
        }
        loop_init_6 = false;
        uint _e1762 = at_6;
        if (_e1762 < 16u) {
        } else {
            break;
        }
        {
            uint _e1765 = at_6;
            uint cell_6 = place + (_e1765 * 4u);
            uint _e1772 = at_6;
            uint row_10 = ((m0_ + team_row) + 8u) + (_e1772 / 2u);
            uint _e1779 = at_6;
            uint column_7 = ((first_1 + team_column) + 16u) + ((_e1779 % 2u) * 4u);
            uint _e1785 = which;
            float _e1788 = results.inner[cell_6];
            float _e1793 = results.inner[cell_6 + 1u];
            float _e1798 = results.inner[cell_6 + 2u];
            float _e1803 = results.inner[cell_6 + 3u];
            finish(_e1785, own_1, row_10, column_7, metal::float4(_e1788, _e1793, _e1798, _e1803), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 _e1807 = sum_1_3_;
    simdgroup_store(_e1807, &results.inner[place], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    at_7 = lane;
    bool loop_init_7 = true;
    while(true) {
        if (!loop_init_7) {
            uint _e1855 = at_7;
            at_7 = _e1855 + lanes;
        }
        loop_init_7 = false;
        uint _e1812 = at_7;
        if (_e1812 < 16u) {
        } else {
            break;
        }
        {
            uint _e1815 = at_7;
            uint cell_7 = place + (_e1815 * 4u);
            uint _e1822 = at_7;
            uint row_11 = ((m0_ + team_row) + 8u) + (_e1822 / 2u);
            uint _e1829 = at_7;
            uint column_8 = ((first_1 + team_column) + 24u) + ((_e1829 % 2u) * 4u);
            uint _e1835 = which;
            float _e1838 = results.inner[cell_7];
            float _e1843 = results.inner[cell_7 + 1u];
            float _e1848 = results.inner[cell_7 + 2u];
            float _e1853 = results.inner[cell_7 + 3u];
            finish(_e1835, own_1, row_11, column_8, metal::float4(_e1838, _e1843, _e1848, _e1853), y0_, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
