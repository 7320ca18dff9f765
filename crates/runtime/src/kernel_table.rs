//! Tables of kernels: the rows of a device, the view of a node that they are asked about, and the shapes of a run.
//!
//! The CPU and the GPU have a table each. A row says which nodes its kernel takes, and prepares them. What only
//! kernels of one device ask for, such as an instruction set, is in [`NodeView::device`].

use galatea_graph::{Dim, Fact, Graph, Node, Operator, ValueId};
use galatea_tensor::{DataType, Tensor};

use crate::options::Precision;

/// A kind of device whose kernels stand in a table.
pub trait KernelDevice: 'static {
    /// A device as its kernels see it: what only they ask for.
    type Seen<'a>: Copy + std::fmt::Debug;
    /// A node prepared for any shapes.
    type Kernel: ?Sized;

    /// Returns the types of floats that the device's kernels compute in.
    fn float_types(device: Self::Seen<'_>) -> &'static [DataType];
}

/// A node with what is known about its values.
#[derive(Debug)]
pub struct NodeView<'a, D: KernelDevice> {
    /// The graph.
    pub graph: &'a Graph,
    /// The node.
    pub node: &'a Node,
    /// Facts by [`galatea_graph::ValueId::index`].
    pub facts: &'a [Option<Fact>],
    /// The precision of matrix multiplications and convolutions.
    pub precision: Precision,
    /// The device, as its kernels see it.
    pub device: D::Seen<'a>,
}

impl<D: KernelDevice> Clone for NodeView<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: KernelDevice> Copy for NodeView<'_, D> {}

impl<'a, D: KernelDevice> NodeView<'a, D> {
    /// The fact of an input, if the input is present and anything is known.
    #[must_use]
    pub fn input(&self, index: usize) -> Option<&'a Fact> {
        self.node.input(index).and_then(|id| self.facts[id.index()].as_ref())
    }

    /// The fact of an output, if the output is wanted and anything is known.
    #[must_use]
    pub fn output(&self, index: usize) -> Option<&'a Fact> {
        self.node.output(index).and_then(|id| self.facts[id.index()].as_ref())
    }

    /// The value of a constant input.
    #[must_use]
    pub fn constant(&self, index: usize) -> Option<&'a Tensor> {
        self.input(index).and_then(|fact| fact.value.as_ref())
    }

    /// A constant FP32 input as its elements.
    ///
    /// # Errors
    /// Fails when it is no constant, or of another type.
    pub fn constant_floats(&self, index: usize) -> Result<Vec<f32>, String> {
        let tensor = self.constant(index).ok_or_else(|| format!("input {index} is no constant"))?;
        tensor.to_vec::<f32>().map_err(|error| error.to_string())
    }

    /// Returns whether the input is present.
    #[must_use]
    pub fn has(&self, index: usize) -> bool {
        self.node.input(index).is_some()
    }

    /// Returns whether the elements of an input are known as soon as the lengths of a run are: it is absent, a
    /// constant, or computed from lengths. Such an input need not be on the device.
    #[must_use]
    pub fn is_known(&self, index: usize) -> bool {
        if !self.has(index) {
            return true;
        }
        let dims = |fact: &Fact| fact.elements.as_ref().is_some_and(|d| !d.contains(&Dim::Unknown));
        self.input(index).is_some_and(|fact| fact.value.is_some() || dims(fact))
    }

    /// The number of axes of an input.
    ///
    /// # Errors
    /// Fails when it is absent or not known.
    pub fn rank(&self, index: usize) -> Result<usize, String> {
        let rank = self.input(index).and_then(|fact| fact.shape.as_ref()).map(Vec::len);
        rank.ok_or_else(|| format!("the rank of input {index} is not known"))
    }

    /// The node's operator as the type `T`.
    ///
    /// # Errors
    /// Fails when it has another type.
    pub fn operator<T: Operator>(&self) -> Result<&'a T, String> {
        self.node.operator::<T>().ok_or_else(|| {
            format!("{} is not {}", self.node.operator_name(), std::any::type_name::<T>())
        })
    }

    /// Returns whether the device's kernels compute in this type of floats.
    #[must_use]
    pub fn is_float(&self, dtype: DataType) -> bool {
        D::float_types(self.device).contains(&dtype)
    }

    /// Refuses inputs of other types than the device's floats.
    ///
    /// # Errors
    /// Names the first input (of those listed and present) that has another type.
    pub fn floats(&self, inputs: &[usize]) -> Result<(), String> {
        let floats = D::float_types(self.device);
        inputs.iter().try_for_each(|&index| float("input", index, self.input(index), floats))
    }

    /// Refuses inputs like [`NodeView::floats`], and a first output of another type.
    ///
    /// # Errors
    /// Names the first one of another type.
    pub fn floats_throughout(&self, inputs: &[usize]) -> Result<(), String> {
        self.floats(inputs)?;
        float("output", 0, self.output(0), D::float_types(self.device))
    }

    /// Refuses a session of another precision.
    ///
    /// # Errors
    /// Says which one it has.
    pub fn wants(&self, precision: Precision) -> Result<(), String> {
        if self.precision == precision {
            return Ok(());
        }
        Err(format!("the session computes in {}", self.precision))
    }
}

