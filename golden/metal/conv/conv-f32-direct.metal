// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
};

typedef float type_1[1];
struct Params {
    uint total;
    uint fours;
    uint across;
    uint all;
    uint m;
    uint channels;
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
    uint last;
    float p;
    float q;
};

metal::float4 activate(
    metal::float4 v
) {
    return v;
}

void put(
    metal::float4 sums,
    uint channel_1,
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
        y[to + (0u * _e13)] = static_cast<float>(_e18);
    }
    if (1u < count) {
        uint _e26 = params.y_pixel;
        float _e31 = v_1.y;
        y[to + (1u * _e26)] = static_cast<float>(_e31);
    }
    if (2u < count) {
        uint _e39 = params.y_pixel;
        float _e44 = v_1.z;
        y[to + (2u * _e39)] = static_cast<float>(_e44);
    }
    if (3u < count) {
        uint _e52 = params.y_pixel;
        float _e57 = v_1.w;
        y[to + (3u * _e52)] = static_cast<float>(_e57);
        return;
    } else {
        return;
    }
}

metal::float4 sums_1(
    uint image,
    uint channel_2,
    uint four_1,
    device type_1 const& x,
    device type_1 const& w,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 total = metal::float4 {};
    uint c = 0u;
    bool local = {};
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    bool local_4 = {};
    bool local_5 = {};
    bool local_6 = {};
    bool local_7 = {};
    bool local_8 = {};
    bool local_9 = {};
    bool local_10 = {};
    bool local_11 = {};
    bool local_12 = {};
    bool local_13 = {};
    bool local_14 = {};
    bool local_15 = {};
    bool local_16 = {};
    bool local_17 = {};
    bool local_18 = {};
    bool local_19 = {};
    bool local_20 = {};
    uint _e5 = params.across;
    uint _e11 = params.stride_x;
    uint _e15 = params.pad_x;
    uint left = (((four_1 % _e5) * 4u) * _e11) - _e15;
    uint _e19 = params.across;
    uint rest = four_1 / _e19;
    uint _e23 = params.out_y;
    uint _e27 = params.stride_y;
    uint _e31 = params.pad_y;
    uint top = ((rest % _e23) * _e27) - _e31;
    uint _e35 = params.out_y;
    uint _e39 = params.stride_z;
    uint _e43 = params.pad_z;
    uint front = ((rest / _e35) * _e39) - _e43;
    uint _e47 = params.m;
    uint part = channel_2 / _e47;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e742 = c;
            c = _e742 + 1u;
        }
        loop_init = false;
        uint _e53 = c;
        uint _e56 = params.channels;
        if (_e53 < _e56) {
        } else {
            break;
        }
        {
            uint _e60 = params.x_image;
            uint _e64 = params.channels;
            uint _e66 = c;
            uint _e70 = params.x_channel;
            uint start = (image * _e60) + (((part * _e64) + _e66) * _e70);
            uint _e75 = params.channels;
            uint _e77 = c;
            uint weights = ((channel_2 * _e75) + _e77) * 9u;
            {
                uint _e84 = params.step_z;
                uint from_z = front + (0u * _e84);
                uint _e90 = params.step_y;
                uint from_y = top + (0u * _e90);
                uint _e95 = params.in_z;
                if (from_z < _e95) {
                    uint _e101 = params.in_y;
                    local = from_y < _e101;
                } else {
                    local = false;
                }
                bool inside = local;
                uint _e108 = params.in_y;
                uint _e113 = params.in_x;
                uint _e117 = params.x_pixel;
                uint row = start + (inside ? ((((from_z * _e108) + from_y) * _e113) * _e117) : 0u);
                if (inside) {
                    uint _e127 = params.in_x;
                    local_1 = (left + 0u) < _e127;
                } else {
                    local_1 = false;
                }
                bool there0_ = local_1;
                uint _e137 = params.x_pixel;
                float seen0_ = x[row + (there0_ ? ((left + 0u) * _e137) : 0u)];
                if (inside) {
                    uint _e149 = params.in_x;
                    local_2 = (left + 1u) < _e149;
                } else {
                    local_2 = false;
                }
                bool there1_ = local_2;
                uint _e159 = params.x_pixel;
                float seen1_ = x[row + (there1_ ? ((left + 1u) * _e159) : 0u)];
                if (inside) {
                    uint _e171 = params.in_x;
                    local_3 = (left + 2u) < _e171;
                } else {
                    local_3 = false;
                }
                bool there2_ = local_3;
                uint _e181 = params.x_pixel;
                float seen2_ = x[row + (there2_ ? ((left + 2u) * _e181) : 0u)];
                if (inside) {
                    uint _e193 = params.in_x;
                    local_4 = (left + 3u) < _e193;
                } else {
                    local_4 = false;
                }
                bool there3_ = local_4;
                uint _e203 = params.x_pixel;
                float seen3_ = x[row + (there3_ ? ((left + 3u) * _e203) : 0u)];
                if (inside) {
                    uint _e215 = params.in_x;
                    local_5 = (left + 4u) < _e215;
                } else {
                    local_5 = false;
                }
                bool there4_ = local_5;
                uint _e225 = params.x_pixel;
                float seen4_ = x[row + (there4_ ? ((left + 4u) * _e225) : 0u)];
                if (inside) {
                    uint _e237 = params.in_x;
                    local_6 = (left + 5u) < _e237;
                } else {
                    local_6 = false;
                }
                bool there5_ = local_6;
                uint _e247 = params.x_pixel;
                float seen5_ = x[row + (there5_ ? ((left + 5u) * _e247) : 0u)];
                float v0_ = there0_ ? static_cast<float>(seen0_) : 0.0;
                float v1_ = there1_ ? static_cast<float>(seen1_) : 0.0;
                float v2_ = there2_ ? static_cast<float>(seen2_) : 0.0;
                float v3_ = there3_ ? static_cast<float>(seen3_) : 0.0;
                float v4_ = there4_ ? static_cast<float>(seen4_) : 0.0;
                float v5_ = there5_ ? static_cast<float>(seen5_) : 0.0;
                metal::float4 _e271 = total;
                float _e277 = w[weights + 0u];
                total = _e271 + (metal::float4(v0_, v1_, v2_, v3_) * static_cast<float>(_e277));
                metal::float4 _e281 = total;
                float _e287 = w[weights + 1u];
                total = _e281 + (metal::float4(v1_, v2_, v3_, v4_) * static_cast<float>(_e287));
                metal::float4 _e291 = total;
                float _e297 = w[weights + 2u];
                total = _e291 + (metal::float4(v2_, v3_, v4_, v5_) * static_cast<float>(_e297));
            }
            {
                uint _e304 = params.step_z;
                uint from_z_1 = front + (0u * _e304);
                uint _e310 = params.step_y;
                uint from_y_1 = top + (1u * _e310);
                uint _e315 = params.in_z;
                if (from_z_1 < _e315) {
                    uint _e321 = params.in_y;
                    local_7 = from_y_1 < _e321;
                } else {
                    local_7 = false;
                }
                bool inside_1 = local_7;
                uint _e328 = params.in_y;
                uint _e333 = params.in_x;
                uint _e337 = params.x_pixel;
                uint row_1 = start + (inside_1 ? ((((from_z_1 * _e328) + from_y_1) * _e333) * _e337) : 0u);
                if (inside_1) {
                    uint _e347 = params.in_x;
                    local_8 = (left + 0u) < _e347;
                } else {
                    local_8 = false;
                }
                bool there0_1 = local_8;
                uint _e357 = params.x_pixel;
                float seen0_1 = x[row_1 + (there0_1 ? ((left + 0u) * _e357) : 0u)];
                if (inside_1) {
                    uint _e369 = params.in_x;
                    local_9 = (left + 1u) < _e369;
                } else {
                    local_9 = false;
                }
                bool there1_1 = local_9;
                uint _e379 = params.x_pixel;
                float seen1_1 = x[row_1 + (there1_1 ? ((left + 1u) * _e379) : 0u)];
                if (inside_1) {
                    uint _e391 = params.in_x;
                    local_10 = (left + 2u) < _e391;
                } else {
                    local_10 = false;
                }
                bool there2_1 = local_10;
                uint _e401 = params.x_pixel;
                float seen2_1 = x[row_1 + (there2_1 ? ((left + 2u) * _e401) : 0u)];
                if (inside_1) {
                    uint _e413 = params.in_x;
                    local_11 = (left + 3u) < _e413;
                } else {
                    local_11 = false;
                }
                bool there3_1 = local_11;
                uint _e423 = params.x_pixel;
                float seen3_1 = x[row_1 + (there3_1 ? ((left + 3u) * _e423) : 0u)];
                if (inside_1) {
                    uint _e435 = params.in_x;
                    local_12 = (left + 4u) < _e435;
                } else {
                    local_12 = false;
                }
                bool there4_1 = local_12;
                uint _e445 = params.x_pixel;
                float seen4_1 = x[row_1 + (there4_1 ? ((left + 4u) * _e445) : 0u)];
                if (inside_1) {
                    uint _e457 = params.in_x;
                    local_13 = (left + 5u) < _e457;
                } else {
                    local_13 = false;
                }
                bool there5_1 = local_13;
                uint _e467 = params.x_pixel;
                float seen5_1 = x[row_1 + (there5_1 ? ((left + 5u) * _e467) : 0u)];
                float v0_1 = there0_1 ? static_cast<float>(seen0_1) : 0.0;
                float v1_1 = there1_1 ? static_cast<float>(seen1_1) : 0.0;
                float v2_1 = there2_1 ? static_cast<float>(seen2_1) : 0.0;
                float v3_1 = there3_1 ? static_cast<float>(seen3_1) : 0.0;
                float v4_1 = there4_1 ? static_cast<float>(seen4_1) : 0.0;
                float v5_1 = there5_1 ? static_cast<float>(seen5_1) : 0.0;
                metal::float4 _e491 = total;
                float _e497 = w[weights + 3u];
                total = _e491 + (metal::float4(v0_1, v1_1, v2_1, v3_1) * static_cast<float>(_e497));
                metal::float4 _e501 = total;
                float _e507 = w[weights + 4u];
                total = _e501 + (metal::float4(v1_1, v2_1, v3_1, v4_1) * static_cast<float>(_e507));
                metal::float4 _e511 = total;
                float _e517 = w[weights + 5u];
                total = _e511 + (metal::float4(v2_1, v3_1, v4_1, v5_1) * static_cast<float>(_e517));
            }
            {
                uint _e524 = params.step_z;
                uint from_z_2 = front + (0u * _e524);
                uint _e530 = params.step_y;
                uint from_y_2 = top + (2u * _e530);
                uint _e535 = params.in_z;
                if (from_z_2 < _e535) {
                    uint _e541 = params.in_y;
                    local_14 = from_y_2 < _e541;
                } else {
                    local_14 = false;
                }
                bool inside_2 = local_14;
                uint _e548 = params.in_y;
                uint _e553 = params.in_x;
                uint _e557 = params.x_pixel;
                uint row_2 = start + (inside_2 ? ((((from_z_2 * _e548) + from_y_2) * _e553) * _e557) : 0u);
                if (inside_2) {
                    uint _e567 = params.in_x;
                    local_15 = (left + 0u) < _e567;
                } else {
                    local_15 = false;
                }
                bool there0_2 = local_15;
                uint _e577 = params.x_pixel;
                float seen0_2 = x[row_2 + (there0_2 ? ((left + 0u) * _e577) : 0u)];
                if (inside_2) {
                    uint _e589 = params.in_x;
                    local_16 = (left + 1u) < _e589;
                } else {
                    local_16 = false;
                }
                bool there1_2 = local_16;
                uint _e599 = params.x_pixel;
                float seen1_2 = x[row_2 + (there1_2 ? ((left + 1u) * _e599) : 0u)];
                if (inside_2) {
                    uint _e611 = params.in_x;
                    local_17 = (left + 2u) < _e611;
                } else {
                    local_17 = false;
                }
                bool there2_2 = local_17;
                uint _e621 = params.x_pixel;
                float seen2_2 = x[row_2 + (there2_2 ? ((left + 2u) * _e621) : 0u)];
                if (inside_2) {
                    uint _e633 = params.in_x;
                    local_18 = (left + 3u) < _e633;
                } else {
                    local_18 = false;
                }
                bool there3_2 = local_18;
                uint _e643 = params.x_pixel;
                float seen3_2 = x[row_2 + (there3_2 ? ((left + 3u) * _e643) : 0u)];
                if (inside_2) {
                    uint _e655 = params.in_x;
                    local_19 = (left + 4u) < _e655;
                } else {
                    local_19 = false;
                }
                bool there4_2 = local_19;
                uint _e665 = params.x_pixel;
                float seen4_2 = x[row_2 + (there4_2 ? ((left + 4u) * _e665) : 0u)];
                if (inside_2) {
                    uint _e677 = params.in_x;
                    local_20 = (left + 5u) < _e677;
                } else {
                    local_20 = false;
                }
                bool there5_2 = local_20;
                uint _e687 = params.x_pixel;
                float seen5_2 = x[row_2 + (there5_2 ? ((left + 5u) * _e687) : 0u)];
                float v0_2 = there0_2 ? static_cast<float>(seen0_2) : 0.0;
                float v1_2 = there1_2 ? static_cast<float>(seen1_2) : 0.0;
                float v2_2 = there2_2 ? static_cast<float>(seen2_2) : 0.0;
                float v3_2 = there3_2 ? static_cast<float>(seen3_2) : 0.0;
                float v4_2 = there4_2 ? static_cast<float>(seen4_2) : 0.0;
                float v5_2 = there5_2 ? static_cast<float>(seen5_2) : 0.0;
                metal::float4 _e711 = total;
                float _e717 = w[weights + 6u];
                total = _e711 + (metal::float4(v0_2, v1_2, v2_2, v3_2) * static_cast<float>(_e717));
                metal::float4 _e721 = total;
                float _e727 = w[weights + 7u];
                total = _e721 + (metal::float4(v1_2, v2_2, v3_2, v4_2) * static_cast<float>(_e727));
                metal::float4 _e731 = total;
                float _e737 = w[weights + 8u];
                total = _e731 + (metal::float4(v2_2, v3_2, v4_2, v5_2) * static_cast<float>(_e737));
            }
        }
    }
    metal::float4 _e744 = total;
    return _e744;
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& x [[buffer(0)]]
, device type_1 const& w [[buffer(1)]]
, device type_1& y [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    uint channel = {};
    uint four = {};
    uint at = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e13 = params.total;
    if (at >= _e13) {
        return;
    }
    uint _e17 = params.fours;
    uint _e21 = params.all;
    channel = (at / _e17) % _e21;
    uint _e26 = params.fours;
    four = at % _e26;
    uint _e31 = params.last;
    if (_e31 == 1u) {
        uint _e36 = params.all;
        channel = at % _e36;
        uint _e40 = params.all;
        uint _e44 = params.fours;
        four = (at / _e40) % _e44;
    }
    uint _e48 = params.fours;
    uint _e51 = params.all;
    uint image_1 = at / (_e48 * _e51);
    uint _e54 = four;
    uint _e57 = params.across;
    uint column = (_e54 % _e57) * 4u;
    uint _e61 = four;
    uint _e64 = params.across;
    uint _e68 = params.out_x;
    uint pixel = ((_e61 / _e64) * _e68) + column;
    uint _e73 = params.y_image;
    uint _e75 = channel;
    uint _e78 = params.y_channel;
    uint _e83 = params.y_pixel;
    uint to_1 = ((image_1 * _e73) + (_e75 * _e78)) + (pixel * _e83);
    uint _e86 = channel;
    uint _e87 = four;
    metal::float4 _e88 = sums_1(image_1, _e86, _e87, x, w, params, _buffer_sizes);
    uint _e89 = channel;
    uint _e92 = params.out_x;
    put(_e88, _e89, to_1, _e92 - column, y, params, _buffer_sizes);
    return;
}
