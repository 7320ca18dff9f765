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
struct type_9 {
    Rows inner[272];
};
struct type_10 {
    metal::float4 inner[512];
};
struct type_11 {
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

Tile find_tile(
    uint number,
    device type_5 const& starts,
    device type_5 const& lengths,
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
, device type_3 const& keys [[buffer(1)]]
, device type_3 const& values [[buffer(2)]]
, device type_5 const& starts [[buffer(3)]]
, device type_5 const& lengths [[buffer(4)]]
, device type_5 const& blocks [[buffer(5)]]
, device type_1& y [[buffer(6)]]
, device type_7 const& key_scales [[buffer(7)]]
, device type_1 const& value_scales [[buffer(8)]]
, constant Params& params [[buffer(9)]]
, threadgroup type_9& queries
, threadgroup type_10& stage
, threadgroup type_11& weights
, constant _mslBufferSizes& _buffer_sizes [[buffer(10)]]
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
            uint _e1069 = start;
            start = _e1069 + KEYS;
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
            uint _e488 = params.kv_heads;
            uint _e493 = params.block;
            uint _e497 = params.block;
            metal::float4 key_scale = key_scales[metal::min(unsigned(naga_div((((own_block * _e488) + head) * _e493) + naga_mod(p, _e497), 4u)), (_buffer_sizes.size7 - 0 - 16) / 16)];
            depth = 0u;
            bool loop_init_2 = true;
            while(true) {
                if (!loop_init_2) {
                    uint _e620 = depth;
                    depth = _e620 + DEPTH;
                }
                loop_init_2 = false;
                uint _e506 = depth;
                uint _e509 = params.key_width;
                if (_e506 < _e509) {
                } else {
                    break;
                }
                {
                    uint _e511 = depth;
                    uint d = _e511 + across;
                    query0_ = 0.0;
                    query1_ = 0.0;
                    query2_ = 0.0;
                    query3_ = 0.0;
                    uint _e523 = params.key_width;
                    if (d < _e523) {
                        float _e528 = q[metal::min(unsigned(from_query0_ + d), (_buffer_sizes.size0 - 0 - 4) / 4)];
                        query0_ = static_cast<float>(_e528);
                        float _e533 = q[metal::min(unsigned(from_query1_ + d), (_buffer_sizes.size0 - 0 - 4) / 4)];
                        query1_ = static_cast<float>(_e533);
                        float _e538 = q[metal::min(unsigned(from_query2_ + d), (_buffer_sizes.size0 - 0 - 4) / 4)];
                        query2_ = static_cast<float>(_e538);
                        float _e543 = q[metal::min(unsigned(from_query3_ + d), (_buffer_sizes.size0 - 0 - 4) / 4)];
                        query3_ = static_cast<float>(_e543);
                    }
                    float _e552 = params.scale;
                    float _e553 = query0_;
                    float _e554 = query1_;
                    float _e555 = query2_;
                    float _e556 = query3_;
                    queries.inner[metal::min(unsigned((across * PITCH) + down), 271u)] = _e552 * metal::float4(_e553, _e554, _e555, _e556);
                    loaded = metal::float4(0.0);
                    uint _e562 = depth;
                    uint e = _e562 + down;
                    uint _e566 = params.key_width;
                    if (e < _e566) {
                        uint _e570 = params.block;
                        metal::float4 _e573 = keys_at(from_key_6 + (e * _e570), keys, _buffer_sizes);
                        loaded = _e573;
                        metal::float4 _e574 = loaded;
                        loaded = _e574 * key_scale;
                    }
                    metal::float4 _e581 = loaded;
                    stage.inner[metal::min(unsigned((down * PITCH) + across), 511u)] = _e581;
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                    i = 0u;
                    bool loop_init_3 = true;
                    while(true) {
                        if (!loop_init_3) {
                            uint _e618 = i;
                            i = _e618 + 1u;
                        }
                        loop_init_3 = false;
                        uint _e584 = i;
                        if (_e584 < DEPTH) {
                        } else {
                            break;
                        }
                        {
                            uint _e588 = i;
                            Rows query = queries.inner[metal::min(unsigned((_e588 * PITCH) + down), 271u)];
                            uint _e595 = i;
                            metal::float4 key = stage.inner[metal::min(unsigned((_e595 * PITCH) + across), 511u)];
                            metal::float4 _e601 = score0_;
                            score0_ = _e601 + (query * key.x);
                            metal::float4 _e605 = score1_;
                            score1_ = _e605 + (query * key.y);
                            metal::float4 _e609 = score2_;
                            score2_ = _e609 + (query * key.z);
                            metal::float4 _e613 = score3_;
                            score3_ = _e613 + (query * key.w);
                        }
                    }
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                }
            }
            uint _e623 = start;
            uint key_1 = _e623 + (across * 4u);
            {
                float _e629 = params.softcap;
                if (_e629 > 0.0) {
                    float _e634 = params.softcap;
                    metal::float4 _e635 = score0_;
                    float _e638 = params.softcap;
                    score0_ = _e634 * metal::tanh(metal::clamp(_e635 / metal::float4(_e638), metal::float4(-20.0), metal::float4(20.0)));
                }
                Numbers _e651 = low;
                Numbers _e656 = high;
                hidden = (metal::uint4(key_1 + 0u) < _e651) | (metal::uint4(key_1 + 0u) >= _e656);
                metal::float4 _e660 = score0_;
                metal::bool4 _e666 = hidden;
                score0_ = metal::select(metal::max(_e660, metal::float4(-340000000000000000000000000000000000000.0)), metal::float4(-340282350000000000000000000000000000000.0), _e666);
            }
            {
                float _e670 = params.softcap;
                if (_e670 > 0.0) {
                    float _e675 = params.softcap;
                    metal::float4 _e676 = score1_;
                    float _e679 = params.softcap;
                    score1_ = _e675 * metal::tanh(metal::clamp(_e676 / metal::float4(_e679), metal::float4(-20.0), metal::float4(20.0)));
                }
                Numbers _e692 = low;
                Numbers _e697 = high;
                hidden_1 = (metal::uint4(key_1 + 1u) < _e692) | (metal::uint4(key_1 + 1u) >= _e697);
                metal::float4 _e701 = score1_;
                metal::bool4 _e707 = hidden_1;
                score1_ = metal::select(metal::max(_e701, metal::float4(-340000000000000000000000000000000000000.0)), metal::float4(-340282350000000000000000000000000000000.0), _e707);
            }
            {
                float _e711 = params.softcap;
                if (_e711 > 0.0) {
                    float _e716 = params.softcap;
                    metal::float4 _e717 = score2_;
                    float _e720 = params.softcap;
                    score2_ = _e716 * metal::tanh(metal::clamp(_e717 / metal::float4(_e720), metal::float4(-20.0), metal::float4(20.0)));
                }
                Numbers _e733 = low;
                Numbers _e738 = high;
                hidden_2 = (metal::uint4(key_1 + 2u) < _e733) | (metal::uint4(key_1 + 2u) >= _e738);
                metal::float4 _e742 = score2_;
                metal::bool4 _e748 = hidden_2;
                score2_ = metal::select(metal::max(_e742, metal::float4(-340000000000000000000000000000000000000.0)), metal::float4(-340282350000000000000000000000000000000.0), _e748);
            }
            {
                float _e752 = params.softcap;
                if (_e752 > 0.0) {
                    float _e757 = params.softcap;
                    metal::float4 _e758 = score3_;
                    float _e761 = params.softcap;
                    score3_ = _e757 * metal::tanh(metal::clamp(_e758 / metal::float4(_e761), metal::float4(-20.0), metal::float4(20.0)));
                }
                Numbers _e774 = low;
                Numbers _e779 = high;
                hidden_3 = (metal::uint4(key_1 + 3u) < _e774) | (metal::uint4(key_1 + 3u) >= _e779);
                metal::float4 _e783 = score3_;
                metal::bool4 _e789 = hidden_3;
                score3_ = metal::select(metal::max(_e783, metal::float4(-340000000000000000000000000000000000000.0)), metal::float4(-340282350000000000000000000000000000000.0), _e789);
            }
            metal::float4 _e793 = score0_;
            metal::float4 _e794 = score1_;
            metal::float4 _e796 = score2_;
            metal::float4 _e797 = score3_;
            weights.inner[metal::min(unsigned(lane), 1023u)] = metal::max(metal::max(_e793, _e794), metal::max(_e796, _e797));
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            metal::float4 _e800 = most;
            highest = _e800;
            i_1 = 0u;
            bool loop_init_4 = true;
            while(true) {
                if (!loop_init_4) {
                    uint _e817 = i_1;
                    i_1 = _e817 + 1u;
                }
                loop_init_4 = false;
                uint _e804 = i_1;
                if (_e804 < 16u) {
                } else {
                    break;
                }
                {
                    metal::float4 _e807 = highest;
                    uint _e811 = i_1;
                    Rows _e814 = weights.inner[metal::min(unsigned((down * 16u) + _e811), 1023u)];
                    highest = metal::max(_e807, _e814);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            metal::float4 _e819 = score0_;
            metal::float4 _e820 = highest;
            metal::float4 _e825 = score0_;
            metal::float4 weight0_ = metal::select(metal::exp(_e819 - _e820), metal::float4(0.0), _e825 <= metal::float4(-340282350000000000000000000000000000000.0));
            weights.inner[metal::min(unsigned((((across * 4u) + 0u) * 16u) + down), 1023u)] = weight0_;
            metal::float4 _e839 = score1_;
            metal::float4 _e840 = highest;
            metal::float4 _e845 = score1_;
            metal::float4 weight1_ = metal::select(metal::exp(_e839 - _e840), metal::float4(0.0), _e845 <= metal::float4(-340282350000000000000000000000000000000.0));
            weights.inner[metal::min(unsigned((((across * 4u) + 1u) * 16u) + down), 1023u)] = weight1_;
            metal::float4 _e859 = score2_;
            metal::float4 _e860 = highest;
            metal::float4 _e865 = score2_;
            metal::float4 weight2_ = metal::select(metal::exp(_e859 - _e860), metal::float4(0.0), _e865 <= metal::float4(-340282350000000000000000000000000000000.0));
            weights.inner[metal::min(unsigned((((across * 4u) + 2u) * 16u) + down), 1023u)] = weight2_;
            metal::float4 _e879 = score3_;
            metal::float4 _e880 = highest;
            metal::float4 _e885 = score3_;
            metal::float4 weight3_ = metal::select(metal::exp(_e879 - _e880), metal::float4(0.0), _e885 <= metal::float4(-340282350000000000000000000000000000000.0));
            weights.inner[metal::min(unsigned((((across * 4u) + 3u) * 16u) + down), 1023u)] = weight3_;
            queries.inner[metal::min(unsigned(lane), 271u)] = ((weight0_ + weight1_) + weight2_) + weight3_;
            metal::float4 _e904 = most;
            metal::float4 _e905 = highest;
            metal::float4 shrink = metal::exp(_e904 - _e905);
            metal::float4 _e908 = highest;
            most = _e908;
            metal::float4 _e909 = total;
            total = _e909 * shrink;
            metal::float4 _e911 = sum0_0_;
            sum0_0_ = _e911 * shrink;
            metal::float4 _e913 = sum0_1_;
            sum0_1_ = _e913 * shrink;
            metal::float4 _e915 = sum0_2_;
            sum0_2_ = _e915 * shrink;
            metal::float4 _e917 = sum0_3_;
            sum0_3_ = _e917 * shrink;
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            i_2 = 0u;
            bool loop_init_5 = true;
            while(true) {
                if (!loop_init_5) {
                    uint _e934 = i_2;
                    i_2 = _e934 + 1u;
                }
                loop_init_5 = false;
                uint _e921 = i_2;
                if (_e921 < 16u) {
                } else {
                    break;
                }
                {
                    metal::float4 _e924 = total;
                    uint _e928 = i_2;
                    Rows _e931 = queries.inner[metal::min(unsigned((down * 16u) + _e928), 271u)];
                    total = _e924 + _e931;
                }
            }
            uint _e936 = start;
            uint _e939 = tile_high;
            uint _e941 = start;
            uint stop = metal::min(_e936 + KEYS, _e939) - _e941;
            from_slice = 0u;
            bool loop_init_6 = true;
            while(true) {
                if (!loop_init_6) {
                    uint _e1066 = from_slice;
                    from_slice = _e1066 + SLICE;
                }
                loop_init_6 = false;
                uint _e945 = from_slice;
                if (_e945 < stop) {
                } else {
                    break;
                }
                {
                    i_3 = lane;
                    bool loop_init_7 = true;
                    while(true) {
                        if (!loop_init_7) {
                            uint _e1021 = i_3;
                            i_3 = _e1021 + 256u;
                        }
                        loop_init_7 = false;
                        uint _e948 = i_3;
                        if (_e948 < 512u) {
                        } else {
                            break;
                        }
                        {
                            uint _e951 = start;
                            uint _e952 = from_slice;
                            uint _e954 = i_3;
                            uint _e958 = tile_high;
                            uint at_2 = metal::min((_e951 + _e952) + naga_div(_e954, COLUMNS), _e958 - 1u);
                            uint _e964 = i_3;
                            uint column = ((part * COLUMNS) + naga_mod(_e964, COLUMNS)) * 4u;
                            loaded_1 = metal::float4(0.0);
                            uint _e976 = params.block;
                            uint _e981 = blocks[metal::min(unsigned(table + naga_div(at_2, _e976)), (_buffer_sizes.size5 - 0 - 8) / 8)].x;
                            uint _e984 = params.count;
                            uint own_block_1 = metal::min(_e981, _e984 - 1u);
                            uint _e990 = params.kv_heads;
                            uint _e995 = params.block;
                            uint _e999 = params.block;
                            uint vector = (((own_block_1 * _e990) + head) * _e995) + naga_mod(at_2, _e999);
                            uint _e1004 = params.value_width;
                            uint from_value = (vector * _e1004) + column;
                            uint _e1009 = params.value_width;
                            if (column < _e1009) {
                                metal::float4 _e1011 = values_at(from_value, values, _buffer_sizes);
                                loaded_1 = _e1011;
                            }
                            metal::float4 _e1012 = loaded_1;
                            float _e1015 = value_scales[metal::min(unsigned(vector), (_buffer_sizes.size8 - 0 - 4) / 4)];
                            loaded_1 = _e1012 * _e1015;
                            uint _e1018 = i_3;
                            metal::float4 _e1020 = loaded_1;
                            stage.inner[metal::min(unsigned(_e1018), 511u)] = _e1020;
                        }
                    }
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                    i_4 = 0u;
                    bool loop_init_8 = true;
                    while(true) {
                        if (!loop_init_8) {
                            uint _e1064 = i_4;
                            i_4 = _e1064 + 1u;
                        }
                        loop_init_8 = false;
                        uint _e1026 = i_4;
                        if (_e1026 < SLICE) {
                        } else {
                            break;
                        }
                        {
                            uint _e1030 = from_slice;
                            uint _e1031 = i_4;
                            Rows weight = weights.inner[metal::min(unsigned(((_e1030 + _e1031) * 16u) + down), 1023u)];
                            uint _e1039 = i_4;
                            metal::float4 value0_ = stage.inner[metal::min(unsigned(((_e1039 * COLUMNS) + 0u) + across), 511u)];
                            metal::float4 _e1047 = sum0_0_;
                            sum0_0_ = _e1047 + (weight * value0_.x);
                            metal::float4 _e1051 = sum0_1_;
                            sum0_1_ = _e1051 + (weight * value0_.y);
                            metal::float4 _e1055 = sum0_2_;
                            sum0_2_ = _e1055 + (weight * value0_.z);
                            metal::float4 _e1059 = sum0_3_;
                            sum0_3_ = _e1059 + (weight * value0_.w);
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
            uint _e1080 = params.shared_heads;
            uint _e1085 = params.kv_heads;
            uint _e1090 = params.shared_heads;
            uint _e1094 = params.value_width;
            uint _e1098 = params.shared_heads;
            uint _e1102 = params.value_width;
            uint result = (((((first_row_1 + naga_div(i_11, _e1080)) * _e1085) + head) * _e1090) * _e1094) + (naga_mod(i_11, _e1098) * _e1102);
            float own_1 = total.x;
            {
                uint column_1 = (((part * COLUMNS) + 0u) + across) * 4u;
                uint _e1118 = params.value_width;
                if ((column_1 + 0u) < _e1118) {
                    float _e1121 = sum0_0_.x;
                    float x = _e1121 / own_1;
                    y[metal::min(unsigned((result + column_1) + 0u), (_buffer_sizes.size6 - 0 - 4) / 4)] = static_cast<float>(x);
                }
                uint _e1133 = params.value_width;
                if ((column_1 + 1u) < _e1133) {
                    float _e1136 = sum0_1_.x;
                    float x_1 = _e1136 / own_1;
                    y[metal::min(unsigned((result + column_1) + 1u), (_buffer_sizes.size6 - 0 - 4) / 4)] = static_cast<float>(x_1);
                }
                uint _e1148 = params.value_width;
                if ((column_1 + 2u) < _e1148) {
                    float _e1151 = sum0_2_.x;
                    float x_2 = _e1151 / own_1;
                    y[metal::min(unsigned((result + column_1) + 2u), (_buffer_sizes.size6 - 0 - 4) / 4)] = static_cast<float>(x_2);
                }
                uint _e1163 = params.value_width;
                if ((column_1 + 3u) < _e1163) {
                    float _e1166 = sum0_3_.x;
                    float x_3 = _e1166 / own_1;
                    y[metal::min(unsigned((result + column_1) + 3u), (_buffer_sizes.size6 - 0 - 4) / 4)] = static_cast<float>(x_3);
                }
            }
        }
    }
    {
        uint i_12 = (i_5 + (down * PER)) + 1u;
        if (i_12 < count_1) {
            uint _e1182 = params.shared_heads;
            uint _e1187 = params.kv_heads;
            uint _e1192 = params.shared_heads;
            uint _e1196 = params.value_width;
            uint _e1200 = params.shared_heads;
            uint _e1204 = params.value_width;
            uint result_1 = (((((first_row_1 + naga_div(i_12, _e1182)) * _e1187) + head) * _e1192) * _e1196) + (naga_mod(i_12, _e1200) * _e1204);
            float own_2 = total.y;
            {
                uint column_2 = (((part * COLUMNS) + 0u) + across) * 4u;
                uint _e1220 = params.value_width;
                if ((column_2 + 0u) < _e1220) {
                    float _e1223 = sum0_0_.y;
                    float x_4 = _e1223 / own_2;
                    y[metal::min(unsigned((result_1 + column_2) + 0u), (_buffer_sizes.size6 - 0 - 4) / 4)] = static_cast<float>(x_4);
                }
                uint _e1235 = params.value_width;
                if ((column_2 + 1u) < _e1235) {
                    float _e1238 = sum0_1_.y;
                    float x_5 = _e1238 / own_2;
                    y[metal::min(unsigned((result_1 + column_2) + 1u), (_buffer_sizes.size6 - 0 - 4) / 4)] = static_cast<float>(x_5);
                }
                uint _e1250 = params.value_width;
                if ((column_2 + 2u) < _e1250) {
                    float _e1253 = sum0_2_.y;
                    float x_6 = _e1253 / own_2;
                    y[metal::min(unsigned((result_1 + column_2) + 2u), (_buffer_sizes.size6 - 0 - 4) / 4)] = static_cast<float>(x_6);
                }
                uint _e1265 = params.value_width;
                if ((column_2 + 3u) < _e1265) {
                    float _e1268 = sum0_3_.y;
                    float x_7 = _e1268 / own_2;
                    y[metal::min(unsigned((result_1 + column_2) + 3u), (_buffer_sizes.size6 - 0 - 4) / 4)] = static_cast<float>(x_7);
                }
            }
        }
    }
    {
        uint i_13 = (i_5 + (down * PER)) + 2u;
        if (i_13 < count_1) {
            uint _e1284 = params.shared_heads;
            uint _e1289 = params.kv_heads;
            uint _e1294 = params.shared_heads;
            uint _e1298 = params.value_width;
            uint _e1302 = params.shared_heads;
            uint _e1306 = params.value_width;
            uint result_2 = (((((first_row_1 + naga_div(i_13, _e1284)) * _e1289) + head) * _e1294) * _e1298) + (naga_mod(i_13, _e1302) * _e1306);
            float own_3 = total.z;
            {
                uint column_3 = (((part * COLUMNS) + 0u) + across) * 4u;
                uint _e1322 = params.value_width;
                if ((column_3 + 0u) < _e1322) {
                    float _e1325 = sum0_0_.z;
                    float x_8 = _e1325 / own_3;
                    y[metal::min(unsigned((result_2 + column_3) + 0u), (_buffer_sizes.size6 - 0 - 4) / 4)] = static_cast<float>(x_8);
                }
                uint _e1337 = params.value_width;
                if ((column_3 + 1u) < _e1337) {
                    float _e1340 = sum0_1_.z;
                    float x_9 = _e1340 / own_3;
                    y[metal::min(unsigned((result_2 + column_3) + 1u), (_buffer_sizes.size6 - 0 - 4) / 4)] = static_cast<float>(x_9);
                }
                uint _e1352 = params.value_width;
                if ((column_3 + 2u) < _e1352) {
                    float _e1355 = sum0_2_.z;
                    float x_10 = _e1355 / own_3;
                    y[metal::min(unsigned((result_2 + column_3) + 2u), (_buffer_sizes.size6 - 0 - 4) / 4)] = static_cast<float>(x_10);
                }
                uint _e1367 = params.value_width;
                if ((column_3 + 3u) < _e1367) {
                    float _e1370 = sum0_3_.z;
                    float x_11 = _e1370 / own_3;
                    y[metal::min(unsigned((result_2 + column_3) + 3u), (_buffer_sizes.size6 - 0 - 4) / 4)] = static_cast<float>(x_11);
                }
            }
        }
    }
    {
        uint i_14 = (i_5 + (down * PER)) + 3u;
        if (i_14 < count_1) {
            uint _e1386 = params.shared_heads;
            uint _e1391 = params.kv_heads;
            uint _e1396 = params.shared_heads;
            uint _e1400 = params.value_width;
            uint _e1404 = params.shared_heads;
            uint _e1408 = params.value_width;
            uint result_3 = (((((first_row_1 + naga_div(i_14, _e1386)) * _e1391) + head) * _e1396) * _e1400) + (naga_mod(i_14, _e1404) * _e1408);
            float own_4 = total.w;
            {
                uint column_4 = (((part * COLUMNS) + 0u) + across) * 4u;
                uint _e1424 = params.value_width;
                if ((column_4 + 0u) < _e1424) {
                    float _e1427 = sum0_0_.w;
                    float x_12 = _e1427 / own_4;
                    y[metal::min(unsigned((result_3 + column_4) + 0u), (_buffer_sizes.size6 - 0 - 4) / 4)] = static_cast<float>(x_12);
                }
                uint _e1439 = params.value_width;
                if ((column_4 + 1u) < _e1439) {
                    float _e1442 = sum0_1_.w;
                    float x_13 = _e1442 / own_4;
                    y[metal::min(unsigned((result_3 + column_4) + 1u), (_buffer_sizes.size6 - 0 - 4) / 4)] = static_cast<float>(x_13);
                }
                uint _e1454 = params.value_width;
                if ((column_4 + 2u) < _e1454) {
                    float _e1457 = sum0_2_.w;
                    float x_14 = _e1457 / own_4;
                    y[metal::min(unsigned((result_3 + column_4) + 2u), (_buffer_sizes.size6 - 0 - 4) / 4)] = static_cast<float>(x_14);
                }
                uint _e1469 = params.value_width;
                if ((column_4 + 3u) < _e1469) {
                    float _e1472 = sum0_3_.w;
                    float x_15 = _e1472 / own_4;
                    y[metal::min(unsigned((result_3 + column_4) + 3u), (_buffer_sizes.size6 - 0 - 4) / 4)] = static_cast<float>(x_15);
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
