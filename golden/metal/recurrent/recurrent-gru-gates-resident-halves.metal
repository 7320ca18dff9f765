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
    metal::float2 inner[256];
};
struct type_10 {
    metal::float4 inner[32];
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
    metal::float4 s_2 = metal::float4(1.0) / (metal::float4(1.0) + _e2);
    metal::float4 _e9 = kept_nan4_(s_2, x_4);
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
    metal::float2 sum0_ = {};
    uint k = {};
    uint s = {};
    uint block_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    float x0_1 = {};
    metal::float2 sum0_1 = {};
    uint k_1 = {};
    uint s_1 = {};
    float h = {};
    float shown_h = {};
    uint i_1 = {};
    uint direction_4 = group.z;
    uint quads = 32u / 4u;
    uint t = index % 8u;
    uint slot = index / 8u;
    bool backward = direction_4 == 1u;
    uint own_unit = index % 32u;
    uint own_row = index / 32u;
    uint blocks = (32u + 31u) / 32u;
    uint _e24 = params.batch;
    uint row_blocks = (_e24 + 0u) / 1u;
    row_block = group.y;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e646 = row_block;
            row_block = _e646 + groups.y;
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
            uint own = own_row * 32u;
            uint start0_ = 0u * quads;
            i = index;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e115 = i;
                    i = _e115 + 256u;
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
                    uint origin = (((direction_4 * _e56) + metal::min(row0_ + (_e58 / 32u), _e63 - 1u)) * 32u) + (_e69 % 32u);
                    uint _e74 = params.turn;
                    uint _e78 = i;
                    uint to = ((_e74 % 2u) * 32u) + _e78;
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
                    uint _e568 = turn;
                    turn = _e568 + 1u;
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
                    uint before = (_e127 % 2u) * 32u;
                    uint after = 32u - before;
                    uint _e132 = turn;
                    uint _e135 = params.steps;
                    uint _e138 = turn;
                    uint at = backward ? ((_e135 - 1u) - _e138) : _e132;
                    uint _e141 = turn;
                    uint _e144 = params.first;
                    uint _e148 = params.end;
                    uint _e151 = turn;
                    uint local_4 = backward ? ((_e148 - 1u) - _e151) : (_e141 - _e144);
                    uint _e156 = params.batch;
                    uint place_1 = (((local_4 * _e156) + row_1) * 3u) * 32u;
                    block = group.x;
                    bool loop_init_3 = true;
                    while(true) {
                        if (!loop_init_3) {
                            uint _e371 = block;
                            block = _e371 + groups.x;
                        }
                        loop_init_3 = false;
                        uint _e164 = block;
                        if (_e164 < blocks) {
                        } else {
                            break;
                        }
                        {
                            uint _e166 = block;
                            uint unit = (_e166 * 32u) + own_unit;
                            if (own_row < 1u) {
                                local = unit < 32u;
                            } else {
                                local = false;
                            }
                            bool _e176 = local;
                            if (_e176) {
                                uint _e181 = params.batch;
                                local_1 = row_1 < _e181;
                            } else {
                                local_1 = false;
                            }
                            bool mine = local_1;
                            x0_ = 0.0;
                            x1_ = 0.0;
                            if (mine) {
                                float _e193 = given(direction_4, (place_1 + (0u * 32u)) + unit, inputs0_, inputs1_, _buffer_sizes);
                                x0_ = _e193;
                                float _e194 = x0_;
                                float _e199 = bias_of(direction_4, 0u, (0u * 32u) + unit, biases, params, _buffer_sizes);
                                float _e204 = bias_of(direction_4, 1u, (0u * 32u) + unit, biases, params, _buffer_sizes);
                                x0_ = _e194 + (_e199 + _e204);
                                float _e211 = given(direction_4, (place_1 + (1u * 32u)) + unit, inputs0_, inputs1_, _buffer_sizes);
                                x1_ = _e211;
                                float _e212 = x1_;
                                float _e217 = bias_of(direction_4, 0u, (1u * 32u) + unit, biases, params, _buffer_sizes);
                                float _e222 = bias_of(direction_4, 1u, (1u * 32u) + unit, biases, params, _buffer_sizes);
                                x1_ = _e212 + (_e217 + _e222);
                            }
                            uint _e231 = block;
                            uint weight = ((((direction_4 * 3u) + 0u) * 32u) * quads) + (metal::min((_e231 * 32u) + slot, 32u - 1u) * quads);
                            uint source = before / 4u;
                            sum0_ = metal::float2 {};
                            k = t;
                            bool loop_init_4 = true;
                            while(true) {
                                if (!loop_init_4) {
                                    uint _e281 = k;
                                    k = _e281 + 8u;
                                }
                                loop_init_4 = false;
                                uint _e245 = k;
                                if (_e245 < quads) {
                                } else {
                                    break;
                                }
                                {
                                    uint _e252 = k;
                                    metal::float4 _e255 = weights[(weight + ((0u * 32u) * quads)) + _e252];
                                    metal::float4 w0_ = static_cast<metal::float4>(_e255);
                                    uint _e262 = k;
                                    metal::float4 _e265 = weights[(weight + ((1u * 32u) * quads)) + _e262];
                                    metal::float4 w1_ = static_cast<metal::float4>(_e265);
                                    uint _e269 = k;
                                    metal::float4 h0_ = held.inner[(source + start0_) + _e269];
                                    float _e274 = sum0_.x;
                                    sum0_.x = _e274 + metal::dot(w0_, h0_);
                                    float _e278 = sum0_.y;
                                    sum0_.y = _e278 + metal::dot(w1_, h0_);
                                }
                            }
                            metal::float2 _e288 = sum0_;
                            part.inner[0u + index] = _e288;
                            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                            s = 4u;
                            bool loop_init_5 = true;
                            while(true) {
                                if (!loop_init_5) {
                                    uint _e309 = s;
                                    s = _e309 / 2u;
                                }
                                loop_init_5 = false;
                                uint _e291 = s;
                                if (_e291 > 0u) {
                                } else {
                                    break;
                                }
                                {
                                    uint _e294 = s;
                                    if (t < _e294) {
                                        metal::float2 _e300 = part.inner[0u + index];
                                        uint _e304 = s;
                                        metal::float2 _e307 = part.inner[(0u + index) + _e304];
                                        part.inner[0u + index] = _e300 + _e307;
                                    }
                                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                                }
                            }
                            if (mine) {
                                metal::float2 sums = part.inner[(own_row * 256u) + (own_unit * 8u)];
                                float s0_ = sums.x;
                                float s1_ = sums.y;
                                uint e_1 = own + unit;
                                float _e323 = x0_;
                                float _e325 = x1_;
                                metal::float4 _e330 = limited(metal::float4(_e323 + s0_, _e325 + s1_, 0.0, 0.0));
                                metal::float4 _e331 = cell0_(_e330, direction_4);
                                float _e355 = held.inner[(before + e_1) / 4u][(before + e_1) % 4u];
                                held.inner[((2u * 32u) + e_1) / 4u][((2u * 32u) + e_1) % 4u] = _e331.y * _e355;
                                held.inner[((3u * 32u) + e_1) / 4u][((3u * 32u) + e_1) % 4u] = _e331.x;
                            }
                            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                        }
                    }
                    block_1 = group.x;
                    bool loop_init_6 = true;
                    while(true) {
                        if (!loop_init_6) {
                            uint _e564 = block_1;
                            block_1 = _e564 + groups.x;
                        }
                        loop_init_6 = false;
                        uint _e376 = block_1;
                        if (_e376 < blocks) {
                        } else {
                            break;
                        }
                        {
                            uint _e378 = block_1;
                            uint unit_1 = (_e378 * 32u) + own_unit;
                            if (own_row < 1u) {
                                local_2 = unit_1 < 32u;
                            } else {
                                local_2 = false;
                            }
                            bool _e388 = local_2;
                            if (_e388) {
                                uint _e393 = params.batch;
                                local_3 = row_1 < _e393;
                            } else {
                                local_3 = false;
                            }
                            bool mine_1 = local_3;
                            x0_1 = 0.0;
                            if (mine_1) {
                                float _e403 = given(direction_4, (place_1 + (2u * 32u)) + unit_1, inputs0_, inputs1_, _buffer_sizes);
                                x0_1 = _e403;
                                float _e404 = x0_1;
                                float _e409 = bias_of(direction_4, 0u, (2u * 32u) + unit_1, biases, params, _buffer_sizes);
                                float _e414 = bias_of(direction_4, 1u, (2u * 32u) + unit_1, biases, params, _buffer_sizes);
                                x0_1 = _e404 + (_e409 + _e414);
                            }
                            uint _e423 = block_1;
                            uint weight_1 = ((((direction_4 * 3u) + 2u) * 32u) * quads) + (metal::min((_e423 * 32u) + slot, 32u - 1u) * quads);
                            uint source_1 = (2u * 32u) / 4u;
                            sum0_1 = metal::float2 {};
                            k_1 = t;
                            bool loop_init_7 = true;
                            while(true) {
                                if (!loop_init_7) {
                                    uint _e461 = k_1;
                                    k_1 = _e461 + 8u;
                                }
                                loop_init_7 = false;
                                uint _e439 = k_1;
                                if (_e439 < quads) {
                                } else {
                                    break;
                                }
                                {
                                    uint _e446 = k_1;
                                    metal::float4 _e449 = weights[(weight_1 + ((0u * 32u) * quads)) + _e446];
                                    metal::float4 w0_1 = static_cast<metal::float4>(_e449);
                                    uint _e453 = k_1;
                                    metal::float4 h0_1 = held.inner[(source_1 + start0_) + _e453];
                                    float _e458 = sum0_1.x;
                                    sum0_1.x = _e458 + metal::dot(w0_1, h0_1);
                                }
                            }
                            metal::float2 _e468 = sum0_1;
                            part.inner[0u + index] = _e468;
                            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                            s_1 = 4u;
                            bool loop_init_8 = true;
                            while(true) {
                                if (!loop_init_8) {
                                    uint _e489 = s_1;
                                    s_1 = _e489 / 2u;
                                }
                                loop_init_8 = false;
                                uint _e471 = s_1;
                                if (_e471 > 0u) {
                                } else {
                                    break;
                                }
                                {
                                    uint _e474 = s_1;
                                    if (t < _e474) {
                                        metal::float2 _e480 = part.inner[0u + index];
                                        uint _e484 = s_1;
                                        metal::float2 _e487 = part.inner[(0u + index) + _e484];
                                        part.inner[0u + index] = _e480 + _e487;
                                    }
                                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                                }
                            }
                            if (mine_1) {
                                metal::float2 sums_1 = part.inner[(own_row * 256u) + (own_unit * 8u)];
                                float s0_1 = sums_1.x;
                                uint e_2 = own + unit_1;
                                float _e502 = x0_1;
                                metal::float4 _e505 = limited(metal::float4(_e502 + s0_1));
                                metal::float4 _e506 = cell1_(_e505, direction_4);
                                float fresh = _e506.x;
                                float update = held.inner[((3u * 32u) + e_2) / 4u][((3u * 32u) + e_2) % 4u];
                                float _e534 = held.inner[(before + e_2) / 4u][(before + e_2) % 4u];
                                h = ((1.0 - update) * fresh) + (update * _e534);
                                float _e538 = h;
                                shown_h = _e538;
                                float _e549 = h;
                                held.inner[(after + e_2) / 4u][(after + e_2) % 4u] = _e549;
                                uint _e555 = params.batch;
                                uint to_1 = (((((at * 2u) + direction_4) * _e555) + row_1) * 32u) + unit_1;
                                float _e562 = shown_h;
                                y[to_1] = static_cast<float>(_e562);
                            }
                            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                        }
                    }
                }
            }
            i_1 = index;
            bool loop_init_9 = true;
            while(true) {
                if (!loop_init_9) {
                    uint _e643 = i_1;
                    i_1 = _e643 + 256u;
                }
                loop_init_9 = false;
                uint _e571 = i_1;
                if (_e571 < 32u) {
                } else {
                    break;
                }
                {
                    uint _e573 = i_1;
                    uint _e578 = params.batch;
                    if ((row0_ + (_e573 / 32u)) < _e578) {
                        uint _e582 = params.batch;
                        uint _e585 = i_1;
                        uint _e589 = i_1;
                        uint to_2 = ((((direction_4 * _e582) + row0_) + (_e585 / 32u)) * 32u) + (_e589 % 32u);
                        uint _e595 = params.last;
                        uint _e600 = params.stride;
                        uint _e608 = params.last;
                        uint _e613 = params.stride;
                        uint _e622 = params.last;
                        uint _e626 = i_1;
                        uint _e633 = params.last;
                        uint _e637 = i_1;
                        float _e642 = held.inner[(((_e622 % 2u) * 32u) + _e626) / 4u][(((_e633 % 2u) * 32u) + _e637) % 4u];
                        states[(((_e595 % 2u) * _e600) + to_2) / 4u][(((_e608 % 2u) * _e613) + to_2) % 4u] = _e642;
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    return;
}
