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

typedef metal::half4 type_2[1];
typedef metal::uint4 type_5[1];
typedef uint type_6[1];
typedef half type_7[1];
struct type_8 {
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
    type_8 outputs;
};
struct type_11 {
    metal::float4 inner[72];
};

void store(
    uint which_1,
    uint row,
    uint column,
    float value,
    device type_7& y0_,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e7 = params.widths[which_1];
    uint at = (row * _e7) + column;
    {
        y0_[at] = static_cast<half>(value);
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
, device type_6 const& factors [[buffer(2)]]
, device type_7& y0_ [[buffer(3)]]
, constant Params& params [[buffer(4)]]
, threadgroup type_11& xs
, constant _mslBufferSizes& _buffer_sizes [[buffer(5)]]
) {
    uint which = 0u;
    metal::uint4 q0_ = metal::uint4 {};
    metal::uint2 s0_0_ = metal::uint2 {};
    float sum0_0_ = 0.0;
    metal::uint4 q1_ = metal::uint4 {};
    metal::uint2 s1_0_ = metal::uint2 {};
    float sum1_0_ = 0.0;
    uint base = 0u;
    bool local_1 = {};
    uint u = {};
    float part0_0_ = {};
    float part1_0_ = {};
    bool local_2 = {};
    bool local_3 = {};
    uint index = group.x + (group.y * groups.x);
    uint _e11 = params.cuts;
    uint number = index / _e11;
    uint _e15 = params.end;
    if (number >= _e15) {
        return;
    }
    uint _e21 = which;
    metal::uint4 own = params.outputs.inner[_e21];
    uint lane = local % 8u;
    uint first = (((number - own.x) * 32u) + (local / 8u)) * 2u;
    uint last = own.y - 1u;
    uint _e40 = params.cuts;
    uint m0_ = (index % _e40) * 1u;
    uint _e46 = params.columns;
    uint x_quads = _e46 >> 2u;
    uint row0_ = own.z + metal::min(first + 0u, last);
    uint _e56 = params.units;
    uint at0_ = row0_ * _e56;
    uint _e60 = params.factor_words;
    uint factors0_ = row0_ * _e60;
    uint row1_ = own.z + metal::min(first + 1u, last);
    uint _e75 = params.units;
    uint at1_ = row1_ * _e75;
    uint _e79 = params.factor_words;
    uint factors1_ = row1_ * _e79;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e991 = base;
            base = _e991 + 8u;
        }
        loop_init = false;
        uint _e89 = base;
        uint _e92 = params.units;
        if (_e89 < _e92) {
        } else {
            break;
        }
        {
            {
                uint _e94 = base;
                uint _e98 = params.units;
                uint unit = metal::min(_e94 + lane, _e98 - 1u);
                metal::uint4 _e105 = low[at0_ + unit];
                q0_ = _e105;
                uint _e113 = factors[factors0_ + ((unit >> 0u) >> 1u)];
                s0_0_ = metal::uint2(_e113, 0u);
                metal::uint4 _e119 = low[at1_ + unit];
                q1_ = _e119;
                uint _e127 = factors[factors1_ + ((unit >> 0u) >> 1u)];
                s1_0_ = metal::uint2(_e127, 0u);
            }
            uint v0_ = local + 0u;
            uint _e139 = params.m;
            uint _e144 = base;
            metal::half4 _e155 = x[(metal::min(m0_ + (v0_ / 64u), _e139 - 1u) * x_quads) + metal::min((_e144 * 8u) + (v0_ % 64u), x_quads - 1u)];
            uint _e162 = params.m;
            if ((m0_ + (v0_ / 64u)) < _e162) {
                uint _e166 = base;
                local_1 = ((_e166 * 8u) + (v0_ % 64u)) < x_quads;
            } else {
                local_1 = false;
            }
            bool _e174 = local_1;
            metal::float4 x0_ = _e174 ? static_cast<metal::float4>(_e155) : metal::float4 {};
            {
                uint i = v0_ / 64u;
                uint w = v0_ % 64u;
                uint g = w % 8u;
                if (v0_ < 64u) {
                    metal::float4 scale = ((g & 1u) == 1u) ? metal::float4(0.0625, 0.00024414063, 0.0625, 0.00024414063) : metal::float4(1.0, 0.00390625, 1.0, 0.00390625);
                    xs.inner[(((i * 8u) + g) * 9u) + (w / 8u)] = x0_ * scale;
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e213 = params.units;
            uint _e214 = base;
            uint count = metal::min(8u, _e213 - _e214);
            u = lane;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e988 = u;
                    u = _e988 + 8u;
                }
                loop_init_1 = false;
                uint _e218 = u;
                if (_e218 < count) {
                } else {
                    break;
                }
                {
                    uint _e220 = base;
                    uint _e221 = u;
                    uint unit_1 = _e220 + _e221;
                    metal::uint4 c0_ = q0_;
                    metal::uint2 t0_0_ = s0_0_;
                    metal::uint4 c1_ = q1_;
                    metal::uint2 t1_0_ = s1_0_;
                    {
                        uint _e227 = base;
                        uint _e228 = u;
                        uint _e234 = params.units;
                        uint unit_2 = metal::min((_e227 + _e228) + 8u, _e234 - 1u);
                        metal::uint4 _e241 = low[at0_ + unit_2];
                        q0_ = _e241;
                        uint _e249 = factors[factors0_ + ((unit_2 >> 0u) >> 1u)];
                        s0_0_ = metal::uint2(_e249, 0u);
                        metal::uint4 _e255 = low[at1_ + unit_2];
                        q1_ = _e255;
                        uint _e263 = factors[factors1_ + ((unit_2 >> 0u) >> 1u)];
                        s1_0_ = metal::uint2(_e263, 0u);
                    }
                    {
                        uint block = unit_1 >> 0u;
                        metal::float2 f0_ = metal::float2(float2(as_type<half2>((t0_0_.x >> ((block & 1u) * 16u)))).x, 0.0);
                        metal::float2 f1_ = metal::float2(float2(as_type<half2>((t1_0_.x >> ((block & 1u) * 16u)))).x, 0.0);
                        part0_0_ = 0.0;
                        part1_0_ = 0.0;
                        {
                            metal::float4 w0_ = as_type<metal::float4>(((metal::uint4(c0_.x) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0);
                            metal::float4 w1_ = as_type<metal::float4>(((metal::uint4(c1_.x) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0);
                            uint _e342 = u;
                            metal::float4 x0_1 = xs.inner[0u + _e342];
                            float _e348 = part0_0_;
                            part0_0_ = metal::fma(w0_.x, x0_1.x, _e348);
                            float _e352 = part0_0_;
                            part0_0_ = metal::fma(w0_.y, x0_1.y, _e352);
                            float _e356 = part0_0_;
                            part0_0_ = metal::fma(w0_.z, x0_1.z, _e356);
                            float _e360 = part0_0_;
                            part0_0_ = metal::fma(w0_.w, x0_1.w, _e360);
                            float _e364 = part1_0_;
                            part1_0_ = metal::fma(w1_.x, x0_1.x, _e364);
                            float _e368 = part1_0_;
                            part1_0_ = metal::fma(w1_.y, x0_1.y, _e368);
                            float _e372 = part1_0_;
                            part1_0_ = metal::fma(w1_.z, x0_1.z, _e372);
                            float _e376 = part1_0_;
                            part1_0_ = metal::fma(w1_.w, x0_1.w, _e376);
                        }
                        {
                            metal::float4 w0_1 = as_type<metal::float4>(((metal::uint4(c0_.x) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
                            metal::float4 w1_1 = as_type<metal::float4>(((metal::uint4(c1_.x) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
                            uint _e428 = u;
                            metal::float4 x0_2 = xs.inner[9u + _e428];
                            float _e434 = part0_0_;
                            part0_0_ = metal::fma(w0_1.x, x0_2.x, _e434);
                            float _e438 = part0_0_;
                            part0_0_ = metal::fma(w0_1.y, x0_2.y, _e438);
                            float _e442 = part0_0_;
                            part0_0_ = metal::fma(w0_1.z, x0_2.z, _e442);
                            float _e446 = part0_0_;
                            part0_0_ = metal::fma(w0_1.w, x0_2.w, _e446);
                            float _e450 = part1_0_;
                            part1_0_ = metal::fma(w1_1.x, x0_2.x, _e450);
                            float _e454 = part1_0_;
                            part1_0_ = metal::fma(w1_1.y, x0_2.y, _e454);
                            float _e458 = part1_0_;
                            part1_0_ = metal::fma(w1_1.z, x0_2.z, _e458);
                            float _e462 = part1_0_;
                            part1_0_ = metal::fma(w1_1.w, x0_2.w, _e462);
                        }
                        {
                            metal::float4 w0_2 = as_type<metal::float4>(((metal::uint4(c0_.y) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0);
                            metal::float4 w1_2 = as_type<metal::float4>(((metal::uint4(c1_.y) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0);
                            uint _e514 = u;
                            metal::float4 x0_3 = xs.inner[18u + _e514];
                            float _e520 = part0_0_;
                            part0_0_ = metal::fma(w0_2.x, x0_3.x, _e520);
                            float _e524 = part0_0_;
                            part0_0_ = metal::fma(w0_2.y, x0_3.y, _e524);
                            float _e528 = part0_0_;
                            part0_0_ = metal::fma(w0_2.z, x0_3.z, _e528);
                            float _e532 = part0_0_;
                            part0_0_ = metal::fma(w0_2.w, x0_3.w, _e532);
                            float _e536 = part1_0_;
                            part1_0_ = metal::fma(w1_2.x, x0_3.x, _e536);
                            float _e540 = part1_0_;
                            part1_0_ = metal::fma(w1_2.y, x0_3.y, _e540);
                            float _e544 = part1_0_;
                            part1_0_ = metal::fma(w1_2.z, x0_3.z, _e544);
                            float _e548 = part1_0_;
                            part1_0_ = metal::fma(w1_2.w, x0_3.w, _e548);
                        }
                        {
                            metal::float4 w0_3 = as_type<metal::float4>(((metal::uint4(c0_.y) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
                            metal::float4 w1_3 = as_type<metal::float4>(((metal::uint4(c1_.y) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
                            uint _e600 = u;
                            metal::float4 x0_4 = xs.inner[27u + _e600];
                            float _e606 = part0_0_;
                            part0_0_ = metal::fma(w0_3.x, x0_4.x, _e606);
                            float _e610 = part0_0_;
                            part0_0_ = metal::fma(w0_3.y, x0_4.y, _e610);
                            float _e614 = part0_0_;
                            part0_0_ = metal::fma(w0_3.z, x0_4.z, _e614);
                            float _e618 = part0_0_;
                            part0_0_ = metal::fma(w0_3.w, x0_4.w, _e618);
                            float _e622 = part1_0_;
                            part1_0_ = metal::fma(w1_3.x, x0_4.x, _e622);
                            float _e626 = part1_0_;
                            part1_0_ = metal::fma(w1_3.y, x0_4.y, _e626);
                            float _e630 = part1_0_;
                            part1_0_ = metal::fma(w1_3.z, x0_4.z, _e630);
                            float _e634 = part1_0_;
                            part1_0_ = metal::fma(w1_3.w, x0_4.w, _e634);
                        }
                        {
                            metal::float4 w0_4 = as_type<metal::float4>(((metal::uint4(c0_.z) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0);
                            metal::float4 w1_4 = as_type<metal::float4>(((metal::uint4(c1_.z) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0);
                            uint _e686 = u;
                            metal::float4 x0_5 = xs.inner[36u + _e686];
                            float _e692 = part0_0_;
                            part0_0_ = metal::fma(w0_4.x, x0_5.x, _e692);
                            float _e696 = part0_0_;
                            part0_0_ = metal::fma(w0_4.y, x0_5.y, _e696);
                            float _e700 = part0_0_;
                            part0_0_ = metal::fma(w0_4.z, x0_5.z, _e700);
                            float _e704 = part0_0_;
                            part0_0_ = metal::fma(w0_4.w, x0_5.w, _e704);
                            float _e708 = part1_0_;
                            part1_0_ = metal::fma(w1_4.x, x0_5.x, _e708);
                            float _e712 = part1_0_;
                            part1_0_ = metal::fma(w1_4.y, x0_5.y, _e712);
                            float _e716 = part1_0_;
                            part1_0_ = metal::fma(w1_4.z, x0_5.z, _e716);
                            float _e720 = part1_0_;
                            part1_0_ = metal::fma(w1_4.w, x0_5.w, _e720);
                        }
                        {
                            metal::float4 w0_5 = as_type<metal::float4>(((metal::uint4(c0_.z) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
                            metal::float4 w1_5 = as_type<metal::float4>(((metal::uint4(c1_.z) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
                            uint _e772 = u;
                            metal::float4 x0_6 = xs.inner[45u + _e772];
                            float _e778 = part0_0_;
                            part0_0_ = metal::fma(w0_5.x, x0_6.x, _e778);
                            float _e782 = part0_0_;
                            part0_0_ = metal::fma(w0_5.y, x0_6.y, _e782);
                            float _e786 = part0_0_;
                            part0_0_ = metal::fma(w0_5.z, x0_6.z, _e786);
                            float _e790 = part0_0_;
                            part0_0_ = metal::fma(w0_5.w, x0_6.w, _e790);
                            float _e794 = part1_0_;
                            part1_0_ = metal::fma(w1_5.x, x0_6.x, _e794);
                            float _e798 = part1_0_;
                            part1_0_ = metal::fma(w1_5.y, x0_6.y, _e798);
                            float _e802 = part1_0_;
                            part1_0_ = metal::fma(w1_5.z, x0_6.z, _e802);
                            float _e806 = part1_0_;
                            part1_0_ = metal::fma(w1_5.w, x0_6.w, _e806);
                        }
                        {
                            metal::float4 w0_6 = as_type<metal::float4>(((metal::uint4(c0_.w) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0);
                            metal::float4 w1_6 = as_type<metal::float4>(((metal::uint4(c1_.w) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0);
                            uint _e858 = u;
                            metal::float4 x0_7 = xs.inner[54u + _e858];
                            float _e864 = part0_0_;
                            part0_0_ = metal::fma(w0_6.x, x0_7.x, _e864);
                            float _e868 = part0_0_;
                            part0_0_ = metal::fma(w0_6.y, x0_7.y, _e868);
                            float _e872 = part0_0_;
                            part0_0_ = metal::fma(w0_6.z, x0_7.z, _e872);
                            float _e876 = part0_0_;
                            part0_0_ = metal::fma(w0_6.w, x0_7.w, _e876);
                            float _e880 = part1_0_;
                            part1_0_ = metal::fma(w1_6.x, x0_7.x, _e880);
                            float _e884 = part1_0_;
                            part1_0_ = metal::fma(w1_6.y, x0_7.y, _e884);
                            float _e888 = part1_0_;
                            part1_0_ = metal::fma(w1_6.z, x0_7.z, _e888);
                            float _e892 = part1_0_;
                            part1_0_ = metal::fma(w1_6.w, x0_7.w, _e892);
                        }
                        {
                            metal::float4 w0_7 = as_type<metal::float4>(((metal::uint4(c0_.w) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
                            metal::float4 w1_7 = as_type<metal::float4>(((metal::uint4(c1_.w) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
                            uint _e944 = u;
                            metal::float4 x0_8 = xs.inner[63u + _e944];
                            float _e950 = part0_0_;
                            part0_0_ = metal::fma(w0_7.x, x0_8.x, _e950);
                            float _e954 = part0_0_;
                            part0_0_ = metal::fma(w0_7.y, x0_8.y, _e954);
                            float _e958 = part0_0_;
                            part0_0_ = metal::fma(w0_7.z, x0_8.z, _e958);
                            float _e962 = part0_0_;
                            part0_0_ = metal::fma(w0_7.w, x0_8.w, _e962);
                            float _e966 = part1_0_;
                            part1_0_ = metal::fma(w1_7.x, x0_8.x, _e966);
                            float _e970 = part1_0_;
                            part1_0_ = metal::fma(w1_7.y, x0_8.y, _e970);
                            float _e974 = part1_0_;
                            part1_0_ = metal::fma(w1_7.z, x0_8.z, _e974);
                            float _e978 = part1_0_;
                            part1_0_ = metal::fma(w1_7.w, x0_8.w, _e978);
                        }
                        float _e981 = part0_0_;
                        float _e982 = sum0_0_;
                        sum0_0_ = metal::fma(f0_.x, _e981, _e982);
                        float _e985 = part1_0_;
                        float _e986 = sum1_0_;
                        sum1_0_ = metal::fma(f1_.x, _e985, _e986);
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    uint near = metal::min(subgroup, 8u);
    float _e996 = sum0_0_;
    float _e997 = sum0_0_;
    float unnamed = metal::simd_shuffle_xor(_e997, 1u);
    sum0_0_ = _e996 + unnamed;
    float _e1001 = sum0_0_;
    float _e1002 = sum0_0_;
    float unnamed_1 = metal::simd_shuffle_xor(_e1002, 2u);
    sum0_0_ = _e1001 + unnamed_1;
    float _e1006 = sum0_0_;
    float _e1007 = sum0_0_;
    float unnamed_2 = metal::simd_shuffle_xor(_e1007, 4u);
    sum0_0_ = _e1006 + unnamed_2;
    float _e1011 = sum1_0_;
    float _e1012 = sum1_0_;
    float unnamed_3 = metal::simd_shuffle_xor(_e1012, 1u);
    sum1_0_ = _e1011 + unnamed_3;
    float _e1016 = sum1_0_;
    float _e1017 = sum1_0_;
    float unnamed_4 = metal::simd_shuffle_xor(_e1017, 2u);
    sum1_0_ = _e1016 + unnamed_4;
    float _e1021 = sum1_0_;
    float _e1022 = sum1_0_;
    float unnamed_5 = metal::simd_shuffle_xor(_e1022, 4u);
    sum1_0_ = _e1021 + unnamed_5;
    if (lane == 0u) {
        if ((first + 0u) < own.y) {
            uint _e1038 = params.m;
            local_2 = (m0_ + 0u) < _e1038;
        } else {
            local_2 = false;
        }
        bool _e1041 = local_2;
        if (_e1041) {
            uint _e1042 = which;
            float _e1049 = sum0_0_;
            store(_e1042, m0_ + 0u, (own.w + first) + 0u, _e1049, y0_, params, _buffer_sizes);
        }
        if ((first + 1u) < own.y) {
            uint _e1060 = params.m;
            local_3 = (m0_ + 0u) < _e1060;
        } else {
            local_3 = false;
        }
        bool _e1063 = local_3;
        if (_e1063) {
            uint _e1064 = which;
            float _e1071 = sum1_0_;
            store(_e1064, m0_ + 0u, (own.w + first) + 1u, _e1071, y0_, params, _buffer_sizes);
            return;
        } else {
            return;
        }
    } else {
        return;
    }
}
