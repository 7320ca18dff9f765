{# Four numbers of a row of X where rows are no whole vectors; those that are not there are 0. #}
{% if not aligned %}
fn quad_of(row: u32, at: u32) -> vec4<f32> {
    var all = vec4<f32>();
    if row < params.m {
        for (var j = 0u; j < 4u; j++) {
            if 4u * at + j < params.columns {
                all[j] = f32(x[row * params.columns + 4u * at + j]);
            }
        }
    }
    return all;
}
{% endif %}
