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
    uint size7;
    uint size8;
};

typedef float type_1[1];
typedef metal::uint2 type_4[1];
typedef metal::atomic_uint type_6[1];
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
struct type_8 {
    metal::float2 inner[64];
};
constant uint THREADS = 64u;

int naga_f2i32(float value) {
    return static_cast<int>(metal::clamp(value, -2147483600.0, 2147483500.0));
}

uint packed(
    float x
) {
    return static_cast<uint>(naga_f2i32(x)) & 255u;
}

uint naga_mod(uint lhs, uint rhs) {
    return lhs % metal::select(rhs, 1u, rhs == 0u);
}

uint naga_div(uint lhs, uint rhs) {
    return lhs / metal::select(rhs, 1u, rhs == 0u);
}

void put_keys(
    uint at,
    float x_1,
    device type_6& keys,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint shift = naga_mod(at, 4u) * 8u;
    uint _e13 = metal::atomic_fetch_and_explicit(&keys[metal::min(unsigned(naga_div(at, 4u)), (_buffer_sizes.size5 - 0 - 4) / 4)], ~((255u << shift)), metal::memory_order_relaxed);
    uint _e18 = packed(x_1);
    uint _e20 = metal::atomic_fetch_or_explicit(&keys[metal::min(unsigned(naga_div(at, 4u)), (_buffer_sizes.size5 - 0 - 4) / 4)], _e18 << shift, metal::memory_order_relaxed);
    return;
}

void put_values(
    uint at_1,
    float x_2,
    device type_6& values,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint shift_1 = naga_mod(at_1, 4u) * 8u;
    uint _e13 = metal::atomic_fetch_and_explicit(&values[metal::min(unsigned(naga_div(at_1, 4u)), (_buffer_sizes.size6 - 0 - 4) / 4)], ~((255u << shift_1)), metal::memory_order_relaxed);
    uint _e18 = packed(x_2);
    uint _e20 = metal::atomic_fetch_or_explicit(&values[metal::min(unsigned(naga_div(at_1, 4u)), (_buffer_sizes.size6 - 0 - 4) / 4)], _e18 << shift_1, metal::memory_order_relaxed);
    return;
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
, device type_1& key_scales [[buffer(7)]]
, device type_1& value_scales [[buffer(8)]]
, constant Params& params [[buffer(9)]]
, threadgroup uint& sequence
, threadgroup type_8& greatest
, constant _mslBufferSizes& _buffer_sizes [[buffer(10)]]
) {
    uint b = {};
    bool local = {};
    metal::float2 most = metal::float2(0.0);
    uint i = {};
    uint i_1 = {};
    uint half_ = 32u;
    uint i_2 = {};
    uint i_3 = {};
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
            uint _e155 = i;
            i = _e155 + THREADS;
        }
        loop_init_1 = false;
        uint _e139 = i;
        uint _e142 = params.key_width;
        if (_e139 < _e142) {
        } else {
            break;
        }
        {
            float _e146 = most.x;
            uint _e148 = i;
            float _e151 = k[metal::min(unsigned(from_key + _e148), (_buffer_sizes.size0 - 0 - 4) / 4)];
            most.x = metal::max(_e146, metal::abs(static_cast<float>(_e151)));
        }
    }
    i_1 = lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e175 = i_1;
            i_1 = _e175 + THREADS;
        }
        loop_init_2 = false;
        uint _e159 = i_1;
        uint _e162 = params.value_width;
        if (_e159 < _e162) {
        } else {
            break;
        }
        {
            float _e166 = most.y;
            uint _e168 = i_1;
            float _e171 = v[metal::min(unsigned(from_value + _e168), (_buffer_sizes.size1 - 0 - 4) / 4)];
            most.y = metal::max(_e166, metal::abs(static_cast<float>(_e171)));
        }
    }
    metal::float2 _e180 = most;
    greatest.inner[metal::min(unsigned(lane), 63u)] = _e180;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e199 = half_;
            half_ = naga_div(_e199, 2u);
        }
        loop_init_3 = false;
        uint _e183 = half_;
        if (_e183 > 0u) {
        } else {
            break;
        }
        {
            uint _e186 = half_;
            if (lane < _e186) {
                metal::float2 _e192 = greatest.inner[metal::min(unsigned(lane), 63u)];
                uint _e194 = half_;
                metal::float2 _e197 = greatest.inner[metal::min(unsigned(lane + _e194), 63u)];
                greatest.inner[metal::min(unsigned(lane), 63u)] = metal::max(_e192, _e197);
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    metal::float2 _e204 = greatest.inner[0];
    metal::float2 scales = _e204 / metal::float2(127.0);
    if (lane == 0u) {
        uint _e213 = params.block;
        key_scales[metal::min(unsigned((tile * _e213) + at_2), (_buffer_sizes.size7 - 0 - 4) / 4)] = scales.x;
        uint _e221 = params.block;
        value_scales[metal::min(unsigned((tile * _e221) + at_2), (_buffer_sizes.size8 - 0 - 4) / 4)] = scales.y;
    }
    i_2 = lane;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e255 = i_2;
            i_2 = _e255 + THREADS;
        }
        loop_init_4 = false;
        uint _e227 = i_2;
        uint _e230 = params.key_width;
        if (_e227 < _e230) {
        } else {
            break;
        }
        {
            uint _e233 = i_2;
            float _e236 = k[metal::min(unsigned(from_key + _e233), (_buffer_sizes.size0 - 0 - 4) / 4)];
            float x_3 = (scales.x > 0.0) ? (static_cast<float>(_e236) / scales.x) : 0.0;
            uint _e245 = i_2;
            uint _e248 = params.block;
            put_keys(to_key + (_e245 * _e248), metal::clamp(metal::rint(x_3), -127.0, 127.0), keys, _buffer_sizes);
        }
    }
    i_3 = lane;
    bool loop_init_5 = true;
    while(true) {
        if (!loop_init_5) {
            uint _e283 = i_3;
            i_3 = _e283 + THREADS;
        }
        loop_init_5 = false;
        uint _e259 = i_3;
        uint _e262 = params.value_width;
        if (_e259 < _e262) {
        } else {
            break;
        }
        {
            uint _e265 = i_3;
            float _e268 = v[metal::min(unsigned(from_value + _e265), (_buffer_sizes.size1 - 0 - 4) / 4)];
            float x_4 = (scales.y > 0.0) ? (static_cast<float>(_e268) / scales.y) : 0.0;
            uint _e277 = i_3;
            put_values(to_value + _e277, metal::clamp(metal::rint(x_4), -127.0, 127.0), values, _buffer_sizes);
        }
    }
    return;
}
