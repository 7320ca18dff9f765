// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
    uint size3;
    uint size4;
};

typedef metal::uint2 type_2[1];
typedef metal::float4 type_4[1];
typedef metal::uint4 type_6[1];
typedef uint type_7[1];
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
, device type_2 const& high [[buffer(3)]]
, device type_7 const& factors [[buffer(4)]]
, constant Params& params [[buffer(5)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(6)]]
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
                if (_e46 < 32u) {
                } else {
                    break;
                }
                {
                    uint _e51 = k;
                    put(at_1, (unit * 32u) + _e51, metal::float4 {}, y, params, _buffer_sizes);
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
    uint _e87 = params.units;
    metal::uint2 h = high[(row * _e87) + unit];
    uint _e94 = params.factor_words;
    uint start = row * _e94;
    uint block0_ = (unit * 2u) + 0u;
    uint _e105 = factors[start + (block0_ >> 2u)];
    uint _e109 = params.wholes;
    uint _e115 = factors[(start + _e109) + (block0_ >> 5u)];
    metal::uint2 words0_ = metal::uint2(_e105, _e115);
    metal::float2 f0_ = metal::float2(static_cast<float>(as_type<int>(words0_.x << (24u - ((block0_ & 3u) * 8u))) >> 24u) * float2(as_type<half2>((words0_.y >> (((block0_ >> 4u) & 1u) * 16u)))).x, 0.0);
    uint block1_ = (unit * 2u) + 1u;
    uint _e151 = factors[start + (block1_ >> 2u)];
    uint _e155 = params.wholes;
    uint _e161 = factors[(start + _e155) + (block1_ >> 5u)];
    metal::uint2 words1_ = metal::uint2(_e151, _e161);
    metal::float2 f1_ = metal::float2(static_cast<float>(as_type<int>(words1_.x << (24u - ((block1_ & 3u) * 8u))) >> 24u) * float2(as_type<half2>((words1_.y >> (((block1_ >> 4u) & 1u) * 16u)))).x, 0.0);
    put(at_1, (unit * 32u) + 0u, ((as_type<metal::float4>(((metal::uint4(((q.x >> 0u) & 252645135u) | (((h.x >> 0u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * metal::float4(1.0, 0.00390625, 1.0, 0.00390625)) * f0_.x, y, params, _buffer_sizes);
    put(at_1, (unit * 32u) + 4u, ((as_type<metal::float4>(((metal::uint4(((q.x >> 4u) & 252645135u) | (((h.x >> 2u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * metal::float4(1.0, 0.00390625, 1.0, 0.00390625)) * f0_.x, y, params, _buffer_sizes);
    put(at_1, (unit * 32u) + 8u, ((as_type<metal::float4>(((metal::uint4(((q.y >> 0u) & 252645135u) | (((h.x >> 4u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * metal::float4(1.0, 0.00390625, 1.0, 0.00390625)) * f0_.x, y, params, _buffer_sizes);
    put(at_1, (unit * 32u) + 12u, ((as_type<metal::float4>(((metal::uint4(((q.y >> 4u) & 252645135u) | (((h.x >> 6u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * metal::float4(1.0, 0.00390625, 1.0, 0.00390625)) * f0_.x, y, params, _buffer_sizes);
    put(at_1, (unit * 32u) + 16u, ((as_type<metal::float4>(((metal::uint4(((q.z >> 0u) & 252645135u) | (((h.y >> 0u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * metal::float4(1.0, 0.00390625, 1.0, 0.00390625)) * f1_.x, y, params, _buffer_sizes);
    put(at_1, (unit * 32u) + 20u, ((as_type<metal::float4>(((metal::uint4(((q.z >> 4u) & 252645135u) | (((h.y >> 2u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * metal::float4(1.0, 0.00390625, 1.0, 0.00390625)) * f1_.x, y, params, _buffer_sizes);
    put(at_1, (unit * 32u) + 24u, ((as_type<metal::float4>(((metal::uint4(((q.w >> 0u) & 252645135u) | (((h.y >> 4u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * metal::float4(1.0, 0.00390625, 1.0, 0.00390625)) * f1_.x, y, params, _buffer_sizes);
    put(at_1, (unit * 32u) + 28u, ((as_type<metal::float4>(((metal::uint4(((q.w >> 4u) & 252645135u) | (((h.y >> 6u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0)) * metal::float4(1.0, 0.00390625, 1.0, 0.00390625)) * f1_.x, y, params, _buffer_sizes);
    return;
}
