// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
};

typedef uint type_1[1];
typedef int type_3[1];
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
    uint za_step;
    uint za_rows;
    uint zb_step;
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
    metal::uint4 inner[272];
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
    uint at_2 = tile % in_band;
    uint _e35 = params.share;
    uint k_4 = share * _e35;
    uint _e46 = params.share;
    uint _e50 = params.k;
    uint _e54 = params.products;
    return Work {(first + (at_2 % rows)) * 64u, (at_2 / rows) * 64u, k_4, metal::min(k_4 + _e46, _e50), product_1, (share * _e54) + product_1};
}

uint present(
    uint k_1,
    constant Params& params
) {
    uint _e5 = params.k;
    if ((k_1 + 4u) <= _e5) {
        return 4294967295u;
    }
    uint _e10 = params.k;
    if (k_1 >= _e10) {
        return 0u;
    }
    uint _e17 = params.k;
    return (1u << (8u * (_e17 - k_1))) - 1u;
}

uint byte_a(
    uint at,
    device type_1 const& a,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = a[at >> 2u];
    return (_e5 >> (8u * (at & 3u))) & 255u;
}

metal::uint4 block_a(
    uint start,
    uint outer,
    uint k_2,
    device type_1 const& a,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::uint4 block = metal::uint4 {};
    uint _e7 = params.k;
    if (k_2 < _e7) {
        uint _e15 = params.m;
        uint _e21 = params.a_outer;
        uint _e28 = a[((start + (metal::min(outer + 0u, _e15 - 1u) * _e21)) + k_2) >> 2u];
        block.x = _e28;
        uint _e35 = params.m;
        uint _e41 = params.a_outer;
        uint _e48 = a[((start + (metal::min(outer + 1u, _e35 - 1u) * _e41)) + k_2) >> 2u];
        block.y = _e48;
        uint _e55 = params.m;
        uint _e61 = params.a_outer;
        uint _e68 = a[((start + (metal::min(outer + 2u, _e55 - 1u) * _e61)) + k_2) >> 2u];
        block.z = _e68;
        uint _e75 = params.m;
        uint _e81 = params.a_outer;
        uint _e88 = a[((start + (metal::min(outer + 3u, _e75 - 1u) * _e81)) + k_2) >> 2u];
        block.w = _e88;
    }
    metal::uint4 _e89 = block;
    uint _e93 = present(k_2, params);
    return (_e89 ^ metal::uint4(2155905152u)) & metal::uint4(_e93);
}

int zero_of_a(
    uint index
) {
    return as_type<int>(as_type<uint>(static_cast<int>(0u)) - as_type<uint>(128));
}

uint byte_b(
    uint at_1,
    device type_1 const& b,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = b[at_1 >> 2u];
    return (_e5 >> (8u * (at_1 & 3u))) & 255u;
}

metal::uint4 block_b(
    uint start_1,
    uint outer_1,
    uint k_3,
    device type_1 const& b,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::uint4 block_1 = metal::uint4 {};
    uint _e7 = params.n;
    uint column = metal::min(outer_1, (_e7 - 1u) & 4294967292u);
    uint _e18 = params.k;
    uint _e24 = params.b_inner;
    uint word0_ = b[((start_1 + (metal::min(k_3 + 0u, _e18 - 1u) * _e24)) + column) >> 2u];
    uint _e37 = params.k;
    uint _e43 = params.b_inner;
    uint word1_ = b[((start_1 + (metal::min(k_3 + 1u, _e37 - 1u) * _e43)) + column) >> 2u];
    uint _e56 = params.k;
    uint _e62 = params.b_inner;
    uint word2_ = b[((start_1 + (metal::min(k_3 + 2u, _e56 - 1u) * _e62)) + column) >> 2u];
    uint _e75 = params.k;
    uint _e81 = params.b_inner;
    uint word3_ = b[((start_1 + (metal::min(k_3 + 3u, _e75 - 1u) * _e81)) + column) >> 2u];
    block_1.x = (((((word0_ >> 0u) & 255u) << 0u) | (((word1_ >> 0u) & 255u) << 8u)) | (((word2_ >> 0u) & 255u) << 16u)) | (((word3_ >> 0u) & 255u) << 24u);
    block_1.y = (((((word0_ >> 8u) & 255u) << 0u) | (((word1_ >> 8u) & 255u) << 8u)) | (((word2_ >> 8u) & 255u) << 16u)) | (((word3_ >> 8u) & 255u) << 24u);
    block_1.z = (((((word0_ >> 16u) & 255u) << 0u) | (((word1_ >> 16u) & 255u) << 8u)) | (((word2_ >> 16u) & 255u) << 16u)) | (((word3_ >> 16u) & 255u) << 24u);
    block_1.w = (((((word0_ >> 24u) & 255u) << 0u) | (((word1_ >> 24u) & 255u) << 8u)) | (((word2_ >> 24u) & 255u) << 16u)) | (((word3_ >> 24u) & 255u) << 24u);
    metal::uint4 _e201 = block_1;
    uint _e205 = present(k_3, params);
    return (_e201 ^ metal::uint4(2155905152u)) & metal::uint4(_e205);
}

