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
    device type_2 const& b,
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
    metal::float4 _e25 = b[((start_1 + (row_5 * _e18)) + k_2) >> 2u];
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
    return Work {(first + (at % rows)) * 8u, (at / rows) * 32u, k_3, metal::min(k_3 + _e46, _e50), product_1, (share * _e54) + product_1};
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
, device type_2& out [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, threadgroup type_5& parts
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    float sum0_ = 0.0;
    float sum1_ = 0.0;
    float sum2_ = 0.0;
    float sum3_ = 0.0;
    float sum4_ = 0.0;
    float sum5_ = 0.0;
    float sum6_ = 0.0;
    float sum7_ = 0.0;
    float sum8_ = 0.0;
    float sum9_ = 0.0;
    float sum10_ = 0.0;
    float sum11_ = 0.0;
    float sum12_ = 0.0;
    float sum13_ = 0.0;
    float sum14_ = 0.0;
    float sum15_ = 0.0;
    float sum16_ = 0.0;
    float sum17_ = 0.0;
    float sum18_ = 0.0;
    float sum19_ = 0.0;
    float sum20_ = 0.0;
    float sum21_ = 0.0;
    float sum22_ = 0.0;
    float sum23_ = 0.0;
    float sum24_ = 0.0;
    float sum25_ = 0.0;
    float sum26_ = 0.0;
    float sum27_ = 0.0;
    float sum28_ = 0.0;
    float sum29_ = 0.0;
    float sum30_ = 0.0;
    float sum31_ = 0.0;
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
            uint _e264 = k;
            k = _e264 + 128u;
        }
        loop_init = false;
        uint _e97 = k;
        if (_e97 < _e15.k_end) {
        } else {
            break;
        }
        {
            uint _e103 = k;
            metal::float4 _e104 = load_b(_e17.b, first_1 + 0u, _e103, b, params, _buffer_sizes);
            uint _e108 = k;
            metal::float4 _e109 = load_b(_e17.b, first_1 + 1u, _e108, b, params, _buffer_sizes);
            uint _e113 = k;
            metal::float4 _e114 = load_b(_e17.b, first_1 + 2u, _e113, b, params, _buffer_sizes);
            uint _e118 = k;
            metal::float4 _e119 = load_b(_e17.b, first_1 + 3u, _e118, b, params, _buffer_sizes);
            {
                uint _e124 = k;
                metal::float4 _e125 = load_a(_e17.a, _e15.row + 0u, _e124, a, params, _buffer_sizes);
                float _e126 = sum0_;
                sum0_ = _e126 + metal::dot(_e125, _e104);
                float _e129 = sum1_;
                sum1_ = _e129 + metal::dot(_e125, _e109);
                float _e132 = sum2_;
                sum2_ = _e132 + metal::dot(_e125, _e114);
                float _e135 = sum3_;
                sum3_ = _e135 + metal::dot(_e125, _e119);
            }
            {
                uint _e142 = k;
                metal::float4 _e143 = load_a(_e17.a, _e15.row + 1u, _e142, a, params, _buffer_sizes);
                float _e144 = sum4_;
                sum4_ = _e144 + metal::dot(_e143, _e104);
                float _e147 = sum5_;
                sum5_ = _e147 + metal::dot(_e143, _e109);
                float _e150 = sum6_;
                sum6_ = _e150 + metal::dot(_e143, _e114);
                float _e153 = sum7_;
                sum7_ = _e153 + metal::dot(_e143, _e119);
            }
            {
                uint _e160 = k;
                metal::float4 _e161 = load_a(_e17.a, _e15.row + 2u, _e160, a, params, _buffer_sizes);
                float _e162 = sum8_;
                sum8_ = _e162 + metal::dot(_e161, _e104);
                float _e165 = sum9_;
                sum9_ = _e165 + metal::dot(_e161, _e109);
                float _e168 = sum10_;
                sum10_ = _e168 + metal::dot(_e161, _e114);
                float _e171 = sum11_;
                sum11_ = _e171 + metal::dot(_e161, _e119);
            }
            {
                uint _e178 = k;
                metal::float4 _e179 = load_a(_e17.a, _e15.row + 3u, _e178, a, params, _buffer_sizes);
                float _e180 = sum12_;
                sum12_ = _e180 + metal::dot(_e179, _e104);
                float _e183 = sum13_;
                sum13_ = _e183 + metal::dot(_e179, _e109);
                float _e186 = sum14_;
                sum14_ = _e186 + metal::dot(_e179, _e114);
                float _e189 = sum15_;
                sum15_ = _e189 + metal::dot(_e179, _e119);
            }
            {
                uint _e196 = k;
                metal::float4 _e197 = load_a(_e17.a, _e15.row + 4u, _e196, a, params, _buffer_sizes);
                float _e198 = sum16_;
                sum16_ = _e198 + metal::dot(_e197, _e104);
                float _e201 = sum17_;
                sum17_ = _e201 + metal::dot(_e197, _e109);
                float _e204 = sum18_;
                sum18_ = _e204 + metal::dot(_e197, _e114);
                float _e207 = sum19_;
                sum19_ = _e207 + metal::dot(_e197, _e119);
            }
            {
                uint _e214 = k;
                metal::float4 _e215 = load_a(_e17.a, _e15.row + 5u, _e214, a, params, _buffer_sizes);
                float _e216 = sum20_;
                sum20_ = _e216 + metal::dot(_e215, _e104);
                float _e219 = sum21_;
                sum21_ = _e219 + metal::dot(_e215, _e109);
                float _e222 = sum22_;
                sum22_ = _e222 + metal::dot(_e215, _e114);
                float _e225 = sum23_;
                sum23_ = _e225 + metal::dot(_e215, _e119);
            }
            {
                uint _e232 = k;
                metal::float4 _e233 = load_a(_e17.a, _e15.row + 6u, _e232, a, params, _buffer_sizes);
                float _e234 = sum24_;
                sum24_ = _e234 + metal::dot(_e233, _e104);
                float _e237 = sum25_;
                sum25_ = _e237 + metal::dot(_e233, _e109);
                float _e240 = sum26_;
                sum26_ = _e240 + metal::dot(_e233, _e114);
                float _e243 = sum27_;
                sum27_ = _e243 + metal::dot(_e233, _e119);
            }
            {
                uint _e250 = k;
                metal::float4 _e251 = load_a(_e17.a, _e15.row + 7u, _e250, a, params, _buffer_sizes);
                float _e252 = sum28_;
                sum28_ = _e252 + metal::dot(_e251, _e104);
                float _e255 = sum29_;
                sum29_ = _e255 + metal::dot(_e251, _e109);
                float _e258 = sum30_;
                sum30_ = _e258 + metal::dot(_e251, _e114);
                float _e261 = sum31_;
                sum31_ = _e261 + metal::dot(_e251, _e119);
            }
        }
    }
    if (1u < lanes) {
        float _e269 = sum0_;
        float _e270 = sum0_;
        float unnamed = metal::simd_shuffle_xor(_e270, 1u);
        sum0_ = _e269 + unnamed;
    }
    if (2u < lanes) {
        float _e276 = sum0_;
        float _e277 = sum0_;
        float unnamed_1 = metal::simd_shuffle_xor(_e277, 2u);
        sum0_ = _e276 + unnamed_1;
    }
    if (4u < lanes) {
        float _e283 = sum0_;
        float _e284 = sum0_;
        float unnamed_2 = metal::simd_shuffle_xor(_e284, 4u);
        sum0_ = _e283 + unnamed_2;
    }
    if (8u < lanes) {
        float _e290 = sum0_;
        float _e291 = sum0_;
        float unnamed_3 = metal::simd_shuffle_xor(_e291, 8u);
        sum0_ = _e290 + unnamed_3;
    }
    if (16u < lanes) {
        float _e297 = sum0_;
        float _e298 = sum0_;
        float unnamed_4 = metal::simd_shuffle_xor(_e298, 16u);
        sum0_ = _e297 + unnamed_4;
    }
    if (1u < lanes) {
        float _e304 = sum1_;
        float _e305 = sum1_;
        float unnamed_5 = metal::simd_shuffle_xor(_e305, 1u);
        sum1_ = _e304 + unnamed_5;
    }
    if (2u < lanes) {
        float _e311 = sum1_;
        float _e312 = sum1_;
        float unnamed_6 = metal::simd_shuffle_xor(_e312, 2u);
        sum1_ = _e311 + unnamed_6;
    }
    if (4u < lanes) {
        float _e318 = sum1_;
        float _e319 = sum1_;
        float unnamed_7 = metal::simd_shuffle_xor(_e319, 4u);
        sum1_ = _e318 + unnamed_7;
    }
    if (8u < lanes) {
        float _e325 = sum1_;
        float _e326 = sum1_;
        float unnamed_8 = metal::simd_shuffle_xor(_e326, 8u);
        sum1_ = _e325 + unnamed_8;
    }
    if (16u < lanes) {
        float _e332 = sum1_;
        float _e333 = sum1_;
        float unnamed_9 = metal::simd_shuffle_xor(_e333, 16u);
        sum1_ = _e332 + unnamed_9;
    }
    if (1u < lanes) {
        float _e339 = sum2_;
        float _e340 = sum2_;
        float unnamed_10 = metal::simd_shuffle_xor(_e340, 1u);
        sum2_ = _e339 + unnamed_10;
    }
    if (2u < lanes) {
        float _e346 = sum2_;
        float _e347 = sum2_;
        float unnamed_11 = metal::simd_shuffle_xor(_e347, 2u);
        sum2_ = _e346 + unnamed_11;
    }
    if (4u < lanes) {
        float _e353 = sum2_;
        float _e354 = sum2_;
        float unnamed_12 = metal::simd_shuffle_xor(_e354, 4u);
        sum2_ = _e353 + unnamed_12;
    }
    if (8u < lanes) {
        float _e360 = sum2_;
        float _e361 = sum2_;
        float unnamed_13 = metal::simd_shuffle_xor(_e361, 8u);
        sum2_ = _e360 + unnamed_13;
    }
    if (16u < lanes) {
        float _e367 = sum2_;
        float _e368 = sum2_;
        float unnamed_14 = metal::simd_shuffle_xor(_e368, 16u);
        sum2_ = _e367 + unnamed_14;
    }
    if (1u < lanes) {
        float _e374 = sum3_;
        float _e375 = sum3_;
        float unnamed_15 = metal::simd_shuffle_xor(_e375, 1u);
        sum3_ = _e374 + unnamed_15;
    }
    if (2u < lanes) {
        float _e381 = sum3_;
        float _e382 = sum3_;
        float unnamed_16 = metal::simd_shuffle_xor(_e382, 2u);
        sum3_ = _e381 + unnamed_16;
    }
    if (4u < lanes) {
        float _e388 = sum3_;
        float _e389 = sum3_;
        float unnamed_17 = metal::simd_shuffle_xor(_e389, 4u);
        sum3_ = _e388 + unnamed_17;
    }
    if (8u < lanes) {
        float _e395 = sum3_;
        float _e396 = sum3_;
        float unnamed_18 = metal::simd_shuffle_xor(_e396, 8u);
        sum3_ = _e395 + unnamed_18;
    }
    if (16u < lanes) {
        float _e402 = sum3_;
        float _e403 = sum3_;
        float unnamed_19 = metal::simd_shuffle_xor(_e403, 16u);
        sum3_ = _e402 + unnamed_19;
    }
    if (1u < lanes) {
        float _e409 = sum4_;
        float _e410 = sum4_;
        float unnamed_20 = metal::simd_shuffle_xor(_e410, 1u);
        sum4_ = _e409 + unnamed_20;
    }
    if (2u < lanes) {
        float _e416 = sum4_;
        float _e417 = sum4_;
        float unnamed_21 = metal::simd_shuffle_xor(_e417, 2u);
        sum4_ = _e416 + unnamed_21;
    }
    if (4u < lanes) {
        float _e423 = sum4_;
        float _e424 = sum4_;
        float unnamed_22 = metal::simd_shuffle_xor(_e424, 4u);
        sum4_ = _e423 + unnamed_22;
    }
    if (8u < lanes) {
        float _e430 = sum4_;
        float _e431 = sum4_;
        float unnamed_23 = metal::simd_shuffle_xor(_e431, 8u);
        sum4_ = _e430 + unnamed_23;
    }
    if (16u < lanes) {
        float _e437 = sum4_;
        float _e438 = sum4_;
        float unnamed_24 = metal::simd_shuffle_xor(_e438, 16u);
        sum4_ = _e437 + unnamed_24;
    }
    if (1u < lanes) {
        float _e444 = sum5_;
        float _e445 = sum5_;
        float unnamed_25 = metal::simd_shuffle_xor(_e445, 1u);
        sum5_ = _e444 + unnamed_25;
    }
    if (2u < lanes) {
        float _e451 = sum5_;
        float _e452 = sum5_;
        float unnamed_26 = metal::simd_shuffle_xor(_e452, 2u);
        sum5_ = _e451 + unnamed_26;
    }
    if (4u < lanes) {
        float _e458 = sum5_;
        float _e459 = sum5_;
        float unnamed_27 = metal::simd_shuffle_xor(_e459, 4u);
        sum5_ = _e458 + unnamed_27;
    }
    if (8u < lanes) {
        float _e465 = sum5_;
        float _e466 = sum5_;
        float unnamed_28 = metal::simd_shuffle_xor(_e466, 8u);
        sum5_ = _e465 + unnamed_28;
    }
    if (16u < lanes) {
        float _e472 = sum5_;
        float _e473 = sum5_;
        float unnamed_29 = metal::simd_shuffle_xor(_e473, 16u);
        sum5_ = _e472 + unnamed_29;
    }
    if (1u < lanes) {
        float _e479 = sum6_;
        float _e480 = sum6_;
        float unnamed_30 = metal::simd_shuffle_xor(_e480, 1u);
        sum6_ = _e479 + unnamed_30;
    }
    if (2u < lanes) {
        float _e486 = sum6_;
        float _e487 = sum6_;
        float unnamed_31 = metal::simd_shuffle_xor(_e487, 2u);
        sum6_ = _e486 + unnamed_31;
    }
    if (4u < lanes) {
        float _e493 = sum6_;
        float _e494 = sum6_;
        float unnamed_32 = metal::simd_shuffle_xor(_e494, 4u);
        sum6_ = _e493 + unnamed_32;
    }
    if (8u < lanes) {
        float _e500 = sum6_;
        float _e501 = sum6_;
        float unnamed_33 = metal::simd_shuffle_xor(_e501, 8u);
        sum6_ = _e500 + unnamed_33;
    }
    if (16u < lanes) {
        float _e507 = sum6_;
        float _e508 = sum6_;
        float unnamed_34 = metal::simd_shuffle_xor(_e508, 16u);
        sum6_ = _e507 + unnamed_34;
    }
    if (1u < lanes) {
        float _e514 = sum7_;
        float _e515 = sum7_;
        float unnamed_35 = metal::simd_shuffle_xor(_e515, 1u);
        sum7_ = _e514 + unnamed_35;
    }
    if (2u < lanes) {
        float _e521 = sum7_;
        float _e522 = sum7_;
        float unnamed_36 = metal::simd_shuffle_xor(_e522, 2u);
        sum7_ = _e521 + unnamed_36;
    }
    if (4u < lanes) {
        float _e528 = sum7_;
        float _e529 = sum7_;
        float unnamed_37 = metal::simd_shuffle_xor(_e529, 4u);
        sum7_ = _e528 + unnamed_37;
    }
    if (8u < lanes) {
        float _e535 = sum7_;
        float _e536 = sum7_;
        float unnamed_38 = metal::simd_shuffle_xor(_e536, 8u);
        sum7_ = _e535 + unnamed_38;
    }
    if (16u < lanes) {
        float _e542 = sum7_;
        float _e543 = sum7_;
        float unnamed_39 = metal::simd_shuffle_xor(_e543, 16u);
        sum7_ = _e542 + unnamed_39;
    }
    if (1u < lanes) {
        float _e549 = sum8_;
        float _e550 = sum8_;
        float unnamed_40 = metal::simd_shuffle_xor(_e550, 1u);
        sum8_ = _e549 + unnamed_40;
    }
    if (2u < lanes) {
        float _e556 = sum8_;
        float _e557 = sum8_;
        float unnamed_41 = metal::simd_shuffle_xor(_e557, 2u);
        sum8_ = _e556 + unnamed_41;
    }
    if (4u < lanes) {
        float _e563 = sum8_;
        float _e564 = sum8_;
        float unnamed_42 = metal::simd_shuffle_xor(_e564, 4u);
        sum8_ = _e563 + unnamed_42;
    }
    if (8u < lanes) {
        float _e570 = sum8_;
        float _e571 = sum8_;
        float unnamed_43 = metal::simd_shuffle_xor(_e571, 8u);
        sum8_ = _e570 + unnamed_43;
    }
    if (16u < lanes) {
        float _e577 = sum8_;
        float _e578 = sum8_;
        float unnamed_44 = metal::simd_shuffle_xor(_e578, 16u);
        sum8_ = _e577 + unnamed_44;
    }
    if (1u < lanes) {
        float _e584 = sum9_;
        float _e585 = sum9_;
        float unnamed_45 = metal::simd_shuffle_xor(_e585, 1u);
        sum9_ = _e584 + unnamed_45;
    }
    if (2u < lanes) {
        float _e591 = sum9_;
        float _e592 = sum9_;
        float unnamed_46 = metal::simd_shuffle_xor(_e592, 2u);
        sum9_ = _e591 + unnamed_46;
    }
    if (4u < lanes) {
        float _e598 = sum9_;
        float _e599 = sum9_;
        float unnamed_47 = metal::simd_shuffle_xor(_e599, 4u);
        sum9_ = _e598 + unnamed_47;
    }
    if (8u < lanes) {
        float _e605 = sum9_;
        float _e606 = sum9_;
        float unnamed_48 = metal::simd_shuffle_xor(_e606, 8u);
        sum9_ = _e605 + unnamed_48;
    }
    if (16u < lanes) {
        float _e612 = sum9_;
        float _e613 = sum9_;
        float unnamed_49 = metal::simd_shuffle_xor(_e613, 16u);
        sum9_ = _e612 + unnamed_49;
    }
    if (1u < lanes) {
        float _e619 = sum10_;
        float _e620 = sum10_;
        float unnamed_50 = metal::simd_shuffle_xor(_e620, 1u);
        sum10_ = _e619 + unnamed_50;
    }
    if (2u < lanes) {
        float _e626 = sum10_;
        float _e627 = sum10_;
        float unnamed_51 = metal::simd_shuffle_xor(_e627, 2u);
        sum10_ = _e626 + unnamed_51;
    }
    if (4u < lanes) {
        float _e633 = sum10_;
        float _e634 = sum10_;
        float unnamed_52 = metal::simd_shuffle_xor(_e634, 4u);
        sum10_ = _e633 + unnamed_52;
    }
    if (8u < lanes) {
        float _e640 = sum10_;
        float _e641 = sum10_;
        float unnamed_53 = metal::simd_shuffle_xor(_e641, 8u);
        sum10_ = _e640 + unnamed_53;
    }
    if (16u < lanes) {
        float _e647 = sum10_;
        float _e648 = sum10_;
        float unnamed_54 = metal::simd_shuffle_xor(_e648, 16u);
        sum10_ = _e647 + unnamed_54;
    }
    if (1u < lanes) {
        float _e654 = sum11_;
        float _e655 = sum11_;
        float unnamed_55 = metal::simd_shuffle_xor(_e655, 1u);
        sum11_ = _e654 + unnamed_55;
    }
    if (2u < lanes) {
        float _e661 = sum11_;
        float _e662 = sum11_;
        float unnamed_56 = metal::simd_shuffle_xor(_e662, 2u);
        sum11_ = _e661 + unnamed_56;
    }
    if (4u < lanes) {
        float _e668 = sum11_;
        float _e669 = sum11_;
        float unnamed_57 = metal::simd_shuffle_xor(_e669, 4u);
        sum11_ = _e668 + unnamed_57;
    }
    if (8u < lanes) {
        float _e675 = sum11_;
        float _e676 = sum11_;
        float unnamed_58 = metal::simd_shuffle_xor(_e676, 8u);
        sum11_ = _e675 + unnamed_58;
    }
    if (16u < lanes) {
        float _e682 = sum11_;
        float _e683 = sum11_;
        float unnamed_59 = metal::simd_shuffle_xor(_e683, 16u);
        sum11_ = _e682 + unnamed_59;
    }
    if (1u < lanes) {
        float _e689 = sum12_;
        float _e690 = sum12_;
        float unnamed_60 = metal::simd_shuffle_xor(_e690, 1u);
        sum12_ = _e689 + unnamed_60;
    }
    if (2u < lanes) {
        float _e696 = sum12_;
        float _e697 = sum12_;
        float unnamed_61 = metal::simd_shuffle_xor(_e697, 2u);
        sum12_ = _e696 + unnamed_61;
    }
    if (4u < lanes) {
        float _e703 = sum12_;
        float _e704 = sum12_;
        float unnamed_62 = metal::simd_shuffle_xor(_e704, 4u);
        sum12_ = _e703 + unnamed_62;
    }
    if (8u < lanes) {
        float _e710 = sum12_;
        float _e711 = sum12_;
        float unnamed_63 = metal::simd_shuffle_xor(_e711, 8u);
        sum12_ = _e710 + unnamed_63;
    }
    if (16u < lanes) {
        float _e717 = sum12_;
        float _e718 = sum12_;
        float unnamed_64 = metal::simd_shuffle_xor(_e718, 16u);
        sum12_ = _e717 + unnamed_64;
    }
    if (1u < lanes) {
        float _e724 = sum13_;
        float _e725 = sum13_;
        float unnamed_65 = metal::simd_shuffle_xor(_e725, 1u);
        sum13_ = _e724 + unnamed_65;
    }
    if (2u < lanes) {
        float _e731 = sum13_;
        float _e732 = sum13_;
        float unnamed_66 = metal::simd_shuffle_xor(_e732, 2u);
        sum13_ = _e731 + unnamed_66;
    }
    if (4u < lanes) {
        float _e738 = sum13_;
        float _e739 = sum13_;
        float unnamed_67 = metal::simd_shuffle_xor(_e739, 4u);
        sum13_ = _e738 + unnamed_67;
    }
    if (8u < lanes) {
        float _e745 = sum13_;
        float _e746 = sum13_;
        float unnamed_68 = metal::simd_shuffle_xor(_e746, 8u);
        sum13_ = _e745 + unnamed_68;
    }
    if (16u < lanes) {
        float _e752 = sum13_;
        float _e753 = sum13_;
        float unnamed_69 = metal::simd_shuffle_xor(_e753, 16u);
        sum13_ = _e752 + unnamed_69;
    }
    if (1u < lanes) {
        float _e759 = sum14_;
        float _e760 = sum14_;
        float unnamed_70 = metal::simd_shuffle_xor(_e760, 1u);
        sum14_ = _e759 + unnamed_70;
    }
    if (2u < lanes) {
        float _e766 = sum14_;
        float _e767 = sum14_;
        float unnamed_71 = metal::simd_shuffle_xor(_e767, 2u);
        sum14_ = _e766 + unnamed_71;
    }
    if (4u < lanes) {
        float _e773 = sum14_;
        float _e774 = sum14_;
        float unnamed_72 = metal::simd_shuffle_xor(_e774, 4u);
        sum14_ = _e773 + unnamed_72;
    }
    if (8u < lanes) {
        float _e780 = sum14_;
        float _e781 = sum14_;
        float unnamed_73 = metal::simd_shuffle_xor(_e781, 8u);
        sum14_ = _e780 + unnamed_73;
    }
    if (16u < lanes) {
        float _e787 = sum14_;
        float _e788 = sum14_;
        float unnamed_74 = metal::simd_shuffle_xor(_e788, 16u);
        sum14_ = _e787 + unnamed_74;
    }
    if (1u < lanes) {
        float _e794 = sum15_;
        float _e795 = sum15_;
        float unnamed_75 = metal::simd_shuffle_xor(_e795, 1u);
        sum15_ = _e794 + unnamed_75;
    }
    if (2u < lanes) {
        float _e801 = sum15_;
        float _e802 = sum15_;
        float unnamed_76 = metal::simd_shuffle_xor(_e802, 2u);
        sum15_ = _e801 + unnamed_76;
    }
    if (4u < lanes) {
        float _e808 = sum15_;
        float _e809 = sum15_;
        float unnamed_77 = metal::simd_shuffle_xor(_e809, 4u);
        sum15_ = _e808 + unnamed_77;
    }
    if (8u < lanes) {
        float _e815 = sum15_;
        float _e816 = sum15_;
        float unnamed_78 = metal::simd_shuffle_xor(_e816, 8u);
        sum15_ = _e815 + unnamed_78;
    }
    if (16u < lanes) {
        float _e822 = sum15_;
        float _e823 = sum15_;
        float unnamed_79 = metal::simd_shuffle_xor(_e823, 16u);
        sum15_ = _e822 + unnamed_79;
    }
    if (1u < lanes) {
        float _e829 = sum16_;
        float _e830 = sum16_;
        float unnamed_80 = metal::simd_shuffle_xor(_e830, 1u);
        sum16_ = _e829 + unnamed_80;
    }
    if (2u < lanes) {
        float _e836 = sum16_;
        float _e837 = sum16_;
        float unnamed_81 = metal::simd_shuffle_xor(_e837, 2u);
        sum16_ = _e836 + unnamed_81;
    }
    if (4u < lanes) {
        float _e843 = sum16_;
        float _e844 = sum16_;
        float unnamed_82 = metal::simd_shuffle_xor(_e844, 4u);
        sum16_ = _e843 + unnamed_82;
    }
    if (8u < lanes) {
        float _e850 = sum16_;
        float _e851 = sum16_;
        float unnamed_83 = metal::simd_shuffle_xor(_e851, 8u);
        sum16_ = _e850 + unnamed_83;
    }
    if (16u < lanes) {
        float _e857 = sum16_;
        float _e858 = sum16_;
        float unnamed_84 = metal::simd_shuffle_xor(_e858, 16u);
        sum16_ = _e857 + unnamed_84;
    }
    if (1u < lanes) {
        float _e864 = sum17_;
        float _e865 = sum17_;
        float unnamed_85 = metal::simd_shuffle_xor(_e865, 1u);
        sum17_ = _e864 + unnamed_85;
    }
    if (2u < lanes) {
        float _e871 = sum17_;
        float _e872 = sum17_;
        float unnamed_86 = metal::simd_shuffle_xor(_e872, 2u);
        sum17_ = _e871 + unnamed_86;
    }
    if (4u < lanes) {
        float _e878 = sum17_;
        float _e879 = sum17_;
        float unnamed_87 = metal::simd_shuffle_xor(_e879, 4u);
        sum17_ = _e878 + unnamed_87;
    }
    if (8u < lanes) {
        float _e885 = sum17_;
        float _e886 = sum17_;
        float unnamed_88 = metal::simd_shuffle_xor(_e886, 8u);
        sum17_ = _e885 + unnamed_88;
    }
    if (16u < lanes) {
        float _e892 = sum17_;
        float _e893 = sum17_;
        float unnamed_89 = metal::simd_shuffle_xor(_e893, 16u);
        sum17_ = _e892 + unnamed_89;
    }
    if (1u < lanes) {
        float _e899 = sum18_;
        float _e900 = sum18_;
        float unnamed_90 = metal::simd_shuffle_xor(_e900, 1u);
        sum18_ = _e899 + unnamed_90;
    }
    if (2u < lanes) {
        float _e906 = sum18_;
        float _e907 = sum18_;
        float unnamed_91 = metal::simd_shuffle_xor(_e907, 2u);
        sum18_ = _e906 + unnamed_91;
    }
    if (4u < lanes) {
        float _e913 = sum18_;
        float _e914 = sum18_;
        float unnamed_92 = metal::simd_shuffle_xor(_e914, 4u);
        sum18_ = _e913 + unnamed_92;
    }
    if (8u < lanes) {
        float _e920 = sum18_;
        float _e921 = sum18_;
        float unnamed_93 = metal::simd_shuffle_xor(_e921, 8u);
        sum18_ = _e920 + unnamed_93;
    }
    if (16u < lanes) {
        float _e927 = sum18_;
        float _e928 = sum18_;
        float unnamed_94 = metal::simd_shuffle_xor(_e928, 16u);
        sum18_ = _e927 + unnamed_94;
    }
    if (1u < lanes) {
        float _e934 = sum19_;
        float _e935 = sum19_;
        float unnamed_95 = metal::simd_shuffle_xor(_e935, 1u);
        sum19_ = _e934 + unnamed_95;
    }
    if (2u < lanes) {
        float _e941 = sum19_;
        float _e942 = sum19_;
        float unnamed_96 = metal::simd_shuffle_xor(_e942, 2u);
        sum19_ = _e941 + unnamed_96;
    }
    if (4u < lanes) {
        float _e948 = sum19_;
        float _e949 = sum19_;
        float unnamed_97 = metal::simd_shuffle_xor(_e949, 4u);
        sum19_ = _e948 + unnamed_97;
    }
    if (8u < lanes) {
        float _e955 = sum19_;
        float _e956 = sum19_;
        float unnamed_98 = metal::simd_shuffle_xor(_e956, 8u);
        sum19_ = _e955 + unnamed_98;
    }
    if (16u < lanes) {
        float _e962 = sum19_;
        float _e963 = sum19_;
        float unnamed_99 = metal::simd_shuffle_xor(_e963, 16u);
        sum19_ = _e962 + unnamed_99;
    }
    if (1u < lanes) {
        float _e969 = sum20_;
        float _e970 = sum20_;
        float unnamed_100 = metal::simd_shuffle_xor(_e970, 1u);
        sum20_ = _e969 + unnamed_100;
    }
    if (2u < lanes) {
        float _e976 = sum20_;
        float _e977 = sum20_;
        float unnamed_101 = metal::simd_shuffle_xor(_e977, 2u);
        sum20_ = _e976 + unnamed_101;
    }
    if (4u < lanes) {
        float _e983 = sum20_;
        float _e984 = sum20_;
        float unnamed_102 = metal::simd_shuffle_xor(_e984, 4u);
        sum20_ = _e983 + unnamed_102;
    }
    if (8u < lanes) {
        float _e990 = sum20_;
        float _e991 = sum20_;
        float unnamed_103 = metal::simd_shuffle_xor(_e991, 8u);
        sum20_ = _e990 + unnamed_103;
    }
    if (16u < lanes) {
        float _e997 = sum20_;
        float _e998 = sum20_;
        float unnamed_104 = metal::simd_shuffle_xor(_e998, 16u);
        sum20_ = _e997 + unnamed_104;
    }
    if (1u < lanes) {
        float _e1004 = sum21_;
        float _e1005 = sum21_;
        float unnamed_105 = metal::simd_shuffle_xor(_e1005, 1u);
        sum21_ = _e1004 + unnamed_105;
    }
    if (2u < lanes) {
        float _e1011 = sum21_;
        float _e1012 = sum21_;
        float unnamed_106 = metal::simd_shuffle_xor(_e1012, 2u);
        sum21_ = _e1011 + unnamed_106;
    }
    if (4u < lanes) {
        float _e1018 = sum21_;
        float _e1019 = sum21_;
        float unnamed_107 = metal::simd_shuffle_xor(_e1019, 4u);
        sum21_ = _e1018 + unnamed_107;
    }
    if (8u < lanes) {
        float _e1025 = sum21_;
        float _e1026 = sum21_;
        float unnamed_108 = metal::simd_shuffle_xor(_e1026, 8u);
        sum21_ = _e1025 + unnamed_108;
    }
    if (16u < lanes) {
        float _e1032 = sum21_;
        float _e1033 = sum21_;
        float unnamed_109 = metal::simd_shuffle_xor(_e1033, 16u);
        sum21_ = _e1032 + unnamed_109;
    }
    if (1u < lanes) {
        float _e1039 = sum22_;
        float _e1040 = sum22_;
        float unnamed_110 = metal::simd_shuffle_xor(_e1040, 1u);
        sum22_ = _e1039 + unnamed_110;
    }
    if (2u < lanes) {
        float _e1046 = sum22_;
        float _e1047 = sum22_;
        float unnamed_111 = metal::simd_shuffle_xor(_e1047, 2u);
        sum22_ = _e1046 + unnamed_111;
    }
    if (4u < lanes) {
        float _e1053 = sum22_;
        float _e1054 = sum22_;
        float unnamed_112 = metal::simd_shuffle_xor(_e1054, 4u);
        sum22_ = _e1053 + unnamed_112;
    }
    if (8u < lanes) {
        float _e1060 = sum22_;
        float _e1061 = sum22_;
        float unnamed_113 = metal::simd_shuffle_xor(_e1061, 8u);
        sum22_ = _e1060 + unnamed_113;
    }
    if (16u < lanes) {
        float _e1067 = sum22_;
        float _e1068 = sum22_;
        float unnamed_114 = metal::simd_shuffle_xor(_e1068, 16u);
        sum22_ = _e1067 + unnamed_114;
    }
    if (1u < lanes) {
        float _e1074 = sum23_;
        float _e1075 = sum23_;
        float unnamed_115 = metal::simd_shuffle_xor(_e1075, 1u);
        sum23_ = _e1074 + unnamed_115;
    }
    if (2u < lanes) {
        float _e1081 = sum23_;
        float _e1082 = sum23_;
        float unnamed_116 = metal::simd_shuffle_xor(_e1082, 2u);
        sum23_ = _e1081 + unnamed_116;
    }
    if (4u < lanes) {
        float _e1088 = sum23_;
        float _e1089 = sum23_;
        float unnamed_117 = metal::simd_shuffle_xor(_e1089, 4u);
        sum23_ = _e1088 + unnamed_117;
    }
    if (8u < lanes) {
        float _e1095 = sum23_;
        float _e1096 = sum23_;
        float unnamed_118 = metal::simd_shuffle_xor(_e1096, 8u);
        sum23_ = _e1095 + unnamed_118;
    }
    if (16u < lanes) {
        float _e1102 = sum23_;
        float _e1103 = sum23_;
        float unnamed_119 = metal::simd_shuffle_xor(_e1103, 16u);
        sum23_ = _e1102 + unnamed_119;
    }
    if (1u < lanes) {
        float _e1109 = sum24_;
        float _e1110 = sum24_;
        float unnamed_120 = metal::simd_shuffle_xor(_e1110, 1u);
        sum24_ = _e1109 + unnamed_120;
    }
    if (2u < lanes) {
        float _e1116 = sum24_;
        float _e1117 = sum24_;
        float unnamed_121 = metal::simd_shuffle_xor(_e1117, 2u);
        sum24_ = _e1116 + unnamed_121;
    }
    if (4u < lanes) {
        float _e1123 = sum24_;
        float _e1124 = sum24_;
        float unnamed_122 = metal::simd_shuffle_xor(_e1124, 4u);
        sum24_ = _e1123 + unnamed_122;
    }
    if (8u < lanes) {
        float _e1130 = sum24_;
        float _e1131 = sum24_;
        float unnamed_123 = metal::simd_shuffle_xor(_e1131, 8u);
        sum24_ = _e1130 + unnamed_123;
    }
    if (16u < lanes) {
        float _e1137 = sum24_;
        float _e1138 = sum24_;
        float unnamed_124 = metal::simd_shuffle_xor(_e1138, 16u);
        sum24_ = _e1137 + unnamed_124;
    }
    if (1u < lanes) {
        float _e1144 = sum25_;
        float _e1145 = sum25_;
        float unnamed_125 = metal::simd_shuffle_xor(_e1145, 1u);
        sum25_ = _e1144 + unnamed_125;
    }
    if (2u < lanes) {
        float _e1151 = sum25_;
        float _e1152 = sum25_;
        float unnamed_126 = metal::simd_shuffle_xor(_e1152, 2u);
        sum25_ = _e1151 + unnamed_126;
    }
    if (4u < lanes) {
        float _e1158 = sum25_;
        float _e1159 = sum25_;
        float unnamed_127 = metal::simd_shuffle_xor(_e1159, 4u);
        sum25_ = _e1158 + unnamed_127;
    }
    if (8u < lanes) {
        float _e1165 = sum25_;
        float _e1166 = sum25_;
        float unnamed_128 = metal::simd_shuffle_xor(_e1166, 8u);
        sum25_ = _e1165 + unnamed_128;
    }
    if (16u < lanes) {
        float _e1172 = sum25_;
        float _e1173 = sum25_;
        float unnamed_129 = metal::simd_shuffle_xor(_e1173, 16u);
        sum25_ = _e1172 + unnamed_129;
    }
    if (1u < lanes) {
        float _e1179 = sum26_;
        float _e1180 = sum26_;
        float unnamed_130 = metal::simd_shuffle_xor(_e1180, 1u);
        sum26_ = _e1179 + unnamed_130;
    }
    if (2u < lanes) {
        float _e1186 = sum26_;
        float _e1187 = sum26_;
        float unnamed_131 = metal::simd_shuffle_xor(_e1187, 2u);
        sum26_ = _e1186 + unnamed_131;
    }
    if (4u < lanes) {
        float _e1193 = sum26_;
        float _e1194 = sum26_;
        float unnamed_132 = metal::simd_shuffle_xor(_e1194, 4u);
        sum26_ = _e1193 + unnamed_132;
    }
    if (8u < lanes) {
        float _e1200 = sum26_;
        float _e1201 = sum26_;
        float unnamed_133 = metal::simd_shuffle_xor(_e1201, 8u);
        sum26_ = _e1200 + unnamed_133;
    }
    if (16u < lanes) {
        float _e1207 = sum26_;
        float _e1208 = sum26_;
        float unnamed_134 = metal::simd_shuffle_xor(_e1208, 16u);
        sum26_ = _e1207 + unnamed_134;
    }
    if (1u < lanes) {
        float _e1214 = sum27_;
        float _e1215 = sum27_;
        float unnamed_135 = metal::simd_shuffle_xor(_e1215, 1u);
        sum27_ = _e1214 + unnamed_135;
    }
    if (2u < lanes) {
        float _e1221 = sum27_;
        float _e1222 = sum27_;
        float unnamed_136 = metal::simd_shuffle_xor(_e1222, 2u);
        sum27_ = _e1221 + unnamed_136;
    }
    if (4u < lanes) {
        float _e1228 = sum27_;
        float _e1229 = sum27_;
        float unnamed_137 = metal::simd_shuffle_xor(_e1229, 4u);
        sum27_ = _e1228 + unnamed_137;
    }
    if (8u < lanes) {
        float _e1235 = sum27_;
        float _e1236 = sum27_;
        float unnamed_138 = metal::simd_shuffle_xor(_e1236, 8u);
        sum27_ = _e1235 + unnamed_138;
    }
    if (16u < lanes) {
        float _e1242 = sum27_;
        float _e1243 = sum27_;
        float unnamed_139 = metal::simd_shuffle_xor(_e1243, 16u);
        sum27_ = _e1242 + unnamed_139;
    }
    if (1u < lanes) {
        float _e1249 = sum28_;
        float _e1250 = sum28_;
        float unnamed_140 = metal::simd_shuffle_xor(_e1250, 1u);
        sum28_ = _e1249 + unnamed_140;
    }
    if (2u < lanes) {
        float _e1256 = sum28_;
        float _e1257 = sum28_;
        float unnamed_141 = metal::simd_shuffle_xor(_e1257, 2u);
        sum28_ = _e1256 + unnamed_141;
    }
    if (4u < lanes) {
        float _e1263 = sum28_;
        float _e1264 = sum28_;
        float unnamed_142 = metal::simd_shuffle_xor(_e1264, 4u);
        sum28_ = _e1263 + unnamed_142;
    }
    if (8u < lanes) {
        float _e1270 = sum28_;
        float _e1271 = sum28_;
        float unnamed_143 = metal::simd_shuffle_xor(_e1271, 8u);
        sum28_ = _e1270 + unnamed_143;
    }
    if (16u < lanes) {
        float _e1277 = sum28_;
        float _e1278 = sum28_;
        float unnamed_144 = metal::simd_shuffle_xor(_e1278, 16u);
        sum28_ = _e1277 + unnamed_144;
    }
    if (1u < lanes) {
        float _e1284 = sum29_;
        float _e1285 = sum29_;
        float unnamed_145 = metal::simd_shuffle_xor(_e1285, 1u);
        sum29_ = _e1284 + unnamed_145;
    }
    if (2u < lanes) {
        float _e1291 = sum29_;
        float _e1292 = sum29_;
        float unnamed_146 = metal::simd_shuffle_xor(_e1292, 2u);
        sum29_ = _e1291 + unnamed_146;
    }
    if (4u < lanes) {
        float _e1298 = sum29_;
        float _e1299 = sum29_;
        float unnamed_147 = metal::simd_shuffle_xor(_e1299, 4u);
        sum29_ = _e1298 + unnamed_147;
    }
    if (8u < lanes) {
        float _e1305 = sum29_;
        float _e1306 = sum29_;
        float unnamed_148 = metal::simd_shuffle_xor(_e1306, 8u);
        sum29_ = _e1305 + unnamed_148;
    }
    if (16u < lanes) {
        float _e1312 = sum29_;
        float _e1313 = sum29_;
        float unnamed_149 = metal::simd_shuffle_xor(_e1313, 16u);
        sum29_ = _e1312 + unnamed_149;
    }
    if (1u < lanes) {
        float _e1319 = sum30_;
        float _e1320 = sum30_;
        float unnamed_150 = metal::simd_shuffle_xor(_e1320, 1u);
        sum30_ = _e1319 + unnamed_150;
    }
    if (2u < lanes) {
        float _e1326 = sum30_;
        float _e1327 = sum30_;
        float unnamed_151 = metal::simd_shuffle_xor(_e1327, 2u);
        sum30_ = _e1326 + unnamed_151;
    }
    if (4u < lanes) {
        float _e1333 = sum30_;
        float _e1334 = sum30_;
        float unnamed_152 = metal::simd_shuffle_xor(_e1334, 4u);
        sum30_ = _e1333 + unnamed_152;
    }
    if (8u < lanes) {
        float _e1340 = sum30_;
        float _e1341 = sum30_;
        float unnamed_153 = metal::simd_shuffle_xor(_e1341, 8u);
        sum30_ = _e1340 + unnamed_153;
    }
    if (16u < lanes) {
        float _e1347 = sum30_;
        float _e1348 = sum30_;
        float unnamed_154 = metal::simd_shuffle_xor(_e1348, 16u);
        sum30_ = _e1347 + unnamed_154;
    }
    if (1u < lanes) {
        float _e1354 = sum31_;
        float _e1355 = sum31_;
        float unnamed_155 = metal::simd_shuffle_xor(_e1355, 1u);
        sum31_ = _e1354 + unnamed_155;
    }
    if (2u < lanes) {
        float _e1361 = sum31_;
        float _e1362 = sum31_;
        float unnamed_156 = metal::simd_shuffle_xor(_e1362, 2u);
        sum31_ = _e1361 + unnamed_156;
    }
    if (4u < lanes) {
        float _e1368 = sum31_;
        float _e1369 = sum31_;
        float unnamed_157 = metal::simd_shuffle_xor(_e1369, 4u);
        sum31_ = _e1368 + unnamed_157;
    }
    if (8u < lanes) {
        float _e1375 = sum31_;
        float _e1376 = sum31_;
        float unnamed_158 = metal::simd_shuffle_xor(_e1376, 8u);
        sum31_ = _e1375 + unnamed_158;
    }
    if (16u < lanes) {
        float _e1382 = sum31_;
        float _e1383 = sum31_;
        float unnamed_159 = metal::simd_shuffle_xor(_e1383, 16u);
        sum31_ = _e1382 + unnamed_159;
    }
    uint width = metal::min(lanes, 32u);
    if ((thread_ % width) == 0u) {
        float _e1399 = sum0_;
        parts.inner[((thread_ / width) * 32u) + 0u] = _e1399;
        float _e1407 = sum1_;
        parts.inner[((thread_ / width) * 32u) + 1u] = _e1407;
        float _e1415 = sum2_;
        parts.inner[((thread_ / width) * 32u) + 2u] = _e1415;
        float _e1423 = sum3_;
        parts.inner[((thread_ / width) * 32u) + 3u] = _e1423;
        float _e1431 = sum4_;
        parts.inner[((thread_ / width) * 32u) + 4u] = _e1431;
        float _e1439 = sum5_;
        parts.inner[((thread_ / width) * 32u) + 5u] = _e1439;
        float _e1447 = sum6_;
        parts.inner[((thread_ / width) * 32u) + 6u] = _e1447;
        float _e1455 = sum7_;
        parts.inner[((thread_ / width) * 32u) + 7u] = _e1455;
        float _e1463 = sum8_;
        parts.inner[((thread_ / width) * 32u) + 8u] = _e1463;
        float _e1471 = sum9_;
        parts.inner[((thread_ / width) * 32u) + 9u] = _e1471;
        float _e1479 = sum10_;
        parts.inner[((thread_ / width) * 32u) + 10u] = _e1479;
        float _e1487 = sum11_;
        parts.inner[((thread_ / width) * 32u) + 11u] = _e1487;
        float _e1495 = sum12_;
        parts.inner[((thread_ / width) * 32u) + 12u] = _e1495;
        float _e1503 = sum13_;
        parts.inner[((thread_ / width) * 32u) + 13u] = _e1503;
        float _e1511 = sum14_;
        parts.inner[((thread_ / width) * 32u) + 14u] = _e1511;
        float _e1519 = sum15_;
        parts.inner[((thread_ / width) * 32u) + 15u] = _e1519;
        float _e1527 = sum16_;
        parts.inner[((thread_ / width) * 32u) + 16u] = _e1527;
        float _e1535 = sum17_;
        parts.inner[((thread_ / width) * 32u) + 17u] = _e1535;
        float _e1543 = sum18_;
        parts.inner[((thread_ / width) * 32u) + 18u] = _e1543;
        float _e1551 = sum19_;
        parts.inner[((thread_ / width) * 32u) + 19u] = _e1551;
        float _e1559 = sum20_;
        parts.inner[((thread_ / width) * 32u) + 20u] = _e1559;
        float _e1567 = sum21_;
        parts.inner[((thread_ / width) * 32u) + 21u] = _e1567;
        float _e1575 = sum22_;
        parts.inner[((thread_ / width) * 32u) + 22u] = _e1575;
        float _e1583 = sum23_;
        parts.inner[((thread_ / width) * 32u) + 23u] = _e1583;
        float _e1591 = sum24_;
        parts.inner[((thread_ / width) * 32u) + 24u] = _e1591;
        float _e1599 = sum25_;
        parts.inner[((thread_ / width) * 32u) + 25u] = _e1599;
        float _e1607 = sum26_;
        parts.inner[((thread_ / width) * 32u) + 26u] = _e1607;
        float _e1615 = sum27_;
        parts.inner[((thread_ / width) * 32u) + 27u] = _e1615;
        float _e1623 = sum28_;
        parts.inner[((thread_ / width) * 32u) + 28u] = _e1623;
        float _e1631 = sum29_;
        parts.inner[((thread_ / width) * 32u) + 29u] = _e1631;
        float _e1639 = sum30_;
        parts.inner[((thread_ / width) * 32u) + 30u] = _e1639;
        float _e1647 = sum31_;
        parts.inner[((thread_ / width) * 32u) + 31u] = _e1647;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint count = 32u / width;
    if (thread_ < 64u) {
        uint own = thread_ / 8u;
        uint quad_ = thread_ % 8u;
        bool loop_init_1 = true;
        while(true) {
            if (!loop_init_1) {
                uint _e1692 = part;
                part = _e1692 + 1u;
            }
            loop_init_1 = false;
            uint _e1660 = part;
            if (_e1660 < count) {
            } else {
                break;
            }
            {
                uint _e1663 = part;
                uint at_1 = ((own * count) + _e1663) * 32u;
                uint start_2 = at_1 + (quad_ * 4u);
                metal::float4 _e1670 = sum;
                float _e1673 = parts.inner[start_2];
                float _e1678 = parts.inner[start_2 + 1u];
                float _e1683 = parts.inner[start_2 + 2u];
                float _e1688 = parts.inner[start_2 + 3u];
                sum = _e1670 + metal::float4(_e1673, _e1678, _e1683, _e1688);
            }
        }
        metal::float4 _e1701 = sum;
        put(_e15.part, _e17, _e15.row + quad_, _e15.column + (own * 4u), _e1701, out, params, _buffer_sizes);
        return;
    } else {
        return;
    }
}
