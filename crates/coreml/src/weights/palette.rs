//! Tables of few values that many are near to: k-means on a line.

/// Rounds of moving the values; they settle in fewer.
const ROUNDS: usize = 16;
/// Values are put together in so many bins before the best ranges of them are looked for.
const BINS: usize = 2048;

/// Returns `entries` values, in rising order, such that the sum of squared distances of all given
/// values to the nearest one is least, as far as bins tell values apart.
///
/// Source: dynamic programming over ranges of sorted values (Wang and Song, "Ckmeans.1d.dp", 2011),
/// by dividing places as their best cuts rise with them; then Lloyd's algorithm on the values
/// themselves.
pub(super) fn table(values: &[f32], entries: usize) -> Vec<f32> {
    let mut sorted: Vec<f32> = values.to_vec();
    sorted.sort_by(f32::total_cmp);
    let sums = sums(&sorted);
    let mut centres = PaletteBins::new(&sorted).centres(entries);
    for _ in 0..ROUNDS {
        let moved = means(&sorted, &sums, &centres);
        if moved == centres {
            break;
        }
        centres = moved;
    }
    centres
}

/// Sums of all values before each place.
fn sums(sorted: &[f32]) -> Vec<f64> {
    let mut sum = 0.0;
    let mut all = vec![0.0];
    all.extend(sorted.iter().map(|&value| {
        sum += f64::from(value);
        sum
    }));
    all
}

/// Best divisions of the bins before each place into some ranges.
struct RangeCuts {
    /// The least spread of the ranges together.
    spreads: Vec<f64>,
    /// The place where the last range begins.
    cuts: Vec<usize>,
}

/// Sorted values in bins of equal width: counts, sums and sums of squares of all before each bin.
struct PaletteBins {
    before: Vec<[f64; 3]>,
}

impl PaletteBins {
    fn new(sorted: &[f32]) -> Self {
        let ends = sorted.first().zip(sorted.last());
        let (low, high) =
            ends.map_or((0.0, 0.0), |(low, high)| (f64::from(*low), f64::from(*high)));
        let width = (high - low) / f64::from(u16::try_from(BINS).unwrap_or(u16::MAX));
        let mut before = vec![[0.0; 3]];
        let mut at = [0.0; 3];
        let mut limit = low + width;
        for &value in sorted {
            let value = f64::from(value);
            if value > limit {
                before.push(at);
                // Bins without values are left out.
                limit = value + width;
            }
            at = [at[0] + 1.0, at[1] + value, at[2] + value * value];
        }
        before.push(at);
        Self { before }
    }

    /// Squared distances of the bins of a range from their mean.
    fn spread(&self, from: usize, to: usize) -> f64 {
        let [count, sum, squares] = self.range(from, to);
        if count > 0.0 { (squares - sum * sum / count).max(0.0) } else { 0.0 }
    }

    fn range(&self, from: usize, to: usize) -> [f64; 3] {
        let at = |place: usize| self.before.get(place).copied().unwrap_or_default();
        let low = at(from);
        let high = at(to);
        [high[0] - low[0], high[1] - low[1], high[2] - low[2]]
    }

    /// The means of the ranges that together spread the least.
    #[allow(clippy::cast_possible_truncation, reason = "means of singles are singles")]
    fn centres(&self, entries: usize) -> Vec<f32> {
        let bins = self.before.len() - 1;
        let mut least: Vec<f64> = (0..=bins).map(|to| self.spread(0, to)).collect();
        let mut cuts: Vec<Vec<usize>> = Vec::with_capacity(entries);
        for _ in 1..entries {
            let mut next = RangeCuts { spreads: vec![0.0; bins + 1], cuts: vec![0; bins + 1] };
            self.divide(&least, &mut next, (0, bins), (0, bins));
            least = next.spreads;
            cuts.push(next.cuts);
        }
        let mut to = bins;
        let mut centres = Vec::with_capacity(entries);
        for cut in cuts.iter().rev() {
            let from = cut.get(to).copied().unwrap_or(0);
            centres.push(self.range(from, to));
            to = from;
        }
        centres.push(self.range(0, to));
        centres.reverse();
        let mut last = 0.0;
        let mean = |[count, sum, _]: [f64; 3]| {
            // More entries than values: those that are left over repeat one.
            last = if count > 0.0 { sum / count } else { last };
            last as f32
        };
        let mut centres: Vec<f32> = centres.into_iter().map(mean).collect();
        centres.sort_by(f32::total_cmp);
        centres
    }

