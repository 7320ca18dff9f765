// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
    uint size3;
    uint size4;
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
    uint row_6 = metal::min(outer, _e5 - 1u);
    uint _e12 = params.a_outer;
    metal::float4 _e19 = a[((start + (row_6 * _e12)) + k_1) >> 2u];
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

metal::float4 erf_complement(
    metal::float4 z
) {
    metal::float4 p = metal::float4(0.15217128);
    metal::float4 t = metal::float4(1.0) / (metal::float4(1.0) + (0.5 * z));
    metal::float4 _e12 = p;
    p = (_e12 * t) - metal::float4(0.72015756);
    metal::float4 _e17 = p;
    p = (_e17 * t) + metal::float4(1.248985);
    metal::float4 _e22 = p;
    p = (_e22 * t) - metal::float4(0.8185366);
    metal::float4 _e27 = p;
    p = (_e27 * t) + metal::float4(0.020350492);
    metal::float4 _e32 = p;
    p = (_e32 * t) - metal::float4(0.051861517);
    metal::float4 _e37 = p;
    p = (_e37 * t) + metal::float4(0.0525327);
    metal::float4 _e42 = p;
    p = (_e42 * t) + metal::float4(0.38292456);
    metal::float4 _e47 = p;
    p = (_e47 * t) + metal::float4(0.9990604);
    metal::float4 _e52 = p;
    p = (_e52 * t) - metal::float4(1.2654687);
    metal::float4 _e57 = p;
    return t * metal::exp(_e57 - (z * z));
}

metal::float4 activated(
    metal::float4 v
) {
    metal::float4 _e4 = erf_complement(metal::abs(v) * 0.70710677);
    metal::float4 half_complement = 0.5 * _e4;
    return v * metal::select(half_complement, metal::float4(1.0) - half_complement, v >= metal::float4(0.0));
}

