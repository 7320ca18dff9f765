//! Single operations on a device: matrix multiplications and convolutions.

use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph};
use galatea_runtime::{Run, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor};

use crate::{Engine, Error, ErrorKind};

/// Matrix multiplication (GEMM): `alpha · A · B + beta · C` of FP32, where C is optional.
///
/// ```
/// let gemm = galatea::GemmSettings { alpha: 2.0, ..galatea::GemmSettings::default() };
/// assert!(!gemm.transpose_a);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GemmSettings {
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of C.
    pub beta: f32,
    /// True if A lies transposed.
    pub transpose_a: bool,
    /// True if B lies transposed.
    pub transpose_b: bool,
}

impl Default for GemmSettings {
    fn default() -> Self {
        Self { alpha: 1.0, beta: 1.0, transpose_a: false, transpose_b: false }
    }
}

/// Convolution in two dimensions of FP32: image `[N, C, H, W]`, weights `[M, C/groups, h, w]`, optional bias `[M]`.
///
/// ```
/// let padded = galatea::ConvolutionSettings { pads: [1; 4], ..galatea::ConvolutionSettings::default() };
/// assert_eq!(padded.groups, 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvolutionSettings {
    /// Steps along height and width.
    pub strides: [u32; 2],
    /// Rows and columns of zeros: top, left, bottom, right.
    pub pads: [u32; 4],
    /// Distances between elements of the window.
    pub dilations: [u32; 2],
    /// Groups of channels.
    pub groups: u32,
}

impl Default for ConvolutionSettings {
    fn default() -> Self {
        Self { strides: [1; 2], pads: [0; 4], dilations: [1; 2], groups: 1 }
    }
}

/// An operation and its settings.
///
/// ```
/// use galatea::{GemmSettings, OperationSettings};
///
/// assert_eq!(OperationSettings::Gemm(GemmSettings::default()).name(), "Gemm");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OperationSettings {
    /// Matrix multiplication.
    Gemm(GemmSettings),
    /// Convolution.
    Convolution(ConvolutionSettings),
}

