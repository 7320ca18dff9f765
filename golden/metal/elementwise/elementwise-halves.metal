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
, device type_1 const& x0_ [[buffer(0)]]
, device type_1& y [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    uint at = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e15 = params.v.inner[0].y;
    if (at >= _e15) {
        return;
    }
    metal::half4 _e19 = x0_[at];
    metal::float4 a0_ = static_cast<metal::float4>(_e19);
    metal::float4 result = metal::abs(a0_);
    y[at] = static_cast<metal::half4>(result);
    return;
}
