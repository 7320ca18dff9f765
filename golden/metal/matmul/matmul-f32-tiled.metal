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
    uint row_4 = metal::min(outer, _e5 - 1u);
    uint _e12 = params.a_outer;
    metal::float4 _e19 = a[((start + (row_4 * _e12)) + k_1) >> 2u];
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
    uint b_along = (thread_ % 16u) * 4u;
    uint b_across = (thread_ % 64u) / 16u;
    k = _e12.k;
    uint _e79 = k;
    k_ahead = _e79;
    uint k_last = _e12.k + ((((metal::max(_e12.k_end, _e12.k + 1u) - 1u) - _e12.k) / 32u) * 32u);
    uint _e98 = k;
    if (_e98 < _e12.k_end) {
        uint _e106 = k_ahead;
        metal::float4 _e108 = load_a(_e14.a, (_e12.row + a_across) + 0u, _e106 + a_along, a, params, _buffer_sizes);
        next_a0_ = _e108;
        uint _e114 = k_ahead;
        metal::float4 _e116 = load_a(_e14.a, (_e12.row + a_across) + 8u, _e114 + a_along, a, params, _buffer_sizes);
        next_a1_ = _e116;
        uint _e120 = k_ahead;
        metal::float4 _e124 = load_b(_e14.b, _e12.column + b_along, (_e120 + b_across) + 0u, b, params, _buffer_sizes);
        next_b0_ = _e124;
        uint _e128 = k_ahead;
        metal::float4 _e132 = load_b(_e14.b, _e12.column + b_along, (_e128 + b_across) + 4u, b, params, _buffer_sizes);
        next_b1_ = _e132;
        uint _e136 = k_ahead;
        metal::float4 _e140 = load_b(_e14.b, _e12.column + b_along, (_e136 + b_across) + 8u, b, params, _buffer_sizes);
        next_b2_ = _e140;
        uint _e144 = k_ahead;
        metal::float4 _e148 = load_b(_e14.b, _e12.column + b_along, (_e144 + b_across) + 12u, b, params, _buffer_sizes);
        next_b3_ = _e148;
        uint _e152 = k_ahead;
        metal::float4 _e156 = load_b(_e14.b, _e12.column + b_along, (_e152 + b_across) + 16u, b, params, _buffer_sizes);
        next_b4_ = _e156;
        uint _e160 = k_ahead;
        metal::float4 _e164 = load_b(_e14.b, _e12.column + b_along, (_e160 + b_across) + 20u, b, params, _buffer_sizes);
        next_b5_ = _e164;
        uint _e168 = k_ahead;
        metal::float4 _e172 = load_b(_e14.b, _e12.column + b_along, (_e168 + b_across) + 24u, b, params, _buffer_sizes);
        next_b6_ = _e172;
        uint _e176 = k_ahead;
        metal::float4 _e180 = load_b(_e14.b, _e12.column + b_along, (_e176 + b_across) + 28u, b, params, _buffer_sizes);
        next_b7_ = _e180;
    }
    while(true) {
        uint _e181 = k;
        if (_e181 >= _e12.k_end) {
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
        uint _e390 = k;
        k = _e390 + 32u;
        uint _e393 = k;
        k_ahead = metal::min(_e393, k_last);
        uint _e400 = k_ahead;
        metal::float4 _e402 = load_a(_e14.a, (_e12.row + a_across) + 0u, _e400 + a_along, a, params, _buffer_sizes);
        next_a0_ = _e402;
        uint _e408 = k_ahead;
        metal::float4 _e410 = load_a(_e14.a, (_e12.row + a_across) + 8u, _e408 + a_along, a, params, _buffer_sizes);
        next_a1_ = _e410;
        uint _e414 = k_ahead;
        metal::float4 _e418 = load_b(_e14.b, _e12.column + b_along, (_e414 + b_across) + 0u, b, params, _buffer_sizes);
        next_b0_ = _e418;
        uint _e422 = k_ahead;
        metal::float4 _e426 = load_b(_e14.b, _e12.column + b_along, (_e422 + b_across) + 4u, b, params, _buffer_sizes);
        next_b1_ = _e426;
        uint _e430 = k_ahead;
        metal::float4 _e434 = load_b(_e14.b, _e12.column + b_along, (_e430 + b_across) + 8u, b, params, _buffer_sizes);
        next_b2_ = _e434;
        uint _e438 = k_ahead;
        metal::float4 _e442 = load_b(_e14.b, _e12.column + b_along, (_e438 + b_across) + 12u, b, params, _buffer_sizes);
        next_b3_ = _e442;
        uint _e446 = k_ahead;
        metal::float4 _e450 = load_b(_e14.b, _e12.column + b_along, (_e446 + b_across) + 16u, b, params, _buffer_sizes);
        next_b4_ = _e450;
        uint _e454 = k_ahead;
        metal::float4 _e458 = load_b(_e14.b, _e12.column + b_along, (_e454 + b_across) + 20u, b, params, _buffer_sizes);
        next_b5_ = _e458;
        uint _e462 = k_ahead;
        metal::float4 _e466 = load_b(_e14.b, _e12.column + b_along, (_e462 + b_across) + 24u, b, params, _buffer_sizes);
        next_b6_ = _e466;
        uint _e470 = k_ahead;
        metal::float4 _e474 = load_b(_e14.b, _e12.column + b_along, (_e470 + b_across) + 28u, b, params, _buffer_sizes);
        next_b7_ = _e474;
        deep = 0u;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e704 = deep;
                deep = _e704 + 8u;
            }
            loop_init = false;
            uint _e477 = deep;
            if (_e477 < 32u) {
            } else {
                break;
            }
            {
                uint _e480 = stage;
                uint _e483 = deep;
                uint a_at = ((_e480 * 160u) + (_e483 * 5u)) + ty;
                uint _e488 = stage;
                uint _e491 = deep;
                uint b_at = ((_e488 * 544u) + (_e491 * 17u)) + tx;
                {
                    metal::float4 a0_ = tile_a.inner[a_at + 0u];
                    metal::float4 b0_ = tile_b.inner[b_at + 0u];
                    metal::float4 _e508 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_.x), b0_, _e508);
                    metal::float4 _e512 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_.y), b0_, _e512);
                    metal::float4 _e516 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_.z), b0_, _e516);
                    metal::float4 _e520 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_.w), b0_, _e520);
                }
                {
                    metal::float4 a0_1 = tile_a.inner[a_at + 5u];
                    metal::float4 b0_1 = tile_b.inner[b_at + 17u];
                    metal::float4 _e534 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_1.x), b0_1, _e534);
                    metal::float4 _e538 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_1.y), b0_1, _e538);
                    metal::float4 _e542 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_1.z), b0_1, _e542);
                    metal::float4 _e546 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_1.w), b0_1, _e546);
                }
                {
                    metal::float4 a0_2 = tile_a.inner[a_at + 10u];
                    metal::float4 b0_2 = tile_b.inner[b_at + 34u];
                    metal::float4 _e560 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_2.x), b0_2, _e560);
                    metal::float4 _e564 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_2.y), b0_2, _e564);
                    metal::float4 _e568 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_2.z), b0_2, _e568);
                    metal::float4 _e572 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_2.w), b0_2, _e572);
                }
                {
                    metal::float4 a0_3 = tile_a.inner[a_at + 15u];
                    metal::float4 b0_3 = tile_b.inner[b_at + 51u];
                    metal::float4 _e586 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_3.x), b0_3, _e586);
                    metal::float4 _e590 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_3.y), b0_3, _e590);
                    metal::float4 _e594 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_3.z), b0_3, _e594);
                    metal::float4 _e598 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_3.w), b0_3, _e598);
                }
                {
                    metal::float4 a0_4 = tile_a.inner[a_at + 20u];
                    metal::float4 b0_4 = tile_b.inner[b_at + 68u];
                    metal::float4 _e612 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_4.x), b0_4, _e612);
                    metal::float4 _e616 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_4.y), b0_4, _e616);
                    metal::float4 _e620 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_4.z), b0_4, _e620);
                    metal::float4 _e624 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_4.w), b0_4, _e624);
                }
                {
                    metal::float4 a0_5 = tile_a.inner[a_at + 25u];
                    metal::float4 b0_5 = tile_b.inner[b_at + 85u];
                    metal::float4 _e638 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_5.x), b0_5, _e638);
                    metal::float4 _e642 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_5.y), b0_5, _e642);
                    metal::float4 _e646 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_5.z), b0_5, _e646);
                    metal::float4 _e650 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_5.w), b0_5, _e650);
                }
                {
                    metal::float4 a0_6 = tile_a.inner[a_at + 30u];
                    metal::float4 b0_6 = tile_b.inner[b_at + 102u];
                    metal::float4 _e664 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_6.x), b0_6, _e664);
                    metal::float4 _e668 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_6.y), b0_6, _e668);
                    metal::float4 _e672 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_6.z), b0_6, _e672);
                    metal::float4 _e676 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_6.w), b0_6, _e676);
                }
                {
                    metal::float4 a0_7 = tile_a.inner[a_at + 35u];
                    metal::float4 b0_7 = tile_b.inner[b_at + 119u];
                    metal::float4 _e690 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_7.x), b0_7, _e690);
                    metal::float4 _e694 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_7.y), b0_7, _e694);
                    metal::float4 _e698 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_7.z), b0_7, _e698);
                    metal::float4 _e702 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_7.w), b0_7, _e702);
                }
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    metal::float4 _e720 = sum_0_0_;
    put(_e12.part, _e14, (_e12.row + 0u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e720, out, params, _buffer_sizes);
    metal::float4 _e734 = sum_1_0_;
    put(_e12.part, _e14, (_e12.row + 1u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e734, out, params, _buffer_sizes);
    metal::float4 _e748 = sum_2_0_;
    put(_e12.part, _e14, (_e12.row + 2u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e748, out, params, _buffer_sizes);
    metal::float4 _e762 = sum_3_0_;
    put(_e12.part, _e14, (_e12.row + 3u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e762, out, params, _buffer_sizes);
    return;
}
