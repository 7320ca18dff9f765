// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
};

typedef metal::float4 type_2[1];
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
struct type_7 {
    half inner[2304];
};
struct type_8 {
    half inner[9216];
};
struct type_9 {
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
    uint row_4 = metal::min(outer, _e5 - 1u);
    uint _e12 = params.a_outer;
    metal::float4 _e19 = a[((start + (row_4 * _e12)) + k) >> 2u];
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
    metal::float4 _e21 = b[((start_1 + (k_1 * _e14)) + columns) >> 2u];
    return static_cast<metal::half4>(_e21);
}

metal::float4 activate(
    metal::float4 v
) {
    return v;
}

uint place(
    Starts base,
    uint row,
    uint column,
    constant Params& params
) {
    uint _e6 = params.n;
    return (base.out + (row * _e6)) + column;
}

metal::float4 finish(
    metal::float4 sums,
    constant Params& params
) {
    metal::float4 v_1 = {};
    float _e3 = params.alpha;
    v_1 = sums * _e3;
    metal::float4 _e6 = v_1;
    metal::float4 _e7 = activate(_e6);
    return _e7;
}

metal::float4 settle(
    Starts base_1,
    uint row_1,
    uint column_1,
    metal::float4 sums_1,
    constant Params& params
) {
    metal::float4 _e4 = finish(sums_1, params);
    return _e4;
}

void keep(
    uint part,
    Starts base_2,
    uint row_2,
    uint column_2,
    metal::float4 v_2,
    device type_2& out,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local = {};
    uint _e7 = params.m;
    if (!((row_2 >= _e7))) {
        uint _e14 = params.n;
        local = column_2 >= _e14;
    } else {
        local = true;
    }
    bool _e17 = local;
    if (_e17) {
        return;
    }
    uint _e18 = place(base_2, row_2, column_2, params);
    out[_e18 >> 2u] = static_cast<metal::float4>(v_2);
    return;
}

