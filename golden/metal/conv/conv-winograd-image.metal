// language: metal3.2
#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size0;
    uint size1;
};

typedef float type_1[1];
struct Params {
    uint count;
    uint columns;
    uint first;
    uint down;
    uint across;
    uint channels;
    uint m;
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

struct main_Input {
};
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  metal::uint3 group [[threadgroup_position_in_grid]]
, metal::uint3 groups [[threadgroups_per_grid]]
, uint lane [[thread_index_in_threadgroup]]
, device type_1 const& x [[buffer(0)]]
, device type_1& tiles [[buffer(1)]]
, constant Params& params [[buffer(2)]]
, constant _mslBufferSizes& _buffer_sizes [[buffer(3)]]
) {
    float d0_0_ = 0.0;
    float d0_1_ = 0.0;
    float d0_2_ = 0.0;
    float d0_3_ = 0.0;
    float d0_4_ = 0.0;
    float d0_5_ = 0.0;
    float d1_0_ = 0.0;
    float d1_1_ = 0.0;
    float d1_2_ = 0.0;
    float d1_3_ = 0.0;
    float d1_4_ = 0.0;
    float d1_5_ = 0.0;
    float d2_0_ = 0.0;
    float d2_1_ = 0.0;
    float d2_2_ = 0.0;
    float d2_3_ = 0.0;
    float d2_4_ = 0.0;
    float d2_5_ = 0.0;
    float d3_0_ = 0.0;
    float d3_1_ = 0.0;
    float d3_2_ = 0.0;
    float d3_3_ = 0.0;
    float d3_4_ = 0.0;
    float d3_5_ = 0.0;
    float d4_0_ = 0.0;
    float d4_1_ = 0.0;
    float d4_2_ = 0.0;
    float d4_3_ = 0.0;
    float d4_4_ = 0.0;
    float d4_5_ = 0.0;
    float d5_0_ = 0.0;
    float d5_1_ = 0.0;
    float d5_2_ = 0.0;
    float d5_3_ = 0.0;
    float d5_4_ = 0.0;
    float d5_5_ = 0.0;
    uint at = ((group.x + (group.y * groups.x)) * 64u) + lane;
    uint _e13 = params.columns;
    uint _e16 = params.channels;
    if (at >= (_e13 * _e16)) {
        return;
    }
    uint _e21 = params.columns;
    uint _e25 = params.count;
    uint tile = metal::min(at % _e21, _e25 - 1u);
    uint _e31 = params.columns;
    uint channel = at / _e31;
    uint _e35 = params.first;
    uint _e38 = params.down;
    uint _e41 = params.across;
    uint image = _e35 + (tile / (_e38 * _e41));
    uint _e47 = params.across;
    uint _e51 = params.down;
    uint _e57 = params.pad_y;
    uint top = (((tile / _e47) % _e51) * 4u) - _e57;
    uint _e61 = params.across;
    uint _e67 = params.pad_x;
    uint left = ((tile % _e61) * 4u) - _e67;
    uint _e71 = params.x_image;
    uint _e75 = params.x_channel;
    uint start = (image * _e71) + (channel * _e75);
    uint _e94 = params.in_y;
    if ((top + 0u) < _e94) {
        uint _e100 = params.in_x;
        uint _e104 = params.x_pixel;
        uint row = start + (((top + 0u) * _e100) * _e104);
        uint _e111 = params.in_x;
        if ((left + 0u) < _e111) {
            uint _e118 = params.x_pixel;
            float _e122 = x[row + ((left + 0u) * _e118)];
            d0_0_ = static_cast<float>(_e122);
        }
        uint _e128 = params.in_x;
        if ((left + 1u) < _e128) {
            uint _e135 = params.x_pixel;
            float _e139 = x[row + ((left + 1u) * _e135)];
            d0_1_ = static_cast<float>(_e139);
        }
        uint _e145 = params.in_x;
        if ((left + 2u) < _e145) {
            uint _e152 = params.x_pixel;
            float _e156 = x[row + ((left + 2u) * _e152)];
            d0_2_ = static_cast<float>(_e156);
        }
        uint _e162 = params.in_x;
        if ((left + 3u) < _e162) {
            uint _e169 = params.x_pixel;
            float _e173 = x[row + ((left + 3u) * _e169)];
            d0_3_ = static_cast<float>(_e173);
        }
        uint _e179 = params.in_x;
        if ((left + 4u) < _e179) {
            uint _e186 = params.x_pixel;
            float _e190 = x[row + ((left + 4u) * _e186)];
            d0_4_ = static_cast<float>(_e190);
        }
        uint _e196 = params.in_x;
        if ((left + 5u) < _e196) {
            uint _e203 = params.x_pixel;
            float _e207 = x[row + ((left + 5u) * _e203)];
            d0_5_ = static_cast<float>(_e207);
        }
    }
    uint _e225 = params.in_y;
    if ((top + 1u) < _e225) {
        uint _e231 = params.in_x;
        uint _e235 = params.x_pixel;
        uint row_1 = start + (((top + 1u) * _e231) * _e235);
        uint _e242 = params.in_x;
        if ((left + 0u) < _e242) {
            uint _e249 = params.x_pixel;
            float _e253 = x[row_1 + ((left + 0u) * _e249)];
            d1_0_ = static_cast<float>(_e253);
        }
        uint _e259 = params.in_x;
        if ((left + 1u) < _e259) {
            uint _e266 = params.x_pixel;
            float _e270 = x[row_1 + ((left + 1u) * _e266)];
            d1_1_ = static_cast<float>(_e270);
        }
        uint _e276 = params.in_x;
        if ((left + 2u) < _e276) {
            uint _e283 = params.x_pixel;
            float _e287 = x[row_1 + ((left + 2u) * _e283)];
            d1_2_ = static_cast<float>(_e287);
        }
        uint _e293 = params.in_x;
        if ((left + 3u) < _e293) {
            uint _e300 = params.x_pixel;
            float _e304 = x[row_1 + ((left + 3u) * _e300)];
            d1_3_ = static_cast<float>(_e304);
        }
        uint _e310 = params.in_x;
        if ((left + 4u) < _e310) {
            uint _e317 = params.x_pixel;
            float _e321 = x[row_1 + ((left + 4u) * _e317)];
            d1_4_ = static_cast<float>(_e321);
        }
        uint _e327 = params.in_x;
        if ((left + 5u) < _e327) {
            uint _e334 = params.x_pixel;
            float _e338 = x[row_1 + ((left + 5u) * _e334)];
            d1_5_ = static_cast<float>(_e338);
        }
    }
    uint _e356 = params.in_y;
    if ((top + 2u) < _e356) {
        uint _e362 = params.in_x;
        uint _e366 = params.x_pixel;
        uint row_2 = start + (((top + 2u) * _e362) * _e366);
        uint _e373 = params.in_x;
        if ((left + 0u) < _e373) {
            uint _e380 = params.x_pixel;
            float _e384 = x[row_2 + ((left + 0u) * _e380)];
            d2_0_ = static_cast<float>(_e384);
        }
        uint _e390 = params.in_x;
        if ((left + 1u) < _e390) {
            uint _e397 = params.x_pixel;
            float _e401 = x[row_2 + ((left + 1u) * _e397)];
            d2_1_ = static_cast<float>(_e401);
        }
        uint _e407 = params.in_x;
        if ((left + 2u) < _e407) {
            uint _e414 = params.x_pixel;
            float _e418 = x[row_2 + ((left + 2u) * _e414)];
            d2_2_ = static_cast<float>(_e418);
        }
        uint _e424 = params.in_x;
        if ((left + 3u) < _e424) {
            uint _e431 = params.x_pixel;
            float _e435 = x[row_2 + ((left + 3u) * _e431)];
            d2_3_ = static_cast<float>(_e435);
        }
        uint _e441 = params.in_x;
        if ((left + 4u) < _e441) {
            uint _e448 = params.x_pixel;
            float _e452 = x[row_2 + ((left + 4u) * _e448)];
            d2_4_ = static_cast<float>(_e452);
        }
        uint _e458 = params.in_x;
        if ((left + 5u) < _e458) {
            uint _e465 = params.x_pixel;
            float _e469 = x[row_2 + ((left + 5u) * _e465)];
            d2_5_ = static_cast<float>(_e469);
        }
    }
    uint _e487 = params.in_y;
    if ((top + 3u) < _e487) {
        uint _e493 = params.in_x;
        uint _e497 = params.x_pixel;
        uint row_3 = start + (((top + 3u) * _e493) * _e497);
        uint _e504 = params.in_x;
        if ((left + 0u) < _e504) {
            uint _e511 = params.x_pixel;
            float _e515 = x[row_3 + ((left + 0u) * _e511)];
            d3_0_ = static_cast<float>(_e515);
        }
        uint _e521 = params.in_x;
        if ((left + 1u) < _e521) {
            uint _e528 = params.x_pixel;
            float _e532 = x[row_3 + ((left + 1u) * _e528)];
            d3_1_ = static_cast<float>(_e532);
        }
        uint _e538 = params.in_x;
        if ((left + 2u) < _e538) {
            uint _e545 = params.x_pixel;
            float _e549 = x[row_3 + ((left + 2u) * _e545)];
            d3_2_ = static_cast<float>(_e549);
        }
        uint _e555 = params.in_x;
        if ((left + 3u) < _e555) {
            uint _e562 = params.x_pixel;
            float _e566 = x[row_3 + ((left + 3u) * _e562)];
            d3_3_ = static_cast<float>(_e566);
        }
        uint _e572 = params.in_x;
        if ((left + 4u) < _e572) {
            uint _e579 = params.x_pixel;
            float _e583 = x[row_3 + ((left + 4u) * _e579)];
            d3_4_ = static_cast<float>(_e583);
        }
        uint _e589 = params.in_x;
        if ((left + 5u) < _e589) {
            uint _e596 = params.x_pixel;
            float _e600 = x[row_3 + ((left + 5u) * _e596)];
            d3_5_ = static_cast<float>(_e600);
        }
    }
    uint _e618 = params.in_y;
    if ((top + 4u) < _e618) {
        uint _e624 = params.in_x;
        uint _e628 = params.x_pixel;
        uint row_4 = start + (((top + 4u) * _e624) * _e628);
        uint _e635 = params.in_x;
        if ((left + 0u) < _e635) {
            uint _e642 = params.x_pixel;
            float _e646 = x[row_4 + ((left + 0u) * _e642)];
            d4_0_ = static_cast<float>(_e646);
        }
        uint _e652 = params.in_x;
        if ((left + 1u) < _e652) {
            uint _e659 = params.x_pixel;
            float _e663 = x[row_4 + ((left + 1u) * _e659)];
            d4_1_ = static_cast<float>(_e663);
        }
        uint _e669 = params.in_x;
        if ((left + 2u) < _e669) {
            uint _e676 = params.x_pixel;
            float _e680 = x[row_4 + ((left + 2u) * _e676)];
            d4_2_ = static_cast<float>(_e680);
        }
        uint _e686 = params.in_x;
        if ((left + 3u) < _e686) {
            uint _e693 = params.x_pixel;
            float _e697 = x[row_4 + ((left + 3u) * _e693)];
            d4_3_ = static_cast<float>(_e697);
        }
        uint _e703 = params.in_x;
        if ((left + 4u) < _e703) {
            uint _e710 = params.x_pixel;
            float _e714 = x[row_4 + ((left + 4u) * _e710)];
            d4_4_ = static_cast<float>(_e714);
        }
        uint _e720 = params.in_x;
        if ((left + 5u) < _e720) {
            uint _e727 = params.x_pixel;
            float _e731 = x[row_4 + ((left + 5u) * _e727)];
            d4_5_ = static_cast<float>(_e731);
        }
    }
    uint _e749 = params.in_y;
    if ((top + 5u) < _e749) {
        uint _e755 = params.in_x;
        uint _e759 = params.x_pixel;
        uint row_5 = start + (((top + 5u) * _e755) * _e759);
        uint _e766 = params.in_x;
        if ((left + 0u) < _e766) {
            uint _e773 = params.x_pixel;
            float _e777 = x[row_5 + ((left + 0u) * _e773)];
            d5_0_ = static_cast<float>(_e777);
        }
        uint _e783 = params.in_x;
        if ((left + 1u) < _e783) {
            uint _e790 = params.x_pixel;
            float _e794 = x[row_5 + ((left + 1u) * _e790)];
            d5_1_ = static_cast<float>(_e794);
        }
        uint _e800 = params.in_x;
        if ((left + 2u) < _e800) {
            uint _e807 = params.x_pixel;
            float _e811 = x[row_5 + ((left + 2u) * _e807)];
            d5_2_ = static_cast<float>(_e811);
        }
        uint _e817 = params.in_x;
        if ((left + 3u) < _e817) {
            uint _e824 = params.x_pixel;
            float _e828 = x[row_5 + ((left + 3u) * _e824)];
            d5_3_ = static_cast<float>(_e828);
        }
        uint _e834 = params.in_x;
        if ((left + 4u) < _e834) {
            uint _e841 = params.x_pixel;
            float _e845 = x[row_5 + ((left + 4u) * _e841)];
            d5_4_ = static_cast<float>(_e845);
        }
        uint _e851 = params.in_x;
        if ((left + 5u) < _e851) {
            uint _e858 = params.x_pixel;
            float _e862 = x[row_5 + ((left + 5u) * _e858)];
            d5_5_ = static_cast<float>(_e862);
        }
    }
    float _e864 = d0_0_;
    float _e867 = d2_0_;
    float _e871 = d4_0_;
    float t0_0_ = ((4.0 * _e864) - (5.0 * _e867)) + _e871;
    float _e873 = d0_1_;
    float _e876 = d2_1_;
    float _e880 = d4_1_;
    float t0_1_ = ((4.0 * _e873) - (5.0 * _e876)) + _e880;
    float _e882 = d0_2_;
    float _e885 = d2_2_;
    float _e889 = d4_2_;
    float t0_2_ = ((4.0 * _e882) - (5.0 * _e885)) + _e889;
    float _e891 = d0_3_;
    float _e894 = d2_3_;
    float _e898 = d4_3_;
    float t0_3_ = ((4.0 * _e891) - (5.0 * _e894)) + _e898;
    float _e900 = d0_4_;
    float _e903 = d2_4_;
    float _e907 = d4_4_;
    float t0_4_ = ((4.0 * _e900) - (5.0 * _e903)) + _e907;
    float _e909 = d0_5_;
    float _e912 = d2_5_;
    float _e916 = d4_5_;
    float t0_5_ = ((4.0 * _e909) - (5.0 * _e912)) + _e916;
    float _e918 = d1_0_;
    float _e921 = d2_0_;
    float _e925 = d3_0_;
    float _e927 = d4_0_;
    float t1_0_ = (((-4.0 * _e918) - (4.0 * _e921)) + _e925) + _e927;
    float _e929 = d1_1_;
    float _e932 = d2_1_;
    float _e936 = d3_1_;
    float _e938 = d4_1_;
    float t1_1_ = (((-4.0 * _e929) - (4.0 * _e932)) + _e936) + _e938;
    float _e940 = d1_2_;
    float _e943 = d2_2_;
    float _e947 = d3_2_;
    float _e949 = d4_2_;
    float t1_2_ = (((-4.0 * _e940) - (4.0 * _e943)) + _e947) + _e949;
    float _e951 = d1_3_;
    float _e954 = d2_3_;
    float _e958 = d3_3_;
    float _e960 = d4_3_;
    float t1_3_ = (((-4.0 * _e951) - (4.0 * _e954)) + _e958) + _e960;
    float _e962 = d1_4_;
    float _e965 = d2_4_;
    float _e969 = d3_4_;
    float _e971 = d4_4_;
    float t1_4_ = (((-4.0 * _e962) - (4.0 * _e965)) + _e969) + _e971;
    float _e973 = d1_5_;
    float _e976 = d2_5_;
    float _e980 = d3_5_;
    float _e982 = d4_5_;
    float t1_5_ = (((-4.0 * _e973) - (4.0 * _e976)) + _e980) + _e982;
    float _e984 = d1_0_;
    float _e987 = d2_0_;
    float _e991 = d3_0_;
    float _e993 = d4_0_;
    float t2_0_ = (((4.0 * _e984) - (4.0 * _e987)) - _e991) + _e993;
    float _e995 = d1_1_;
    float _e998 = d2_1_;
    float _e1002 = d3_1_;
    float _e1004 = d4_1_;
    float t2_1_ = (((4.0 * _e995) - (4.0 * _e998)) - _e1002) + _e1004;
    float _e1006 = d1_2_;
    float _e1009 = d2_2_;
    float _e1013 = d3_2_;
    float _e1015 = d4_2_;
    float t2_2_ = (((4.0 * _e1006) - (4.0 * _e1009)) - _e1013) + _e1015;
    float _e1017 = d1_3_;
    float _e1020 = d2_3_;
    float _e1024 = d3_3_;
    float _e1026 = d4_3_;
    float t2_3_ = (((4.0 * _e1017) - (4.0 * _e1020)) - _e1024) + _e1026;
    float _e1028 = d1_4_;
    float _e1031 = d2_4_;
    float _e1035 = d3_4_;
    float _e1037 = d4_4_;
    float t2_4_ = (((4.0 * _e1028) - (4.0 * _e1031)) - _e1035) + _e1037;
    float _e1039 = d1_5_;
    float _e1042 = d2_5_;
    float _e1046 = d3_5_;
    float _e1048 = d4_5_;
    float t2_5_ = (((4.0 * _e1039) - (4.0 * _e1042)) - _e1046) + _e1048;
    float _e1050 = d1_0_;
    float _e1053 = d2_0_;
    float _e1055 = d3_0_;
    float _e1059 = d4_0_;
    float t3_0_ = (((-2.0 * _e1050) - _e1053) + (2.0 * _e1055)) + _e1059;
    float _e1061 = d1_1_;
    float _e1064 = d2_1_;
    float _e1066 = d3_1_;
    float _e1070 = d4_1_;
    float t3_1_ = (((-2.0 * _e1061) - _e1064) + (2.0 * _e1066)) + _e1070;
    float _e1072 = d1_2_;
    float _e1075 = d2_2_;
    float _e1077 = d3_2_;
    float _e1081 = d4_2_;
    float t3_2_ = (((-2.0 * _e1072) - _e1075) + (2.0 * _e1077)) + _e1081;
    float _e1083 = d1_3_;
    float _e1086 = d2_3_;
    float _e1088 = d3_3_;
    float _e1092 = d4_3_;
    float t3_3_ = (((-2.0 * _e1083) - _e1086) + (2.0 * _e1088)) + _e1092;
    float _e1094 = d1_4_;
    float _e1097 = d2_4_;
    float _e1099 = d3_4_;
    float _e1103 = d4_4_;
    float t3_4_ = (((-2.0 * _e1094) - _e1097) + (2.0 * _e1099)) + _e1103;
    float _e1105 = d1_5_;
    float _e1108 = d2_5_;
    float _e1110 = d3_5_;
    float _e1114 = d4_5_;
    float t3_5_ = (((-2.0 * _e1105) - _e1108) + (2.0 * _e1110)) + _e1114;
    float _e1116 = d1_0_;
    float _e1119 = d2_0_;
    float _e1121 = d3_0_;
    float _e1125 = d4_0_;
    float t4_0_ = (((2.0 * _e1116) - _e1119) - (2.0 * _e1121)) + _e1125;
    float _e1127 = d1_1_;
    float _e1130 = d2_1_;
    float _e1132 = d3_1_;
    float _e1136 = d4_1_;
    float t4_1_ = (((2.0 * _e1127) - _e1130) - (2.0 * _e1132)) + _e1136;
    float _e1138 = d1_2_;
    float _e1141 = d2_2_;
    float _e1143 = d3_2_;
    float _e1147 = d4_2_;
    float t4_2_ = (((2.0 * _e1138) - _e1141) - (2.0 * _e1143)) + _e1147;
    float _e1149 = d1_3_;
    float _e1152 = d2_3_;
    float _e1154 = d3_3_;
    float _e1158 = d4_3_;
    float t4_3_ = (((2.0 * _e1149) - _e1152) - (2.0 * _e1154)) + _e1158;
    float _e1160 = d1_4_;
    float _e1163 = d2_4_;
    float _e1165 = d3_4_;
    float _e1169 = d4_4_;
    float t4_4_ = (((2.0 * _e1160) - _e1163) - (2.0 * _e1165)) + _e1169;
    float _e1171 = d1_5_;
    float _e1174 = d2_5_;
    float _e1176 = d3_5_;
    float _e1180 = d4_5_;
    float t4_5_ = (((2.0 * _e1171) - _e1174) - (2.0 * _e1176)) + _e1180;
    float _e1182 = d1_0_;
    float _e1185 = d3_0_;
    float _e1189 = d5_0_;
    float t5_0_ = ((4.0 * _e1182) - (5.0 * _e1185)) + _e1189;
    float _e1191 = d1_1_;
    float _e1194 = d3_1_;
    float _e1198 = d5_1_;
    float t5_1_ = ((4.0 * _e1191) - (5.0 * _e1194)) + _e1198;
    float _e1200 = d1_2_;
    float _e1203 = d3_2_;
    float _e1207 = d5_2_;
    float t5_2_ = ((4.0 * _e1200) - (5.0 * _e1203)) + _e1207;
    float _e1209 = d1_3_;
    float _e1212 = d3_3_;
    float _e1216 = d5_3_;
    float t5_3_ = ((4.0 * _e1209) - (5.0 * _e1212)) + _e1216;
    float _e1218 = d1_4_;
    float _e1221 = d3_4_;
    float _e1225 = d5_4_;
    float t5_4_ = ((4.0 * _e1218) - (5.0 * _e1221)) + _e1225;
    float _e1227 = d1_5_;
    float _e1230 = d3_5_;
    float _e1234 = d5_5_;
    float t5_5_ = ((4.0 * _e1227) - (5.0 * _e1230)) + _e1234;
    float v0_0_ = ((4.0 * t0_0_) - (5.0 * t0_2_)) + t0_4_;
    float v0_1_ = (((-4.0 * t0_1_) - (4.0 * t0_2_)) + t0_3_) + t0_4_;
    float v0_2_ = (((4.0 * t0_1_) - (4.0 * t0_2_)) - t0_3_) + t0_4_;
    float v0_3_ = (((-2.0 * t0_1_) - t0_2_) + (2.0 * t0_3_)) + t0_4_;
    float v0_4_ = (((2.0 * t0_1_) - t0_2_) - (2.0 * t0_3_)) + t0_4_;
    float v0_5_ = ((4.0 * t0_1_) - (5.0 * t0_3_)) + t0_5_;
    float v1_0_ = ((4.0 * t1_0_) - (5.0 * t1_2_)) + t1_4_;
    float v1_1_ = (((-4.0 * t1_1_) - (4.0 * t1_2_)) + t1_3_) + t1_4_;
    float v1_2_ = (((4.0 * t1_1_) - (4.0 * t1_2_)) - t1_3_) + t1_4_;
    float v1_3_ = (((-2.0 * t1_1_) - t1_2_) + (2.0 * t1_3_)) + t1_4_;
    float v1_4_ = (((2.0 * t1_1_) - t1_2_) - (2.0 * t1_3_)) + t1_4_;
    float v1_5_ = ((4.0 * t1_1_) - (5.0 * t1_3_)) + t1_5_;
    float v2_0_ = ((4.0 * t2_0_) - (5.0 * t2_2_)) + t2_4_;
    float v2_1_ = (((-4.0 * t2_1_) - (4.0 * t2_2_)) + t2_3_) + t2_4_;
    float v2_2_ = (((4.0 * t2_1_) - (4.0 * t2_2_)) - t2_3_) + t2_4_;
    float v2_3_ = (((-2.0 * t2_1_) - t2_2_) + (2.0 * t2_3_)) + t2_4_;
    float v2_4_ = (((2.0 * t2_1_) - t2_2_) - (2.0 * t2_3_)) + t2_4_;
    float v2_5_ = ((4.0 * t2_1_) - (5.0 * t2_3_)) + t2_5_;
    float v3_0_ = ((4.0 * t3_0_) - (5.0 * t3_2_)) + t3_4_;
    float v3_1_ = (((-4.0 * t3_1_) - (4.0 * t3_2_)) + t3_3_) + t3_4_;
    float v3_2_ = (((4.0 * t3_1_) - (4.0 * t3_2_)) - t3_3_) + t3_4_;
    float v3_3_ = (((-2.0 * t3_1_) - t3_2_) + (2.0 * t3_3_)) + t3_4_;
    float v3_4_ = (((2.0 * t3_1_) - t3_2_) - (2.0 * t3_3_)) + t3_4_;
    float v3_5_ = ((4.0 * t3_1_) - (5.0 * t3_3_)) + t3_5_;
    float v4_0_ = ((4.0 * t4_0_) - (5.0 * t4_2_)) + t4_4_;
    float v4_1_ = (((-4.0 * t4_1_) - (4.0 * t4_2_)) + t4_3_) + t4_4_;
    float v4_2_ = (((4.0 * t4_1_) - (4.0 * t4_2_)) - t4_3_) + t4_4_;
    float v4_3_ = (((-2.0 * t4_1_) - t4_2_) + (2.0 * t4_3_)) + t4_4_;
    float v4_4_ = (((2.0 * t4_1_) - t4_2_) - (2.0 * t4_3_)) + t4_4_;
    float v4_5_ = ((4.0 * t4_1_) - (5.0 * t4_3_)) + t4_5_;
    float v5_0_ = ((4.0 * t5_0_) - (5.0 * t5_2_)) + t5_4_;
    float v5_1_ = (((-4.0 * t5_1_) - (4.0 * t5_2_)) + t5_3_) + t5_4_;
    float v5_2_ = (((4.0 * t5_1_) - (4.0 * t5_2_)) - t5_3_) + t5_4_;
    float v5_3_ = (((-2.0 * t5_1_) - t5_2_) + (2.0 * t5_3_)) + t5_4_;
    float v5_4_ = (((2.0 * t5_1_) - t5_2_) - (2.0 * t5_3_)) + t5_4_;
    float v5_5_ = ((4.0 * t5_1_) - (5.0 * t5_3_)) + t5_5_;
    uint _e1478 = params.columns;
    uint _e1481 = params.channels;
    uint cell = _e1478 * _e1481;
    tiles[at + (0u * cell)] = static_cast<float>(v0_0_);
    tiles[at + (1u * cell)] = static_cast<float>(v0_1_);
    tiles[at + (2u * cell)] = static_cast<float>(v0_2_);
    tiles[at + (3u * cell)] = static_cast<float>(v0_3_);
    tiles[at + (4u * cell)] = static_cast<float>(v0_4_);
    tiles[at + (5u * cell)] = static_cast<float>(v0_5_);
    tiles[at + (6u * cell)] = static_cast<float>(v1_0_);
    tiles[at + (7u * cell)] = static_cast<float>(v1_1_);
    tiles[at + (8u * cell)] = static_cast<float>(v1_2_);
    tiles[at + (9u * cell)] = static_cast<float>(v1_3_);
    tiles[at + (10u * cell)] = static_cast<float>(v1_4_);
    tiles[at + (11u * cell)] = static_cast<float>(v1_5_);
    tiles[at + (12u * cell)] = static_cast<float>(v2_0_);
    tiles[at + (13u * cell)] = static_cast<float>(v2_1_);
    tiles[at + (14u * cell)] = static_cast<float>(v2_2_);
    tiles[at + (15u * cell)] = static_cast<float>(v2_3_);
    tiles[at + (16u * cell)] = static_cast<float>(v2_4_);
    tiles[at + (17u * cell)] = static_cast<float>(v2_5_);
    tiles[at + (18u * cell)] = static_cast<float>(v3_0_);
    tiles[at + (19u * cell)] = static_cast<float>(v3_1_);
    tiles[at + (20u * cell)] = static_cast<float>(v3_2_);
    tiles[at + (21u * cell)] = static_cast<float>(v3_3_);
    tiles[at + (22u * cell)] = static_cast<float>(v3_4_);
    tiles[at + (23u * cell)] = static_cast<float>(v3_5_);
    tiles[at + (24u * cell)] = static_cast<float>(v4_0_);
    tiles[at + (25u * cell)] = static_cast<float>(v4_1_);
    tiles[at + (26u * cell)] = static_cast<float>(v4_2_);
    tiles[at + (27u * cell)] = static_cast<float>(v4_3_);
    tiles[at + (28u * cell)] = static_cast<float>(v4_4_);
    tiles[at + (29u * cell)] = static_cast<float>(v4_5_);
    tiles[at + (30u * cell)] = static_cast<float>(v5_0_);
    tiles[at + (31u * cell)] = static_cast<float>(v5_1_);
    tiles[at + (32u * cell)] = static_cast<float>(v5_2_);
    tiles[at + (33u * cell)] = static_cast<float>(v5_3_);
    tiles[at + (34u * cell)] = static_cast<float>(v5_4_);
    tiles[at + (35u * cell)] = static_cast<float>(v5_5_);
    return;
}
