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
    float inner[512];
};
struct type_11 {
    metal::float2 inner[64];
};
struct type_12 {
    uint inner[256];
};
struct type_13 {
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
            uint _e1096 = start;
            start = _e1096 + CHUNK;
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
                    uint _e740 = quad_;
                    quad_ = _e740 + GROUPS;
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
                    }
                    apart = 1u;
                    bool loop_init_7 = true;
                    while(true) {
                        if (!loop_init_7) {
                            uint _e499 = apart;
                            apart = _e499 * 2u;
                        }
                        loop_init_7 = false;
                        uint _e486 = apart;
                        if (_e486 < SLICES) {
                        } else {
                            break;
                        }
                        {
                            metal::float4 _e489 = score0_;
                            metal::float4 _e490 = score0_;
                            uint _e491 = apart;
                            metal::float4 unnamed_1 = metal::simd_shuffle_xor(_e490, _e491);
                            score0_ = _e489 + unnamed_1;
                            metal::float4 _e494 = score1_;
                            metal::float4 _e495 = score1_;
                            uint _e496 = apart;
                            metal::float4 unnamed_2 = metal::simd_shuffle_xor(_e495, _e496);
                            score1_ = _e494 + unnamed_2;
                        }
                    }
                    if (slice == 0u) {
                        float _e506 = params.softcap;
                        if (_e506 > 0.0) {
                            float _e511 = params.softcap;
                            metal::float4 _e512 = score0_;
                            float _e515 = params.softcap;
                            score0_ = _e511 * metal::tanh(metal::clamp(_e512 / metal::float4(_e515), metal::float4(-20.0), metal::float4(20.0)));
                        }
                        uint _e527 = quad_;
                        float _e535 = score0_.x;
                        uint _e538 = first;
                        if ((at_2 + 0u) >= _e538) {
                            local_1 = (at_2 + 0u) < end;
                        } else {
                            local_1 = false;
                        }
                        bool _e546 = local_1;
                        scores.inner[metal::min(unsigned((0u + (_e527 * 4u)) + 0u), 511u)] = _e546 ? _e535 : -300000000000000000000000000000000000000.0;
                        uint _e551 = quad_;
                        float _e559 = score0_.y;
                        uint _e562 = first;
                        if ((at_2 + 1u) >= _e562) {
                            local_2 = (at_2 + 1u) < end;
                        } else {
                            local_2 = false;
                        }
                        bool _e570 = local_2;
                        scores.inner[metal::min(unsigned((0u + (_e551 * 4u)) + 1u), 511u)] = _e570 ? _e559 : -300000000000000000000000000000000000000.0;
                        uint _e575 = quad_;
                        float _e583 = score0_.z;
                        uint _e586 = first;
                        if ((at_2 + 2u) >= _e586) {
                            local_3 = (at_2 + 2u) < end;
                        } else {
                            local_3 = false;
                        }
                        bool _e594 = local_3;
                        scores.inner[metal::min(unsigned((0u + (_e575 * 4u)) + 2u), 511u)] = _e594 ? _e583 : -300000000000000000000000000000000000000.0;
                        uint _e599 = quad_;
                        float _e607 = score0_.w;
                        uint _e610 = first;
                        if ((at_2 + 3u) >= _e610) {
                            local_4 = (at_2 + 3u) < end;
                        } else {
                            local_4 = false;
                        }
                        bool _e618 = local_4;
                        scores.inner[metal::min(unsigned((0u + (_e599 * 4u)) + 3u), 511u)] = _e618 ? _e607 : -300000000000000000000000000000000000000.0;
                    }
                    if (slice == 1u) {
                        float _e625 = params.softcap;
                        if (_e625 > 0.0) {
                            float _e630 = params.softcap;
                            metal::float4 _e631 = score1_;
                            float _e634 = params.softcap;
                            score1_ = _e630 * metal::tanh(metal::clamp(_e631 / metal::float4(_e634), metal::float4(-20.0), metal::float4(20.0)));
                        }
                        uint _e646 = quad_;
                        float _e654 = score1_.x;
                        uint _e657 = first;
                        if ((at_2 + 0u) >= _e657) {
                            local_5 = (at_2 + 0u) < end;
                        } else {
                            local_5 = false;
                        }
                        bool _e665 = local_5;
                        scores.inner[metal::min(unsigned((256u + (_e646 * 4u)) + 0u), 511u)] = _e665 ? _e654 : -300000000000000000000000000000000000000.0;
                        uint _e670 = quad_;
                        float _e678 = score1_.y;
                        uint _e681 = first;
                        if ((at_2 + 1u) >= _e681) {
                            local_6 = (at_2 + 1u) < end;
                        } else {
                            local_6 = false;
                        }
                        bool _e689 = local_6;
                        scores.inner[metal::min(unsigned((256u + (_e670 * 4u)) + 1u), 511u)] = _e689 ? _e678 : -300000000000000000000000000000000000000.0;
                        uint _e694 = quad_;
                        float _e702 = score1_.z;
                        uint _e705 = first;
                        if ((at_2 + 2u) >= _e705) {
                            local_7 = (at_2 + 2u) < end;
                        } else {
                            local_7 = false;
                        }
                        bool _e713 = local_7;
                        scores.inner[metal::min(unsigned((256u + (_e694 * 4u)) + 2u), 511u)] = _e713 ? _e702 : -300000000000000000000000000000000000000.0;
                        uint _e718 = quad_;
                        float _e726 = score1_.w;
                        uint _e729 = first;
                        if ((at_2 + 3u) >= _e729) {
                            local_8 = (at_2 + 3u) < end;
                        } else {
                            local_8 = false;
                        }
                        bool _e737 = local_8;
                        scores.inner[metal::min(unsigned((256u + (_e718 * 4u)) + 3u), 511u)] = _e737 ? _e726 : -300000000000000000000000000000000000000.0;
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
                        uint _e764 = i_2;
                        i_2 = _e764 + PER_HEAD;
                    }
                    loop_init_8 = false;
                    uint _e752 = i_2;
                    if (_e752 < CHUNK) {
                    } else {
                        break;
                    }
                    {
                        float _e755 = x_1;
                        uint _e759 = i_2;
                        float _e762 = scores.inner[metal::min(unsigned((own * CHUNK) + _e759), 511u)];
                        x_1 = metal::max(_e755, _e762);
                    }
                }
                float _e770 = x_1;
                reduced.inner[metal::min(unsigned(lane), 63u)].x = _e770;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            highest = -300000000000000000000000000000000000000.0;
            if (own < HEADS) {
                float _e777 = most.inner[metal::min(unsigned(own), 1u)];
                highest = _e777;
                i_3 = 0u;
                bool loop_init_9 = true;
                while(true) {
                    if (!loop_init_9) {
                        uint _e794 = i_3;
                        i_3 = _e794 + 1u;
                    }
                    loop_init_9 = false;
                    uint _e780 = i_3;
                    if (_e780 < PER_HEAD) {
                    } else {
                        break;
                    }
                    {
                        float _e783 = highest;
                        uint _e787 = i_3;
                        float _e791 = reduced.inner[metal::min(unsigned((own * PER_HEAD) + _e787), 63u)].x;
                        highest = metal::max(_e783, _e791);
                    }
                }
                sum = 0.0;
                i_4 = naga_mod(lane, PER_HEAD);
                bool loop_init_10 = true;
                while(true) {
                    if (!loop_init_10) {
                        uint _e822 = i_4;
                        i_4 = _e822 + PER_HEAD;
                    }
                    loop_init_10 = false;
                    uint _e801 = i_4;
                    if (_e801 < CHUNK) {
                    } else {
                        break;
                    }
                    {
                        uint _e807 = i_4;
                        float _e810 = scores.inner[metal::min(unsigned((own * CHUNK) + _e807), 511u)];
                        float _e811 = highest;
                        float weight = metal::exp(_e810 - _e811);
                        uint _e817 = i_4;
                        scores.inner[metal::min(unsigned((own * CHUNK) + _e817), 511u)] = weight;
                        float _e820 = sum;
                        sum = _e820 + weight;
                    }
                }
                float _e828 = sum;
                reduced.inner[metal::min(unsigned(lane), 63u)].y = _e828;
                if (naga_mod(lane, PER_HEAD) == 0u) {
                    float _e837 = most.inner[metal::min(unsigned(own), 1u)];
                    float _e838 = highest;
                    shrink.inner[metal::min(unsigned(own), 1u)] = metal::exp(_e837 - _e838);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            if (own < HEADS) {
                local_9 = naga_mod(lane, PER_HEAD) == 0u;
            } else {
                local_9 = false;
            }
            bool _e850 = local_9;
            if (_e850) {
                float _e853 = total.inner[metal::min(unsigned(own), 1u)];
                float _e856 = shrink.inner[metal::min(unsigned(own), 1u)];
                sum_1 = _e853 * _e856;
                i_5 = 0u;
                bool loop_init_11 = true;
                while(true) {
                    if (!loop_init_11) {
                        uint _e875 = i_5;
                        i_5 = _e875 + 1u;
                    }
                    loop_init_11 = false;
                    uint _e861 = i_5;
                    if (_e861 < PER_HEAD) {
                    } else {
                        break;
                    }
                    {
                        float _e864 = sum_1;
                        uint _e868 = i_5;
                        float _e872 = reduced.inner[metal::min(unsigned((own * PER_HEAD) + _e868), 63u)].y;
                        sum_1 = _e864 + _e872;
                    }
                }
                float _e879 = sum_1;
                total.inner[metal::min(unsigned(own), 1u)] = _e879;
                float _e882 = highest;
                most.inner[metal::min(unsigned(own), 1u)] = _e882;
            }
            metal::float4 _e883 = sum0_;
            float _e886 = shrink.inner[0];
            sum0_ = _e883 * _e886;
            metal::float4 _e888 = sum1_;
            float _e891 = shrink.inner[1];
            sum1_ = _e888 * _e891;
            if (value_slice < slice_count) {
                uint _e894 = start;
                uint _e895 = first;
                uint _e897 = start;
                p = (metal::max(_e894, _e895) - _e897) + value_slice;
                uint _e901 = start;
                uint length = stop - _e901;
                bool loop_init_12 = true;
                while(true) {
                    if (!loop_init_12) {
                        uint _e1058 = p;
                        p = _e1058 + (4u * slice_count);
                    }
                    loop_init_12 = false;
                    uint _e903 = p;
                    if ((_e903 + (3u * slice_count)) < length) {
                    } else {
                        break;
                    }
                    {
                        uint _e909 = p;
                        uint vector0_ = vectors.inner[metal::min(unsigned(_e909 + (0u * slice_count)), 255u)];
                        uint _e917 = params.value_width;
                        metal::float4 _e922 = values_at((vector0_ * _e917) + (column * 4u), values, _buffer_sizes);
                        uint _e924 = p;
                        uint vector1_ = vectors.inner[metal::min(unsigned(_e924 + (1u * slice_count)), 255u)];
                        uint _e932 = params.value_width;
                        metal::float4 _e937 = values_at((vector1_ * _e932) + (column * 4u), values, _buffer_sizes);
                        uint _e939 = p;
                        uint vector2_ = vectors.inner[metal::min(unsigned(_e939 + (2u * slice_count)), 255u)];
                        uint _e947 = params.value_width;
                        metal::float4 _e952 = values_at((vector2_ * _e947) + (column * 4u), values, _buffer_sizes);
                        uint _e954 = p;
                        uint vector3_ = vectors.inner[metal::min(unsigned(_e954 + (3u * slice_count)), 255u)];
                        uint _e962 = params.value_width;
                        metal::float4 _e967 = values_at((vector3_ * _e962) + (column * 4u), values, _buffer_sizes);
                        metal::float4 _e968 = sum0_;
                        uint _e971 = p;
                        float _e977 = scores.inner[metal::min(unsigned((0u + _e971) + (0u * slice_count)), 511u)];
                        uint _e981 = p;
                        float _e987 = scores.inner[metal::min(unsigned((0u + _e981) + (1u * slice_count)), 511u)];
                        uint _e992 = p;
                        float _e998 = scores.inner[metal::min(unsigned((0u + _e992) + (2u * slice_count)), 511u)];
                        uint _e1003 = p;
                        float _e1009 = scores.inner[metal::min(unsigned((0u + _e1003) + (3u * slice_count)), 511u)];
                        sum0_ = _e968 + ((((_e977 * _e922) + (_e987 * _e937)) + (_e998 * _e952)) + (_e1009 * _e967));
                        metal::float4 _e1013 = sum1_;
                        uint _e1016 = p;
                        float _e1022 = scores.inner[metal::min(unsigned((256u + _e1016) + (0u * slice_count)), 511u)];
                        uint _e1026 = p;
                        float _e1032 = scores.inner[metal::min(unsigned((256u + _e1026) + (1u * slice_count)), 511u)];
                        uint _e1037 = p;
                        float _e1043 = scores.inner[metal::min(unsigned((256u + _e1037) + (2u * slice_count)), 511u)];
                        uint _e1048 = p;
                        float _e1054 = scores.inner[metal::min(unsigned((256u + _e1048) + (3u * slice_count)), 511u)];
                        sum1_ = _e1013 + ((((_e1022 * _e922) + (_e1032 * _e937)) + (_e1043 * _e952)) + (_e1054 * _e967));
                    }
                }
                bool loop_init_13 = true;
                while(true) {
                    if (!loop_init_13) {
                        uint _e1094 = p;
                        p = _e1094 + slice_count;
                    }
                    loop_init_13 = false;
                    uint _e1062 = p;
                    if (_e1062 < length) {
                    } else {
                        break;
                    }
                    {
                        uint _e1065 = p;
                        uint vector_1 = vectors.inner[metal::min(unsigned(_e1065), 255u)];
                        uint _e1070 = params.value_width;
                        metal::float4 _e1075 = values_at((vector_1 * _e1070) + (column * 4u), values, _buffer_sizes);
                        metal::float4 _e1076 = sum0_;
                        uint _e1079 = p;
                        float _e1082 = scores.inner[metal::min(unsigned(0u + _e1079), 511u)];
                        sum0_ = _e1076 + (_e1082 * _e1075);
                        metal::float4 _e1085 = sum1_;
                        uint _e1088 = p;
                        float _e1091 = scores.inner[metal::min(unsigned(256u + _e1088), 511u)];
                        sum1_ = _e1085 + (_e1091 * _e1075);
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    if (value_slice < slice_count) {
        metal::float4 _e1104 = sum0_;
        partial.inner[metal::min(unsigned((value_slice * columns) + column), 255u)] = _e1104;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (0u < heads) {
        local_10 = lane < columns;
    } else {
        local_10 = false;
    }
    bool _e1111 = local_10;
    if (_e1111) {
        metal::float4 _e1114 = partial.inner[metal::min(unsigned(lane), 255u)];
        x_2 = _e1114;
        bool loop_init_14 = true;
        while(true) {
            if (!loop_init_14) {
                uint _e1129 = s;
                s = _e1129 + 1u;
            }
            loop_init_14 = false;
            uint _e1118 = s;
            if (_e1118 < slice_count) {
            } else {
                break;
            }
            {
                metal::float4 _e1120 = x_2;
                uint _e1122 = s;
                metal::float4 _e1126 = partial.inner[metal::min(unsigned((_e1122 * columns) + lane), 255u)];
                x_2 = _e1120 + _e1126;
            }
        }
        metal::float4 _e1137 = x_2;
        float _e1140 = total.inner[0];
        y[metal::min(unsigned(((result + 0u) * columns) + lane), (_buffer_sizes.size6 - 0 - 16) / 16)] = static_cast<metal::float4>(_e1137 / metal::float4(_e1140));
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (value_slice < slice_count) {
        metal::float4 _e1149 = sum1_;
        partial.inner[metal::min(unsigned((value_slice * columns) + column), 255u)] = _e1149;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (1u < heads) {
        local_11 = lane < columns;
    } else {
        local_11 = false;
    }
    bool _e1156 = local_11;
    if (_e1156) {
        metal::float4 _e1159 = partial.inner[metal::min(unsigned(lane), 255u)];
        x_3 = _e1159;
        bool loop_init_15 = true;
        while(true) {
            if (!loop_init_15) {
                uint _e1174 = s_1;
                s_1 = _e1174 + 1u;
            }
            loop_init_15 = false;
            uint _e1163 = s_1;
            if (_e1163 < slice_count) {
            } else {
                break;
            }
            {
                metal::float4 _e1165 = x_3;
                uint _e1167 = s_1;
                metal::float4 _e1171 = partial.inner[metal::min(unsigned((_e1167 * columns) + lane), 255u)];
                x_3 = _e1165 + _e1171;
            }
        }
        metal::float4 _e1182 = x_3;
        float _e1185 = total.inner[1];
        y[metal::min(unsigned(((result + 1u) * columns) + lane), (_buffer_sizes.size6 - 0 - 16) / 16)] = static_cast<metal::float4>(_e1182 / metal::float4(_e1185));
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
