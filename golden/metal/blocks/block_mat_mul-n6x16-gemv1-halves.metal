// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
    uint size3;
    uint size4;
};

typedef metal::float4 type_2[1];
typedef metal::uint4 type_5[1];
typedef metal::uint2 type_7[1];
typedef uint type_8[1];
typedef float type_9[1];
struct type_10 {
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
    type_10 outputs;
};
struct type_11 {
    metal::float4 inner[136];
};

void store(
    uint which_1,
    uint row,
    uint column,
    float value,
    device type_9& y0_,
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
, device type_7 const& high [[buffer(2)]]
, device type_8 const& factors [[buffer(3)]]
, device type_9& y0_ [[buffer(4)]]
, constant Params& params [[buffer(5)]]
, threadgroup type_11& xs
, constant _mslBufferSizes& _buffer_sizes [[buffer(6)]]
) {
    uint which = 0u;
    metal::uint4 q0_ = metal::uint4 {};
    metal::uint2 h0_ = metal::uint2 {};
    metal::uint2 s0_0_ = metal::uint2 {};
    metal::uint2 s0_1_ = metal::uint2 {};
    float sum0_0_ = 0.0;
    metal::uint4 q1_ = metal::uint4 {};
    metal::uint2 h1_ = metal::uint2 {};
    metal::uint2 s1_0_ = metal::uint2 {};
    metal::uint2 s1_1_ = metal::uint2 {};
    float sum1_0_ = 0.0;
    uint base = 0u;
    bool local_1 = {};
    uint u = {};
    float part0_0_ = {};
    float part1_0_ = {};
    float part0_0_1 = {};
    float part1_0_1 = {};
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
    uint lane = local % 16u;
    uint first = (((number - own.x) * 16u) + (local / 16u)) * 2u;
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
    uint _e79 = params.units;
    uint at1_ = row1_ * _e79;
    uint _e83 = params.factor_words;
    uint factors1_ = row1_ * _e83;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e1459 = base;
            base = _e1459 + 16u;
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
                metal::uint2 _e117 = high[at0_ + unit];
                h0_ = _e117;
                uint _e127 = factors[factors0_ + (((unit * 2u) + 0u) >> 2u)];
                uint _e131 = params.wholes;
                uint _e141 = factors[(factors0_ + _e131) + (((unit * 2u) + 0u) >> 5u)];
                s0_0_ = metal::uint2(_e127, _e141);
                uint _e152 = factors[factors0_ + (((unit * 2u) + 1u) >> 2u)];
                uint _e156 = params.wholes;
                uint _e166 = factors[(factors0_ + _e156) + (((unit * 2u) + 1u) >> 5u)];
                s0_1_ = metal::uint2(_e152, _e166);
                metal::uint4 _e171 = low[at1_ + unit];
                q1_ = _e171;
                metal::uint2 _e175 = high[at1_ + unit];
                h1_ = _e175;
                uint _e185 = factors[factors1_ + (((unit * 2u) + 0u) >> 2u)];
                uint _e189 = params.wholes;
                uint _e199 = factors[(factors1_ + _e189) + (((unit * 2u) + 0u) >> 5u)];
                s1_0_ = metal::uint2(_e185, _e199);
                uint _e210 = factors[factors1_ + (((unit * 2u) + 1u) >> 2u)];
                uint _e214 = params.wholes;
                uint _e224 = factors[(factors1_ + _e214) + (((unit * 2u) + 1u) >> 5u)];
                s1_1_ = metal::uint2(_e210, _e224);
            }
            uint v0_ = local + 0u;
            uint _e235 = params.m;
            uint _e240 = base;
            metal::float4 _e251 = x[(metal::min(m0_ + (v0_ / 128u), _e235 - 1u) * x_quads) + metal::min((_e240 * 8u) + (v0_ % 128u), x_quads - 1u)];
            uint _e258 = params.m;
            if ((m0_ + (v0_ / 128u)) < _e258) {
                uint _e262 = base;
                local_1 = ((_e262 * 8u) + (v0_ % 128u)) < x_quads;
            } else {
                local_1 = false;
            }
            bool _e270 = local_1;
            metal::float4 x0_ = _e270 ? static_cast<metal::float4>(_e251) : metal::float4 {};
            {
                uint i = v0_ / 128u;
                uint w = v0_ % 128u;
                uint g = w % 8u;
                if (v0_ < 128u) {
                    metal::float4 scale = metal::float4(1.0, 0.00390625, 1.0, 0.00390625);
                    xs.inner[(((i * 8u) + g) * 17u) + (w / 8u)] = x0_ * scale;
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e299 = params.units;
            uint _e300 = base;
            uint count = metal::min(16u, _e299 - _e300);
            u = lane;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e1456 = u;
                    u = _e1456 + 16u;
                }
                loop_init_1 = false;
                uint _e304 = u;
                if (_e304 < count) {
                } else {
                    break;
                }
                {
                    uint _e306 = base;
                    uint _e307 = u;
                    uint unit_1 = _e306 + _e307;
                    metal::uint4 c0_ = q0_;
                    metal::uint2 d0_ = h0_;
                    metal::uint2 t0_0_ = s0_0_;
                    metal::uint2 t0_1_ = s0_1_;
                    metal::uint4 c1_ = q1_;
                    metal::uint2 d1_ = h1_;
                    metal::uint2 t1_0_ = s1_0_;
                    metal::uint2 t1_1_ = s1_1_;
                    {
                        uint _e317 = base;
                        uint _e318 = u;
                        uint _e324 = params.units;
                        uint unit_2 = metal::min((_e317 + _e318) + 16u, _e324 - 1u);
                        metal::uint4 _e331 = low[at0_ + unit_2];
                        q0_ = _e331;
                        metal::uint2 _e335 = high[at0_ + unit_2];
                        h0_ = _e335;
                        uint _e345 = factors[factors0_ + (((unit_2 * 2u) + 0u) >> 2u)];
                        uint _e349 = params.wholes;
                        uint _e359 = factors[(factors0_ + _e349) + (((unit_2 * 2u) + 0u) >> 5u)];
                        s0_0_ = metal::uint2(_e345, _e359);
                        uint _e370 = factors[factors0_ + (((unit_2 * 2u) + 1u) >> 2u)];
                        uint _e374 = params.wholes;
                        uint _e384 = factors[(factors0_ + _e374) + (((unit_2 * 2u) + 1u) >> 5u)];
                        s0_1_ = metal::uint2(_e370, _e384);
                        metal::uint4 _e389 = low[at1_ + unit_2];
                        q1_ = _e389;
                        metal::uint2 _e393 = high[at1_ + unit_2];
                        h1_ = _e393;
                        uint _e403 = factors[factors1_ + (((unit_2 * 2u) + 0u) >> 2u)];
                        uint _e407 = params.wholes;
                        uint _e417 = factors[(factors1_ + _e407) + (((unit_2 * 2u) + 0u) >> 5u)];
                        s1_0_ = metal::uint2(_e403, _e417);
                        uint _e428 = factors[factors1_ + (((unit_2 * 2u) + 1u) >> 2u)];
                        uint _e432 = params.wholes;
                        uint _e442 = factors[(factors1_ + _e432) + (((unit_2 * 2u) + 1u) >> 5u)];
                        s1_1_ = metal::uint2(_e428, _e442);
                    }
                    {
                        uint block = (unit_1 * 2u) + 0u;
                        metal::float2 f0_ = metal::float2(static_cast<float>(as_type<int>(t0_0_.x << (24u - ((block & 3u) * 8u))) >> 24u) * float2(as_type<half2>((t0_0_.y >> (((block >> 4u) & 1u) * 16u)))).x, 0.0);
                        metal::float2 f1_ = metal::float2(static_cast<float>(as_type<int>(t1_0_.x << (24u - ((block & 3u) * 8u))) >> 24u) * float2(as_type<half2>((t1_0_.y >> (((block >> 4u) & 1u) * 16u)))).x, 0.0);
                        part0_0_ = 0.0;
                        part1_0_ = 0.0;
                        {
                            metal::float4 w0_ = as_type<metal::float4>(((metal::uint4(((c0_.x >> 0u) & 252645135u) | (((d0_.x >> 0u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0);
                            metal::float4 w1_ = as_type<metal::float4>(((metal::uint4(((c1_.x >> 0u) & 252645135u) | (((d1_.x >> 0u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0);
                            uint _e576 = u;
                            metal::float4 x0_1 = xs.inner[0u + _e576];
                            float _e582 = part0_0_;
                            part0_0_ = metal::fma(w0_.x, x0_1.x, _e582);
                            float _e586 = part0_0_;
                            part0_0_ = metal::fma(w0_.y, x0_1.y, _e586);
                            float _e590 = part0_0_;
                            part0_0_ = metal::fma(w0_.z, x0_1.z, _e590);
                            float _e594 = part0_0_;
                            part0_0_ = metal::fma(w0_.w, x0_1.w, _e594);
                            float _e598 = part1_0_;
                            part1_0_ = metal::fma(w1_.x, x0_1.x, _e598);
                            float _e602 = part1_0_;
                            part1_0_ = metal::fma(w1_.y, x0_1.y, _e602);
                            float _e606 = part1_0_;
                            part1_0_ = metal::fma(w1_.z, x0_1.z, _e606);
                            float _e610 = part1_0_;
                            part1_0_ = metal::fma(w1_.w, x0_1.w, _e610);
                        }
                        {
                            metal::float4 w0_1 = as_type<metal::float4>(((metal::uint4(((c0_.x >> 4u) & 252645135u) | (((d0_.x >> 2u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0);
                            metal::float4 w1_1 = as_type<metal::float4>(((metal::uint4(((c1_.x >> 4u) & 252645135u) | (((d1_.x >> 2u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0);
                            uint _e686 = u;
                            metal::float4 x0_2 = xs.inner[17u + _e686];
                            float _e692 = part0_0_;
                            part0_0_ = metal::fma(w0_1.x, x0_2.x, _e692);
                            float _e696 = part0_0_;
                            part0_0_ = metal::fma(w0_1.y, x0_2.y, _e696);
                            float _e700 = part0_0_;
                            part0_0_ = metal::fma(w0_1.z, x0_2.z, _e700);
                            float _e704 = part0_0_;
                            part0_0_ = metal::fma(w0_1.w, x0_2.w, _e704);
                            float _e708 = part1_0_;
                            part1_0_ = metal::fma(w1_1.x, x0_2.x, _e708);
                            float _e712 = part1_0_;
                            part1_0_ = metal::fma(w1_1.y, x0_2.y, _e712);
                            float _e716 = part1_0_;
                            part1_0_ = metal::fma(w1_1.z, x0_2.z, _e716);
                            float _e720 = part1_0_;
                            part1_0_ = metal::fma(w1_1.w, x0_2.w, _e720);
                        }
                        {
                            metal::float4 w0_2 = as_type<metal::float4>(((metal::uint4(((c0_.y >> 0u) & 252645135u) | (((d0_.x >> 4u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0);
                            metal::float4 w1_2 = as_type<metal::float4>(((metal::uint4(((c1_.y >> 0u) & 252645135u) | (((d1_.x >> 4u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0);
                            uint _e796 = u;
                            metal::float4 x0_3 = xs.inner[34u + _e796];
                            float _e802 = part0_0_;
                            part0_0_ = metal::fma(w0_2.x, x0_3.x, _e802);
                            float _e806 = part0_0_;
                            part0_0_ = metal::fma(w0_2.y, x0_3.y, _e806);
                            float _e810 = part0_0_;
                            part0_0_ = metal::fma(w0_2.z, x0_3.z, _e810);
                            float _e814 = part0_0_;
                            part0_0_ = metal::fma(w0_2.w, x0_3.w, _e814);
                            float _e818 = part1_0_;
                            part1_0_ = metal::fma(w1_2.x, x0_3.x, _e818);
                            float _e822 = part1_0_;
                            part1_0_ = metal::fma(w1_2.y, x0_3.y, _e822);
                            float _e826 = part1_0_;
                            part1_0_ = metal::fma(w1_2.z, x0_3.z, _e826);
                            float _e830 = part1_0_;
                            part1_0_ = metal::fma(w1_2.w, x0_3.w, _e830);
                        }
                        {
                            metal::float4 w0_3 = as_type<metal::float4>(((metal::uint4(((c0_.y >> 4u) & 252645135u) | (((d0_.x >> 6u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0);
                            metal::float4 w1_3 = as_type<metal::float4>(((metal::uint4(((c1_.y >> 4u) & 252645135u) | (((d1_.x >> 6u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0);
                            uint _e906 = u;
                            metal::float4 x0_4 = xs.inner[51u + _e906];
                            float _e912 = part0_0_;
                            part0_0_ = metal::fma(w0_3.x, x0_4.x, _e912);
                            float _e916 = part0_0_;
                            part0_0_ = metal::fma(w0_3.y, x0_4.y, _e916);
                            float _e920 = part0_0_;
                            part0_0_ = metal::fma(w0_3.z, x0_4.z, _e920);
                            float _e924 = part0_0_;
                            part0_0_ = metal::fma(w0_3.w, x0_4.w, _e924);
                            float _e928 = part1_0_;
                            part1_0_ = metal::fma(w1_3.x, x0_4.x, _e928);
                            float _e932 = part1_0_;
                            part1_0_ = metal::fma(w1_3.y, x0_4.y, _e932);
                            float _e936 = part1_0_;
                            part1_0_ = metal::fma(w1_3.z, x0_4.z, _e936);
                            float _e940 = part1_0_;
                            part1_0_ = metal::fma(w1_3.w, x0_4.w, _e940);
                        }
                        float _e943 = part0_0_;
                        float _e944 = sum0_0_;
                        sum0_0_ = metal::fma(f0_.x, _e943, _e944);
                        float _e947 = part1_0_;
                        float _e948 = sum1_0_;
                        sum1_0_ = metal::fma(f1_.x, _e947, _e948);
                    }
                    {
                        uint block_1 = (unit_1 * 2u) + 1u;
                        metal::float2 f0_1 = metal::float2(static_cast<float>(as_type<int>(t0_1_.x << (24u - ((block_1 & 3u) * 8u))) >> 24u) * float2(as_type<half2>((t0_1_.y >> (((block_1 >> 4u) & 1u) * 16u)))).x, 0.0);
                        metal::float2 f1_1 = metal::float2(static_cast<float>(as_type<int>(t1_1_.x << (24u - ((block_1 & 3u) * 8u))) >> 24u) * float2(as_type<half2>((t1_1_.y >> (((block_1 >> 4u) & 1u) * 16u)))).x, 0.0);
                        part0_0_1 = 0.0;
                        part1_0_1 = 0.0;
                        {
                            metal::float4 w0_4 = as_type<metal::float4>(((metal::uint4(((c0_.z >> 0u) & 252645135u) | (((d0_.y >> 0u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0);
                            metal::float4 w1_4 = as_type<metal::float4>(((metal::uint4(((c1_.z >> 0u) & 252645135u) | (((d1_.y >> 0u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0);
                            uint _e1082 = u;
                            metal::float4 x0_5 = xs.inner[68u + _e1082];
                            float _e1088 = part0_0_1;
                            part0_0_1 = metal::fma(w0_4.x, x0_5.x, _e1088);
                            float _e1092 = part0_0_1;
                            part0_0_1 = metal::fma(w0_4.y, x0_5.y, _e1092);
                            float _e1096 = part0_0_1;
                            part0_0_1 = metal::fma(w0_4.z, x0_5.z, _e1096);
                            float _e1100 = part0_0_1;
                            part0_0_1 = metal::fma(w0_4.w, x0_5.w, _e1100);
                            float _e1104 = part1_0_1;
                            part1_0_1 = metal::fma(w1_4.x, x0_5.x, _e1104);
                            float _e1108 = part1_0_1;
                            part1_0_1 = metal::fma(w1_4.y, x0_5.y, _e1108);
                            float _e1112 = part1_0_1;
                            part1_0_1 = metal::fma(w1_4.z, x0_5.z, _e1112);
                            float _e1116 = part1_0_1;
                            part1_0_1 = metal::fma(w1_4.w, x0_5.w, _e1116);
                        }
                        {
                            metal::float4 w0_5 = as_type<metal::float4>(((metal::uint4(((c0_.z >> 4u) & 252645135u) | (((d0_.y >> 2u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0);
                            metal::float4 w1_5 = as_type<metal::float4>(((metal::uint4(((c1_.z >> 4u) & 252645135u) | (((d1_.y >> 2u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0);
                            uint _e1192 = u;
                            metal::float4 x0_6 = xs.inner[85u + _e1192];
                            float _e1198 = part0_0_1;
                            part0_0_1 = metal::fma(w0_5.x, x0_6.x, _e1198);
                            float _e1202 = part0_0_1;
                            part0_0_1 = metal::fma(w0_5.y, x0_6.y, _e1202);
                            float _e1206 = part0_0_1;
                            part0_0_1 = metal::fma(w0_5.z, x0_6.z, _e1206);
                            float _e1210 = part0_0_1;
                            part0_0_1 = metal::fma(w0_5.w, x0_6.w, _e1210);
                            float _e1214 = part1_0_1;
                            part1_0_1 = metal::fma(w1_5.x, x0_6.x, _e1214);
                            float _e1218 = part1_0_1;
                            part1_0_1 = metal::fma(w1_5.y, x0_6.y, _e1218);
                            float _e1222 = part1_0_1;
                            part1_0_1 = metal::fma(w1_5.z, x0_6.z, _e1222);
                            float _e1226 = part1_0_1;
                            part1_0_1 = metal::fma(w1_5.w, x0_6.w, _e1226);
                        }
                        {
                            metal::float4 w0_6 = as_type<metal::float4>(((metal::uint4(((c0_.w >> 0u) & 252645135u) | (((d0_.y >> 4u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0);
                            metal::float4 w1_6 = as_type<metal::float4>(((metal::uint4(((c1_.w >> 0u) & 252645135u) | (((d1_.y >> 4u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0);
                            uint _e1302 = u;
                            metal::float4 x0_7 = xs.inner[102u + _e1302];
                            float _e1308 = part0_0_1;
                            part0_0_1 = metal::fma(w0_6.x, x0_7.x, _e1308);
                            float _e1312 = part0_0_1;
                            part0_0_1 = metal::fma(w0_6.y, x0_7.y, _e1312);
                            float _e1316 = part0_0_1;
                            part0_0_1 = metal::fma(w0_6.z, x0_7.z, _e1316);
                            float _e1320 = part0_0_1;
                            part0_0_1 = metal::fma(w0_6.w, x0_7.w, _e1320);
                            float _e1324 = part1_0_1;
                            part1_0_1 = metal::fma(w1_6.x, x0_7.x, _e1324);
                            float _e1328 = part1_0_1;
                            part1_0_1 = metal::fma(w1_6.y, x0_7.y, _e1328);
                            float _e1332 = part1_0_1;
                            part1_0_1 = metal::fma(w1_6.z, x0_7.z, _e1332);
                            float _e1336 = part1_0_1;
                            part1_0_1 = metal::fma(w1_6.w, x0_7.w, _e1336);
                        }
                        {
                            metal::float4 w0_7 = as_type<metal::float4>(((metal::uint4(((c0_.w >> 4u) & 252645135u) | (((d0_.y >> 6u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0);
                            metal::float4 w1_7 = as_type<metal::float4>(((metal::uint4(((c1_.w >> 4u) & 252645135u) | (((d1_.y >> 6u) & 50529027u) << 4u)) >> metal::uint4(0u, 0u, 16u, 16u)) & metal::uint4(255u, 65280u, 255u, 65280u)) | metal::uint4(1258291200u)) - metal::float4(8388640.0, 8396800.0, 8388640.0, 8396800.0);
                            uint _e1412 = u;
                            metal::float4 x0_8 = xs.inner[119u + _e1412];
                            float _e1418 = part0_0_1;
                            part0_0_1 = metal::fma(w0_7.x, x0_8.x, _e1418);
                            float _e1422 = part0_0_1;
                            part0_0_1 = metal::fma(w0_7.y, x0_8.y, _e1422);
                            float _e1426 = part0_0_1;
                            part0_0_1 = metal::fma(w0_7.z, x0_8.z, _e1426);
                            float _e1430 = part0_0_1;
                            part0_0_1 = metal::fma(w0_7.w, x0_8.w, _e1430);
                            float _e1434 = part1_0_1;
                            part1_0_1 = metal::fma(w1_7.x, x0_8.x, _e1434);
                            float _e1438 = part1_0_1;
                            part1_0_1 = metal::fma(w1_7.y, x0_8.y, _e1438);
                            float _e1442 = part1_0_1;
                            part1_0_1 = metal::fma(w1_7.z, x0_8.z, _e1442);
                            float _e1446 = part1_0_1;
                            part1_0_1 = metal::fma(w1_7.w, x0_8.w, _e1446);
                        }
                        float _e1449 = part0_0_1;
                        float _e1450 = sum0_0_;
                        sum0_0_ = metal::fma(f0_1.x, _e1449, _e1450);
                        float _e1453 = part1_0_1;
                        float _e1454 = sum1_0_;
                        sum1_0_ = metal::fma(f1_1.x, _e1453, _e1454);
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    uint near = metal::min(subgroup, 16u);
    float _e1464 = sum0_0_;
    float _e1465 = sum0_0_;
    float unnamed = metal::simd_shuffle_xor(_e1465, 1u);
    sum0_0_ = _e1464 + unnamed;
    float _e1469 = sum0_0_;
    float _e1470 = sum0_0_;
    float unnamed_1 = metal::simd_shuffle_xor(_e1470, 2u);
    sum0_0_ = _e1469 + unnamed_1;
    float _e1474 = sum0_0_;
    float _e1475 = sum0_0_;
    float unnamed_2 = metal::simd_shuffle_xor(_e1475, 4u);
    sum0_0_ = _e1474 + unnamed_2;
    float _e1479 = sum0_0_;
    float _e1480 = sum0_0_;
    float unnamed_3 = metal::simd_shuffle_xor(_e1480, 8u);
    sum0_0_ = _e1479 + unnamed_3;
    float _e1484 = sum1_0_;
    float _e1485 = sum1_0_;
    float unnamed_4 = metal::simd_shuffle_xor(_e1485, 1u);
    sum1_0_ = _e1484 + unnamed_4;
    float _e1489 = sum1_0_;
    float _e1490 = sum1_0_;
    float unnamed_5 = metal::simd_shuffle_xor(_e1490, 2u);
    sum1_0_ = _e1489 + unnamed_5;
    float _e1494 = sum1_0_;
    float _e1495 = sum1_0_;
    float unnamed_6 = metal::simd_shuffle_xor(_e1495, 4u);
    sum1_0_ = _e1494 + unnamed_6;
    float _e1499 = sum1_0_;
    float _e1500 = sum1_0_;
    float unnamed_7 = metal::simd_shuffle_xor(_e1500, 8u);
    sum1_0_ = _e1499 + unnamed_7;
    if (lane == 0u) {
        if ((first + 0u) < own.y) {
            uint _e1516 = params.m;
            local_2 = (m0_ + 0u) < _e1516;
        } else {
            local_2 = false;
        }
        bool _e1519 = local_2;
        if (_e1519) {
            uint _e1520 = which;
            float _e1527 = sum0_0_;
            store(_e1520, m0_ + 0u, (own.w + first) + 0u, _e1527, y0_, params, _buffer_sizes);
        }
        if ((first + 1u) < own.y) {
            uint _e1538 = params.m;
            local_3 = (m0_ + 0u) < _e1538;
        } else {
            local_3 = false;
        }
        bool _e1541 = local_3;
        if (_e1541) {
            uint _e1542 = which;
            float _e1549 = sum1_0_;
            store(_e1542, m0_ + 0u, (own.w + first) + 1u, _e1549, y0_, params, _buffer_sizes);
            return;
        } else {
            return;
        }
    } else {
        return;
    }
}
