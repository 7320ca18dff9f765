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
    metal::uint4 inner[1];
};
struct Params {
    type_6 v;
};

int positions_raw(
    uint i,
    device type_2 const& positions,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e4 = positions[i].x;
    return as_type<int>(_e4);
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_2 const& positions [[buffer(0)]]
, device type_4 const& x [[buffer(1)]]
, device type_4& y [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    int p0_ = {};
    int p1_ = {};
    int p2_ = {};
    int p3_ = {};
    uint at = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e15 = params.v.inner[0].y;
    if (at >= _e15) {
        return;
    }
    uint _e25 = params.v.inner[0].x;
    uint n0_ = metal::min((at * 4u) + 0u, _e25 - 1u);
    uint _e33 = params.v.inner[0].w;
    uint _e38 = params.v.inner[0].z;
    uint _e45 = params.v.inner[0].w;
    uint _e51 = params.v.inner[0].w;
    int _e54 = positions_raw(((n0_ / (_e33 * _e38)) * _e45) + (n0_ % _e51), positions, _buffer_sizes);
    p0_ = _e54;
    int _e56 = p0_;
    if (_e56 < 0) {
        int _e59 = p0_;
        uint _e64 = params.v.inner[0].z;
        p0_ = as_type<int>(as_type<uint>(_e59) + as_type<uint>(static_cast<int>(_e64)));
    }
    int _e69 = p0_;
    uint _e74 = params.v.inner[0].w;
    uint _e80 = params.v.inner[0].z;
    uint on0_ = (_e69 == static_cast<int>((n0_ / _e74) % _e80)) ? 1u : 0u;
    float v0_ = x[on0_ / 4u][on0_ % 4u];
    uint _e101 = params.v.inner[0].x;
    uint n1_ = metal::min((at * 4u) + 1u, _e101 - 1u);
    uint _e109 = params.v.inner[0].w;
    uint _e114 = params.v.inner[0].z;
    uint _e121 = params.v.inner[0].w;
    uint _e127 = params.v.inner[0].w;
    int _e130 = positions_raw(((n1_ / (_e109 * _e114)) * _e121) + (n1_ % _e127), positions, _buffer_sizes);
    p1_ = _e130;
    int _e132 = p1_;
    if (_e132 < 0) {
        int _e135 = p1_;
        uint _e140 = params.v.inner[0].z;
        p1_ = as_type<int>(as_type<uint>(_e135) + as_type<uint>(static_cast<int>(_e140)));
    }
    int _e145 = p1_;
    uint _e150 = params.v.inner[0].w;
    uint _e156 = params.v.inner[0].z;
    uint on1_ = (_e145 == static_cast<int>((n1_ / _e150) % _e156)) ? 1u : 0u;
    float v1_ = x[on1_ / 4u][on1_ % 4u];
    uint _e177 = params.v.inner[0].x;
    uint n2_ = metal::min((at * 4u) + 2u, _e177 - 1u);
    uint _e185 = params.v.inner[0].w;
    uint _e190 = params.v.inner[0].z;
    uint _e197 = params.v.inner[0].w;
    uint _e203 = params.v.inner[0].w;
    int _e206 = positions_raw(((n2_ / (_e185 * _e190)) * _e197) + (n2_ % _e203), positions, _buffer_sizes);
    p2_ = _e206;
    int _e208 = p2_;
    if (_e208 < 0) {
        int _e211 = p2_;
        uint _e216 = params.v.inner[0].z;
        p2_ = as_type<int>(as_type<uint>(_e211) + as_type<uint>(static_cast<int>(_e216)));
    }
    int _e221 = p2_;
    uint _e226 = params.v.inner[0].w;
    uint _e232 = params.v.inner[0].z;
    uint on2_ = (_e221 == static_cast<int>((n2_ / _e226) % _e232)) ? 1u : 0u;
    float v2_ = x[on2_ / 4u][on2_ % 4u];
    uint _e253 = params.v.inner[0].x;
    uint n3_ = metal::min((at * 4u) + 3u, _e253 - 1u);
    uint _e261 = params.v.inner[0].w;
    uint _e266 = params.v.inner[0].z;
    uint _e273 = params.v.inner[0].w;
    uint _e279 = params.v.inner[0].w;
    int _e282 = positions_raw(((n3_ / (_e261 * _e266)) * _e273) + (n3_ % _e279), positions, _buffer_sizes);
    p3_ = _e282;
    int _e284 = p3_;
    if (_e284 < 0) {
        int _e287 = p3_;
        uint _e292 = params.v.inner[0].z;
        p3_ = as_type<int>(as_type<uint>(_e287) + as_type<uint>(static_cast<int>(_e292)));
    }
    int _e297 = p3_;
    uint _e302 = params.v.inner[0].w;
    uint _e308 = params.v.inner[0].z;
    uint on3_ = (_e297 == static_cast<int>((n3_ / _e302) % _e308)) ? 1u : 0u;
    float v3_ = x[on3_ / 4u][on3_ % 4u];
    y[at] = metal::float4(v0_, v1_, v2_, v3_);
    return;
}
