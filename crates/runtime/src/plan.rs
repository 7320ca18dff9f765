//! Placement of intermediate values in an arena.
//!
//! The plan knows sizes and the order of steps only. Values whose lives do not overlap share bytes. A value may
//! take over the bytes of one that dies in the step that writes it; views of a value keep it alive.

use galatea_tensor::ALIGNMENT;

/// A value that lies in the arena.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanValue {
    /// Size in bytes.
    pub bytes: usize,
    /// The earlier value whose bytes this one is, under another shape.
    pub view_of: Option<usize>,
}

/// One step of a run. Values are positions in the list of [`PlanValue`]s.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanStep {
    /// Values that the step reads.
    pub reads: Vec<usize>,
    /// Values that the step writes; a view is not written.
    pub writes: Vec<usize>,
    /// `(read, written)`: the step can write the one over the other. The first pair that is
    /// possible is taken.
    pub reuse: Vec<(usize, usize)>,
}

/// Places of all values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Start of each value, a multiple of [`ALIGNMENT`].
    pub offsets: Vec<usize>,
    /// Size of the arena.
    pub len_bytes: usize,
    /// The most bytes of values that live at the same step, where a value and the one that is
    /// written over it count once: no arena for these steps can be smaller.
    pub live_bytes: usize,
    /// For each step, the pair of [`PlanStep::reuse`] that was taken.
    pub reused: Vec<Option<(usize, usize)>>,
}

/// Values that share one place: a value, its views, and those written over it.
#[derive(Clone, Copy, Debug)]
struct SharedSlot {
    bytes: usize,
    /// The step that writes it.
    first: usize,
    /// The last step that reads it.
    last: usize,
}

impl SharedSlot {
    /// Returns whether a step touches the value and there is something to place.
    fn is_used(&self) -> bool {
        self.bytes > 0 && self.first <= self.last
    }

    /// Returns whether both are alive at some step.
    fn meets(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Lays out the values of a list of steps: of several orders of placing them, the one with the
/// smallest arena.
#[must_use]
pub fn plan(values: &[PlanValue], steps: &[PlanStep]) -> MemoryPlan {
    let roots = roots(values);
    let mut groups = lives(values, steps, &roots);
    let mut live = live_at(&groups, steps.len(), |bytes| bytes);
    let own: Vec<usize> = groups.iter().map(|group| group.bytes).collect();
    let (group_of, reused) = take_over(values, steps, &roots, &mut groups);
    for (live, reused) in live.iter_mut().zip(&reused) {
        *live -= reused.map_or(0, |(read, written)| own[roots[read]].min(own[written]));
    }
    let (offsets, len_bytes) = place(&groups, &group_of, steps.len());
    let offset_of = |value: usize| offsets[group_of[roots[value]]];
    MemoryPlan {
        offsets: (0..values.len()).map(offset_of).collect(),
        len_bytes,
        live_bytes: live.into_iter().max().unwrap_or(0),
        reused,
    }
}

/// For each value, the one that it is a view of in the end.
fn roots(values: &[PlanValue]) -> Vec<usize> {
    let mut roots: Vec<usize> = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        let root = value.view_of.filter(|&of| of < index).map_or(index, |of| roots[of]);
        roots.push(root);
    }
    roots
}

/// From when to when each root lives, its views included.
fn lives(values: &[PlanValue], steps: &[PlanStep], roots: &[usize]) -> Vec<SharedSlot> {
    let mut groups: Vec<SharedSlot> =
        values.iter().map(|v| SharedSlot { bytes: v.bytes, first: usize::MAX, last: 0 }).collect();
    for (index, step) in steps.iter().enumerate() {
        for &value in step.writes.iter().chain(&step.reads) {
            let group = &mut groups[roots[value]];
            group.first = group.first.min(index);
            group.last = group.last.max(index);
        }
    }
    for (value, &root) in roots.iter().enumerate() {
        if root != value {
            groups[root].bytes = groups[root].bytes.max(values[value].bytes);
            groups[value].bytes = 0;
        }
    }
    groups
}

/// Decides which values are written over others; gives the group of each root.
#[allow(clippy::type_complexity, reason = "two lists that belong together")]
fn take_over(
    values: &[PlanValue],
    steps: &[PlanStep],
    roots: &[usize],
    groups: &mut [SharedSlot],
) -> (Vec<usize>, Vec<Option<(usize, usize)>>) {
    let mut group_of: Vec<usize> = (0..values.len()).collect();
    let mut reused = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        let possible = |&&(read, written): &&(usize, usize)| {
            let group = group_of[roots[read]];
            let readers = step.reads.iter().filter(|&&r| group_of[roots[r]] == group).count();
            roots[written] == written
                && groups[written].first == index
                && groups[group].last == index
                && groups[group].first < index
                && readers == 1
                && groups[written].bytes <= groups[group].bytes
        };
        let taken = step.reuse.iter().find(possible).copied();
        if let Some((read, written)) = taken {
            let group = group_of[roots[read]];
            group_of[written] = group;
            groups[group].last = groups[written].last;
            groups[written].bytes = 0;
        }
        reused.push(taken);
    }
    (group_of, reused)
}

