// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef metal::half4 type_1[1];
struct type_4 {
    metal::uint4 inner[2];
};
struct Params {
    type_4 v;
};

bool nan(
    float v
) {
    return (as_type<uint>(v) & 2147483647u) > 2139095040u;
}

uint base(
    uint number,
    constant Params& params
) {
    uint r = {};
    uint at = 0u;
    r = number;
    uint _e4 = at;
    uint _e5 = r;
    uint _e10 = params.v.inner[1].y;
    at = _e4 + (_e5 * _e10);
    uint _e13 = at;
    return _e13;
}

uint along(
    uint number_1,
    constant Params& params
) {
    uint r_1 = {};
    uint at_1 = 0u;
    r_1 = number_1;
    uint _e4 = at_1;
    uint _e5 = r_1;
    uint _e10 = params.v.inner[1].z;
    at_1 = _e4 + (_e5 * _e10);
    uint _e13 = at_1;
    return _e13;
}

float join(
    float a_1,
    float b
) {
    return a_1 + b;
}

uint naga_div(uint lhs, uint rhs) {
    return lhs / metal::select(rhs, 1u, rhs == 0u);
}

uint naga_mod(uint lhs, uint rhs) {
    return lhs % metal::select(rhs, 1u, rhs == 0u);
}

float folded(
    uint row,
    uint t,
    device type_1 const& source,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    float a_2 = 0.0;
    uint j = {};
    uint _e6 = params.v.inner[0].w;
    uint _e8 = base(naga_div(row, _e6), params);
    uint _e13 = params.v.inner[0].w;
    uint _e19 = params.v.inner[0].z;
    uint first = naga_mod(row, _e13) * _e19;
    uint _e25 = params.v.inner[0].z;
    uint _e31 = params.v.inner[0].y;
    uint end = metal::min(first + _e25, _e31);
    j = first + t;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e54 = j;
            j = _e54 + 1u;
        }
        loop_init = false;
        uint _e37 = j;
        if (_e37 < end) {
        } else {
            break;
        }
        {
            uint _e39 = j;
            uint _e40 = along(_e39, params);
            uint place = _e8 + _e40;
            half _e49 = source[metal::min(unsigned(naga_div(place, 4u)), (_buffer_sizes.size0 - 0 - 8) / 8)][metal::min(unsigned(naga_mod(place, 4u)), 3u)];
            float x = static_cast<float>(_e49);
            float e = metal::abs(x);
            float _e52 = a_2;
            float _e53 = join(_e52, e);
            a_2 = _e53;
        }
    }
    float _e57 = a_2;
    return _e57;
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& source [[buffer(0)]]
, device type_1& y [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    float a = {};
    float result = float {};
    bool local = {};
    uint t_1 = naga_mod(lane, 1u);
    uint own = ((group.x + (group.y * groups.x)) * 256u) + naga_div(lane, 1u);
    uint _e19 = params.v.inner[0].x;
    bool inside = own < _e19;
    uint _e25 = params.v.inner[0].x;
    uint row_1 = metal::min(own, _e25 - 1u);
    float _e29 = folded(row_1, t_1, source, params, _buffer_sizes);
    a = _e29;
    {
        float a_3 = a;
        uint count = params.v.inner[1].x;
        result = a_3;
    }
    if (inside) {
        local = t_1 == 0u;
    } else {
        local = false;
    }
    bool _e44 = local;
    if (_e44) {
        float _e52 = result;
        y[metal::min(unsigned(naga_div(row_1, 4u)), (_buffer_sizes.size1 - 0 - 8) / 8)][metal::min(unsigned(naga_mod(row_1, 4u)), 3u)] = static_cast<half>(_e52);
        return;
    } else {
        return;
    }
}
