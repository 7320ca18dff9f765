//! Meaning of the names in a list of nodes.

use std::collections::{HashMap, HashSet};

use galatea_graph::{Graph, ValueId};
use galatea_tensor::{OrderedMap, OrderedSet};

use super::proto::{AttributeProto, GraphProto};

/// The attributes of a function by name: those that the call gives, and the defaults of the others.
type CallAttributes<'a> = HashMap<&'a str, &'a AttributeProto>;

/// A subgraph as one list of nodes sees it.
#[derive(Clone, Debug)]
pub(super) struct SeenSubgraph<'a> {
    /// The meaning of its names.
    pub(super) scope: NameScope<'a>,
    /// The names under which the graph around it has the values that it reads from outside.
    pub(super) captured: OrderedSet<String>,
    /// Versions of the operator domains.
    pub(super) opsets: OrderedMap<String, i64>,
}

/// The names of one list of nodes.
#[derive(Clone, Debug)]
pub(super) enum NameScope<'a> {
    /// A graph: a name is a value's name, unless it is renamed (a subgraph inside a function reads
    /// values that the inlined function calls otherwise).
    Graph {
        /// Outer names by the name they are read with; an absent optional value is `None`.
        renamed: HashMap<String, Option<String>>,
        /// The attributes of the function that the graph is in.
        attributes: Option<CallAttributes<'a>>,
    },
    /// The body of a function, inlined: inputs and outputs are the caller's values, the others new.
    Function {
        /// The values by their names in the function; an absent optional input is `None`.
        bound: HashMap<String, Option<ValueId>>,
        /// The attributes.
        attributes: CallAttributes<'a>,
        /// The attributes of the call that are subgraphs: their names are the caller's.
        subgraphs: HashMap<&'a str, SeenSubgraph<'a>>,
    },
}

impl<'a> NameScope<'a> {
    /// The scope of the model's own graph.
    pub(super) fn model() -> Self {
        Self::Graph { renamed: HashMap::new(), attributes: None }
    }

    /// The value that a name refers to; `None` for an absent optional one.
    pub(super) fn resolve(&mut self, graph: &mut Graph, name: &str) -> Option<ValueId> {
        if name.is_empty() {
            return None;
        }
        match self {
            Self::Graph { renamed, .. } => match renamed.get(name) {
                None => Some(graph.value_named(name)),
                Some(outer) => outer.as_deref().map(|outer| graph.value_named(outer)),
            },
            Self::Function { bound, .. } => {
                if let Some(found) = bound.get(name) {
                    return *found;
                }
                let id = Some(graph.fresh_value(name));
                bound.insert(name.to_owned(), id);
                id
            }
        }
    }

    /// The attribute that stands for `proto` here: itself, or the one that it refers to; `None`
    /// when the call leaves the attribute out.
    ///
    /// # Errors
    /// The name that it refers to, outside a function.
    pub(super) fn attribute<'p>(
        &self,
        proto: &'p AttributeProto,
    ) -> Result<Option<&'p AttributeProto>, &'p str>
    where
        'a: 'p,
    {
        match (proto.ref_attr_name.as_str(), self) {
            ("", _) => Ok(Some(proto)),
            (
                name,
                Self::Function { attributes, .. }
                | Self::Graph { attributes: Some(attributes), .. },
            ) => Ok(attributes.get(name).copied()),
            (name, Self::Graph { attributes: None, .. }) => Err(name),
        }
    }

    /// The subgraph that the call of this function gives as an attribute.
    pub(super) fn given(&self, name: &str) -> Option<SeenSubgraph<'a>> {
        match self {
            Self::Function { subgraphs, .. } => subgraphs.get(name).cloned(),
            Self::Graph { .. } => None,
        }
    }

    /// A subgraph of a node in this scope.
    pub(super) fn of_subgraph(
        &mut self,
        graph: &mut Graph,
        proto: &GraphProto,
    ) -> SeenSubgraph<'a> {
        let mut free = HashSet::new();
        free_names(proto, &mut free);
        let mut renamed = HashMap::new();
        let mut captured = OrderedSet::new();
        for name in free {
            let outer = self.resolve(graph, name).map(|id| graph.value(id).name.clone());
            captured.extend(outer.clone());
            if outer.as_deref() != Some(name) {
                renamed.insert(name.to_owned(), outer);
            }
        }
        let attributes = match self {
            Self::Function { attributes, .. } => Some(attributes.clone()),
            Self::Graph { attributes, .. } => attributes.clone(),
        };
        let scope = NameScope::Graph { renamed, attributes };
        SeenSubgraph { scope, captured, opsets: graph.opsets.clone() }
    }
}

/// Adds the names that a graph reads and does not define.
fn free_names<'p>(proto: &'p GraphProto, free: &mut HashSet<&'p str>) {
    let mut read = HashSet::new();
    for node in &proto.node {
        read.extend(node.input.iter().map(String::as_str));
        for nested in node.attribute.iter().filter_map(|attribute| attribute.g.as_deref()) {
            free_names(nested, &mut read);
        }
    }
    read.extend(proto.output.iter().map(|info| info.name.as_str()));
    let tensors = proto.initializer.iter().map(|tensor| &tensor.name);
    let sparse = proto.sparse_initializer.iter().filter_map(|s| s.values.as_ref());
    let defined: HashSet<&str> = (proto.input.iter().map(|info| &info.name))
        .chain(tensors)
        .chain(sparse.map(|tensor| &tensor.name))
        .chain(proto.node.iter().flat_map(|node| &node.output))
        .map(String::as_str)
        .collect();
    free.extend(read.into_iter().filter(|name| !name.is_empty() && !defined.contains(name)));
}
