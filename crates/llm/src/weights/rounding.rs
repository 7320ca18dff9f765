//! Numbers of a block to codes: the ways in which ggml rounds them.
//!
//! Source: `ggml-quants.c` of ggml, whose types have the same names.

/// The multiple of a scale that is nearest to a number.
fn nearest(x: f32, inverse: f32) -> f32 {
    (x * inverse).round_ties_even()
}

/// One divided by a scale; 0 of 0.
pub(super) fn inverse(scale: f32) -> f32 {
    if scale == 0.0 { 0.0 } else { 1.0 / scale }
}

/// A scale as FP16 has it.
pub(super) fn as_half(scale: f32) -> f32 {
    galatea_tensor::f16::from_f32(scale).to_f32()
}

/// Codes of multiples of a scale from `-half` to `half - 1`, which are stored `half` higher.
pub(super) fn multiples(x: &[f32], scale: f32, half: f32, codes: &mut [u8]) {
    let inverse = inverse(scale);
    for (code, &x) in codes.iter_mut().zip(x) {
        *code = byte((nearest(x, inverse) + half).clamp(0.0, 2.0 * half - 1.0));
    }
}

/// Codes of multiples from 0 to `most` of a scale, counted from an offset.
pub(super) fn steps(x: &[f32], scale: f32, offset: f32, most: f32, codes: &mut [u8]) {
    let inverse = inverse(scale);
    for (code, &x) in codes.iter_mut().zip(x) {
        *code = byte(nearest(x - offset, inverse).clamp(0.0, most));
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "limited to a byte")]
fn byte(x: f32) -> u8 {
    x as u8
}

/// The number of the greatest magnitude, with its sign.
pub(super) fn greatest(x: &[f32]) -> f32 {
    x.iter().fold(0.0_f32, |most, &x| if x.abs() > most.abs() { x } else { most })
}

/// The scale of multiples from `-half` to `half - 1` that misses a block's numbers the least, where large ones
/// count more.
pub(super) fn best_scale(x: &[f32], half: f32) -> f32 {
    let most = greatest(x);
    if most == 0.0 {
        return 0.0;
    }
    // Of some scales about that of the greatest number, each with what fits its multiples best.
    let fitted = |times: f32| {
        let inverse = -times / most;
        let mut products = 0.0_f32;
        let mut squares = 0.0_f32;
        for &x in x {
            let multiple = nearest(x, inverse).clamp(-half, half - 1.0);
            let weight = x * x;
            products += weight * x * multiple;
            squares += weight * multiple * multiple;
        }
        let scale = if squares > 0.0 { products / squares } else { 0.0 };
        (scale, scale * products)
    };
    let tries = (-9_i16..=9).map(|at| fitted(half + 0.1 * f32::from(at)));
    tries.fold(fitted(half), |best, found| if found.1 > best.1 { found } else { best }).0
}

/// The scale and the offset of multiples from 0 to `most` that miss a block's numbers the least; the offset is
/// not above 0.
pub(super) fn best_steps(x: &[f32], most: f32) -> (f32, f32) {
    #[allow(clippy::cast_precision_loss, reason = "the length of a block")]
    let mean = (x.iter().map(|x| x * x).sum::<f32>() / x.len().max(1) as f32).sqrt();
    let weight = |x: f32| mean + x.abs();
    let least = x.iter().copied().fold(0.0_f32, f32::min);
    let greatest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let span = greatest - least;
    if span <= 0.0 {
        return (0.0, least);
    }
    let error = |steps: f32, scale: f32, offset: f32| -> f32 {
        let missed = |&x: &f32| {
            let step = nearest(x - least, steps / span).clamp(0.0, most);
            let distance = scale * step + offset - x;
            weight(x) * distance * distance
        };
        x.iter().map(missed).sum()
    };
    let mut best = (error(most, span / most, least), (span / most, least));
    for at in 0_u8..=20 {
        let steps = most - 1.0 + 0.1 * f32::from(at);
        let mut sum = 0.0;
        let mut sum_x = 0.0;
        let mut sum_l = 0.0;
        let mut sum_ll = 0.0;
        let mut sum_xl = 0.0;
        for &x in x {
            let step = nearest(x - least, steps / span).clamp(0.0, most);
            let weight = weight(x);
            sum += weight;
            sum_x += weight * x;
            sum_l += weight * step;
            sum_ll += weight * step * step;
            sum_xl += weight * x * step;
        }
        let determinant = sum * sum_ll - sum_l * sum_l;
        if determinant <= 0.0 {
            continue;
        }
        let mut scale = (sum * sum_xl - sum_x * sum_l) / determinant;
        let mut offset = (sum_ll * sum_x - sum_l * sum_xl) / determinant;
        if offset > 0.0 {
            (scale, offset) = (sum_xl / sum_ll, 0.0);
        }
        let missed = error(steps, scale, offset);
        if missed < best.0 {
            best = (missed, (scale, offset));
        }
    }
    best.1
}
