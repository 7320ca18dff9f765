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
typedef metal::float4 type_6[1];
struct type_8 {
    metal::uint4 inner[1];
};
struct Params {
    type_8 v;
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
, device type_6& y [[buffer(2)]]
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
    half _e92 = x[on0_ / 4u][on0_ % 4u];
    float v0_ = static_cast<float>(_e92);
    uint _e102 = params.v.inner[0].x;
    uint n1_ = metal::min((at * 4u) + 1u, _e102 - 1u);
    uint _e110 = params.v.inner[0].w;
    uint _e115 = params.v.inner[0].z;
    uint _e122 = params.v.inner[0].w;
    uint _e128 = params.v.inner[0].w;
    int _e131 = positions_raw(((n1_ / (_e110 * _e115)) * _e122) + (n1_ % _e128), positions, _buffer_sizes);
    p1_ = _e131;
    int _e133 = p1_;
    if (_e133 < 0) {
        int _e136 = p1_;
        uint _e141 = params.v.inner[0].z;
        p1_ = as_type<int>(as_type<uint>(_e136) + as_type<uint>(static_cast<int>(_e141)));
    }
    int _e146 = p1_;
    uint _e151 = params.v.inner[0].w;
    uint _e157 = params.v.inner[0].z;
    uint on1_ = (_e146 == static_cast<int>((n1_ / _e151) % _e157)) ? 1u : 0u;
    half _e169 = x[on1_ / 4u][on1_ % 4u];
    float v1_ = static_cast<float>(_e169);
    uint _e179 = params.v.inner[0].x;
    uint n2_ = metal::min((at * 4u) + 2u, _e179 - 1u);
    uint _e187 = params.v.inner[0].w;
    uint _e192 = params.v.inner[0].z;
    uint _e199 = params.v.inner[0].w;
    uint _e205 = params.v.inner[0].w;
    int _e208 = positions_raw(((n2_ / (_e187 * _e192)) * _e199) + (n2_ % _e205), positions, _buffer_sizes);
    p2_ = _e208;
    int _e210 = p2_;
    if (_e210 < 0) {
        int _e213 = p2_;
        uint _e218 = params.v.inner[0].z;
        p2_ = as_type<int>(as_type<uint>(_e213) + as_type<uint>(static_cast<int>(_e218)));
    }
    int _e223 = p2_;
    uint _e228 = params.v.inner[0].w;
    uint _e234 = params.v.inner[0].z;
    uint on2_ = (_e223 == static_cast<int>((n2_ / _e228) % _e234)) ? 1u : 0u;
    half _e246 = x[on2_ / 4u][on2_ % 4u];
    float v2_ = static_cast<float>(_e246);
    uint _e256 = params.v.inner[0].x;
    uint n3_ = metal::min((at * 4u) + 3u, _e256 - 1u);
    uint _e264 = params.v.inner[0].w;
    uint _e269 = params.v.inner[0].z;
    uint _e276 = params.v.inner[0].w;
    uint _e282 = params.v.inner[0].w;
    int _e285 = positions_raw(((n3_ / (_e264 * _e269)) * _e276) + (n3_ % _e282), positions, _buffer_sizes);
    p3_ = _e285;
    int _e287 = p3_;
    if (_e287 < 0) {
        int _e290 = p3_;
        uint _e295 = params.v.inner[0].z;
        p3_ = as_type<int>(as_type<uint>(_e290) + as_type<uint>(static_cast<int>(_e295)));
    }
    int _e300 = p3_;
    uint _e305 = params.v.inner[0].w;
    uint _e311 = params.v.inner[0].z;
    uint on3_ = (_e300 == static_cast<int>((n3_ / _e305) % _e311)) ? 1u : 0u;
    half _e323 = x[on3_ / 4u][on3_ % 4u];
    float v3_ = static_cast<float>(_e323);
    y[at] = metal::float4(v0_, v1_, v2_, v3_);
    return;
}
