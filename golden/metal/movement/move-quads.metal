// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef metal::float4 type_1[1];
struct type_4 {
    metal::uint4 inner[3];
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
    uint r = {};
    uint at = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e15 = params.v.inner[0].y;
    if (at >= _e15) {
        return;
    }
    r = at * 4u;
    uint _e20 = r;
    uint _e25 = params.v.inner[1].x;
    uint c3_ = _e20 % _e25;
    uint _e27 = r;
    uint _e32 = params.v.inner[1].x;
    r = _e27 / _e32;
    uint _e34 = r;
    uint _e39 = params.v.inner[1].z;
    uint c2_ = _e34 % _e39;
    uint _e41 = r;
    uint _e46 = params.v.inner[1].z;
    r = _e41 / _e46;
    uint _e48 = r;
    uint _e53 = params.v.inner[2].x;
    uint c1_ = _e48 % _e53;
    uint _e55 = r;
    uint _e60 = params.v.inner[2].x;
    r = _e55 / _e60;
    uint _e66 = params.v.inner[0].z;
    uint _e71 = params.v.inner[0].w;
    uint _e78 = params.v.inner[1].y;
    uint _e85 = params.v.inner[1].w;
    uint _e88 = r;
    uint _e93 = params.v.inner[2].y;
    uint source = (((_e66 + (c3_ * _e71)) + (c2_ * _e78)) + (c1_ * _e85)) + (_e88 * _e93);
    metal::float4 _e102 = x[source / 4u];
    y[at] = _e102;
    return;
}
