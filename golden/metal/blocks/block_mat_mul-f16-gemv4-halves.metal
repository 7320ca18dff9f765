// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
};

typedef metal::float4 type_2[1];
typedef metal::uint4 type_5[1];
typedef float type_6[1];
struct type_7 {
    metal::uint4 inner[4];
};
struct Params {
    uint units;
    uint columns;
    uint m;
    uint factor_words;
    uint wholes;
    uint end;
    uint cuts;
    uint part;
    metal::uint4 widths;
    type_7 outputs;
};
struct type_8 {
    metal::float4 inner[520];
};

void store(
    uint which_1,
    uint row,
    uint column,
    float value,
    device type_6& y0_,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e7 = params.widths[which_1];
    uint at = (row * _e7) + column;
    {
        y0_[at] = static_cast<float>(value);
        return;
    }
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint local [[thread_index_in_threadgroup]]
, uint subgroup [[threads_per_simdgroup]]
, device type_2 const& x [[buffer(0)]]
, device type_5 const& low [[buffer(1)]]
, device type_6& y0_ [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, threadgroup type_8& xs
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    uint which = 0u;
    metal::uint4 q0_ = metal::uint4 {};
    float sum0_0_ = 0.0;
    float sum0_1_ = 0.0;
    float sum0_2_ = 0.0;
    float sum0_3_ = 0.0;
    metal::uint4 q1_ = metal::uint4 {};
    float sum1_0_ = 0.0;
    float sum1_1_ = 0.0;
    float sum1_2_ = 0.0;
    float sum1_3_ = 0.0;
    uint base = 0u;
    bool local_1 = {};
    bool local_2 = {};
    uint u = {};
    float part0_0_ = {};
    float part1_0_ = {};
    float part0_1_ = {};
    float part1_1_ = {};
    float part0_2_ = {};
    float part1_2_ = {};
    float part0_3_ = {};
    float part1_3_ = {};
    bool local_3 = {};
    bool local_4 = {};
    bool local_5 = {};
    bool local_6 = {};
    bool local_7 = {};
    bool local_8 = {};
    bool local_9 = {};
    bool local_10 = {};
    uint index = group.x + (group.y * groups.x);
    uint _e11 = params.cuts;
    uint number = index / _e11;
    uint _e15 = params.end;
    if (number >= _e15) {
        return;
    }
    uint _e21 = which;
    metal::uint4 own = params.outputs.inner[_e21];
    uint lane = local % 32u;
    uint first = (((number - own.x) * 8u) + (local / 32u)) * 2u;
    uint last = own.y - 1u;
    uint _e40 = params.cuts;
    uint m0_ = (index % _e40) * 4u;
    uint _e46 = params.columns;
    uint x_quads = _e46 >> 2u;
    uint row0_ = own.z + metal::min(first + 0u, last);
    uint _e56 = params.units;
    uint at0_ = row0_ * _e56;
    uint _e60 = params.factor_words;
    uint factors0_ = row0_ * _e60;
    uint row1_ = own.z + metal::min(first + 1u, last);
    uint _e79 = params.units;
    uint at1_ = row1_ * _e79;
    uint _e83 = params.factor_words;
    uint factors1_ = row1_ * _e83;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e647 = base;
            base = _e647 + 64u;
        }
        loop_init = false;
        uint _e97 = base;
        uint _e100 = params.units;
        if (_e97 < _e100) {
        } else {
            break;
        }
        {
            {
                uint _e102 = base;
                uint _e106 = params.units;
                uint unit = metal::min(_e102 + lane, _e106 - 1u);
                metal::uint4 _e113 = low[at0_ + unit];
                q0_ = _e113;
                metal::uint4 _e117 = low[at1_ + unit];
                q1_ = _e117;
            }
            uint v0_ = local + 0u;
            uint _e127 = params.m;
            uint _e132 = base;
            metal::float4 _e143 = x[(metal::min(m0_ + (v0_ / 128u), _e127 - 1u) * x_quads) + metal::min((_e132 * 2u) + (v0_ % 128u), x_quads - 1u)];
            uint _e150 = params.m;
            if ((m0_ + (v0_ / 128u)) < _e150) {
                uint _e154 = base;
                local_1 = ((_e154 * 2u) + (v0_ % 128u)) < x_quads;
            } else {
                local_1 = false;
            }
            bool _e162 = local_1;
            metal::float4 x0_ = _e162 ? static_cast<metal::float4>(_e143) : metal::float4 {};
            uint v1_ = local + 256u;
            uint _e173 = params.m;
            uint _e178 = base;
            metal::float4 _e189 = x[(metal::min(m0_ + (v1_ / 128u), _e173 - 1u) * x_quads) + metal::min((_e178 * 2u) + (v1_ % 128u), x_quads - 1u)];
            uint _e196 = params.m;
            if ((m0_ + (v1_ / 128u)) < _e196) {
                uint _e200 = base;
                local_2 = ((_e200 * 2u) + (v1_ % 128u)) < x_quads;
            } else {
                local_2 = false;
            }
            bool _e208 = local_2;
            metal::float4 x1_ = _e208 ? static_cast<metal::float4>(_e189) : metal::float4 {};
            {
                uint i = v0_ / 128u;
                uint w = v0_ % 128u;
                uint g = w % 2u;
                if (v0_ < 512u) {
                    xs.inner[(((i * 2u) + g) * 65u) + (w / 2u)] = x0_;
                }
            }
            {
                uint i_1 = v1_ / 128u;
                uint w_1 = v1_ % 128u;
                uint g_1 = w_1 % 2u;
                if (v1_ < 512u) {
                    xs.inner[(((i_1 * 2u) + g_1) * 65u) + (w_1 / 2u)] = x1_;
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e249 = params.units;
            uint _e250 = base;
            uint count = metal::min(64u, _e249 - _e250);
            u = lane;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e644 = u;
                    u = _e644 + 32u;
                }
                loop_init_1 = false;
                uint _e254 = u;
                if (_e254 < count) {
                } else {
                    break;
                }
                {
                    uint _e256 = base;
                    uint _e257 = u;
                    uint unit_1 = _e256 + _e257;
                    metal::uint4 c0_ = q0_;
                    metal::uint4 c1_ = q1_;
                    {
                        uint _e261 = base;
                        uint _e262 = u;
                        uint _e268 = params.units;
                        uint unit_2 = metal::min((_e261 + _e262) + 32u, _e268 - 1u);
                        metal::uint4 _e275 = low[at0_ + unit_2];
                        q0_ = _e275;
                        metal::uint4 _e279 = low[at1_ + unit_2];
                        q1_ = _e279;
                    }
                    {
                        part0_0_ = 0.0;
                        part1_0_ = 0.0;
                        part0_1_ = 0.0;
                        part1_1_ = 0.0;
                        part0_2_ = 0.0;
                        part1_2_ = 0.0;
                        part0_3_ = 0.0;
                        part1_3_ = 0.0;
                        {
                            metal::float4 w0_ = metal::float4(float2(as_type<half2>(c0_.x)), float2(as_type<half2>(c0_.y)));
                            metal::float4 w1_ = metal::float4(float2(as_type<half2>(c1_.x)), float2(as_type<half2>(c1_.y)));
                            uint _e308 = u;
                            metal::float4 x0_1 = xs.inner[0u + _e308];
                            float _e314 = part0_0_;
                            part0_0_ = metal::fma(w0_.x, x0_1.x, _e314);
                            float _e318 = part0_0_;
                            part0_0_ = metal::fma(w0_.y, x0_1.y, _e318);
                            float _e322 = part0_0_;
                            part0_0_ = metal::fma(w0_.z, x0_1.z, _e322);
                            float _e326 = part0_0_;
                            part0_0_ = metal::fma(w0_.w, x0_1.w, _e326);
                            float _e330 = part1_0_;
                            part1_0_ = metal::fma(w1_.x, x0_1.x, _e330);
                            float _e334 = part1_0_;
                            part1_0_ = metal::fma(w1_.y, x0_1.y, _e334);
                            float _e338 = part1_0_;
                            part1_0_ = metal::fma(w1_.z, x0_1.z, _e338);
                            float _e342 = part1_0_;
                            part1_0_ = metal::fma(w1_.w, x0_1.w, _e342);
                            uint _e346 = u;
                            metal::float4 x1_1 = xs.inner[130u + _e346];
                            float _e352 = part0_1_;
                            part0_1_ = metal::fma(w0_.x, x1_1.x, _e352);
                            float _e356 = part0_1_;
                            part0_1_ = metal::fma(w0_.y, x1_1.y, _e356);
                            float _e360 = part0_1_;
                            part0_1_ = metal::fma(w0_.z, x1_1.z, _e360);
                            float _e364 = part0_1_;
                            part0_1_ = metal::fma(w0_.w, x1_1.w, _e364);
                            float _e368 = part1_1_;
                            part1_1_ = metal::fma(w1_.x, x1_1.x, _e368);
                            float _e372 = part1_1_;
                            part1_1_ = metal::fma(w1_.y, x1_1.y, _e372);
                            float _e376 = part1_1_;
                            part1_1_ = metal::fma(w1_.z, x1_1.z, _e376);
                            float _e380 = part1_1_;
                            part1_1_ = metal::fma(w1_.w, x1_1.w, _e380);
                            uint _e384 = u;
                            metal::float4 x2_ = xs.inner[260u + _e384];
                            float _e390 = part0_2_;
                            part0_2_ = metal::fma(w0_.x, x2_.x, _e390);
                            float _e394 = part0_2_;
                            part0_2_ = metal::fma(w0_.y, x2_.y, _e394);
                            float _e398 = part0_2_;
                            part0_2_ = metal::fma(w0_.z, x2_.z, _e398);
                            float _e402 = part0_2_;
                            part0_2_ = metal::fma(w0_.w, x2_.w, _e402);
                            float _e406 = part1_2_;
                            part1_2_ = metal::fma(w1_.x, x2_.x, _e406);
                            float _e410 = part1_2_;
                            part1_2_ = metal::fma(w1_.y, x2_.y, _e410);
                            float _e414 = part1_2_;
                            part1_2_ = metal::fma(w1_.z, x2_.z, _e414);
                            float _e418 = part1_2_;
                            part1_2_ = metal::fma(w1_.w, x2_.w, _e418);
                            uint _e422 = u;
                            metal::float4 x3_ = xs.inner[390u + _e422];
                            float _e428 = part0_3_;
                            part0_3_ = metal::fma(w0_.x, x3_.x, _e428);
                            float _e432 = part0_3_;
                            part0_3_ = metal::fma(w0_.y, x3_.y, _e432);
                            float _e436 = part0_3_;
                            part0_3_ = metal::fma(w0_.z, x3_.z, _e436);
                            float _e440 = part0_3_;
                            part0_3_ = metal::fma(w0_.w, x3_.w, _e440);
                            float _e444 = part1_3_;
                            part1_3_ = metal::fma(w1_.x, x3_.x, _e444);
                            float _e448 = part1_3_;
                            part1_3_ = metal::fma(w1_.y, x3_.y, _e448);
                            float _e452 = part1_3_;
                            part1_3_ = metal::fma(w1_.z, x3_.z, _e452);
                            float _e456 = part1_3_;
                            part1_3_ = metal::fma(w1_.w, x3_.w, _e456);
                        }
                        {
                            metal::float4 w0_1 = metal::float4(float2(as_type<half2>(c0_.z)), float2(as_type<half2>(c0_.w)));
                            metal::float4 w1_1 = metal::float4(float2(as_type<half2>(c1_.z)), float2(as_type<half2>(c1_.w)));
                            uint _e470 = u;
                            metal::float4 x0_2 = xs.inner[65u + _e470];
                            float _e476 = part0_0_;
                            part0_0_ = metal::fma(w0_1.x, x0_2.x, _e476);
                            float _e480 = part0_0_;
                            part0_0_ = metal::fma(w0_1.y, x0_2.y, _e480);
                            float _e484 = part0_0_;
                            part0_0_ = metal::fma(w0_1.z, x0_2.z, _e484);
                            float _e488 = part0_0_;
                            part0_0_ = metal::fma(w0_1.w, x0_2.w, _e488);
                            float _e492 = part1_0_;
                            part1_0_ = metal::fma(w1_1.x, x0_2.x, _e492);
                            float _e496 = part1_0_;
                            part1_0_ = metal::fma(w1_1.y, x0_2.y, _e496);
                            float _e500 = part1_0_;
                            part1_0_ = metal::fma(w1_1.z, x0_2.z, _e500);
                            float _e504 = part1_0_;
                            part1_0_ = metal::fma(w1_1.w, x0_2.w, _e504);
                            uint _e508 = u;
                            metal::float4 x1_2 = xs.inner[195u + _e508];
                            float _e514 = part0_1_;
                            part0_1_ = metal::fma(w0_1.x, x1_2.x, _e514);
                            float _e518 = part0_1_;
                            part0_1_ = metal::fma(w0_1.y, x1_2.y, _e518);
                            float _e522 = part0_1_;
                            part0_1_ = metal::fma(w0_1.z, x1_2.z, _e522);
                            float _e526 = part0_1_;
                            part0_1_ = metal::fma(w0_1.w, x1_2.w, _e526);
                            float _e530 = part1_1_;
                            part1_1_ = metal::fma(w1_1.x, x1_2.x, _e530);
                            float _e534 = part1_1_;
                            part1_1_ = metal::fma(w1_1.y, x1_2.y, _e534);
                            float _e538 = part1_1_;
                            part1_1_ = metal::fma(w1_1.z, x1_2.z, _e538);
                            float _e542 = part1_1_;
                            part1_1_ = metal::fma(w1_1.w, x1_2.w, _e542);
                            uint _e546 = u;
                            metal::float4 x2_1 = xs.inner[325u + _e546];
                            float _e552 = part0_2_;
                            part0_2_ = metal::fma(w0_1.x, x2_1.x, _e552);
                            float _e556 = part0_2_;
                            part0_2_ = metal::fma(w0_1.y, x2_1.y, _e556);
                            float _e560 = part0_2_;
                            part0_2_ = metal::fma(w0_1.z, x2_1.z, _e560);
                            float _e564 = part0_2_;
                            part0_2_ = metal::fma(w0_1.w, x2_1.w, _e564);
                            float _e568 = part1_2_;
                            part1_2_ = metal::fma(w1_1.x, x2_1.x, _e568);
                            float _e572 = part1_2_;
                            part1_2_ = metal::fma(w1_1.y, x2_1.y, _e572);
                            float _e576 = part1_2_;
                            part1_2_ = metal::fma(w1_1.z, x2_1.z, _e576);
                            float _e580 = part1_2_;
                            part1_2_ = metal::fma(w1_1.w, x2_1.w, _e580);
                            uint _e584 = u;
                            metal::float4 x3_1 = xs.inner[455u + _e584];
                            float _e590 = part0_3_;
                            part0_3_ = metal::fma(w0_1.x, x3_1.x, _e590);
                            float _e594 = part0_3_;
                            part0_3_ = metal::fma(w0_1.y, x3_1.y, _e594);
                            float _e598 = part0_3_;
                            part0_3_ = metal::fma(w0_1.z, x3_1.z, _e598);
                            float _e602 = part0_3_;
                            part0_3_ = metal::fma(w0_1.w, x3_1.w, _e602);
                            float _e606 = part1_3_;
                            part1_3_ = metal::fma(w1_1.x, x3_1.x, _e606);
                            float _e610 = part1_3_;
                            part1_3_ = metal::fma(w1_1.y, x3_1.y, _e610);
                            float _e614 = part1_3_;
                            part1_3_ = metal::fma(w1_1.z, x3_1.z, _e614);
                            float _e618 = part1_3_;
                            part1_3_ = metal::fma(w1_1.w, x3_1.w, _e618);
                        }
                        float _e620 = sum0_0_;
                        float _e621 = part0_0_;
                        sum0_0_ = _e620 + _e621;
                        float _e623 = sum1_0_;
                        float _e624 = part1_0_;
                        sum1_0_ = _e623 + _e624;
                        float _e626 = sum0_1_;
                        float _e627 = part0_1_;
                        sum0_1_ = _e626 + _e627;
                        float _e629 = sum1_1_;
                        float _e630 = part1_1_;
                        sum1_1_ = _e629 + _e630;
                        float _e632 = sum0_2_;
                        float _e633 = part0_2_;
                        sum0_2_ = _e632 + _e633;
                        float _e635 = sum1_2_;
                        float _e636 = part1_2_;
                        sum1_2_ = _e635 + _e636;
                        float _e638 = sum0_3_;
                        float _e639 = part0_3_;
                        sum0_3_ = _e638 + _e639;
                        float _e641 = sum1_3_;
                        float _e642 = part1_3_;
                        sum1_3_ = _e641 + _e642;
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    uint near = metal::min(subgroup, 32u);
    float _e652 = sum0_0_;
    float _e653 = sum0_0_;
    float unnamed = metal::simd_shuffle_xor(_e653, 1u);
    sum0_0_ = _e652 + unnamed;
    float _e657 = sum0_0_;
    float _e658 = sum0_0_;
    float unnamed_1 = metal::simd_shuffle_xor(_e658, 2u);
    sum0_0_ = _e657 + unnamed_1;
    float _e662 = sum0_0_;
    float _e663 = sum0_0_;
    float unnamed_2 = metal::simd_shuffle_xor(_e663, 4u);
    sum0_0_ = _e662 + unnamed_2;
    float _e667 = sum0_0_;
    float _e668 = sum0_0_;
    float unnamed_3 = metal::simd_shuffle_xor(_e668, 8u);
    sum0_0_ = _e667 + unnamed_3;
    float _e672 = sum0_0_;
    float _e673 = sum0_0_;
    float unnamed_4 = metal::simd_shuffle_xor(_e673, 16u);
    sum0_0_ = _e672 + unnamed_4;
    float _e677 = sum0_1_;
    float _e678 = sum0_1_;
    float unnamed_5 = metal::simd_shuffle_xor(_e678, 1u);
    sum0_1_ = _e677 + unnamed_5;
    float _e682 = sum0_1_;
    float _e683 = sum0_1_;
    float unnamed_6 = metal::simd_shuffle_xor(_e683, 2u);
    sum0_1_ = _e682 + unnamed_6;
    float _e687 = sum0_1_;
    float _e688 = sum0_1_;
    float unnamed_7 = metal::simd_shuffle_xor(_e688, 4u);
    sum0_1_ = _e687 + unnamed_7;
    float _e692 = sum0_1_;
    float _e693 = sum0_1_;
    float unnamed_8 = metal::simd_shuffle_xor(_e693, 8u);
    sum0_1_ = _e692 + unnamed_8;
    float _e697 = sum0_1_;
    float _e698 = sum0_1_;
    float unnamed_9 = metal::simd_shuffle_xor(_e698, 16u);
    sum0_1_ = _e697 + unnamed_9;
    float _e702 = sum0_2_;
    float _e703 = sum0_2_;
    float unnamed_10 = metal::simd_shuffle_xor(_e703, 1u);
    sum0_2_ = _e702 + unnamed_10;
    float _e707 = sum0_2_;
    float _e708 = sum0_2_;
    float unnamed_11 = metal::simd_shuffle_xor(_e708, 2u);
    sum0_2_ = _e707 + unnamed_11;
    float _e712 = sum0_2_;
    float _e713 = sum0_2_;
    float unnamed_12 = metal::simd_shuffle_xor(_e713, 4u);
    sum0_2_ = _e712 + unnamed_12;
    float _e717 = sum0_2_;
    float _e718 = sum0_2_;
    float unnamed_13 = metal::simd_shuffle_xor(_e718, 8u);
    sum0_2_ = _e717 + unnamed_13;
    float _e722 = sum0_2_;
    float _e723 = sum0_2_;
    float unnamed_14 = metal::simd_shuffle_xor(_e723, 16u);
    sum0_2_ = _e722 + unnamed_14;
    float _e727 = sum0_3_;
    float _e728 = sum0_3_;
    float unnamed_15 = metal::simd_shuffle_xor(_e728, 1u);
    sum0_3_ = _e727 + unnamed_15;
    float _e732 = sum0_3_;
    float _e733 = sum0_3_;
    float unnamed_16 = metal::simd_shuffle_xor(_e733, 2u);
    sum0_3_ = _e732 + unnamed_16;
    float _e737 = sum0_3_;
    float _e738 = sum0_3_;
    float unnamed_17 = metal::simd_shuffle_xor(_e738, 4u);
    sum0_3_ = _e737 + unnamed_17;
    float _e742 = sum0_3_;
    float _e743 = sum0_3_;
    float unnamed_18 = metal::simd_shuffle_xor(_e743, 8u);
    sum0_3_ = _e742 + unnamed_18;
    float _e747 = sum0_3_;
    float _e748 = sum0_3_;
    float unnamed_19 = metal::simd_shuffle_xor(_e748, 16u);
    sum0_3_ = _e747 + unnamed_19;
    float _e752 = sum1_0_;
    float _e753 = sum1_0_;
    float unnamed_20 = metal::simd_shuffle_xor(_e753, 1u);
    sum1_0_ = _e752 + unnamed_20;
    float _e757 = sum1_0_;
    float _e758 = sum1_0_;
    float unnamed_21 = metal::simd_shuffle_xor(_e758, 2u);
    sum1_0_ = _e757 + unnamed_21;
    float _e762 = sum1_0_;
    float _e763 = sum1_0_;
    float unnamed_22 = metal::simd_shuffle_xor(_e763, 4u);
    sum1_0_ = _e762 + unnamed_22;
    float _e767 = sum1_0_;
    float _e768 = sum1_0_;
    float unnamed_23 = metal::simd_shuffle_xor(_e768, 8u);
    sum1_0_ = _e767 + unnamed_23;
    float _e772 = sum1_0_;
    float _e773 = sum1_0_;
    float unnamed_24 = metal::simd_shuffle_xor(_e773, 16u);
    sum1_0_ = _e772 + unnamed_24;
    float _e777 = sum1_1_;
    float _e778 = sum1_1_;
    float unnamed_25 = metal::simd_shuffle_xor(_e778, 1u);
    sum1_1_ = _e777 + unnamed_25;
    float _e782 = sum1_1_;
    float _e783 = sum1_1_;
    float unnamed_26 = metal::simd_shuffle_xor(_e783, 2u);
    sum1_1_ = _e782 + unnamed_26;
    float _e787 = sum1_1_;
    float _e788 = sum1_1_;
    float unnamed_27 = metal::simd_shuffle_xor(_e788, 4u);
    sum1_1_ = _e787 + unnamed_27;
    float _e792 = sum1_1_;
    float _e793 = sum1_1_;
    float unnamed_28 = metal::simd_shuffle_xor(_e793, 8u);
    sum1_1_ = _e792 + unnamed_28;
    float _e797 = sum1_1_;
    float _e798 = sum1_1_;
    float unnamed_29 = metal::simd_shuffle_xor(_e798, 16u);
    sum1_1_ = _e797 + unnamed_29;
    float _e802 = sum1_2_;
    float _e803 = sum1_2_;
    float unnamed_30 = metal::simd_shuffle_xor(_e803, 1u);
    sum1_2_ = _e802 + unnamed_30;
    float _e807 = sum1_2_;
    float _e808 = sum1_2_;
    float unnamed_31 = metal::simd_shuffle_xor(_e808, 2u);
    sum1_2_ = _e807 + unnamed_31;
    float _e812 = sum1_2_;
    float _e813 = sum1_2_;
    float unnamed_32 = metal::simd_shuffle_xor(_e813, 4u);
    sum1_2_ = _e812 + unnamed_32;
    float _e817 = sum1_2_;
    float _e818 = sum1_2_;
    float unnamed_33 = metal::simd_shuffle_xor(_e818, 8u);
    sum1_2_ = _e817 + unnamed_33;
    float _e822 = sum1_2_;
    float _e823 = sum1_2_;
    float unnamed_34 = metal::simd_shuffle_xor(_e823, 16u);
    sum1_2_ = _e822 + unnamed_34;
    float _e827 = sum1_3_;
    float _e828 = sum1_3_;
    float unnamed_35 = metal::simd_shuffle_xor(_e828, 1u);
    sum1_3_ = _e827 + unnamed_35;
    float _e832 = sum1_3_;
    float _e833 = sum1_3_;
    float unnamed_36 = metal::simd_shuffle_xor(_e833, 2u);
    sum1_3_ = _e832 + unnamed_36;
    float _e837 = sum1_3_;
    float _e838 = sum1_3_;
    float unnamed_37 = metal::simd_shuffle_xor(_e838, 4u);
    sum1_3_ = _e837 + unnamed_37;
    float _e842 = sum1_3_;
    float _e843 = sum1_3_;
    float unnamed_38 = metal::simd_shuffle_xor(_e843, 8u);
    sum1_3_ = _e842 + unnamed_38;
    float _e847 = sum1_3_;
    float _e848 = sum1_3_;
    float unnamed_39 = metal::simd_shuffle_xor(_e848, 16u);
    sum1_3_ = _e847 + unnamed_39;
    if (lane == 0u) {
        if ((first + 0u) < own.y) {
            uint _e864 = params.m;
            local_3 = (m0_ + 0u) < _e864;
        } else {
            local_3 = false;
        }
        bool _e867 = local_3;
        if (_e867) {
            uint _e868 = which;
            float _e875 = sum0_0_;
            store(_e868, m0_ + 0u, (own.w + first) + 0u, _e875, y0_, params, _buffer_sizes);
        }
        if ((first + 1u) < own.y) {
            uint _e886 = params.m;
            local_4 = (m0_ + 0u) < _e886;
        } else {
            local_4 = false;
        }
        bool _e889 = local_4;
        if (_e889) {
            uint _e890 = which;
            float _e897 = sum1_0_;
            store(_e890, m0_ + 0u, (own.w + first) + 1u, _e897, y0_, params, _buffer_sizes);
        }
        if ((first + 0u) < own.y) {
            uint _e908 = params.m;
            local_5 = (m0_ + 1u) < _e908;
        } else {
            local_5 = false;
        }
        bool _e911 = local_5;
        if (_e911) {
            uint _e912 = which;
            float _e919 = sum0_1_;
            store(_e912, m0_ + 1u, (own.w + first) + 0u, _e919, y0_, params, _buffer_sizes);
        }
        if ((first + 1u) < own.y) {
            uint _e930 = params.m;
            local_6 = (m0_ + 1u) < _e930;
        } else {
            local_6 = false;
        }
        bool _e933 = local_6;
        if (_e933) {
            uint _e934 = which;
            float _e941 = sum1_1_;
            store(_e934, m0_ + 1u, (own.w + first) + 1u, _e941, y0_, params, _buffer_sizes);
        }
        if ((first + 0u) < own.y) {
            uint _e952 = params.m;
            local_7 = (m0_ + 2u) < _e952;
        } else {
            local_7 = false;
        }
        bool _e955 = local_7;
        if (_e955) {
            uint _e956 = which;
            float _e963 = sum0_2_;
            store(_e956, m0_ + 2u, (own.w + first) + 0u, _e963, y0_, params, _buffer_sizes);
        }
        if ((first + 1u) < own.y) {
            uint _e974 = params.m;
            local_8 = (m0_ + 2u) < _e974;
        } else {
            local_8 = false;
        }
        bool _e977 = local_8;
        if (_e977) {
            uint _e978 = which;
            float _e985 = sum1_2_;
            store(_e978, m0_ + 2u, (own.w + first) + 1u, _e985, y0_, params, _buffer_sizes);
        }
        if ((first + 0u) < own.y) {
            uint _e996 = params.m;
            local_9 = (m0_ + 3u) < _e996;
        } else {
            local_9 = false;
        }
        bool _e999 = local_9;
        if (_e999) {
            uint _e1000 = which;
            float _e1007 = sum0_3_;
            store(_e1000, m0_ + 3u, (own.w + first) + 0u, _e1007, y0_, params, _buffer_sizes);
        }
        if ((first + 1u) < own.y) {
            uint _e1018 = params.m;
            local_10 = (m0_ + 3u) < _e1018;
        } else {
            local_10 = false;
        }
        bool _e1021 = local_10;
        if (_e1021) {
            uint _e1022 = which;
            float _e1029 = sum1_3_;
            store(_e1022, m0_ + 3u, (own.w + first) + 1u, _e1029, y0_, params, _buffer_sizes);
            return;
        } else {
            return;
        }
    } else {
        return;
    }
}
