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

typedef metal::float4 type_2[1];
typedef metal::uint4 type_5[1];
typedef uint type_6[1];
typedef float type_7[1];
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
struct type_9 {
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
, device type_6 const& factors [[buffer(2)]]
, device type_7& y0_ [[buffer(3)]]
, constant Params& params [[buffer(4)]]
, threadgroup type_9& xs
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
            uint _e965 = base;
            base = _e965 + 8u;
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
                uint _e111 = factors[factors0_ + (unit >> 0u)];
                s0_0_ = metal::uint2(_e111, 0u);
                metal::uint4 _e117 = low[at1_ + unit];
                q1_ = _e117;
                uint _e123 = factors[factors1_ + (unit >> 0u)];
                s1_0_ = metal::uint2(_e123, 0u);
            }
            uint v0_ = local + 0u;
            uint _e135 = params.m;
            uint _e140 = base;
            metal::float4 _e151 = x[(metal::min(m0_ + (v0_ / 64u), _e135 - 1u) * x_quads) + metal::min((_e140 * 8u) + (v0_ % 64u), x_quads - 1u)];
            uint _e158 = params.m;
            if ((m0_ + (v0_ / 64u)) < _e158) {
                uint _e162 = base;
                local_1 = ((_e162 * 8u) + (v0_ % 64u)) < x_quads;
            } else {
                local_1 = false;
            }
            bool _e170 = local_1;
            metal::float4 x0_ = _e170 ? static_cast<metal::float4>(_e151) : metal::float4 {};
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
            uint _e209 = params.units;
            uint _e210 = base;
            uint count = metal::min(8u, _e209 - _e210);
            u = lane;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e962 = u;
                    u = _e962 + 8u;
                }
                loop_init_1 = false;
                uint _e214 = u;
                if (_e214 < count) {
                } else {
                    break;
                }
                {
                    uint _e216 = base;
                    uint _e217 = u;
                    uint unit_1 = _e216 + _e217;
                    metal::uint4 c0_ = q0_;
                    metal::uint2 t0_0_ = s0_0_;
                    metal::uint4 c1_ = q1_;
                    metal::uint2 t1_0_ = s1_0_;
                    {
                        uint _e223 = base;
                        uint _e224 = u;
                        uint _e230 = params.units;
                        uint unit_2 = metal::min((_e223 + _e224) + 8u, _e230 - 1u);
                        metal::uint4 _e237 = low[at0_ + unit_2];
                        q0_ = _e237;
                        uint _e243 = factors[factors0_ + (unit_2 >> 0u)];
                        s0_0_ = metal::uint2(_e243, 0u);
                        metal::uint4 _e249 = low[at1_ + unit_2];
                        q1_ = _e249;
                        uint _e255 = factors[factors1_ + (unit_2 >> 0u)];
                        s1_0_ = metal::uint2(_e255, 0u);
                    }
                    {
                        uint block = unit_1 >> 0u;
                        metal::float2 f0_ = as_type<metal::float2>(t0_0_);
                        metal::float2 f1_ = as_type<metal::float2>(t1_0_);
                        part0_0_ = 0.0;
                        part1_0_ = 0.0;
                        {
                            metal::float4 w0_ = as_type<metal::float4>(((metal::uint4(c0_.x) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0);
                            metal::float4 w1_ = as_type<metal::float4>(((metal::uint4(c1_.x) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0);
                            uint _e316 = u;
                            metal::float4 x0_1 = xs.inner[0u + _e316];
                            float _e322 = part0_0_;
                            part0_0_ = metal::fma(w0_.x, x0_1.x, _e322);
                            float _e326 = part0_0_;
                            part0_0_ = metal::fma(w0_.y, x0_1.y, _e326);
                            float _e330 = part0_0_;
                            part0_0_ = metal::fma(w0_.z, x0_1.z, _e330);
                            float _e334 = part0_0_;
                            part0_0_ = metal::fma(w0_.w, x0_1.w, _e334);
                            float _e338 = part1_0_;
                            part1_0_ = metal::fma(w1_.x, x0_1.x, _e338);
                            float _e342 = part1_0_;
                            part1_0_ = metal::fma(w1_.y, x0_1.y, _e342);
                            float _e346 = part1_0_;
                            part1_0_ = metal::fma(w1_.z, x0_1.z, _e346);
                            float _e350 = part1_0_;
                            part1_0_ = metal::fma(w1_.w, x0_1.w, _e350);
                        }
                        {
                            metal::float4 w0_1 = as_type<metal::float4>(((metal::uint4(c0_.x) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
                            metal::float4 w1_1 = as_type<metal::float4>(((metal::uint4(c1_.x) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
                            uint _e402 = u;
                            metal::float4 x0_2 = xs.inner[9u + _e402];
                            float _e408 = part0_0_;
                            part0_0_ = metal::fma(w0_1.x, x0_2.x, _e408);
                            float _e412 = part0_0_;
                            part0_0_ = metal::fma(w0_1.y, x0_2.y, _e412);
                            float _e416 = part0_0_;
                            part0_0_ = metal::fma(w0_1.z, x0_2.z, _e416);
                            float _e420 = part0_0_;
                            part0_0_ = metal::fma(w0_1.w, x0_2.w, _e420);
                            float _e424 = part1_0_;
                            part1_0_ = metal::fma(w1_1.x, x0_2.x, _e424);
                            float _e428 = part1_0_;
                            part1_0_ = metal::fma(w1_1.y, x0_2.y, _e428);
                            float _e432 = part1_0_;
                            part1_0_ = metal::fma(w1_1.z, x0_2.z, _e432);
                            float _e436 = part1_0_;
                            part1_0_ = metal::fma(w1_1.w, x0_2.w, _e436);
                        }
                        {
                            metal::float4 w0_2 = as_type<metal::float4>(((metal::uint4(c0_.y) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0);
                            metal::float4 w1_2 = as_type<metal::float4>(((metal::uint4(c1_.y) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0);
                            uint _e488 = u;
                            metal::float4 x0_3 = xs.inner[18u + _e488];
                            float _e494 = part0_0_;
                            part0_0_ = metal::fma(w0_2.x, x0_3.x, _e494);
                            float _e498 = part0_0_;
                            part0_0_ = metal::fma(w0_2.y, x0_3.y, _e498);
                            float _e502 = part0_0_;
                            part0_0_ = metal::fma(w0_2.z, x0_3.z, _e502);
                            float _e506 = part0_0_;
                            part0_0_ = metal::fma(w0_2.w, x0_3.w, _e506);
                            float _e510 = part1_0_;
                            part1_0_ = metal::fma(w1_2.x, x0_3.x, _e510);
                            float _e514 = part1_0_;
                            part1_0_ = metal::fma(w1_2.y, x0_3.y, _e514);
                            float _e518 = part1_0_;
                            part1_0_ = metal::fma(w1_2.z, x0_3.z, _e518);
                            float _e522 = part1_0_;
                            part1_0_ = metal::fma(w1_2.w, x0_3.w, _e522);
                        }
                        {
                            metal::float4 w0_3 = as_type<metal::float4>(((metal::uint4(c0_.y) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
                            metal::float4 w1_3 = as_type<metal::float4>(((metal::uint4(c1_.y) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
                            uint _e574 = u;
                            metal::float4 x0_4 = xs.inner[27u + _e574];
                            float _e580 = part0_0_;
                            part0_0_ = metal::fma(w0_3.x, x0_4.x, _e580);
                            float _e584 = part0_0_;
                            part0_0_ = metal::fma(w0_3.y, x0_4.y, _e584);
                            float _e588 = part0_0_;
                            part0_0_ = metal::fma(w0_3.z, x0_4.z, _e588);
                            float _e592 = part0_0_;
                            part0_0_ = metal::fma(w0_3.w, x0_4.w, _e592);
                            float _e596 = part1_0_;
                            part1_0_ = metal::fma(w1_3.x, x0_4.x, _e596);
                            float _e600 = part1_0_;
                            part1_0_ = metal::fma(w1_3.y, x0_4.y, _e600);
                            float _e604 = part1_0_;
                            part1_0_ = metal::fma(w1_3.z, x0_4.z, _e604);
                            float _e608 = part1_0_;
                            part1_0_ = metal::fma(w1_3.w, x0_4.w, _e608);
                        }
                        {
                            metal::float4 w0_4 = as_type<metal::float4>(((metal::uint4(c0_.z) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0);
                            metal::float4 w1_4 = as_type<metal::float4>(((metal::uint4(c1_.z) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0);
                            uint _e660 = u;
                            metal::float4 x0_5 = xs.inner[36u + _e660];
                            float _e666 = part0_0_;
                            part0_0_ = metal::fma(w0_4.x, x0_5.x, _e666);
                            float _e670 = part0_0_;
                            part0_0_ = metal::fma(w0_4.y, x0_5.y, _e670);
                            float _e674 = part0_0_;
                            part0_0_ = metal::fma(w0_4.z, x0_5.z, _e674);
                            float _e678 = part0_0_;
                            part0_0_ = metal::fma(w0_4.w, x0_5.w, _e678);
                            float _e682 = part1_0_;
                            part1_0_ = metal::fma(w1_4.x, x0_5.x, _e682);
                            float _e686 = part1_0_;
                            part1_0_ = metal::fma(w1_4.y, x0_5.y, _e686);
                            float _e690 = part1_0_;
                            part1_0_ = metal::fma(w1_4.z, x0_5.z, _e690);
                            float _e694 = part1_0_;
                            part1_0_ = metal::fma(w1_4.w, x0_5.w, _e694);
                        }
                        {
                            metal::float4 w0_5 = as_type<metal::float4>(((metal::uint4(c0_.z) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
                            metal::float4 w1_5 = as_type<metal::float4>(((metal::uint4(c1_.z) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
                            uint _e746 = u;
                            metal::float4 x0_6 = xs.inner[45u + _e746];
                            float _e752 = part0_0_;
                            part0_0_ = metal::fma(w0_5.x, x0_6.x, _e752);
                            float _e756 = part0_0_;
                            part0_0_ = metal::fma(w0_5.y, x0_6.y, _e756);
                            float _e760 = part0_0_;
                            part0_0_ = metal::fma(w0_5.z, x0_6.z, _e760);
                            float _e764 = part0_0_;
                            part0_0_ = metal::fma(w0_5.w, x0_6.w, _e764);
                            float _e768 = part1_0_;
                            part1_0_ = metal::fma(w1_5.x, x0_6.x, _e768);
                            float _e772 = part1_0_;
                            part1_0_ = metal::fma(w1_5.y, x0_6.y, _e772);
                            float _e776 = part1_0_;
                            part1_0_ = metal::fma(w1_5.z, x0_6.z, _e776);
                            float _e780 = part1_0_;
                            part1_0_ = metal::fma(w1_5.w, x0_6.w, _e780);
                        }
                        {
                            metal::float4 w0_6 = as_type<metal::float4>(((metal::uint4(c0_.w) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0);
                            metal::float4 w1_6 = as_type<metal::float4>(((metal::uint4(c1_.w) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(15u, 3840u, 15u, 3840u)) | metal::uint4(1258291200u)) - metal::float4(8388616.0, 8390656.0, 8388616.0, 8390656.0);
                            uint _e832 = u;
                            metal::float4 x0_7 = xs.inner[54u + _e832];
                            float _e838 = part0_0_;
                            part0_0_ = metal::fma(w0_6.x, x0_7.x, _e838);
                            float _e842 = part0_0_;
                            part0_0_ = metal::fma(w0_6.y, x0_7.y, _e842);
                            float _e846 = part0_0_;
                            part0_0_ = metal::fma(w0_6.z, x0_7.z, _e846);
                            float _e850 = part0_0_;
                            part0_0_ = metal::fma(w0_6.w, x0_7.w, _e850);
                            float _e854 = part1_0_;
                            part1_0_ = metal::fma(w1_6.x, x0_7.x, _e854);
                            float _e858 = part1_0_;
                            part1_0_ = metal::fma(w1_6.y, x0_7.y, _e858);
                            float _e862 = part1_0_;
                            part1_0_ = metal::fma(w1_6.z, x0_7.z, _e862);
                            float _e866 = part1_0_;
                            part1_0_ = metal::fma(w1_6.w, x0_7.w, _e866);
                        }
                        {
                            metal::float4 w0_7 = as_type<metal::float4>(((metal::uint4(c0_.w) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
                            metal::float4 w1_7 = as_type<metal::float4>(((metal::uint4(c1_.w) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(240u, 61440u, 240u, 61440u)) | metal::uint4(1258291200u)) - metal::float4(8388736.0, 8421376.0, 8388736.0, 8421376.0);
                            uint _e918 = u;
                            metal::float4 x0_8 = xs.inner[63u + _e918];
                            float _e924 = part0_0_;
                            part0_0_ = metal::fma(w0_7.x, x0_8.x, _e924);
                            float _e928 = part0_0_;
                            part0_0_ = metal::fma(w0_7.y, x0_8.y, _e928);
                            float _e932 = part0_0_;
                            part0_0_ = metal::fma(w0_7.z, x0_8.z, _e932);
                            float _e936 = part0_0_;
                            part0_0_ = metal::fma(w0_7.w, x0_8.w, _e936);
                            float _e940 = part1_0_;
                            part1_0_ = metal::fma(w1_7.x, x0_8.x, _e940);
                            float _e944 = part1_0_;
                            part1_0_ = metal::fma(w1_7.y, x0_8.y, _e944);
                            float _e948 = part1_0_;
                            part1_0_ = metal::fma(w1_7.z, x0_8.z, _e948);
                            float _e952 = part1_0_;
                            part1_0_ = metal::fma(w1_7.w, x0_8.w, _e952);
                        }
                        float _e955 = part0_0_;
                        float _e956 = sum0_0_;
                        sum0_0_ = metal::fma(f0_.x, _e955, _e956);
                        float _e959 = part1_0_;
                        float _e960 = sum1_0_;
                        sum1_0_ = metal::fma(f1_.x, _e959, _e960);
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    uint near = metal::min(subgroup, 8u);
    float _e970 = sum0_0_;
    float _e971 = sum0_0_;
    float unnamed = metal::simd_shuffle_xor(_e971, 1u);
    sum0_0_ = _e970 + unnamed;
    float _e975 = sum0_0_;
    float _e976 = sum0_0_;
    float unnamed_1 = metal::simd_shuffle_xor(_e976, 2u);
    sum0_0_ = _e975 + unnamed_1;
    float _e980 = sum0_0_;
    float _e981 = sum0_0_;
    float unnamed_2 = metal::simd_shuffle_xor(_e981, 4u);
    sum0_0_ = _e980 + unnamed_2;
    float _e985 = sum1_0_;
    float _e986 = sum1_0_;
    float unnamed_3 = metal::simd_shuffle_xor(_e986, 1u);
    sum1_0_ = _e985 + unnamed_3;
    float _e990 = sum1_0_;
    float _e991 = sum1_0_;
    float unnamed_4 = metal::simd_shuffle_xor(_e991, 2u);
    sum1_0_ = _e990 + unnamed_4;
    float _e995 = sum1_0_;
    float _e996 = sum1_0_;
    float unnamed_5 = metal::simd_shuffle_xor(_e996, 4u);
    sum1_0_ = _e995 + unnamed_5;
    if (lane == 0u) {
        if ((first + 0u) < own.y) {
            uint _e1012 = params.m;
            local_2 = (m0_ + 0u) < _e1012;
        } else {
            local_2 = false;
        }
        bool _e1015 = local_2;
        if (_e1015) {
            uint _e1016 = which;
            float _e1023 = sum0_0_;
            store(_e1016, m0_ + 0u, (own.w + first) + 0u, _e1023, y0_, params, _buffer_sizes);
        }
        if ((first + 1u) < own.y) {
            uint _e1034 = params.m;
            local_3 = (m0_ + 0u) < _e1034;
        } else {
            local_3 = false;
        }
        bool _e1037 = local_3;
        if (_e1037) {
            uint _e1038 = which;
            float _e1045 = sum1_0_;
            store(_e1038, m0_ + 0u, (own.w + first) + 1u, _e1045, y0_, params, _buffer_sizes);
            return;
        } else {
            return;
        }
    } else {
        return;
    }
}
