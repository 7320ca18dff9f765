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
struct type_8 {
    metal::float4 inner[288];
};
struct type_9 {
    metal::float4 inner[544];
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
    threadgroup type_8& tile_x
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
    threadgroup type_9& tile_w
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

struct main_Input {
};
[[max_total_threads_per_threadgroup(128)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint local [[thread_index_in_threadgroup]]
, device type_2 const& x [[buffer(0)]]
, device type_5 const& low [[buffer(1)]]
, device type_6& y0_ [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, threadgroup type_8& tile_x
, threadgroup type_9& tile_w
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    uint which = 0u;
    metal::float4 x0_ = metal::float4 {};
    metal::float4 x1_ = metal::float4 {};
    metal::uint4 q0_ = metal::uint4 {};
    metal::uint4 q1_ = metal::uint4 {};
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
    uint w_at1_ = local + 128u;
    uint w_row1_ = own_1.z + metal::min(first_1 + (w_at1_ % 64u), last);
    uint column_1 = local % 16u;
    uint row_4 = local / 16u;
    uint _e74 = params.units;
    if (_e74 > 0u) {
        {
            uint at_3 = local + 0u;
            uint _e86 = params.m;
            uint _e91 = base;
            metal::float4 _e104 = x[(metal::min(m0_ + (at_3 / 8u), _e86 - 1u) * x_quads) + metal::min(((_e91 * 8u) >> 2u) + (at_3 % 8u), x_quads - 1u)];
            uint _e111 = params.m;
            if ((m0_ + (at_3 / 8u)) < _e111) {
                uint _e115 = base;
                local_1 = (((_e115 * 8u) >> 2u) + (at_3 % 8u)) < x_quads;
            } else {
                local_1 = false;
            }
            bool _e125 = local_1;
            x0_ = _e125 ? static_cast<metal::float4>(_e104) : metal::float4 {};
        }
        {
            uint at_4 = local + 128u;
            uint _e136 = params.m;
            uint _e141 = base;
            metal::float4 _e154 = x[(metal::min(m0_ + (at_4 / 8u), _e136 - 1u) * x_quads) + metal::min(((_e141 * 8u) >> 2u) + (at_4 % 8u), x_quads - 1u)];
            uint _e161 = params.m;
            if ((m0_ + (at_4 / 8u)) < _e161) {
                uint _e165 = base;
                local_2 = (((_e165 * 8u) >> 2u) + (at_4 % 8u)) < x_quads;
            } else {
                local_2 = false;
            }
            bool _e175 = local_2;
            x1_ = _e175 ? static_cast<metal::float4>(_e154) : metal::float4 {};
        }
        {
            uint _e177 = base;
            uint unit = _e177 + (w_at0_ / 64u);
            uint _e183 = params.units;
            bool inside = unit < _e183;
            uint _e187 = params.units;
            uint _e191 = params.units;
            uint w_from = (w_row0_ * _e187) + metal::min(unit, _e191 - 1u);
            metal::uint4 _e199 = low[w_from];
            q0_ = inside ? _e199 : metal::uint4 {};
        }
        {
            uint _e201 = base;
            uint unit_1 = _e201 + (w_at1_ / 64u);
            uint _e207 = params.units;
            bool inside_1 = unit_1 < _e207;
            uint _e211 = params.units;
            uint _e215 = params.units;
            uint w_from_1 = (w_row1_ * _e211) + metal::min(unit_1, _e215 - 1u);
            metal::uint4 _e223 = low[w_from_1];
            q1_ = inside_1 ? _e223 : metal::uint4 {};
        }
    }
    while(true) {
        uint _e225 = base;
        uint _e228 = params.units;
        if (_e225 >= _e228) {
            break;
        }
        {
            uint at_5 = local + 0u;
            metal::float4 _e238 = x0_;
            put_x(at_5 / 8u, (at_5 % 8u) * 4u, _e238, tile_x);
        }
        {
            uint at_6 = local + 128u;
            metal::float4 _e247 = x1_;
            put_x(at_6 / 8u, (at_6 % 8u) * 4u, _e247, tile_x);
        }
        {
            uint to = w_at0_ % 64u;
            uint k_2 = (w_at0_ / 64u) * 8u;
            uint _e257 = q0_.x;
            uint _e260 = q0_.y;
            put_w(to, k_2 + 0u, metal::float4(float2(as_type<half2>(_e257)), float2(as_type<half2>(_e260))), tile_w);
            uint _e266 = q0_.z;
            uint _e269 = q0_.w;
            put_w(to, k_2 + 4u, metal::float4(float2(as_type<half2>(_e266)), float2(as_type<half2>(_e269))), tile_w);
        }
        {
            uint to_1 = w_at1_ % 64u;
            uint k_3 = (w_at1_ / 64u) * 8u;
            uint _e281 = q1_.x;
            uint _e284 = q1_.y;
            put_w(to_1, k_3 + 0u, metal::float4(float2(as_type<half2>(_e281)), float2(as_type<half2>(_e284))), tile_w);
            uint _e290 = q1_.z;
            uint _e293 = q1_.w;
            put_w(to_1, k_3 + 4u, metal::float4(float2(as_type<half2>(_e290)), float2(as_type<half2>(_e293))), tile_w);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e296 = base;
        base = _e296 + 4u;
        uint _e299 = base;
        uint _e302 = params.units;
        if (_e299 < _e302) {
            {
                uint at_7 = local + 0u;
                uint _e313 = params.m;
                uint _e318 = base;
                metal::float4 _e331 = x[(metal::min(m0_ + (at_7 / 8u), _e313 - 1u) * x_quads) + metal::min(((_e318 * 8u) >> 2u) + (at_7 % 8u), x_quads - 1u)];
                uint _e338 = params.m;
                if ((m0_ + (at_7 / 8u)) < _e338) {
                    uint _e342 = base;
                    local_3 = (((_e342 * 8u) >> 2u) + (at_7 % 8u)) < x_quads;
                } else {
                    local_3 = false;
                }
                bool _e352 = local_3;
                x0_ = _e352 ? static_cast<metal::float4>(_e331) : metal::float4 {};
            }
            {
                uint at_8 = local + 128u;
                uint _e363 = params.m;
                uint _e368 = base;
                metal::float4 _e381 = x[(metal::min(m0_ + (at_8 / 8u), _e363 - 1u) * x_quads) + metal::min(((_e368 * 8u) >> 2u) + (at_8 % 8u), x_quads - 1u)];
                uint _e388 = params.m;
                if ((m0_ + (at_8 / 8u)) < _e388) {
                    uint _e392 = base;
                    local_4 = (((_e392 * 8u) >> 2u) + (at_8 % 8u)) < x_quads;
                } else {
                    local_4 = false;
                }
                bool _e402 = local_4;
                x1_ = _e402 ? static_cast<metal::float4>(_e381) : metal::float4 {};
            }
            {
                uint _e404 = base;
                uint unit_2 = _e404 + (w_at0_ / 64u);
                uint _e410 = params.units;
                bool inside_2 = unit_2 < _e410;
                uint _e414 = params.units;
                uint _e418 = params.units;
                uint w_from_2 = (w_row0_ * _e414) + metal::min(unit_2, _e418 - 1u);
                metal::uint4 _e426 = low[w_from_2];
                q0_ = inside_2 ? _e426 : metal::uint4 {};
            }
            {
                uint _e428 = base;
                uint unit_3 = _e428 + (w_at1_ / 64u);
                uint _e434 = params.units;
                bool inside_3 = unit_3 < _e434;
                uint _e438 = params.units;
                uint _e442 = params.units;
                uint w_from_3 = (w_row1_ * _e438) + metal::min(unit_3, _e442 - 1u);
                metal::uint4 _e450 = low[w_from_3];
                q1_ = inside_3 ? _e450 : metal::uint4 {};
            }
        }
        deep = 0u;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e492 = deep;
                deep = _e492 + 1u;
            }
            loop_init = false;
            uint _e454 = deep;
            if (_e454 < 32u) {
            } else {
                break;
            }
            {
                uint _e458 = deep;
                metal::float4 a0_ = tile_x.inner[((_e458 * 9u) + row_4) + 0u];
                uint _e467 = deep;
                metal::float4 b0_ = tile_w.inner[((_e467 * 17u) + column_1) + 0u];
                metal::float4 _e477 = sum_0_0_;
                sum_0_0_ = metal::fma(metal::float4(a0_.x), b0_, _e477);
                metal::float4 _e481 = sum_1_0_;
                sum_1_0_ = metal::fma(metal::float4(a0_.y), b0_, _e481);
                metal::float4 _e485 = sum_2_0_;
                sum_2_0_ = metal::fma(metal::float4(a0_.z), b0_, _e485);
                metal::float4 _e489 = sum_3_0_;
                sum_3_0_ = metal::fma(metal::float4(a0_.w), b0_, _e489);
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    uint _e494 = which;
    metal::float4 _e507 = sum_0_0_;
    finish(_e494, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 0u, first_1 + ((column_1 + 0u) * 4u), _e507, y0_, params, _buffer_sizes);
    uint _e508 = which;
    metal::float4 _e521 = sum_1_0_;
    finish(_e508, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 1u, first_1 + ((column_1 + 0u) * 4u), _e521, y0_, params, _buffer_sizes);
    uint _e522 = which;
    metal::float4 _e535 = sum_2_0_;
    finish(_e522, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 2u, first_1 + ((column_1 + 0u) * 4u), _e535, y0_, params, _buffer_sizes);
    uint _e536 = which;
    metal::float4 _e549 = sum_3_0_;
    finish(_e536, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 3u, first_1 + ((column_1 + 0u) * 4u), _e549, y0_, params, _buffer_sizes);
    return;
}