/// Refuses a value whose type is none of these.
fn float(what: &str, index: usize, fact: Option<&Fact>, floats: &[DataType]) -> Result<(), String> {
    match fact {
        Some(fact) if !floats.contains(&fact.dtype) => {
            let floats: Vec<String> = floats.iter().map(DataType::to_string).collect();
            let floats = floats.join(" and ");
            Err(format!("{what} {index} is {}, the kernel takes {floats}", fact.dtype))
        }
        _ => Ok(()),
    }
}

/// Function that prepares a node: it packs weights and brings them to the device.
pub type KernelBuild<D> = fn(&NodeView<'_, D>) -> Result<Box<<D as KernelDevice>::Kernel>, String>;

/// One kernel for some operators.
pub struct KernelRow<D: KernelDevice> {
    /// The name in profiles and reports: `{op}-{dtypes}-{variant}`.
    pub name: &'static str,
    /// The operators' domain.
    pub domain: &'static str,
    /// The operators it is for.
    pub ops: &'static [&'static str],
    /// Checks whether it can run a node, as far as that is known before the shapes of a run are.
    pub supports: fn(&NodeView<'_, D>) -> Result<(), String>,
    /// Prepares a node: packs weights and brings them to the device. Called for supported nodes only.
    pub build: KernelBuild<D>,
}

impl<D: KernelDevice> std::fmt::Debug for KernelRow<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The rows of a device, one list for each family of operators. Within an operator the first row that supports a
/// node runs it.
pub struct KernelTable<D: KernelDevice>(pub &'static [&'static [KernelRow<D>]]);

impl<D: KernelDevice> std::fmt::Debug for KernelTable<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.rows()).finish()
    }
}

impl<D: KernelDevice> KernelTable<D> {
    /// Returns all rows, in the order in which they are tried.
    pub fn rows(&self) -> impl Iterator<Item = &'static KernelRow<D>> + use<D> {
        self.0.iter().flat_map(|family| family.iter())
    }

    /// The first row that takes the node.
    ///
    /// # Errors
    /// Returns the reasons of the rows for this operator, or says that there is no row.
    pub fn find(&self, view: &NodeView<'_, D>) -> Result<&'static KernelRow<D>, String> {
        let Node { domain, op_type, .. } = view.node;
        let mut reasons = Vec::new();
        for row in self.rows().filter(|r| r.domain == domain && r.ops.contains(&op_type.as_str())) {
            match (row.supports)(view) {
                Ok(()) => return Ok(row),
                Err(reason) => reasons.push(format!("{}: {reason}", row.name)),
            }
        }
        if reasons.is_empty() {
            reasons.push("there is no kernel for this operator".into());
        }
        Err(reasons.join("; "))
    }

    /// Returns the reasons for which rows whose names have this part do not take the node.
    #[must_use]
    pub fn refusals(&self, view: &NodeView<'_, D>, part: &str) -> Vec<String> {
        let Node { domain, op_type, .. } = view.node;
        let rows = self.rows().filter(|row| {
            row.domain == domain && row.ops.contains(&op_type.as_str()) && row.name.contains(part)
        });
        rows.filter_map(|row| Some(format!("{}: {}", row.name, (row.supports)(view).err()?)))
            .collect()
    }
}