metal::float4 activate(
    metal::float4 v_1
) {
    metal::uint4 bits = as_type<metal::uint4>(v_1);
    metal::bool4 lacks = (bits & metal::uint4(2147483647u)) > metal::uint4(2139095040u);
    metal::float4 _e8 = activated(v_1);
    return as_type<metal::float4>(metal::select(as_type<metal::uint4>(_e8), bits, lacks));
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

metal::float4 biased(
    uint row_1,
    uint column_1,
    device type_2 const& bias,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.n;
    metal::float4 _e12 = bias[metal::min(column_1, _e5 - 4u) >> 2u];
    return static_cast<metal::float4>(_e12);
}

metal::float4 added(
    Starts base_1,
    uint row_2,
    uint column_2,
    device type_2 const& more,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.m;
    uint own = metal::min(row_2, _e5 - 1u);
    uint _e11 = params.n;
    uint first_1 = metal::min(column_2, _e11 - 4u);
    uint _e19 = params.more_outer;
    metal::float4 _e26 = more[((base_1.more + (own * _e19)) + first_1) >> 2u];
    return static_cast<metal::float4>(_e26);
}

metal::float4 finish(
    metal::float4 sums,
    metal::float4 first,
    metal::float4 other,
    constant Params& params
) {
    metal::float4 v_2 = {};
    float _e5 = params.alpha;
    v_2 = sums * _e5;
    metal::float4 _e8 = v_2;
    v_2 = _e8 + first;
    metal::float4 _e10 = v_2;
    float _e13 = params.beta;
    v_2 = _e10 + (_e13 * other);
    metal::float4 _e16 = v_2;
    metal::float4 _e17 = activate(_e16);
    return _e17;
}

metal::float4 settle(
    Starts base_2,
    uint row_3,
    uint column_3,
    metal::float4 sums_1,
    device type_2 const& bias,
    device type_2 const& more,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 _e4 = biased(row_3, column_3, bias, params, _buffer_sizes);
    metal::float4 _e5 = added(base_2, row_3, column_3, more, params, _buffer_sizes);
    metal::float4 _e6 = finish(sums_1, _e4, _e5, params);
    return _e6;
}

void keep(
    uint part,
    Starts base_3,
    uint row_4,
    uint column_4,
    metal::float4 v_3,
    device type_2& out,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local = {};
    uint _e7 = params.m;
    if (!((row_4 >= _e7))) {
        uint _e14 = params.n;
        local = column_4 >= _e14;
    } else {
        local = true;
    }
    bool _e17 = local;
    if (_e17) {
        return;
    }
    uint _e18 = place(base_3, row_4, column_4, params);
    out[_e18 >> 2u] = static_cast<metal::float4>(v_3);
    return;
}

void put(
    uint part_1,
    Starts base_4,
    uint row_5,
    uint column_5,
    metal::float4 sums_2,
    device type_2 const& bias,
    device type_2 const& more,
    device type_2& out,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    bool local_1 = {};
    uint _e7 = params.m;
    if (!((row_5 >= _e7))) {
        uint _e14 = params.n;
        local_1 = column_5 >= _e14;
    } else {
        local_1 = true;
    }
    bool _e17 = local_1;
    if (_e17) {
        return;
    }
    metal::float4 _e18 = settle(base_4, row_5, column_5, sums_2, bias, more, params, _buffer_sizes);
    keep(part_1, base_4, row_5, column_5, _e18, out, params, _buffer_sizes);
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
    uint first_2 = (tile / in_band) * 8u;
    uint _e29 = params.tiles_m;
    uint rows = metal::min(8u, _e29 - first_2);
    uint at = tile % in_band;
    uint _e35 = params.share;
    uint k_3 = share * _e35;
    uint _e46 = params.share;
    uint _e50 = params.k;
    uint _e54 = params.products;
    return Work {(first_2 + (at % rows)) * 32u, (at / rows) * 32u, k_3, metal::min(k_3 + _e46, _e50), product_1, (share * _e54) + product_1};
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint thread_ [[thread_index_in_threadgroup]]
, device type_2 const& a [[buffer(0)]]
, device type_2 const& b [[buffer(1)]]
, device type_2 const& bias [[buffer(2)]]
, device type_2 const& more [[buffer(3)]]
, device type_2& out [[buffer(4)]]
, constant Params& params [[buffer(5)]]
, threadgroup type_5& tile_a
, threadgroup type_5& tile_b
, constant _mslBufferSizes& _buffer_sizes [[buffer(6)]]
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
    uint b_across = (thread_ % 64u) / 8u;
    k = _e12.k;
    uint _e77 = k;
    k_ahead = _e77;
    uint k_last = _e12.k + ((((metal::max(_e12.k_end, _e12.k + 1u) - 1u) - _e12.k) / 32u) * 32u);
    uint _e96 = k;
    if (_e96 < _e12.k_end) {
        uint _e104 = k_ahead;
        metal::float4 _e106 = load_a(_e14.a, (_e12.row + a_across) + 0u, _e104 + a_along, a, params, _buffer_sizes);
        next_a0_ = _e106;
        uint _e112 = k_ahead;
        metal::float4 _e114 = load_a(_e14.a, (_e12.row + a_across) + 1u, _e112 + a_along, a, params, _buffer_sizes);
        next_a1_ = _e114;
        uint _e120 = k_ahead;
        metal::float4 _e122 = load_a(_e14.a, (_e12.row + a_across) + 2u, _e120 + a_along, a, params, _buffer_sizes);
        next_a2_ = _e122;
        uint _e128 = k_ahead;
        metal::float4 _e130 = load_a(_e14.a, (_e12.row + a_across) + 3u, _e128 + a_along, a, params, _buffer_sizes);
        next_a3_ = _e130;
        uint _e134 = k_ahead;
        metal::float4 _e138 = load_b(_e14.b, _e12.column + b_along, (_e134 + b_across) + 0u, b, params, _buffer_sizes);
        next_b0_ = _e138;
        uint _e142 = k_ahead;
        metal::float4 _e146 = load_b(_e14.b, _e12.column + b_along, (_e142 + b_across) + 8u, b, params, _buffer_sizes);
        next_b1_ = _e146;
        uint _e150 = k_ahead;
        metal::float4 _e154 = load_b(_e14.b, _e12.column + b_along, (_e150 + b_across) + 16u, b, params, _buffer_sizes);
        next_b2_ = _e154;
        uint _e158 = k_ahead;
        metal::float4 _e162 = load_b(_e14.b, _e12.column + b_along, (_e158 + b_across) + 24u, b, params, _buffer_sizes);
        next_b3_ = _e162;
    }
    while(true) {
        uint _e163 = k;
        if (_e163 >= _e12.k_end) {
            break;
        }
        {
            uint across = a_across + 0u;
            uint _e168 = stage;
            uint at_1 = ((_e168 * 288u) + (a_along * 9u)) + (across >> 2u);
            float _e182 = next_a0_.x;
            float _e184 = next_a1_.x;
            float _e186 = next_a2_.x;
            float _e188 = next_a3_.x;
            tile_a.inner[at_1 + 0u] = metal::float4(_e182, _e184, _e186, _e188);
            float _e195 = next_a0_.y;
            float _e197 = next_a1_.y;
            float _e199 = next_a2_.y;
            float _e201 = next_a3_.y;
            tile_a.inner[at_1 + 9u] = metal::float4(_e195, _e197, _e199, _e201);
            float _e208 = next_a0_.z;
            float _e210 = next_a1_.z;
            float _e212 = next_a2_.z;
            float _e214 = next_a3_.z;
            tile_a.inner[at_1 + 18u] = metal::float4(_e208, _e210, _e212, _e214);
            float _e221 = next_a0_.w;
            float _e223 = next_a1_.w;
            float _e225 = next_a2_.w;
            float _e227 = next_a3_.w;
            tile_a.inner[at_1 + 27u] = metal::float4(_e221, _e223, _e225, _e227);
        }
        {
            uint across_1 = b_across + 0u;
            uint _e232 = stage;
            metal::float4 _e242 = next_b0_;
            tile_b.inner[((_e232 * 288u) + (across_1 * 9u)) + (b_along >> 2u)] = _e242;
        }
        {
            uint across_2 = b_across + 8u;
            uint _e246 = stage;
            metal::float4 _e256 = next_b1_;
            tile_b.inner[((_e246 * 288u) + (across_2 * 9u)) + (b_along >> 2u)] = _e256;
        }
        {
            uint across_3 = b_across + 16u;
            uint _e260 = stage;
            metal::float4 _e270 = next_b2_;
            tile_b.inner[((_e260 * 288u) + (across_3 * 9u)) + (b_along >> 2u)] = _e270;
        }
        {
            uint across_4 = b_across + 24u;
            uint _e274 = stage;
            metal::float4 _e284 = next_b3_;
            tile_b.inner[((_e274 * 288u) + (across_4 * 9u)) + (b_along >> 2u)] = _e284;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e285 = k;
        k = _e285 + 32u;
        uint _e288 = k;
        k_ahead = metal::min(_e288, k_last);
        uint _e295 = k_ahead;
        metal::float4 _e297 = load_a(_e14.a, (_e12.row + a_across) + 0u, _e295 + a_along, a, params, _buffer_sizes);
        next_a0_ = _e297;
        uint _e303 = k_ahead;
        metal::float4 _e305 = load_a(_e14.a, (_e12.row + a_across) + 1u, _e303 + a_along, a, params, _buffer_sizes);
        next_a1_ = _e305;
        uint _e311 = k_ahead;
        metal::float4 _e313 = load_a(_e14.a, (_e12.row + a_across) + 2u, _e311 + a_along, a, params, _buffer_sizes);
        next_a2_ = _e313;
        uint _e319 = k_ahead;
        metal::float4 _e321 = load_a(_e14.a, (_e12.row + a_across) + 3u, _e319 + a_along, a, params, _buffer_sizes);
        next_a3_ = _e321;
        uint _e325 = k_ahead;
        metal::float4 _e329 = load_b(_e14.b, _e12.column + b_along, (_e325 + b_across) + 0u, b, params, _buffer_sizes);
        next_b0_ = _e329;
        uint _e333 = k_ahead;
        metal::float4 _e337 = load_b(_e14.b, _e12.column + b_along, (_e333 + b_across) + 8u, b, params, _buffer_sizes);
        next_b1_ = _e337;
        uint _e341 = k_ahead;
        metal::float4 _e345 = load_b(_e14.b, _e12.column + b_along, (_e341 + b_across) + 16u, b, params, _buffer_sizes);
        next_b2_ = _e345;
        uint _e349 = k_ahead;
        metal::float4 _e353 = load_b(_e14.b, _e12.column + b_along, (_e349 + b_across) + 24u, b, params, _buffer_sizes);
        next_b3_ = _e353;
        deep = 0u;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e583 = deep;
                deep = _e583 + 8u;
            }
            loop_init = false;
            uint _e356 = deep;
            if (_e356 < 32u) {
            } else {
                break;
            }
            {
                uint _e359 = stage;
                uint _e362 = deep;
                uint a_at = ((_e359 * 288u) + (_e362 * 9u)) + ty;
                uint _e367 = stage;
                uint _e370 = deep;
                uint b_at = ((_e367 * 288u) + (_e370 * 9u)) + tx;
                {
                    metal::float4 a0_ = tile_a.inner[a_at + 0u];
                    metal::float4 b0_ = tile_b.inner[b_at + 0u];
                    metal::float4 _e387 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_.x), b0_, _e387);
                    metal::float4 _e391 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_.y), b0_, _e391);
                    metal::float4 _e395 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_.z), b0_, _e395);
                    metal::float4 _e399 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_.w), b0_, _e399);
                }
                {
                    metal::float4 a0_1 = tile_a.inner[a_at + 9u];
                    metal::float4 b0_1 = tile_b.inner[b_at + 9u];
                    metal::float4 _e413 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_1.x), b0_1, _e413);
                    metal::float4 _e417 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_1.y), b0_1, _e417);
                    metal::float4 _e421 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_1.z), b0_1, _e421);
                    metal::float4 _e425 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_1.w), b0_1, _e425);
                }
                {
                    metal::float4 a0_2 = tile_a.inner[a_at + 18u];
                    metal::float4 b0_2 = tile_b.inner[b_at + 18u];
                    metal::float4 _e439 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_2.x), b0_2, _e439);
                    metal::float4 _e443 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_2.y), b0_2, _e443);
                    metal::float4 _e447 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_2.z), b0_2, _e447);
                    metal::float4 _e451 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_2.w), b0_2, _e451);
                }
                {
                    metal::float4 a0_3 = tile_a.inner[a_at + 27u];
                    metal::float4 b0_3 = tile_b.inner[b_at + 27u];
                    metal::float4 _e465 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_3.x), b0_3, _e465);
                    metal::float4 _e469 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_3.y), b0_3, _e469);
                    metal::float4 _e473 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_3.z), b0_3, _e473);
                    metal::float4 _e477 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_3.w), b0_3, _e477);
                }
                {
                    metal::float4 a0_4 = tile_a.inner[a_at + 36u];
                    metal::float4 b0_4 = tile_b.inner[b_at + 36u];
                    metal::float4 _e491 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_4.x), b0_4, _e491);
                    metal::float4 _e495 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_4.y), b0_4, _e495);
                    metal::float4 _e499 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_4.z), b0_4, _e499);
                    metal::float4 _e503 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_4.w), b0_4, _e503);
                }
                {
                    metal::float4 a0_5 = tile_a.inner[a_at + 45u];
                    metal::float4 b0_5 = tile_b.inner[b_at + 45u];
                    metal::float4 _e517 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_5.x), b0_5, _e517);
                    metal::float4 _e521 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_5.y), b0_5, _e521);
                    metal::float4 _e525 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_5.z), b0_5, _e525);
                    metal::float4 _e529 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_5.w), b0_5, _e529);
                }
                {
                    metal::float4 a0_6 = tile_a.inner[a_at + 54u];
                    metal::float4 b0_6 = tile_b.inner[b_at + 54u];
                    metal::float4 _e543 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_6.x), b0_6, _e543);
                    metal::float4 _e547 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_6.y), b0_6, _e547);
                    metal::float4 _e551 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_6.z), b0_6, _e551);
                    metal::float4 _e555 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_6.w), b0_6, _e555);
                }
                {
                    metal::float4 a0_7 = tile_a.inner[a_at + 63u];
                    metal::float4 b0_7 = tile_b.inner[b_at + 63u];
                    metal::float4 _e569 = sum_0_0_;
                    sum_0_0_ = metal::fma(metal::float4(a0_7.x), b0_7, _e569);
                    metal::float4 _e573 = sum_1_0_;
                    sum_1_0_ = metal::fma(metal::float4(a0_7.y), b0_7, _e573);
                    metal::float4 _e577 = sum_2_0_;
                    sum_2_0_ = metal::fma(metal::float4(a0_7.z), b0_7, _e577);
                    metal::float4 _e581 = sum_3_0_;
                    sum_3_0_ = metal::fma(metal::float4(a0_7.w), b0_7, _e581);
                }
            }
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    metal::float4 _e599 = sum_0_0_;
    put(_e12.part, _e14, (_e12.row + 0u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e599, bias, more, out, params, _buffer_sizes);
    metal::float4 _e613 = sum_1_0_;
    put(_e12.part, _e14, (_e12.row + 1u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e613, bias, more, out, params, _buffer_sizes);
    metal::float4 _e627 = sum_2_0_;
    put(_e12.part, _e14, (_e12.row + 2u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e627, bias, more, out, params, _buffer_sizes);
    metal::float4 _e641 = sum_3_0_;
    put(_e12.part, _e14, (_e12.row + 3u) + (ty * 4u), (_e12.column + 0u) + (tx * 4u), _e641, bias, more, out, params, _buffer_sizes);
    return;
}
