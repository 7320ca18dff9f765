// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
};

typedef half type_1[1];
typedef metal::half4 type_3[1];
struct Params {
    uint total;
    uint tiles_n;
    uint tiles_m;
    uint groups;
    uint channels;
    uint m;
    uint m_padded;
    uint k;
    uint k_padded;
    uint pixels;
    uint in_z;
    uint in_y;
    uint in_x;
    uint out_y;
    uint out_x;
    uint stride_z;
    uint stride_y;
    uint stride_x;
    uint pad_z;
    uint pad_y;
    uint pad_x;
    uint step_z;
    uint step_y;
    uint step_x;
    uint x_image;
    uint x_channel;
    uint x_pixel;
    uint y_image;
    uint y_channel;
    uint y_pixel;
    float p;
    float q;
};
struct type_7 {
    metal::float4 inner[256];
};

metal::float4 activate(
    metal::float4 v
) {
    return v;
}

void put(
    metal::float4 sums,
    uint channel,
    uint to,
    uint count,
    device type_1& y,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 v_1 = {};
    v_1 = sums;
    metal::float4 _e5 = v_1;
    metal::float4 _e6 = activate(_e5);
    v_1 = _e6;
    if (0u < count) {
        uint _e13 = params.y_pixel;
        float _e18 = v_1.x;
        y[metal::min(unsigned(to + (0u * _e13)), (_buffer_sizes.size2 - 0 - 2) / 2)] = static_cast<half>(_e18);
    }
    if (1u < count) {
        uint _e26 = params.y_pixel;
        float _e31 = v_1.y;
        y[metal::min(unsigned(to + (1u * _e26)), (_buffer_sizes.size2 - 0 - 2) / 2)] = static_cast<half>(_e31);
    }
    if (2u < count) {
        uint _e39 = params.y_pixel;
        float _e44 = v_1.z;
        y[metal::min(unsigned(to + (2u * _e39)), (_buffer_sizes.size2 - 0 - 2) / 2)] = static_cast<half>(_e44);
    }
    if (3u < count) {
        uint _e52 = params.y_pixel;
        float _e57 = v_1.w;
        y[metal::min(unsigned(to + (3u * _e52)), (_buffer_sizes.size2 - 0 - 2) / 2)] = static_cast<half>(_e57);
        return;
    } else {
        return;
    }
}

uint naga_mod(uint lhs, uint rhs) {
    return lhs % metal::select(rhs, 1u, rhs == 0u);
}

uint naga_div(uint lhs, uint rhs) {
    return lhs / metal::select(rhs, 1u, rhs == 0u);
}

metal::int3 origin(
    uint pixel,
    constant Params& params
) {
    uint _e3 = params.out_x;
    uint ox = naga_mod(pixel, _e3);
    uint _e7 = params.out_x;
    uint rest = naga_div(pixel, _e7);
    uint _e11 = params.out_y;
    uint oy = naga_mod(rest, _e11);
    uint _e15 = params.out_y;
    uint oz = naga_div(rest, _e15);
    uint _e19 = params.stride_z;
    uint _e24 = params.pad_z;
    uint _e29 = params.stride_y;
    uint _e34 = params.pad_y;
    uint _e39 = params.stride_x;
    uint _e44 = params.pad_x;
    return metal::int3(as_type<int>(as_type<uint>(static_cast<int>(oz * _e19)) - as_type<uint>(static_cast<int>(_e24))), as_type<int>(as_type<uint>(static_cast<int>(oy * _e29)) - as_type<uint>(static_cast<int>(_e34))), as_type<int>(as_type<uint>(static_cast<int>(ox * _e39)) - as_type<uint>(static_cast<int>(_e44))));
}

