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

typedef half type_1[1];
typedef uint type_3[1];
typedef metal::uint2 type_5[1];
typedef metal::half4 type_7[1];
typedef metal::float4 type_10[1];
typedef float type_11[1];
struct Params {
    uint rows;
    uint sequences;
    uint most;
    uint kv_heads;
    uint key_width;
    uint value_width;
    uint block;
    uint count;
    uint splits;
    uint span;
    uint window;
    uint shared_heads;
    uint parts;
    uint few;
    float scale;
    float softcap;
};
struct type_12 {
    metal::float4 inner[32];
};
struct type_13 {
    metal::float4 inner[256];
};
struct type_14 {
    float inner[1024];
};
struct type_16 {
    metal::float2 inner[64];
};
struct type_17 {
    uint inner[512];
};
struct type_18 {
    float inner[2];
};
constant uint THREADS = 256u;
constant uint CHUNK = 512u;
constant uint HEADS = 2u;
constant uint GROUPS = 64u;
constant uint SLICES = 4u;
constant uint PER_HEAD = 32u;
constant uint WIDTH4_ = 16u;

uint naga_div(uint lhs, uint rhs) {
    return lhs / metal::select(rhs, 1u, rhs == 0u);
}

metal::float4 keys_at(
    uint at,
    device type_3 const& keys,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint word = keys[metal::min(unsigned(naga_div(at, 4u)), (_buffer_sizes.size1 - 0 - 4) / 4)];
    return static_cast<metal::float4>(static_cast<metal::int4>(as_type<metal::int4>(metal::uint4(word << 24u, word << 16u, word << 8u, word)) >> metal::uint4(24u)));
}

metal::float4 values_at(
    uint at_1,
    device type_3 const& values,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint word_1 = values[metal::min(unsigned(naga_div(at_1, 4u)), (_buffer_sizes.size2 - 0 - 4) / 4)];
    return static_cast<metal::float4>(static_cast<metal::int4>(as_type<metal::int4>(metal::uint4(word_1 << 24u, word_1 << 16u, word_1 << 8u, word_1)) >> metal::uint4(24u)));
}
uint naga_mod(uint lhs, uint rhs) {
    return lhs % metal::select(rhs, 1u, rhs == 0u);
}


struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& q [[buffer(0)]]
, device type_3 const& keys [[buffer(1)]]
, device type_3 const& values [[buffer(2)]]
, device type_5 const& starts [[buffer(3)]]
, device type_5 const& lengths [[buffer(4)]]
, device type_5 const& blocks [[buffer(5)]]
, device type_7& y [[buffer(6)]]
, device type_10 const& key_scales [[buffer(7)]]
, device type_11 const& value_scales [[buffer(8)]]
, constant Params& params [[buffer(9)]]
, threadgroup type_12& queries
, threadgroup type_13& partial
, threadgroup type_14& scores
, threadgroup type_16& reduced
, threadgroup type_17& vectors
, threadgroup type_18& most
, threadgroup type_18& total
, threadgroup type_18& shrink
, threadgroup uint& sequence
, constant _mslBufferSizes& _buffer_sizes [[buffer(10)]]
) {
    uint b = {};
    bool local = {};
    uint position = 0u;
    uint first = 0u;
    uint from_position = 1u;
    uint i = {};
    metal::float4 x = {};
    uint c = {};
    metal::float4 sum0_ = metal::float4(0.0);
    metal::float4 sum1_ = metal::float4(0.0);
    uint start = {};
    uint i_1 = {};
    uint quad_ = {};
    metal::float4 score0_ = {};
    metal::float4 score1_ = {};
    uint d = {};
    uint apart = {};
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    bool local_4 = {};
    bool local_5 = {};
    bool local_6 = {};
    bool local_7 = {};
    bool local_8 = {};
    float x_1 = {};
    uint i_2 = {};
    float highest = {};
    uint i_3 = {};
    float sum = {};
    uint i_4 = {};
    bool local_9 = {};
    float sum_1 = {};
    uint i_5 = {};
    uint p = {};
    bool local_10 = {};
    metal::float4 x_2 = {};
    uint s = 1u;
    bool local_11 = {};
    metal::float4 x_3 = {};
    uint s_1 = 1u;
    uint number = group.x + (group.y * groups.x);
    uint places = params.rows;
    uint _e13 = params.splits;
    uint _e16 = params.parts;
    uint _e20 = params.kv_heads;
    if (number >= (((_e13 * _e16) * _e20) * places)) {
        return;
    }
    uint _e26 = params.splits;
    uint split = naga_mod(number, _e26);
    uint _e30 = params.splits;
    uint _e34 = params.parts;
    uint part = naga_mod(naga_div(number, _e30), _e34);
    uint _e38 = params.splits;
    uint _e41 = params.parts;
    uint _e46 = params.kv_heads;
    uint head = naga_mod(naga_div(number, _e38 * _e41), _e46);
    uint _e50 = params.splits;
    uint _e53 = params.parts;
    uint _e57 = params.kv_heads;
    uint row = naga_div(number, (_e50 * _e53) * _e57);
    if (lane == 0u) {
        uint _e65 = params.sequences;
        sequence = _e65;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    b = lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e92 = b;
            b = _e92 + THREADS;
        }
        loop_init = false;
        uint _e67 = b;
        uint _e70 = params.sequences;
        if (_e67 < _e70) {
        } else {
            break;
        }
        {
            uint _e73 = b;
            uint _e76 = starts[metal::min(unsigned(_e73), (_buffer_sizes.size3 - 0 - 8) / 8)].x;
            if (_e76 <= row) {
                uint _e81 = b;
                uint _e86 = starts[metal::min(unsigned(_e81 + 1u), (_buffer_sizes.size3 - 0 - 8) / 8)].x;
                local = row < _e86;
            } else {
                local = false;
            }
            bool _e89 = local;
            if (_e89) {
                uint _e91 = b;
                sequence = _e91;
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint unnamed = sequence;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint _e99 = params.shared_heads;
    uint first_head = (head * _e99) + (part * HEADS);
    uint _e107 = params.shared_heads;
    uint heads = metal::min(HEADS, _e107 - (part * HEADS));
    uint _e114 = params.kv_heads;
    uint _e118 = params.shared_heads;
    uint result = ((row * _e114) * _e118) + first_head;
    uint _e123 = params.kv_heads;
    uint _e127 = params.shared_heads;
    uint kept = ((row * _e123) * _e127) + first_head;
    uint _e138 = params.sequences;
    if (unnamed < _e138) {
        uint _e143 = lengths[metal::min(unsigned(unnamed), (_buffer_sizes.size4 - 0 - 8) / 8)].x;
        uint _e149 = starts[metal::min(unsigned(unnamed + 1u), (_buffer_sizes.size3 - 0 - 8) / 8)].x;
        position = _e143 - (_e149 - row);
        uint _e154 = params.window;
        if (_e154 > 0u) {
            uint _e157 = position;
            uint _e162 = params.window;
            uint _e166 = params.window;
            first = metal::max(_e157 + 1u, _e162) - _e166;
        }
        uint _e168 = first;
        uint _e169 = first;
        uint _e175 = params.span;
        from_position = (_e168 - naga_mod(_e169, CHUNK)) + (split * _e175);
    }
    uint _e178 = from_position;
    uint _e179 = position;
    if (_e178 > _e179) {
        return;
    }
    uint _e181 = from_position;
    uint _e184 = params.span;
    uint _e186 = position;
    uint end = metal::min(_e181 + _e184, _e186 + 1u);
    i = lane;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e250 = i;
            i = _e250 + THREADS;
        }
        loop_init_1 = false;
        uint _e191 = i;
        if (_e191 < 32u) {
        } else {
            break;
        }
        {
            uint _e194 = i;
            uint _e203 = params.key_width;
            uint from_query = (result + metal::min(naga_div(_e194, WIDTH4_), heads - 1u)) * _e203;
            x = metal::float4(0.0);
            c = 0u;
            bool loop_init_2 = true;
            while(true) {
                if (!loop_init_2) {
                    uint _e240 = c;
                    c = _e240 + 1u;
                }
                loop_init_2 = false;
                uint _e210 = c;
                if (_e210 < 4u) {
                } else {
                    break;
                }
                {
                    uint _e213 = i;
                    uint _e220 = c;
                    uint _e224 = i;
                    uint d_1 = (((naga_div(naga_mod(_e213, WIDTH4_), SLICES) * 4u) + _e220) * SLICES) + naga_mod(_e224, SLICES);
                    uint _e230 = params.key_width;
                    if (d_1 < _e230) {
                        uint _e232 = c;
                        half _e237 = q[metal::min(unsigned(from_query + d_1), (_buffer_sizes.size0 - 0 - 2) / 2)];
                        x[metal::min(unsigned(_e232), 3u)] = static_cast<float>(_e237);
                    }
                }
            }
            uint _e243 = i;
            metal::float4 _e245 = x;
            float _e248 = params.scale;
            queries.inner[metal::min(unsigned(_e243), 31u)] = _e245 * _e248;
        }
    }
    if (lane < HEADS) {
        most.inner[metal::min(unsigned(lane), 1u)] = -300000000000000000000000000000000000000.0;
        total.inner[metal::min(unsigned(lane), 1u)] = 0.0;
    }
    uint _e263 = params.value_width;
    uint columns = naga_div(_e263 + 3u, 4u);
    uint column = naga_mod(lane, columns);
    uint slice_count = naga_div(THREADS, columns);
    uint value_slice = naga_div(lane, columns);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint _e278 = from_position;
    start = _e278;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e1587 = start;
            start = _e1587 + CHUNK;
        }
        loop_init_3 = false;
        uint _e280 = start;
        if (_e280 < end) {
        } else {
            break;
        }
        {
            uint _e282 = start;
            uint stop = metal::min(_e282 + CHUNK, end);
            i_1 = lane;
            bool loop_init_4 = true;
            while(true) {
                if (!loop_init_4) {
                    uint _e332 = i_1;
                    i_1 = _e332 + THREADS;
                }
                loop_init_4 = false;
                uint _e287 = i_1;
                if (_e287 < CHUNK) {
                } else {
                    break;
                }
                {
                    uint _e290 = start;
                    uint _e291 = i_1;
                    uint p_1 = metal::min(_e290 + _e291, end - 1u);
                    uint _e299 = params.most;
                    uint _e303 = params.block;
                    uint _e308 = blocks[metal::min(unsigned((unnamed * _e299) + naga_div(p_1, _e303)), (_buffer_sizes.size5 - 0 - 8) / 8)].x;
                    uint _e311 = params.count;
                    uint block = metal::min(_e308, _e311 - 1u);
                    uint _e316 = i_1;
                    uint _e320 = params.kv_heads;
                    uint _e325 = params.block;
                    uint _e329 = params.block;
                    vectors.inner[metal::min(unsigned(_e316), 511u)] = (((block * _e320) + head) * _e325) + naga_mod(p_1, _e329);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint slice = naga_mod(lane, SLICES);
            quad_ = naga_div(lane, SLICES);
            bool loop_init_5 = true;
            while(true) {
                if (!loop_init_5) {
                    uint _e1047 = quad_;
                    quad_ = _e1047 + GROUPS;
                }
                loop_init_5 = false;
                uint _e340 = quad_;
                if (_e340 < 128u) {
                } else {
                    break;
                }
                {
                    uint _e343 = start;
                    uint _e344 = quad_;
                    uint at_2 = _e343 + (_e344 * 4u);
                    score0_ = metal::float4(0.0);
                    score1_ = metal::float4(0.0);
                    if (at_2 < end) {
                        uint _e356 = quad_;
                        uint vector = vectors.inner[metal::min(unsigned(_e356 * 4u), 511u)];
                        uint _e363 = params.block;
                        uint within = naga_mod(vector, _e363);
                        uint _e368 = params.key_width;
                        uint from_key = ((vector - within) * _e368) + within;
                        uint _e373 = params.key_width;
                        uint last = _e373 - 1u;
                        d = slice;
                        bool loop_init_6 = true;
                        while(true) {
                            if (!loop_init_6) {
                                uint _e779 = d;
                                d = _e779 + 16u;
                            }
                            loop_init_6 = false;
                            uint _e377 = d;
                            uint _e381 = params.key_width;
                            if ((_e377 - slice) < naga_div(_e381 + 3u, 4u)) {
                            } else {
                                break;
                            }
                            {
                                uint _e387 = d;
                                uint _e397 = params.block;
                                metal::float4 _e400 = keys_at(from_key + (metal::min((((_e387 - slice) * 4u) + 0u) + slice, last) * _e397), keys, _buffer_sizes);
                                uint _e401 = d;
                                uint _e411 = params.block;
                                metal::float4 _e414 = keys_at(from_key + (metal::min((((_e401 - slice) * 4u) + 4u) + slice, last) * _e411), keys, _buffer_sizes);
                                uint _e415 = d;
                                uint _e425 = params.block;
                                metal::float4 _e428 = keys_at(from_key + (metal::min((((_e415 - slice) * 4u) + 8u) + slice, last) * _e425), keys, _buffer_sizes);
                                uint _e429 = d;
                                uint _e439 = params.block;
                                metal::float4 _e442 = keys_at(from_key + (metal::min((((_e429 - slice) * 4u) + 12u) + slice, last) * _e439), keys, _buffer_sizes);
                                uint _e443 = d;
                                uint _e453 = params.block;
                                metal::float4 _e456 = keys_at(from_key + (metal::min((((_e443 - slice) * 4u) + 16u) + slice, last) * _e453), keys, _buffer_sizes);
                                uint _e457 = d;
                                uint _e467 = params.block;
                                metal::float4 _e470 = keys_at(from_key + (metal::min((((_e457 - slice) * 4u) + 20u) + slice, last) * _e467), keys, _buffer_sizes);
                                uint _e471 = d;
                                uint _e481 = params.block;
                                metal::float4 _e484 = keys_at(from_key + (metal::min((((_e471 - slice) * 4u) + 24u) + slice, last) * _e481), keys, _buffer_sizes);
                                uint _e485 = d;
                                uint _e495 = params.block;
                                metal::float4 _e498 = keys_at(from_key + (metal::min((((_e485 - slice) * 4u) + 28u) + slice, last) * _e495), keys, _buffer_sizes);
                                uint _e499 = d;
                                uint _e509 = params.block;
                                metal::float4 _e512 = keys_at(from_key + (metal::min((((_e499 - slice) * 4u) + 32u) + slice, last) * _e509), keys, _buffer_sizes);
                                uint _e513 = d;
                                uint _e523 = params.block;
                                metal::float4 _e526 = keys_at(from_key + (metal::min((((_e513 - slice) * 4u) + 36u) + slice, last) * _e523), keys, _buffer_sizes);
                                uint _e527 = d;
                                uint _e537 = params.block;
                                metal::float4 _e540 = keys_at(from_key + (metal::min((((_e527 - slice) * 4u) + 40u) + slice, last) * _e537), keys, _buffer_sizes);
                                uint _e541 = d;
                                uint _e551 = params.block;
                                metal::float4 _e554 = keys_at(from_key + (metal::min((((_e541 - slice) * 4u) + 44u) + slice, last) * _e551), keys, _buffer_sizes);
                                uint _e555 = d;
                                uint _e565 = params.block;
                                metal::float4 _e568 = keys_at(from_key + (metal::min((((_e555 - slice) * 4u) + 48u) + slice, last) * _e565), keys, _buffer_sizes);
                                uint _e569 = d;
                                uint _e579 = params.block;
                                metal::float4 _e582 = keys_at(from_key + (metal::min((((_e569 - slice) * 4u) + 52u) + slice, last) * _e579), keys, _buffer_sizes);
                                uint _e583 = d;
                                uint _e593 = params.block;
                                metal::float4 _e596 = keys_at(from_key + (metal::min((((_e583 - slice) * 4u) + 56u) + slice, last) * _e593), keys, _buffer_sizes);
                                uint _e597 = d;
                                uint _e607 = params.block;
                                metal::float4 _e610 = keys_at(from_key + (metal::min((((_e597 - slice) * 4u) + 60u) + slice, last) * _e607), keys, _buffer_sizes);
                                uint _e613 = d;
                                metal::float4 query0_0_ = queries.inner[metal::min(unsigned((0u + _e613) + 0u), 31u)];
                                metal::float4 _e619 = score0_;
                                score0_ = _e619 + ((((query0_0_.x * _e400) + (query0_0_.y * _e414)) + (query0_0_.z * _e428)) + (query0_0_.w * _e442));
                                uint _e634 = d;
                                metal::float4 query0_1_ = queries.inner[metal::min(unsigned((16u + _e634) + 0u), 31u)];
                                metal::float4 _e640 = score1_;
                                score1_ = _e640 + ((((query0_1_.x * _e400) + (query0_1_.y * _e414)) + (query0_1_.z * _e428)) + (query0_1_.w * _e442));
                                uint _e655 = d;
                                metal::float4 query1_0_ = queries.inner[metal::min(unsigned((0u + _e655) + 4u), 31u)];
                                metal::float4 _e661 = score0_;
                                score0_ = _e661 + ((((query1_0_.x * _e456) + (query1_0_.y * _e470)) + (query1_0_.z * _e484)) + (query1_0_.w * _e498));
                                uint _e676 = d;
                                metal::float4 query1_1_ = queries.inner[metal::min(unsigned((16u + _e676) + 4u), 31u)];
                                metal::float4 _e682 = score1_;
                                score1_ = _e682 + ((((query1_1_.x * _e456) + (query1_1_.y * _e470)) + (query1_1_.z * _e484)) + (query1_1_.w * _e498));
                                uint _e697 = d;
                                metal::float4 query2_0_ = queries.inner[metal::min(unsigned((0u + _e697) + 8u), 31u)];
                                metal::float4 _e703 = score0_;
                                score0_ = _e703 + ((((query2_0_.x * _e512) + (query2_0_.y * _e526)) + (query2_0_.z * _e540)) + (query2_0_.w * _e554));
                                uint _e718 = d;
                                metal::float4 query2_1_ = queries.inner[metal::min(unsigned((16u + _e718) + 8u), 31u)];
                                metal::float4 _e724 = score1_;
                                score1_ = _e724 + ((((query2_1_.x * _e512) + (query2_1_.y * _e526)) + (query2_1_.z * _e540)) + (query2_1_.w * _e554));
                                uint _e739 = d;
                                metal::float4 query3_0_ = queries.inner[metal::min(unsigned((0u + _e739) + 12u), 31u)];
                                metal::float4 _e745 = score0_;
                                score0_ = _e745 + ((((query3_0_.x * _e568) + (query3_0_.y * _e582)) + (query3_0_.z * _e596)) + (query3_0_.w * _e610));
                                uint _e760 = d;
                                metal::float4 query3_1_ = queries.inner[metal::min(unsigned((16u + _e760) + 12u), 31u)];
                                metal::float4 _e766 = score1_;
                                score1_ = _e766 + ((((query3_1_.x * _e568) + (query3_1_.y * _e582)) + (query3_1_.z * _e596)) + (query3_1_.w * _e610));
                            }
                        }
                        metal::float4 key_scale = key_scales[metal::min(unsigned(naga_div(vector, 4u)), (_buffer_sizes.size7 - 0 - 16) / 16)];
                        metal::float4 _e787 = score0_;
                        score0_ = _e787 * key_scale;
                        metal::float4 _e789 = score1_;
                        score1_ = _e789 * key_scale;
                    }
                    apart = 1u;
                    bool loop_init_7 = true;
                    while(true) {
                        if (!loop_init_7) {
                            uint _e806 = apart;
                            apart = _e806 * 2u;
                        }
                        loop_init_7 = false;
                        uint _e793 = apart;
                        if (_e793 < SLICES) {
                        } else {
                            break;
                        }
                        {
                            metal::float4 _e796 = score0_;
                            metal::float4 _e797 = score0_;
                            uint _e798 = apart;
                            metal::float4 unnamed_1 = metal::simd_shuffle_xor(_e797, _e798);
                            score0_ = _e796 + unnamed_1;
                            metal::float4 _e801 = score1_;
                            metal::float4 _e802 = score1_;
                            uint _e803 = apart;
                            metal::float4 unnamed_2 = metal::simd_shuffle_xor(_e802, _e803);
                            score1_ = _e801 + unnamed_2;
                        }
                    }
                    if (slice == 0u) {
                        float _e813 = params.softcap;
                        if (_e813 > 0.0) {
                            float _e818 = params.softcap;
                            metal::float4 _e819 = score0_;
                            float _e822 = params.softcap;
                            score0_ = _e818 * metal::tanh(metal::clamp(_e819 / metal::float4(_e822), metal::float4(-20.0), metal::float4(20.0)));
                        }
                        uint _e834 = quad_;
                        float _e842 = score0_.x;
                        uint _e845 = first;
                        if ((at_2 + 0u) >= _e845) {
                            local_1 = (at_2 + 0u) < end;
                        } else {
                            local_1 = false;
                        }
                        bool _e853 = local_1;
                        scores.inner[metal::min(unsigned((0u + (_e834 * 4u)) + 0u), 1023u)] = _e853 ? _e842 : -300000000000000000000000000000000000000.0;
                        uint _e858 = quad_;
                        float _e866 = score0_.y;
                        uint _e869 = first;
                        if ((at_2 + 1u) >= _e869) {
                            local_2 = (at_2 + 1u) < end;
                        } else {
                            local_2 = false;
                        }
                        bool _e877 = local_2;
                        scores.inner[metal::min(unsigned((0u + (_e858 * 4u)) + 1u), 1023u)] = _e877 ? _e866 : -300000000000000000000000000000000000000.0;
                        uint _e882 = quad_;
                        float _e890 = score0_.z;
                        uint _e893 = first;
                        if ((at_2 + 2u) >= _e893) {
                            local_3 = (at_2 + 2u) < end;
                        } else {
                            local_3 = false;
                        }
                        bool _e901 = local_3;
                        scores.inner[metal::min(unsigned((0u + (_e882 * 4u)) + 2u), 1023u)] = _e901 ? _e890 : -300000000000000000000000000000000000000.0;
                        uint _e906 = quad_;
                        float _e914 = score0_.w;
                        uint _e917 = first;
                        if ((at_2 + 3u) >= _e917) {
                            local_4 = (at_2 + 3u) < end;
                        } else {
                            local_4 = false;
                        }
                        bool _e925 = local_4;
                        scores.inner[metal::min(unsigned((0u + (_e906 * 4u)) + 3u), 1023u)] = _e925 ? _e914 : -300000000000000000000000000000000000000.0;
                    }
                    if (slice == 1u) {
                        float _e932 = params.softcap;
                        if (_e932 > 0.0) {
                            float _e937 = params.softcap;
                            metal::float4 _e938 = score1_;
                            float _e941 = params.softcap;
                            score1_ = _e937 * metal::tanh(metal::clamp(_e938 / metal::float4(_e941), metal::float4(-20.0), metal::float4(20.0)));
                        }
                        uint _e953 = quad_;
                        float _e961 = score1_.x;
                        uint _e964 = first;
                        if ((at_2 + 0u) >= _e964) {
                            local_5 = (at_2 + 0u) < end;
                        } else {
                            local_5 = false;
                        }
                        bool _e972 = local_5;
                        scores.inner[metal::min(unsigned((512u + (_e953 * 4u)) + 0u), 1023u)] = _e972 ? _e961 : -300000000000000000000000000000000000000.0;
                        uint _e977 = quad_;
                        float _e985 = score1_.y;
                        uint _e988 = first;
                        if ((at_2 + 1u) >= _e988) {
                            local_6 = (at_2 + 1u) < end;
                        } else {
                            local_6 = false;
                        }
                        bool _e996 = local_6;
                        scores.inner[metal::min(unsigned((512u + (_e977 * 4u)) + 1u), 1023u)] = _e996 ? _e985 : -300000000000000000000000000000000000000.0;
                        uint _e1001 = quad_;
                        float _e1009 = score1_.z;
                        uint _e1012 = first;
                        if ((at_2 + 2u) >= _e1012) {
                            local_7 = (at_2 + 2u) < end;
                        } else {
                            local_7 = false;
                        }
                        bool _e1020 = local_7;
                        scores.inner[metal::min(unsigned((512u + (_e1001 * 4u)) + 2u), 1023u)] = _e1020 ? _e1009 : -300000000000000000000000000000000000000.0;
                        uint _e1025 = quad_;
                        float _e1033 = score1_.w;
                        uint _e1036 = first;
                        if ((at_2 + 3u) >= _e1036) {
                            local_8 = (at_2 + 3u) < end;
                        } else {
                            local_8 = false;
                        }
                        bool _e1044 = local_8;
                        scores.inner[metal::min(unsigned((512u + (_e1025 * 4u)) + 3u), 1023u)] = _e1044 ? _e1033 : -300000000000000000000000000000000000000.0;
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint own = naga_div(lane, PER_HEAD);
            if (own < HEADS) {
                x_1 = -300000000000000000000000000000000000000.0;
                i_2 = naga_mod(lane, PER_HEAD);
                bool loop_init_8 = true;
                while(true) {
                    if (!loop_init_8) {
                        uint _e1071 = i_2;
                        i_2 = _e1071 + PER_HEAD;
                    }
                    loop_init_8 = false;
                    uint _e1059 = i_2;
                    if (_e1059 < CHUNK) {
                    } else {
                        break;
                    }
                    {
                        float _e1062 = x_1;
                        uint _e1066 = i_2;
                        float _e1069 = scores.inner[metal::min(unsigned((own * CHUNK) + _e1066), 1023u)];
                        x_1 = metal::max(_e1062, _e1069);
                    }
                }
                float _e1077 = x_1;
                reduced.inner[metal::min(unsigned(lane), 63u)].x = _e1077;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            highest = -300000000000000000000000000000000000000.0;
            if (own < HEADS) {
                float _e1084 = most.inner[metal::min(unsigned(own), 1u)];
                highest = _e1084;
                i_3 = 0u;
                bool loop_init_9 = true;
                while(true) {
                    if (!loop_init_9) {
                        uint _e1101 = i_3;
                        i_3 = _e1101 + 1u;
                    }
                    loop_init_9 = false;
                    uint _e1087 = i_3;
                    if (_e1087 < PER_HEAD) {
                    } else {
                        break;
                    }
                    {
                        float _e1090 = highest;
                        uint _e1094 = i_3;
                        float _e1098 = reduced.inner[metal::min(unsigned((own * PER_HEAD) + _e1094), 63u)].x;
                        highest = metal::max(_e1090, _e1098);
                    }
                }
                sum = 0.0;
                i_4 = naga_mod(lane, PER_HEAD);
                bool loop_init_10 = true;
                while(true) {
                    if (!loop_init_10) {
                        uint _e1129 = i_4;
                        i_4 = _e1129 + PER_HEAD;
                    }
                    loop_init_10 = false;
                    uint _e1108 = i_4;
                    if (_e1108 < CHUNK) {
                    } else {
                        break;
                    }
                    {
                        uint _e1114 = i_4;
                        float _e1117 = scores.inner[metal::min(unsigned((own * CHUNK) + _e1114), 1023u)];
                        float _e1118 = highest;
                        float weight = metal::exp(_e1117 - _e1118);
                        uint _e1124 = i_4;
                        scores.inner[metal::min(unsigned((own * CHUNK) + _e1124), 1023u)] = weight;
                        float _e1127 = sum;
                        sum = _e1127 + weight;
                    }
                }
                float _e1135 = sum;
                reduced.inner[metal::min(unsigned(lane), 63u)].y = _e1135;
                if (naga_mod(lane, PER_HEAD) == 0u) {
                    float _e1144 = most.inner[metal::min(unsigned(own), 1u)];
                    float _e1145 = highest;
                    shrink.inner[metal::min(unsigned(own), 1u)] = metal::exp(_e1144 - _e1145);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            if (own < HEADS) {
                local_9 = naga_mod(lane, PER_HEAD) == 0u;
            } else {
                local_9 = false;
            }
            bool _e1157 = local_9;
            if (_e1157) {
                float _e1160 = total.inner[metal::min(unsigned(own), 1u)];
                float _e1163 = shrink.inner[metal::min(unsigned(own), 1u)];
                sum_1 = _e1160 * _e1163;
                i_5 = 0u;
                bool loop_init_11 = true;
                while(true) {
                    if (!loop_init_11) {
                        uint _e1182 = i_5;
                        i_5 = _e1182 + 1u;
                    }
                    loop_init_11 = false;
                    uint _e1168 = i_5;
                    if (_e1168 < PER_HEAD) {
                    } else {
                        break;
                    }
                    {
                        float _e1171 = sum_1;
                        uint _e1175 = i_5;
                        float _e1179 = reduced.inner[metal::min(unsigned((own * PER_HEAD) + _e1175), 63u)].y;
                        sum_1 = _e1171 + _e1179;
                    }
                }
                float _e1186 = sum_1;
                total.inner[metal::min(unsigned(own), 1u)] = _e1186;
                float _e1189 = highest;
                most.inner[metal::min(unsigned(own), 1u)] = _e1189;
            }
            metal::float4 _e1190 = sum0_;
            float _e1193 = shrink.inner[0];
            sum0_ = _e1190 * _e1193;
            metal::float4 _e1195 = sum1_;
            float _e1198 = shrink.inner[1];
            sum1_ = _e1195 * _e1198;
            if (value_slice < slice_count) {
                uint _e1201 = start;
                uint _e1202 = first;
                uint _e1204 = start;
                p = (metal::max(_e1201, _e1202) - _e1204) + value_slice;
                uint _e1208 = start;
                uint length = stop - _e1208;
                bool loop_init_12 = true;
                while(true) {
                    if (!loop_init_12) {
                        uint _e1545 = p;
                        p = _e1545 + (8u * slice_count);
                    }
                    loop_init_12 = false;
                    uint _e1210 = p;
                    if ((_e1210 + (7u * slice_count)) < length) {
                    } else {
                        break;
                    }
                    {
                        uint _e1216 = p;
                        uint vector0_ = vectors.inner[metal::min(unsigned(_e1216 + (0u * slice_count)), 511u)];
                        uint _e1224 = params.value_width;
                        metal::float4 _e1229 = values_at((vector0_ * _e1224) + (column * 4u), values, _buffer_sizes);
                        float _e1232 = value_scales[metal::min(unsigned(vector0_), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value0_ = _e1229 * _e1232;
                        uint _e1235 = p;
                        uint vector1_ = vectors.inner[metal::min(unsigned(_e1235 + (1u * slice_count)), 511u)];
                        uint _e1243 = params.value_width;
                        metal::float4 _e1248 = values_at((vector1_ * _e1243) + (column * 4u), values, _buffer_sizes);
                        float _e1251 = value_scales[metal::min(unsigned(vector1_), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value1_ = _e1248 * _e1251;
                        uint _e1254 = p;
                        uint vector2_ = vectors.inner[metal::min(unsigned(_e1254 + (2u * slice_count)), 511u)];
                        uint _e1262 = params.value_width;
                        metal::float4 _e1267 = values_at((vector2_ * _e1262) + (column * 4u), values, _buffer_sizes);
                        float _e1270 = value_scales[metal::min(unsigned(vector2_), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value2_ = _e1267 * _e1270;
                        uint _e1273 = p;
                        uint vector3_ = vectors.inner[metal::min(unsigned(_e1273 + (3u * slice_count)), 511u)];
                        uint _e1281 = params.value_width;
                        metal::float4 _e1286 = values_at((vector3_ * _e1281) + (column * 4u), values, _buffer_sizes);
                        float _e1289 = value_scales[metal::min(unsigned(vector3_), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value3_ = _e1286 * _e1289;
                        uint _e1292 = p;
                        uint vector4_ = vectors.inner[metal::min(unsigned(_e1292 + (4u * slice_count)), 511u)];
                        uint _e1300 = params.value_width;
                        metal::float4 _e1305 = values_at((vector4_ * _e1300) + (column * 4u), values, _buffer_sizes);
                        float _e1308 = value_scales[metal::min(unsigned(vector4_), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value4_ = _e1305 * _e1308;
                        uint _e1311 = p;
                        uint vector5_ = vectors.inner[metal::min(unsigned(_e1311 + (5u * slice_count)), 511u)];
                        uint _e1319 = params.value_width;
                        metal::float4 _e1324 = values_at((vector5_ * _e1319) + (column * 4u), values, _buffer_sizes);
                        float _e1327 = value_scales[metal::min(unsigned(vector5_), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value5_ = _e1324 * _e1327;
                        uint _e1330 = p;
                        uint vector6_ = vectors.inner[metal::min(unsigned(_e1330 + (6u * slice_count)), 511u)];
                        uint _e1338 = params.value_width;
                        metal::float4 _e1343 = values_at((vector6_ * _e1338) + (column * 4u), values, _buffer_sizes);
                        float _e1346 = value_scales[metal::min(unsigned(vector6_), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value6_ = _e1343 * _e1346;
                        uint _e1349 = p;
                        uint vector7_ = vectors.inner[metal::min(unsigned(_e1349 + (7u * slice_count)), 511u)];
                        uint _e1357 = params.value_width;
                        metal::float4 _e1362 = values_at((vector7_ * _e1357) + (column * 4u), values, _buffer_sizes);
                        float _e1365 = value_scales[metal::min(unsigned(vector7_), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value7_ = _e1362 * _e1365;
                        metal::float4 _e1367 = sum0_;
                        uint _e1370 = p;
                        float _e1376 = scores.inner[metal::min(unsigned((0u + _e1370) + (0u * slice_count)), 1023u)];
                        uint _e1380 = p;
                        float _e1386 = scores.inner[metal::min(unsigned((0u + _e1380) + (1u * slice_count)), 1023u)];
                        uint _e1391 = p;
                        float _e1397 = scores.inner[metal::min(unsigned((0u + _e1391) + (2u * slice_count)), 1023u)];
                        uint _e1402 = p;
                        float _e1408 = scores.inner[metal::min(unsigned((0u + _e1402) + (3u * slice_count)), 1023u)];
                        uint _e1413 = p;
                        float _e1419 = scores.inner[metal::min(unsigned((0u + _e1413) + (4u * slice_count)), 1023u)];
                        uint _e1424 = p;
                        float _e1430 = scores.inner[metal::min(unsigned((0u + _e1424) + (5u * slice_count)), 1023u)];
                        uint _e1435 = p;
                        float _e1441 = scores.inner[metal::min(unsigned((0u + _e1435) + (6u * slice_count)), 1023u)];
                        uint _e1446 = p;
                        float _e1452 = scores.inner[metal::min(unsigned((0u + _e1446) + (7u * slice_count)), 1023u)];
                        sum0_ = _e1367 + ((((((((_e1376 * value0_) + (_e1386 * value1_)) + (_e1397 * value2_)) + (_e1408 * value3_)) + (_e1419 * value4_)) + (_e1430 * value5_)) + (_e1441 * value6_)) + (_e1452 * value7_));
                        metal::float4 _e1456 = sum1_;
                        uint _e1459 = p;
                        float _e1465 = scores.inner[metal::min(unsigned((512u + _e1459) + (0u * slice_count)), 1023u)];
                        uint _e1469 = p;
                        float _e1475 = scores.inner[metal::min(unsigned((512u + _e1469) + (1u * slice_count)), 1023u)];
                        uint _e1480 = p;
                        float _e1486 = scores.inner[metal::min(unsigned((512u + _e1480) + (2u * slice_count)), 1023u)];
                        uint _e1491 = p;
                        float _e1497 = scores.inner[metal::min(unsigned((512u + _e1491) + (3u * slice_count)), 1023u)];
                        uint _e1502 = p;
                        float _e1508 = scores.inner[metal::min(unsigned((512u + _e1502) + (4u * slice_count)), 1023u)];
                        uint _e1513 = p;
                        float _e1519 = scores.inner[metal::min(unsigned((512u + _e1513) + (5u * slice_count)), 1023u)];
                        uint _e1524 = p;
                        float _e1530 = scores.inner[metal::min(unsigned((512u + _e1524) + (6u * slice_count)), 1023u)];
                        uint _e1535 = p;
                        float _e1541 = scores.inner[metal::min(unsigned((512u + _e1535) + (7u * slice_count)), 1023u)];
                        sum1_ = _e1456 + ((((((((_e1465 * value0_) + (_e1475 * value1_)) + (_e1486 * value2_)) + (_e1497 * value3_)) + (_e1508 * value4_)) + (_e1519 * value5_)) + (_e1530 * value6_)) + (_e1541 * value7_));
                    }
                }
                bool loop_init_13 = true;
                while(true) {
                    if (!loop_init_13) {
                        uint _e1585 = p;
                        p = _e1585 + slice_count;
                    }
                    loop_init_13 = false;
                    uint _e1549 = p;
                    if (_e1549 < length) {
                    } else {
                        break;
                    }
                    {
                        uint _e1552 = p;
                        uint vector_1 = vectors.inner[metal::min(unsigned(_e1552), 511u)];
                        uint _e1557 = params.value_width;
                        metal::float4 _e1562 = values_at((vector_1 * _e1557) + (column * 4u), values, _buffer_sizes);
                        float _e1565 = value_scales[metal::min(unsigned(vector_1), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value = _e1562 * _e1565;
                        metal::float4 _e1567 = sum0_;
                        uint _e1570 = p;
                        float _e1573 = scores.inner[metal::min(unsigned(0u + _e1570), 1023u)];
                        sum0_ = _e1567 + (_e1573 * value);
                        metal::float4 _e1576 = sum1_;
                        uint _e1579 = p;
                        float _e1582 = scores.inner[metal::min(unsigned(512u + _e1579), 1023u)];
                        sum1_ = _e1576 + (_e1582 * value);
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    if (value_slice < slice_count) {
        metal::float4 _e1595 = sum0_;
        partial.inner[metal::min(unsigned((value_slice * columns) + column), 255u)] = _e1595;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (0u < heads) {
        local_10 = lane < columns;
    } else {
        local_10 = false;
    }
    bool _e1602 = local_10;
    if (_e1602) {
        metal::float4 _e1605 = partial.inner[metal::min(unsigned(lane), 255u)];
        x_2 = _e1605;
        bool loop_init_14 = true;
        while(true) {
            if (!loop_init_14) {
                uint _e1620 = s;
                s = _e1620 + 1u;
            }
            loop_init_14 = false;
            uint _e1609 = s;
            if (_e1609 < slice_count) {
            } else {
                break;
            }
            {
                metal::float4 _e1611 = x_2;
                uint _e1613 = s;
                metal::float4 _e1617 = partial.inner[metal::min(unsigned((_e1613 * columns) + lane), 255u)];
                x_2 = _e1611 + _e1617;
            }
        }
        metal::float4 _e1628 = x_2;
        float _e1631 = total.inner[0];
        y[metal::min(unsigned(((result + 0u) * columns) + lane), (_buffer_sizes.size6 - 0 - 8) / 8)] = static_cast<metal::half4>(_e1628 / metal::float4(_e1631));
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (value_slice < slice_count) {
        metal::float4 _e1640 = sum1_;
        partial.inner[metal::min(unsigned((value_slice * columns) + column), 255u)] = _e1640;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (1u < heads) {
        local_11 = lane < columns;
    } else {
        local_11 = false;
    }
    bool _e1647 = local_11;
    if (_e1647) {
        metal::float4 _e1650 = partial.inner[metal::min(unsigned(lane), 255u)];
        x_3 = _e1650;
        bool loop_init_15 = true;
        while(true) {
            if (!loop_init_15) {
                uint _e1665 = s_1;
                s_1 = _e1665 + 1u;
            }
            loop_init_15 = false;
            uint _e1654 = s_1;
            if (_e1654 < slice_count) {
            } else {
                break;
            }
            {
                metal::float4 _e1656 = x_3;
                uint _e1658 = s_1;
                metal::float4 _e1662 = partial.inner[metal::min(unsigned((_e1658 * columns) + lane), 255u)];
                x_3 = _e1656 + _e1662;
            }
        }
        metal::float4 _e1673 = x_3;
        float _e1676 = total.inner[1];
        y[metal::min(unsigned(((result + 1u) * columns) + lane), (_buffer_sizes.size6 - 0 - 8) / 8)] = static_cast<metal::half4>(_e1673 / metal::float4(_e1676));
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