/// Type and shape of a value in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueShape {
    /// Its type.
    pub dtype: DataType,
    /// Its shape.
    pub shape: Vec<usize>,
}

impl ValueShape {
    /// Returns the type and shape of a value.
    #[must_use]
    pub fn new(dtype: DataType, shape: impl Into<Vec<usize>>) -> Self {
        Self { dtype, shape: shape.into() }
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }
}

/// Types and shapes of one node in a run, as values lie on the device. Absent inputs and unwanted outputs are `None`.
#[derive(Clone, Debug)]
pub struct NodeShapes {
    /// Types and shapes of the inputs.
    pub inputs: Vec<Option<ValueShape>>,
    /// Types and shapes of the outputs.
    pub outputs: Vec<Option<ValueShape>>,
    /// Values of the inputs that are known before the run.
    pub constants: Vec<Option<Tensor>>,
}

impl NodeShapes {
    /// Returns the types and shapes of a node's values, if all are tensors of known shapes. `facts` are those of a
    /// run, by [`galatea_graph::ValueId::index`].
    #[must_use]
    pub fn known(node: &Node, facts: &[Option<Fact>]) -> Option<Self> {
        let shape = |slot: &Option<ValueId>| -> Option<Option<ValueShape>> {
            let Some(id) = slot else { return Some(None) };
            let fact = facts[id.index()].as_ref().filter(|fact| fact.is_tensor())?;
            Some(Some(ValueShape::new(fact.dtype, fact.known_shape()?)))
        };
        let value = |slot: &Option<ValueId>| {
            slot.and_then(|id| facts[id.index()].as_ref().and_then(|fact| fact.value.clone()))
        };
        Some(Self {
            inputs: node.inputs.iter().map(shape).collect::<Option<_>>()?,
            outputs: node.outputs.iter().map(shape).collect::<Option<_>>()?,
            constants: node.inputs.iter().map(value).collect(),
        })
    }

    /// The shape of an input.
    ///
    /// # Errors
    /// Fails when it is absent.
    pub fn input(&self, index: usize) -> Result<&[usize], String> {
        Ok(&present(&self.inputs, index)?.shape)
    }

    /// The type of an input.
    ///
    /// # Errors
    /// Fails when it is absent.
    pub fn dtype(&self, index: usize) -> Result<DataType, String> {
        Ok(present(&self.inputs, index)?.dtype)
    }

    /// The shape of an output.
    ///
    /// # Errors
    /// Fails when the output is not wanted.
    pub fn output(&self, index: usize) -> Result<&[usize], String> {
        Ok(&wanted(&self.outputs, index)?.shape)
    }

    /// The type of an output.
    ///
    /// # Errors
    /// Fails when the output is not wanted.
    pub fn output_dtype(&self, index: usize) -> Result<DataType, String> {
        Ok(wanted(&self.outputs, index)?.dtype)
    }

    /// Returns whether an input is present.
    #[must_use]
    pub fn has(&self, index: usize) -> bool {
        matches!(self.inputs.get(index), Some(Some(_)))
    }

    /// Returns whether an output is wanted.
    #[must_use]
    pub fn wants(&self, index: usize) -> bool {
        matches!(self.outputs.get(index), Some(Some(_)))
    }

    /// The known integers of an input.
    #[must_use]
    pub fn integers(&self, index: usize) -> Option<Vec<i64>> {
        self.constants.get(index)?.as_ref()?.to_i64_vec().ok()
    }
}

fn present(inputs: &[Option<ValueShape>], index: usize) -> Result<&ValueShape, String> {
    let found = inputs.get(index).and_then(Option::as_ref);
    found.ok_or_else(|| format!("input {index} is missing"))
}

fn wanted(outputs: &[Option<ValueShape>], index: usize) -> Result<&ValueShape, String> {
    let found = outputs.get(index).and_then(Option::as_ref);
    found.ok_or_else(|| format!("output {index} is not wanted"))
}
