// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef float type_1[1];
struct type_4 {
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
    type_4 outputs;
};

void store(
    uint which_1,
    uint row,
    uint column,
    float value,
    device type_1& y0_,
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
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint local [[thread_index_in_threadgroup]]
, device type_1 const& partial [[buffer(0)]]
, device type_1& y0_ [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    uint which = 0u;
    float sum = 0.0;
    uint part = 0u;
    uint index = ((group.x + (group.y * groups.x)) * 64u) + local;
    uint _e13 = params.end;
    uint columns = _e13 * 32u;
    uint row_1 = index / columns;
    uint _e19 = params.m;
    if (row_1 >= _e19) {
        return;
    }
    uint line = index % columns;
    uint number = line / 32u;
    uint _e28 = which;
    metal::uint4 own = params.outputs.inner[_e28];
    uint at_1 = line - (own.x * 32u);
    if (at_1 >= own.y) {
        return;
    }
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e60 = part;
            part = _e60 + 1u;
        }
        loop_init = false;
        uint _e41 = part;
        uint _e44 = params.cuts;
        if (_e41 < _e44) {
        } else {
            break;
        }
        {
            uint _e46 = part;
            uint _e49 = params.m;
            uint start = (((_e46 * _e49) + row_1) * columns) + line;
            float _e54 = sum;
            float _e57 = partial[start];
            sum = _e54 + _e57;
        }
    }
    uint _e62 = which;
    float _e65 = sum;
    store(_e62, row_1, own.w + at_1, _e65, y0_, params, _buffer_sizes);
    return;
}
