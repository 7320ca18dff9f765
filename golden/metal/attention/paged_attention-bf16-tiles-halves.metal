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

typedef half type_1[1];
typedef metal::uint2 type_4[1];
struct Params {
    uint rows;
    uint sequences;
    uint most;
    uint kv_heads;
    uint key_width;
    uint value_width;
    uint block;
    uint count;
    uint window;
    uint shared_heads;
    uint tiles;
    uint parts;
    uint few;
    float scale;
    float softcap;
};
typedef metal::float4 Rows;
typedef metal::uint4 Numbers;
struct type_8 {
    Rows inner[272];
};
struct type_9 {
    metal::float4 inner[512];
};
struct type_10 {
    Rows inner[1024];
};
struct Tile {
    uint number;
    uint count;
    uint first_row;
    uint before;
    uint positions;
    uint table;
    metal::uint2 unused;
};
constant uint PER = 4u;
constant uint ROWS = 64u;
constant uint KEYS = 64u;
constant uint DEPTH = 16u;
constant uint PITCH = 17u;
constant uint COLUMNS = 16u;
constant uint SLICE = 32u;

uint naga_div(uint lhs, uint rhs) {
    return lhs / metal::select(rhs, 1u, rhs == 0u);
}

metal::float4 keys_at(
    uint at,
    device type_4 const& keys,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::uint2 word = keys[metal::min(unsigned(naga_div(at, 4u)), (_buffer_sizes.size1 - 0 - 8) / 8)];
    return as_type<metal::float4>(metal::uint4(word.x << 16u, word.x & 4294901760u, word.y << 16u, word.y & 4294901760u));
}

metal::float4 values_at(
    uint at_1,
    device type_4 const& values,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::uint2 word_1 = values[metal::min(unsigned(naga_div(at_1, 4u)), (_buffer_sizes.size2 - 0 - 8) / 8)];
    return as_type<metal::float4>(metal::uint4(word_1.x << 16u, word_1.x & 4294901760u, word_1.y << 16u, word_1.y & 4294901760u));
}

