//! CPU compute for slices: matrix products, convolution, attention, reductions, with instruction sets proved by type.
