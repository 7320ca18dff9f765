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
typedef int type_3[1];
struct Params {
    uint total;
    uint tiles_n;
    uint tiles_m;
    uint groups;
    uint channels;
    uint m;
    uint n;
    uint k;
    uint places;
    uint window_y;
    uint window_x;
    uint zw_step;
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
struct type_5 {
    metal::uint4 inner[272];
};

uint present(
    uint k_1,
    constant Params& params
) {
    uint _e5 = params.k;
    if ((k_1 + 4u) <= _e5) {
        return 4294967295u;
    }
    uint _e10 = params.k;
    if (k_1 >= _e10) {
        return 0u;
    }
    uint _e17 = params.k;
    return (1u << (8u * (_e17 - k_1))) - 1u;
}

metal::uint4 block_w(
    uint start,
    uint row,
    uint k_2,
    device type_1 const& w,
    constant Params& params,
    constant _mslBufferSizes& _buffer_sizes
) {
    metal::uint4 block_1 = metal::uint4 {};
    {
        uint _e9 = params.m;
        uint _e15 = params.k;
        uint own = start + (metal::min(row + 0u, _e9 - 1u) * _e15);
        {
            uint _e22 = params.k;
            uint at = own + metal::min(k_2 + 0u, _e22 - 1u);
            uint _e28 = block_1.x;
            uint _e33 = w[at >> 2u];
            block_1.x = _e28 | (((_e33 >> (8u * (at & 3u))) & 255u) << 0u);
        }
        {
            uint _e48 = params.k;
            uint at_1 = own + metal::min(k_2 + 1u, _e48 - 1u);
            uint _e54 = block_1.x;
            uint _e59 = w[at_1 >> 2u];
            block_1.x = _e54 | (((_e59 >> (8u * (at_1 & 3u))) & 255u) << 8u);
        }
        {
            uint _e74 = params.k;
            uint at_2 = own + metal::min(k_2 + 2u, _e74 - 1u);
            uint _e80 = block_1.x;
            uint _e85 = w[at_2 >> 2u];
            block_1.x = _e80 | (((_e85 >> (8u * (at_2 & 3u))) & 255u) << 16u);
        }
        {
            uint _e100 = params.k;
            uint at_3 = own + metal::min(k_2 + 3u, _e100 - 1u);
            uint _e106 = block_1.x;
            uint _e111 = w[at_3 >> 2u];
            block_1.x = _e106 | (((_e111 >> (8u * (at_3 & 3u))) & 255u) << 24u);
        }
    }
    {
        uint _e126 = params.m;
        uint _e132 = params.k;
        uint own_1 = start + (metal::min(row + 1u, _e126 - 1u) * _e132);
        {
            uint _e139 = params.k;
            uint at_4 = own_1 + metal::min(k_2 + 0u, _e139 - 1u);
            uint _e145 = block_1.y;
            uint _e150 = w[at_4 >> 2u];
            block_1.y = _e145 | (((_e150 >> (8u * (at_4 & 3u))) & 255u) << 0u);
        }
        {
            uint _e165 = params.k;
            uint at_5 = own_1 + metal::min(k_2 + 1u, _e165 - 1u);
            uint _e171 = block_1.y;
            uint _e176 = w[at_5 >> 2u];
            block_1.y = _e171 | (((_e176 >> (8u * (at_5 & 3u))) & 255u) << 8u);
        }
        {
            uint _e191 = params.k;
            uint at_6 = own_1 + metal::min(k_2 + 2u, _e191 - 1u);
            uint _e197 = block_1.y;
            uint _e202 = w[at_6 >> 2u];
            block_1.y = _e197 | (((_e202 >> (8u * (at_6 & 3u))) & 255u) << 16u);
        }
        {
            uint _e217 = params.k;
            uint at_7 = own_1 + metal::min(k_2 + 3u, _e217 - 1u);
            uint _e223 = block_1.y;
            uint _e228 = w[at_7 >> 2u];
            block_1.y = _e223 | (((_e228 >> (8u * (at_7 & 3u))) & 255u) << 24u);
        }
    }
    {
        uint _e243 = params.m;
        uint _e249 = params.k;
        uint own_2 = start + (metal::min(row + 2u, _e243 - 1u) * _e249);
        {
            uint _e256 = params.k;
            uint at_8 = own_2 + metal::min(k_2 + 0u, _e256 - 1u);
            uint _e262 = block_1.z;
            uint _e267 = w[at_8 >> 2u];
            block_1.z = _e262 | (((_e267 >> (8u * (at_8 & 3u))) & 255u) << 0u);
        }
        {
            uint _e282 = params.k;
            uint at_9 = own_2 + metal::min(k_2 + 1u, _e282 - 1u);
            uint _e288 = block_1.z;
            uint _e293 = w[at_9 >> 2u];
            block_1.z = _e288 | (((_e293 >> (8u * (at_9 & 3u))) & 255u) << 8u);
        }
        {
            uint _e308 = params.k;
            uint at_10 = own_2 + metal::min(k_2 + 2u, _e308 - 1u);
            uint _e314 = block_1.z;
            uint _e319 = w[at_10 >> 2u];
            block_1.z = _e314 | (((_e319 >> (8u * (at_10 & 3u))) & 255u) << 16u);
        }
        {
            uint _e334 = params.k;
            uint at_11 = own_2 + metal::min(k_2 + 3u, _e334 - 1u);
            uint _e340 = block_1.z;
            uint _e345 = w[at_11 >> 2u];
            block_1.z = _e340 | (((_e345 >> (8u * (at_11 & 3u))) & 255u) << 24u);
        }
    }
    {
        uint _e360 = params.m;
        uint _e366 = params.k;
        uint own_3 = start + (metal::min(row + 3u, _e360 - 1u) * _e366);
        {
            uint _e373 = params.k;
            uint at_12 = own_3 + metal::min(k_2 + 0u, _e373 - 1u);
            uint _e379 = block_1.w;
            uint _e384 = w[at_12 >> 2u];
            block_1.w = _e379 | (((_e384 >> (8u * (at_12 & 3u))) & 255u) << 0u);
        }
        {
            uint _e399 = params.k;
            uint at_13 = own_3 + metal::min(k_2 + 1u, _e399 - 1u);
            uint _e405 = block_1.w;
            uint _e410 = w[at_13 >> 2u];
            block_1.w = _e405 | (((_e410 >> (8u * (at_13 & 3u))) & 255u) << 8u);
        }
        {
            uint _e425 = params.k;
            uint at_14 = own_3 + metal::min(k_2 + 2u, _e425 - 1u);
            uint _e431 = block_1.w;
            uint _e436 = w[at_14 >> 2u];
            block_1.w = _e431 | (((_e436 >> (8u * (at_14 & 3u))) & 255u) << 16u);
        }
        {
            uint _e451 = params.k;
            uint at_15 = own_3 + metal::min(k_2 + 3u, _e451 - 1u);
            uint _e457 = block_1.w;
            uint _e462 = w[at_15 >> 2u];
            block_1.w = _e457 | (((_e462 >> (8u * (at_15 & 3u))) & 255u) << 24u);
        }
    }
    metal::uint4 _e473 = block_1;
    uint _e477 = present(k_2, params);
    return (_e473 ^ metal::uint4(2155905152u)) & metal::uint4(_e477);
}

int centred(
    uint byte_4
) {
    return as_type<int>(byte_4 << 24u) >> 24u;
}

struct main_Input {
};
[[max_total_threads_per_threadgroup(256)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint thread_ [[thread_index_in_threadgroup]]
, device type_1 const& x [[buffer(0)]]
, device type_1 const& w [[buffer(1)]]
, device type_3& out [[buffer(2)]]
, constant Params& params [[buffer(3)]]
, threadgroup type_5& tile_w
, threadgroup type_5& tile_x
, constant _mslBufferSizes& _buffer_sizes [[buffer(4)]]
) {
    metal::int4 sum0_ = metal::int4 {};
    metal::int4 sum1_ = metal::int4 {};
    metal::int4 sum2_ = metal::int4 {};
    metal::int4 sum3_ = metal::int4 {};
    metal::int4 sums_w = metal::int4 {};
    metal::int4 sums_x = metal::int4 {};
    uint k = 0u;
    metal::uint4 block = {};
    uint j = {};
    uint byte = {};
    uint byte_1 = {};
    uint byte_2 = {};
    uint byte_3 = {};
    uint deep = {};
    metal::int4 v = {};
    metal::int4 v_1 = {};
    metal::int4 v_2 = {};
    metal::int4 v_3 = {};
    uint id = group.x + (group.y * groups.x);
    uint _e10 = params.total;
    if (id >= _e10) {
        return;
    }
    uint _e14 = params.tiles_n;
    uint column = (id % _e14) * 64u;
    uint _e20 = params.tiles_n;
    uint _e24 = params.tiles_m;
    uint row_1 = ((id / _e20) % _e24) * 64u;
    uint _e30 = params.tiles_n;
    uint _e33 = params.tiles_m;
    uint rest = id / (_e30 * _e33);
    uint _e38 = params.groups;
    uint part = rest % _e38;
    uint _e42 = params.groups;
    uint image = rest / _e42;
    uint _e46 = params.m;
    uint _e50 = params.k;
    uint from_w = (part * _e46) * _e50;
    uint _e54 = params.x_image;
    uint _e58 = params.channels;
    uint _e62 = params.x_channel;
    uint from_x = (image * _e54) + ((part * _e58) * _e62);
    uint ty = thread_ / 16u;
    uint tx = thread_ % 16u;
    uint _e77 = params.n;
    uint pixel0_ = metal::min((column + (tx * 4u)) + 0u, _e77 - 1u);
    uint _e83 = params.out_x;
    uint _e86 = params.out_y;
    uint _e91 = params.stride_z;
    uint _e95 = params.pad_z;
    uint _e99 = params.out_x;
    uint _e103 = params.out_y;
    uint _e107 = params.stride_y;
    uint _e111 = params.pad_y;
    uint _e115 = params.out_x;
    uint _e119 = params.stride_x;
    uint _e123 = params.pad_x;
    metal::uint3 corner0_ = metal::uint3(((pixel0_ / (_e83 * _e86)) * _e91) - _e95, (((pixel0_ / _e99) % _e103) * _e107) - _e111, ((pixel0_ % _e115) * _e119) - _e123);
    uint _e135 = params.n;
    uint pixel1_ = metal::min((column + (tx * 4u)) + 1u, _e135 - 1u);
    uint _e141 = params.out_x;
    uint _e144 = params.out_y;
    uint _e149 = params.stride_z;
    uint _e153 = params.pad_z;
    uint _e157 = params.out_x;
    uint _e161 = params.out_y;
    uint _e165 = params.stride_y;
    uint _e169 = params.pad_y;
    uint _e173 = params.out_x;
    uint _e177 = params.stride_x;
    uint _e181 = params.pad_x;
    metal::uint3 corner1_ = metal::uint3(((pixel1_ / (_e141 * _e144)) * _e149) - _e153, (((pixel1_ / _e157) % _e161) * _e165) - _e169, ((pixel1_ % _e173) * _e177) - _e181);
    uint _e193 = params.n;
    uint pixel2_ = metal::min((column + (tx * 4u)) + 2u, _e193 - 1u);
    uint _e199 = params.out_x;
    uint _e202 = params.out_y;
    uint _e207 = params.stride_z;
    uint _e211 = params.pad_z;
    uint _e215 = params.out_x;
    uint _e219 = params.out_y;
    uint _e223 = params.stride_y;
    uint _e227 = params.pad_y;
    uint _e231 = params.out_x;
    uint _e235 = params.stride_x;
    uint _e239 = params.pad_x;
    metal::uint3 corner2_ = metal::uint3(((pixel2_ / (_e199 * _e202)) * _e207) - _e211, (((pixel2_ / _e215) % _e219) * _e223) - _e227, ((pixel2_ % _e231) * _e235) - _e239);
    uint _e251 = params.n;
    uint pixel3_ = metal::min((column + (tx * 4u)) + 3u, _e251 - 1u);
    uint _e257 = params.out_x;
    uint _e260 = params.out_y;
    uint _e265 = params.stride_z;
    uint _e269 = params.pad_z;
    uint _e273 = params.out_x;
    uint _e277 = params.out_y;
    uint _e281 = params.stride_y;
    uint _e285 = params.pad_y;
    uint _e289 = params.out_x;
    uint _e293 = params.stride_x;
    uint _e297 = params.pad_x;
    metal::uint3 corner3_ = metal::uint3(((pixel3_ / (_e257 * _e260)) * _e265) - _e269, (((pixel3_ / _e273) % _e277) * _e281) - _e285, ((pixel3_ % _e289) * _e293) - _e297);
    uint _e304 = params.in_z;
    uint _e307 = params.in_y;
    uint _e310 = params.in_x;
    metal::uint3 size = metal::uint3(_e304, _e307, _e310);
    bool loop_init = true;
    while(true) {
        if (!loop_init) {
            uint _e696 = k;
            k = _e696 + 64u;
        }
        loop_init = false;
        uint _e318 = k;
        uint _e321 = params.k;
        if (_e318 < _e321) {
        } else {
            break;
        }
        {
            uint _e331 = k;
            metal::uint4 _e335 = block_w(from_w, row_1 + (ty * 4u), _e331 + (tx * 4u), w, params, _buffer_sizes);
            tile_w.inner[(tx * 17u) + ty] = _e335;
            uint _e336 = k;
            uint deep_1 = _e336 + (ty * 4u);
            block = metal::uint4 {};
            j = 0u;
            bool loop_init_1 = true;
            while(true) {
                if (!loop_init_1) {
                    uint _e570 = j;
                    j = _e570 + 1u;
                }
                loop_init_1 = false;
                uint _e344 = j;
                if (_e344 < 4u) {
                } else {
                    break;
                }
                {
                    uint _e347 = j;
                    uint _e351 = params.k;
                    uint term = metal::min(deep_1 + _e347, _e351 - 1u);
                    uint _e357 = params.places;
                    uint place = term % _e357;
                    uint _e361 = params.places;
                    uint _e365 = params.x_channel;
                    uint start_1 = from_x + ((term / _e361) * _e365);
                    uint _e370 = params.window_x;
                    uint _e373 = params.window_y;
                    uint _e378 = params.step_z;
                    uint _e382 = params.window_x;
                    uint _e386 = params.window_y;
                    uint _e390 = params.step_y;
                    uint _e394 = params.window_x;
                    uint _e398 = params.step_x;
                    metal::uint3 moved = metal::uint3((place / (_e370 * _e373)) * _e378, ((place / _e382) % _e386) * _e390, (place % _e394) * _e398);
                    {
                        metal::uint3 at_16 = corner0_ + moved;
                        byte = 0u;
                        if (metal::all(at_16 < size)) {
                            uint _e408 = params.in_y;
                            uint _e414 = params.in_x;
                            uint _e420 = params.x_pixel;
                            uint source = start_1 + (((((at_16.x * _e408) + at_16.y) * _e414) + at_16.z) * _e420);
                            uint _e427 = x[source >> 2u];
                            byte = (_e427 >> (8u * (source & 3u))) & 255u;
                        }
                        uint _e436 = block.x;
                        uint _e437 = byte;
                        uint _e439 = j;
                        block.x = _e436 | (_e437 << (8u * _e439));
                    }
                    {
                        metal::uint3 at_17 = corner1_ + moved;
                        byte_1 = 0u;
                        if (metal::all(at_17 < size)) {
                            uint _e450 = params.in_y;
                            uint _e456 = params.in_x;
                            uint _e462 = params.x_pixel;
                            uint source_1 = start_1 + (((((at_17.x * _e450) + at_17.y) * _e456) + at_17.z) * _e462);
                            uint _e469 = x[source_1 >> 2u];
                            byte_1 = (_e469 >> (8u * (source_1 & 3u))) & 255u;
                        }
                        uint _e478 = block.y;
                        uint _e479 = byte_1;
                        uint _e481 = j;
                        block.y = _e478 | (_e479 << (8u * _e481));
                    }
                    {
                        metal::uint3 at_18 = corner2_ + moved;
                        byte_2 = 0u;
                        if (metal::all(at_18 < size)) {
                            uint _e492 = params.in_y;
                            uint _e498 = params.in_x;
                            uint _e504 = params.x_pixel;
                            uint source_2 = start_1 + (((((at_18.x * _e492) + at_18.y) * _e498) + at_18.z) * _e504);
                            uint _e511 = x[source_2 >> 2u];
                            byte_2 = (_e511 >> (8u * (source_2 & 3u))) & 255u;
                        }
                        uint _e520 = block.z;
                        uint _e521 = byte_2;
                        uint _e523 = j;
                        block.z = _e520 | (_e521 << (8u * _e523));
                    }
                    {
                        metal::uint3 at_19 = corner3_ + moved;
                        byte_3 = 0u;
                        if (metal::all(at_19 < size)) {
                            uint _e534 = params.in_y;
                            uint _e540 = params.in_x;
                            uint _e546 = params.x_pixel;
                            uint source_3 = start_1 + (((((at_19.x * _e534) + at_19.y) * _e540) + at_19.z) * _e546);
                            uint _e553 = x[source_3 >> 2u];
                            byte_3 = (_e553 >> (8u * (source_3 & 3u))) & 255u;
                        }
                        uint _e562 = block.w;
                        uint _e563 = byte_3;
                        uint _e565 = j;
                        block.w = _e562 | (_e563 << (8u * _e565));
                    }
                }
            }
            metal::uint4 _e577 = block;
            uint _e581 = present(deep_1, params);
            tile_x.inner[(ty * 17u) + tx] = (_e577 ^ metal::uint4(2155905152u)) & metal::uint4(_e581);
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
            deep = 0u;
            bool loop_init_2 = true;
            while(true) {
                if (!loop_init_2) {
                    uint _e694 = deep;
                    deep = _e694 + 1u;
                }
                loop_init_2 = false;
                uint _e586 = deep;
                if (_e586 < 16u) {
                } else {
                    break;
                }
                {
                    uint _e590 = deep;
                    metal::uint4 bytes_w = tile_w.inner[(_e590 * 17u) + ty];
                    uint _e597 = deep;
                    metal::uint4 bytes_x = tile_x.inner[(_e597 * 17u) + tx];
                    metal::int4 _e603 = sum0_;
                    uint _e604 = bytes_w.x;
                    uint _e605 = bytes_x.x;
                    packed_char4 reinterpreted_packed_char4_e604 = as_type<packed_char4>(_e604);
                    packed_char4 reinterpreted_packed_char4_e605 = as_type<packed_char4>(_e605);
                    uint _e607 = bytes_w.x;
                    uint _e608 = bytes_x.y;
                    packed_char4 reinterpreted_packed_char4_e607 = as_type<packed_char4>(_e607);
                    packed_char4 reinterpreted_packed_char4_e608 = as_type<packed_char4>(_e608);
                    uint _e610 = bytes_w.x;
                    uint _e611 = bytes_x.z;
                    packed_char4 reinterpreted_packed_char4_e610 = as_type<packed_char4>(_e610);
                    packed_char4 reinterpreted_packed_char4_e611 = as_type<packed_char4>(_e611);
                    uint _e613 = bytes_w.x;
                    uint _e614 = bytes_x.w;
                    packed_char4 reinterpreted_packed_char4_e613 = as_type<packed_char4>(_e613);
                    packed_char4 reinterpreted_packed_char4_e614 = as_type<packed_char4>(_e614);
                    sum0_ = as_type<metal::int4>(as_type<metal::uint4>(_e603) + as_type<metal::uint4>(metal::int4(( + reinterpreted_packed_char4_e604[0] * reinterpreted_packed_char4_e605[0] + reinterpreted_packed_char4_e604[1] * reinterpreted_packed_char4_e605[1] + reinterpreted_packed_char4_e604[2] * reinterpreted_packed_char4_e605[2] + reinterpreted_packed_char4_e604[3] * reinterpreted_packed_char4_e605[3]), ( + reinterpreted_packed_char4_e607[0] * reinterpreted_packed_char4_e608[0] + reinterpreted_packed_char4_e607[1] * reinterpreted_packed_char4_e608[1] + reinterpreted_packed_char4_e607[2] * reinterpreted_packed_char4_e608[2] + reinterpreted_packed_char4_e607[3] * reinterpreted_packed_char4_e608[3]), ( + reinterpreted_packed_char4_e610[0] * reinterpreted_packed_char4_e611[0] + reinterpreted_packed_char4_e610[1] * reinterpreted_packed_char4_e611[1] + reinterpreted_packed_char4_e610[2] * reinterpreted_packed_char4_e611[2] + reinterpreted_packed_char4_e610[3] * reinterpreted_packed_char4_e611[3]), ( + reinterpreted_packed_char4_e613[0] * reinterpreted_packed_char4_e614[0] + reinterpreted_packed_char4_e613[1] * reinterpreted_packed_char4_e614[1] + reinterpreted_packed_char4_e613[2] * reinterpreted_packed_char4_e614[2] + reinterpreted_packed_char4_e613[3] * reinterpreted_packed_char4_e614[3]))));
                    metal::int4 _e618 = sum1_;
                    uint _e619 = bytes_w.y;
                    uint _e620 = bytes_x.x;
                    packed_char4 reinterpreted_packed_char4_e619 = as_type<packed_char4>(_e619);
                    packed_char4 reinterpreted_packed_char4_e620 = as_type<packed_char4>(_e620);
                    uint _e622 = bytes_w.y;
                    uint _e623 = bytes_x.y;
                    packed_char4 reinterpreted_packed_char4_e622 = as_type<packed_char4>(_e622);
                    packed_char4 reinterpreted_packed_char4_e623 = as_type<packed_char4>(_e623);
                    uint _e625 = bytes_w.y;
                    uint _e626 = bytes_x.z;
                    packed_char4 reinterpreted_packed_char4_e625 = as_type<packed_char4>(_e625);
                    packed_char4 reinterpreted_packed_char4_e626 = as_type<packed_char4>(_e626);
                    uint _e628 = bytes_w.y;
                    uint _e629 = bytes_x.w;
                    packed_char4 reinterpreted_packed_char4_e628 = as_type<packed_char4>(_e628);
                    packed_char4 reinterpreted_packed_char4_e629 = as_type<packed_char4>(_e629);
                    sum1_ = as_type<metal::int4>(as_type<metal::uint4>(_e618) + as_type<metal::uint4>(metal::int4(( + reinterpreted_packed_char4_e619[0] * reinterpreted_packed_char4_e620[0] + reinterpreted_packed_char4_e619[1] * reinterpreted_packed_char4_e620[1] + reinterpreted_packed_char4_e619[2] * reinterpreted_packed_char4_e620[2] + reinterpreted_packed_char4_e619[3] * reinterpreted_packed_char4_e620[3]), ( + reinterpreted_packed_char4_e622[0] * reinterpreted_packed_char4_e623[0] + reinterpreted_packed_char4_e622[1] * reinterpreted_packed_char4_e623[1] + reinterpreted_packed_char4_e622[2] * reinterpreted_packed_char4_e623[2] + reinterpreted_packed_char4_e622[3] * reinterpreted_packed_char4_e623[3]), ( + reinterpreted_packed_char4_e625[0] * reinterpreted_packed_char4_e626[0] + reinterpreted_packed_char4_e625[1] * reinterpreted_packed_char4_e626[1] + reinterpreted_packed_char4_e625[2] * reinterpreted_packed_char4_e626[2] + reinterpreted_packed_char4_e625[3] * reinterpreted_packed_char4_e626[3]), ( + reinterpreted_packed_char4_e628[0] * reinterpreted_packed_char4_e629[0] + reinterpreted_packed_char4_e628[1] * reinterpreted_packed_char4_e629[1] + reinterpreted_packed_char4_e628[2] * reinterpreted_packed_char4_e629[2] + reinterpreted_packed_char4_e628[3] * reinterpreted_packed_char4_e629[3]))));
                    metal::int4 _e633 = sum2_;
                    uint _e634 = bytes_w.z;
                    uint _e635 = bytes_x.x;
                    packed_char4 reinterpreted_packed_char4_e634 = as_type<packed_char4>(_e634);
                    packed_char4 reinterpreted_packed_char4_e635 = as_type<packed_char4>(_e635);
                    uint _e637 = bytes_w.z;
                    uint _e638 = bytes_x.y;
                    packed_char4 reinterpreted_packed_char4_e637 = as_type<packed_char4>(_e637);
                    packed_char4 reinterpreted_packed_char4_e638 = as_type<packed_char4>(_e638);
                    uint _e640 = bytes_w.z;
                    uint _e641 = bytes_x.z;
                    packed_char4 reinterpreted_packed_char4_e640 = as_type<packed_char4>(_e640);
                    packed_char4 reinterpreted_packed_char4_e641 = as_type<packed_char4>(_e641);
                    uint _e643 = bytes_w.z;
                    uint _e644 = bytes_x.w;
                    packed_char4 reinterpreted_packed_char4_e643 = as_type<packed_char4>(_e643);
                    packed_char4 reinterpreted_packed_char4_e644 = as_type<packed_char4>(_e644);
                    sum2_ = as_type<metal::int4>(as_type<metal::uint4>(_e633) + as_type<metal::uint4>(metal::int4(( + reinterpreted_packed_char4_e634[0] * reinterpreted_packed_char4_e635[0] + reinterpreted_packed_char4_e634[1] * reinterpreted_packed_char4_e635[1] + reinterpreted_packed_char4_e634[2] * reinterpreted_packed_char4_e635[2] + reinterpreted_packed_char4_e634[3] * reinterpreted_packed_char4_e635[3]), ( + reinterpreted_packed_char4_e637[0] * reinterpreted_packed_char4_e638[0] + reinterpreted_packed_char4_e637[1] * reinterpreted_packed_char4_e638[1] + reinterpreted_packed_char4_e637[2] * reinterpreted_packed_char4_e638[2] + reinterpreted_packed_char4_e637[3] * reinterpreted_packed_char4_e638[3]), ( + reinterpreted_packed_char4_e640[0] * reinterpreted_packed_char4_e641[0] + reinterpreted_packed_char4_e640[1] * reinterpreted_packed_char4_e641[1] + reinterpreted_packed_char4_e640[2] * reinterpreted_packed_char4_e641[2] + reinterpreted_packed_char4_e640[3] * reinterpreted_packed_char4_e641[3]), ( + reinterpreted_packed_char4_e643[0] * reinterpreted_packed_char4_e644[0] + reinterpreted_packed_char4_e643[1] * reinterpreted_packed_char4_e644[1] + reinterpreted_packed_char4_e643[2] * reinterpreted_packed_char4_e644[2] + reinterpreted_packed_char4_e643[3] * reinterpreted_packed_char4_e644[3]))));
                    metal::int4 _e648 = sum3_;
                    uint _e649 = bytes_w.w;
                    uint _e650 = bytes_x.x;
                    packed_char4 reinterpreted_packed_char4_e649 = as_type<packed_char4>(_e649);
                    packed_char4 reinterpreted_packed_char4_e650 = as_type<packed_char4>(_e650);
                    uint _e652 = bytes_w.w;
                    uint _e653 = bytes_x.y;
                    packed_char4 reinterpreted_packed_char4_e652 = as_type<packed_char4>(_e652);
                    packed_char4 reinterpreted_packed_char4_e653 = as_type<packed_char4>(_e653);
                    uint _e655 = bytes_w.w;
                    uint _e656 = bytes_x.z;
                    packed_char4 reinterpreted_packed_char4_e655 = as_type<packed_char4>(_e655);
                    packed_char4 reinterpreted_packed_char4_e656 = as_type<packed_char4>(_e656);
                    uint _e658 = bytes_w.w;
                    uint _e659 = bytes_x.w;
                    packed_char4 reinterpreted_packed_char4_e658 = as_type<packed_char4>(_e658);
                    packed_char4 reinterpreted_packed_char4_e659 = as_type<packed_char4>(_e659);
                    sum3_ = as_type<metal::int4>(as_type<metal::uint4>(_e648) + as_type<metal::uint4>(metal::int4(( + reinterpreted_packed_char4_e649[0] * reinterpreted_packed_char4_e650[0] + reinterpreted_packed_char4_e649[1] * reinterpreted_packed_char4_e650[1] + reinterpreted_packed_char4_e649[2] * reinterpreted_packed_char4_e650[2] + reinterpreted_packed_char4_e649[3] * reinterpreted_packed_char4_e650[3]), ( + reinterpreted_packed_char4_e652[0] * reinterpreted_packed_char4_e653[0] + reinterpreted_packed_char4_e652[1] * reinterpreted_packed_char4_e653[1] + reinterpreted_packed_char4_e652[2] * reinterpreted_packed_char4_e653[2] + reinterpreted_packed_char4_e652[3] * reinterpreted_packed_char4_e653[3]), ( + reinterpreted_packed_char4_e655[0] * reinterpreted_packed_char4_e656[0] + reinterpreted_packed_char4_e655[1] * reinterpreted_packed_char4_e656[1] + reinterpreted_packed_char4_e655[2] * reinterpreted_packed_char4_e656[2] + reinterpreted_packed_char4_e655[3] * reinterpreted_packed_char4_e656[3]), ( + reinterpreted_packed_char4_e658[0] * reinterpreted_packed_char4_e659[0] + reinterpreted_packed_char4_e658[1] * reinterpreted_packed_char4_e659[1] + reinterpreted_packed_char4_e658[2] * reinterpreted_packed_char4_e659[2] + reinterpreted_packed_char4_e658[3] * reinterpreted_packed_char4_e659[3]))));
                    metal::int4 _e663 = sums_w;
                    uint _e664 = bytes_w.x;
                    packed_char4 reinterpreted_packed_char4_e664 = as_type<packed_char4>(_e664);
                    packed_char4 reinterpreted_packed_char4_e665 = as_type<packed_char4>(16843009u);
                    uint _e667 = bytes_w.y;
                    packed_char4 reinterpreted_packed_char4_e667 = as_type<packed_char4>(_e667);
                    packed_char4 reinterpreted_packed_char4_e668 = as_type<packed_char4>(16843009u);
                    uint _e670 = bytes_w.z;
                    packed_char4 reinterpreted_packed_char4_e670 = as_type<packed_char4>(_e670);
                    packed_char4 reinterpreted_packed_char4_e671 = as_type<packed_char4>(16843009u);
                    uint _e673 = bytes_w.w;
                    packed_char4 reinterpreted_packed_char4_e673 = as_type<packed_char4>(_e673);
                    packed_char4 reinterpreted_packed_char4_e674 = as_type<packed_char4>(16843009u);
                    sums_w = as_type<metal::int4>(as_type<metal::uint4>(_e663) + as_type<metal::uint4>(metal::int4(( + reinterpreted_packed_char4_e664[0] * reinterpreted_packed_char4_e665[0] + reinterpreted_packed_char4_e664[1] * reinterpreted_packed_char4_e665[1] + reinterpreted_packed_char4_e664[2] * reinterpreted_packed_char4_e665[2] + reinterpreted_packed_char4_e664[3] * reinterpreted_packed_char4_e665[3]), ( + reinterpreted_packed_char4_e667[0] * reinterpreted_packed_char4_e668[0] + reinterpreted_packed_char4_e667[1] * reinterpreted_packed_char4_e668[1] + reinterpreted_packed_char4_e667[2] * reinterpreted_packed_char4_e668[2] + reinterpreted_packed_char4_e667[3] * reinterpreted_packed_char4_e668[3]), ( + reinterpreted_packed_char4_e670[0] * reinterpreted_packed_char4_e671[0] + reinterpreted_packed_char4_e670[1] * reinterpreted_packed_char4_e671[1] + reinterpreted_packed_char4_e670[2] * reinterpreted_packed_char4_e671[2] + reinterpreted_packed_char4_e670[3] * reinterpreted_packed_char4_e671[3]), ( + reinterpreted_packed_char4_e673[0] * reinterpreted_packed_char4_e674[0] + reinterpreted_packed_char4_e673[1] * reinterpreted_packed_char4_e674[1] + reinterpreted_packed_char4_e673[2] * reinterpreted_packed_char4_e674[2] + reinterpreted_packed_char4_e673[3] * reinterpreted_packed_char4_e674[3]))));
                    metal::int4 _e678 = sums_x;
                    uint _e679 = bytes_x.x;
                    packed_char4 reinterpreted_packed_char4_e679 = as_type<packed_char4>(_e679);
                    packed_char4 reinterpreted_packed_char4_e680 = as_type<packed_char4>(16843009u);
                    uint _e682 = bytes_x.y;
                    packed_char4 reinterpreted_packed_char4_e682 = as_type<packed_char4>(_e682);
                    packed_char4 reinterpreted_packed_char4_e683 = as_type<packed_char4>(16843009u);
                    uint _e685 = bytes_x.z;
                    packed_char4 reinterpreted_packed_char4_e685 = as_type<packed_char4>(_e685);
                    packed_char4 reinterpreted_packed_char4_e686 = as_type<packed_char4>(16843009u);
                    uint _e688 = bytes_x.w;
                    packed_char4 reinterpreted_packed_char4_e688 = as_type<packed_char4>(_e688);
                    packed_char4 reinterpreted_packed_char4_e689 = as_type<packed_char4>(16843009u);
                    sums_x = as_type<metal::int4>(as_type<metal::uint4>(_e678) + as_type<metal::uint4>(metal::int4(( + reinterpreted_packed_char4_e679[0] * reinterpreted_packed_char4_e680[0] + reinterpreted_packed_char4_e679[1] * reinterpreted_packed_char4_e680[1] + reinterpreted_packed_char4_e679[2] * reinterpreted_packed_char4_e680[2] + reinterpreted_packed_char4_e679[3] * reinterpreted_packed_char4_e680[3]), ( + reinterpreted_packed_char4_e682[0] * reinterpreted_packed_char4_e683[0] + reinterpreted_packed_char4_e682[1] * reinterpreted_packed_char4_e683[1] + reinterpreted_packed_char4_e682[2] * reinterpreted_packed_char4_e683[2] + reinterpreted_packed_char4_e682[3] * reinterpreted_packed_char4_e683[3]), ( + reinterpreted_packed_char4_e685[0] * reinterpreted_packed_char4_e686[0] + reinterpreted_packed_char4_e685[1] * reinterpreted_packed_char4_e686[1] + reinterpreted_packed_char4_e685[2] * reinterpreted_packed_char4_e686[2] + reinterpreted_packed_char4_e685[3] * reinterpreted_packed_char4_e686[3]), ( + reinterpreted_packed_char4_e688[0] * reinterpreted_packed_char4_e689[0] + reinterpreted_packed_char4_e688[1] * reinterpreted_packed_char4_e689[1] + reinterpreted_packed_char4_e688[2] * reinterpreted_packed_char4_e689[2] + reinterpreted_packed_char4_e688[3] * reinterpreted_packed_char4_e689[3]))));
                }
            }
            metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
        }
    }
    int _e701 = centred(0u ^ 128u);
    {
        uint own_4 = (row_1 + (ty * 4u)) + 0u;
        uint _e709 = params.m;
        if (own_4 < _e709) {
            uint _e713 = params.m;
            uint channel = (part * _e713) + own_4;
            metal::int4 _e716 = sum0_;
            v = _e716;
            metal::int4 _e718 = v;
            int _e720 = sums_w.x;
            v = as_type<metal::int4>(as_type<metal::uint4>(_e718) - as_type<metal::uint4>(metal::int4(as_type<int>(as_type<uint>(_e701) * as_type<uint>(_e720)))));
            metal::int4 _e725 = v;
            int _e728 = centred(0u ^ 128u);
            metal::int4 _e729 = sums_x;
            uint _e732 = params.k;
            v = as_type<metal::int4>(as_type<metal::uint4>(_e725) - as_type<metal::uint4>(as_type<metal::int4>(as_type<uint>(_e728) * as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(_e729) - as_type<metal::uint4>(metal::int4(as_type<int>(as_type<uint>(_e701) * as_type<uint>(static_cast<int>(_e732))))))))));
            uint _e741 = params.y_image;
            uint _e745 = params.y_channel;
            uint to = (image * _e741) + (channel * _e745);
            uint _e755 = params.n;
            if (((column + (tx * 4u)) + 0u) < _e755) {
                uint _e765 = params.y_pixel;
                int _e770 = v.x;
                out[to + (((column + (tx * 4u)) + 0u) * _e765)] = _e770;
            }
            uint _e778 = params.n;
            if (((column + (tx * 4u)) + 1u) < _e778) {
                uint _e788 = params.y_pixel;
                int _e793 = v.y;
                out[to + (((column + (tx * 4u)) + 1u) * _e788)] = _e793;
            }
            uint _e801 = params.n;
            if (((column + (tx * 4u)) + 2u) < _e801) {
                uint _e811 = params.y_pixel;
                int _e816 = v.z;
                out[to + (((column + (tx * 4u)) + 2u) * _e811)] = _e816;
            }
            uint _e824 = params.n;
            if (((column + (tx * 4u)) + 3u) < _e824) {
                uint _e834 = params.y_pixel;
                int _e839 = v.w;
                out[to + (((column + (tx * 4u)) + 3u) * _e834)] = _e839;
            }
        }
    }
    {
        uint own_5 = (row_1 + (ty * 4u)) + 1u;
        uint _e847 = params.m;
        if (own_5 < _e847) {
            uint _e851 = params.m;
            uint channel_1 = (part * _e851) + own_5;
            metal::int4 _e854 = sum1_;
            v_1 = _e854;
            metal::int4 _e856 = v_1;
            int _e858 = sums_w.y;
            v_1 = as_type<metal::int4>(as_type<metal::uint4>(_e856) - as_type<metal::uint4>(metal::int4(as_type<int>(as_type<uint>(_e701) * as_type<uint>(_e858)))));
            metal::int4 _e863 = v_1;
            int _e866 = centred(0u ^ 128u);
            metal::int4 _e867 = sums_x;
            uint _e870 = params.k;
            v_1 = as_type<metal::int4>(as_type<metal::uint4>(_e863) - as_type<metal::uint4>(as_type<metal::int4>(as_type<uint>(_e866) * as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(_e867) - as_type<metal::uint4>(metal::int4(as_type<int>(as_type<uint>(_e701) * as_type<uint>(static_cast<int>(_e870))))))))));
            uint _e879 = params.y_image;
            uint _e883 = params.y_channel;
            uint to_1 = (image * _e879) + (channel_1 * _e883);
            uint _e893 = params.n;
            if (((column + (tx * 4u)) + 0u) < _e893) {
                uint _e903 = params.y_pixel;
                int _e908 = v_1.x;
                out[to_1 + (((column + (tx * 4u)) + 0u) * _e903)] = _e908;
            }
            uint _e916 = params.n;
            if (((column + (tx * 4u)) + 1u) < _e916) {
                uint _e926 = params.y_pixel;
                int _e931 = v_1.y;
                out[to_1 + (((column + (tx * 4u)) + 1u) * _e926)] = _e931;
            }
            uint _e939 = params.n;
            if (((column + (tx * 4u)) + 2u) < _e939) {
                uint _e949 = params.y_pixel;
                int _e954 = v_1.z;
                out[to_1 + (((column + (tx * 4u)) + 2u) * _e949)] = _e954;
            }
            uint _e962 = params.n;
            if (((column + (tx * 4u)) + 3u) < _e962) {
                uint _e972 = params.y_pixel;
                int _e977 = v_1.w;
                out[to_1 + (((column + (tx * 4u)) + 3u) * _e972)] = _e977;
            }
        }
    }
    {
        uint own_6 = (row_1 + (ty * 4u)) + 2u;
        uint _e985 = params.m;
        if (own_6 < _e985) {
            uint _e989 = params.m;
            uint channel_2 = (part * _e989) + own_6;
            metal::int4 _e992 = sum2_;
            v_2 = _e992;
            metal::int4 _e994 = v_2;
            int _e996 = sums_w.z;
            v_2 = as_type<metal::int4>(as_type<metal::uint4>(_e994) - as_type<metal::uint4>(metal::int4(as_type<int>(as_type<uint>(_e701) * as_type<uint>(_e996)))));
            metal::int4 _e1001 = v_2;
            int _e1004 = centred(0u ^ 128u);
            metal::int4 _e1005 = sums_x;
            uint _e1008 = params.k;
            v_2 = as_type<metal::int4>(as_type<metal::uint4>(_e1001) - as_type<metal::uint4>(as_type<metal::int4>(as_type<uint>(_e1004) * as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(_e1005) - as_type<metal::uint4>(metal::int4(as_type<int>(as_type<uint>(_e701) * as_type<uint>(static_cast<int>(_e1008))))))))));
            uint _e1017 = params.y_image;
            uint _e1021 = params.y_channel;
            uint to_2 = (image * _e1017) + (channel_2 * _e1021);
            uint _e1031 = params.n;
            if (((column + (tx * 4u)) + 0u) < _e1031) {
                uint _e1041 = params.y_pixel;
                int _e1046 = v_2.x;
                out[to_2 + (((column + (tx * 4u)) + 0u) * _e1041)] = _e1046;
            }
            uint _e1054 = params.n;
            if (((column + (tx * 4u)) + 1u) < _e1054) {
                uint _e1064 = params.y_pixel;
                int _e1069 = v_2.y;
                out[to_2 + (((column + (tx * 4u)) + 1u) * _e1064)] = _e1069;
            }
            uint _e1077 = params.n;
            if (((column + (tx * 4u)) + 2u) < _e1077) {
                uint _e1087 = params.y_pixel;
                int _e1092 = v_2.z;
                out[to_2 + (((column + (tx * 4u)) + 2u) * _e1087)] = _e1092;
            }
            uint _e1100 = params.n;
            if (((column + (tx * 4u)) + 3u) < _e1100) {
                uint _e1110 = params.y_pixel;
                int _e1115 = v_2.w;
                out[to_2 + (((column + (tx * 4u)) + 3u) * _e1110)] = _e1115;
            }
        }
    }
    {
        uint own_7 = (row_1 + (ty * 4u)) + 3u;
        uint _e1123 = params.m;
        if (own_7 < _e1123) {
            uint _e1127 = params.m;
            uint channel_3 = (part * _e1127) + own_7;
            metal::int4 _e1130 = sum3_;
            v_3 = _e1130;
            metal::int4 _e1132 = v_3;
            int _e1134 = sums_w.w;
            v_3 = as_type<metal::int4>(as_type<metal::uint4>(_e1132) - as_type<metal::uint4>(metal::int4(as_type<int>(as_type<uint>(_e701) * as_type<uint>(_e1134)))));
            metal::int4 _e1139 = v_3;
            int _e1142 = centred(0u ^ 128u);
            metal::int4 _e1143 = sums_x;
            uint _e1146 = params.k;
            v_3 = as_type<metal::int4>(as_type<metal::uint4>(_e1139) - as_type<metal::uint4>(as_type<metal::int4>(as_type<uint>(_e1142) * as_type<metal::uint4>(as_type<metal::int4>(as_type<metal::uint4>(_e1143) - as_type<metal::uint4>(metal::int4(as_type<int>(as_type<uint>(_e701) * as_type<uint>(static_cast<int>(_e1146))))))))));
            uint _e1155 = params.y_image;
            uint _e1159 = params.y_channel;
            uint to_3 = (image * _e1155) + (channel_3 * _e1159);
            uint _e1169 = params.n;
            if (((column + (tx * 4u)) + 0u) < _e1169) {
                uint _e1179 = params.y_pixel;
                int _e1184 = v_3.x;
                out[to_3 + (((column + (tx * 4u)) + 0u) * _e1179)] = _e1184;
            }
            uint _e1192 = params.n;
            if (((column + (tx * 4u)) + 1u) < _e1192) {
                uint _e1202 = params.y_pixel;
                int _e1207 = v_3.y;
                out[to_3 + (((column + (tx * 4u)) + 1u) * _e1202)] = _e1207;
            }
            uint _e1215 = params.n;
            if (((column + (tx * 4u)) + 2u) < _e1215) {
                uint _e1225 = params.y_pixel;
                int _e1230 = v_3.z;
                out[to_3 + (((column + (tx * 4u)) + 2u) * _e1225)] = _e1230;
            }
            uint _e1238 = params.n;
            if (((column + (tx * 4u)) + 3u) < _e1238) {
                uint _e1248 = params.y_pixel;
                int _e1253 = v_3.w;
                out[to_3 + (((column + (tx * 4u)) + 3u) * _e1248)] = _e1253;
                return;
            } else {
                return;
            }
        } else {
            return;
        }
    }
}
