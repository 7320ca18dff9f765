// A tile of the queries of a sequence: each sequence has tiles of its own.
struct Tile {
    // Its number in the sequence, the sequence's queries and its first row; no queries beyond the last tile.
    number: u32,
    count: u32,
    first_row: u32,
    // Positions before the rows, all positions that there may be, and where the sequence's blocks are listed.
    before: u32,
    positions: u32,
    table: u32,
    // Beside matrices everything is a multiple of 16 bytes.
    unused: vec2<u32>,
}

// Nothing outside rows and lists is touched, whatever lengths a caller gives.
fn find_tile(number: u32) -> Tile {
    var found = Tile(number, 0u, 0u, 0u, params.most * params.block, 0u, vec2<u32>());
    for (var b = 0u; b < params.sequences; b++) {
        let first_row = min(starts[b].x, params.rows);
        let rows = clamp(starts[b + 1u].x, first_row, params.rows) - first_row;
        let count = rows * params.shared_heads;
        let own = select((count + ROWS - 1u) / ROWS, 0u, rows <= params.few);
        if found.number < own {
            found.count = count;
            found.first_row = first_row;
            found.before = clamp(lengths[b].x, rows, max(found.positions, rows)) - rows;
            found.table = b * params.most;
            return found;
        }
        found.number -= own;
    }
    return found;
}
