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
struct type_5 {
    metal::float4 inner[160];
};
struct type_6 {
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
    uint _e5 = params.m;
    uint row_1 = metal::min(outer, _e5 - 1u);
    uint _e12 = params.a_outer;
    metal::float4 _e19 = a[((start + (row_1 * _e12)) + k_1) >> 2u];
    return static_cast<metal::float4>(_e19);
}

metal::float4 load_b(
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
    metal::float4 _e21 = b[((start_1 + (k_2 * _e14)) + columns) >> 2u];
    return static_cast<metal::float4>(_e21);
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
    device type_2& out,
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
    return Work {(first + (at_1 % rows)) * 16u, (at_1 / rows) * 64u, k_3, metal::min(k_3 + _e46, _e50), product_1, (share * _e54) + product_1};
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint thread_ [[thread_index_in_threadgroup]]
, device type_2 const& a [[buffer(0)]]
, device type_2 const& b [[buffer(1)]]
, device type_2& out [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, threadgroup type_5& tile_a
, threadgroup type_6& tile_b
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
    k = _e12.k;
    uint _e81 = k;
    if (_e81 < _e12.k_end) {
        uint _e89 = k;
        metal::float4 _e91 = load_a(_e14.a, (_e12.row + a_across) + 0u, _e89 + a_along, a, params, _buffer_sizes);
        next_a0_ = _e91;
        uint _e97 = k;
        metal::float4 _e99 = load_a(_e14.a, (_e12.row + a_across) + 8u, _e97 + a_along, a, params, _buffer_sizes);
        next_a1_ = _e99;
        uint _e103 = k;
        metal::float4 _e107 = load_b(_e14.b, _e12.column + b_along, (_e103 + b_across) + 0u, b, params, _buffer_sizes);
        next_b0_ = _e107;
        uint _e111 = k;
        metal::float4 _e115 = load_b(_e14.b, _e12.column + b_along, (_e111 + b_across) + 4u, b, params, _buffer_sizes);
        next_b1_ = _e115;
        uint _e119 = k;
        metal::float4 _e123 = load_b(_e14.b, _e12.column + b_along, (_e119 + b_across) + 8u, b, params, _buffer_sizes);
        next_b2_ = _e123;
        uint _e127 = k;
        metal::float4 _e131 = load_b(_e14.b, _e12.column + b_along, (_e127 + b_across) + 12u, b, params, _buffer_sizes);
        next_b3_ = _e131;
        uint _e135 = k;
        metal::float4 _e139 = load_b(_e14.b, _e12.column + b_along, (_e135 + b_across) + 16u, b, params, _buffer_sizes);
        next_b4_ = _e139;
        uint _e143 = k;
        metal::float4 _e147 = load_b(_e14.b, _e12.column + b_along, (_e143 + b_across) + 20u, b, params, _buffer_sizes);
        next_b5_ = _e147;
        uint _e151 = k;
        metal::float4 _e155 = load_b(_e14.b, _e12.column + b_along, (_e151 + b_across) + 24u, b, params, _buffer_sizes);
        next_b6_ = _e155;
        uint _e159 = k;
        metal::float4 _e163 = load_b(_e14.b, _e12.column + b_along, (_e159 + b_across) + 28u, b, params, _buffer_sizes);
        next_b7_ = _e163;
    }
    while(true) {
        uint _e164 = k;
        if (_e164 >= _e12.k_end) {
            break;
        }
        {
            uint across = a_across + 0u;
            uint _e169 = stage;
            uint at_2 = ((_e169 * 160u) + (a_along * 5u)) + (across >> 2u);
            float _e186 = next_a0_.x;
            tile_a.inner[at_2 + 0u][across & 3u] = _e186;
            float _e195 = next_a0_.y;
            tile_a.inner[at_2 + 5u][across & 3u] = _e195;
            float _e204 = next_a0_.z;
            tile_a.inner[at_2 + 10u][across & 3u] = _e204;
            float _e213 = next_a0_.w;
            tile_a.inner[at_2 + 15u][across & 3u] = _e213;
        }
        {
            uint across_1 = a_across + 8u;
            uint _e216 = stage;
            uint at_3 = ((_e216 * 160u) + (a_along * 5u)) + (across_1 >> 2u);
            float _e233 = next_a1_.x;
            tile_a.inner[at_3 + 0u][across_1 & 3u] = _e233;
            float _e242 = next_a1_.y;
            tile_a.inner[at_3 + 5u][across_1 & 3u] = _e242;
            float _e251 = next_a1_.z;
            tile_a.inner[at_3 + 10u][across_1 & 3u] = _e251;
            float _e260 = next_a1_.w;
            tile_a.inner[at_3 + 15u][across_1 & 3u] = _e260;
        }
        {
            uint across_2 = b_across + 0u;
            uint _e264 = stage;
            metal::float4 _e274 = next_b0_;
            tile_b.inner[((_e264 * 544u) + (across_2 * 17u)) + (b_along >> 2u)] = _e274;
        }
        {
            uint across_3 = b_across + 4u;
            uint _e278 = stage;
            metal::float4 _e288 = next_b1_;
            tile_b.inner[((_e278 * 544u) + (across_3 * 17u)) + (b_along >> 2u)] = _e288;
        }
        {
            uint across_4 = b_across + 8u;
            uint _e292 = stage;
            metal::float4 _e302 = next_b2_;
            tile_b.inner[((_e292 * 544u) + (across_4 * 17u)) + (b_along >> 2u)] = _e302;
        }
        {
            uint across_5 = b_across + 12u;
            uint _e306 = stage;
            metal::float4 _e316 = next_b3_;
            tile_b.inner[((_e306 * 544u) + (across_5 * 17u)) + (b_along >> 2u)] = _e316;
        }
        {
            uint across_6 = b_across + 16u;
            uint _e320 = stage;
            metal::float4 _e330 = next_b4_;
            tile_b.inner[((_e320 * 544u) + (across_6 * 17u)) + (b_along >> 2u)] = _e330;
        }
        {
            uint across_7 = b_across + 20u;
            uint _e334 = stage;
            metal::float4 _e344 = next_b5_;
            tile_b.inner[((_e334 * 544u) + (across_7 * 17u)) + (b_along >> 2u)] = _e344;
        }
        {
            uint across_8 = b_across + 24u;
            uint _e348 = stage;
            metal::float4 _e358 = next_b6_;
            tile_b.inner[((_e348 * 544u) + (across_8 * 17u)) + (b_along >> 2u)] = _e358;
        }
        {
            uint across_9 = b_across + 28u;
            uint _e362 = stage;
            metal::float4 _e372 = next_b7_;
            tile_b.inner[((_e362 * 544u) + (across_9 * 17u)) + (b_along >> 2u)] = _e372;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e373 = k;
        k = _e373 + 32u;
        uint _e376 = k;
        if (_e376 < _e12.k_end) {
            uint _e384 = k;
            metal::float4 _e386 = load_a(_e14.a, (_e12.row + a_across) + 0u, _e384 + a_along, a, params, _buffer_sizes);
            next_a0_ = _e386;
            uint _e392 = k;
            metal::float4 _e394 = load_a(_e14.a, (_e12.row + a_across) + 8u, _e392 + a_along, a, params, _buffer_sizes);
            next_a1_ = _e394;
            uint _e398 = k;
            metal::float4 _e402 = load_b(_e14.b, _e12.column + b_along, (_e398 + b_across) + 0u, b, params, _buffer_sizes);
            next_b0_ = _e402;
            uint _e406 = k;
            metal::float4 _e410 = load_b(_e14.b, _e12.column + b_along, (_e406 + b_across) + 4u, b, params, _buffer_sizes);
            next_b1_ = _e410;
            uint _e414 = k;
            metal::float4 _e418 = load_b(_e14.b, _e12.column + b_along, (_e414 + b_across) + 8u, b, params, _buffer_sizes);
            next_b2_ = _e418;
            uint _e422 = k;
            metal::float4 _e426 = load_b(_e14.b, _e12.column + b_along, (_e422 + b_across) + 12u, b, params, _buffer_sizes);
            next_b3_ = _e426;
            uint _e430 = k;
            metal::float4 _e434 = load_b(_e14.b, _e12.column + b_along, (_e430 + b_across) + 16u, b, params, _buffer_sizes);
            next_b4_ = _e434;
            uint _e438 = k;
            metal::float4 _e442 = load_b(_e14.b, _e12.column + b_along, (_e438 + b_across) + 20u, b, params, _buffer_sizes);
            next_b5_ = _e442;
            uint _e446 = k;
            metal::float4 _e450 = load_b(_e14.b, _e12.column + b_along, (_e446 + b_across) + 24u, b, params, _buffer_sizes);
            next_b6_ = _e450;
            uint _e454 = k;
            metal::float4 _e458 = load_b(_e14.b, _e12.column + b_along, (_e454 + b_across) + 28u, b, params, _buffer_sizes);
            next_b7_ = _e458;
        }
        deep = 0u;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e688 = deep;
                deep = _e688 + 8u;
            }
            loop_init = false;
            uint _e461 = deep;
            if (_e461 < 32u) {
            } else {
                break;
            }
            {
                uint _e464 = stage;
                uint _e467 = deep;
                uint a_at = ((_e464 * 160u) + (_e467 * 5u)) + ty;
                uint _e472 = stage;
                uint _e475 = deep;
                uint b_at = ((_e472 * 544u) + (_e475 * 17u)) + tx;
                {
                    metal::float4 a0_ = tile_a.inner[a_at + 0u];
                    metal::float4 b0_ = tile_b.inner[b_at + 0u];
                    metal::float4 _e492 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_.x), b0_, _e492);
                    metal::float4 _e496 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_.y), b0_, _e496);
                    metal::float4 _e500 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_.z), b0_, _e500);
                    metal::float4 _e504 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_.w), b0_, _e504);
                }
                {
                    metal::float4 a0_1 = tile_a.inner[a_at + 5u];
                    metal::float4 b0_1 = tile_b.inner[b_at + 17u];
                    metal::float4 _e518 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_1.x), b0_1, _e518);
                    metal::float4 _e522 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_1.y), b0_1, _e522);
                    metal::float4 _e526 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_1.z), b0_1, _e526);
                    metal::float4 _e530 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_1.w), b0_1, _e530);
                }
                {
                    metal::float4 a0_2 = tile_a.inner[a_at + 10u];
                    metal::float4 b0_2 = tile_b.inner[b_at + 34u];
                    metal::float4 _e544 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_2.x), b0_2, _e544);
                    metal::float4 _e548 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_2.y), b0_2, _e548);
                    metal::float4 _e552 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_2.z), b0_2, _e552);
                    metal::float4 _e556 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_2.w), b0_2, _e556);
                }
                {
                    metal::float4 a0_3 = tile_a.inner[a_at + 15u];
                    metal::float4 b0_3 = tile_b.inner[b_at + 51u];
                    metal::float4 _e570 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_3.x), b0_3, _e570);
                    metal::float4 _e574 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_3.y), b0_3, _e574);
                    metal::float4 _e578 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_3.z), b0_3, _e578);
                    metal::float4 _e582 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_3.w), b0_3, _e582);
                }
                {
                    metal::float4 a0_4 = tile_a.inner[a_at + 20u];
                    metal::float4 b0_4 = tile_b.inner[b_at + 68u];
                    metal::float4 _e596 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_4.x), b0_4, _e596);
                    metal::float4 _e600 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_4.y), b0_4, _e600);
                    metal::float4 _e604 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_4.z), b0_4, _e604);
                    metal::float4 _e608 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_4.w), b0_4, _e608);
                }
                {
                    metal::float4 a0_5 = tile_a.inner[a_at + 25u];
                    metal::float4 b0_5 = tile_b.inner[b_at + 85u];
                    metal::float4 _e622 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_5.x), b0_5, _e622);
                    metal::float4 _e626 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_5.y), b0_5, _e626);
                    metal::float4 _e630 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_5.z), b0_5, _e630);
                    metal::float4 _e634 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_5.w), b0_5, _e634);
                }
                {
                    metal::float4 a0_6 = tile_a.inner[a_at + 30u];
                    metal::float4 b0_6 = tile_b.inner[b_at + 102u];
                    metal::float4 _e648 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_6.x), b0_6, _e648);
                    metal::float4 _e652 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_6.y), b0_6, _e652);
                    metal::float4 _e656 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_6.z), b0_6, _e656);
                    metal::float4 _e660 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_6.w), b0_6, _e660);
                }
                {
                    metal::float4 a0_7 = tile_a.inner[a_at + 35u];
                    metal::float4 b0_7 = tile_b.inner[b_at + 119u];
                    metal::float4 _e674 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_7.x), b0_7, _e674);
                    metal::float4 _e678 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_7.y), b0_7, _e678);
                    metal::float4 _e682 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_7.z), b0_7, _e682);
                    metal::float4 _e686 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_7.w), b0_7, _e686);
                }
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    metal::float4 _e704 = sum_0_0_;
    put(_e12.part, _e14, (_e12.row + 0u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e704, out, params, _buffer_sizes);
    metal::float4 _e718 = sum_1_0_;
    put(_e12.part, _e14, (_e12.row + 1u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e718, out, params, _buffer_sizes);
    metal::float4 _e732 = sum_2_0_;
    put(_e12.part, _e14, (_e12.row + 2u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e732, out, params, _buffer_sizes);
    metal::float4 _e746 = sum_3_0_;
    put(_e12.part, _e14, (_e12.row + 3u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e746, out, params, _buffer_sizes);
    return;
}
