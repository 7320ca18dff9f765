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
struct Met {
    metal::uint4 at;
    uint inside;
    char _pad2[12];
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

uint naga_dot_uint4(metal::uint4 a, metal::uint4 b) {
    return ( + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w);
}

Met windows(
    uint start,
    metal::uint4 ys,
    metal::uint4 xs,
    uint k_1,
    constant Params& params
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
    return Met {at, naga_dot_uint4(metal::select(metal::uint4 {}, metal::uint4(1u, 2u, 4u, 8u), seen), metal::uint4(1u))};
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
    uint counts0_ = 0u;
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
    uint k_ahead = 0u;
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
    uint _e174 = k_ahead;
    uint _e180 = params.m_padded;
    metal::half4 _e187 = w[(w_start + ((((_e174 + w_row) + 0u) * _e180) / 4u)) + w_quad];
    next_w0_ = static_cast<metal::half4>(_e187);
    uint _e190 = k_ahead;
    uint _e196 = params.m_padded;
    metal::half4 _e203 = w[(w_start + ((((_e190 + w_row) + 8u) * _e196) / 4u)) + w_quad];
    next_w1_ = static_cast<metal::half4>(_e203);
    uint _e206 = k_ahead;
    uint _e212 = params.m_padded;
    metal::half4 _e219 = w[(w_start + ((((_e206 + w_row) + 16u) * _e212) / 4u)) + w_quad];
    next_w2_ = static_cast<metal::half4>(_e219);
    uint _e222 = k_ahead;
    uint _e228 = params.m_padded;
    metal::half4 _e235 = w[(w_start + ((((_e222 + w_row) + 24u) * _e228) / 4u)) + w_quad];
    next_w3_ = static_cast<metal::half4>(_e235);
    {
        uint _e237 = k_ahead;
        Met _e241 = windows(x_start, ys_1, xs_1, (_e237 + x_row) + 0u, params);
        half _e246 = x[_e241.at.x];
        half _e251 = x[_e241.at.y];
        half _e256 = x[_e241.at.z];
        half _e261 = x[_e241.at.w];
        next_x0_ = metal::half4(_e246, _e251, _e256, _e261);
        counts0_ = _e241.inside << 0u;
    }
    {
        uint _e266 = k_ahead;
        Met _e270 = windows(x_start, ys_1, xs_1, (_e266 + x_row) + 8u, params);
        half _e275 = x[_e270.at.x];
        half _e280 = x[_e270.at.y];
        half _e285 = x[_e270.at.z];
        half _e290 = x[_e270.at.w];
        next_x1_ = metal::half4(_e275, _e280, _e285, _e290);
        uint _e292 = counts0_;
        counts0_ = _e292 | (_e270.inside << 4u);
    }
    {
        uint _e297 = k_ahead;
        Met _e301 = windows(x_start, ys_1, xs_1, (_e297 + x_row) + 16u, params);
        half _e306 = x[_e301.at.x];
        half _e311 = x[_e301.at.y];
        half _e316 = x[_e301.at.z];
        half _e321 = x[_e301.at.w];
        next_x2_ = metal::half4(_e306, _e311, _e316, _e321);
        uint _e323 = counts0_;
        counts0_ = _e323 | (_e301.inside << 8u);
    }
    {
        uint _e328 = k_ahead;
        Met _e332 = windows(x_start, ys_1, xs_1, (_e328 + x_row) + 24u, params);
        half _e337 = x[_e332.at.x];
        half _e342 = x[_e332.at.y];
        half _e347 = x[_e332.at.z];
        half _e352 = x[_e332.at.w];
        next_x3_ = metal::half4(_e337, _e342, _e347, _e352);
        uint _e354 = counts0_;
        counts0_ = _e354 | (_e332.inside << 12u);
    }
    while(true) {
        uint _e359 = k;
        uint _e362 = params.k_padded;
        if (_e359 >= _e362) {
            break;
        }
        {
            uint at_1 = ((w_row + 0u) * 72u) + (w_quad * 4u);
            metal::half4 _e371 = next_w0_;
            metal::half4 value = static_cast<metal::half4>(_e371);
            w_tile.inner[at_1 + 0u] = value.x;
            w_tile.inner[at_1 + 1u] = value.y;
            w_tile.inner[at_1 + 2u] = value.z;
            w_tile.inner[at_1 + 3u] = value.w;
        }
        {
            uint at_2 = ((w_row + 8u) * 72u) + (w_quad * 4u);
            metal::half4 _e400 = next_w1_;
            metal::half4 value_1 = static_cast<metal::half4>(_e400);
            w_tile.inner[at_2 + 0u] = value_1.x;
            w_tile.inner[at_2 + 1u] = value_1.y;
            w_tile.inner[at_2 + 2u] = value_1.z;
            w_tile.inner[at_2 + 3u] = value_1.w;
        }
        {
            uint at_3 = ((w_row + 16u) * 72u) + (w_quad * 4u);
            metal::half4 _e429 = next_w2_;
            metal::half4 value_2 = static_cast<metal::half4>(_e429);
            w_tile.inner[at_3 + 0u] = value_2.x;
            w_tile.inner[at_3 + 1u] = value_2.y;
            w_tile.inner[at_3 + 2u] = value_2.z;
            w_tile.inner[at_3 + 3u] = value_2.w;
        }
        {
            uint at_4 = ((w_row + 24u) * 72u) + (w_quad * 4u);
            metal::half4 _e458 = next_w3_;
            metal::half4 value_3 = static_cast<metal::half4>(_e458);
            w_tile.inner[at_4 + 0u] = value_3.x;
            w_tile.inner[at_4 + 1u] = value_3.y;
            w_tile.inner[at_4 + 2u] = value_3.z;
            w_tile.inner[at_4 + 3u] = value_3.w;
        }
        {
            uint at_5 = ((x_row + 0u) * 72u) + (quad_ * 4u);
            uint _e487 = counts0_;
            metal::uint4 bits = (metal::uint4(_e487) >> metal::uint4(0u, 1u, 2u, 3u)) & metal::uint4(1u);
            metal::half4 _e499 = next_x0_;
            metal::half4 value_4 = metal::select(metal::half4 {}, static_cast<metal::half4>(_e499), bits != metal::uint4 {});
            x_tile.inner[at_5 + 0u] = value_4.x;
            x_tile.inner[at_5 + 1u] = value_4.y;
            x_tile.inner[at_5 + 2u] = value_4.z;
            x_tile.inner[at_5 + 3u] = value_4.w;
        }
        {
            uint at_6 = ((x_row + 8u) * 72u) + (quad_ * 4u);
            uint _e531 = counts0_;
            metal::uint4 bits_1 = (metal::uint4(_e531) >> metal::uint4(4u, 5u, 6u, 7u)) & metal::uint4(1u);
            metal::half4 _e543 = next_x1_;
            metal::half4 value_5 = metal::select(metal::half4 {}, static_cast<metal::half4>(_e543), bits_1 != metal::uint4 {});
            x_tile.inner[at_6 + 0u] = value_5.x;
            x_tile.inner[at_6 + 1u] = value_5.y;
            x_tile.inner[at_6 + 2u] = value_5.z;
            x_tile.inner[at_6 + 3u] = value_5.w;
        }
        {
            uint at_7 = ((x_row + 16u) * 72u) + (quad_ * 4u);
            uint _e575 = counts0_;
            metal::uint4 bits_2 = (metal::uint4(_e575) >> metal::uint4(8u, 9u, 10u, 11u)) & metal::uint4(1u);
            metal::half4 _e587 = next_x2_;
            metal::half4 value_6 = metal::select(metal::half4 {}, static_cast<metal::half4>(_e587), bits_2 != metal::uint4 {});
            x_tile.inner[at_7 + 0u] = value_6.x;
            x_tile.inner[at_7 + 1u] = value_6.y;
            x_tile.inner[at_7 + 2u] = value_6.z;
            x_tile.inner[at_7 + 3u] = value_6.w;
        }
        {
            uint at_8 = ((x_row + 24u) * 72u) + (quad_ * 4u);
            uint _e619 = counts0_;
            metal::uint4 bits_3 = (metal::uint4(_e619) >> metal::uint4(12u, 13u, 14u, 15u)) & metal::uint4(1u);
            metal::half4 _e631 = next_x3_;
            metal::half4 value_7 = metal::select(metal::half4 {}, static_cast<metal::half4>(_e631), bits_3 != metal::uint4 {});
            x_tile.inner[at_8 + 0u] = value_7.x;
            x_tile.inner[at_8 + 1u] = value_7.y;
            x_tile.inner[at_8 + 2u] = value_7.z;
            x_tile.inner[at_8 + 3u] = value_7.w;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e656 = k;
        k = _e656 + 32u;
        uint _e659 = k;
        uint _e662 = params.k_padded;
        k_ahead = metal::min(_e659, _e662 - 32u);
        uint _e667 = k_ahead;
        uint _e673 = params.m_padded;
        metal::half4 _e680 = w[(w_start + ((((_e667 + w_row) + 0u) * _e673) / 4u)) + w_quad];
        next_w0_ = static_cast<metal::half4>(_e680);
        uint _e683 = k_ahead;
        uint _e689 = params.m_padded;
        metal::half4 _e696 = w[(w_start + ((((_e683 + w_row) + 8u) * _e689) / 4u)) + w_quad];
        next_w1_ = static_cast<metal::half4>(_e696);
        uint _e699 = k_ahead;
        uint _e705 = params.m_padded;
        metal::half4 _e712 = w[(w_start + ((((_e699 + w_row) + 16u) * _e705) / 4u)) + w_quad];
        next_w2_ = static_cast<metal::half4>(_e712);
        uint _e715 = k_ahead;
        uint _e721 = params.m_padded;
        metal::half4 _e728 = w[(w_start + ((((_e715 + w_row) + 24u) * _e721) / 4u)) + w_quad];
        next_w3_ = static_cast<metal::half4>(_e728);
        {
            uint _e730 = k_ahead;
            Met _e734 = windows(x_start, ys_1, xs_1, (_e730 + x_row) + 0u, params);
            half _e739 = x[_e734.at.x];
            half _e744 = x[_e734.at.y];
            half _e749 = x[_e734.at.z];
            half _e754 = x[_e734.at.w];
            next_x0_ = metal::half4(_e739, _e744, _e749, _e754);
            counts0_ = _e734.inside << 0u;
        }
        {
            uint _e759 = k_ahead;
            Met _e763 = windows(x_start, ys_1, xs_1, (_e759 + x_row) + 8u, params);
            half _e768 = x[_e763.at.x];
            half _e773 = x[_e763.at.y];
            half _e778 = x[_e763.at.z];
            half _e783 = x[_e763.at.w];
            next_x1_ = metal::half4(_e768, _e773, _e778, _e783);
            uint _e785 = counts0_;
            counts0_ = _e785 | (_e763.inside << 4u);
        }
        {
            uint _e790 = k_ahead;
            Met _e794 = windows(x_start, ys_1, xs_1, (_e790 + x_row) + 16u, params);
            half _e799 = x[_e794.at.x];
            half _e804 = x[_e794.at.y];
            half _e809 = x[_e794.at.z];
            half _e814 = x[_e794.at.w];
            next_x2_ = metal::half4(_e799, _e804, _e809, _e814);
            uint _e816 = counts0_;
            counts0_ = _e816 | (_e794.inside << 8u);
        }
        {
            uint _e821 = k_ahead;
            Met _e825 = windows(x_start, ys_1, xs_1, (_e821 + x_row) + 24u, params);
            half _e830 = x[_e825.at.x];
            half _e835 = x[_e825.at.y];
            half _e840 = x[_e825.at.z];
            half _e845 = x[_e825.at.w];
            next_x3_ = metal::half4(_e830, _e835, _e840, _e845);
            uint _e847 = counts0_;
            counts0_ = _e847 | (_e825.inside << 12u);
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
            metal::simdgroup_float8x8 _e892 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(w0_, x0_, _e892);
            metal::simdgroup_float8x8 _e894 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(w1_, x0_, _e894);
            metal::simdgroup_float8x8 _e896 = sum_2_0_;
            sum_2_0_ = NagaCooperativeMultiplyAdd(w2_, x0_, _e896);
            metal::simdgroup_float8x8 _e898 = sum_3_0_;
            sum_3_0_ = NagaCooperativeMultiplyAdd(w3_, x0_, _e898);
            uint at_x1_ = 8u + (team_column / 1u);
            metal::simdgroup_half8x8 x1_ = NagaCooperativeLoad(&x_tile.inner[at_x1_], 72u, false);
            metal::simdgroup_float8x8 _e908 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(w0_, x1_, _e908);
            metal::simdgroup_float8x8 _e910 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(w1_, x1_, _e910);
            metal::simdgroup_float8x8 _e912 = sum_2_1_;
            sum_2_1_ = NagaCooperativeMultiplyAdd(w2_, x1_, _e912);
            metal::simdgroup_float8x8 _e914 = sum_3_1_;
            sum_3_1_ = NagaCooperativeMultiplyAdd(w3_, x1_, _e914);
            uint at_x2_ = 16u + (team_column / 1u);
            metal::simdgroup_half8x8 x2_ = NagaCooperativeLoad(&x_tile.inner[at_x2_], 72u, false);
            metal::simdgroup_float8x8 _e924 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(w0_, x2_, _e924);
            metal::simdgroup_float8x8 _e926 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(w1_, x2_, _e926);
            metal::simdgroup_float8x8 _e928 = sum_2_2_;
            sum_2_2_ = NagaCooperativeMultiplyAdd(w2_, x2_, _e928);
            metal::simdgroup_float8x8 _e930 = sum_3_2_;
            sum_3_2_ = NagaCooperativeMultiplyAdd(w3_, x2_, _e930);
            uint at_x3_ = 24u + (team_column / 1u);
            metal::simdgroup_half8x8 x3_ = NagaCooperativeLoad(&x_tile.inner[at_x3_], 72u, false);
            metal::simdgroup_float8x8 _e940 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(w0_, x3_, _e940);
            metal::simdgroup_float8x8 _e942 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(w1_, x3_, _e942);
            metal::simdgroup_float8x8 _e944 = sum_2_3_;
            sum_2_3_ = NagaCooperativeMultiplyAdd(w2_, x3_, _e944);
            metal::simdgroup_float8x8 _e946 = sum_3_3_;
            sum_3_3_ = NagaCooperativeMultiplyAdd(w3_, x3_, _e946);
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
            metal::simdgroup_float8x8 _e988 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(w0_1, x0_1, _e988);
            metal::simdgroup_float8x8 _e990 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(w1_1, x0_1, _e990);
            metal::simdgroup_float8x8 _e992 = sum_2_0_;
            sum_2_0_ = NagaCooperativeMultiplyAdd(w2_1, x0_1, _e992);
            metal::simdgroup_float8x8 _e994 = sum_3_0_;
            sum_3_0_ = NagaCooperativeMultiplyAdd(w3_1, x0_1, _e994);
            uint at_x1_1 = 584u + (team_column / 1u);
            metal::simdgroup_half8x8 x1_1 = NagaCooperativeLoad(&x_tile.inner[at_x1_1], 72u, false);
            metal::simdgroup_float8x8 _e1004 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(w0_1, x1_1, _e1004);
            metal::simdgroup_float8x8 _e1006 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(w1_1, x1_1, _e1006);
            metal::simdgroup_float8x8 _e1008 = sum_2_1_;
            sum_2_1_ = NagaCooperativeMultiplyAdd(w2_1, x1_1, _e1008);
            metal::simdgroup_float8x8 _e1010 = sum_3_1_;
            sum_3_1_ = NagaCooperativeMultiplyAdd(w3_1, x1_1, _e1010);
            uint at_x2_1 = 592u + (team_column / 1u);
            metal::simdgroup_half8x8 x2_1 = NagaCooperativeLoad(&x_tile.inner[at_x2_1], 72u, false);
            metal::simdgroup_float8x8 _e1020 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(w0_1, x2_1, _e1020);
            metal::simdgroup_float8x8 _e1022 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(w1_1, x2_1, _e1022);
            metal::simdgroup_float8x8 _e1024 = sum_2_2_;
            sum_2_2_ = NagaCooperativeMultiplyAdd(w2_1, x2_1, _e1024);
            metal::simdgroup_float8x8 _e1026 = sum_3_2_;
            sum_3_2_ = NagaCooperativeMultiplyAdd(w3_1, x2_1, _e1026);
            uint at_x3_1 = 600u + (team_column / 1u);
            metal::simdgroup_half8x8 x3_1 = NagaCooperativeLoad(&x_tile.inner[at_x3_1], 72u, false);
            metal::simdgroup_float8x8 _e1036 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(w0_1, x3_1, _e1036);
            metal::simdgroup_float8x8 _e1038 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(w1_1, x3_1, _e1038);
            metal::simdgroup_float8x8 _e1040 = sum_2_3_;
            sum_2_3_ = NagaCooperativeMultiplyAdd(w2_1, x3_1, _e1040);
            metal::simdgroup_float8x8 _e1042 = sum_3_3_;
            sum_3_3_ = NagaCooperativeMultiplyAdd(w3_1, x3_1, _e1042);
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
            metal::simdgroup_float8x8 _e1084 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(w0_2, x0_2, _e1084);
            metal::simdgroup_float8x8 _e1086 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(w1_2, x0_2, _e1086);
            metal::simdgroup_float8x8 _e1088 = sum_2_0_;
            sum_2_0_ = NagaCooperativeMultiplyAdd(w2_2, x0_2, _e1088);
            metal::simdgroup_float8x8 _e1090 = sum_3_0_;
            sum_3_0_ = NagaCooperativeMultiplyAdd(w3_2, x0_2, _e1090);
            uint at_x1_2 = 1160u + (team_column / 1u);
            metal::simdgroup_half8x8 x1_2 = NagaCooperativeLoad(&x_tile.inner[at_x1_2], 72u, false);
            metal::simdgroup_float8x8 _e1100 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(w0_2, x1_2, _e1100);
            metal::simdgroup_float8x8 _e1102 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(w1_2, x1_2, _e1102);
            metal::simdgroup_float8x8 _e1104 = sum_2_1_;
            sum_2_1_ = NagaCooperativeMultiplyAdd(w2_2, x1_2, _e1104);
            metal::simdgroup_float8x8 _e1106 = sum_3_1_;
            sum_3_1_ = NagaCooperativeMultiplyAdd(w3_2, x1_2, _e1106);
            uint at_x2_2 = 1168u + (team_column / 1u);
            metal::simdgroup_half8x8 x2_2 = NagaCooperativeLoad(&x_tile.inner[at_x2_2], 72u, false);
            metal::simdgroup_float8x8 _e1116 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(w0_2, x2_2, _e1116);
            metal::simdgroup_float8x8 _e1118 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(w1_2, x2_2, _e1118);
            metal::simdgroup_float8x8 _e1120 = sum_2_2_;
            sum_2_2_ = NagaCooperativeMultiplyAdd(w2_2, x2_2, _e1120);
            metal::simdgroup_float8x8 _e1122 = sum_3_2_;
            sum_3_2_ = NagaCooperativeMultiplyAdd(w3_2, x2_2, _e1122);
            uint at_x3_2 = 1176u + (team_column / 1u);
            metal::simdgroup_half8x8 x3_2 = NagaCooperativeLoad(&x_tile.inner[at_x3_2], 72u, false);
            metal::simdgroup_float8x8 _e1132 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(w0_2, x3_2, _e1132);
            metal::simdgroup_float8x8 _e1134 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(w1_2, x3_2, _e1134);
            metal::simdgroup_float8x8 _e1136 = sum_2_3_;
            sum_2_3_ = NagaCooperativeMultiplyAdd(w2_2, x3_2, _e1136);
            metal::simdgroup_float8x8 _e1138 = sum_3_3_;
            sum_3_3_ = NagaCooperativeMultiplyAdd(w3_2, x3_2, _e1138);
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
            metal::simdgroup_float8x8 _e1180 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(w0_3, x0_3, _e1180);
            metal::simdgroup_float8x8 _e1182 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(w1_3, x0_3, _e1182);
            metal::simdgroup_float8x8 _e1184 = sum_2_0_;
            sum_2_0_ = NagaCooperativeMultiplyAdd(w2_3, x0_3, _e1184);
            metal::simdgroup_float8x8 _e1186 = sum_3_0_;
            sum_3_0_ = NagaCooperativeMultiplyAdd(w3_3, x0_3, _e1186);
            uint at_x1_3 = 1736u + (team_column / 1u);
            metal::simdgroup_half8x8 x1_3 = NagaCooperativeLoad(&x_tile.inner[at_x1_3], 72u, false);
            metal::simdgroup_float8x8 _e1196 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(w0_3, x1_3, _e1196);
            metal::simdgroup_float8x8 _e1198 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(w1_3, x1_3, _e1198);
            metal::simdgroup_float8x8 _e1200 = sum_2_1_;
            sum_2_1_ = NagaCooperativeMultiplyAdd(w2_3, x1_3, _e1200);
            metal::simdgroup_float8x8 _e1202 = sum_3_1_;
            sum_3_1_ = NagaCooperativeMultiplyAdd(w3_3, x1_3, _e1202);
            uint at_x2_3 = 1744u + (team_column / 1u);
            metal::simdgroup_half8x8 x2_3 = NagaCooperativeLoad(&x_tile.inner[at_x2_3], 72u, false);
            metal::simdgroup_float8x8 _e1212 = sum_0_2_;
            sum_0_2_ = NagaCooperativeMultiplyAdd(w0_3, x2_3, _e1212);
            metal::simdgroup_float8x8 _e1214 = sum_1_2_;
            sum_1_2_ = NagaCooperativeMultiplyAdd(w1_3, x2_3, _e1214);
            metal::simdgroup_float8x8 _e1216 = sum_2_2_;
            sum_2_2_ = NagaCooperativeMultiplyAdd(w2_3, x2_3, _e1216);
            metal::simdgroup_float8x8 _e1218 = sum_3_2_;
            sum_3_2_ = NagaCooperativeMultiplyAdd(w3_3, x2_3, _e1218);
            uint at_x3_3 = 1752u + (team_column / 1u);
            metal::simdgroup_half8x8 x3_3 = NagaCooperativeLoad(&x_tile.inner[at_x3_3], 72u, false);
            metal::simdgroup_float8x8 _e1228 = sum_0_3_;
            sum_0_3_ = NagaCooperativeMultiplyAdd(w0_3, x3_3, _e1228);
            metal::simdgroup_float8x8 _e1230 = sum_1_3_;
            sum_1_3_ = NagaCooperativeMultiplyAdd(w1_3, x3_3, _e1230);
            metal::simdgroup_float8x8 _e1232 = sum_2_3_;
            sum_2_3_ = NagaCooperativeMultiplyAdd(w2_3, x3_3, _e1232);
            metal::simdgroup_float8x8 _e1234 = sum_3_3_;
            sum_3_3_ = NagaCooperativeMultiplyAdd(w3_3, x3_3, _e1234);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    uint own = team * 128u;
    uint to_0_0_ = own + 0u;
    metal::simdgroup_float8x8 _e1240 = sum_0_0_;
    simdgroup_store(_e1240, &results.inner[to_0_0_], 16u);
    uint to_0_1_ = own + 8u;
    metal::simdgroup_float8x8 _e1246 = sum_0_1_;
    simdgroup_store(_e1246, &results.inner[to_0_1_], 16u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i = lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e1332 = i;
            i = _e1332 + lanes;
        }
        loop_init = false;
        uint _e1251 = i;
        if (_e1251 < 32u) {
        } else {
            break;
        }
        {
            uint _e1259 = i;
            uint channel_2 = (((tile_m * 64u) + team_row) + 0u) + (_e1259 / 4u);
            uint _e1268 = i;
            uint first = (((tile_n * 64u) + team_column) + 0u) + ((_e1268 % 4u) * 4u);
            uint _e1276 = params.m;
            if (channel_2 < _e1276) {
                uint _e1282 = params.pixels;
                local = first < _e1282;
            } else {
                local = false;
            }
            bool _e1285 = local;
            if (_e1285) {
                uint _e1288 = params.m;
                uint whole = (part * _e1288) + channel_2;
                uint _e1291 = i;
                uint at_9 = own + (_e1291 * 4u);
                float _e1297 = results.inner[at_9];
                float _e1302 = results.inner[at_9 + 1u];
                float _e1307 = results.inner[at_9 + 2u];
                float _e1312 = results.inner[at_9 + 3u];
                metal::float4 found = metal::float4(_e1297, _e1302, _e1307, _e1312);
                uint _e1316 = params.y_image;
                uint _e1320 = params.y_channel;
                uint _e1325 = params.y_pixel;
                uint to_1 = ((image * _e1316) + (whole * _e1320)) + (first * _e1325);
                uint _e1330 = params.pixels;
                put(found, whole, to_1, _e1330 - first, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_0_2_ = own + 0u;
    metal::simdgroup_float8x8 _e1336 = sum_0_2_;
    simdgroup_store(_e1336, &results.inner[to_0_2_], 16u);
    uint to_0_3_ = own + 8u;
    metal::simdgroup_float8x8 _e1342 = sum_0_3_;
    simdgroup_store(_e1342, &results.inner[to_0_3_], 16u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_1 = lane;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e1428 = i_1;
            i_1 = _e1428 + lanes;
        }
        loop_init_1 = false;
        uint _e1347 = i_1;
        if (_e1347 < 32u) {
        } else {
            break;
        }
        {
            uint _e1355 = i_1;
            uint channel_3 = (((tile_m * 64u) + team_row) + 0u) + (_e1355 / 4u);
            uint _e1364 = i_1;
            uint first_1 = (((tile_n * 64u) + team_column) + 16u) + ((_e1364 % 4u) * 4u);
            uint _e1372 = params.m;
            if (channel_3 < _e1372) {
                uint _e1378 = params.pixels;
                local_1 = first_1 < _e1378;
            } else {
                local_1 = false;
            }
            bool _e1381 = local_1;
            if (_e1381) {
                uint _e1384 = params.m;
                uint whole_1 = (part * _e1384) + channel_3;
                uint _e1387 = i_1;
                uint at_10 = own + (_e1387 * 4u);
                float _e1393 = results.inner[at_10];
                float _e1398 = results.inner[at_10 + 1u];
                float _e1403 = results.inner[at_10 + 2u];
                float _e1408 = results.inner[at_10 + 3u];
                metal::float4 found_1 = metal::float4(_e1393, _e1398, _e1403, _e1408);
                uint _e1412 = params.y_image;
                uint _e1416 = params.y_channel;
                uint _e1421 = params.y_pixel;
                uint to_2 = ((image * _e1412) + (whole_1 * _e1416)) + (first_1 * _e1421);
                uint _e1426 = params.pixels;
                put(found_1, whole_1, to_2, _e1426 - first_1, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_0_ = own + 0u;
    metal::simdgroup_float8x8 _e1432 = sum_1_0_;
    simdgroup_store(_e1432, &results.inner[to_1_0_], 16u);
    uint to_1_1_ = own + 8u;
    metal::simdgroup_float8x8 _e1438 = sum_1_1_;
    simdgroup_store(_e1438, &results.inner[to_1_1_], 16u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_2 = lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e1524 = i_2;
            i_2 = _e1524 + lanes;
        }
        loop_init_2 = false;
        uint _e1443 = i_2;
        if (_e1443 < 32u) {
        } else {
            break;
        }
        {
            uint _e1451 = i_2;
            uint channel_4 = (((tile_m * 64u) + team_row) + 8u) + (_e1451 / 4u);
            uint _e1460 = i_2;
            uint first_2 = (((tile_n * 64u) + team_column) + 0u) + ((_e1460 % 4u) * 4u);
            uint _e1468 = params.m;
            if (channel_4 < _e1468) {
                uint _e1474 = params.pixels;
                local_2 = first_2 < _e1474;
            } else {
                local_2 = false;
            }
            bool _e1477 = local_2;
            if (_e1477) {
                uint _e1480 = params.m;
                uint whole_2 = (part * _e1480) + channel_4;
                uint _e1483 = i_2;
                uint at_11 = own + (_e1483 * 4u);
                float _e1489 = results.inner[at_11];
                float _e1494 = results.inner[at_11 + 1u];
                float _e1499 = results.inner[at_11 + 2u];
                float _e1504 = results.inner[at_11 + 3u];
                metal::float4 found_2 = metal::float4(_e1489, _e1494, _e1499, _e1504);
                uint _e1508 = params.y_image;
                uint _e1512 = params.y_channel;
                uint _e1517 = params.y_pixel;
                uint to_3 = ((image * _e1508) + (whole_2 * _e1512)) + (first_2 * _e1517);
                uint _e1522 = params.pixels;
                put(found_2, whole_2, to_3, _e1522 - first_2, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_2_ = own + 0u;
    metal::simdgroup_float8x8 _e1528 = sum_1_2_;
    simdgroup_store(_e1528, &results.inner[to_1_2_], 16u);
    uint to_1_3_ = own + 8u;
    metal::simdgroup_float8x8 _e1534 = sum_1_3_;
    simdgroup_store(_e1534, &results.inner[to_1_3_], 16u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_3 = lane;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e1620 = i_3;
            i_3 = _e1620 + lanes;
        }
        loop_init_3 = false;
        uint _e1539 = i_3;
        if (_e1539 < 32u) {
        } else {
            break;
        }
        {
            uint _e1547 = i_3;
            uint channel_5 = (((tile_m * 64u) + team_row) + 8u) + (_e1547 / 4u);
            uint _e1556 = i_3;
            uint first_3 = (((tile_n * 64u) + team_column) + 16u) + ((_e1556 % 4u) * 4u);
            uint _e1564 = params.m;
            if (channel_5 < _e1564) {
                uint _e1570 = params.pixels;
                local_3 = first_3 < _e1570;
            } else {
                local_3 = false;
            }
            bool _e1573 = local_3;
            if (_e1573) {
                uint _e1576 = params.m;
                uint whole_3 = (part * _e1576) + channel_5;
                uint _e1579 = i_3;
                uint at_12 = own + (_e1579 * 4u);
                float _e1585 = results.inner[at_12];
                float _e1590 = results.inner[at_12 + 1u];
                float _e1595 = results.inner[at_12 + 2u];
                float _e1600 = results.inner[at_12 + 3u];
                metal::float4 found_3 = metal::float4(_e1585, _e1590, _e1595, _e1600);
                uint _e1604 = params.y_image;
                uint _e1608 = params.y_channel;
                uint _e1613 = params.y_pixel;
                uint to_4 = ((image * _e1604) + (whole_3 * _e1608)) + (first_3 * _e1613);
                uint _e1618 = params.pixels;
                put(found_3, whole_3, to_4, _e1618 - first_3, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_2_0_ = own + 0u;
    metal::simdgroup_float8x8 _e1624 = sum_2_0_;
    simdgroup_store(_e1624, &results.inner[to_2_0_], 16u);
    uint to_2_1_ = own + 8u;
    metal::simdgroup_float8x8 _e1630 = sum_2_1_;
    simdgroup_store(_e1630, &results.inner[to_2_1_], 16u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_4 = lane;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e1716 = i_4;
            i_4 = _e1716 + lanes;
        }
        loop_init_4 = false;
        uint _e1635 = i_4;
        if (_e1635 < 32u) {
        } else {
            break;
        }
        {
            uint _e1643 = i_4;
            uint channel_6 = (((tile_m * 64u) + team_row) + 16u) + (_e1643 / 4u);
            uint _e1652 = i_4;
            uint first_4 = (((tile_n * 64u) + team_column) + 0u) + ((_e1652 % 4u) * 4u);
            uint _e1660 = params.m;
            if (channel_6 < _e1660) {
                uint _e1666 = params.pixels;
                local_4 = first_4 < _e1666;
            } else {
                local_4 = false;
            }
            bool _e1669 = local_4;
            if (_e1669) {
                uint _e1672 = params.m;
                uint whole_4 = (part * _e1672) + channel_6;
                uint _e1675 = i_4;
                uint at_13 = own + (_e1675 * 4u);
                float _e1681 = results.inner[at_13];
                float _e1686 = results.inner[at_13 + 1u];
                float _e1691 = results.inner[at_13 + 2u];
                float _e1696 = results.inner[at_13 + 3u];
                metal::float4 found_4 = metal::float4(_e1681, _e1686, _e1691, _e1696);
                uint _e1700 = params.y_image;
                uint _e1704 = params.y_channel;
                uint _e1709 = params.y_pixel;
                uint to_5 = ((image * _e1700) + (whole_4 * _e1704)) + (first_4 * _e1709);
                uint _e1714 = params.pixels;
                put(found_4, whole_4, to_5, _e1714 - first_4, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_2_2_ = own + 0u;
    metal::simdgroup_float8x8 _e1720 = sum_2_2_;
    simdgroup_store(_e1720, &results.inner[to_2_2_], 16u);
    uint to_2_3_ = own + 8u;
    metal::simdgroup_float8x8 _e1726 = sum_2_3_;
    simdgroup_store(_e1726, &results.inner[to_2_3_], 16u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_5 = lane;
    bool loop_init_5 = true;
    while(true) {
        if (!loop_init_5) {
            uint _e1812 = i_5;
            i_5 = _e1812 + lanes;
        }
        loop_init_5 = false;
        uint _e1731 = i_5;
        if (_e1731 < 32u) {
        } else {
            break;
        }
        {
            uint _e1739 = i_5;
            uint channel_7 = (((tile_m * 64u) + team_row) + 16u) + (_e1739 / 4u);
            uint _e1748 = i_5;
            uint first_5 = (((tile_n * 64u) + team_column) + 16u) + ((_e1748 % 4u) * 4u);
            uint _e1756 = params.m;
            if (channel_7 < _e1756) {
                uint _e1762 = params.pixels;
                local_5 = first_5 < _e1762;
            } else {
                local_5 = false;
            }
            bool _e1765 = local_5;
            if (_e1765) {
                uint _e1768 = params.m;
                uint whole_5 = (part * _e1768) + channel_7;
                uint _e1771 = i_5;
                uint at_14 = own + (_e1771 * 4u);
                float _e1777 = results.inner[at_14];
                float _e1782 = results.inner[at_14 + 1u];
                float _e1787 = results.inner[at_14 + 2u];
                float _e1792 = results.inner[at_14 + 3u];
                metal::float4 found_5 = metal::float4(_e1777, _e1782, _e1787, _e1792);
                uint _e1796 = params.y_image;
                uint _e1800 = params.y_channel;
                uint _e1805 = params.y_pixel;
                uint to_6 = ((image * _e1796) + (whole_5 * _e1800)) + (first_5 * _e1805);
                uint _e1810 = params.pixels;
                put(found_5, whole_5, to_6, _e1810 - first_5, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_3_0_ = own + 0u;
    metal::simdgroup_float8x8 _e1816 = sum_3_0_;
    simdgroup_store(_e1816, &results.inner[to_3_0_], 16u);
    uint to_3_1_ = own + 8u;
    metal::simdgroup_float8x8 _e1822 = sum_3_1_;
    simdgroup_store(_e1822, &results.inner[to_3_1_], 16u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_6 = lane;
    bool loop_init_6 = true;
    while(true) {
        if (!loop_init_6) {
            uint _e1908 = i_6;
            i_6 = _e1908 + lanes;
        }
        loop_init_6 = false;
        uint _e1827 = i_6;
        if (_e1827 < 32u) {
        } else {
            break;
        }
        {
            uint _e1835 = i_6;
            uint channel_8 = (((tile_m * 64u) + team_row) + 24u) + (_e1835 / 4u);
            uint _e1844 = i_6;
            uint first_6 = (((tile_n * 64u) + team_column) + 0u) + ((_e1844 % 4u) * 4u);
            uint _e1852 = params.m;
            if (channel_8 < _e1852) {
                uint _e1858 = params.pixels;
                local_6 = first_6 < _e1858;
            } else {
                local_6 = false;
            }
            bool _e1861 = local_6;
            if (_e1861) {
                uint _e1864 = params.m;
                uint whole_6 = (part * _e1864) + channel_8;
                uint _e1867 = i_6;
                uint at_15 = own + (_e1867 * 4u);
                float _e1873 = results.inner[at_15];
                float _e1878 = results.inner[at_15 + 1u];
                float _e1883 = results.inner[at_15 + 2u];
                float _e1888 = results.inner[at_15 + 3u];
                metal::float4 found_6 = metal::float4(_e1873, _e1878, _e1883, _e1888);
                uint _e1892 = params.y_image;
                uint _e1896 = params.y_channel;
                uint _e1901 = params.y_pixel;
                uint to_7 = ((image * _e1892) + (whole_6 * _e1896)) + (first_6 * _e1901);
                uint _e1906 = params.pixels;
                put(found_6, whole_6, to_7, _e1906 - first_6, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_3_2_ = own + 0u;
    metal::simdgroup_float8x8 _e1912 = sum_3_2_;
    simdgroup_store(_e1912, &results.inner[to_3_2_], 16u);
    uint to_3_3_ = own + 8u;
    metal::simdgroup_float8x8 _e1918 = sum_3_3_;
    simdgroup_store(_e1918, &results.inner[to_3_3_], 16u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_7 = lane;
    bool loop_init_7 = true;
    while(true) {
        if (!loop_init_7) {
            uint _e2004 = i_7;
            i_7 = _e2004 + lanes;
        }
        loop_init_7 = false;
        uint _e1923 = i_7;
        if (_e1923 < 32u) {
        } else {
            break;
        }
        {
            uint _e1931 = i_7;
            uint channel_9 = (((tile_m * 64u) + team_row) + 24u) + (_e1931 / 4u);
            uint _e1940 = i_7;
            uint first_7 = (((tile_n * 64u) + team_column) + 16u) + ((_e1940 % 4u) * 4u);
            uint _e1948 = params.m;
            if (channel_9 < _e1948) {
                uint _e1954 = params.pixels;
                local_7 = first_7 < _e1954;
            } else {
                local_7 = false;
            }
            bool _e1957 = local_7;
            if (_e1957) {
                uint _e1960 = params.m;
                uint whole_7 = (part * _e1960) + channel_9;
                uint _e1963 = i_7;
                uint at_16 = own + (_e1963 * 4u);
                float _e1969 = results.inner[at_16];
                float _e1974 = results.inner[at_16 + 1u];
                float _e1979 = results.inner[at_16 + 2u];
                float _e1984 = results.inner[at_16 + 3u];
                metal::float4 found_7 = metal::float4(_e1969, _e1974, _e1979, _e1984);
                uint _e1988 = params.y_image;
                uint _e1992 = params.y_channel;
                uint _e1997 = params.y_pixel;
                uint to_8 = ((image * _e1988) + (whole_7 * _e1992)) + (first_7 * _e1997);
                uint _e2002 = params.pixels;
                put(found_7, whole_7, to_8, _e2002 - first_7, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
