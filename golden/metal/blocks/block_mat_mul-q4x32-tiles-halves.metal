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
    uint _e66 = params.units;
    if (_e66 > 0u) {
        {
            uint at_3 = local + 0u;
            uint _e78 = params.m;
            uint _e83 = base;
            metal::float4 _e96 = x[(metal::min(m0_ + (at_3 / 8u), _e78 - 1u) * x_quads) + metal::min(((_e83 * 32u) >> 2u) + (at_3 % 8u), x_quads - 1u)];
            uint _e103 = params.m;
            if ((m0_ + (at_3 / 8u)) < _e103) {
                uint _e107 = base;
                local_1 = (((_e107 * 32u) >> 2u) + (at_3 % 8u)) < x_quads;
            } else {
                local_1 = false;
            }
            bool _e117 = local_1;
            x0_ = _e117 ? static_cast<metal::float4>(_e96) : metal::float4 {};
        }
        {
            uint at_4 = local + 128u;
            uint _e128 = params.m;
            uint _e133 = base;
            metal::float4 _e146 = x[(metal::min(m0_ + (at_4 / 8u), _e128 - 1u) * x_quads) + metal::min(((_e133 * 32u) >> 2u) + (at_4 % 8u), x_quads - 1u)];
            uint _e153 = params.m;
            if ((m0_ + (at_4 / 8u)) < _e153) {
                uint _e157 = base;
                local_2 = (((_e157 * 32u) >> 2u) + (at_4 % 8u)) < x_quads;
            } else {
                local_2 = false;
            }
            bool _e167 = local_2;
            x1_ = _e167 ? static_cast<metal::float4>(_e146) : metal::float4 {};
        }
        {
            uint _e169 = base;
            uint unit = _e169 + (w_at0_ / 64u);
            uint _e175 = params.units;
            bool inside = unit < _e175;
            uint _e179 = params.units;
            uint _e183 = params.units;
            uint w_from = (w_row0_ * _e179) + metal::min(unit, _e183 - 1u);
            metal::uint4 _e191 = low[w_from];
            q0_ = inside ? _e191 : metal::uint4 {};
            uint _e195 = params.factor_words;
            uint start = w_row0_ * _e195;
            uint _e200 = params.units;
            uint _e210 = factors[start + ((metal::min(unit, _e200 - 1u) >> 0u) >> 1u)];
            s0_0_ = metal::uint2(_e210, 0u);
        }
    }
    while(true) {
        uint _e213 = base;
        uint _e216 = params.units;
        if (_e213 >= _e216) {
            break;
        }
        {
            uint at_5 = local + 0u;
            metal::float4 _e226 = x0_;
            put_x(at_5 / 8u, (at_5 % 8u) * 4u, _e226, tile_x);
        }
        {
            uint at_6 = local + 128u;
            metal::float4 _e235 = x1_;
            put_x(at_6 / 8u, (at_6 % 8u) * 4u, _e235, tile_x);
        }
        if (w_at0_ < 64u) {
            uint to = w_at0_ % 64u;
            uint k_2 = (w_at0_ / 64u) * 32u;
            uint _e244 = base;
            uint unit_1 = _e244 + (w_at0_ / 64u);
            uint block0_ = unit_1 >> 0u;
            uint _e252 = s0_0_.x;
            uint _e264 = params.units;
            metal::float2 f0_0_ = (unit_1 < _e264) ? metal::float2(float2(as_type<half2>((_e252 >> ((block0_ & 1u) * 16u)))).x, 0.0) : metal::float2 {};
            uint _e270 = q0_.x;
            put_w(to, k_2 + 0u, (as_type<metal::float4>(((metal::uint4(_e270) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e305 = q0_.x;
            put_w(to, k_2 + 4u, (as_type<metal::float4>(((metal::uint4(_e305) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * (metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) * f0_0_.x), tile_w);
            uint _e340 = q0_.y;
            put_w(to, k_2 + 8u, (as_type<metal::float4>(((metal::uint4(_e340) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e375 = q0_.y;
            put_w(to, k_2 + 12u, (as_type<metal::float4>(((metal::uint4(_e375) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * (metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) * f0_0_.x), tile_w);
            uint _e410 = q0_.z;
            put_w(to, k_2 + 16u, (as_type<metal::float4>(((metal::uint4(_e410) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e445 = q0_.z;
            put_w(to, k_2 + 20u, (as_type<metal::float4>(((metal::uint4(_e445) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * (metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) * f0_0_.x), tile_w);
            uint _e480 = q0_.w;
            put_w(to, k_2 + 24u, (as_type<metal::float4>(((metal::uint4(_e480) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0)) * (metal::float4(1.0, 0.00390625, 1.0, 0.00390625) * f0_0_.x), tile_w);
            uint _e515 = q0_.w;
            put_w(to, k_2 + 28u, (as_type<metal::float4>(((metal::uint4(_e515) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0)) * (metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) * f0_0_.x), tile_w);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e547 = base;
        base = _e547 + 1u;
        uint _e550 = base;
        uint _e553 = params.units;
        if (_e550 < _e553) {
            {
                uint at_7 = local + 0u;
                uint _e564 = params.m;
                uint _e569 = base;
                metal::float4 _e582 = x[(metal::min(m0_ + (at_7 / 8u), _e564 - 1u) * x_quads) + metal::min(((_e569 * 32u) >> 2u) + (at_7 % 8u), x_quads - 1u)];
                uint _e589 = params.m;
                if ((m0_ + (at_7 / 8u)) < _e589) {
                    uint _e593 = base;
                    local_3 = (((_e593 * 32u) >> 2u) + (at_7 % 8u)) < x_quads;
                } else {
                    local_3 = false;
                }
                bool _e603 = local_3;
                x0_ = _e603 ? static_cast<metal::float4>(_e582) : metal::float4 {};
            }
            {
                uint at_8 = local + 128u;
                uint _e614 = params.m;
                uint _e619 = base;
                metal::float4 _e632 = x[(metal::min(m0_ + (at_8 / 8u), _e614 - 1u) * x_quads) + metal::min(((_e619 * 32u) >> 2u) + (at_8 % 8u), x_quads - 1u)];
                uint _e639 = params.m;
                if ((m0_ + (at_8 / 8u)) < _e639) {
                    uint _e643 = base;
                    local_4 = (((_e643 * 32u) >> 2u) + (at_8 % 8u)) < x_quads;
                } else {
                    local_4 = false;
                }
                bool _e653 = local_4;
                x1_ = _e653 ? static_cast<metal::float4>(_e632) : metal::float4 {};
            }
            {
                uint _e655 = base;
                uint unit_2 = _e655 + (w_at0_ / 64u);
                uint _e661 = params.units;
                bool inside_1 = unit_2 < _e661;
                uint _e665 = params.units;
                uint _e669 = params.units;
                uint w_from_1 = (w_row0_ * _e665) + metal::min(unit_2, _e669 - 1u);
                metal::uint4 _e677 = low[w_from_1];
                q0_ = inside_1 ? _e677 : metal::uint4 {};
                uint _e681 = params.factor_words;
                uint start_1 = w_row0_ * _e681;
                uint _e686 = params.units;
                uint _e696 = factors[start_1 + ((metal::min(unit_2, _e686 - 1u) >> 0u) >> 1u)];
                s0_0_ = metal::uint2(_e696, 0u);
            }
        }
        deep = 0u;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e739 = deep;
                deep = _e739 + 1u;
            }
            loop_init = false;
            uint _e701 = deep;
            if (_e701 < 32u) {
            } else {
                break;
            }
            {
                uint _e705 = deep;
                metal::float4 a0_ = tile_x.inner[((_e705 * 9u) + row_4) + 0u];
                uint _e714 = deep;
                metal::float4 b0_ = tile_w.inner[((_e714 * 17u) + column_1) + 0u];
                metal::float4 _e724 = sum_0_0_;
                sum_0_0_ = metal::fma(metal::float4(a0_.x), b0_, _e724);
                metal::float4 _e728 = sum_1_0_;
                sum_1_0_ = metal::fma(metal::float4(a0_.y), b0_, _e728);
                metal::float4 _e732 = sum_2_0_;
                sum_2_0_ = metal::fma(metal::float4(a0_.z), b0_, _e732);
                metal::float4 _e736 = sum_3_0_;
                sum_3_0_ = metal::fma(metal::float4(a0_.w), b0_, _e736);
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    uint _e741 = which;
    metal::float4 _e754 = sum_0_0_;
    finish(_e741, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 0u, first_1 + ((column_1 + 0u) * 4u), _e754, y0_, params, _buffer_sizes);
    uint _e755 = which;
    metal::float4 _e768 = sum_1_0_;
    finish(_e755, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 1u, first_1 + ((column_1 + 0u) * 4u), _e768, y0_, params, _buffer_sizes);
    uint _e769 = which;
    metal::float4 _e782 = sum_2_0_;
    finish(_e769, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 2u, first_1 + ((column_1 + 0u) * 4u), _e782, y0_, params, _buffer_sizes);
    uint _e783 = which;
    metal::float4 _e796 = sum_3_0_;
    finish(_e783, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 3u, first_1 + ((column_1 + 0u) * 4u), _e796, y0_, params, _buffer_sizes);
    return;
}
