// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
};

typedef half type_1[1];
typedef metal::half4 type_3[1];
struct Params {
    uint total;
    uint tiles_n;
    uint tiles_m;
    uint groups;
    uint channels;
    uint m;
    uint m_padded;
    uint k;
    uint k_padded;
    uint pixels;
    uint in_z;
    uint in_y;
    uint in_x;
    uint out_y;
    uint out_x;
    uint stride_z;
    uint stride_y;
    uint stride_x;
    uint pad_z;
    uint pad_y;
    uint pad_x;
    uint step_z;
    uint step_y;
    uint step_x;
    uint x_image;
    uint x_channel;
    uint x_pixel;
    uint y_image;
    uint y_channel;
    uint y_pixel;
    float p;
    float q;
};
struct type_7 {
    half inner[2304];
};
struct type_8 {
    float inner[512];
};

metal::float4 activate(
    metal::float4 v
) {
    return v;
}

void put(
    metal::float4 sums,
    uint channel,
    uint to,
    uint count,
    device type_1& y,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::float4 v_1 = {};
    v_1 = sums;
    metal::float4 _e5 = v_1;
    metal::float4 _e6 = activate(_e5);
    v_1 = _e6;
    if (0u < count) {
        uint _e13 = params.y_pixel;
        float _e18 = v_1.x;
        y[to + (0u * _e13)] = static_cast<half>(_e18);
    }
    if (1u < count) {
        uint _e26 = params.y_pixel;
        float _e31 = v_1.y;
        y[to + (1u * _e26)] = static_cast<half>(_e31);
    }
    if (2u < count) {
        uint _e39 = params.y_pixel;
        float _e44 = v_1.z;
        y[to + (2u * _e39)] = static_cast<half>(_e44);
    }
    if (3u < count) {
        uint _e52 = params.y_pixel;
        float _e57 = v_1.w;
        y[to + (3u * _e52)] = static_cast<half>(_e57);
        return;
    } else {
        return;
    }
}

metal::half4 windows(
    uint start,
    metal::uint4 ys,
    metal::uint4 xs,
    uint k_1,
    device type_1 const& x,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint channel_1 = k_1 / 9u;
    uint place = k_1 % 9u;
    uint _e12 = params.step_y;
    metal::uint4 y_1 = ys + metal::uint4((place / 3u) * _e12);
    uint _e20 = params.step_x;
    metal::uint4 x_at = xs + metal::uint4((place % 3u) * _e20);
    uint _e26 = params.in_y;
    uint _e31 = params.in_x;
    uint _e37 = params.k;
    metal::bool4 seen = ((y_1 < metal::uint4(_e26)) & (x_at < metal::uint4(_e31))) & metal::bool4(k_1 < _e37);
    uint _e43 = params.x_channel;
    uint from_channel = start + (channel_1 * _e43);
    uint _e50 = params.in_x;
    uint _e55 = params.x_pixel;
    metal::uint4 at = metal::select(metal::uint4(start), metal::uint4(from_channel) + (((y_1 * _e50) + x_at) * _e55), seen);
    half _e62 = x[at.x];
    half _e67 = x[at.y];
    half _e72 = x[at.z];
    half _e77 = x[at.w];
    metal::half4 found = metal::half4(static_cast<half>(_e62), static_cast<half>(_e67), static_cast<half>(_e72), static_cast<half>(_e77));
    return metal::select(metal::half4 {}, found, seen);
}
metal::simdgroup_half8x8 NagaCooperativeLoad(const threadgroup half* ptr, int stride, bool is_row_major) {
    metal::simdgroup_half8x8 m;
    simdgroup_load(m, ptr, stride, 0, is_row_major);
    return m;
}

metal::simdgroup_float8x8 NagaCooperativeMultiplyAdd(const thread metal::simdgroup_half8x8& a, const thread metal::simdgroup_half8x8& b, const thread metal::simdgroup_float8x8& c) {
    metal::simdgroup_float8x8 d;
    simdgroup_multiply_accumulate(d,a,b,c);
    return d;
}


