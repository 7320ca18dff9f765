// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
    uint size3;
};

typedef float type_1[1];
struct Params {
    metal::uint4 q_steps;
    metal::uint4 k_steps;
    metal::uint4 v_steps;
    metal::uint4 y_steps;
    metal::uint4 mask_steps;
    uint heads;
    uint shared_heads;
    uint queries;
    uint keys;
    uint key_width;
    uint value_width;
    uint tiles;
    uint parts;
    int offset;
    int left;
    int right;
    float scale;
    float softcap;
    float empty;
    uint batch;
    char _pad20[4];
};
typedef float Rows;
typedef uint Numbers;
struct type_5 {
    Rows inner[272];
};
struct type_7 {
    metal::float4 inner[512];
};
struct type_8 {
    Rows inner[1024];
};
constant uint PER = 1u;
constant uint ROWS = 16u;
constant uint KEYS = 64u;
constant uint DEPTH = 16u;
constant uint PITCH = 17u;
constant uint COLUMNS = 16u;
constant uint SLICE = 32u;
uint naga_mod(uint lhs, uint rhs) {
    return lhs % metal::select(rhs, 1u, rhs == 0u);
}

uint naga_div(uint lhs, uint rhs) {
    return lhs / metal::select(rhs, 1u, rhs == 0u);
}


struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& q [[buffer(0)]]
, device type_1 const& k [[buffer(1)]]
, device type_1 const& v [[buffer(2)]]
, device type_1& y [[buffer(3)]]
, constant Params& params [[buffer(4)]]
, threadgroup type_5& queries
, threadgroup type_7& stage
, threadgroup type_8& weights
, constant _mslBufferSizes& _buffer_sizes [[buffer(5)]]
) {
    Numbers low = {};
    Numbers high = {};
    uint tile_low = 0u;
    uint tile_high = 0u;
    float most = -340282350000000000000000000000000000000.0;
    float total = 0.0;
    float sum0_0_ = 0.0;
    float sum0_1_ = 0.0;
    float sum0_2_ = 0.0;
    float sum0_3_ = 0.0;
    uint start = {};
    float score0_ = {};
    float score1_ = {};
    float score2_ = {};
    float score3_ = {};
    uint depth = {};
    float query0_ = {};
    metal::float4 loaded = {};
    uint i = {};
    bool hidden = {};
    bool hidden_1 = {};
    bool hidden_2 = {};
    bool hidden_3 = {};
    float highest = {};
    uint i_1 = {};
    uint i_2 = {};
    uint from_slice = {};
    uint i_3 = {};
    metal::float4 loaded_1 = {};
    uint i_4 = {};
    uint number = group.x + (group.y * groups.x);
    uint _e10 = params.tiles;
    uint tile = naga_mod(number, _e10);
    uint _e14 = params.tiles;
    uint _e18 = params.parts;
    uint part = naga_mod(naga_div(number, _e14), _e18);
    uint _e22 = params.tiles;
    uint _e25 = params.parts;
    uint head = naga_div(number, _e22 * _e25);
    uint across = naga_mod(lane, 16u);
    uint down = naga_div(lane, 16u);
    uint _e34 = params.heads;
    uint b = naga_div(head, _e34);
    uint _e38 = params.batch;
    if (b >= _e38) {
        return;
    }
    uint count = params.queries;
    uint _e45 = params.heads;
    uint _e49 = params.shared_heads;
    uint kv_head = naga_div(naga_mod(head, _e45), _e49);
    uint _e54 = params.q_steps.x;
    uint _e58 = params.heads;
    uint _e63 = params.q_steps.y;
    uint q_base = (b * _e54) + (naga_mod(head, _e58) * _e63);
    uint _e69 = params.k_steps.x;
    uint _e74 = params.k_steps.y;
    uint k_base = (b * _e69) + (kv_head * _e74);
    uint _e80 = params.v_steps.x;
    uint _e85 = params.v_steps.y;
    uint v_base = (b * _e80) + (kv_head * _e85);
    uint _e91 = params.y_steps.x;
    uint _e95 = params.heads;
    uint _e100 = params.y_steps.y;
    uint y_base = (b * _e91) + (naga_mod(head, _e95) * _e100);
    uint i_5 = tile * ROWS;
    {
        uint i_6 = metal::min((i_5 + (down * PER)) + 0u, count - 1u);
        int _e121 = params.offset;
        int position = as_type<int>(as_type<uint>(_e121) + as_type<uint>(static_cast<int>(i_6)));
        int _e127 = params.left;
        int _e134 = params.left;
        uint from_key = (_e134 >= 0) ? static_cast<uint>(metal::max(as_type<int>(as_type<uint>(position) - as_type<uint>(_e127)), 0)) : 0u;
        uint _e140 = params.keys;
        uint _e143 = params.keys;
        int _e146 = params.right;
        int _e156 = params.right;
        uint to_key = (_e156 >= 0) ? metal::min(_e143, static_cast<uint>(metal::max(as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(position) + as_type<uint>(_e146))) + as_type<uint>(1)), 0))) : _e140;
        low = from_key;
        high = to_key;
    }
    {
        int _e162 = params.offset;
        int position_1 = as_type<int>(as_type<uint>(_e162) + as_type<uint>(static_cast<int>(i_5)));
        int _e168 = params.left;
        int _e175 = params.left;
        uint from_key_1 = (_e175 >= 0) ? static_cast<uint>(metal::max(as_type<int>(as_type<uint>(position_1) - as_type<uint>(_e168)), 0)) : 0u;
        uint _e181 = params.keys;
        uint _e184 = params.keys;
        int _e187 = params.right;
        int _e197 = params.right;
        uint to_key_1 = (_e197 >= 0) ? metal::min(_e184, static_cast<uint>(metal::max(as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(position_1) + as_type<uint>(_e187))) + as_type<uint>(1)), 0))) : _e181;
        tile_low = from_key_1;
    }
    {
        uint i_7 = metal::min((i_5 + ROWS) - 1u, count - 1u);
        int _e210 = params.offset;
        int position_2 = as_type<int>(as_type<uint>(_e210) + as_type<uint>(static_cast<int>(i_7)));
        int _e216 = params.left;
        int _e223 = params.left;
        uint from_key_2 = (_e223 >= 0) ? static_cast<uint>(metal::max(as_type<int>(as_type<uint>(position_2) - as_type<uint>(_e216)), 0)) : 0u;
        uint _e229 = params.keys;
        uint _e232 = params.keys;
        int _e235 = params.right;
        int _e245 = params.right;
        uint to_key_2 = (_e245 >= 0) ? metal::min(_e232, static_cast<uint>(metal::max(as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(position_2) + as_type<uint>(_e235))) + as_type<uint>(1)), 0))) : _e229;
        tile_high = to_key_2;
    }
    uint _e260 = params.q_steps.z;
    uint from_query0_ = q_base + (metal::min((i_5 + (down * PER)) + 0u, count - 1u) * _e260);
    uint _e275 = tile_low;
    start = naga_div(_e275, KEYS) * KEYS;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e950 = start;
            start = _e950 + KEYS;
        }
        loop_init = false;
        uint _e281 = start;
        uint _e282 = tile_high;
        if (_e281 < _e282) {
        } else {
            break;
        }
        {
            score0_ = 0.0;
            score1_ = 0.0;
            score2_ = 0.0;
            score3_ = 0.0;
            uint _e292 = start;
            uint _e300 = params.keys;
            uint _e307 = params.k_steps.z;
            uint from_key0_ = k_base + (metal::min((_e292 + (down * 4u)) + 0u, _e300 - 1u) * _e307);
            uint _e310 = start;
            uint _e318 = params.keys;
            uint _e325 = params.k_steps.z;
            uint from_key1_ = k_base + (metal::min((_e310 + (down * 4u)) + 1u, _e318 - 1u) * _e325);
            uint _e328 = start;
            uint _e336 = params.keys;
            uint _e343 = params.k_steps.z;
            uint from_key2_ = k_base + (metal::min((_e328 + (down * 4u)) + 2u, _e336 - 1u) * _e343);
            uint _e346 = start;
            uint _e354 = params.keys;
            uint _e361 = params.k_steps.z;
            uint from_key3_ = k_base + (metal::min((_e346 + (down * 4u)) + 3u, _e354 - 1u) * _e361);
            depth = 0u;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e491 = depth;
                    depth = _e491 + DEPTH;
                }
                loop_init_1 = false;
                uint _e366 = depth;
                uint _e369 = params.key_width;
                if (_e366 < _e369) {
                } else {
                    break;
                }
                {
                    uint _e371 = depth;
                    uint d = _e371 + across;
                    query0_ = 0.0;
                    uint _e377 = params.key_width;
                    if (d < _e377) {
                        uint _e383 = params.q_steps.w;
                        float _e387 = q[metal::min(unsigned(from_query0_ + (d * _e383)), (_buffer_sizes.size0 - 0 - 4) / 4)];
                        query0_ = static_cast<float>(_e387);
                    }
                    float _e396 = params.scale;
                    float _e397 = query0_;
                    queries.inner[metal::min(unsigned((across * PITCH) + down), 271u)] = _e396 * _e397;
                    loaded = metal::float4(0.0);
                    uint _e404 = params.key_width;
                    if (d < _e404) {
                        uint _e410 = params.k_steps.w;
                        float _e414 = k[metal::min(unsigned(from_key0_ + (d * _e410)), (_buffer_sizes.size1 - 0 - 4) / 4)];
                        uint _e420 = params.k_steps.w;
                        float _e424 = k[metal::min(unsigned(from_key1_ + (d * _e420)), (_buffer_sizes.size1 - 0 - 4) / 4)];
                        uint _e430 = params.k_steps.w;
                        float _e434 = k[metal::min(unsigned(from_key2_ + (d * _e430)), (_buffer_sizes.size1 - 0 - 4) / 4)];
                        uint _e440 = params.k_steps.w;
                        float _e444 = k[metal::min(unsigned(from_key3_ + (d * _e440)), (_buffer_sizes.size1 - 0 - 4) / 4)];
                        loaded = metal::float4(static_cast<float>(_e414), static_cast<float>(_e424), static_cast<float>(_e434), static_cast<float>(_e444));
                    }
                    metal::float4 _e452 = loaded;
                    stage.inner[metal::min(unsigned((across * PITCH) + down), 511u)] = _e452;
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                    i = 0u;
                    bool loop_init_2 = true;
                    while(true) {
                        if (!loop_init_2) {
                            uint _e489 = i;
                            i = _e489 + 1u;
                        }
                        loop_init_2 = false;
                        uint _e455 = i;
                        if (_e455 < DEPTH) {
                        } else {
                            break;
                        }
                        {
                            uint _e459 = i;
                            Rows query = queries.inner[metal::min(unsigned((_e459 * PITCH) + down), 271u)];
                            uint _e466 = i;
                            metal::float4 key = stage.inner[metal::min(unsigned((_e466 * PITCH) + across), 511u)];
                            float _e472 = score0_;
                            score0_ = _e472 + (query * key.x);
                            float _e476 = score1_;
                            score1_ = _e476 + (query * key.y);
                            float _e480 = score2_;
                            score2_ = _e480 + (query * key.z);
                            float _e484 = score3_;
                            score3_ = _e484 + (query * key.w);
                        }
                    }
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                }
            }
            uint _e494 = start;
            uint key_1 = _e494 + (across * 4u);
            {
                float _e500 = params.softcap;
                if (_e500 > 0.0) {
                    float _e505 = params.softcap;
                    float _e506 = score0_;
                    float _e509 = params.softcap;
                    score0_ = _e505 * metal::tanh(metal::clamp(_e506 / _e509, -20.0, 20.0));
                }
                Numbers _e519 = low;
                Numbers _e524 = high;
                hidden = (static_cast<uint>(key_1 + 0u) < _e519) | (static_cast<uint>(key_1 + 0u) >= _e524);
                float _e528 = score0_;
                bool _e532 = hidden;
                score0_ = _e532 ? -340282350000000000000000000000000000000.0 : metal::max(_e528, -340000000000000000000000000000000000000.0);
            }
            {
                float _e536 = params.softcap;
                if (_e536 > 0.0) {
                    float _e541 = params.softcap;
                    float _e542 = score1_;
                    float _e545 = params.softcap;
                    score1_ = _e541 * metal::tanh(metal::clamp(_e542 / _e545, -20.0, 20.0));
                }
                Numbers _e555 = low;
                Numbers _e560 = high;
                hidden_1 = (static_cast<uint>(key_1 + 1u) < _e555) | (static_cast<uint>(key_1 + 1u) >= _e560);
                float _e564 = score1_;
                bool _e568 = hidden_1;
                score1_ = _e568 ? -340282350000000000000000000000000000000.0 : metal::max(_e564, -340000000000000000000000000000000000000.0);
            }
            {
                float _e572 = params.softcap;
                if (_e572 > 0.0) {
                    float _e577 = params.softcap;
                    float _e578 = score2_;
                    float _e581 = params.softcap;
                    score2_ = _e577 * metal::tanh(metal::clamp(_e578 / _e581, -20.0, 20.0));
                }
                Numbers _e591 = low;
                Numbers _e596 = high;
                hidden_2 = (static_cast<uint>(key_1 + 2u) < _e591) | (static_cast<uint>(key_1 + 2u) >= _e596);
                float _e600 = score2_;
                bool _e604 = hidden_2;
                score2_ = _e604 ? -340282350000000000000000000000000000000.0 : metal::max(_e600, -340000000000000000000000000000000000000.0);
            }
            {
                float _e608 = params.softcap;
                if (_e608 > 0.0) {
                    float _e613 = params.softcap;
                    float _e614 = score3_;
                    float _e617 = params.softcap;
                    score3_ = _e613 * metal::tanh(metal::clamp(_e614 / _e617, -20.0, 20.0));
                }
                Numbers _e627 = low;
                Numbers _e632 = high;
                hidden_3 = (static_cast<uint>(key_1 + 3u) < _e627) | (static_cast<uint>(key_1 + 3u) >= _e632);
                float _e636 = score3_;
                bool _e640 = hidden_3;
                score3_ = _e640 ? -340282350000000000000000000000000000000.0 : metal::max(_e636, -340000000000000000000000000000000000000.0);
            }
            float _e644 = score0_;
            float _e645 = score1_;
            float _e647 = score2_;
            float _e648 = score3_;
            weights.inner[metal::min(unsigned(lane), 1023u)] = metal::max(metal::max(_e644, _e645), metal::max(_e647, _e648));
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            float _e651 = most;
            highest = _e651;
            i_1 = 0u;
            bool loop_init_3 = true;
            while(true) {
                if (!loop_init_3) {
                    uint _e668 = i_1;
                    i_1 = _e668 + 1u;
                }
                loop_init_3 = false;
                uint _e655 = i_1;
                if (_e655 < 16u) {
                } else {
                    break;
                }
                {
                    float _e658 = highest;
                    uint _e662 = i_1;
                    Rows _e665 = weights.inner[metal::min(unsigned((down * 16u) + _e662), 1023u)];
                    highest = metal::max(_e658, _e665);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            float _e670 = score0_;
            float _e671 = highest;
            float _e675 = score0_;
            float weight0_ = (_e675 <= -340282350000000000000000000000000000000.0) ? 0.0 : metal::exp(_e670 - _e671);
            weights.inner[metal::min(unsigned((((across * 4u) + 0u) * 16u) + down), 1023u)] = weight0_;
            float _e688 = score1_;
            float _e689 = highest;
            float _e693 = score1_;
            float weight1_ = (_e693 <= -340282350000000000000000000000000000000.0) ? 0.0 : metal::exp(_e688 - _e689);
            weights.inner[metal::min(unsigned((((across * 4u) + 1u) * 16u) + down), 1023u)] = weight1_;
            float _e706 = score2_;
            float _e707 = highest;
            float _e711 = score2_;
            float weight2_ = (_e711 <= -340282350000000000000000000000000000000.0) ? 0.0 : metal::exp(_e706 - _e707);
            weights.inner[metal::min(unsigned((((across * 4u) + 2u) * 16u) + down), 1023u)] = weight2_;
            float _e724 = score3_;
            float _e725 = highest;
            float _e729 = score3_;
            float weight3_ = (_e729 <= -340282350000000000000000000000000000000.0) ? 0.0 : metal::exp(_e724 - _e725);
            weights.inner[metal::min(unsigned((((across * 4u) + 3u) * 16u) + down), 1023u)] = weight3_;
            queries.inner[metal::min(unsigned(lane), 271u)] = ((weight0_ + weight1_) + weight2_) + weight3_;
            float _e747 = most;
            float _e748 = highest;
            float shrink = metal::exp(_e747 - _e748);
            float _e751 = highest;
            most = _e751;
            float _e752 = total;
            total = _e752 * shrink;
            float _e754 = sum0_0_;
            sum0_0_ = _e754 * shrink;
            float _e756 = sum0_1_;
            sum0_1_ = _e756 * shrink;
            float _e758 = sum0_2_;
            sum0_2_ = _e758 * shrink;
            float _e760 = sum0_3_;
            sum0_3_ = _e760 * shrink;
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            i_2 = 0u;
            bool loop_init_4 = true;
            while(true) {
                if (!loop_init_4) {
                    uint _e777 = i_2;
                    i_2 = _e777 + 1u;
                }
                loop_init_4 = false;
                uint _e764 = i_2;
                if (_e764 < 16u) {
                } else {
                    break;
                }
                {
                    float _e767 = total;
                    uint _e771 = i_2;
                    Rows _e774 = queries.inner[metal::min(unsigned((down * 16u) + _e771), 271u)];
                    total = _e767 + _e774;
                }
            }
            uint _e779 = start;
            uint _e782 = tile_high;
            uint _e784 = start;
            uint stop = metal::min(_e779 + KEYS, _e782) - _e784;
            from_slice = 0u;
            bool loop_init_5 = true;
            while(true) {
                if (!loop_init_5) {
                    uint _e947 = from_slice;
                    from_slice = _e947 + SLICE;
                }
                loop_init_5 = false;
                uint _e788 = from_slice;
                if (_e788 < stop) {
                } else {
                    break;
                }
                {
                    i_3 = lane;
                    bool loop_init_6 = true;
                    while(true) {
                        if (!loop_init_6) {
                            uint _e902 = i_3;
                            i_3 = _e902 + 256u;
                        }
                        loop_init_6 = false;
                        uint _e791 = i_3;
                        if (_e791 < 512u) {
                        } else {
                            break;
                        }
                        {
                            uint _e794 = start;
                            uint _e795 = from_slice;
                            uint _e797 = i_3;
                            uint _e801 = tile_high;
                            uint at = metal::min((_e794 + _e795) + naga_div(_e797, COLUMNS), _e801 - 1u);
                            uint _e807 = i_3;
                            uint column = ((part * COLUMNS) + naga_mod(_e807, COLUMNS)) * 4u;
                            loaded_1 = metal::float4(0.0);
                            uint _e819 = params.v_steps.z;
                            uint from_value = v_base + (at * _e819);
                            uint _e826 = params.value_width;
                            if ((column + 0u) < _e826) {
                                uint _e835 = params.v_steps.w;
                                float _e839 = v[metal::min(unsigned(from_value + ((column + 0u) * _e835)), (_buffer_sizes.size2 - 0 - 4) / 4)];
                                loaded_1.x = static_cast<float>(_e839);
                            }
                            uint _e845 = params.value_width;
                            if ((column + 1u) < _e845) {
                                uint _e854 = params.v_steps.w;
                                float _e858 = v[metal::min(unsigned(from_value + ((column + 1u) * _e854)), (_buffer_sizes.size2 - 0 - 4) / 4)];
                                loaded_1.y = static_cast<float>(_e858);
                            }
                            uint _e864 = params.value_width;
                            if ((column + 2u) < _e864) {
                                uint _e873 = params.v_steps.w;
                                float _e877 = v[metal::min(unsigned(from_value + ((column + 2u) * _e873)), (_buffer_sizes.size2 - 0 - 4) / 4)];
                                loaded_1.z = static_cast<float>(_e877);
                            }
                            uint _e883 = params.value_width;
                            if ((column + 3u) < _e883) {
                                uint _e892 = params.v_steps.w;
                                float _e896 = v[metal::min(unsigned(from_value + ((column + 3u) * _e892)), (_buffer_sizes.size2 - 0 - 4) / 4)];
                                loaded_1.w = static_cast<float>(_e896);
                            }
                            uint _e899 = i_3;
                            metal::float4 _e901 = loaded_1;
                            stage.inner[metal::min(unsigned(_e899), 511u)] = _e901;
                        }
                    }
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                    i_4 = 0u;
                    bool loop_init_7 = true;
                    while(true) {
                        if (!loop_init_7) {
                            uint _e945 = i_4;
                            i_4 = _e945 + 1u;
                        }
                        loop_init_7 = false;
                        uint _e907 = i_4;
                        if (_e907 < SLICE) {
                        } else {
                            break;
                        }
                        {
                            uint _e911 = from_slice;
                            uint _e912 = i_4;
                            Rows weight = weights.inner[metal::min(unsigned(((_e911 + _e912) * 16u) + down), 1023u)];
                            uint _e920 = i_4;
                            metal::float4 value0_ = stage.inner[metal::min(unsigned(((_e920 * COLUMNS) + 0u) + across), 511u)];
                            float _e928 = sum0_0_;
                            sum0_0_ = _e928 + (weight * value0_.x);
                            float _e932 = sum0_1_;
                            sum0_1_ = _e932 + (weight * value0_.y);
                            float _e936 = sum0_2_;
                            sum0_2_ = _e936 + (weight * value0_.z);
                            float _e940 = sum0_3_;
                            sum0_3_ = _e940 + (weight * value0_.w);
                        }
                    }
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                }
            }
        }
    }
    {
        uint i_8 = (i_5 + (down * PER)) + 0u;
        if (i_8 < count) {
            uint _e962 = params.y_steps.z;
            uint result = y_base + (i_8 * _e962);
            float own = total;
            {
                uint column_1 = (((part * COLUMNS) + 0u) + across) * 4u;
                uint _e977 = params.value_width;
                if ((column_1 + 0u) < _e977) {
                    float _e979 = sum0_0_;
                    float x = _e979 / own;
                    uint _e987 = params.y_steps.w;
                    float _e993 = params.empty;
                    y[metal::min(unsigned(result + ((column_1 + 0u) * _e987)), (_buffer_sizes.size3 - 0 - 4) / 4)] = static_cast<float>((own == 0.0) ? _e993 : x);
                }
                uint _e1002 = params.value_width;
                if ((column_1 + 1u) < _e1002) {
                    float _e1004 = sum0_1_;
                    float x_1 = _e1004 / own;
                    uint _e1012 = params.y_steps.w;
                    float _e1018 = params.empty;
                    y[metal::min(unsigned(result + ((column_1 + 1u) * _e1012)), (_buffer_sizes.size3 - 0 - 4) / 4)] = static_cast<float>((own == 0.0) ? _e1018 : x_1);
                }
                uint _e1027 = params.value_width;
                if ((column_1 + 2u) < _e1027) {
                    float _e1029 = sum0_2_;
                    float x_2 = _e1029 / own;
                    uint _e1037 = params.y_steps.w;
                    float _e1043 = params.empty;
                    y[metal::min(unsigned(result + ((column_1 + 2u) * _e1037)), (_buffer_sizes.size3 - 0 - 4) / 4)] = static_cast<float>((own == 0.0) ? _e1043 : x_2);
                }
                uint _e1052 = params.value_width;
                if ((column_1 + 3u) < _e1052) {
                    float _e1054 = sum0_3_;
                    float x_3 = _e1054 / own;
                    uint _e1062 = params.y_steps.w;
                    float _e1068 = params.empty;
                    y[metal::min(unsigned(result + ((column_1 + 3u) * _e1062)), (_buffer_sizes.size3 - 0 - 4) / 4)] = static_cast<float>((own == 0.0) ? _e1068 : x_3);
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
