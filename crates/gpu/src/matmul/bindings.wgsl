// What a product is given: its operands, what is added to it, and its lengths. A step is a number of elements.
{% if reduce is defined %}
@group(0) @binding(0) var<storage, read_write> sums: array<{{ "vec4<f32>" if out.wide else "f32" }}>;
{% else %}
@group(0) @binding(0) var<storage, read_write> a: array<{{ "vec4<" ~ a.elem ~ ">" if a.wide else a.elem }}>;
@group(0) @binding(1) var<storage, read_write> b: array<{{ "vec4<" ~ b.elem ~ ">" if b.wide else b.elem }}>;
{% endif %}
{% if bias %}
@group(0) @binding({{ at.bias }}) var<storage, read_write> bias: array<{{ "vec4<" ~ bias ~ ">" if out.wide and not bias_rows else bias }}>;
{% endif %}
{% if more %}
@group(0) @binding({{ at.more }}) var<storage, read_write> more: array<{{ "vec4<" ~ more ~ ">" if out.wide else more }}>;
{% endif %}
{% if zeros is defined and zeros %}
@group(0) @binding({{ at.zeros }}) var<storage, read> zeros: array<u32>;
{% endif %}
@group(0) @binding({{ at.out }}) var<storage, read_write> out: array<{{ "vec4<" ~ out.elem ~ ">" if out.wide else out.elem }}>;

struct Params {
    m: u32,
    n: u32,
    k: u32,
    // Elements of k for each of so many workgroups that share a tile.
    share: u32,
    shares: u32,
    tiles_m: u32,
    tiles_n: u32,
    // Workgroups.
    total: u32,
    // Products of the stack, and lengths of its two inner axes.
    products: u32,
    middle: u32,
    inner: u32,
    // Where operands start, their steps along the axes of the stack and of the matrix.
    a_at: u32,
    a_0: u32,
    a_1: u32,
    a_2: u32,
    a_outer: u32,
    a_inner: u32,
    b_at: u32,
    b_0: u32,
    b_1: u32,
    b_2: u32,
    b_outer: u32,
    b_inner: u32,
    more_at: u32,
    more_0: u32,
    more_1: u32,
    more_2: u32,
    more_outer: u32,
    more_inner: u32,
    bias_step: u32,
    out_at: u32,
    alpha: f32,
    beta: f32,
    // Of the activation.
    p: f32,
    q: f32,
    {% if windows is defined and windows %}
    // Windows beside one another, and those of an image.
    across: u32,
    pixels: u32,
    // Elements from one to the next across and down, and from one image to the next.
    step_x: u32,
    step_y: u32,
    step_image: u32,
    // Elements of a run, and between it and the next; elements of a window, and where there are zeros.
    run: u32,
    jump: u32,
    terms: u32,
    zeros: u32,
    {% endif %}
    {% if integers is defined %}
    // Steps of the zero points, and how many rows have their own.
    za_step: u32,
    za_rows: u32,
    zb_step: u32,
    {% endif %}
}
@group(0) @binding({{ at.params }}) var<uniform> params: Params;

// Where one product of the stack starts.
struct Starts {
    a: u32,
    b: u32,
    more: u32,
    out: u32,
}

fn starts(product: u32) -> Starts {
    let i2 = product % params.inner;
    let rest = product / params.inner;
    let i1 = rest % params.middle;
    let i0 = rest / params.middle;
    return Starts(
        params.a_at + i0 * params.a_0 + i1 * params.a_1 + i2 * params.a_2,
        params.b_at + i0 * params.b_0 + i1 * params.b_1 + i2 * params.b_2,
        params.more_at + i0 * params.more_0 + i1 * params.more_1 + i2 * params.more_2,
        params.out_at + product * params.m * params.n,
    );
}
