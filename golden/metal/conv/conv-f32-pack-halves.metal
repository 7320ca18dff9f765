// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef half type_1[1];
struct Params {
    uint total;
    uint m;
    uint m_padded;
    uint k;
    uint k_padded;
    uint window;
    uint groups;
};

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& w [[buffer(0)]]
, device type_1& packed [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    half value = 0.0h;
    bool local = {};
    uint at = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e13 = params.total;
    if (at >= _e13) {
        return;
    }
    uint _e17 = params.m_padded;
    uint m = at % _e17;
    uint _e21 = params.m_padded;
    uint _e25 = params.k_padded;
    uint k = (at / _e21) % _e25;
    uint _e29 = params.m_padded;
    uint _e32 = params.k_padded;
    uint part = at / (_e29 * _e32);
    uint _e39 = params.m;
    if (m < _e39) {
        uint _e45 = params.k;
        local = k < _e45;
    } else {
        local = false;
    }
    bool _e48 = local;
    if (_e48) {
        uint _e52 = params.m;
        uint _e57 = params.k;
        half _e61 = w[(((part * _e52) + m) * _e57) + k];
        value = _e61;
    }
    half _e64 = value;
    packed[at] = _e64;
    return;
}
