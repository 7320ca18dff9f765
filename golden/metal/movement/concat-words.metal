// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef uint type_1[1];
struct type_3 {
    metal::uint4 inner[2];
};
struct Params {
    type_3 v;
};

uint byte(
    uint word,
    uint at
) {
    return (word >> ((at % 4u) * 8u)) & 255u;
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& x [[buffer(0)]]
, device type_1& y [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    uint v0_ = 0u;
    bool local = {};
    uint v1_ = 0u;
    bool local_1 = {};
    uint v2_ = 0u;
    bool local_2 = {};
    uint v3_ = 0u;
    bool local_3 = {};
    uint at_1 = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e15 = params.v.inner[0].x;
    if (at_1 >= _e15) {
        return;
    }
    {
        uint _e27 = params.v.inner[0].y;
        uint to = metal::min((at_1 * 4u) + 0u, _e27 - 1u);
        uint _e35 = params.v.inner[0].w;
        uint column = to % _e35;
        uint _e41 = params.v.inner[1].x;
        if (column >= _e41) {
            uint _e49 = params.v.inner[1].x;
            uint _e54 = params.v.inner[0].z;
            local = column < (_e49 + _e54);
        } else {
            local = false;
        }
        bool _e58 = local;
        if (_e58) {
            uint _e63 = params.v.inner[0].w;
            uint _e69 = params.v.inner[0].z;
            uint _e76 = params.v.inner[1].x;
            uint from_at = (((to / _e63) * _e69) + column) - _e76;
            uint _e82 = x[from_at / 4u];
            uint _e83 = byte(_e82, from_at);
            v0_ = _e83;
        } else {
            uint _e88 = y[to / 4u];
            uint _e89 = byte(_e88, to);
            v0_ = _e89;
        }
    }
    {
        uint _e100 = params.v.inner[0].y;
        uint to_1 = metal::min((at_1 * 4u) + 1u, _e100 - 1u);
        uint _e108 = params.v.inner[0].w;
        uint column_1 = to_1 % _e108;
        uint _e114 = params.v.inner[1].x;
        if (column_1 >= _e114) {
            uint _e122 = params.v.inner[1].x;
            uint _e127 = params.v.inner[0].z;
            local_1 = column_1 < (_e122 + _e127);
        } else {
            local_1 = false;
        }
        bool _e131 = local_1;
        if (_e131) {
            uint _e136 = params.v.inner[0].w;
            uint _e142 = params.v.inner[0].z;
            uint _e149 = params.v.inner[1].x;
            uint from_at_1 = (((to_1 / _e136) * _e142) + column_1) - _e149;
            uint _e155 = x[from_at_1 / 4u];
            uint _e156 = byte(_e155, from_at_1);
            v1_ = _e156;
        } else {
            uint _e161 = y[to_1 / 4u];
            uint _e162 = byte(_e161, to_1);
            v1_ = _e162;
        }
    }
    {
        uint _e173 = params.v.inner[0].y;
        uint to_2 = metal::min((at_1 * 4u) + 2u, _e173 - 1u);
        uint _e181 = params.v.inner[0].w;
        uint column_2 = to_2 % _e181;
        uint _e187 = params.v.inner[1].x;
        if (column_2 >= _e187) {
            uint _e195 = params.v.inner[1].x;
            uint _e200 = params.v.inner[0].z;
            local_2 = column_2 < (_e195 + _e200);
        } else {
            local_2 = false;
        }
        bool _e204 = local_2;
        if (_e204) {
            uint _e209 = params.v.inner[0].w;
            uint _e215 = params.v.inner[0].z;
            uint _e222 = params.v.inner[1].x;
            uint from_at_2 = (((to_2 / _e209) * _e215) + column_2) - _e222;
            uint _e228 = x[from_at_2 / 4u];
            uint _e229 = byte(_e228, from_at_2);
            v2_ = _e229;
        } else {
            uint _e234 = y[to_2 / 4u];
            uint _e235 = byte(_e234, to_2);
            v2_ = _e235;
        }
    }
    {
        uint _e246 = params.v.inner[0].y;
        uint to_3 = metal::min((at_1 * 4u) + 3u, _e246 - 1u);
        uint _e254 = params.v.inner[0].w;
        uint column_3 = to_3 % _e254;
        uint _e260 = params.v.inner[1].x;
        if (column_3 >= _e260) {
            uint _e268 = params.v.inner[1].x;
            uint _e273 = params.v.inner[0].z;
            local_3 = column_3 < (_e268 + _e273);
        } else {
            local_3 = false;
        }
        bool _e277 = local_3;
        if (_e277) {
            uint _e282 = params.v.inner[0].w;
            uint _e288 = params.v.inner[0].z;
            uint _e295 = params.v.inner[1].x;
            uint from_at_3 = (((to_3 / _e282) * _e288) + column_3) - _e295;
            uint _e301 = x[from_at_3 / 4u];
            uint _e302 = byte(_e301, from_at_3);
            v3_ = _e302;
        } else {
            uint _e307 = y[to_3 / 4u];
            uint _e308 = byte(_e307, to_3);
            v3_ = _e308;
        }
    }
    uint _e311 = v0_;
    uint _e312 = v1_;
    uint _e316 = v2_;
    uint _e320 = v3_;
    y[at_1] = ((_e311 | (_e312 << 8u)) | (_e316 << 16u)) | (_e320 << 24u);
    return;
}
