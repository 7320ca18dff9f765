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
    uint at = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e15 = params.v.inner[0].x;
    if (at >= _e15) {
        return;
    }
    uint _e21 = params.v.inner[0].y;
    uint _e27 = params.v.inner[0].z;
    uint _e33 = params.v.inner[0].y;
    uint _e40 = params.v.inner[0].w;
    uint to = (((at / _e21) * _e27) + (at % _e33)) + _e40;
    half _e56 = x[at / 4u][at % 4u];
    y[to / 4u][to % 4u] = static_cast<half>(static_cast<float>(_e56));
    return;
}
