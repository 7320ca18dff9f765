{# What codes name, where they are entries of a table. #}
{% if codes.table %}
var<workgroup> entries: array<f32, 16>;

fn fill_entries(local: u32) {
    var known = array<f32, 16>({{ codes.table }});
    if local < 16u {
        entries[local] = known[local];
    }
}
{% endif %}
