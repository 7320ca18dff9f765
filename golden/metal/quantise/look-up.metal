// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
    uint size2;
};

typedef uint type_1[1];
struct Params {
    uint words;
};

uint found(
    uint byte,
    device type_1 const& table,
    constant _mslBufferSizes& _buffer_sizes
) {
    uint _e5 = table[byte >> 2u];
    return (_e5 >> (8u * (byte & 3u))) & 255u;
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint thread_ [[thread_index_in_threadgroup]]
, device type_1 const& x [[buffer(0)]]
, device type_1 const& table [[buffer(1)]]
, device type_1& y [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    uint at = ((group.x + (group.y * groups.x)) * 256u) + thread_;
    uint _e13 = params.words;
    if (at >= _e13) {
        return;
    }
    uint word = x[at];
    uint _e22 = found(word & 255u, table, _buffer_sizes);
    uint _e27 = found((word >> 8u) & 255u, table, _buffer_sizes);
    uint _e35 = found((word >> 16u) & 255u, table, _buffer_sizes);
    uint _e41 = found(word >> 24u, table, _buffer_sizes);
    y[at] = ((_e22 | (_e27 << 8u)) | (_e35 << 16u)) | (_e41 << 24u);
    return;
}