Tile find_tile(
    uint number,
    device type_4 const& starts,
    device type_4 const& lengths,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    Tile found = {};
    uint b = 0u;
    uint _e6 = params.most;
    uint _e9 = params.block;
    found = Tile {number, 0u, 0u, 0u, _e6 * _e9, 0u, metal::uint2 {}};
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e86 = b;
            b = _e86 + 1u;
        }
        loop_init = false;
        uint _e17 = b;
        uint _e20 = params.sequences;
        if (_e17 < _e20) {
        } else {
            break;
        }
        {
            uint _e23 = b;
            uint _e26 = starts[metal::min(unsigned(_e23), (_buffer_sizes.size3 - 0 - 8) / 8)].x;
            uint _e29 = params.rows;
            uint first_row = metal::min(_e26, _e29);
            uint _e32 = b;
            uint _e37 = starts[metal::min(unsigned(_e32 + 1u), (_buffer_sizes.size3 - 0 - 8) / 8)].x;
            uint _e40 = params.rows;
            uint rows = metal::clamp(_e37, first_row, _e40) - first_row;
            uint _e45 = params.shared_heads;
            uint count = rows * _e45;
            uint _e56 = params.few;
            uint own = (rows <= _e56) ? 0u : naga_div((count + ROWS) - 1u, ROWS);
            uint _e60 = found.number;
            if (_e60 < own) {
                found.count = count;
                found.first_row = first_row;
                uint _e66 = b;
                uint _e69 = lengths[metal::min(unsigned(_e66), (_buffer_sizes.size4 - 0 - 8) / 8)].x;
                uint _e71 = found.positions;
                found.before = metal::clamp(_e69, rows, metal::max(_e71, rows)) - rows;
                uint _e76 = b;
                uint _e79 = params.most;
                found.table = _e76 * _e79;
                Tile _e81 = found;
                return _e81;
            }
            uint _e83 = found.number;
            found.number = _e83 - own;
        }
    }
    Tile _e88 = found;
    return _e88;
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
, device type_1& y [[buffer(6)]]
, constant Params& params [[buffer(7)]]
, threadgroup type_8& queries
, threadgroup type_9& stage
, threadgroup type_10& weights
, constant _mslBufferSizes& _buffer_sizes [[buffer(8)]]
) {
    bool local = {};
    Numbers low = {};
    Numbers high = {};
    uint tile_low = 0u;
    uint tile_high = 0u;
    metal::float4 most = metal::float4(-340282350000000000000000000000000000000.0);
    metal::float4 total = metal::float4(0.0);
    metal::float4 sum0_0_ = metal::float4(0.0);
    metal::float4 sum0_1_ = metal::float4(0.0);
    metal::float4 sum0_2_ = metal::float4(0.0);
    metal::float4 sum0_3_ = metal::float4(0.0);
    uint start = {};
    metal::float4 score0_ = {};
    metal::float4 score1_ = {};
    metal::float4 score2_ = {};
    metal::float4 score3_ = {};
    uint depth = {};
    float query0_ = {};
    float query1_ = {};
    float query2_ = {};
    float query3_ = {};
    metal::float4 loaded = {};
    uint i = {};
    metal::bool4 hidden = {};
    metal::bool4 hidden_1 = {};
    metal::bool4 hidden_2 = {};
    metal::bool4 hidden_3 = {};
    metal::float4 highest = {};
    uint i_1 = {};
    uint i_2 = {};
    uint from_slice = {};
    uint i_3 = {};
    metal::float4 loaded_1 = {};
    uint i_4 = {};
    uint number_1 = group.x + (group.y * groups.x);
    uint _e10 = params.tiles;
    uint tile_number = naga_mod(number_1, _e10);
    uint _e14 = params.tiles;
    uint _e18 = params.parts;
    uint part = naga_mod(naga_div(number_1, _e14), _e18);
    uint _e22 = params.tiles;
    uint _e25 = params.parts;
    uint head = naga_div(number_1, _e22 * _e25);
    uint across = naga_mod(lane, 16u);
    uint down = naga_div(lane, 16u);
    Tile _e32 = find_tile(tile_number, starts, lengths, params, _buffer_sizes);
    uint _e35 = params.kv_heads;
    if (!((head >= _e35))) {
        local = _e32.count == 0u;
    } else {
        local = true;
    }
    bool _e44 = local;
    if (_e44) {
        return;
    }
    uint count_1 = _e32.count;
    uint first_row_1 = _e32.first_row;
    uint before = _e32.before;
    uint table = _e32.table;
    uint tile = _e32.number;
    uint i_5 = tile * ROWS;
    {
        uint i_6 = metal::min((i_5 + (down * PER)) + 0u, count_1 - 1u);
        uint _e68 = params.shared_heads;
        uint position = before + naga_div(i_6, _e68);
        uint _e76 = params.window;
        uint _e80 = params.window;
        uint _e84 = params.window;
        uint from_key = (_e84 > 0u) ? (metal::max(position + 1u, _e76) - _e80) : 0u;
        uint to_key = metal::min(position + 1u, _e32.positions);
        low.x = from_key;
        high.x = to_key;
    }
    {
        uint i_7 = metal::min((i_5 + (down * PER)) + 1u, count_1 - 1u);
        uint _e104 = params.shared_heads;
        uint position_1 = before + naga_div(i_7, _e104);
        uint _e112 = params.window;
        uint _e116 = params.window;
        uint _e120 = params.window;
        uint from_key_1 = (_e120 > 0u) ? (metal::max(position_1 + 1u, _e112) - _e116) : 0u;
        uint to_key_1 = metal::min(position_1 + 1u, _e32.positions);
        low.y = from_key_1;
        high.y = to_key_1;
    }
    {
        uint i_8 = metal::min((i_5 + (down * PER)) + 2u, count_1 - 1u);
        uint _e140 = params.shared_heads;
        uint position_2 = before + naga_div(i_8, _e140);
        uint _e148 = params.window;
        uint _e152 = params.window;
        uint _e156 = params.window;
        uint from_key_2 = (_e156 > 0u) ? (metal::max(position_2 + 1u, _e148) - _e152) : 0u;
        uint to_key_2 = metal::min(position_2 + 1u, _e32.positions);
        low.z = from_key_2;
        high.z = to_key_2;
    }
    {
        uint i_9 = metal::min((i_5 + (down * PER)) + 3u, count_1 - 1u);
        uint _e176 = params.shared_heads;
        uint position_3 = before + naga_div(i_9, _e176);
        uint _e184 = params.window;
        uint _e188 = params.window;
        uint _e192 = params.window;
        uint from_key_3 = (_e192 > 0u) ? (metal::max(position_3 + 1u, _e184) - _e188) : 0u;
        uint to_key_3 = metal::min(position_3 + 1u, _e32.positions);
        low.w = from_key_3;
        high.w = to_key_3;
    }
    {
        uint _e204 = params.shared_heads;
        uint position_4 = before + naga_div(i_5, _e204);
        uint _e212 = params.window;
        uint _e216 = params.window;
        uint _e220 = params.window;
        uint from_key_4 = (_e220 > 0u) ? (metal::max(position_4 + 1u, _e212) - _e216) : 0u;
        uint to_key_4 = metal::min(position_4 + 1u, _e32.positions);
        tile_low = from_key_4;
    }
    {
        uint i_10 = metal::min((i_5 + ROWS) - 1u, count_1 - 1u);
        uint _e237 = params.shared_heads;
        uint position_5 = before + naga_div(i_10, _e237);
        uint _e245 = params.window;
        uint _e249 = params.window;
        uint _e253 = params.window;
        uint from_key_5 = (_e253 > 0u) ? (metal::max(position_5 + 1u, _e245) - _e249) : 0u;
        uint to_key_5 = metal::min(position_5 + 1u, _e32.positions);
        tile_high = to_key_5;
    }
    uint load0_ = metal::min((i_5 + (down * PER)) + 0u, count_1 - 1u);
    uint _e271 = params.shared_heads;
    uint _e276 = params.kv_heads;
    uint _e281 = params.shared_heads;
    uint _e285 = params.key_width;
    uint _e289 = params.shared_heads;
    uint _e293 = params.key_width;
    uint from_query0_ = (((((first_row_1 + naga_div(load0_, _e271)) * _e276) + head) * _e281) * _e285) + (naga_mod(load0_, _e289) * _e293);
    uint load1_ = metal::min((i_5 + (down * PER)) + 1u, count_1 - 1u);
    uint _e306 = params.shared_heads;
    uint _e311 = params.kv_heads;
    uint _e316 = params.shared_heads;
    uint _e320 = params.key_width;
    uint _e324 = params.shared_heads;
    uint _e328 = params.key_width;
    uint from_query1_ = (((((first_row_1 + naga_div(load1_, _e306)) * _e311) + head) * _e316) * _e320) + (naga_mod(load1_, _e324) * _e328);
    uint load2_ = metal::min((i_5 + (down * PER)) + 2u, count_1 - 1u);
    uint _e341 = params.shared_heads;
    uint _e346 = params.kv_heads;
    uint _e351 = params.shared_heads;
    uint _e355 = params.key_width;
    uint _e359 = params.shared_heads;
    uint _e363 = params.key_width;
    uint from_query2_ = (((((first_row_1 + naga_div(load2_, _e341)) * _e346) + head) * _e351) * _e355) + (naga_mod(load2_, _e359) * _e363);
    uint load3_ = metal::min((i_5 + (down * PER)) + 3u, count_1 - 1u);
    uint _e376 = params.shared_heads;
    uint _e381 = params.kv_heads;
    uint _e386 = params.shared_heads;
    uint _e390 = params.key_width;
    uint _e394 = params.shared_heads;
    uint _e398 = params.key_width;
    uint from_query3_ = (((((first_row_1 + naga_div(load3_, _e376)) * _e381) + head) * _e386) * _e390) + (naga_mod(load3_, _e394) * _e398);
    uint _e419 = tile_low;
    start = naga_div(_e419, KEYS) * KEYS;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e1043 = start;
            start = _e1043 + KEYS;
        }
        loop_init_1 = false;
        uint _e425 = start;
        uint _e426 = tile_high;
        if (_e425 < _e426) {
        } else {
            break;
        }
        {
            score0_ = metal::float4(0.0);
            score1_ = metal::float4(0.0);
            score2_ = metal::float4(0.0);
            score3_ = metal::float4(0.0);
            uint _e440 = start;
            uint _e444 = tile_high;
            uint p = metal::min(_e440 + (across * 4u), naga_div(_e444 - 1u, 4u) * 4u);
            uint _e455 = params.block;
            uint _e460 = blocks[metal::min(unsigned(table + naga_div(p, _e455)), (_buffer_sizes.size5 - 0 - 8) / 8)].x;
            uint _e463 = params.count;
            uint own_block = metal::min(_e460, _e463 - 1u);
            uint _e469 = params.kv_heads;
            uint _e474 = params.key_width;
            uint _e478 = params.block;
            uint _e482 = params.block;
            uint from_key_6 = ((((own_block * _e469) + head) * _e474) * _e478) + naga_mod(p, _e482);
            depth = 0u;
            bool loop_init_2 = true;
            while(true) {
                if (!loop_init_2) {
                    uint _e599 = depth;
                    depth = _e599 + DEPTH;
                }
                loop_init_2 = false;
                uint _e487 = depth;
                uint _e490 = params.key_width;
                if (_e487 < _e490) {
                } else {
                    break;
                }
                {
                    uint _e492 = depth;
                    uint d = _e492 + across;
                    query0_ = 0.0;
                    query1_ = 0.0;
                    query2_ = 0.0;
                    query3_ = 0.0;
                    uint _e504 = params.key_width;
                    if (d < _e504) {
                        half _e509 = q[metal::min(unsigned(from_query0_ + d), (_buffer_sizes.size0 - 0 - 2) / 2)];
                        query0_ = static_cast<float>(_e509);
                        half _e514 = q[metal::min(unsigned(from_query1_ + d), (_buffer_sizes.size0 - 0 - 2) / 2)];
                        query1_ = static_cast<float>(_e514);
                        half _e519 = q[metal::min(unsigned(from_query2_ + d), (_buffer_sizes.size0 - 0 - 2) / 2)];
                        query2_ = static_cast<float>(_e519);
                        half _e524 = q[metal::min(unsigned(from_query3_ + d), (_buffer_sizes.size0 - 0 - 2) / 2)];
                        query3_ = static_cast<float>(_e524);
                    }
                    float _e533 = params.scale;
                    float _e534 = query0_;
                    float _e535 = query1_;
                    float _e536 = query2_;
                    float _e537 = query3_;
                    queries.inner[metal::min(unsigned((across * PITCH) + down), 271u)] = _e533 * metal::float4(_e534, _e535, _e536, _e537);
                    loaded = metal::float4(0.0);
                    uint _e543 = depth;
                    uint e = _e543 + down;
                    uint _e547 = params.key_width;
                    if (e < _e547) {
                        uint _e551 = params.block;
                        metal::float4 _e554 = keys_at(from_key_6 + (e * _e551), keys, _buffer_sizes);
                        loaded = _e554;
                    }
                    metal::float4 _e560 = loaded;
                    stage.inner[metal::min(unsigned((down * PITCH) + across), 511u)] = _e560;
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                    i = 0u;
                    bool loop_init_3 = true;
                    while(true) {
                        if (!loop_init_3) {
                            uint _e597 = i;
                            i = _e597 + 1u;
                        }
                        loop_init_3 = false;
                        uint _e563 = i;
                        if (_e563 < DEPTH) {
                        } else {
                            break;
                        }
                        {
                            uint _e567 = i;
                            Rows query = queries.inner[metal::min(unsigned((_e567 * PITCH) + down), 271u)];
                            uint _e574 = i;
                            metal::float4 key = stage.inner[metal::min(unsigned((_e574 * PITCH) + across), 511u)];
                            metal::float4 _e580 = score0_;
                            score0_ = _e580 + (query * key.x);
                            metal::float4 _e584 = score1_;
                            score1_ = _e584 + (query * key.y);
                            metal::float4 _e588 = score2_;
                            score2_ = _e588 + (query * key.z);
                            metal::float4 _e592 = score3_;
                            score3_ = _e592 + (query * key.w);
                        }
                    }
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                }
            }
            uint _e602 = start;
            uint key_1 = _e602 + (across * 4u);
            {
                float _e608 = params.softcap;
                if (_e608 > 0.0) {
                    float _e613 = params.softcap;
                    metal::float4 _e614 = score0_;
                    float _e617 = params.softcap;
                    score0_ = _e613 * metal::tanh(metal::clamp(_e614 / metal::float4(_e617), metal::float4(-20.0), metal::float4(20.0)));
                }
                Numbers _e630 = low;
                Numbers _e635 = high;
                hidden = (metal::uint4(key_1 + 0u) < _e630) | (metal::uint4(key_1 + 0u) >= _e635);
                metal::float4 _e639 = score0_;
                metal::bool4 _e645 = hidden;
                score0_ = metal::select(metal::max(_e639, metal::float4(-340000000000000000000000000000000000000.0)), metal::float4(-340282350000000000000000000000000000000.0), _e645);
            }
            {
                float _e649 = params.softcap;
                if (_e649 > 0.0) {
                    float _e654 = params.softcap;
                    metal::float4 _e655 = score1_;
                    float _e658 = params.softcap;
                    score1_ = _e654 * metal::tanh(metal::clamp(_e655 / metal::float4(_e658), metal::float4(-20.0), metal::float4(20.0)));
                }
                Numbers _e671 = low;
                Numbers _e676 = high;
                hidden_1 = (metal::uint4(key_1 + 1u) < _e671) | (metal::uint4(key_1 + 1u) >= _e676);
                metal::float4 _e680 = score1_;
                metal::bool4 _e686 = hidden_1;
                score1_ = metal::select(metal::max(_e680, metal::float4(-340000000000000000000000000000000000000.0)), metal::float4(-340282350000000000000000000000000000000.0), _e686);
            }
            {
                float _e690 = params.softcap;
                if (_e690 > 0.0) {
                    float _e695 = params.softcap;
                    metal::float4 _e696 = score2_;
                    float _e699 = params.softcap;
                    score2_ = _e695 * metal::tanh(metal::clamp(_e696 / metal::float4(_e699), metal::float4(-20.0), metal::float4(20.0)));
                }
                Numbers _e712 = low;
                Numbers _e717 = high;
                hidden_2 = (metal::uint4(key_1 + 2u) < _e712) | (metal::uint4(key_1 + 2u) >= _e717);
                metal::float4 _e721 = score2_;
                metal::bool4 _e727 = hidden_2;
                score2_ = metal::select(metal::max(_e721, metal::float4(-340000000000000000000000000000000000000.0)), metal::float4(-340282350000000000000000000000000000000.0), _e727);
            }
            {
                float _e731 = params.softcap;
                if (_e731 > 0.0) {
                    float _e736 = params.softcap;
                    metal::float4 _e737 = score3_;
                    float _e740 = params.softcap;
                    score3_ = _e736 * metal::tanh(metal::clamp(_e737 / metal::float4(_e740), metal::float4(-20.0), metal::float4(20.0)));
                }
                Numbers _e753 = low;
                Numbers _e758 = high;
                hidden_3 = (metal::uint4(key_1 + 3u) < _e753) | (metal::uint4(key_1 + 3u) >= _e758);
                metal::float4 _e762 = score3_;
                metal::bool4 _e768 = hidden_3;
                score3_ = metal::select(metal::max(_e762, metal::float4(-340000000000000000000000000000000000000.0)), metal::float4(-340282350000000000000000000000000000000.0), _e768);
            }
            metal::float4 _e772 = score0_;
            metal::float4 _e773 = score1_;
            metal::float4 _e775 = score2_;
            metal::float4 _e776 = score3_;
            weights.inner[metal::min(unsigned(lane), 1023u)] = metal::max(metal::max(_e772, _e773), metal::max(_e775, _e776));
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            metal::float4 _e779 = most;
            highest = _e779;
            i_1 = 0u;
            bool loop_init_4 = true;
            while(true) {
                if (!loop_init_4) {
                    uint _e796 = i_1;
                    i_1 = _e796 + 1u;
                }
                loop_init_4 = false;
                uint _e783 = i_1;
                if (_e783 < 16u) {
                } else {
                    break;
                }
                {
                    metal::float4 _e786 = highest;
                    uint _e790 = i_1;
                    Rows _e793 = weights.inner[metal::min(unsigned((down * 16u) + _e790), 1023u)];
                    highest = metal::max(_e786, _e793);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            metal::float4 _e798 = score0_;
            metal::float4 _e799 = highest;
            metal::float4 _e804 = score0_;
            metal::float4 weight0_ = metal::select(metal::exp(_e798 - _e799), metal::float4(0.0), _e804 <= metal::float4(-340282350000000000000000000000000000000.0));
            weights.inner[metal::min(unsigned((((across * 4u) + 0u) * 16u) + down), 1023u)] = weight0_;
            metal::float4 _e818 = score1_;
            metal::float4 _e819 = highest;
            metal::float4 _e824 = score1_;
            metal::float4 weight1_ = metal::select(metal::exp(_e818 - _e819), metal::float4(0.0), _e824 <= metal::float4(-340282350000000000000000000000000000000.0));
            weights.inner[metal::min(unsigned((((across * 4u) + 1u) * 16u) + down), 1023u)] = weight1_;
            metal::float4 _e838 = score2_;
            metal::float4 _e839 = highest;
            metal::float4 _e844 = score2_;
            metal::float4 weight2_ = metal::select(metal::exp(_e838 - _e839), metal::float4(0.0), _e844 <= metal::float4(-340282350000000000000000000000000000000.0));
            weights.inner[metal::min(unsigned((((across * 4u) + 2u) * 16u) + down), 1023u)] = weight2_;
            metal::float4 _e858 = score3_;
            metal::float4 _e859 = highest;
            metal::float4 _e864 = score3_;
            metal::float4 weight3_ = metal::select(metal::exp(_e858 - _e859), metal::float4(0.0), _e864 <= metal::float4(-340282350000000000000000000000000000000.0));
            weights.inner[metal::min(unsigned((((across * 4u) + 3u) * 16u) + down), 1023u)] = weight3_;
            queries.inner[metal::min(unsigned(lane), 271u)] = ((weight0_ + weight1_) + weight2_) + weight3_;
            metal::float4 _e883 = most;
            metal::float4 _e884 = highest;
            metal::float4 shrink = metal::exp(_e883 - _e884);
            metal::float4 _e887 = highest;
            most = _e887;
            metal::float4 _e888 = total;
            total = _e888 * shrink;
            metal::float4 _e890 = sum0_0_;
            sum0_0_ = _e890 * shrink;
            metal::float4 _e892 = sum0_1_;
            sum0_1_ = _e892 * shrink;
            metal::float4 _e894 = sum0_2_;
            sum0_2_ = _e894 * shrink;
            metal::float4 _e896 = sum0_3_;
            sum0_3_ = _e896 * shrink;
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            i_2 = 0u;
            bool loop_init_5 = true;
            while(true) {
                if (!loop_init_5) {
                    uint _e913 = i_2;
                    i_2 = _e913 + 1u;
                }
                loop_init_5 = false;
                uint _e900 = i_2;
                if (_e900 < 16u) {
                } else {
                    break;
                }
                {
                    metal::float4 _e903 = total;
                    uint _e907 = i_2;
                    Rows _e910 = queries.inner[metal::min(unsigned((down * 16u) + _e907), 271u)];
                    total = _e903 + _e910;
                }
            }
            uint _e915 = start;
            uint _e918 = tile_high;
            uint _e920 = start;
            uint stop = metal::min(_e915 + KEYS, _e918) - _e920;
            from_slice = 0u;
            bool loop_init_6 = true;
            while(true) {
                if (!loop_init_6) {
                    uint _e1040 = from_slice;
                    from_slice = _e1040 + SLICE;
                }
                loop_init_6 = false;
                uint _e924 = from_slice;
                if (_e924 < stop) {
                } else {
                    break;
                }
                {
                    i_3 = lane;
                    bool loop_init_7 = true;
                    while(true) {
                        if (!loop_init_7) {
                            uint _e995 = i_3;
                            i_3 = _e995 + 256u;
                        }
                        loop_init_7 = false;
                        uint _e927 = i_3;
                        if (_e927 < 512u) {
                        } else {
                            break;
                        }
                        {
                            uint _e930 = start;
                            uint _e931 = from_slice;
                            uint _e933 = i_3;
                            uint _e937 = tile_high;
                            uint at_2 = metal::min((_e930 + _e931) + naga_div(_e933, COLUMNS), _e937 - 1u);
                            uint _e943 = i_3;
                            uint column = ((part * COLUMNS) + naga_mod(_e943, COLUMNS)) * 4u;
                            loaded_1 = metal::float4(0.0);
                            uint _e955 = params.block;
                            uint _e960 = blocks[metal::min(unsigned(table + naga_div(at_2, _e955)), (_buffer_sizes.size5 - 0 - 8) / 8)].x;
                            uint _e963 = params.count;
                            uint own_block_1 = metal::min(_e960, _e963 - 1u);
                            uint _e969 = params.kv_heads;
                            uint _e974 = params.block;
                            uint _e978 = params.block;
                            uint vector = (((own_block_1 * _e969) + head) * _e974) + naga_mod(at_2, _e978);
                            uint _e983 = params.value_width;
                            uint from_value = (vector * _e983) + column;
                            uint _e988 = params.value_width;
                            if (column < _e988) {
                                metal::float4 _e990 = values_at(from_value, values, _buffer_sizes);
                                loaded_1 = _e990;
                            }
                            uint _e992 = i_3;
                            metal::float4 _e994 = loaded_1;
                            stage.inner[metal::min(unsigned(_e992), 511u)] = _e994;
                        }
                    }
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                    i_4 = 0u;
                    bool loop_init_8 = true;
                    while(true) {
                        if (!loop_init_8) {
                            uint _e1038 = i_4;
                            i_4 = _e1038 + 1u;
                        }
                        loop_init_8 = false;
                        uint _e1000 = i_4;
                        if (_e1000 < SLICE) {
                        } else {
                            break;
                        }
                        {
                            uint _e1004 = from_slice;
                            uint _e1005 = i_4;
                            Rows weight = weights.inner[metal::min(unsigned(((_e1004 + _e1005) * 16u) + down), 1023u)];
                            uint _e1013 = i_4;
                            metal::float4 value0_ = stage.inner[metal::min(unsigned(((_e1013 * COLUMNS) + 0u) + across), 511u)];
                            metal::float4 _e1021 = sum0_0_;
                            sum0_0_ = _e1021 + (weight * value0_.x);
                            metal::float4 _e1025 = sum0_1_;
                            sum0_1_ = _e1025 + (weight * value0_.y);
                            metal::float4 _e1029 = sum0_2_;
                            sum0_2_ = _e1029 + (weight * value0_.z);
                            metal::float4 _e1033 = sum0_3_;
                            sum0_3_ = _e1033 + (weight * value0_.w);
                        }
                    }
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                }
            }
        }
    }
    {
        uint i_11 = (i_5 + (down * PER)) + 0u;
        if (i_11 < count_1) {
            uint _e1054 = params.shared_heads;
            uint _e1059 = params.kv_heads;
            uint _e1064 = params.shared_heads;
            uint _e1068 = params.value_width;
            uint _e1072 = params.shared_heads;
            uint _e1076 = params.value_width;
            uint result = (((((first_row_1 + naga_div(i_11, _e1054)) * _e1059) + head) * _e1064) * _e1068) + (naga_mod(i_11, _e1072) * _e1076);
            float own_1 = total.x;
            {
                uint column_1 = (((part * COLUMNS) + 0u) + across) * 4u;
                uint _e1092 = params.value_width;
                if ((column_1 + 0u) < _e1092) {
                    float _e1095 = sum0_0_.x;
                    float x = _e1095 / own_1;
                    y[metal::min(unsigned((result + column_1) + 0u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x);
                }
                uint _e1107 = params.value_width;
                if ((column_1 + 1u) < _e1107) {
                    float _e1110 = sum0_1_.x;
                    float x_1 = _e1110 / own_1;
                    y[metal::min(unsigned((result + column_1) + 1u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_1);
                }
                uint _e1122 = params.value_width;
                if ((column_1 + 2u) < _e1122) {
                    float _e1125 = sum0_2_.x;
                    float x_2 = _e1125 / own_1;
                    y[metal::min(unsigned((result + column_1) + 2u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_2);
                }
                uint _e1137 = params.value_width;
                if ((column_1 + 3u) < _e1137) {
                    float _e1140 = sum0_3_.x;
                    float x_3 = _e1140 / own_1;
                    y[metal::min(unsigned((result + column_1) + 3u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_3);
                }
            }
        }
    }
    {
        uint i_12 = (i_5 + (down * PER)) + 1u;
        if (i_12 < count_1) {
            uint _e1156 = params.shared_heads;
            uint _e1161 = params.kv_heads;
            uint _e1166 = params.shared_heads;
            uint _e1170 = params.value_width;
            uint _e1174 = params.shared_heads;
            uint _e1178 = params.value_width;
            uint result_1 = (((((first_row_1 + naga_div(i_12, _e1156)) * _e1161) + head) * _e1166) * _e1170) + (naga_mod(i_12, _e1174) * _e1178);
            float own_2 = total.y;
            {
                uint column_2 = (((part * COLUMNS) + 0u) + across) * 4u;
                uint _e1194 = params.value_width;
                if ((column_2 + 0u) < _e1194) {
                    float _e1197 = sum0_0_.y;
                    float x_4 = _e1197 / own_2;
                    y[metal::min(unsigned((result_1 + column_2) + 0u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_4);
                }
                uint _e1209 = params.value_width;
                if ((column_2 + 1u) < _e1209) {
                    float _e1212 = sum0_1_.y;
                    float x_5 = _e1212 / own_2;
                    y[metal::min(unsigned((result_1 + column_2) + 1u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_5);
                }
                uint _e1224 = params.value_width;
                if ((column_2 + 2u) < _e1224) {
                    float _e1227 = sum0_2_.y;
                    float x_6 = _e1227 / own_2;
                    y[metal::min(unsigned((result_1 + column_2) + 2u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_6);
                }
                uint _e1239 = params.value_width;
                if ((column_2 + 3u) < _e1239) {
                    float _e1242 = sum0_3_.y;
                    float x_7 = _e1242 / own_2;
                    y[metal::min(unsigned((result_1 + column_2) + 3u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_7);
                }
            }
        }
    }
    {
        uint i_13 = (i_5 + (down * PER)) + 2u;
        if (i_13 < count_1) {
            uint _e1258 = params.shared_heads;
            uint _e1263 = params.kv_heads;
            uint _e1268 = params.shared_heads;
            uint _e1272 = params.value_width;
            uint _e1276 = params.shared_heads;
            uint _e1280 = params.value_width;
            uint result_2 = (((((first_row_1 + naga_div(i_13, _e1258)) * _e1263) + head) * _e1268) * _e1272) + (naga_mod(i_13, _e1276) * _e1280);
            float own_3 = total.z;
            {
                uint column_3 = (((part * COLUMNS) + 0u) + across) * 4u;
                uint _e1296 = params.value_width;
                if ((column_3 + 0u) < _e1296) {
                    float _e1299 = sum0_0_.z;
                    float x_8 = _e1299 / own_3;
                    y[metal::min(unsigned((result_2 + column_3) + 0u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_8);
                }
                uint _e1311 = params.value_width;
                if ((column_3 + 1u) < _e1311) {
                    float _e1314 = sum0_1_.z;
                    float x_9 = _e1314 / own_3;
                    y[metal::min(unsigned((result_2 + column_3) + 1u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_9);
                }
                uint _e1326 = params.value_width;
                if ((column_3 + 2u) < _e1326) {
                    float _e1329 = sum0_2_.z;
                    float x_10 = _e1329 / own_3;
                    y[metal::min(unsigned((result_2 + column_3) + 2u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_10);
                }
                uint _e1341 = params.value_width;
                if ((column_3 + 3u) < _e1341) {
                    float _e1344 = sum0_3_.z;
                    float x_11 = _e1344 / own_3;
                    y[metal::min(unsigned((result_2 + column_3) + 3u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_11);
                }
            }
        }
    }
    {
        uint i_14 = (i_5 + (down * PER)) + 3u;
        if (i_14 < count_1) {
            uint _e1360 = params.shared_heads;
            uint _e1365 = params.kv_heads;
            uint _e1370 = params.shared_heads;
            uint _e1374 = params.value_width;
            uint _e1378 = params.shared_heads;
            uint _e1382 = params.value_width;
            uint result_3 = (((((first_row_1 + naga_div(i_14, _e1360)) * _e1365) + head) * _e1370) * _e1374) + (naga_mod(i_14, _e1378) * _e1382);
            float own_4 = total.w;
            {
                uint column_4 = (((part * COLUMNS) + 0u) + across) * 4u;
                uint _e1398 = params.value_width;
                if ((column_4 + 0u) < _e1398) {
                    float _e1401 = sum0_0_.w;
                    float x_12 = _e1401 / own_4;
                    y[metal::min(unsigned((result_3 + column_4) + 0u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_12);
                }
                uint _e1413 = params.value_width;
                if ((column_4 + 1u) < _e1413) {
                    float _e1416 = sum0_1_.w;
                    float x_13 = _e1416 / own_4;
                    y[metal::min(unsigned((result_3 + column_4) + 1u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_13);
                }
                uint _e1428 = params.value_width;
                if ((column_4 + 2u) < _e1428) {
                    float _e1431 = sum0_2_.w;
                    float x_14 = _e1431 / own_4;
                    y[metal::min(unsigned((result_3 + column_4) + 2u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_14);
                }
                uint _e1443 = params.value_width;
                if ((column_4 + 3u) < _e1443) {
                    float _e1446 = sum0_3_.w;
                    float x_15 = _e1446 / own_4;
                    y[metal::min(unsigned((result_3 + column_4) + 3u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_15);
                    return;
                } else {
                    return;
                }
            }
        } else {
            return;
        }
    }
}
