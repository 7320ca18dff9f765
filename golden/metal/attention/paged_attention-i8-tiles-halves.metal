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
typedef float type_7[1];
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

uint naga_mod(uint lhs, uint rhs) {
    return lhs % metal::select(rhs, 1u, rhs == 0u);
}

float keys_at(
    uint at,
    device type_3 const& keys,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = keys[metal::min(unsigned(naga_div(at, 4u)), (_buffer_sizes.size1 - 0 - 4) / 4)];
    return static_cast<float>(as_type<int>(_e5 << (24u - (naga_mod(at, 4u) * 8u))) >> 24u);
}

float values_at(
    uint at_1,
    device type_3 const& values,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = values[metal::min(unsigned(naga_div(at_1, 4u)), (_buffer_sizes.size2 - 0 - 4) / 4)];
    return static_cast<float>(as_type<int>(_e5 << (24u - (naga_mod(at_1, 4u) * 8u))) >> 24u);
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
, device type_7 const& value_scales [[buffer(8)]]
, constant Params& params [[buffer(9)]]
, threadgroup type_8& queries
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
            uint _e1280 = start;
            start = _e1280 + KEYS;
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
            uint _e446 = tile_high;
            uint p0_ = metal::min((_e440 + (across * 4u)) + 0u, _e446 - 1u);
            uint _e453 = params.block;
            uint _e458 = blocks[metal::min(unsigned(table + naga_div(p0_, _e453)), (_buffer_sizes.size5 - 0 - 8) / 8)].x;
            uint _e461 = params.count;
            uint _e467 = params.kv_heads;
            uint vector0_ = (metal::min(_e458, _e461 - 1u) * _e467) + head;
            uint _e472 = params.key_width;
            uint _e476 = params.block;
            uint _e480 = params.block;
            uint from_key0_ = ((vector0_ * _e472) * _e476) + naga_mod(p0_, _e480);
            uint _e483 = start;
            uint _e489 = tile_high;
            uint p1_ = metal::min((_e483 + (across * 4u)) + 1u, _e489 - 1u);
            uint _e496 = params.block;
            uint _e501 = blocks[metal::min(unsigned(table + naga_div(p1_, _e496)), (_buffer_sizes.size5 - 0 - 8) / 8)].x;
            uint _e504 = params.count;
            uint _e510 = params.kv_heads;
            uint vector1_ = (metal::min(_e501, _e504 - 1u) * _e510) + head;
            uint _e515 = params.key_width;
            uint _e519 = params.block;
            uint _e523 = params.block;
            uint from_key1_ = ((vector1_ * _e515) * _e519) + naga_mod(p1_, _e523);
            uint _e526 = start;
            uint _e532 = tile_high;
            uint p2_ = metal::min((_e526 + (across * 4u)) + 2u, _e532 - 1u);
            uint _e539 = params.block;
            uint _e544 = blocks[metal::min(unsigned(table + naga_div(p2_, _e539)), (_buffer_sizes.size5 - 0 - 8) / 8)].x;
            uint _e547 = params.count;
            uint _e553 = params.kv_heads;
            uint vector2_ = (metal::min(_e544, _e547 - 1u) * _e553) + head;
            uint _e558 = params.key_width;
            uint _e562 = params.block;
            uint _e566 = params.block;
            uint from_key2_ = ((vector2_ * _e558) * _e562) + naga_mod(p2_, _e566);
            uint _e569 = start;
            uint _e575 = tile_high;
            uint p3_ = metal::min((_e569 + (across * 4u)) + 3u, _e575 - 1u);
            uint _e582 = params.block;
            uint _e587 = blocks[metal::min(unsigned(table + naga_div(p3_, _e582)), (_buffer_sizes.size5 - 0 - 8) / 8)].x;
            uint _e590 = params.count;
            uint _e596 = params.kv_heads;
            uint vector3_ = (metal::min(_e587, _e590 - 1u) * _e596) + head;
            uint _e601 = params.key_width;
            uint _e605 = params.block;
            uint _e609 = params.block;
            uint from_key3_ = ((vector3_ * _e601) * _e605) + naga_mod(p3_, _e609);
            uint _e615 = params.block;
            uint _e619 = params.block;
            float _e623 = key_scales[metal::min(unsigned((vector0_ * _e615) + naga_mod(p0_, _e619)), (_buffer_sizes.size7 - 0 - 4) / 4)];
            uint _e627 = params.block;
            uint _e631 = params.block;
            float _e635 = key_scales[metal::min(unsigned((vector1_ * _e627) + naga_mod(p1_, _e631)), (_buffer_sizes.size7 - 0 - 4) / 4)];
            uint _e639 = params.block;
            uint _e643 = params.block;
            float _e647 = key_scales[metal::min(unsigned((vector2_ * _e639) + naga_mod(p2_, _e643)), (_buffer_sizes.size7 - 0 - 4) / 4)];
            uint _e651 = params.block;
            uint _e655 = params.block;
            float _e659 = key_scales[metal::min(unsigned((vector3_ * _e651) + naga_mod(p3_, _e655)), (_buffer_sizes.size7 - 0 - 4) / 4)];
            metal::float4 key_scale = metal::float4(_e623, _e635, _e647, _e659);
            depth = 0u;
            bool loop_init_2 = true;
            while(true) {
                if (!loop_init_2) {
                    uint _e796 = depth;
                    depth = _e796 + DEPTH;
                }
                loop_init_2 = false;
                uint _e663 = depth;
                uint _e666 = params.key_width;
                if (_e663 < _e666) {
                } else {
                    break;
                }
                {
                    uint _e668 = depth;
                    uint d = _e668 + across;
                    query0_ = 0.0;
                    query1_ = 0.0;
                    query2_ = 0.0;
                    query3_ = 0.0;
                    uint _e680 = params.key_width;
                    if (d < _e680) {
                        half _e685 = q[metal::min(unsigned(from_query0_ + d), (_buffer_sizes.size0 - 0 - 2) / 2)];
                        query0_ = static_cast<float>(_e685);
                        half _e690 = q[metal::min(unsigned(from_query1_ + d), (_buffer_sizes.size0 - 0 - 2) / 2)];
                        query1_ = static_cast<float>(_e690);
                        half _e695 = q[metal::min(unsigned(from_query2_ + d), (_buffer_sizes.size0 - 0 - 2) / 2)];
                        query2_ = static_cast<float>(_e695);
                        half _e700 = q[metal::min(unsigned(from_query3_ + d), (_buffer_sizes.size0 - 0 - 2) / 2)];
                        query3_ = static_cast<float>(_e700);
                    }
                    float _e709 = params.scale;
                    float _e710 = query0_;
                    float _e711 = query1_;
                    float _e712 = query2_;
                    float _e713 = query3_;
                    queries.inner[metal::min(unsigned((across * PITCH) + down), 271u)] = _e709 * metal::float4(_e710, _e711, _e712, _e713);
                    loaded = metal::float4(0.0);
                    uint _e719 = depth;
                    uint e = _e719 + down;
                    uint _e723 = params.key_width;
                    if (e < _e723) {
                        uint _e727 = params.block;
                        float _e730 = keys_at(from_key0_ + (e * _e727), keys, _buffer_sizes);
                        uint _e733 = params.block;
                        float _e736 = keys_at(from_key1_ + (e * _e733), keys, _buffer_sizes);
                        uint _e739 = params.block;
                        float _e742 = keys_at(from_key2_ + (e * _e739), keys, _buffer_sizes);
                        uint _e745 = params.block;
                        float _e748 = keys_at(from_key3_ + (e * _e745), keys, _buffer_sizes);
                        loaded = metal::float4(_e730, _e736, _e742, _e748);
                        metal::float4 _e750 = loaded;
                        loaded = _e750 * key_scale;
                    }
                    metal::float4 _e757 = loaded;
                    stage.inner[metal::min(unsigned((down * PITCH) + across), 511u)] = _e757;
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                    i = 0u;
                    bool loop_init_3 = true;
                    while(true) {
                        if (!loop_init_3) {
                            uint _e794 = i;
                            i = _e794 + 1u;
                        }
                        loop_init_3 = false;
                        uint _e760 = i;
                        if (_e760 < DEPTH) {
                        } else {
                            break;
                        }
                        {
                            uint _e764 = i;
                            Rows query = queries.inner[metal::min(unsigned((_e764 * PITCH) + down), 271u)];
                            uint _e771 = i;
                            metal::float4 key = stage.inner[metal::min(unsigned((_e771 * PITCH) + across), 511u)];
                            metal::float4 _e777 = score0_;
                            score0_ = _e777 + (query * key.x);
                            metal::float4 _e781 = score1_;
                            score1_ = _e781 + (query * key.y);
                            metal::float4 _e785 = score2_;
                            score2_ = _e785 + (query * key.z);
                            metal::float4 _e789 = score3_;
                            score3_ = _e789 + (query * key.w);
                        }
                    }
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                }
            }
            uint _e799 = start;
            uint key_1 = _e799 + (across * 4u);
            {
                float _e805 = params.softcap;
                if (_e805 > 0.0) {
                    float _e810 = params.softcap;
                    metal::float4 _e811 = score0_;
                    float _e814 = params.softcap;
                    score0_ = _e810 * metal::tanh(metal::clamp(_e811 / metal::float4(_e814), metal::float4(-20.0), metal::float4(20.0)));
                }
                Numbers _e827 = low;
                Numbers _e832 = high;
                hidden = (metal::uint4(key_1 + 0u) < _e827) | (metal::uint4(key_1 + 0u) >= _e832);
                metal::float4 _e836 = score0_;
                metal::bool4 _e842 = hidden;
                score0_ = metal::select(metal::max(_e836, metal::float4(-340000000000000000000000000000000000000.0)), metal::float4(-340282350000000000000000000000000000000.0), _e842);
            }
            {
                float _e846 = params.softcap;
                if (_e846 > 0.0) {
                    float _e851 = params.softcap;
                    metal::float4 _e852 = score1_;
                    float _e855 = params.softcap;
                    score1_ = _e851 * metal::tanh(metal::clamp(_e852 / metal::float4(_e855), metal::float4(-20.0), metal::float4(20.0)));
                }
                Numbers _e868 = low;
                Numbers _e873 = high;
                hidden_1 = (metal::uint4(key_1 + 1u) < _e868) | (metal::uint4(key_1 + 1u) >= _e873);
                metal::float4 _e877 = score1_;
                metal::bool4 _e883 = hidden_1;
                score1_ = metal::select(metal::max(_e877, metal::float4(-340000000000000000000000000000000000000.0)), metal::float4(-340282350000000000000000000000000000000.0), _e883);
            }
            {
                float _e887 = params.softcap;
                if (_e887 > 0.0) {
                    float _e892 = params.softcap;
                    metal::float4 _e893 = score2_;
                    float _e896 = params.softcap;
                    score2_ = _e892 * metal::tanh(metal::clamp(_e893 / metal::float4(_e896), metal::float4(-20.0), metal::float4(20.0)));
                }
                Numbers _e909 = low;
                Numbers _e914 = high;
                hidden_2 = (metal::uint4(key_1 + 2u) < _e909) | (metal::uint4(key_1 + 2u) >= _e914);
                metal::float4 _e918 = score2_;
                metal::bool4 _e924 = hidden_2;
                score2_ = metal::select(metal::max(_e918, metal::float4(-340000000000000000000000000000000000000.0)), metal::float4(-340282350000000000000000000000000000000.0), _e924);
            }
            {
                float _e928 = params.softcap;
                if (_e928 > 0.0) {
                    float _e933 = params.softcap;
                    metal::float4 _e934 = score3_;
                    float _e937 = params.softcap;
                    score3_ = _e933 * metal::tanh(metal::clamp(_e934 / metal::float4(_e937), metal::float4(-20.0), metal::float4(20.0)));
                }
                Numbers _e950 = low;
                Numbers _e955 = high;
                hidden_3 = (metal::uint4(key_1 + 3u) < _e950) | (metal::uint4(key_1 + 3u) >= _e955);
                metal::float4 _e959 = score3_;
                metal::bool4 _e965 = hidden_3;
                score3_ = metal::select(metal::max(_e959, metal::float4(-340000000000000000000000000000000000000.0)), metal::float4(-340282350000000000000000000000000000000.0), _e965);
            }
            metal::float4 _e969 = score0_;
            metal::float4 _e970 = score1_;
            metal::float4 _e972 = score2_;
            metal::float4 _e973 = score3_;
            weights.inner[metal::min(unsigned(lane), 1023u)] = metal::max(metal::max(_e969, _e970), metal::max(_e972, _e973));
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            metal::float4 _e976 = most;
            highest = _e976;
            i_1 = 0u;
            bool loop_init_4 = true;
            while(true) {
                if (!loop_init_4) {
                    uint _e993 = i_1;
                    i_1 = _e993 + 1u;
                }
                loop_init_4 = false;
                uint _e980 = i_1;
                if (_e980 < 16u) {
                } else {
                    break;
                }
                {
                    metal::float4 _e983 = highest;
                    uint _e987 = i_1;
                    Rows _e990 = weights.inner[metal::min(unsigned((down * 16u) + _e987), 1023u)];
                    highest = metal::max(_e983, _e990);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            metal::float4 _e995 = score0_;
            metal::float4 _e996 = highest;
            metal::float4 _e1001 = score0_;
            metal::float4 weight0_ = metal::select(metal::exp(_e995 - _e996), metal::float4(0.0), _e1001 <= metal::float4(-340282350000000000000000000000000000000.0));
            weights.inner[metal::min(unsigned((((across * 4u) + 0u) * 16u) + down), 1023u)] = weight0_;
            metal::float4 _e1015 = score1_;
            metal::float4 _e1016 = highest;
            metal::float4 _e1021 = score1_;
            metal::float4 weight1_ = metal::select(metal::exp(_e1015 - _e1016), metal::float4(0.0), _e1021 <= metal::float4(-340282350000000000000000000000000000000.0));
            weights.inner[metal::min(unsigned((((across * 4u) + 1u) * 16u) + down), 1023u)] = weight1_;
            metal::float4 _e1035 = score2_;
            metal::float4 _e1036 = highest;
            metal::float4 _e1041 = score2_;
            metal::float4 weight2_ = metal::select(metal::exp(_e1035 - _e1036), metal::float4(0.0), _e1041 <= metal::float4(-340282350000000000000000000000000000000.0));
            weights.inner[metal::min(unsigned((((across * 4u) + 2u) * 16u) + down), 1023u)] = weight2_;
            metal::float4 _e1055 = score3_;
            metal::float4 _e1056 = highest;
            metal::float4 _e1061 = score3_;
            metal::float4 weight3_ = metal::select(metal::exp(_e1055 - _e1056), metal::float4(0.0), _e1061 <= metal::float4(-340282350000000000000000000000000000000.0));
            weights.inner[metal::min(unsigned((((across * 4u) + 3u) * 16u) + down), 1023u)] = weight3_;
            queries.inner[metal::min(unsigned(lane), 271u)] = ((weight0_ + weight1_) + weight2_) + weight3_;
            metal::float4 _e1080 = most;
            metal::float4 _e1081 = highest;
            metal::float4 shrink = metal::exp(_e1080 - _e1081);
            metal::float4 _e1084 = highest;
            most = _e1084;
            metal::float4 _e1085 = total;
            total = _e1085 * shrink;
            metal::float4 _e1087 = sum0_0_;
            sum0_0_ = _e1087 * shrink;
            metal::float4 _e1089 = sum0_1_;
            sum0_1_ = _e1089 * shrink;
            metal::float4 _e1091 = sum0_2_;
            sum0_2_ = _e1091 * shrink;
            metal::float4 _e1093 = sum0_3_;
            sum0_3_ = _e1093 * shrink;
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            i_2 = 0u;
            bool loop_init_5 = true;
            while(true) {
                if (!loop_init_5) {
                    uint _e1110 = i_2;
                    i_2 = _e1110 + 1u;
                }
                loop_init_5 = false;
                uint _e1097 = i_2;
                if (_e1097 < 16u) {
                } else {
                    break;
                }
                {
                    metal::float4 _e1100 = total;
                    uint _e1104 = i_2;
                    Rows _e1107 = queries.inner[metal::min(unsigned((down * 16u) + _e1104), 271u)];
                    total = _e1100 + _e1107;
                }
            }
            uint _e1112 = start;
            uint _e1115 = tile_high;
            uint _e1117 = start;
            uint stop = metal::min(_e1112 + KEYS, _e1115) - _e1117;
            from_slice = 0u;
            bool loop_init_6 = true;
            while(true) {
                if (!loop_init_6) {
                    uint _e1277 = from_slice;
                    from_slice = _e1277 + SLICE;
                }
                loop_init_6 = false;
                uint _e1121 = from_slice;
                if (_e1121 < stop) {
                } else {
                    break;
                }
                {
                    i_3 = lane;
                    bool loop_init_7 = true;
                    while(true) {
                        if (!loop_init_7) {
                            uint _e1232 = i_3;
                            i_3 = _e1232 + 256u;
                        }
                        loop_init_7 = false;
                        uint _e1124 = i_3;
                        if (_e1124 < 512u) {
                        } else {
                            break;
                        }
                        {
                            uint _e1127 = start;
                            uint _e1128 = from_slice;
                            uint _e1130 = i_3;
                            uint _e1134 = tile_high;
                            uint at_2 = metal::min((_e1127 + _e1128) + naga_div(_e1130, COLUMNS), _e1134 - 1u);
                            uint _e1140 = i_3;
                            uint column = ((part * COLUMNS) + naga_mod(_e1140, COLUMNS)) * 4u;
                            loaded_1 = metal::float4(0.0);
                            uint _e1152 = params.block;
                            uint _e1157 = blocks[metal::min(unsigned(table + naga_div(at_2, _e1152)), (_buffer_sizes.size5 - 0 - 8) / 8)].x;
                            uint _e1160 = params.count;
                            uint own_block = metal::min(_e1157, _e1160 - 1u);
                            uint _e1166 = params.kv_heads;
                            uint _e1171 = params.block;
                            uint _e1175 = params.block;
                            uint vector = (((own_block * _e1166) + head) * _e1171) + naga_mod(at_2, _e1175);
                            uint _e1180 = params.value_width;
                            uint from_value = (vector * _e1180) + column;
                            uint _e1187 = params.value_width;
                            if ((column + 0u) < _e1187) {
                                float _e1192 = values_at(from_value + 0u, values, _buffer_sizes);
                                loaded_1.x = _e1192;
                            }
                            uint _e1197 = params.value_width;
                            if ((column + 1u) < _e1197) {
                                float _e1202 = values_at(from_value + 1u, values, _buffer_sizes);
                                loaded_1.y = _e1202;
                            }
                            uint _e1207 = params.value_width;
                            if ((column + 2u) < _e1207) {
                                float _e1212 = values_at(from_value + 2u, values, _buffer_sizes);
                                loaded_1.z = _e1212;
                            }
                            uint _e1217 = params.value_width;
                            if ((column + 3u) < _e1217) {
                                float _e1222 = values_at(from_value + 3u, values, _buffer_sizes);
                                loaded_1.w = _e1222;
                            }
                            metal::float4 _e1223 = loaded_1;
                            float _e1226 = value_scales[metal::min(unsigned(vector), (_buffer_sizes.size8 - 0 - 4) / 4)];
                            loaded_1 = _e1223 * _e1226;
                            uint _e1229 = i_3;
                            metal::float4 _e1231 = loaded_1;
                            stage.inner[metal::min(unsigned(_e1229), 511u)] = _e1231;
                        }
                    }
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                    i_4 = 0u;
                    bool loop_init_8 = true;
                    while(true) {
                        if (!loop_init_8) {
                            uint _e1275 = i_4;
                            i_4 = _e1275 + 1u;
                        }
                        loop_init_8 = false;
                        uint _e1237 = i_4;
                        if (_e1237 < SLICE) {
                        } else {
                            break;
                        }
                        {
                            uint _e1241 = from_slice;
                            uint _e1242 = i_4;
                            Rows weight = weights.inner[metal::min(unsigned(((_e1241 + _e1242) * 16u) + down), 1023u)];
                            uint _e1250 = i_4;
                            metal::float4 value0_ = stage.inner[metal::min(unsigned(((_e1250 * COLUMNS) + 0u) + across), 511u)];
                            metal::float4 _e1258 = sum0_0_;
                            sum0_0_ = _e1258 + (weight * value0_.x);
                            metal::float4 _e1262 = sum0_1_;
                            sum0_1_ = _e1262 + (weight * value0_.y);
                            metal::float4 _e1266 = sum0_2_;
                            sum0_2_ = _e1266 + (weight * value0_.z);
                            metal::float4 _e1270 = sum0_3_;
                            sum0_3_ = _e1270 + (weight * value0_.w);
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
            uint _e1291 = params.shared_heads;
            uint _e1296 = params.kv_heads;
            uint _e1301 = params.shared_heads;
            uint _e1305 = params.value_width;
            uint _e1309 = params.shared_heads;
            uint _e1313 = params.value_width;
            uint result = (((((first_row_1 + naga_div(i_11, _e1291)) * _e1296) + head) * _e1301) * _e1305) + (naga_mod(i_11, _e1309) * _e1313);
            float own_1 = total.x;
            {
                uint column_1 = (((part * COLUMNS) + 0u) + across) * 4u;
                uint _e1329 = params.value_width;
                if ((column_1 + 0u) < _e1329) {
                    float _e1332 = sum0_0_.x;
                    float x = _e1332 / own_1;
                    y[metal::min(unsigned((result + column_1) + 0u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x);
                }
                uint _e1344 = params.value_width;
                if ((column_1 + 1u) < _e1344) {
                    float _e1347 = sum0_1_.x;
                    float x_1 = _e1347 / own_1;
                    y[metal::min(unsigned((result + column_1) + 1u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_1);
                }
                uint _e1359 = params.value_width;
                if ((column_1 + 2u) < _e1359) {
                    float _e1362 = sum0_2_.x;
                    float x_2 = _e1362 / own_1;
                    y[metal::min(unsigned((result + column_1) + 2u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_2);
                }
                uint _e1374 = params.value_width;
                if ((column_1 + 3u) < _e1374) {
                    float _e1377 = sum0_3_.x;
                    float x_3 = _e1377 / own_1;
                    y[metal::min(unsigned((result + column_1) + 3u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_3);
                }
            }
        }
    }
    {
        uint i_12 = (i_5 + (down * PER)) + 1u;
        if (i_12 < count_1) {
            uint _e1393 = params.shared_heads;
            uint _e1398 = params.kv_heads;
            uint _e1403 = params.shared_heads;
            uint _e1407 = params.value_width;
            uint _e1411 = params.shared_heads;
            uint _e1415 = params.value_width;
            uint result_1 = (((((first_row_1 + naga_div(i_12, _e1393)) * _e1398) + head) * _e1403) * _e1407) + (naga_mod(i_12, _e1411) * _e1415);
            float own_2 = total.y;
            {
                uint column_2 = (((part * COLUMNS) + 0u) + across) * 4u;
                uint _e1431 = params.value_width;
                if ((column_2 + 0u) < _e1431) {
                    float _e1434 = sum0_0_.y;
                    float x_4 = _e1434 / own_2;
                    y[metal::min(unsigned((result_1 + column_2) + 0u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_4);
                }
                uint _e1446 = params.value_width;
                if ((column_2 + 1u) < _e1446) {
                    float _e1449 = sum0_1_.y;
                    float x_5 = _e1449 / own_2;
                    y[metal::min(unsigned((result_1 + column_2) + 1u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_5);
                }
                uint _e1461 = params.value_width;
                if ((column_2 + 2u) < _e1461) {
                    float _e1464 = sum0_2_.y;
                    float x_6 = _e1464 / own_2;
                    y[metal::min(unsigned((result_1 + column_2) + 2u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_6);
                }
                uint _e1476 = params.value_width;
                if ((column_2 + 3u) < _e1476) {
                    float _e1479 = sum0_3_.y;
                    float x_7 = _e1479 / own_2;
                    y[metal::min(unsigned((result_1 + column_2) + 3u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_7);
                }
            }
        }
    }
    {
        uint i_13 = (i_5 + (down * PER)) + 2u;
        if (i_13 < count_1) {
            uint _e1495 = params.shared_heads;
            uint _e1500 = params.kv_heads;
            uint _e1505 = params.shared_heads;
            uint _e1509 = params.value_width;
            uint _e1513 = params.shared_heads;
            uint _e1517 = params.value_width;
            uint result_2 = (((((first_row_1 + naga_div(i_13, _e1495)) * _e1500) + head) * _e1505) * _e1509) + (naga_mod(i_13, _e1513) * _e1517);
            float own_3 = total.z;
            {
                uint column_3 = (((part * COLUMNS) + 0u) + across) * 4u;
                uint _e1533 = params.value_width;
                if ((column_3 + 0u) < _e1533) {
                    float _e1536 = sum0_0_.z;
                    float x_8 = _e1536 / own_3;
                    y[metal::min(unsigned((result_2 + column_3) + 0u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_8);
                }
                uint _e1548 = params.value_width;
                if ((column_3 + 1u) < _e1548) {
                    float _e1551 = sum0_1_.z;
                    float x_9 = _e1551 / own_3;
                    y[metal::min(unsigned((result_2 + column_3) + 1u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_9);
                }
                uint _e1563 = params.value_width;
                if ((column_3 + 2u) < _e1563) {
                    float _e1566 = sum0_2_.z;
                    float x_10 = _e1566 / own_3;
                    y[metal::min(unsigned((result_2 + column_3) + 2u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_10);
                }
                uint _e1578 = params.value_width;
                if ((column_3 + 3u) < _e1578) {
                    float _e1581 = sum0_3_.z;
                    float x_11 = _e1581 / own_3;
                    y[metal::min(unsigned((result_2 + column_3) + 3u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_11);
                }
            }
        }
    }
    {
        uint i_14 = (i_5 + (down * PER)) + 3u;
        if (i_14 < count_1) {
            uint _e1597 = params.shared_heads;
            uint _e1602 = params.kv_heads;
            uint _e1607 = params.shared_heads;
            uint _e1611 = params.value_width;
            uint _e1615 = params.shared_heads;
            uint _e1619 = params.value_width;
            uint result_3 = (((((first_row_1 + naga_div(i_14, _e1597)) * _e1602) + head) * _e1607) * _e1611) + (naga_mod(i_14, _e1615) * _e1619);
            float own_4 = total.w;
            {
                uint column_4 = (((part * COLUMNS) + 0u) + across) * 4u;
                uint _e1635 = params.value_width;
                if ((column_4 + 0u) < _e1635) {
                    float _e1638 = sum0_0_.w;
                    float x_12 = _e1638 / own_4;
                    y[metal::min(unsigned((result_3 + column_4) + 0u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_12);
                }
                uint _e1650 = params.value_width;
                if ((column_4 + 1u) < _e1650) {
                    float _e1653 = sum0_1_.w;
                    float x_13 = _e1653 / own_4;
                    y[metal::min(unsigned((result_3 + column_4) + 1u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_13);
                }
                uint _e1665 = params.value_width;
                if ((column_4 + 2u) < _e1665) {
                    float _e1668 = sum0_2_.w;
                    float x_14 = _e1668 / own_4;
                    y[metal::min(unsigned((result_3 + column_4) + 2u), (_buffer_sizes.size6 - 0 - 2) / 2)] = static_cast<half>(x_14);
                }
                uint _e1680 = params.value_width;
                if ((column_4 + 3u) < _e1680) {
                    float _e1683 = sum0_3_.w;
                    float x_15 = _e1683 / own_4;
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
