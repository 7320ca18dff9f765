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
    uint x_at0_ = local + 0u;
    uint x_row0_ = x_at0_ / 8u;
    uint x_quad0_ = x_at0_ % 8u;
    uint x_at1_ = local + 128u;
    uint x_row1_ = x_at1_ / 8u;
    uint x_quad1_ = x_at1_ % 8u;
    uint column_1 = local % 16u;
    uint row_4 = local / 16u;
    uint _e86 = params.units;
    uint last_base = ((metal::max(_e86, 1u) - 1u) / 4u) * 4u;
    uint _e97 = params.units;
    if (_e97 > 0u) {
        {
            uint row_5 = m0_ + x_row0_;
            uint quad_ = 0u + x_quad0_;
            uint _e106 = params.m;
            metal::float4 _e113 = x[(metal::min(row_5, _e106 - 1u) * x_quads) + quad_];
            x0_ = _e113;
        }
        {
            uint row_6 = m0_ + x_row1_;
            uint quad_1 = 0u + x_quad1_;
            uint _e120 = params.m;
            metal::float4 _e127 = x[(metal::min(row_6, _e120 - 1u) * x_quads) + quad_1];
            x1_ = _e127;
        }
        {
            uint _e134 = params.units;
            uint unit = metal::min(0u + (w_at0_ / 64u), _e134 - 1u);
            uint _e140 = params.units;
            uint w_from = (w_row0_ * _e140) + unit;
            metal::uint4 _e145 = low[w_from];
            q0_ = _e145;
        }
        {
            uint _e152 = params.units;
            uint unit_1 = metal::min(0u + (w_at1_ / 64u), _e152 - 1u);
            uint _e158 = params.units;
            uint w_from_1 = (w_row1_ * _e158) + unit_1;
            metal::uint4 _e163 = low[w_from_1];
            q1_ = _e163;
        }
    }
    while(true) {
        uint _e164 = base;
        uint _e167 = params.units;
        if (_e164 >= _e167) {
            break;
        }
        {
            metal::float4 _e171 = x0_;
            put_x(x_row0_, x_quad0_ * 4u, static_cast<metal::float4>(_e171), tile_x);
        }
        {
            metal::float4 _e175 = x1_;
            put_x(x_row1_, x_quad1_ * 4u, static_cast<metal::float4>(_e175), tile_x);
        }
        {
            uint to = w_at0_ % 64u;
            uint k_2 = (w_at0_ / 64u) * 8u;
            uint _e183 = base;
            uint unit_2 = _e183 + (w_at0_ / 64u);
            uint _e190 = q0_.x;
            uint _e193 = q0_.y;
            put_w(to, k_2 + 0u, metal::float4(float2(as_type<half2>(_e190)), float2(as_type<half2>(_e193))), tile_w);
            uint _e199 = q0_.z;
            uint _e202 = q0_.w;
            put_w(to, k_2 + 4u, metal::float4(float2(as_type<half2>(_e199)), float2(as_type<half2>(_e202))), tile_w);
        }
        {
            uint to_1 = w_at1_ % 64u;
            uint k_3 = (w_at1_ / 64u) * 8u;
            uint _e211 = base;
            uint unit_3 = _e211 + (w_at1_ / 64u);
            uint _e218 = q1_.x;
            uint _e221 = q1_.y;
            put_w(to_1, k_3 + 0u, metal::float4(float2(as_type<half2>(_e218)), float2(as_type<half2>(_e221))), tile_w);
            uint _e227 = q1_.z;
            uint _e230 = q1_.w;
            put_w(to_1, k_3 + 4u, metal::float4(float2(as_type<half2>(_e227)), float2(as_type<half2>(_e230))), tile_w);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e233 = base;
        base = _e233 + 4u;
        {
            uint row_7 = m0_ + x_row0_;
            uint _e237 = base;
            uint quad_2 = ((metal::min(_e237, last_base) * 8u) >> 2u) + x_quad0_;
            uint _e247 = params.m;
            metal::float4 _e254 = x[(metal::min(row_7, _e247 - 1u) * x_quads) + quad_2];
            x0_ = _e254;
        }
        {
            uint row_8 = m0_ + x_row1_;
            uint _e256 = base;
            uint quad_3 = ((metal::min(_e256, last_base) * 8u) >> 2u) + x_quad1_;
            uint _e266 = params.m;
            metal::float4 _e273 = x[(metal::min(row_8, _e266 - 1u) * x_quads) + quad_3];
            x1_ = _e273;
        }
        {
            uint _e274 = base;
            uint _e281 = params.units;
            uint unit_4 = metal::min(metal::min(_e274, last_base) + (w_at0_ / 64u), _e281 - 1u);
            uint _e287 = params.units;
            uint w_from_2 = (w_row0_ * _e287) + unit_4;
            metal::uint4 _e292 = low[w_from_2];
            q0_ = _e292;
        }
        {
            uint _e293 = base;
            uint _e300 = params.units;
            uint unit_5 = metal::min(metal::min(_e293, last_base) + (w_at1_ / 64u), _e300 - 1u);
            uint _e306 = params.units;
            uint w_from_3 = (w_row1_ * _e306) + unit_5;
            metal::uint4 _e311 = low[w_from_3];
            q1_ = _e311;
        }
        deep = 0u;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e352 = deep;
                deep = _e352 + 1u;
            }
            loop_init = false;
            uint _e314 = deep;
            if (_e314 < 32u) {
            } else {
                break;
            }
            {
                uint _e318 = deep;
                metal::float4 a0_ = tile_x.inner[((_e318 * 9u) + row_4) + 0u];
                uint _e327 = deep;
                metal::float4 b0_ = tile_w.inner[((_e327 * 17u) + column_1) + 0u];
                metal::float4 _e337 = sum_0_0_;
                sum_0_0_ = metal::fma(metal::float4(a0_.x), b0_, _e337);
                metal::float4 _e341 = sum_1_0_;
                sum_1_0_ = metal::fma(metal::float4(a0_.y), b0_, _e341);
                metal::float4 _e345 = sum_2_0_;
                sum_2_0_ = metal::fma(metal::float4(a0_.z), b0_, _e345);
                metal::float4 _e349 = sum_3_0_;
                sum_3_0_ = metal::fma(metal::float4(a0_.w), b0_, _e349);
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    uint _e354 = which;
    metal::float4 _e367 = sum_0_0_;
    finish(_e354, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 0u, first_1 + ((column_1 + 0u) * 4u), _e367, y0_, params, _buffer_sizes);
    uint _e368 = which;
    metal::float4 _e381 = sum_1_0_;
    finish(_e368, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 1u, first_1 + ((column_1 + 0u) * 4u), _e381, y0_, params, _buffer_sizes);
    uint _e382 = which;
    metal::float4 _e395 = sum_2_0_;
    finish(_e382, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 2u, first_1 + ((column_1 + 0u) * 4u), _e395, y0_, params, _buffer_sizes);
    uint _e396 = which;
    metal::float4 _e409 = sum_3_0_;
    finish(_e396, own_1, (m0_ + ((row_4 + 0u) * 4u)) + 3u, first_1 + ((column_1 + 0u) * 4u), _e409, y0_, params, _buffer_sizes);
    return;
}
