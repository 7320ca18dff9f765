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
struct type_8 {
    metal::float4 inner[256];
};
struct type_9 {
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

metal::float4 cell2_(
    metal::float4 x_8,
    uint direction_2
) {
    metal::float4 _e2 = tanh4_(x_8);
    return _e2;
}

float given(
    uint direction_3,
    uint place,
    device type_7 const& inputs0_,
    device type_7 const& inputs1_,
    constant _mslBufferSizes& _buffer_sizes
) {
    if (direction_3 == 1u) {
        float _e6 = inputs1_[place];
        return _e6;
    }
    float _e9 = inputs0_[place];
    return _e9;
}

float bias_of(
    uint direction_4,
    uint which,
    uint row,
    device type_7 const& biases,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e11 = params.hidden;
    float _e15 = biases[((((direction_4 * 2u) + which) * 4u) * _e11) + row];
    return static_cast<float>(_e15);
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
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
, threadgroup type_8& part
, threadgroup type_9& held
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
    float x3_ = {};
    metal::float4 sum0_ = {};
    uint k = {};
    uint s = {};
    float c = {};
    float h = {};
    float shown_h = {};
    uint i_1 = {};
    uint direction_5 = group.z;
    uint quads = 32u / 4u;
    uint t = index % 8u;
    uint slot = index / 8u;
    bool backward = direction_5 == 1u;
    uint own_unit = index % 32u;
    uint own_row = index / 32u;
    uint blocks = (32u + 31u) / 32u;
    uint _e24 = params.batch;
    uint row_blocks = (_e24 + 0u) / 1u;
    row_block = group.y;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e628 = row_block;
            row_block = _e628 + groups.y;
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
            uint sequence = (direction_5 * _e39) + metal::min(row_1, _e43 - 1u);
            uint own = own_row * 32u;
            uint start0_ = 0u * quads;
            i = index;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e150 = i;
                    i = _e150 + 256u;
                }
                loop_init_1 = false;
                uint _e52 = i;
                if (_e52 < 32u) {
                } else {
                    break;
                }
                {
                    uint _e56 = params.batch;
                    uint _e58 = i;
                    uint _e63 = params.batch;
                    uint _e69 = i;
                    uint origin = (((direction_5 * _e56) + metal::min(row0_ + (_e58 / 32u), _e63 - 1u)) * 32u) + (_e69 % 32u);
                    uint _e74 = params.turn;
                    uint _e78 = i;
                    uint to = ((_e74 % 2u) * 32u) + _e78;
                    uint _e90 = params.turn;
                    uint _e95 = params.stride;
                    uint _e103 = params.turn;
                    uint _e108 = params.stride;
                    float _e114 = states[(((_e90 % 2u) * _e95) + origin) / 4u][(((_e103 % 2u) * _e108) + origin) % 4u];
                    held.inner[to / 4u][to % 4u] = _e114;
                    uint _e118 = i;
                    uint _e125 = i;
                    uint _e134 = params.stride;
                    uint _e143 = params.stride;
                    float _e149 = states[((2u * _e134) + origin) / 4u][((2u * _e143) + origin) % 4u];
                    held.inner[((2u * 32u) + _e118) / 4u][((2u * 32u) + _e125) % 4u] = _e149;
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e155 = params.turn;
            turn = _e155;
            bool loop_init_2 = true;
            while(true) {
                if (!loop_init_2) {
                    uint _e515 = turn;
                    turn = _e515 + 1u;
                }
                loop_init_2 = false;
                uint _e157 = turn;
                uint _e160 = params.last;
                if (_e157 < _e160) {
                } else {
                    break;
                }
                {
                    uint _e162 = turn;
                    uint before = (_e162 % 2u) * 32u;
                    uint after = 32u - before;
                    uint _e167 = turn;
                    uint _e170 = params.steps;
                    uint _e173 = turn;
                    uint at = backward ? ((_e170 - 1u) - _e173) : _e167;
                    uint _e176 = turn;
                    uint _e179 = params.first;
                    uint _e183 = params.end;
                    uint _e186 = turn;
                    uint local_2 = backward ? ((_e183 - 1u) - _e186) : (_e176 - _e179);
                    uint _e191 = params.batch;
                    uint place_1 = (((local_2 * _e191) + row_1) * 4u) * 32u;
                    block = group.x;
                    bool loop_init_3 = true;
                    while(true) {
                        if (!loop_init_3) {
                            uint _e511 = block;
                            block = _e511 + groups.x;
                        }
                        loop_init_3 = false;
                        uint _e199 = block;
                        if (_e199 < blocks) {
                        } else {
                            break;
                        }
                        {
                            uint _e201 = block;
                            uint unit = (_e201 * 32u) + own_unit;
                            if (own_row < 1u) {
                                local = unit < 32u;
                            } else {
                                local = false;
                            }
                            bool _e211 = local;
                            if (_e211) {
                                uint _e216 = params.batch;
                                local_1 = row_1 < _e216;
                            } else {
                                local_1 = false;
                            }
                            bool mine = local_1;
                            x0_ = 0.0;
                            x1_ = 0.0;
                            x2_ = 0.0;
                            x3_ = 0.0;
                            if (mine) {
                                float _e232 = given(direction_5, (place_1 + (0u * 32u)) + unit, inputs0_, inputs1_, _buffer_sizes);
                                x0_ = _e232;
                                float _e233 = x0_;
                                float _e238 = bias_of(direction_5, 0u, (0u * 32u) + unit, biases, params, _buffer_sizes);
                                float _e243 = bias_of(direction_5, 1u, (0u * 32u) + unit, biases, params, _buffer_sizes);
                                x0_ = _e233 + (_e238 + _e243);
                                float _e250 = given(direction_5, (place_1 + (1u * 32u)) + unit, inputs0_, inputs1_, _buffer_sizes);
                                x1_ = _e250;
                                float _e251 = x1_;
                                float _e256 = bias_of(direction_5, 0u, (1u * 32u) + unit, biases, params, _buffer_sizes);
                                float _e261 = bias_of(direction_5, 1u, (1u * 32u) + unit, biases, params, _buffer_sizes);
                                x1_ = _e251 + (_e256 + _e261);
                                float _e268 = given(direction_5, (place_1 + (2u * 32u)) + unit, inputs0_, inputs1_, _buffer_sizes);
                                x2_ = _e268;
                                float _e269 = x2_;
                                float _e274 = bias_of(direction_5, 0u, (2u * 32u) + unit, biases, params, _buffer_sizes);
                                float _e279 = bias_of(direction_5, 1u, (2u * 32u) + unit, biases, params, _buffer_sizes);
                                x2_ = _e269 + (_e274 + _e279);
                                float _e286 = given(direction_5, (place_1 + (3u * 32u)) + unit, inputs0_, inputs1_, _buffer_sizes);
                                x3_ = _e286;
                                float _e287 = x3_;
                                float _e292 = bias_of(direction_5, 0u, (3u * 32u) + unit, biases, params, _buffer_sizes);
                                float _e297 = bias_of(direction_5, 1u, (3u * 32u) + unit, biases, params, _buffer_sizes);
                                x3_ = _e287 + (_e292 + _e297);
                            }
                            uint _e306 = block;
                            uint weight = ((((direction_5 * 4u) + 0u) * 32u) * quads) + (metal::min((_e306 * 32u) + slot, 32u - 1u) * quads);
                            uint source = before / 4u;
                            sum0_ = metal::float4 {};
                            k = t;
                            bool loop_init_4 = true;
                            while(true) {
                                if (!loop_init_4) {
                                    uint _e384 = k;
                                    k = _e384 + 8u;
                                }
                                loop_init_4 = false;
                                uint _e320 = k;
                                if (_e320 < quads) {
                                } else {
                                    break;
                                }
                                {
                                    uint _e327 = k;
                                    metal::float4 _e330 = weights[(weight + ((0u * 32u) * quads)) + _e327];
                                    metal::float4 w0_ = static_cast<metal::float4>(_e330);
                                    uint _e337 = k;
                                    metal::float4 _e340 = weights[(weight + ((1u * 32u) * quads)) + _e337];
                                    metal::float4 w1_ = static_cast<metal::float4>(_e340);
                                    uint _e347 = k;
                                    metal::float4 _e350 = weights[(weight + ((2u * 32u) * quads)) + _e347];
                                    metal::float4 w2_ = static_cast<metal::float4>(_e350);
                                    uint _e357 = k;
                                    metal::float4 _e360 = weights[(weight + ((3u * 32u) * quads)) + _e357];
                                    metal::float4 w3_ = static_cast<metal::float4>(_e360);
                                    uint _e364 = k;
                                    metal::float4 h0_ = held.inner[(source + start0_) + _e364];
                                    float _e369 = sum0_.x;
                                    sum0_.x = _e369 + metal::dot(w0_, h0_);
                                    float _e373 = sum0_.y;
                                    sum0_.y = _e373 + metal::dot(w1_, h0_);
                                    float _e377 = sum0_.z;
                                    sum0_.z = _e377 + metal::dot(w2_, h0_);
                                    float _e381 = sum0_.w;
                                    sum0_.w = _e381 + metal::dot(w3_, h0_);
                                }
                            }
                            metal::float4 _e391 = sum0_;
                            part.inner[0u + index] = _e391;
                            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                            s = 4u;
                            bool loop_init_5 = true;
                            while(true) {
                                if (!loop_init_5) {
                                    uint _e412 = s;
                                    s = _e412 / 2u;
                                }
                                loop_init_5 = false;
                                uint _e394 = s;
                                if (_e394 > 0u) {
                                } else {
                                    break;
                                }
                                {
                                    uint _e397 = s;
                                    if (t < _e397) {
                                        metal::float4 _e403 = part.inner[0u + index];
                                        uint _e407 = s;
                                        metal::float4 _e410 = part.inner[(0u + index) + _e407];
                                        part.inner[0u + index] = _e403 + _e410;
                                    }
                                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                                }
                            }
                            if (mine) {
                                metal::float4 sums = part.inner[(own_row * 256u) + (own_unit * 8u)];
                                float s0_ = sums.x;
                                float s1_ = sums.y;
                                float s2_ = sums.z;
                                float s3_ = sums.w;
                                uint e_1 = own + unit;
                                float c0_ = held.inner[((2u * 32u) + e_1) / 4u][((2u * 32u) + e_1) % 4u];
                                float _e442 = x0_;
                                float _e444 = x1_;
                                float _e446 = x2_;
                                metal::float4 inner = metal::float4(_e442 + s0_, _e444 + s1_, _e446 + s2_, 0.0);
                                metal::float4 _e450 = limited(inner);
                                metal::float4 _e451 = cell0_(_e450, direction_5);
                                float _e452 = x3_;
                                metal::float4 _e455 = limited(metal::float4(_e452 + s3_));
                                metal::float4 _e456 = cell1_(_e455, direction_5);
                                float fresh = _e456.x;
                                float forget = _e451.z;
                                c = (forget * c0_) + (_e451.x * fresh);
                                float shown = _e451.y;
                                float _e465 = c;
                                metal::float4 _e467 = cell2_(metal::float4(_e465), direction_5);
                                h = shown * _e467.x;
                                float _e471 = h;
                                shown_h = _e471;
                                float _e482 = h;
                                held.inner[(after + e_1) / 4u][(after + e_1) % 4u] = _e482;
                                float _e496 = c;
                                held.inner[((2u * 32u) + e_1) / 4u][((2u * 32u) + e_1) % 4u] = _e496;
                                uint _e502 = params.batch;
                                uint to_1 = (((((at * 2u) + direction_5) * _e502) + row_1) * 32u) + unit;
                                float _e509 = shown_h;
                                y[to_1] = static_cast<float>(_e509);
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
                    uint _e625 = i_1;
                    i_1 = _e625 + 256u;
                }
                loop_init_6 = false;
                uint _e518 = i_1;
                if (_e518 < 32u) {
                } else {
                    break;
                }
                {
                    uint _e520 = i_1;
                    uint _e525 = params.batch;
                    if ((row0_ + (_e520 / 32u)) < _e525) {
                        uint _e529 = params.batch;
                        uint _e532 = i_1;
                        uint _e536 = i_1;
                        uint to_2 = ((((direction_5 * _e529) + row0_) + (_e532 / 32u)) * 32u) + (_e536 % 32u);
                        uint _e542 = params.last;
                        uint _e547 = params.stride;
                        uint _e555 = params.last;
                        uint _e560 = params.stride;
                        uint _e569 = params.last;
                        uint _e573 = i_1;
                        uint _e580 = params.last;
                        uint _e584 = i_1;
                        float _e589 = held.inner[(((_e569 % 2u) * 32u) + _e573) / 4u][(((_e580 % 2u) * 32u) + _e584) % 4u];
                        states[(((_e542 % 2u) * _e547) + to_2) / 4u][(((_e555 % 2u) * _e560) + to_2) % 4u] = _e589;
                        uint _e594 = params.stride;
                        uint _e603 = params.stride;
                        uint _e612 = i_1;
                        uint _e619 = i_1;
                        float _e624 = held.inner[((2u * 32u) + _e612) / 4u][((2u * 32u) + _e619) % 4u];
                        states[((2u * _e594) + to_2) / 4u][((2u * _e603) + to_2) % 4u] = _e624;
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    return;
}
