{# What products are told; see product.rs. #}
struct Params {
    // Units of a row of the matrix.
    units: u32,
    // Numbers of a row of X.
    columns: u32,
    // Rows of X.
    m: u32,
    // Words of a row's factors, and where those of superblocks start.
    factor_words: u32,
    wholes: u32,
    // The workgroup after the last.
    end: u32,
    // How often rows of X are cut; for those who add up, how often units are.
    cuts: u32,
    // Units of a part of a row, where units are cut.
    part: u32,
    // Numbers of a row of each output.
    widths: vec4<u32>,
    // For each output: its first workgroup, the packed rows, the first of them, its first column.
    outputs: array<vec4<u32>, 4>,
}
