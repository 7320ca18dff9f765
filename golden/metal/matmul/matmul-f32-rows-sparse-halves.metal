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
typedef metal::half4 type_4[1];
typedef uint type_6[1];
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
struct type_8 {
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
    uint k_4 = share * _e35;
    uint _e46 = params.share;
    uint _e50 = params.k;
    uint _e54 = params.products;
    return Work {(first + (at % rows)) * 1u, (at / rows) * 32u, k_4, metal::min(k_4 + _e46, _e50), product_1, (share * _e54) + product_1};
}

bool is_full(
    uint column_4,
    uint k_3,
    device type_6 const& zeros,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = params.n;
    uint _e13 = params.k;
    uint word = zeros[((metal::min(column_4, _e5 - 1u) / 32u) * ((_e13 + 255u) / 256u)) + (k_3 / 256u)];
    return ((word >> ((k_3 / 8u) % 32u)) & 1u) == 1u;
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
, device type_6 const& zeros [[buffer(2)]]
, device type_2& out [[buffer(3)]]
, constant Params& params [[buffer(4)]]
, threadgroup type_8& parts
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
            uint _e85 = k;
            k = _e85 + 128u;
        }
        loop_init = false;
        uint _e41 = k;
        if (_e41 < _e15.k_end) {
        } else {
            break;
        }
        {
            uint _e44 = k;
            bool _e45 = is_full(first_1, _e44, zeros, params, _buffer_sizes);
            if (!(_e45)) {
                continue;
            }
            uint _e50 = k;
            metal::float4 _e51 = load_b(_e17.b, first_1 + 0u, _e50, b, params, _buffer_sizes);
            uint _e55 = k;
            metal::float4 _e56 = load_b(_e17.b, first_1 + 1u, _e55, b, params, _buffer_sizes);
            uint _e60 = k;
            metal::float4 _e61 = load_b(_e17.b, first_1 + 2u, _e60, b, params, _buffer_sizes);
            uint _e65 = k;
            metal::float4 _e66 = load_b(_e17.b, first_1 + 3u, _e65, b, params, _buffer_sizes);
            {
                uint _e71 = k;
                metal::float4 _e72 = load_a(_e17.a, _e15.row + 0u, _e71, a, params, _buffer_sizes);
                float _e73 = sum0_;
                sum0_ = _e73 + metal::dot(_e72, _e51);
                float _e76 = sum1_;
                sum1_ = _e76 + metal::dot(_e72, _e56);
                float _e79 = sum2_;
                sum2_ = _e79 + metal::dot(_e72, _e61);
                float _e82 = sum3_;
                sum3_ = _e82 + metal::dot(_e72, _e66);
            }
        }
    }
    if (1u < lanes) {
        float _e90 = sum0_;
        float _e91 = sum0_;
        float unnamed = metal::simd_shuffle_xor(_e91, 1u);
        sum0_ = _e90 + unnamed;
    }
    if (2u < lanes) {
        float _e97 = sum0_;
        float _e98 = sum0_;
        float unnamed_1 = metal::simd_shuffle_xor(_e98, 2u);
        sum0_ = _e97 + unnamed_1;
    }
    if (4u < lanes) {
        float _e104 = sum0_;
        float _e105 = sum0_;
        float unnamed_2 = metal::simd_shuffle_xor(_e105, 4u);
        sum0_ = _e104 + unnamed_2;
    }
    if (8u < lanes) {
        float _e111 = sum0_;
        float _e112 = sum0_;
        float unnamed_3 = metal::simd_shuffle_xor(_e112, 8u);
        sum0_ = _e111 + unnamed_3;
    }
    if (16u < lanes) {
        float _e118 = sum0_;
        float _e119 = sum0_;
        float unnamed_4 = metal::simd_shuffle_xor(_e119, 16u);
        sum0_ = _e118 + unnamed_4;
    }
    if (1u < lanes) {
        float _e125 = sum1_;
        float _e126 = sum1_;
        float unnamed_5 = metal::simd_shuffle_xor(_e126, 1u);
        sum1_ = _e125 + unnamed_5;
    }
    if (2u < lanes) {
        float _e132 = sum1_;
        float _e133 = sum1_;
        float unnamed_6 = metal::simd_shuffle_xor(_e133, 2u);
        sum1_ = _e132 + unnamed_6;
    }
    if (4u < lanes) {
        float _e139 = sum1_;
        float _e140 = sum1_;
        float unnamed_7 = metal::simd_shuffle_xor(_e140, 4u);
        sum1_ = _e139 + unnamed_7;
    }
    if (8u < lanes) {
        float _e146 = sum1_;
        float _e147 = sum1_;
        float unnamed_8 = metal::simd_shuffle_xor(_e147, 8u);
        sum1_ = _e146 + unnamed_8;
    }
    if (16u < lanes) {
        float _e153 = sum1_;
        float _e154 = sum1_;
        float unnamed_9 = metal::simd_shuffle_xor(_e154, 16u);
        sum1_ = _e153 + unnamed_9;
    }
    if (1u < lanes) {
        float _e160 = sum2_;
        float _e161 = sum2_;
        float unnamed_10 = metal::simd_shuffle_xor(_e161, 1u);
        sum2_ = _e160 + unnamed_10;
    }
    if (2u < lanes) {
        float _e167 = sum2_;
        float _e168 = sum2_;
        float unnamed_11 = metal::simd_shuffle_xor(_e168, 2u);
        sum2_ = _e167 + unnamed_11;
    }
    if (4u < lanes) {
        float _e174 = sum2_;
        float _e175 = sum2_;
        float unnamed_12 = metal::simd_shuffle_xor(_e175, 4u);
        sum2_ = _e174 + unnamed_12;
    }
    if (8u < lanes) {
        float _e181 = sum2_;
        float _e182 = sum2_;
        float unnamed_13 = metal::simd_shuffle_xor(_e182, 8u);
        sum2_ = _e181 + unnamed_13;
    }
    if (16u < lanes) {
        float _e188 = sum2_;
        float _e189 = sum2_;
        float unnamed_14 = metal::simd_shuffle_xor(_e189, 16u);
        sum2_ = _e188 + unnamed_14;
    }
    if (1u < lanes) {
        float _e195 = sum3_;
        float _e196 = sum3_;
        float unnamed_15 = metal::simd_shuffle_xor(_e196, 1u);
        sum3_ = _e195 + unnamed_15;
    }
    if (2u < lanes) {
        float _e202 = sum3_;
        float _e203 = sum3_;
        float unnamed_16 = metal::simd_shuffle_xor(_e203, 2u);
        sum3_ = _e202 + unnamed_16;
    }
    if (4u < lanes) {
        float _e209 = sum3_;
        float _e210 = sum3_;
        float unnamed_17 = metal::simd_shuffle_xor(_e210, 4u);
        sum3_ = _e209 + unnamed_17;
    }
    if (8u < lanes) {
        float _e216 = sum3_;
        float _e217 = sum3_;
        float unnamed_18 = metal::simd_shuffle_xor(_e217, 8u);
        sum3_ = _e216 + unnamed_18;
    }
    if (16u < lanes) {
        float _e223 = sum3_;
        float _e224 = sum3_;
        float unnamed_19 = metal::simd_shuffle_xor(_e224, 16u);
        sum3_ = _e223 + unnamed_19;
    }
    uint width = metal::min(lanes, 32u);
    if ((thread_ % width) == 0u) {
        float _e240 = sum0_;
        parts.inner[((thread_ / width) * 4u) + 0u] = _e240;
        float _e248 = sum1_;
        parts.inner[((thread_ / width) * 4u) + 1u] = _e248;
        float _e256 = sum2_;
        parts.inner[((thread_ / width) * 4u) + 2u] = _e256;
        float _e264 = sum3_;
        parts.inner[((thread_ / width) * 4u) + 3u] = _e264;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint count = 32u / width;
    if (thread_ < 8u) {
        uint own = thread_ / 1u;
        uint quad_ = thread_ % 1u;
        bool loop_init_1 = true;
        while(true) {
            if (!loop_init_1) {
                uint _e309 = part;
                part = _e309 + 1u;
            }
            loop_init_1 = false;
            uint _e277 = part;
            if (_e277 < count) {
            } else {
                break;
            }
            {
                uint _e280 = part;
                uint at_1 = ((own * count) + _e280) * 4u;
                uint start_2 = at_1 + (quad_ * 4u);
                metal::float4 _e287 = sum;
                float _e290 = parts.inner[start_2];
                float _e295 = parts.inner[start_2 + 1u];
                float _e300 = parts.inner[start_2 + 2u];
                float _e305 = parts.inner[start_2 + 3u];
                sum = _e287 + metal::float4(_e290, _e295, _e300, _e305);
            }
        }
        metal::float4 _e318 = sum;
        put(_e15.part, _e17, _e15.row + quad_, _e15.column + (own * 4u), _e318, out, params, _buffer_sizes);
        return;
    } else {
        return;
    }
}
