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
    return Work {(first + (at_1 % rows)) * 32u, (at_1 / rows) * 32u, k_3, metal::min(k_3 + _e46, _e50), product_1, (share * _e54) + product_1};
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
    uint b_across = (thread_ % 64u) / 8u;
    k = _e12.k;
    uint _e79 = k;
    if (_e79 < _e12.k_end) {
        uint _e87 = k;
        metal::float4 _e89 = load_a(_e14.a, (_e12.row + a_across) + 0u, _e87 + a_along, a, params, _buffer_sizes);
        next_a0_ = _e89;
        uint _e95 = k;
        metal::float4 _e97 = load_a(_e14.a, (_e12.row + a_across) + 1u, _e95 + a_along, a, params, _buffer_sizes);
        next_a1_ = _e97;
        uint _e103 = k;
        metal::float4 _e105 = load_a(_e14.a, (_e12.row + a_across) + 2u, _e103 + a_along, a, params, _buffer_sizes);
        next_a2_ = _e105;
        uint _e111 = k;
        metal::float4 _e113 = load_a(_e14.a, (_e12.row + a_across) + 3u, _e111 + a_along, a, params, _buffer_sizes);
        next_a3_ = _e113;
        uint _e117 = k;
        metal::float4 _e121 = load_b(_e14.b, _e12.column + b_along, (_e117 + b_across) + 0u, b, params, _buffer_sizes);
        next_b0_ = _e121;
        uint _e125 = k;
        metal::float4 _e129 = load_b(_e14.b, _e12.column + b_along, (_e125 + b_across) + 8u, b, params, _buffer_sizes);
        next_b1_ = _e129;
        uint _e133 = k;
        metal::float4 _e137 = load_b(_e14.b, _e12.column + b_along, (_e133 + b_across) + 16u, b, params, _buffer_sizes);
        next_b2_ = _e137;
        uint _e141 = k;
        metal::float4 _e145 = load_b(_e14.b, _e12.column + b_along, (_e141 + b_across) + 24u, b, params, _buffer_sizes);
        next_b3_ = _e145;
    }
    while(true) {
        uint _e146 = k;
        if (_e146 >= _e12.k_end) {
            break;
        }
        {
            uint across = a_across + 0u;
            uint _e151 = stage;
            uint at_2 = ((_e151 * 288u) + (a_along * 9u)) + (across >> 2u);
            float _e165 = next_a0_.x;
            float _e167 = next_a1_.x;
            float _e169 = next_a2_.x;
            float _e171 = next_a3_.x;
            tile_a.inner[at_2 + 0u] = metal::float4(_e165, _e167, _e169, _e171);
            float _e178 = next_a0_.y;
            float _e180 = next_a1_.y;
            float _e182 = next_a2_.y;
            float _e184 = next_a3_.y;
            tile_a.inner[at_2 + 9u] = metal::float4(_e178, _e180, _e182, _e184);
            float _e191 = next_a0_.z;
            float _e193 = next_a1_.z;
            float _e195 = next_a2_.z;
            float _e197 = next_a3_.z;
            tile_a.inner[at_2 + 18u] = metal::float4(_e191, _e193, _e195, _e197);
            float _e204 = next_a0_.w;
            float _e206 = next_a1_.w;
            float _e208 = next_a2_.w;
            float _e210 = next_a3_.w;
            tile_a.inner[at_2 + 27u] = metal::float4(_e204, _e206, _e208, _e210);
        }
        {
            uint across_1 = b_across + 0u;
            uint _e215 = stage;
            metal::float4 _e225 = next_b0_;
            tile_b.inner[((_e215 * 288u) + (across_1 * 9u)) + (b_along >> 2u)] = _e225;
        }
        {
            uint across_2 = b_across + 8u;
            uint _e229 = stage;
            metal::float4 _e239 = next_b1_;
            tile_b.inner[((_e229 * 288u) + (across_2 * 9u)) + (b_along >> 2u)] = _e239;
        }
        {
            uint across_3 = b_across + 16u;
            uint _e243 = stage;
            metal::float4 _e253 = next_b2_;
            tile_b.inner[((_e243 * 288u) + (across_3 * 9u)) + (b_along >> 2u)] = _e253;
        }
        {
            uint across_4 = b_across + 24u;
            uint _e257 = stage;
            metal::float4 _e267 = next_b3_;
            tile_b.inner[((_e257 * 288u) + (across_4 * 9u)) + (b_along >> 2u)] = _e267;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e268 = k;
        k = _e268 + 32u;
        uint _e271 = k;
        if (_e271 < _e12.k_end) {
            uint _e279 = k;
            metal::float4 _e281 = load_a(_e14.a, (_e12.row + a_across) + 0u, _e279 + a_along, a, params, _buffer_sizes);
            next_a0_ = _e281;
            uint _e287 = k;
            metal::float4 _e289 = load_a(_e14.a, (_e12.row + a_across) + 1u, _e287 + a_along, a, params, _buffer_sizes);
            next_a1_ = _e289;
            uint _e295 = k;
            metal::float4 _e297 = load_a(_e14.a, (_e12.row + a_across) + 2u, _e295 + a_along, a, params, _buffer_sizes);
            next_a2_ = _e297;
            uint _e303 = k;
            metal::float4 _e305 = load_a(_e14.a, (_e12.row + a_across) + 3u, _e303 + a_along, a, params, _buffer_sizes);
            next_a3_ = _e305;
            uint _e309 = k;
            metal::float4 _e313 = load_b(_e14.b, _e12.column + b_along, (_e309 + b_across) + 0u, b, params, _buffer_sizes);
            next_b0_ = _e313;
            uint _e317 = k;
            metal::float4 _e321 = load_b(_e14.b, _e12.column + b_along, (_e317 + b_across) + 8u, b, params, _buffer_sizes);
            next_b1_ = _e321;
            uint _e325 = k;
            metal::float4 _e329 = load_b(_e14.b, _e12.column + b_along, (_e325 + b_across) + 16u, b, params, _buffer_sizes);
            next_b2_ = _e329;
            uint _e333 = k;
            metal::float4 _e337 = load_b(_e14.b, _e12.column + b_along, (_e333 + b_across) + 24u, b, params, _buffer_sizes);
            next_b3_ = _e337;
        }
        deep = 0u;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e567 = deep;
                deep = _e567 + 8u;
            }
            loop_init = false;
            uint _e340 = deep;
            if (_e340 < 32u) {
            } else {
                break;
            }
            {
                uint _e343 = stage;
                uint _e346 = deep;
                uint a_at = ((_e343 * 288u) + (_e346 * 9u)) + ty;
                uint _e351 = stage;
                uint _e354 = deep;
                uint b_at = ((_e351 * 288u) + (_e354 * 9u)) + tx;
                {
                    metal::float4 a0_ = tile_a.inner[a_at + 0u];
                    metal::float4 b0_ = tile_b.inner[b_at + 0u];
                    metal::float4 _e371 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_.x), b0_, _e371);
                    metal::float4 _e375 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_.y), b0_, _e375);
                    metal::float4 _e379 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_.z), b0_, _e379);
                    metal::float4 _e383 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_.w), b0_, _e383);
                }
                {
                    metal::float4 a0_1 = tile_a.inner[a_at + 9u];
                    metal::float4 b0_1 = tile_b.inner[b_at + 9u];
                    metal::float4 _e397 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_1.x), b0_1, _e397);
                    metal::float4 _e401 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_1.y), b0_1, _e401);
                    metal::float4 _e405 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_1.z), b0_1, _e405);
                    metal::float4 _e409 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_1.w), b0_1, _e409);
                }
                {
                    metal::float4 a0_2 = tile_a.inner[a_at + 18u];
                    metal::float4 b0_2 = tile_b.inner[b_at + 18u];
                    metal::float4 _e423 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_2.x), b0_2, _e423);
                    metal::float4 _e427 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_2.y), b0_2, _e427);
                    metal::float4 _e431 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_2.z), b0_2, _e431);
                    metal::float4 _e435 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_2.w), b0_2, _e435);
                }
                {
                    metal::float4 a0_3 = tile_a.inner[a_at + 27u];
                    metal::float4 b0_3 = tile_b.inner[b_at + 27u];
                    metal::float4 _e449 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_3.x), b0_3, _e449);
                    metal::float4 _e453 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_3.y), b0_3, _e453);
                    metal::float4 _e457 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_3.z), b0_3, _e457);
                    metal::float4 _e461 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_3.w), b0_3, _e461);
                }
                {
                    metal::float4 a0_4 = tile_a.inner[a_at + 36u];
                    metal::float4 b0_4 = tile_b.inner[b_at + 36u];
                    metal::float4 _e475 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_4.x), b0_4, _e475);
                    metal::float4 _e479 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_4.y), b0_4, _e479);
                    metal::float4 _e483 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_4.z), b0_4, _e483);
                    metal::float4 _e487 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_4.w), b0_4, _e487);
                }
                {
                    metal::float4 a0_5 = tile_a.inner[a_at + 45u];
                    metal::float4 b0_5 = tile_b.inner[b_at + 45u];
                    metal::float4 _e501 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_5.x), b0_5, _e501);
                    metal::float4 _e505 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_5.y), b0_5, _e505);
                    metal::float4 _e509 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_5.z), b0_5, _e509);
                    metal::float4 _e513 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_5.w), b0_5, _e513);
                }
                {
                    metal::float4 a0_6 = tile_a.inner[a_at + 54u];
                    metal::float4 b0_6 = tile_b.inner[b_at + 54u];
                    metal::float4 _e527 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_6.x), b0_6, _e527);
                    metal::float4 _e531 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_6.y), b0_6, _e531);
                    metal::float4 _e535 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_6.z), b0_6, _e535);
                    metal::float4 _e539 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_6.w), b0_6, _e539);
                }
                {
                    metal::float4 a0_7 = tile_a.inner[a_at + 63u];
                    metal::float4 b0_7 = tile_b.inner[b_at + 63u];
                    metal::float4 _e553 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_7.x), b0_7, _e553);
                    metal::float4 _e557 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_7.y), b0_7, _e557);
                    metal::float4 _e561 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_7.z), b0_7, _e561);
                    metal::float4 _e565 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_7.w), b0_7, _e565);
                }
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    metal::float4 _e583 = sum_0_0_;
    put(_e12.part, _e14, (_e12.row + 0u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e583, out, params, _buffer_sizes);
    metal::float4 _e597 = sum_1_0_;
    put(_e12.part, _e14, (_e12.row + 1u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e597, out, params, _buffer_sizes);
    metal::float4 _e611 = sum_2_0_;
    put(_e12.part, _e14, (_e12.row + 2u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e611, out, params, _buffer_sizes);
    metal::float4 _e625 = sum_3_0_;
    put(_e12.part, _e14, (_e12.row + 3u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e625, out, params, _buffer_sizes);
    return;
}
