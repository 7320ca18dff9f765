// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef metal::float4 type_2[1];
struct type_5 {
    metal::uint4 inner[2];
};
struct Params {
    type_5 v;
};

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_2 const& x [[buffer(0)]]
, device type_2& y [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    float v0_ = float {};
    float v1_ = float {};
    float v2_ = float {};
    float v3_ = float {};
    uint at = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e15 = params.v.inner[0].y;
    if (at >= _e15) {
        return;
    }
    uint _e25 = params.v.inner[0].x;
    uint n0_ = metal::min((at * 4u) + 0u, _e25 - 1u);
    uint _e33 = params.v.inner[0].w;
    uint _e40 = params.v.inner[0].w;
    uint _e46 = params.v.inner[0].z;
    int above0_ = as_type<int>(as_type<uint>(static_cast<int>(n0_ % _e33)) - as_type<uint>(static_cast<int>((n0_ / _e40) % _e46)));
    uint _e56 = params.v.inner[1].x;
    if (above0_ >= as_type<int>(_e56)) {
        float _e66 = x[n0_ / 4u][n0_ % 4u];
        v0_ = _e66;
    }
    uint _e75 = params.v.inner[0].x;
    uint n1_ = metal::min((at * 4u) + 1u, _e75 - 1u);
    uint _e83 = params.v.inner[0].w;
    uint _e90 = params.v.inner[0].w;
    uint _e96 = params.v.inner[0].z;
    int above1_ = as_type<int>(as_type<uint>(static_cast<int>(n1_ % _e83)) - as_type<uint>(static_cast<int>((n1_ / _e90) % _e96)));
    uint _e106 = params.v.inner[1].x;
    if (above1_ >= as_type<int>(_e106)) {
        float _e116 = x[n1_ / 4u][n1_ % 4u];
        v1_ = _e116;
    }
    uint _e125 = params.v.inner[0].x;
    uint n2_ = metal::min((at * 4u) + 2u, _e125 - 1u);
    uint _e133 = params.v.inner[0].w;
    uint _e140 = params.v.inner[0].w;
    uint _e146 = params.v.inner[0].z;
    int above2_ = as_type<int>(as_type<uint>(static_cast<int>(n2_ % _e133)) - as_type<uint>(static_cast<int>((n2_ / _e140) % _e146)));
    uint _e156 = params.v.inner[1].x;
    if (above2_ >= as_type<int>(_e156)) {
        float _e166 = x[n2_ / 4u][n2_ % 4u];
        v2_ = _e166;
    }
    uint _e175 = params.v.inner[0].x;
    uint n3_ = metal::min((at * 4u) + 3u, _e175 - 1u);
    uint _e183 = params.v.inner[0].w;
    uint _e190 = params.v.inner[0].w;
    uint _e196 = params.v.inner[0].z;
    int above3_ = as_type<int>(as_type<uint>(static_cast<int>(n3_ % _e183)) - as_type<uint>(static_cast<int>((n3_ / _e190) % _e196)));
    uint _e206 = params.v.inner[1].x;
    if (above3_ >= as_type<int>(_e206)) {
        float _e216 = x[n3_ / 4u][n3_ % 4u];
        v3_ = _e216;
    }
    float _e219 = v0_;
    float _e220 = v1_;
    float _e221 = v2_;
    float _e222 = v3_;
    y[at] = metal::float4(_e219, _e220, _e221, _e222);
    return;
}
