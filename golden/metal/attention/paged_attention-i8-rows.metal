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

typedef float type_1[1];
typedef uint type_3[1];
typedef metal::uint2 type_5[1];
typedef metal::float4 type_7[1];
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
struct type_8 {
    metal::float4 inner[32];
};
struct type_9 {
    metal::float4 inner[256];
};
struct type_10 {
    float inner[256];
};
struct type_12 {
    metal::float2 inner[32];
};
struct type_13 {
    uint inner[128];
};
struct type_14 {
    float inner[2];
};
constant uint THREADS = 128u;
constant uint CHUNK = 128u;
constant uint HEADS = 2u;
constant uint GROUPS = 32u;
constant uint SLICES = 4u;
constant uint PER_HEAD = 16u;
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
[[max_total_threads_per_threadgroup(128)]] kernel void main_(
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
, device type_7 const& key_scales [[buffer(7)]]
, device type_1 const& value_scales [[buffer(8)]]
, constant Params& params [[buffer(9)]]
, threadgroup type_8& queries
, threadgroup type_9& partial
, threadgroup type_10& scores
, threadgroup type_12& reduced
, threadgroup type_13& vectors
, threadgroup type_14& most
, threadgroup type_14& total
, threadgroup type_14& shrink
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
    metal::float4 score0_ = {};
    metal::float4 score1_ = {};
    uint d = {};
    uint i_1 = {};
    metal::float4 x_1 = {};
    uint s = {};
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    bool local_4 = {};
    float x_2 = {};
    uint i_2 = {};
    float highest = {};
    uint i_3 = {};
    float sum = {};
    uint i_4 = {};
    bool local_5 = {};
    float sum_1 = {};
    uint i_5 = {};
    uint p = {};
    uint i_6 = {};
    metal::float4 x_3 = {};
    uint s_1 = {};
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
            uint _e244 = i;
            i = _e244 + THREADS;
        }
        loop_init_1 = false;
        uint _e191 = i;
        if (_e191 < 32u) {
        } else {
            break;
        }
        {
            uint _e194 = i;
            uint at_2 = naga_mod(_e194, WIDTH4_) * 4u;
            uint _e199 = i;
            uint _e208 = params.key_width;
            uint from_query = (result + metal::min(naga_div(_e199, WIDTH4_), heads - 1u)) * _e208;
            x = metal::float4(0.0);
            c = 0u;
            bool loop_init_2 = true;
            while(true) {
                if (!loop_init_2) {
                    uint _e234 = c;
                    c = _e234 + 1u;
                }
                loop_init_2 = false;
                uint _e215 = c;
                if (_e215 < 4u) {
                } else {
                    break;
                }
                {
                    uint _e218 = c;
                    uint _e222 = params.key_width;
                    if ((at_2 + _e218) < _e222) {
                        uint _e224 = c;
                        uint _e228 = c;
                        float _e231 = q[metal::min(unsigned((from_query + at_2) + _e228), (_buffer_sizes.size0 - 0 - 4) / 4)];
                        x[metal::min(unsigned(_e224), 3u)] = static_cast<float>(_e231);
                    }
                }
            }
            uint _e237 = i;
            metal::float4 _e239 = x;
            float _e242 = params.scale;
            queries.inner[metal::min(unsigned(_e237), 31u)] = _e239 * _e242;
        }
    }
    if (lane < HEADS) {
        most.inner[metal::min(unsigned(lane), 1u)] = -300000000000000000000000000000000000000.0;
        total.inner[metal::min(unsigned(lane), 1u)] = 0.0;
    }
    uint _e257 = params.value_width;
    uint columns = naga_div(_e257 + 3u, 4u);
    uint column = naga_mod(lane, columns);
    uint slice_count = naga_div(THREADS, columns);
    uint value_slice = naga_div(lane, columns);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint _e272 = from_position;
    start = _e272;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e1042 = start;
            start = _e1042 + CHUNK;
        }
        loop_init_3 = false;
        uint _e274 = start;
        if (_e274 < end) {
        } else {
            break;
        }
        {
            uint _e276 = start;
            uint stop = metal::min(_e276 + CHUNK, end);
            if (lane < CHUNK) {
                uint _e282 = start;
                uint p_1 = metal::min(_e282 + lane, end - 1u);
                uint _e290 = params.most;
                uint _e294 = params.block;
                uint _e299 = blocks[metal::min(unsigned((unnamed * _e290) + naga_div(p_1, _e294)), (_buffer_sizes.size5 - 0 - 8) / 8)].x;
                uint _e302 = params.count;
                uint block = metal::min(_e299, _e302 - 1u);
                uint _e310 = params.kv_heads;
                uint _e315 = params.block;
                uint _e319 = params.block;
                vectors.inner[metal::min(unsigned(lane), 127u)] = (((block * _e310) + head) * _e315) + naga_mod(p_1, _e319);
            }
            uint _e322 = start;
            uint p_2 = _e322 + (naga_mod(lane, GROUPS) * 4u);
            score0_ = metal::float4(0.0);
            score1_ = metal::float4(0.0);
            if (p_2 < end) {
                uint _e338 = params.most;
                uint _e342 = params.block;
                uint _e347 = blocks[metal::min(unsigned((unnamed * _e338) + naga_div(p_2, _e342)), (_buffer_sizes.size5 - 0 - 8) / 8)].x;
                uint _e350 = params.count;
                uint block_1 = metal::min(_e347, _e350 - 1u);
                uint _e356 = params.kv_heads;
                uint tile = (block_1 * _e356) + head;
                uint _e361 = params.key_width;
                uint _e365 = params.block;
                uint _e369 = params.block;
                uint from_key = ((tile * _e361) * _e365) + naga_mod(p_2, _e369);
                uint _e374 = params.key_width;
                uint last = _e374 - 1u;
                d = naga_div(lane, GROUPS);
                bool loop_init_4 = true;
                while(true) {
                    if (!loop_init_4) {
                        uint _e473 = d;
                        d = _e473 + SLICES;
                    }
                    loop_init_4 = false;
                    uint _e380 = d;
                    uint _e385 = params.key_width;
                    if ((_e380 * 4u) < _e385) {
                    } else {
                        break;
                    }
                    {
                        uint _e387 = d;
                        uint _e395 = params.block;
                        metal::float4 _e398 = keys_at(from_key + (metal::min((_e387 * 4u) + 0u, last) * _e395), keys, _buffer_sizes);
                        uint _e399 = d;
                        uint _e407 = params.block;
                        metal::float4 _e410 = keys_at(from_key + (metal::min((_e399 * 4u) + 1u, last) * _e407), keys, _buffer_sizes);
                        uint _e411 = d;
                        uint _e419 = params.block;
                        metal::float4 _e422 = keys_at(from_key + (metal::min((_e411 * 4u) + 2u, last) * _e419), keys, _buffer_sizes);
                        uint _e423 = d;
                        uint _e431 = params.block;
                        metal::float4 _e434 = keys_at(from_key + (metal::min((_e423 * 4u) + 3u, last) * _e431), keys, _buffer_sizes);
                        uint _e437 = d;
                        metal::float4 query0_ = queries.inner[metal::min(unsigned(0u + _e437), 31u)];
                        metal::float4 _e441 = score0_;
                        score0_ = _e441 + ((((query0_.x * _e398) + (query0_.y * _e410)) + (query0_.z * _e422)) + (query0_.w * _e434));
                        uint _e456 = d;
                        metal::float4 query1_ = queries.inner[metal::min(unsigned(16u + _e456), 31u)];
                        metal::float4 _e460 = score1_;
                        score1_ = _e460 + ((((query1_.x * _e398) + (query1_.y * _e410)) + (query1_.z * _e422)) + (query1_.w * _e434));
                    }
                }
                uint _e479 = params.block;
                uint _e483 = params.block;
                metal::float4 key_scale = key_scales[metal::min(unsigned(naga_div((tile * _e479) + naga_mod(p_2, _e483), 4u)), (_buffer_sizes.size7 - 0 - 16) / 16)];
                metal::float4 _e490 = score0_;
                score0_ = _e490 * key_scale;
                metal::float4 _e492 = score1_;
                score1_ = _e492 * key_scale;
            }
            metal::float4 _e507 = score0_;
            partial.inner[metal::min(unsigned((((naga_div(lane, GROUPS) * HEADS) + 0u) * GROUPS) + naga_mod(lane, GROUPS)), 255u)] = _e507;
            metal::float4 _e521 = score1_;
            partial.inner[metal::min(unsigned((((naga_div(lane, GROUPS) * HEADS) + 1u) * GROUPS) + naga_mod(lane, GROUPS)), 255u)] = _e521;
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            i_1 = lane;
            bool loop_init_5 = true;
            while(true) {
                if (!loop_init_5) {
                    uint _e666 = i_1;
                    i_1 = _e666 + THREADS;
                }
                loop_init_5 = false;
                uint _e523 = i_1;
                if (_e523 < 64u) {
                } else {
                    break;
                }
                {
                    uint _e527 = i_1;
                    metal::float4 _e529 = partial.inner[metal::min(unsigned(_e527), 255u)];
                    x_1 = _e529;
                    s = 1u;
                    bool loop_init_6 = true;
                    while(true) {
                        if (!loop_init_6) {
                            uint _e549 = s;
                            s = _e549 + 1u;
                        }
                        loop_init_6 = false;
                        uint _e533 = s;
                        if (_e533 < SLICES) {
                        } else {
                            break;
                        }
                        {
                            metal::float4 _e536 = x_1;
                            uint _e538 = s;
                            uint _e543 = i_1;
                            metal::float4 _e546 = partial.inner[metal::min(unsigned(((_e538 * HEADS) * GROUPS) + _e543), 255u)];
                            x_1 = _e536 + _e546;
                        }
                    }
                    float _e553 = params.softcap;
                    if (_e553 > 0.0) {
                        float _e558 = params.softcap;
                        metal::float4 _e559 = x_1;
                        float _e562 = params.softcap;
                        x_1 = _e558 * metal::tanh(metal::clamp(_e559 / metal::float4(_e562), metal::float4(-20.0), metal::float4(20.0)));
                    }
                    uint _e572 = start;
                    uint _e573 = i_1;
                    uint at_3 = _e572 + (naga_mod(_e573, GROUPS) * 4u);
                    uint _e579 = i_1;
                    uint _e584 = i_1;
                    uint to = (naga_div(_e579, GROUPS) * CHUNK) + (naga_mod(_e584, GROUPS) * 4u);
                    float _e595 = x_1.x;
                    uint _e598 = first;
                    if ((at_3 + 0u) >= _e598) {
                        local_1 = (at_3 + 0u) < end;
                    } else {
                        local_1 = false;
                    }
                    bool _e606 = local_1;
                    scores.inner[metal::min(unsigned(to + 0u), 255u)] = _e606 ? _e595 : -300000000000000000000000000000000000000.0;
                    float _e614 = x_1.y;
                    uint _e617 = first;
                    if ((at_3 + 1u) >= _e617) {
                        local_2 = (at_3 + 1u) < end;
                    } else {
                        local_2 = false;
                    }
                    bool _e625 = local_2;
                    scores.inner[metal::min(unsigned(to + 1u), 255u)] = _e625 ? _e614 : -300000000000000000000000000000000000000.0;
                    float _e633 = x_1.z;
                    uint _e636 = first;
                    if ((at_3 + 2u) >= _e636) {
                        local_3 = (at_3 + 2u) < end;
                    } else {
                        local_3 = false;
                    }
                    bool _e644 = local_3;
                    scores.inner[metal::min(unsigned(to + 2u), 255u)] = _e644 ? _e633 : -300000000000000000000000000000000000000.0;
                    float _e652 = x_1.w;
                    uint _e655 = first;
                    if ((at_3 + 3u) >= _e655) {
                        local_4 = (at_3 + 3u) < end;
                    } else {
                        local_4 = false;
                    }
                    bool _e663 = local_4;
                    scores.inner[metal::min(unsigned(to + 3u), 255u)] = _e663 ? _e652 : -300000000000000000000000000000000000000.0;
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint own = naga_div(lane, PER_HEAD);
            if (own < HEADS) {
                x_2 = -300000000000000000000000000000000000000.0;
                i_2 = naga_mod(lane, PER_HEAD);
                bool loop_init_7 = true;
                while(true) {
                    if (!loop_init_7) {
                        uint _e690 = i_2;
                        i_2 = _e690 + PER_HEAD;
                    }
                    loop_init_7 = false;
                    uint _e678 = i_2;
                    if (_e678 < CHUNK) {
                    } else {
                        break;
                    }
                    {
                        float _e681 = x_2;
                        uint _e685 = i_2;
                        float _e688 = scores.inner[metal::min(unsigned((own * CHUNK) + _e685), 255u)];
                        x_2 = metal::max(_e681, _e688);
                    }
                }
                float _e696 = x_2;
                reduced.inner[metal::min(unsigned(lane), 31u)].x = _e696;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            highest = -300000000000000000000000000000000000000.0;
            if (own < HEADS) {
                float _e703 = most.inner[metal::min(unsigned(own), 1u)];
                highest = _e703;
                i_3 = 0u;
                bool loop_init_8 = true;
                while(true) {
                    if (!loop_init_8) {
                        uint _e720 = i_3;
                        i_3 = _e720 + 1u;
                    }
                    loop_init_8 = false;
                    uint _e706 = i_3;
                    if (_e706 < PER_HEAD) {
                    } else {
                        break;
                    }
                    {
                        float _e709 = highest;
                        uint _e713 = i_3;
                        float _e717 = reduced.inner[metal::min(unsigned((own * PER_HEAD) + _e713), 31u)].x;
                        highest = metal::max(_e709, _e717);
                    }
                }
                sum = 0.0;
                i_4 = naga_mod(lane, PER_HEAD);
                bool loop_init_9 = true;
                while(true) {
                    if (!loop_init_9) {
                        uint _e748 = i_4;
                        i_4 = _e748 + PER_HEAD;
                    }
                    loop_init_9 = false;
                    uint _e727 = i_4;
                    if (_e727 < CHUNK) {
                    } else {
                        break;
                    }
                    {
                        uint _e733 = i_4;
                        float _e736 = scores.inner[metal::min(unsigned((own * CHUNK) + _e733), 255u)];
                        float _e737 = highest;
                        float weight = metal::exp(_e736 - _e737);
                        uint _e743 = i_4;
                        scores.inner[metal::min(unsigned((own * CHUNK) + _e743), 255u)] = weight;
                        float _e746 = sum;
                        sum = _e746 + weight;
                    }
                }
                float _e754 = sum;
                reduced.inner[metal::min(unsigned(lane), 31u)].y = _e754;
                if (naga_mod(lane, PER_HEAD) == 0u) {
                    float _e763 = most.inner[metal::min(unsigned(own), 1u)];
                    float _e764 = highest;
                    shrink.inner[metal::min(unsigned(own), 1u)] = metal::exp(_e763 - _e764);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            if (own < HEADS) {
                local_5 = naga_mod(lane, PER_HEAD) == 0u;
            } else {
                local_5 = false;
            }
            bool _e776 = local_5;
            if (_e776) {
                float _e779 = total.inner[metal::min(unsigned(own), 1u)];
                float _e782 = shrink.inner[metal::min(unsigned(own), 1u)];
                sum_1 = _e779 * _e782;
                i_5 = 0u;
                bool loop_init_10 = true;
                while(true) {
                    if (!loop_init_10) {
                        uint _e801 = i_5;
                        i_5 = _e801 + 1u;
                    }
                    loop_init_10 = false;
                    uint _e787 = i_5;
                    if (_e787 < PER_HEAD) {
                    } else {
                        break;
                    }
                    {
                        float _e790 = sum_1;
                        uint _e794 = i_5;
                        float _e798 = reduced.inner[metal::min(unsigned((own * PER_HEAD) + _e794), 31u)].y;
                        sum_1 = _e790 + _e798;
                    }
                }
                float _e805 = sum_1;
                total.inner[metal::min(unsigned(own), 1u)] = _e805;
                float _e808 = highest;
                most.inner[metal::min(unsigned(own), 1u)] = _e808;
            }
            metal::float4 _e809 = sum0_;
            float _e812 = shrink.inner[0];
            sum0_ = _e809 * _e812;
            metal::float4 _e814 = sum1_;
            float _e817 = shrink.inner[1];
            sum1_ = _e814 * _e817;
            if (value_slice < slice_count) {
                uint _e820 = start;
                uint _e821 = first;
                uint _e823 = start;
                p = (metal::max(_e820, _e821) - _e823) + value_slice;
                uint _e827 = start;
                uint length = stop - _e827;
                bool loop_init_11 = true;
                while(true) {
                    if (!loop_init_11) {
                        uint _e1000 = p;
                        p = _e1000 + (4u * slice_count);
                    }
                    loop_init_11 = false;
                    uint _e829 = p;
                    if ((_e829 + (3u * slice_count)) < length) {
                    } else {
                        break;
                    }
                    {
                        uint _e835 = p;
                        uint vector0_ = vectors.inner[metal::min(unsigned(_e835 + (0u * slice_count)), 127u)];
                        uint _e843 = params.value_width;
                        metal::float4 _e848 = values_at((vector0_ * _e843) + (column * 4u), values, _buffer_sizes);
                        float _e851 = value_scales[metal::min(unsigned(vector0_), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value0_ = _e848 * _e851;
                        uint _e854 = p;
                        uint vector1_ = vectors.inner[metal::min(unsigned(_e854 + (1u * slice_count)), 127u)];
                        uint _e862 = params.value_width;
                        metal::float4 _e867 = values_at((vector1_ * _e862) + (column * 4u), values, _buffer_sizes);
                        float _e870 = value_scales[metal::min(unsigned(vector1_), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value1_ = _e867 * _e870;
                        uint _e873 = p;
                        uint vector2_ = vectors.inner[metal::min(unsigned(_e873 + (2u * slice_count)), 127u)];
                        uint _e881 = params.value_width;
                        metal::float4 _e886 = values_at((vector2_ * _e881) + (column * 4u), values, _buffer_sizes);
                        float _e889 = value_scales[metal::min(unsigned(vector2_), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value2_ = _e886 * _e889;
                        uint _e892 = p;
                        uint vector3_ = vectors.inner[metal::min(unsigned(_e892 + (3u * slice_count)), 127u)];
                        uint _e900 = params.value_width;
                        metal::float4 _e905 = values_at((vector3_ * _e900) + (column * 4u), values, _buffer_sizes);
                        float _e908 = value_scales[metal::min(unsigned(vector3_), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value3_ = _e905 * _e908;
                        metal::float4 _e910 = sum0_;
                        uint _e913 = p;
                        float _e919 = scores.inner[metal::min(unsigned((0u + _e913) + (0u * slice_count)), 255u)];
                        uint _e923 = p;
                        float _e929 = scores.inner[metal::min(unsigned((0u + _e923) + (1u * slice_count)), 255u)];
                        uint _e934 = p;
                        float _e940 = scores.inner[metal::min(unsigned((0u + _e934) + (2u * slice_count)), 255u)];
                        uint _e945 = p;
                        float _e951 = scores.inner[metal::min(unsigned((0u + _e945) + (3u * slice_count)), 255u)];
                        sum0_ = _e910 + ((((_e919 * value0_) + (_e929 * value1_)) + (_e940 * value2_)) + (_e951 * value3_));
                        metal::float4 _e955 = sum1_;
                        uint _e958 = p;
                        float _e964 = scores.inner[metal::min(unsigned((128u + _e958) + (0u * slice_count)), 255u)];
                        uint _e968 = p;
                        float _e974 = scores.inner[metal::min(unsigned((128u + _e968) + (1u * slice_count)), 255u)];
                        uint _e979 = p;
                        float _e985 = scores.inner[metal::min(unsigned((128u + _e979) + (2u * slice_count)), 255u)];
                        uint _e990 = p;
                        float _e996 = scores.inner[metal::min(unsigned((128u + _e990) + (3u * slice_count)), 255u)];
                        sum1_ = _e955 + ((((_e964 * value0_) + (_e974 * value1_)) + (_e985 * value2_)) + (_e996 * value3_));
                    }
                }
                bool loop_init_12 = true;
                while(true) {
                    if (!loop_init_12) {
                        uint _e1040 = p;
                        p = _e1040 + slice_count;
                    }
                    loop_init_12 = false;
                    uint _e1004 = p;
                    if (_e1004 < length) {
                    } else {
                        break;
                    }
                    {
                        uint _e1007 = p;
                        uint vector = vectors.inner[metal::min(unsigned(_e1007), 127u)];
                        uint _e1012 = params.value_width;
                        metal::float4 _e1017 = values_at((vector * _e1012) + (column * 4u), values, _buffer_sizes);
                        float _e1020 = value_scales[metal::min(unsigned(vector), (_buffer_sizes.size8 - 0 - 4) / 4)];
                        metal::float4 value = _e1017 * _e1020;
                        metal::float4 _e1022 = sum0_;
                        uint _e1025 = p;
                        float _e1028 = scores.inner[metal::min(unsigned(0u + _e1025), 255u)];
                        sum0_ = _e1022 + (_e1028 * value);
                        metal::float4 _e1031 = sum1_;
                        uint _e1034 = p;
                        float _e1037 = scores.inner[metal::min(unsigned(128u + _e1034), 255u)];
                        sum1_ = _e1031 + (_e1037 * value);
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    if (value_slice < slice_count) {
        metal::float4 _e1054 = sum0_;
        partial.inner[metal::min(unsigned((((value_slice * HEADS) + 0u) * columns) + column), 255u)] = _e1054;
        metal::float4 _e1063 = sum1_;
        partial.inner[metal::min(unsigned((((value_slice * HEADS) + 1u) * columns) + column), 255u)] = _e1063;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_6 = lane;
    bool loop_init_13 = true;
    while(true) {
        if (!loop_init_13) {
            uint _e1107 = i_6;
            i_6 = _e1107 + THREADS;
        }
        loop_init_13 = false;
        uint _e1065 = i_6;
        if (_e1065 < (heads * columns)) {
        } else {
            break;
        }
        {
            uint _e1069 = i_6;
            metal::float4 _e1071 = partial.inner[metal::min(unsigned(_e1069), 255u)];
            x_3 = _e1071;
            s_1 = 1u;
            bool loop_init_14 = true;
            while(true) {
                if (!loop_init_14) {
                    uint _e1089 = s_1;
                    s_1 = _e1089 + 1u;
                }
                loop_init_14 = false;
                uint _e1075 = s_1;
                if (_e1075 < slice_count) {
                } else {
                    break;
                }
                {
                    metal::float4 _e1077 = x_3;
                    uint _e1079 = s_1;
                    uint _e1083 = i_6;
                    metal::float4 _e1086 = partial.inner[metal::min(unsigned(((_e1079 * HEADS) * columns) + _e1083), 255u)];
                    x_3 = _e1077 + _e1086;
                }
            }
            uint _e1091 = i_6;
            uint own_1 = naga_div(_e1091, columns);
            uint _e1096 = i_6;
            metal::float4 _e1100 = x_3;
            float _e1103 = total.inner[metal::min(unsigned(own_1), 1u)];
            y[metal::min(unsigned(((result + own_1) * columns) + naga_mod(_e1096, columns)), (_buffer_sizes.size6 - 0 - 16) / 16)] = static_cast<metal::float4>(_e1100 / metal::float4(_e1103));
        }
    }
    return;
}
