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
    float inner[512];
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
    float sum0_ = {};
    float sum1_ = {};
    float sum2_ = {};
    float sum3_ = {};
    uint k = {};
    uint s = {};
    float h = {};
    float shown_h = {};
    uint direction_4 = group.z;
    uint hidden = params.hidden;
    uint stride = params.stride;
    uint quads = hidden / 4u;
    uint t = index % 32u;
    uint slot = index / 32u;
    bool backward = direction_4 == 1u;
    uint own_unit = index % 4u;
    uint own_row = index / 4u;
    uint blocks = (hidden + 3u) / 4u;
    uint _e28 = params.batch;
    uint row_blocks = (_e28 + 3u) / 4u;
    row_block = group.y;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e434 = row_block;
            row_block = _e434 + groups.y;
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
            uint sequence = (direction_4 * _e43) + metal::min(row_1, _e47 - 1u);
            uint own = sequence * hidden;
            uint _e55 = params.batch;
            uint _e61 = params.batch;
            uint start0_ = ((direction_4 * _e55) + metal::min(row0_ + 0u, _e61 - 1u)) * quads;
            uint _e69 = params.batch;
            uint _e75 = params.batch;
            uint start1_ = ((direction_4 * _e69) + metal::min(row0_ + 1u, _e75 - 1u)) * quads;
            uint _e83 = params.batch;
            uint _e89 = params.batch;
            uint start2_ = ((direction_4 * _e83) + metal::min(row0_ + 2u, _e89 - 1u)) * quads;
            uint _e97 = params.batch;
            uint _e103 = params.batch;
            uint start3_ = ((direction_4 * _e97) + metal::min(row0_ + 3u, _e103 - 1u)) * quads;
            uint _e111 = params.turn;
            turn = _e111;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e432 = turn;
                    turn = _e432 + 1u;
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
                    uint place_1 = (((local_2 * _e147) + row_1) * 3u) * hidden;
                    block = group.x;
                    bool loop_init_2 = true;
                    while(true) {
                        if (!loop_init_2) {
                            uint _e428 = block;
                            block = _e428 + groups.x;
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
                            if (mine) {
                                float _e182 = given(direction_4, (place_1 + (2u * hidden)) + unit, inputs0_, inputs1_, _buffer_sizes);
                                x0_ = _e182;
                                float _e183 = x0_;
                                float _e188 = bias_of(direction_4, 0u, (2u * hidden) + unit, biases, params, _buffer_sizes);
                                float _e193 = bias_of(direction_4, 1u, (2u * hidden) + unit, biases, params, _buffer_sizes);
                                x0_ = _e183 + (_e188 + _e193);
                            }
                            uint _e202 = block;
                            uint weight = ((((direction_4 * 3u) + 2u) * hidden) * quads) + (metal::min((_e202 * 4u) + slot, hidden - 1u) * quads);
                            uint source = (2u * stride) / 4u;
                            sum0_ = float {};
                            sum1_ = float {};
                            sum2_ = float {};
                            sum3_ = float {};
                            k = t;
                            bool loop_init_3 = true;
                            while(true) {
                                if (!loop_init_3) {
                                    uint _e272 = k;
                                    k = _e272 + 32u;
                                }
                                loop_init_3 = false;
                                uint _e224 = k;
                                if (_e224 < quads) {
                                } else {
                                    break;
                                }
                                {
                                    uint _e231 = k;
                                    metal::float4 _e234 = weights[(weight + ((0u * hidden) * quads)) + _e231];
                                    metal::float4 w0_ = static_cast<metal::float4>(_e234);
                                    uint _e238 = k;
                                    metal::float4 h0_ = states[(source + start0_) + _e238];
                                    float _e242 = sum0_;
                                    sum0_ = _e242 + metal::dot(w0_, h0_);
                                    uint _e247 = k;
                                    metal::float4 h1_ = states[(source + start1_) + _e247];
                                    float _e251 = sum1_;
                                    sum1_ = _e251 + metal::dot(w0_, h1_);
                                    uint _e256 = k;
                                    metal::float4 h2_ = states[(source + start2_) + _e256];
                                    float _e260 = sum2_;
                                    sum2_ = _e260 + metal::dot(w0_, h2_);
                                    uint _e265 = k;
                                    metal::float4 h3_ = states[(source + start3_) + _e265];
                                    float _e269 = sum3_;
                                    sum3_ = _e269 + metal::dot(w0_, h3_);
                                }
                            }
                            float _e279 = sum0_;
                            part.inner[0u + index] = _e279;
                            float _e284 = sum1_;
                            part.inner[128u + index] = _e284;
                            float _e289 = sum2_;
                            part.inner[256u + index] = _e289;
                            float _e294 = sum3_;
                            part.inner[384u + index] = _e294;
                            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                            s = 16u;
                            bool loop_init_4 = true;
                            while(true) {
                                if (!loop_init_4) {
                                    uint _e354 = s;
                                    s = _e354 / 2u;
                                }
                                loop_init_4 = false;
                                uint _e297 = s;
                                if (_e297 > 0u) {
                                } else {
                                    break;
                                }
                                {
                                    uint _e300 = s;
                                    if (t < _e300) {
                                        float _e306 = part.inner[0u + index];
                                        uint _e310 = s;
                                        float _e313 = part.inner[(0u + index) + _e310];
                                        part.inner[0u + index] = _e306 + _e313;
                                        float _e319 = part.inner[128u + index];
                                        uint _e323 = s;
                                        float _e326 = part.inner[(128u + index) + _e323];
                                        part.inner[128u + index] = _e319 + _e326;
                                        float _e332 = part.inner[256u + index];
                                        uint _e336 = s;
                                        float _e339 = part.inner[(256u + index) + _e336];
                                        part.inner[256u + index] = _e332 + _e339;
                                        float _e345 = part.inner[384u + index];
                                        uint _e349 = s;
                                        float _e352 = part.inner[(384u + index) + _e349];
                                        part.inner[384u + index] = _e345 + _e352;
                                    }
                                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                                }
                            }
                            if (mine) {
                                float s0_ = part.inner[(own_row * 128u) + (own_unit * 32u)];
                                uint e_1 = own + unit;
                                float _e366 = x0_;
                                metal::float4 _e369 = limited(metal::float4(_e366 + s0_));
                                metal::float4 _e370 = cell1_(_e369, direction_4);
                                float fresh = _e370.x;
                                float update = states[((3u * stride) + e_1) / 4u][((3u * stride) + e_1) % 4u];
                                float _e398 = states[(before + e_1) / 4u][(before + e_1) % 4u];
                                h = ((1.0 - update) * fresh) + (update * _e398);
                                float _e402 = h;
                                shown_h = _e402;
                                float _e413 = h;
                                states[(after + e_1) / 4u][(after + e_1) % 4u] = _e413;
                                uint _e419 = params.batch;
                                uint to = (((((at * 2u) + direction_4) * _e419) + row_1) * hidden) + unit;
                                float _e426 = shown_h;
                                y[to] = static_cast<float>(_e426);
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
