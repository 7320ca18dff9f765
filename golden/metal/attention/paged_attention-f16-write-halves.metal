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
    uint size5;
    uint size6;
};

typedef float type_1[1];
typedef metal::uint2 type_4[1];
typedef half type_6[1];
struct Params {
    uint rows;
    uint sequences;
    uint most;
    uint heads;
    uint key_width;
    uint value_width;
    uint block;
    uint count;
};
constant uint THREADS = 64u;

void put_keys(
    uint at,
    float x,
    device type_6& keys,
    constant _mslBufferSizes& _buffer_sizes
) {
    keys[metal::min(unsigned(at), (_buffer_sizes.size5 - 0 - 2) / 2)] = static_cast<half>(x);
    return;
}

void put_values(
    uint at_1,
    float x_1,
    device type_6& values,
    constant _mslBufferSizes& _buffer_sizes
) {
    values[metal::min(unsigned(at_1), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_1);
    return;
}
uint naga_div(uint lhs, uint rhs) {
    return lhs / metal::select(rhs, 1u, rhs == 0u);
}

uint naga_mod(uint lhs, uint rhs) {
    return lhs % metal::select(rhs, 1u, rhs == 0u);
}


struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& k [[buffer(0)]]
, device type_1 const& v [[buffer(1)]]
, device type_4 const& starts [[buffer(2)]]
, device type_4 const& lengths [[buffer(3)]]
, device type_4 const& blocks [[buffer(4)]]
, device type_6& keys [[buffer(5)]]
, device type_6& values [[buffer(6)]]
, constant Params& params [[buffer(7)]]
, threadgroup uint& sequence
, constant _mslBufferSizes& _buffer_sizes [[buffer(8)]]
) {
    uint b = {};
    bool local = {};
    uint i = {};
    uint i_1 = {};
    uint number = group.x + (group.y * groups.x);
    uint _e10 = params.rows;
    uint _e13 = params.heads;
    if (number >= (_e10 * _e13)) {
        return;
    }
    uint _e18 = params.heads;
    uint row = naga_div(number, _e18);
    uint _e22 = params.heads;
    uint head = naga_mod(number, _e22);
    if (lane == 0u) {
        uint _e29 = params.sequences;
        sequence = _e29;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    b = lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e56 = b;
            b = _e56 + THREADS;
        }
        loop_init = false;
        uint _e31 = b;
        uint _e34 = params.sequences;
        if (_e31 < _e34) {
        } else {
            break;
        }
        {
            uint _e37 = b;
            uint _e40 = starts[metal::min(unsigned(_e37), (_buffer_sizes.size2 - 0 - 8) / 8)].x;
            if (_e40 <= row) {
                uint _e45 = b;
                uint _e50 = starts[metal::min(unsigned(_e45 + 1u), (_buffer_sizes.size2 - 0 - 8) / 8)].x;
                local = row < _e50;
            } else {
                local = false;
            }
            bool _e53 = local;
            if (_e53) {
                uint _e55 = b;
                sequence = _e55;
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint unnamed = sequence;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint _e63 = params.sequences;
    if (unnamed >= _e63) {
        return;
    }
    uint _e68 = lengths[metal::min(unsigned(unnamed), (_buffer_sizes.size3 - 0 - 8) / 8)].x;
    uint _e74 = starts[metal::min(unsigned(unnamed + 1u), (_buffer_sizes.size2 - 0 - 8) / 8)].x;
    uint position = _e68 - (_e74 - row);
    uint _e79 = params.block;
    uint at_2 = naga_mod(position, _e79);
    uint _e84 = params.most;
    uint _e88 = params.block;
    uint _e92 = params.most;
    uint block = blocks[metal::min(unsigned((unnamed * _e84) + metal::min(naga_div(position, _e88), _e92 - 1u)), (_buffer_sizes.size4 - 0 - 8) / 8)].x;
    uint _e102 = params.count;
    if (block >= _e102) {
        return;
    }
    uint _e106 = params.heads;
    uint tile = (block * _e106) + head;
    uint _e111 = params.key_width;
    uint from_key = number * _e111;
    uint _e115 = params.value_width;
    uint from_value = number * _e115;
    uint _e119 = params.key_width;
    uint _e123 = params.block;
    uint to_key = ((tile * _e119) * _e123) + at_2;
    uint _e128 = params.block;
    uint _e133 = params.value_width;
    uint to_value = ((tile * _e128) + at_2) * _e133;
    i = lane;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e153 = i;
            i = _e153 + THREADS;
        }
        loop_init_1 = false;
        uint _e136 = i;
        uint _e139 = params.key_width;
        if (_e136 < _e139) {
        } else {
            break;
        }
        {
            uint _e141 = i;
            uint _e144 = params.block;
            uint _e148 = i;
            float _e151 = k[metal::min(unsigned(from_key + _e148), (_buffer_sizes.size0 - 0 - 4) / 4)];
            put_keys(to_key + (_e141 * _e144), static_cast<float>(_e151), keys, _buffer_sizes);
        }
    }
    i_1 = lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e170 = i_1;
            i_1 = _e170 + THREADS;
        }
        loop_init_2 = false;
        uint _e157 = i_1;
        uint _e160 = params.value_width;
        if (_e157 < _e160) {
        } else {
            break;
        }
        {
            uint _e162 = i_1;
            uint _e165 = i_1;
            float _e168 = v[metal::min(unsigned(from_value + _e165), (_buffer_sizes.size1 - 0 - 4) / 4)];
            put_values(to_value + _e162, static_cast<float>(_e168), values, _buffer_sizes);
        }
    }
    return;
}
