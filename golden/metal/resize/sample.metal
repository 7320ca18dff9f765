// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
};

typedef metal::float4 type_2[1];
typedef metal::uint2 type_5[1];
struct type_7 {
    metal::uint4 inner[4];
};
struct Params {
    type_7 v;
};

float element(
    uint number,
    device type_2 const& x,
    device type_5 const& tables,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint r = {};
    uint base = 0u;
    r = number;
    uint _e4 = r;
    uint _e9 = params.v.inner[0].w;
    uint c2_ = _e4 % _e9;
    uint _e11 = r;
    uint _e16 = params.v.inner[0].w;
    r = _e11 / _e16;
    uint _e22 = params.v.inner[1].y;
    uint _e27 = params.v.inner[1].z;
    uint f2_ = _e22 + (c2_ * _e27);
    uint _e33 = tables[f2_].x;
    if (_e33 == 4294967295u) {
        uint _e40 = params.v.inner[0].z;
        return as_type<float>(_e40);
    }
    uint _e42 = base;
    uint _e46 = tables[f2_].x;
    uint _e51 = params.v.inner[1].x;
    base = _e42 + (_e46 * _e51);
    uint _e54 = r;
    uint _e59 = params.v.inner[1].w;
    uint c1_ = _e54 % _e59;
    uint _e61 = r;
    uint _e66 = params.v.inner[1].w;
    r = _e61 / _e66;
    uint _e72 = params.v.inner[2].y;
    uint _e77 = params.v.inner[2].z;
    uint f1_ = _e72 + (c1_ * _e77);
    uint _e83 = tables[f1_].x;
    if (_e83 == 4294967295u) {
        uint _e90 = params.v.inner[0].z;
        return as_type<float>(_e90);
    }
    uint _e92 = base;
    uint _e96 = tables[f1_].x;
    uint _e101 = params.v.inner[2].x;
    base = _e92 + (_e96 * _e101);
    uint _e104 = r;
    uint _e109 = params.v.inner[2].w;
    uint c0_ = _e104 % _e109;
    uint _e111 = r;
    uint _e116 = params.v.inner[2].w;
    r = _e111 / _e116;
    uint _e118 = base;
    uint _e123 = params.v.inner[3].x;
    base = _e118 + (c0_ * _e123);
    uint _e127 = base;
    uint _e131 = base;
    float _e135 = x[_e127 / 4u][_e131 % 4u];
    return _e135;
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_2 const& x [[buffer(0)]]
, device type_2& y [[buffer(1)]]
, device type_5 const& tables [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    uint at = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e15 = params.v.inner[0].y;
    if (at >= _e15) {
        return;
    }
    uint _e25 = params.v.inner[0].x;
    float _e29 = element(metal::min((at * 4u) + 0u, _e25 - 1u), x, tables, params, _buffer_sizes);
    uint _e38 = params.v.inner[0].x;
    float _e42 = element(metal::min((at * 4u) + 1u, _e38 - 1u), x, tables, params, _buffer_sizes);
    uint _e51 = params.v.inner[0].x;
    float _e55 = element(metal::min((at * 4u) + 2u, _e51 - 1u), x, tables, params, _buffer_sizes);
    uint _e64 = params.v.inner[0].x;
    float _e68 = element(metal::min((at * 4u) + 3u, _e64 - 1u), x, tables, params, _buffer_sizes);
    y[at] = metal::float4(_e29, _e42, _e55, _e68);
    return;
}
