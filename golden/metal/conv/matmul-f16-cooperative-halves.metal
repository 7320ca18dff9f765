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
    uint k_1,
    device type_2 const& a,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.m;
    uint row_1 = metal::min(outer, _e5 - 1u);
    uint _e12 = params.a_outer;
    metal::half4 _e19 = a[((start + (row_1 * _e12)) + k_1) >> 2u];
    return static_cast<metal::half4>(_e19);
}

metal::half4 load_b(
    uint start_1,
    uint outer_1,
    uint k_2,
    device type_2 const& b,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.n;
    uint columns = metal::min(outer_1, (_e5 - 1u) & 4294967292u);
    uint _e14 = params.b_inner;
    metal::half4 _e21 = b[((start_1 + (k_2 * _e14)) + columns) >> 2u];
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
    uint k_3 = share * _e35;
    uint _e46 = params.share;
    uint _e50 = params.k;
    uint _e54 = params.products;
    return Work {(first + (at_1 % rows)) * 32u, (at_1 / rows) * 64u, k_3, metal::min(k_3 + _e46, _e50), product_1, (share * _e54) + product_1};
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
    metal::half4 next_a0_ = metal::half4 {};
    metal::half4 next_a1_ = metal::half4 {};
    metal::half4 next_a2_ = metal::half4 {};
    metal::half4 next_a3_ = metal::half4 {};
    metal::half4 next_b0_ = metal::half4 {};
    metal::half4 next_b1_ = metal::half4 {};
    metal::half4 next_b2_ = metal::half4 {};
    metal::half4 next_b3_ = metal::half4 {};
    metal::half4 next_b4_ = metal::half4 {};
    metal::half4 next_b5_ = metal::half4 {};
    metal::half4 next_b6_ = metal::half4 {};
    metal::half4 next_b7_ = metal::half4 {};
    metal::simdgroup_float8x8 sum_0_0_ = {};
    metal::simdgroup_float8x8 sum_0_1_ = {};
    metal::simdgroup_float8x8 sum_0_2_ = {};
    metal::simdgroup_float8x8 sum_0_3_ = {};
    metal::simdgroup_float8x8 sum_1_0_ = {};
    metal::simdgroup_float8x8 sum_1_1_ = {};
    metal::simdgroup_float8x8 sum_1_2_ = {};
    metal::simdgroup_float8x8 sum_1_3_ = {};
    uint k = {};
    uint stage = 0u;
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
    uint a_along = (thread_ % 16u) * 4u;
    uint a_across = thread_ / 16u;
    uint b_along = (thread_ % 16u) * 4u;
    uint b_across = thread_ / 16u;
    k = _e15.k;
    uint _e76 = k;
    if (_e76 < _e15.k_end) {
        uint _e84 = k;
        metal::half4 _e86 = load_a(_e17.a, (_e15.row + a_across) + 0u, _e84 + a_along, a, params, _buffer_sizes);
        next_a0_ = _e86;
        uint _e92 = k;
        metal::half4 _e94 = load_a(_e17.a, (_e15.row + a_across) + 8u, _e92 + a_along, a, params, _buffer_sizes);
        next_a1_ = _e94;
        uint _e100 = k;
        metal::half4 _e102 = load_a(_e17.a, (_e15.row + a_across) + 16u, _e100 + a_along, a, params, _buffer_sizes);
        next_a2_ = _e102;
        uint _e108 = k;
        metal::half4 _e110 = load_a(_e17.a, (_e15.row + a_across) + 24u, _e108 + a_along, a, params, _buffer_sizes);
        next_a3_ = _e110;
        uint _e114 = k;
        metal::half4 _e118 = load_b(_e17.b, _e15.column + b_along, (_e114 + b_across) + 0u, b, params, _buffer_sizes);
        next_b0_ = _e118;
        uint _e122 = k;
        metal::half4 _e126 = load_b(_e17.b, _e15.column + b_along, (_e122 + b_across) + 8u, b, params, _buffer_sizes);
        next_b1_ = _e126;
        uint _e130 = k;
        metal::half4 _e134 = load_b(_e17.b, _e15.column + b_along, (_e130 + b_across) + 16u, b, params, _buffer_sizes);
        next_b2_ = _e134;
        uint _e138 = k;
        metal::half4 _e142 = load_b(_e17.b, _e15.column + b_along, (_e138 + b_across) + 24u, b, params, _buffer_sizes);
        next_b3_ = _e142;
        uint _e146 = k;
        metal::half4 _e150 = load_b(_e17.b, _e15.column + b_along, (_e146 + b_across) + 32u, b, params, _buffer_sizes);
        next_b4_ = _e150;
        uint _e154 = k;
        metal::half4 _e158 = load_b(_e17.b, _e15.column + b_along, (_e154 + b_across) + 40u, b, params, _buffer_sizes);
        next_b5_ = _e158;
        uint _e162 = k;
        metal::half4 _e166 = load_b(_e17.b, _e15.column + b_along, (_e162 + b_across) + 48u, b, params, _buffer_sizes);
        next_b6_ = _e166;
        uint _e170 = k;
        metal::half4 _e174 = load_b(_e17.b, _e15.column + b_along, (_e170 + b_across) + 56u, b, params, _buffer_sizes);
        next_b7_ = _e174;
    }
    while(true) {
        uint _e175 = k;
        if (_e175 >= _e15.k_end) {
            break;
        }
        uint _e178 = stage;
        uint a_start = _e178 * 2304u;
        uint _e181 = stage;
        uint b_start = _e181 * 4608u;
        {
            uint at_2 = (a_start + ((a_across + 0u) * 72u)) + (a_along / 1u);
            half _e197 = next_a0_.x;
            tile_a.inner[at_2 + 0u] = _e197;
            half _e203 = next_a0_.y;
            tile_a.inner[at_2 + 1u] = _e203;
            half _e209 = next_a0_.z;
            tile_a.inner[at_2 + 2u] = _e209;
            half _e215 = next_a0_.w;
            tile_a.inner[at_2 + 3u] = _e215;
        }
        {
            uint at_3 = (a_start + ((a_across + 8u) * 72u)) + (a_along / 1u);
            half _e229 = next_a1_.x;
            tile_a.inner[at_3 + 0u] = _e229;
            half _e235 = next_a1_.y;
            tile_a.inner[at_3 + 1u] = _e235;
            half _e241 = next_a1_.z;
            tile_a.inner[at_3 + 2u] = _e241;
            half _e247 = next_a1_.w;
            tile_a.inner[at_3 + 3u] = _e247;
        }
        {
            uint at_4 = (a_start + ((a_across + 16u) * 72u)) + (a_along / 1u);
            half _e261 = next_a2_.x;
            tile_a.inner[at_4 + 0u] = _e261;
            half _e267 = next_a2_.y;
            tile_a.inner[at_4 + 1u] = _e267;
            half _e273 = next_a2_.z;
            tile_a.inner[at_4 + 2u] = _e273;
            half _e279 = next_a2_.w;
            tile_a.inner[at_4 + 3u] = _e279;
        }
        {
            uint at_5 = (a_start + ((a_across + 24u) * 72u)) + (a_along / 1u);
            half _e293 = next_a3_.x;
            tile_a.inner[at_5 + 0u] = _e293;
            half _e299 = next_a3_.y;
            tile_a.inner[at_5 + 1u] = _e299;
            half _e305 = next_a3_.z;
            tile_a.inner[at_5 + 2u] = _e305;
            half _e311 = next_a3_.w;
            tile_a.inner[at_5 + 3u] = _e311;
        }
        {
            uint at_6 = (b_start + ((b_across + 0u) * 72u)) + (b_along / 1u);
            half _e325 = next_b0_.x;
            tile_b.inner[at_6 + 0u] = _e325;
            half _e331 = next_b0_.y;
            tile_b.inner[at_6 + 1u] = _e331;
            half _e337 = next_b0_.z;
            tile_b.inner[at_6 + 2u] = _e337;
            half _e343 = next_b0_.w;
            tile_b.inner[at_6 + 3u] = _e343;
        }
        {
            uint at_7 = (b_start + ((b_across + 8u) * 72u)) + (b_along / 1u);
            half _e357 = next_b1_.x;
            tile_b.inner[at_7 + 0u] = _e357;
            half _e363 = next_b1_.y;
            tile_b.inner[at_7 + 1u] = _e363;
            half _e369 = next_b1_.z;
            tile_b.inner[at_7 + 2u] = _e369;
            half _e375 = next_b1_.w;
            tile_b.inner[at_7 + 3u] = _e375;
        }
        {
            uint at_8 = (b_start + ((b_across + 16u) * 72u)) + (b_along / 1u);
            half _e389 = next_b2_.x;
            tile_b.inner[at_8 + 0u] = _e389;
            half _e395 = next_b2_.y;
            tile_b.inner[at_8 + 1u] = _e395;
            half _e401 = next_b2_.z;
            tile_b.inner[at_8 + 2u] = _e401;
            half _e407 = next_b2_.w;
            tile_b.inner[at_8 + 3u] = _e407;
        }
        {
            uint at_9 = (b_start + ((b_across + 24u) * 72u)) + (b_along / 1u);
            half _e421 = next_b3_.x;
            tile_b.inner[at_9 + 0u] = _e421;
            half _e427 = next_b3_.y;
            tile_b.inner[at_9 + 1u] = _e427;
            half _e433 = next_b3_.z;
            tile_b.inner[at_9 + 2u] = _e433;
            half _e439 = next_b3_.w;
            tile_b.inner[at_9 + 3u] = _e439;
        }
        {
            uint at_10 = (b_start + ((b_across + 32u) * 72u)) + (b_along / 1u);
            half _e453 = next_b4_.x;
            tile_b.inner[at_10 + 0u] = _e453;
            half _e459 = next_b4_.y;
            tile_b.inner[at_10 + 1u] = _e459;
            half _e465 = next_b4_.z;
            tile_b.inner[at_10 + 2u] = _e465;
            half _e471 = next_b4_.w;
            tile_b.inner[at_10 + 3u] = _e471;
        }
        {
            uint at_11 = (b_start + ((b_across + 40u) * 72u)) + (b_along / 1u);
            half _e485 = next_b5_.x;
            tile_b.inner[at_11 + 0u] = _e485;
            half _e491 = next_b5_.y;
            tile_b.inner[at_11 + 1u] = _e491;
            half _e497 = next_b5_.z;
            tile_b.inner[at_11 + 2u] = _e497;
            half _e503 = next_b5_.w;
            tile_b.inner[at_11 + 3u] = _e503;
        }
        {
            uint at_12 = (b_start + ((b_across + 48u) * 72u)) + (b_along / 1u);
            half _e517 = next_b6_.x;
            tile_b.inner[at_12 + 0u] = _e517;
            half _e523 = next_b6_.y;
            tile_b.inner[at_12 + 1u] = _e523;
            half _e529 = next_b6_.z;
            tile_b.inner[at_12 + 2u] = _e529;
            half _e535 = next_b6_.w;
            tile_b.inner[at_12 + 3u] = _e535;
        }
        {
            uint at_13 = (b_start + ((b_across + 56u) * 72u)) + (b_along / 1u);
            half _e549 = next_b7_.x;
            tile_b.inner[at_13 + 0u] = _e549;
            half _e555 = next_b7_.y;
            tile_b.inner[at_13 + 1u] = _e555;
            half _e561 = next_b7_.z;
            tile_b.inner[at_13 + 2u] = _e561;
            half _e567 = next_b7_.w;
            tile_b.inner[at_13 + 3u] = _e567;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e568 = k;
        k = _e568 + 64u;
        uint _e571 = k;
        if (_e571 < _e15.k_end) {
            uint _e579 = k;
            metal::half4 _e581 = load_a(_e17.a, (_e15.row + a_across) + 0u, _e579 + a_along, a, params, _buffer_sizes);
            next_a0_ = _e581;
            uint _e587 = k;
            metal::half4 _e589 = load_a(_e17.a, (_e15.row + a_across) + 8u, _e587 + a_along, a, params, _buffer_sizes);
            next_a1_ = _e589;
            uint _e595 = k;
            metal::half4 _e597 = load_a(_e17.a, (_e15.row + a_across) + 16u, _e595 + a_along, a, params, _buffer_sizes);
            next_a2_ = _e597;
            uint _e603 = k;
            metal::half4 _e605 = load_a(_e17.a, (_e15.row + a_across) + 24u, _e603 + a_along, a, params, _buffer_sizes);
            next_a3_ = _e605;
            uint _e609 = k;
            metal::half4 _e613 = load_b(_e17.b, _e15.column + b_along, (_e609 + b_across) + 0u, b, params, _buffer_sizes);
            next_b0_ = _e613;
            uint _e617 = k;
            metal::half4 _e621 = load_b(_e17.b, _e15.column + b_along, (_e617 + b_across) + 8u, b, params, _buffer_sizes);
            next_b1_ = _e621;
            uint _e625 = k;
            metal::half4 _e629 = load_b(_e17.b, _e15.column + b_along, (_e625 + b_across) + 16u, b, params, _buffer_sizes);
            next_b2_ = _e629;
            uint _e633 = k;
            metal::half4 _e637 = load_b(_e17.b, _e15.column + b_along, (_e633 + b_across) + 24u, b, params, _buffer_sizes);
            next_b3_ = _e637;
            uint _e641 = k;
            metal::half4 _e645 = load_b(_e17.b, _e15.column + b_along, (_e641 + b_across) + 32u, b, params, _buffer_sizes);
            next_b4_ = _e645;
            uint _e649 = k;
            metal::half4 _e653 = load_b(_e17.b, _e15.column + b_along, (_e649 + b_across) + 40u, b, params, _buffer_sizes);
            next_b5_ = _e653;
            uint _e657 = k;
            metal::half4 _e661 = load_b(_e17.b, _e15.column + b_along, (_e657 + b_across) + 48u, b, params, _buffer_sizes);
            next_b6_ = _e661;
            uint _e665 = k;
            metal::half4 _e669 = load_b(_e17.b, _e15.column + b_along, (_e665 + b_across) + 56u, b, params, _buffer_sizes);
            next_b7_ = _e669;
        }
        {
            uint at_a0_ = (a_start + ((team_row + 0u) * 72u)) + 0u;
            metal::simdgroup_half8x8 a0_ = NagaCooperativeLoad(&tile_a.inner[at_a0_], 72u, false);
            uint at_a1_ = (a_start + ((team_row + 8u) * 72u)) + 0u;
            metal::simdgroup_half8x8 a1_ = NagaCooperativeLoad(&tile_a.inner[at_a1_], 72u, false);
            uint at_b0_ = (b_start + 0u) + (team_column / 1u);
            metal::simdgroup_half8x8 b0_ = NagaCooperativeLoad(&tile_b.inner[at_b0_], 72u, false);
            metal::simdgroup_float8x8 _e701 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_, b0_, _e701);
            metal::simdgroup_float8x8 _e703 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_, b0_, _e703);
            uint at_b1_ = (b_start + 8u) + (team_column / 1u);
            metal::simdgroup_half8x8 b1_ = NagaCooperativeLoad(&tile_b.inner[at_b1_], 72u, false);
            metal::simdgroup_float8x8 _e714 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_, b1_, _e714);
            metal::simdgroup_float8x8 _e716 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_, b1_, _e716);
            uint at_b2_ = (b_start + 16u) + (team_column / 1u);
            metal::simdgroup_half8x8 b2_ = NagaCooperativeLoad(&tile_b.inner[at_b2_], 72u, false);
            metal::simdgroup_float8x8 _e727 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_, b2_, _e727);
            metal::simdgroup_float8x8 _e729 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_, b2_, _e729);
            uint at_b3_ = (b_start + 24u) + (team_column / 1u);
            metal::simdgroup_half8x8 b3_ = NagaCooperativeLoad(&tile_b.inner[at_b3_], 72u, false);
            metal::simdgroup_float8x8 _e740 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_, b3_, _e740);
            metal::simdgroup_float8x8 _e742 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_, b3_, _e742);
        }
        {
            uint at_a0_1 = (a_start + ((team_row + 0u) * 72u)) + 8u;
            metal::simdgroup_half8x8 a0_1 = NagaCooperativeLoad(&tile_a.inner[at_a0_1], 72u, false);
            uint at_a1_1 = (a_start + ((team_row + 8u) * 72u)) + 8u;
            metal::simdgroup_half8x8 a1_1 = NagaCooperativeLoad(&tile_a.inner[at_a1_1], 72u, false);
            uint at_b0_1 = (b_start + 576u) + (team_column / 1u);
            metal::simdgroup_half8x8 b0_1 = NagaCooperativeLoad(&tile_b.inner[at_b0_1], 72u, false);
            metal::simdgroup_float8x8 _e775 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_1, b0_1, _e775);
            metal::simdgroup_float8x8 _e777 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_1, b0_1, _e777);
            uint at_b1_1 = (b_start + 584u) + (team_column / 1u);
            metal::simdgroup_half8x8 b1_1 = NagaCooperativeLoad(&tile_b.inner[at_b1_1], 72u, false);
            metal::simdgroup_float8x8 _e788 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_1, b1_1, _e788);
            metal::simdgroup_float8x8 _e790 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_1, b1_1, _e790);
            uint at_b2_1 = (b_start + 592u) + (team_column / 1u);
            metal::simdgroup_half8x8 b2_1 = NagaCooperativeLoad(&tile_b.inner[at_b2_1], 72u, false);
            metal::simdgroup_float8x8 _e801 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_1, b2_1, _e801);
            metal::simdgroup_float8x8 _e803 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_1, b2_1, _e803);
            uint at_b3_1 = (b_start + 600u) + (team_column / 1u);
            metal::simdgroup_half8x8 b3_1 = NagaCooperativeLoad(&tile_b.inner[at_b3_1], 72u, false);
            metal::simdgroup_float8x8 _e814 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_1, b3_1, _e814);
            metal::simdgroup_float8x8 _e816 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_1, b3_1, _e816);
        }
        {
            uint at_a0_2 = (a_start + ((team_row + 0u) * 72u)) + 16u;
            metal::simdgroup_half8x8 a0_2 = NagaCooperativeLoad(&tile_a.inner[at_a0_2], 72u, false);
            uint at_a1_2 = (a_start + ((team_row + 8u) * 72u)) + 16u;
            metal::simdgroup_half8x8 a1_2 = NagaCooperativeLoad(&tile_a.inner[at_a1_2], 72u, false);
            uint at_b0_2 = (b_start + 1152u) + (team_column / 1u);
            metal::simdgroup_half8x8 b0_2 = NagaCooperativeLoad(&tile_b.inner[at_b0_2], 72u, false);
            metal::simdgroup_float8x8 _e849 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_2, b0_2, _e849);
            metal::simdgroup_float8x8 _e851 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_2, b0_2, _e851);
            uint at_b1_2 = (b_start + 1160u) + (team_column / 1u);
            metal::simdgroup_half8x8 b1_2 = NagaCooperativeLoad(&tile_b.inner[at_b1_2], 72u, false);
            metal::simdgroup_float8x8 _e862 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_2, b1_2, _e862);
            metal::simdgroup_float8x8 _e864 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_2, b1_2, _e864);
            uint at_b2_2 = (b_start + 1168u) + (team_column / 1u);
            metal::simdgroup_half8x8 b2_2 = NagaCooperativeLoad(&tile_b.inner[at_b2_2], 72u, false);
            metal::simdgroup_float8x8 _e875 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_2, b2_2, _e875);
            metal::simdgroup_float8x8 _e877 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_2, b2_2, _e877);
            uint at_b3_2 = (b_start + 1176u) + (team_column / 1u);
            metal::simdgroup_half8x8 b3_2 = NagaCooperativeLoad(&tile_b.inner[at_b3_2], 72u, false);
            metal::simdgroup_float8x8 _e888 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_2, b3_2, _e888);
            metal::simdgroup_float8x8 _e890 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_2, b3_2, _e890);
        }
        {
            uint at_a0_3 = (a_start + ((team_row + 0u) * 72u)) + 24u;
            metal::simdgroup_half8x8 a0_3 = NagaCooperativeLoad(&tile_a.inner[at_a0_3], 72u, false);
            uint at_a1_3 = (a_start + ((team_row + 8u) * 72u)) + 24u;
            metal::simdgroup_half8x8 a1_3 = NagaCooperativeLoad(&tile_a.inner[at_a1_3], 72u, false);
            uint at_b0_3 = (b_start + 1728u) + (team_column / 1u);
            metal::simdgroup_half8x8 b0_3 = NagaCooperativeLoad(&tile_b.inner[at_b0_3], 72u, false);
            metal::simdgroup_float8x8 _e923 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_3, b0_3, _e923);
            metal::simdgroup_float8x8 _e925 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_3, b0_3, _e925);
            uint at_b1_3 = (b_start + 1736u) + (team_column / 1u);
            metal::simdgroup_half8x8 b1_3 = NagaCooperativeLoad(&tile_b.inner[at_b1_3], 72u, false);
            metal::simdgroup_float8x8 _e936 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_3, b1_3, _e936);
            metal::simdgroup_float8x8 _e938 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_3, b1_3, _e938);
            uint at_b2_3 = (b_start + 1744u) + (team_column / 1u);
            metal::simdgroup_half8x8 b2_3 = NagaCooperativeLoad(&tile_b.inner[at_b2_3], 72u, false);
            metal::simdgroup_float8x8 _e949 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_3, b2_3, _e949);
            metal::simdgroup_float8x8 _e951 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_3, b2_3, _e951);
            uint at_b3_3 = (b_start + 1752u) + (team_column / 1u);
            metal::simdgroup_half8x8 b3_3 = NagaCooperativeLoad(&tile_b.inner[at_b3_3], 72u, false);
            metal::simdgroup_float8x8 _e962 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_3, b3_3, _e962);
            metal::simdgroup_float8x8 _e964 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_3, b3_3, _e964);
        }
        {
            uint at_a0_4 = (a_start + ((team_row + 0u) * 72u)) + 32u;
            metal::simdgroup_half8x8 a0_4 = NagaCooperativeLoad(&tile_a.inner[at_a0_4], 72u, false);
            uint at_a1_4 = (a_start + ((team_row + 8u) * 72u)) + 32u;
            metal::simdgroup_half8x8 a1_4 = NagaCooperativeLoad(&tile_a.inner[at_a1_4], 72u, false);
            uint at_b0_4 = (b_start + 2304u) + (team_column / 1u);
            metal::simdgroup_half8x8 b0_4 = NagaCooperativeLoad(&tile_b.inner[at_b0_4], 72u, false);
            metal::simdgroup_float8x8 _e997 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_4, b0_4, _e997);
            metal::simdgroup_float8x8 _e999 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_4, b0_4, _e999);
            uint at_b1_4 = (b_start + 2312u) + (team_column / 1u);
            metal::simdgroup_half8x8 b1_4 = NagaCooperativeLoad(&tile_b.inner[at_b1_4], 72u, false);
            metal::simdgroup_float8x8 _e1010 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_4, b1_4, _e1010);
            metal::simdgroup_float8x8 _e1012 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_4, b1_4, _e1012);
            uint at_b2_4 = (b_start + 2320u) + (team_column / 1u);
            metal::simdgroup_half8x8 b2_4 = NagaCooperativeLoad(&tile_b.inner[at_b2_4], 72u, false);
            metal::simdgroup_float8x8 _e1023 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_4, b2_4, _e1023);
            metal::simdgroup_float8x8 _e1025 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_4, b2_4, _e1025);
            uint at_b3_4 = (b_start + 2328u) + (team_column / 1u);
            metal::simdgroup_half8x8 b3_4 = NagaCooperativeLoad(&tile_b.inner[at_b3_4], 72u, false);
            metal::simdgroup_float8x8 _e1036 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_4, b3_4, _e1036);
            metal::simdgroup_float8x8 _e1038 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_4, b3_4, _e1038);
        }
        {
            uint at_a0_5 = (a_start + ((team_row + 0u) * 72u)) + 40u;
            metal::simdgroup_half8x8 a0_5 = NagaCooperativeLoad(&tile_a.inner[at_a0_5], 72u, false);
            uint at_a1_5 = (a_start + ((team_row + 8u) * 72u)) + 40u;
            metal::simdgroup_half8x8 a1_5 = NagaCooperativeLoad(&tile_a.inner[at_a1_5], 72u, false);
            uint at_b0_5 = (b_start + 2880u) + (team_column / 1u);
            metal::simdgroup_half8x8 b0_5 = NagaCooperativeLoad(&tile_b.inner[at_b0_5], 72u, false);
            metal::simdgroup_float8x8 _e1071 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_5, b0_5, _e1071);
            metal::simdgroup_float8x8 _e1073 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_5, b0_5, _e1073);
            uint at_b1_5 = (b_start + 2888u) + (team_column / 1u);
            metal::simdgroup_half8x8 b1_5 = NagaCooperativeLoad(&tile_b.inner[at_b1_5], 72u, false);
            metal::simdgroup_float8x8 _e1084 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_5, b1_5, _e1084);
            metal::simdgroup_float8x8 _e1086 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_5, b1_5, _e1086);
            uint at_b2_5 = (b_start + 2896u) + (team_column / 1u);
            metal::simdgroup_half8x8 b2_5 = NagaCooperativeLoad(&tile_b.inner[at_b2_5], 72u, false);
            metal::simdgroup_float8x8 _e1097 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_5, b2_5, _e1097);
            metal::simdgroup_float8x8 _e1099 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_5, b2_5, _e1099);
            uint at_b3_5 = (b_start + 2904u) + (team_column / 1u);
            metal::simdgroup_half8x8 b3_5 = NagaCooperativeLoad(&tile_b.inner[at_b3_5], 72u, false);
            metal::simdgroup_float8x8 _e1110 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_5, b3_5, _e1110);
            metal::simdgroup_float8x8 _e1112 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_5, b3_5, _e1112);
        }
        {
            uint at_a0_6 = (a_start + ((team_row + 0u) * 72u)) + 48u;
            metal::simdgroup_half8x8 a0_6 = NagaCooperativeLoad(&tile_a.inner[at_a0_6], 72u, false);
            uint at_a1_6 = (a_start + ((team_row + 8u) * 72u)) + 48u;
            metal::simdgroup_half8x8 a1_6 = NagaCooperativeLoad(&tile_a.inner[at_a1_6], 72u, false);
            uint at_b0_6 = (b_start + 3456u) + (team_column / 1u);
            metal::simdgroup_half8x8 b0_6 = NagaCooperativeLoad(&tile_b.inner[at_b0_6], 72u, false);
            metal::simdgroup_float8x8 _e1145 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_6, b0_6, _e1145);
            metal::simdgroup_float8x8 _e1147 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_6, b0_6, _e1147);
            uint at_b1_6 = (b_start + 3464u) + (team_column / 1u);
            metal::simdgroup_half8x8 b1_6 = NagaCooperativeLoad(&tile_b.inner[at_b1_6], 72u, false);
            metal::simdgroup_float8x8 _e1158 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_6, b1_6, _e1158);
            metal::simdgroup_float8x8 _e1160 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_6, b1_6, _e1160);
            uint at_b2_6 = (b_start + 3472u) + (team_column / 1u);
            metal::simdgroup_half8x8 b2_6 = NagaCooperativeLoad(&tile_b.inner[at_b2_6], 72u, false);
            metal::simdgroup_float8x8 _e1171 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_6, b2_6, _e1171);
            metal::simdgroup_float8x8 _e1173 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_6, b2_6, _e1173);
            uint at_b3_6 = (b_start + 3480u) + (team_column / 1u);
            metal::simdgroup_half8x8 b3_6 = NagaCooperativeLoad(&tile_b.inner[at_b3_6], 72u, false);
            metal::simdgroup_float8x8 _e1184 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_6, b3_6, _e1184);
            metal::simdgroup_float8x8 _e1186 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_6, b3_6, _e1186);
        }
        {
            uint at_a0_7 = (a_start + ((team_row + 0u) * 72u)) + 56u;
            metal::simdgroup_half8x8 a0_7 = NagaCooperativeLoad(&tile_a.inner[at_a0_7], 72u, false);
            uint at_a1_7 = (a_start + ((team_row + 8u) * 72u)) + 56u;
            metal::simdgroup_half8x8 a1_7 = NagaCooperativeLoad(&tile_a.inner[at_a1_7], 72u, false);
            uint at_b0_7 = (b_start + 4032u) + (team_column / 1u);
            metal::simdgroup_half8x8 b0_7 = NagaCooperativeLoad(&tile_b.inner[at_b0_7], 72u, false);
            metal::simdgroup_float8x8 _e1219 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(a0_7, b0_7, _e1219);
            metal::simdgroup_float8x8 _e1221 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(a1_7, b0_7, _e1221);
            uint at_b1_7 = (b_start + 4040u) + (team_column / 1u);
            metal::simdgroup_half8x8 b1_7 = NagaCooperativeLoad(&tile_b.inner[at_b1_7], 72u, false);
            metal::simdgroup_float8x8 _e1232 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(a0_7, b1_7, _e1232);
            metal::simdgroup_float8x8 _e1234 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(a1_7, b1_7, _e1234);
            uint at_b2_7 = (b_start + 4048u) + (team_column / 1u);
            metal::simdgroup_half8x8 b2_7 = NagaCooperativeLoad(&tile_b.inner[at_b2_7], 72u, false);
            metal::simdgroup_float8x8 _e1245 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(a0_7, b2_7, _e1245);
            metal::simdgroup_float8x8 _e1247 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(a1_7, b2_7, _e1247);
            uint at_b3_7 = (b_start + 4056u) + (team_column / 1u);
            metal::simdgroup_half8x8 b3_7 = NagaCooperativeLoad(&tile_b.inner[at_b3_7], 72u, false);
            metal::simdgroup_float8x8 _e1258 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(a0_7, b3_7, _e1258);
            metal::simdgroup_float8x8 _e1260 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(a1_7, b3_7, _e1260);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    uint own = team * 64u;
    uint to_0_0_ = own + 0u;
    metal::simdgroup_float8x8 _e1266 = sum_0_0_;
    simdgroup_store(_e1266, &results.inner[to_0_0_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_ = lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e1316 = quad_;
            quad_ = _e1316 + lanes;
        }
        loop_init = false;
        uint _e1271 = quad_;
        if (_e1271 < 16u) {
        } else {
            break;
        }
        {
            uint _e1274 = quad_;
            uint at_14 = own + (_e1274 * 4u);
            uint _e1282 = quad_;
            uint row_2 = ((_e15.row + team_row) + 0u) + (_e1282 / 2u);
            uint _e1290 = quad_;
            uint column_1 = ((_e15.column + team_column) + 0u) + ((_e1290 % 2u) * 4u);
            float _e1299 = results.inner[at_14];
            float _e1304 = results.inner[at_14 + 1u];
            float _e1309 = results.inner[at_14 + 2u];
            float _e1314 = results.inner[at_14 + 3u];
            put(_e15.part, _e17, row_2, column_1, metal::float4(_e1299, _e1304, _e1309, _e1314), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_0_1_ = own + 0u;
    metal::simdgroup_float8x8 _e1320 = sum_0_1_;
    simdgroup_store(_e1320, &results.inner[to_0_1_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_1 = lane;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e1370 = quad_1;
            quad_1 = _e1370 + lanes;
        }
        loop_init_1 = false;
        uint _e1325 = quad_1;
        if (_e1325 < 16u) {
        } else {
            break;
        }
        {
            uint _e1328 = quad_1;
            uint at_15 = own + (_e1328 * 4u);
            uint _e1336 = quad_1;
            uint row_3 = ((_e15.row + team_row) + 0u) + (_e1336 / 2u);
            uint _e1344 = quad_1;
            uint column_2 = ((_e15.column + team_column) + 8u) + ((_e1344 % 2u) * 4u);
            float _e1353 = results.inner[at_15];
            float _e1358 = results.inner[at_15 + 1u];
            float _e1363 = results.inner[at_15 + 2u];
            float _e1368 = results.inner[at_15 + 3u];
            put(_e15.part, _e17, row_3, column_2, metal::float4(_e1353, _e1358, _e1363, _e1368), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_0_2_ = own + 0u;
    metal::simdgroup_float8x8 _e1374 = sum_0_2_;
    simdgroup_store(_e1374, &results.inner[to_0_2_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_2 = lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e1424 = quad_2;
            quad_2 = _e1424 + lanes;
        }
        loop_init_2 = false;
        uint _e1379 = quad_2;
        if (_e1379 < 16u) {
        } else {
            break;
        }
        {
            uint _e1382 = quad_2;
            uint at_16 = own + (_e1382 * 4u);
            uint _e1390 = quad_2;
            uint row_4 = ((_e15.row + team_row) + 0u) + (_e1390 / 2u);
            uint _e1398 = quad_2;
            uint column_3 = ((_e15.column + team_column) + 16u) + ((_e1398 % 2u) * 4u);
            float _e1407 = results.inner[at_16];
            float _e1412 = results.inner[at_16 + 1u];
            float _e1417 = results.inner[at_16 + 2u];
            float _e1422 = results.inner[at_16 + 3u];
            put(_e15.part, _e17, row_4, column_3, metal::float4(_e1407, _e1412, _e1417, _e1422), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_0_3_ = own + 0u;
    metal::simdgroup_float8x8 _e1428 = sum_0_3_;
    simdgroup_store(_e1428, &results.inner[to_0_3_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_3 = lane;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e1478 = quad_3;
            quad_3 = _e1478 + lanes;
        }
        loop_init_3 = false;
        uint _e1433 = quad_3;
        if (_e1433 < 16u) {
        } else {
            break;
        }
        {
            uint _e1436 = quad_3;
            uint at_17 = own + (_e1436 * 4u);
            uint _e1444 = quad_3;
            uint row_5 = ((_e15.row + team_row) + 0u) + (_e1444 / 2u);
            uint _e1452 = quad_3;
            uint column_4 = ((_e15.column + team_column) + 24u) + ((_e1452 % 2u) * 4u);
            float _e1461 = results.inner[at_17];
            float _e1466 = results.inner[at_17 + 1u];
            float _e1471 = results.inner[at_17 + 2u];
            float _e1476 = results.inner[at_17 + 3u];
            put(_e15.part, _e17, row_5, column_4, metal::float4(_e1461, _e1466, _e1471, _e1476), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_0_ = own + 0u;
    metal::simdgroup_float8x8 _e1482 = sum_1_0_;
    simdgroup_store(_e1482, &results.inner[to_1_0_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_4 = lane;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e1532 = quad_4;
            quad_4 = _e1532 + lanes;
        }
        loop_init_4 = false;
        uint _e1487 = quad_4;
        if (_e1487 < 16u) {
        } else {
            break;
        }
        {
            uint _e1490 = quad_4;
            uint at_18 = own + (_e1490 * 4u);
            uint _e1498 = quad_4;
            uint row_6 = ((_e15.row + team_row) + 8u) + (_e1498 / 2u);
            uint _e1506 = quad_4;
            uint column_5 = ((_e15.column + team_column) + 0u) + ((_e1506 % 2u) * 4u);
            float _e1515 = results.inner[at_18];
            float _e1520 = results.inner[at_18 + 1u];
            float _e1525 = results.inner[at_18 + 2u];
            float _e1530 = results.inner[at_18 + 3u];
            put(_e15.part, _e17, row_6, column_5, metal::float4(_e1515, _e1520, _e1525, _e1530), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_1_ = own + 0u;
    metal::simdgroup_float8x8 _e1536 = sum_1_1_;
    simdgroup_store(_e1536, &results.inner[to_1_1_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_5 = lane;
    bool loop_init_5 = true;
    while(true) {
        if (!loop_init_5) {
            uint _e1586 = quad_5;
            quad_5 = _e1586 + lanes;
        }
        loop_init_5 = false;
        uint _e1541 = quad_5;
        if (_e1541 < 16u) {
        } else {
            break;
        }
        {
            uint _e1544 = quad_5;
            uint at_19 = own + (_e1544 * 4u);
            uint _e1552 = quad_5;
            uint row_7 = ((_e15.row + team_row) + 8u) + (_e1552 / 2u);
            uint _e1560 = quad_5;
            uint column_6 = ((_e15.column + team_column) + 8u) + ((_e1560 % 2u) * 4u);
            float _e1569 = results.inner[at_19];
            float _e1574 = results.inner[at_19 + 1u];
            float _e1579 = results.inner[at_19 + 2u];
            float _e1584 = results.inner[at_19 + 3u];
            put(_e15.part, _e17, row_7, column_6, metal::float4(_e1569, _e1574, _e1579, _e1584), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_2_ = own + 0u;
    metal::simdgroup_float8x8 _e1590 = sum_1_2_;
    simdgroup_store(_e1590, &results.inner[to_1_2_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_6 = lane;
    bool loop_init_6 = true;
    while(true) {
        if (!loop_init_6) {
            uint _e1640 = quad_6;
            quad_6 = _e1640 + lanes;
        }
        loop_init_6 = false;
        uint _e1595 = quad_6;
        if (_e1595 < 16u) {
        } else {
            break;
        }
        {
            uint _e1598 = quad_6;
            uint at_20 = own + (_e1598 * 4u);
            uint _e1606 = quad_6;
            uint row_8 = ((_e15.row + team_row) + 8u) + (_e1606 / 2u);
            uint _e1614 = quad_6;
            uint column_7 = ((_e15.column + team_column) + 16u) + ((_e1614 % 2u) * 4u);
            float _e1623 = results.inner[at_20];
            float _e1628 = results.inner[at_20 + 1u];
            float _e1633 = results.inner[at_20 + 2u];
            float _e1638 = results.inner[at_20 + 3u];
            put(_e15.part, _e17, row_8, column_7, metal::float4(_e1623, _e1628, _e1633, _e1638), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_3_ = own + 0u;
    metal::simdgroup_float8x8 _e1644 = sum_1_3_;
    simdgroup_store(_e1644, &results.inner[to_1_3_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    quad_7 = lane;
    bool loop_init_7 = true;
    while(true) {
        if (!loop_init_7) {
            uint _e1694 = quad_7;
            quad_7 = _e1694 + lanes;
        }
        loop_init_7 = false;
        uint _e1649 = quad_7;
        if (_e1649 < 16u) {
        } else {
            break;
        }
        {
            uint _e1652 = quad_7;
            uint at_21 = own + (_e1652 * 4u);
            uint _e1660 = quad_7;
            uint row_9 = ((_e15.row + team_row) + 8u) + (_e1660 / 2u);
            uint _e1668 = quad_7;
            uint column_8 = ((_e15.column + team_column) + 24u) + ((_e1668 % 2u) * 4u);
            float _e1677 = results.inner[at_21];
            float _e1682 = results.inner[at_21 + 1u];
            float _e1687 = results.inner[at_21 + 2u];
            float _e1692 = results.inner[at_21 + 3u];
            put(_e15.part, _e17, row_9, column_8, metal::float4(_e1677, _e1682, _e1687, _e1692), out, params, _buffer_sizes);
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
