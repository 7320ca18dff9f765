// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
};

typedef float type_1[1];
typedef metal::half4 type_4[1];
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
    half inner[1280];
};
struct type_8 {
    float inner[256];
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
        y[to + (0u * _e13)] = static_cast<float>(_e18);
    }
    if (1u < count) {
        uint _e26 = params.y_pixel;
        float _e31 = v_1.y;
        y[to + (1u * _e26)] = static_cast<float>(_e31);
    }
    if (2u < count) {
        uint _e39 = params.y_pixel;
        float _e44 = v_1.z;
        y[to + (2u * _e39)] = static_cast<float>(_e44);
    }
    if (3u < count) {
        uint _e52 = params.y_pixel;
        float _e57 = v_1.w;
        y[to + (3u * _e52)] = static_cast<float>(_e57);
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
    uint _e6 = params.in_y;
    uint _e11 = params.in_x;
    uint _e17 = params.k;
    metal::bool4 seen = ((ys < metal::uint4(_e6)) & (xs < metal::uint4(_e11))) & metal::bool4(k_1 < _e17);
    uint _e23 = params.x_channel;
    uint from_channel = start + (k_1 * _e23);
    uint _e30 = params.in_x;
    uint _e35 = params.x_pixel;
    metal::uint4 at = metal::select(metal::uint4(start), metal::uint4(from_channel) + (((ys * _e30) + xs) * _e35), seen);
    float _e42 = x[at.x];
    float _e47 = x[at.y];
    float _e52 = x[at.z];
    float _e57 = x[at.w];
    metal::half4 found = metal::half4(static_cast<half>(_e42), static_cast<half>(_e47), static_cast<half>(_e52), static_cast<half>(_e57));
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
, device type_4 const& w [[buffer(1)]]
, device type_1& y [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, threadgroup type_7& w_tile
, threadgroup type_7& x_tile
, threadgroup type_8& results
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    metal::half4 next_w0_ = metal::half4 {};
    metal::half4 next_w1_ = metal::half4 {};
    metal::half4 next_x0_ = metal::half4 {};
    metal::half4 next_x1_ = metal::half4 {};
    metal::simdgroup_float8x8 sum_0_0_ = {};
    metal::simdgroup_float8x8 sum_0_1_ = {};
    metal::simdgroup_float8x8 sum_1_0_ = {};
    metal::simdgroup_float8x8 sum_1_1_ = {};
    uint k = 0u;
    uint i = {};
    bool local = {};
    uint i_1 = {};
    bool local_1 = {};
    uint i_2 = {};
    bool local_2 = {};
    uint i_3 = {};
    bool local_3 = {};
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
    uint team_row = (team / 2u) * 16u;
    uint team_column = (team % 2u) * 16u;
    uint quad_ = thread_ % 8u;
    metal::uint4 pixel = metal::uint4((tile_n * 32u) + (quad_ * 4u)) + metal::uint4(0u, 1u, 2u, 3u);
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
    uint x_row = thread_ / 8u;
    uint _e120 = params.k_padded;
    uint _e124 = params.m_padded;
    uint w_start = (((part * _e120) * _e124) + (tile_m * 32u)) / 4u;
    uint w_row = thread_ / 8u;
    uint w_quad = thread_ % 8u;
    uint _e150 = k;
    uint _e156 = params.m_padded;
    metal::half4 _e163 = w[(w_start + ((((_e150 + w_row) + 0u) * _e156) / 4u)) + w_quad];
    next_w0_ = static_cast<metal::half4>(_e163);
    uint _e166 = k;
    uint _e172 = params.m_padded;
    metal::half4 _e179 = w[(w_start + ((((_e166 + w_row) + 16u) * _e172) / 4u)) + w_quad];
    next_w1_ = static_cast<metal::half4>(_e179);
    uint _e181 = k;
    metal::half4 _e185 = windows(x_start, ys_1, xs_1, (_e181 + x_row) + 0u, x, params, _buffer_sizes);
    next_x0_ = _e185;
    uint _e186 = k;
    metal::half4 _e190 = windows(x_start, ys_1, xs_1, (_e186 + x_row) + 16u, x, params, _buffer_sizes);
    next_x1_ = _e190;
    while(true) {
        uint _e191 = k;
        uint _e194 = params.k_padded;
        if (_e191 >= _e194) {
            break;
        }
        {
            uint at_1 = ((w_row + 0u) * 40u) + (w_quad * 4u);
            half _e208 = next_w0_.x;
            w_tile.inner[at_1 + 0u] = _e208;
            half _e214 = next_w0_.y;
            w_tile.inner[at_1 + 1u] = _e214;
            half _e220 = next_w0_.z;
            w_tile.inner[at_1 + 2u] = _e220;
            half _e226 = next_w0_.w;
            w_tile.inner[at_1 + 3u] = _e226;
        }
        {
            uint at_2 = ((w_row + 16u) * 40u) + (w_quad * 4u);
            half _e239 = next_w1_.x;
            w_tile.inner[at_2 + 0u] = _e239;
            half _e245 = next_w1_.y;
            w_tile.inner[at_2 + 1u] = _e245;
            half _e251 = next_w1_.z;
            w_tile.inner[at_2 + 2u] = _e251;
            half _e257 = next_w1_.w;
            w_tile.inner[at_2 + 3u] = _e257;
        }
        {
            uint at_3 = ((x_row + 0u) * 40u) + (quad_ * 4u);
            half _e270 = next_x0_.x;
            x_tile.inner[at_3 + 0u] = _e270;
            half _e276 = next_x0_.y;
            x_tile.inner[at_3 + 1u] = _e276;
            half _e282 = next_x0_.z;
            x_tile.inner[at_3 + 2u] = _e282;
            half _e288 = next_x0_.w;
            x_tile.inner[at_3 + 3u] = _e288;
        }
        {
            uint at_4 = ((x_row + 16u) * 40u) + (quad_ * 4u);
            half _e301 = next_x1_.x;
            x_tile.inner[at_4 + 0u] = _e301;
            half _e307 = next_x1_.y;
            x_tile.inner[at_4 + 1u] = _e307;
            half _e313 = next_x1_.z;
            x_tile.inner[at_4 + 2u] = _e313;
            half _e319 = next_x1_.w;
            x_tile.inner[at_4 + 3u] = _e319;
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        uint _e320 = k;
        k = _e320 + 32u;
        uint _e323 = k;
        uint _e326 = params.k_padded;
        if (_e323 < _e326) {
            uint _e329 = k;
            uint _e335 = params.m_padded;
            metal::half4 _e342 = w[(w_start + ((((_e329 + w_row) + 0u) * _e335) / 4u)) + w_quad];
            next_w0_ = static_cast<metal::half4>(_e342);
            uint _e345 = k;
            uint _e351 = params.m_padded;
            metal::half4 _e358 = w[(w_start + ((((_e345 + w_row) + 16u) * _e351) / 4u)) + w_quad];
            next_w1_ = static_cast<metal::half4>(_e358);
            uint _e360 = k;
            metal::half4 _e364 = windows(x_start, ys_1, xs_1, (_e360 + x_row) + 0u, x, params, _buffer_sizes);
            next_x0_ = _e364;
            uint _e365 = k;
            metal::half4 _e369 = windows(x_start, ys_1, xs_1, (_e365 + x_row) + 16u, x, params, _buffer_sizes);
            next_x1_ = _e369;
        }
        {
            uint at_w0_ = 0u + (team_row / 1u);
            metal::simdgroup_half8x8 w0_ = NagaCooperativeLoad(&w_tile.inner[at_w0_], 40u, true);
            uint at_w1_ = 8u + (team_row / 1u);
            metal::simdgroup_half8x8 w1_ = NagaCooperativeLoad(&w_tile.inner[at_w1_], 40u, true);
            uint at_x0_ = 0u + (team_column / 1u);
            metal::simdgroup_half8x8 x0_ = NagaCooperativeLoad(&x_tile.inner[at_x0_], 40u, false);
            metal::simdgroup_float8x8 _e394 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(w0_, x0_, _e394);
            metal::simdgroup_float8x8 _e396 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(w1_, x0_, _e396);
            uint at_x1_ = 8u + (team_column / 1u);
            metal::simdgroup_half8x8 x1_ = NagaCooperativeLoad(&x_tile.inner[at_x1_], 40u, false);
            metal::simdgroup_float8x8 _e406 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(w0_, x1_, _e406);
            metal::simdgroup_float8x8 _e408 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(w1_, x1_, _e408);
        }
        {
            uint at_w0_1 = 320u + (team_row / 1u);
            metal::simdgroup_half8x8 w0_1 = NagaCooperativeLoad(&w_tile.inner[at_w0_1], 40u, true);
            uint at_w1_1 = 328u + (team_row / 1u);
            metal::simdgroup_half8x8 w1_1 = NagaCooperativeLoad(&w_tile.inner[at_w1_1], 40u, true);
            uint at_x0_1 = 320u + (team_column / 1u);
            metal::simdgroup_half8x8 x0_1 = NagaCooperativeLoad(&x_tile.inner[at_x0_1], 40u, false);
            metal::simdgroup_float8x8 _e434 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(w0_1, x0_1, _e434);
            metal::simdgroup_float8x8 _e436 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(w1_1, x0_1, _e436);
            uint at_x1_1 = 328u + (team_column / 1u);
            metal::simdgroup_half8x8 x1_1 = NagaCooperativeLoad(&x_tile.inner[at_x1_1], 40u, false);
            metal::simdgroup_float8x8 _e446 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(w0_1, x1_1, _e446);
            metal::simdgroup_float8x8 _e448 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(w1_1, x1_1, _e448);
        }
        {
            uint at_w0_2 = 640u + (team_row / 1u);
            metal::simdgroup_half8x8 w0_2 = NagaCooperativeLoad(&w_tile.inner[at_w0_2], 40u, true);
            uint at_w1_2 = 648u + (team_row / 1u);
            metal::simdgroup_half8x8 w1_2 = NagaCooperativeLoad(&w_tile.inner[at_w1_2], 40u, true);
            uint at_x0_2 = 640u + (team_column / 1u);
            metal::simdgroup_half8x8 x0_2 = NagaCooperativeLoad(&x_tile.inner[at_x0_2], 40u, false);
            metal::simdgroup_float8x8 _e474 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(w0_2, x0_2, _e474);
            metal::simdgroup_float8x8 _e476 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(w1_2, x0_2, _e476);
            uint at_x1_2 = 648u + (team_column / 1u);
            metal::simdgroup_half8x8 x1_2 = NagaCooperativeLoad(&x_tile.inner[at_x1_2], 40u, false);
            metal::simdgroup_float8x8 _e486 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(w0_2, x1_2, _e486);
            metal::simdgroup_float8x8 _e488 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(w1_2, x1_2, _e488);
        }
        {
            uint at_w0_3 = 960u + (team_row / 1u);
            metal::simdgroup_half8x8 w0_3 = NagaCooperativeLoad(&w_tile.inner[at_w0_3], 40u, true);
            uint at_w1_3 = 968u + (team_row / 1u);
            metal::simdgroup_half8x8 w1_3 = NagaCooperativeLoad(&w_tile.inner[at_w1_3], 40u, true);
            uint at_x0_3 = 960u + (team_column / 1u);
            metal::simdgroup_half8x8 x0_3 = NagaCooperativeLoad(&x_tile.inner[at_x0_3], 40u, false);
            metal::simdgroup_float8x8 _e514 = sum_0_0_;
            sum_0_0_ = NagaCooperativeMultiplyAdd(w0_3, x0_3, _e514);
            metal::simdgroup_float8x8 _e516 = sum_1_0_;
            sum_1_0_ = NagaCooperativeMultiplyAdd(w1_3, x0_3, _e516);
            uint at_x1_3 = 968u + (team_column / 1u);
            metal::simdgroup_half8x8 x1_3 = NagaCooperativeLoad(&x_tile.inner[at_x1_3], 40u, false);
            metal::simdgroup_float8x8 _e526 = sum_0_1_;
            sum_0_1_ = NagaCooperativeMultiplyAdd(w0_3, x1_3, _e526);
            metal::simdgroup_float8x8 _e528 = sum_1_1_;
            sum_1_1_ = NagaCooperativeMultiplyAdd(w1_3, x1_3, _e528);
        }
        metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    uint own = team * 64u;
    uint to_0_0_ = own + 0u;
    metal::simdgroup_float8x8 _e534 = sum_0_0_;
    simdgroup_store(_e534, &results.inner[to_0_0_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i = lane;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e620 = i;
            i = _e620 + lanes;
        }
        loop_init = false;
        uint _e539 = i;
        if (_e539 < 16u) {
        } else {
            break;
        }
        {
            uint _e547 = i;
            uint channel_1 = (((tile_m * 32u) + team_row) + 0u) + (_e547 / 2u);
            uint _e556 = i;
            uint first = (((tile_n * 32u) + team_column) + 0u) + ((_e556 % 2u) * 4u);
            uint _e564 = params.m;
            if (channel_1 < _e564) {
                uint _e570 = params.pixels;
                local = first < _e570;
            } else {
                local = false;
            }
            bool _e573 = local;
            if (_e573) {
                uint _e576 = params.m;
                uint whole = (part * _e576) + channel_1;
                uint _e579 = i;
                uint at_5 = own + (_e579 * 4u);
                float _e585 = results.inner[at_5];
                float _e590 = results.inner[at_5 + 1u];
                float _e595 = results.inner[at_5 + 2u];
                float _e600 = results.inner[at_5 + 3u];
                metal::float4 found_1 = metal::float4(_e585, _e590, _e595, _e600);
                uint _e604 = params.y_image;
                uint _e608 = params.y_channel;
                uint _e613 = params.y_pixel;
                uint to_1 = ((image * _e604) + (whole * _e608)) + (first * _e613);
                uint _e618 = params.pixels;
                put(found_1, whole, to_1, _e618 - first, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_0_1_ = own + 0u;
    metal::simdgroup_float8x8 _e624 = sum_0_1_;
    simdgroup_store(_e624, &results.inner[to_0_1_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_1 = lane;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e710 = i_1;
            i_1 = _e710 + lanes;
        }
        loop_init_1 = false;
        uint _e629 = i_1;
        if (_e629 < 16u) {
        } else {
            break;
        }
        {
            uint _e637 = i_1;
            uint channel_2 = (((tile_m * 32u) + team_row) + 0u) + (_e637 / 2u);
            uint _e646 = i_1;
            uint first_1 = (((tile_n * 32u) + team_column) + 8u) + ((_e646 % 2u) * 4u);
            uint _e654 = params.m;
            if (channel_2 < _e654) {
                uint _e660 = params.pixels;
                local_1 = first_1 < _e660;
            } else {
                local_1 = false;
            }
            bool _e663 = local_1;
            if (_e663) {
                uint _e666 = params.m;
                uint whole_1 = (part * _e666) + channel_2;
                uint _e669 = i_1;
                uint at_6 = own + (_e669 * 4u);
                float _e675 = results.inner[at_6];
                float _e680 = results.inner[at_6 + 1u];
                float _e685 = results.inner[at_6 + 2u];
                float _e690 = results.inner[at_6 + 3u];
                metal::float4 found_2 = metal::float4(_e675, _e680, _e685, _e690);
                uint _e694 = params.y_image;
                uint _e698 = params.y_channel;
                uint _e703 = params.y_pixel;
                uint to_2 = ((image * _e694) + (whole_1 * _e698)) + (first_1 * _e703);
                uint _e708 = params.pixels;
                put(found_2, whole_1, to_2, _e708 - first_1, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_0_ = own + 0u;
    metal::simdgroup_float8x8 _e714 = sum_1_0_;
    simdgroup_store(_e714, &results.inner[to_1_0_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_2 = lane;
    bool loop_init_2 = true;
    while(true) {
        if (!loop_init_2) {
            uint _e800 = i_2;
            i_2 = _e800 + lanes;
        }
        loop_init_2 = false;
        uint _e719 = i_2;
        if (_e719 < 16u) {
        } else {
            break;
        }
        {
            uint _e727 = i_2;
            uint channel_3 = (((tile_m * 32u) + team_row) + 8u) + (_e727 / 2u);
            uint _e736 = i_2;
            uint first_2 = (((tile_n * 32u) + team_column) + 0u) + ((_e736 % 2u) * 4u);
            uint _e744 = params.m;
            if (channel_3 < _e744) {
                uint _e750 = params.pixels;
                local_2 = first_2 < _e750;
            } else {
                local_2 = false;
            }
            bool _e753 = local_2;
            if (_e753) {
                uint _e756 = params.m;
                uint whole_2 = (part * _e756) + channel_3;
                uint _e759 = i_2;
                uint at_7 = own + (_e759 * 4u);
                float _e765 = results.inner[at_7];
                float _e770 = results.inner[at_7 + 1u];
                float _e775 = results.inner[at_7 + 2u];
                float _e780 = results.inner[at_7 + 3u];
                metal::float4 found_3 = metal::float4(_e765, _e770, _e775, _e780);
                uint _e784 = params.y_image;
                uint _e788 = params.y_channel;
                uint _e793 = params.y_pixel;
                uint to_3 = ((image * _e784) + (whole_2 * _e788)) + (first_2 * _e793);
                uint _e798 = params.pixels;
                put(found_3, whole_2, to_3, _e798 - first_2, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint to_1_1_ = own + 0u;
    metal::simdgroup_float8x8 _e804 = sum_1_1_;
    simdgroup_store(_e804, &results.inner[to_1_1_], 8u);
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    i_3 = lane;
    bool loop_init_3 = true;
    while(true) {
        if (!loop_init_3) {
            uint _e890 = i_3;
            i_3 = _e890 + lanes;
        }
        loop_init_3 = false;
        uint _e809 = i_3;
        if (_e809 < 16u) {
        } else {
            break;
        }
        {
            uint _e817 = i_3;
            uint channel_4 = (((tile_m * 32u) + team_row) + 8u) + (_e817 / 2u);
            uint _e826 = i_3;
            uint first_3 = (((tile_n * 32u) + team_column) + 8u) + ((_e826 % 2u) * 4u);
            uint _e834 = params.m;
            if (channel_4 < _e834) {
                uint _e840 = params.pixels;
                local_3 = first_3 < _e840;
            } else {
                local_3 = false;
            }
            bool _e843 = local_3;
            if (_e843) {
                uint _e846 = params.m;
                uint whole_3 = (part * _e846) + channel_4;
                uint _e849 = i_3;
                uint at_8 = own + (_e849 * 4u);
                float _e855 = results.inner[at_8];
                float _e860 = results.inner[at_8 + 1u];
                float _e865 = results.inner[at_8 + 2u];
                float _e870 = results.inner[at_8 + 3u];
                metal::float4 found_4 = metal::float4(_e855, _e860, _e865, _e870);
                uint _e874 = params.y_image;
                uint _e878 = params.y_channel;
                uint _e883 = params.y_pixel;
                uint to_4 = ((image * _e874) + (whole_3 * _e878)) + (first_3 * _e883);
                uint _e888 = params.pixels;
                put(found_4, whole_3, to_4, _e888 - first_3, y, params, _buffer_sizes);
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return;
}
