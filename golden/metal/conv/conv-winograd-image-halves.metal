// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef float type_1[1];
typedef half type_3[1];
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
};

struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& x [[buffer(0)]]
, device type_3& tiles [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    float d0_0_ = 0.0;
    float d0_1_ = 0.0;
    float d0_2_ = 0.0;
    float d0_3_ = 0.0;
    float d1_0_ = 0.0;
    float d1_1_ = 0.0;
    float d1_2_ = 0.0;
    float d1_3_ = 0.0;
    float d2_0_ = 0.0;
    float d2_1_ = 0.0;
    float d2_2_ = 0.0;
    float d2_3_ = 0.0;
    float d3_0_ = 0.0;
    float d3_1_ = 0.0;
    float d3_2_ = 0.0;
    float d3_3_ = 0.0;
    uint at = ((group.x + (group.y * groups.x)) * 64u) + lane;
    uint _e13 = params.columns;
    uint _e16 = params.channels;
    if (at >= (_e13 * _e16)) {
        return;
    }
    uint _e21 = params.columns;
    uint _e25 = params.count;
    uint tile = metal::min(at % _e21, _e25 - 1u);
    uint _e31 = params.columns;
    uint channel = at / _e31;
    uint _e35 = params.first;
    uint _e38 = params.down;
    uint _e41 = params.across;
    uint image = _e35 + (tile / (_e38 * _e41));
    uint _e47 = params.across;
    uint _e51 = params.down;
    uint _e57 = params.pad_y;
    uint top = (((tile / _e47) % _e51) * 2u) - _e57;
    uint _e61 = params.across;
    uint _e67 = params.pad_x;
    uint left = ((tile % _e61) * 2u) - _e67;
    uint _e71 = params.x_image;
    uint _e75 = params.x_channel;
    uint start = (image * _e71) + (channel * _e75);
    uint _e90 = params.in_y;
    if ((top + 0u) < _e90) {
        uint _e96 = params.in_x;
        uint _e100 = params.x_pixel;
        uint row = start + (((top + 0u) * _e96) * _e100);
        uint _e107 = params.in_x;
        if ((left + 0u) < _e107) {
            uint _e114 = params.x_pixel;
            float _e118 = x[row + ((left + 0u) * _e114)];
            d0_0_ = static_cast<float>(_e118);
        }
        uint _e124 = params.in_x;
        if ((left + 1u) < _e124) {
            uint _e131 = params.x_pixel;
            float _e135 = x[row + ((left + 1u) * _e131)];
            d0_1_ = static_cast<float>(_e135);
        }
        uint _e141 = params.in_x;
        if ((left + 2u) < _e141) {
            uint _e148 = params.x_pixel;
            float _e152 = x[row + ((left + 2u) * _e148)];
            d0_2_ = static_cast<float>(_e152);
        }
        uint _e158 = params.in_x;
        if ((left + 3u) < _e158) {
            uint _e165 = params.x_pixel;
            float _e169 = x[row + ((left + 3u) * _e165)];
            d0_3_ = static_cast<float>(_e169);
        }
    }
    uint _e183 = params.in_y;
    if ((top + 1u) < _e183) {
        uint _e189 = params.in_x;
        uint _e193 = params.x_pixel;
        uint row_1 = start + (((top + 1u) * _e189) * _e193);
        uint _e200 = params.in_x;
        if ((left + 0u) < _e200) {
            uint _e207 = params.x_pixel;
            float _e211 = x[row_1 + ((left + 0u) * _e207)];
            d1_0_ = static_cast<float>(_e211);
        }
        uint _e217 = params.in_x;
        if ((left + 1u) < _e217) {
            uint _e224 = params.x_pixel;
            float _e228 = x[row_1 + ((left + 1u) * _e224)];
            d1_1_ = static_cast<float>(_e228);
        }
        uint _e234 = params.in_x;
        if ((left + 2u) < _e234) {
            uint _e241 = params.x_pixel;
            float _e245 = x[row_1 + ((left + 2u) * _e241)];
            d1_2_ = static_cast<float>(_e245);
        }
        uint _e251 = params.in_x;
        if ((left + 3u) < _e251) {
            uint _e258 = params.x_pixel;
            float _e262 = x[row_1 + ((left + 3u) * _e258)];
            d1_3_ = static_cast<float>(_e262);
        }
    }
    uint _e276 = params.in_y;
    if ((top + 2u) < _e276) {
        uint _e282 = params.in_x;
        uint _e286 = params.x_pixel;
        uint row_2 = start + (((top + 2u) * _e282) * _e286);
        uint _e293 = params.in_x;
        if ((left + 0u) < _e293) {
            uint _e300 = params.x_pixel;
            float _e304 = x[row_2 + ((left + 0u) * _e300)];
            d2_0_ = static_cast<float>(_e304);
        }
        uint _e310 = params.in_x;
        if ((left + 1u) < _e310) {
            uint _e317 = params.x_pixel;
            float _e321 = x[row_2 + ((left + 1u) * _e317)];
            d2_1_ = static_cast<float>(_e321);
        }
        uint _e327 = params.in_x;
        if ((left + 2u) < _e327) {
            uint _e334 = params.x_pixel;
            float _e338 = x[row_2 + ((left + 2u) * _e334)];
            d2_2_ = static_cast<float>(_e338);
        }
        uint _e344 = params.in_x;
        if ((left + 3u) < _e344) {
            uint _e351 = params.x_pixel;
            float _e355 = x[row_2 + ((left + 3u) * _e351)];
            d2_3_ = static_cast<float>(_e355);
        }
    }
    uint _e369 = params.in_y;
    if ((top + 3u) < _e369) {
        uint _e375 = params.in_x;
        uint _e379 = params.x_pixel;
        uint row_3 = start + (((top + 3u) * _e375) * _e379);
        uint _e386 = params.in_x;
        if ((left + 0u) < _e386) {
            uint _e393 = params.x_pixel;
            float _e397 = x[row_3 + ((left + 0u) * _e393)];
            d3_0_ = static_cast<float>(_e397);
        }
        uint _e403 = params.in_x;
        if ((left + 1u) < _e403) {
            uint _e410 = params.x_pixel;
            float _e414 = x[row_3 + ((left + 1u) * _e410)];
            d3_1_ = static_cast<float>(_e414);
        }
        uint _e420 = params.in_x;
        if ((left + 2u) < _e420) {
            uint _e427 = params.x_pixel;
            float _e431 = x[row_3 + ((left + 2u) * _e427)];
            d3_2_ = static_cast<float>(_e431);
        }
        uint _e437 = params.in_x;
        if ((left + 3u) < _e437) {
            uint _e444 = params.x_pixel;
            float _e448 = x[row_3 + ((left + 3u) * _e444)];
            d3_3_ = static_cast<float>(_e448);
        }
    }
    float _e450 = d0_0_;
    float _e451 = d2_0_;
    float t0_0_ = _e450 - _e451;
    float _e453 = d0_1_;
    float _e454 = d2_1_;
    float t0_1_ = _e453 - _e454;
    float _e456 = d0_2_;
    float _e457 = d2_2_;
    float t0_2_ = _e456 - _e457;
    float _e459 = d0_3_;
    float _e460 = d2_3_;
    float t0_3_ = _e459 - _e460;
    float _e462 = d1_0_;
    float _e463 = d2_0_;
    float t1_0_ = _e462 + _e463;
    float _e465 = d1_1_;
    float _e466 = d2_1_;
    float t1_1_ = _e465 + _e466;
    float _e468 = d1_2_;
    float _e469 = d2_2_;
    float t1_2_ = _e468 + _e469;
    float _e471 = d1_3_;
    float _e472 = d2_3_;
    float t1_3_ = _e471 + _e472;
    float _e474 = d1_0_;
    float _e476 = d2_0_;
    float t2_0_ = -(_e474) + _e476;
    float _e478 = d1_1_;
    float _e480 = d2_1_;
    float t2_1_ = -(_e478) + _e480;
    float _e482 = d1_2_;
    float _e484 = d2_2_;
    float t2_2_ = -(_e482) + _e484;
    float _e486 = d1_3_;
    float _e488 = d2_3_;
    float t2_3_ = -(_e486) + _e488;
    float _e490 = d1_0_;
    float _e491 = d3_0_;
    float t3_0_ = _e490 - _e491;
    float _e493 = d1_1_;
    float _e494 = d3_1_;
    float t3_1_ = _e493 - _e494;
    float _e496 = d1_2_;
    float _e497 = d3_2_;
    float t3_2_ = _e496 - _e497;
    float _e499 = d1_3_;
    float _e500 = d3_3_;
    float t3_3_ = _e499 - _e500;
    float v0_0_ = t0_0_ - t0_2_;
    float v0_1_ = t0_1_ + t0_2_;
    float v0_2_ = -(t0_1_) + t0_2_;
    float v0_3_ = t0_1_ - t0_3_;
    float v1_0_ = t1_0_ - t1_2_;
    float v1_1_ = t1_1_ + t1_2_;
    float v1_2_ = -(t1_1_) + t1_2_;
    float v1_3_ = t1_1_ - t1_3_;
    float v2_0_ = t2_0_ - t2_2_;
    float v2_1_ = t2_1_ + t2_2_;
    float v2_2_ = -(t2_1_) + t2_2_;
    float v2_3_ = t2_1_ - t2_3_;
    float v3_0_ = t3_0_ - t3_2_;
    float v3_1_ = t3_1_ + t3_2_;
    float v3_2_ = -(t3_1_) + t3_2_;
    float v3_3_ = t3_1_ - t3_3_;
    uint _e524 = params.columns;
    uint _e527 = params.channels;
    uint cell = _e524 * _e527;
    tiles[at + (0u * cell)] = static_cast<half>(v0_0_);
    tiles[at + (1u * cell)] = static_cast<half>(v0_1_);
    tiles[at + (2u * cell)] = static_cast<half>(v0_2_);
    tiles[at + (3u * cell)] = static_cast<half>(v0_3_);
    tiles[at + (4u * cell)] = static_cast<half>(v1_0_);
    tiles[at + (5u * cell)] = static_cast<half>(v1_1_);
    tiles[at + (6u * cell)] = static_cast<half>(v1_2_);
    tiles[at + (7u * cell)] = static_cast<half>(v1_3_);
    tiles[at + (8u * cell)] = static_cast<half>(v2_0_);
    tiles[at + (9u * cell)] = static_cast<half>(v2_1_);
    tiles[at + (10u * cell)] = static_cast<half>(v2_2_);
    tiles[at + (11u * cell)] = static_cast<half>(v2_3_);
    tiles[at + (12u * cell)] = static_cast<half>(v3_0_);
    tiles[at + (13u * cell)] = static_cast<half>(v3_1_);
    tiles[at + (14u * cell)] = static_cast<half>(v3_2_);
    tiles[at + (15u * cell)] = static_cast<half>(v3_3_);
    return;
}
