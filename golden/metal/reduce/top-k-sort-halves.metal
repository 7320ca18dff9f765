// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef metal::half4 type_1[1];
typedef metal::uint2 type_4[1];
struct type_6 {
    metal::uint4 inner[2];
};
struct Params {
    type_6 v;
};
struct type_8 {
    metal::uint2 inner[2048];
};

uint ordered(
    float v
) {
    uint bits = as_type<uint>((v == 0.0) ? 0.0 : v);
    if ((bits & 2147483647u) > 2139095040u) {
        return 4294967295u;
    }
    return (bits >= 2147483648u) ? ~(bits) : (bits | 2147483648u);
}

bool before(
    metal::uint2 a,
    metal::uint2 b
) {
    bool local = {};
    bool local_1 = {};
    if (!((a.x > b.x))) {
        if (a.x == b.x) {
            local_1 = a.y < b.y;
        } else {
            local_1 = false;
        }
        bool _e17 = local_1;
        local = _e17;
    } else {
        local = true;
    }
    bool _e19 = local;
    return _e19;
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 all [[threadgroups_per_grid]]
, uint t [[thread_index_in_threadgroup]]
, device type_1 const& source [[buffer(0)]]
, device type_4& y [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, threadgroup type_8& pairs
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    uint i = {};
    metal::uint2 pair = {};
    uint size = 2u;
    uint apart = {};
    uint i_1 = {};
    uint i_2 = {};
    uint own = group.x + (group.y * all.x);
    uint _e12 = params.v.inner[1].x;
    uint number = metal::min(own, _e12 - 1u);
    uint _e20 = params.v.inner[0].z;
    uint lane_number = number / _e20;
    uint _e26 = params.v.inner[0].z;
    uint first = (number % _e26) * 2048u;
    i = t;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e93 = i;
            i = _e93 + 256u;
        }
        loop_init = false;
        uint _e31 = i;
        if (_e31 < 2048u) {
        } else {
            break;
        }
        {
            uint _e34 = i;
            uint j = first + _e34;
            pair = metal::uint2(0u, 4294967295u);
            uint _e44 = params.v.inner[0].x;
            if (j < _e44) {
                uint _e50 = params.v.inner[0].y;
                uint _e56 = params.v.inner[0].y;
                uint _e62 = params.v.inner[0].x;
                uint _e68 = params.v.inner[0].y;
                uint _e75 = params.v.inner[0].y;
                uint place = ((((lane_number / _e50) * _e56) * _e62) + (j * _e68)) + (lane_number % _e75);
                half _e85 = source[place / 4u][place % 4u];
                float x = static_cast<float>(_e85);
                uint _e87 = ordered(x);
                pair = metal::uint2(_e87, j);
            }
            uint _e90 = i;
            metal::uint2 _e92 = pair;
            pairs.inner[_e90] = _e92;
        }
    }
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e151 = size;
            size = _e151 * 2u;
        }
        loop_init_1 = false;
        uint _e98 = size;
        if (_e98 <= 2048u) {
        } else {
            break;
        }
        {
            uint _e101 = size;
            apart = _e101 / 2u;
            bool loop_init_2 = true;
            while(true) {
                if (!loop_init_2) {
                    uint _e148 = apart;
                    apart = _e148 / 2u;
                }
                loop_init_2 = false;
                uint _e105 = apart;
                if (_e105 > 0u) {
                } else {
                    break;
                }
                {
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                    i_1 = t;
                    bool loop_init_3 = true;
                    while(true) {
                        if (!loop_init_3) {
                            uint _e145 = i_1;
                            i_1 = _e145 + 256u;
                        }
                        loop_init_3 = false;
                        uint _e109 = i_1;
                        if (_e109 < 1024u) {
                        } else {
                            break;
                        }
                        {
                            uint _e113 = i_1;
                            uint _e115 = i_1;
                            uint _e116 = apart;
                            uint a_1 = (2u * _e113) - (_e115 & (_e116 - 1u));
                            uint _e121 = apart;
                            uint b_1 = a_1 + _e121;
                            uint _e123 = size;
                            bool falling = (a_1 & _e123) == 0u;
                            metal::uint2 _e129 = pairs.inner[b_1];
                            metal::uint2 _e132 = pairs.inner[a_1];
                            bool _e133 = before(_e129, _e132);
                            if (_e133 == falling) {
                                metal::uint2 kept = pairs.inner[a_1];
                                metal::uint2 _e142 = pairs.inner[b_1];
                                pairs.inner[a_1] = _e142;
                                pairs.inner[b_1] = kept;
                            }
                        }
                    }
                }
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint _e158 = params.v.inner[1].x;
    if (own >= _e158) {
        return;
    }
    i_2 = t;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e182 = i_2;
            i_2 = _e182 + 256u;
        }
        loop_init_4 = false;
        uint _e161 = i_2;
        uint _e166 = params.v.inner[0].w;
        if (_e161 < _e166) {
        } else {
            break;
        }
        {
            uint _e173 = params.v.inner[0].w;
            uint _e175 = i_2;
            uint _e179 = i_2;
            metal::uint2 _e181 = pairs.inner[_e179];
            y[(own * _e173) + _e175] = _e181;
        }
    }
    return;
}
