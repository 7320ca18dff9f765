//! ONNX files to [`Graph`]s and back.
//!
//! [`load`] maps the file and every file with external data; initializers share the mapped bytes.
//! Local functions are inlined. A model is refused, with the field or node it is about, when it
//! uses an operator, type or attribute kind that has no definition here: nothing is skipped.

mod error;
mod external;
mod import;
pub mod proto;
mod scope;
mod tensor;
mod value;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use galatea_graph::{Datum, Fact, FactKind, Graph};
use galatea_tensor::{MappedFile, OrderedMap, Tensor};
use prost::Message;

use error::FieldPath;
pub use error::{OnnxError, OnnxErrorKind};
use external::ExternalData;
use proto::{ModelProto, TensorProto};
pub use write::{WriteOptions, to_bytes, write_model};

/// The oldest version of the default operator domain that is accepted.
pub const OLDEST_OPSET: i64 = 1;
/// The newest version of the default operator domain that the operators were checked against.
///
/// Source: the node cases of onnx 1.23.
pub const NEWEST_OPSET: i64 = 28;
/// The newest version of the domain `ai.onnx.ml` that models may import.
pub const NEWEST_ML_OPSET: i64 = 5;

/// Description of a file by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnnxModelInfo {
    /// Version of the file format.
    pub ir_version: i64,
    /// The program that wrote the file.
    pub producer_name: String,
    /// Its version.
    pub producer_version: String,
    /// The model's name space.
    pub domain: String,
    /// The model's own version.
    pub model_version: i64,
    /// Free text by key.
    pub metadata: OrderedMap<String, String>,
}

/// A model: its computation and what the file says about itself.
#[derive(Clone, Debug)]
pub struct OnnxModel {
    /// The computation.
    pub graph: Graph,
    /// Producer, versions and free text.
    pub info: OnnxModelInfo,
    /// The files that the model's constants lie in, mapped: that of the model itself, then the others
    /// in the order of their names. Empty for a model that was given in memory.
    pub files: Vec<OnnxFile>,
}

/// A mapped file of a model.
#[derive(Clone, Debug)]
pub struct OnnxFile {
    /// The path.
    pub path: PathBuf,
    /// Its bytes.
    pub memory: Arc<MappedFile>,
}

/// The bytes of a mapped file, for what wants to own them.
struct OnnxMapping(Arc<MappedFile>);

impl AsRef<[u8]> for OnnxMapping {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// Beginning of the text that stands for a file which Git LFS keeps elsewhere.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Reads the computation of an ONNX file.
///
/// # Errors
/// Fails when a file cannot be read, is damaged or says something that is not supported; the error
/// names the file and the field or node.
pub fn load(path: &Path) -> Result<Graph, OnnxError> {
    load_model(path).map(|model| model.graph)
}

/// Reads an ONNX file.
///
/// # Errors
/// Fails like [`load`].
pub fn load_model(path: &Path) -> Result<OnnxModel, OnnxError> {
    let memory = map(path).map_err(|error| error.in_file(path))?;
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let bytes = Bytes::from_owner(OnnxMapping(Arc::clone(&memory)));
    if bytes.starts_with(LFS_POINTER) {
        let text = "is a pointer of Git LFS, not the model; 'git lfs pull' brings the model";
        let kind = OnnxErrorKind::File(text.to_owned());
        return Err(OnnxError::new(kind, &FieldPath::ROOT).in_file(path));
    }
    let external = ExternalData::new(Some(folder)).beside_mapped();
    let mut model = read_model(bytes, external).map_err(|error| error.in_file(path))?;
    model.files.insert(0, OnnxFile { path: path.to_owned(), memory });
    Ok(model)
}

/// Maps a plain file.
pub(crate) fn map(path: &Path) -> Result<Arc<MappedFile>, OnnxError> {
    let failed = |text| OnnxError::new(OnnxErrorKind::File(text), &FieldPath::ROOT);
    match path.metadata() {
        Err(error) => Err(failed(format!("cannot be read: {error}"))),
        Ok(found) if !found.is_file() => Err(failed("is not a plain file".to_owned())),
        Ok(_) => MappedFile::open(path).map(Arc::new).map_err(|error| failed(error.to_string())),
    }
}

/// Reads the computation of an ONNX model in memory; external data is looked up in `base_dir`.
///
/// # Errors
/// Fails like [`load`].
pub fn parse(bytes: Bytes, base_dir: Option<&Path>) -> Result<Graph, OnnxError> {
    parse_model(bytes, base_dir).map(|model| model.graph)
}

/// Reads an ONNX model in memory; external data is looked up in `base_dir`.
///
/// # Errors
/// Fails like [`load`].
pub fn parse_model(bytes: Bytes, base_dir: Option<&Path>) -> Result<OnnxModel, OnnxError> {
    let mut model = read_model(bytes, ExternalData::new(base_dir))?;
    model.files.clear();
    Ok(model)
}

fn read_model(bytes: Bytes, external: ExternalData<'_>) -> Result<OnnxModel, OnnxError> {
    let model: ModelProto = decode(bytes)?;
    let (graph, files) = import::model(&model, external)?;
    let metadata = model.metadata_props.into_iter().map(|entry| (entry.key, entry.value)).collect();
    let info = OnnxModelInfo {
        ir_version: model.ir_version,
        producer_name: model.producer_name,
        producer_version: model.producer_version,
        domain: model.domain,
        model_version: model.model_version,
        metadata,
    };
    Ok(OnnxModel { graph, info, files })
}

/// Reads one tensor: the `.pb` files of ONNX test data.
///
/// # Errors
/// Fails when the message is damaged, of an unsupported type or refers to another file.
pub fn read_tensor(bytes: impl Into<Bytes>) -> Result<Tensor, OnnxError> {
    let proto: TensorProto = decode(bytes.into())?;
    tensor::read(&proto, &mut ExternalData::new(None), &FieldPath::ROOT)
}

/// Reads one value of a declared type: a file of ONNX test data holds a tensor, a sequence or an
/// optional value and does not say which.
///
/// # Errors
/// Fails like [`read_tensor`], and when the message holds something that the type does not allow.
pub fn read_value(bytes: impl Into<Bytes>, declared: &Fact) -> Result<Datum, OnnxError> {
    let bytes = bytes.into();
    match declared.kind {
        FactKind::Tensor => read_tensor(bytes).map(Datum::Tensor),
        FactKind::Sequence => value::sequence(&decode(bytes)?, declared, &FieldPath::ROOT),
        FactKind::OptionalTensor | FactKind::OptionalSequence => {
            value::optional(&decode(bytes)?, declared, &FieldPath::ROOT)
        }
        FactKind::Map(_) | FactKind::Maps(_) => {
            let text = format!("test data of type '{declared}' is not read");
            Err(OnnxError::unsupported(&FieldPath::ROOT, text))
        }
    }
}

/// Decodes a message; on failure says how far it got.
fn decode<M: Message + Default>(mut bytes: Bytes) -> Result<M, OnnxError> {
    let total = bytes.len();
    M::decode(&mut bytes).map_err(|error| {
        let offset_bytes = total - bytes.remaining();
        let text = error.to_string();
        OnnxError::new(OnnxErrorKind::Encoding { offset_bytes, text }, &FieldPath::ROOT)
    })
}
