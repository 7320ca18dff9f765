// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
};

typedef metal::half4 type_1[1];
typedef float type_3[1];
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
struct type_7 {
    float inner[128];
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
    device type_1 const& a,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.k;
    if (k_2 >= _e5) {
        return metal::float4(0.0);
    }
    uint _e11 = params.m;
    uint row_4 = metal::min(outer, _e11 - 1u);
    uint _e18 = params.a_outer;
    metal::half4 _e25 = a[((start_1 + (row_4 * _e18)) + k_2) >> 2u];
    return static_cast<metal::float4>(_e25);
}

metal::float4 load_b(
    uint start_2,
    uint outer_1,
    uint k_3,
    device type_1 const& b,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.k;
    if (k_3 >= _e5) {
        return metal::float4(0.0);
    }
    uint _e12 = params.n;
    uint _e16 = window(metal::min(outer_1, _e12 - 1u), params);
    uint _e18 = seen(start_2 + _e16, k_3, params);
    metal::half4 _e20 = b[_e18];
    return static_cast<metal::float4>(_e20);
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
    uint part_1,
    Starts base_2,
    uint row_2,
    uint column_2,
    metal::float4 v_2,
    device type_3& out,
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
    uint _e23 = params.n;
    if ((column_2 + 0u) < _e23) {
        uint _e28 = place(base_2, row_2, column_2 + 0u, params);
        out[_e28] = static_cast<float>(v_2.x);
    }
    uint _e36 = params.n;
    if ((column_2 + 1u) < _e36) {
        uint _e41 = place(base_2, row_2, column_2 + 1u, params);
        out[_e41] = static_cast<float>(v_2.y);
    }
    uint _e49 = params.n;
    if ((column_2 + 2u) < _e49) {
        uint _e54 = place(base_2, row_2, column_2 + 2u, params);
        out[_e54] = static_cast<float>(v_2.z);
    }
    uint _e62 = params.n;
    if ((column_2 + 3u) < _e62) {
        uint _e67 = place(base_2, row_2, column_2 + 3u, params);
        out[_e67] = static_cast<float>(v_2.w);
        return;
    } else {
        return;
    }
}

