//! A drawing of a graph in layers: every node below what it reads.
//!
//! The usual steps of layered drawing (Sugiyama, Tagawa, Toda 1981): layers by longest path, places
//! for long edges in the layers between, an order in each layer by the mean place of neighbours,
//! then coordinates. Each step is linear in nodes and edges but for sorting, so that graphs of
//! thousands of nodes are drawn at once.

use std::fmt::Write as _;

/// A box to draw.
#[derive(Clone, Debug)]
pub(super) struct DrawnBox {
    /// The text in it.
    pub(super) label: String,
    /// True if it is an input or output of the graph.
    pub(super) is_port: bool,
}

/// Sweeps over the layers when ordering and when placing.
const SWEEPS: usize = 8;
const BOX_HEIGHT: f64 = 28.0;
const LAYER_GAP: f64 = 34.0;
const SPACE: f64 = 16.0;
const CHARACTER: f64 = 7.5;
const MARGIN: f64 = 20.0;

/// Places of boxes and of the bends of long edges.
struct DrawingLayout {
    /// Widths, boxes first, bends (of width 0) after.
    widths: Vec<f64>,
    layer_of: Vec<usize>,
    layers: Vec<Vec<usize>>,
    /// Neighbours above and below of each place.
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    /// The places along each edge, ends included, with its label.
    chains: Vec<(Vec<usize>, String)>,
    x: Vec<f64>,
}

/// Draws boxes and edges `(from, to, label)`. Every edge goes from an earlier box to a later one in
/// the topological order of the list.
pub(super) fn svg(shapes: &[DrawnBox], edges: &[(usize, usize, String)]) -> String {
    let mut layout = DrawingLayout::new(shapes, edges);
    layout.order();
    layout.place();
    layout.draw(shapes)
}

impl DrawingLayout {
    fn new(shapes: &[DrawnBox], edges: &[(usize, usize, String)]) -> Self {
        let mut layer_of = vec![0_usize; shapes.len()];
        let mut sorted: Vec<&(usize, usize, String)> = edges.iter().collect();
        sorted.sort_by_key(|edge| edge.1);
        // Boxes are in topological order, so each is final before its edges down are seen.
        for (from, to, _) in sorted {
            layer_of[*to] = layer_of[*to].max(layer_of[*from] + 1);
        }
        #[allow(clippy::cast_precision_loss, reason = "a label's length")]
        let width = |shape: &DrawnBox| shape.label.chars().count() as f64 * CHARACTER + 2.0 * SPACE;
        let mut layout = Self {
            widths: shapes.iter().map(width).collect(),
            layers: Vec::new(),
            above: vec![Vec::new(); shapes.len()],
            below: vec![Vec::new(); shapes.len()],
            chains: Vec::new(),
            x: Vec::new(),
            layer_of,
        };
        for (from, to, label) in edges {
            layout.add_chain(*from, *to, label);
        }
        let count = layout.layer_of.iter().max().map_or(0, |last| last + 1);
        layout.layers = vec![Vec::new(); count];
        for (place, &layer) in layout.layer_of.iter().enumerate() {
            layout.layers[layer].push(place);
        }
        layout.x = vec![0.0; layout.widths.len()];
        layout
    }

    /// An edge as a chain of places, one in each layer that it crosses.
    fn add_chain(&mut self, from: usize, to: usize, label: &str) {
        let mut chain = vec![from];
        for layer in self.layer_of[from] + 1..self.layer_of[to] {
            chain.push(self.widths.len());
            self.widths.push(0.0);
            self.layer_of.push(layer);
            self.above.push(Vec::new());
            self.below.push(Vec::new());
        }
        chain.push(to);
        for pair in chain.windows(2) {
            self.below[pair[0]].push(pair[1]);
            self.above[pair[1]].push(pair[0]);
        }
        self.chains.push((chain, label.to_owned()));
    }

    /// Orders each layer by the mean position of the neighbours, downwards and upwards in turn.
    #[allow(clippy::cast_precision_loss, reason = "positions in a layer")]
    fn order(&mut self) {
        let mut position = vec![0.0_f64; self.widths.len()];
        let number = |layer: &[usize], position: &mut [f64]| {
            layer.iter().enumerate().for_each(|(at, &place)| position[place] = at as f64);
        };
        self.layers.iter().for_each(|layer| number(layer, &mut position));
        for sweep in 0..SWEEPS {
            let down = sweep % 2 == 0;
            let neighbours = if down { &self.above } else { &self.below };
            let count = self.layers.len();
            for step in 0..count {
                let layer = &mut self.layers[if down { step } else { count - 1 - step }];
                let key =
                    |place: usize| mean(&neighbours[place], &position).unwrap_or(position[place]);
                let mut keyed: Vec<(f64, usize)> = layer.iter().map(|&p| (key(p), p)).collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                *layer = keyed.into_iter().map(|(_, place)| place).collect();
                number(layer, &mut position);
            }
        }
    }

    /// Gives every place an x near its neighbours, without overlaps in a layer.
    fn place(&mut self) {
        for layer in &self.layers {
            let mut x = 0.0;
            for &place in layer {
                self.x[place] = x + self.widths[place] / 2.0;
                x += self.widths[place] + SPACE;
            }
        }
        for sweep in 0..SWEEPS {
            let down = sweep % 2 == 0;
            let count = self.layers.len();
            for step in 0..count {
                let layer = &self.layers[if down { step } else { count - 1 - step }];
                let neighbours = if down { &self.above } else { &self.below };
                let wanted: Vec<f64> = layer
                    .iter()
                    .map(|&place| mean(&neighbours[place], &self.x).unwrap_or(self.x[place]))
                    .collect();
                let placed = self.without_overlap(layer, &wanted);
                layer.iter().zip(placed).for_each(|(&place, x)| self.x[place] = x);
            }
        }
    }

