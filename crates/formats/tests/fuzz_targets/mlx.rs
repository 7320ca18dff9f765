//! A line of JSON as a `config.json`, and any bytes behind it as safetensors; what has codes is taken apart,
//! row by row and whole, to the same numbers.

use bytes::Bytes;
use galatea_formats::mlx::MlxQuantization;
use galatea_formats::safetensors::parse;

/// The most numbers that are taken apart: words that say little may stand for many.
const MOST: usize = 1 << 16;

/// Runs the fuzz target of this name on an input, and panics on a finding.
pub(super) fn run(data: &[u8]) {
    let Some(end) = data.iter().position(|&byte| byte == b'\n') else { return };
    let (config, rest) = data.split_at(end);
    let Ok(config) = serde_json::from_slice(config) else { return };
    let Ok(Some(quantization)) = MlxQuantization::from_config(&config) else { return };
    let Ok(all) = parse(Bytes::copy_from_slice(&rest[1..])) else { return };
    for name in all.tensors().keys() {
        let Some(layer) = name.strip_suffix(".weight") else { continue };
        let Ok(Some(matrix)) = quantization.matrix(&all, layer) else { continue };
        let format = quantization.layer(layer).expect("a layer with codes has a format");
        assert_eq!(
            (matrix.format().bits(), matrix.format().block()),
            (format.bits, format.group_size)
        );
        let (rows, columns, blocks) = (matrix.rows(), matrix.columns(), matrix.blocks());
        assert_eq!(columns, blocks * format.group_size);
        if rows.saturating_mul(columns) > MOST {
            continue;
        }
        let whole = matrix.dequantize().expect("codes that were accepted have numbers");
        let whole = whole.as_slice::<f32>().expect("numbers are FP32");
        let mut row = vec![0.0; columns];
        let (mut codes, mut scales, mut offsets) =
            (vec![0; columns], vec![0.0; blocks], vec![0.0; blocks]);
        for (at, expected) in whole.chunks(columns.max(1)).enumerate() {
            matrix.dequantize_row(at, &mut row).expect("the row is there");
            matrix.unpack_row(at, &mut codes, &mut scales, &mut offsets).expect("the row is there");
            for (at, (number, expected)) in row.iter().zip(expected).enumerate() {
                assert_eq!(number.to_bits(), expected.to_bits());
                assert!(u32::from(codes[at]) < 1 << format.bits);
            }
        }
        assert!(matrix.dequantize_row(rows, &mut row).is_err());
    }
}
