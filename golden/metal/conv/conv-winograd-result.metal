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
    bool local_2 = {};
    bool local_3 = {};
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
    uint top = ((tile / _e41) % _e45) * 4u;
    uint _e51 = params.across;
    uint left = (tile % _e51) * 4u;
    uint _e57 = params.columns;
    uint from_cell = (channel_1 * _e57) + tile;
    uint _e62 = params.columns;
    uint _e65 = params.m;
    uint cell = _e62 * _e65;
    float d0_0_ = products[from_cell + (0u * cell)];
    float d0_1_ = products[from_cell + (1u * cell)];
    float d0_2_ = products[from_cell + (2u * cell)];
    float d0_3_ = products[from_cell + (3u * cell)];
    float d0_4_ = products[from_cell + (4u * cell)];
    float d0_5_ = products[from_cell + (5u * cell)];
    float d1_0_ = products[from_cell + (6u * cell)];
    float d1_1_ = products[from_cell + (7u * cell)];
    float d1_2_ = products[from_cell + (8u * cell)];
    float d1_3_ = products[from_cell + (9u * cell)];
    float d1_4_ = products[from_cell + (10u * cell)];
    float d1_5_ = products[from_cell + (11u * cell)];
    float d2_0_ = products[from_cell + (12u * cell)];
    float d2_1_ = products[from_cell + (13u * cell)];
    float d2_2_ = products[from_cell + (14u * cell)];
    float d2_3_ = products[from_cell + (15u * cell)];
    float d2_4_ = products[from_cell + (16u * cell)];
    float d2_5_ = products[from_cell + (17u * cell)];
    float d3_0_ = products[from_cell + (18u * cell)];
    float d3_1_ = products[from_cell + (19u * cell)];
    float d3_2_ = products[from_cell + (20u * cell)];
    float d3_3_ = products[from_cell + (21u * cell)];
    float d3_4_ = products[from_cell + (22u * cell)];
    float d3_5_ = products[from_cell + (23u * cell)];
    float d4_0_ = products[from_cell + (24u * cell)];
    float d4_1_ = products[from_cell + (25u * cell)];
    float d4_2_ = products[from_cell + (26u * cell)];
    float d4_3_ = products[from_cell + (27u * cell)];
    float d4_4_ = products[from_cell + (28u * cell)];
    float d4_5_ = products[from_cell + (29u * cell)];
    float d5_0_ = products[from_cell + (30u * cell)];
    float d5_1_ = products[from_cell + (31u * cell)];
    float d5_2_ = products[from_cell + (32u * cell)];
    float d5_3_ = products[from_cell + (33u * cell)];
    float d5_4_ = products[from_cell + (34u * cell)];
    float d5_5_ = products[from_cell + (35u * cell)];
    float t0_0_ = (((d0_0_ + d1_0_) + d2_0_) + d3_0_) + d4_0_;
    float t0_1_ = (((d0_1_ + d1_1_) + d2_1_) + d3_1_) + d4_1_;
    float t0_2_ = (((d0_2_ + d1_2_) + d2_2_) + d3_2_) + d4_2_;
    float t0_3_ = (((d0_3_ + d1_3_) + d2_3_) + d3_3_) + d4_3_;
    float t0_4_ = (((d0_4_ + d1_4_) + d2_4_) + d3_4_) + d4_4_;
    float t0_5_ = (((d0_5_ + d1_5_) + d2_5_) + d3_5_) + d4_5_;
    float t1_0_ = ((d1_0_ - d2_0_) + (2.0 * d3_0_)) - (2.0 * d4_0_);
    float t1_1_ = ((d1_1_ - d2_1_) + (2.0 * d3_1_)) - (2.0 * d4_1_);
    float t1_2_ = ((d1_2_ - d2_2_) + (2.0 * d3_2_)) - (2.0 * d4_2_);
    float t1_3_ = ((d1_3_ - d2_3_) + (2.0 * d3_3_)) - (2.0 * d4_3_);
    float t1_4_ = ((d1_4_ - d2_4_) + (2.0 * d3_4_)) - (2.0 * d4_4_);
    float t1_5_ = ((d1_5_ - d2_5_) + (2.0 * d3_5_)) - (2.0 * d4_5_);
    float t2_0_ = ((d1_0_ + d2_0_) + (4.0 * d3_0_)) + (4.0 * d4_0_);
    float t2_1_ = ((d1_1_ + d2_1_) + (4.0 * d3_1_)) + (4.0 * d4_1_);
    float t2_2_ = ((d1_2_ + d2_2_) + (4.0 * d3_2_)) + (4.0 * d4_2_);
    float t2_3_ = ((d1_3_ + d2_3_) + (4.0 * d3_3_)) + (4.0 * d4_3_);
    float t2_4_ = ((d1_4_ + d2_4_) + (4.0 * d3_4_)) + (4.0 * d4_4_);
    float t2_5_ = ((d1_5_ + d2_5_) + (4.0 * d3_5_)) + (4.0 * d4_5_);
    float t3_0_ = (((d1_0_ - d2_0_) + (8.0 * d3_0_)) - (8.0 * d4_0_)) + d5_0_;
    float t3_1_ = (((d1_1_ - d2_1_) + (8.0 * d3_1_)) - (8.0 * d4_1_)) + d5_1_;
    float t3_2_ = (((d1_2_ - d2_2_) + (8.0 * d3_2_)) - (8.0 * d4_2_)) + d5_2_;
    float t3_3_ = (((d1_3_ - d2_3_) + (8.0 * d3_3_)) - (8.0 * d4_3_)) + d5_3_;
    float t3_4_ = (((d1_4_ - d2_4_) + (8.0 * d3_4_)) - (8.0 * d4_4_)) + d5_4_;
    float t3_5_ = (((d1_5_ - d2_5_) + (8.0 * d3_5_)) - (8.0 * d4_5_)) + d5_5_;
    float y0_0_ = (((t0_0_ + t0_1_) + t0_2_) + t0_3_) + t0_4_;
    float y0_1_ = ((t0_1_ - t0_2_) + (2.0 * t0_3_)) - (2.0 * t0_4_);
    float y0_2_ = ((t0_1_ + t0_2_) + (4.0 * t0_3_)) + (4.0 * t0_4_);
    float y0_3_ = (((t0_1_ - t0_2_) + (8.0 * t0_3_)) - (8.0 * t0_4_)) + t0_5_;
    float y1_0_ = (((t1_0_ + t1_1_) + t1_2_) + t1_3_) + t1_4_;
    float y1_1_ = ((t1_1_ - t1_2_) + (2.0 * t1_3_)) - (2.0 * t1_4_);
    float y1_2_ = ((t1_1_ + t1_2_) + (4.0 * t1_3_)) + (4.0 * t1_4_);
    float y1_3_ = (((t1_1_ - t1_2_) + (8.0 * t1_3_)) - (8.0 * t1_4_)) + t1_5_;
    float y2_0_ = (((t2_0_ + t2_1_) + t2_2_) + t2_3_) + t2_4_;
    float y2_1_ = ((t2_1_ - t2_2_) + (2.0 * t2_3_)) - (2.0 * t2_4_);
    float y2_2_ = ((t2_1_ + t2_2_) + (4.0 * t2_3_)) + (4.0 * t2_4_);
    float y2_3_ = (((t2_1_ - t2_2_) + (8.0 * t2_3_)) - (8.0 * t2_4_)) + t2_5_;
    float y3_0_ = (((t3_0_ + t3_1_) + t3_2_) + t3_3_) + t3_4_;
    float y3_1_ = ((t3_1_ - t3_2_) + (2.0 * t3_3_)) - (2.0 * t3_4_);
    float y3_2_ = ((t3_1_ + t3_2_) + (4.0 * t3_3_)) + (4.0 * t3_4_);
    float y3_3_ = (((t3_1_ - t3_2_) + (8.0 * t3_3_)) - (8.0 * t3_4_)) + t3_5_;
    uint _e545 = params.y_image;
    uint _e549 = params.y_channel;
    uint start = (image * _e545) + (channel_1 * _e549);
    uint _e556 = params.out_y;
    if ((top + 0u) < _e556) {
        uint _e562 = params.out_x;
        local = left < _e562;
    } else {
        local = false;
    }
    bool _e565 = local;
    if (_e565) {
        uint _e570 = params.out_x;
        uint _e575 = params.y_pixel;
        uint to_1 = start + ((((top + 0u) * _e570) + left) * _e575);
        metal::float4 row = metal::float4(y0_0_, y0_1_, y0_2_, y0_3_);
        uint _e581 = params.out_x;
        put(row, channel_1, to_1, _e581 - left, y, params, _buffer_sizes);
    }
    uint _e587 = params.out_y;
    if ((top + 1u) < _e587) {
        uint _e593 = params.out_x;
        local_1 = left < _e593;
    } else {
        local_1 = false;
    }
    bool _e596 = local_1;
    if (_e596) {
        uint _e601 = params.out_x;
        uint _e606 = params.y_pixel;
        uint to_2 = start + ((((top + 1u) * _e601) + left) * _e606);
        metal::float4 row_1 = metal::float4(y1_0_, y1_1_, y1_2_, y1_3_);
        uint _e612 = params.out_x;
        put(row_1, channel_1, to_2, _e612 - left, y, params, _buffer_sizes);
    }
    uint _e618 = params.out_y;
    if ((top + 2u) < _e618) {
        uint _e624 = params.out_x;
        local_2 = left < _e624;
    } else {
        local_2 = false;
    }
    bool _e627 = local_2;
    if (_e627) {
        uint _e632 = params.out_x;
        uint _e637 = params.y_pixel;
        uint to_3 = start + ((((top + 2u) * _e632) + left) * _e637);
        metal::float4 row_2 = metal::float4(y2_0_, y2_1_, y2_2_, y2_3_);
        uint _e643 = params.out_x;
        put(row_2, channel_1, to_3, _e643 - left, y, params, _buffer_sizes);
    }
    uint _e649 = params.out_y;
    if ((top + 3u) < _e649) {
        uint _e655 = params.out_x;
        local_3 = left < _e655;
    } else {
        local_3 = false;
    }
    bool _e658 = local_3;
    if (_e658) {
        uint _e663 = params.out_x;
        uint _e668 = params.y_pixel;
        uint to_4 = start + ((((top + 3u) * _e663) + left) * _e668);
        metal::float4 row_3 = metal::float4(y3_0_, y3_1_, y3_2_, y3_3_);
        uint _e674 = params.out_x;
        put(row_3, channel_1, to_4, _e674 - left, y, params, _buffer_sizes);
        return;
    } else {
        return;
    }
}
