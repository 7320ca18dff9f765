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
    uint size6;
};

typedef int type_1[1];
typedef float type_3[1];
typedef uint type_5[1];
struct Params {
    uint elements;
    uint inner;
    uint channels;
    uint w;
};

int signed_byte(
    uint word,
    uint at
) {
    return as_type<int>(word << (24u - (8u * at))) >> 24u;
}

int plain_byte(
    uint word_1,
    uint at_1
) {
    return static_cast<int>((word_1 >> (8u * at_1)) & 255u);
}

int naga_f2i32(float value) {
    return static_cast<int>(metal::clamp(value, -2147483600.0, 2147483500.0));
}

int limited(
    float value_1,
    int zero,
    int low,
    int high
) {
    return metal::clamp(as_type<int>(as_type<uint>(naga_f2i32(metal::clamp(metal::rint(value_1), -1024.0, 1024.0))) + as_type<uint>(zero)), low, high);
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint thread_ [[thread_index_in_threadgroup]]
, device type_1 const& sums [[buffer(0)]]
, device type_3 const& scale_x [[buffer(1)]]
, device type_3 const& scale_w [[buffer(2)]]
, device type_3 const& scale_y [[buffer(3)]]
, device type_5 const& zero_y [[buffer(4)]]
, device type_5& out [[buffer(5)]]
, device type_1 const& bias [[buffer(6)]]
, constant Params& params [[buffer(7)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(8)]]
) {
    uint bytes = 0u;
    uint i = 0u;
    int value = {};
    uint word_2 = ((group.x + (group.y * groups.x)) * 64u) + thread_;
    uint _e15 = params.elements;
    if ((word_2 * 4u) >= _e15) {
        return;
    }
    uint _e19 = zero_y[0];
    int _e21 = plain_byte(_e19, 0u);
    float _e24 = scale_x[0];
    float _e28 = scale_y[0];
    float scale = static_cast<float>(_e24) / static_cast<float>(_e28);
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e89 = i;
            i = _e89 + 1u;
        }
        loop_init = false;
        uint _e35 = i;
        if (_e35 < 4u) {
        } else {
            break;
        }
        {
            uint _e40 = i;
            uint _e44 = params.elements;
            uint at_2 = metal::min((word_2 * 4u) + _e40, _e44 - 1u);
            uint _e50 = params.inner;
            uint _e54 = params.channels;
            uint channel = (at_2 / _e50) % _e54;
            int _e58 = sums[at_2];
            int _e61 = bias[channel];
            float sum = static_cast<float>(as_type<int>(as_type<uint>(_e58) + as_type<uint>(_e61)));
            uint _e67 = params.w;
            float _e70 = scale_w[channel * _e67];
            int _e76 = limited(sum * (scale * static_cast<float>(_e70)), _e21, 0, 255);
            value = _e76;
            uint _e78 = bytes;
            int _e79 = value;
            uint _e84 = i;
            bytes = _e78 | ((as_type<uint>(_e79) & 255u) << (8u * _e84));
        }
    }
    uint _e93 = bytes;
    out[word_2] = _e93;
    return;
}
