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

typedef metal::float4 type_2[1];
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
    float inner[1280];
};
struct type_9 {
    half inner[1152];
};
struct type_10 {
    float inner[128];
};
struct type_11 {
    float inner[16];
};
struct type_12 {
    uint inner[4];
};
constant uint THREADS = 128u;
constant uint ROWS = 16u;
constant uint KEYS = 64u;
constant metal::uint4 EACH = metal::uint4(0u, 1u, 2u, 3u);

metal::half4 q_at(
    uint start_1,
    uint column,
    device type_2 const& q,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e7 = q[(start_1 + column) / 4u];
    return static_cast<metal::half4>(_e7);
}

metal::half4 k_at(
    uint start_2,
    uint column_1,
    device type_2 const& k,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e7 = k[(start_2 + column_1) / 4u];
    return static_cast<metal::half4>(_e7);
}

metal::half4 v_at(
    uint start_3,
    uint column_2,
    device type_2 const& v,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e7 = v[(start_3 + column_2) / 4u];
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
[[max_total_threads_per_threadgroup(128)]] kernel void main_(
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
, threadgroup type_12& grown
, constant _mslBufferSizes& _buffer_sizes [[buffer(5)]]
) {
    uint block = 0u;
    metal::simdgroup_float8x8 sum0_0_ = {};
    metal::simdgroup_float8x8 sum0_1_ = {};
    metal::simdgroup_float8x8 sum1_0_ = {};
    metal::simdgroup_float8x8 sum1_1_ = {};
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
    bool local = {};
    uint number = group.x + (group.y * groups.x);
    uint _e11 = params.tiles;
    uint head = number / _e11;
    uint _e15 = params.heads;
    uint b = head / _e15;
    uint _e19 = params.batch;
    if (b >= _e19) {
        return;
    }
    uint team = metal::min(subgroup, 3u);
    uint band_row = (team / 4u) * 16u;
    uint side = team % 4u;
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
    uint first = (number % _e91) * 16u;
    uint _e97 = params.queries;
    uint last = _e97 - 1u;
    uint row = thread_ / 8u;
    uint part = thread_ % 8u;
    uint query = metal::min(first + row, last);
    int _e108 = params.offset;
    int top = as_type<int>(as_type<uint>(_e108) + as_type<uint>(static_cast<int>(first)));
    int _e113 = params.offset;
    int middle = as_type<int>(as_type<uint>(_e113) + as_type<uint>(static_cast<int>(query)));
    int _e118 = params.offset;
    int bottom = as_type<int>(as_type<uint>(_e118) + as_type<uint>(static_cast<int>(metal::min(first + 15u, last))));
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
            uint _e301 = block;
            block = _e301 + 1024u;
        }
        loop_init = false;
        uint _e198 = block;
        if (_e198 < 256u) {
        } else {
            break;
        }
        {
            uint _e201 = block;
            uint i0_ = metal::min((_e201 + 0u) + thread_, 255u);
            uint _e214 = params.q_steps.z;
            metal::half4 _e221 = q_at(q_base + (metal::min(first + (i0_ / 16u), last) * _e214), (i0_ % 16u) * 4u, q, _buffer_sizes);
            uint _e222 = block;
            uint i1_ = metal::min((_e222 + 128u) + thread_, 255u);
            uint _e235 = params.q_steps.z;
            metal::half4 _e242 = q_at(q_base + (metal::min(first + (i1_ / 16u), last) * _e235), (i1_ % 16u) * 4u, q, _buffer_sizes);
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
            uint _e2039 = start;
            start = _e2039 + KEYS;
        }
        loop_init_1 = false;
        uint _e478 = start;
        if (_e478 < tile_high) {
        } else {
            break;
        }
        {
            uint _e481 = start;
            uint stop = metal::min(KEYS, tile_high - _e481);
            if (thread_ == 0u) {
                grown.inner[0] = 0u;
            }
            block_1 = 0u;
            bool loop_init_2 = true;
            while(true) {
                if (!loop_init_2) {
                    uint _e942 = block_1;
                    block_1 = _e942 + 1024u;
                }
                loop_init_2 = false;
                uint _e491 = block_1;
                if (_e491 < 1024u) {
                } else {
                    break;
                }
                {
                    uint _e494 = block_1;
                    uint i0_1 = metal::min((_e494 + 0u) + thread_, 1023u);
                    uint _e500 = start;
                    uint _e506 = params.keys;
                    uint _e513 = params.k_steps.z;
                    metal::half4 _e520 = k_at(k_base + (metal::min(_e500 + (i0_1 / 16u), _e506 - 1u) * _e513), (i0_1 % 16u) * 4u, k, _buffer_sizes);
                    uint _e521 = block_1;
                    uint i1_1 = metal::min((_e521 + 128u) + thread_, 1023u);
                    uint _e527 = start;
                    uint _e533 = params.keys;
                    uint _e540 = params.k_steps.z;
                    metal::half4 _e547 = k_at(k_base + (metal::min(_e527 + (i1_1 / 16u), _e533 - 1u) * _e540), (i1_1 % 16u) * 4u, k, _buffer_sizes);
                    uint _e548 = block_1;
                    uint i2_ = metal::min((_e548 + 256u) + thread_, 1023u);
                    uint _e554 = start;
                    uint _e560 = params.keys;
                    uint _e567 = params.k_steps.z;
                    metal::half4 _e574 = k_at(k_base + (metal::min(_e554 + (i2_ / 16u), _e560 - 1u) * _e567), (i2_ % 16u) * 4u, k, _buffer_sizes);
                    uint _e575 = block_1;
                    uint i3_ = metal::min((_e575 + 384u) + thread_, 1023u);
                    uint _e581 = start;
                    uint _e587 = params.keys;
                    uint _e594 = params.k_steps.z;
                    metal::half4 _e601 = k_at(k_base + (metal::min(_e581 + (i3_ / 16u), _e587 - 1u) * _e594), (i3_ % 16u) * 4u, k, _buffer_sizes);
                    uint _e602 = block_1;
                    uint i4_ = metal::min((_e602 + 512u) + thread_, 1023u);
                    uint _e608 = start;
                    uint _e614 = params.keys;
                    uint _e621 = params.k_steps.z;
                    metal::half4 _e628 = k_at(k_base + (metal::min(_e608 + (i4_ / 16u), _e614 - 1u) * _e621), (i4_ % 16u) * 4u, k, _buffer_sizes);
                    uint _e629 = block_1;
                    uint i5_ = metal::min((_e629 + 640u) + thread_, 1023u);
                    uint _e635 = start;
                    uint _e641 = params.keys;
                    uint _e648 = params.k_steps.z;
                    metal::half4 _e655 = k_at(k_base + (metal::min(_e635 + (i5_ / 16u), _e641 - 1u) * _e648), (i5_ % 16u) * 4u, k, _buffer_sizes);
                    uint _e656 = block_1;
                    uint i6_ = metal::min((_e656 + 768u) + thread_, 1023u);
                    uint _e662 = start;
                    uint _e668 = params.keys;
                    uint _e675 = params.k_steps.z;
                    metal::half4 _e682 = k_at(k_base + (metal::min(_e662 + (i6_ / 16u), _e668 - 1u) * _e675), (i6_ % 16u) * 4u, k, _buffer_sizes);
                    uint _e683 = block_1;
                    uint i7_ = metal::min((_e683 + 896u) + thread_, 1023u);
                    uint _e689 = start;
                    uint _e695 = params.keys;
                    uint _e702 = params.k_steps.z;
                    metal::half4 _e709 = k_at(k_base + (metal::min(_e689 + (i7_ / 16u), _e695 - 1u) * _e702), (i7_ % 16u) * 4u, k, _buffer_sizes);
                    {
                        uint at_2 = ((i0_1 / 16u) * 72u) + ((i0_1 % 16u) * 4u);
                        stage.inner[at_2 + 0u] = _e520.x;
                        stage.inner[at_2 + 1u] = _e520.y;
                        stage.inner[at_2 + 2u] = _e520.z;
                        stage.inner[at_2 + 3u] = _e520.w;
                    }
                    {
                        uint at_3 = ((i1_1 / 16u) * 72u) + ((i1_1 % 16u) * 4u);
                        stage.inner[at_3 + 0u] = _e547.x;
                        stage.inner[at_3 + 1u] = _e547.y;
                        stage.inner[at_3 + 2u] = _e547.z;
                        stage.inner[at_3 + 3u] = _e547.w;
                    }
                    {
                        uint at_4 = ((i2_ / 16u) * 72u) + ((i2_ % 16u) * 4u);
                        stage.inner[at_4 + 0u] = _e574.x;
                        stage.inner[at_4 + 1u] = _e574.y;
                        stage.inner[at_4 + 2u] = _e574.z;
                        stage.inner[at_4 + 3u] = _e574.w;
                    }
                    {
                        uint at_5 = ((i3_ / 16u) * 72u) + ((i3_ % 16u) * 4u);
                        stage.inner[at_5 + 0u] = _e601.x;
                        stage.inner[at_5 + 1u] = _e601.y;
                        stage.inner[at_5 + 2u] = _e601.z;
                        stage.inner[at_5 + 3u] = _e601.w;
                    }
                    {
                        uint at_6 = ((i4_ / 16u) * 72u) + ((i4_ % 16u) * 4u);
                        stage.inner[at_6 + 0u] = _e628.x;
                        stage.inner[at_6 + 1u] = _e628.y;
                        stage.inner[at_6 + 2u] = _e628.z;
                        stage.inner[at_6 + 3u] = _e628.w;
                    }
                    {
                        uint at_7 = ((i5_ / 16u) * 72u) + ((i5_ % 16u) * 4u);
                        stage.inner[at_7 + 0u] = _e655.x;
                        stage.inner[at_7 + 1u] = _e655.y;
                        stage.inner[at_7 + 2u] = _e655.z;
                        stage.inner[at_7 + 3u] = _e655.w;
                    }
                    {
                        uint at_8 = ((i6_ / 16u) * 72u) + ((i6_ % 16u) * 4u);
                        stage.inner[at_8 + 0u] = _e682.x;
                        stage.inner[at_8 + 1u] = _e682.y;
                        stage.inner[at_8 + 2u] = _e682.z;
                        stage.inner[at_8 + 3u] = _e682.w;
                    }
                    {
                        uint at_9 = ((i7_ / 16u) * 72u) + ((i7_ % 16u) * 4u);
                        stage.inner[at_9 + 0u] = _e709.x;
                        stage.inner[at_9 + 1u] = _e709.y;
                        stage.inner[at_9 + 2u] = _e709.z;
                        stage.inner[at_9 + 3u] = _e709.w;
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            j = side;
            bool loop_init_3 = true;
            while(true) {
                if (!loop_init_3) {
                    uint _e1041 = j;
                    j = _e1041 + 4u;
                }
                loop_init_3 = false;
                uint _e946 = j;
                if ((_e946 * 8u) < stop) {
                } else {
                    break;
                }
                {
                    uint _e950 = j;
                    uint from_key = _e950 * 576u;
                    uint at_k0_ = from_key + 0u;
                    metal::simdgroup_half8x8 k0_ = NagaCooperativeLoad(&stage.inner[at_k0_], 72u, true);
                    metal::simdgroup_float8x8 _e959 = none;
                    metal::simdgroup_float8x8 score0_0_ = NagaCooperativeMultiplyAdd(q0_0_, k0_, _e959);
                    metal::simdgroup_float8x8 _e961 = none;
                    metal::simdgroup_float8x8 score1_0_ = NagaCooperativeMultiplyAdd(q1_0_, k0_, _e961);
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
                    uint _e1023 = j;
                    uint to_0_ = ((band_row + 0u) * 80u) + (_e1023 * 8u);
                    simdgroup_store(score0_7_, &scores.inner[to_0_], 80u);
                    uint _e1034 = j;
                    uint to_1_ = ((band_row + 8u) * 80u) + (_e1034 * 8u);
                    simdgroup_store(score1_7_, &scores.inner[to_1_], 80u);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            block_2 = 0u;
            bool loop_init_4 = true;
            while(true) {
                if (!loop_init_4) {
                    uint _e1497 = block_2;
                    block_2 = _e1497 + 1024u;
                }
                loop_init_4 = false;
                uint _e1046 = block_2;
                if (_e1046 < 1024u) {
                } else {
                    break;
                }
                {
                    uint _e1049 = block_2;
                    uint i0_2 = metal::min((_e1049 + 0u) + thread_, 1023u);
                    uint _e1055 = start;
                    uint _e1061 = params.keys;
                    uint _e1068 = params.v_steps.z;
                    metal::half4 _e1075 = v_at(v_base + (metal::min(_e1055 + (i0_2 / 16u), _e1061 - 1u) * _e1068), (i0_2 % 16u) * 4u, v, _buffer_sizes);
                    uint _e1076 = block_2;
                    uint i1_2 = metal::min((_e1076 + 128u) + thread_, 1023u);
                    uint _e1082 = start;
                    uint _e1088 = params.keys;
                    uint _e1095 = params.v_steps.z;
                    metal::half4 _e1102 = v_at(v_base + (metal::min(_e1082 + (i1_2 / 16u), _e1088 - 1u) * _e1095), (i1_2 % 16u) * 4u, v, _buffer_sizes);
                    uint _e1103 = block_2;
                    uint i2_1 = metal::min((_e1103 + 256u) + thread_, 1023u);
                    uint _e1109 = start;
                    uint _e1115 = params.keys;
                    uint _e1122 = params.v_steps.z;
                    metal::half4 _e1129 = v_at(v_base + (metal::min(_e1109 + (i2_1 / 16u), _e1115 - 1u) * _e1122), (i2_1 % 16u) * 4u, v, _buffer_sizes);
                    uint _e1130 = block_2;
                    uint i3_1 = metal::min((_e1130 + 384u) + thread_, 1023u);
                    uint _e1136 = start;
                    uint _e1142 = params.keys;
                    uint _e1149 = params.v_steps.z;
                    metal::half4 _e1156 = v_at(v_base + (metal::min(_e1136 + (i3_1 / 16u), _e1142 - 1u) * _e1149), (i3_1 % 16u) * 4u, v, _buffer_sizes);
                    uint _e1157 = block_2;
                    uint i4_1 = metal::min((_e1157 + 512u) + thread_, 1023u);
                    uint _e1163 = start;
                    uint _e1169 = params.keys;
                    uint _e1176 = params.v_steps.z;
                    metal::half4 _e1183 = v_at(v_base + (metal::min(_e1163 + (i4_1 / 16u), _e1169 - 1u) * _e1176), (i4_1 % 16u) * 4u, v, _buffer_sizes);
                    uint _e1184 = block_2;
                    uint i5_1 = metal::min((_e1184 + 640u) + thread_, 1023u);
                    uint _e1190 = start;
                    uint _e1196 = params.keys;
                    uint _e1203 = params.v_steps.z;
                    metal::half4 _e1210 = v_at(v_base + (metal::min(_e1190 + (i5_1 / 16u), _e1196 - 1u) * _e1203), (i5_1 % 16u) * 4u, v, _buffer_sizes);
                    uint _e1211 = block_2;
                    uint i6_1 = metal::min((_e1211 + 768u) + thread_, 1023u);
                    uint _e1217 = start;
                    uint _e1223 = params.keys;
                    uint _e1230 = params.v_steps.z;
                    metal::half4 _e1237 = v_at(v_base + (metal::min(_e1217 + (i6_1 / 16u), _e1223 - 1u) * _e1230), (i6_1 % 16u) * 4u, v, _buffer_sizes);
                    uint _e1238 = block_2;
                    uint i7_1 = metal::min((_e1238 + 896u) + thread_, 1023u);
                    uint _e1244 = start;
                    uint _e1250 = params.keys;
                    uint _e1257 = params.v_steps.z;
                    metal::half4 _e1264 = v_at(v_base + (metal::min(_e1244 + (i7_1 / 16u), _e1250 - 1u) * _e1257), (i7_1 % 16u) * 4u, v, _buffer_sizes);
                    {
                        uint at_10 = ((i0_2 / 16u) * 72u) + ((i0_2 % 16u) * 4u);
                        stage.inner[at_10 + 0u] = _e1075.x;
                        stage.inner[at_10 + 1u] = _e1075.y;
                        stage.inner[at_10 + 2u] = _e1075.z;
                        stage.inner[at_10 + 3u] = _e1075.w;
                    }
                    {
                        uint at_11 = ((i1_2 / 16u) * 72u) + ((i1_2 % 16u) * 4u);
                        stage.inner[at_11 + 0u] = _e1102.x;
                        stage.inner[at_11 + 1u] = _e1102.y;
                        stage.inner[at_11 + 2u] = _e1102.z;
                        stage.inner[at_11 + 3u] = _e1102.w;
                    }
                    {
                        uint at_12 = ((i2_1 / 16u) * 72u) + ((i2_1 % 16u) * 4u);
                        stage.inner[at_12 + 0u] = _e1129.x;
                        stage.inner[at_12 + 1u] = _e1129.y;
                        stage.inner[at_12 + 2u] = _e1129.z;
                        stage.inner[at_12 + 3u] = _e1129.w;
                    }
                    {
                        uint at_13 = ((i3_1 / 16u) * 72u) + ((i3_1 % 16u) * 4u);
                        stage.inner[at_13 + 0u] = _e1156.x;
                        stage.inner[at_13 + 1u] = _e1156.y;
                        stage.inner[at_13 + 2u] = _e1156.z;
                        stage.inner[at_13 + 3u] = _e1156.w;
                    }
                    {
                        uint at_14 = ((i4_1 / 16u) * 72u) + ((i4_1 % 16u) * 4u);
                        stage.inner[at_14 + 0u] = _e1183.x;
                        stage.inner[at_14 + 1u] = _e1183.y;
                        stage.inner[at_14 + 2u] = _e1183.z;
                        stage.inner[at_14 + 3u] = _e1183.w;
                    }
                    {
                        uint at_15 = ((i5_1 / 16u) * 72u) + ((i5_1 % 16u) * 4u);
                        stage.inner[at_15 + 0u] = _e1210.x;
                        stage.inner[at_15 + 1u] = _e1210.y;
                        stage.inner[at_15 + 2u] = _e1210.z;
                        stage.inner[at_15 + 3u] = _e1210.w;
                    }
                    {
                        uint at_16 = ((i6_1 / 16u) * 72u) + ((i6_1 % 16u) * 4u);
                        stage.inner[at_16 + 0u] = _e1237.x;
                        stage.inner[at_16 + 1u] = _e1237.y;
                        stage.inner[at_16 + 2u] = _e1237.z;
                        stage.inner[at_16 + 3u] = _e1237.w;
                    }
                    {
                        uint at_17 = ((i7_1 / 16u) * 72u) + ((i7_1 % 16u) * 4u);
                        stage.inner[at_17 + 0u] = _e1264.x;
                        stage.inner[at_17 + 1u] = _e1264.y;
                        stage.inner[at_17 + 2u] = _e1264.z;
                        stage.inner[at_17 + 3u] = _e1264.w;
                    }
                }
            }
            highest = -340282350000000000000000000000000000000.0;
            score0_ = metal::float4(-340282350000000000000000000000000000000.0);
            {
                uint _e1505 = start;
                metal::uint4 key = metal::uint4(_e1505 + ((part + 0u) * 4u)) + EACH;
                uint at_18 = (row * 80u) + ((part + 0u) * 4u);
                float _e1523 = scores.inner[at_18];
                float _e1528 = scores.inner[at_18 + 1u];
                float _e1533 = scores.inner[at_18 + 2u];
                float _e1538 = scores.inner[at_18 + 3u];
                float _e1542 = params.scale;
                score = metal::float4(_e1523, _e1528, _e1533, _e1538) * _e1542;
                float _e1547 = params.softcap;
                if (_e1547 > 0.0) {
                    float _e1552 = params.softcap;
                    metal::float4 _e1553 = score;
                    float _e1556 = params.softcap;
                    score = _e1552 * metal::tanh(metal::clamp(_e1553 / metal::float4(_e1556), metal::float4(-20.0), metal::float4(20.0)));
                }
                hidden = (key < metal::uint4(low)) | (key >= metal::uint4(high));
                metal::float4 _e1572 = score;
                metal::bool4 _e1578 = hidden;
                score0_ = metal::select(metal::max(_e1572, metal::float4(-340000000000000000000000000000000000000.0)), metal::float4(-340282350000000000000000000000000000000.0), _e1578);
                float _e1580 = highest;
                float _e1582 = score0_.x;
                float _e1584 = score0_.y;
                float _e1587 = score0_.z;
                float _e1589 = score0_.w;
                highest = metal::max(_e1580, metal::max(metal::max(_e1582, _e1584), metal::max(_e1587, _e1589)));
            }
            score1_ = metal::float4(-340282350000000000000000000000000000000.0);
            {
                uint _e1596 = start;
                metal::uint4 key_1 = metal::uint4(_e1596 + ((part + 8u) * 4u)) + EACH;
                uint at_19 = (row * 80u) + ((part + 8u) * 4u);
                float _e1614 = scores.inner[at_19];
                float _e1619 = scores.inner[at_19 + 1u];
                float _e1624 = scores.inner[at_19 + 2u];
                float _e1629 = scores.inner[at_19 + 3u];
                float _e1633 = params.scale;
                score_1 = metal::float4(_e1614, _e1619, _e1624, _e1629) * _e1633;
                float _e1638 = params.softcap;
                if (_e1638 > 0.0) {
                    float _e1643 = params.softcap;
                    metal::float4 _e1644 = score_1;
                    float _e1647 = params.softcap;
                    score_1 = _e1643 * metal::tanh(metal::clamp(_e1644 / metal::float4(_e1647), metal::float4(-20.0), metal::float4(20.0)));
                }
                hidden_1 = (key_1 < metal::uint4(low)) | (key_1 >= metal::uint4(high));
                metal::float4 _e1663 = score_1;
                metal::bool4 _e1669 = hidden_1;
                score1_ = metal::select(metal::max(_e1663, metal::float4(-340000000000000000000000000000000000000.0)), metal::float4(-340282350000000000000000000000000000000.0), _e1669);
                float _e1671 = highest;
                float _e1673 = score1_.x;
                float _e1675 = score1_.y;
                float _e1678 = score1_.z;
                float _e1680 = score1_.w;
                highest = metal::max(_e1671, metal::max(metal::max(_e1673, _e1675), metal::max(_e1678, _e1680)));
            }
            float _e1686 = highest;
            shared_rows.inner[thread_] = _e1686;
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            float _e1687 = highest;
            float _e1694 = shared_rows.inner[(row * 8u) + 0u];
            highest = metal::max(_e1687, _e1694);
            float _e1696 = highest;
            float _e1703 = shared_rows.inner[(row * 8u) + 1u];
            highest = metal::max(_e1696, _e1703);
            float _e1705 = highest;
            float _e1712 = shared_rows.inner[(row * 8u) + 2u];
            highest = metal::max(_e1705, _e1712);
            float _e1714 = highest;
            float _e1721 = shared_rows.inner[(row * 8u) + 3u];
            highest = metal::max(_e1714, _e1721);
            float _e1723 = highest;
            float _e1730 = shared_rows.inner[(row * 8u) + 4u];
            highest = metal::max(_e1723, _e1730);
            float _e1732 = highest;
            float _e1739 = shared_rows.inner[(row * 8u) + 5u];
            highest = metal::max(_e1732, _e1739);
            float _e1741 = highest;
            float _e1748 = shared_rows.inner[(row * 8u) + 6u];
            highest = metal::max(_e1741, _e1748);
            float _e1750 = highest;
            float _e1757 = shared_rows.inner[(row * 8u) + 7u];
            highest = metal::max(_e1750, _e1757);
            factor = 1.0;
            float _e1761 = most;
            if (_e1761 <= -340282350000000000000000000000000000000.0) {
                float _e1764 = highest;
                most = _e1764;
            } else {
                float _e1765 = highest;
                float _e1766 = most;
                if ((_e1765 - _e1766) > 8.0) {
                    float _e1770 = most;
                    float _e1771 = highest;
                    factor = metal::exp(_e1770 - _e1771);
                    float _e1774 = highest;
                    most = _e1774;
                    grown.inner[0] = 1u;
                }
            }
            if (part == 0u) {
                float _e1782 = factor;
                factors.inner[row] = _e1782;
            }
            float _e1783 = total;
            float _e1784 = factor;
            total = _e1783 * _e1784;
            {
                metal::float4 _e1786 = score0_;
                float _e1787 = most;
                metal::float4 _e1793 = score0_;
                metal::half4 weight = static_cast<metal::half4>(metal::select(metal::exp(_e1786 - metal::float4(_e1787)), metal::float4(0.0), _e1793 <= metal::float4(-340282350000000000000000000000000000000.0)));
                float _e1799 = total;
                total = _e1799 + metal::dot(static_cast<metal::float4>(weight), metal::float4(1.0));
                uint at_20 = (row * 72u) + ((part + 0u) * 4u);
                weights.inner[at_20 + 0u] = weight.x;
                weights.inner[at_20 + 1u] = weight.y;
                weights.inner[at_20 + 2u] = weight.z;
                weights.inner[at_20 + 3u] = weight.w;
            }
            {
                metal::float4 _e1832 = score1_;
                float _e1833 = most;
                metal::float4 _e1839 = score1_;
                metal::half4 weight_1 = static_cast<metal::half4>(metal::select(metal::exp(_e1832 - metal::float4(_e1833)), metal::float4(0.0), _e1839 <= metal::float4(-340282350000000000000000000000000000000.0)));
                float _e1845 = total;
                total = _e1845 + metal::dot(static_cast<metal::float4>(weight_1), metal::float4(1.0));
                uint at_21 = (row * 72u) + ((part + 8u) * 4u);
                weights.inner[at_21 + 0u] = weight_1.x;
                weights.inner[at_21 + 1u] = weight_1.y;
                weights.inner[at_21 + 2u] = weight_1.z;
                weights.inner[at_21 + 3u] = weight_1.w;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint unnamed = grown.inner[0];
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            if (unnamed != 0u) {
                uint to_0_0_ = (((band_row + 0u) * 80u) + (side * 16u)) + 0u;
                metal::simdgroup_float8x8 _e1892 = sum0_0_;
                simdgroup_store(_e1892, &scores.inner[to_0_0_], 80u);
                uint to_0_1_ = (((band_row + 0u) * 80u) + (side * 16u)) + 8u;
                metal::simdgroup_float8x8 _e1905 = sum0_1_;
                simdgroup_store(_e1905, &scores.inner[to_0_1_], 80u);
                uint to_1_0_ = (((band_row + 8u) * 80u) + (side * 16u)) + 0u;
                metal::simdgroup_float8x8 _e1918 = sum1_0_;
                simdgroup_store(_e1918, &scores.inner[to_1_0_], 80u);
                uint to_1_1_ = (((band_row + 8u) * 80u) + (side * 16u)) + 8u;
                metal::simdgroup_float8x8 _e1931 = sum1_1_;
                simdgroup_store(_e1931, &scores.inner[to_1_1_], 80u);
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                i = thread_;
                bool loop_init_5 = true;
                while(true) {
                    if (!loop_init_5) {
                        uint _e1955 = i;
                        i = _e1955 + THREADS;
                    }
                    loop_init_5 = false;
                    uint _e1936 = i;
                    if (_e1936 < 1024u) {
                    } else {
                        break;
                    }
                    {
                        uint _e1939 = i;
                        uint line = _e1939 / 64u;
                        uint _e1945 = i;
                        float _e1950 = scores.inner[(line * 80u) + (_e1945 % 64u)];
                        float _e1953 = factors.inner[line];
                        scores.inner[(line * 80u) + (_e1945 % 64u)] = _e1950 * _e1953;
                    }
                }
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                sum0_0_ = NagaCooperativeLoad(&scores.inner[to_0_0_], 80u, false);
                sum0_1_ = NagaCooperativeLoad(&scores.inner[to_0_1_], 80u, false);
                sum1_0_ = NagaCooperativeLoad(&scores.inner[to_1_0_], 80u, false);
                sum1_1_ = NagaCooperativeLoad(&scores.inner[to_1_1_], 80u, false);
                metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            }
            i_1 = 0u;
            bool loop_init_6 = true;
            while(true) {
                if (!loop_init_6) {
                    uint _e2037 = i_1;
                    i_1 = _e2037 + 1u;
                }
                loop_init_6 = false;
                uint _e1976 = i_1;
                if ((_e1976 * 8u) < stop) {
                } else {
                    break;
                }
                {
                    uint _e1984 = i_1;
                    uint at_w0_ = ((band_row + 0u) * 72u) + (_e1984 * 8u);
                    metal::simdgroup_half8x8 w0_ = NagaCooperativeLoad(&weights.inner[at_w0_], 72u, false);
                    uint _e1996 = i_1;
                    uint at_w1_ = ((band_row + 8u) * 72u) + (_e1996 * 8u);
                    metal::simdgroup_half8x8 w1_ = NagaCooperativeLoad(&weights.inner[at_w1_], 72u, false);
                    uint _e2004 = i_1;
                    uint at_v0_ = ((_e2004 * 576u) + (side * 16u)) + 0u;
                    metal::simdgroup_half8x8 v0_ = NagaCooperativeLoad(&stage.inner[at_v0_], 72u, false);
                    metal::simdgroup_float8x8 _e2016 = sum0_0_;
                    sum0_0_ = NagaCooperativeMultiplyAdd(w0_, v0_, _e2016);
                    metal::simdgroup_float8x8 _e2018 = sum1_0_;
                    sum1_0_ = NagaCooperativeMultiplyAdd(w1_, v0_, _e2018);
                    uint _e2020 = i_1;
                    uint at_v1_ = ((_e2020 * 576u) + (side * 16u)) + 8u;
                    metal::simdgroup_half8x8 v1_ = NagaCooperativeLoad(&stage.inner[at_v1_], 72u, false);
                    metal::simdgroup_float8x8 _e2032 = sum0_1_;
                    sum0_1_ = NagaCooperativeMultiplyAdd(w0_, v1_, _e2032);
                    metal::simdgroup_float8x8 _e2034 = sum1_1_;
                    sum1_1_ = NagaCooperativeMultiplyAdd(w1_, v1_, _e2034);
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    float _e2044 = total;
    shared_rows.inner[thread_] = _e2044;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (part == 0u) {
        float _e2047 = total;
        float _e2052 = shared_rows.inner[thread_ + 1u];
        total = _e2047 + _e2052;
        float _e2054 = total;
        float _e2059 = shared_rows.inner[thread_ + 2u];
        total = _e2054 + _e2059;
        float _e2061 = total;
        float _e2066 = shared_rows.inner[thread_ + 3u];
        total = _e2061 + _e2066;
        float _e2068 = total;
        float _e2073 = shared_rows.inner[thread_ + 4u];
        total = _e2068 + _e2073;
        float _e2075 = total;
        float _e2080 = shared_rows.inner[thread_ + 5u];
        total = _e2075 + _e2080;
        float _e2082 = total;
        float _e2087 = shared_rows.inner[thread_ + 6u];
        total = _e2082 + _e2087;
        float _e2089 = total;
        float _e2094 = shared_rows.inner[thread_ + 7u];
        total = _e2089 + _e2094;
        float _e2098 = total;
        factors.inner[row] = _e2098;
    }
    uint out_0_0_ = (((band_row + 0u) * 80u) + (side * 16u)) + 0u;
    metal::simdgroup_float8x8 _e2108 = sum0_0_;
    simdgroup_store(_e2108, &scores.inner[out_0_0_], 80u);
    uint out_0_1_ = (((band_row + 0u) * 80u) + (side * 16u)) + 8u;
    metal::simdgroup_float8x8 _e2121 = sum0_1_;
    simdgroup_store(_e2121, &scores.inner[out_0_1_], 80u);
    uint out_1_0_ = (((band_row + 8u) * 80u) + (side * 16u)) + 0u;
    metal::simdgroup_float8x8 _e2134 = sum1_0_;
    simdgroup_store(_e2134, &scores.inner[out_1_0_], 80u);
    uint out_1_1_ = (((band_row + 8u) * 80u) + (side * 16u)) + 8u;
    metal::simdgroup_float8x8 _e2147 = sum1_1_;
    simdgroup_store(_e2147, &scores.inner[out_1_1_], 80u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_2 = thread_;
    bool loop_init_7 = true;
    while(true) {
        if (!loop_init_7) {
            uint _e2233 = i_2;
            i_2 = _e2233 + THREADS;
        }
        loop_init_7 = false;
        uint _e2152 = i_2;
        if (_e2152 < 256u) {
        } else {
            break;
        }
        {
            uint _e2155 = i_2;
            uint line_1 = _e2155 / 16u;
            uint _e2158 = i_2;
            uint x = (_e2158 % 16u) * 4u;
            uint inside = (x % 16u) + 0u;
            uint _e2170 = params.queries;
            if ((first + line_1) < _e2170) {
                local = inside < 16u;
            } else {
                local = false;
            }
            bool _e2177 = local;
            if (_e2177) {
                uint at_22 = (line_1 * 80u) + x;
                float _e2183 = scores.inner[at_22];
                float _e2188 = scores.inner[at_22 + 1u];
                float _e2193 = scores.inner[at_22 + 2u];
                float _e2198 = scores.inner[at_22 + 3u];
                metal::float4 sum = metal::float4(_e2183, _e2188, _e2193, _e2198);
                float own = factors.inner[line_1];
                float _e2207 = params.empty;
                metal::float4 result = metal::select(sum / metal::float4(own), metal::float4(_e2207), metal::bool4(own == 0.0));
                uint _e2217 = params.y_steps.z;
                uint to = (y_base + ((first + line_1) * _e2217)) + ((((x / 16u) * 16u) + inside) * 1u);
                y[to / 4u] = static_cast<metal::float4>(result);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
