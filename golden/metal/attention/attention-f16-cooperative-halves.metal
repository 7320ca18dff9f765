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

typedef metal::half4 type_2[1];
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
struct type_7 {
    half inner[4608];
};
struct type_8 {
    float inner[3072];
};
struct type_9 {
    half inner[2560];
};
struct type_10 {
    float inner[256];
};
struct type_11 {
    float inner[64];
};
constant uint THREADS = 256u;
constant uint ROWS = 64u;
constant uint KEYS = 32u;
constant metal::uint4 EACH = metal::uint4(0u, 1u, 2u, 3u);

metal::half4 q_at(
    uint start_1,
    uint column,
    device type_2 const& q,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::half4 _e7 = q[(start_1 + column) / 4u];
    return static_cast<metal::half4>(_e7);
}

metal::half4 k_at(
    uint start_2,
    uint column_1,
    device type_2 const& k,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::half4 _e7 = k[(start_2 + column_1) / 4u];
    return static_cast<metal::half4>(_e7);
}

metal::half4 v_at(
    uint start_3,
    uint column_2,
    device type_2 const& v,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::half4 _e7 = v[(start_3 + column_2) / 4u];
    return static_cast<metal::half4>(_e7);
}
metal::simdgroup_half8x8 NagaCooperativeLoad(const threadgroup half* ptr, int stride, bool is_row_major) {
    metal::simdgroup_half8x8 m;
    simdgroup_load(m, ptr, stride, 0, is_row_major);
    return m;
}

metal::simdgroup_float8x8 NagaCooperativeMultiplyAdd(const thread metal::simdgroup_half8x8& a, const thread metal::simdgroup_half8x8& b, const thread metal::simdgroup_float8x8& c) {
    metal::simdgroup_float8x8 d;
    simdgroup_multiply_accumulate(d,a,b,c);
    return d;
}

metal::simdgroup_float8x8 NagaCooperativeLoad(const threadgroup float* ptr, int stride, bool is_row_major) {
    metal::simdgroup_float8x8 m;
    simdgroup_load(m, ptr, stride, 0, is_row_major);
    return m;
}


struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint thread_ [[thread_index_in_threadgroup]]
, uint subgroup [[simdgroup_index_in_threadgroup]]
, device type_2 const& q [[buffer(0)]]
, device type_2 const& k [[buffer(1)]]
, device type_2 const& v [[buffer(2)]]
, device type_2& y [[buffer(3)]]
, constant Params& params [[buffer(4)]]
, threadgroup type_7& stage
, threadgroup type_8& scores
, threadgroup type_9& weights
, threadgroup type_10& shared_rows
, threadgroup type_11& factors
, threadgroup uint& grown
, constant _mslBufferSizes& _buffer_sizes [[buffer(5)]]
) {
    uint block = 0u;
    metal::simdgroup_float8x8 sum0_0_ = {};
    metal::simdgroup_float8x8 sum0_1_ = {};
    metal::simdgroup_float8x8 sum0_2_ = {};
    metal::simdgroup_float8x8 sum0_3_ = {};
    metal::simdgroup_float8x8 sum1_0_ = {};
    metal::simdgroup_float8x8 sum1_1_ = {};
    metal::simdgroup_float8x8 sum1_2_ = {};
    metal::simdgroup_float8x8 sum1_3_ = {};
    metal::simdgroup_float8x8 none = {};
    float most = -340282350000000000000000000000000000000.0;
    float total = 0.0;
    uint start = {};
    uint block_1 = {};
    uint j = {};
    uint block_2 = {};
    float highest = {};
    metal::float4 score0_ = {};
    metal::float4 score = {};
    metal::bool4 hidden = {};
    metal::float4 score1_ = {};
    metal::float4 score_1 = {};
    metal::bool4 hidden_1 = {};
    float factor = {};
    uint i = {};
    uint i_1 = {};
    uint i_2 = {};
    uint i_3 = {};
    bool local = {};
    uint i_4 = {};
    bool local_1 = {};
    uint number = group.x + (group.y * groups.x);
    uint _e11 = params.tiles;
    uint head = number / _e11;
    uint _e15 = params.heads;
    uint b = head / _e15;
    uint _e19 = params.batch;
    if (b >= _e19) {
        return;
    }
    uint team = metal::min(subgroup, 7u);
    uint band_row = (team / 2u) * 16u;
    uint side = team % 2u;
    uint _e31 = params.heads;
    uint _e35 = params.shared_heads;
    uint kv_head = (head % _e31) / _e35;
    uint _e40 = params.q_steps.x;
    uint _e44 = params.heads;
    uint _e49 = params.q_steps.y;
    uint q_base = (b * _e40) + ((head % _e44) * _e49);
    uint _e55 = params.k_steps.x;
    uint _e60 = params.k_steps.y;
    uint k_base = (b * _e55) + (kv_head * _e60);
    uint _e66 = params.v_steps.x;
    uint _e71 = params.v_steps.y;
    uint v_base = (b * _e66) + (kv_head * _e71);
    uint _e77 = params.y_steps.x;
    uint _e81 = params.heads;
    uint _e86 = params.y_steps.y;
    uint y_base = (b * _e77) + ((head % _e81) * _e86);
    uint _e91 = params.tiles;
    uint first = (number % _e91) * 64u;
    uint _e97 = params.queries;
    uint last = _e97 - 1u;
    uint row = thread_ / 4u;
    uint part = thread_ % 4u;
    uint query = metal::min(first + row, last);
    int _e108 = params.offset;
    int top = as_type<int>(as_type<uint>(_e108) + as_type<uint>(static_cast<int>(first)));
    int _e113 = params.offset;
    int middle = as_type<int>(as_type<uint>(_e113) + as_type<uint>(static_cast<int>(query)));
    int _e118 = params.offset;
    int bottom = as_type<int>(as_type<uint>(_e118) + as_type<uint>(static_cast<int>(metal::min(first + 63u, last))));
    int _e127 = params.left;
    int _e134 = params.left;
    uint tile_low = (_e134 >= 0) ? static_cast<uint>(metal::max(as_type<int>(as_type<uint>(top) - as_type<uint>(_e127)), 0)) : 0u;
    uint _e140 = params.keys;
    uint _e143 = params.keys;
    int _e146 = params.right;
    int _e156 = params.right;
    uint tile_high = (_e156 >= 0) ? metal::min(_e143, static_cast<uint>(metal::max(as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(bottom) + as_type<uint>(_e146))) + as_type<uint>(1)), 0))) : _e140;
    int _e163 = params.left;
    int _e170 = params.left;
    uint low = (_e170 >= 0) ? static_cast<uint>(metal::max(as_type<int>(as_type<uint>(middle) - as_type<uint>(_e163)), 0)) : 0u;
    uint _e176 = params.keys;
    uint _e179 = params.keys;
    int _e182 = params.right;
    int _e192 = params.right;
    uint high = (_e192 >= 0) ? metal::min(_e179, static_cast<uint>(metal::max(as_type<int>(as_type<uint>(as_type<int>(as_type<uint>(middle) + as_type<uint>(_e182))) + as_type<uint>(1)), 0))) : _e176;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e401 = block;
            block = _e401 + 2048u;
        }
        loop_init = false;
        uint _e198 = block;
        if (_e198 < 1024u) {
        } else {
            break;
        }
        {
            uint _e201 = block;
            uint i0_ = metal::min((_e201 + 0u) + thread_, 1023u);
            uint _e214 = params.q_steps.z;
            metal::half4 _e221 = q_at(q_base + (metal::min(first + (i0_ / 16u), last) * _e214), (i0_ % 16u) * 4u, q, _buffer_sizes);
            uint _e222 = block;
            uint i1_ = metal::min((_e222 + 256u) + thread_, 1023u);
            uint _e235 = params.q_steps.z;
            metal::half4 _e242 = q_at(q_base + (metal::min(first + (i1_ / 16u), last) * _e235), (i1_ % 16u) * 4u, q, _buffer_sizes);
            uint _e243 = block;
            uint i2_ = metal::min((_e243 + 512u) + thread_, 1023u);
            uint _e256 = params.q_steps.z;
            metal::half4 _e263 = q_at(q_base + (metal::min(first + (i2_ / 16u), last) * _e256), (i2_ % 16u) * 4u, q, _buffer_sizes);
            uint _e264 = block;
            uint i3_ = metal::min((_e264 + 768u) + thread_, 1023u);
            uint _e277 = params.q_steps.z;
            metal::half4 _e284 = q_at(q_base + (metal::min(first + (i3_ / 16u), last) * _e277), (i3_ % 16u) * 4u, q, _buffer_sizes);
            {
                uint at = ((i0_ / 16u) * 72u) + ((i0_ % 16u) * 4u);
                stage.inner[at + 0u] = _e221.x;
                stage.inner[at + 1u] = _e221.y;
                stage.inner[at + 2u] = _e221.z;
                stage.inner[at + 3u] = _e221.w;
            }
            {
                uint at_1 = ((i1_ / 16u) * 72u) + ((i1_ % 16u) * 4u);
                stage.inner[at_1 + 0u] = _e242.x;
                stage.inner[at_1 + 1u] = _e242.y;
                stage.inner[at_1 + 2u] = _e242.z;
                stage.inner[at_1 + 3u] = _e242.w;
            }
            {
                uint at_2 = ((i2_ / 16u) * 72u) + ((i2_ % 16u) * 4u);
                stage.inner[at_2 + 0u] = _e263.x;
                stage.inner[at_2 + 1u] = _e263.y;
                stage.inner[at_2 + 2u] = _e263.z;
                stage.inner[at_2 + 3u] = _e263.w;
            }
            {
                uint at_3 = ((i3_ / 16u) * 72u) + ((i3_ % 16u) * 4u);
                stage.inner[at_3 + 0u] = _e284.x;
                stage.inner[at_3 + 1u] = _e284.y;
                stage.inner[at_3 + 2u] = _e284.z;
                stage.inner[at_3 + 3u] = _e284.w;
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint at_q0_0_ = ((band_row + 0u) * 72u) + 0u;
    metal::simdgroup_half8x8 q0_0_ = NagaCooperativeLoad(&stage.inner[at_q0_0_], 72u, false);
    uint at_q0_1_ = ((band_row + 0u) * 72u) + 8u;
    metal::simdgroup_half8x8 q0_1_ = NagaCooperativeLoad(&stage.inner[at_q0_1_], 72u, false);
    uint at_q0_2_ = ((band_row + 0u) * 72u) + 16u;
    metal::simdgroup_half8x8 q0_2_ = NagaCooperativeLoad(&stage.inner[at_q0_2_], 72u, false);
    uint at_q0_3_ = ((band_row + 0u) * 72u) + 24u;
    metal::simdgroup_half8x8 q0_3_ = NagaCooperativeLoad(&stage.inner[at_q0_3_], 72u, false);
    uint at_q0_4_ = ((band_row + 0u) * 72u) + 32u;
    metal::simdgroup_half8x8 q0_4_ = NagaCooperativeLoad(&stage.inner[at_q0_4_], 72u, false);
    uint at_q0_5_ = ((band_row + 0u) * 72u) + 40u;
    metal::simdgroup_half8x8 q0_5_ = NagaCooperativeLoad(&stage.inner[at_q0_5_], 72u, false);
    uint at_q0_6_ = ((band_row + 0u) * 72u) + 48u;
    metal::simdgroup_half8x8 q0_6_ = NagaCooperativeLoad(&stage.inner[at_q0_6_], 72u, false);
    uint at_q0_7_ = ((band_row + 0u) * 72u) + 56u;
    metal::simdgroup_half8x8 q0_7_ = NagaCooperativeLoad(&stage.inner[at_q0_7_], 72u, false);
    uint at_q1_0_ = ((band_row + 8u) * 72u) + 0u;
    metal::simdgroup_half8x8 q1_0_ = NagaCooperativeLoad(&stage.inner[at_q1_0_], 72u, false);
    uint at_q1_1_ = ((band_row + 8u) * 72u) + 8u;
    metal::simdgroup_half8x8 q1_1_ = NagaCooperativeLoad(&stage.inner[at_q1_1_], 72u, false);
    uint at_q1_2_ = ((band_row + 8u) * 72u) + 16u;
    metal::simdgroup_half8x8 q1_2_ = NagaCooperativeLoad(&stage.inner[at_q1_2_], 72u, false);
    uint at_q1_3_ = ((band_row + 8u) * 72u) + 24u;
    metal::simdgroup_half8x8 q1_3_ = NagaCooperativeLoad(&stage.inner[at_q1_3_], 72u, false);
    uint at_q1_4_ = ((band_row + 8u) * 72u) + 32u;
    metal::simdgroup_half8x8 q1_4_ = NagaCooperativeLoad(&stage.inner[at_q1_4_], 72u, false);
    uint at_q1_5_ = ((band_row + 8u) * 72u) + 40u;
    metal::simdgroup_half8x8 q1_5_ = NagaCooperativeLoad(&stage.inner[at_q1_5_], 72u, false);
    uint at_q1_6_ = ((band_row + 8u) * 72u) + 48u;
    metal::simdgroup_half8x8 q1_6_ = NagaCooperativeLoad(&stage.inner[at_q1_6_], 72u, false);
    uint at_q1_7_ = ((band_row + 8u) * 72u) + 56u;
    metal::simdgroup_half8x8 q1_7_ = NagaCooperativeLoad(&stage.inner[at_q1_7_], 72u, false);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    start = (tile_low / KEYS) * KEYS;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e1555 = start;
            start = _e1555 + KEYS;
        }
        loop_init_1 = false;
        uint _e582 = start;
        if (_e582 < tile_high) {
        } else {
            break;
        }
        {
            uint _e585 = start;
            uint stop = metal::min(KEYS, tile_high - _e585);
            if (thread_ == 0u) {
                grown = 0u;
            }
            block_1 = 0u;
            bool loop_init_2 = true;
            while(true) {
                if (!loop_init_2) {
                    uint _e709 = block_1;
                    block_1 = _e709 + 2048u;
                }
                loop_init_2 = false;
                uint _e594 = block_1;
                if (_e594 < 512u) {
                } else {
                    break;
                }
                {
                    uint _e597 = block_1;
                    uint i0_1 = metal::min((_e597 + 0u) + thread_, 511u);
                    uint _e603 = start;
                    uint _e609 = params.keys;
                    uint _e616 = params.k_steps.z;
                    metal::half4 _e623 = k_at(k_base + (metal::min(_e603 + (i0_1 / 16u), _e609 - 1u) * _e616), (i0_1 % 16u) * 4u, k, _buffer_sizes);
                    uint _e624 = block_1;
                    uint i1_1 = metal::min((_e624 + 256u) + thread_, 511u);
                    uint _e630 = start;
                    uint _e636 = params.keys;
                    uint _e643 = params.k_steps.z;
                    metal::half4 _e650 = k_at(k_base + (metal::min(_e630 + (i1_1 / 16u), _e636 - 1u) * _e643), (i1_1 % 16u) * 4u, k, _buffer_sizes);
                    {
                        uint at_4 = ((i0_1 / 16u) * 72u) + ((i0_1 % 16u) * 4u);
                        stage.inner[at_4 + 0u] = _e623.x;
                        stage.inner[at_4 + 1u] = _e623.y;
                        stage.inner[at_4 + 2u] = _e623.z;
                        stage.inner[at_4 + 3u] = _e623.w;
                    }
                    {
                        uint at_5 = ((i1_1 / 16u) * 72u) + ((i1_1 % 16u) * 4u);
                        stage.inner[at_5 + 0u] = _e650.x;
                        stage.inner[at_5 + 1u] = _e650.y;
                        stage.inner[at_5 + 2u] = _e650.z;
                        stage.inner[at_5 + 3u] = _e650.w;
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            j = side;
            bool loop_init_3 = true;
            while(true) {
                if (!loop_init_3) {
                    uint _e808 = j;
                    j = _e808 + 2u;
                }
                loop_init_3 = false;
                uint _e713 = j;
                if ((_e713 * 8u) < stop) {
                } else {
                    break;
                }
                {
                    uint _e717 = j;
                    uint from_key = _e717 * 576u;
                    uint at_k0_ = from_key + 0u;
                    metal::simdgroup_half8x8 k0_ = NagaCooperativeLoad(&stage.inner[at_k0_], 72u, true);
                    metal::simdgroup_float8x8 _e726 = none;
                    metal::simdgroup_float8x8 score0_0_ = NagaCooperativeMultiplyAdd(q0_0_, k0_, _e726);
                    metal::simdgroup_float8x8 _e728 = none;
                    metal::simdgroup_float8x8 score1_0_ = NagaCooperativeMultiplyAdd(q1_0_, k0_, _e728);
                    uint at_k1_ = from_key + 8u;
                    metal::simdgroup_half8x8 k1_ = NagaCooperativeLoad(&stage.inner[at_k1_], 72u, true);
                    metal::simdgroup_float8x8 score0_1_ = NagaCooperativeMultiplyAdd(q0_1_, k1_, score0_0_);
                    metal::simdgroup_float8x8 score1_1_ = NagaCooperativeMultiplyAdd(q1_1_, k1_, score1_0_);
                    uint at_k2_ = from_key + 16u;
                    metal::simdgroup_half8x8 k2_ = NagaCooperativeLoad(&stage.inner[at_k2_], 72u, true);
                    metal::simdgroup_float8x8 score0_2_ = NagaCooperativeMultiplyAdd(q0_2_, k2_, score0_1_);
                    metal::simdgroup_float8x8 score1_2_ = NagaCooperativeMultiplyAdd(q1_2_, k2_, score1_1_);
                    uint at_k3_ = from_key + 24u;
                    metal::simdgroup_half8x8 k3_ = NagaCooperativeLoad(&stage.inner[at_k3_], 72u, true);
                    metal::simdgroup_float8x8 score0_3_ = NagaCooperativeMultiplyAdd(q0_3_, k3_, score0_2_);
                    metal::simdgroup_float8x8 score1_3_ = NagaCooperativeMultiplyAdd(q1_3_, k3_, score1_2_);
                    uint at_k4_ = from_key + 32u;
                    metal::simdgroup_half8x8 k4_ = NagaCooperativeLoad(&stage.inner[at_k4_], 72u, true);
                    metal::simdgroup_float8x8 score0_4_ = NagaCooperativeMultiplyAdd(q0_4_, k4_, score0_3_);
                    metal::simdgroup_float8x8 score1_4_ = NagaCooperativeMultiplyAdd(q1_4_, k4_, score1_3_);
                    uint at_k5_ = from_key + 40u;
                    metal::simdgroup_half8x8 k5_ = NagaCooperativeLoad(&stage.inner[at_k5_], 72u, true);
                    metal::simdgroup_float8x8 score0_5_ = NagaCooperativeMultiplyAdd(q0_5_, k5_, score0_4_);
                    metal::simdgroup_float8x8 score1_5_ = NagaCooperativeMultiplyAdd(q1_5_, k5_, score1_4_);
                    uint at_k6_ = from_key + 48u;
                    metal::simdgroup_half8x8 k6_ = NagaCooperativeLoad(&stage.inner[at_k6_], 72u, true);
                    metal::simdgroup_float8x8 score0_6_ = NagaCooperativeMultiplyAdd(q0_6_, k6_, score0_5_);
                    metal::simdgroup_float8x8 score1_6_ = NagaCooperativeMultiplyAdd(q1_6_, k6_, score1_5_);
                    uint at_k7_ = from_key + 56u;
                    metal::simdgroup_half8x8 k7_ = NagaCooperativeLoad(&stage.inner[at_k7_], 72u, true);
                    metal::simdgroup_float8x8 score0_7_ = NagaCooperativeMultiplyAdd(q0_7_, k7_, score0_6_);
                    metal::simdgroup_float8x8 score1_7_ = NagaCooperativeMultiplyAdd(q1_7_, k7_, score1_6_);
                    uint _e790 = j;
                    uint to_0_ = ((band_row + 0u) * 48u) + (_e790 * 8u);
                    simdgroup_store(score0_7_, &scores.inner[to_0_], 48u);
                    uint _e801 = j;
                    uint to_1_ = ((band_row + 8u) * 48u) + (_e801 * 8u);
                    simdgroup_store(score1_7_, &scores.inner[to_1_], 48u);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            block_2 = 0u;
            bool loop_init_4 = true;
            while(true) {
                if (!loop_init_4) {
                    uint _e928 = block_2;
                    block_2 = _e928 + 2048u;
                }
                loop_init_4 = false;
                uint _e813 = block_2;
                if (_e813 < 512u) {
                } else {
                    break;
                }
                {
                    uint _e816 = block_2;
                    uint i0_2 = metal::min((_e816 + 0u) + thread_, 511u);
                    uint _e822 = start;
                    uint _e828 = params.keys;
                    uint _e835 = params.v_steps.z;
                    metal::half4 _e842 = v_at(v_base + (metal::min(_e822 + (i0_2 / 16u), _e828 - 1u) * _e835), (i0_2 % 16u) * 4u, v, _buffer_sizes);
                    uint _e843 = block_2;
                    uint i1_2 = metal::min((_e843 + 256u) + thread_, 511u);
                    uint _e849 = start;
                    uint _e855 = params.keys;
                    uint _e862 = params.v_steps.z;
                    metal::half4 _e869 = v_at(v_base + (metal::min(_e849 + (i1_2 / 16u), _e855 - 1u) * _e862), (i1_2 % 16u) * 4u, v, _buffer_sizes);
                    {
                        uint at_6 = ((i0_2 / 16u) * 72u) + ((i0_2 % 16u) * 4u);
                        stage.inner[at_6 + 0u] = _e842.x;
                        stage.inner[at_6 + 1u] = _e842.y;
                        stage.inner[at_6 + 2u] = _e842.z;
                        stage.inner[at_6 + 3u] = _e842.w;
                    }
                    {
                        uint at_7 = ((i1_2 / 16u) * 72u) + ((i1_2 % 16u) * 4u);
                        stage.inner[at_7 + 0u] = _e869.x;
                        stage.inner[at_7 + 1u] = _e869.y;
                        stage.inner[at_7 + 2u] = _e869.z;
                        stage.inner[at_7 + 3u] = _e869.w;
                    }
                }
            }
            highest = -340282350000000000000000000000000000000.0;
            score0_ = metal::float4(-340282350000000000000000000000000000000.0);
            {
                uint _e936 = start;
                metal::uint4 key = metal::uint4(_e936 + ((part + 0u) * 4u)) + EACH;
                uint at_8 = (row * 48u) + ((part + 0u) * 4u);
                float _e954 = scores.inner[at_8];
                float _e959 = scores.inner[at_8 + 1u];
                float _e964 = scores.inner[at_8 + 2u];
                float _e969 = scores.inner[at_8 + 3u];
                float _e973 = params.scale;
                score = metal::float4(_e954, _e959, _e964, _e969) * _e973;
                float _e978 = params.softcap;
                if (_e978 > 0.0) {
                    float _e983 = params.softcap;
                    metal::float4 _e984 = score;
                    float _e987 = params.softcap;
                    score = _e983 * metal::tanh(metal::clamp(_e984 / metal::float4(_e987), metal::float4(-20.0), metal::float4(20.0)));
                }
                hidden = (key < metal::uint4(low)) | (key >= metal::uint4(high));
                metal::float4 _e1003 = score;
                metal::bool4 _e1009 = hidden;
                score0_ = metal::select(metal::max(_e1003, metal::float4(-340000000000000000000000000000000000000.0)), metal::float4(-340282350000000000000000000000000000000.0), _e1009);
                float _e1011 = highest;
                float _e1013 = score0_.x;
                float _e1015 = score0_.y;
                float _e1018 = score0_.z;
                float _e1020 = score0_.w;
                highest = metal::max(_e1011, metal::max(metal::max(_e1013, _e1015), metal::max(_e1018, _e1020)));
            }
            score1_ = metal::float4(-340282350000000000000000000000000000000.0);
            {
                uint _e1027 = start;
                metal::uint4 key_1 = metal::uint4(_e1027 + ((part + 4u) * 4u)) + EACH;
                uint at_9 = (row * 48u) + ((part + 4u) * 4u);
                float _e1045 = scores.inner[at_9];
                float _e1050 = scores.inner[at_9 + 1u];
                float _e1055 = scores.inner[at_9 + 2u];
                float _e1060 = scores.inner[at_9 + 3u];
                float _e1064 = params.scale;
                score_1 = metal::float4(_e1045, _e1050, _e1055, _e1060) * _e1064;
                float _e1069 = params.softcap;
                if (_e1069 > 0.0) {
                    float _e1074 = params.softcap;
                    metal::float4 _e1075 = score_1;
                    float _e1078 = params.softcap;
                    score_1 = _e1074 * metal::tanh(metal::clamp(_e1075 / metal::float4(_e1078), metal::float4(-20.0), metal::float4(20.0)));
                }
                hidden_1 = (key_1 < metal::uint4(low)) | (key_1 >= metal::uint4(high));
                metal::float4 _e1094 = score_1;
                metal::bool4 _e1100 = hidden_1;
                score1_ = metal::select(metal::max(_e1094, metal::float4(-340000000000000000000000000000000000000.0)), metal::float4(-340282350000000000000000000000000000000.0), _e1100);
                float _e1102 = highest;
                float _e1104 = score1_.x;
                float _e1106 = score1_.y;
                float _e1109 = score1_.z;
                float _e1111 = score1_.w;
                highest = metal::max(_e1102, metal::max(metal::max(_e1104, _e1106), metal::max(_e1109, _e1111)));
            }
            float _e1117 = highest;
            shared_rows.inner[thread_] = _e1117;
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            float _e1118 = highest;
            float _e1125 = shared_rows.inner[(row * 4u) + 0u];
            highest = metal::max(_e1118, _e1125);
            float _e1127 = highest;
            float _e1134 = shared_rows.inner[(row * 4u) + 1u];
            highest = metal::max(_e1127, _e1134);
            float _e1136 = highest;
            float _e1143 = shared_rows.inner[(row * 4u) + 2u];
            highest = metal::max(_e1136, _e1143);
            float _e1145 = highest;
            float _e1152 = shared_rows.inner[(row * 4u) + 3u];
            highest = metal::max(_e1145, _e1152);
            factor = 1.0;
            float _e1156 = most;
            if (_e1156 <= -340282350000000000000000000000000000000.0) {
                float _e1159 = highest;
                most = _e1159;
            } else {
                float _e1160 = highest;
                float _e1161 = most;
                if ((_e1160 - _e1161) > 8.0) {
                    float _e1165 = most;
                    float _e1166 = highest;
                    factor = metal::exp(_e1165 - _e1166);
                    float _e1169 = highest;
                    most = _e1169;
                    grown = 1u;
                }
            }
            if (part == 0u) {
                float _e1176 = factor;
                factors.inner[row] = _e1176;
            }
            float _e1177 = total;
            float _e1178 = factor;
            total = _e1177 * _e1178;
            {
                metal::float4 _e1180 = score0_;
                float _e1181 = most;
                metal::float4 _e1187 = score0_;
                metal::half4 weight = static_cast<metal::half4>(metal::select(metal::exp(_e1180 - metal::float4(_e1181)), metal::float4(0.0), _e1187 <= metal::float4(-340282350000000000000000000000000000000.0)));
                float _e1193 = total;
                total = _e1193 + metal::dot(static_cast<metal::float4>(weight), metal::float4(1.0));
                uint at_10 = (row * 40u) + ((part + 0u) * 4u);
                weights.inner[at_10 + 0u] = weight.x;
                weights.inner[at_10 + 1u] = weight.y;
                weights.inner[at_10 + 2u] = weight.z;
                weights.inner[at_10 + 3u] = weight.w;
            }
            {
                metal::float4 _e1226 = score1_;
                float _e1227 = most;
                metal::float4 _e1233 = score1_;
                metal::half4 weight_1 = static_cast<metal::half4>(metal::select(metal::exp(_e1226 - metal::float4(_e1227)), metal::float4(0.0), _e1233 <= metal::float4(-340282350000000000000000000000000000000.0)));
                float _e1239 = total;
                total = _e1239 + metal::dot(static_cast<metal::float4>(weight_1), metal::float4(1.0));
                uint at_11 = (row * 40u) + ((part + 4u) * 4u);
                weights.inner[at_11 + 0u] = weight_1.x;
                weights.inner[at_11 + 1u] = weight_1.y;
                weights.inner[at_11 + 2u] = weight_1.z;
                weights.inner[at_11 + 3u] = weight_1.w;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint unnamed = grown;
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            if (unnamed != 0u) {
                uint to_0_0_ = (((band_row + 0u) * 48u) + (side * 16u)) + 0u;
                metal::simdgroup_float8x8 _e1285 = sum0_0_;
                simdgroup_store(_e1285, &scores.inner[to_0_0_], 48u);
                uint to_0_1_ = (((band_row + 0u) * 48u) + (side * 16u)) + 8u;
                metal::simdgroup_float8x8 _e1298 = sum0_1_;
                simdgroup_store(_e1298, &scores.inner[to_0_1_], 48u);
                uint to_1_0_ = (((band_row + 8u) * 48u) + (side * 16u)) + 0u;
                metal::simdgroup_float8x8 _e1311 = sum1_0_;
                simdgroup_store(_e1311, &scores.inner[to_1_0_], 48u);
                uint to_1_1_ = (((band_row + 8u) * 48u) + (side * 16u)) + 8u;
                metal::simdgroup_float8x8 _e1324 = sum1_1_;
                simdgroup_store(_e1324, &scores.inner[to_1_1_], 48u);
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                i = thread_;
                bool loop_init_5 = true;
                while(true) {
                    if (!loop_init_5) {
                        uint _e1348 = i;
                        i = _e1348 + THREADS;
                    }
                    loop_init_5 = false;
                    uint _e1329 = i;
                    if (_e1329 < 2048u) {
                    } else {
                        break;
                    }
                    {
                        uint _e1332 = i;
                        uint line = _e1332 / 32u;
                        uint _e1338 = i;
                        float _e1343 = scores.inner[(line * 48u) + (_e1338 % 32u)];
                        float _e1346 = factors.inner[line];
                        scores.inner[(line * 48u) + (_e1338 % 32u)] = _e1343 * _e1346;
                    }
                }
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                sum0_0_ = NagaCooperativeLoad(&scores.inner[to_0_0_], 48u, false);
                sum0_1_ = NagaCooperativeLoad(&scores.inner[to_0_1_], 48u, false);
                sum1_0_ = NagaCooperativeLoad(&scores.inner[to_1_0_], 48u, false);
                sum1_1_ = NagaCooperativeLoad(&scores.inner[to_1_1_], 48u, false);
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                uint to_0_2_ = (((band_row + 0u) * 48u) + (side * 16u)) + 0u;
                metal::simdgroup_float8x8 _e1376 = sum0_2_;
                simdgroup_store(_e1376, &scores.inner[to_0_2_], 48u);
                uint to_0_3_ = (((band_row + 0u) * 48u) + (side * 16u)) + 8u;
                metal::simdgroup_float8x8 _e1389 = sum0_3_;
                simdgroup_store(_e1389, &scores.inner[to_0_3_], 48u);
                uint to_1_2_ = (((band_row + 8u) * 48u) + (side * 16u)) + 0u;
                metal::simdgroup_float8x8 _e1402 = sum1_2_;
                simdgroup_store(_e1402, &scores.inner[to_1_2_], 48u);
                uint to_1_3_ = (((band_row + 8u) * 48u) + (side * 16u)) + 8u;
                metal::simdgroup_float8x8 _e1415 = sum1_3_;
                simdgroup_store(_e1415, &scores.inner[to_1_3_], 48u);
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                i_1 = thread_;
                bool loop_init_6 = true;
                while(true) {
                    if (!loop_init_6) {
                        uint _e1439 = i_1;
                        i_1 = _e1439 + THREADS;
                    }
                    loop_init_6 = false;
                    uint _e1420 = i_1;
                    if (_e1420 < 2048u) {
                    } else {
                        break;
                    }
                    {
                        uint _e1423 = i_1;
                        uint line_1 = _e1423 / 32u;
                        uint _e1429 = i_1;
                        float _e1434 = scores.inner[(line_1 * 48u) + (_e1429 % 32u)];
                        float _e1437 = factors.inner[line_1];
                        scores.inner[(line_1 * 48u) + (_e1429 % 32u)] = _e1434 * _e1437;
                    }
                }
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                sum0_2_ = NagaCooperativeLoad(&scores.inner[to_0_2_], 48u, false);
                sum0_3_ = NagaCooperativeLoad(&scores.inner[to_0_3_], 48u, false);
                sum1_2_ = NagaCooperativeLoad(&scores.inner[to_1_2_], 48u, false);
                sum1_3_ = NagaCooperativeLoad(&scores.inner[to_1_3_], 48u, false);
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            }
            i_2 = 0u;
            bool loop_init_7 = true;
            while(true) {
                if (!loop_init_7) {
                    uint _e1553 = i_2;
                    i_2 = _e1553 + 1u;
                }
                loop_init_7 = false;
                uint _e1460 = i_2;
                if ((_e1460 * 8u) < stop) {
                } else {
                    break;
                }
                {
                    uint _e1468 = i_2;
                    uint at_w0_ = ((band_row + 0u) * 40u) + (_e1468 * 8u);
                    metal::simdgroup_half8x8 w0_ = NagaCooperativeLoad(&weights.inner[at_w0_], 40u, false);
                    uint _e1480 = i_2;
                    uint at_w1_ = ((band_row + 8u) * 40u) + (_e1480 * 8u);
                    metal::simdgroup_half8x8 w1_ = NagaCooperativeLoad(&weights.inner[at_w1_], 40u, false);
                    uint _e1488 = i_2;
                    uint at_v0_ = ((_e1488 * 576u) + (side * 32u)) + 0u;
                    metal::simdgroup_half8x8 v0_ = NagaCooperativeLoad(&stage.inner[at_v0_], 72u, false);
                    metal::simdgroup_float8x8 _e1500 = sum0_0_;
                    sum0_0_ = NagaCooperativeMultiplyAdd(w0_, v0_, _e1500);
                    metal::simdgroup_float8x8 _e1502 = sum1_0_;
                    sum1_0_ = NagaCooperativeMultiplyAdd(w1_, v0_, _e1502);
                    uint _e1504 = i_2;
                    uint at_v1_ = ((_e1504 * 576u) + (side * 32u)) + 8u;
                    metal::simdgroup_half8x8 v1_ = NagaCooperativeLoad(&stage.inner[at_v1_], 72u, false);
                    metal::simdgroup_float8x8 _e1516 = sum0_1_;
                    sum0_1_ = NagaCooperativeMultiplyAdd(w0_, v1_, _e1516);
                    metal::simdgroup_float8x8 _e1518 = sum1_1_;
                    sum1_1_ = NagaCooperativeMultiplyAdd(w1_, v1_, _e1518);
                    uint _e1520 = i_2;
                    uint at_v2_ = ((_e1520 * 576u) + (side * 32u)) + 16u;
                    metal::simdgroup_half8x8 v2_ = NagaCooperativeLoad(&stage.inner[at_v2_], 72u, false);
                    metal::simdgroup_float8x8 _e1532 = sum0_2_;
                    sum0_2_ = NagaCooperativeMultiplyAdd(w0_, v2_, _e1532);
                    metal::simdgroup_float8x8 _e1534 = sum1_2_;
                    sum1_2_ = NagaCooperativeMultiplyAdd(w1_, v2_, _e1534);
                    uint _e1536 = i_2;
                    uint at_v3_ = ((_e1536 * 576u) + (side * 32u)) + 24u;
                    metal::simdgroup_half8x8 v3_ = NagaCooperativeLoad(&stage.inner[at_v3_], 72u, false);
                    metal::simdgroup_float8x8 _e1548 = sum0_3_;
                    sum0_3_ = NagaCooperativeMultiplyAdd(w0_, v3_, _e1548);
                    metal::simdgroup_float8x8 _e1550 = sum1_3_;
                    sum1_3_ = NagaCooperativeMultiplyAdd(w1_, v3_, _e1550);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    float _e1560 = total;
    shared_rows.inner[thread_] = _e1560;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (part == 0u) {
        float _e1563 = total;
        float _e1568 = shared_rows.inner[thread_ + 1u];
        total = _e1563 + _e1568;
        float _e1570 = total;
        float _e1575 = shared_rows.inner[thread_ + 2u];
        total = _e1570 + _e1575;
        float _e1577 = total;
        float _e1582 = shared_rows.inner[thread_ + 3u];
        total = _e1577 + _e1582;
        float _e1586 = total;
        factors.inner[row] = _e1586;
    }
    uint out_0_0_ = (((band_row + 0u) * 48u) + (side * 16u)) + 0u;
    metal::simdgroup_float8x8 _e1596 = sum0_0_;
    simdgroup_store(_e1596, &scores.inner[out_0_0_], 48u);
    uint out_0_1_ = (((band_row + 0u) * 48u) + (side * 16u)) + 8u;
    metal::simdgroup_float8x8 _e1609 = sum0_1_;
    simdgroup_store(_e1609, &scores.inner[out_0_1_], 48u);
    uint out_1_0_ = (((band_row + 8u) * 48u) + (side * 16u)) + 0u;
    metal::simdgroup_float8x8 _e1622 = sum1_0_;
    simdgroup_store(_e1622, &scores.inner[out_1_0_], 48u);
    uint out_1_1_ = (((band_row + 8u) * 48u) + (side * 16u)) + 8u;
    metal::simdgroup_float8x8 _e1635 = sum1_1_;
    simdgroup_store(_e1635, &scores.inner[out_1_1_], 48u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_3 = thread_;
    bool loop_init_8 = true;
    while(true) {
        if (!loop_init_8) {
            uint _e1721 = i_3;
            i_3 = _e1721 + THREADS;
        }
        loop_init_8 = false;
        uint _e1640 = i_3;
        if (_e1640 < 512u) {
        } else {
            break;
        }
        {
            uint _e1643 = i_3;
            uint line_2 = _e1643 / 8u;
            uint _e1646 = i_3;
            uint x = (_e1646 % 8u) * 4u;
            uint inside = (x % 16u) + 0u;
            uint _e1658 = params.queries;
            if ((first + line_2) < _e1658) {
                local = inside < 32u;
            } else {
                local = false;
            }
            bool _e1665 = local;
            if (_e1665) {
                uint at_12 = (line_2 * 48u) + x;
                float _e1671 = scores.inner[at_12];
                float _e1676 = scores.inner[at_12 + 1u];
                float _e1681 = scores.inner[at_12 + 2u];
                float _e1686 = scores.inner[at_12 + 3u];
                metal::float4 sum = metal::float4(_e1671, _e1676, _e1681, _e1686);
                float own = factors.inner[line_2];
                float _e1695 = params.empty;
                metal::float4 result = metal::select(sum / metal::float4(own), metal::float4(_e1695), metal::bool4(own == 0.0));
                uint _e1705 = params.y_steps.z;
                uint to = (y_base + ((first + line_2) * _e1705)) + ((((x / 16u) * 32u) + inside) * 1u);
                y[to / 4u] = static_cast<metal::half4>(result);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint out_0_2_ = (((band_row + 0u) * 48u) + (side * 16u)) + 0u;
    metal::simdgroup_float8x8 _e1733 = sum0_2_;
    simdgroup_store(_e1733, &scores.inner[out_0_2_], 48u);
    uint out_0_3_ = (((band_row + 0u) * 48u) + (side * 16u)) + 8u;
    metal::simdgroup_float8x8 _e1746 = sum0_3_;
    simdgroup_store(_e1746, &scores.inner[out_0_3_], 48u);
    uint out_1_2_ = (((band_row + 8u) * 48u) + (side * 16u)) + 0u;
    metal::simdgroup_float8x8 _e1759 = sum1_2_;
    simdgroup_store(_e1759, &scores.inner[out_1_2_], 48u);
    uint out_1_3_ = (((band_row + 8u) * 48u) + (side * 16u)) + 8u;
    metal::simdgroup_float8x8 _e1772 = sum1_3_;
    simdgroup_store(_e1772, &scores.inner[out_1_3_], 48u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_4 = thread_;
    bool loop_init_9 = true;
    while(true) {
        if (!loop_init_9) {
            uint _e1858 = i_4;
            i_4 = _e1858 + THREADS;
        }
        loop_init_9 = false;
        uint _e1777 = i_4;
        if (_e1777 < 512u) {
        } else {
            break;
        }
        {
            uint _e1780 = i_4;
            uint line_3 = _e1780 / 8u;
            uint _e1783 = i_4;
            uint x_1 = (_e1783 % 8u) * 4u;
            uint inside_1 = (x_1 % 16u) + 16u;
            uint _e1795 = params.queries;
            if ((first + line_3) < _e1795) {
                local_1 = inside_1 < 32u;
            } else {
                local_1 = false;
            }
            bool _e1802 = local_1;
            if (_e1802) {
                uint at_13 = (line_3 * 48u) + x_1;
                float _e1808 = scores.inner[at_13];
                float _e1813 = scores.inner[at_13 + 1u];
                float _e1818 = scores.inner[at_13 + 2u];
                float _e1823 = scores.inner[at_13 + 3u];
                metal::float4 sum_1 = metal::float4(_e1808, _e1813, _e1818, _e1823);
                float own_1 = factors.inner[line_3];
                float _e1832 = params.empty;
                metal::float4 result_1 = metal::select(sum_1 / metal::float4(own_1), metal::float4(_e1832), metal::bool4(own_1 == 0.0));
                uint _e1842 = params.y_steps.z;
                uint to_1 = (y_base + ((first + line_3) * _e1842)) + ((((x_1 / 16u) * 32u) + inside_1) * 1u);
                y[to_1 / 4u] = static_cast<metal::half4>(result_1);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
