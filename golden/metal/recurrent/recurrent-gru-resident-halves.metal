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
};

typedef metal::float4 type_6[1];
typedef float type_7[1];
struct Params {
    uint steps;
    uint first;
    uint end;
    uint turn;
    uint last;
    uint batch;
    uint hidden;
    uint stride;
};
struct type_9 {
    metal::float3 inner[512];
};
struct type_10 {
    metal::float4 inner[24];
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

metal::float4 with_sign(
    metal::float4 size,
    metal::float4 sign
) {
    return as_type<metal::float4>((as_type<metal::uint4>(size) & metal::uint4(2147483647u)) | (as_type<metal::uint4>(sign) & metal::uint4(2147483648u)));
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

metal::float4 tanh4_(
    metal::float4 x_3
) {
    metal::float4 p = metal::float4(0.002147537);
    metal::float4 a = metal::abs(x_3);
    metal::float4 u = metal::min(a * a, metal::float4(1.0));
    metal::float4 _e9 = p;
    p = metal::fma(_e9, u, metal::float4(-0.008182674));
    metal::float4 _e13 = p;
    p = metal::fma(_e13, u, metal::float4(0.021702968));
    metal::float4 _e17 = p;
    p = metal::fma(_e17, u, metal::float4(-0.053947203));
    metal::float4 _e21 = p;
    p = metal::fma(_e21, u, metal::float4(0.1333321));
    metal::float4 _e25 = p;
    p = metal::fma(_e25, u, metal::float4(-0.3333333));
    metal::float4 _e29 = p;
    metal::float4 near_1 = metal::fma(_e29 * u, a, a);
    metal::float4 _e37 = exp4_(2.0 * metal::min(a, metal::float4(15.0)));
    metal::float4 far = metal::float4(1.0) - (metal::float4(2.0) / (_e37 + metal::float4(1.0)));
    metal::float4 _e51 = with_sign(metal::select(near_1, far, a >= metal::float4(0.625)), x_3);
    metal::float4 _e52 = kept_nan4_(_e51, x_3);
    return _e52;
}

metal::float4 sigmoid4_(
    metal::float4 x_4
) {
    metal::float4 _e2 = exp4_(-(x_4));
    metal::float4 s_1 = metal::float4(1.0) / (metal::float4(1.0) + _e2);
    metal::float4 _e9 = kept_nan4_(s_1, x_4);
    return _e9;
}

metal::float4 limited(
    metal::float4 x_5
) {
    return x_5;
}

metal::float4 cell0_(
    metal::float4 x_6,
    uint direction
) {
    metal::float4 _e2 = sigmoid4_(x_6);
    return _e2;
}

metal::float4 cell1_(
    metal::float4 x_7,
    uint direction_1
) {
    metal::float4 _e2 = tanh4_(x_7);
    return _e2;
}

float given(
    uint direction_2,
    uint place,
    device type_7 const& inputs0_,
    device type_7 const& inputs1_,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (direction_2 == 1u) {
        float _e6 = inputs1_[place];
        return _e6;
    }
    float _e9 = inputs0_[place];
    return _e9;
}

float bias_of(
    uint direction_3,
    uint which,
    uint row,
    device type_7 const& biases,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e11 = params.hidden;
    float _e15 = biases[((((direction_3 * 2u) + which) * 3u) * _e11) + row];
    return static_cast<float>(_e15);
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(512)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint index [[thread_index_in_threadgroup]]
, device type_6& states [[buffer(0)]]
, device type_7 const& inputs0_ [[buffer(1)]]
, device type_7 const& inputs1_ [[buffer(2)]]
, device type_6 const& weights [[buffer(3)]]
, device type_7 const& biases [[buffer(4)]]
, device type_7& y [[buffer(5)]]
, constant Params& params [[buffer(6)]]
, threadgroup type_9& part
, threadgroup type_10& held
, constant _mslBufferSizes& _buffer_sizes [[buffer(7)]]
) {
    uint row_block = {};
    uint i = {};
    uint turn = {};
    uint block = {};
    bool local = {};
    bool local_1 = {};
    float x0_ = {};
    float x1_ = {};
    float x2_ = {};
    metal::float3 sum0_ = {};
    uint k = {};
    uint s = {};
    float h = {};
    float shown_h = {};
    uint i_1 = {};
    uint direction_4 = group.z;
    uint quads = 48u / 4u;
    uint t = index % 8u;
    uint slot = index / 8u;
    bool backward = direction_4 == 1u;
    uint own_unit = index % 64u;
    uint own_row = index / 64u;
    uint blocks = (48u + 63u) / 64u;
    uint _e24 = params.batch;
    uint row_blocks = (_e24 + 0u) / 1u;
    row_block = group.y;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e505 = row_block;
            row_block = _e505 + groups.y;
        }
        loop_init = false;
        uint _e31 = row_block;
        if (_e31 < row_blocks) {
        } else {
            break;
        }
        {
            uint _e33 = row_block;
            uint row0_ = _e33 * 1u;
            uint row_1 = row0_ + own_row;
            uint _e39 = params.batch;
            uint _e43 = params.batch;
            uint sequence = (direction_4 * _e39) + metal::min(row_1, _e43 - 1u);
            uint own = own_row * 48u;
            uint start0_ = 0u * quads;
            i = index;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e115 = i;
                    i = _e115 + 512u;
                }
                loop_init_1 = false;
                uint _e52 = i;
                if (_e52 < 48u) {
                } else {
                    break;
                }
                {
                    uint _e56 = params.batch;
                    uint _e58 = i;
                    uint _e63 = params.batch;
                    uint _e69 = i;
                    uint origin = (((direction_4 * _e56) + metal::min(row0_ + (_e58 / 48u), _e63 - 1u)) * 48u) + (_e69 % 48u);
                    uint _e74 = params.turn;
                    uint _e78 = i;
                    uint to = ((_e74 % 2u) * 48u) + _e78;
                    uint _e90 = params.turn;
                    uint _e95 = params.stride;
                    uint _e103 = params.turn;
                    uint _e108 = params.stride;
                    float _e114 = states[(((_e90 % 2u) * _e95) + origin) / 4u][(((_e103 % 2u) * _e108) + origin) % 4u];
                    held.inner[to / 4u][to % 4u] = _e114;
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e120 = params.turn;
            turn = _e120;
            bool loop_init_2 = true;
            while(true) {
                if (!loop_init_2) {
                    uint _e427 = turn;
                    turn = _e427 + 1u;
                }
                loop_init_2 = false;
                uint _e122 = turn;
                uint _e125 = params.last;
                if (_e122 < _e125) {
                } else {
                    break;
                }
                {
                    uint _e127 = turn;
                    uint before = (_e127 % 2u) * 48u;
                    uint after = 48u - before;
                    uint _e132 = turn;
                    uint _e135 = params.steps;
                    uint _e138 = turn;
                    uint at = backward ? ((_e135 - 1u) - _e138) : _e132;
                    uint _e141 = turn;
                    uint _e144 = params.first;
                    uint _e148 = params.end;
                    uint _e151 = turn;
                    uint local_2 = backward ? ((_e148 - 1u) - _e151) : (_e141 - _e144);
                    uint _e156 = params.end;
                    uint _e159 = params.first;
                    uint place_1 = (((row_1 * (_e156 - _e159)) + local_2) * 3u) * 48u;
                    block = group.x;
                    bool loop_init_3 = true;
                    while(true) {
                        if (!loop_init_3) {
                            uint _e423 = block;
                            block = _e423 + groups.x;
                        }
                        loop_init_3 = false;
                        uint _e168 = block;
                        if (_e168 < blocks) {
                        } else {
                            break;
                        }
                        {
                            uint _e170 = block;
                            uint unit = (_e170 * 64u) + own_unit;
                            if (own_row < 1u) {
                                local = unit < 48u;
                            } else {
                                local = false;
                            }
                            bool _e180 = local;
                            if (_e180) {
                                uint _e185 = params.batch;
                                local_1 = row_1 < _e185;
                            } else {
                                local_1 = false;
                            }
                            bool mine = local_1;
                            x0_ = 0.0;
                            x1_ = 0.0;
                            x2_ = 0.0;
                            if (mine) {
                                float _e199 = given(direction_4, (place_1 + (0u * 48u)) + unit, inputs0_, inputs1_, _buffer_sizes);
                                x0_ = _e199;
                                float _e200 = x0_;
                                float _e205 = bias_of(direction_4, 0u, (0u * 48u) + unit, biases, params, _buffer_sizes);
                                float _e210 = bias_of(direction_4, 1u, (0u * 48u) + unit, biases, params, _buffer_sizes);
                                x0_ = _e200 + (_e205 + _e210);
                                float _e217 = given(direction_4, (place_1 + (1u * 48u)) + unit, inputs0_, inputs1_, _buffer_sizes);
                                x1_ = _e217;
                                float _e218 = x1_;
                                float _e223 = bias_of(direction_4, 0u, (1u * 48u) + unit, biases, params, _buffer_sizes);
                                float _e228 = bias_of(direction_4, 1u, (1u * 48u) + unit, biases, params, _buffer_sizes);
                                x1_ = _e218 + (_e223 + _e228);
                                float _e235 = given(direction_4, (place_1 + (2u * 48u)) + unit, inputs0_, inputs1_, _buffer_sizes);
                                x2_ = _e235;
                                float _e236 = x2_;
                                float _e241 = bias_of(direction_4, 0u, (2u * 48u) + unit, biases, params, _buffer_sizes);
                                x2_ = _e236 + _e241;
                            }
                            uint _e249 = block;
                            uint weight = ((((direction_4 * 3u) + 0u) * 48u) * quads) + (metal::min((_e249 * 64u) + slot, 48u - 1u) * quads);
                            uint source = before / 4u;
                            sum0_ = metal::float3 {};
                            k = t;
                            bool loop_init_4 = true;
                            while(true) {
                                if (!loop_init_4) {
                                    uint _e313 = k;
                                    k = _e313 + 8u;
                                }
                                loop_init_4 = false;
                                uint _e263 = k;
                                if (_e263 < quads) {
                                } else {
                                    break;
                                }
                                {
                                    uint _e270 = k;
                                    metal::float4 _e273 = weights[(weight + ((0u * 48u) * quads)) + _e270];
                                    metal::float4 w0_ = static_cast<metal::float4>(_e273);
                                    uint _e280 = k;
                                    metal::float4 _e283 = weights[(weight + ((1u * 48u) * quads)) + _e280];
                                    metal::float4 w1_ = static_cast<metal::float4>(_e283);
                                    uint _e290 = k;
                                    metal::float4 _e293 = weights[(weight + ((2u * 48u) * quads)) + _e290];
                                    metal::float4 w2_ = static_cast<metal::float4>(_e293);
                                    uint _e297 = k;
                                    metal::float4 h0_ = held.inner[(source + start0_) + _e297];
                                    float _e302 = sum0_.x;
                                    sum0_.x = _e302 + metal::dot(w0_, h0_);
                                    float _e306 = sum0_.y;
                                    sum0_.y = _e306 + metal::dot(w1_, h0_);
                                    float _e310 = sum0_.z;
                                    sum0_.z = _e310 + metal::dot(w2_, h0_);
                                }
                            }
                            metal::float3 _e320 = sum0_;
                            part.inner[0u + index] = _e320;
                            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                            s = 4u;
                            bool loop_init_5 = true;
                            while(true) {
                                if (!loop_init_5) {
                                    uint _e341 = s;
                                    s = _e341 / 2u;
                                }
                                loop_init_5 = false;
                                uint _e323 = s;
                                if (_e323 > 0u) {
                                } else {
                                    break;
                                }
                                {
                                    uint _e326 = s;
                                    if (t < _e326) {
                                        metal::float3 _e332 = part.inner[0u + index];
                                        uint _e336 = s;
                                        metal::float3 _e339 = part.inner[(0u + index) + _e336];
                                        part.inner[0u + index] = _e332 + _e339;
                                    }
                                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                                }
                            }
                            if (mine) {
                                metal::float3 sums = part.inner[(own_row * 512u) + (own_unit * 8u)];
                                float s0_ = sums.x;
                                float s1_ = sums.y;
                                float s2_ = sums.z;
                                uint e_1 = own + unit;
                                float _e356 = x0_;
                                float _e358 = x1_;
                                metal::float4 _e363 = limited(metal::float4(_e356 + s0_, _e358 + s1_, 0.0, 0.0));
                                metal::float4 _e364 = cell0_(_e363, direction_4);
                                float _e369 = bias_of(direction_4, 1u, (2u * 48u) + unit, biases, params, _buffer_sizes);
                                float turned = s2_ + _e369;
                                float _e371 = x2_;
                                metal::float4 _e376 = limited(metal::float4(_e371 + (_e364.y * turned)));
                                metal::float4 _e377 = cell1_(_e376, direction_4);
                                float fresh = _e377.x;
                                float _e393 = held.inner[(before + e_1) / 4u][(before + e_1) % 4u];
                                h = ((1.0 - _e364.x) * fresh) + (_e364.x * _e393);
                                float _e397 = h;
                                shown_h = _e397;
                                float _e408 = h;
                                held.inner[(after + e_1) / 4u][(after + e_1) % 4u] = _e408;
                                uint _e411 = params.steps;
                                uint to_1 = (((((row_1 * _e411) + at) * 2u) + direction_4) * 48u) + unit;
                                float _e421 = shown_h;
                                y[to_1] = static_cast<float>(_e421);
                            }
                            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                        }
                    }
                }
            }
            i_1 = index;
            bool loop_init_6 = true;
            while(true) {
                if (!loop_init_6) {
                    uint _e502 = i_1;
                    i_1 = _e502 + 512u;
                }
                loop_init_6 = false;
                uint _e430 = i_1;
                if (_e430 < 48u) {
                } else {
                    break;
                }
                {
                    uint _e432 = i_1;
                    uint _e437 = params.batch;
                    if ((row0_ + (_e432 / 48u)) < _e437) {
                        uint _e441 = params.batch;
                        uint _e444 = i_1;
                        uint _e448 = i_1;
                        uint to_2 = ((((direction_4 * _e441) + row0_) + (_e444 / 48u)) * 48u) + (_e448 % 48u);
                        uint _e454 = params.last;
                        uint _e459 = params.stride;
                        uint _e467 = params.last;
                        uint _e472 = params.stride;
                        uint _e481 = params.last;
                        uint _e485 = i_1;
                        uint _e492 = params.last;
                        uint _e496 = i_1;
                        float _e501 = held.inner[(((_e481 % 2u) * 48u) + _e485) / 4u][(((_e492 % 2u) * 48u) + _e496) % 4u];
                        states[(((_e454 % 2u) * _e459) + to_2) / 4u][(((_e467 % 2u) * _e472) + to_2) % 4u] = _e501;
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    return;
}
