//! The choices that layers have.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Padding3dProto {
    Custom = 0,
    Valid = 1,
    Same = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum PoolingType {
    Max = 0,
    Average = 1,
    L2 = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum SameMode {
    BottomRightHeavy = 0,
    TopLeftHeavy = 1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum InterpolationProto {
    Nearest = 0,
    Bilinear = 1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum LinearUpsample {
    Default = 0,
    AlignCornersTrue = 1,
    AlignCornersFalse = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum SamplingMethod {
    StrictAlignEndpoints = 0,
    AlignEndpoints = 1,
    Upsample = 2,
    RoiAlign = 3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum BoxCoordinates {
    CornersHeightFirst = 0,
    CornersWidthFirst = 1,
    CenterSizeHeightFirst = 2,
    CenterSizeWidthFirst = 3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum UnaryFunction {
    Sqrt = 0,
    Rsqrt = 1,
    Inverse = 2,
    Power = 3,
    Exp = 4,
    Log = 5,
    Abs = 6,
    Threshold = 7,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum ReduceOperation {
    Sum = 0,
    Avg = 1,
    Prod = 2,
    LogSum = 3,
    SumSquare = 4,
    L1 = 5,
    L2 = 6,
    Max = 7,
    Min = 8,
    ArgMax = 9,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum ReduceAxis {
    Chw = 0,
    Hw = 1,
    C = 2,
    H = 3,
    W = 4,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum OrderProto {
    ChannelFirst = 0,
    ChannelLast = 1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum ReorganizationProto {
    SpaceToDepth = 0,
    DepthToSpace = 1,
    PixelShuffle = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum SliceAxis {
    Channel = 0,
    Height = 1,
    Width = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum ScatterMode {
    Update = 0,
    Add = 1,
    Sub = 2,
    Mul = 3,
    Div = 4,
    Max = 5,
    Min = 6,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum GeluMode {
    Exact = 0,
    TanhApproximation = 1,
    SigmoidApproximation = 2,
}
