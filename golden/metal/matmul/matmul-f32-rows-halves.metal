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
    device type_4 const& b,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.n;
    uint row_5 = metal::min(outer_1, _e5 - 1u);
    uint _e12 = params.b_outer;
    metal::half4 _e19 = b[((start_1 + (row_5 * _e12)) + k_2) >> 2u];
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
, device type_4 const& b [[buffer(1)]]
, device type_2& out [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, threadgroup type_7& parts
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
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
            uint _e82 = k;
            k = _e82 + 128u;
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
            uint _e52 = k;
            metal::float4 _e53 = load_b(_e17.b, first_1 + 1u, _e52, b, params, _buffer_sizes);
            uint _e57 = k;
            metal::float4 _e58 = load_b(_e17.b, first_1 + 2u, _e57, b, params, _buffer_sizes);
            uint _e62 = k;
            metal::float4 _e63 = load_b(_e17.b, first_1 + 3u, _e62, b, params, _buffer_sizes);
            {
                uint _e68 = k;
                metal::float4 _e69 = load_a(_e17.a, _e15.row + 0u, _e68, a, params, _buffer_sizes);
                float _e70 = sum0_;
                sum0_ = _e70 + metal::dot(_e69, _e48);
                float _e73 = sum1_;
                sum1_ = _e73 + metal::dot(_e69, _e53);
                float _e76 = sum2_;
                sum2_ = _e76 + metal::dot(_e69, _e58);
                float _e79 = sum3_;
                sum3_ = _e79 + metal::dot(_e69, _e63);
            }
        }
    }
    if (1u < lanes) {
        float _e87 = sum0_;
        float _e88 = sum0_;
        float unnamed = metal::simd_shuffle_xor(_e88, 1u);
        sum0_ = _e87 + unnamed;
    }
    if (2u < lanes) {
        float _e94 = sum0_;
        float _e95 = sum0_;
        float unnamed_1 = metal::simd_shuffle_xor(_e95, 2u);
        sum0_ = _e94 + unnamed_1;
    }
    if (4u < lanes) {
        float _e101 = sum0_;
        float _e102 = sum0_;
        float unnamed_2 = metal::simd_shuffle_xor(_e102, 4u);
        sum0_ = _e101 + unnamed_2;
    }
    if (8u < lanes) {
        float _e108 = sum0_;
        float _e109 = sum0_;
        float unnamed_3 = metal::simd_shuffle_xor(_e109, 8u);
        sum0_ = _e108 + unnamed_3;
    }
    if (16u < lanes) {
        float _e115 = sum0_;
        float _e116 = sum0_;
        float unnamed_4 = metal::simd_shuffle_xor(_e116, 16u);
        sum0_ = _e115 + unnamed_4;
    }
    if (1u < lanes) {
        float _e122 = sum1_;
        float _e123 = sum1_;
        float unnamed_5 = metal::simd_shuffle_xor(_e123, 1u);
        sum1_ = _e122 + unnamed_5;
    }
    if (2u < lanes) {
        float _e129 = sum1_;
        float _e130 = sum1_;
        float unnamed_6 = metal::simd_shuffle_xor(_e130, 2u);
        sum1_ = _e129 + unnamed_6;
    }
    if (4u < lanes) {
        float _e136 = sum1_;
        float _e137 = sum1_;
        float unnamed_7 = metal::simd_shuffle_xor(_e137, 4u);
        sum1_ = _e136 + unnamed_7;
    }
    if (8u < lanes) {
        float _e143 = sum1_;
        float _e144 = sum1_;
        float unnamed_8 = metal::simd_shuffle_xor(_e144, 8u);
        sum1_ = _e143 + unnamed_8;
    }
    if (16u < lanes) {
        float _e150 = sum1_;
        float _e151 = sum1_;
        float unnamed_9 = metal::simd_shuffle_xor(_e151, 16u);
        sum1_ = _e150 + unnamed_9;
    }
    if (1u < lanes) {
        float _e157 = sum2_;
        float _e158 = sum2_;
        float unnamed_10 = metal::simd_shuffle_xor(_e158, 1u);
        sum2_ = _e157 + unnamed_10;
    }
    if (2u < lanes) {
        float _e164 = sum2_;
        float _e165 = sum2_;
        float unnamed_11 = metal::simd_shuffle_xor(_e165, 2u);
        sum2_ = _e164 + unnamed_11;
    }
    if (4u < lanes) {
        float _e171 = sum2_;
        float _e172 = sum2_;
        float unnamed_12 = metal::simd_shuffle_xor(_e172, 4u);
        sum2_ = _e171 + unnamed_12;
    }
    if (8u < lanes) {
        float _e178 = sum2_;
        float _e179 = sum2_;
        float unnamed_13 = metal::simd_shuffle_xor(_e179, 8u);
        sum2_ = _e178 + unnamed_13;
    }
    if (16u < lanes) {
        float _e185 = sum2_;
        float _e186 = sum2_;
        float unnamed_14 = metal::simd_shuffle_xor(_e186, 16u);
        sum2_ = _e185 + unnamed_14;
    }
    if (1u < lanes) {
        float _e192 = sum3_;
        float _e193 = sum3_;
        float unnamed_15 = metal::simd_shuffle_xor(_e193, 1u);
        sum3_ = _e192 + unnamed_15;
    }
    if (2u < lanes) {
        float _e199 = sum3_;
        float _e200 = sum3_;
        float unnamed_16 = metal::simd_shuffle_xor(_e200, 2u);
        sum3_ = _e199 + unnamed_16;
    }
    if (4u < lanes) {
        float _e206 = sum3_;
        float _e207 = sum3_;
        float unnamed_17 = metal::simd_shuffle_xor(_e207, 4u);
        sum3_ = _e206 + unnamed_17;
    }
    if (8u < lanes) {
        float _e213 = sum3_;
        float _e214 = sum3_;
        float unnamed_18 = metal::simd_shuffle_xor(_e214, 8u);
        sum3_ = _e213 + unnamed_18;
    }
    if (16u < lanes) {
        float _e220 = sum3_;
        float _e221 = sum3_;
        float unnamed_19 = metal::simd_shuffle_xor(_e221, 16u);
        sum3_ = _e220 + unnamed_19;
    }
    uint width = metal::min(lanes, 32u);
    if ((thread_ % width) == 0u) {
        float _e237 = sum0_;
        parts.inner[((thread_ / width) * 4u) + 0u] = _e237;
        float _e245 = sum1_;
        parts.inner[((thread_ / width) * 4u) + 1u] = _e245;
        float _e253 = sum2_;
        parts.inner[((thread_ / width) * 4u) + 2u] = _e253;
        float _e261 = sum3_;
        parts.inner[((thread_ / width) * 4u) + 3u] = _e261;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint count = 32u / width;
    if (thread_ < 8u) {
        uint own = thread_ / 1u;
        uint quad_ = thread_ % 1u;
        bool loop_init_1 = true;
        while(true) {
            if (!loop_init_1) {
                uint _e306 = part;
                part = _e306 + 1u;
            }
            loop_init_1 = false;
            uint _e274 = part;
            if (_e274 < count) {
            } else {
                break;
            }
            {
                uint _e277 = part;
                uint at_1 = ((own * count) + _e277) * 4u;
                uint start_2 = at_1 + (quad_ * 4u);
                metal::float4 _e284 = sum;
                float _e287 = parts.inner[start_2];
                float _e292 = parts.inner[start_2 + 1u];
                float _e297 = parts.inner[start_2 + 2u];
                float _e302 = parts.inner[start_2 + 3u];
                sum = _e284 + metal::float4(_e287, _e292, _e297, _e302);
            }
        }
        metal::float4 _e315 = sum;
        put(_e15.part, _e17, _e15.row + quad_, _e15.column + (own * 4u), _e315, out, params, _buffer_sizes);
        return;
    } else {
        return;
    }
}