    /// The mean of what pushing to the right and pushing to the left give: both keep the order and
    /// the distances, so their mean does.
    fn without_overlap(&self, layer: &[usize], wanted: &[f64]) -> Vec<f64> {
        let distance = |a: usize, b: usize| (self.widths[a] + self.widths[b]) / 2.0 + SPACE;
        let mut right = wanted.to_vec();
        for at in 1..layer.len() {
            right[at] = right[at].max(right[at - 1] + distance(layer[at - 1], layer[at]));
        }
        let mut left = wanted.to_vec();
        for at in (1..layer.len()).rev() {
            left[at - 1] = left[at - 1].min(left[at] - distance(layer[at - 1], layer[at]));
        }
        right.iter().zip(left).map(|(a, b)| (a + b) / 2.0).collect()
    }

    #[allow(clippy::cast_precision_loss, reason = "a number of layers")]
    fn top(&self, place: usize) -> f64 {
        MARGIN + self.layer_of[place] as f64 * (BOX_HEIGHT + LAYER_GAP)
    }

    fn draw(&self, shapes: &[DrawnBox]) -> String {
        let edge = |place: usize, side: f64| self.x[place] + side * self.widths[place] / 2.0;
        let places = 0..self.widths.len();
        let least = places.clone().map(|place| edge(place, -1.0)).fold(f64::MAX, f64::min);
        let most = places.map(|place| edge(place, 1.0)).fold(f64::MIN, f64::max);
        let shift = MARGIN - least;
        let width = (most - least).max(0.0) + 2.0 * MARGIN;
        #[allow(clippy::cast_precision_loss, reason = "a number of layers")]
        let height = self.layers.len() as f64 * (BOX_HEIGHT + LAYER_GAP) + MARGIN;
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let _ = writeln!(
            text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             font-family=\"monospace\" font-size=\"12\">"
        );
        for (chain, label) in &self.chains {
            self.draw_edge(&mut text, chain, label, shift);
        }
        for (place, shape) in shapes.iter().enumerate() {
            let left = edge(place, -1.0) + shift;
            let top = self.top(place);
            let round = if shape.is_port { BOX_HEIGHT / 2.0 } else { 3.0 };
            let _ = writeln!(
                text,
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BOX_HEIGHT}\" rx=\"{round}\" \
                 fill=\"#f4f4f4\" stroke=\"#333\"/><text x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{}</text>",
                self.widths[place],
                self.x[place] + shift,
                top + BOX_HEIGHT * 0.65,
                escaped(&shape.label)
            );
        }
        text.push_str("</svg>");
        text
    }

    /// A curve through the places of an edge; its label shows when the pointer rests on it.
    fn draw_edge(&self, text: &mut String, chain: &[usize], label: &str, shift: f64) {
        let mut path = String::new();
        for pair in chain.windows(2) {
            let from = self.x[pair[0]] + shift;
            let to = self.x[pair[1]] + shift;
            let start =
                self.top(pair[0]) + if self.widths[pair[0]] > 0.0 { BOX_HEIGHT } else { 0.0 };
            let end = self.top(pair[1]);
            if path.is_empty() {
                let _ = write!(path, "M{from:.1} {start:.1}");
            }
            let middle = (start + end) / 2.0;
            let _ = write!(path, " C{from:.1} {middle:.1} {to:.1} {middle:.1} {to:.1} {end:.1}");
        }
        let _ = writeln!(
            text,
            "<path d=\"{path}\" fill=\"none\" stroke=\"#888\"><title>{}</title></path>",
            escaped(label)
        );
    }
}

#[allow(clippy::cast_precision_loss, reason = "a number of neighbours")]
fn mean(places: &[usize], of: &[f64]) -> Option<f64> {
    let sum: f64 = places.iter().map(|&place| of[place]).sum();
    (!places.is_empty()).then(|| sum / places.len() as f64)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(count: usize) -> Vec<DrawnBox> {
        (0..count).map(|at| DrawnBox { label: format!("n{at}"), is_port: at == 0 }).collect()
    }

    fn laid_out(count: usize, edges: &[(usize, usize)]) -> DrawingLayout {
        let edges: Vec<_> = edges.iter().map(|&(a, b)| (a, b, String::new())).collect();
        let mut layout = DrawingLayout::new(&shapes(count), &edges);
        layout.order();
        layout.place();
        layout
    }

    #[test]
    fn every_box_is_below_what_it_reads_and_beside_its_neighbours() {
        let edges = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3), (3, 4)];
        let layout = laid_out(5, &edges);
        assert!(edges.iter().all(|&(a, b)| layout.layer_of[a] < layout.layer_of[b]));
        for layer in &layout.layers {
            for pair in layer.windows(2) {
                let gap = layout.x[pair[1]] - layout.x[pair[0]];
                let least = (layout.widths[pair[0]] + layout.widths[pair[1]]) / 2.0;
                assert!(gap >= least, "{pair:?} overlap");
            }
        }
        let long = layout.chains.iter().find(|(chain, _)| chain.len() == 3).unwrap();
        assert_eq!((long.0[0], long.0[2]), (0, 3));
    }

    #[test]
    fn labels_are_escaped_and_nothing_draws_nothing() {
        let shapes = [DrawnBox { label: "a<b>&\"c\"".into(), is_port: false }];
        assert!(svg(&shapes, &[]).contains("a&lt;b&gt;&amp;&quot;c&quot;"));
        assert!(svg(&[], &[]).ends_with("</svg>"));
    }
}