void put(
    uint part_1,
    Starts base_3,
    uint row_3,
    uint column_3,
    metal::float4 sums_2,
    device type_2& out,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_1 = {};
    uint _e7 = params.m;
    if (!((row_3 >= _e7))) {
        uint _e14 = params.n;
        local_1 = column_3 >= _e14;
    } else {
        local_1 = true;
    }
    bool _e17 = local_1;
    if (_e17) {
        return;
    }
    metal::float4 _e18 = settle(base_3, row_3, column_3, sums_2, params);
    keep(part_1, base_3, row_3, column_3, _e18, out, params, _buffer_sizes);
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
    uint at = tile % in_band;
    uint _e35 = params.share;
    uint k_2 = share * _e35;
    uint _e46 = params.share;
    uint _e50 = params.k;
    uint _e54 = params.products;
    return Work {(first + (at % rows)) * 16u, (at / rows) * 64u, k_2, metal::min(k_2 + _e46, _e50), product_1, (share * _e54) + product_1};
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
, device type_2 const& a [[buffer(0)]]
, device type_2 const& b [[buffer(1)]]
, device type_2& out [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, threadgroup type_7& tile_a
, threadgroup type_8& tile_b
, threadgroup type_9& results
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    metal::half4 next_a0_0_ = metal::half4 {};
    metal::half4 next_a1_0_ = metal::half4 {};
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
    metal::simdgroup_float8x8 sum_1_0_ = {};
    metal::simdgroup_float8x8 sum_1_1_ = {};
    uint stage = 0u;
    uint number = 0u;
    uint id_1 = group.x + (group.y * groups.x);
    uint _e11 = params.total;
    if (id_1 >= _e11) {
        return;
    }
    Work _e13 = work(id_1, params);
    Starts _e15 = starts(_e13.product, params);
    uint team = metal::min(subgroup, 3u);
    uint team_row = (team / 4u) * 16u;
    uint team_column = (team % 4u) * 16u;
    uint count = ((metal::max(_e13.k_end, _e13.k) - _e13.k) + 63u) / 64u;
    uint a_along0_ = ((thread_ + 0u) % 16u) * 4u;
    uint a_across0_ = (thread_ + 0u) / 16u;
    uint a_along1_ = ((thread_ + 128u) % 16u) * 4u;
    uint a_across1_ = (thread_ + 128u) / 16u;
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
            metal::half4 _e175 = load_a(_e15.a, _e13.row + a_across0_, (_e13.k + k_3) + a_along0_, a, params, _buffer_sizes);
            next_a0_0_ = _e175;
            metal::half4 _e182 = load_a(_e15.a, _e13.row + a_across1_, (_e13.k + k_3) + a_along1_, a, params, _buffer_sizes);
            next_a1_0_ = _e182;
            metal::half4 _e189 = load_b(_e15.b, _e13.column + b_along0_, (_e13.k + k_3) + b_across0_, b, params, _buffer_sizes);
            next_b0_0_ = _e189;
            metal::half4 _e196 = load_b(_e15.b, _e13.column + b_along1_, (_e13.k + k_3) + b_across1_, b, params, _buffer_sizes);
            next_b1_0_ = _e196;
            metal::half4 _e203 = load_b(_e15.b, _e13.column + b_along2_, (_e13.k + k_3) + b_across2_, b, params, _buffer_sizes);
            next_b2_0_ = _e203;
            metal::half4 _e210 = load_b(_e15.b, _e13.column + b_along3_, (_e13.k + k_3) + b_across3_, b, params, _buffer_sizes);
            next_b3_0_ = _e210;
            metal::half4 _e217 = load_b(_e15.b, _e13.column + b_along4_, (_e13.k + k_3) + b_across4_, b, params, _buffer_sizes);
            next_b4_0_ = _e217;
            metal::half4 _e224 = load_b(_e15.b, _e13.column + b_along5_, (_e13.k + k_3) + b_across5_, b, params, _buffer_sizes);
            next_b5_0_ = _e224;
            metal::half4 _e231 = load_b(_e15.b, _e13.column + b_along6_, (_e13.k + k_3) + b_across6_, b, params, _buffer_sizes);
            next_b6_0_ = _e231;
            metal::half4 _e238 = load_b(_e15.b, _e13.column + b_along7_, (_e13.k + k_3) + b_across7_, b, params, _buffer_sizes);
            next_b7_0_ = _e238;
        }
    }
    while(true) {
        uint _e241 = number;
        if (_e241 >= count) {
            break;
        }
        {
            uint _e243 = stage;
            uint a_start = _e243 * 1152u;
            uint _e246 = stage;
            uint b_start = _e246 * 4608u;
            {
                uint at_1 = (a_start + (a_across0_ * 72u)) + (a_along0_ / 1u);
                half _e260 = next_a0_0_.x;
                tile_a.inner[at_1 + 0u] = _e260;
                half _e266 = next_a0_0_.y;
                tile_a.inner[at_1 + 1u] = _e266;
                half _e272 = next_a0_0_.z;
                tile_a.inner[at_1 + 2u] = _e272;
                half _e278 = next_a0_0_.w;
                tile_a.inner[at_1 + 3u] = _e278;
            }
            {
                uint at_2 = (a_start + (a_across1_ * 72u)) + (a_along1_ / 1u);
                half _e290 = next_a1_0_.x;
                tile_a.inner[at_2 + 0u] = _e290;
                half _e296 = next_a1_0_.y;
                tile_a.inner[at_2 + 1u] = _e296;
                half _e302 = next_a1_0_.z;
                tile_a.inner[at_2 + 2u] = _e302;
                half _e308 = next_a1_0_.w;
                tile_a.inner[at_2 + 3u] = _e308;
            }
            {
                uint at_3 = (b_start + (b_across0_ * 72u)) + (b_along0_ / 1u);
                half _e320 = next_b0_0_.x;
                tile_b.inner[at_3 + 0u] = _e320;
                half _e326 = next_b0_0_.y;
                tile_b.inner[at_3 + 1u] = _e326;
                half _e332 = next_b0_0_.z;
                tile_b.inner[at_3 + 2u] = _e332;
                half _e338 = next_b0_0_.w;
                tile_b.inner[at_3 + 3u] = _e338;
            }
            {
                uint at_4 = (b_start + (b_across1_ * 72u)) + (b_along1_ / 1u);
                half _e350 = next_b1_0_.x;
                tile_b.inner[at_4 + 0u] = _e350;
                half _e356 = next_b1_0_.y;
                tile_b.inner[at_4 + 1u] = _e356;
                half _e362 = next_b1_0_.z;
                tile_b.inner[at_4 + 2u] = _e362;
                half _e368 = next_b1_0_.w;
                tile_b.inner[at_4 + 3u] = _e368;
            }
            {
                uint at_5 = (b_start + (b_across2_ * 72u)) + (b_along2_ / 1u);
                half _e380 = next_b2_0_.x;
                tile_b.inner[at_5 + 0u] = _e380;
                half _e386 = next_b2_0_.y;
                tile_b.inner[at_5 + 1u] = _e386;
                half _e392 = next_b2_0_.z;
                tile_b.inner[at_5 + 2u] = _e392;
                half _e398 = next_b2_0_.w;
                tile_b.inner[at_5 + 3u] = _e398;
            }
            {
                uint at_6 = (b_start + (b_across3_ * 72u)) + (b_along3_ / 1u);
                half _e410 = next_b3_0_.x;
                tile_b.inner[at_6 + 0u] = _e410;
                half _e416 = next_b3_0_.y;
                tile_b.inner[at_6 + 1u] = _e416;
                half _e422 = next_b3_0_.z;
                tile_b.inner[at_6 + 2u] = _e422;
                half _e428 = next_b3_0_.w;
                tile_b.inner[at_6 + 3u] = _e428;
            }
            {
                uint at_7 = (b_start + (b_across4_ * 72u)) + (b_along4_ / 1u);
                half _e440 = next_b4_0_.x;
                tile_b.inner[at_7 + 0u] = _e440;
                half _e446 = next_b4_0_.y;
                tile_b.inner[at_7 + 1u] = _e446;
                half _e452 = next_b4_0_.z;
                tile_b.inner[at_7 + 2u] = _e452;
                half _e458 = next_b4_0_.w;
                tile_b.inner[at_7 + 3u] = _e458;
            }
            {
                uint at_8 = (b_start + (b_across5_ * 72u)) + (b_along5_ / 1u);
                half _e470 = next_b5_0_.x;
                tile_b.inner[at_8 + 0u] = _e470;
                half _e476 = next_b5_0_.y;
                tile_b.inner[at_8 + 1u] = _e476;
                half _e482 = next_b5_0_.z;
                tile_b.inner[at_8 + 2u] = _e482;
                half _e488 = next_b5_0_.w;
                tile_b.inner[at_8 + 3u] = _e488;
            }
            {
                uint at_9 = (b_start + (b_across6_ * 72u)) + (b_along6_ / 1u);
                half _e500 = next_b6_0_.x;
                tile_b.inner[at_9 + 0u] = _e500;
                half _e506 = next_b6_0_.y;
                tile_b.inner[at_9 + 1u] = _e506;
                half _e512 = next_b6_0_.z;
                tile_b.inner[at_9 + 2u] = _e512;
                half _e518 = next_b6_0_.w;
                tile_b.inner[at_9 + 3u] = _e518;
            }
            {
                uint at_10 = (b_start + (b_across7_ * 72u)) + (b_along7_ / 1u);
                half _e530 = next_b7_0_.x;
                tile_b.inner[at_10 + 0u] = _e530;
                half _e536 = next_b7_0_.y;
                tile_b.inner[at_10 + 1u] = _e536;
                half _e542 = next_b7_0_.z;
                tile_b.inner[at_10 + 2u] = _e542;
                half _e548 = next_b7_0_.w;
                tile_b.inner[at_10 + 3u] = _e548;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e549 = number;
            number = _e549 + 1u;
            {
                uint _e552 = number;
                uint k_4 = metal::min(_e552 + 0u, count - 1u) * 64u;
                metal::half4 _e566 = load_a(_e15.a, _e13.row + a_across0_, (_e13.k + k_4) + a_along0_, a, params, _buffer_sizes);
                next_a0_0_ = _e566;
                metal::half4 _e573 = load_a(_e15.a, _e13.row + a_across1_, (_e13.k + k_4) + a_along1_, a, params, _buffer_sizes);
                next_a1_0_ = _e573;
                metal::half4 _e580 = load_b(_e15.b, _e13.column + b_along0_, (_e13.k + k_4) + b_across0_, b, params, _buffer_sizes);
                next_b0_0_ = _e580;
                metal::half4 _e587 = load_b(_e15.b, _e13.column + b_along1_, (_e13.k + k_4) + b_across1_, b, params, _buffer_sizes);
                next_b1_0_ = _e587;
                metal::half4 _e594 = load_b(_e15.b, _e13.column + b_along2_, (_e13.k + k_4) + b_across2_, b, params, _buffer_sizes);
                next_b2_0_ = _e594;
                metal::half4 _e601 = load_b(_e15.b, _e13.column + b_along3_, (_e13.k + k_4) + b_across3_, b, params, _buffer_sizes);
                next_b3_0_ = _e601;
                metal::half4 _e608 = load_b(_e15.b, _e13.column + b_along4_, (_e13.k + k_4) + b_across4_, b, params, _buffer_sizes);
                next_b4_0_ = _e608;
                metal::half4 _e615 = load_b(_e15.b, _e13.column + b_along5_, (_e13.k + k_4) + b_across5_, b, params, _buffer_sizes);
                next_b5_0_ = _e615;
                metal::half4 _e622 = load_b(_e15.b, _e13.column + b_along6_, (_e13.k + k_4) + b_across6_, b, params, _buffer_sizes);
                next_b6_0_ = _e622;
                metal::half4 _e629 = load_b(_e15.b, _e13.column + b_along7_, (_e13.k + k_4) + b_across7_, b, params, _buffer_sizes);
                next_b7_0_ = _e629;
            }
            {
                uint at_a0_ = (a_start + ((team_row + 0u) * 72u)) + 0u;
                metal::simdgroup_half8x8 a0_ = NagaCooperativeLoad(&tile_a.inner[at_a0_], 72u, false);
                uint at_a1_ = (a_start + ((team_row + 8u) * 72u)) + 0u;
                metal::simdgroup_half8x8 a1_ = NagaCooperativeLoad(&tile_a.inner[at_a1_], 72u, false);
                uint at_b0_ = (b_start + 0u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_ = NagaCooperativeLoad(&tile_b.inner[at_b0_], 72u, false);
                metal::simdgroup_float8x8 _e661 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_, b0_, _e661);
                metal::simdgroup_float8x8 _e663 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_, b0_, _e663);
                uint at_b1_ = (b_start + 8u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_ = NagaCooperativeLoad(&tile_b.inner[at_b1_], 72u, false);
                metal::simdgroup_float8x8 _e674 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_, b1_, _e674);
                metal::simdgroup_float8x8 _e676 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_, b1_, _e676);
            }
            {
                uint at_a0_1 = (a_start + ((team_row + 0u) * 72u)) + 8u;
                metal::simdgroup_half8x8 a0_1 = NagaCooperativeLoad(&tile_a.inner[at_a0_1], 72u, false);
                uint at_a1_1 = (a_start + ((team_row + 8u) * 72u)) + 8u;
                metal::simdgroup_half8x8 a1_1 = NagaCooperativeLoad(&tile_a.inner[at_a1_1], 72u, false);
                uint at_b0_1 = (b_start + 576u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_1 = NagaCooperativeLoad(&tile_b.inner[at_b0_1], 72u, false);
                metal::simdgroup_float8x8 _e709 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_1, b0_1, _e709);
                metal::simdgroup_float8x8 _e711 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_1, b0_1, _e711);
                uint at_b1_1 = (b_start + 584u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_1 = NagaCooperativeLoad(&tile_b.inner[at_b1_1], 72u, false);
                metal::simdgroup_float8x8 _e722 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_1, b1_1, _e722);
                metal::simdgroup_float8x8 _e724 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_1, b1_1, _e724);
            }
            {
                uint at_a0_2 = (a_start + ((team_row + 0u) * 72u)) + 16u;
                metal::simdgroup_half8x8 a0_2 = NagaCooperativeLoad(&tile_a.inner[at_a0_2], 72u, false);
                uint at_a1_2 = (a_start + ((team_row + 8u) * 72u)) + 16u;
                metal::simdgroup_half8x8 a1_2 = NagaCooperativeLoad(&tile_a.inner[at_a1_2], 72u, false);
                uint at_b0_2 = (b_start + 1152u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_2 = NagaCooperativeLoad(&tile_b.inner[at_b0_2], 72u, false);
                metal::simdgroup_float8x8 _e757 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_2, b0_2, _e757);
                metal::simdgroup_float8x8 _e759 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_2, b0_2, _e759);
                uint at_b1_2 = (b_start + 1160u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_2 = NagaCooperativeLoad(&tile_b.inner[at_b1_2], 72u, false);
                metal::simdgroup_float8x8 _e770 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_2, b1_2, _e770);
                metal::simdgroup_float8x8 _e772 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_2, b1_2, _e772);
            }
            {
                uint at_a0_3 = (a_start + ((team_row + 0u) * 72u)) + 24u;
                metal::simdgroup_half8x8 a0_3 = NagaCooperativeLoad(&tile_a.inner[at_a0_3], 72u, false);
                uint at_a1_3 = (a_start + ((team_row + 8u) * 72u)) + 24u;
                metal::simdgroup_half8x8 a1_3 = NagaCooperativeLoad(&tile_a.inner[at_a1_3], 72u, false);
                uint at_b0_3 = (b_start + 1728u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_3 = NagaCooperativeLoad(&tile_b.inner[at_b0_3], 72u, false);
                metal::simdgroup_float8x8 _e805 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_3, b0_3, _e805);
                metal::simdgroup_float8x8 _e807 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_3, b0_3, _e807);
                uint at_b1_3 = (b_start + 1736u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_3 = NagaCooperativeLoad(&tile_b.inner[at_b1_3], 72u, false);
                metal::simdgroup_float8x8 _e818 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_3, b1_3, _e818);
                metal::simdgroup_float8x8 _e820 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_3, b1_3, _e820);
            }
            {
                uint at_a0_4 = (a_start + ((team_row + 0u) * 72u)) + 32u;
                metal::simdgroup_half8x8 a0_4 = NagaCooperativeLoad(&tile_a.inner[at_a0_4], 72u, false);
                uint at_a1_4 = (a_start + ((team_row + 8u) * 72u)) + 32u;
                metal::simdgroup_half8x8 a1_4 = NagaCooperativeLoad(&tile_a.inner[at_a1_4], 72u, false);
                uint at_b0_4 = (b_start + 2304u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_4 = NagaCooperativeLoad(&tile_b.inner[at_b0_4], 72u, false);
                metal::simdgroup_float8x8 _e853 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_4, b0_4, _e853);
                metal::simdgroup_float8x8 _e855 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_4, b0_4, _e855);
                uint at_b1_4 = (b_start + 2312u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_4 = NagaCooperativeLoad(&tile_b.inner[at_b1_4], 72u, false);
                metal::simdgroup_float8x8 _e866 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_4, b1_4, _e866);
                metal::simdgroup_float8x8 _e868 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_4, b1_4, _e868);
            }
            {
                uint at_a0_5 = (a_start + ((team_row + 0u) * 72u)) + 40u;
                metal::simdgroup_half8x8 a0_5 = NagaCooperativeLoad(&tile_a.inner[at_a0_5], 72u, false);
                uint at_a1_5 = (a_start + ((team_row + 8u) * 72u)) + 40u;
                metal::simdgroup_half8x8 a1_5 = NagaCooperativeLoad(&tile_a.inner[at_a1_5], 72u, false);
                uint at_b0_5 = (b_start + 2880u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_5 = NagaCooperativeLoad(&tile_b.inner[at_b0_5], 72u, false);
                metal::simdgroup_float8x8 _e901 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_5, b0_5, _e901);
                metal::simdgroup_float8x8 _e903 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_5, b0_5, _e903);
                uint at_b1_5 = (b_start + 2888u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_5 = NagaCooperativeLoad(&tile_b.inner[at_b1_5], 72u, false);
                metal::simdgroup_float8x8 _e914 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_5, b1_5, _e914);
                metal::simdgroup_float8x8 _e916 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_5, b1_5, _e916);
            }
            {
                uint at_a0_6 = (a_start + ((team_row + 0u) * 72u)) + 48u;
                metal::simdgroup_half8x8 a0_6 = NagaCooperativeLoad(&tile_a.inner[at_a0_6], 72u, false);
                uint at_a1_6 = (a_start + ((team_row + 8u) * 72u)) + 48u;
                metal::simdgroup_half8x8 a1_6 = NagaCooperativeLoad(&tile_a.inner[at_a1_6], 72u, false);
                uint at_b0_6 = (b_start + 3456u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_6 = NagaCooperativeLoad(&tile_b.inner[at_b0_6], 72u, false);
                metal::simdgroup_float8x8 _e949 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_6, b0_6, _e949);
                metal::simdgroup_float8x8 _e951 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_6, b0_6, _e951);
                uint at_b1_6 = (b_start + 3464u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_6 = NagaCooperativeLoad(&tile_b.inner[at_b1_6], 72u, false);
                metal::simdgroup_float8x8 _e962 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_6, b1_6, _e962);
                metal::simdgroup_float8x8 _e964 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_6, b1_6, _e964);
            }
            {
                uint at_a0_7 = (a_start + ((team_row + 0u) * 72u)) + 56u;
                metal::simdgroup_half8x8 a0_7 = NagaCooperativeLoad(&tile_a.inner[at_a0_7], 72u, false);
                uint at_a1_7 = (a_start + ((team_row + 8u) * 72u)) + 56u;
                metal::simdgroup_half8x8 a1_7 = NagaCooperativeLoad(&tile_a.inner[at_a1_7], 72u, false);
                uint at_b0_7 = (b_start + 4032u) + (team_column / 1u);
                metal::simdgroup_half8x8 b0_7 = NagaCooperativeLoad(&tile_b.inner[at_b0_7], 72u, false);
                metal::simdgroup_float8x8 _e997 = sum_0_0_;
                sum_0_0_ = NagaCooperativeMultiplyAdd(a0_7, b0_7, _e997);
                metal::simdgroup_float8x8 _e999 = sum_1_0_;
                sum_1_0_ = NagaCooperativeMultiplyAdd(a1_7, b0_7, _e999);
                uint at_b1_7 = (b_start + 4040u) + (team_column / 1u);
                metal::simdgroup_half8x8 b1_7 = NagaCooperativeLoad(&tile_b.inner[at_b1_7], 72u, false);
                metal::simdgroup_float8x8 _e1010 = sum_0_1_;
                sum_0_1_ = NagaCooperativeMultiplyAdd(a0_7, b1_7, _e1010);
                metal::simdgroup_float8x8 _e1012 = sum_1_1_;
                sum_1_1_ = NagaCooperativeMultiplyAdd(a1_7, b1_7, _e1012);
            }
            uint _e1015 = stage;
            stage = 1u - _e1015;
        }
    }
    uint taken0_ = metal::min(thread_ + 0u, 63u);
    uint owner0_ = taken0_ / 16u;
    uint row0_ = (_e13.row + ((owner0_ / 4u) * 16u)) + ((taken0_ % 16u) / 2u);
    uint column0_ = (_e13.column + ((owner0_ % 4u) * 16u)) + ((taken0_ % 2u) * 4u);
    uint to_0_0_ = (team * 64u) + 0u;
    metal::simdgroup_float8x8 _e1049 = sum_0_0_;
    simdgroup_store(_e1049, &results.inner[to_0_0_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    {
        uint at0_ = (taken0_ * 4u) + 0u;
        float _e1059 = results.inner[at0_];
        float _e1064 = results.inner[at0_ + 1u];
        float _e1069 = results.inner[at0_ + 2u];
        float _e1074 = results.inner[at0_ + 3u];
        metal::float4 sums0_ = metal::float4(_e1059, _e1064, _e1069, _e1074);
        metal::float4 _e1076 = finish(sums0_, params);
        if ((thread_ + 0u) < 64u) {
            keep(_e13.part, _e15, row0_ + 0u, column0_ + 0u, _e1076, out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_0_ = (team * 64u) + 0u;
    metal::simdgroup_float8x8 _e1090 = sum_1_0_;
    simdgroup_store(_e1090, &results.inner[to_1_0_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    {
        uint at0_1 = (taken0_ * 4u) + 0u;
        float _e1100 = results.inner[at0_1];
        float _e1105 = results.inner[at0_1 + 1u];
        float _e1110 = results.inner[at0_1 + 2u];
        float _e1115 = results.inner[at0_1 + 3u];
        metal::float4 sums0_1 = metal::float4(_e1100, _e1105, _e1110, _e1115);
        metal::float4 _e1117 = finish(sums0_1, params);
        if ((thread_ + 0u) < 64u) {
            keep(_e13.part, _e15, row0_ + 8u, column0_ + 0u, _e1117, out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_0_1_ = (team * 64u) + 0u;
    metal::simdgroup_float8x8 _e1131 = sum_0_1_;
    simdgroup_store(_e1131, &results.inner[to_0_1_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    {
        uint at0_2 = (taken0_ * 4u) + 0u;
        float _e1141 = results.inner[at0_2];
        float _e1146 = results.inner[at0_2 + 1u];
        float _e1151 = results.inner[at0_2 + 2u];
        float _e1156 = results.inner[at0_2 + 3u];
        metal::float4 sums0_2 = metal::float4(_e1141, _e1146, _e1151, _e1156);
        metal::float4 _e1158 = finish(sums0_2, params);
        if ((thread_ + 0u) < 64u) {
            keep(_e13.part, _e15, row0_ + 0u, column0_ + 8u, _e1158, out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_1_ = (team * 64u) + 0u;
    metal::simdgroup_float8x8 _e1172 = sum_1_1_;
    simdgroup_store(_e1172, &results.inner[to_1_1_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    {
        uint at0_3 = (taken0_ * 4u) + 0u;
        float _e1182 = results.inner[at0_3];
        float _e1187 = results.inner[at0_3 + 1u];
        float _e1192 = results.inner[at0_3 + 2u];
        float _e1197 = results.inner[at0_3 + 3u];
        metal::float4 sums0_3 = metal::float4(_e1182, _e1187, _e1192, _e1197);
        metal::float4 _e1199 = finish(sums0_3, params);
        if ((thread_ + 0u) < 64u) {
            keep(_e13.part, _e15, row0_ + 8u, column0_ + 8u, _e1199, out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
