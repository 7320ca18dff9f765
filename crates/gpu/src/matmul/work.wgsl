// Which tile a workgroup computes, and over which k. Tiles follow one another in bands of {{ band }} rows of tiles,
// so that those computed at the same time read the same operands.
struct Work {
    row: u32,
    column: u32,
    k: u32,
    k_end: u32,
    product: u32,
    part: u32,
}

fn work(id: u32) -> Work {
    let tiles = params.tiles_m * params.tiles_n;
    let tile = id % tiles;
    let rest = id / tiles;
    let share = rest % params.shares;
    let product = rest / params.shares;
    let in_band = {{ band }}u * params.tiles_n;
    let first = tile / in_band * {{ band }}u;
    let rows = min({{ band }}u, params.tiles_m - first);
    let at = tile % in_band;
    let k = share * params.share;
    return Work(
        (first + at % rows) * {{ bm }}u,
        at / rows * {{ bn }}u,
        k,
        min(k + params.share, params.k),
        product,
        share * params.products + product,
    );
}
