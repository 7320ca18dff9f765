{# Four numbers of a row of X; those that are not there are 0. #}
fn quad(row: u32, at: u32) -> vec4<f32> {
    if row >= params.m {
        return vec4<f32>(0.0);
    }
{% if aligned %}
    if 4u * at >= params.columns {
        return vec4<f32>(0.0);
    }
    return vec4<f32>(x[row * (params.columns >> 2u) + at]);
{% else %}
    var all = vec4<f32>(0.0);
    for (var j = 0u; j < 4u; j++) {
        if 4u * at + j < params.columns {
            all[j] = f32(x[row * params.columns + 4u * at + j]);
        }
    }
    return all;
{% endif %}
}
