{# Four numbers of a row of X; those that are not there are 0. #}
fn quad(row: u32, at: u32) -> vec4<f32> {
{% if aligned %}
    let quads = params.columns >> 2u;
    let found = vec4<f32>(x[min(row, params.m - 1u) * quads + min(at, quads - 1u)]);
    return select(vec4<f32>(), found, row < params.m && at < quads);
{% else %}
    var all = vec4<f32>();
    if row < params.m {
        for (var j = 0u; j < 4u; j++) {
            if 4u * at + j < params.columns {
                all[j] = f32(x[row * params.columns + 4u * at + j]);
            }
        }
    }
    return all;
{% endif %}
}
