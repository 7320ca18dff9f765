//! The kernel rows, one file per family of operators.

mod attention;
mod batched;
mod biased;
mod block_mat_mul;
mod blocks;
mod chain;
mod conv_chain;
mod conv_zeros;
mod elementwise;
mod gated;
mod image;
mod index;
mod indices;
mod layout;
mod masks;
mod matrix;
mod movement;
mod normalize;
mod order;
mod paged_attention;
mod pick;
mod plain_product;
mod product_tail;
mod quantized;
mod quantized_image;
mod quantized_sparse;
mod recurrent;
mod rotary;
mod rowwise;
mod sampling;
mod scatter;
mod sparse;
mod spread;
mod trees;
mod upsample;
mod variadic;

use galatea_runtime::KernelTable;

use super::CpuKernels;

/// The domain of ONNX Runtime's own operators.
const CONTRIB_DOMAIN: &str = "com.microsoft";

/// The rows of every family of operators.
pub const KERNELS: KernelTable<CpuKernels> = KernelTable(&[
    attention::ROWS,
    biased::ROWS,
    block_mat_mul::ROWS,
    blocks::ROWS,
    chain::ROWS,
    conv_chain::ROWS,
    elementwise::ROWS,
    gated::ROWS,
    image::ROWS,
    index::ROWS,
    layout::ROWS,
    masks::ROWS,
    // Before dense products, whose nodes they take where zeros are many.
    sparse::ROWS,
    matrix::ROWS,
    // Products with constant weights are those before.
    batched::ROWS,
    movement::ROWS,
    normalize::ROWS,
    order::ROWS,
    paged_attention::ROWS,
    pick::ROWS,
    plain_product::ROWS,
    // Before dense products of bytes, as those of floats.
    quantized_sparse::ROWS,
    quantized::ROWS,
    quantized_image::ROWS,
    recurrent::ROWS,
    rotary::ROWS,
    rowwise::ROWS,
    sampling::ROWS,
    scatter::ROWS,
    trees::ROWS,
    upsample::ROWS,
    variadic::ROWS,
]);
