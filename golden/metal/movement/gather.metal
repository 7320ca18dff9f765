// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
};

typedef metal::float4 type_1[1];
typedef metal::uint2 type_4[1];
struct type_6 {
    metal::uint4 inner[2];
};
struct Params {
    type_6 v;
};

uint positions_at(
    uint i,
    uint len,
    device type_4 const& positions,
    constant _mslBufferSizes& _buffer_sizes
) {
    int p = {};
    uint _e5 = positions[i].x;
    p = as_type<int>(_e5);
    int _e8 = p;
    if (_e8 < 0) {
        int _e11 = p;
        p = as_type<int>(as_type<uint>(_e11) + as_type<uint>(static_cast<int>(len)));
    }
    int _e14 = p;
    return static_cast<uint>(metal::clamp(_e14, 0, as_type<int>(as_type<uint>(static_cast<int>(len)) - as_type<uint>(1))));
}

uint source(
    uint number,
    device type_4 const& positions,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.v.inner[0].x;
    uint row = number / _e5;
    uint _e11 = params.v.inner[0].z;
    uint _e17 = params.v.inner[0].y;
    uint _e18 = positions_at(row % _e11, _e17, positions, _buffer_sizes);
    uint _e23 = params.v.inner[0].z;
    uint _e29 = params.v.inner[0].y;
    uint _e36 = params.v.inner[0].x;
    uint _e42 = params.v.inner[0].x;
    return ((((row / _e23) * _e29) + _e18) * _e36) + (number % _e42);
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& x [[buffer(0)]]
, device type_4 const& positions [[buffer(1)]]
, device type_1& y [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    uint at = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e15 = params.v.inner[1].x;
    if (at >= _e15) {
        return;
    }
    uint _e19 = source(at * 4u, positions, params, _buffer_sizes);
    uint place = _e19 / 4u;
    metal::float4 _e26 = x[place];
    y[at] = _e26;
    return;
}