    /// The least spread of one range more for the places from `places.0` to `places.1`, whose best cuts lie
    /// within `cuts`.
    fn divide(
        &self,
        least: &[f64],
        next: &mut RangeCuts,
        places: (usize, usize),
        cuts: (usize, usize),
    ) {
        if places.0 > places.1 {
            return;
        }
        let middle = usize::midpoint(places.0, places.1);
        let total = |from: usize| {
            least.get(from).copied().unwrap_or(f64::INFINITY) + self.spread(from, middle)
        };
        let mut best = f64::INFINITY;
        let mut at = cuts.0;
        for from in cuts.0..=cuts.1.min(middle) {
            let found = total(from);
            if found < best {
                (best, at) = (found, from);
            }
        }
        let spread = next.spreads.get_mut(middle);
        if let Some((spread, cut)) = spread.zip(next.cuts.get_mut(middle)) {
            *spread = best;
            *cut = at;
        }
        if middle > places.0 {
            self.divide(least, next, (places.0, middle - 1), (cuts.0, at));
        }
        self.divide(least, next, (middle + 1, places.1), (at, cuts.1));
    }
}

/// The mean of the values nearest to each centre; a centre that none is nearest to stays.
#[allow(clippy::cast_precision_loss, reason = "counts of weights are exact in doubles")]
#[allow(clippy::cast_possible_truncation, reason = "means of singles are singles")]
fn means(sorted: &[f32], sums: &[f64], centres: &[f32]) -> Vec<f32> {
    let mut from = 0;
    let mean = |(at, &centre): (usize, &f32)| {
        let limit = centres.get(at + 1).map(|next| 0.5 * (centre + next));
        let to = limit.map_or(sorted.len(), |limit| sorted.partition_point(|&value| value < limit));
        let first = from;
        let to = to.max(from);
        from = to;
        let sum = sums.get(to).copied().unwrap_or(0.0) - sums.get(first).copied().unwrap_or(0.0);
        if to == first { centre } else { (sum / (to - first) as f64) as f32 }
    };
    centres.iter().enumerate().map(mean).collect()
}

/// The place of the nearest entry of a rising table for each value.
pub(super) fn places(values: &[f32], table: &[f32]) -> Vec<u8> {
    let limits: Vec<f32> = table.windows(2).map(|pair| pair.iter().sum::<f32>() * 0.5).collect();
    let place = |&value: &f32| {
        let at = limits.partition_point(|&limit| limit <= value);
        u8::try_from(at).unwrap_or(u8::MAX)
    };
    values.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_finds_the_values_that_there_are() {
        let values: Vec<f32> = (0..400).map(|at| [-3.0, -1.0, 0.5, 8.0][at % 4]).collect();
        assert_eq!(table(&values, 4), [-3.0, -1.0, 0.5, 8.0]);
        let places = places(&values, &[-3.0, -1.0, 0.5, 8.0]);
        assert_eq!(places[..4], [0, 1, 2, 3]);
    }

    #[test]
    fn a_bell_is_told_apart_better_than_by_even_steps() {
        let bell = |at: i16| (f32::from(at) / 1000.0).powi(3);
        let values: Vec<f32> = (-1000..=1000).map(bell).collect();
        let error = |table: &[f32]| -> f64 {
            let places = places(&values, table);
            let each = values
                .iter()
                .zip(places)
                .map(|(value, at)| f64::from(value - table[usize::from(at)]).powi(2));
            each.sum()
        };
        let even: Vec<f32> = (0..16_u8).map(|at| (f32::from(at) + 0.5) / 8.0 - 1.0).collect();
        // The best that any table of many entries does here is 0.71 of even steps (Panter and Dite).
        assert!(error(&table(&values, 16)) < 0.75 * error(&even));
    }
}