float window(
    uint start,
    metal::int3 origin_1,
    uint k_1,
    device type_1 const& x,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_4 = {};
    bool local_5 = {};
    bool local_6 = {};
    uint channel_1 = naga_div(k_1, 9u);
    uint place = naga_mod(k_1, 9u);
    metal::uint3 at = metal::uint3(naga_div(place, 9u), naga_mod(naga_div(place, 3u), 3u), naga_mod(place, 3u));
    uint _e18 = params.step_z;
    uint _e21 = params.step_y;
    uint _e24 = params.step_x;
    metal::int3 step = static_cast<metal::int3>(at * metal::uint3(_e18, _e21, _e24));
    metal::uint3 seen = static_cast<metal::uint3>(as_type<metal::int3>(as_type<metal::uint3>(origin_1) + as_type<metal::uint3>(step)));
    uint _e32 = params.channels;
    if (!((channel_1 >= _e32))) {
        uint _e40 = params.in_x;
        local_4 = seen.z >= _e40;
    } else {
        local_4 = true;
    }
    bool _e43 = local_4;
    if (!(_e43)) {
        uint _e50 = params.in_y;
        local_5 = seen.y >= _e50;
    } else {
        local_5 = true;
    }
    bool _e53 = local_5;
    if (!(_e53)) {
        uint _e60 = params.in_z;
        local_6 = seen.x >= _e60;
    } else {
        local_6 = true;
    }
    bool _e63 = local_6;
    if (_e63) {
        return 0.0;
    }
    uint _e68 = params.in_y;
    uint _e74 = params.in_x;
    uint pixel_1 = (((seen.x * _e68) + seen.y) * _e74) + seen.z;
    uint _e81 = params.x_channel;
    uint _e86 = params.x_pixel;
    half _e90 = x[metal::min(unsigned((start + (channel_1 * _e81)) + (pixel_1 * _e86)), (_buffer_sizes.size0 - 0 - 2) / 2)];
    return static_cast<float>(_e90);
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& x [[buffer(0)]]
, device type_3 const& w [[buffer(1)]]
, device type_1& y [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, threadgroup type_7& w_tile
, threadgroup type_7& x_tile
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    metal::float4 sums_0_ = metal::float4(0.0);
    metal::float4 sums_1_ = metal::float4(0.0);
    metal::float4 sums_2_ = metal::float4(0.0);
    metal::float4 sums_3_ = metal::float4(0.0);
    uint k0_ = 0u;
    float value = {};
    float value_1 = {};
    float value_2 = {};
    float value_3 = {};
    uint k = {};
    bool local = {};
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    uint id = group.x + (group.y * groups.x);
    uint _e10 = params.total;
    if (id >= _e10) {
        return;
    }
    uint _e14 = params.tiles_n;
    uint tile_n = naga_mod(id, _e14);
    uint _e18 = params.tiles_n;
    uint _e22 = params.tiles_m;
    uint tile_m = naga_mod(naga_div(id, _e18), _e22);
    uint _e26 = params.tiles_n;
    uint _e29 = params.tiles_m;
    uint stack = naga_div(id, _e26 * _e29);
    uint _e34 = params.groups;
    uint part = naga_mod(stack, _e34);
    uint _e38 = params.groups;
    uint image = naga_div(stack, _e38);
    uint column = naga_mod(lane, 64u);
    uint first_row = naga_div(lane, 64u);
    uint pixel_2 = (tile_n * 64u) + column;
    uint _e49 = params.pixels;
    bool inside = pixel_2 < _e49;
    metal::int3 _e51 = origin(pixel_2, params);
    uint _e54 = params.x_image;
    uint _e58 = params.channels;
    uint _e62 = params.x_channel;
    uint x_start = (image * _e54) + ((part * _e58) * _e62);
    uint _e67 = params.k_padded;
    uint _e71 = params.m_padded;
    uint w_start = ((part * _e67) * _e71) + (tile_m * 64u);
    uint tx = naga_mod(lane, 16u);
    uint ty = naga_div(lane, 16u);
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e235 = k0_;
            k0_ = _e235 + 16u;
        }
        loop_init = false;
        uint _e94 = k0_;
        uint _e97 = params.k_padded;
        if (_e94 < _e97) {
        } else {
            break;
        }
        {
            {
                uint at_1 = lane + 0u;
                uint row = naga_div(at_1, 16u);
                uint _e106 = k0_;
                uint _e110 = params.m_padded;
                metal::half4 _e119 = w[metal::min(unsigned(naga_div(w_start + ((_e106 + row) * _e110), 4u) + naga_mod(at_1, 16u)), (_buffer_sizes.size1 - 0 - 8) / 8)];
                w_tile.inner[metal::min(unsigned(at_1), 255u)] = static_cast<metal::float4>(_e119);
            }
            {
                uint row_1 = first_row + 0u;
                value = 0.0;
                if (inside) {
                    uint _e125 = k0_;
                    float _e127 = window(x_start, _e51, _e125 + row_1, x, params, _buffer_sizes);
                    value = _e127;
                }
                float _e138 = value;
                x_tile.inner[metal::min(unsigned((row_1 * 16u) + naga_div(column, 4u)), 255u)][metal::min(unsigned(naga_mod(column, 4u)), 3u)] = _e138;
            }
            {
                uint row_2 = first_row + 4u;
                value_1 = 0.0;
                if (inside) {
                    uint _e143 = k0_;
                    float _e145 = window(x_start, _e51, _e143 + row_2, x, params, _buffer_sizes);
                    value_1 = _e145;
                }
                float _e156 = value_1;
                x_tile.inner[metal::min(unsigned((row_2 * 16u) + naga_div(column, 4u)), 255u)][metal::min(unsigned(naga_mod(column, 4u)), 3u)] = _e156;
            }
            {
                uint row_3 = first_row + 8u;
                value_2 = 0.0;
                if (inside) {
                    uint _e161 = k0_;
                    float _e163 = window(x_start, _e51, _e161 + row_3, x, params, _buffer_sizes);
                    value_2 = _e163;
                }
                float _e174 = value_2;
                x_tile.inner[metal::min(unsigned((row_3 * 16u) + naga_div(column, 4u)), 255u)][metal::min(unsigned(naga_mod(column, 4u)), 3u)] = _e174;
            }
            {
                uint row_4 = first_row + 12u;
                value_3 = 0.0;
                if (inside) {
                    uint _e179 = k0_;
                    float _e181 = window(x_start, _e51, _e179 + row_4, x, params, _buffer_sizes);
                    value_3 = _e181;
                }
                float _e192 = value_3;
                x_tile.inner[metal::min(unsigned((row_4 * 16u) + naga_div(column, 4u)), 255u)][metal::min(unsigned(naga_mod(column, 4u)), 3u)] = _e192;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            k = 0u;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e233 = k;
                    k = _e233 + 1u;
                }
                loop_init_1 = false;
                uint _e195 = k;
                if (_e195 < 16u) {
                } else {
                    break;
                }
                {
                    uint _e199 = k;
                    metal::float4 seen_1 = x_tile.inner[metal::min(unsigned((_e199 * 16u) + tx), 255u)];
                    uint _e206 = k;
                    metal::float4 weights_0_ = w_tile.inner[metal::min(unsigned(((_e206 * 16u) + (ty * 1u)) + 0u), 255u)];
                    metal::float4 _e216 = sums_0_;
                    sums_0_ = _e216 + (weights_0_.x * seen_1);
                    metal::float4 _e220 = sums_1_;
                    sums_1_ = _e220 + (weights_0_.y * seen_1);
                    metal::float4 _e224 = sums_2_;
                    sums_2_ = _e224 + (weights_0_.z * seen_1);
                    metal::float4 _e228 = sums_3_;
                    sums_3_ = _e228 + (weights_0_.w * seen_1);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    uint first_pixel = (tile_n * 64u) + (tx * 4u);
    {
        uint channel_2 = ((tile_m * 64u) + (ty * 4u)) + 0u;
        uint _e252 = params.m;
        if (channel_2 < _e252) {
            uint _e258 = params.pixels;
            local = first_pixel < _e258;
        } else {
            local = false;
        }
        bool _e261 = local;
        if (_e261) {
            uint _e264 = params.m;
            uint whole = (part * _e264) + channel_2;
            uint _e269 = params.y_image;
            uint _e273 = params.y_channel;
            uint _e278 = params.y_pixel;
            uint to_1 = ((image * _e269) + (whole * _e273)) + (first_pixel * _e278);
            metal::float4 _e281 = sums_0_;
            uint _e284 = params.pixels;
            put(_e281, whole, to_1, _e284 - first_pixel, y, params, _buffer_sizes);
        }
    }
    {
        uint channel_3 = ((tile_m * 64u) + (ty * 4u)) + 1u;
        uint _e295 = params.m;
        if (channel_3 < _e295) {
            uint _e301 = params.pixels;
            local_1 = first_pixel < _e301;
        } else {
            local_1 = false;
        }
        bool _e304 = local_1;
        if (_e304) {
            uint _e307 = params.m;
            uint whole_1 = (part * _e307) + channel_3;
            uint _e312 = params.y_image;
            uint _e316 = params.y_channel;
            uint _e321 = params.y_pixel;
            uint to_2 = ((image * _e312) + (whole_1 * _e316)) + (first_pixel * _e321);
            metal::float4 _e324 = sums_1_;
            uint _e327 = params.pixels;
            put(_e324, whole_1, to_2, _e327 - first_pixel, y, params, _buffer_sizes);
        }
    }
    {
        uint channel_4 = ((tile_m * 64u) + (ty * 4u)) + 2u;
        uint _e338 = params.m;
        if (channel_4 < _e338) {
            uint _e344 = params.pixels;
            local_2 = first_pixel < _e344;
        } else {
            local_2 = false;
        }
        bool _e347 = local_2;
        if (_e347) {
            uint _e350 = params.m;
            uint whole_2 = (part * _e350) + channel_4;
            uint _e355 = params.y_image;
            uint _e359 = params.y_channel;
            uint _e364 = params.y_pixel;
            uint to_3 = ((image * _e355) + (whole_2 * _e359)) + (first_pixel * _e364);
            metal::float4 _e367 = sums_2_;
            uint _e370 = params.pixels;
            put(_e367, whole_2, to_3, _e370 - first_pixel, y, params, _buffer_sizes);
        }
    }
    {
        uint channel_5 = ((tile_m * 64u) + (ty * 4u)) + 3u;
        uint _e381 = params.m;
        if (channel_5 < _e381) {
            uint _e387 = params.pixels;
            local_3 = first_pixel < _e387;
        } else {
            local_3 = false;
        }
        bool _e390 = local_3;
        if (_e390) {
            uint _e393 = params.m;
            uint whole_3 = (part * _e393) + channel_5;
            uint _e398 = params.y_image;
            uint _e402 = params.y_channel;
            uint _e407 = params.y_pixel;
            uint to_4 = ((image * _e398) + (whole_3 * _e402)) + (first_pixel * _e407);
            metal::float4 _e410 = sums_3_;
            uint _e413 = params.pixels;
            put(_e410, whole_3, to_4, _e413 - first_pixel, y, params, _buffer_sizes);
            return;
        } else {
            return;
        }
    }
}
