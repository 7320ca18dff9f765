//! Views share memory and read as NumPy's would.

use std::sync::Arc;

use galatea_tensor::{
    ByteString, DataType, HostBuffer, SmallType, Tensor, TensorMut, f16, with_element,
};
use proptest::prelude::*;

fn range(shape: &[usize]) -> Tensor {
    let count: i32 = shape.iter().product::<usize>().try_into().unwrap();
    Tensor::from_vec(shape, (0..count).collect::<Vec<i32>>()).unwrap()
}

#[test]
fn permuted_sliced_and_broadcast_views_share_memory() {
    let base = range(&[2, 3]);
    let turned = base.permute(&[1, 0]).unwrap();
    assert!(turned.shares_memory_with(&base));
    assert_eq!(turned.to_vec::<i32>().unwrap(), [0, 3, 1, 4, 2, 5]);
    let column = base.slice_axis(1, 2, 1, 1).unwrap();
    assert_eq!(column.to_vec::<i32>().unwrap(), [2, 5]);
    let reversed = base.slice_axis(1, 2, 3, -1).unwrap();
    assert_eq!(reversed.to_vec::<i32>().unwrap(), [2, 1, 0, 5, 4, 3]);
    let wide = column.broadcast_to(&[2, 2, 2]).unwrap();
    assert_eq!(wide.to_vec::<i32>().unwrap(), [2, 2, 5, 5, 2, 2, 5, 5]);
    assert!(reversed.as_slice::<i32>().is_err());
}

#[test]
fn impossible_views_are_errors() {
    let base = range(&[2, 3]);
    assert!(base.permute(&[0, 0]).is_err());
    assert!(base.slice_axis(1, 1, 3, 1).is_err());
    assert!(base.slice_axis(2, 0, 1, 1).is_err());
    assert!(base.slice_axis(0, 1, 2, -2).is_err());
    assert!(base.broadcast_to(&[3]).is_err());
    assert!(base.reshape(&[4]).is_err());
    assert!(base.as_slice::<f32>().is_err());
}

#[test]
fn empty_tensors_and_scalars_work_everywhere() {
    let small = SmallType::ALL.map(DataType::Small);
    for dtype in DataType::ALL.into_iter().chain(small) {
        let empty = Tensor::zeros(dtype, &[0, 3]).unwrap();
        assert_eq!(empty.permute(&[1, 0]).unwrap().contiguous().unwrap().shape(), [3, 0]);
        let one = Tensor::zeros(dtype, &[]).unwrap();
        with_element!(dtype, T => assert_eq!(one.item::<T>().unwrap(), T::default()));
    }
}

#[test]
fn strings_are_elements_like_any_other() {
    let words: Vec<ByteString> = ["a", "b", "c", "d"].map(ByteString::from).to_vec();
    let tensor = Tensor::from_vec(&[2, 2], words).unwrap();
    let turned = tensor.permute(&[1, 0]).unwrap().contiguous().unwrap();
    let texts: Vec<_> =
        turned.as_slice::<ByteString>().unwrap().iter().map(|w| w.as_str()).collect();
    assert_eq!(texts, [Some("a"), Some("c"), Some("b"), Some("d")]);
    assert!(tensor.as_bytes().is_err());
    assert_eq!(tensor.slice_axis(0, 1, 1, 1).unwrap().to_vec::<ByteString>().unwrap().len(), 2);
}

#[test]
fn unaligned_memory_is_copied_and_aligned_memory_is_shared() {
    let mut buffer = HostBuffer::zeroed(16);
    buffer.as_bytes_mut()[4] = 1;
    buffer.as_bytes_mut()[5] = 1;
    let memory = Arc::new(buffer);
    let at =
        |offset| Tensor::from_allocation(DataType::Int32, &[1], memory.clone(), offset).unwrap();
    let whole = Tensor::from_allocation(DataType::Uint8, &[16], memory.clone(), 0).unwrap();
    assert!(at(4).shares_memory_with(&whole));
    assert!(!at(5).shares_memory_with(&whole));
    assert_eq!(at(4).item::<i32>().unwrap(), 257);
    assert_eq!(at(5).item::<i32>().unwrap(), 1);
}

