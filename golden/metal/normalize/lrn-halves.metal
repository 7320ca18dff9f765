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
    metal::uint4 inner[3];
};
struct Params {
    type_4 v;
};

float response(
    uint number,
    device type_1 const& x,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    float s = 0.0;
    uint k_1 = {};
    uint _e5 = params.v.inner[0].z;
    uint _e11 = params.v.inner[0].w;
    uint own = (number / _e5) % _e11;
    uint _e17 = params.v.inner[1].x;
    uint first = own - metal::min(own, _e17);
    uint _e24 = params.v.inner[1].y;
    uint _e30 = params.v.inner[0].w;
    uint last = metal::min(own + _e24, _e30 - 1u);
    k_1 = first;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e82 = k_1;
            k_1 = _e82 + 1u;
        }
        loop_init = false;
        uint _e37 = k_1;
        if (_e37 <= last) {
        } else {
            break;
        }
        {
            uint _e40 = k_1;
            uint _e45 = params.v.inner[0].z;
            uint _e52 = params.v.inner[0].z;
            uint _e58 = k_1;
            uint _e63 = params.v.inner[0].z;
            uint _e70 = params.v.inner[0].z;
            half _e76 = x[((number + (_e40 * _e45)) - (own * _e52)) / 4u][((number + (_e58 * _e63)) - (own * _e70)) % 4u];
            float v_1 = static_cast<float>(_e76);
            float _e78 = s;
            s = _e78 + (v_1 * v_1);
        }
    }
    half _e91 = x[number / 4u][number % 4u];
    uint _e97 = params.v.inner[2].x;
    uint _e103 = params.v.inner[1].z;
    float _e105 = s;
    uint _e112 = params.v.inner[1].w;
    return static_cast<float>(_e91) * metal::pow(as_type<float>(_e97) + (as_type<float>(_e103) * _e105), -(as_type<float>(_e112)));
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
    metal::float4 v = metal::float4 {};
    uint k = 0u;
    uint at = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e15 = params.v.inner[0].y;
    if (at >= _e15) {
        return;
    }
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e40 = k;
            k = _e40 + 1u;
        }
        loop_init_1 = false;
        uint _e21 = k;
        if (_e21 < 4u) {
        } else {
            break;
        }
        {
            uint _e24 = k;
            uint _e28 = k;
            uint _e34 = params.v.inner[0].x;
            float _e38 = response(metal::min((at * 4u) + _e28, _e34 - 1u), x, params, _buffer_sizes);
            v[_e24] = _e38;
        }
    }
    metal::float4 _e44 = v;
    y[at] = static_cast<metal::half4>(_e44);
    return;
}