void put(
    uint part_2,
    Starts base_3,
    uint row_3,
    uint column_3,
    metal::float4 sums_2,
    device type_3& out,
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
    uint at_1 = tile % in_band;
    uint _e35 = params.share;
    uint k_4 = share * _e35;
    uint _e46 = params.share;
    uint _e50 = params.k;
    uint _e54 = params.products;
    return Work {(first + (at_1 % rows)) * 4u, (at_1 / rows) * 32u, k_4, metal::min(k_4 + _e46, _e50), product_1, (share * _e54) + product_1};
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
, device type_1 const& a [[buffer(0)]]
, device type_1 const& b [[buffer(1)]]
, device type_3& out [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, threadgroup type_7& parts
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
            uint _e160 = k;
            k = _e160 + 128u;
        }
        loop_init = false;
        uint _e65 = k;
        if (_e65 < _e15.k_end) {
        } else {
            break;
        }
        {
            uint _e71 = k;
            metal::float4 _e72 = load_b(_e17.b, first_1 + 0u, _e71, b, params, _buffer_sizes);
            uint _e76 = k;
            metal::float4 _e77 = load_b(_e17.b, first_1 + 1u, _e76, b, params, _buffer_sizes);
            uint _e81 = k;
            metal::float4 _e82 = load_b(_e17.b, first_1 + 2u, _e81, b, params, _buffer_sizes);
            uint _e86 = k;
            metal::float4 _e87 = load_b(_e17.b, first_1 + 3u, _e86, b, params, _buffer_sizes);
            {
                uint _e92 = k;
                metal::float4 _e93 = load_a(_e17.a, _e15.row + 0u, _e92, a, params, _buffer_sizes);
                float _e94 = sum0_;
                sum0_ = _e94 + metal::dot(_e93, _e72);
                float _e97 = sum1_;
                sum1_ = _e97 + metal::dot(_e93, _e77);
                float _e100 = sum2_;
                sum2_ = _e100 + metal::dot(_e93, _e82);
                float _e103 = sum3_;
                sum3_ = _e103 + metal::dot(_e93, _e87);
            }
            {
                uint _e110 = k;
                metal::float4 _e111 = load_a(_e17.a, _e15.row + 1u, _e110, a, params, _buffer_sizes);
                float _e112 = sum4_;
                sum4_ = _e112 + metal::dot(_e111, _e72);
                float _e115 = sum5_;
                sum5_ = _e115 + metal::dot(_e111, _e77);
                float _e118 = sum6_;
                sum6_ = _e118 + metal::dot(_e111, _e82);
                float _e121 = sum7_;
                sum7_ = _e121 + metal::dot(_e111, _e87);
            }
            {
                uint _e128 = k;
                metal::float4 _e129 = load_a(_e17.a, _e15.row + 2u, _e128, a, params, _buffer_sizes);
                float _e130 = sum8_;
                sum8_ = _e130 + metal::dot(_e129, _e72);
                float _e133 = sum9_;
                sum9_ = _e133 + metal::dot(_e129, _e77);
                float _e136 = sum10_;
                sum10_ = _e136 + metal::dot(_e129, _e82);
                float _e139 = sum11_;
                sum11_ = _e139 + metal::dot(_e129, _e87);
            }
            {
                uint _e146 = k;
                metal::float4 _e147 = load_a(_e17.a, _e15.row + 3u, _e146, a, params, _buffer_sizes);
                float _e148 = sum12_;
                sum12_ = _e148 + metal::dot(_e147, _e72);
                float _e151 = sum13_;
                sum13_ = _e151 + metal::dot(_e147, _e77);
                float _e154 = sum14_;
                sum14_ = _e154 + metal::dot(_e147, _e82);
                float _e157 = sum15_;
                sum15_ = _e157 + metal::dot(_e147, _e87);
            }
        }
    }
    if (1u < lanes) {
        float _e165 = sum0_;
        float _e166 = sum0_;
        float unnamed = metal::simd_shuffle_xor(_e166, 1u);
        sum0_ = _e165 + unnamed;
    }
    if (2u < lanes) {
        float _e172 = sum0_;
        float _e173 = sum0_;
        float unnamed_1 = metal::simd_shuffle_xor(_e173, 2u);
        sum0_ = _e172 + unnamed_1;
    }
    if (4u < lanes) {
        float _e179 = sum0_;
        float _e180 = sum0_;
        float unnamed_2 = metal::simd_shuffle_xor(_e180, 4u);
        sum0_ = _e179 + unnamed_2;
    }
    if (8u < lanes) {
        float _e186 = sum0_;
        float _e187 = sum0_;
        float unnamed_3 = metal::simd_shuffle_xor(_e187, 8u);
        sum0_ = _e186 + unnamed_3;
    }
    if (16u < lanes) {
        float _e193 = sum0_;
        float _e194 = sum0_;
        float unnamed_4 = metal::simd_shuffle_xor(_e194, 16u);
        sum0_ = _e193 + unnamed_4;
    }
    if (1u < lanes) {
        float _e200 = sum1_;
        float _e201 = sum1_;
        float unnamed_5 = metal::simd_shuffle_xor(_e201, 1u);
        sum1_ = _e200 + unnamed_5;
    }
    if (2u < lanes) {
        float _e207 = sum1_;
        float _e208 = sum1_;
        float unnamed_6 = metal::simd_shuffle_xor(_e208, 2u);
        sum1_ = _e207 + unnamed_6;
    }
    if (4u < lanes) {
        float _e214 = sum1_;
        float _e215 = sum1_;
        float unnamed_7 = metal::simd_shuffle_xor(_e215, 4u);
        sum1_ = _e214 + unnamed_7;
    }
    if (8u < lanes) {
        float _e221 = sum1_;
        float _e222 = sum1_;
        float unnamed_8 = metal::simd_shuffle_xor(_e222, 8u);
        sum1_ = _e221 + unnamed_8;
    }
    if (16u < lanes) {
        float _e228 = sum1_;
        float _e229 = sum1_;
        float unnamed_9 = metal::simd_shuffle_xor(_e229, 16u);
        sum1_ = _e228 + unnamed_9;
    }
    if (1u < lanes) {
        float _e235 = sum2_;
        float _e236 = sum2_;
        float unnamed_10 = metal::simd_shuffle_xor(_e236, 1u);
        sum2_ = _e235 + unnamed_10;
    }
    if (2u < lanes) {
        float _e242 = sum2_;
        float _e243 = sum2_;
        float unnamed_11 = metal::simd_shuffle_xor(_e243, 2u);
        sum2_ = _e242 + unnamed_11;
    }
    if (4u < lanes) {
        float _e249 = sum2_;
        float _e250 = sum2_;
        float unnamed_12 = metal::simd_shuffle_xor(_e250, 4u);
        sum2_ = _e249 + unnamed_12;
    }
    if (8u < lanes) {
        float _e256 = sum2_;
        float _e257 = sum2_;
        float unnamed_13 = metal::simd_shuffle_xor(_e257, 8u);
        sum2_ = _e256 + unnamed_13;
    }
    if (16u < lanes) {
        float _e263 = sum2_;
        float _e264 = sum2_;
        float unnamed_14 = metal::simd_shuffle_xor(_e264, 16u);
        sum2_ = _e263 + unnamed_14;
    }
    if (1u < lanes) {
        float _e270 = sum3_;
        float _e271 = sum3_;
        float unnamed_15 = metal::simd_shuffle_xor(_e271, 1u);
        sum3_ = _e270 + unnamed_15;
    }
    if (2u < lanes) {
        float _e277 = sum3_;
        float _e278 = sum3_;
        float unnamed_16 = metal::simd_shuffle_xor(_e278, 2u);
        sum3_ = _e277 + unnamed_16;
    }
    if (4u < lanes) {
        float _e284 = sum3_;
        float _e285 = sum3_;
        float unnamed_17 = metal::simd_shuffle_xor(_e285, 4u);
        sum3_ = _e284 + unnamed_17;
    }
    if (8u < lanes) {
        float _e291 = sum3_;
        float _e292 = sum3_;
        float unnamed_18 = metal::simd_shuffle_xor(_e292, 8u);
        sum3_ = _e291 + unnamed_18;
    }
    if (16u < lanes) {
        float _e298 = sum3_;
        float _e299 = sum3_;
        float unnamed_19 = metal::simd_shuffle_xor(_e299, 16u);
        sum3_ = _e298 + unnamed_19;
    }
    if (1u < lanes) {
        float _e305 = sum4_;
        float _e306 = sum4_;
        float unnamed_20 = metal::simd_shuffle_xor(_e306, 1u);
        sum4_ = _e305 + unnamed_20;
    }
    if (2u < lanes) {
        float _e312 = sum4_;
        float _e313 = sum4_;
        float unnamed_21 = metal::simd_shuffle_xor(_e313, 2u);
        sum4_ = _e312 + unnamed_21;
    }
    if (4u < lanes) {
        float _e319 = sum4_;
        float _e320 = sum4_;
        float unnamed_22 = metal::simd_shuffle_xor(_e320, 4u);
        sum4_ = _e319 + unnamed_22;
    }
    if (8u < lanes) {
        float _e326 = sum4_;
        float _e327 = sum4_;
        float unnamed_23 = metal::simd_shuffle_xor(_e327, 8u);
        sum4_ = _e326 + unnamed_23;
    }
    if (16u < lanes) {
        float _e333 = sum4_;
        float _e334 = sum4_;
        float unnamed_24 = metal::simd_shuffle_xor(_e334, 16u);
        sum4_ = _e333 + unnamed_24;
    }
    if (1u < lanes) {
        float _e340 = sum5_;
        float _e341 = sum5_;
        float unnamed_25 = metal::simd_shuffle_xor(_e341, 1u);
        sum5_ = _e340 + unnamed_25;
    }
    if (2u < lanes) {
        float _e347 = sum5_;
        float _e348 = sum5_;
        float unnamed_26 = metal::simd_shuffle_xor(_e348, 2u);
        sum5_ = _e347 + unnamed_26;
    }
    if (4u < lanes) {
        float _e354 = sum5_;
        float _e355 = sum5_;
        float unnamed_27 = metal::simd_shuffle_xor(_e355, 4u);
        sum5_ = _e354 + unnamed_27;
    }
    if (8u < lanes) {
        float _e361 = sum5_;
        float _e362 = sum5_;
        float unnamed_28 = metal::simd_shuffle_xor(_e362, 8u);
        sum5_ = _e361 + unnamed_28;
    }
    if (16u < lanes) {
        float _e368 = sum5_;
        float _e369 = sum5_;
        float unnamed_29 = metal::simd_shuffle_xor(_e369, 16u);
        sum5_ = _e368 + unnamed_29;
    }
    if (1u < lanes) {
        float _e375 = sum6_;
        float _e376 = sum6_;
        float unnamed_30 = metal::simd_shuffle_xor(_e376, 1u);
        sum6_ = _e375 + unnamed_30;
    }
    if (2u < lanes) {
        float _e382 = sum6_;
        float _e383 = sum6_;
        float unnamed_31 = metal::simd_shuffle_xor(_e383, 2u);
        sum6_ = _e382 + unnamed_31;
    }
    if (4u < lanes) {
        float _e389 = sum6_;
        float _e390 = sum6_;
        float unnamed_32 = metal::simd_shuffle_xor(_e390, 4u);
        sum6_ = _e389 + unnamed_32;
    }
    if (8u < lanes) {
        float _e396 = sum6_;
        float _e397 = sum6_;
        float unnamed_33 = metal::simd_shuffle_xor(_e397, 8u);
        sum6_ = _e396 + unnamed_33;
    }
    if (16u < lanes) {
        float _e403 = sum6_;
        float _e404 = sum6_;
        float unnamed_34 = metal::simd_shuffle_xor(_e404, 16u);
        sum6_ = _e403 + unnamed_34;
    }
    if (1u < lanes) {
        float _e410 = sum7_;
        float _e411 = sum7_;
        float unnamed_35 = metal::simd_shuffle_xor(_e411, 1u);
        sum7_ = _e410 + unnamed_35;
    }
    if (2u < lanes) {
        float _e417 = sum7_;
        float _e418 = sum7_;
        float unnamed_36 = metal::simd_shuffle_xor(_e418, 2u);
        sum7_ = _e417 + unnamed_36;
    }
    if (4u < lanes) {
        float _e424 = sum7_;
        float _e425 = sum7_;
        float unnamed_37 = metal::simd_shuffle_xor(_e425, 4u);
        sum7_ = _e424 + unnamed_37;
    }
    if (8u < lanes) {
        float _e431 = sum7_;
        float _e432 = sum7_;
        float unnamed_38 = metal::simd_shuffle_xor(_e432, 8u);
        sum7_ = _e431 + unnamed_38;
    }
    if (16u < lanes) {
        float _e438 = sum7_;
        float _e439 = sum7_;
        float unnamed_39 = metal::simd_shuffle_xor(_e439, 16u);
        sum7_ = _e438 + unnamed_39;
    }
    if (1u < lanes) {
        float _e445 = sum8_;
        float _e446 = sum8_;
        float unnamed_40 = metal::simd_shuffle_xor(_e446, 1u);
        sum8_ = _e445 + unnamed_40;
    }
    if (2u < lanes) {
        float _e452 = sum8_;
        float _e453 = sum8_;
        float unnamed_41 = metal::simd_shuffle_xor(_e453, 2u);
        sum8_ = _e452 + unnamed_41;
    }
    if (4u < lanes) {
        float _e459 = sum8_;
        float _e460 = sum8_;
        float unnamed_42 = metal::simd_shuffle_xor(_e460, 4u);
        sum8_ = _e459 + unnamed_42;
    }
    if (8u < lanes) {
        float _e466 = sum8_;
        float _e467 = sum8_;
        float unnamed_43 = metal::simd_shuffle_xor(_e467, 8u);
        sum8_ = _e466 + unnamed_43;
    }
    if (16u < lanes) {
        float _e473 = sum8_;
        float _e474 = sum8_;
        float unnamed_44 = metal::simd_shuffle_xor(_e474, 16u);
        sum8_ = _e473 + unnamed_44;
    }
    if (1u < lanes) {
        float _e480 = sum9_;
        float _e481 = sum9_;
        float unnamed_45 = metal::simd_shuffle_xor(_e481, 1u);
        sum9_ = _e480 + unnamed_45;
    }
    if (2u < lanes) {
        float _e487 = sum9_;
        float _e488 = sum9_;
        float unnamed_46 = metal::simd_shuffle_xor(_e488, 2u);
        sum9_ = _e487 + unnamed_46;
    }
    if (4u < lanes) {
        float _e494 = sum9_;
        float _e495 = sum9_;
        float unnamed_47 = metal::simd_shuffle_xor(_e495, 4u);
        sum9_ = _e494 + unnamed_47;
    }
    if (8u < lanes) {
        float _e501 = sum9_;
        float _e502 = sum9_;
        float unnamed_48 = metal::simd_shuffle_xor(_e502, 8u);
        sum9_ = _e501 + unnamed_48;
    }
    if (16u < lanes) {
        float _e508 = sum9_;
        float _e509 = sum9_;
        float unnamed_49 = metal::simd_shuffle_xor(_e509, 16u);
        sum9_ = _e508 + unnamed_49;
    }
    if (1u < lanes) {
        float _e515 = sum10_;
        float _e516 = sum10_;
        float unnamed_50 = metal::simd_shuffle_xor(_e516, 1u);
        sum10_ = _e515 + unnamed_50;
    }
    if (2u < lanes) {
        float _e522 = sum10_;
        float _e523 = sum10_;
        float unnamed_51 = metal::simd_shuffle_xor(_e523, 2u);
        sum10_ = _e522 + unnamed_51;
    }
    if (4u < lanes) {
        float _e529 = sum10_;
        float _e530 = sum10_;
        float unnamed_52 = metal::simd_shuffle_xor(_e530, 4u);
        sum10_ = _e529 + unnamed_52;
    }
    if (8u < lanes) {
        float _e536 = sum10_;
        float _e537 = sum10_;
        float unnamed_53 = metal::simd_shuffle_xor(_e537, 8u);
        sum10_ = _e536 + unnamed_53;
    }
    if (16u < lanes) {
        float _e543 = sum10_;
        float _e544 = sum10_;
        float unnamed_54 = metal::simd_shuffle_xor(_e544, 16u);
        sum10_ = _e543 + unnamed_54;
    }
    if (1u < lanes) {
        float _e550 = sum11_;
        float _e551 = sum11_;
        float unnamed_55 = metal::simd_shuffle_xor(_e551, 1u);
        sum11_ = _e550 + unnamed_55;
    }
    if (2u < lanes) {
        float _e557 = sum11_;
        float _e558 = sum11_;
        float unnamed_56 = metal::simd_shuffle_xor(_e558, 2u);
        sum11_ = _e557 + unnamed_56;
    }
    if (4u < lanes) {
        float _e564 = sum11_;
        float _e565 = sum11_;
        float unnamed_57 = metal::simd_shuffle_xor(_e565, 4u);
        sum11_ = _e564 + unnamed_57;
    }
    if (8u < lanes) {
        float _e571 = sum11_;
        float _e572 = sum11_;
        float unnamed_58 = metal::simd_shuffle_xor(_e572, 8u);
        sum11_ = _e571 + unnamed_58;
    }
    if (16u < lanes) {
        float _e578 = sum11_;
        float _e579 = sum11_;
        float unnamed_59 = metal::simd_shuffle_xor(_e579, 16u);
        sum11_ = _e578 + unnamed_59;
    }
    if (1u < lanes) {
        float _e585 = sum12_;
        float _e586 = sum12_;
        float unnamed_60 = metal::simd_shuffle_xor(_e586, 1u);
        sum12_ = _e585 + unnamed_60;
    }
    if (2u < lanes) {
        float _e592 = sum12_;
        float _e593 = sum12_;
        float unnamed_61 = metal::simd_shuffle_xor(_e593, 2u);
        sum12_ = _e592 + unnamed_61;
    }
    if (4u < lanes) {
        float _e599 = sum12_;
        float _e600 = sum12_;
        float unnamed_62 = metal::simd_shuffle_xor(_e600, 4u);
        sum12_ = _e599 + unnamed_62;
    }
    if (8u < lanes) {
        float _e606 = sum12_;
        float _e607 = sum12_;
        float unnamed_63 = metal::simd_shuffle_xor(_e607, 8u);
        sum12_ = _e606 + unnamed_63;
    }
    if (16u < lanes) {
        float _e613 = sum12_;
        float _e614 = sum12_;
        float unnamed_64 = metal::simd_shuffle_xor(_e614, 16u);
        sum12_ = _e613 + unnamed_64;
    }
    if (1u < lanes) {
        float _e620 = sum13_;
        float _e621 = sum13_;
        float unnamed_65 = metal::simd_shuffle_xor(_e621, 1u);
        sum13_ = _e620 + unnamed_65;
    }
    if (2u < lanes) {
        float _e627 = sum13_;
        float _e628 = sum13_;
        float unnamed_66 = metal::simd_shuffle_xor(_e628, 2u);
        sum13_ = _e627 + unnamed_66;
    }
    if (4u < lanes) {
        float _e634 = sum13_;
        float _e635 = sum13_;
        float unnamed_67 = metal::simd_shuffle_xor(_e635, 4u);
        sum13_ = _e634 + unnamed_67;
    }
    if (8u < lanes) {
        float _e641 = sum13_;
        float _e642 = sum13_;
        float unnamed_68 = metal::simd_shuffle_xor(_e642, 8u);
        sum13_ = _e641 + unnamed_68;
    }
    if (16u < lanes) {
        float _e648 = sum13_;
        float _e649 = sum13_;
        float unnamed_69 = metal::simd_shuffle_xor(_e649, 16u);
        sum13_ = _e648 + unnamed_69;
    }
    if (1u < lanes) {
        float _e655 = sum14_;
        float _e656 = sum14_;
        float unnamed_70 = metal::simd_shuffle_xor(_e656, 1u);
        sum14_ = _e655 + unnamed_70;
    }
    if (2u < lanes) {
        float _e662 = sum14_;
        float _e663 = sum14_;
        float unnamed_71 = metal::simd_shuffle_xor(_e663, 2u);
        sum14_ = _e662 + unnamed_71;
    }
    if (4u < lanes) {
        float _e669 = sum14_;
        float _e670 = sum14_;
        float unnamed_72 = metal::simd_shuffle_xor(_e670, 4u);
        sum14_ = _e669 + unnamed_72;
    }
    if (8u < lanes) {
        float _e676 = sum14_;
        float _e677 = sum14_;
        float unnamed_73 = metal::simd_shuffle_xor(_e677, 8u);
        sum14_ = _e676 + unnamed_73;
    }
    if (16u < lanes) {
        float _e683 = sum14_;
        float _e684 = sum14_;
        float unnamed_74 = metal::simd_shuffle_xor(_e684, 16u);
        sum14_ = _e683 + unnamed_74;
    }
    if (1u < lanes) {
        float _e690 = sum15_;
        float _e691 = sum15_;
        float unnamed_75 = metal::simd_shuffle_xor(_e691, 1u);
        sum15_ = _e690 + unnamed_75;
    }
    if (2u < lanes) {
        float _e697 = sum15_;
        float _e698 = sum15_;
        float unnamed_76 = metal::simd_shuffle_xor(_e698, 2u);
        sum15_ = _e697 + unnamed_76;
    }
    if (4u < lanes) {
        float _e704 = sum15_;
        float _e705 = sum15_;
        float unnamed_77 = metal::simd_shuffle_xor(_e705, 4u);
        sum15_ = _e704 + unnamed_77;
    }
    if (8u < lanes) {
        float _e711 = sum15_;
        float _e712 = sum15_;
        float unnamed_78 = metal::simd_shuffle_xor(_e712, 8u);
        sum15_ = _e711 + unnamed_78;
    }
    if (16u < lanes) {
        float _e718 = sum15_;
        float _e719 = sum15_;
        float unnamed_79 = metal::simd_shuffle_xor(_e719, 16u);
        sum15_ = _e718 + unnamed_79;
    }
    uint width = metal::min(lanes, 32u);
    if ((thread_ % width) == 0u) {
        float _e735 = sum0_;
        parts.inner[((thread_ / width) * 16u) + 0u] = _e735;
        float _e743 = sum1_;
        parts.inner[((thread_ / width) * 16u) + 1u] = _e743;
        float _e751 = sum2_;
        parts.inner[((thread_ / width) * 16u) + 2u] = _e751;
        float _e759 = sum3_;
        parts.inner[((thread_ / width) * 16u) + 3u] = _e759;
        float _e767 = sum4_;
        parts.inner[((thread_ / width) * 16u) + 4u] = _e767;
        float _e775 = sum5_;
        parts.inner[((thread_ / width) * 16u) + 5u] = _e775;
        float _e783 = sum6_;
        parts.inner[((thread_ / width) * 16u) + 6u] = _e783;
        float _e791 = sum7_;
        parts.inner[((thread_ / width) * 16u) + 7u] = _e791;
        float _e799 = sum8_;
        parts.inner[((thread_ / width) * 16u) + 8u] = _e799;
        float _e807 = sum9_;
        parts.inner[((thread_ / width) * 16u) + 9u] = _e807;
        float _e815 = sum10_;
        parts.inner[((thread_ / width) * 16u) + 10u] = _e815;
        float _e823 = sum11_;
        parts.inner[((thread_ / width) * 16u) + 11u] = _e823;
        float _e831 = sum12_;
        parts.inner[((thread_ / width) * 16u) + 12u] = _e831;
        float _e839 = sum13_;
        parts.inner[((thread_ / width) * 16u) + 13u] = _e839;
        float _e847 = sum14_;
        parts.inner[((thread_ / width) * 16u) + 14u] = _e847;
        float _e855 = sum15_;
        parts.inner[((thread_ / width) * 16u) + 15u] = _e855;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint count = 32u / width;
    if (thread_ < 32u) {
        uint own = thread_ / 4u;
        uint quad_ = thread_ % 4u;
        bool loop_init_1 = true;
        while(true) {
            if (!loop_init_1) {
                uint _e900 = part;
                part = _e900 + 1u;
            }
            loop_init_1 = false;
            uint _e868 = part;
            if (_e868 < count) {
            } else {
                break;
            }
            {
                uint _e871 = part;
                uint at_2 = ((own * count) + _e871) * 16u;
                uint start_3 = at_2 + (quad_ * 4u);
                metal::float4 _e878 = sum;
                float _e881 = parts.inner[start_3];
                float _e886 = parts.inner[start_3 + 1u];
                float _e891 = parts.inner[start_3 + 2u];
                float _e896 = parts.inner[start_3 + 3u];
                sum = _e878 + metal::float4(_e881, _e886, _e891, _e896);
            }
        }
        metal::float4 _e909 = sum;
        put(_e15.part, _e17, _e15.row + quad_, _e15.column + (own * 4u), _e909, out, params, _buffer_sizes);
        return;
    } else {
        return;
    }
}