struct main_Input {
};
[[max_total_threads_per_threadgroup(128)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint thread_ [[thread_index_in_threadgroup]]
, uint subgroup [[simdgroup_index_in_threadgroup]]
, uint lane [[thread_index_in_simdgroup]]
, uint lanes [[threads_per_simdgroup]]
, device type_1 const& x [[buffer(0)]]
, device type_3 const& w [[buffer(1)]]
, device type_1& y [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, threadgroup type_7& w_tile
, threadgroup type_7& x_tile
, threadgroup type_8& results
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    metal::half4 next_w0_ = metal::half4 {};
    metal::half4 next_w1_ = metal::half4 {};
    metal::half4 next_w2_ = metal::half4 {};
    metal::half4 next_w3_ = metal::half4 {};
    metal::half4 next_x0_ = metal::half4 {};
    metal::half4 next_x1_ = metal::half4 {};
    metal::half4 next_x2_ = metal::half4 {};
    metal::half4 next_x3_ = metal::half4 {};
    metal::simdgroup_float8x8 sum_0_0_ = {};
    metal::simdgroup_float8x8 sum_0_1_ = {};
    metal::simdgroup_float8x8 sum_0_2_ = {};
    metal::simdgroup_float8x8 sum_0_3_ = {};
    metal::simdgroup_float8x8 sum_1_0_ = {};
    metal::simdgroup_float8x8 sum_1_1_ = {};
    metal::simdgroup_float8x8 sum_1_2_ = {};
    metal::simdgroup_float8x8 sum_1_3_ = {};
    metal::simdgroup_float8x8 sum_2_0_ = {};
    metal::simdgroup_float8x8 sum_2_1_ = {};
    metal::simdgroup_float8x8 sum_2_2_ = {};
    metal::simdgroup_float8x8 sum_2_3_ = {};
    metal::simdgroup_float8x8 sum_3_0_ = {};
    metal::simdgroup_float8x8 sum_3_1_ = {};
    metal::simdgroup_float8x8 sum_3_2_ = {};
    metal::simdgroup_float8x8 sum_3_3_ = {};
    uint k = 0u;
    uint i = {};
    bool local = {};
    uint i_1 = {};
    bool local_1 = {};
    uint i_2 = {};
    bool local_2 = {};
    uint i_3 = {};
    bool local_3 = {};
    uint i_4 = {};
    bool local_4 = {};
    uint i_5 = {};
    bool local_5 = {};
    uint i_6 = {};
    bool local_6 = {};
    uint i_7 = {};
    bool local_7 = {};
    uint id = group.x + (group.y * groups.x);
    uint _e13 = params.total;
    if (id >= _e13) {
        return;
    }
    uint _e17 = params.tiles_n;
    uint tile_n = id % _e17;
    uint _e21 = params.tiles_n;
    uint _e25 = params.tiles_m;
    uint tile_m = (id / _e21) % _e25;
    uint _e29 = params.tiles_n;
    uint _e32 = params.tiles_m;
    uint stack = id / (_e29 * _e32);
    uint _e37 = params.groups;
    uint part = stack % _e37;
    uint _e41 = params.groups;
    uint image = stack / _e41;
    uint team = metal::min(subgroup, 3u);
    uint team_row = (team / 2u) * 32u;
    uint team_column = (team % 2u) * 32u;
    uint quad_ = thread_ % 16u;
    metal::uint4 pixel = metal::uint4((tile_n * 64u) + (quad_ * 4u)) + metal::uint4(0u, 1u, 2u, 3u);
    uint _e69 = params.pixels;
    metal::bool4 inside = pixel < metal::uint4(_e69);
    uint _e76 = params.out_x;
    uint _e81 = params.stride_y;
    uint _e85 = params.pad_y;
    metal::uint4 ys_1 = metal::select(metal::uint4(2147483648u), ((pixel / metal::uint4(_e76)) * _e81) - metal::uint4(_e85), inside);
    uint _e91 = params.out_x;
    uint _e96 = params.stride_x;
    uint _e100 = params.pad_x;
    metal::uint4 xs_1 = ((pixel % metal::uint4(_e91)) * _e96) - metal::uint4(_e100);
    uint _e105 = params.x_image;
    uint _e109 = params.channels;
    uint _e113 = params.x_channel;
    uint x_start = (image * _e105) + ((part * _e109) * _e113);
    uint x_row = thread_ / 16u;
    uint _e120 = params.k_padded;
    uint _e124 = params.m_padded;
    uint w_start = (((part * _e120) * _e124) + (tile_m * 64u)) / 4u;
    uint w_row = thread_ / 16u;
    uint w_quad = thread_ % 16u;
    uint _e170 = k;
    uint _e176 = params.m_padded;
    metal::half4 _e183 = w[(w_start + ((((_e170 + w_row) + 0u) * _e176) / 4u)) + w_quad];
    next_w0_ = static_cast<metal::half4>(_e183);
    uint _e186 = k;
    uint _e192 = params.m_padded;
    metal::half4 _e199 = w[(w_start + ((((_e186 + w_row) + 8u) * _e192) / 4u)) + w_quad];
    next_w1_ = static_cast<metal::half4>(_e199);
    uint _e202 = k;
    uint _e208 = params.m_padded;
    metal::half4 _e215 = w[(w_start + ((((_e202 + w_row) + 16u) * _e208) / 4u)) + w_quad];
    next_w2_ = static_cast<metal::half4>(_e215);
    uint _e218 = k;
    uint _e224 = params.m_padded;
    metal::half4 _e231 = w[(w_start + ((((_e218 + w_row) + 24u) * _e224) / 4u)) + w_quad];
    next_w3_ = static_cast<metal::half4>(_e231);
    uint _e233 = k;
    metal::half4 _e237 = windows(x_start, ys_1, xs_1, (_e233 + x_row) + 0u, x, params, _buffer_sizes);
    next_x0_ = _e237;
    uint _e238 = k;
    metal::half4 _e242 = windows(x_start, ys_1, xs_1, (_e238 + x_row) + 8u, x, params, _buffer_sizes);
    next_x1_ = _e242;
    uint _e243 = k;
    metal::half4 _e247 = windows(x_start, ys_1, xs_1, (_e243 + x_row) + 16u, x, params, _buffer_sizes);
    next_x2_ = _e247;
    uint _e248 = k;
    metal::half4 _e252 = windows(x_start, ys_1, xs_1, (_e248 + x_row) + 24u, x, params, _buffer_sizes);
    next_x3_ = _e252;
    while(true) {
        uint _e253 = k;
        uint _e256 = params.k_padded;
        if (_e253 >= _e256) {
            break;
        }
        {
            uint at_1 = ((w_row + 0u) * 72u) + (w_quad * 4u);
            half _e270 = next_w0_.x;
            w_tile.inner[at_1 + 0u] = _e270;
            half _e276 = next_w0_.y;
            w_tile.inner[at_1 + 1u] = _e276;
            half _e282 = next_w0_.z;
            w_tile.inner[at_1 + 2u] = _e282;
            half _e288 = next_w0_.w;
            w_tile.inner[at_1 + 3u] = _e288;
        }
        {
            uint at_2 = ((w_row + 8u) * 72u) + (w_quad * 4u);
            half _e301 = next_w1_.x;
            w_tile.inner[at_2 + 0u] = _e301;
            half _e307 = next_w1_.y;
            w_tile.inner[at_2 + 1u] = _e307;
            half _e313 = next_w1_.z;
            w_tile.inner[at_2 + 2u] = _e313;
            half _e319 = next_w1_.w;
            w_tile.inner[at_2 + 3u] = _e319;
        }
        {
            uint at_3 = ((w_row + 16u) * 72u) + (w_quad * 4u);
            half _e332 = next_w2_.x;
            w_tile.inner[at_3 + 0u] = _e332;
            half _e338 = next_w2_.y;
            w_tile.inner[at_3 + 1u] = _e338;
            half _e344 = next_w2_.z;
            w_tile.inner[at_3 + 2u] = _e344;
            half _e350 = next_w2_.w;
            w_tile.inner[at_3 + 3u] = _e350;
        }
        {
            uint at_4 = ((w_row + 24u) * 72u) + (w_quad * 4u);
            half _e363 = next_w3_.x;
            w_tile.inner[at_4 + 0u] = _e363;
            half _e369 = next_w3_.y;
            w_tile.inner[at_4 + 1u] = _e369;
            half _e375 = next_w3_.z;
            w_tile.inner[at_4 + 2u] = _e375;
            half _e381 = next_w3_.w;
            w_tile.inner[at_4 + 3u] = _e381;
        }
        {
            uint at_5 = ((x_row + 0u) * 72u) + (quad_ * 4u);
            half _e394 = next_x0_.x;
            x_tile.inner[at_5 + 0u] = _e394;
            half _e400 = next_x0_.y;
            x_tile.inner[at_5 + 1u] = _e400;
            half _e406 = next_x0_.z;
            x_tile.inner[at_5 + 2u] = _e406;
            half _e412 = next_x0_.w;
            x_tile.inner[at_5 + 3u] = _e412;
        }
        {
            uint at_6 = ((x_row + 8u) * 72u) + (quad_ * 4u);
            half _e425 = next_x1_.x;
            x_tile.inner[at_6 + 0u] = _e425;
            half _e431 = next_x1_.y;
            x_tile.inner[at_6 + 1u] = _e431;
            half _e437 = next_x1_.z;
            x_tile.inner[at_6 + 2u] = _e437;
            half _e443 = next_x1_.w;
            x_tile.inner[at_6 + 3u] = _e443;
        }
        {
            uint at_7 = ((x_row + 16u) * 72u) + (quad_ * 4u);
            half _e456 = next_x2_.x;
            x_tile.inner[at_7 + 0u] = _e456;
            half _e462 = next_x2_.y;
            x_tile.inner[at_7 + 1u] = _e462;
            half _e468 = next_x2_.z;
            x_tile.inner[at_7 + 2u] = _e468;
            half _e474 = next_x2_.w;
            x_tile.inner[at_7 + 3u] = _e474;
        }
        {
            uint at_8 = ((x_row + 24u) * 72u) + (quad_ * 4u);
            half _e487 = next_x3_.x;
            x_tile.inner[at_8 + 0u] = _e487;
            half _e493 = next_x3_.y;
            x_tile.inner[at_8 + 1u] = _e493;
            half _e499 = next_x3_.z;
            x_tile.inner[at_8 + 2u] = _e499;
            half _e505 = next_x3_.w;
            x_tile.inner[at_8 + 3u] = _e505;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e506 = k;
        k = _e506 + 32u;
        uint _e509 = k;
        uint _e512 = params.k_padded;
        if (_e509 < _e512) {
            uint _e515 = k;
            uint _e521 = params.m_padded;
            metal::half4 _e528 = w[(w_start + ((((_e515 + w_row) + 0u) * _e521) / 4u)) + w_quad];
            next_w0_ = static_cast<metal::half4>(_e528);
            uint _e531 = k;
            uint _e537 = params.m_padded;
            metal::half4 _e544 = w[(w_start + ((((_e531 + w_row) + 8u) * _e537) / 4u)) + w_quad];
            next_w1_ = static_cast<metal::half4>(_e544);
            uint _e547 = k;
            uint _e553 = params.m_padded;
            metal::half4 _e560 = w[(w_start + ((((_e547 + w_row) + 16u) * _e553) / 4u)) + w_quad];
            next_w2_ = static_cast<metal::half4>(_e560);
            uint _e563 = k;
            uint _e569 = params.m_padded;
            metal::half4 _e576 = w[(w_start + ((((_e563 + w_row) + 24u) * _e569) / 4u)) + w_quad];
            next_w3_ = static_cast<metal::half4>(_e576);
            uint _e578 = k;
            metal::half4 _e582 = windows(x_start, ys_1, xs_1, (_e578 + x_row) + 0u, x, params, _buffer_sizes);
            next_x0_ = _e582;
            uint _e583 = k;
            metal::half4 _e587 = windows(x_start, ys_1, xs_1, (_e583 + x_row) + 8u, x, params, _buffer_sizes);
            next_x1_ = _e587;
            uint _e588 = k;
            metal::half4 _e592 = windows(x_start, ys_1, xs_1, (_e588 + x_row) + 16u, x, params, _buffer_sizes);
            next_x2_ = _e592;
            uint _e593 = k;
            metal::half4 _e597 = windows(x_start, ys_1, xs_1, (_e593 + x_row) + 24u, x, params, _buffer_sizes);
            next_x3_ = _e597;
        }
        {
            uint at_w0_ = 0u + (team_row / 1u);
            metal::simdgroup_half8x8 w0_ = NagaCooperativeLoad(&w_tile.inner[at_w0_], 72u, true);
            uint at_w1_ = 8u + (team_row / 1u);
            metal::simdgroup_half8x8 w1_ = NagaCooperativeLoad(&w_tile.inner[at_w1_], 72u, true);
            uint at_w2_ = 16u + (team_row / 1u);
            metal::simdgroup_half8x8 w2_ = NagaCooperativeLoad(&w_tile.inner[at_w2_], 72u, true);
            uint at_w3_ = 24u + (team_row / 1u);
            metal::simdgroup_half8x8 w3_ = NagaCooperativeLoad(&w_tile.inner[at_w3_], 72u, true);
            uint at_x0_ = 0u + (team_column / 1u);
            metal::simdgroup_half8x8 x0_ = NagaCooperativeLoad(&x_tile.inner[at_x0_], 72u, false);
            metal::simdgroup_float8x8 _e638 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(w0_, x0_, _e638);
            metal::simdgroup_float8x8 _e640 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(w1_, x0_, _e640);
            metal::simdgroup_float8x8 _e642 = sum_2_0_;
            sum_2_0_ = NagaCooperativeMultiplyAdd(w2_, x0_, _e642);
            metal::simdgroup_float8x8 _e644 = sum_3_0_;
            sum_3_0_ = NagaCooperativeMultiplyAdd(w3_, x0_, _e644);
            uint at_x1_ = 8u + (team_column / 1u);
            metal::simdgroup_half8x8 x1_ = NagaCooperativeLoad(&x_tile.inner[at_x1_], 72u, false);
            metal::simdgroup_float8x8 _e654 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(w0_, x1_, _e654);
            metal::simdgroup_float8x8 _e656 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(w1_, x1_, _e656);
            metal::simdgroup_float8x8 _e658 = sum_2_1_;
            sum_2_1_ = NagaCooperativeMultiplyAdd(w2_, x1_, _e658);
            metal::simdgroup_float8x8 _e660 = sum_3_1_;
            sum_3_1_ = NagaCooperativeMultiplyAdd(w3_, x1_, _e660);
            uint at_x2_ = 16u + (team_column / 1u);
            metal::simdgroup_half8x8 x2_ = NagaCooperativeLoad(&x_tile.inner[at_x2_], 72u, false);
            metal::simdgroup_float8x8 _e670 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(w0_, x2_, _e670);
            metal::simdgroup_float8x8 _e672 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(w1_, x2_, _e672);
            metal::simdgroup_float8x8 _e674 = sum_2_2_;
            sum_2_2_ = NagaCooperativeMultiplyAdd(w2_, x2_, _e674);
            metal::simdgroup_float8x8 _e676 = sum_3_2_;
            sum_3_2_ = NagaCooperativeMultiplyAdd(w3_, x2_, _e676);
            uint at_x3_ = 24u + (team_column / 1u);
            metal::simdgroup_half8x8 x3_ = NagaCooperativeLoad(&x_tile.inner[at_x3_], 72u, false);
            metal::simdgroup_float8x8 _e686 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(w0_, x3_, _e686);
            metal::simdgroup_float8x8 _e688 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(w1_, x3_, _e688);
            metal::simdgroup_float8x8 _e690 = sum_2_3_;
            sum_2_3_ = NagaCooperativeMultiplyAdd(w2_, x3_, _e690);
            metal::simdgroup_float8x8 _e692 = sum_3_3_;
            sum_3_3_ = NagaCooperativeMultiplyAdd(w3_, x3_, _e692);
        }
        {
            uint at_w0_1 = 576u + (team_row / 1u);
            metal::simdgroup_half8x8 w0_1 = NagaCooperativeLoad(&w_tile.inner[at_w0_1], 72u, true);
            uint at_w1_1 = 584u + (team_row / 1u);
            metal::simdgroup_half8x8 w1_1 = NagaCooperativeLoad(&w_tile.inner[at_w1_1], 72u, true);
            uint at_w2_1 = 592u + (team_row / 1u);
            metal::simdgroup_half8x8 w2_1 = NagaCooperativeLoad(&w_tile.inner[at_w2_1], 72u, true);
            uint at_w3_1 = 600u + (team_row / 1u);
            metal::simdgroup_half8x8 w3_1 = NagaCooperativeLoad(&w_tile.inner[at_w3_1], 72u, true);
            uint at_x0_1 = 576u + (team_column / 1u);
            metal::simdgroup_half8x8 x0_1 = NagaCooperativeLoad(&x_tile.inner[at_x0_1], 72u, false);
            metal::simdgroup_float8x8 _e734 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(w0_1, x0_1, _e734);
            metal::simdgroup_float8x8 _e736 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(w1_1, x0_1, _e736);
            metal::simdgroup_float8x8 _e738 = sum_2_0_;
            sum_2_0_ = NagaCooperativeMultiplyAdd(w2_1, x0_1, _e738);
            metal::simdgroup_float8x8 _e740 = sum_3_0_;
            sum_3_0_ = NagaCooperativeMultiplyAdd(w3_1, x0_1, _e740);
            uint at_x1_1 = 584u + (team_column / 1u);
            metal::simdgroup_half8x8 x1_1 = NagaCooperativeLoad(&x_tile.inner[at_x1_1], 72u, false);
            metal::simdgroup_float8x8 _e750 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(w0_1, x1_1, _e750);
            metal::simdgroup_float8x8 _e752 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(w1_1, x1_1, _e752);
            metal::simdgroup_float8x8 _e754 = sum_2_1_;
            sum_2_1_ = NagaCooperativeMultiplyAdd(w2_1, x1_1, _e754);
            metal::simdgroup_float8x8 _e756 = sum_3_1_;
            sum_3_1_ = NagaCooperativeMultiplyAdd(w3_1, x1_1, _e756);
            uint at_x2_1 = 592u + (team_column / 1u);
            metal::simdgroup_half8x8 x2_1 = NagaCooperativeLoad(&x_tile.inner[at_x2_1], 72u, false);
            metal::simdgroup_float8x8 _e766 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(w0_1, x2_1, _e766);
            metal::simdgroup_float8x8 _e768 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(w1_1, x2_1, _e768);
            metal::simdgroup_float8x8 _e770 = sum_2_2_;
            sum_2_2_ = NagaCooperativeMultiplyAdd(w2_1, x2_1, _e770);
            metal::simdgroup_float8x8 _e772 = sum_3_2_;
            sum_3_2_ = NagaCooperativeMultiplyAdd(w3_1, x2_1, _e772);
            uint at_x3_1 = 600u + (team_column / 1u);
            metal::simdgroup_half8x8 x3_1 = NagaCooperativeLoad(&x_tile.inner[at_x3_1], 72u, false);
            metal::simdgroup_float8x8 _e782 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(w0_1, x3_1, _e782);
            metal::simdgroup_float8x8 _e784 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(w1_1, x3_1, _e784);
            metal::simdgroup_float8x8 _e786 = sum_2_3_;
            sum_2_3_ = NagaCooperativeMultiplyAdd(w2_1, x3_1, _e786);
            metal::simdgroup_float8x8 _e788 = sum_3_3_;
            sum_3_3_ = NagaCooperativeMultiplyAdd(w3_1, x3_1, _e788);
        }
        {
            uint at_w0_2 = 1152u + (team_row / 1u);
            metal::simdgroup_half8x8 w0_2 = NagaCooperativeLoad(&w_tile.inner[at_w0_2], 72u, true);
            uint at_w1_2 = 1160u + (team_row / 1u);
            metal::simdgroup_half8x8 w1_2 = NagaCooperativeLoad(&w_tile.inner[at_w1_2], 72u, true);
            uint at_w2_2 = 1168u + (team_row / 1u);
            metal::simdgroup_half8x8 w2_2 = NagaCooperativeLoad(&w_tile.inner[at_w2_2], 72u, true);
            uint at_w3_2 = 1176u + (team_row / 1u);
            metal::simdgroup_half8x8 w3_2 = NagaCooperativeLoad(&w_tile.inner[at_w3_2], 72u, true);
            uint at_x0_2 = 1152u + (team_column / 1u);
            metal::simdgroup_half8x8 x0_2 = NagaCooperativeLoad(&x_tile.inner[at_x0_2], 72u, false);
            metal::simdgroup_float8x8 _e830 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(w0_2, x0_2, _e830);
            metal::simdgroup_float8x8 _e832 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(w1_2, x0_2, _e832);
            metal::simdgroup_float8x8 _e834 = sum_2_0_;
            sum_2_0_ = NagaCooperativeMultiplyAdd(w2_2, x0_2, _e834);
            metal::simdgroup_float8x8 _e836 = sum_3_0_;
            sum_3_0_ = NagaCooperativeMultiplyAdd(w3_2, x0_2, _e836);
            uint at_x1_2 = 1160u + (team_column / 1u);
            metal::simdgroup_half8x8 x1_2 = NagaCooperativeLoad(&x_tile.inner[at_x1_2], 72u, false);
            metal::simdgroup_float8x8 _e846 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(w0_2, x1_2, _e846);
            metal::simdgroup_float8x8 _e848 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(w1_2, x1_2, _e848);
            metal::simdgroup_float8x8 _e850 = sum_2_1_;
            sum_2_1_ = NagaCooperativeMultiplyAdd(w2_2, x1_2, _e850);
            metal::simdgroup_float8x8 _e852 = sum_3_1_;
            sum_3_1_ = NagaCooperativeMultiplyAdd(w3_2, x1_2, _e852);
            uint at_x2_2 = 1168u + (team_column / 1u);
            metal::simdgroup_half8x8 x2_2 = NagaCooperativeLoad(&x_tile.inner[at_x2_2], 72u, false);
            metal::simdgroup_float8x8 _e862 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(w0_2, x2_2, _e862);
            metal::simdgroup_float8x8 _e864 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(w1_2, x2_2, _e864);
            metal::simdgroup_float8x8 _e866 = sum_2_2_;
            sum_2_2_ = NagaCooperativeMultiplyAdd(w2_2, x2_2, _e866);
            metal::simdgroup_float8x8 _e868 = sum_3_2_;
            sum_3_2_ = NagaCooperativeMultiplyAdd(w3_2, x2_2, _e868);
            uint at_x3_2 = 1176u + (team_column / 1u);
            metal::simdgroup_half8x8 x3_2 = NagaCooperativeLoad(&x_tile.inner[at_x3_2], 72u, false);
            metal::simdgroup_float8x8 _e878 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(w0_2, x3_2, _e878);
            metal::simdgroup_float8x8 _e880 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(w1_2, x3_2, _e880);
            metal::simdgroup_float8x8 _e882 = sum_2_3_;
            sum_2_3_ = NagaCooperativeMultiplyAdd(w2_2, x3_2, _e882);
            metal::simdgroup_float8x8 _e884 = sum_3_3_;
            sum_3_3_ = NagaCooperativeMultiplyAdd(w3_2, x3_2, _e884);
        }
        {
            uint at_w0_3 = 1728u + (team_row / 1u);
            metal::simdgroup_half8x8 w0_3 = NagaCooperativeLoad(&w_tile.inner[at_w0_3], 72u, true);
            uint at_w1_3 = 1736u + (team_row / 1u);
            metal::simdgroup_half8x8 w1_3 = NagaCooperativeLoad(&w_tile.inner[at_w1_3], 72u, true);
            uint at_w2_3 = 1744u + (team_row / 1u);
            metal::simdgroup_half8x8 w2_3 = NagaCooperativeLoad(&w_tile.inner[at_w2_3], 72u, true);
            uint at_w3_3 = 1752u + (team_row / 1u);
            metal::simdgroup_half8x8 w3_3 = NagaCooperativeLoad(&w_tile.inner[at_w3_3], 72u, true);
            uint at_x0_3 = 1728u + (team_column / 1u);
            metal::simdgroup_half8x8 x0_3 = NagaCooperativeLoad(&x_tile.inner[at_x0_3], 72u, false);
            metal::simdgroup_float8x8 _e926 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(w0_3, x0_3, _e926);
            metal::simdgroup_float8x8 _e928 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(w1_3, x0_3, _e928);
            metal::simdgroup_float8x8 _e930 = sum_2_0_;
            sum_2_0_ = NagaCooperativeMultiplyAdd(w2_3, x0_3, _e930);
            metal::simdgroup_float8x8 _e932 = sum_3_0_;
            sum_3_0_ = NagaCooperativeMultiplyAdd(w3_3, x0_3, _e932);
            uint at_x1_3 = 1736u + (team_column / 1u);
            metal::simdgroup_half8x8 x1_3 = NagaCooperativeLoad(&x_tile.inner[at_x1_3], 72u, false);
            metal::simdgroup_float8x8 _e942 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(w0_3, x1_3, _e942);
            metal::simdgroup_float8x8 _e944 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(w1_3, x1_3, _e944);
            metal::simdgroup_float8x8 _e946 = sum_2_1_;
            sum_2_1_ = NagaCooperativeMultiplyAdd(w2_3, x1_3, _e946);
            metal::simdgroup_float8x8 _e948 = sum_3_1_;
            sum_3_1_ = NagaCooperativeMultiplyAdd(w3_3, x1_3, _e948);
            uint at_x2_3 = 1744u + (team_column / 1u);
            metal::simdgroup_half8x8 x2_3 = NagaCooperativeLoad(&x_tile.inner[at_x2_3], 72u, false);
            metal::simdgroup_float8x8 _e958 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(w0_3, x2_3, _e958);
            metal::simdgroup_float8x8 _e960 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(w1_3, x2_3, _e960);
            metal::simdgroup_float8x8 _e962 = sum_2_2_;
            sum_2_2_ = NagaCooperativeMultiplyAdd(w2_3, x2_3, _e962);
            metal::simdgroup_float8x8 _e964 = sum_3_2_;
            sum_3_2_ = NagaCooperativeMultiplyAdd(w3_3, x2_3, _e964);
            uint at_x3_3 = 1752u + (team_column / 1u);
            metal::simdgroup_half8x8 x3_3 = NagaCooperativeLoad(&x_tile.inner[at_x3_3], 72u, false);
            metal::simdgroup_float8x8 _e974 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(w0_3, x3_3, _e974);
            metal::simdgroup_float8x8 _e976 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(w1_3, x3_3, _e976);
            metal::simdgroup_float8x8 _e978 = sum_2_3_;
            sum_2_3_ = NagaCooperativeMultiplyAdd(w2_3, x3_3, _e978);
            metal::simdgroup_float8x8 _e980 = sum_3_3_;
            sum_3_3_ = NagaCooperativeMultiplyAdd(w3_3, x3_3, _e980);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    uint own = team * 128u;
    uint to_0_0_ = own + 0u;
    metal::simdgroup_float8x8 _e986 = sum_0_0_;
    simdgroup_store(_e986, &results.inner[to_0_0_], 16u);
    uint to_0_1_ = own + 8u;
    metal::simdgroup_float8x8 _e992 = sum_0_1_;
    simdgroup_store(_e992, &results.inner[to_0_1_], 16u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i = lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e1078 = i;
            i = _e1078 + lanes;
        }
        loop_init = false;
        uint _e997 = i;
        if (_e997 < 32u) {
        } else {
            break;
        }
        {
            uint _e1005 = i;
            uint channel_2 = (((tile_m * 64u) + team_row) + 0u) + (_e1005 / 4u);
            uint _e1014 = i;
            uint first = (((tile_n * 64u) + team_column) + 0u) + ((_e1014 % 4u) * 4u);
            uint _e1022 = params.m;
            if (channel_2 < _e1022) {
                uint _e1028 = params.pixels;
                local = first < _e1028;
            } else {
                local = false;
            }
            bool _e1031 = local;
            if (_e1031) {
                uint _e1034 = params.m;
                uint whole = (part * _e1034) + channel_2;
                uint _e1037 = i;
                uint at_9 = own + (_e1037 * 4u);
                float _e1043 = results.inner[at_9];
                float _e1048 = results.inner[at_9 + 1u];
                float _e1053 = results.inner[at_9 + 2u];
                float _e1058 = results.inner[at_9 + 3u];
                metal::float4 found_1 = metal::float4(_e1043, _e1048, _e1053, _e1058);
                uint _e1062 = params.y_image;
                uint _e1066 = params.y_channel;
                uint _e1071 = params.y_pixel;
                uint to_1 = ((image * _e1062) + (whole * _e1066)) + (first * _e1071);
                uint _e1076 = params.pixels;
                put(found_1, whole, to_1, _e1076 - first, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_0_2_ = own + 0u;
    metal::simdgroup_float8x8 _e1082 = sum_0_2_;
    simdgroup_store(_e1082, &results.inner[to_0_2_], 16u);
    uint to_0_3_ = own + 8u;
    metal::simdgroup_float8x8 _e1088 = sum_0_3_;
    simdgroup_store(_e1088, &results.inner[to_0_3_], 16u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_1 = lane;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e1174 = i_1;
            i_1 = _e1174 + lanes;
        }
        loop_init_1 = false;
        uint _e1093 = i_1;
        if (_e1093 < 32u) {
        } else {
            break;
        }
        {
            uint _e1101 = i_1;
            uint channel_3 = (((tile_m * 64u) + team_row) + 0u) + (_e1101 / 4u);
            uint _e1110 = i_1;
            uint first_1 = (((tile_n * 64u) + team_column) + 16u) + ((_e1110 % 4u) * 4u);
            uint _e1118 = params.m;
            if (channel_3 < _e1118) {
                uint _e1124 = params.pixels;
                local_1 = first_1 < _e1124;
            } else {
                local_1 = false;
            }
            bool _e1127 = local_1;
            if (_e1127) {
                uint _e1130 = params.m;
                uint whole_1 = (part * _e1130) + channel_3;
                uint _e1133 = i_1;
                uint at_10 = own + (_e1133 * 4u);
                float _e1139 = results.inner[at_10];
                float _e1144 = results.inner[at_10 + 1u];
                float _e1149 = results.inner[at_10 + 2u];
                float _e1154 = results.inner[at_10 + 3u];
                metal::float4 found_2 = metal::float4(_e1139, _e1144, _e1149, _e1154);
                uint _e1158 = params.y_image;
                uint _e1162 = params.y_channel;
                uint _e1167 = params.y_pixel;
                uint to_2 = ((image * _e1158) + (whole_1 * _e1162)) + (first_1 * _e1167);
                uint _e1172 = params.pixels;
                put(found_2, whole_1, to_2, _e1172 - first_1, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_0_ = own + 0u;
    metal::simdgroup_float8x8 _e1178 = sum_1_0_;
    simdgroup_store(_e1178, &results.inner[to_1_0_], 16u);
    uint to_1_1_ = own + 8u;
    metal::simdgroup_float8x8 _e1184 = sum_1_1_;
    simdgroup_store(_e1184, &results.inner[to_1_1_], 16u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_2 = lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e1270 = i_2;
            i_2 = _e1270 + lanes;
        }
        loop_init_2 = false;
        uint _e1189 = i_2;
        if (_e1189 < 32u) {
        } else {
            break;
        }
        {
            uint _e1197 = i_2;
            uint channel_4 = (((tile_m * 64u) + team_row) + 8u) + (_e1197 / 4u);
            uint _e1206 = i_2;
            uint first_2 = (((tile_n * 64u) + team_column) + 0u) + ((_e1206 % 4u) * 4u);
            uint _e1214 = params.m;
            if (channel_4 < _e1214) {
                uint _e1220 = params.pixels;
                local_2 = first_2 < _e1220;
            } else {
                local_2 = false;
            }
            bool _e1223 = local_2;
            if (_e1223) {
                uint _e1226 = params.m;
                uint whole_2 = (part * _e1226) + channel_4;
                uint _e1229 = i_2;
                uint at_11 = own + (_e1229 * 4u);
                float _e1235 = results.inner[at_11];
                float _e1240 = results.inner[at_11 + 1u];
                float _e1245 = results.inner[at_11 + 2u];
                float _e1250 = results.inner[at_11 + 3u];
                metal::float4 found_3 = metal::float4(_e1235, _e1240, _e1245, _e1250);
                uint _e1254 = params.y_image;
                uint _e1258 = params.y_channel;
                uint _e1263 = params.y_pixel;
                uint to_3 = ((image * _e1254) + (whole_2 * _e1258)) + (first_2 * _e1263);
                uint _e1268 = params.pixels;
                put(found_3, whole_2, to_3, _e1268 - first_2, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_2_ = own + 0u;
    metal::simdgroup_float8x8 _e1274 = sum_1_2_;
    simdgroup_store(_e1274, &results.inner[to_1_2_], 16u);
    uint to_1_3_ = own + 8u;
    metal::simdgroup_float8x8 _e1280 = sum_1_3_;
    simdgroup_store(_e1280, &results.inner[to_1_3_], 16u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_3 = lane;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e1366 = i_3;
            i_3 = _e1366 + lanes;
        }
        loop_init_3 = false;
        uint _e1285 = i_3;
        if (_e1285 < 32u) {
        } else {
            break;
        }
        {
            uint _e1293 = i_3;
            uint channel_5 = (((tile_m * 64u) + team_row) + 8u) + (_e1293 / 4u);
            uint _e1302 = i_3;
            uint first_3 = (((tile_n * 64u) + team_column) + 16u) + ((_e1302 % 4u) * 4u);
            uint _e1310 = params.m;
            if (channel_5 < _e1310) {
                uint _e1316 = params.pixels;
                local_3 = first_3 < _e1316;
            } else {
                local_3 = false;
            }
            bool _e1319 = local_3;
            if (_e1319) {
                uint _e1322 = params.m;
                uint whole_3 = (part * _e1322) + channel_5;
                uint _e1325 = i_3;
                uint at_12 = own + (_e1325 * 4u);
                float _e1331 = results.inner[at_12];
                float _e1336 = results.inner[at_12 + 1u];
                float _e1341 = results.inner[at_12 + 2u];
                float _e1346 = results.inner[at_12 + 3u];
                metal::float4 found_4 = metal::float4(_e1331, _e1336, _e1341, _e1346);
                uint _e1350 = params.y_image;
                uint _e1354 = params.y_channel;
                uint _e1359 = params.y_pixel;
                uint to_4 = ((image * _e1350) + (whole_3 * _e1354)) + (first_3 * _e1359);
                uint _e1364 = params.pixels;
                put(found_4, whole_3, to_4, _e1364 - first_3, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_2_0_ = own + 0u;
    metal::simdgroup_float8x8 _e1370 = sum_2_0_;
    simdgroup_store(_e1370, &results.inner[to_2_0_], 16u);
    uint to_2_1_ = own + 8u;
    metal::simdgroup_float8x8 _e1376 = sum_2_1_;
    simdgroup_store(_e1376, &results.inner[to_2_1_], 16u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_4 = lane;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e1462 = i_4;
            i_4 = _e1462 + lanes;
        }
        loop_init_4 = false;
        uint _e1381 = i_4;
        if (_e1381 < 32u) {
        } else {
            break;
        }
        {
            uint _e1389 = i_4;
            uint channel_6 = (((tile_m * 64u) + team_row) + 16u) + (_e1389 / 4u);
            uint _e1398 = i_4;
            uint first_4 = (((tile_n * 64u) + team_column) + 0u) + ((_e1398 % 4u) * 4u);
            uint _e1406 = params.m;
            if (channel_6 < _e1406) {
                uint _e1412 = params.pixels;
                local_4 = first_4 < _e1412;
            } else {
                local_4 = false;
            }
            bool _e1415 = local_4;
            if (_e1415) {
                uint _e1418 = params.m;
                uint whole_4 = (part * _e1418) + channel_6;
                uint _e1421 = i_4;
                uint at_13 = own + (_e1421 * 4u);
                float _e1427 = results.inner[at_13];
                float _e1432 = results.inner[at_13 + 1u];
                float _e1437 = results.inner[at_13 + 2u];
                float _e1442 = results.inner[at_13 + 3u];
                metal::float4 found_5 = metal::float4(_e1427, _e1432, _e1437, _e1442);
                uint _e1446 = params.y_image;
                uint _e1450 = params.y_channel;
                uint _e1455 = params.y_pixel;
                uint to_5 = ((image * _e1446) + (whole_4 * _e1450)) + (first_4 * _e1455);
                uint _e1460 = params.pixels;
                put(found_5, whole_4, to_5, _e1460 - first_4, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_2_2_ = own + 0u;
    metal::simdgroup_float8x8 _e1466 = sum_2_2_;
    simdgroup_store(_e1466, &results.inner[to_2_2_], 16u);
    uint to_2_3_ = own + 8u;
    metal::simdgroup_float8x8 _e1472 = sum_2_3_;
    simdgroup_store(_e1472, &results.inner[to_2_3_], 16u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_5 = lane;
    bool loop_init_5 = true;
    while(true) {
        if (!loop_init_5) {
            uint _e1558 = i_5;
            i_5 = _e1558 + lanes;
        }
        loop_init_5 = false;
        uint _e1477 = i_5;
        if (_e1477 < 32u) {
        } else {
            break;
        }
        {
            uint _e1485 = i_5;
            uint channel_7 = (((tile_m * 64u) + team_row) + 16u) + (_e1485 / 4u);
            uint _e1494 = i_5;
            uint first_5 = (((tile_n * 64u) + team_column) + 16u) + ((_e1494 % 4u) * 4u);
            uint _e1502 = params.m;
            if (channel_7 < _e1502) {
                uint _e1508 = params.pixels;
                local_5 = first_5 < _e1508;
            } else {
                local_5 = false;
            }
            bool _e1511 = local_5;
            if (_e1511) {
                uint _e1514 = params.m;
                uint whole_5 = (part * _e1514) + channel_7;
                uint _e1517 = i_5;
                uint at_14 = own + (_e1517 * 4u);
                float _e1523 = results.inner[at_14];
                float _e1528 = results.inner[at_14 + 1u];
                float _e1533 = results.inner[at_14 + 2u];
                float _e1538 = results.inner[at_14 + 3u];
                metal::float4 found_6 = metal::float4(_e1523, _e1528, _e1533, _e1538);
                uint _e1542 = params.y_image;
                uint _e1546 = params.y_channel;
                uint _e1551 = params.y_pixel;
                uint to_6 = ((image * _e1542) + (whole_5 * _e1546)) + (first_5 * _e1551);
                uint _e1556 = params.pixels;
                put(found_6, whole_5, to_6, _e1556 - first_5, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_3_0_ = own + 0u;
    metal::simdgroup_float8x8 _e1562 = sum_3_0_;
    simdgroup_store(_e1562, &results.inner[to_3_0_], 16u);
    uint to_3_1_ = own + 8u;
    metal::simdgroup_float8x8 _e1568 = sum_3_1_;
    simdgroup_store(_e1568, &results.inner[to_3_1_], 16u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_6 = lane;
    bool loop_init_6 = true;
    while(true) {
        if (!loop_init_6) {
            uint _e1654 = i_6;
            i_6 = _e1654 + lanes;
        }
        loop_init_6 = false;
        uint _e1573 = i_6;
        if (_e1573 < 32u) {
        } else {
            break;
        }
        {
            uint _e1581 = i_6;
            uint channel_8 = (((tile_m * 64u) + team_row) + 24u) + (_e1581 / 4u);
            uint _e1590 = i_6;
            uint first_6 = (((tile_n * 64u) + team_column) + 0u) + ((_e1590 % 4u) * 4u);
            uint _e1598 = params.m;
            if (channel_8 < _e1598) {
                uint _e1604 = params.pixels;
                local_6 = first_6 < _e1604;
            } else {
                local_6 = false;
            }
            bool _e1607 = local_6;
            if (_e1607) {
                uint _e1610 = params.m;
                uint whole_6 = (part * _e1610) + channel_8;
                uint _e1613 = i_6;
                uint at_15 = own + (_e1613 * 4u);
                float _e1619 = results.inner[at_15];
                float _e1624 = results.inner[at_15 + 1u];
                float _e1629 = results.inner[at_15 + 2u];
                float _e1634 = results.inner[at_15 + 3u];
                metal::float4 found_7 = metal::float4(_e1619, _e1624, _e1629, _e1634);
                uint _e1638 = params.y_image;
                uint _e1642 = params.y_channel;
                uint _e1647 = params.y_pixel;
                uint to_7 = ((image * _e1638) + (whole_6 * _e1642)) + (first_6 * _e1647);
                uint _e1652 = params.pixels;
                put(found_7, whole_6, to_7, _e1652 - first_6, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_3_2_ = own + 0u;
    metal::simdgroup_float8x8 _e1658 = sum_3_2_;
    simdgroup_store(_e1658, &results.inner[to_3_2_], 16u);
    uint to_3_3_ = own + 8u;
    metal::simdgroup_float8x8 _e1664 = sum_3_3_;
    simdgroup_store(_e1664, &results.inner[to_3_3_], 16u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_7 = lane;
    bool loop_init_7 = true;
    while(true) {
        if (!loop_init_7) {
            uint _e1750 = i_7;
            i_7 = _e1750 + lanes;
        }
        loop_init_7 = false;
        uint _e1669 = i_7;
        if (_e1669 < 32u) {
        } else {
            break;
        }
        {
            uint _e1677 = i_7;
            uint channel_9 = (((tile_m * 64u) + team_row) + 24u) + (_e1677 / 4u);
            uint _e1686 = i_7;
            uint first_7 = (((tile_n * 64u) + team_column) + 16u) + ((_e1686 % 4u) * 4u);
            uint _e1694 = params.m;
            if (channel_9 < _e1694) {
                uint _e1700 = params.pixels;
                local_7 = first_7 < _e1700;
            } else {
                local_7 = false;
            }
            bool _e1703 = local_7;
            if (_e1703) {
                uint _e1706 = params.m;
                uint whole_7 = (part * _e1706) + channel_9;
                uint _e1709 = i_7;
                uint at_16 = own + (_e1709 * 4u);
                float _e1715 = results.inner[at_16];
                float _e1720 = results.inner[at_16 + 1u];
                float _e1725 = results.inner[at_16 + 2u];
                float _e1730 = results.inner[at_16 + 3u];
                metal::float4 found_8 = metal::float4(_e1715, _e1720, _e1725, _e1730);
                uint _e1734 = params.y_image;
                uint _e1738 = params.y_channel;
                uint _e1743 = params.y_pixel;
                uint to_8 = ((image * _e1734) + (whole_7 * _e1738)) + (first_7 * _e1743);
                uint _e1748 = params.pixels;
                put(found_8, whole_7, to_8, _e1748 - first_7, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
