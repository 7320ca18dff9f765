// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef float type_1[1];
struct Params {
    uint total;
    uint all;
    uint pixels;
    uint seen;
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
        y[to + (0u * _e13)] = static_cast<float>(_e18);
        return;
    } else {
        return;
    }
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& products [[buffer(0)]]
, device type_1& y [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    float total = 0.0;
    uint i = 0u;
    bool local = {};
    bool local_1 = {};
    bool local_2 = {};
    uint j = {};
    bool local_3 = {};
    uint at = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e13 = params.total;
    if (at >= _e13) {
        return;
    }
    uint _e17 = params.pixels;
    uint pixel = at % _e17;
    uint _e21 = params.pixels;
    uint _e25 = params.all;
    uint channel_1 = (at / _e21) % _e25;
    uint _e29 = params.pixels;
    uint _e32 = params.all;
    uint image = at / (_e29 * _e32);
    uint _e37 = params.out_x;
    uint _e41 = params.pad_x;
    uint far_x = (pixel % _e37) + _e41;
    uint _e45 = params.out_x;
    uint _e49 = params.out_y;
    uint _e53 = params.pad_y;
    uint far_y = ((pixel / _e45) % _e49) + _e53;
    uint _e57 = params.out_x;
    uint _e60 = params.out_y;
    uint _e65 = params.pad_z;
    uint far_z = (pixel / (_e57 * _e60)) + _e65;
    uint _e69 = params.all;
    uint _e76 = params.seen;
    uint start = (((image * _e69) + channel_1) * 9u) * _e76;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e219 = i;
            i = _e219 + 1u;
        }
        loop_init = false;
        uint _e82 = i;
        if (_e82 < 3u) {
        } else {
            break;
        }
        {
            uint _e85 = i;
            uint _e90 = params.step_z;
            uint z = far_z - ((_e85 / 3u) * _e90);
            uint _e93 = i;
            uint _e98 = params.step_y;
            uint y_1 = far_y - ((_e93 % 3u) * _e98);
            uint _e103 = params.stride_z;
            if ((z % _e103) == 0u) {
                uint _e111 = params.stride_y;
                local = (y_1 % _e111) == 0u;
            } else {
                local = false;
            }
            bool fits = local;
            if (!(!(fits))) {
                uint _e123 = params.stride_z;
                uint _e127 = params.in_z;
                local_1 = (z / _e123) >= _e127;
            } else {
                local_1 = true;
            }
            bool _e130 = local_1;
            if (!(_e130)) {
                uint _e136 = params.stride_y;
                uint _e140 = params.in_y;
                local_2 = (y_1 / _e136) >= _e140;
            } else {
                local_2 = true;
            }
            bool _e143 = local_2;
            if (_e143) {
                continue;
            }
            uint _e144 = i;
            uint _e149 = params.seen;
            uint _e154 = params.stride_z;
            uint _e158 = params.in_y;
            uint _e162 = params.stride_y;
            uint _e167 = params.in_x;
            uint row = (start + ((_e144 * 3u) * _e149)) + ((((z / _e154) * _e158) + (y_1 / _e162)) * _e167);
            j = 0u;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e216 = j;
                    j = _e216 + 1u;
                }
                loop_init_1 = false;
                uint _e172 = j;
                if (_e172 < 3u) {
                } else {
                    break;
                }
                {
                    uint _e175 = j;
                    uint _e178 = params.step_x;
                    uint x = far_x - (_e175 * _e178);
                    uint _e183 = params.stride_x;
                    if ((x % _e183) == 0u) {
                        uint _e191 = params.stride_x;
                        uint _e195 = params.in_x;
                        local_3 = (x / _e191) < _e195;
                    } else {
                        local_3 = false;
                    }
                    bool _e198 = local_3;
                    if (_e198) {
                        float _e199 = total;
                        uint _e201 = j;
                        uint _e204 = params.seen;
                        uint _e209 = params.stride_x;
                        float _e213 = products[(row + (_e201 * _e204)) + (x / _e209)];
                        total = _e199 + _e213;
                    }
                }
            }
        }
    }
    float _e221 = total;
    uint _e225 = params.y_image;
    uint _e229 = params.y_channel;
    uint _e234 = params.y_pixel;
    put(metal::float4(_e221), channel_1, ((image * _e225) + (channel_1 * _e229)) + (pixel * _e234), 1u, y, params, _buffer_sizes);
    return;
}
