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
struct Met {
    uint at;
    bool inside;
    char _pad2[3];
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

Met window(
    uint start,
    metal::int3 origin_1,
    uint k_1,
    constant Params& params
) {
    bool local_12 = {};
    bool local_13 = {};
    bool local_14 = {};
    bool local_15 = {};
    uint channel_1 = naga_div(k_1, 9u);
    uint place = naga_mod(k_1, 9u);
    metal::uint3 at = metal::uint3(naga_div(place, 9u), naga_mod(naga_div(place, 3u), 3u), naga_mod(place, 3u));
    uint _e18 = params.step_z;
    uint _e21 = params.step_y;
    uint _e24 = params.step_x;
    metal::int3 step = static_cast<metal::int3>(at * metal::uint3(_e18, _e21, _e24));
    metal::uint3 seen = static_cast<metal::uint3>(as_type<metal::int3>(as_type<metal::uint3>(origin_1) + as_type<metal::uint3>(step)));
    uint _e33 = params.channels;
    if (!((channel_1 >= _e33))) {
        uint _e41 = params.in_x;
        local_12 = seen.z >= _e41;
    } else {
        local_12 = true;
    }
    bool _e44 = local_12;
    if (!(_e44)) {
        uint _e51 = params.in_y;
        local_13 = seen.y >= _e51;
    } else {
        local_13 = true;
    }
    bool _e54 = local_13;
    if (!(_e54)) {
        uint _e61 = params.in_z;
        local_14 = seen.x >= _e61;
    } else {
        local_14 = true;
    }
    bool outside = local_14;
    if (!(false)) {
        local_15 = outside;
    } else {
        local_15 = true;
    }
    bool _e69 = local_15;
    bool inside = !(_e69);
    uint _e74 = params.in_y;
    uint _e80 = params.in_x;
    uint pixel_1 = (((seen.x * _e74) + seen.y) * _e80) + seen.z;
    uint _e87 = params.x_channel;
    uint _e91 = params.x_pixel;
    return Met {start + (inside ? ((channel_1 * _e87) + (pixel_1 * _e91)) : 0u), inside};
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
    metal::half4 next_w0_ = metal::half4 {};
    half next_x0_ = 0.0h;
    bool counts0_ = false;
    half next_x1_ = 0.0h;
    bool counts1_ = false;
    half next_x2_ = 0.0h;
    bool counts2_ = false;
    half next_x3_ = 0.0h;
    bool counts3_ = false;
    uint k_ahead = 0u;
    bool local = {};
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    uint k0_ = 0u;
    bool local_4 = {};
    bool local_5 = {};
    bool local_6 = {};
    bool local_7 = {};
    uint k = {};
    bool local_8 = {};
    bool local_9 = {};
    bool local_10 = {};
    bool local_11 = {};
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
    bool inside_1 = pixel_2 < _e49;
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
    uint _e114 = params.k_padded;
    if (_e114 > 0u) {
        uint _e118 = k_ahead;
        uint _e126 = params.m_padded;
        metal::half4 _e137 = w[metal::min(unsigned(naga_div(w_start + ((_e118 + naga_div(lane + 0u, 16u)) * _e126), 4u) + naga_mod(lane + 0u, 16u)), (_buffer_sizes.size1 - 0 - 8) / 8)];
        next_w0_ = _e137;
        {
            uint _e138 = k_ahead;
            Met _e142 = window(x_start, _e51, (_e138 + first_row) + 0u, params);
            half _e146 = x[metal::min(unsigned(_e142.at), (_buffer_sizes.size0 - 0 - 2) / 2)];
            next_x0_ = _e146;
            if (inside_1) {
                local = _e142.inside;
            } else {
                local = false;
            }
            bool _e151 = local;
            counts0_ = _e151;
        }
        {
            uint _e152 = k_ahead;
            Met _e156 = window(x_start, _e51, (_e152 + first_row) + 4u, params);
            half _e160 = x[metal::min(unsigned(_e156.at), (_buffer_sizes.size0 - 0 - 2) / 2)];
            next_x1_ = _e160;
            if (inside_1) {
                local_1 = _e156.inside;
            } else {
                local_1 = false;
            }
            bool _e165 = local_1;
            counts1_ = _e165;
        }
        {
            uint _e166 = k_ahead;
            Met _e170 = window(x_start, _e51, (_e166 + first_row) + 8u, params);
            half _e174 = x[metal::min(unsigned(_e170.at), (_buffer_sizes.size0 - 0 - 2) / 2)];
            next_x2_ = _e174;
            if (inside_1) {
                local_2 = _e170.inside;
            } else {
                local_2 = false;
            }
            bool _e179 = local_2;
            counts2_ = _e179;
        }
        {
            uint _e180 = k_ahead;
            Met _e184 = window(x_start, _e51, (_e180 + first_row) + 12u, params);
            half _e188 = x[metal::min(unsigned(_e184.at), (_buffer_sizes.size0 - 0 - 2) / 2)];
            next_x3_ = _e188;
            if (inside_1) {
                local_3 = _e184.inside;
            } else {
                local_3 = false;
            }
            bool _e193 = local_3;
            counts3_ = _e193;
        }
    }
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e403 = k0_;
            k0_ = _e403 + 16u;
        }
        loop_init = false;
        uint _e196 = k0_;
        uint _e199 = params.k_padded;
        if (_e196 < _e199) {
        } else {
            break;
        }
        {
            metal::half4 _e205 = next_w0_;
            w_tile.inner[metal::min(unsigned(lane + 0u), 255u)] = static_cast<metal::float4>(_e205);
            half _e219 = next_x0_;
            bool _e221 = counts0_;
            x_tile.inner[metal::min(unsigned(((first_row + 0u) * 16u) + naga_div(column, 4u)), 255u)][metal::min(unsigned(naga_mod(column, 4u)), 3u)] = _e221 ? static_cast<float>(_e219) : 0.0;
            half _e236 = next_x1_;
            bool _e238 = counts1_;
            x_tile.inner[metal::min(unsigned(((first_row + 4u) * 16u) + naga_div(column, 4u)), 255u)][metal::min(unsigned(naga_mod(column, 4u)), 3u)] = _e238 ? static_cast<float>(_e236) : 0.0;
            half _e253 = next_x2_;
            bool _e255 = counts2_;
            x_tile.inner[metal::min(unsigned(((first_row + 8u) * 16u) + naga_div(column, 4u)), 255u)][metal::min(unsigned(naga_mod(column, 4u)), 3u)] = _e255 ? static_cast<float>(_e253) : 0.0;
            half _e270 = next_x3_;
            bool _e272 = counts3_;
            x_tile.inner[metal::min(unsigned(((first_row + 12u) * 16u) + naga_div(column, 4u)), 255u)][metal::min(unsigned(naga_mod(column, 4u)), 3u)] = _e272 ? static_cast<float>(_e270) : 0.0;
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e275 = k0_;
            uint _e280 = params.k_padded;
            k_ahead = metal::min(_e275 + 16u, _e280 - 16u);
            uint _e285 = k_ahead;
            uint _e293 = params.m_padded;
            metal::half4 _e304 = w[metal::min(unsigned(naga_div(w_start + ((_e285 + naga_div(lane + 0u, 16u)) * _e293), 4u) + naga_mod(lane + 0u, 16u)), (_buffer_sizes.size1 - 0 - 8) / 8)];
            next_w0_ = _e304;
            {
                uint _e305 = k_ahead;
                Met _e309 = window(x_start, _e51, (_e305 + first_row) + 0u, params);
                half _e313 = x[metal::min(unsigned(_e309.at), (_buffer_sizes.size0 - 0 - 2) / 2)];
                next_x0_ = _e313;
                if (inside_1) {
                    local_4 = _e309.inside;
                } else {
                    local_4 = false;
                }
                bool _e318 = local_4;
                counts0_ = _e318;
            }
            {
                uint _e319 = k_ahead;
                Met _e323 = window(x_start, _e51, (_e319 + first_row) + 4u, params);
                half _e327 = x[metal::min(unsigned(_e323.at), (_buffer_sizes.size0 - 0 - 2) / 2)];
                next_x1_ = _e327;
                if (inside_1) {
                    local_5 = _e323.inside;
                } else {
                    local_5 = false;
                }
                bool _e332 = local_5;
                counts1_ = _e332;
            }
            {
                uint _e333 = k_ahead;
                Met _e337 = window(x_start, _e51, (_e333 + first_row) + 8u, params);
                half _e341 = x[metal::min(unsigned(_e337.at), (_buffer_sizes.size0 - 0 - 2) / 2)];
                next_x2_ = _e341;
                if (inside_1) {
                    local_6 = _e337.inside;
                } else {
                    local_6 = false;
                }
                bool _e346 = local_6;
                counts2_ = _e346;
            }
            {
                uint _e347 = k_ahead;
                Met _e351 = window(x_start, _e51, (_e347 + first_row) + 12u, params);
                half _e355 = x[metal::min(unsigned(_e351.at), (_buffer_sizes.size0 - 0 - 2) / 2)];
                next_x3_ = _e355;
                if (inside_1) {
                    local_7 = _e351.inside;
                } else {
                    local_7 = false;
                }
                bool _e360 = local_7;
                counts3_ = _e360;
            }
            k = 0u;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e401 = k;
                    k = _e401 + 1u;
                }
                loop_init_1 = false;
                uint _e363 = k;
                if (_e363 < 16u) {
                } else {
                    break;
                }
                {
                    uint _e367 = k;
                    metal::float4 seen_1 = x_tile.inner[metal::min(unsigned((_e367 * 16u) + tx), 255u)];
                    uint _e374 = k;
                    metal::float4 weights_0_ = w_tile.inner[metal::min(unsigned(((_e374 * 16u) + (ty * 1u)) + 0u), 255u)];
                    metal::float4 _e384 = sums_0_;
                    sums_0_ = _e384 + (weights_0_.x * seen_1);
                    metal::float4 _e388 = sums_1_;
                    sums_1_ = _e388 + (weights_0_.y * seen_1);
                    metal::float4 _e392 = sums_2_;
                    sums_2_ = _e392 + (weights_0_.z * seen_1);
                    metal::float4 _e396 = sums_3_;
                    sums_3_ = _e396 + (weights_0_.w * seen_1);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    uint first_pixel = (tile_n * 64u) + (tx * 4u);
    {
        uint channel_2 = ((tile_m * 64u) + (ty * 4u)) + 0u;
        uint _e420 = params.m;
        if (channel_2 < _e420) {
            uint _e426 = params.pixels;
            local_8 = first_pixel < _e426;
        } else {
            local_8 = false;
        }
        bool _e429 = local_8;
        if (_e429) {
            uint _e432 = params.m;
            uint whole = (part * _e432) + channel_2;
            uint _e437 = params.y_image;
            uint _e441 = params.y_channel;
            uint _e446 = params.y_pixel;
            uint to_1 = ((image * _e437) + (whole * _e441)) + (first_pixel * _e446);
            metal::float4 _e449 = sums_0_;
            uint _e452 = params.pixels;
            put(_e449, whole, to_1, _e452 - first_pixel, y, params, _buffer_sizes);
        }
    }
    {
        uint channel_3 = ((tile_m * 64u) + (ty * 4u)) + 1u;
        uint _e463 = params.m;
        if (channel_3 < _e463) {
            uint _e469 = params.pixels;
            local_9 = first_pixel < _e469;
        } else {
            local_9 = false;
        }
        bool _e472 = local_9;
        if (_e472) {
            uint _e475 = params.m;
            uint whole_1 = (part * _e475) + channel_3;
            uint _e480 = params.y_image;
            uint _e484 = params.y_channel;
            uint _e489 = params.y_pixel;
            uint to_2 = ((image * _e480) + (whole_1 * _e484)) + (first_pixel * _e489);
            metal::float4 _e492 = sums_1_;
            uint _e495 = params.pixels;
            put(_e492, whole_1, to_2, _e495 - first_pixel, y, params, _buffer_sizes);
        }
    }
    {
        uint channel_4 = ((tile_m * 64u) + (ty * 4u)) + 2u;
        uint _e506 = params.m;
        if (channel_4 < _e506) {
            uint _e512 = params.pixels;
            local_10 = first_pixel < _e512;
        } else {
            local_10 = false;
        }
        bool _e515 = local_10;
        if (_e515) {
            uint _e518 = params.m;
            uint whole_2 = (part * _e518) + channel_4;
            uint _e523 = params.y_image;
            uint _e527 = params.y_channel;
            uint _e532 = params.y_pixel;
            uint to_3 = ((image * _e523) + (whole_2 * _e527)) + (first_pixel * _e532);
            metal::float4 _e535 = sums_2_;
            uint _e538 = params.pixels;
            put(_e535, whole_2, to_3, _e538 - first_pixel, y, params, _buffer_sizes);
        }
    }
    {
        uint channel_5 = ((tile_m * 64u) + (ty * 4u)) + 3u;
        uint _e549 = params.m;
        if (channel_5 < _e549) {
            uint _e555 = params.pixels;
            local_11 = first_pixel < _e555;
        } else {
            local_11 = false;
        }
        bool _e558 = local_11;
        if (_e558) {
            uint _e561 = params.m;
            uint whole_3 = (part * _e561) + channel_5;
            uint _e566 = params.y_image;
            uint _e570 = params.y_channel;
            uint _e575 = params.y_pixel;
            uint to_4 = ((image * _e566) + (whole_3 * _e570)) + (first_pixel * _e575);
            metal::float4 _e578 = sums_3_;
            uint _e581 = params.pixels;
            put(_e578, whole_3, to_4, _e581 - first_pixel, y, params, _buffer_sizes);
            return;
        } else {
            return;
        }
    }
}
