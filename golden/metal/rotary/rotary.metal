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
    uint pairs;
    uint apart;
    uint along;
    uint cos_apart;
    uint sin_apart;
    uint rows;
    uint count;
    char _pad12[4];
};
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
    uint h = naga_mod(naga_div(number, _e33 * _e37), _e43);
    uint _e48 = params.lengths.w;
    uint _e52 = params.lengths.z;
    uint _e57 = params.lengths.y;
    uint b = naga_div(number, (_e48 * _e52) * _e57);
    uint _e63 = params.x_steps.x;
    uint _e68 = params.x_steps.y;
    uint _e74 = params.x_steps.z;
    uint from_vector = ((b * _e63) + (h * _e68)) + (row * _e74);
    uint _e80 = params.y_steps.x;
    uint _e85 = params.y_steps.y;
    uint _e91 = params.y_steps.z;
    uint to_vector = ((b * _e80) + (h * _e85)) + (row * _e91);
    uint _e96 = params.pairs;
    if (unit >= _e96) {
        uint _e100 = params.pairs;
        uint i = unit + _e100;
        uint _e106 = params.y_steps.w;
        uint _e114 = params.x_steps.w;
        float _e118 = x[metal::min(unsigned(from_vector + (i * _e114)), (_buffer_sizes.size0 - 0 - 4) / 4)];
        y[metal::min(unsigned(to_vector + (i * _e106)), (_buffer_sizes.size3 - 0 - 4) / 4)] = static_cast<float>(_e118);
        return;
    }
    uint _e123 = params.cos_steps.x;
    uint _e128 = params.cos_steps.y;
    uint _e134 = params.cos_steps.z;
    uint _e140 = params.cos_steps.w;
    uint at_cos = (((b * _e123) + (h * _e128)) + (row * _e134)) + (unit * _e140);
    uint _e146 = params.sin_steps.x;
    uint _e151 = params.sin_steps.y;
    uint _e157 = params.sin_steps.z;
    uint _e163 = params.sin_steps.w;
    uint at_sin = (((b * _e146) + (h * _e151)) + (row * _e157)) + (unit * _e163);
    uint _e168 = params.along;
    uint first = unit * _e168;
    uint _e172 = params.apart;
    uint second = first + _e172;
    uint _e178 = params.x_steps.w;
    float _e182 = x[metal::min(unsigned(from_vector + (first * _e178)), (_buffer_sizes.size0 - 0 - 4) / 4)];
    float a = static_cast<float>(_e182);
    uint _e188 = params.x_steps.w;
    float _e192 = x[metal::min(unsigned(from_vector + (second * _e188)), (_buffer_sizes.size0 - 0 - 4) / 4)];
    float c = static_cast<float>(_e192);
    uint _e198 = params.y_steps.w;
    float _e204 = cosines[metal::min(unsigned(at_cos), (_buffer_sizes.size1 - 0 - 4) / 4)];
    float _e209 = sines[metal::min(unsigned(at_sin), (_buffer_sizes.size2 - 0 - 4) / 4)];
    y[metal::min(unsigned(to_vector + (first * _e198)), (_buffer_sizes.size3 - 0 - 4) / 4)] = static_cast<float>((a * static_cast<float>(_e204)) - (c * static_cast<float>(_e209)));
    uint _e218 = params.y_steps.w;
    uint _e225 = params.cos_apart;
    float _e228 = cosines[metal::min(unsigned(at_cos + _e225), (_buffer_sizes.size1 - 0 - 4) / 4)];
    uint _e234 = params.sin_apart;
    float _e237 = sines[metal::min(unsigned(at_sin + _e234), (_buffer_sizes.size2 - 0 - 4) / 4)];
    y[metal::min(unsigned(to_vector + (second * _e218)), (_buffer_sizes.size3 - 0 - 4) / 4)] = static_cast<float>((c * static_cast<float>(_e228)) + (a * static_cast<float>(_e237)));
    return;
}
