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
    metal::uint4 inner[1];
};
struct Params {
    type_4 v;
};

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
    float total = 0.0;
    uint j = {};
    uint at = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e15 = params.v.inner[0].x;
    if (at >= _e15) {
        return;
    }
    uint _e21 = params.v.inner[0].z;
    uint _e27 = params.v.inner[0].z;
    uint _e33 = params.v.inner[0].y;
    uint _e39 = params.v.inner[0].z;
    uint base = (((at / _e21) * _e27) * _e33) + (at % _e39);
    uint last = params.v.inner[0].y;
    j = 0u;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e81 = j;
            j = _e81 + 1u;
        }
        loop_init = false;
        uint _e51 = j;
        if (_e51 < last) {
        } else {
            break;
        }
        {
            uint _e53 = j;
            uint _e58 = params.v.inner[0].z;
            uint place = base + (_e53 * _e58);
            float _e61 = total;
            half _e69 = x[place / 4u][place % 4u];
            float result = _e61 + static_cast<float>(_e69);
            y[place / 4u][place % 4u] = static_cast<half>(result);
            total = result;
        }
    }
    return;
}
