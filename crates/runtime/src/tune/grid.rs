//! A grid that becomes finer around what is best.

use super::config_space::{ConfigPoint, ConfigSpace};
use super::strategy::{MeasuredCandidate, SearchStrategy, ranked};

/// Ratio of a label's time to the best at which it is dropped.
const BEHIND: f64 = 1.5;
/// Points around which the grid becomes finer.
const CENTRES: usize = 2;

/// Grid search with pruning.
#[derive(Clone, Debug, Default)]
pub(super) struct GridSearch {
    /// Distance of neighbours on each ordered axis; none before the first round.
    strides: Option<Vec<usize>>,
}

impl SearchStrategy for GridSearch {
    fn next(&mut self, space: &ConfigSpace, seen: &[MeasuredCandidate]) -> Vec<usize> {
        let new = |points: Vec<ConfigPoint>| {
            let mut fresh: Vec<usize> = points.iter().map(|point| space.candidate(point)).collect();
            fresh.sort_unstable();
            fresh.dedup();
            fresh.retain(|candidate| seen.iter().all(|trial| trial.candidate != *candidate));
            fresh
        };
        let Some(strides) = &mut self.strides else {
            let stride = |axis: &super::config_space::ConfigAxis| {
                if axis.ordered {
                    axis.labels.len().saturating_sub(1).div_ceil(2).max(1)
                } else {
                    1
                }
            };
            let strides: Vec<usize> = space.axes().iter().map(stride).collect();
            let choices = space.axes().iter().zip(&strides);
            let choices =
                choices.map(|(axis, &stride)| (0..axis.labels.len()).step_by(stride).collect());
            let points = combinations(choices.collect());
            self.strides = Some(strides);
            return new(points);
        };
        loop {
            let finest = strides.iter().all(|&stride| stride == 1);
            strides.iter_mut().for_each(|stride| *stride = stride.div_ceil(2));
            let fresh = new(around(space, seen, strides));
            if !fresh.is_empty() || finest {
                return fresh;
            }
        }
    }
}

/// The neighbours of the best points, with every name that is not far behind.
fn around(space: &ConfigSpace, seen: &[MeasuredCandidate], strides: &[usize]) -> Vec<ConfigPoint> {
    let ranked = ranked(seen);
    let Some(&(_, best)) = ranked.first() else { return Vec::new() };
    let mut points = Vec::new();
    for &(centre, _) in ranked.iter().take(CENTRES) {
        let centre = space.point(centre);
        let mut choices = Vec::with_capacity(centre.len());
        for (at, axis) in space.axes().iter().enumerate() {
            let last = axis.labels.len().saturating_sub(1);
            choices.push(if axis.ordered {
                let here = centre[at];
                let stride = strides[at];
                let mut near =
                    vec![here.saturating_sub(stride), here, here.saturating_add(stride).min(last)];
                near.dedup();
                near
            } else {
                let fastest = |label: usize| {
                    let with = ranked.iter().filter(|(n, _)| space.point(*n)[at] == label);
                    with.map(|(_, time)| *time).fold(f64::INFINITY, f64::min)
                };
                (0..=last).filter(|&label| fastest(label) <= best * BEHIND).collect()
            });
        }
        points.extend(combinations(choices));
    }
    points
}

/// Every combination of one choice each.
fn combinations(choices: Vec<Vec<usize>>) -> Vec<ConfigPoint> {
    choices.into_iter().fold(vec![Vec::new()], |points, choices| {
        let longer = |point: &ConfigPoint, &choice: &usize| {
            point.iter().copied().chain([choice]).collect::<ConfigPoint>()
        };
        points.iter().flat_map(|point| choices.iter().map(move |c| longer(point, c))).collect()
    })
}