#[test]
fn bool_bytes_from_outside_become_zero_or_one() {
    let tensor = Tensor::from_bytes(DataType::Bool, &[3], &[0, 1, 200]).unwrap();
    assert_eq!(tensor.as_slice::<bool>().unwrap(), [false, true, true]);
}

proptest! {
    #[test]
    fn permuting_there_and_back_is_the_identity(
        shape in prop::collection::vec(0_usize..4, 0..5),
        seed in any::<u64>(),
    ) {
        let base = range(&shape);
        let mut axes: Vec<usize> = (0..shape.len()).collect();
        let mut state = seed;
        for at in (1..axes.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            axes.swap(at, usize::try_from(state >> 33).unwrap() % (at + 1));
        }
        let mut back = vec![0; axes.len()];
        for (to, &from) in axes.iter().enumerate() {
            back[from] = to;
        }
        let turned = base.permute(&axes).unwrap().contiguous().unwrap();
        prop_assert_eq!(turned.permute(&back).unwrap().contiguous().unwrap(), base);
    }
}

#[test]
fn a_tensor_without_elements_reads_as_an_empty_slice_of_its_type() {
    let empty = Tensor::vector(Vec::<i64>::new());
    assert_eq!(empty.to_vec::<i64>().unwrap(), Vec::<i64>::new());
    let view = Tensor::vector(vec![1_i64, 2]).slice_axis(0, 0, 0, 1).unwrap();
    assert!(view.as_slice::<i64>().unwrap().is_empty());
    let mut bytes: [u8; 0] = [];
    let mut written = TensorMut::from_bytes(DataType::Fp64, &[0], &mut bytes).unwrap();
    assert!(written.as_mut_slice::<f64>().unwrap().is_empty());
}

#[test]
fn elements_keep_their_bits_as_carriers() {
    let halves = Tensor::vector(vec![f16::NEG_ZERO, f16::NAN, f16::ONE]).permute(&[0]).unwrap();
    let bits = halves.to_carriers::<u16>().unwrap();
    assert_eq!(bits, [0x8000, f16::NAN.to_bits(), 0x3c00]);
    let back = Tensor::from_carriers(DataType::Fp16, &[3], bits).unwrap();
    assert_eq!(back.as_bytes().unwrap(), halves.as_bytes().unwrap());
    assert!(halves.to_carriers::<u32>().is_err());
    assert!(Tensor::from_carriers(DataType::Fp16, &[1], vec![1_u32]).is_err());
    assert!(Tensor::from_carriers(DataType::Bool, &[1], vec![2_u8]).is_err());
    let int4 = DataType::Small(SmallType::Int4);
    assert!(Tensor::from_carriers(int4, &[1], vec![16_u8]).is_err());
    let texts = Tensor::vector(vec![ByteString::from("a")]);
    let same = texts.to_carriers::<ByteString>().unwrap();
    assert_eq!(Tensor::from_carriers(DataType::Bytes, &[1], same).unwrap(), texts);
}

#[test]
fn slices_of_carriers_see_and_write_the_same_bits() {
    let ones = Tensor::vector(vec![1.0_f32, -0.0]);
    let view = ones.as_view().unwrap();
    assert_eq!(view.as_carriers::<u32>().unwrap(), [0x3f80_0000, 0x8000_0000]);
    assert_eq!(view.as_carriers::<f32>().unwrap(), [1.0, -0.0]);
    assert!(view.as_carriers::<i32>().is_err());
    let truths = Tensor::vector(vec![true]);
    assert_eq!(truths.as_view().unwrap().as_carriers::<u8>().unwrap(), [1]);
    let mut bytes = [0; 8];
    let mut single = TensorMut::from_bytes(DataType::Int8, &[8], &mut bytes).unwrap();
    single.as_mut_carriers::<u8>().unwrap().fill(255);
    assert_eq!(single.as_mut_slice::<i8>().unwrap(), [-1; 8]);
    let mut truths = TensorMut::from_bytes(DataType::Bool, &[8], &mut bytes).unwrap();
    assert!(truths.as_mut_carriers::<u8>().is_err());
    assert_eq!(truths.as_mut_carriers::<bool>().unwrap(), [false; 8]);
}
