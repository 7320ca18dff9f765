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
};

typedef uint type_1[1];
typedef int type_3[1];
struct Params {
    uint total;
    uint all;
    uint m;
    uint channels;
    uint pixels;
    uint zw_step;
    uint last;
    uint in_z;
    uint in_y;
    uint in_x;
    uint out_y;
    uint out_x;
    uint stride_z;
    uint stride_y;
    uint stride_x;
    uint pad_z;
    uint pad_y;
    uint pad_x;
    uint step_z;
    uint step_y;
    uint step_x;
    uint x_image;
    uint x_channel;
    uint x_pixel;
    uint y_image;
    uint y_channel;
    uint y_pixel;
};

int number_x(
    uint word,
    uint at
) {
    return as_type<int>((word >> (8u * (at & 3u))) & 255u);
}

int number_w(
    uint word_1,
    uint at_1
) {
    return as_type<int>((word_1 >> (8u * (at_1 & 3u))) & 255u);
}

int sum(
    uint image,
    uint channel_1,
    uint pixel_1,
    device type_1 const& x,
    device type_1 const& w,
    device type_1 const& zero_x,
    device type_1 const& zero_w,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    int total = 0;
    uint c = 0u;
    uint i = {};
    bool local = {};
    bool local_1 = {};
    bool local_2 = {};
    bool local_3 = {};
    uint _e5 = params.out_x;
    uint _e9 = params.stride_x;
    uint _e13 = params.pad_x;
    uint left = ((pixel_1 % _e5) * _e9) - _e13;
    uint _e17 = params.out_x;
    uint rest = pixel_1 / _e17;
    uint _e21 = params.out_y;
    uint _e25 = params.stride_y;
    uint _e29 = params.pad_y;
    uint top = ((rest % _e21) * _e25) - _e29;
    uint _e33 = params.out_y;
    uint _e37 = params.stride_z;
    uint _e41 = params.pad_z;
    uint front = ((rest / _e33) * _e37) - _e41;
    uint _e45 = params.m;
    uint part = channel_1 / _e45;
    uint _e49 = zero_x[0];
    int _e51 = number_x(_e49, 0u);
    uint _e54 = params.zw_step;
    uint own = channel_1 * _e54;
    uint _e60 = zero_w[own >> 2u];
    int _e61 = number_w(_e60, own);
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e283 = c;
            c = _e283 + 1u;
        }
        loop_init = false;
        uint _e66 = c;
        uint _e69 = params.channels;
        if (_e66 < _e69) {
        } else {
            break;
        }
        {
            uint _e73 = params.x_image;
            uint _e77 = params.channels;
            uint _e79 = c;
            uint _e83 = params.x_channel;
            uint start = (image * _e73) + (((part * _e77) + _e79) * _e83);
            uint _e88 = params.channels;
            uint _e90 = c;
            uint weights = ((channel_1 * _e88) + _e90) * 9u;
            i = 0u;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e280 = i;
                    i = _e280 + 1u;
                }
                loop_init_1 = false;
                uint _e96 = i;
                if (_e96 < 3u) {
                } else {
                    break;
                }
                {
                    uint _e99 = i;
                    uint _e104 = params.step_z;
                    uint z = front + ((_e99 / 3u) * _e104);
                    uint _e107 = i;
                    uint _e112 = params.step_y;
                    uint y = top + ((_e107 % 3u) * _e112);
                    uint _e117 = params.in_z;
                    if (z < _e117) {
                        uint _e123 = params.in_y;
                        local = y < _e123;
                    } else {
                        local = false;
                    }
                    bool inside = local;
                    uint _e130 = params.in_y;
                    uint _e135 = params.in_x;
                    uint row = inside ? (((z * _e130) + y) * _e135) : 0u;
                    {
                        uint _e141 = params.step_x;
                        uint at_2 = left + (0u * _e141);
                        if (inside) {
                            uint _e148 = params.in_x;
                            local_1 = at_2 < _e148;
                        } else {
                            local_1 = false;
                        }
                        bool there = local_1;
                        uint _e157 = params.x_pixel;
                        uint source = start + ((there ? (row + at_2) : 0u) * _e157);
                        uint _e160 = i;
                        uint place = (weights + (_e160 * 3u)) + 0u;
                        uint _e170 = x[source >> 2u];
                        int _e171 = number_x(_e170, source);
                        int seen = as_type<int>(as_type<uint>(_e171) - as_type<uint>(_e51));
                        int _e173 = total;
                        uint _e180 = w[place >> 2u];
                        int _e181 = number_w(_e180, place);
                        total = as_type<int>(as_type<uint>(_e173) + as_type<uint>(as_type<int>(as_type<uint>(there ? seen : 0) * as_type<uint>(as_type<int>(as_type<uint>(_e181) - as_type<uint>(_e61))))));
                    }
                    {
                        uint _e188 = params.step_x;
                        uint at_3 = left + (1u * _e188);
                        if (inside) {
                            uint _e195 = params.in_x;
                            local_2 = at_3 < _e195;
                        } else {
                            local_2 = false;
                        }
                        bool there_1 = local_2;
                        uint _e204 = params.x_pixel;
                        uint source_1 = start + ((there_1 ? (row + at_3) : 0u) * _e204);
                        uint _e207 = i;
                        uint place_1 = (weights + (_e207 * 3u)) + 1u;
                        uint _e217 = x[source_1 >> 2u];
                        int _e218 = number_x(_e217, source_1);
                        int seen_1 = as_type<int>(as_type<uint>(_e218) - as_type<uint>(_e51));
                        int _e220 = total;
                        uint _e227 = w[place_1 >> 2u];
                        int _e228 = number_w(_e227, place_1);
                        total = as_type<int>(as_type<uint>(_e220) + as_type<uint>(as_type<int>(as_type<uint>(there_1 ? seen_1 : 0) * as_type<uint>(as_type<int>(as_type<uint>(_e228) - as_type<uint>(_e61))))));
                    }
                    {
                        uint _e235 = params.step_x;
                        uint at_4 = left + (2u * _e235);
                        if (inside) {
                            uint _e242 = params.in_x;
                            local_3 = at_4 < _e242;
                        } else {
                            local_3 = false;
                        }
                        bool there_2 = local_3;
                        uint _e251 = params.x_pixel;
                        uint source_2 = start + ((there_2 ? (row + at_4) : 0u) * _e251);
                        uint _e254 = i;
                        uint place_2 = (weights + (_e254 * 3u)) + 2u;
                        uint _e264 = x[source_2 >> 2u];
                        int _e265 = number_x(_e264, source_2);
                        int seen_2 = as_type<int>(as_type<uint>(_e265) - as_type<uint>(_e51));
                        int _e267 = total;
                        uint _e274 = w[place_2 >> 2u];
                        int _e275 = number_w(_e274, place_2);
                        total = as_type<int>(as_type<uint>(_e267) + as_type<uint>(as_type<int>(as_type<uint>(there_2 ? seen_2 : 0) * as_type<uint>(as_type<int>(as_type<uint>(_e275) - as_type<uint>(_e61))))));
                    }
                }
            }
        }
    }
    int _e285 = total;
    return _e285;
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& x [[buffer(0)]]
, device type_1 const& w [[buffer(1)]]
, device type_3& out [[buffer(2)]]
, device type_1 const& zero_x [[buffer(3)]]
, device type_1 const& zero_w [[buffer(4)]]
, constant Params& params [[buffer(5)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(6)]]
) {
    uint channel = {};
    uint pixel = {};
    uint at_5 = ((group.x + (group.y * groups.x)) * 256u) + lane;
    uint _e13 = params.total;
    if (at_5 >= _e13) {
        return;
    }
    uint _e17 = params.pixels;
    uint _e21 = params.all;
    channel = (at_5 / _e17) % _e21;
    uint _e26 = params.pixels;
    pixel = at_5 % _e26;
    uint _e31 = params.last;
    if (_e31 == 1u) {
        uint _e36 = params.all;
        channel = at_5 % _e36;
        uint _e40 = params.all;
        uint _e44 = params.pixels;
        pixel = (at_5 / _e40) % _e44;
    }
    uint _e48 = params.pixels;
    uint _e51 = params.all;
    uint image_1 = at_5 / (_e48 * _e51);
    uint _e57 = params.y_image;
    uint _e59 = channel;
    uint _e62 = params.y_channel;
    uint _e65 = pixel;
    uint _e68 = params.y_pixel;
    uint _e72 = channel;
    uint _e73 = pixel;
    int _e74 = sum(image_1, _e72, _e73, x, w, zero_x, zero_w, params, _buffer_sizes);
    out[((image_1 * _e57) + (_e59 * _e62)) + (_e65 * _e68)] = _e74;
    return;
}
