// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef metal::float4 type_2[1];
typedef metal::uint2 type_5[1];
struct type_7 {
    metal::uint4 inner[2];
};
struct Params {
    type_7 v;
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
, device type_2 const& source [[buffer(0)]]
, device type_5& y [[buffer(1)]]
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
            uint _e92 = i;
            i = _e92 + 256u;
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
                float x = source[place / 4u][place % 4u];
                uint _e86 = ordered(x);
                pair = metal::uint2(_e86, j);
            }
            uint _e89 = i;
            metal::uint2 _e91 = pair;
            pairs.inner[_e89] = _e91;
        }
    }
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e150 = size;
            size = _e150 * 2u;
        }
        loop_init_1 = false;
        uint _e97 = size;
        if (_e97 <= 2048u) {
        } else {
            break;
        }
        {
            uint _e100 = size;
            apart = _e100 / 2u;
            bool loop_init_2 = true;
            while(true) {
                if (!loop_init_2) {
                    uint _e147 = apart;
                    apart = _e147 / 2u;
                }
                loop_init_2 = false;
                uint _e104 = apart;
                if (_e104 > 0u) {
                } else {
                    break;
                }
                {
                    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
                    i_1 = t;
                    bool loop_init_3 = true;
                    while(true) {
                        if (!loop_init_3) {
                            uint _e144 = i_1;
                            i_1 = _e144 + 256u;
                        }
                        loop_init_3 = false;
                        uint _e108 = i_1;
                        if (_e108 < 1024u) {
                        } else {
                            break;
                        }
                        {
                            uint _e112 = i_1;
                            uint _e114 = i_1;
                            uint _e115 = apart;
                            uint a_1 = (2u * _e112) - (_e114 & (_e115 - 1u));
                            uint _e120 = apart;
                            uint b_1 = a_1 + _e120;
                            uint _e122 = size;
                            bool falling = (a_1 & _e122) == 0u;
                            metal::uint2 _e128 = pairs.inner[b_1];
                            metal::uint2 _e131 = pairs.inner[a_1];
                            bool _e132 = before(_e128, _e131);
                            if (_e132 == falling) {
                                metal::uint2 kept = pairs.inner[a_1];
                                metal::uint2 _e141 = pairs.inner[b_1];
                                pairs.inner[a_1] = _e141;
                                pairs.inner[b_1] = kept;
                            }
                        }
                    }
                }
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint _e157 = params.v.inner[1].x;
    if (own >= _e157) {
        return;
    }
    i_2 = t;
    bool loop_init_4 = true;
    while(true) {
        if (!loop_init_4) {
            uint _e181 = i_2;
            i_2 = _e181 + 256u;
        }
        loop_init_4 = false;
        uint _e160 = i_2;
        uint _e165 = params.v.inner[0].w;
        if (_e160 < _e165) {
        } else {
            break;
        }
        {
            uint _e172 = params.v.inner[0].w;
            uint _e174 = i_2;
            uint _e178 = i_2;
            metal::uint2 _e180 = pairs.inner[_e178];
            y[(own * _e172) + _e174] = _e180;
        }
    }
    return;
}
