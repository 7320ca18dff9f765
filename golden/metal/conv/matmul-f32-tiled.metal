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
    uint across;
    uint pixels;
    uint step_x;
    uint step_y;
    uint step_image;
    uint run;
    uint jump;
    uint terms;
    uint zeros;
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
    metal::float4 inner[288];
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

uint window(
    uint number,
    constant Params& params
) {
    uint _e3 = params.pixels;
    uint pixel = number % _e3;
    uint _e7 = params.pixels;
    uint _e11 = params.step_image;
    uint _e15 = params.across;
    uint _e19 = params.step_y;
    uint _e24 = params.across;
    uint _e28 = params.step_x;
    return (((number / _e7) * _e11) + ((pixel / _e15) * _e19)) + ((pixel % _e24) * _e28);
}

uint seen(
    uint start,
    uint k_1,
    constant Params& params
) {
    uint _e5 = params.run;
    uint _e9 = params.jump;
    uint at = (start + k_1) + ((k_1 / _e5) * _e9);
    uint _e14 = params.zeros;
    uint _e17 = params.terms;
    return ((k_1 >= _e17) ? _e14 : at) >> 2u;
}

metal::float4 load_a(
    uint start_1,
    uint outer,
    uint k_2,
    device type_2 const& a,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.m;
    uint row_4 = metal::min(outer, _e5 - 1u);
    uint _e12 = params.a_outer;
    metal::float4 _e19 = a[((start_1 + (row_4 * _e12)) + k_2) >> 2u];
    return static_cast<metal::float4>(_e19);
}

