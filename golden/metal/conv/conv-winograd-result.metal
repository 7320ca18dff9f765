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
    metal::float4 v_4
) {
    return v_4;
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
    metal::float4 v = {};
    metal::float4 v_1 = {};
    metal::float4 v_2 = {};
    metal::float4 v_3 = {};
    uint at = ((group.x + (group.y * groups.x)) * 64u) + lane;
    uint _e13 = params.count;
    uint _e16 = params.m;
    if (at >= (_e13 * _e16)) {
        return;
    }
    uint _e21 = params.count;
    uint tile = at % _e21;
    uint _e25 = params.count;
    uint channel = at / _e25;
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
    uint from_cell = (channel * _e57) + tile;
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
    uint start = (image * _e545) + (channel * _e549);
    uint _e556 = params.out_y;
    if ((top + 0u) < _e556) {
        uint _e562 = params.out_x;
        uint _e567 = params.y_pixel;
        uint row = start + ((((top + 0u) * _e562) + left) * _e567);
        v = metal::float4(y0_0_, y0_1_, y0_2_, y0_3_);
        metal::float4 _e572 = v;
        metal::float4 _e573 = activate(_e572);
        v = _e573;
        uint _e578 = params.out_x;
        if ((left + 0u) < _e578) {
            uint _e584 = params.y_pixel;
            float _e589 = v.x;
            y[row + (0u * _e584)] = static_cast<float>(_e589);
        }
        uint _e595 = params.out_x;
        if ((left + 1u) < _e595) {
            uint _e601 = params.y_pixel;
            float _e606 = v.y;
            y[row + (1u * _e601)] = static_cast<float>(_e606);
        }
        uint _e612 = params.out_x;
        if ((left + 2u) < _e612) {
            uint _e618 = params.y_pixel;
            float _e623 = v.z;
            y[row + (2u * _e618)] = static_cast<float>(_e623);
        }
        uint _e629 = params.out_x;
        if ((left + 3u) < _e629) {
            uint _e635 = params.y_pixel;
            float _e640 = v.w;
            y[row + (3u * _e635)] = static_cast<float>(_e640);
        }
    }
    uint _e646 = params.out_y;
    if ((top + 1u) < _e646) {
        uint _e652 = params.out_x;
        uint _e657 = params.y_pixel;
        uint row_1 = start + ((((top + 1u) * _e652) + left) * _e657);
        v_1 = metal::float4(y1_0_, y1_1_, y1_2_, y1_3_);
        metal::float4 _e662 = v_1;
        metal::float4 _e663 = activate(_e662);
        v_1 = _e663;
        uint _e668 = params.out_x;
        if ((left + 0u) < _e668) {
            uint _e674 = params.y_pixel;
            float _e679 = v_1.x;
            y[row_1 + (0u * _e674)] = static_cast<float>(_e679);
        }
        uint _e685 = params.out_x;
        if ((left + 1u) < _e685) {
            uint _e691 = params.y_pixel;
            float _e696 = v_1.y;
            y[row_1 + (1u * _e691)] = static_cast<float>(_e696);
        }
        uint _e702 = params.out_x;
        if ((left + 2u) < _e702) {
            uint _e708 = params.y_pixel;
            float _e713 = v_1.z;
            y[row_1 + (2u * _e708)] = static_cast<float>(_e713);
        }
        uint _e719 = params.out_x;
        if ((left + 3u) < _e719) {
            uint _e725 = params.y_pixel;
            float _e730 = v_1.w;
            y[row_1 + (3u * _e725)] = static_cast<float>(_e730);
        }
    }
    uint _e736 = params.out_y;
    if ((top + 2u) < _e736) {
        uint _e742 = params.out_x;
        uint _e747 = params.y_pixel;
        uint row_2 = start + ((((top + 2u) * _e742) + left) * _e747);
        v_2 = metal::float4(y2_0_, y2_1_, y2_2_, y2_3_);
        metal::float4 _e752 = v_2;
        metal::float4 _e753 = activate(_e752);
        v_2 = _e753;
        uint _e758 = params.out_x;
        if ((left + 0u) < _e758) {
            uint _e764 = params.y_pixel;
            float _e769 = v_2.x;
            y[row_2 + (0u * _e764)] = static_cast<float>(_e769);
        }
        uint _e775 = params.out_x;
        if ((left + 1u) < _e775) {
            uint _e781 = params.y_pixel;
            float _e786 = v_2.y;
            y[row_2 + (1u * _e781)] = static_cast<float>(_e786);
        }
        uint _e792 = params.out_x;
        if ((left + 2u) < _e792) {
            uint _e798 = params.y_pixel;
            float _e803 = v_2.z;
            y[row_2 + (2u * _e798)] = static_cast<float>(_e803);
        }
        uint _e809 = params.out_x;
        if ((left + 3u) < _e809) {
            uint _e815 = params.y_pixel;
            float _e820 = v_2.w;
            y[row_2 + (3u * _e815)] = static_cast<float>(_e820);
        }
    }
    uint _e826 = params.out_y;
    if ((top + 3u) < _e826) {
        uint _e832 = params.out_x;
        uint _e837 = params.y_pixel;
        uint row_3 = start + ((((top + 3u) * _e832) + left) * _e837);
        v_3 = metal::float4(y3_0_, y3_1_, y3_2_, y3_3_);
        metal::float4 _e842 = v_3;
        metal::float4 _e843 = activate(_e842);
        v_3 = _e843;
        uint _e848 = params.out_x;
        if ((left + 0u) < _e848) {
            uint _e854 = params.y_pixel;
            float _e859 = v_3.x;
            y[row_3 + (0u * _e854)] = static_cast<float>(_e859);
        }
        uint _e865 = params.out_x;
        if ((left + 1u) < _e865) {
            uint _e871 = params.y_pixel;
            float _e876 = v_3.y;
            y[row_3 + (1u * _e871)] = static_cast<float>(_e876);
        }
        uint _e882 = params.out_x;
        if ((left + 2u) < _e882) {
            uint _e888 = params.y_pixel;
            float _e893 = v_3.z;
            y[row_3 + (2u * _e888)] = static_cast<float>(_e893);
        }
        uint _e899 = params.out_x;
        if ((left + 3u) < _e899) {
            uint _e905 = params.y_pixel;
            float _e910 = v_3.w;
            y[row_3 + (3u * _e905)] = static_cast<float>(_e910);
            return;
        } else {
            return;
        }
    } else {
        return;
    }
}
