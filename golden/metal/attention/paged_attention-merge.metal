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
typedef metal::float2 type_4[1];
struct Params {
    uint count;
    uint columns;
    uint splits;
};
uint naga_div(uint lhs, uint rhs) {
    return lhs / metal::select(rhs, 1u, rhs == 0u);
}

uint naga_mod(uint lhs, uint rhs) {
    return lhs % metal::select(rhs, 1u, rhs == 0u);
}


struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_2 const& sums [[buffer(0)]]
, device type_4 const& weights [[buffer(1)]]
, device type_2& y [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    float most = -300000000000000000000000000000000000000.0;
    uint s = 0u;
    float total = 0.0;
    metal::float4 sum = metal::float4(0.0);
    uint s_1 = 0u;
    uint at = ((group.x + (group.y * groups.x)) * 64u) + lane;
    uint _e13 = params.count;
    if (at >= _e13) {
        return;
    }
    uint _e17 = params.columns;
    uint _e21 = params.splits;
    uint vector = naga_div(at, _e17) * _e21;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e41 = s;
            s = _e41 + 1u;
        }
        loop_init = false;
        uint _e27 = s;
        uint _e30 = params.splits;
        if (_e27 < _e30) {
        } else {
            break;
        }
        {
            float _e32 = most;
            uint _e34 = s;
            float _e38 = weights[metal::min(unsigned(vector + _e34), (_buffer_sizes.size1 - 0 - 8) / 8)].x;
            most = metal::max(_e32, _e38);
        }
    }
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e89 = s_1;
            s_1 = _e89 + 1u;
        }
        loop_init_1 = false;
        uint _e50 = s_1;
        uint _e53 = params.splits;
        if (_e50 < _e53) {
        } else {
            break;
        }
        {
            uint _e56 = s_1;
            metal::float2 weight = weights[metal::min(unsigned(vector + _e56), (_buffer_sizes.size1 - 0 - 8) / 8)];
            if (weight.y > 0.0) {
                float _e64 = most;
                float factor = metal::exp(weight.x - _e64);
                float _e67 = total;
                total = _e67 + (factor * weight.y);
                metal::float4 _e71 = sum;
                uint _e73 = s_1;
                uint _e77 = params.columns;
                uint _e81 = params.columns;
                metal::float4 _e85 = sums[metal::min(unsigned(((vector + _e73) * _e77) + naga_mod(at, _e81)), (_buffer_sizes.size0 - 0 - 16) / 16)];
                sum = _e71 + (factor * _e85);
            }
        }
    }
    metal::float4 _e93 = sum;
    float _e94 = total;
    y[metal::min(unsigned(at), (_buffer_sizes.size2 - 0 - 16) / 16)] = static_cast<metal::float4>(_e93 / metal::float4(metal::max(_e94, 0.0000000000000000000000000000000000001)));
    return;
}
