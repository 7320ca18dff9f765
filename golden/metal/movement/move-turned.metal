// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef metal::float4 type_2[1];
struct type_5 {
    metal::uint4 inner[2];
};
struct Params {
    type_5 v;
};
struct type_6 {
    float inner[1056];
};

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_2 const& x [[buffer(0)]]
, device type_2& y [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, threadgroup type_6& square
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    uint r = {};
    uint source = {};
    uint target_at = 0u;
    uint k = {};
    bool local = {};
    uint i = {};
    bool local_1 = {};
    uint number = group.x + (group.y * groups.x);
    uint _e12 = params.v.inner[1].x;
    r = metal::min(number, _e12 - 1u);
    uint _e17 = r;
    uint _e22 = params.v.inner[0].w;
    uint column = (_e17 % _e22) * 32u;
    uint _e26 = r;
    uint _e31 = params.v.inner[0].w;
    r = _e26 / _e31;
    uint _e33 = r;
    uint _e38 = params.v.inner[0].z;
    uint row = (_e33 % _e38) * 32u;
    uint _e42 = r;
    uint _e47 = params.v.inner[0].z;
    r = _e42 / _e47;
    uint _e53 = params.v.inner[1].y;
    source = _e53;
    {
        uint i_1 = lane % 32u;
        k = lane / 32u;
        bool loop_init = true;
        while(true) {
            if (!loop_init) {
                uint _e118 = k;
                k = _e118 + 8u;
            }
            loop_init = false;
            uint _e62 = k;
            if (_e62 < 32u) {
            } else {
                break;
            }
            {
                uint _e65 = k;
                uint j = column + _e65;
                uint _e72 = params.v.inner[0].x;
                if ((i_1 + row) < _e72) {
                    uint _e80 = params.v.inner[0].y;
                    local = j < _e80;
                } else {
                    local = false;
                }
                bool _e83 = local;
                if (_e83) {
                    uint _e87 = k;
                    uint _e91 = source;
                    uint _e98 = params.v.inner[1].z;
                    uint _e104 = source;
                    uint _e111 = params.v.inner[1].z;
                    float _e117 = x[(((_e91 + i_1) + row) + (j * _e98)) / 4u][(((_e104 + i_1) + row) + (j * _e111)) % 4u];
                    square.inner[(i_1 * 33u) + _e87] = _e117;
                }
            }
        }
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    uint _e125 = params.v.inner[1].x;
    if (number >= _e125) {
        return;
    }
    uint j_1 = column + (lane % 32u);
    i = lane / 32u;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e192 = i;
            i = _e192 + 8u;
        }
        loop_init_1 = false;
        uint _e133 = i;
        if (_e133 < 32u) {
        } else {
            break;
        }
        {
            uint _e136 = i;
            uint _e142 = params.v.inner[0].x;
            if ((_e136 + row) < _e142) {
                uint _e150 = params.v.inner[0].y;
                local_1 = j_1 < _e150;
            } else {
                local_1 = false;
            }
            bool _e153 = local_1;
            if (_e153) {
                uint _e155 = target_at;
                uint _e156 = i;
                uint _e162 = params.v.inner[1].w;
                uint _e169 = target_at;
                uint _e170 = i;
                uint _e176 = params.v.inner[1].w;
                uint _e184 = i;
                float _e191 = square.inner[(_e184 * 33u) + (lane % 32u)];
                y[((_e155 + ((_e156 + row) * _e162)) + j_1) / 4u][((_e169 + ((_e170 + row) * _e176)) + j_1) % 4u] = _e191;
            }
        }
    }
    return;
}
