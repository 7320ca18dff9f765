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
    uint size5;
};

typedef int type_1[1];
typedef float type_3[1];
typedef uint type_5[1];
struct Params {
    uint elements;
    uint columns;
    uint rows;
    uint a;
    uint b;
    uint y;
    uint zero;
};
int naga_f2i32(float value) {
    return static_cast<int>(metal::clamp(value, -2147483600.0, 2147483500.0));
}


struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint thread_ [[thread_index_in_threadgroup]]
, device type_1 const& sums [[buffer(0)]]
, device type_3 const& scale_a [[buffer(1)]]
, device type_3 const& scale_b [[buffer(2)]]
, device type_3 const& scale_y [[buffer(3)]]
, device type_5 const& zero_y [[buffer(4)]]
, device type_5& out [[buffer(5)]]
, constant Params& params [[buffer(6)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(7)]]
) {
    uint bytes = 0u;
    uint i = 0u;
    uint word = ((group.x + (group.y * groups.x)) * 64u) + thread_;
    uint _e15 = params.elements;
    if ((word * 4u) >= _e15) {
        return;
    }
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e113 = i;
            i = _e113 + 1u;
        }
        loop_init = false;
        uint _e21 = i;
        if (_e21 < 4u) {
        } else {
            break;
        }
        {
            uint _e26 = i;
            uint _e30 = params.elements;
            uint at = metal::min((word * 4u) + _e26, _e30 - 1u);
            uint _e36 = params.columns;
            uint column = at % _e36;
            uint _e40 = params.columns;
            uint _e44 = params.rows;
            uint row = (at / _e40) % _e44;
            uint _e49 = params.a;
            float _e52 = scale_a[row * _e49];
            uint _e57 = params.b;
            float _e60 = scale_b[column * _e57];
            uint _e66 = params.y;
            float _e69 = scale_y[row * _e66];
            float scale = (static_cast<float>(_e52) * static_cast<float>(_e60)) / static_cast<float>(_e69);
            uint _e74 = params.zero;
            uint zero_at = row * _e74;
            uint _e80 = zero_y[zero_at >> 2u];
            uint byte = (_e80 >> (8u * (zero_at & 3u))) & 255u;
            int zero = static_cast<int>(byte);
            int _e91 = sums[at];
            int rounded = naga_f2i32(metal::clamp(metal::rint(static_cast<float>(_e91) * scale), -1024.0, 1024.0));
            int value = metal::clamp(as_type<int>(as_type<uint>(rounded) + as_type<uint>(zero)), 0, 255);
            uint _e103 = bytes;
            uint _e108 = i;
            bytes = _e103 | ((as_type<uint>(value) & 255u) << (8u * _e108));
        }
    }
    uint _e117 = bytes;
    out[word] = _e117;
    return;
}