/// For each step, how many bytes live there; `size` says how many a group counts for.
fn live_at(groups: &[SharedSlot], steps: usize, size: impl Fn(usize) -> usize) -> Vec<usize> {
    let mut change = vec![(0_usize, 0_usize); steps + 1];
    for group in groups.iter().filter(|group| group.is_used()) {
        change[group.first].0 += size(group.bytes);
        change[group.last + 1].1 += size(group.bytes);
    }
    let mut now = 0_usize;
    let step = |&(born, gone): &(usize, usize)| {
        now = now + born - gone;
        now
    };
    change[..steps].iter().map(step).collect()
}

/// Ranking of groups that decides the order of placing; the greatest comes first.
type PlacingRank = fn(&SharedSlot, &[usize]) -> (usize, usize);

/// The orders that are tried: large first; where most is alive first, and there large first; long
/// and large first; long-lived first; in the order of the steps.
const ORDERS: &[PlacingRank] = &[
    |group, _| (group.bytes, usize::MAX - group.first),
    |group, live| {
        let peak = live[group.first..=group.last].iter().max().copied().unwrap_or(0);
        (peak, group.bytes)
    },
    |group, _| (group.bytes.saturating_mul(group.last - group.first + 1), group.bytes),
    |group, _| (group.last - group.first, group.bytes),
    |group, _| (usize::MAX - group.first, group.bytes),
];

/// Longer lists are placed in one order only: placing takes time with the square of their length.
const MANY_GROUPS: usize = 2000;

/// An offset for each group that has bytes, and the end of the last one.
fn place(groups: &[SharedSlot], group_of: &[usize], steps: usize) -> (Vec<usize>, usize) {
    let rounded = live_at(groups, steps, |bytes| bytes.next_multiple_of(ALIGNMENT));
    let least = rounded.iter().max().copied().unwrap_or(0);
    let own: Vec<usize> =
        (0..groups.len()).filter(|&g| group_of[g] == g && groups[g].is_used()).collect();
    let orders = if own.len() > MANY_GROUPS { &ORDERS[..1] } else { ORDERS };
    let mut best: Option<(Vec<usize>, usize)> = None;
    for rank in orders {
        let mut order = own.clone();
        order.sort_by_cached_key(|&g| (std::cmp::Reverse(rank(&groups[g], &rounded)), g));
        for fit in [GapChoice::Tightest, GapChoice::Lowest] {
            let found = place_in(&order, groups, fit);
            let enough = found.1 <= least;
            if best.as_ref().is_none_or(|(_, len)| found.1 < *len) {
                best = Some(found);
            }
            if enough {
                return best.unwrap_or_default();
            }
        }
    }
    best.unwrap_or_default()
}

/// Rule that selects one of several gaps for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GapChoice {
    /// The smallest that holds it.
    Tightest,
    /// The first that holds it.
    Lowest,
}

/// Places groups one after the other, each in a gap between those that live at the same time, else
/// after them.
fn place_in(order: &[usize], groups: &[SharedSlot], fit: GapChoice) -> (Vec<usize>, usize) {
    let mut offsets = vec![0; groups.len()];
    // Placed groups by where they lie: `(start, end, group)`.
    let mut placed: Vec<(usize, usize, usize)> = Vec::with_capacity(order.len());
    let mut len_bytes = 0;
    for &group in order {
        let here = &groups[group];
        let taken = placed
            .iter()
            .filter(|(.., other)| groups[*other].meets(here))
            .map(|&(start, end, _)| (start, end));
        let start = gap(taken, here.bytes, fit);
        let end = start + here.bytes.next_multiple_of(ALIGNMENT);
        offsets[group] = start;
        len_bytes = len_bytes.max(end);
        let at = placed.partition_point(|&(other, ..)| other <= start);
        placed.insert(at, (start, end, group));
    }
    (offsets, len_bytes)
}

