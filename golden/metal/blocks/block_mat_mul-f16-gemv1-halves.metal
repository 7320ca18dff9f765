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
    metal::float4 inner[130];
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
    metal::uint4 q1_ = metal::uint4 {};
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
    uint lane = local % 32u;
    uint first = (((number - own.x) * 8u) + (local / 32u)) * 2u;
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
    uint _e73 = params.units;
    uint at1_ = row1_ * _e73;
    uint _e77 = params.factor_words;
    uint factors1_ = row1_ * _e77;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e313 = base;
            base = _e313 + 64u;
        }
        loop_init = false;
        uint _e85 = base;
        uint _e88 = params.units;
        if (_e85 < _e88) {
        } else {
            break;
        }
        {
            {
                uint _e90 = base;
                uint _e94 = params.units;
                uint unit = metal::min(_e90 + lane, _e94 - 1u);
                metal::uint4 _e101 = low[at0_ + unit];
                q0_ = _e101;
                metal::uint4 _e105 = low[at1_ + unit];
                q1_ = _e105;
            }
            uint v0_ = local + 0u;
            uint _e115 = params.m;
            uint _e120 = base;
            metal::float4 _e131 = x[(metal::min(m0_ + (v0_ / 128u), _e115 - 1u) * x_quads) + metal::min((_e120 * 2u) + (v0_ % 128u), x_quads - 1u)];
            uint _e138 = params.m;
            if ((m0_ + (v0_ / 128u)) < _e138) {
                uint _e142 = base;
                local_1 = ((_e142 * 2u) + (v0_ % 128u)) < x_quads;
            } else {
                local_1 = false;
            }
            bool _e150 = local_1;
            metal::float4 x0_ = _e150 ? static_cast<metal::float4>(_e131) : metal::float4 {};
            {
                uint i = v0_ / 128u;
                uint w = v0_ % 128u;
                uint g = w % 2u;
                if (v0_ < 128u) {
                    xs.inner[(((i * 2u) + g) * 65u) + (w / 2u)] = x0_;
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            uint _e173 = params.units;
            uint _e174 = base;
            uint count = metal::min(64u, _e173 - _e174);
            u = lane;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e310 = u;
                    u = _e310 + 32u;
                }
                loop_init_1 = false;
                uint _e178 = u;
                if (_e178 < count) {
                } else {
                    break;
                }
                {
                    uint _e180 = base;
                    uint _e181 = u;
                    uint unit_1 = _e180 + _e181;
                    metal::uint4 c0_ = q0_;
                    metal::uint4 c1_ = q1_;
                    {
                        uint _e185 = base;
                        uint _e186 = u;
                        uint _e192 = params.units;
                        uint unit_2 = metal::min((_e185 + _e186) + 32u, _e192 - 1u);
                        metal::uint4 _e199 = low[at0_ + unit_2];
                        q0_ = _e199;
                        metal::uint4 _e203 = low[at1_ + unit_2];
                        q1_ = _e203;
                    }
                    {
                        part0_0_ = 0.0;
                        part1_0_ = 0.0;
                        {
                            metal::float4 w0_ = metal::float4(float2(as_type<half2>(c0_.x)), float2(as_type<half2>(c0_.y)));
                            metal::float4 w1_ = metal::float4(float2(as_type<half2>(c1_.x)), float2(as_type<half2>(c1_.y)));
                            uint _e220 = u;
                            metal::float4 x0_1 = xs.inner[0u + _e220];
                            float _e226 = part0_0_;
                            part0_0_ = metal::fma(w0_.x, x0_1.x, _e226);
                            float _e230 = part0_0_;
                            part0_0_ = metal::fma(w0_.y, x0_1.y, _e230);
                            float _e234 = part0_0_;
                            part0_0_ = metal::fma(w0_.z, x0_1.z, _e234);
                            float _e238 = part0_0_;
                            part0_0_ = metal::fma(w0_.w, x0_1.w, _e238);
                            float _e242 = part1_0_;
                            part1_0_ = metal::fma(w1_.x, x0_1.x, _e242);
                            float _e246 = part1_0_;
                            part1_0_ = metal::fma(w1_.y, x0_1.y, _e246);
                            float _e250 = part1_0_;
                            part1_0_ = metal::fma(w1_.z, x0_1.z, _e250);
                            float _e254 = part1_0_;
                            part1_0_ = metal::fma(w1_.w, x0_1.w, _e254);
                        }
                        {
                            metal::float4 w0_1 = metal::float4(float2(as_type<half2>(c0_.z)), float2(as_type<half2>(c0_.w)));
                            metal::float4 w1_1 = metal::float4(float2(as_type<half2>(c1_.z)), float2(as_type<half2>(c1_.w)));
                            uint _e268 = u;
                            metal::float4 x0_2 = xs.inner[65u + _e268];
                            float _e274 = part0_0_;
                            part0_0_ = metal::fma(w0_1.x, x0_2.x, _e274);
                            float _e278 = part0_0_;
                            part0_0_ = metal::fma(w0_1.y, x0_2.y, _e278);
                            float _e282 = part0_0_;
                            part0_0_ = metal::fma(w0_1.z, x0_2.z, _e282);
                            float _e286 = part0_0_;
                            part0_0_ = metal::fma(w0_1.w, x0_2.w, _e286);
                            float _e290 = part1_0_;
                            part1_0_ = metal::fma(w1_1.x, x0_2.x, _e290);
                            float _e294 = part1_0_;
                            part1_0_ = metal::fma(w1_1.y, x0_2.y, _e294);
                            float _e298 = part1_0_;
                            part1_0_ = metal::fma(w1_1.z, x0_2.z, _e298);
                            float _e302 = part1_0_;
                            part1_0_ = metal::fma(w1_1.w, x0_2.w, _e302);
                        }
                        float _e304 = sum0_0_;
                        float _e305 = part0_0_;
                        sum0_0_ = _e304 + _e305;
                        float _e307 = sum1_0_;
                        float _e308 = part1_0_;
                        sum1_0_ = _e307 + _e308;
                    }
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    uint near = metal::min(subgroup, 32u);
    float _e318 = sum0_0_;
    float _e319 = sum0_0_;
    float unnamed = metal::simd_shuffle_xor(_e319, 1u);
    sum0_0_ = _e318 + unnamed;
    float _e323 = sum0_0_;
    float _e324 = sum0_0_;
    float unnamed_1 = metal::simd_shuffle_xor(_e324, 2u);
    sum0_0_ = _e323 + unnamed_1;
    float _e328 = sum0_0_;
    float _e329 = sum0_0_;
    float unnamed_2 = metal::simd_shuffle_xor(_e329, 4u);
    sum0_0_ = _e328 + unnamed_2;
    float _e333 = sum0_0_;
    float _e334 = sum0_0_;
    float unnamed_3 = metal::simd_shuffle_xor(_e334, 8u);
    sum0_0_ = _e333 + unnamed_3;
    float _e338 = sum0_0_;
    float _e339 = sum0_0_;
    float unnamed_4 = metal::simd_shuffle_xor(_e339, 16u);
    sum0_0_ = _e338 + unnamed_4;
    float _e343 = sum1_0_;
    float _e344 = sum1_0_;
    float unnamed_5 = metal::simd_shuffle_xor(_e344, 1u);
    sum1_0_ = _e343 + unnamed_5;
    float _e348 = sum1_0_;
    float _e349 = sum1_0_;
    float unnamed_6 = metal::simd_shuffle_xor(_e349, 2u);
    sum1_0_ = _e348 + unnamed_6;
    float _e353 = sum1_0_;
    float _e354 = sum1_0_;
    float unnamed_7 = metal::simd_shuffle_xor(_e354, 4u);
    sum1_0_ = _e353 + unnamed_7;
    float _e358 = sum1_0_;
    float _e359 = sum1_0_;
    float unnamed_8 = metal::simd_shuffle_xor(_e359, 8u);
    sum1_0_ = _e358 + unnamed_8;
    float _e363 = sum1_0_;
    float _e364 = sum1_0_;
    float unnamed_9 = metal::simd_shuffle_xor(_e364, 16u);
    sum1_0_ = _e363 + unnamed_9;
    if (lane == 0u) {
        if ((first + 0u) < own.y) {
            uint _e380 = params.m;
            local_2 = (m0_ + 0u) < _e380;
        } else {
            local_2 = false;
        }
        bool _e383 = local_2;
        if (_e383) {
            uint _e384 = which;
            float _e391 = sum0_0_;
            store(_e384, m0_ + 0u, (own.w + first) + 0u, _e391, y0_, params, _buffer_sizes);
        }
        if ((first + 1u) < own.y) {
            uint _e402 = params.m;
            local_3 = (m0_ + 0u) < _e402;
        } else {
            local_3 = false;
        }
        bool _e405 = local_3;
        if (_e405) {
            uint _e406 = which;
            float _e413 = sum1_0_;
            store(_e406, m0_ + 0u, (own.w + first) + 1u, _e413, y0_, params, _buffer_sizes);
            return;
        } else {
            return;
        }
    } else {
        return;
    }
}
