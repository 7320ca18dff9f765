//! `MLFeatureValue`, `MLDictionaryFeatureProvider` and `MLPredictionOptions`.

use std::cell::RefCell;

use objc2::rc::{Allocated, Retained};
use objc2::runtime::{AnyObject, NSObject, NSObjectProtocol, ProtocolObject};
use objc2::{ClassType, DefinedClass, Message, define_class, msg_send};
use objc2_core_ml::{
    MLDictionaryFeatureProvider, MLFeatureProvider, MLFeatureType, MLFeatureValue, MLMultiArray,
    MLPredictionOptions,
};
use objc2_foundation::{NSArray, NSDictionary, NSError, NSNumber, NSString};

use super::played::{LabelledNumber, PlayedLabel, PlayedValue};
use super::{array, made};
use crate::objc::foundation::raise;

/// Contents of a value.
pub(crate) enum ValueContents {
    Array(Retained<MLMultiArray>),
    Plain(PlayedValue),
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLFeatureValue"]
    #[ivars = ValueContents]
    pub(crate) struct ValueDouble;

    unsafe impl NSObjectProtocol for ValueDouble {}

    impl ValueDouble {
        #[unsafe(method_id(featureValueWithMultiArray:))]
        fn with_array(array: &MLMultiArray) -> Retained<MLFeatureValue> {
            value(ValueContents::Array(array.retain()))
        }

        #[unsafe(method(type))]
        fn kind(&self) -> MLFeatureType {
            match self.ivars() {
                ValueContents::Array(_) => MLFeatureType::MultiArray,
                ValueContents::Plain(plain) => match plain {
                    PlayedValue::Tensor(_) => MLFeatureType::MultiArray,
                    PlayedValue::Whole(_) => MLFeatureType::Int64,
                    PlayedValue::Real(_) => MLFeatureType::Double,
                    PlayedValue::Text(_) => MLFeatureType::String,
                    PlayedValue::Dictionary(_) => MLFeatureType::Dictionary,
                    PlayedValue::Undefined => MLFeatureType::Invalid,
                    PlayedValue::Other(number) => MLFeatureType(*number),
                },
            }
        }

        #[unsafe(method(isUndefined))]
        fn undefined(&self) -> bool {
            matches!(self.ivars(), ValueContents::Plain(PlayedValue::Undefined))
        }

        #[unsafe(method_id(multiArrayValue))]
        fn array(&self) -> Option<Retained<MLMultiArray>> {
            match self.ivars() {
                ValueContents::Array(array) => Some(array.clone()),
                ValueContents::Plain(_) => None,
            }
        }

        #[unsafe(method(int64Value))]
        fn whole(&self) -> i64 {
            match self.ivars() {
                ValueContents::Plain(PlayedValue::Whole(number)) => *number,
                _ => 0,
            }
        }

        #[unsafe(method(doubleValue))]
        fn real(&self) -> f64 {
            match self.ivars() {
                ValueContents::Plain(PlayedValue::Real(number)) => *number,
                _ => 0.0,
            }
        }

        #[unsafe(method_id(stringValue))]
        fn text(&self) -> Retained<NSString> {
            match self.ivars() {
                ValueContents::Plain(PlayedValue::Text(text)) => NSString::from_str(text),
                _ => NSString::from_str(""),
            }
        }

        #[unsafe(method_id(dictionaryValue))]
        fn dictionary(&self) -> Retained<NSDictionary<AnyObject, NSNumber>> {
            match self.ivars() {
                ValueContents::Plain(PlayedValue::Dictionary(pairs)) => dictionary(pairs),
                _ => dictionary(&[]),
            }
        }
    }
);

fn dictionary(pairs: &[LabelledNumber]) -> Retained<NSDictionary<AnyObject, NSNumber>> {
    let key = |pair: &LabelledNumber| -> Retained<AnyObject> {
        match &pair.label {
            PlayedLabel::Text(text) => NSString::from_str(text).into_super().into_super(),
            PlayedLabel::Whole(number) => {
                NSNumber::new_i64(*number).into_super().into_super().into_super()
            }
            PlayedLabel::Odd => NSArray::<NSObject>::new().into_super().into_super(),
        }
    };
    let keys: Vec<_> = pairs.iter().map(key).collect();
    let numbers: Vec<_> = pairs.iter().map(|pair| NSNumber::new_f64(pair.number)).collect();
    let count = pairs.len();
    let allocated: Allocated<NSDictionary<AnyObject, NSNumber>> =
        // SAFETY: a class makes an object of itself.
        unsafe { msg_send![NSDictionary::<AnyObject, NSNumber>::class(), alloc] };
    let values = numbers.as_ptr().cast_mut().cast::<std::ptr::NonNull<AnyObject>>();
    let keys = keys.as_ptr().cast_mut().cast::<std::ptr::NonNull<AnyObject>>();
    // SAFETY: there are so many keys and values.
    unsafe { msg_send![allocated, initWithObjects: values, forKeys: keys, count: count] }
}

