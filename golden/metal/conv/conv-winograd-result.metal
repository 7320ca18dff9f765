// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef float type_1[1];
struct Params {
    uint count;
    uint columns;
    uint first;
    uint down;
    uint across;
    uint channels;
    uint m;
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
        return;
    } else {
        return;
    }
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& products [[buffer(0)]]
, device type_1& y [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    bool local = {};
    bool local_1 = {};
    uint at = ((group.x + (group.y * groups.x)) * 64u) + lane;
    uint _e13 = params.count;
    uint _e16 = params.m;
    if (at >= (_e13 * _e16)) {
        return;
    }
    uint _e21 = params.count;
    uint tile = at % _e21;
    uint _e25 = params.count;
    uint channel_1 = at / _e25;
    uint _e29 = params.first;
    uint _e32 = params.down;
    uint _e35 = params.across;
    uint image = _e29 + (tile / (_e32 * _e35));
    uint _e41 = params.across;
    uint _e45 = params.down;
    uint top = ((tile / _e41) % _e45) * 2u;
    uint _e51 = params.across;
    uint left = (tile % _e51) * 2u;
    uint _e57 = params.columns;
    uint from_cell = (channel_1 * _e57) + tile;
    uint _e62 = params.columns;
    uint _e65 = params.m;
    uint cell = _e62 * _e65;
    float d0_0_ = products[from_cell + (0u * cell)];
    float d0_1_ = products[from_cell + (1u * cell)];
    float d0_2_ = products[from_cell + (2u * cell)];
    float d0_3_ = products[from_cell + (3u * cell)];
    float d1_0_ = products[from_cell + (4u * cell)];
    float d1_1_ = products[from_cell + (5u * cell)];
    float d1_2_ = products[from_cell + (6u * cell)];
    float d1_3_ = products[from_cell + (7u * cell)];
    float d2_0_ = products[from_cell + (8u * cell)];
    float d2_1_ = products[from_cell + (9u * cell)];
    float d2_2_ = products[from_cell + (10u * cell)];
    float d2_3_ = products[from_cell + (11u * cell)];
    float d3_0_ = products[from_cell + (12u * cell)];
    float d3_1_ = products[from_cell + (13u * cell)];
    float d3_2_ = products[from_cell + (14u * cell)];
    float d3_3_ = products[from_cell + (15u * cell)];
    float t0_0_ = (d0_0_ + d1_0_) + d2_0_;
    float t0_1_ = (d0_1_ + d1_1_) + d2_1_;
    float t0_2_ = (d0_2_ + d1_2_) + d2_2_;
    float t0_3_ = (d0_3_ + d1_3_) + d2_3_;
    float t1_0_ = (d1_0_ - d2_0_) - d3_0_;
    float t1_1_ = (d1_1_ - d2_1_) - d3_1_;
    float t1_2_ = (d1_2_ - d2_2_) - d3_2_;
    float t1_3_ = (d1_3_ - d2_3_) - d3_3_;
    float y0_0_ = (t0_0_ + t0_1_) + t0_2_;
    float y0_1_ = (t0_1_ - t0_2_) - t0_3_;
    float y1_0_ = (t1_0_ + t1_1_) + t1_2_;
    float y1_1_ = (t1_1_ - t1_2_) - t1_3_;
    uint _e189 = params.y_image;
    uint _e193 = params.y_channel;
    uint start = (image * _e189) + (channel_1 * _e193);
    uint _e200 = params.out_y;
    if ((top + 0u) < _e200) {
        uint _e206 = params.out_x;
        local = left < _e206;
    } else {
        local = false;
    }
    bool _e209 = local;
    if (_e209) {
        uint _e214 = params.out_x;
        uint _e219 = params.y_pixel;
        uint to_1 = start + ((((top + 0u) * _e214) + left) * _e219);
        metal::float4 row = metal::float4(y0_0_, y0_1_, 0.0, 0.0);
        uint _e227 = params.out_x;
        put(row, channel_1, to_1, _e227 - left, y, params, _buffer_sizes);
    }
    uint _e233 = params.out_y;
    if ((top + 1u) < _e233) {
        uint _e239 = params.out_x;
        local_1 = left < _e239;
    } else {
        local_1 = false;
    }
    bool _e242 = local_1;
    if (_e242) {
        uint _e247 = params.out_x;
        uint _e252 = params.y_pixel;
        uint to_2 = start + ((((top + 1u) * _e247) + left) * _e252);
        metal::float4 row_1 = metal::float4(y1_0_, y1_1_, 0.0, 0.0);
        uint _e260 = params.out_x;
        put(row_1, channel_1, to_2, _e260 - left, y, params, _buffer_sizes);
        return;
    } else {
        return;
    }
}
