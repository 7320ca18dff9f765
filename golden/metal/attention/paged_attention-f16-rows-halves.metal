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
};

typedef float type_1[1];
typedef metal::uint2 type_4[1];
typedef metal::float4 type_6[1];
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
struct type_7 {
    metal::float4 inner[32];
};
struct type_8 {
    metal::float4 inner[256];
};
struct type_9 {
    float inner[1024];
};
struct type_11 {
    metal::float2 inner[64];
};
struct type_12 {
    uint inner[512];
};
struct type_13 {
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
    device type_4 const& keys,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::uint2 word = keys[metal::min(unsigned(naga_div(at, 4u)), (_buffer_sizes.size1 - 0 - 8) / 8)];
    return metal::float4(float2(as_type<half2>(word.x)), float2(as_type<half2>(word.y)));
}

metal::float4 values_at(
    uint at_1,
    device type_4 const& values,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::uint2 word_1 = values[metal::min(unsigned(naga_div(at_1, 4u)), (_buffer_sizes.size2 - 0 - 8) / 8)];
    return metal::float4(float2(as_type<half2>(word_1.x)), float2(as_type<half2>(word_1.y)));
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
, device type_4 const& keys [[buffer(1)]]
, device type_4 const& values [[buffer(2)]]
, device type_4 const& starts [[buffer(3)]]
, device type_4 const& lengths [[buffer(4)]]
, device type_4 const& blocks [[buffer(5)]]
, device type_6& y [[buffer(6)]]
, constant Params& params [[buffer(7)]]
, threadgroup type_7& queries
, threadgroup type_8& partial
, threadgroup type_9& scores
, threadgroup type_11& reduced
, threadgroup type_12& vectors
, threadgroup type_13& most
, threadgroup type_13& total
, threadgroup type_13& shrink
, threadgroup uint& sequence
, constant _mslBufferSizes& _buffer_sizes [[buffer(8)]]
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
                        float _e237 = q[metal::min(unsigned(from_query + d_1), (_buffer_sizes.size0 - 0 - 4) / 4)];
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
            uint _e1542 = start;
            start = _e1542 + CHUNK;
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
                    uint _e1038 = quad_;
                    quad_ = _e1038 + GROUPS;
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
                    }
                    apart = 1u;
                    bool loop_init_7 = true;
                    while(true) {
                        if (!loop_init_7) {
                            uint _e797 = apart;
                            apart = _e797 * 2u;
                        }
                        loop_init_7 = false;
                        uint _e784 = apart;
                        if (_e784 < SLICES) {
                        } else {
                            break;
                        }
                        {
                            metal::float4 _e787 = score0_;
                            metal::float4 _e788 = score0_;
                            uint _e789 = apart;
                            metal::float4 unnamed_1 = metal::simd_shuffle_xor(_e788, _e789);
                            score0_ = _e787 + unnamed_1;
                            metal::float4 _e792 = score1_;
                            metal::float4 _e793 = score1_;
                            uint _e794 = apart;
                            metal::float4 unnamed_2 = metal::simd_shuffle_xor(_e793, _e794);
                            score1_ = _e792 + unnamed_2;
                        }
                    }
                    if (slice == 0u) {
                        float _e804 = params.softcap;
                        if (_e804 > 0.0) {
                            float _e809 = params.softcap;
                            metal::float4 _e810 = score0_;
                            float _e813 = params.softcap;
                            score0_ = _e809 * metal::tanh(metal::clamp(_e810 / metal::float4(_e813), metal::float4(-20.0), metal::float4(20.0)));
                        }
                        uint _e825 = quad_;
                        float _e833 = score0_.x;
                        uint _e836 = first;
                        if ((at_2 + 0u) >= _e836) {
                            local_1 = (at_2 + 0u) < end;
                        } else {
                            local_1 = false;
                        }
                        bool _e844 = local_1;
                        scores.inner[metal::min(unsigned((0u + (_e825 * 4u)) + 0u), 1023u)] = _e844 ? _e833 : -300000000000000000000000000000000000000.0;
                        uint _e849 = quad_;
                        float _e857 = score0_.y;
                        uint _e860 = first;
                        if ((at_2 + 1u) >= _e860) {
                            local_2 = (at_2 + 1u) < end;
                        } else {
                            local_2 = false;
                        }
                        bool _e868 = local_2;
                        scores.inner[metal::min(unsigned((0u + (_e849 * 4u)) + 1u), 1023u)] = _e868 ? _e857 : -300000000000000000000000000000000000000.0;
                        uint _e873 = quad_;
                        float _e881 = score0_.z;
                        uint _e884 = first;
                        if ((at_2 + 2u) >= _e884) {
                            local_3 = (at_2 + 2u) < end;
                        } else {
                            local_3 = false;
                        }
                        bool _e892 = local_3;
                        scores.inner[metal::min(unsigned((0u + (_e873 * 4u)) + 2u), 1023u)] = _e892 ? _e881 : -300000000000000000000000000000000000000.0;
                        uint _e897 = quad_;
                        float _e905 = score0_.w;
                        uint _e908 = first;
                        if ((at_2 + 3u) >= _e908) {
                            local_4 = (at_2 + 3u) < end;
                        } else {
                            local_4 = false;
                        }
                        bool _e916 = local_4;
                        scores.inner[metal::min(unsigned((0u + (_e897 * 4u)) + 3u), 1023u)] = _e916 ? _e905 : -300000000000000000000000000000000000000.0;
                    }
                    if (slice == 1u) {
                        float _e923 = params.softcap;
                        if (_e923 > 0.0) {
                            float _e928 = params.softcap;
                            metal::float4 _e929 = score1_;
                            float _e932 = params.softcap;
                            score1_ = _e928 * metal::tanh(metal::clamp(_e929 / metal::float4(_e932), metal::float4(-20.0), metal::float4(20.0)));
                        }
                        uint _e944 = quad_;
                        float _e952 = score1_.x;
                        uint _e955 = first;
                        if ((at_2 + 0u) >= _e955) {
                            local_5 = (at_2 + 0u) < end;
                        } else {
                            local_5 = false;
                        }
                        bool _e963 = local_5;
                        scores.inner[metal::min(unsigned((512u + (_e944 * 4u)) + 0u), 1023u)] = _e963 ? _e952 : -300000000000000000000000000000000000000.0;
                        uint _e968 = quad_;
                        float _e976 = score1_.y;
                        uint _e979 = first;
                        if ((at_2 + 1u) >= _e979) {
                            local_6 = (at_2 + 1u) < end;
                        } else {
                            local_6 = false;
                        }
                        bool _e987 = local_6;
                        scores.inner[metal::min(unsigned((512u + (_e968 * 4u)) + 1u), 1023u)] = _e987 ? _e976 : -300000000000000000000000000000000000000.0;
                        uint _e992 = quad_;
                        float _e1000 = score1_.z;
                        uint _e1003 = first;
                        if ((at_2 + 2u) >= _e1003) {
                            local_7 = (at_2 + 2u) < end;
                        } else {
                            local_7 = false;
                        }
                        bool _e1011 = local_7;
                        scores.inner[metal::min(unsigned((512u + (_e992 * 4u)) + 2u), 1023u)] = _e1011 ? _e1000 : -300000000000000000000000000000000000000.0;
                        uint _e1016 = quad_;
                        float _e1024 = score1_.w;
                        uint _e1027 = first;
                        if ((at_2 + 3u) >= _e1027) {
                            local_8 = (at_2 + 3u) < end;
                        } else {
                            local_8 = false;
                        }
                        bool _e1035 = local_8;
                        scores.inner[metal::min(unsigned((512u + (_e1016 * 4u)) + 3u), 1023u)] = _e1035 ? _e1024 : -300000000000000000000000000000000000000.0;
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
                        uint _e1062 = i_2;
                        i_2 = _e1062 + PER_HEAD;
                    }
                    loop_init_8 = false;
                    uint _e1050 = i_2;
                    if (_e1050 < CHUNK) {
                    } else {
                        break;
                    }
                    {
                        float _e1053 = x_1;
                        uint _e1057 = i_2;
                        float _e1060 = scores.inner[metal::min(unsigned((own * CHUNK) + _e1057), 1023u)];
                        x_1 = metal::max(_e1053, _e1060);
                    }
                }
                float _e1068 = x_1;
                reduced.inner[metal::min(unsigned(lane), 63u)].x = _e1068;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            highest = -300000000000000000000000000000000000000.0;
            if (own < HEADS) {
                float _e1075 = most.inner[metal::min(unsigned(own), 1u)];
                highest = _e1075;
                i_3 = 0u;
                bool loop_init_9 = true;
                while(true) {
                    if (!loop_init_9) {
                        uint _e1092 = i_3;
                        i_3 = _e1092 + 1u;
                    }
                    loop_init_9 = false;
                    uint _e1078 = i_3;
                    if (_e1078 < PER_HEAD) {
                    } else {
                        break;
                    }
                    {
                        float _e1081 = highest;
                        uint _e1085 = i_3;
                        float _e1089 = reduced.inner[metal::min(unsigned((own * PER_HEAD) + _e1085), 63u)].x;
                        highest = metal::max(_e1081, _e1089);
                    }
                }
                sum = 0.0;
                i_4 = naga_mod(lane, PER_HEAD);
                bool loop_init_10 = true;
                while(true) {
                    if (!loop_init_10) {
                        uint _e1120 = i_4;
                        i_4 = _e1120 + PER_HEAD;
                    }
                    loop_init_10 = false;
                    uint _e1099 = i_4;
                    if (_e1099 < CHUNK) {
                    } else {
                        break;
                    }
                    {
                        uint _e1105 = i_4;
                        float _e1108 = scores.inner[metal::min(unsigned((own * CHUNK) + _e1105), 1023u)];
                        float _e1109 = highest;
                        float weight = metal::exp(_e1108 - _e1109);
                        uint _e1115 = i_4;
                        scores.inner[metal::min(unsigned((own * CHUNK) + _e1115), 1023u)] = weight;
                        float _e1118 = sum;
                        sum = _e1118 + weight;
                    }
                }
                float _e1126 = sum;
                reduced.inner[metal::min(unsigned(lane), 63u)].y = _e1126;
                if (naga_mod(lane, PER_HEAD) == 0u) {
                    float _e1135 = most.inner[metal::min(unsigned(own), 1u)];
                    float _e1136 = highest;
                    shrink.inner[metal::min(unsigned(own), 1u)] = metal::exp(_e1135 - _e1136);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            if (own < HEADS) {
                local_9 = naga_mod(lane, PER_HEAD) == 0u;
            } else {
                local_9 = false;
            }
            bool _e1148 = local_9;
            if (_e1148) {
                float _e1151 = total.inner[metal::min(unsigned(own), 1u)];
                float _e1154 = shrink.inner[metal::min(unsigned(own), 1u)];
                sum_1 = _e1151 * _e1154;
                i_5 = 0u;
                bool loop_init_11 = true;
                while(true) {
                    if (!loop_init_11) {
                        uint _e1173 = i_5;
                        i_5 = _e1173 + 1u;
                    }
                    loop_init_11 = false;
                    uint _e1159 = i_5;
                    if (_e1159 < PER_HEAD) {
                    } else {
                        break;
                    }
                    {
                        float _e1162 = sum_1;
                        uint _e1166 = i_5;
                        float _e1170 = reduced.inner[metal::min(unsigned((own * PER_HEAD) + _e1166), 63u)].y;
                        sum_1 = _e1162 + _e1170;
                    }
                }
                float _e1177 = sum_1;
                total.inner[metal::min(unsigned(own), 1u)] = _e1177;
                float _e1180 = highest;
                most.inner[metal::min(unsigned(own), 1u)] = _e1180;
            }
            metal::float4 _e1181 = sum0_;
            float _e1184 = shrink.inner[0];
            sum0_ = _e1181 * _e1184;
            metal::float4 _e1186 = sum1_;
            float _e1189 = shrink.inner[1];
            sum1_ = _e1186 * _e1189;
            if (value_slice < slice_count) {
                uint _e1192 = start;
                uint _e1193 = first;
                uint _e1195 = start;
                p = (metal::max(_e1192, _e1193) - _e1195) + value_slice;
                uint _e1199 = start;
                uint length = stop - _e1199;
                bool loop_init_12 = true;
                while(true) {
                    if (!loop_init_12) {
                        uint _e1504 = p;
                        p = _e1504 + (8u * slice_count);
                    }
                    loop_init_12 = false;
                    uint _e1201 = p;
                    if ((_e1201 + (7u * slice_count)) < length) {
                    } else {
                        break;
                    }
                    {
                        uint _e1207 = p;
                        uint vector0_ = vectors.inner[metal::min(unsigned(_e1207 + (0u * slice_count)), 511u)];
                        uint _e1215 = params.value_width;
                        metal::float4 _e1220 = values_at((vector0_ * _e1215) + (column * 4u), values, _buffer_sizes);
                        uint _e1222 = p;
                        uint vector1_ = vectors.inner[metal::min(unsigned(_e1222 + (1u * slice_count)), 511u)];
                        uint _e1230 = params.value_width;
                        metal::float4 _e1235 = values_at((vector1_ * _e1230) + (column * 4u), values, _buffer_sizes);
                        uint _e1237 = p;
                        uint vector2_ = vectors.inner[metal::min(unsigned(_e1237 + (2u * slice_count)), 511u)];
                        uint _e1245 = params.value_width;
                        metal::float4 _e1250 = values_at((vector2_ * _e1245) + (column * 4u), values, _buffer_sizes);
                        uint _e1252 = p;
                        uint vector3_ = vectors.inner[metal::min(unsigned(_e1252 + (3u * slice_count)), 511u)];
                        uint _e1260 = params.value_width;
                        metal::float4 _e1265 = values_at((vector3_ * _e1260) + (column * 4u), values, _buffer_sizes);
                        uint _e1267 = p;
                        uint vector4_ = vectors.inner[metal::min(unsigned(_e1267 + (4u * slice_count)), 511u)];
                        uint _e1275 = params.value_width;
                        metal::float4 _e1280 = values_at((vector4_ * _e1275) + (column * 4u), values, _buffer_sizes);
                        uint _e1282 = p;
                        uint vector5_ = vectors.inner[metal::min(unsigned(_e1282 + (5u * slice_count)), 511u)];
                        uint _e1290 = params.value_width;
                        metal::float4 _e1295 = values_at((vector5_ * _e1290) + (column * 4u), values, _buffer_sizes);
                        uint _e1297 = p;
                        uint vector6_ = vectors.inner[metal::min(unsigned(_e1297 + (6u * slice_count)), 511u)];
                        uint _e1305 = params.value_width;
                        metal::float4 _e1310 = values_at((vector6_ * _e1305) + (column * 4u), values, _buffer_sizes);
                        uint _e1312 = p;
                        uint vector7_ = vectors.inner[metal::min(unsigned(_e1312 + (7u * slice_count)), 511u)];
                        uint _e1320 = params.value_width;
                        metal::float4 _e1325 = values_at((vector7_ * _e1320) + (column * 4u), values, _buffer_sizes);
                        metal::float4 _e1326 = sum0_;
                        uint _e1329 = p;
                        float _e1335 = scores.inner[metal::min(unsigned((0u + _e1329) + (0u * slice_count)), 1023u)];
                        uint _e1339 = p;
                        float _e1345 = scores.inner[metal::min(unsigned((0u + _e1339) + (1u * slice_count)), 1023u)];
                        uint _e1350 = p;
                        float _e1356 = scores.inner[metal::min(unsigned((0u + _e1350) + (2u * slice_count)), 1023u)];
                        uint _e1361 = p;
                        float _e1367 = scores.inner[metal::min(unsigned((0u + _e1361) + (3u * slice_count)), 1023u)];
                        uint _e1372 = p;
                        float _e1378 = scores.inner[metal::min(unsigned((0u + _e1372) + (4u * slice_count)), 1023u)];
                        uint _e1383 = p;
                        float _e1389 = scores.inner[metal::min(unsigned((0u + _e1383) + (5u * slice_count)), 1023u)];
                        uint _e1394 = p;
                        float _e1400 = scores.inner[metal::min(unsigned((0u + _e1394) + (6u * slice_count)), 1023u)];
                        uint _e1405 = p;
                        float _e1411 = scores.inner[metal::min(unsigned((0u + _e1405) + (7u * slice_count)), 1023u)];
                        sum0_ = _e1326 + ((((((((_e1335 * _e1220) + (_e1345 * _e1235)) + (_e1356 * _e1250)) + (_e1367 * _e1265)) + (_e1378 * _e1280)) + (_e1389 * _e1295)) + (_e1400 * _e1310)) + (_e1411 * _e1325));
                        metal::float4 _e1415 = sum1_;
                        uint _e1418 = p;
                        float _e1424 = scores.inner[metal::min(unsigned((512u + _e1418) + (0u * slice_count)), 1023u)];
                        uint _e1428 = p;
                        float _e1434 = scores.inner[metal::min(unsigned((512u + _e1428) + (1u * slice_count)), 1023u)];
                        uint _e1439 = p;
                        float _e1445 = scores.inner[metal::min(unsigned((512u + _e1439) + (2u * slice_count)), 1023u)];
                        uint _e1450 = p;
                        float _e1456 = scores.inner[metal::min(unsigned((512u + _e1450) + (3u * slice_count)), 1023u)];
                        uint _e1461 = p;
                        float _e1467 = scores.inner[metal::min(unsigned((512u + _e1461) + (4u * slice_count)), 1023u)];
                        uint _e1472 = p;
                        float _e1478 = scores.inner[metal::min(unsigned((512u + _e1472) + (5u * slice_count)), 1023u)];
                        uint _e1483 = p;
                        float _e1489 = scores.inner[metal::min(unsigned((512u + _e1483) + (6u * slice_count)), 1023u)];
                        uint _e1494 = p;
                        float _e1500 = scores.inner[metal::min(unsigned((512u + _e1494) + (7u * slice_count)), 1023u)];
                        sum1_ = _e1415 + ((((((((_e1424 * _e1220) + (_e1434 * _e1235)) + (_e1445 * _e1250)) + (_e1456 * _e1265)) + (_e1467 * _e1280)) + (_e1478 * _e1295)) + (_e1489 * _e1310)) + (_e1500 * _e1325));
                    }
                }
                bool loop_init_13 = true;
                while(true) {
                    if (!loop_init_13) {
                        uint _e1540 = p;
                        p = _e1540 + slice_count;
                    }
                    loop_init_13 = false;
                    uint _e1508 = p;
                    if (_e1508 < length) {
                    } else {
                        break;
                    }
                    {
                        uint _e1511 = p;
                        uint vector_1 = vectors.inner[metal::min(unsigned(_e1511), 511u)];
                        uint _e1516 = params.value_width;
                        metal::float4 _e1521 = values_at((vector_1 * _e1516) + (column * 4u), values, _buffer_sizes);
                        metal::float4 _e1522 = sum0_;
                        uint _e1525 = p;
                        float _e1528 = scores.inner[metal::min(unsigned(0u + _e1525), 1023u)];
                        sum0_ = _e1522 + (_e1528 * _e1521);
                        metal::float4 _e1531 = sum1_;
                        uint _e1534 = p;
                        float _e1537 = scores.inner[metal::min(unsigned(512u + _e1534), 1023u)];
                        sum1_ = _e1531 + (_e1537 * _e1521);
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    if (value_slice < slice_count) {
        metal::float4 _e1550 = sum0_;
        partial.inner[metal::min(unsigned((value_slice * columns) + column), 255u)] = _e1550;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (0u < heads) {
        local_10 = lane < columns;
    } else {
        local_10 = false;
    }
    bool _e1557 = local_10;
    if (_e1557) {
        metal::float4 _e1560 = partial.inner[metal::min(unsigned(lane), 255u)];
        x_2 = _e1560;
        bool loop_init_14 = true;
        while(true) {
            if (!loop_init_14) {
                uint _e1575 = s;
                s = _e1575 + 1u;
            }
            loop_init_14 = false;
            uint _e1564 = s;
            if (_e1564 < slice_count) {
            } else {
                break;
            }
            {
                metal::float4 _e1566 = x_2;
                uint _e1568 = s;
                metal::float4 _e1572 = partial.inner[metal::min(unsigned((_e1568 * columns) + lane), 255u)];
                x_2 = _e1566 + _e1572;
            }
        }
        metal::float4 _e1583 = x_2;
        float _e1586 = total.inner[0];
        y[metal::min(unsigned(((result + 0u) * columns) + lane), (_buffer_sizes.size6 - 0 - 16) / 16)] = static_cast<metal::float4>(_e1583 / metal::float4(_e1586));
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (value_slice < slice_count) {
        metal::float4 _e1595 = sum1_;
        partial.inner[metal::min(unsigned((value_slice * columns) + column), 255u)] = _e1595;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (1u < heads) {
        local_11 = lane < columns;
    } else {
        local_11 = false;
    }
    bool _e1602 = local_11;
    if (_e1602) {
        metal::float4 _e1605 = partial.inner[metal::min(unsigned(lane), 255u)];
        x_3 = _e1605;
        bool loop_init_15 = true;
        while(true) {
            if (!loop_init_15) {
                uint _e1620 = s_1;
                s_1 = _e1620 + 1u;
            }
            loop_init_15 = false;
            uint _e1609 = s_1;
            if (_e1609 < slice_count) {
            } else {
                break;
            }
            {
                metal::float4 _e1611 = x_3;
                uint _e1613 = s_1;
                metal::float4 _e1617 = partial.inner[metal::min(unsigned((_e1613 * columns) + lane), 255u)];
                x_3 = _e1611 + _e1617;
            }
        }
        metal::float4 _e1628 = x_3;
        float _e1631 = total.inner[1];
        y[metal::min(unsigned(((result + 1u) * columns) + lane), (_buffer_sizes.size6 - 0 - 16) / 16)] = static_cast<metal::float4>(_e1628 / metal::float4(_e1631));
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
