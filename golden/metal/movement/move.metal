// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef uint type_1[1];
struct type_3 {
    metal::uint4 inner[2];
};
struct Params {
    type_3 v;
};

uint byte(
    uint word,
    uint at
) {
    return (word >> ((at % 4u) * 8u)) & 255u;
}

uint find(
    uint number,
    constant Params& params
) {
    uint r = {};
    r = number;
    uint _e2 = r;
    uint _e7 = params.v.inner[1].x;
    uint c1_ = _e2 % _e7;
    uint _e9 = r;
    uint _e14 = params.v.inner[1].x;
    r = _e9 / _e14;
    uint _e20 = params.v.inner[0].z;
    uint _e25 = params.v.inner[0].w;
    uint _e28 = r;
    uint _e33 = params.v.inner[1].y;
    uint source = (_e20 + (c1_ * _e25)) + (_e28 * _e33);
    return source;
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
    uint at_1 = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e15 = params.v.inner[0].y;
    if (at_1 >= _e15) {
        return;
    }
    uint _e25 = params.v.inner[0].x;
    uint _e29 = find(metal::min((at_1 * 4u) + 0u, _e25 - 1u), params);
    uint _e34 = x[_e29 / 4u];
    uint _e35 = byte(_e34, _e29);
    uint _e44 = params.v.inner[0].x;
    uint _e48 = find(metal::min((at_1 * 4u) + 1u, _e44 - 1u), params);
    uint _e53 = x[_e48 / 4u];
    uint _e54 = byte(_e53, _e48);
    uint _e63 = params.v.inner[0].x;
    uint _e67 = find(metal::min((at_1 * 4u) + 2u, _e63 - 1u), params);
    uint _e72 = x[_e67 / 4u];
    uint _e73 = byte(_e72, _e67);
    uint _e82 = params.v.inner[0].x;
    uint _e86 = find(metal::min((at_1 * 4u) + 3u, _e82 - 1u), params);
    uint _e91 = x[_e86 / 4u];
    uint _e92 = byte(_e91, _e86);
    y[at_1] = ((_e35 | (_e54 << 8u)) | (_e73 << 16u)) | (_e92 << 24u);
    return;
}
