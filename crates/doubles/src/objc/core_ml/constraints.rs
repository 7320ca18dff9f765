//! Constraints of features.

use objc2::rc::Retained;
use objc2::runtime::{NSObject, NSObjectProtocol};
use objc2::{DefinedClass, class, define_class, msg_send};
use objc2_core_ml::{
    MLImageConstraint, MLMultiArrayConstraint, MLMultiArrayDataType, MLMultiArrayShapeConstraint,
    MLMultiArrayShapeConstraintType, MLStateConstraint,
};
use objc2_foundation::{NSArray, NSNumber, NSRange, NSValue};

use super::made;
use super::played::{PlayedKind, PlayedRange, PlayedShapes};

fn numbers(sizes: &[usize]) -> Retained<NSArray<NSNumber>> {
    let numbers: Vec<_> = sizes.iter().map(|&size| NSNumber::new_usize(size)).collect();
    NSArray::from_retained_slice(&numbers)
}

fn range(of: &PlayedRange) -> Retained<NSValue> {
    let range = NSRange { location: of.location, length: of.length };
    // SAFETY: the method makes a value of a range.
    unsafe { msg_send![class!(NSValue), valueWithRange: range] }
}

/// Contents of the constraint of an array or a state.
pub(crate) struct ArrayConstraintContents {
    data_type: isize,
    shape: Vec<usize>,
    shapes: PlayedShapes,
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLMultiArrayConstraint"]
    #[ivars = ArrayConstraintContents]
    pub(crate) struct ArrayConstraintDouble;

    unsafe impl NSObjectProtocol for ArrayConstraintDouble {}

    impl ArrayConstraintDouble {
        #[unsafe(method(dataType))]
        fn data_type(&self) -> MLMultiArrayDataType {
            MLMultiArrayDataType(self.ivars().data_type)
        }

        #[unsafe(method_id(shape))]
        fn shape(&self) -> Retained<NSArray<NSNumber>> {
            numbers(&self.ivars().shape)
        }

        #[unsafe(method_id(shapeConstraint))]
        fn shapes(&self) -> Retained<MLMultiArrayShapeConstraint> {
            let shapes = self.ivars().shapes.clone();
            made!(ShapeConstraintDouble, shapes, MLMultiArrayShapeConstraint)
        }
    }
);

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLMultiArrayShapeConstraint"]
    #[ivars = PlayedShapes]
    pub(crate) struct ShapeConstraintDouble;

    unsafe impl NSObjectProtocol for ShapeConstraintDouble {}

    impl ShapeConstraintDouble {
        #[unsafe(method(type))]
        fn kind(&self) -> MLMultiArrayShapeConstraintType {
            match self.ivars() {
                PlayedShapes::Fixed => MLMultiArrayShapeConstraintType::Unspecified,
                PlayedShapes::Enumerated(_) => MLMultiArrayShapeConstraintType::Enumerated,
                PlayedShapes::Ranges(_) => MLMultiArrayShapeConstraintType::Range,
            }
        }

        #[unsafe(method_id(enumeratedShapes))]
        fn enumerated(&self) -> Retained<NSArray<NSArray<NSNumber>>> {
            let shapes: Vec<_> = match self.ivars() {
                PlayedShapes::Enumerated(shapes) => shapes.iter().map(|one| numbers(one)).collect(),
                _ => Vec::new(),
            };
            NSArray::from_retained_slice(&shapes)
        }

        #[unsafe(method_id(sizeRangeForDimension))]
        fn ranges(&self) -> Retained<NSArray<NSValue>> {
            let ranges: Vec<_> = match self.ivars() {
                PlayedShapes::Ranges(ranges) => ranges.iter().map(range).collect(),
                _ => Vec::new(),
            };
            NSArray::from_retained_slice(&ranges)
        }
    }
);

/// Contents of the constraint of a picture.
pub(crate) struct ImageConstraintContents {
    width: isize,
    height: isize,
    format: u32,
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLImageConstraint"]
    #[ivars = ImageConstraintContents]
    pub(crate) struct ImageConstraintDouble;

    unsafe impl NSObjectProtocol for ImageConstraintDouble {}

    impl ImageConstraintDouble {
        #[unsafe(method(pixelsWide))]
        fn width(&self) -> isize {
            self.ivars().width
        }

        #[unsafe(method(pixelsHigh))]
        fn height(&self) -> isize {
            self.ivars().height
        }

        #[unsafe(method(pixelFormatType))]
        fn format(&self) -> u32 {
            self.ivars().format
        }
    }
);

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLStateConstraint"]
    #[ivars = ArrayConstraintContents]
    pub(crate) struct StateConstraintDouble;

    unsafe impl NSObjectProtocol for StateConstraintDouble {}

    impl StateConstraintDouble {
        #[unsafe(method(dataType))]
        fn data_type(&self) -> MLMultiArrayDataType {
            MLMultiArrayDataType(self.ivars().data_type)
        }

        #[unsafe(method_id(bufferShape))]
        fn shape(&self) -> Retained<NSArray<NSNumber>> {
            numbers(&self.ivars().shape)
        }
    }
);

/// Makes the constraint of an array.
pub(super) fn array(kind: &PlayedKind) -> Option<Retained<MLMultiArrayConstraint>> {
    let PlayedKind::Array { data_type, shape, shapes } = kind.clone() else { return None };
    let contents = ArrayConstraintContents { data_type, shape, shapes };
    Some(made!(ArrayConstraintDouble, contents, MLMultiArrayConstraint))
}

/// Makes the constraint of a picture.
pub(super) fn image(kind: &PlayedKind) -> Option<Retained<MLImageConstraint>> {
    let &PlayedKind::Image { width, height, format } = kind else { return None };
    let contents = ImageConstraintContents { width, height, format };
    Some(made!(ImageConstraintDouble, contents, MLImageConstraint))
}

/// Makes the constraint of a state.
pub(super) fn state(kind: &PlayedKind) -> Option<Retained<MLStateConstraint>> {
    let PlayedKind::State { data_type, shape } = kind.clone() else { return None };
    let contents = ArrayConstraintContents { data_type, shape, shapes: PlayedShapes::Fixed };
    Some(made!(StateConstraintDouble, contents, MLStateConstraint))
}
