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
typedef metal::half4 type_4[1];
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
    metal::float4 inner[160];
};
struct type_8 {
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
    uint k_1,
    device type_2 const& a,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.k;
    if (k_1 >= _e5) {
        return metal::float4(0.0);
    }
    uint _e11 = params.m;
    uint row_4 = metal::min(outer, _e11 - 1u);
    uint _e18 = params.a_outer;
    metal::float4 _e25 = a[((start + (row_4 * _e18)) + k_1) >> 2u];
    return static_cast<metal::float4>(_e25);
}

metal::float4 load_b(
    uint start_1,
    uint outer_1,
    uint k_2,
    device type_4 const& b,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.k;
    if (k_2 >= _e5) {
        return metal::float4(0.0);
    }
    uint _e11 = params.n;
    uint row_5 = metal::min(outer_1, _e11 - 1u);
    uint _e18 = params.b_outer;
    metal::half4 _e25 = b[((start_1 + (row_5 * _e18)) + k_2) >> 2u];
    return static_cast<metal::float4>(_e25);
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
    uint k_3 = share * _e35;
    uint _e46 = params.share;
    uint _e50 = params.k;
    uint _e54 = params.products;
    return Work {(first + (at % rows)) * 16u, (at / rows) * 64u, k_3, metal::min(k_3 + _e46, _e50), product_1, (share * _e54) + product_1};
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint thread_ [[thread_index_in_threadgroup]]
, device type_2 const& a [[buffer(0)]]
, device type_4 const& b [[buffer(1)]]
, device type_2& out [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, threadgroup type_7& tile_a
, threadgroup type_8& tile_b
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
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
    uint k = {};
    uint k_ahead = {};
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
    uint b_along = (thread_ % 8u) * 4u;
    uint b_across = ((thread_ % 64u) / 8u) * 4u;
    k = _e12.k;
    uint _e81 = k;
    k_ahead = _e81;
    uint k_last = _e12.k + ((((metal::max(_e12.k_end, _e12.k + 1u) - 1u) - _e12.k) / 32u) * 32u);
    uint _e100 = k;
    if (_e100 < _e12.k_end) {
        uint _e108 = k_ahead;
        metal::float4 _e110 = load_a(_e14.a, (_e12.row + a_across) + 0u, _e108 + a_along, a, params, _buffer_sizes);
        next_a0_ = _e110;
        uint _e116 = k_ahead;
        metal::float4 _e118 = load_a(_e14.a, (_e12.row + a_across) + 8u, _e116 + a_along, a, params, _buffer_sizes);
        next_a1_ = _e118;
        uint _e124 = k_ahead;
        metal::float4 _e126 = load_b(_e14.b, (_e12.column + b_across) + 0u, _e124 + b_along, b, params, _buffer_sizes);
        next_b0_ = _e126;
        uint _e132 = k_ahead;
        metal::float4 _e134 = load_b(_e14.b, (_e12.column + b_across) + 1u, _e132 + b_along, b, params, _buffer_sizes);
        next_b1_ = _e134;
        uint _e140 = k_ahead;
        metal::float4 _e142 = load_b(_e14.b, (_e12.column + b_across) + 2u, _e140 + b_along, b, params, _buffer_sizes);
        next_b2_ = _e142;
        uint _e148 = k_ahead;
        metal::float4 _e150 = load_b(_e14.b, (_e12.column + b_across) + 3u, _e148 + b_along, b, params, _buffer_sizes);
        next_b3_ = _e150;
        uint _e156 = k_ahead;
        metal::float4 _e158 = load_b(_e14.b, (_e12.column + b_across) + 32u, _e156 + b_along, b, params, _buffer_sizes);
        next_b4_ = _e158;
        uint _e164 = k_ahead;
        metal::float4 _e166 = load_b(_e14.b, (_e12.column + b_across) + 33u, _e164 + b_along, b, params, _buffer_sizes);
        next_b5_ = _e166;
        uint _e172 = k_ahead;
        metal::float4 _e174 = load_b(_e14.b, (_e12.column + b_across) + 34u, _e172 + b_along, b, params, _buffer_sizes);
        next_b6_ = _e174;
        uint _e180 = k_ahead;
        metal::float4 _e182 = load_b(_e14.b, (_e12.column + b_across) + 35u, _e180 + b_along, b, params, _buffer_sizes);
        next_b7_ = _e182;
    }
    while(true) {
        uint _e183 = k;
        if (_e183 >= _e12.k_end) {
            break;
        }
        {
            uint across = a_across + 0u;
            uint _e188 = stage;
            uint at_1 = ((_e188 * 160u) + (a_along * 5u)) + (across >> 2u);
            float _e205 = next_a0_.x;
            tile_a.inner[at_1 + 0u][across & 3u] = _e205;
            float _e214 = next_a0_.y;
            tile_a.inner[at_1 + 5u][across & 3u] = _e214;
            float _e223 = next_a0_.z;
            tile_a.inner[at_1 + 10u][across & 3u] = _e223;
            float _e232 = next_a0_.w;
            tile_a.inner[at_1 + 15u][across & 3u] = _e232;
        }
        {
            uint across_1 = a_across + 8u;
            uint _e235 = stage;
            uint at_2 = ((_e235 * 160u) + (a_along * 5u)) + (across_1 >> 2u);
            float _e252 = next_a1_.x;
            tile_a.inner[at_2 + 0u][across_1 & 3u] = _e252;
            float _e261 = next_a1_.y;
            tile_a.inner[at_2 + 5u][across_1 & 3u] = _e261;
            float _e270 = next_a1_.z;
            tile_a.inner[at_2 + 10u][across_1 & 3u] = _e270;
            float _e279 = next_a1_.w;
            tile_a.inner[at_2 + 15u][across_1 & 3u] = _e279;
        }
        {
            uint across_2 = b_across + 0u;
            uint _e282 = stage;
            uint at_3 = ((_e282 * 544u) + (b_along * 17u)) + (across_2 >> 2u);
            float _e296 = next_b0_.x;
            float _e298 = next_b1_.x;
            float _e300 = next_b2_.x;
            float _e302 = next_b3_.x;
            tile_b.inner[at_3 + 0u] = metal::float4(_e296, _e298, _e300, _e302);
            float _e309 = next_b0_.y;
            float _e311 = next_b1_.y;
            float _e313 = next_b2_.y;
            float _e315 = next_b3_.y;
            tile_b.inner[at_3 + 17u] = metal::float4(_e309, _e311, _e313, _e315);
            float _e322 = next_b0_.z;
            float _e324 = next_b1_.z;
            float _e326 = next_b2_.z;
            float _e328 = next_b3_.z;
            tile_b.inner[at_3 + 34u] = metal::float4(_e322, _e324, _e326, _e328);
            float _e335 = next_b0_.w;
            float _e337 = next_b1_.w;
            float _e339 = next_b2_.w;
            float _e341 = next_b3_.w;
            tile_b.inner[at_3 + 51u] = metal::float4(_e335, _e337, _e339, _e341);
        }
        {
            uint across_3 = b_across + 32u;
            uint _e345 = stage;
            uint at_4 = ((_e345 * 544u) + (b_along * 17u)) + (across_3 >> 2u);
            float _e359 = next_b4_.x;
            float _e361 = next_b5_.x;
            float _e363 = next_b6_.x;
            float _e365 = next_b7_.x;
            tile_b.inner[at_4 + 0u] = metal::float4(_e359, _e361, _e363, _e365);
            float _e372 = next_b4_.y;
            float _e374 = next_b5_.y;
            float _e376 = next_b6_.y;
            float _e378 = next_b7_.y;
            tile_b.inner[at_4 + 17u] = metal::float4(_e372, _e374, _e376, _e378);
            float _e385 = next_b4_.z;
            float _e387 = next_b5_.z;
            float _e389 = next_b6_.z;
            float _e391 = next_b7_.z;
            tile_b.inner[at_4 + 34u] = metal::float4(_e385, _e387, _e389, _e391);
            float _e398 = next_b4_.w;
            float _e400 = next_b5_.w;
            float _e402 = next_b6_.w;
            float _e404 = next_b7_.w;
            tile_b.inner[at_4 + 51u] = metal::float4(_e398, _e400, _e402, _e404);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e406 = k;
        k = _e406 + 32u;
        uint _e409 = k;
        k_ahead = metal::min(_e409, k_last);
        uint _e416 = k_ahead;
        metal::float4 _e418 = load_a(_e14.a, (_e12.row + a_across) + 0u, _e416 + a_along, a, params, _buffer_sizes);
        next_a0_ = _e418;
        uint _e424 = k_ahead;
        metal::float4 _e426 = load_a(_e14.a, (_e12.row + a_across) + 8u, _e424 + a_along, a, params, _buffer_sizes);
        next_a1_ = _e426;
        uint _e432 = k_ahead;
        metal::float4 _e434 = load_b(_e14.b, (_e12.column + b_across) + 0u, _e432 + b_along, b, params, _buffer_sizes);
        next_b0_ = _e434;
        uint _e440 = k_ahead;
        metal::float4 _e442 = load_b(_e14.b, (_e12.column + b_across) + 1u, _e440 + b_along, b, params, _buffer_sizes);
        next_b1_ = _e442;
        uint _e448 = k_ahead;
        metal::float4 _e450 = load_b(_e14.b, (_e12.column + b_across) + 2u, _e448 + b_along, b, params, _buffer_sizes);
        next_b2_ = _e450;
        uint _e456 = k_ahead;
        metal::float4 _e458 = load_b(_e14.b, (_e12.column + b_across) + 3u, _e456 + b_along, b, params, _buffer_sizes);
        next_b3_ = _e458;
        uint _e464 = k_ahead;
        metal::float4 _e466 = load_b(_e14.b, (_e12.column + b_across) + 32u, _e464 + b_along, b, params, _buffer_sizes);
        next_b4_ = _e466;
        uint _e472 = k_ahead;
        metal::float4 _e474 = load_b(_e14.b, (_e12.column + b_across) + 33u, _e472 + b_along, b, params, _buffer_sizes);
        next_b5_ = _e474;
        uint _e480 = k_ahead;
        metal::float4 _e482 = load_b(_e14.b, (_e12.column + b_across) + 34u, _e480 + b_along, b, params, _buffer_sizes);
        next_b6_ = _e482;
        uint _e488 = k_ahead;
        metal::float4 _e490 = load_b(_e14.b, (_e12.column + b_across) + 35u, _e488 + b_along, b, params, _buffer_sizes);
        next_b7_ = _e490;
        deep = 0u;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e720 = deep;
                deep = _e720 + 8u;
            }
            loop_init = false;
            uint _e493 = deep;
            if (_e493 < 32u) {
            } else {
                break;
            }
            {
                uint _e496 = stage;
                uint _e499 = deep;
                uint a_at = ((_e496 * 160u) + (_e499 * 5u)) + ty;
                uint _e504 = stage;
                uint _e507 = deep;
                uint b_at = ((_e504 * 544u) + (_e507 * 17u)) + tx;
                {
                    metal::float4 a0_ = tile_a.inner[a_at + 0u];
                    metal::float4 b0_ = tile_b.inner[b_at + 0u];
                    metal::float4 _e524 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_.x), b0_, _e524);
                    metal::float4 _e528 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_.y), b0_, _e528);
                    metal::float4 _e532 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_.z), b0_, _e532);
                    metal::float4 _e536 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_.w), b0_, _e536);
                }
                {
                    metal::float4 a0_1 = tile_a.inner[a_at + 5u];
                    metal::float4 b0_1 = tile_b.inner[b_at + 17u];
                    metal::float4 _e550 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_1.x), b0_1, _e550);
                    metal::float4 _e554 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_1.y), b0_1, _e554);
                    metal::float4 _e558 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_1.z), b0_1, _e558);
                    metal::float4 _e562 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_1.w), b0_1, _e562);
                }
                {
                    metal::float4 a0_2 = tile_a.inner[a_at + 10u];
                    metal::float4 b0_2 = tile_b.inner[b_at + 34u];
                    metal::float4 _e576 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_2.x), b0_2, _e576);
                    metal::float4 _e580 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_2.y), b0_2, _e580);
                    metal::float4 _e584 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_2.z), b0_2, _e584);
                    metal::float4 _e588 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_2.w), b0_2, _e588);
                }
                {
                    metal::float4 a0_3 = tile_a.inner[a_at + 15u];
                    metal::float4 b0_3 = tile_b.inner[b_at + 51u];
                    metal::float4 _e602 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_3.x), b0_3, _e602);
                    metal::float4 _e606 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_3.y), b0_3, _e606);
                    metal::float4 _e610 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_3.z), b0_3, _e610);
                    metal::float4 _e614 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_3.w), b0_3, _e614);
                }
                {
                    metal::float4 a0_4 = tile_a.inner[a_at + 20u];
                    metal::float4 b0_4 = tile_b.inner[b_at + 68u];
                    metal::float4 _e628 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_4.x), b0_4, _e628);
                    metal::float4 _e632 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_4.y), b0_4, _e632);
                    metal::float4 _e636 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_4.z), b0_4, _e636);
                    metal::float4 _e640 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_4.w), b0_4, _e640);
                }
                {
                    metal::float4 a0_5 = tile_a.inner[a_at + 25u];
                    metal::float4 b0_5 = tile_b.inner[b_at + 85u];
                    metal::float4 _e654 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_5.x), b0_5, _e654);
                    metal::float4 _e658 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_5.y), b0_5, _e658);
                    metal::float4 _e662 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_5.z), b0_5, _e662);
                    metal::float4 _e666 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_5.w), b0_5, _e666);
                }
                {
                    metal::float4 a0_6 = tile_a.inner[a_at + 30u];
                    metal::float4 b0_6 = tile_b.inner[b_at + 102u];
                    metal::float4 _e680 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_6.x), b0_6, _e680);
                    metal::float4 _e684 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_6.y), b0_6, _e684);
                    metal::float4 _e688 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_6.z), b0_6, _e688);
                    metal::float4 _e692 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_6.w), b0_6, _e692);
                }
                {
                    metal::float4 a0_7 = tile_a.inner[a_at + 35u];
                    metal::float4 b0_7 = tile_b.inner[b_at + 119u];
                    metal::float4 _e706 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_7.x), b0_7, _e706);
                    metal::float4 _e710 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_7.y), b0_7, _e710);
                    metal::float4 _e714 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_7.z), b0_7, _e714);
                    metal::float4 _e718 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_7.w), b0_7, _e718);
                }
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    metal::float4 _e736 = sum_0_0_;
    put(_e12.part, _e14, (_e12.row + 0u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e736, out, params, _buffer_sizes);
    metal::float4 _e750 = sum_1_0_;
    put(_e12.part, _e14, (_e12.row + 1u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e750, out, params, _buffer_sizes);
    metal::float4 _e764 = sum_2_0_;
    put(_e12.part, _e14, (_e12.row + 2u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e764, out, params, _buffer_sizes);
    metal::float4 _e778 = sum_3_0_;
    put(_e12.part, _e14, (_e12.row + 3u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e778, out, params, _buffer_sizes);
    return;
}
