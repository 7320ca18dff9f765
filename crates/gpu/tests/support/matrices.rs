//! Matrices of few bits that are made up.

#![allow(dead_code, clippy::unwrap_used, reason = "each user uses some of it")]

use galatea_graph::OpError;
use galatea_graph::blocks::{BlockRow, BlockWeights, CodeFormat, CodeMeaning, SuperScales};
use galatea_tensor::{DataType, bf16, f16};

/// Format in which scales are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scales {
    Floats(DataType),
    Nested(usize),
}

/// A matrix of any format, the same for the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) format: CodeFormat,
    pub(crate) scales: Scales,
    pub(crate) seed: u64,
    /// Address that the matrix claims to have.
    pub(crate) at: Option<(usize, usize)>,
}

static IQ4: [f32; 16] =
    [-127., -104., -83., -65., -49., -35., -22., -10., 1., 13., 25., 38., 53., 69., 89., 113.];

/// The formats that checkpoints have, by the names of GGUF and MLX.
pub(crate) fn formats() -> Vec<(&'static str, CodeFormat, Scales)> {
    use CodeMeaning::{Offset, Table, Zero};
    let half = Scales::Floats(DataType::Fp16);
    let brain = Scales::Floats(DataType::Bf16);
    let single = Scales::Floats(DataType::Fp32);
    let nested = Scales::Nested(256);
    let of = CodeFormat::new;
    vec![
        ("q4_0", of(4, 32, Zero(8.)), half),
        ("q4_1", of(4, 32, Offset), half),
        ("q5_0", of(5, 32, Zero(16.)), half),
        ("q5_1", of(5, 32, Offset), half),
        ("q8_0", of(8, 32, Zero(128.)), half),
        ("q2_k", of(2, 16, Offset), nested),
        ("q3_k", of(3, 16, Zero(4.)), nested),
        ("q4_k", of(4, 32, Offset), nested),
        ("q5_k", of(5, 32, Offset), nested),
        ("q6_k", of(6, 16, Zero(32.)), nested),
        ("q8_k", of(8, 256, Zero(128.)), single),
        ("iq4_nl", of(4, 32, Table(&IQ4)), half),
        ("iq4_xs", of(4, 32, Table(&IQ4)), nested),
        ("nvfp4", of(4, 16, Table(&IQ4)), single),
        ("mlx4", of(4, 64, Offset), brain),
        ("mlx8", of(8, 64, Offset), half),
        ("mlx6", of(6, 128, Offset), single),
        ("mlx3", of(3, 32, Offset), brain),
        ("f16", CodeFormat::floats(DataType::Fp16), single),
        ("bf16", CodeFormat::floats(DataType::Bf16), single),
        ("f32", CodeFormat::floats(DataType::Fp32), single),
    ]
}

/// Numbers without order.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = self.0 ^ (self.0 >> 29);
        x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (x >> 32)
    }

    /// From -1 to 1.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// A float as a type holds it.
fn kept(value: f32, dtype: DataType) -> f32 {
    match dtype {
        DataType::Fp16 => f16::from_f32(value).to_f32(),
        DataType::Bf16 => bf16::from_f32(value).to_f32(),
        _ => value,
    }
}

impl Made {
    fn supers(&self) -> usize {
        match self.scales {
            Scales::Nested(numbers) => self.columns.div_ceil(numbers),
            Scales::Floats(_) => 0,
        }
    }

    fn blocks(&self) -> usize {
        let block = self.format.block();
        if block == 0 { 0 } else { self.columns.div_ceil(block) }
    }

    fn wholes(&self, row: usize) -> (Vec<f32>, Vec<f32>) {
        let mut random = Random(self.seed ^ (row as u64 + 1) << 20);
        let mut one = |_| f16::from_f32(0.0002 * (1.5 + random.unit())).to_f32();
        ((0..self.supers()).map(&mut one).collect(), (0..self.supers()).map(&mut one).collect())
    }
}

impl BlockWeights for Made {
    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn format(&self) -> CodeFormat {
        self.format
    }

