// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

struct Params {
    uint elements;
    uint quads;
    uint groups;
};
typedef metal::float4 type_2[1];
typedef metal::float2 type_4[1];
struct type_5 {
    metal::float2 inner[256];
};

metal::float2 meet(
    metal::float2 own_part,
    uint thread_1,
    threadgroup type_5& shared_parts
) {
    uint s = 128u;
    shared_parts.inner[thread_1] = own_part;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e28 = s;
            s = _e28 / 2u;
        }
        loop_init = false;
        uint _e6 = s;
        if (_e6 > 0u) {
        } else {
            break;
        }
        {
            uint _e9 = s;
            if (thread_1 < _e9) {
                uint _e12 = s;
                metal::float2 other = shared_parts.inner[thread_1 + _e12];
                metal::float2 mine = shared_parts.inner[thread_1];
                shared_parts.inner[thread_1] = metal::float2(metal::min(mine.x, other.x), metal::max(mine.y, other.y));
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    metal::float2 _e33 = shared_parts.inner[0];
    return _e33;
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint thread_ [[thread_index_in_threadgroup]]
, device type_2 const& x [[buffer(0)]]
, device type_4& parts [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, threadgroup type_5& shared_parts
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    metal::float4 low = metal::float4 {};
    metal::float4 high = metal::float4 {};
    uint q = {};
    bool local = {};
    uint id = group.x + (group.y * groups.x);
    q = (id * 256u) + thread_;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e46 = q;
            uint _e49 = params.groups;
            q = _e46 + (_e49 * 256u);
        }
        loop_init_1 = false;
        uint _e16 = q;
        uint _e19 = params.quads;
        if (_e16 < _e19) {
        } else {
            break;
        }
        {
            uint _e23 = params.elements;
            uint _e25 = q;
            uint left = _e23 - (4u * _e25);
            uint _e30 = q;
            metal::float4 _e32 = x[_e30];
            metal::float4 v = metal::select(metal::float4 {}, static_cast<metal::float4>(_e32), metal::uint4(0u, 1u, 2u, 3u) < metal::uint4(left));
            metal::float4 _e42 = low;
            low = metal::min(_e42, v);
            metal::float4 _e44 = high;
            high = metal::max(_e44, v);
        }
    }
    float _e54 = low.x;
    float _e56 = low.y;
    float _e59 = low.z;
    float _e61 = low.w;
    float _e65 = high.x;
    float _e67 = high.y;
    float _e70 = high.z;
    float _e72 = high.w;
    metal::float2 mine_1 = metal::float2(metal::min(metal::min(_e54, _e56), metal::min(_e59, _e61)), metal::max(metal::max(_e65, _e67), metal::max(_e70, _e72)));
    metal::float2 _e76 = meet(mine_1, thread_, shared_parts);
    if (thread_ == 0u) {
        uint _e83 = params.groups;
        local = id < _e83;
    } else {
        local = false;
    }
    bool _e86 = local;
    if (_e86) {
        parts[id] = _e76;
        return;
    } else {
        return;
    }
}
