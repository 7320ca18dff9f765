// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
};

typedef metal::uint2 type_2[1];
typedef metal::half4 type_4[1];
struct type_6 {
    metal::uint4 inner[1];
};
struct Params {
    type_6 v;
};

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_2 const& pairs [[buffer(0)]]
, device type_4 const& x [[buffer(1)]]
, device type_4& y [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    uint at = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e15 = params.v.inner[0].x;
    if (at >= _e15) {
        return;
    }
    uint _e21 = params.v.inner[0].z;
    uint _e26 = params.v.inner[0].y;
    uint _e33 = params.v.inner[0].z;
    uint _e39 = params.v.inner[0].z;
    uint lane_number = ((at / (_e21 * _e26)) * _e33) + (at % _e39);
    uint _e47 = params.v.inner[0].y;
    uint _e53 = params.v.inner[0].z;
    uint _e59 = params.v.inner[0].y;
    uint position = pairs[(lane_number * _e47) + ((at / _e53) % _e59)].y;
    uint _e77 = params.v.inner[0].z;
    uint _e83 = params.v.inner[0].z;
    uint _e89 = params.v.inner[0].w;
    uint _e95 = params.v.inner[0].z;
    uint _e102 = params.v.inner[0].z;
    uint _e112 = params.v.inner[0].z;
    uint _e118 = params.v.inner[0].z;
    uint _e124 = params.v.inner[0].w;
    uint _e130 = params.v.inner[0].z;
    uint _e137 = params.v.inner[0].z;
    half _e143 = x[(((((lane_number / _e77) * _e83) * _e89) + (position * _e95)) + (lane_number % _e102)) / 4u][(((((lane_number / _e112) * _e118) * _e124) + (position * _e130)) + (lane_number % _e137)) % 4u];
    y[at / 4u][at % 4u] = static_cast<half>(static_cast<float>(_e143));
    return;
}
