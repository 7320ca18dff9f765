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
    metal::float4 inner[512];
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
[[max_total_threads_per_threadgroup(128)]] kernel void main_(
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
, constant _mslBufferSizes& _buffer_sizes [[buffer(7)]]
) {
    uint row_block = {};
    uint turn = {};
    uint block = {};
    bool local = {};
    bool local_1 = {};
    float x0_ = {};
    float x1_ = {};
    float x2_ = {};
    float x3_ = {};
    metal::float4 sum0_ = {};
    metal::float4 sum1_ = {};
    metal::float4 sum2_ = {};
    metal::float4 sum3_ = {};
    uint k = {};
    uint s = {};
    float c = {};
    float h = {};
    float shown_h = {};
    uint direction_5 = group.z;
    uint hidden = params.hidden;
    uint stride = params.stride;
    uint quads = hidden / 4u;
    uint t = index % 32u;
    uint slot = index / 32u;
    bool backward = direction_5 == 1u;
    uint own_unit = index % 4u;
    uint own_row = index / 4u;
    uint blocks = (hidden + 3u) / 4u;
    uint _e28 = params.batch;
    uint row_blocks = (_e28 + 3u) / 4u;
    row_block = group.y;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e599 = row_block;
            row_block = _e599 + groups.y;
        }
        loop_init = false;
        uint _e35 = row_block;
        if (_e35 < row_blocks) {
        } else {
            break;
        }
        {
            uint _e37 = row_block;
            uint row0_ = _e37 * 4u;
            uint row_1 = row0_ + own_row;
            uint _e43 = params.batch;
            uint _e47 = params.batch;
            uint sequence = (direction_5 * _e43) + metal::min(row_1, _e47 - 1u);
            uint own = sequence * hidden;
            uint _e55 = params.batch;
            uint _e61 = params.batch;
            uint start0_ = ((direction_5 * _e55) + metal::min(row0_ + 0u, _e61 - 1u)) * quads;
            uint _e69 = params.batch;
            uint _e75 = params.batch;
            uint start1_ = ((direction_5 * _e69) + metal::min(row0_ + 1u, _e75 - 1u)) * quads;
            uint _e83 = params.batch;
            uint _e89 = params.batch;
            uint start2_ = ((direction_5 * _e83) + metal::min(row0_ + 2u, _e89 - 1u)) * quads;
            uint _e97 = params.batch;
            uint _e103 = params.batch;
            uint start3_ = ((direction_5 * _e97) + metal::min(row0_ + 3u, _e103 - 1u)) * quads;
            uint _e111 = params.turn;
            turn = _e111;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e597 = turn;
                    turn = _e597 + 1u;
                }
                loop_init_1 = false;
                uint _e113 = turn;
                uint _e116 = params.last;
                if (_e113 < _e116) {
                } else {
                    break;
                }
                {
                    uint _e118 = turn;
                    uint before = (_e118 % 2u) * stride;
                    uint after = stride - before;
                    uint _e123 = turn;
                    uint _e126 = params.steps;
                    uint _e129 = turn;
                    uint at = backward ? ((_e126 - 1u) - _e129) : _e123;
                    uint _e132 = turn;
                    uint _e135 = params.first;
                    uint _e139 = params.end;
                    uint _e142 = turn;
                    uint local_2 = backward ? ((_e139 - 1u) - _e142) : (_e132 - _e135);
                    uint _e147 = params.batch;
                    uint place_1 = (((local_2 * _e147) + row_1) * 4u) * hidden;
                    block = group.x;
                    bool loop_init_2 = true;
                    while(true) {
                        if (!loop_init_2) {
                            uint _e593 = block;
                            block = _e593 + groups.x;
                        }
                        loop_init_2 = false;
                        uint _e155 = block;
                        if (_e155 < blocks) {
                        } else {
                            break;
                        }
                        {
                            uint _e157 = block;
                            uint unit = (_e157 * 4u) + own_unit;
                            if (own_row < 4u) {
                                local = unit < hidden;
                            } else {
                                local = false;
                            }
                            bool _e167 = local;
                            if (_e167) {
                                uint _e172 = params.batch;
                                local_1 = row_1 < _e172;
                            } else {
                                local_1 = false;
                            }
                            bool mine = local_1;
                            x0_ = 0.0;
                            x1_ = 0.0;
                            x2_ = 0.0;
                            x3_ = 0.0;
                            if (mine) {
                                float _e188 = given(direction_5, (place_1 + (0u * hidden)) + unit, inputs0_, inputs1_, _buffer_sizes);
                                x0_ = _e188;
                                float _e189 = x0_;
                                float _e194 = bias_of(direction_5, 0u, (0u * hidden) + unit, biases, params, _buffer_sizes);
                                float _e199 = bias_of(direction_5, 1u, (0u * hidden) + unit, biases, params, _buffer_sizes);
                                x0_ = _e189 + (_e194 + _e199);
                                float _e206 = given(direction_5, (place_1 + (1u * hidden)) + unit, inputs0_, inputs1_, _buffer_sizes);
                                x1_ = _e206;
                                float _e207 = x1_;
                                float _e212 = bias_of(direction_5, 0u, (1u * hidden) + unit, biases, params, _buffer_sizes);
                                float _e217 = bias_of(direction_5, 1u, (1u * hidden) + unit, biases, params, _buffer_sizes);
                                x1_ = _e207 + (_e212 + _e217);
                                float _e224 = given(direction_5, (place_1 + (2u * hidden)) + unit, inputs0_, inputs1_, _buffer_sizes);
                                x2_ = _e224;
                                float _e225 = x2_;
                                float _e230 = bias_of(direction_5, 0u, (2u * hidden) + unit, biases, params, _buffer_sizes);
                                float _e235 = bias_of(direction_5, 1u, (2u * hidden) + unit, biases, params, _buffer_sizes);
                                x2_ = _e225 + (_e230 + _e235);
                                float _e242 = given(direction_5, (place_1 + (3u * hidden)) + unit, inputs0_, inputs1_, _buffer_sizes);
                                x3_ = _e242;
                                float _e243 = x3_;
                                float _e248 = bias_of(direction_5, 0u, (3u * hidden) + unit, biases, params, _buffer_sizes);
                                float _e253 = bias_of(direction_5, 1u, (3u * hidden) + unit, biases, params, _buffer_sizes);
                                x3_ = _e243 + (_e248 + _e253);
                            }
                            uint _e262 = block;
                            uint weight = ((((direction_5 * 4u) + 0u) * hidden) * quads) + (metal::min((_e262 * 4u) + slot, hidden - 1u) * quads);
                            uint source = before / 4u;
                            sum0_ = metal::float4 {};
                            sum1_ = metal::float4 {};
                            sum2_ = metal::float4 {};
                            sum3_ = metal::float4 {};
                            k = t;
                            bool loop_init_3 = true;
                            while(true) {
                                if (!loop_init_3) {
                                    uint _e412 = k;
                                    k = _e412 + 32u;
                                }
                                loop_init_3 = false;
                                uint _e282 = k;
                                if (_e282 < quads) {
                                } else {
                                    break;
                                }
                                {
                                    uint _e289 = k;
                                    metal::float4 _e292 = weights[(weight + ((0u * hidden) * quads)) + _e289];
                                    metal::float4 w0_ = static_cast<metal::float4>(_e292);
                                    uint _e299 = k;
                                    metal::float4 _e302 = weights[(weight + ((1u * hidden) * quads)) + _e299];
                                    metal::float4 w1_ = static_cast<metal::float4>(_e302);
                                    uint _e309 = k;
                                    metal::float4 _e312 = weights[(weight + ((2u * hidden) * quads)) + _e309];
                                    metal::float4 w2_ = static_cast<metal::float4>(_e312);
                                    uint _e319 = k;
                                    metal::float4 _e322 = weights[(weight + ((3u * hidden) * quads)) + _e319];
                                    metal::float4 w3_ = static_cast<metal::float4>(_e322);
                                    uint _e326 = k;
                                    metal::float4 h0_ = states[(source + start0_) + _e326];
                                    float _e331 = sum0_.x;
                                    sum0_.x = _e331 + metal::dot(w0_, h0_);
                                    float _e335 = sum0_.y;
                                    sum0_.y = _e335 + metal::dot(w1_, h0_);
                                    float _e339 = sum0_.z;
                                    sum0_.z = _e339 + metal::dot(w2_, h0_);
                                    float _e343 = sum0_.w;
                                    sum0_.w = _e343 + metal::dot(w3_, h0_);
                                    uint _e348 = k;
                                    metal::float4 h1_ = states[(source + start1_) + _e348];
                                    float _e353 = sum1_.x;
                                    sum1_.x = _e353 + metal::dot(w0_, h1_);
                                    float _e357 = sum1_.y;
                                    sum1_.y = _e357 + metal::dot(w1_, h1_);
                                    float _e361 = sum1_.z;
                                    sum1_.z = _e361 + metal::dot(w2_, h1_);
                                    float _e365 = sum1_.w;
                                    sum1_.w = _e365 + metal::dot(w3_, h1_);
                                    uint _e370 = k;
                                    metal::float4 h2_ = states[(source + start2_) + _e370];
                                    float _e375 = sum2_.x;
                                    sum2_.x = _e375 + metal::dot(w0_, h2_);
                                    float _e379 = sum2_.y;
                                    sum2_.y = _e379 + metal::dot(w1_, h2_);
                                    float _e383 = sum2_.z;
                                    sum2_.z = _e383 + metal::dot(w2_, h2_);
                                    float _e387 = sum2_.w;
                                    sum2_.w = _e387 + metal::dot(w3_, h2_);
                                    uint _e392 = k;
                                    metal::float4 h3_ = states[(source + start3_) + _e392];
                                    float _e397 = sum3_.x;
                                    sum3_.x = _e397 + metal::dot(w0_, h3_);
                                    float _e401 = sum3_.y;
                                    sum3_.y = _e401 + metal::dot(w1_, h3_);
                                    float _e405 = sum3_.z;
                                    sum3_.z = _e405 + metal::dot(w2_, h3_);
                                    float _e409 = sum3_.w;
                                    sum3_.w = _e409 + metal::dot(w3_, h3_);
                                }
                            }
                            metal::float4 _e419 = sum0_;
                            part.inner[0u + index] = _e419;
                            metal::float4 _e424 = sum1_;
                            part.inner[128u + index] = _e424;
                            metal::float4 _e429 = sum2_;
                            part.inner[256u + index] = _e429;
                            metal::float4 _e434 = sum3_;
                            part.inner[384u + index] = _e434;
                            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                            s = 16u;
                            bool loop_init_4 = true;
                            while(true) {
                                if (!loop_init_4) {
                                    uint _e494 = s;
                                    s = _e494 / 2u;
                                }
                                loop_init_4 = false;
                                uint _e437 = s;
                                if (_e437 > 0u) {
                                } else {
                                    break;
                                }
                                {
                                    uint _e440 = s;
                                    if (t < _e440) {
                                        metal::float4 _e446 = part.inner[0u + index];
                                        uint _e450 = s;
                                        metal::float4 _e453 = part.inner[(0u + index) + _e450];
                                        part.inner[0u + index] = _e446 + _e453;
                                        metal::float4 _e459 = part.inner[128u + index];
                                        uint _e463 = s;
                                        metal::float4 _e466 = part.inner[(128u + index) + _e463];
                                        part.inner[128u + index] = _e459 + _e466;
                                        metal::float4 _e472 = part.inner[256u + index];
                                        uint _e476 = s;
                                        metal::float4 _e479 = part.inner[(256u + index) + _e476];
                                        part.inner[256u + index] = _e472 + _e479;
                                        metal::float4 _e485 = part.inner[384u + index];
                                        uint _e489 = s;
                                        metal::float4 _e492 = part.inner[(384u + index) + _e489];
                                        part.inner[384u + index] = _e485 + _e492;
                                    }
                                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                                }
                            }
                            if (mine) {
                                metal::float4 sums = part.inner[(own_row * 128u) + (own_unit * 32u)];
                                float s0_ = sums.x;
                                float s1_ = sums.y;
                                float s2_ = sums.z;
                                float s3_ = sums.w;
                                uint e_1 = own + unit;
                                float c0_ = states[((2u * stride) + e_1) / 4u][((2u * stride) + e_1) % 4u];
                                float _e524 = x0_;
                                float _e526 = x1_;
                                float _e528 = x2_;
                                metal::float4 inner = metal::float4(_e524 + s0_, _e526 + s1_, _e528 + s2_, 0.0);
                                metal::float4 _e532 = limited(inner);
                                metal::float4 _e533 = cell0_(_e532, direction_5);
                                float _e534 = x3_;
                                metal::float4 _e537 = limited(metal::float4(_e534 + s3_));
                                metal::float4 _e538 = cell1_(_e537, direction_5);
                                float fresh = _e538.x;
                                float forget = _e533.z;
                                c = (forget * c0_) + (_e533.x * fresh);
                                float shown = _e533.y;
                                float _e547 = c;
                                metal::float4 _e549 = cell2_(metal::float4(_e547), direction_5);
                                h = shown * _e549.x;
                                float _e553 = h;
                                shown_h = _e553;
                                float _e564 = h;
                                states[(after + e_1) / 4u][(after + e_1) % 4u] = _e564;
                                float _e578 = c;
                                states[((2u * stride) + e_1) / 4u][((2u * stride) + e_1) % 4u] = _e578;
                                uint _e584 = params.batch;
                                uint to = (((((at * 2u) + direction_5) * _e584) + row_1) * hidden) + unit;
                                float _e591 = shown_h;
                                y[to] = static_cast<float>(_e591);
                            }
                            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                        }
                    }
                }
            }
        }
    }
    return;
}
