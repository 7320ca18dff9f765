// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
};

typedef metal::half4 type_2[1];
typedef metal::float4 type_5[1];
struct Params {
    uint m;
    uint n;
    uint k;
    uint share;
    uint shares;
    uint tiles_m;
    uint tiles_n;
    uint total;
    uint products;
    uint middle;
    uint inner;
    uint a_at;
    uint a_0_;
    uint a_1_;
    uint a_2_;
    uint a_outer;
    uint a_inner;
    uint b_at;
    uint b_0_;
    uint b_1_;
    uint b_2_;
    uint b_outer;
    uint b_inner;
    uint more_at;
    uint more_0_;
    uint more_1_;
    uint more_2_;
    uint more_outer;
    uint more_inner;
    uint bias_step;
    uint out_at;
    float alpha;
    float beta;
    float p;
    float q;
};
struct Starts {
    uint a;
    uint b;
    uint more;
    uint out;
};
struct Work {
    uint row;
    uint column;
    uint k;
    uint k_end;
    uint product;
    uint part;
};
struct type_8 {
    half inner[2304];
};
struct type_9 {
    half inner[4608];
};
struct type_10 {
    float inner[256];
};

Starts starts(
    uint product,
    constant Params& params
) {
    uint _e3 = params.inner;
    uint i2_ = product % _e3;
    uint _e7 = params.inner;
    uint rest = product / _e7;
    uint _e11 = params.middle;
    uint i1_ = rest % _e11;
    uint _e15 = params.middle;
    uint i0_ = rest / _e15;
    uint _e19 = params.a_at;
    uint _e22 = params.a_0_;
    uint _e27 = params.a_1_;
    uint _e32 = params.a_2_;
    uint _e37 = params.b_at;
    uint _e40 = params.b_0_;
    uint _e45 = params.b_1_;
    uint _e50 = params.b_2_;
    uint _e55 = params.more_at;
    uint _e58 = params.more_0_;
    uint _e63 = params.more_1_;
    uint _e68 = params.more_2_;
    uint _e73 = params.out_at;
    uint _e76 = params.m;
    uint _e80 = params.n;
    return Starts {((_e19 + (i0_ * _e22)) + (i1_ * _e27)) + (i2_ * _e32), ((_e37 + (i0_ * _e40)) + (i1_ * _e45)) + (i2_ * _e50), ((_e55 + (i0_ * _e58)) + (i1_ * _e63)) + (i2_ * _e68), _e73 + ((product * _e76) * _e80)};
}

metal::half4 load_a(
    uint start,
    uint outer,
    uint k,
    device type_2 const& a,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.m;
    uint row_1 = metal::min(outer, _e5 - 1u);
    uint _e12 = params.a_outer;
    metal::half4 _e19 = a[((start + (row_1 * _e12)) + k) >> 2u];
    return static_cast<metal::half4>(_e19);
}

metal::half4 load_b(
    uint start_1,
    uint outer_1,
    uint k_1,
    device type_2 const& b,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.n;
    uint columns = metal::min(outer_1, (_e5 - 1u) & 4294967292u);
    uint _e14 = params.b_inner;
    metal::half4 _e21 = b[((start_1 + (k_1 * _e14)) + columns) >> 2u];
    return static_cast<metal::half4>(_e21);
}

metal::float4 activate(
    metal::float4 v
) {
    return v;
}

void put(
    uint part,
    Starts base,
    uint row,
    uint column,
    metal::float4 sums,
    device type_5& out,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local = {};
    metal::float4 v_1 = {};
    uint _e7 = params.m;
    if (!((row >= _e7))) {
        uint _e14 = params.n;
        local = column >= _e14;
    } else {
        local = true;
    }
    bool _e17 = local;
    if (_e17) {
        return;
    }
    float _e20 = params.alpha;
    v_1 = sums * _e20;
    uint _e26 = params.n;
    uint at = (base.out + (row * _e26)) + column;
    metal::float4 _e34 = v_1;
    metal::float4 _e35 = activate(_e34);
    out[at >> 2u] = static_cast<metal::float4>(_e35);
    return;
}

