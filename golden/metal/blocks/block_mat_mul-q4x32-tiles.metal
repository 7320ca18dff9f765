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
struct type_9 {
    metal::float4 inner[288];
};
struct type_10 {
    metal::float4 inner[544];
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
    threadgroup type_9& tile_x
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
    threadgroup type_10& tile_w
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

struct main_Input {
};
[[max_total_threads_per_threadgroup(128)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint local [[thread_index_in_threadgroup]]
, device type_2 const& x [[buffer(0)]]
, device type_5 const& low [[buffer(1)]]
, device type_6 const& factors [[buffer(2)]]
, device type_7& y0_ [[buffer(3)]]
, constant Params& params [[buffer(4)]]
, threadgroup type_9& tile_x
, threadgroup type_10& tile_w
, constant _mslBufferSizes& _buffer_sizes [[buffer(5)]]
) {
    uint which = 0u;
    metal::float4 x0_ = metal::float4 {};
    metal::float4 x1_ = metal::float4 {};
    metal::uint4 q0_ = metal::uint4 {};
    metal::uint2 s0_0_ = metal::uint2 {};
    metal::float4 sum_0_0_ = metal::float4 {};
    metal::float4 sum_1_0_ = metal::float4 {};
    metal::float4 sum_2_0_ = metal::float4 {};
    metal::float4 sum_3_0_ = metal::float4 {};
    uint base = 0u;
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
    uint x_at0_ = local + 0u;
    uint x_row0_ = x_at0_ / 8u;
    uint x_quad0_ = x_at0_ % 8u;
    uint x_at1_ = local + 128u;
    uint x_row1_ = x_at1_ / 8u;
    uint x_quad1_ = x_at1_ % 8u;
    uint column_1 = local % 16u;
    uint row_4 = local / 16u;
    uint _e78 = params.units;
    uint last_base = ((metal::max(_e78, 1u) - 1u) / 1u) * 1u;
    uint _e89 = params.units;
    if (_e89 > 0u) {
        {
            uint row_5 = m0_ + x_row0_;
            uint quad_ = 0u + x_quad0_;
            uint _e98 = params.m;
            metal::float4 _e105 = x[(metal::min(row_5, _e98 - 1u) * x_quads) + quad_];
            x0_ = _e105;
        }
        {
            uint row_6 = m0_ + x_row1_;
            uint quad_1 = 0u + x_quad1_;
            uint _e112 = params.m;
            metal::float4 _e119 = x[(metal::min(row_6, _e112 - 1u) * x_quads) + quad_1];
            x1_ = _e119;
        }
        {
            uint _e126 = params.units;
            uint unit = metal::min(0u + (w_at0_ / 64u), _e126 - 1u);
            uint _e132 = params.units;
            uint w_from = (w_row0_ * _e132) + unit;
            metal::uint4 _e137 = low[w_from];
            q0_ = _e137;
            uint _e140 = params.factor_words;
            uint start = w_row0_ * _e140;
            uint _e147 = factors[start + (unit >> 0u)];
            s0_0_ = metal::uint2(_e147, 0u);
        }
    }
    while(true) {
        uint _e150 = base;
        uint _e153 = params.units;
        if (_e150 >= _e153) {
            break;
        }
        {
            metal::float4 _e157 = x0_;
            put_x(x_row0_, x_quad0_ * 4u, static_cast<metal::float4>(_e157), tile_x);
        }
        {
            metal::float4 _e161 = x1_;
            put_x(x_row1_, x_quad1_ * 4u, static_cast<metal::float4>(_e161), tile_x);
        }
        if (w_at0_ < 64u) {
            uint to = w_at0_ % 64u;
            uint k_2 = (w_at0_ / 64u) * 32u;
            uint _e171 = base;
            uint unit_1 = _e171 + (w_at0_ / 64u);
            uint block0_ = unit_1 >> 0u;
            metal::uint2 _e177 = s0_0_;
            metal::float2 f0_0_ = as_type<metal::float2>(_e177);
            uint _e182 = q0_.x;
            put_w(to, k_2 + 0u, (as_type<metal::float4>(((metal::uint4(_e182) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e217 = q0_.x;
            put_w(to, k_2 + 4u, (as_type<metal::float4>(((metal::uint4(_e217) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * (metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) * f0_0_.x), tile_w);
            uint _e252 = q0_.y;
            put_w(to, k_2 + 8u, (as_type<metal::float4>(((metal::uint4(_e252) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e287 = q0_.y;
            put_w(to, k_2 + 12u, (as_type<metal::float4>(((metal::uint4(_e287) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * (metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) * f0_0_.x), tile_w);
            uint _e322 = q0_.z;
            put_w(to, k_2 + 16u, (as_type<metal::float4>(((metal::uint4(_e322) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e357 = q0_.z;
            put_w(to, k_2 + 20u, (as_type<metal::float4>(((metal::uint4(_e357) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * (metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) * f0_0_.x), tile_w);
            uint _e392 = q0_.w;
            put_w(to, k_2 + 24u, (as_type<metal::float4>(((metal::uint4(_e392) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e427 = q0_.w;
            put_w(to, k_2 + 28u, (as_type<metal::float4>(((metal::uint4(_e427) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * (metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) * f0_0_.x), tile_w);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e459 = base;
        base = _e459 + 1u;
        {
            uint row_7 = m0_ + x_row0_;
            uint _e463 = base;
            uint quad_2 = ((metal::min(_e463, last_base) * 32u) >> 2u) + x_quad0_;
            uint _e473 = params.m;
            metal::float4 _e480 = x[(metal::min(row_7, _e473 - 1u) * x_quads) + quad_2];
            x0_ = _e480;
        }
        {
            uint row_8 = m0_ + x_row1_;
            uint _e482 = base;
            uint quad_3 = ((metal::min(_e482, last_base) * 32u) >> 2u) + x_quad1_;
            uint _e492 = params.m;
            metal::float4 _e499 = x[(metal::min(row_8, _e492 - 1u) * x_quads) + quad_3];
            x1_ = _e499;
        }
        {
            uint _e500 = base;
            uint _e507 = params.units;
            uint unit_2 = metal::min(metal::min(_e500, last_base) + (w_at0_ / 64u), _e507 - 1u);
            uint _e513 = params.units;
            uint w_from_1 = (w_row0_ * _e513) + unit_2;
            metal::uint4 _e518 = low[w_from_1];
            q0_ = _e518;
            uint _e521 = params.factor_words;
            uint start_1 = w_row0_ * _e521;
            uint _e528 = factors[start_1 + (unit_2 >> 0u)];
            s0_0_ = metal::uint2(_e528, 0u);
        }
        deep = 0u;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e571 = deep;
                deep = _e571 + 1u;
            }
            loop_init = false;
            uint _e533 = deep;
            if (_e533 < 32u) {
            } else {
                break;
            }
            {
                uint _e537 = deep;
                metal::float4 a0_ = tile_x.inner[((_e537 * 9u) + row_4) + 0u];
                uint _e546 = deep;
                metal::float4 b0_ = tile_w.inner[((_e546 * 17u) + column_1) + 0u];
                metal::float4 _e556 = sum_0_0_;
                sum_0_0_ = metal::fma(metal::float4(a0_.x), b0_, _e556);
                metal::float4 _e560 = sum_1_0_;
                sum_1_0_ = metal::fma(metal::float4(a0_.y), b0_, _e560);
                metal::float4 _e564 = sum_2_0_;
                sum_2_0_ = metal::fma(metal::float4(a0_.z), b0_, _e564);
                metal::float4 _e568 = sum_3_0_;
                sum_3_0_ = metal::fma(metal::float4(a0_.w), b0_, _e568);
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    uint _e573 = which;
    metal::float4 _e586 = sum_0_0_;
    finish(_e573, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 0u, first_1 + ((column_1 + 0u) * 4u), _e586, y0_, params, _buffer_sizes);
    uint _e587 = which;
    metal::float4 _e600 = sum_1_0_;
    finish(_e587, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 1u, first_1 + ((column_1 + 0u) * 4u), _e600, y0_, params, _buffer_sizes);
    uint _e601 = which;
    metal::float4 _e614 = sum_2_0_;
    finish(_e601, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 2u, first_1 + ((column_1 + 0u) * 4u), _e614, y0_, params, _buffer_sizes);
    uint _e615 = which;
    metal::float4 _e628 = sum_3_0_;
    finish(_e615, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 3u, first_1 + ((column_1 + 0u) * 4u), _e628, y0_, params, _buffer_sizes);
    return;
}