int zero_of_b(
    uint index_1
) {
    return as_type<int>(as_type<uint>(static_cast<int>(0u)) - as_type<uint>(128));
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint thread_ [[thread_index_in_threadgroup]]
, device type_1 const& a [[buffer(0)]]
, device type_1 const& b [[buffer(1)]]
, device type_3& out [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, threadgroup type_6& tile_a
, threadgroup type_6& tile_b
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    metal::int4 sum0_ = metal::int4 {};
    metal::int4 sum1_ = metal::int4 {};
    metal::int4 sum2_ = metal::int4 {};
    metal::int4 sum3_ = metal::int4 {};
    metal::int4 sums_a = metal::int4 {};
    metal::int4 sums_b = metal::int4 {};
    uint k = 0u;
    uint deep = {};
    metal::int4 zeros = metal::int4 {};
    uint c = 0u;
    metal::int4 v = {};
    metal::int4 v_1 = {};
    metal::int4 v_2 = {};
    metal::int4 v_3 = {};
    uint id_1 = group.x + (group.y * groups.x);
    uint _e10 = params.total;
    if (id_1 >= _e10) {
        return;
    }
    Work _e12 = work(id_1, params);
    Starts _e14 = starts(_e12.product, params);
    uint deep_1 = thread_ / 16u;
    uint outer_2 = thread_ % 16u;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e180 = k;
            k = _e180 + 64u;
        }
        loop_init = false;
        uint _e33 = k;
        uint _e36 = params.k;
        if (_e33 < _e36) {
        } else {
            break;
        }
        {
            {
                uint _e48 = k;
                metal::uint4 _e52 = block_a(_e14.a, _e12.row + (deep_1 * 4u), _e48 + (outer_2 * 4u), a, params, _buffer_sizes);
                tile_a.inner[(outer_2 * 17u) + deep_1] = _e52;
            }
            {
                uint _e63 = k;
                metal::uint4 _e67 = block_b(_e14.b, _e12.column + (outer_2 * 4u), _e63 + (deep_1 * 4u), b, params, _buffer_sizes);
                tile_b.inner[(deep_1 * 17u) + outer_2] = _e67;
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            deep = 0u;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e178 = deep;
                    deep = _e178 + 1u;
                }
                loop_init_1 = false;
                uint _e70 = deep;
                if (_e70 < 16u) {
                } else {
                    break;
                }
                {
                    uint _e74 = deep;
                    metal::uint4 bytes_a = tile_a.inner[(_e74 * 17u) + deep_1];
                    uint _e81 = deep;
                    metal::uint4 bytes_b = tile_b.inner[(_e81 * 17u) + outer_2];
                    metal::int4 _e87 = sum0_;
                    uint _e88 = bytes_a.x;
                    uint _e89 = bytes_b.x;
                    packed_char4 reinterpreted_packed_char4_e88 = as_type<packed_char4>(_e88);
                    packed_char4 reinterpreted_packed_char4_e89 = as_type<packed_char4>(_e89);
                    uint _e91 = bytes_a.x;
                    uint _e92 = bytes_b.y;
                    packed_char4 reinterpreted_packed_char4_e91 = as_type<packed_char4>(_e91);
                    packed_char4 reinterpreted_packed_char4_e92 = as_type<packed_char4>(_e92);
                    uint _e94 = bytes_a.x;
                    uint _e95 = bytes_b.z;
                    packed_char4 reinterpreted_packed_char4_e94 = as_type<packed_char4>(_e94);
                    packed_char4 reinterpreted_packed_char4_e95 = as_type<packed_char4>(_e95);
                    uint _e97 = bytes_a.x;
                    uint _e98 = bytes_b.w;
                    packed_char4 reinterpreted_packed_char4_e97 = as_type<packed_char4>(_e97);
                    packed_char4 reinterpreted_packed_char4_e98 = as_type<packed_char4>(_e98);
                    sum0_ = as_type<metal::int4>(as_type<metal::uint4>(_e87) + as_type<metal::uint4>(metal::int4(( + reinterpreted_packed_char4_e88[0] * reinterpreted_packed_char4_e89[0] + reinterpreted_packed_char4_e88[1] * reinterpreted_packed_char4_e89[1] + reinterpreted_packed_char4_e88[2] * reinterpreted_packed_char4_e89[2] + reinterpreted_packed_char4_e88[3] * reinterpreted_packed_char4_e89[3]), ( + reinterpreted_packed_char4_e91[0] * reinterpreted_packed_char4_e92[0] + reinterpreted_packed_char4_e91[1] * reinterpreted_packed_char4_e92[1] + reinterpreted_packed_char4_e91[2] * reinterpreted_packed_char4_e92[2] + reinterpreted_packed_char4_e91[3] * reinterpreted_packed_char4_e92[3]), ( + reinterpreted_packed_char4_e94[0] * reinterpreted_packed_char4_e95[0] + reinterpreted_packed_char4_e94[1] * reinterpreted_packed_char4_e95[1] + reinterpreted_packed_char4_e94[2] * reinterpreted_packed_char4_e95[2] + reinterpreted_packed_char4_e94[3] * reinterpreted_packed_char4_e95[3]), ( + reinterpreted_packed_char4_e97[0] * reinterpreted_packed_char4_e98[0] + reinterpreted_packed_char4_e97[1] * reinterpreted_packed_char4_e98[1] + reinterpreted_packed_char4_e97[2] * reinterpreted_packed_char4_e98[2] + reinterpreted_packed_char4_e97[3] * reinterpreted_packed_char4_e98[3]))));
                    metal::int4 _e102 = sum1_;
                    uint _e103 = bytes_a.y;
                    uint _e104 = bytes_b.x;
                    packed_char4 reinterpreted_packed_char4_e103 = as_type<packed_char4>(_e103);
                    packed_char4 reinterpreted_packed_char4_e104 = as_type<packed_char4>(_e104);
                    uint _e106 = bytes_a.y;
                    uint _e107 = bytes_b.y;
                    packed_char4 reinterpreted_packed_char4_e106 = as_type<packed_char4>(_e106);
                    packed_char4 reinterpreted_packed_char4_e107 = as_type<packed_char4>(_e107);
                    uint _e109 = bytes_a.y;
                    uint _e110 = bytes_b.z;
                    packed_char4 reinterpreted_packed_char4_e109 = as_type<packed_char4>(_e109);
                    packed_char4 reinterpreted_packed_char4_e110 = as_type<packed_char4>(_e110);
                    uint _e112 = bytes_a.y;
                    uint _e113 = bytes_b.w;
                    packed_char4 reinterpreted_packed_char4_e112 = as_type<packed_char4>(_e112);
                    packed_char4 reinterpreted_packed_char4_e113 = as_type<packed_char4>(_e113);
                    sum1_ = as_type<metal::int4>(as_type<metal::uint4>(_e102) + as_type<metal::uint4>(metal::int4(( + reinterpreted_packed_char4_e103[0] * reinterpreted_packed_char4_e104[0] + reinterpreted_packed_char4_e103[1] * reinterpreted_packed_char4_e104[1] + reinterpreted_packed_char4_e103[2] * reinterpreted_packed_char4_e104[2] + reinterpreted_packed_char4_e103[3] * reinterpreted_packed_char4_e104[3]), ( + reinterpreted_packed_char4_e106[0] * reinterpreted_packed_char4_e107[0] + reinterpreted_packed_char4_e106[1] * reinterpreted_packed_char4_e107[1] + reinterpreted_packed_char4_e106[2] * reinterpreted_packed_char4_e107[2] + reinterpreted_packed_char4_e106[3] * reinterpreted_packed_char4_e107[3]), ( + reinterpreted_packed_char4_e109[0] * reinterpreted_packed_char4_e110[0] + reinterpreted_packed_char4_e109[1] * reinterpreted_packed_char4_e110[1] + reinterpreted_packed_char4_e109[2] * reinterpreted_packed_char4_e110[2] + reinterpreted_packed_char4_e109[3] * reinterpreted_packed_char4_e110[3]), ( + reinterpreted_packed_char4_e112[0] * reinterpreted_packed_char4_e113[0] + reinterpreted_packed_char4_e112[1] * reinterpreted_packed_char4_e113[1] + reinterpreted_packed_char4_e112[2] * reinterpreted_packed_char4_e113[2] + reinterpreted_packed_char4_e112[3] * reinterpreted_packed_char4_e113[3]))));
                    metal::int4 _e117 = sum2_;
                    uint _e118 = bytes_a.z;
                    uint _e119 = bytes_b.x;
                    packed_char4 reinterpreted_packed_char4_e118 = as_type<packed_char4>(_e118);
                    packed_char4 reinterpreted_packed_char4_e119 = as_type<packed_char4>(_e119);
                    uint _e121 = bytes_a.z;
                    uint _e122 = bytes_b.y;
                    packed_char4 reinterpreted_packed_char4_e121 = as_type<packed_char4>(_e121);
                    packed_char4 reinterpreted_packed_char4_e122 = as_type<packed_char4>(_e122);
                    uint _e124 = bytes_a.z;
                    uint _e125 = bytes_b.z;
                    packed_char4 reinterpreted_packed_char4_e124 = as_type<packed_char4>(_e124);
                    packed_char4 reinterpreted_packed_char4_e125 = as_type<packed_char4>(_e125);
                    uint _e127 = bytes_a.z;
                    uint _e128 = bytes_b.w;
                    packed_char4 reinterpreted_packed_char4_e127 = as_type<packed_char4>(_e127);
                    packed_char4 reinterpreted_packed_char4_e128 = as_type<packed_char4>(_e128);
                    sum2_ = as_type<metal::int4>(as_type<metal::uint4>(_e117) + as_type<metal::uint4>(metal::int4(( + reinterpreted_packed_char4_e118[0] * reinterpreted_packed_char4_e119[0] + reinterpreted_packed_char4_e118[1] * reinterpreted_packed_char4_e119[1] + reinterpreted_packed_char4_e118[2] * reinterpreted_packed_char4_e119[2] + reinterpreted_packed_char4_e118[3] * reinterpreted_packed_char4_e119[3]), ( + reinterpreted_packed_char4_e121[0] * reinterpreted_packed_char4_e122[0] + reinterpreted_packed_char4_e121[1] * reinterpreted_packed_char4_e122[1] + reinterpreted_packed_char4_e121[2] * reinterpreted_packed_char4_e122[2] + reinterpreted_packed_char4_e121[3] * reinterpreted_packed_char4_e122[3]), ( + reinterpreted_packed_char4_e124[0] * reinterpreted_packed_char4_e125[0] + reinterpreted_packed_char4_e124[1] * reinterpreted_packed_char4_e125[1] + reinterpreted_packed_char4_e124[2] * reinterpreted_packed_char4_e125[2] + reinterpreted_packed_char4_e124[3] * reinterpreted_packed_char4_e125[3]), ( + reinterpreted_packed_char4_e127[0] * reinterpreted_packed_char4_e128[0] + reinterpreted_packed_char4_e127[1] * reinterpreted_packed_char4_e128[1] + reinterpreted_packed_char4_e127[2] * reinterpreted_packed_char4_e128[2] + reinterpreted_packed_char4_e127[3] * reinterpreted_packed_char4_e128[3]))));
                    metal::int4 _e132 = sum3_;
                    uint _e133 = bytes_a.w;
                    uint _e134 = bytes_b.x;
                    packed_char4 reinterpreted_packed_char4_e133 = as_type<packed_char4>(_e133);
                    packed_char4 reinterpreted_packed_char4_e134 = as_type<packed_char4>(_e134);
                    uint _e136 = bytes_a.w;
                    uint _e137 = bytes_b.y;
                    packed_char4 reinterpreted_packed_char4_e136 = as_type<packed_char4>(_e136);
                    packed_char4 reinterpreted_packed_char4_e137 = as_type<packed_char4>(_e137);
                    uint _e139 = bytes_a.w;
                    uint _e140 = bytes_b.z;
                    packed_char4 reinterpreted_packed_char4_e139 = as_type<packed_char4>(_e139);
                    packed_char4 reinterpreted_packed_char4_e140 = as_type<packed_char4>(_e140);
                    uint _e142 = bytes_a.w;
                    uint _e143 = bytes_b.w;
                    packed_char4 reinterpreted_packed_char4_e142 = as_type<packed_char4>(_e142);
                    packed_char4 reinterpreted_packed_char4_e143 = as_type<packed_char4>(_e143);
                    sum3_ = as_type<metal::int4>(as_type<metal::uint4>(_e132) + as_type<metal::uint4>(metal::int4(( + reinterpreted_packed_char4_e133[0] * reinterpreted_packed_char4_e134[0] + reinterpreted_packed_char4_e133[1] * reinterpreted_packed_char4_e134[1] + reinterpreted_packed_char4_e133[2] * reinterpreted_packed_char4_e134[2] + reinterpreted_packed_char4_e133[3] * reinterpreted_packed_char4_e134[3]), ( + reinterpreted_packed_char4_e136[0] * reinterpreted_packed_char4_e137[0] + reinterpreted_packed_char4_e136[1] * reinterpreted_packed_char4_e137[1] + reinterpreted_packed_char4_e136[2] * reinterpreted_packed_char4_e137[2] + reinterpreted_packed_char4_e136[3] * reinterpreted_packed_char4_e137[3]), ( + reinterpreted_packed_char4_e139[0] * reinterpreted_packed_char4_e140[0] + reinterpreted_packed_char4_e139[1] * reinterpreted_packed_char4_e140[1] + reinterpreted_packed_char4_e139[2] * reinterpreted_packed_char4_e140[2] + reinterpreted_packed_char4_e139[3] * reinterpreted_packed_char4_e140[3]), ( + reinterpreted_packed_char4_e142[0] * reinterpreted_packed_char4_e143[0] + reinterpreted_packed_char4_e142[1] * reinterpreted_packed_char4_e143[1] + reinterpreted_packed_char4_e142[2] * reinterpreted_packed_char4_e143[2] + reinterpreted_packed_char4_e142[3] * reinterpreted_packed_char4_e143[3]))));
                    metal::int4 _e147 = sums_a;
                    uint _e148 = bytes_a.x;
                    packed_char4 reinterpreted_packed_char4_e148 = as_type<packed_char4>(_e148);
                    packed_char4 reinterpreted_packed_char4_e149 = as_type<packed_char4>(16843009u);
                    uint _e151 = bytes_a.y;
                    packed_char4 reinterpreted_packed_char4_e151 = as_type<packed_char4>(_e151);
                    packed_char4 reinterpreted_packed_char4_e152 = as_type<packed_char4>(16843009u);
                    uint _e154 = bytes_a.z;
                    packed_char4 reinterpreted_packed_char4_e154 = as_type<packed_char4>(_e154);
                    packed_char4 reinterpreted_packed_char4_e155 = as_type<packed_char4>(16843009u);
                    uint _e157 = bytes_a.w;
                    packed_char4 reinterpreted_packed_char4_e157 = as_type<packed_char4>(_e157);
                    packed_char4 reinterpreted_packed_char4_e158 = as_type<packed_char4>(16843009u);
                    sums_a = as_type<metal::int4>(as_type<metal::uint4>(_e147) + as_type<metal::uint4>(metal::int4(( + reinterpreted_packed_char4_e148[0] * reinterpreted_packed_char4_e149[0] + reinterpreted_packed_char4_e148[1] * reinterpreted_packed_char4_e149[1] + reinterpreted_packed_char4_e148[2] * reinterpreted_packed_char4_e149[2] + reinterpreted_packed_char4_e148[3] * reinterpreted_packed_char4_e149[3]), ( + reinterpreted_packed_char4_e151[0] * reinterpreted_packed_char4_e152[0] + reinterpreted_packed_char4_e151[1] * reinterpreted_packed_char4_e152[1] + reinterpreted_packed_char4_e151[2] * reinterpreted_packed_char4_e152[2] + reinterpreted_packed_char4_e151[3] * reinterpreted_packed_char4_e152[3]), ( + reinterpreted_packed_char4_e154[0] * reinterpreted_packed_char4_e155[0] + reinterpreted_packed_char4_e154[1] * reinterpreted_packed_char4_e155[1] + reinterpreted_packed_char4_e154[2] * reinterpreted_packed_char4_e155[2] + reinterpreted_packed_char4_e154[3] * reinterpreted_packed_char4_e155[3]), ( + reinterpreted_packed_char4_e157[0] * reinterpreted_packed_char4_e158[0] + reinterpreted_packed_char4_e157[1] * reinterpreted_packed_char4_e158[1] + reinterpreted_packed_char4_e157[2] * reinterpreted_packed_char4_e158[2] + reinterpreted_packed_char4_e157[3] * reinterpreted_packed_char4_e158[3]))));
                    metal::int4 _e162 = sums_b;
                    uint _e163 = bytes_b.x;
                    packed_char4 reinterpreted_packed_char4_e163 = as_type<packed_char4>(_e163);
                    packed_char4 reinterpreted_packed_char4_e164 = as_type<packed_char4>(16843009u);
                    uint _e166 = bytes_b.y;
                    packed_char4 reinterpreted_packed_char4_e166 = as_type<packed_char4>(_e166);
                    packed_char4 reinterpreted_packed_char4_e167 = as_type<packed_char4>(16843009u);
                    uint _e169 = bytes_b.z;
                    packed_char4 reinterpreted_packed_char4_e169 = as_type<packed_char4>(_e169);
                    packed_char4 reinterpreted_packed_char4_e170 = as_type<packed_char4>(16843009u);
                    uint _e172 = bytes_b.w;
                    packed_char4 reinterpreted_packed_char4_e172 = as_type<packed_char4>(_e172);
                    packed_char4 reinterpreted_packed_char4_e173 = as_type<packed_char4>(16843009u);
                    sums_b = as_type<metal::int4>(as_type<metal::uint4>(_e162) + as_type<metal::uint4>(metal::int4(( + reinterpreted_packed_char4_e163[0] * reinterpreted_packed_char4_e164[0] + reinterpreted_packed_char4_e163[1] * reinterpreted_packed_char4_e164[1] + reinterpreted_packed_char4_e163[2] * reinterpreted_packed_char4_e164[2] + reinterpreted_packed_char4_e163[3] * reinterpreted_packed_char4_e164[3]), ( + reinterpreted_packed_char4_e166[0] * reinterpreted_packed_char4_e167[0] + reinterpreted_packed_char4_e166[1] * reinterpreted_packed_char4_e167[1] + reinterpreted_packed_char4_e166[2] * reinterpreted_packed_char4_e167[2] + reinterpreted_packed_char4_e166[3] * reinterpreted_packed_char4_e167[3]), ( + reinterpreted_packed_char4_e169[0] * reinterpreted_packed_char4_e170[0] + reinterpreted_packed_char4_e169[1] * reinterpreted_packed_char4_e170[1] + reinterpreted_packed_char4_e169[2] * reinterpreted_packed_char4_e170[2] + reinterpreted_packed_char4_e169[3] * reinterpreted_packed_char4_e170[3]), ( + reinterpreted_packed_char4_e172[0] * reinterpreted_packed_char4_e173[0] + reinterpreted_packed_char4_e172[1] * reinterpreted_packed_char4_e173[1] + reinterpreted_packed_char4_e172[2] * reinterpreted_packed_char4_e173[2] + reinterpreted_packed_char4_e172[3] * reinterpreted_packed_char4_e173[3]))));
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    uint column_1 = _e12.column + (outer_2 * 4u);
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e210 = c;
            c = _e210 + 1u;
        }
        loop_init_2 = false;
        uint _e191 = c;
        if (_e191 < 4u) {
        } else {
            break;
        }
        {
            uint _e194 = c;
            uint _e196 = c;
            uint _e200 = params.n;
            uint _e206 = params.zb_step;
            int _e208 = zero_of_b(metal::min(column_1 + _e196, _e200 - 1u) * _e206);
            zeros[_e194] = _e208;
        }
    }
    {
        uint row = (_e12.row + (deep_1 * 4u)) + 0u;
        metal::int4 _e218 = sum0_;
        v = _e218;
        metal::int4 _e220 = v;
        metal::int4 _e221 = zeros;
        int _e223 = sums_a.x;
        v = as_type<metal::int4>(as_type<metal::uint4>(_e220) - as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(_e221) * as_type<uint>(_e223))));
        uint _e228 = params.m;
        uint _e234 = params.za_rows;
        uint _e238 = params.za_step;
        int _e240 = zero_of_a((metal::min(row, _e228 - 1u) % _e234) * _e238);
        metal::int4 _e241 = v;
        metal::int4 _e242 = sums_b;
        metal::int4 _e243 = zeros;
        uint _e246 = params.k;
        v = as_type<metal::int4>(as_type<metal::uint4>(_e241) - as_type<metal::uint4>(as_type<metal::int4>(as_type<uint>(_e240) * as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(_e242) - as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(_e243) * as_type<uint>(static_cast<int>(_e246)))))))));
        uint _e254 = params.m;
        if (row < _e254) {
            uint _e259 = params.n;
            uint to = (_e14.out + (row * _e259)) + column_1;
            uint _e267 = params.n;
            if ((column_1 + 0u) < _e267) {
                int _e274 = v.x;
                out[to + 0u] = _e274;
            }
            uint _e279 = params.n;
            if ((column_1 + 1u) < _e279) {
                int _e286 = v.y;
                out[to + 1u] = _e286;
            }
            uint _e291 = params.n;
            if ((column_1 + 2u) < _e291) {
                int _e298 = v.z;
                out[to + 2u] = _e298;
            }
            uint _e303 = params.n;
            if ((column_1 + 3u) < _e303) {
                int _e310 = v.w;
                out[to + 3u] = _e310;
            }
        }
    }
    {
        uint row_1 = (_e12.row + (deep_1 * 4u)) + 1u;
        metal::int4 _e317 = sum1_;
        v_1 = _e317;
        metal::int4 _e319 = v_1;
        metal::int4 _e320 = zeros;
        int _e322 = sums_a.y;
        v_1 = as_type<metal::int4>(as_type<metal::uint4>(_e319) - as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(_e320) * as_type<uint>(_e322))));
        uint _e327 = params.m;
        uint _e333 = params.za_rows;
        uint _e337 = params.za_step;
        int _e339 = zero_of_a((metal::min(row_1, _e327 - 1u) % _e333) * _e337);
        metal::int4 _e340 = v_1;
        metal::int4 _e341 = sums_b;
        metal::int4 _e342 = zeros;
        uint _e345 = params.k;
        v_1 = as_type<metal::int4>(as_type<metal::uint4>(_e340) - as_type<metal::uint4>(as_type<metal::int4>(as_type<uint>(_e339) * as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(_e341) - as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(_e342) * as_type<uint>(static_cast<int>(_e345)))))))));
        uint _e353 = params.m;
        if (row_1 < _e353) {
            uint _e358 = params.n;
            uint to_1 = (_e14.out + (row_1 * _e358)) + column_1;
            uint _e366 = params.n;
            if ((column_1 + 0u) < _e366) {
                int _e373 = v_1.x;
                out[to_1 + 0u] = _e373;
            }
            uint _e378 = params.n;
            if ((column_1 + 1u) < _e378) {
                int _e385 = v_1.y;
                out[to_1 + 1u] = _e385;
            }
            uint _e390 = params.n;
            if ((column_1 + 2u) < _e390) {
                int _e397 = v_1.z;
                out[to_1 + 2u] = _e397;
            }
            uint _e402 = params.n;
            if ((column_1 + 3u) < _e402) {
                int _e409 = v_1.w;
                out[to_1 + 3u] = _e409;
            }
        }
    }
    {
        uint row_2 = (_e12.row + (deep_1 * 4u)) + 2u;
        metal::int4 _e416 = sum2_;
        v_2 = _e416;
        metal::int4 _e418 = v_2;
        metal::int4 _e419 = zeros;
        int _e421 = sums_a.z;
        v_2 = as_type<metal::int4>(as_type<metal::uint4>(_e418) - as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(_e419) * as_type<uint>(_e421))));
        uint _e426 = params.m;
        uint _e432 = params.za_rows;
        uint _e436 = params.za_step;
        int _e438 = zero_of_a((metal::min(row_2, _e426 - 1u) % _e432) * _e436);
        metal::int4 _e439 = v_2;
        metal::int4 _e440 = sums_b;
        metal::int4 _e441 = zeros;
        uint _e444 = params.k;
        v_2 = as_type<metal::int4>(as_type<metal::uint4>(_e439) - as_type<metal::uint4>(as_type<metal::int4>(as_type<uint>(_e438) * as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(_e440) - as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(_e441) * as_type<uint>(static_cast<int>(_e444)))))))));
        uint _e452 = params.m;
        if (row_2 < _e452) {
            uint _e457 = params.n;
            uint to_2 = (_e14.out + (row_2 * _e457)) + column_1;
            uint _e465 = params.n;
            if ((column_1 + 0u) < _e465) {
                int _e472 = v_2.x;
                out[to_2 + 0u] = _e472;
            }
            uint _e477 = params.n;
            if ((column_1 + 1u) < _e477) {
                int _e484 = v_2.y;
                out[to_2 + 1u] = _e484;
            }
            uint _e489 = params.n;
            if ((column_1 + 2u) < _e489) {
                int _e496 = v_2.z;
                out[to_2 + 2u] = _e496;
            }
            uint _e501 = params.n;
            if ((column_1 + 3u) < _e501) {
                int _e508 = v_2.w;
                out[to_2 + 3u] = _e508;
            }
        }
    }
    {
        uint row_3 = (_e12.row + (deep_1 * 4u)) + 3u;
        metal::int4 _e515 = sum3_;
        v_3 = _e515;
        metal::int4 _e517 = v_3;
        metal::int4 _e518 = zeros;
        int _e520 = sums_a.w;
        v_3 = as_type<metal::int4>(as_type<metal::uint4>(_e517) - as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(_e518) * as_type<uint>(_e520))));
        uint _e525 = params.m;
        uint _e531 = params.za_rows;
        uint _e535 = params.za_step;
        int _e537 = zero_of_a((metal::min(row_3, _e525 - 1u) % _e531) * _e535);
        metal::int4 _e538 = v_3;
        metal::int4 _e539 = sums_b;
        metal::int4 _e540 = zeros;
        uint _e543 = params.k;
        v_3 = as_type<metal::int4>(as_type<metal::uint4>(_e538) - as_type<metal::uint4>(as_type<metal::int4>(as_type<uint>(_e537) * as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(_e539) - as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(_e540) * as_type<uint>(static_cast<int>(_e543)))))))));
        uint _e551 = params.m;
        if (row_3 < _e551) {
            uint _e556 = params.n;
            uint to_3 = (_e14.out + (row_3 * _e556)) + column_1;
            uint _e564 = params.n;
            if ((column_1 + 0u) < _e564) {
                int _e571 = v_3.x;
                out[to_3 + 0u] = _e571;
            }
            uint _e576 = params.n;
            if ((column_1 + 1u) < _e576) {
                int _e583 = v_3.y;
                out[to_3 + 1u] = _e583;
            }
            uint _e588 = params.n;
            if ((column_1 + 2u) < _e588) {
                int _e595 = v_3.z;
                out[to_3 + 2u] = _e595;
            }
            uint _e600 = params.n;
            if ((column_1 + 3u) < _e600) {
                int _e607 = v_3.w;
                out[to_3 + 3u] = _e607;
                return;
            } else {
                return;
            }
        } else {
            return;
        }
    }
}
