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
    uint all;
    uint m;
    uint channels;
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
        return;
    } else {
        return;
    }
}

float sum(
    uint image,
    uint channel_2,
    uint pixel_1,
    device type_1 const& x,
    device type_1 const& w,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    float total = 0.0;
    uint c = 0u;
    bool local = {};
    uint kx = {};
    bool local_1 = {};
    uint kx_1 = {};
    bool local_2 = {};
    uint kx_2 = {};
    uint _e5 = params.out_x;
    uint ox = pixel_1 % _e5;
    uint _e9 = params.out_x;
    uint rest = pixel_1 / _e9;
    uint _e13 = params.out_y;
    uint oy = rest % _e13;
    uint _e17 = params.out_y;
    uint oz = rest / _e17;
    uint _e21 = params.m;
    uint part = channel_2 / _e21;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e344 = c;
            c = _e344 + 1u;
        }
        loop_init = false;
        uint _e27 = c;
        uint _e30 = params.channels;
        if (_e27 < _e30) {
        } else {
            break;
        }
        {
            uint _e34 = params.x_image;
            uint _e38 = params.channels;
            uint _e40 = c;
            uint _e44 = params.x_channel;
            uint start = (image * _e34) + (((part * _e38) + _e40) * _e44);
            uint _e49 = params.channels;
            uint _e51 = c;
            uint weights = ((channel_2 * _e49) + _e51) * 9u;
            {
                uint _e57 = params.stride_z;
                uint _e62 = params.step_z;
                uint _e67 = params.pad_z;
                uint from_z = ((oz * _e57) + (0u * _e62)) - _e67;
                uint _e71 = params.stride_y;
                uint _e76 = params.step_y;
                uint _e81 = params.pad_y;
                uint from_y = ((oy * _e71) + (0u * _e76)) - _e81;
                uint _e85 = params.in_z;
                if (from_z < _e85) {
                    uint _e91 = params.in_y;
                    local = from_y < _e91;
                } else {
                    local = false;
                }
                bool _e94 = local;
                if (_e94) {
                    uint _e97 = params.in_y;
                    uint _e102 = params.in_x;
                    uint row = ((from_z * _e97) + from_y) * _e102;
                    kx = 0u;
                    bool loop_init_1 = true;
                    while(true) {
                        if (!loop_init_1) {
                            uint _e149 = kx;
                            kx = _e149 + 1u;
                        }
                        loop_init_1 = false;
                        uint _e106 = kx;
                        if (_e106 < 3u) {
                        } else {
                            break;
                        }
                        {
                            uint _e111 = params.stride_x;
                            uint _e113 = kx;
                            uint _e116 = params.step_x;
                            uint _e121 = params.pad_x;
                            uint from_x = ((ox * _e111) + (_e113 * _e116)) - _e121;
                            uint _e125 = params.in_x;
                            if (from_x < _e125) {
                                uint _e131 = params.x_pixel;
                                float _e135 = x[start + ((row + from_x) * _e131)];
                                float seen = static_cast<float>(_e135);
                                float _e137 = total;
                                uint _e141 = kx;
                                float _e144 = w[(weights + 0u) + _e141];
                                total = _e137 + (seen * static_cast<float>(_e144));
                            }
                        }
                    }
                }
            }
            {
                uint _e153 = params.stride_z;
                uint _e158 = params.step_z;
                uint _e163 = params.pad_z;
                uint from_z_1 = ((oz * _e153) + (0u * _e158)) - _e163;
                uint _e167 = params.stride_y;
                uint _e172 = params.step_y;
                uint _e177 = params.pad_y;
                uint from_y_1 = ((oy * _e167) + (1u * _e172)) - _e177;
                uint _e181 = params.in_z;
                if (from_z_1 < _e181) {
                    uint _e187 = params.in_y;
                    local_1 = from_y_1 < _e187;
                } else {
                    local_1 = false;
                }
                bool _e190 = local_1;
                if (_e190) {
                    uint _e193 = params.in_y;
                    uint _e198 = params.in_x;
                    uint row_1 = ((from_z_1 * _e193) + from_y_1) * _e198;
                    kx_1 = 0u;
                    bool loop_init_2 = true;
                    while(true) {
                        if (!loop_init_2) {
                            uint _e245 = kx_1;
                            kx_1 = _e245 + 1u;
                        }
                        loop_init_2 = false;
                        uint _e202 = kx_1;
                        if (_e202 < 3u) {
                        } else {
                            break;
                        }
                        {
                            uint _e207 = params.stride_x;
                            uint _e209 = kx_1;
                            uint _e212 = params.step_x;
                            uint _e217 = params.pad_x;
                            uint from_x_1 = ((ox * _e207) + (_e209 * _e212)) - _e217;
                            uint _e221 = params.in_x;
                            if (from_x_1 < _e221) {
                                uint _e227 = params.x_pixel;
                                float _e231 = x[start + ((row_1 + from_x_1) * _e227)];
                                float seen_1 = static_cast<float>(_e231);
                                float _e233 = total;
                                uint _e237 = kx_1;
                                float _e240 = w[(weights + 3u) + _e237];
                                total = _e233 + (seen_1 * static_cast<float>(_e240));
                            }
                        }
                    }
                }
            }
            {
                uint _e249 = params.stride_z;
                uint _e254 = params.step_z;
                uint _e259 = params.pad_z;
                uint from_z_2 = ((oz * _e249) + (0u * _e254)) - _e259;
                uint _e263 = params.stride_y;
                uint _e268 = params.step_y;
                uint _e273 = params.pad_y;
                uint from_y_2 = ((oy * _e263) + (2u * _e268)) - _e273;
                uint _e277 = params.in_z;
                if (from_z_2 < _e277) {
                    uint _e283 = params.in_y;
                    local_2 = from_y_2 < _e283;
                } else {
                    local_2 = false;
                }
                bool _e286 = local_2;
                if (_e286) {
                    uint _e289 = params.in_y;
                    uint _e294 = params.in_x;
                    uint row_2 = ((from_z_2 * _e289) + from_y_2) * _e294;
                    kx_2 = 0u;
                    bool loop_init_3 = true;
                    while(true) {
                        if (!loop_init_3) {
                            uint _e341 = kx_2;
                            kx_2 = _e341 + 1u;
                        }
                        loop_init_3 = false;
                        uint _e298 = kx_2;
                        if (_e298 < 3u) {
                        } else {
                            break;
                        }
                        {
                            uint _e303 = params.stride_x;
                            uint _e305 = kx_2;
                            uint _e308 = params.step_x;
                            uint _e313 = params.pad_x;
                            uint from_x_2 = ((ox * _e303) + (_e305 * _e308)) - _e313;
                            uint _e317 = params.in_x;
                            if (from_x_2 < _e317) {
                                uint _e323 = params.x_pixel;
                                float _e327 = x[start + ((row_2 + from_x_2) * _e323)];
                                float seen_2 = static_cast<float>(_e327);
                                float _e329 = total;
                                uint _e333 = kx_2;
                                float _e336 = w[(weights + 6u) + _e333];
                                total = _e329 + (seen_2 * static_cast<float>(_e336));
                            }
                        }
                    }
                }
            }
        }
    }
    float _e346 = total;
    return _e346;
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
    uint pixel = {};
    uint at = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e13 = params.total;
    if (at >= _e13) {
        return;
    }
    uint _e17 = params.pixels;
    uint _e21 = params.all;
    channel = (at / _e17) % _e21;
    uint _e26 = params.pixels;
    pixel = at % _e26;
    uint _e31 = params.last;
    if (_e31 == 1u) {
        uint _e36 = params.all;
        channel = at % _e36;
        uint _e40 = params.all;
        uint _e44 = params.pixels;
        pixel = (at / _e40) % _e44;
    }
    uint _e48 = params.pixels;
    uint _e51 = params.all;
    uint image_1 = at / (_e48 * _e51);
    uint _e56 = params.y_image;
    uint _e58 = channel;
    uint _e61 = params.y_channel;
    uint _e64 = pixel;
    uint _e67 = params.y_pixel;
    uint to_1 = ((image_1 * _e56) + (_e58 * _e61)) + (_e64 * _e67);
    uint _e70 = channel;
    uint _e71 = pixel;
    float _e72 = sum(image_1, _e70, _e71, x, w, params, _buffer_sizes);
    uint _e74 = channel;
    put(metal::float4(_e72), _e74, to_1, 1u, y, params, _buffer_sizes);
    return;
}
