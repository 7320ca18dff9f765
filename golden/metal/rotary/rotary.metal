// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
    uint size3;
};

typedef float type_1[1];
struct Params {
    metal::uint4 lengths;
    metal::uint4 x_steps;
    metal::uint4 y_steps;
    metal::uint4 cos_steps;
    metal::uint4 sin_steps;
    metal::uint4 other_steps;
    uint pairs;
    uint apart;
    uint along;
    uint cos_apart;
    uint sin_apart;
    uint rows;
    uint count;
    uint heads;
};

float read(
    uint at,
    device type_1 const& x,
    constant _mslBufferSizes& _buffer_sizes
) {
    float _e3 = x[metal::min(unsigned(at), (_buffer_sizes.size0 - 0 - 4) / 4)];
    return static_cast<float>(_e3);
}

void write(
    uint at_1,
    float value,
    device type_1& y,
    constant _mslBufferSizes& _buffer_sizes
) {
    y[metal::min(unsigned(at_1), (_buffer_sizes.size3 - 0 - 4) / 4)] = static_cast<float>(value);
    return;
}
uint naga_mod(uint lhs, uint rhs) {
    return lhs % metal::select(rhs, 1u, rhs == 0u);
}

uint naga_div(uint lhs, uint rhs) {
    return lhs / metal::select(rhs, 1u, rhs == 0u);
}


struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& x [[buffer(0)]]
, device type_1 const& cosines [[buffer(1)]]
, device type_1 const& sines [[buffer(2)]]
, device type_1& y [[buffer(3)]]
, constant Params& params [[buffer(4)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(5)]]
) {
    uint number = ((group.x + (group.y * groups.x)) * 64u) + lane;
    uint _e13 = params.count;
    if (number >= _e13) {
        return;
    }
    uint _e18 = params.lengths.w;
    uint unit = naga_mod(number, _e18);
    uint _e23 = params.lengths.w;
    uint _e28 = params.lengths.z;
    uint row = naga_mod(naga_div(number, _e23), _e28);
    uint _e33 = params.lengths.w;
    uint _e37 = params.lengths.z;
    uint _e43 = params.lengths.y;
    uint own = naga_mod(naga_div(number, _e33 * _e37), _e43);
    uint _e48 = params.lengths.w;
    uint _e52 = params.lengths.z;
    uint _e57 = params.lengths.y;
    uint b = naga_div(number, (_e48 * _e52) * _e57);
    metal::uint4 x_steps = params.x_steps;
    metal::uint4 y_steps = params.y_steps;
    uint from_vector = ((b * x_steps.x) + (own * x_steps.y)) + (row * x_steps.z);
    uint to_vector = ((b * y_steps.x) + (own * y_steps.y)) + (row * y_steps.z);
    uint _e84 = params.pairs;
    if (unit >= _e84) {
        uint _e88 = params.pairs;
        uint i = unit + _e88;
        float _e93 = read(from_vector + (i * x_steps.w), x, _buffer_sizes);
        write(to_vector + (i * y_steps.w), _e93, y, _buffer_sizes);
        return;
    }
    uint _e100 = params.cos_steps.x;
    uint _e105 = params.cos_steps.y;
    uint _e111 = params.cos_steps.z;
    uint _e117 = params.cos_steps.w;
    uint at_cos = (((b * _e100) + (own * _e105)) + (row * _e111)) + (unit * _e117);
    uint _e123 = params.sin_steps.x;
    uint _e128 = params.sin_steps.y;
    uint _e134 = params.sin_steps.z;
    uint _e140 = params.sin_steps.w;
    uint at_sin = (((b * _e123) + (own * _e128)) + (row * _e134)) + (unit * _e140);
    uint _e145 = params.along;
    uint first = unit * _e145;
    uint _e149 = params.apart;
    uint second = first + _e149;
    float _e154 = read(from_vector + (first * x_steps.w), x, _buffer_sizes);
    float _e158 = read(from_vector + (second * x_steps.w), x, _buffer_sizes);
    float _e164 = cosines[metal::min(unsigned(at_cos), (_buffer_sizes.size1 - 0 - 4) / 4)];
    float _e169 = sines[metal::min(unsigned(at_sin), (_buffer_sizes.size2 - 0 - 4) / 4)];
    write(to_vector + (first * y_steps.w), (_e154 * static_cast<float>(_e164)) - (_e158 * static_cast<float>(_e169)), y, _buffer_sizes);
    uint _e179 = params.cos_apart;
    float _e182 = cosines[metal::min(unsigned(at_cos + _e179), (_buffer_sizes.size1 - 0 - 4) / 4)];
    uint _e188 = params.sin_apart;
    float _e191 = sines[metal::min(unsigned(at_sin + _e188), (_buffer_sizes.size2 - 0 - 4) / 4)];
    write(to_vector + (second * y_steps.w), (_e158 * static_cast<float>(_e182)) + (_e154 * static_cast<float>(_e191)), y, _buffer_sizes);
    return;
}
