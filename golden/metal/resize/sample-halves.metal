// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
};

typedef metal::half4 type_1[1];
typedef metal::uint2 type_4[1];
struct type_6 {
    metal::uint4 inner[4];
};
struct Params {
    type_6 v;
};

float element(
    uint number,
    device type_1 const& x,
    device type_4 const& tables,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint r = {};
    uint base = 0u;
    float total = 0.0;
    uint k2_ = 0u;
    uint k1_ = {};
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
    uint _e42 = r;
    uint _e47 = params.v.inner[1].w;
    uint c1_ = _e42 % _e47;
    uint _e49 = r;
    uint _e54 = params.v.inner[1].w;
    r = _e49 / _e54;
    uint _e60 = params.v.inner[2].y;
    uint _e65 = params.v.inner[2].z;
    uint f1_ = _e60 + (c1_ * _e65);
    uint _e71 = tables[f1_].x;
    if (_e71 == 4294967295u) {
        uint _e78 = params.v.inner[0].z;
        return as_type<float>(_e78);
    }
    uint _e80 = r;
    uint _e85 = params.v.inner[2].w;
    uint c0_ = _e80 % _e85;
    uint _e87 = r;
    uint _e92 = params.v.inner[2].w;
    r = _e87 / _e92;
    uint _e94 = base;
    uint _e99 = params.v.inner[3].x;
    base = _e94 + (c0_ * _e99);
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e172 = k2_;
            k2_ = _e172 + 1u;
        }
        loop_init = false;
        uint _e106 = k2_;
        uint _e111 = params.v.inner[1].z;
        if (_e106 < _e111) {
        } else {
            break;
        }
        {
            uint _e114 = k2_;
            metal::uint2 e2_ = tables[f2_ + _e114];
            uint _e118 = base;
            uint _e124 = params.v.inner[1].x;
            uint p2_ = _e118 + (e2_.x * _e124);
            float w2_ = 1.0 * as_type<float>(e2_.y);
            k1_ = 0u;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e169 = k1_;
                    k1_ = _e169 + 1u;
                }
                loop_init_1 = false;
                uint _e133 = k1_;
                uint _e138 = params.v.inner[2].z;
                if (_e133 < _e138) {
                } else {
                    break;
                }
                {
                    uint _e141 = k1_;
                    metal::uint2 e1_ = tables[f1_ + _e141];
                    uint _e150 = params.v.inner[2].x;
                    uint p1_ = p2_ + (e1_.x * _e150);
                    float w1_ = w2_ * as_type<float>(e1_.y);
                    float _e156 = total;
                    half _e164 = x[p1_ / 4u][p1_ % 4u];
                    total = _e156 + (w1_ * static_cast<float>(_e164));
                }
            }
        }
    }
    float _e174 = total;
    return _e174;
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& x [[buffer(0)]]
, device type_1& y [[buffer(1)]]
, device type_4 const& tables [[buffer(2)]]
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
    y[at] = static_cast<metal::half4>(metal::float4(_e29, _e42, _e55, _e68));
    return;
}