/// Makes a value.
pub(super) fn value(contents: ValueContents) -> Retained<MLFeatureValue> {
    made!(ValueDouble, contents, MLFeatureValue)
}

/// Returns what a value of a caller's holds.
pub(super) fn played(value: &MLFeatureValue) -> PlayedValue {
    let value: *const MLFeatureValue = value;
    // SAFETY: all values here are doubles.
    match unsafe { &*value.cast::<ValueDouble>() }.ivars() {
        ValueContents::Array(array) => PlayedValue::Tensor(array::double(array).tensor()),
        ValueContents::Plain(plain) => plain.clone(),
    }
}

type Values = NSDictionary<NSString, AnyObject>;

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLDictionaryFeatureProvider"]
    #[ivars = Retained<Values>]
    pub(crate) struct ProviderDouble;

    unsafe impl NSObjectProtocol for ProviderDouble {}

    unsafe impl MLFeatureProvider for ProviderDouble {
        #[unsafe(method_id(featureValueForName:))]
        fn value(&self, name: &NSString) -> Option<Retained<MLFeatureValue>> {
            let found = self.ivars().objectForKey(name);
            found.and_then(|found| found.downcast().ok())
        }
    }

    impl ProviderDouble {
        #[unsafe(method_id(initWithDictionary:error:))]
        fn init_with(
            this: Allocated<Self>,
            values: &Values,
            _error: *mut *mut NSError,
        ) -> Option<Retained<Self>> {
            let (_, objects) = values.to_vecs();
            if objects.iter().any(|one| one.downcast_ref::<MLFeatureValue>().is_none()) {
                raise("NSInvalidArgumentException", "a feature has no value");
            }
            // SAFETY: the parent's method takes nothing.
            unsafe { msg_send![super(this.set_ivars(values.retain())), init] }
        }
    }
);

/// Value of an output.
pub(super) struct OutputValue {
    pub(super) name: String,
    pub(super) value: Retained<MLFeatureValue>,
}

/// Makes the outputs of a prediction.
pub(super) fn outputs(values: &[OutputValue]) -> Retained<ProtocolObject<dyn MLFeatureProvider>> {
    let names: Vec<_> = values.iter().map(|one| NSString::from_str(&one.name)).collect();
    let names: Vec<&NSString> = names.iter().map(|name| &**name).collect();
    let objects: Vec<&AnyObject> = values.iter().map(|one| (*one.value).as_ref()).collect();
    let values: Retained<Values> = NSDictionary::from_slices(&names, &objects);
    let provider = made!(ProviderDouble, values, MLDictionaryFeatureProvider);
    ProtocolObject::from_retained(provider)
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLPredictionOptions"]
    #[ivars = RefCell<Option<Retained<Values>>>]
    pub(crate) struct OptionsDouble;

    unsafe impl NSObjectProtocol for OptionsDouble {}

    impl OptionsDouble {
        #[unsafe(method_id(init))]
        fn init(this: Allocated<Self>) -> Retained<Self> {
            // SAFETY: the parent's method takes nothing.
            unsafe { msg_send![super(this.set_ivars(RefCell::new(None))), init] }
        }

        #[unsafe(method(setOutputBackings:))]
        fn set_backings(&self, backings: &Values) {
            self.ivars().replace(Some(backings.retain()));
        }
    }
);

/// Returns the array that options have for an output.
pub(super) fn backing(of: &MLPredictionOptions, name: &str) -> Option<Retained<MLMultiArray>> {
    let of: *const MLPredictionOptions = of;
    // SAFETY: all options here are doubles.
    let backings = unsafe { &*of.cast::<OptionsDouble>() }.ivars().borrow();
    let found = backings.as_ref()?.objectForKey(&NSString::from_str(name))?;
    found.downcast::<MLMultiArray>().ok()
}