/// The start of a gap between ranges, which come in the order of their starts, that holds `bytes`;
/// else their end.
fn gap(taken: impl Iterator<Item = (usize, usize)>, bytes: usize, fit: GapChoice) -> usize {
    let mut best: Option<(usize, usize)> = None;
    let mut end = 0_usize;
    for (from, to) in taken {
        let gap = from.saturating_sub(end);
        if gap >= bytes && best.is_none_or(|(size, _)| gap < size) {
            best = Some((gap, end));
            if fit == GapChoice::Lowest {
                break;
            }
        }
        end = end.max(to);
    }
    best.map_or(end, |(_, start)| start)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(bytes: usize) -> PlanValue {
        PlanValue { bytes, view_of: None }
    }

    #[derive(Clone, Debug)]
    struct Made {
        bytes: usize,
        view: Option<prop::sample::Index>,
        reads: Vec<prop::sample::Index>,
        reuse: bool,
    }

    fn made() -> impl Strategy<Value = Made> {
        let index = any::<prop::sample::Index>;
        (
            prop_oneof![Just(0_usize), 1_usize..400, Just(64), Just(128)],
            prop::option::weighted(0.2, index()),
            prop::collection::vec(index(), 0..4),
            any::<bool>(),
        )
            .prop_map(|(bytes, view, reads, reuse)| Made { bytes, view, reads, reuse })
    }

    /// Each made thing is a view or a step that writes one value.
    fn build(all: &[Made]) -> (Vec<PlanValue>, Vec<PlanStep>) {
        let mut values = Vec::<PlanValue>::new();
        let mut steps = Vec::new();
        for made in all {
            let known = values.len();
            if let (Some(of), true) = (&made.view, known > 0) {
                let of = of.index(known);
                values.push(PlanValue { bytes: values[of].bytes, view_of: Some(of) });
                continue;
            }
            values.push(value(made.bytes));
            let reads: Vec<usize> = if known == 0 {
                Vec::new()
            } else {
                made.reads.iter().map(|read| read.index(known)).collect()
            };
            let reuse =
                if made.reuse { reads.iter().map(|&r| (r, known)).collect() } else { vec![] };
            steps.push(PlanStep { reads, writes: vec![known], reuse });
        }
        (values, steps)
    }

    /// Runs the plan on a memory whose bytes remember which root value wrote them.
    fn simulate(values: &[PlanValue], steps: &[PlanStep], plan: &MemoryPlan) {
        let roots = roots(values);
        let mut memory = vec![usize::MAX; plan.len_bytes];
        for (step, reused) in steps.iter().zip(&plan.reused) {
            let range = |v: usize| plan.offsets[v]..plan.offsets[v] + values[v].bytes;
            for &read in &step.reads {
                assert!(memory[range(read)].iter().all(|&tag| tag == roots[read]), "lost {read}");
                for &written in &step.writes {
                    let a = range(read);
                    let b = range(written);
                    let overlap = a.start < b.end && b.start < a.end;
                    assert!(!overlap || *reused == Some((read, written)), "{read} {written}");
                }
            }
            for &written in &step.writes {
                assert!(plan.offsets[written].is_multiple_of(ALIGNMENT));
                memory[range(written)].fill(written);
            }
        }
    }

    /// The most bytes that are alive at once, where nothing is written over another value.
    fn alive_at_once(values: &[PlanValue], steps: &[PlanStep]) -> usize {
        let roots = roots(values);
        let life = |root: usize| {
            let touches = |step: &PlanStep| {
                step.reads.iter().chain(&step.writes).any(|&value| roots[value] == root)
            };
            Some((steps.iter().position(touches)?, steps.iter().rposition(touches)?))
        };
        let lives: Vec<_> = (0..values.len()).filter(|&v| roots[v] == v).map(life).collect();
        let sizes = (0..values.len()).filter(|&v| roots[v] == v).map(|v| values[v].bytes);
        let all: Vec<_> = lives.into_iter().zip(sizes).collect();
        let at = |step: usize| {
            let alive = all.iter().filter(|(life, _)| {
                life.is_some_and(|(first, last)| first <= step && step <= last)
            });
            alive.map(|(_, bytes)| bytes).sum()
        };
        (0..steps.len()).map(at).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn live_values_never_overlap(all in prop::collection::vec(made(), 0..40)) {
            let (values, steps) = build(&all);
            let plan = plan(&values, &steps);
            simulate(&values, &steps, &plan);
            let sum: usize = values.iter().map(|v| v.bytes.next_multiple_of(ALIGNMENT)).sum();
            prop_assert!(plan.len_bytes <= sum);
            prop_assert!(plan.len_bytes >= plan.live_bytes);
            let apart: Vec<PlanStep> =
                steps.into_iter().map(|step| PlanStep { reuse: Vec::new(), ..step }).collect();
            let alive = alive_at_once(&values, &apart);
            prop_assert_eq!(super::plan(&values, &apart).live_bytes, alive);
            prop_assert!(plan.live_bytes <= alive);
        }
    }

    #[test]
    fn a_chain_needs_two_places_and_in_place_steps_one() {
        let values = vec![value(1000); 10];
        let chain = |in_place: bool| -> Vec<PlanStep> {
            (0..10_usize)
                .map(|i| {
                    let reads: Vec<usize> = i.checked_sub(1).into_iter().collect();
                    let reuse =
                        if in_place { reads.iter().map(|&r| (r, i)).collect() } else { vec![] };
                    PlanStep { reads, writes: vec![i], reuse }
                })
                .collect()
        };
        assert_eq!(plan(&values, &chain(false)).len_bytes, 2048);
        assert_eq!(plan(&values, &chain(true)).len_bytes, 1024);
    }

    #[test]
    fn a_value_read_twice_by_the_step_or_later_is_not_written_over() {
        let values = vec![value(64); 3];
        let steps = [
            PlanStep { writes: vec![0], ..PlanStep::default() },
            PlanStep { reads: vec![0, 0], writes: vec![1], reuse: vec![(0, 1)] },
            PlanStep { reads: vec![0, 1], writes: vec![2], reuse: vec![(0, 2)] },
        ];
        assert_eq!(plan(&values, &steps).reused, [None, None, Some((0, 2))]);
    }
}
