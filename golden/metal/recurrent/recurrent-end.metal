// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef float type_1[1];
struct type_4 {
    metal::uint4 inner[2];
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
, device type_1 const& states [[buffer(0)]]
, device type_1& v1_ [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    uint place = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e15 = params.v.inner[0].x;
    if (place >= _e15) {
        return;
    }
    uint _e24 = params.v.inner[1].x;
    float _e27 = states[_e24 + place];
    v1_[place] = static_cast<float>(_e27);
    return;
}
