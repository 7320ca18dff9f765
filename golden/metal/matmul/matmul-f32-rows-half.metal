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
    float inner[32];
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
    uint row_5 = metal::min(outer_1, _e5 - 1u);
    uint _e12 = params.b_outer;
    metal::float4 _e19 = b[((start_1 + (row_5 * _e12)) + k_2) >> 2u];
    return static_cast<metal::float4>(_e19);
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
    uint k_3 = share * _e35;
    uint _e46 = params.share;
    uint _e50 = params.k;
    uint _e54 = params.products;
    return Work {(first + (at % rows)) * 1u, (at / rows) * 32u, k_3, metal::min(k_3 + _e46, _e50), product_1, (share * _e54) + product_1};
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint index [[thread_index_in_threadgroup]]
, uint subgroup [[simdgroup_index_in_threadgroup]]
, uint lane [[thread_index_in_simdgroup]]
, uint lanes [[threads_per_simdgroup]]
, device type_2 const& a [[buffer(0)]]
, device type_2 const& b [[buffer(1)]]
, device type_4 const& zeros [[buffer(2)]]
, device type_2& out [[buffer(3)]]
, constant Params& params [[buffer(4)]]
, threadgroup type_6& parts
, constant _mslBufferSizes& _buffer_sizes [[buffer(5)]]
) {
    float sum0_ = 0.0;
    float sum1_ = 0.0;
    float sum2_ = 0.0;
    float sum3_ = 0.0;
    uint k = {};
    metal::float4 sum = metal::float4 {};
    uint part = 0u;
    uint id_1 = group.x + (group.y * groups.x);
    uint _e13 = params.total;
    if (id_1 >= _e13) {
        return;
    }
    Work _e15 = work(id_1, params);
    Starts _e17 = starts(_e15.product, params);
    uint thread_ = (subgroup * lanes) + lane;
    uint team = thread_ / 32u;
    uint first_1 = _e15.column + (team * 4u);
    k = _e15.k + ((thread_ % 32u) * 4u);
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e289 = k;
            k = _e289 + 128u;
        }
        loop_init = false;
        uint _e41 = k;
        if (_e41 < _e15.k_end) {
        } else {
            break;
        }
        {
            uint _e47 = k;
            metal::float4 _e48 = load_b(_e17.b, first_1 + 0u, _e47, b, params, _buffer_sizes);
            uint _e53 = params.n;
            uint _e59 = params.k;
            uint _e61 = k;
            uint kept0_ = ((metal::min(first_1 + 0u, _e53 - 1u) * _e59) + _e61) / 4u;
            uint _e69 = zeros[kept0_ / 4u];
            uint code0_ = _e69 >> ((kept0_ % 4u) * 8u);
            uint _e78 = k;
            metal::float4 _e79 = load_b(_e17.b, first_1 + 1u, _e78, b, params, _buffer_sizes);
            uint _e84 = params.n;
            uint _e90 = params.k;
            uint _e92 = k;
            uint kept1_ = ((metal::min(first_1 + 1u, _e84 - 1u) * _e90) + _e92) / 4u;
            uint _e100 = zeros[kept1_ / 4u];
            uint code1_ = _e100 >> ((kept1_ % 4u) * 8u);
            uint _e109 = k;
            metal::float4 _e110 = load_b(_e17.b, first_1 + 2u, _e109, b, params, _buffer_sizes);
            uint _e115 = params.n;
            uint _e121 = params.k;
            uint _e123 = k;
            uint kept2_ = ((metal::min(first_1 + 2u, _e115 - 1u) * _e121) + _e123) / 4u;
            uint _e131 = zeros[kept2_ / 4u];
            uint code2_ = _e131 >> ((kept2_ % 4u) * 8u);
            uint _e140 = k;
            metal::float4 _e141 = load_b(_e17.b, first_1 + 3u, _e140, b, params, _buffer_sizes);
            uint _e146 = params.n;
            uint _e152 = params.k;
            uint _e154 = k;
            uint kept3_ = ((metal::min(first_1 + 3u, _e146 - 1u) * _e152) + _e154) / 4u;
            uint _e162 = zeros[kept3_ / 4u];
            uint code3_ = _e162 >> ((kept3_ % 4u) * 8u);
            {
                uint _e174 = params.m;
                uint _e180 = params.a_outer;
                uint _e184 = k;
                uint from_row = (_e17.a + (metal::min(_e15.row + 0u, _e174 - 1u) * _e180)) + (2u * _e184);
                metal::float4 _e191 = a[from_row >> 2u];
                metal::float4 v_3 = static_cast<metal::float4>(_e191);
                metal::float4 _e199 = a[(from_row >> 2u) + 1u];
                metal::float4 next = static_cast<metal::float4>(_e199);
                metal::float4 own0_ = metal::float4(v_3[code0_ & 3u], v_3[(code0_ >> 2u) & 3u], next[(code0_ >> 4u) & 3u], next[(code0_ >> 6u) & 3u]);
                float _e220 = sum0_;
                sum0_ = _e220 + metal::dot(own0_, _e48);
                metal::float4 own1_ = metal::float4(v_3[code1_ & 3u], v_3[(code1_ >> 2u) & 3u], next[(code1_ >> 4u) & 3u], next[(code1_ >> 6u) & 3u]);
                float _e242 = sum1_;
                sum1_ = _e242 + metal::dot(own1_, _e79);
                metal::float4 own2_ = metal::float4(v_3[code2_ & 3u], v_3[(code2_ >> 2u) & 3u], next[(code2_ >> 4u) & 3u], next[(code2_ >> 6u) & 3u]);
                float _e264 = sum2_;
                sum2_ = _e264 + metal::dot(own2_, _e110);
                metal::float4 own3_ = metal::float4(v_3[code3_ & 3u], v_3[(code3_ >> 2u) & 3u], next[(code3_ >> 4u) & 3u], next[(code3_ >> 6u) & 3u]);
                float _e286 = sum3_;
                sum3_ = _e286 + metal::dot(own3_, _e141);
            }
        }
    }
    if (1u < lanes) {
        float _e294 = sum0_;
        float _e295 = sum0_;
        float unnamed = metal::simd_shuffle_xor(_e295, 1u);
        sum0_ = _e294 + unnamed;
    }
    if (2u < lanes) {
        float _e301 = sum0_;
        float _e302 = sum0_;
        float unnamed_1 = metal::simd_shuffle_xor(_e302, 2u);
        sum0_ = _e301 + unnamed_1;
    }
    if (4u < lanes) {
        float _e308 = sum0_;
        float _e309 = sum0_;
        float unnamed_2 = metal::simd_shuffle_xor(_e309, 4u);
        sum0_ = _e308 + unnamed_2;
    }
    if (8u < lanes) {
        float _e315 = sum0_;
        float _e316 = sum0_;
        float unnamed_3 = metal::simd_shuffle_xor(_e316, 8u);
        sum0_ = _e315 + unnamed_3;
    }
    if (16u < lanes) {
        float _e322 = sum0_;
        float _e323 = sum0_;
        float unnamed_4 = metal::simd_shuffle_xor(_e323, 16u);
        sum0_ = _e322 + unnamed_4;
    }
    if (1u < lanes) {
        float _e329 = sum1_;
        float _e330 = sum1_;
        float unnamed_5 = metal::simd_shuffle_xor(_e330, 1u);
        sum1_ = _e329 + unnamed_5;
    }
    if (2u < lanes) {
        float _e336 = sum1_;
        float _e337 = sum1_;
        float unnamed_6 = metal::simd_shuffle_xor(_e337, 2u);
        sum1_ = _e336 + unnamed_6;
    }
    if (4u < lanes) {
        float _e343 = sum1_;
        float _e344 = sum1_;
        float unnamed_7 = metal::simd_shuffle_xor(_e344, 4u);
        sum1_ = _e343 + unnamed_7;
    }
    if (8u < lanes) {
        float _e350 = sum1_;
        float _e351 = sum1_;
        float unnamed_8 = metal::simd_shuffle_xor(_e351, 8u);
        sum1_ = _e350 + unnamed_8;
    }
    if (16u < lanes) {
        float _e357 = sum1_;
        float _e358 = sum1_;
        float unnamed_9 = metal::simd_shuffle_xor(_e358, 16u);
        sum1_ = _e357 + unnamed_9;
    }
    if (1u < lanes) {
        float _e364 = sum2_;
        float _e365 = sum2_;
        float unnamed_10 = metal::simd_shuffle_xor(_e365, 1u);
        sum2_ = _e364 + unnamed_10;
    }
    if (2u < lanes) {
        float _e371 = sum2_;
        float _e372 = sum2_;
        float unnamed_11 = metal::simd_shuffle_xor(_e372, 2u);
        sum2_ = _e371 + unnamed_11;
    }
    if (4u < lanes) {
        float _e378 = sum2_;
        float _e379 = sum2_;
        float unnamed_12 = metal::simd_shuffle_xor(_e379, 4u);
        sum2_ = _e378 + unnamed_12;
    }
    if (8u < lanes) {
        float _e385 = sum2_;
        float _e386 = sum2_;
        float unnamed_13 = metal::simd_shuffle_xor(_e386, 8u);
        sum2_ = _e385 + unnamed_13;
    }
    if (16u < lanes) {
        float _e392 = sum2_;
        float _e393 = sum2_;
        float unnamed_14 = metal::simd_shuffle_xor(_e393, 16u);
        sum2_ = _e392 + unnamed_14;
    }
    if (1u < lanes) {
        float _e399 = sum3_;
        float _e400 = sum3_;
        float unnamed_15 = metal::simd_shuffle_xor(_e400, 1u);
        sum3_ = _e399 + unnamed_15;
    }
    if (2u < lanes) {
        float _e406 = sum3_;
        float _e407 = sum3_;
        float unnamed_16 = metal::simd_shuffle_xor(_e407, 2u);
        sum3_ = _e406 + unnamed_16;
    }
    if (4u < lanes) {
        float _e413 = sum3_;
        float _e414 = sum3_;
        float unnamed_17 = metal::simd_shuffle_xor(_e414, 4u);
        sum3_ = _e413 + unnamed_17;
    }
    if (8u < lanes) {
        float _e420 = sum3_;
        float _e421 = sum3_;
        float unnamed_18 = metal::simd_shuffle_xor(_e421, 8u);
        sum3_ = _e420 + unnamed_18;
    }
    if (16u < lanes) {
        float _e427 = sum3_;
        float _e428 = sum3_;
        float unnamed_19 = metal::simd_shuffle_xor(_e428, 16u);
        sum3_ = _e427 + unnamed_19;
    }
    uint width = metal::min(lanes, 32u);
    if ((thread_ % width) == 0u) {
        float _e444 = sum0_;
        parts.inner[((thread_ / width) * 4u) + 0u] = _e444;
        float _e452 = sum1_;
        parts.inner[((thread_ / width) * 4u) + 1u] = _e452;
        float _e460 = sum2_;
        parts.inner[((thread_ / width) * 4u) + 2u] = _e460;
        float _e468 = sum3_;
        parts.inner[((thread_ / width) * 4u) + 3u] = _e468;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint count = 32u / width;
    if (thread_ < 8u) {
        uint own = thread_ / 1u;
        uint quad_ = thread_ % 1u;
        bool loop_init_1 = true;
        while(true) {
            if (!loop_init_1) {
                uint _e513 = part;
                part = _e513 + 1u;
            }
            loop_init_1 = false;
            uint _e481 = part;
            if (_e481 < count) {
            } else {
                break;
            }
            {
                uint _e484 = part;
                uint at_1 = ((own * count) + _e484) * 4u;
                uint start_2 = at_1 + (quad_ * 4u);
                metal::float4 _e491 = sum;
                float _e494 = parts.inner[start_2];
                float _e499 = parts.inner[start_2 + 1u];
                float _e504 = parts.inner[start_2 + 2u];
                float _e509 = parts.inner[start_2 + 3u];
                sum = _e491 + metal::float4(_e494, _e499, _e504, _e509);
            }
        }
        metal::float4 _e522 = sum;
        put(_e15.part, _e17, _e15.row + quad_, _e15.column + (own * 4u), _e522, out, params, _buffer_sizes);
        return;
    } else {
        return;
    }
}
