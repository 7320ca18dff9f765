// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
    uint size3;
};

typedef int type_1[1];
typedef float type_3[1];
typedef metal::float4 type_5[1];
struct Params {
    uint elements;
    uint columns;
    uint b;
    uint bias;
};

struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint thread_ [[thread_index_in_threadgroup]]
, device type_1 const& sums [[buffer(0)]]
, device type_3 const& scale_a [[buffer(1)]]
, device type_3 const& scale_b [[buffer(2)]]
, device type_5& out [[buffer(3)]]
, constant Params& params [[buffer(4)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(5)]]
) {
    metal::float4 all = metal::float4 {};
    uint i = 0u;
    uint quad_ = ((group.x + (group.y * groups.x)) * 64u) + thread_;
    uint _e15 = params.elements;
    if ((quad_ * 4u) >= _e15) {
        return;
    }
    float _e19 = scale_a[0];
    float scale = static_cast<float>(_e19);
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e59 = i;
            i = _e59 + 1u;
        }
        loop_init = false;
        uint _e25 = i;
        if (_e25 < 4u) {
        } else {
            break;
        }
        {
            uint _e30 = i;
            uint _e34 = params.elements;
            uint at = metal::min((quad_ * 4u) + _e30, _e34 - 1u);
            uint _e40 = params.columns;
            uint column = at % _e40;
            uint _e42 = i;
            int _e46 = sums[at];
            uint _e51 = params.b;
            float _e54 = scale_b[column * _e51];
            all[_e42] = static_cast<float>(_e46) * (scale * static_cast<float>(_e54));
        }
    }
    metal::float4 _e63 = all;
    out[quad_] = static_cast<metal::float4>(_e63);
    return;
}