    fn size_bytes(&self) -> usize {
        self.rows * self.columns * self.format.bits() as usize / 8
    }

    fn source(&self) -> Option<(usize, usize)> {
        self.at
    }

    fn factors(&self) -> DataType {
        match self.scales {
            Scales::Floats(dtype) => dtype,
            Scales::Nested(_) => DataType::Fp16,
        }
    }

    fn unpack_row(&self, row: usize, to: BlockRow<'_>) -> Result<(), OpError> {
        if row >= self.rows {
            return Err(OpError::new("no such row"));
        }
        let mut random = Random(self.seed ^ (row as u64 + 1) << 24);
        if let CodeMeaning::Float(dtype) = self.format.meaning() {
            for code in to.codes.chunks_exact_mut(self.format.code_bytes()) {
                let value = random.unit();
                match dtype {
                    DataType::Fp16 => code.copy_from_slice(&f16::from_f32(value).to_le_bytes()),
                    DataType::Bf16 => code.copy_from_slice(&bf16::from_f32(value).to_le_bytes()),
                    _ => code.copy_from_slice(&value.to_le_bytes()),
                }
            }
            return Ok(());
        }
        let mask = u8::MAX >> (8 - self.format.bits());
        for codes in to.codes.chunks_mut(8) {
            for (code, byte) in codes.iter_mut().zip(random.next().to_le_bytes()) {
                *code = byte & mask;
            }
        }
        let (scales, offsets) = self.wholes(row);
        match self.scales {
            Scales::Nested(numbers) => {
                let per = numbers / self.format.block();
                for (all, wholes) in [(to.scales, scales), (to.offsets, offsets)] {
                    for (at, value) in all.iter_mut().enumerate() {
                        let times = (random.next() % 127) as f32 - 63.0;
                        *value = times * wholes[at / per];
                    }
                }
            }
            Scales::Floats(dtype) => {
                for value in to.scales.iter_mut().chain(to.offsets) {
                    *value = kept(0.02 * random.unit(), dtype);
                }
            }
        }
        Ok(())
    }

    fn superblock(&self) -> Option<usize> {
        match self.scales {
            Scales::Nested(numbers) => Some(numbers),
            Scales::Floats(_) => None,
        }
    }

    fn super_scales(&self, row: usize, to: SuperScales<'_>) -> Result<(), OpError> {
        let (scales, offsets) = self.wholes(row);
        to.scales.copy_from_slice(&scales);
        if !to.offsets.is_empty() {
            to.offsets.copy_from_slice(&offsets);
        }
        Ok(())
    }

    fn dequantize_row(&self, row: usize, out: &mut [f32]) -> Result<(), OpError> {
        let width = self.format.code_bytes();
        let mut codes = vec![0; self.columns * width];
        let mut scales = vec![0.0; self.blocks()];
        let pairs = self.format.meaning() == CodeMeaning::Offset;
        let mut offsets = vec![0.0; if pairs { self.blocks() } else { 0 }];
        let to = BlockRow { codes: &mut codes, scales: &mut scales, offsets: &mut offsets };
        self.unpack_row(row, to)?;
        for (at, (out, code)) in out.iter_mut().zip(codes.chunks_exact(width)).enumerate() {
            let block = at.checked_div(self.format.block()).unwrap_or(0);
            let number = f32::from(code[0]);
            *out = match self.format.meaning() {
                CodeMeaning::Zero(zero) => (number - zero) * scales[block],
                CodeMeaning::Offset => number * scales[block] + offsets[block],
                CodeMeaning::Table(table) => table[usize::from(code[0])] * scales[block],
                CodeMeaning::Float(DataType::Fp16) => {
                    f16::from_le_bytes(code.try_into().unwrap()).to_f32()
                }
                CodeMeaning::Float(DataType::Bf16) => {
                    bf16::from_le_bytes(code.try_into().unwrap()).to_f32()
                }
                CodeMeaning::Float(_) => f32::from_le_bytes(code.try_into().unwrap()),
            };
        }
        Ok(())
    }
}
