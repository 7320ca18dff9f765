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
    uint _e82 = params.units;
    uint last_base = ((metal::max(_e82, 1u) - 1u) / 1u) * 1u;
    uint _e93 = params.units;
    if (_e93 > 0u) {
        {
            uint row_5 = m0_ + x_row0_;
            uint quad_ = 0u + x_quad0_;
            uint _e102 = params.m;
            metal::float4 _e109 = x[(metal::min(row_5, _e102 - 1u) * x_quads) + quad_];
            x0_ = _e109;
        }
        {
            uint row_6 = m0_ + x_row1_;
            uint quad_1 = 0u + x_quad1_;
            uint _e116 = params.m;
            metal::float4 _e123 = x[(metal::min(row_6, _e116 - 1u) * x_quads) + quad_1];
            x1_ = _e123;
        }
        {
            uint _e130 = params.units;
            uint unit = metal::min(0u + (w_at0_ / 64u), _e130 - 1u);
            uint _e136 = params.units;
            uint w_from = (w_row0_ * _e136) + unit;
            metal::uint4 _e141 = low[w_from];
            q0_ = _e141;
            metal::uint2 _e144 = high[w_from];
            h0_ = _e144;
            uint _e147 = params.factor_words;
            uint start = w_row0_ * _e147;
            uint _e158 = factors[start + (((unit * 2u) + 0u) >> 2u)];
            uint _e162 = params.wholes;
            uint _e172 = factors[(start + _e162) + (((unit * 2u) + 0u) >> 5u)];
            s0_0_ = metal::uint2(_e158, _e172);
            uint _e183 = factors[start + (((unit * 2u) + 1u) >> 2u)];
            uint _e187 = params.wholes;
            uint _e197 = factors[(start + _e187) + (((unit * 2u) + 1u) >> 5u)];
            s0_1_ = metal::uint2(_e183, _e197);
        }
    }
    while(true) {
        uint _e199 = base;
        uint _e202 = params.units;
        if (_e199 >= _e202) {
            break;
        }
        {
            metal::float4 _e206 = x0_;
            put_x(x_row0_, x_quad0_ * 4u, static_cast<metal::float4>(_e206), tile_x);
        }
        {
            metal::float4 _e210 = x1_;
            put_x(x_row1_, x_quad1_ * 4u, static_cast<metal::float4>(_e210), tile_x);
        }
        if (w_at0_ < 64u) {
            uint to = w_at0_ % 64u;
            uint k_2 = (w_at0_ / 64u) * 32u;
            uint _e220 = base;
            uint unit_1 = _e220 + (w_at0_ / 64u);
            uint block0_ = (unit_1 * 2u) + 0u;
            uint _e229 = s0_0_.x;
            uint _e242 = s0_0_.y;
            metal::float2 f0_0_ = metal::float2(static_cast<float>(as_type<int>(_e229 << (24u - ((block0_ & 3u) * 8u))) >> 24u) * float2(as_type<half2>((_e242 >> (((block0_ >> 4u) & 1u) * 16u)))).x, 0.0);
            uint block1_ = (unit_1 * 2u) + 1u;
            uint _e260 = s0_1_.x;
            uint _e273 = s0_1_.y;
            metal::float2 f0_1_ = metal::float2(static_cast<float>(as_type<int>(_e260 << (24u - ((block1_ & 3u) * 8u))) >> 24u) * float2(as_type<half2>((_e273 >> (((block1_ >> 4u) & 1u) * 16u)))).x, 0.0);
            uint _e289 = q0_.x;
            uint _e295 = h0_.x;
            put_w(to, k_2 + 0u, (as_type<metal::float4>(((metal::uint4(((_e289 >> 0u) & 252645135u) | (((_e295 >> 0u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e337 = q0_.x;
            uint _e343 = h0_.x;
            put_w(to, k_2 + 4u, (as_type<metal::float4>(((metal::uint4(((_e337 >> 4u) & 252645135u) | (((_e343 >> 2u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e385 = q0_.y;
            uint _e391 = h0_.x;
            put_w(to, k_2 + 8u, (as_type<metal::float4>(((metal::uint4(((_e385 >> 0u) & 252645135u) | (((_e391 >> 4u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e433 = q0_.y;
            uint _e439 = h0_.x;
            put_w(to, k_2 + 12u, (as_type<metal::float4>(((metal::uint4(((_e433 >> 4u) & 252645135u) | (((_e439 >> 6u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e481 = q0_.z;
            uint _e487 = h0_.y;
            put_w(to, k_2 + 16u, (as_type<metal::float4>(((metal::uint4(((_e481 >> 0u) & 252645135u) | (((_e487 >> 0u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_1_.x), tile_w);
            uint _e529 = q0_.z;
            uint _e535 = h0_.y;
            put_w(to, k_2 + 20u, (as_type<metal::float4>(((metal::uint4(((_e529 >> 4u) & 252645135u) | (((_e535 >> 2u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_1_.x), tile_w);
            uint _e577 = q0_.w;
            uint _e583 = h0_.y;
            put_w(to, k_2 + 24u, (as_type<metal::float4>(((metal::uint4(((_e577 >> 0u) & 252645135u) | (((_e583 >> 4u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_1_.x), tile_w);
            uint _e625 = q0_.w;
            uint _e631 = h0_.y;
            put_w(to, k_2 + 28u, (as_type<metal::float4>(((metal::uint4(((_e625 >> 4u) & 252645135u) | (((_e631 >> 6u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_1_.x), tile_w);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e670 = base;
        base = _e670 + 1u;
        {
            uint row_7 = m0_ + x_row0_;
            uint _e674 = base;
            uint quad_2 = ((metal::min(_e674, last_base) * 32u) >> 2u) + x_quad0_;
            uint _e684 = params.m;
            metal::float4 _e691 = x[(metal::min(row_7, _e684 - 1u) * x_quads) + quad_2];
            x0_ = _e691;
        }
        {
            uint row_8 = m0_ + x_row1_;
            uint _e693 = base;
            uint quad_3 = ((metal::min(_e693, last_base) * 32u) >> 2u) + x_quad1_;
            uint _e703 = params.m;
            metal::float4 _e710 = x[(metal::min(row_8, _e703 - 1u) * x_quads) + quad_3];
            x1_ = _e710;
        }
        {
            uint _e711 = base;
            uint _e718 = params.units;
            uint unit_2 = metal::min(metal::min(_e711, last_base) + (w_at0_ / 64u), _e718 - 1u);
            uint _e724 = params.units;
            uint w_from_1 = (w_row0_ * _e724) + unit_2;
            metal::uint4 _e729 = low[w_from_1];
            q0_ = _e729;
            metal::uint2 _e732 = high[w_from_1];
            h0_ = _e732;
            uint _e735 = params.factor_words;
            uint start_1 = w_row0_ * _e735;
            uint _e746 = factors[start_1 + (((unit_2 * 2u) + 0u) >> 2u)];
            uint _e750 = params.wholes;
            uint _e760 = factors[(start_1 + _e750) + (((unit_2 * 2u) + 0u) >> 5u)];
            s0_0_ = metal::uint2(_e746, _e760);
            uint _e771 = factors[start_1 + (((unit_2 * 2u) + 1u) >> 2u)];
            uint _e775 = params.wholes;
            uint _e785 = factors[(start_1 + _e775) + (((unit_2 * 2u) + 1u) >> 5u)];
            s0_1_ = metal::uint2(_e771, _e785);
        }
        deep = 0u;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e827 = deep;
                deep = _e827 + 1u;
            }
            loop_init = false;
            uint _e789 = deep;
            if (_e789 < 32u) {
            } else {
                break;
            }
            {
                uint _e793 = deep;
                metal::float4 a0_ = tile_x.inner[((_e793 * 9u) + row_4) + 0u];
                uint _e802 = deep;
                metal::float4 b0_ = tile_w.inner[((_e802 * 17u) + column_1) + 0u];
                metal::float4 _e812 = sum_0_0_;
                sum_0_0_ = metal::fma(metal::float4(a0_.x), b0_, _e812);
                metal::float4 _e816 = sum_1_0_;
                sum_1_0_ = metal::fma(metal::float4(a0_.y), b0_, _e816);
                metal::float4 _e820 = sum_2_0_;
                sum_2_0_ = metal::fma(metal::float4(a0_.z), b0_, _e820);
                metal::float4 _e824 = sum_3_0_;
                sum_3_0_ = metal::fma(metal::float4(a0_.w), b0_, _e824);
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    uint _e829 = which;
    metal::float4 _e842 = sum_0_0_;
    finish(_e829, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 0u, first_1 + ((column_1 + 0u) * 4u), _e842, y0_, params, _buffer_sizes);
    uint _e843 = which;
    metal::float4 _e856 = sum_1_0_;
    finish(_e843, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 1u, first_1 + ((column_1 + 0u) * 4u), _e856, y0_, params, _buffer_sizes);
    uint _e857 = which;
    metal::float4 _e870 = sum_2_0_;
    finish(_e857, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 2u, first_1 + ((column_1 + 0u) * 4u), _e870, y0_, params, _buffer_sizes);
    uint _e871 = which;
    metal::float4 _e884 = sum_3_0_;
    finish(_e871, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 3u, first_1 + ((column_1 + 0u) * 4u), _e884, y0_, params, _buffer_sizes);
    return;
}
