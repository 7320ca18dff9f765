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
struct type_5 {
    metal::uint4 inner[1];
};
struct Params {
    type_5 v;
};

float sum(
    float a,
    float b
) {
    return a + b;
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_2 const& source [[buffer(0)]]
, device type_2 const& scale [[buffer(1)]]
, device type_2 const& shift [[buffer(2)]]
, device type_2& y [[buffer(3)]]
, constant Params& params [[buffer(4)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(5)]]
) {
    float s = 0.0;
    float mean = 0.0;
    uint j = {};
    uint j_1 = {};
    uint j_2 = {};
    uint t = lane % 1u;
    uint own = ((group.x + (group.y * groups.x)) * 256u) + (lane / 1u);
    uint _e19 = params.v.inner[0].x;
    bool inside = own < _e19;
    uint _e25 = params.v.inner[0].x;
    uint row = metal::min(own, _e25 - 1u);
    uint _e33 = params.v.inner[0].y;
    uint base = row * _e33;
    j = t;
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e61 = j;
            j = _e61 + 1u;
        }
        loop_init = false;
        uint _e40 = j;
        uint _e45 = params.v.inner[0].y;
        if (_e40 < _e45) {
        } else {
            break;
        }
        {
            uint _e48 = j;
            uint _e53 = j;
            float x = source[(base + _e48) / 4u][(base + _e53) % 4u];
            float _e59 = s;
            s = _e59 + x;
        }
    }
    float _e64 = s;
    uint _e69 = params.v.inner[0].y;
    mean = _e64 / static_cast<float>(_e69);
    s = 0.0;
    j_1 = t;
    bool loop_init_1 = true;
    while(true) {
        if (!loop_init_1) {
            uint _e99 = j_1;
            j_1 = _e99 + 1u;
        }
        loop_init_1 = false;
        uint _e74 = j_1;
        uint _e79 = params.v.inner[0].y;
        if (_e74 < _e79) {
        } else {
            break;
        }
        {
            uint _e82 = j_1;
            uint _e87 = j_1;
            float x_1 = source[(base + _e82) / 4u][(base + _e87) % 4u];
            float _e93 = mean;
            float d = x_1 - static_cast<float>(_e93);
            float _e96 = s;
            s = _e96 + (d * d);
        }
    }
    float _e102 = s;
    uint _e107 = params.v.inner[0].y;
    uint _e114 = params.v.inner[0].z;
    float inverse = 1.0 / metal::sqrt((_e102 / static_cast<float>(_e107)) + as_type<float>(_e114));
    if (inside) {
        j_2 = t;
        bool loop_init_2 = true;
        while(true) {
            if (!loop_init_2) {
                uint _e176 = j_2;
                j_2 = _e176 + 1u;
            }
            loop_init_2 = false;
            uint _e121 = j_2;
            uint _e126 = params.v.inner[0].y;
            if (_e121 < _e126) {
            } else {
                break;
            }
            {
                uint _e129 = j_2;
                uint _e134 = j_2;
                float x_2 = source[(base + _e129) / 4u][(base + _e134) % 4u];
                float _e140 = mean;
                uint _e144 = j_2;
                uint _e148 = j_2;
                float _e152 = scale[_e144 / 4u][_e148 % 4u];
                uint _e155 = j_2;
                uint _e159 = j_2;
                float _e163 = shift[_e155 / 4u][_e159 % 4u];
                float y_value = (((x_2 - _e140) * inverse) * _e152) + _e163;
                uint _e166 = j_2;
                uint _e171 = j_2;
                y[(base + _e166) / 4u][(base + _e171) % 4u] = y_value;
            }
        }
        return;
    } else {
        return;
    }
}
