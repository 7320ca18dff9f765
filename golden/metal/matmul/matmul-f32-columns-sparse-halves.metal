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
    metal::float4 inner[256];
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
    uint columns = metal::min(outer_1, (_e5 - 1u) & 4294967292u);
    uint _e14 = params.b_inner;
    metal::half4 _e21 = b[((start_1 + (k_2 * _e14)) + columns) >> 2u];
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
    uint k_4 = share * _e35;
    uint _e46 = params.share;
    uint _e50 = params.k;
    uint _e54 = params.products;
    return Work {(first + (at % rows)) * 1u, (at / rows) * 128u, k_4, metal::min(k_4 + _e46, _e50), product_1, (share * _e54) + product_1};
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
, device type_2 const& a [[buffer(0)]]
, device type_4 const& b [[buffer(1)]]
, device type_6 const& zeros [[buffer(2)]]
, device type_2& out [[buffer(3)]]
, constant Params& params [[buffer(4)]]
, threadgroup type_8& parts
, constant _mslBufferSizes& _buffer_sizes [[buffer(5)]]
) {
    metal::float4 sum0_ = metal::float4 {};
    uint k = {};
    metal::float4 sum = {};
    uint id_1 = group.x + (group.y * groups.x);
    uint _e10 = params.total;
    if (id_1 >= _e10) {
        return;
    }
    Work _e12 = work(id_1, params);
    Starts _e14 = starts(_e12.product, params);
    uint column_5 = _e12.column + ((index % 32u) * 4u);
    uint slice = index / 32u;
    k = _e12.k + (slice * 4u);
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e78 = k;
            k = _e78 + 32u;
        }
        loop_init = false;
        uint _e30 = k;
        if (_e30 < _e12.k_end) {
        } else {
            break;
        }
        {
            uint _e33 = k;
            bool _e34 = is_full(column_5, _e33, zeros, params, _buffer_sizes);
            if (!(_e34)) {
                continue;
            }
            uint _e37 = k;
            metal::float4 _e40 = load_b(_e14.b, column_5, _e37 + 0u, b, params, _buffer_sizes);
            uint _e42 = k;
            metal::float4 _e45 = load_b(_e14.b, column_5, _e42 + 1u, b, params, _buffer_sizes);
            uint _e47 = k;
            metal::float4 _e50 = load_b(_e14.b, column_5, _e47 + 2u, b, params, _buffer_sizes);
            uint _e52 = k;
            metal::float4 _e55 = load_b(_e14.b, column_5, _e52 + 3u, b, params, _buffer_sizes);
            uint _e60 = k;
            metal::float4 _e61 = load_a(_e14.a, _e12.row + 0u, _e60, a, params, _buffer_sizes);
            metal::float4 _e64 = sum0_;
            sum0_ = metal::fma(metal::float4(_e61.x), _e40, _e64);
            metal::float4 _e68 = sum0_;
            sum0_ = metal::fma(metal::float4(_e61.y), _e45, _e68);
            metal::float4 _e72 = sum0_;
            sum0_ = metal::fma(metal::float4(_e61.z), _e50, _e72);
            metal::float4 _e76 = sum0_;
            sum0_ = metal::fma(metal::float4(_e61.w), _e55, _e76);
        }
    }
    metal::float4 _e83 = sum0_;
    parts.inner[index] = _e83;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (slice == 0u) {
        metal::float4 _e86 = sum0_;
        sum = _e86;
        metal::float4 _e88 = sum;
        metal::float4 _e93 = parts.inner[index + 32u];
        sum = _e88 + _e93;
        metal::float4 _e95 = sum;
        metal::float4 _e100 = parts.inner[index + 64u];
        sum = _e95 + _e100;
        metal::float4 _e102 = sum;
        metal::float4 _e107 = parts.inner[index + 96u];
        sum = _e102 + _e107;
        metal::float4 _e109 = sum;
        metal::float4 _e114 = parts.inner[index + 128u];
        sum = _e109 + _e114;
        metal::float4 _e116 = sum;
        metal::float4 _e121 = parts.inner[index + 160u];
        sum = _e116 + _e121;
        metal::float4 _e123 = sum;
        metal::float4 _e128 = parts.inner[index + 192u];
        sum = _e123 + _e128;
        metal::float4 _e130 = sum;
        metal::float4 _e135 = parts.inner[index + 224u];
        sum = _e130 + _e135;
        metal::float4 _e141 = sum;
        put(_e12.part, _e14, _e12.row + 0u, column_5, _e141, out, params, _buffer_sizes);
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
