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
    float inner[512];
};
struct type_16 {
    metal::float2 inner[64];
};
struct type_17 {
    uint inner[256];
};
struct type_18 {
    float inner[2];
};
constant uint THREADS = 256u;
constant uint CHUNK = 256u;
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
            uint _e1125 = start;
            start = _e1125 + CHUNK;
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
                    vectors.inner[metal::min(unsigned(_e316), 255u)] = (((block * _e320) + head) * _e325) + naga_mod(p_1, _e329);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint slice = naga_mod(lane, SLICES);
            quad_ = naga_div(lane, SLICES);
            bool loop_init_5 = true;
            while(true) {
                if (!loop_init_5) {
                    uint _e749 = quad_;
                    quad_ = _e749 + GROUPS;
                }
                loop_init_5 = false;
                uint _e340 = quad_;
                if (_e340 < 64u) {
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
                        uint vector = vectors.inner[metal::min(unsigned(_e356 * 4u), 255u)];
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
                                uint _e481 = d;
                                d = _e481 + SLICES;
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
                                uint _e445 = d;
                                metal::float4 query0_ = queries.inner[metal::min(unsigned(0u + _e445), 31u)];
                                metal::float4 _e449 = score0_;
                                score0_ = _e449 + ((((query0_.x * _e400) + (query0_.y * _e414)) + (query0_.z * _e428)) + (query0_.w * _e442));
                                uint _e464 = d;
                                metal::float4 query1_ = queries.inner[metal::min(unsigned(16u + _e464), 31u)];
                                metal::float4 _e468 = score1_;
                                score1_ = _e468 + ((((query1_.x * _e400) + (query1_.y * _e414)) + (query1_.z * _e428)) + (query1_.w * _e442));
                            }
                        }
                        metal::float4 key_scale = key_scales[metal::min(unsigned(naga_div(vector, 4u)), (_buffer_sizes.size7 - 0 - 16) / 16)];
                        metal::float4 _e489 = score0_;
                        score0_ = _e489 * key_scale;
                        metal::float4 _e491 = score1_;
                        score1_ = _e491 * key_scale;
                    }
                    apart = 1u;
                    bool loop_init_7 = true;
                    while(true) {
                        if (!loop_init_7) {
                            uint _e508 = apart;
                            apart = _e508 * 2u;
                        }
                        loop_init_7 = false;
                        uint _e495 = apart;
                        if (_e495 < SLICES) {
                        } else {
                            break;
                        }
                        {
                            metal::float4 _e498 = score0_;
                            metal::float4 _e499 = score0_;
                            uint _e500 = apart;
                            metal::float4 unnamed_1 = metal::simd_shuffle_xor(_e499, _e500);
                            score0_ = _e498 + unnamed_1;
                            metal::float4 _e503 = score1_;
                            metal::float4 _e504 = score1_;
                            uint _e505 = apart;
                            metal::float4 unnamed_2 = metal::simd_shuffle_xor(_e504, _e505);
                            score1_ = _e503 + unnamed_2;
                        }
                    }
                    if (slice == 0u) {
                        float _e515 = params.softcap;
                        if (_e515 > 0.0) {
                            float _e520 = params.softcap;
                            metal::float4 _e521 = score0_;
                            float _e524 = params.softcap;
                            score0_ = _e520 * metal::tanh(metal::clamp(_e521 / metal::float4(_e524), metal::float4(-20.0), metal::float4(20.0)));
                        }
                        uint _e536 = quad_;
                        float _e544 = score0_.x;
                        uint _e547 = first;
                        if ((at_2 + 0u) >= _e547) {
                            local_1 = (at_2 + 0u) < end;
                        } else {
                            local_1 = false;
                        }
                        bool _e555 = local_1;
                        scores.inner[metal::min(unsigned((0u + (_e536 * 4u)) + 0u), 511u)] = _e555 ? _e544 : -300000000000000000000000000000000000000.0;
                        uint _e560 = quad_;
                        float _e568 = score0_.y;
                        uint _e571 = first;
                        if ((at_2 + 1u) >= _e571) {
                            local_2 = (at_2 + 1u) < end;
                        } else {
                            local_2 = false;
                        }
                        bool _e579 = local_2;
                        scores.inner[metal::min(unsigned((0u + (_e560 * 4u)) + 1u), 511u)] = _e579 ? _e568 : -300000000000000000000000000000000000000.0;
                        uint _e584 = quad_;
                        float _e592 = score0_.z;
                        uint _e595 = first;
                        if ((at_2 + 2u) >= _e595) {
                            local_3 = (at_2 + 2u) < end;
                        } else {
                            local_3 = false;
                        }
                        bool _e603 = local_3;
                        scores.inner[metal::min(unsigned((0u + (_e584 * 4u)) + 2u), 511u)] = _e603 ? _e592 : -300000000000000000000000000000000000000.0;
                        uint _e608 = quad_;
                        float _e616 = score0_.w;
                        uint _e619 = first;
                        if ((at_2 + 3u) >= _e619) {
                            local_4 = (at_2 + 3u) < end;
                        } else {
                            local_4 = false;
                        }
                        bool _e627 = local_4;
                        scores.inner[metal::min(unsigned((0u + (_e608 * 4u)) + 3u), 511u)] = _e627 ? _e616 : -300000000000000000000000000000000000000.0;
                    }
                    if (slice == 1u) {
                        float _e634 = params.softcap;
                        if (_e634 > 0.0) {
                            float _e639 = params.softcap;
                            metal::float4 _e640 = score1_;
                            float _e643 = params.softcap;
                            score1_ = _e639 * metal::tanh(metal::clamp(_e640 / metal::float4(_e643), metal::float4(-20.0), metal::float4(20.0)));
                        }
                        uint _e655 = quad_;
                        float _e663 = score1_.x;
                        uint _e666 = first;
                        if ((at_2 + 0u) >= _e666) {
                            local_5 = (at_2 + 0u) < end;
                        } else {
                            local_5 = false;
                        }
                        bool _e674 = local_5;
                        scores.inner[metal::min(unsigned((256u + (_e655 * 4u)) + 0u), 511u)] = _e674 ? _e663 : -300000000000000000000000000000000000000.0;
                        uint _e679 = quad_;
                        float _e687 = score1_.y;
                        uint _e690 = first;
                        if ((at_2 + 1u) >= _e690) {
                            local_6 = (at_2 + 1u) < end;
                        } else {
                            local_6 = false;
                        }
                        bool _e698 = local_6;
                        scores.inner[metal::min(unsigned((256u + (_e679 * 4u)) + 1u), 511u)] = _e698 ? _e687 : -300000000000000000000000000000000000000.0;
                        uint _e703 = quad_;
                        float _e711 = score1_.z;
                        uint _e714 = first;
                        if ((at_2 + 2u) >= _e714) {
                            local_7 = (at_2 + 2u) < end;
                        } else {
                            local_7 = false;
                        }
                        bool _e722 = local_7;
                        scores.inner[metal::min(unsigned((256u + (_e703 * 4u)) + 2u), 511u)] = _e722 ? _e711 : -300000000000000000000000000000000000000.0;
                        uint _e727 = quad_;
                        float _e735 = score1_.w;
                        uint _e738 = first;
                        if ((at_2 + 3u) >= _e738) {
                            local_8 = (at_2 + 3u) < end;
                        } else {
                            local_8 = false;
                        }
                        bool _e746 = local_8;
                        scores.inner[metal::min(unsigned((256u + (_e727 * 4u)) + 3u), 511u)] = _e746 ? _e735 : -300000000000000000000000000000000000000.0;
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
                        uint _e773 = i_2;
                        i_2 = _e773 + PER_HEAD;
                    }
                    loop_init_8 = false;
                    uint _e761 = i_2;
                    if (_e761 < CHUNK) {
                    } else {
                        break;
                    }
                    {
                        float _e764 = x_1;
                        uint _e768 = i_2;
                        float _e771 = scores.inner[metal::min(unsigned((own * CHUNK) + _e768), 511u)];
                        x_1 = metal::max(_e764, _e771);
                    }
                }
                float _e779 = x_1;
                reduced.inner[metal::min(unsigned(lane), 63u)].x = _e779;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            highest = -300000000000000000000000000000000000000.0;
            if (own < HEADS) {
                float _e786 = most.inner[metal::min(unsigned(own), 1u)];
                highest = _e786;
                i_3 = 0u;
                bool loop_init_9 = true;
                while(true) {
                    if (!loop_init_9) {
                        uint _e803 = i_3;
                        i_3 = _e803 + 1u;
                    }
                    loop_init_9 = false;
                    uint _e789 = i_3;
                    if (_e789 < PER_HEAD) {
                    } else {
                        break;
                    }
                    {
                        float _e792 = highest;
                        uint _e796 = i_3;
                        float _e800 = reduced.inner[metal::min(unsigned((own * PER_HEAD) + _e796), 63u)].x;
                        highest = metal::max(_e792, _e800);
                    }
                }
                sum = 0.0;
                i_4 = naga_mod(lane, PER_HEAD);
                bool loop_init_10 = true;
                while(true) {
                    if (!loop_init_10) {
                        uint _e831 = i_4;
                        i_4 = _e831 + PER_HEAD;
                    }
                    loop_init_10 = false;
                    uint _e810 = i_4;
                    if (_e810 < CHUNK) {
                    } else {
                        break;
                    }
                    {
                        uint _e816 = i_4;
                        float _e819 = scores.inner[metal::min(unsigned((own * CHUNK) + _e816), 511u)];
                        float _e820 = highest;
                        float weight = metal::exp(_e819 - _e820);
                        uint _e826 = i_4;
                        scores.inner[metal::min(unsigned((own * CHUNK) + _e826), 511u)] = weight;
                        float _e829 = sum;
                        sum = _e829 + weight;
                    }
                }
                float _e837 = sum;
                reduced.inner[metal::min(unsigned(lane), 63u)].y = _e837;
                if (naga_mod(lane, PER_HEAD) == 0u) {
                    float _e846 = most.inner[metal::min(unsigned(own), 1u)];
                    float _e847 = highest;
                    shrink.inner[metal::min(unsigned(own), 1u)] = metal::exp(_e846 - _e847);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            if (own < HEADS) {
                local_9 = naga_mod(lane, PER_HEAD) == 0u;
            } else {
                local_9 = false;
            }
            bool _e859 = local_9;
            if (_e859) {
                float _e862 = total.inner[metal::min(unsigned(own), 1u)];
                float _e865 = shrink.inner[metal::min(unsigned(own), 1u)];
                sum_1 = _e862 * _e865;
                i_5 = 0u;
                bool loop_init_11 = true;
                while(true) {
                    if (!loop_init_11) {
                        uint _e884 = i_5;
                        i_5 = _e884 + 1u;
                    }
                    loop_init_11 = false;
                    uint _e870 = i_5;
                    if (_e870 < PER_HEAD) {
                    } else {
                        break;
                    }
                    {
                        float _e873 = sum_1;
                        uint _e877 = i_5;
                        float _e881 = reduced.inner[metal::min(unsigned((own * PER_HEAD) + _e877), 63u)].y;
                        sum_1 = _e873 + _e881;
                    }
                }
                float _e888 = sum_1;
                total.inner[metal::min(unsigned(own), 1u)] = _e888;
                float _e891 = highest;
                most.inner[metal::min(unsigned(own), 1u)] = _e891;
            }
            metal::float4 _e892 = sum0_;
            float _e895 = shrink.inner[0];
            sum0_ = _e892 * _e895;
            metal::float4 _e897 = sum1_;
            float _e900 = shrink.inner[1];
            sum1_ = _e897 * _e900;
            if (value_slice < slice_count) {
                uint _e903 = start;
                uint _e904 = first;
                uint _e906 = start;
                p = (metal::max(_e903, _e904) - _e906) + value_slice;
                uint _e910 = start;
                uint length = stop - _e910;
                bool loop_init_12 = true;
                while(true) {
                    if (!loop_init_12) {
                        uint _e1083 = p;
                        p = _e1083 + (4u * slice_count);
                    }
                    loop_init_12 = false;
                    uint _e912 = p;
                    if ((_e912 + (3u * slice_count)) < length) {
                    } else {
                        break;
                    }
                    {
                        uint _e918 = p;
                        uint vector0_ = vectors.inner[metal::min(unsigned(_e918 + (0u * slice_count)), 255u)];
                        uint _e926 = params.value_width;
                        metal::float4 _e931 = values_at((vector0_ * _e926) + (column * 4u), values, _buffer_sizes);
                        float _e934 = value_scales[metal::min(unsigned(vector0_), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value0_ = _e931 * _e934;
                        uint _e937 = p;
                        uint vector1_ = vectors.inner[metal::min(unsigned(_e937 + (1u * slice_count)), 255u)];
                        uint _e945 = params.value_width;
                        metal::float4 _e950 = values_at((vector1_ * _e945) + (column * 4u), values, _buffer_sizes);
                        float _e953 = value_scales[metal::min(unsigned(vector1_), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value1_ = _e950 * _e953;
                        uint _e956 = p;
                        uint vector2_ = vectors.inner[metal::min(unsigned(_e956 + (2u * slice_count)), 255u)];
                        uint _e964 = params.value_width;
                        metal::float4 _e969 = values_at((vector2_ * _e964) + (column * 4u), values, _buffer_sizes);
                        float _e972 = value_scales[metal::min(unsigned(vector2_), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value2_ = _e969 * _e972;
                        uint _e975 = p;
                        uint vector3_ = vectors.inner[metal::min(unsigned(_e975 + (3u * slice_count)), 255u)];
                        uint _e983 = params.value_width;
                        metal::float4 _e988 = values_at((vector3_ * _e983) + (column * 4u), values, _buffer_sizes);
                        float _e991 = value_scales[metal::min(unsigned(vector3_), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value3_ = _e988 * _e991;
                        metal::float4 _e993 = sum0_;
                        uint _e996 = p;
                        float _e1002 = scores.inner[metal::min(unsigned((0u + _e996) + (0u * slice_count)), 511u)];
                        uint _e1006 = p;
                        float _e1012 = scores.inner[metal::min(unsigned((0u + _e1006) + (1u * slice_count)), 511u)];
                        uint _e1017 = p;
                        float _e1023 = scores.inner[metal::min(unsigned((0u + _e1017) + (2u * slice_count)), 511u)];
                        uint _e1028 = p;
                        float _e1034 = scores.inner[metal::min(unsigned((0u + _e1028) + (3u * slice_count)), 511u)];
                        sum0_ = _e993 + ((((_e1002 * value0_) + (_e1012 * value1_)) + (_e1023 * value2_)) + (_e1034 * value3_));
                        metal::float4 _e1038 = sum1_;
                        uint _e1041 = p;
                        float _e1047 = scores.inner[metal::min(unsigned((256u + _e1041) + (0u * slice_count)), 511u)];
                        uint _e1051 = p;
                        float _e1057 = scores.inner[metal::min(unsigned((256u + _e1051) + (1u * slice_count)), 511u)];
                        uint _e1062 = p;
                        float _e1068 = scores.inner[metal::min(unsigned((256u + _e1062) + (2u * slice_count)), 511u)];
                        uint _e1073 = p;
                        float _e1079 = scores.inner[metal::min(unsigned((256u + _e1073) + (3u * slice_count)), 511u)];
                        sum1_ = _e1038 + ((((_e1047 * value0_) + (_e1057 * value1_)) + (_e1068 * value2_)) + (_e1079 * value3_));
                    }
                }
                bool loop_init_13 = true;
                while(true) {
                    if (!loop_init_13) {
                        uint _e1123 = p;
                        p = _e1123 + slice_count;
                    }
                    loop_init_13 = false;
                    uint _e1087 = p;
                    if (_e1087 < length) {
                    } else {
                        break;
                    }
                    {
                        uint _e1090 = p;
                        uint vector_1 = vectors.inner[metal::min(unsigned(_e1090), 255u)];
                        uint _e1095 = params.value_width;
                        metal::float4 _e1100 = values_at((vector_1 * _e1095) + (column * 4u), values, _buffer_sizes);
                        float _e1103 = value_scales[metal::min(unsigned(vector_1), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value = _e1100 * _e1103;
                        metal::float4 _e1105 = sum0_;
                        uint _e1108 = p;
                        float _e1111 = scores.inner[metal::min(unsigned(0u + _e1108), 511u)];
                        sum0_ = _e1105 + (_e1111 * value);
                        metal::float4 _e1114 = sum1_;
                        uint _e1117 = p;
                        float _e1120 = scores.inner[metal::min(unsigned(256u + _e1117), 511u)];
                        sum1_ = _e1114 + (_e1120 * value);
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    if (value_slice < slice_count) {
        metal::float4 _e1133 = sum0_;
        partial.inner[metal::min(unsigned((value_slice * columns) + column), 255u)] = _e1133;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (0u < heads) {
        local_10 = lane < columns;
    } else {
        local_10 = false;
    }
    bool _e1140 = local_10;
    if (_e1140) {
        metal::float4 _e1143 = partial.inner[metal::min(unsigned(lane), 255u)];
        x_2 = _e1143;
        bool loop_init_14 = true;
        while(true) {
            if (!loop_init_14) {
                uint _e1158 = s;
                s = _e1158 + 1u;
            }
            loop_init_14 = false;
            uint _e1147 = s;
            if (_e1147 < slice_count) {
            } else {
                break;
            }
            {
                metal::float4 _e1149 = x_2;
                uint _e1151 = s;
                metal::float4 _e1155 = partial.inner[metal::min(unsigned((_e1151 * columns) + lane), 255u)];
                x_2 = _e1149 + _e1155;
            }
        }
        metal::float4 _e1166 = x_2;
        float _e1169 = total.inner[0];
        y[metal::min(unsigned(((result + 0u) * columns) + lane), (_buffer_sizes.size6 - 0 - 8) / 8)] = static_cast<metal::half4>(_e1166 / metal::float4(_e1169));
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (value_slice < slice_count) {
        metal::float4 _e1178 = sum1_;
        partial.inner[metal::min(unsigned((value_slice * columns) + column), 255u)] = _e1178;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (1u < heads) {
        local_11 = lane < columns;
    } else {
        local_11 = false;
    }
    bool _e1185 = local_11;
    if (_e1185) {
        metal::float4 _e1188 = partial.inner[metal::min(unsigned(lane), 255u)];
        x_3 = _e1188;
        bool loop_init_15 = true;
        while(true) {
            if (!loop_init_15) {
                uint _e1203 = s_1;
                s_1 = _e1203 + 1u;
            }
            loop_init_15 = false;
            uint _e1192 = s_1;
            if (_e1192 < slice_count) {
            } else {
                break;
            }
            {
                metal::float4 _e1194 = x_3;
                uint _e1196 = s_1;
                metal::float4 _e1200 = partial.inner[metal::min(unsigned((_e1196 * columns) + lane), 255u)];
                x_3 = _e1194 + _e1200;
            }
        }
        metal::float4 _e1211 = x_3;
        float _e1214 = total.inner[1];
        y[metal::min(unsigned(((result + 1u) * columns) + lane), (_buffer_sizes.size6 - 0 - 8) / 8)] = static_cast<metal::half4>(_e1211 / metal::float4(_e1214));
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
