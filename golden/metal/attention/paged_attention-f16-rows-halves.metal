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
    float inner[256];
};
struct type_11 {
    metal::float2 inner[32];
};
struct type_12 {
    uint inner[128];
};
struct type_13 {
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
[[max_total_threads_per_threadgroup(128)]] kernel void main_(
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
            uint _e1004 = start;
            start = _e1004 + CHUNK;
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
            }
            metal::float4 _e489 = score0_;
            partial.inner[metal::min(unsigned((((naga_div(lane, GROUPS) * HEADS) + 0u) * GROUPS) + naga_mod(lane, GROUPS)), 255u)] = _e489;
            metal::float4 _e503 = score1_;
            partial.inner[metal::min(unsigned((((naga_div(lane, GROUPS) * HEADS) + 1u) * GROUPS) + naga_mod(lane, GROUPS)), 255u)] = _e503;
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            i_1 = lane;
            bool loop_init_5 = true;
            while(true) {
                if (!loop_init_5) {
                    uint _e648 = i_1;
                    i_1 = _e648 + THREADS;
                }
                loop_init_5 = false;
                uint _e505 = i_1;
                if (_e505 < 64u) {
                } else {
                    break;
                }
                {
                    uint _e509 = i_1;
                    metal::float4 _e511 = partial.inner[metal::min(unsigned(_e509), 255u)];
                    x_1 = _e511;
                    s = 1u;
                    bool loop_init_6 = true;
                    while(true) {
                        if (!loop_init_6) {
                            uint _e531 = s;
                            s = _e531 + 1u;
                        }
                        loop_init_6 = false;
                        uint _e515 = s;
                        if (_e515 < SLICES) {
                        } else {
                            break;
                        }
                        {
                            metal::float4 _e518 = x_1;
                            uint _e520 = s;
                            uint _e525 = i_1;
                            metal::float4 _e528 = partial.inner[metal::min(unsigned(((_e520 * HEADS) * GROUPS) + _e525), 255u)];
                            x_1 = _e518 + _e528;
                        }
                    }
                    float _e535 = params.softcap;
                    if (_e535 > 0.0) {
                        float _e540 = params.softcap;
                        metal::float4 _e541 = x_1;
                        float _e544 = params.softcap;
                        x_1 = _e540 * metal::tanh(metal::clamp(_e541 / metal::float4(_e544), metal::float4(-20.0), metal::float4(20.0)));
                    }
                    uint _e554 = start;
                    uint _e555 = i_1;
                    uint at_3 = _e554 + (naga_mod(_e555, GROUPS) * 4u);
                    uint _e561 = i_1;
                    uint _e566 = i_1;
                    uint to = (naga_div(_e561, GROUPS) * CHUNK) + (naga_mod(_e566, GROUPS) * 4u);
                    float _e577 = x_1.x;
                    uint _e580 = first;
                    if ((at_3 + 0u) >= _e580) {
                        local_1 = (at_3 + 0u) < end;
                    } else {
                        local_1 = false;
                    }
                    bool _e588 = local_1;
                    scores.inner[metal::min(unsigned(to + 0u), 255u)] = _e588 ? _e577 : -300000000000000000000000000000000000000.0;
                    float _e596 = x_1.y;
                    uint _e599 = first;
                    if ((at_3 + 1u) >= _e599) {
                        local_2 = (at_3 + 1u) < end;
                    } else {
                        local_2 = false;
                    }
                    bool _e607 = local_2;
                    scores.inner[metal::min(unsigned(to + 1u), 255u)] = _e607 ? _e596 : -300000000000000000000000000000000000000.0;
                    float _e615 = x_1.z;
                    uint _e618 = first;
                    if ((at_3 + 2u) >= _e618) {
                        local_3 = (at_3 + 2u) < end;
                    } else {
                        local_3 = false;
                    }
                    bool _e626 = local_3;
                    scores.inner[metal::min(unsigned(to + 2u), 255u)] = _e626 ? _e615 : -300000000000000000000000000000000000000.0;
                    float _e634 = x_1.w;
                    uint _e637 = first;
                    if ((at_3 + 3u) >= _e637) {
                        local_4 = (at_3 + 3u) < end;
                    } else {
                        local_4 = false;
                    }
                    bool _e645 = local_4;
                    scores.inner[metal::min(unsigned(to + 3u), 255u)] = _e645 ? _e634 : -300000000000000000000000000000000000000.0;
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
                        uint _e672 = i_2;
                        i_2 = _e672 + PER_HEAD;
                    }
                    loop_init_7 = false;
                    uint _e660 = i_2;
                    if (_e660 < CHUNK) {
                    } else {
                        break;
                    }
                    {
                        float _e663 = x_2;
                        uint _e667 = i_2;
                        float _e670 = scores.inner[metal::min(unsigned((own * CHUNK) + _e667), 255u)];
                        x_2 = metal::max(_e663, _e670);
                    }
                }
                float _e678 = x_2;
                reduced.inner[metal::min(unsigned(lane), 31u)].x = _e678;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            highest = -300000000000000000000000000000000000000.0;
            if (own < HEADS) {
                float _e685 = most.inner[metal::min(unsigned(own), 1u)];
                highest = _e685;
                i_3 = 0u;
                bool loop_init_8 = true;
                while(true) {
                    if (!loop_init_8) {
                        uint _e702 = i_3;
                        i_3 = _e702 + 1u;
                    }
                    loop_init_8 = false;
                    uint _e688 = i_3;
                    if (_e688 < PER_HEAD) {
                    } else {
                        break;
                    }
                    {
                        float _e691 = highest;
                        uint _e695 = i_3;
                        float _e699 = reduced.inner[metal::min(unsigned((own * PER_HEAD) + _e695), 31u)].x;
                        highest = metal::max(_e691, _e699);
                    }
                }
                sum = 0.0;
                i_4 = naga_mod(lane, PER_HEAD);
                bool loop_init_9 = true;
                while(true) {
                    if (!loop_init_9) {
                        uint _e730 = i_4;
                        i_4 = _e730 + PER_HEAD;
                    }
                    loop_init_9 = false;
                    uint _e709 = i_4;
                    if (_e709 < CHUNK) {
                    } else {
                        break;
                    }
                    {
                        uint _e715 = i_4;
                        float _e718 = scores.inner[metal::min(unsigned((own * CHUNK) + _e715), 255u)];
                        float _e719 = highest;
                        float weight = metal::exp(_e718 - _e719);
                        uint _e725 = i_4;
                        scores.inner[metal::min(unsigned((own * CHUNK) + _e725), 255u)] = weight;
                        float _e728 = sum;
                        sum = _e728 + weight;
                    }
                }
                float _e736 = sum;
                reduced.inner[metal::min(unsigned(lane), 31u)].y = _e736;
                if (naga_mod(lane, PER_HEAD) == 0u) {
                    float _e745 = most.inner[metal::min(unsigned(own), 1u)];
                    float _e746 = highest;
                    shrink.inner[metal::min(unsigned(own), 1u)] = metal::exp(_e745 - _e746);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            if (own < HEADS) {
                local_5 = naga_mod(lane, PER_HEAD) == 0u;
            } else {
                local_5 = false;
            }
            bool _e758 = local_5;
            if (_e758) {
                float _e761 = total.inner[metal::min(unsigned(own), 1u)];
                float _e764 = shrink.inner[metal::min(unsigned(own), 1u)];
                sum_1 = _e761 * _e764;
                i_5 = 0u;
                bool loop_init_10 = true;
                while(true) {
                    if (!loop_init_10) {
                        uint _e783 = i_5;
                        i_5 = _e783 + 1u;
                    }
                    loop_init_10 = false;
                    uint _e769 = i_5;
                    if (_e769 < PER_HEAD) {
                    } else {
                        break;
                    }
                    {
                        float _e772 = sum_1;
                        uint _e776 = i_5;
                        float _e780 = reduced.inner[metal::min(unsigned((own * PER_HEAD) + _e776), 31u)].y;
                        sum_1 = _e772 + _e780;
                    }
                }
                float _e787 = sum_1;
                total.inner[metal::min(unsigned(own), 1u)] = _e787;
                float _e790 = highest;
                most.inner[metal::min(unsigned(own), 1u)] = _e790;
            }
            metal::float4 _e791 = sum0_;
            float _e794 = shrink.inner[0];
            sum0_ = _e791 * _e794;
            metal::float4 _e796 = sum1_;
            float _e799 = shrink.inner[1];
            sum1_ = _e796 * _e799;
            if (value_slice < slice_count) {
                uint _e802 = start;
                uint _e803 = first;
                uint _e805 = start;
                p = (metal::max(_e802, _e803) - _e805) + value_slice;
                uint _e809 = start;
                uint length = stop - _e809;
                bool loop_init_11 = true;
                while(true) {
                    if (!loop_init_11) {
                        uint _e966 = p;
                        p = _e966 + (4u * slice_count);
                    }
                    loop_init_11 = false;
                    uint _e811 = p;
                    if ((_e811 + (3u * slice_count)) < length) {
                    } else {
                        break;
                    }
                    {
                        uint _e817 = p;
                        uint vector0_ = vectors.inner[metal::min(unsigned(_e817 + (0u * slice_count)), 127u)];
                        uint _e825 = params.value_width;
                        metal::float4 _e830 = values_at((vector0_ * _e825) + (column * 4u), values, _buffer_sizes);
                        uint _e832 = p;
                        uint vector1_ = vectors.inner[metal::min(unsigned(_e832 + (1u * slice_count)), 127u)];
                        uint _e840 = params.value_width;
                        metal::float4 _e845 = values_at((vector1_ * _e840) + (column * 4u), values, _buffer_sizes);
                        uint _e847 = p;
                        uint vector2_ = vectors.inner[metal::min(unsigned(_e847 + (2u * slice_count)), 127u)];
                        uint _e855 = params.value_width;
                        metal::float4 _e860 = values_at((vector2_ * _e855) + (column * 4u), values, _buffer_sizes);
                        uint _e862 = p;
                        uint vector3_ = vectors.inner[metal::min(unsigned(_e862 + (3u * slice_count)), 127u)];
                        uint _e870 = params.value_width;
                        metal::float4 _e875 = values_at((vector3_ * _e870) + (column * 4u), values, _buffer_sizes);
                        metal::float4 _e876 = sum0_;
                        uint _e879 = p;
                        float _e885 = scores.inner[metal::min(unsigned((0u + _e879) + (0u * slice_count)), 255u)];
                        uint _e889 = p;
                        float _e895 = scores.inner[metal::min(unsigned((0u + _e889) + (1u * slice_count)), 255u)];
                        uint _e900 = p;
                        float _e906 = scores.inner[metal::min(unsigned((0u + _e900) + (2u * slice_count)), 255u)];
                        uint _e911 = p;
                        float _e917 = scores.inner[metal::min(unsigned((0u + _e911) + (3u * slice_count)), 255u)];
                        sum0_ = _e876 + ((((_e885 * _e830) + (_e895 * _e845)) + (_e906 * _e860)) + (_e917 * _e875));
                        metal::float4 _e921 = sum1_;
                        uint _e924 = p;
                        float _e930 = scores.inner[metal::min(unsigned((128u + _e924) + (0u * slice_count)), 255u)];
                        uint _e934 = p;
                        float _e940 = scores.inner[metal::min(unsigned((128u + _e934) + (1u * slice_count)), 255u)];
                        uint _e945 = p;
                        float _e951 = scores.inner[metal::min(unsigned((128u + _e945) + (2u * slice_count)), 255u)];
                        uint _e956 = p;
                        float _e962 = scores.inner[metal::min(unsigned((128u + _e956) + (3u * slice_count)), 255u)];
                        sum1_ = _e921 + ((((_e930 * _e830) + (_e940 * _e845)) + (_e951 * _e860)) + (_e962 * _e875));
                    }
                }
                bool loop_init_12 = true;
                while(true) {
                    if (!loop_init_12) {
                        uint _e1002 = p;
                        p = _e1002 + slice_count;
                    }
                    loop_init_12 = false;
                    uint _e970 = p;
                    if (_e970 < length) {
                    } else {
                        break;
                    }
                    {
                        uint _e973 = p;
                        uint vector = vectors.inner[metal::min(unsigned(_e973), 127u)];
                        uint _e978 = params.value_width;
                        metal::float4 _e983 = values_at((vector * _e978) + (column * 4u), values, _buffer_sizes);
                        metal::float4 _e984 = sum0_;
                        uint _e987 = p;
                        float _e990 = scores.inner[metal::min(unsigned(0u + _e987), 255u)];
                        sum0_ = _e984 + (_e990 * _e983);
                        metal::float4 _e993 = sum1_;
                        uint _e996 = p;
                        float _e999 = scores.inner[metal::min(unsigned(128u + _e996), 255u)];
                        sum1_ = _e993 + (_e999 * _e983);
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    if (value_slice < slice_count) {
        metal::float4 _e1016 = sum0_;
        partial.inner[metal::min(unsigned((((value_slice * HEADS) + 0u) * columns) + column), 255u)] = _e1016;
        metal::float4 _e1025 = sum1_;
        partial.inner[metal::min(unsigned((((value_slice * HEADS) + 1u) * columns) + column), 255u)] = _e1025;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_6 = lane;
    bool loop_init_13 = true;
    while(true) {
        if (!loop_init_13) {
            uint _e1069 = i_6;
            i_6 = _e1069 + THREADS;
        }
        loop_init_13 = false;
        uint _e1027 = i_6;
        if (_e1027 < (heads * columns)) {
        } else {
            break;
        }
        {
            uint _e1031 = i_6;
            metal::float4 _e1033 = partial.inner[metal::min(unsigned(_e1031), 255u)];
            x_3 = _e1033;
            s_1 = 1u;
            bool loop_init_14 = true;
            while(true) {
                if (!loop_init_14) {
                    uint _e1051 = s_1;
                    s_1 = _e1051 + 1u;
                }
                loop_init_14 = false;
                uint _e1037 = s_1;
                if (_e1037 < slice_count) {
                } else {
                    break;
                }
                {
                    metal::float4 _e1039 = x_3;
                    uint _e1041 = s_1;
                    uint _e1045 = i_6;
                    metal::float4 _e1048 = partial.inner[metal::min(unsigned(((_e1041 * HEADS) * columns) + _e1045), 255u)];
                    x_3 = _e1039 + _e1048;
                }
            }
            uint _e1053 = i_6;
            uint own_1 = naga_div(_e1053, columns);
            uint _e1058 = i_6;
            metal::float4 _e1062 = x_3;
            float _e1065 = total.inner[metal::min(unsigned(own_1), 1u)];
            y[metal::min(unsigned(((result + own_1) * columns) + naga_mod(_e1058, columns)), (_buffer_sizes.size6 - 0 - 16) / 16)] = static_cast<metal::float4>(_e1062 / metal::float4(_e1065));
        }
    }
    return;
}
