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
typedef metal::float4 type_4[1];
struct type_6 {
    metal::uint4 inner[2];
};
struct Params {
    type_6 v;
};

uint positions_at(
    uint i,
    uint len,
    device type_2 const& positions,
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

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_2 const& positions [[buffer(0)]]
, device type_4 const& updates [[buffer(1)]]
, device type_4& y [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    uint r = {};
    uint first = 0u;
    uint base = 0u;
    uint j = 0u;
    uint at = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e15 = params.v.inner[1].w;
    if (at >= _e15) {
        return;
    }
    r = at;
    uint _e22 = first;
    uint _e23 = r;
    uint _e28 = params.v.inner[0].x;
    uint _e34 = params.v.inner[0].y;
    first = _e22 + ((_e23 % _e28) * _e34);
    uint _e37 = base;
    uint _e38 = r;
    uint _e43 = params.v.inner[0].x;
    uint _e49 = params.v.inner[0].z;
    base = _e37 + ((_e38 % _e43) * _e49);
    uint _e52 = r;
    uint _e57 = params.v.inner[0].x;
    r = _e52 / _e57;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e107 = j;
            j = _e107 + 1u;
        }
        loop_init = false;
        uint _e61 = j;
        uint _e66 = params.v.inner[0].w;
        if (_e61 < _e66) {
        } else {
            break;
        }
        {
            uint _e68 = first;
            uint _e69 = j;
            uint _e74 = params.v.inner[1].x;
            uint update = _e68 + (_e69 * _e74);
            uint _e77 = base;
            uint _e82 = params.v.inner[1].y;
            uint _e83 = positions_at(update, _e82, positions, _buffer_sizes);
            uint _e88 = params.v.inner[1].z;
            uint place = _e77 + (_e83 * _e88);
            float _e105 = updates[update / 4u][update % 4u];
            y[place / 4u][place % 4u] = _e105;
        }
    }
    return;
}
