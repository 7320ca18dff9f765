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
typedef uint type_4[1];
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
struct type_6 {
    metal::float4 inner[160];
};
struct type_7 {
    metal::float4 inner[544];
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

metal::float4 load_a(
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
    return static_cast<metal::float4>(_e19);
}

metal::float4 load_b(
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
    return static_cast<metal::float4>(_e21);
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
    uint part_1,
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
    uint part_2,
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
    keep(part_2, base_3, row_3, column_3, _e18, out, params, _buffer_sizes);
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

struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint thread_ [[thread_index_in_threadgroup]]
, device type_2 const& a [[buffer(0)]]
, device type_2 const& b [[buffer(1)]]
, device type_4 const& zeros [[buffer(2)]]
, device type_2& out [[buffer(3)]]
, constant Params& params [[buffer(4)]]
, threadgroup type_6& tile_a
, threadgroup type_7& tile_b
, constant _mslBufferSizes& _buffer_sizes [[buffer(5)]]
) {
    metal::float4 next_a0_ = metal::float4 {};
    metal::float4 next_a1_ = metal::float4 {};
    metal::float4 next_b0_ = metal::float4 {};
    metal::float4 next_b1_ = metal::float4 {};
    metal::float4 next_b2_ = metal::float4 {};
    metal::float4 next_b3_ = metal::float4 {};
    metal::float4 next_b4_ = metal::float4 {};
    metal::float4 next_b5_ = metal::float4 {};
    metal::float4 next_b6_ = metal::float4 {};
    metal::float4 next_b7_ = metal::float4 {};
    metal::float4 sum_0_0_ = metal::float4 {};
    metal::float4 sum_1_0_ = metal::float4 {};
    metal::float4 sum_2_0_ = metal::float4 {};
    metal::float4 sum_3_0_ = metal::float4 {};
    uint part = {};
    uint k_ahead = 0u;
    uint stage = 0u;
    uint deep = {};
    uint id_1 = group.x + (group.y * groups.x);
    uint _e10 = params.total;
    if (id_1 >= _e10) {
        return;
    }
    Work _e12 = work(id_1, params);
    Starts _e14 = starts(_e12.product, params);
    uint crew = thread_ / 32u;
    uint lane = thread_ % 32u;
    uint ty = ((crew / 2u) * 4u) + (lane / 8u);
    uint tx = ((crew % 2u) * 8u) + (lane % 8u);
    uint a_along = (thread_ % 8u) * 4u;
    uint a_across = (thread_ % 64u) / 8u;
    uint b_along = (thread_ % 16u) * 4u;
    uint b_across = (thread_ % 64u) / 16u;
    uint parts_end = zeros[(_e12.column / 64u) + 1u];
    uint _e90 = zeros[_e12.column / 64u];
    part = _e90;
    uint _e96 = part;
    if (_e96 < parts_end) {
        uint _e99 = part;
        uint _e101 = zeros[_e99];
        k_ahead = _e101;
        uint _e107 = k_ahead;
        metal::float4 _e109 = load_a(_e14.a, (_e12.row + a_across) + 0u, _e107 + a_along, a, params, _buffer_sizes);
        next_a0_ = _e109;
        uint _e115 = k_ahead;
        metal::float4 _e117 = load_a(_e14.a, (_e12.row + a_across) + 8u, _e115 + a_along, a, params, _buffer_sizes);
        next_a1_ = _e117;
        uint _e121 = k_ahead;
        metal::float4 _e125 = load_b(_e14.b, _e12.column + b_along, (_e121 + b_across) + 0u, b, params, _buffer_sizes);
        next_b0_ = _e125;
        uint _e129 = k_ahead;
        metal::float4 _e133 = load_b(_e14.b, _e12.column + b_along, (_e129 + b_across) + 4u, b, params, _buffer_sizes);
        next_b1_ = _e133;
        uint _e137 = k_ahead;
        metal::float4 _e141 = load_b(_e14.b, _e12.column + b_along, (_e137 + b_across) + 8u, b, params, _buffer_sizes);
        next_b2_ = _e141;
        uint _e145 = k_ahead;
        metal::float4 _e149 = load_b(_e14.b, _e12.column + b_along, (_e145 + b_across) + 12u, b, params, _buffer_sizes);
        next_b3_ = _e149;
        uint _e153 = k_ahead;
        metal::float4 _e157 = load_b(_e14.b, _e12.column + b_along, (_e153 + b_across) + 16u, b, params, _buffer_sizes);
        next_b4_ = _e157;
        uint _e161 = k_ahead;
        metal::float4 _e165 = load_b(_e14.b, _e12.column + b_along, (_e161 + b_across) + 20u, b, params, _buffer_sizes);
        next_b5_ = _e165;
        uint _e169 = k_ahead;
        metal::float4 _e173 = load_b(_e14.b, _e12.column + b_along, (_e169 + b_across) + 24u, b, params, _buffer_sizes);
        next_b6_ = _e173;
        uint _e177 = k_ahead;
        metal::float4 _e181 = load_b(_e14.b, _e12.column + b_along, (_e177 + b_across) + 28u, b, params, _buffer_sizes);
        next_b7_ = _e181;
    }
    while(true) {
        uint _e182 = part;
        if (_e182 >= parts_end) {
            break;
        }
        {
            uint across = a_across + 0u;
            uint _e186 = stage;
            uint at_1 = ((_e186 * 160u) + (a_along * 5u)) + (across >> 2u);
            float _e203 = next_a0_.x;
            tile_a.inner[at_1 + 0u][across & 3u] = _e203;
            float _e212 = next_a0_.y;
            tile_a.inner[at_1 + 5u][across & 3u] = _e212;
            float _e221 = next_a0_.z;
            tile_a.inner[at_1 + 10u][across & 3u] = _e221;
            float _e230 = next_a0_.w;
            tile_a.inner[at_1 + 15u][across & 3u] = _e230;
        }
        {
            uint across_1 = a_across + 8u;
            uint _e233 = stage;
            uint at_2 = ((_e233 * 160u) + (a_along * 5u)) + (across_1 >> 2u);
            float _e250 = next_a1_.x;
            tile_a.inner[at_2 + 0u][across_1 & 3u] = _e250;
            float _e259 = next_a1_.y;
            tile_a.inner[at_2 + 5u][across_1 & 3u] = _e259;
            float _e268 = next_a1_.z;
            tile_a.inner[at_2 + 10u][across_1 & 3u] = _e268;
            float _e277 = next_a1_.w;
            tile_a.inner[at_2 + 15u][across_1 & 3u] = _e277;
        }
        {
            uint across_2 = b_across + 0u;
            uint _e281 = stage;
            metal::float4 _e291 = next_b0_;
            tile_b.inner[((_e281 * 544u) + (across_2 * 17u)) + (b_along >> 2u)] = _e291;
        }
        {
            uint across_3 = b_across + 4u;
            uint _e295 = stage;
            metal::float4 _e305 = next_b1_;
            tile_b.inner[((_e295 * 544u) + (across_3 * 17u)) + (b_along >> 2u)] = _e305;
        }
        {
            uint across_4 = b_across + 8u;
            uint _e309 = stage;
            metal::float4 _e319 = next_b2_;
            tile_b.inner[((_e309 * 544u) + (across_4 * 17u)) + (b_along >> 2u)] = _e319;
        }
        {
            uint across_5 = b_across + 12u;
            uint _e323 = stage;
            metal::float4 _e333 = next_b3_;
            tile_b.inner[((_e323 * 544u) + (across_5 * 17u)) + (b_along >> 2u)] = _e333;
        }
        {
            uint across_6 = b_across + 16u;
            uint _e337 = stage;
            metal::float4 _e347 = next_b4_;
            tile_b.inner[((_e337 * 544u) + (across_6 * 17u)) + (b_along >> 2u)] = _e347;
        }
        {
            uint across_7 = b_across + 20u;
            uint _e351 = stage;
            metal::float4 _e361 = next_b5_;
            tile_b.inner[((_e351 * 544u) + (across_7 * 17u)) + (b_along >> 2u)] = _e361;
        }
        {
            uint across_8 = b_across + 24u;
            uint _e365 = stage;
            metal::float4 _e375 = next_b6_;
            tile_b.inner[((_e365 * 544u) + (across_8 * 17u)) + (b_along >> 2u)] = _e375;
        }
        {
            uint across_9 = b_across + 28u;
            uint _e379 = stage;
            metal::float4 _e389 = next_b7_;
            tile_b.inner[((_e379 * 544u) + (across_9 * 17u)) + (b_along >> 2u)] = _e389;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e390 = part;
        part = _e390 + 1u;
        uint _e394 = part;
        uint _e399 = zeros[metal::min(_e394, parts_end - 1u)];
        k_ahead = _e399;
        uint _e405 = k_ahead;
        metal::float4 _e407 = load_a(_e14.a, (_e12.row + a_across) + 0u, _e405 + a_along, a, params, _buffer_sizes);
        next_a0_ = _e407;
        uint _e413 = k_ahead;
        metal::float4 _e415 = load_a(_e14.a, (_e12.row + a_across) + 8u, _e413 + a_along, a, params, _buffer_sizes);
        next_a1_ = _e415;
        uint _e419 = k_ahead;
        metal::float4 _e423 = load_b(_e14.b, _e12.column + b_along, (_e419 + b_across) + 0u, b, params, _buffer_sizes);
        next_b0_ = _e423;
        uint _e427 = k_ahead;
        metal::float4 _e431 = load_b(_e14.b, _e12.column + b_along, (_e427 + b_across) + 4u, b, params, _buffer_sizes);
        next_b1_ = _e431;
        uint _e435 = k_ahead;
        metal::float4 _e439 = load_b(_e14.b, _e12.column + b_along, (_e435 + b_across) + 8u, b, params, _buffer_sizes);
        next_b2_ = _e439;
        uint _e443 = k_ahead;
        metal::float4 _e447 = load_b(_e14.b, _e12.column + b_along, (_e443 + b_across) + 12u, b, params, _buffer_sizes);
        next_b3_ = _e447;
        uint _e451 = k_ahead;
        metal::float4 _e455 = load_b(_e14.b, _e12.column + b_along, (_e451 + b_across) + 16u, b, params, _buffer_sizes);
        next_b4_ = _e455;
        uint _e459 = k_ahead;
        metal::float4 _e463 = load_b(_e14.b, _e12.column + b_along, (_e459 + b_across) + 20u, b, params, _buffer_sizes);
        next_b5_ = _e463;
        uint _e467 = k_ahead;
        metal::float4 _e471 = load_b(_e14.b, _e12.column + b_along, (_e467 + b_across) + 24u, b, params, _buffer_sizes);
        next_b6_ = _e471;
        uint _e475 = k_ahead;
        metal::float4 _e479 = load_b(_e14.b, _e12.column + b_along, (_e475 + b_across) + 28u, b, params, _buffer_sizes);
        next_b7_ = _e479;
        deep = 0u;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e709 = deep;
                deep = _e709 + 8u;
            }
            loop_init = false;
            uint _e482 = deep;
            if (_e482 < 32u) {
            } else {
                break;
            }
            {
                uint _e485 = stage;
                uint _e488 = deep;
                uint a_at = ((_e485 * 160u) + (_e488 * 5u)) + ty;
                uint _e493 = stage;
                uint _e496 = deep;
                uint b_at = ((_e493 * 544u) + (_e496 * 17u)) + tx;
                {
                    metal::float4 a0_ = tile_a.inner[a_at + 0u];
                    metal::float4 b0_ = tile_b.inner[b_at + 0u];
                    metal::float4 _e513 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_.x), b0_, _e513);
                    metal::float4 _e517 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_.y), b0_, _e517);
                    metal::float4 _e521 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_.z), b0_, _e521);
                    metal::float4 _e525 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_.w), b0_, _e525);
                }
                {
                    metal::float4 a0_1 = tile_a.inner[a_at + 5u];
                    metal::float4 b0_1 = tile_b.inner[b_at + 17u];
                    metal::float4 _e539 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_1.x), b0_1, _e539);
                    metal::float4 _e543 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_1.y), b0_1, _e543);
                    metal::float4 _e547 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_1.z), b0_1, _e547);
                    metal::float4 _e551 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_1.w), b0_1, _e551);
                }
                {
                    metal::float4 a0_2 = tile_a.inner[a_at + 10u];
                    metal::float4 b0_2 = tile_b.inner[b_at + 34u];
                    metal::float4 _e565 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_2.x), b0_2, _e565);
                    metal::float4 _e569 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_2.y), b0_2, _e569);
                    metal::float4 _e573 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_2.z), b0_2, _e573);
                    metal::float4 _e577 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_2.w), b0_2, _e577);
                }
                {
                    metal::float4 a0_3 = tile_a.inner[a_at + 15u];
                    metal::float4 b0_3 = tile_b.inner[b_at + 51u];
                    metal::float4 _e591 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_3.x), b0_3, _e591);
                    metal::float4 _e595 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_3.y), b0_3, _e595);
                    metal::float4 _e599 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_3.z), b0_3, _e599);
                    metal::float4 _e603 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_3.w), b0_3, _e603);
                }
                {
                    metal::float4 a0_4 = tile_a.inner[a_at + 20u];
                    metal::float4 b0_4 = tile_b.inner[b_at + 68u];
                    metal::float4 _e617 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_4.x), b0_4, _e617);
                    metal::float4 _e621 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_4.y), b0_4, _e621);
                    metal::float4 _e625 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_4.z), b0_4, _e625);
                    metal::float4 _e629 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_4.w), b0_4, _e629);
                }
                {
                    metal::float4 a0_5 = tile_a.inner[a_at + 25u];
                    metal::float4 b0_5 = tile_b.inner[b_at + 85u];
                    metal::float4 _e643 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_5.x), b0_5, _e643);
                    metal::float4 _e647 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_5.y), b0_5, _e647);
                    metal::float4 _e651 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_5.z), b0_5, _e651);
                    metal::float4 _e655 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_5.w), b0_5, _e655);
                }
                {
                    metal::float4 a0_6 = tile_a.inner[a_at + 30u];
                    metal::float4 b0_6 = tile_b.inner[b_at + 102u];
                    metal::float4 _e669 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_6.x), b0_6, _e669);
                    metal::float4 _e673 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_6.y), b0_6, _e673);
                    metal::float4 _e677 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_6.z), b0_6, _e677);
                    metal::float4 _e681 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_6.w), b0_6, _e681);
                }
                {
                    metal::float4 a0_7 = tile_a.inner[a_at + 35u];
                    metal::float4 b0_7 = tile_b.inner[b_at + 119u];
                    metal::float4 _e695 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_7.x), b0_7, _e695);
                    metal::float4 _e699 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_7.y), b0_7, _e699);
                    metal::float4 _e703 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_7.z), b0_7, _e703);
                    metal::float4 _e707 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_7.w), b0_7, _e707);
                }
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    metal::float4 _e725 = sum_0_0_;
    put(_e12.part, _e14, (_e12.row + 0u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e725, out, params, _buffer_sizes);
    metal::float4 _e739 = sum_1_0_;
    put(_e12.part, _e14, (_e12.row + 1u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e739, out, params, _buffer_sizes);
    metal::float4 _e753 = sum_2_0_;
    put(_e12.part, _e14, (_e12.row + 2u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e753, out, params, _buffer_sizes);
    metal::float4 _e767 = sum_3_0_;
    put(_e12.part, _e14, (_e12.row + 3u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e767, out, params, _buffer_sizes);
    return;
}
