//! Tables of few values that many are near to: k-means on a line.

/// Rounds of moving the values; they settle in fewer.
const ROUNDS: usize = 64;

/// So many values, in rising order, near to which all given ones are: sums of squared distances are
/// small. Source: Lloyd's algorithm on sorted values, where clusters are ranges.
pub(super) fn table(values: &[f32], entries: usize) -> Vec<f32> {
    let mut sorted: Vec<f32> = values.to_vec();
    sorted.sort_by(f32::total_cmp);
    let sums = sums(&sorted);
    let mut centres = spread(&sorted, entries);
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

/// Values from the whole range, half of them evenly by count and half evenly by distance: the tails of
/// a bell have few values and the largest errors.
#[allow(clippy::cast_precision_loss, reason = "tables are short")]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in the list")]
fn spread(sorted: &[f32], entries: usize) -> Vec<f32> {
    let (Some(&low), Some(&high)) = (sorted.first(), sorted.last()) else {
        return vec![0.0; entries];
    };
    let share = |entry: usize| (entry as f32 + 0.5) / entries as f32;
    let by_count = |share: f32| {
        let at = (f64::from(share) * sorted.len() as f64) as usize;
        sorted.get(at.min(sorted.len() - 1)).copied().unwrap_or(low)
    };
    let each = |entry: usize| {
        let share = share(entry);
        0.5 * (by_count(share) + low + (high - low) * share)
    };
    (0..entries).map(each).collect()
}

/// The mean of the values nearest to each centre; a centre that none is nearest to stays.
#[allow(clippy::cast_precision_loss, reason = "counts of weights are exact in doubles")]
#[allow(clippy::cast_possible_truncation, reason = "means of singles are singles")]
fn means(sorted: &[f32], sums: &[f64], centres: &[f32]) -> Vec<f32> {
    let mut from = 0;
    let mean = |(at, &centre): (usize, &f32)| {
        let limit = centres.get(at + 1).map(|next| 0.5 * (centre + next));
        let to = limit.map_or(sorted.len(), |limit| sorted.partition_point(|&value| value < limit));
        let (first, to) = (from, to.max(from));
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
        assert!(error(&table(&values, 16)) < 0.35 * error(&even));
    }
}