impl OperationSettings {
    /// Returns ONNX's name of the operator.
    ///
    /// ```
    /// use galatea::{ConvolutionSettings, OperationSettings};
    ///
    /// assert_eq!(OperationSettings::Convolution(ConvolutionSettings::default()).name(), "Conv");
    /// ```
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gemm(_) => "Gemm",
            Self::Convolution(_) => "Conv",
        }
    }

    fn attributes(&self) -> Attributes {
        let ints = |values: &[u32]| {
            AttributeValue::Ints(values.iter().map(|&value| i64::from(value)).collect())
        };
        let named = match self {
            Self::Gemm(gemm) => vec![
                ("alpha", AttributeValue::Float(gemm.alpha)),
                ("beta", AttributeValue::Float(gemm.beta)),
                ("transA", AttributeValue::Int(i64::from(gemm.transpose_a))),
                ("transB", AttributeValue::Int(i64::from(gemm.transpose_b))),
            ],
            Self::Convolution(convolution) => vec![
                ("strides", ints(&convolution.strides)),
                ("pads", ints(&convolution.pads)),
                ("dilations", ints(&convolution.dilations)),
                ("group", AttributeValue::Int(i64::from(convolution.groups))),
            ],
        };
        named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// An operation that is ready to run on inputs of fixed shapes. It may be shared between threads.
///
/// ```
/// use galatea::{Engine, GemmSettings, OperationSettings, Tensor};
///
/// let settings = OperationSettings::Gemm(GemmSettings::default());
/// let product = Engine::new().operation(&settings, &[&[2, 3], &[3, 1]], Some("cpu"))?;
/// let a = Tensor::from_vec(&[2, 3], vec![1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let b = Tensor::from_vec(&[3, 1], vec![1.0_f32; 3])?;
/// assert_eq!(product.run(vec![a, b])?.to_vec::<f32>()?, [6.0, 15.0]);
/// assert_eq!(product.devices(), ["cpu"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PreparedOperation(Session);

impl Engine {
    /// Prepares an operation on FP32 inputs of these shapes, on a device or a list of devices as `--provider` names
    /// them; on the fastest of all devices, if none is named.
    ///
    /// # Errors
    /// Fails when the shapes do not fit, or there is no such device.
    ///
    /// ```
    /// use galatea::{ConvolutionSettings, Engine, OperationSettings};
    ///
    /// let settings = OperationSettings::Convolution(ConvolutionSettings::default());
    /// let shapes: [&[usize]; 2] = [&[1, 3, 8, 8], &[4, 2, 3, 3]];
    /// assert!(Engine::new().operation(&settings, &shapes, None).is_err());
    /// ```
    pub fn operation(
        &self,
        settings: &OperationSettings,
        shapes: &[&[usize]],
        device: Option<&str>,
    ) -> Result<PreparedOperation, Error> {
        let providers = self.graph_providers(device).map_err(Error::of(ErrorKind::Device))?;
        let options = SessionOptions {
            routing: self.routing(device, &providers),
            choices: self.choices(),
            pace: self.power().pace(),
            watch: self.profiler().watch(settings.name()),
            ..SessionOptions::default()
        };
        let graph = graph(settings, shapes).map_err(Error::of(ErrorKind::Input))?;
        let session = Session::new(graph, &providers, &options);
        Ok(PreparedOperation(session.map_err(Error::of(ErrorKind::Input))?))
    }
}

/// Makes a graph of one node.
fn graph(settings: &OperationSettings, shapes: &[&[usize]]) -> Result<Graph, String> {
    let mut graph = Graph::new(settings.name());
    graph.opsets.insert(String::new(), 17);
    let mut inputs = Vec::with_capacity(shapes.len());
    for (at, shape) in shapes.iter().enumerate() {
        let id = graph.value_named(&format!("input{at}"));
        let dims = shape.iter().map(|&length| Dim::Known(length)).collect();
        graph.value_mut(id).declared = Some(Fact::new(DataType::Fp32, dims));
        graph.inputs.push(id);
        inputs.push(Some(id));
    }
    let output = graph.value_named("output");
    graph.outputs.push(output);
    let attributes = settings.attributes();
    let node = graph.add_node("", settings.name(), "", &attributes, inputs, vec![Some(output)]);
    node.map_err(|error| error.to_string())?;
    Ok(graph)
}

impl PreparedOperation {
    /// Computes the operation and waits for its result.
    ///
    /// # Errors
    /// Fails when an input has another shape or type than was prepared for, or the run fails.
    ///
    /// ```
    /// use galatea::{Engine, GemmSettings, OperationSettings};
    ///
    /// let settings = OperationSettings::Gemm(GemmSettings::default());
    /// let product = Engine::new().operation(&settings, &[&[2, 3], &[3, 1]], None)?;
    /// assert!(product.run(Vec::new()).is_err());
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn run(&self, inputs: Vec<Tensor>) -> Result<Tensor, Error> {
        let infos = self.0.inputs();
        if inputs.len() != infos.len() {
            let text = format!("{} inputs found, expected {}", inputs.len(), infos.len());
            return Err(Error::new(ErrorKind::Input, text));
        }
        let named = infos.iter().map(|info| info.name.as_str()).zip(inputs);
        let named: Vec<(&str, Tensor)> = named.collect();
        let outputs = self.0.run_tensors(Run::named(&named)).map_err(Error::of(ErrorKind::Run))?;
        let output = outputs.into_iter().next();
        output.ok_or_else(|| Error::new(ErrorKind::Run, "the operation gave no output"))
    }

    /// Returns the names of the devices that run the operation, such as `cpu`.
    ///
    /// ```
    /// use galatea::{Engine, GemmSettings, OperationSettings};
    ///
    /// let settings = OperationSettings::Gemm(GemmSettings::default());
    /// let shapes: [&[usize]; 2] = [&[2, 3], &[3, 1]];
    /// let product = Engine::new().operation(&settings, &shapes, Some("reference"))?;
    /// assert_eq!(product.devices(), ["reference"]);
    /// # Ok::<(), galatea::Error>(())
    /// ```
    #[must_use]
    pub fn devices(&self) -> Vec<&'static str> {
        let mut names = self.0.partition_providers();
        names.sort_unstable();
        names.dedup();
        names
    }
}
