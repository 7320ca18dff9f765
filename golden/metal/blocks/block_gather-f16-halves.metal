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
typedef metal::uint4 type_6[1];
struct Params {
    uint units;
    uint columns;
    uint count;
    uint factor_words;
    uint wholes;
    uint first;
    uint rows;
    uint all;
};

void put(
    uint at,
    uint k_1,
    metal::float4 numbers,
    device type_4& y,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.columns;
    if (k_1 < _e5) {
        uint _e10 = params.columns;
        y[((at * _e10) + k_1) >> 2u] = static_cast<metal::float4>(numbers);
        return;
    } else {
        return;
    }
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint local [[thread_index_in_threadgroup]]
, device type_2 const& indices [[buffer(0)]]
, device type_4& y [[buffer(1)]]
, device type_6 const& low [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    bool local_1 = {};
    uint k = 0u;
    bool local_2 = {};
    uint number = ((group.x + (group.y * groups.x)) * 64u) + local;
    uint _e13 = params.units;
    uint at_1 = number / _e13;
    uint _e17 = params.units;
    uint unit = number % _e17;
    uint _e21 = params.count;
    if (at_1 >= _e21) {
        return;
    }
    metal::uint2 index = indices[at_1];
    if (!((index.y != 0u))) {
        uint _e35 = params.all;
        local_1 = index.x >= _e35;
    } else {
        local_1 = true;
    }
    bool _e38 = local_1;
    if (_e38) {
        uint _e41 = params.first;
        if (_e41 == 0u) {
            bool loop_init = true;
            while(true) {
                if (!loop_init) {
                    uint _e54 = k;
                    k = _e54 + 4u;
                }
                loop_init = false;
                uint _e46 = k;
                if (_e46 < 8u) {
                } else {
                    break;
                }
                {
                    uint _e51 = k;
                    put(at_1, (unit * 8u) + _e51, metal::float4 {}, y, params, _buffer_sizes);
                }
            }
        }
        return;
    }
    uint _e60 = params.first;
    uint row = index.x - _e60;
    uint _e65 = params.first;
    if (!((index.x < _e65))) {
        uint _e72 = params.rows;
        local_2 = row >= _e72;
    } else {
        local_2 = true;
    }
    bool _e75 = local_2;
    if (_e75) {
        return;
    }
    uint _e79 = params.units;
    metal::uint4 q = low[(row * _e79) + unit];
    put(at_1, (unit * 8u) + 0u, metal::float4(float2(as_type<half2>(q.x)), float2(as_type<half2>(q.y))), y, params, _buffer_sizes);
    put(at_1, (unit * 8u) + 4u, metal::float4(float2(as_type<half2>(q.z)), float2(as_type<half2>(q.w))), y, params, _buffer_sizes);
    return;
}
