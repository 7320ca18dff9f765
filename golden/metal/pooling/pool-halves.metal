// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef metal::half4 type_1[1];
struct type_4 {
    metal::uint4 inner[8];
};
struct Params {
    type_4 v;
};
struct Pooled {
    float value;
    uint place;
};

Pooled pooled(
    uint number,
    device type_1 const& x,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint r = {};
    float best = 0.0;
    uint place = 0u;
    uint seen = 0u;
    uint padded = 0u;
    uint kz = 0u;
    bool local = {};
    uint ky = {};
    bool local_1 = {};
    uint kx = {};
    bool local_2 = {};
    bool local_3 = {};
    bool local_4 = {};
    bool local_5 = {};
    bool local_6 = {};
    uint _e5 = params.v.inner[0].z;
    r = number / _e5;
    uint _e12 = params.v.inner[0].z;
    uint channel = number % _e12;
    uint _e14 = r;
    uint _e19 = params.v.inner[1].x;
    uint ox = _e14 % _e19;
    uint _e21 = r;
    uint _e26 = params.v.inner[1].x;
    r = _e21 / _e26;
    uint _e28 = r;
    uint _e33 = params.v.inner[3].y;
    uint oy = _e28 % _e33;
    uint _e35 = r;
    uint _e40 = params.v.inner[3].y;
    r = _e35 / _e40;
    uint _e42 = r;
    uint _e47 = params.v.inner[5].z;
    uint oz = _e42 % _e47;
    uint _e49 = r;
    uint _e54 = params.v.inner[5].z;
    r = _e49 / _e54;
    uint _e56 = r;
    uint _e61 = params.v.inner[5].y;
    uint _e67 = params.v.inner[3].x;
    uint _e73 = params.v.inner[0].w;
    uint _e79 = params.v.inner[0].z;
    uint base = ((((_e56 * _e61) * _e67) * _e73) * _e79) + channel;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e344 = kz;
            kz = _e344 + 1u;
        }
        loop_init = false;
        uint _e92 = kz;
        uint _e97 = params.v.inner[5].w;
        if (_e92 < _e97) {
        } else {
            break;
        }
        {
            uint _e103 = params.v.inner[6].x;
            uint _e105 = kz;
            uint _e110 = params.v.inner[6].y;
            uint pz = (oz * _e103) + (_e105 * _e110);
            uint _e117 = params.v.inner[6].z;
            uint iz = pz - _e117;
            uint _e123 = params.v.inner[6].z;
            if (pz >= _e123) {
                uint _e131 = params.v.inner[5].y;
                local = iz < _e131;
            } else {
                local = false;
            }
            bool in_z = local;
            uint _e139 = params.v.inner[6].w;
            bool pad_z = pz < _e139;
            ky = 0u;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e341 = ky;
                    ky = _e341 + 1u;
                }
                loop_init_1 = false;
                uint _e143 = ky;
                uint _e148 = params.v.inner[3].z;
                if (_e143 < _e148) {
                } else {
                    break;
                }
                {
                    uint _e154 = params.v.inner[3].w;
                    uint _e156 = ky;
                    uint _e161 = params.v.inner[4].x;
                    uint py = (oy * _e154) + (_e156 * _e161);
                    uint _e168 = params.v.inner[4].y;
                    uint iy = py - _e168;
                    uint _e174 = params.v.inner[4].y;
                    if (py >= _e174) {
                        uint _e182 = params.v.inner[3].x;
                        local_1 = iy < _e182;
                    } else {
                        local_1 = false;
                    }
                    bool in_y = local_1;
                    uint _e190 = params.v.inner[4].z;
                    bool pad_y = py < _e190;
                    kx = 0u;
                    bool loop_init_2 = true;
                    while(true) {
                        if (!loop_init_2) {
                            uint _e338 = kx;
                            kx = _e338 + 1u;
                        }
                        loop_init_2 = false;
                        uint _e194 = kx;
                        uint _e199 = params.v.inner[1].y;
                        if (_e194 < _e199) {
                        } else {
                            break;
                        }
                        {
                            uint _e205 = params.v.inner[1].z;
                            uint _e207 = kx;
                            uint _e212 = params.v.inner[1].w;
                            uint px = (ox * _e205) + (_e207 * _e212);
                            uint _e219 = params.v.inner[2].x;
                            uint ix = px - _e219;
                            uint _e225 = params.v.inner[2].x;
                            if (px >= _e225) {
                                uint _e233 = params.v.inner[0].w;
                                local_2 = ix < _e233;
                            } else {
                                local_2 = false;
                            }
                            bool in_x = local_2;
                            uint _e241 = params.v.inner[2].y;
                            bool pad_x = px < _e241;
                            if (pad_z) {
                                local_3 = pad_y;
                            } else {
                                local_3 = false;
                            }
                            bool _e246 = local_3;
                            if (_e246) {
                                local_4 = pad_x;
                            } else {
                                local_4 = false;
                            }
                            bool _e250 = local_4;
                            if (_e250) {
                                uint _e252 = padded;
                                padded = _e252 + 1u;
                            }
                            if (in_z) {
                                local_5 = in_y;
                            } else {
                                local_5 = false;
                            }
                            bool _e257 = local_5;
                            if (_e257) {
                                local_6 = in_x;
                            } else {
                                local_6 = false;
                            }
                            bool _e261 = local_6;
                            if (_e261) {
                                uint _e266 = params.v.inner[7].x;
                                uint _e273 = params.v.inner[4].w;
                                uint _e280 = params.v.inner[2].z;
                                uint source = ((base + (iz * _e266)) + (iy * _e273)) + (ix * _e280);
                                half _e290 = x[source / 4u][source % 4u];
                                float e = static_cast<float>(_e290);
                                uint _e292 = r;
                                uint _e297 = params.v.inner[5].y;
                                uint _e303 = params.v.inner[3].x;
                                uint _e309 = params.v.inner[0].w;
                                uint _e315 = params.v.inner[7].y;
                                uint _e322 = params.v.inner[5].x;
                                uint _e329 = params.v.inner[2].w;
                                uint own = (((((_e292 * _e297) * _e303) * _e309) + (iz * _e315)) + (iy * _e322)) + (ix * _e329);
                                float _e332 = best;
                                best = _e332 + e;
                                uint _e335 = seen;
                                seen = _e335 + 1u;
                            }
                        }
                    }
                }
            }
        }
    }
    float _e346 = best;
    uint _e347 = seen;
    best = _e346 / static_cast<float>(metal::max(_e347, 1u));
    float _e352 = best;
    uint _e353 = place;
    return Pooled {_e352, _e353};
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& x [[buffer(0)]]
, device type_1& y [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    uint at = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e15 = params.v.inner[0].y;
    if (at >= _e15) {
        return;
    }
    uint _e25 = params.v.inner[0].x;
    Pooled _e29 = pooled(metal::min((at * 4u) + 0u, _e25 - 1u), x, params, _buffer_sizes);
    uint _e38 = params.v.inner[0].x;
    Pooled _e42 = pooled(metal::min((at * 4u) + 1u, _e38 - 1u), x, params, _buffer_sizes);
    uint _e51 = params.v.inner[0].x;
    Pooled _e55 = pooled(metal::min((at * 4u) + 2u, _e51 - 1u), x, params, _buffer_sizes);
    uint _e64 = params.v.inner[0].x;
    Pooled _e68 = pooled(metal::min((at * 4u) + 3u, _e64 - 1u), x, params, _buffer_sizes);
    metal::float4 result = metal::float4(_e29.value, _e42.value, _e55.value, _e68.value);
    y[at] = static_cast<metal::half4>(result);
    return;
}
