// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef metal::float4 type_5[1];
struct type_6 {
    metal::uint4 inner[1];
};
struct Params {
    type_6 v;
};

metal::bool4 is_nan(
    metal::float4 v
) {
    return (as_type<metal::uint4>(v) & metal::uint4(2147483647u)) > metal::uint4(2139095040u);
}

metal::float4 chosen4_(
    metal::float4 r,
    metal::uint4 bits,
    metal::bool4 instead
) {
    return as_type<metal::float4>(metal::select(as_type<metal::uint4>(r), bits, instead));
}

metal::float4 kept_nan4_(
    metal::float4 r_1,
    metal::float4 x
) {
    metal::bool4 _e3 = is_nan(x);
    metal::float4 _e4 = chosen4_(r_1, as_type<metal::uint4>(x), _e3);
    return _e4;
}

metal::int4 naga_f2i32(metal::float4 value) {
    return static_cast<metal::int4>(metal::clamp(value, -2147483600.0, 2147483500.0));
}

metal::float4 exp_sum4_(
    metal::float4 x_1,
    metal::float4 rest
) {
    metal::float4 r_2 = {};
    metal::float4 q = metal::float4(0.001395049);
    metal::float4 near = metal::clamp(x_1, metal::float4(-104.0), metal::float4(89.0));
    metal::float4 n = metal::rint(near * 1.442695);
    r_2 = metal::fma(n, metal::float4(-0.69314575), near);
    metal::float4 _e16 = r_2;
    r_2 = metal::fma(n, metal::float4(-0.0000014286068), _e16) + rest;
    metal::float4 _e22 = q;
    metal::float4 _e23 = r_2;
    q = metal::fma(_e22, _e23, metal::float4(0.00836889));
    metal::float4 _e27 = q;
    metal::float4 _e28 = r_2;
    q = metal::fma(_e27, _e28, metal::float4(0.041666206));
    metal::float4 _e32 = q;
    metal::float4 _e33 = r_2;
    q = metal::fma(_e32, _e33, metal::float4(0.16666518));
    metal::float4 _e37 = q;
    metal::float4 _e38 = r_2;
    q = metal::fma(_e37, _e38, metal::float4(0.5));
    metal::float4 _e42 = q;
    metal::float4 _e43 = r_2;
    metal::float4 _e47 = r_2;
    metal::float4 e = metal::fma(metal::fma(_e42, _e43, metal::float4(1.0)), _e47, metal::float4(1.0));
    metal::int4 half_ = naga_f2i32(n) >> metal::uint4(1u);
    metal::float4 first = as_type<metal::float4>(as_type<metal::int4>(as_type<metal::uint4>(half_) + as_type<metal::uint4>(metal::int4(127))) << metal::uint4(23u));
    metal::float4 second = as_type<metal::float4>(as_type<metal::int4>(as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(naga_f2i32(n)) - as_type<metal::uint4>(half_))) + as_type<metal::uint4>(metal::int4(127))) << metal::uint4(23u));
    metal::float4 _e73 = kept_nan4_((e * first) * second, x_1);
    return _e73;
}

metal::float4 exp4_(
    metal::float4 x_2
) {
    metal::float4 _e3 = exp_sum4_(x_2, metal::float4(0.0));
    return _e3;
}

float larger(
    float a,
    float b
) {
    return metal::max(a, b);
}

float sum(
    float a_1,
    float b_1
) {
    return a_1 + b_1;
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_5 const& x_3 [[buffer(0)]]
, device type_5& y [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    float m = {};
    uint j = {};
    float s = 0.0;
    uint j_1 = {};
    uint j_2 = {};
    uint t = lane % 1u;
    uint own = ((group.x + (group.y * groups.x)) * 256u) + (lane / 1u);
    uint _e19 = params.v.inner[0].x;
    bool inside = own < _e19;
    uint _e25 = params.v.inner[0].x;
    uint row = metal::min(own, _e25 - 1u);
    uint _e33 = params.v.inner[0].z;
    uint _e39 = params.v.inner[0].y;
    uint _e45 = params.v.inner[0].z;
    uint _e51 = params.v.inner[0].z;
    uint base = (((row / _e33) * _e39) * _e45) + (row % _e51);
    m = as_type<float>(4286578688u);
    j = t;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e83 = j;
            j = _e83 + 1u;
        }
        loop_init = false;
        uint _e58 = j;
        uint _e63 = params.v.inner[0].y;
        if (_e58 < _e63) {
        } else {
            break;
        }
        {
            uint _e65 = j;
            uint _e70 = params.v.inner[0].z;
            uint place = base + (_e65 * _e70);
            float _e73 = m;
            float _e81 = x_3[place / 4u][place % 4u];
            m = metal::max(_e73, _e81);
        }
    }
    j_1 = t;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e119 = j_1;
            j_1 = _e119 + 1u;
        }
        loop_init_1 = false;
        uint _e89 = j_1;
        uint _e94 = params.v.inner[0].y;
        if (_e89 < _e94) {
        } else {
            break;
        }
        {
            uint _e96 = j_1;
            uint _e101 = params.v.inner[0].z;
            uint place_1 = base + (_e96 * _e101);
            float _e104 = s;
            float _e112 = x_3[place_1 / 4u][place_1 % 4u];
            float _e113 = m;
            metal::float4 _e116 = exp4_(metal::float4(_e112 - _e113));
            s = _e104 + _e116.x;
        }
    }
    float _e122 = s;
    float by = 1.0 / _e122;
    if (inside) {
        j_2 = t;
        bool loop_init_2 = true;
        while(true) {
            if (!loop_init_2) {
                uint _e162 = j_2;
                j_2 = _e162 + 1u;
            }
            loop_init_2 = false;
            uint _e126 = j_2;
            uint _e131 = params.v.inner[0].y;
            if (_e126 < _e131) {
            } else {
                break;
            }
            {
                uint _e133 = j_2;
                uint _e138 = params.v.inner[0].z;
                uint place_2 = base + (_e133 * _e138);
                float _e155 = x_3[place_2 / 4u][place_2 % 4u];
                float _e156 = m;
                metal::float4 _e159 = exp4_(metal::float4(_e155 - _e156));
                y[place_2 / 4u][place_2 % 4u] = _e159.x * by;
            }
        }
        return;
    } else {
        return;
    }
}