Work work(
    uint id,
    constant Params& params
) {
    uint _e3 = params.tiles_m;
    uint _e6 = params.tiles_n;
    uint tiles = _e3 * _e6;
    uint tile = id % tiles;
    uint rest_1 = id / tiles;
    uint _e12 = params.shares;
    uint share = rest_1 % _e12;
    uint _e16 = params.shares;
    uint product_1 = rest_1 / _e16;
    uint _e21 = params.tiles_n;
    uint in_band = 8u * _e21;
    uint first = (tile / in_band) * 8u;
    uint _e29 = params.tiles_m;
    uint rows = metal::min(8u, _e29 - first);
    uint at_1 = tile % in_band;
    uint _e35 = params.share;
    uint k_2 = share * _e35;
    uint _e46 = params.share;
    uint _e50 = params.k;
    uint _e54 = params.products;
    return Work {(first + (at_1 % rows)) * 32u, (at_1 / rows) * 64u, k_2, metal::min(k_2 + _e46, _e50), product_1, (share * _e54) + product_1};
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


struct main_Input {
};
[[max_total_threads_per_threadgroup(128)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint thread_ [[thread_index_in_threadgroup]]
, uint subgroup [[simdgroup_index_in_threadgroup]]
, uint lane [[thread_index_in_simdgroup]]
, uint lanes [[threads_per_simdgroup]]
, device type_2 const& a [[buffer(0)]]
, device type_2 const& b [[buffer(1)]]
, device type_5& out [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, threadgroup type_8& tile_a
, threadgroup type_9& tile_b
, threadgroup type_10& results
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    metal::half4 next_a0_0_ = metal::half4 {};
    metal::half4 next_a1_0_ = metal::half4 {};
    metal::half4 next_a2_0_ = metal::half4 {};
    metal::half4 next_a3_0_ = metal::half4 {};
    metal::half4 next_b0_0_ = metal::half4 {};
    metal::half4 next_b1_0_ = metal::half4 {};
    metal::half4 next_b2_0_ = metal::half4 {};
    metal::half4 next_b3_0_ = metal::half4 {};
    metal::half4 next_b4_0_ = metal::half4 {};
    metal::half4 next_b5_0_ = metal::half4 {};
    metal::half4 next_b6_0_ = metal::half4 {};
    metal::half4 next_b7_0_ = metal::half4 {};
    metal::simdgroup_float8x8 sum_0_0_ = {};
    metal::simdgroup_float8x8 sum_0_1_ = {};
    metal::simdgroup_float8x8 sum_0_2_ = {};
    metal::simdgroup_float8x8 sum_0_3_ = {};
    metal::simdgroup_float8x8 sum_1_0_ = {};
    metal::simdgroup_float8x8 sum_1_1_ = {};
    metal::simdgroup_float8x8 sum_1_2_ = {};
    metal::simdgroup_float8x8 sum_1_3_ = {};
    uint stage = 0u;
    uint number = 0u;
    uint quad_ = {};
    uint quad_1 = {};
    uint quad_2 = {};
    uint quad_3 = {};
    uint quad_4 = {};
    uint quad_5 = {};
    uint quad_6 = {};
    uint quad_7 = {};
    uint id_1 = group.x + (group.y * groups.x);
    uint _e13 = params.total;
    if (id_1 >= _e13) {
        return;
    }
    Work _e15 = work(id_1, params);
    Starts _e17 = starts(_e15.product, params);
    uint team = metal::min(subgroup, 3u);
    uint team_row = (team / 2u) * 16u;
    uint team_column = (team % 2u) * 32u;
    uint count = ((metal::max(_e15.k_end, _e15.k) - _e15.k) + 63u) / 64u;
    uint a_along0_ = ((thread_ + 0u) % 16u) * 4u;
    uint a_across0_ = (thread_ + 0u) / 16u;
    uint a_along1_ = ((thread_ + 128u) % 16u) * 4u;
    uint a_across1_ = (thread_ + 128u) / 16u;
    uint a_along2_ = ((thread_ + 256u) % 16u) * 4u;
    uint a_across2_ = (thread_ + 256u) / 16u;
    uint a_along3_ = ((thread_ + 384u) % 16u) * 4u;
    uint a_across3_ = (thread_ + 384u) / 16u;
    uint b_along0_ = ((thread_ + 0u) % 16u) * 4u;
    uint b_across0_ = (thread_ + 0u) / 16u;
    uint b_along1_ = ((thread_ + 128u) % 16u) * 4u;
    uint b_across1_ = (thread_ + 128u) / 16u;
    uint b_along2_ = ((thread_ + 256u) % 16u) * 4u;
    uint b_across2_ = (thread_ + 256u) / 16u;
    uint b_along3_ = ((thread_ + 384u) % 16u) * 4u;
    uint b_across3_ = (thread_ + 384u) / 16u;
    uint b_along4_ = ((thread_ + 512u) % 16u) * 4u;
    uint b_across4_ = (thread_ + 512u) / 16u;
    uint b_along5_ = ((thread_ + 640u) % 16u) * 4u;
    uint b_across5_ = (thread_ + 640u) / 16u;
    uint b_along6_ = ((thread_ + 768u) % 16u) * 4u;
    uint b_across6_ = (thread_ + 768u) / 16u;
    uint b_along7_ = ((thread_ + 896u) % 16u) * 4u;
    uint b_across7_ = (thread_ + 896u) / 16u;
    if (count > 0u) {
        {
            uint k_3 = metal::min(0u, count - 1u) * 64u;
            metal::half4 _e205 = load_a(_e17.a, _e15.row + a_across0_, (_e15.k + k_3) + a_along0_, a, params, _buffer_sizes);
            next_a0_0_ = _e205;
            metal::half4 _e212 = load_a(_e17.a, _e15.row + a_across1_, (_e15.k + k_3) + a_along1_, a, params, _buffer_sizes);
            next_a1_0_ = _e212;
            metal::half4 _e219 = load_a(_e17.a, _e15.row + a_across2_, (_e15.k + k_3) + a_along2_, a, params, _buffer_sizes);
            next_a2_0_ = _e219;
            metal::half4 _e226 = load_a(_e17.a, _e15.row + a_across3_, (_e15.k + k_3) + a_along3_, a, params, _buffer_sizes);
            next_a3_0_ = _e226;
            metal::half4 _e233 = load_b(_e17.b, _e15.column + b_along0_, (_e15.k + k_3) + b_across0_, b, params, _buffer_sizes);
            next_b0_0_ = _e233;
            metal::half4 _e240 = load_b(_e17.b, _e15.column + b_along1_, (_e15.k + k_3) + b_across1_, b, params, _buffer_sizes);
            next_b1_0_ = _e240;
            metal::half4 _e247 = load_b(_e17.b, _e15.column + b_along2_, (_e15.k + k_3) + b_across2_, b, params, _buffer_sizes);
            next_b2_0_ = _e247;
            metal::half4 _e254 = load_b(_e17.b, _e15.column + b_along3_, (_e15.k + k_3) + b_across3_, b, params, _buffer_sizes);
            next_b3_0_ = _e254;
            metal::half4 _e261 = load_b(_e17.b, _e15.column + b_along4_, (_e15.k + k_3) + b_across4_, b, params, _buffer_sizes);
            next_b4_0_ = _e261;
            metal::half4 _e268 = load_b(_e17.b, _e15.column + b_along5_, (_e15.k + k_3) + b_across5_, b, params, _buffer_sizes);
            next_b5_0_ = _e268;
            metal::half4 _e275 = load_b(_e17.b, _e15.column + b_along6_, (_e15.k + k_3) + b_across6_, b, params, _buffer_sizes);
            next_b6_0_ = _e275;
            metal::half4 _e282 = load_b(_e17.b, _e15.column + b_along7_, (_e15.k + k_3) + b_across7_, b, params, _buffer_sizes);
            next_b7_0_ = _e282;
        }
    }
    while(true) {
        uint _e285 = number;
        if (_e285 >= count) {
            break;
        }
        {
            uint _e287 = stage;
            uint a_start = _e287 * 2304u;
            uint _e290 = stage;
            uint b_start = _e290 * 4608u;
            {
                uint at_2 = (a_start + (a_across0_ * 72u)) + (a_along0_ / 1u);
                half _e304 = next_a0_0_.x;
                tile_a.inner[at_2 + 0u] = _e304;
                half _e310 = next_a0_0_.y;
                tile_a.inner[at_2 + 1u] = _e310;
                half _e316 = next_a0_0_.z;
                tile_a.inner[at_2 + 2u] = _e316;
                half _e322 = next_a0_0_.w;
                tile_a.inner[at_2 + 3u] = _e322;
            }
            {
                uint at_3 = (a_start + (a_across1_ * 72u)) + (a_along1_ / 1u);
                half _e334 = next_a1_0_.x;
                tile_a.inner[at_3 + 0u] = _e334;
                half _e340 = next_a1_0_.y;
                tile_a.inner[at_3 + 1u] = _e340;
                half _e346 = next_a1_0_.z;
                tile_a.inner[at_3 + 2u] = _e346;
                half _e352 = next_a1_0_.w;
                tile_a.inner[at_3 + 3u] = _e352;
            }
            {
                uint at_4 = (a_start + (a_across2_ * 72u)) + (a_along2_ / 1u);
                half _e364 = next_a2_0_.x;
                tile_a.inner[at_4 + 0u] = _e364;
                half _e370 = next_a2_0_.y;
                tile_a.inner[at_4 + 1u] = _e370;
                half _e376 = next_a2_0_.z;
                tile_a.inner[at_4 + 2u] = _e376;
                half _e382 = next_a2_0_.w;
                tile_a.inner[at_4 + 3u] = _e382;
            }
            {
                uint at_5 = (a_start + (a_across3_ * 72u)) + (a_along3_ / 1u);
                half _e394 = next_a3_0_.x;
                tile_a.inner[at_5 + 0u] = _e394;
                half _e400 = next_a3_0_.y;
                tile_a.inner[at_5 + 1u] = _e400;
                half _e406 = next_a3_0_.z;
                tile_a.inner[at_5 + 2u] = _e406;
                half _e412 = next_a3_0_.w;
                tile_a.inner[at_5 + 3u] = _e412;
            }
            {
                uint at_6 = (b_start + (b_across0_ * 72u)) + (b_along0_ / 1u);
                half _e424 = next_b0_0_.x;
                tile_b.inner[at_6 + 0u] = _e424;
                half _e430 = next_b0_0_.y;
                tile_b.inner[at_6 + 1u] = _e430;
                half _e436 = next_b0_0_.z;
                tile_b.inner[at_6 + 2u] = _e436;
                half _e442 = next_b0_0_.w;
                tile_b.inner[at_6 + 3u] = _e442;
            }
            {
                uint at_7 = (b_start + (b_across1_ * 72u)) + (b_along1_ / 1u);
                half _e454 = next_b1_0_.x;
                tile_b.inner[at_7 + 0u] = _e454;
                half _e460 = next_b1_0_.y;
                tile_b.inner[at_7 + 1u] = _e460;
                half _e466 = next_b1_0_.z;
                tile_b.inner[at_7 + 2u] = _e466;
                half _e472 = next_b1_0_.w;
                tile_b.inner[at_7 + 3u] = _e472;
            }
            {
                uint at_8 = (b_start + (b_across2_ * 72u)) + (b_along2_ / 1u);
                half _e484 = next_b2_0_.x;
                tile_b.inner[at_8 + 0u] = _e484;
                half _e490 = next_b2_0_.y;
                tile_b.inner[at_8 + 1u] = _e490;
                half _e496 = next_b2_0_.z;
                tile_b.inner[at_8 + 2u] = _e496;
                half _e502 = next_b2_0_.w;
                tile_b.inner[at_8 + 3u] = _e502;
            }
            {
                uint at_9 = (b_start + (b_across3_ * 72u)) + (b_along3_ / 1u);
                half _e514 = next_b3_0_.x;
                tile_b.inner[at_9 + 0u] = _e514;
                half _e520 = next_b3_0_.y;
                tile_b.inner[at_9 + 1u] = _e520;
                half _e526 = next_b3_0_.z;
                tile_b.inner[at_9 + 2u] = _e526;
                half _e532 = next_b3_0_.w;
                tile_b.inner[at_9 + 3u] = _e532;
            }
            {
                uint at_10 = (b_start + (b_across4_ * 72u)) + (b_along4_ / 1u);
                half _e544 = next_b4_0_.x;
                tile_b.inner[at_10 + 0u] = _e544;
                half _e550 = next_b4_0_.y;
                tile_b.inner[at_10 + 1u] = _e550;
                half _e556 = next_b4_0_.z;
                tile_b.inner[at_10 + 2u] = _e556;
                half _e562 = next_b4_0_.w;
                tile_b.inner[at_10 + 3u] = _e562;
            }
            {
                uint at_11 = (b_start + (b_across5_ * 72u)) + (b_along5_ / 1u);
                half _e574 = next_b5_0_.x;
                tile_b.inner[at_11 + 0u] = _e574;
                half _e580 = next_b5_0_.y;
                tile_b.inner[at_11 + 1u] = _e580;
                half _e586 = next_b5_0_.z;
                tile_b.inner[at_11 + 2u] = _e586;
                half _e592 = next_b5_0_.w;
                tile_b.inner[at_11 + 3u] = _e592;
            }
            {
                uint at_12 = (b_start + (b_across6_ * 72u)) + (b_along6_ / 1u);
                half _e604 = next_b6_0_.x;
                tile_b.inner[at_12 + 0u] = _e604;
                half _e610 = next_b6_0_.y;
                tile_b.inner[at_12 + 1u] = _e610;
                half _e616 = next_b6_0_.z;
                tile_b.inner[at_12 + 2u] = _e616;
                half _e622 = next_b6_0_.w;
                tile_b.inner[at_12 + 3u] = _e622;
            }
            {
                uint at_13 = (b_start + (b_across7_ * 72u)) + (b_along7_ / 1u);
                half _e634 = next_b7_0_.x;
                tile_b.inner[at_13 + 0u] = _e634;
                half _e640 = next_b7_0_.y;
                tile_b.inner[at_13 + 1u] = _e640;
                half _e646 = next_b7_0_.z;
                tile_b.inner[at_13 + 2u] = _e646;
                half _e652 = next_b7_0_.w;
                tile_b.inner[at_13 + 3u] = _e652;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e653 = number;
            number = _e653 + 1u;
            {
                uint _e656 = number;
                uint k_4 = metal::min(_e656 + 0u, count - 1u) * 64u;
                metal::half4 _e670 = load_a(_e17.a, _e15.row + a_across0_, (_e15.k + k_4) + a_along0_, a, params, _buffer_sizes);
                next_a0_0_ = _e670;
                metal::half4 _e677 = load_a(_e17.a, _e15.row + a_across1_, (_e15.k + k_4) + a_along1_, a, params, _buffer_sizes);
                next_a1_0_ = _e677;
                metal::half4 _e684 = load_a(_e17.a, _e15.row + a_across2_, (_e15.k + k_4) + a_along2_, a, params, _buffer_sizes);
                next_a2_0_ = _e684;
                metal::half4 _e691 = load_a(_e17.a, _e15.row + a_across3_, (_e15.k + k_4) + a_along3_, a, params, _buffer_sizes);
                next_a3_0_ = _e691;
                metal::half4 _e698 = load_b(_e17.b, _e15.column + b_along0_, (_e15.k + k_4) + b_across0_, b, params, _buffer_sizes);
                next_b0_0_ = _e698;
                metal::half4 _e705 = load_b(_e17.b, _e15.column + b_along1_, (_e15.k + k_4) + b_across1_, b, params, _buffer_sizes);
                next_b1_0_ = _e705;
                metal::half4 _e712 = load_b(_e17.b, _e15.column + b_along2_, (_e15.k + k_4) + b_across2_, b, params, _buffer_sizes);
                next_b2_0_ = _e712;
                metal::half4 _e719 = load_b(_e17.b, _e15.column + b_along3_, (_e15.k + k_4) + b_across3_, b, params, _buffer_sizes);
                next_b3_0_ = _e719;
                metal::half4 _e726 = load_b(_e17.b, _e15.column + b_along4_, (_e15.k + k_4) + b_across4_, b, params, _buffer_sizes);
                next_b4_0_ = _e726;
                metal::half4 _e733 = load_b(_e17.b, _e15.column + b_along5_, (_e15.k + k_4) + b_across5_, b, params, _buffer_sizes);
                next_b5_0_ = _e733;
                metal::half4 _e740 = load_b(_e17.b, _e15.column + b_along6_, (_e15.k + k_4) + b_across6_, b, params, _buffer_sizes);
                next_b6_0_ = _e740;
                metal::half4 _e747 = load_b(_e17.b, _e15.column + b_along7_, (_e15.k + k_4) + b_across7_, b, params, _buffer_sizes);
                next_b7_0_ = _e747;
            }
            {
                uint at_a0_ = (a_start + ((team_row + 0u) * 72u)) + 0u;
                metal::simdgroup_half8x8 a0_ = NagaCooperativeLoad(&tile_a.inner[at_a0_], 72u, false);
                uint at_a1_ = (a_start + ((team_row + 8u) * 72u)) + 0u;
                metal::simdgroup_half8x8 a1_ = NagaCooperativeLoad(&tile_a.inner[at_a1_], 72u, false);
                uint at_b0_ = (b_start + 0u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_ = NagaCooperativeLoad(&tile_b.inner[at_b0_], 72u, false);
                metal::simdgroup_float8x8 _e779 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_, b0_, _e779);
                metal::simdgroup_float8x8 _e781 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_, b0_, _e781);
                uint at_b1_ = (b_start + 8u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_ = NagaCooperativeLoad(&tile_b.inner[at_b1_], 72u, false);
                metal::simdgroup_float8x8 _e792 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_, b1_, _e792);
                metal::simdgroup_float8x8 _e794 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_, b1_, _e794);
                uint at_b2_ = (b_start + 16u) + (team_column / 1u);
                metal::simdgroup_half8x8 b2_ = NagaCooperativeLoad(&tile_b.inner[at_b2_], 72u, false);
                metal::simdgroup_float8x8 _e805 = sum_0_2_;
                sum_0_2_ = NagaCooperativeMultiplyAdd(a0_, b2_, _e805);
                metal::simdgroup_float8x8 _e807 = sum_1_2_;
                sum_1_2_ = NagaCooperativeMultiplyAdd(a1_, b2_, _e807);
                uint at_b3_ = (b_start + 24u) + (team_column / 1u);
                metal::simdgroup_half8x8 b3_ = NagaCooperativeLoad(&tile_b.inner[at_b3_], 72u, false);
                metal::simdgroup_float8x8 _e818 = sum_0_3_;
                sum_0_3_ = NagaCooperativeMultiplyAdd(a0_, b3_, _e818);
                metal::simdgroup_float8x8 _e820 = sum_1_3_;
                sum_1_3_ = NagaCooperativeMultiplyAdd(a1_, b3_, _e820);
            }
            {
                uint at_a0_1 = (a_start + ((team_row + 0u) * 72u)) + 8u;
                metal::simdgroup_half8x8 a0_1 = NagaCooperativeLoad(&tile_a.inner[at_a0_1], 72u, false);
                uint at_a1_1 = (a_start + ((team_row + 8u) * 72u)) + 8u;
                metal::simdgroup_half8x8 a1_1 = NagaCooperativeLoad(&tile_a.inner[at_a1_1], 72u, false);
                uint at_b0_1 = (b_start + 576u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_1 = NagaCooperativeLoad(&tile_b.inner[at_b0_1], 72u, false);
                metal::simdgroup_float8x8 _e853 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_1, b0_1, _e853);
                metal::simdgroup_float8x8 _e855 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_1, b0_1, _e855);
                uint at_b1_1 = (b_start + 584u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_1 = NagaCooperativeLoad(&tile_b.inner[at_b1_1], 72u, false);
                metal::simdgroup_float8x8 _e866 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_1, b1_1, _e866);
                metal::simdgroup_float8x8 _e868 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_1, b1_1, _e868);
                uint at_b2_1 = (b_start + 592u) + (team_column / 1u);
                metal::simdgroup_half8x8 b2_1 = NagaCooperativeLoad(&tile_b.inner[at_b2_1], 72u, false);
                metal::simdgroup_float8x8 _e879 = sum_0_2_;
                sum_0_2_ = NagaCooperativeMultiplyAdd(a0_1, b2_1, _e879);
                metal::simdgroup_float8x8 _e881 = sum_1_2_;
                sum_1_2_ = NagaCooperativeMultiplyAdd(a1_1, b2_1, _e881);
                uint at_b3_1 = (b_start + 600u) + (team_column / 1u);
                metal::simdgroup_half8x8 b3_1 = NagaCooperativeLoad(&tile_b.inner[at_b3_1], 72u, false);
                metal::simdgroup_float8x8 _e892 = sum_0_3_;
                sum_0_3_ = NagaCooperativeMultiplyAdd(a0_1, b3_1, _e892);
                metal::simdgroup_float8x8 _e894 = sum_1_3_;
                sum_1_3_ = NagaCooperativeMultiplyAdd(a1_1, b3_1, _e894);
            }
            {
                uint at_a0_2 = (a_start + ((team_row + 0u) * 72u)) + 16u;
                metal::simdgroup_half8x8 a0_2 = NagaCooperativeLoad(&tile_a.inner[at_a0_2], 72u, false);
                uint at_a1_2 = (a_start + ((team_row + 8u) * 72u)) + 16u;
                metal::simdgroup_half8x8 a1_2 = NagaCooperativeLoad(&tile_a.inner[at_a1_2], 72u, false);
                uint at_b0_2 = (b_start + 1152u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_2 = NagaCooperativeLoad(&tile_b.inner[at_b0_2], 72u, false);
                metal::simdgroup_float8x8 _e927 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_2, b0_2, _e927);
                metal::simdgroup_float8x8 _e929 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_2, b0_2, _e929);
                uint at_b1_2 = (b_start + 1160u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_2 = NagaCooperativeLoad(&tile_b.inner[at_b1_2], 72u, false);
                metal::simdgroup_float8x8 _e940 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_2, b1_2, _e940);
                metal::simdgroup_float8x8 _e942 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_2, b1_2, _e942);
                uint at_b2_2 = (b_start + 1168u) + (team_column / 1u);
                metal::simdgroup_half8x8 b2_2 = NagaCooperativeLoad(&tile_b.inner[at_b2_2], 72u, false);
                metal::simdgroup_float8x8 _e953 = sum_0_2_;
                sum_0_2_ = NagaCooperativeMultiplyAdd(a0_2, b2_2, _e953);
                metal::simdgroup_float8x8 _e955 = sum_1_2_;
                sum_1_2_ = NagaCooperativeMultiplyAdd(a1_2, b2_2, _e955);
                uint at_b3_2 = (b_start + 1176u) + (team_column / 1u);
                metal::simdgroup_half8x8 b3_2 = NagaCooperativeLoad(&tile_b.inner[at_b3_2], 72u, false);
                metal::simdgroup_float8x8 _e966 = sum_0_3_;
                sum_0_3_ = NagaCooperativeMultiplyAdd(a0_2, b3_2, _e966);
                metal::simdgroup_float8x8 _e968 = sum_1_3_;
                sum_1_3_ = NagaCooperativeMultiplyAdd(a1_2, b3_2, _e968);
            }
            {
                uint at_a0_3 = (a_start + ((team_row + 0u) * 72u)) + 24u;
                metal::simdgroup_half8x8 a0_3 = NagaCooperativeLoad(&tile_a.inner[at_a0_3], 72u, false);
                uint at_a1_3 = (a_start + ((team_row + 8u) * 72u)) + 24u;
                metal::simdgroup_half8x8 a1_3 = NagaCooperativeLoad(&tile_a.inner[at_a1_3], 72u, false);
                uint at_b0_3 = (b_start + 1728u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_3 = NagaCooperativeLoad(&tile_b.inner[at_b0_3], 72u, false);
                metal::simdgroup_float8x8 _e1001 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_3, b0_3, _e1001);
                metal::simdgroup_float8x8 _e1003 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_3, b0_3, _e1003);
                uint at_b1_3 = (b_start + 1736u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_3 = NagaCooperativeLoad(&tile_b.inner[at_b1_3], 72u, false);
                metal::simdgroup_float8x8 _e1014 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_3, b1_3, _e1014);
                metal::simdgroup_float8x8 _e1016 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_3, b1_3, _e1016);
                uint at_b2_3 = (b_start + 1744u) + (team_column / 1u);
                metal::simdgroup_half8x8 b2_3 = NagaCooperativeLoad(&tile_b.inner[at_b2_3], 72u, false);
                metal::simdgroup_float8x8 _e1027 = sum_0_2_;
                sum_0_2_ = NagaCooperativeMultiplyAdd(a0_3, b2_3, _e1027);
                metal::simdgroup_float8x8 _e1029 = sum_1_2_;
                sum_1_2_ = NagaCooperativeMultiplyAdd(a1_3, b2_3, _e1029);
                uint at_b3_3 = (b_start + 1752u) + (team_column / 1u);
                metal::simdgroup_half8x8 b3_3 = NagaCooperativeLoad(&tile_b.inner[at_b3_3], 72u, false);
                metal::simdgroup_float8x8 _e1040 = sum_0_3_;
                sum_0_3_ = NagaCooperativeMultiplyAdd(a0_3, b3_3, _e1040);
                metal::simdgroup_float8x8 _e1042 = sum_1_3_;
                sum_1_3_ = NagaCooperativeMultiplyAdd(a1_3, b3_3, _e1042);
            }
            {
                uint at_a0_4 = (a_start + ((team_row + 0u) * 72u)) + 32u;
                metal::simdgroup_half8x8 a0_4 = NagaCooperativeLoad(&tile_a.inner[at_a0_4], 72u, false);
                uint at_a1_4 = (a_start + ((team_row + 8u) * 72u)) + 32u;
                metal::simdgroup_half8x8 a1_4 = NagaCooperativeLoad(&tile_a.inner[at_a1_4], 72u, false);
                uint at_b0_4 = (b_start + 2304u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_4 = NagaCooperativeLoad(&tile_b.inner[at_b0_4], 72u, false);
                metal::simdgroup_float8x8 _e1075 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_4, b0_4, _e1075);
                metal::simdgroup_float8x8 _e1077 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_4, b0_4, _e1077);
                uint at_b1_4 = (b_start + 2312u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_4 = NagaCooperativeLoad(&tile_b.inner[at_b1_4], 72u, false);
                metal::simdgroup_float8x8 _e1088 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_4, b1_4, _e1088);
                metal::simdgroup_float8x8 _e1090 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_4, b1_4, _e1090);
                uint at_b2_4 = (b_start + 2320u) + (team_column / 1u);
                metal::simdgroup_half8x8 b2_4 = NagaCooperativeLoad(&tile_b.inner[at_b2_4], 72u, false);
                metal::simdgroup_float8x8 _e1101 = sum_0_2_;
                sum_0_2_ = NagaCooperativeMultiplyAdd(a0_4, b2_4, _e1101);
                metal::simdgroup_float8x8 _e1103 = sum_1_2_;
                sum_1_2_ = NagaCooperativeMultiplyAdd(a1_4, b2_4, _e1103);
                uint at_b3_4 = (b_start + 2328u) + (team_column / 1u);
                metal::simdgroup_half8x8 b3_4 = NagaCooperativeLoad(&tile_b.inner[at_b3_4], 72u, false);
                metal::simdgroup_float8x8 _e1114 = sum_0_3_;
                sum_0_3_ = NagaCooperativeMultiplyAdd(a0_4, b3_4, _e1114);
                metal::simdgroup_float8x8 _e1116 = sum_1_3_;
                sum_1_3_ = NagaCooperativeMultiplyAdd(a1_4, b3_4, _e1116);
            }
            {
                uint at_a0_5 = (a_start + ((team_row + 0u) * 72u)) + 40u;
                metal::simdgroup_half8x8 a0_5 = NagaCooperativeLoad(&tile_a.inner[at_a0_5], 72u, false);
                uint at_a1_5 = (a_start + ((team_row + 8u) * 72u)) + 40u;
                metal::simdgroup_half8x8 a1_5 = NagaCooperativeLoad(&tile_a.inner[at_a1_5], 72u, false);
                uint at_b0_5 = (b_start + 2880u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_5 = NagaCooperativeLoad(&tile_b.inner[at_b0_5], 72u, false);
                metal::simdgroup_float8x8 _e1149 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_5, b0_5, _e1149);
                metal::simdgroup_float8x8 _e1151 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_5, b0_5, _e1151);
                uint at_b1_5 = (b_start + 2888u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_5 = NagaCooperativeLoad(&tile_b.inner[at_b1_5], 72u, false);
                metal::simdgroup_float8x8 _e1162 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_5, b1_5, _e1162);
                metal::simdgroup_float8x8 _e1164 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_5, b1_5, _e1164);
                uint at_b2_5 = (b_start + 2896u) + (team_column / 1u);
                metal::simdgroup_half8x8 b2_5 = NagaCooperativeLoad(&tile_b.inner[at_b2_5], 72u, false);
                metal::simdgroup_float8x8 _e1175 = sum_0_2_;
                sum_0_2_ = NagaCooperativeMultiplyAdd(a0_5, b2_5, _e1175);
                metal::simdgroup_float8x8 _e1177 = sum_1_2_;
                sum_1_2_ = NagaCooperativeMultiplyAdd(a1_5, b2_5, _e1177);
                uint at_b3_5 = (b_start + 2904u) + (team_column / 1u);
                metal::simdgroup_half8x8 b3_5 = NagaCooperativeLoad(&tile_b.inner[at_b3_5], 72u, false);
                metal::simdgroup_float8x8 _e1188 = sum_0_3_;
                sum_0_3_ = NagaCooperativeMultiplyAdd(a0_5, b3_5, _e1188);
                metal::simdgroup_float8x8 _e1190 = sum_1_3_;
                sum_1_3_ = NagaCooperativeMultiplyAdd(a1_5, b3_5, _e1190);
            }
            {
                uint at_a0_6 = (a_start + ((team_row + 0u) * 72u)) + 48u;
                metal::simdgroup_half8x8 a0_6 = NagaCooperativeLoad(&tile_a.inner[at_a0_6], 72u, false);
                uint at_a1_6 = (a_start + ((team_row + 8u) * 72u)) + 48u;
                metal::simdgroup_half8x8 a1_6 = NagaCooperativeLoad(&tile_a.inner[at_a1_6], 72u, false);
                uint at_b0_6 = (b_start + 3456u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_6 = NagaCooperativeLoad(&tile_b.inner[at_b0_6], 72u, false);
                metal::simdgroup_float8x8 _e1223 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_6, b0_6, _e1223);
                metal::simdgroup_float8x8 _e1225 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_6, b0_6, _e1225);
                uint at_b1_6 = (b_start + 3464u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_6 = NagaCooperativeLoad(&tile_b.inner[at_b1_6], 72u, false);
                metal::simdgroup_float8x8 _e1236 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_6, b1_6, _e1236);
                metal::simdgroup_float8x8 _e1238 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_6, b1_6, _e1238);
                uint at_b2_6 = (b_start + 3472u) + (team_column / 1u);
                metal::simdgroup_half8x8 b2_6 = NagaCooperativeLoad(&tile_b.inner[at_b2_6], 72u, false);
                metal::simdgroup_float8x8 _e1249 = sum_0_2_;
                sum_0_2_ = NagaCooperativeMultiplyAdd(a0_6, b2_6, _e1249);
                metal::simdgroup_float8x8 _e1251 = sum_1_2_;
                sum_1_2_ = NagaCooperativeMultiplyAdd(a1_6, b2_6, _e1251);
                uint at_b3_6 = (b_start + 3480u) + (team_column / 1u);
                metal::simdgroup_half8x8 b3_6 = NagaCooperativeLoad(&tile_b.inner[at_b3_6], 72u, false);
                metal::simdgroup_float8x8 _e1262 = sum_0_3_;
                sum_0_3_ = NagaCooperativeMultiplyAdd(a0_6, b3_6, _e1262);
                metal::simdgroup_float8x8 _e1264 = sum_1_3_;
                sum_1_3_ = NagaCooperativeMultiplyAdd(a1_6, b3_6, _e1264);
            }
            {
                uint at_a0_7 = (a_start + ((team_row + 0u) * 72u)) + 56u;
                metal::simdgroup_half8x8 a0_7 = NagaCooperativeLoad(&tile_a.inner[at_a0_7], 72u, false);
                uint at_a1_7 = (a_start + ((team_row + 8u) * 72u)) + 56u;
                metal::simdgroup_half8x8 a1_7 = NagaCooperativeLoad(&tile_a.inner[at_a1_7], 72u, false);
                uint at_b0_7 = (b_start + 4032u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_7 = NagaCooperativeLoad(&tile_b.inner[at_b0_7], 72u, false);
                metal::simdgroup_float8x8 _e1297 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_7, b0_7, _e1297);
                metal::simdgroup_float8x8 _e1299 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_7, b0_7, _e1299);
                uint at_b1_7 = (b_start + 4040u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_7 = NagaCooperativeLoad(&tile_b.inner[at_b1_7], 72u, false);
                metal::simdgroup_float8x8 _e1310 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_7, b1_7, _e1310);
                metal::simdgroup_float8x8 _e1312 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_7, b1_7, _e1312);
                uint at_b2_7 = (b_start + 4048u) + (team_column / 1u);
                metal::simdgroup_half8x8 b2_7 = NagaCooperativeLoad(&tile_b.inner[at_b2_7], 72u, false);
                metal::simdgroup_float8x8 _e1323 = sum_0_2_;
                sum_0_2_ = NagaCooperativeMultiplyAdd(a0_7, b2_7, _e1323);
                metal::simdgroup_float8x8 _e1325 = sum_1_2_;
                sum_1_2_ = NagaCooperativeMultiplyAdd(a1_7, b2_7, _e1325);
                uint at_b3_7 = (b_start + 4056u) + (team_column / 1u);
                metal::simdgroup_half8x8 b3_7 = NagaCooperativeLoad(&tile_b.inner[at_b3_7], 72u, false);
                metal::simdgroup_float8x8 _e1336 = sum_0_3_;
                sum_0_3_ = NagaCooperativeMultiplyAdd(a0_7, b3_7, _e1336);
                metal::simdgroup_float8x8 _e1338 = sum_1_3_;
                sum_1_3_ = NagaCooperativeMultiplyAdd(a1_7, b3_7, _e1338);
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    uint own = team * 64u;
    uint to_0_0_ = own + 0u;
    metal::simdgroup_float8x8 _e1344 = sum_0_0_;
    simdgroup_store(_e1344, &results.inner[to_0_0_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_ = lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e1394 = quad_;
            quad_ = _e1394 + lanes;
        }
        loop_init = false;
        uint _e1349 = quad_;
        if (_e1349 < 16u) {
        } else {
            break;
        }
        {
            uint _e1352 = quad_;
            uint at_14 = own + (_e1352 * 4u);
            uint _e1360 = quad_;
            uint row_2 = ((_e15.row + team_row) + 0u) + (_e1360 / 2u);
            uint _e1368 = quad_;
            uint column_1 = ((_e15.column + team_column) + 0u) + ((_e1368 % 2u) * 4u);
            float _e1377 = results.inner[at_14];
            float _e1382 = results.inner[at_14 + 1u];
            float _e1387 = results.inner[at_14 + 2u];
            float _e1392 = results.inner[at_14 + 3u];
            put(_e15.part, _e17, row_2, column_1, metal::float4(_e1377, _e1382, _e1387, _e1392), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_0_1_ = own + 0u;
    metal::simdgroup_float8x8 _e1398 = sum_0_1_;
    simdgroup_store(_e1398, &results.inner[to_0_1_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_1 = lane;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e1448 = quad_1;
            quad_1 = _e1448 + lanes;
        }
        loop_init_1 = false;
        uint _e1403 = quad_1;
        if (_e1403 < 16u) {
        } else {
            break;
        }
        {
            uint _e1406 = quad_1;
            uint at_15 = own + (_e1406 * 4u);
            uint _e1414 = quad_1;
            uint row_3 = ((_e15.row + team_row) + 0u) + (_e1414 / 2u);
            uint _e1422 = quad_1;
            uint column_2 = ((_e15.column + team_column) + 8u) + ((_e1422 % 2u) * 4u);
            float _e1431 = results.inner[at_15];
            float _e1436 = results.inner[at_15 + 1u];
            float _e1441 = results.inner[at_15 + 2u];
            float _e1446 = results.inner[at_15 + 3u];
            put(_e15.part, _e17, row_3, column_2, metal::float4(_e1431, _e1436, _e1441, _e1446), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_0_2_ = own + 0u;
    metal::simdgroup_float8x8 _e1452 = sum_0_2_;
    simdgroup_store(_e1452, &results.inner[to_0_2_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_2 = lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e1502 = quad_2;
            quad_2 = _e1502 + lanes;
        }
        loop_init_2 = false;
        uint _e1457 = quad_2;
        if (_e1457 < 16u) {
        } else {
            break;
        }
        {
            uint _e1460 = quad_2;
            uint at_16 = own + (_e1460 * 4u);
            uint _e1468 = quad_2;
            uint row_4 = ((_e15.row + team_row) + 0u) + (_e1468 / 2u);
            uint _e1476 = quad_2;
            uint column_3 = ((_e15.column + team_column) + 16u) + ((_e1476 % 2u) * 4u);
            float _e1485 = results.inner[at_16];
            float _e1490 = results.inner[at_16 + 1u];
            float _e1495 = results.inner[at_16 + 2u];
            float _e1500 = results.inner[at_16 + 3u];
            put(_e15.part, _e17, row_4, column_3, metal::float4(_e1485, _e1490, _e1495, _e1500), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_0_3_ = own + 0u;
    metal::simdgroup_float8x8 _e1506 = sum_0_3_;
    simdgroup_store(_e1506, &results.inner[to_0_3_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_3 = lane;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e1556 = quad_3;
            quad_3 = _e1556 + lanes;
        }
        loop_init_3 = false;
        uint _e1511 = quad_3;
        if (_e1511 < 16u) {
        } else {
            break;
        }
        {
            uint _e1514 = quad_3;
            uint at_17 = own + (_e1514 * 4u);
            uint _e1522 = quad_3;
            uint row_5 = ((_e15.row + team_row) + 0u) + (_e1522 / 2u);
            uint _e1530 = quad_3;
            uint column_4 = ((_e15.column + team_column) + 24u) + ((_e1530 % 2u) * 4u);
            float _e1539 = results.inner[at_17];
            float _e1544 = results.inner[at_17 + 1u];
            float _e1549 = results.inner[at_17 + 2u];
            float _e1554 = results.inner[at_17 + 3u];
            put(_e15.part, _e17, row_5, column_4, metal::float4(_e1539, _e1544, _e1549, _e1554), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_0_ = own + 0u;
    metal::simdgroup_float8x8 _e1560 = sum_1_0_;
    simdgroup_store(_e1560, &results.inner[to_1_0_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_4 = lane;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e1610 = quad_4;
            quad_4 = _e1610 + lanes;
        }
        loop_init_4 = false;
        uint _e1565 = quad_4;
        if (_e1565 < 16u) {
        } else {
            break;
        }
        {
            uint _e1568 = quad_4;
            uint at_18 = own + (_e1568 * 4u);
            uint _e1576 = quad_4;
            uint row_6 = ((_e15.row + team_row) + 8u) + (_e1576 / 2u);
            uint _e1584 = quad_4;
            uint column_5 = ((_e15.column + team_column) + 0u) + ((_e1584 % 2u) * 4u);
            float _e1593 = results.inner[at_18];
            float _e1598 = results.inner[at_18 + 1u];
            float _e1603 = results.inner[at_18 + 2u];
            float _e1608 = results.inner[at_18 + 3u];
            put(_e15.part, _e17, row_6, column_5, metal::float4(_e1593, _e1598, _e1603, _e1608), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_1_ = own + 0u;
    metal::simdgroup_float8x8 _e1614 = sum_1_1_;
    simdgroup_store(_e1614, &results.inner[to_1_1_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_5 = lane;
    bool loop_init_5 = true;
    while(true) {
        if (!loop_init_5) {
            uint _e1664 = quad_5;
            quad_5 = _e1664 + lanes;
        }
        loop_init_5 = false;
        uint _e1619 = quad_5;
        if (_e1619 < 16u) {
        } else {
            break;
        }
        {
            uint _e1622 = quad_5;
            uint at_19 = own + (_e1622 * 4u);
            uint _e1630 = quad_5;
            uint row_7 = ((_e15.row + team_row) + 8u) + (_e1630 / 2u);
            uint _e1638 = quad_5;
            uint column_6 = ((_e15.column + team_column) + 8u) + ((_e1638 % 2u) * 4u);
            float _e1647 = results.inner[at_19];
            float _e1652 = results.inner[at_19 + 1u];
            float _e1657 = results.inner[at_19 + 2u];
            float _e1662 = results.inner[at_19 + 3u];
            put(_e15.part, _e17, row_7, column_6, metal::float4(_e1647, _e1652, _e1657, _e1662), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_2_ = own + 0u;
    metal::simdgroup_float8x8 _e1668 = sum_1_2_;
    simdgroup_store(_e1668, &results.inner[to_1_2_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_6 = lane;
    bool loop_init_6 = true;
    while(true) {
        if (!loop_init_6) {
            uint _e1718 = quad_6;
            quad_6 = _e1718 + lanes;
        }
        loop_init_6 = false;
        uint _e1673 = quad_6;
        if (_e1673 < 16u) {
        } else {
            break;
        }
        {
            uint _e1676 = quad_6;
            uint at_20 = own + (_e1676 * 4u);
            uint _e1684 = quad_6;
            uint row_8 = ((_e15.row + team_row) + 8u) + (_e1684 / 2u);
            uint _e1692 = quad_6;
            uint column_7 = ((_e15.column + team_column) + 16u) + ((_e1692 % 2u) * 4u);
            float _e1701 = results.inner[at_20];
            float _e1706 = results.inner[at_20 + 1u];
            float _e1711 = results.inner[at_20 + 2u];
            float _e1716 = results.inner[at_20 + 3u];
            put(_e15.part, _e17, row_8, column_7, metal::float4(_e1701, _e1706, _e1711, _e1716), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_3_ = own + 0u;
    metal::simdgroup_float8x8 _e1722 = sum_1_3_;
    simdgroup_store(_e1722, &results.inner[to_1_3_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_7 = lane;
    bool loop_init_7 = true;
    while(true) {
        if (!loop_init_7) {
            uint _e1772 = quad_7;
            quad_7 = _e1772 + lanes;
        }
        loop_init_7 = false;
        uint _e1727 = quad_7;
        if (_e1727 < 16u) {
        } else {
            break;
        }
        {
            uint _e1730 = quad_7;
            uint at_21 = own + (_e1730 * 4u);
            uint _e1738 = quad_7;
            uint row_9 = ((_e15.row + team_row) + 8u) + (_e1738 / 2u);
            uint _e1746 = quad_7;
            uint column_8 = ((_e15.column + team_column) + 24u) + ((_e1746 % 2u) * 4u);
            float _e1755 = results.inner[at_21];
            float _e1760 = results.inner[at_21 + 1u];
            float _e1765 = results.inner[at_21 + 2u];
            float _e1770 = results.inner[at_21 + 3u];
            put(_e15.part, _e17, row_9, column_8, metal::float4(_e1755, _e1760, _e1765, _e1770), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
