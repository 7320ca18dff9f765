// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef float type_1[1];
typedef metal::half4 type_3[1];
struct Params {
    uint total;
    uint tiles;
    uint tiles_deep;
    uint channels;
    uint quads;
    uint height;
    uint width;
    uint in_y;
    uint in_x;
    uint stride_y;
    uint stride_x;
    uint pad_y;
    uint pad_x;
    uint x_image;
    uint x_channel;
    uint x_pixel;
    uint zeros;
};
struct type_5 {
    float inner[1280];
};

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint thread_ [[thread_index_in_threadgroup]]
, device type_1 const& x [[buffer(0)]]
, device type_3& spread [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, threadgroup type_5& tile
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    bool local = {};
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    bool local_4 = {};
    bool local_5 = {};
    bool local_6 = {};
    bool local_7 = {};
    uint id = group.x + (group.y * groups.x);
    uint _e10 = params.total;
    if (id >= _e10) {
        return;
    }
    if (id == 0u) {
        local = thread_ == 0u;
    } else {
        local = false;
    }
    bool _e19 = local;
    if (_e19) {
        uint _e23 = params.zeros;
        spread[_e23 >> 2u] = metal::half4 {};
    }
    uint _e30 = params.tiles;
    uint first = (id % _e30) * 256u;
    uint _e36 = params.tiles;
    uint _e40 = params.tiles_deep;
    uint channel = ((id / _e36) % _e40) * 4u;
    uint _e46 = params.tiles;
    uint _e49 = params.tiles_deep;
    uint image = id / (_e46 * _e49);
    uint _e54 = params.height;
    uint _e57 = params.width;
    uint count = _e54 * _e57;
    uint own0_ = thread_ % 256u;
    uint c0_ = (thread_ / 256u) + 0u;
    uint _e68 = params.width;
    uint _e72 = params.stride_y;
    uint _e76 = params.pad_y;
    uint y0_ = (((first + own0_) / _e68) * _e72) - _e76;
    uint _e81 = params.width;
    uint _e85 = params.stride_x;
    uint _e89 = params.pad_x;
    uint x0_ = (((first + own0_) % _e81) * _e85) - _e89;
    uint _e93 = params.in_y;
    if (y0_ < _e93) {
        uint _e99 = params.in_x;
        local_1 = x0_ < _e99;
    } else {
        local_1 = false;
    }
    bool _e102 = local_1;
    if (_e102) {
        local_2 = (first + own0_) < count;
    } else {
        local_2 = false;
    }
    bool inside0_ = local_2;
    uint _e111 = params.x_image;
    uint _e115 = params.in_x;
    uint _e120 = params.x_pixel;
    uint from0_ = (image * _e111) + (((y0_ * _e115) + x0_) * _e120);
    if (inside0_) {
        uint _e128 = params.channels;
        local_3 = (channel + c0_) < _e128;
    } else {
        local_3 = false;
    }
    bool there0_ = local_3;
    uint _e137 = params.x_channel;
    float value0_ = x[there0_ ? (from0_ + ((channel + c0_) * _e137)) : 0u];
    uint own1_ = thread_ % 256u;
    uint c1_ = (thread_ / 256u) + 1u;
    if (inside0_) {
        uint _e154 = params.channels;
        local_4 = (channel + c1_) < _e154;
    } else {
        local_4 = false;
    }
    bool there1_ = local_4;
    uint _e163 = params.x_channel;
    float value1_ = x[there1_ ? (from0_ + ((channel + c1_) * _e163)) : 0u];
    uint own2_ = thread_ % 256u;
    uint c2_ = (thread_ / 256u) + 2u;
    if (inside0_) {
        uint _e180 = params.channels;
        local_5 = (channel + c2_) < _e180;
    } else {
        local_5 = false;
    }
    bool there2_ = local_5;
    uint _e189 = params.x_channel;
    float value2_ = x[there2_ ? (from0_ + ((channel + c2_) * _e189)) : 0u];
    uint own3_ = thread_ % 256u;
    uint c3_ = (thread_ / 256u) + 3u;
    if (inside0_) {
        uint _e206 = params.channels;
        local_6 = (channel + c3_) < _e206;
    } else {
        local_6 = false;
    }
    bool there3_ = local_6;
    uint _e215 = params.x_channel;
    float value3_ = x[there3_ ? (from0_ + ((channel + c3_) * _e215)) : 0u];
    tile.inner[(own0_ * 5u) + c0_] = there0_ ? static_cast<float>(value0_) : 0.0;
    tile.inner[(own1_ * 5u) + c1_] = there1_ ? static_cast<float>(value1_) : 0.0;
    tile.inner[(own2_ * 5u) + c2_] = there2_ ? static_cast<float>(value2_) : 0.0;
    tile.inner[(own3_ * 5u) + c3_] = there3_ ? static_cast<float>(value3_) : 0.0;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    {
        uint number = thread_ + 0u;
        uint quad_ = number % 1u;
        uint own = number / 1u;
        if ((first + own) < count) {
            uint _e268 = params.quads;
            local_7 = ((channel / 4u) + quad_) < _e268;
        } else {
            local_7 = false;
        }
        bool _e271 = local_7;
        if (_e271) {
            uint at = (own * 5u) + (quad_ * 4u);
            float _e279 = tile.inner[at];
            float _e284 = tile.inner[at + 1u];
            float _e289 = tile.inner[at + 2u];
            float _e294 = tile.inner[at + 3u];
            metal::float4 found = metal::float4(_e279, _e284, _e289, _e294);
            uint _e302 = params.quads;
            spread[(((((image * count) + first) + own) * _e302) + (channel / 4u)) + quad_] = static_cast<metal::half4>(found);
            return;
        } else {
            return;
        }
    }
}
