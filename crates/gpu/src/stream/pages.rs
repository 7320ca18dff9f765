//! Pages of a model's file that are read while weights before them are packed and uploaded.

use std::collections::VecDeque;

use galatea_graph::Graph;

use crate::device::GpuDevice;

/// Bytes that are asked for ahead.
const WINDOW: usize = 64 << 20;

/// Asks the system for the constants of nodes, some ahead of the one that is being prepared.
pub(crate) struct ConstantPages<'a> {
    graph: &'a Graph,
    next: usize,
    /// Nodes whose constants were asked for, with their bytes.
    asked: VecDeque<(usize, usize)>,
    bytes: usize,
    window: usize,
}

impl<'a> ConstantPages<'a> {
    /// Nothing was read yet. Where weights are not to be read ahead, pages are not either.
    pub(crate) fn new(graph: &'a Graph, device: &GpuDevice) -> Self {
        let window = if device.shelves.ahead() == 0 { 0 } else { WINDOW };
        Self { graph, next: 0, asked: VecDeque::new(), bytes: 0, window }
    }

    /// The node with this number comes next.
    pub(crate) fn reach(&mut self, node: usize) {
        while let Some(&(_, bytes)) = self.asked.front().filter(|(asked, _)| *asked < node) {
            self.asked.pop_front();
            self.bytes -= bytes;
        }
        while self.bytes < self.window
            && let Some(own) = self.graph.nodes.get(self.next)
        {
            let constants = own.inputs.iter().flatten().filter_map(|&id| self.graph.constant(id));
            let mut bytes = 0;
            for tensor in constants.filter(|tensor| tensor.is_mapped()) {
                tensor.will_need();
                bytes += tensor.unaligned_bytes().map_or(0, <[u8]>::len);
            }
            if bytes > 0 && self.next >= node {
                self.bytes += bytes;
                self.asked.push_back((self.next, bytes));
            }
            self.next += 1;
        }
    }
}