metal::float4 load_b(
    uint start_2,
    uint outer_1,
    uint k_3,
    device type_2 const& b,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e6 = params.n;
    uint _e10 = window(metal::min(outer_1, _e6 - 1u), params);
    uint _e12 = seen(start_2 + _e10, k_3, params);
    metal::float4 _e14 = b[_e12];
    return static_cast<metal::float4>(_e14);
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
    uint _e5 = params.pixels;
    uint _e9 = params.m;
    uint _e14 = params.pixels;
    uint _e18 = params.pixels;
    return ((((column / _e5) * _e9) + row) * _e14) + (column % _e18);
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
    uint at_1 = tile % in_band;
    uint _e35 = params.share;
    uint k_4 = share * _e35;
    uint _e46 = params.share;
    uint _e50 = params.k;
    uint _e54 = params.products;
    return Work {(first + (at_1 % rows)) * 32u, (at_1 / rows) * 32u, k_4, metal::min(k_4 + _e46, _e50), product_1, (share * _e54) + product_1};
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
, threadgroup type_5& tile_b
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    metal::float4 next_a0_ = metal::float4 {};
    metal::float4 next_a1_ = metal::float4 {};
    metal::float4 next_a2_ = metal::float4 {};
    metal::float4 next_a3_ = metal::float4 {};
    metal::float4 next_b0_ = metal::float4 {};
    metal::float4 next_b1_ = metal::float4 {};
    metal::float4 next_b2_ = metal::float4 {};
    metal::float4 next_b3_ = metal::float4 {};
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
    uint ty = ((crew / 1u) * 4u) + (lane / 8u);
    uint tx = ((crew % 1u) * 8u) + (lane % 8u);
    uint a_along = (thread_ % 8u) * 4u;
    uint a_across = ((thread_ % 64u) / 8u) * 4u;
    uint b_along = (thread_ % 8u) * 4u;
    uint b_across = ((thread_ % 64u) / 8u) * 4u;
    uint _e84 = params.n;
    uint _e88 = window(metal::min((_e12.column + b_across) + 0u, _e84 - 1u), params);
    uint from0_ = _e14.b + _e88;
    uint _e97 = params.n;
    uint _e101 = window(metal::min((_e12.column + b_across) + 1u, _e97 - 1u), params);
    uint from1_ = _e14.b + _e101;
    uint _e110 = params.n;
    uint _e114 = window(metal::min((_e12.column + b_across) + 2u, _e110 - 1u), params);
    uint from2_ = _e14.b + _e114;
    uint _e123 = params.n;
    uint _e127 = window(metal::min((_e12.column + b_across) + 3u, _e123 - 1u), params);
    uint from3_ = _e14.b + _e127;
    k = _e12.k;
    uint _e131 = k;
    k_ahead = _e131;
    uint k_last = _e12.k + ((((metal::max(_e12.k_end, _e12.k + 1u) - 1u) - _e12.k) / 32u) * 32u);
    uint _e150 = k;
    if (_e150 < _e12.k_end) {
        uint _e158 = k_ahead;
        metal::float4 _e160 = load_a(_e14.a, (_e12.row + a_across) + 0u, _e158 + a_along, a, params, _buffer_sizes);
        next_a0_ = _e160;
        uint _e166 = k_ahead;
        metal::float4 _e168 = load_a(_e14.a, (_e12.row + a_across) + 1u, _e166 + a_along, a, params, _buffer_sizes);
        next_a1_ = _e168;
        uint _e174 = k_ahead;
        metal::float4 _e176 = load_a(_e14.a, (_e12.row + a_across) + 2u, _e174 + a_along, a, params, _buffer_sizes);
        next_a2_ = _e176;
        uint _e182 = k_ahead;
        metal::float4 _e184 = load_a(_e14.a, (_e12.row + a_across) + 3u, _e182 + a_along, a, params, _buffer_sizes);
        next_a3_ = _e184;
        uint _e186 = k_ahead;
        uint _e188 = seen(from0_, _e186 + b_along, params);
        metal::float4 _e190 = b[_e188];
        next_b0_ = static_cast<metal::float4>(_e190);
        uint _e193 = k_ahead;
        uint _e195 = seen(from1_, _e193 + b_along, params);
        metal::float4 _e197 = b[_e195];
        next_b1_ = static_cast<metal::float4>(_e197);
        uint _e200 = k_ahead;
        uint _e202 = seen(from2_, _e200 + b_along, params);
        metal::float4 _e204 = b[_e202];
        next_b2_ = static_cast<metal::float4>(_e204);
        uint _e207 = k_ahead;
        uint _e209 = seen(from3_, _e207 + b_along, params);
        metal::float4 _e211 = b[_e209];
        next_b3_ = static_cast<metal::float4>(_e211);
    }
    while(true) {
        uint _e213 = k;
        if (_e213 >= _e12.k_end) {
            break;
        }
        {
            uint across = a_across + 0u;
            uint _e218 = stage;
            uint at_2 = ((_e218 * 288u) + (a_along * 9u)) + (across >> 2u);
            float _e232 = next_a0_.x;
            float _e234 = next_a1_.x;
            float _e236 = next_a2_.x;
            float _e238 = next_a3_.x;
            tile_a.inner[at_2 + 0u] = metal::float4(_e232, _e234, _e236, _e238);
            float _e245 = next_a0_.y;
            float _e247 = next_a1_.y;
            float _e249 = next_a2_.y;
            float _e251 = next_a3_.y;
            tile_a.inner[at_2 + 9u] = metal::float4(_e245, _e247, _e249, _e251);
            float _e258 = next_a0_.z;
            float _e260 = next_a1_.z;
            float _e262 = next_a2_.z;
            float _e264 = next_a3_.z;
            tile_a.inner[at_2 + 18u] = metal::float4(_e258, _e260, _e262, _e264);
            float _e271 = next_a0_.w;
            float _e273 = next_a1_.w;
            float _e275 = next_a2_.w;
            float _e277 = next_a3_.w;
            tile_a.inner[at_2 + 27u] = metal::float4(_e271, _e273, _e275, _e277);
        }
        {
            uint across_1 = b_across + 0u;
            uint _e281 = stage;
            uint at_3 = ((_e281 * 288u) + (b_along * 9u)) + (across_1 >> 2u);
            float _e295 = next_b0_.x;
            float _e297 = next_b1_.x;
            float _e299 = next_b2_.x;
            float _e301 = next_b3_.x;
            tile_b.inner[at_3 + 0u] = metal::float4(_e295, _e297, _e299, _e301);
            float _e308 = next_b0_.y;
            float _e310 = next_b1_.y;
            float _e312 = next_b2_.y;
            float _e314 = next_b3_.y;
            tile_b.inner[at_3 + 9u] = metal::float4(_e308, _e310, _e312, _e314);
            float _e321 = next_b0_.z;
            float _e323 = next_b1_.z;
            float _e325 = next_b2_.z;
            float _e327 = next_b3_.z;
            tile_b.inner[at_3 + 18u] = metal::float4(_e321, _e323, _e325, _e327);
            float _e334 = next_b0_.w;
            float _e336 = next_b1_.w;
            float _e338 = next_b2_.w;
            float _e340 = next_b3_.w;
            tile_b.inner[at_3 + 27u] = metal::float4(_e334, _e336, _e338, _e340);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e342 = k;
        k = _e342 + 32u;
        uint _e345 = k;
        k_ahead = metal::min(_e345, k_last);
        uint _e352 = k_ahead;
        metal::float4 _e354 = load_a(_e14.a, (_e12.row + a_across) + 0u, _e352 + a_along, a, params, _buffer_sizes);
        next_a0_ = _e354;
        uint _e360 = k_ahead;
        metal::float4 _e362 = load_a(_e14.a, (_e12.row + a_across) + 1u, _e360 + a_along, a, params, _buffer_sizes);
        next_a1_ = _e362;
        uint _e368 = k_ahead;
        metal::float4 _e370 = load_a(_e14.a, (_e12.row + a_across) + 2u, _e368 + a_along, a, params, _buffer_sizes);
        next_a2_ = _e370;
        uint _e376 = k_ahead;
        metal::float4 _e378 = load_a(_e14.a, (_e12.row + a_across) + 3u, _e376 + a_along, a, params, _buffer_sizes);
        next_a3_ = _e378;
        uint _e380 = k_ahead;
        uint _e382 = seen(from0_, _e380 + b_along, params);
        metal::float4 _e384 = b[_e382];
        next_b0_ = static_cast<metal::float4>(_e384);
        uint _e387 = k_ahead;
        uint _e389 = seen(from1_, _e387 + b_along, params);
        metal::float4 _e391 = b[_e389];
        next_b1_ = static_cast<metal::float4>(_e391);
        uint _e394 = k_ahead;
        uint _e396 = seen(from2_, _e394 + b_along, params);
        metal::float4 _e398 = b[_e396];
        next_b2_ = static_cast<metal::float4>(_e398);
        uint _e401 = k_ahead;
        uint _e403 = seen(from3_, _e401 + b_along, params);
        metal::float4 _e405 = b[_e403];
        next_b3_ = static_cast<metal::float4>(_e405);
        deep = 0u;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e636 = deep;
                deep = _e636 + 8u;
            }
            loop_init = false;
            uint _e409 = deep;
            if (_e409 < 32u) {
            } else {
                break;
            }
            {
                uint _e412 = stage;
                uint _e415 = deep;
                uint a_at = ((_e412 * 288u) + (_e415 * 9u)) + ty;
                uint _e420 = stage;
                uint _e423 = deep;
                uint b_at = ((_e420 * 288u) + (_e423 * 9u)) + tx;
                {
                    metal::float4 a0_ = tile_a.inner[a_at + 0u];
                    metal::float4 b0_ = tile_b.inner[b_at + 0u];
                    metal::float4 _e440 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_.x), b0_, _e440);
                    metal::float4 _e444 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_.y), b0_, _e444);
                    metal::float4 _e448 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_.z), b0_, _e448);
                    metal::float4 _e452 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_.w), b0_, _e452);
                }
                {
                    metal::float4 a0_1 = tile_a.inner[a_at + 9u];
                    metal::float4 b0_1 = tile_b.inner[b_at + 9u];
                    metal::float4 _e466 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_1.x), b0_1, _e466);
                    metal::float4 _e470 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_1.y), b0_1, _e470);
                    metal::float4 _e474 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_1.z), b0_1, _e474);
                    metal::float4 _e478 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_1.w), b0_1, _e478);
                }
                {
                    metal::float4 a0_2 = tile_a.inner[a_at + 18u];
                    metal::float4 b0_2 = tile_b.inner[b_at + 18u];
                    metal::float4 _e492 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_2.x), b0_2, _e492);
                    metal::float4 _e496 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_2.y), b0_2, _e496);
                    metal::float4 _e500 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_2.z), b0_2, _e500);
                    metal::float4 _e504 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_2.w), b0_2, _e504);
                }
                {
                    metal::float4 a0_3 = tile_a.inner[a_at + 27u];
                    metal::float4 b0_3 = tile_b.inner[b_at + 27u];
                    metal::float4 _e518 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_3.x), b0_3, _e518);
                    metal::float4 _e522 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_3.y), b0_3, _e522);
                    metal::float4 _e526 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_3.z), b0_3, _e526);
                    metal::float4 _e530 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_3.w), b0_3, _e530);
                }
                {
                    metal::float4 a0_4 = tile_a.inner[a_at + 36u];
                    metal::float4 b0_4 = tile_b.inner[b_at + 36u];
                    metal::float4 _e544 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_4.x), b0_4, _e544);
                    metal::float4 _e548 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_4.y), b0_4, _e548);
                    metal::float4 _e552 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_4.z), b0_4, _e552);
                    metal::float4 _e556 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_4.w), b0_4, _e556);
                }
                {
                    metal::float4 a0_5 = tile_a.inner[a_at + 45u];
                    metal::float4 b0_5 = tile_b.inner[b_at + 45u];
                    metal::float4 _e570 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_5.x), b0_5, _e570);
                    metal::float4 _e574 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_5.y), b0_5, _e574);
                    metal::float4 _e578 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_5.z), b0_5, _e578);
                    metal::float4 _e582 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_5.w), b0_5, _e582);
                }
                {
                    metal::float4 a0_6 = tile_a.inner[a_at + 54u];
                    metal::float4 b0_6 = tile_b.inner[b_at + 54u];
                    metal::float4 _e596 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_6.x), b0_6, _e596);
                    metal::float4 _e600 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_6.y), b0_6, _e600);
                    metal::float4 _e604 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_6.z), b0_6, _e604);
                    metal::float4 _e608 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_6.w), b0_6, _e608);
                }
                {
                    metal::float4 a0_7 = tile_a.inner[a_at + 63u];
                    metal::float4 b0_7 = tile_b.inner[b_at + 63u];
                    metal::float4 _e622 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_7.x), b0_7, _e622);
                    metal::float4 _e626 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_7.y), b0_7, _e626);
                    metal::float4 _e630 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_7.z), b0_7, _e630);
                    metal::float4 _e634 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_7.w), b0_7, _e634);
                }
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    metal::float4 _e652 = sum_0_0_;
    put(_e12.part, _e14, (_e12.row + 0u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e652, out, params, _buffer_sizes);
    metal::float4 _e666 = sum_1_0_;
    put(_e12.part, _e14, (_e12.row + 1u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e666, out, params, _buffer_sizes);
    metal::float4 _e680 = sum_2_0_;
    put(_e12.part, _e14, (_e12.row + 2u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e680, out, params, _buffer_sizes);
    metal::float4 _e694 = sum_3_0_;
    put(_e12.part, _e14, (_e12.row + 3u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e694, out, params, _buffer_sizes);
    return;
}
