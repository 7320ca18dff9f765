{# What lies in a unit of a matrix of few bits, as expressions; see layout.rs and codes.rs. Expressions and no functions:
   some compilers leave functions with many callers as they are, and calls cost more than what is called. #}

{# The codes of group g in the bytes of a word. #}
{% macro word(codes, g, q, h) -%}
{% if codes.bits == 4 -%}
((({{ q }})[{{ g // 2 }}]{{ " >> 4u" if g % 2 == 1 else "" }}) & 0x0f0f0f0fu)
{%- elif codes.bits == 8 -%}
({{ q }})[{{ g }}]
{%- elif codes.bits == 2 -%}
((({{ q }})[{{ g // 4 }}] >> {{ 2 * (g % 4) }}u) & 0x03030303u)
{%- elif codes.bits == 3 -%}
(((({{ q }})[{{ g // 4 }}] >> {{ 2 * (g % 4) }}u) & 0x03030303u) | ((({{ h }} >> {{ g }}u) & 0x01010101u) << 2u))
{%- elif codes.bits == 5 -%}
(((({{ q }})[{{ g // 2 }}] >> {{ 4 * (g % 2) }}u) & 0x0f0f0f0fu) | ((({{ h }} >> {{ g }}u) & 0x01010101u) << 4u))
{%- else -%}
(((({{ q }})[{{ g // 2 }}] >> {{ 4 * (g % 2) }}u) & 0x0f0f0f0fu) | (((({{ h }})[{{ g // 4 }}] >> {{ 2 * (g % 4) }}u) & 0x03030303u) << 4u))
{%- endif %}
{%- endmacro %}

{# The numbers 4g to 4g + 3 of a unit, each times what `unscale[g]` takes back: the bits of a code in the middle of a
   word become the lower ones of a float of 2^23. #}
{% macro numbers(codes, g, q, h) -%}
{% if codes.float == "f32" -%}
bitcast<vec4<f32>>({{ q }})
{%- elif codes.float == "f16" -%}
vec4<f32>(unpack2x16float(({{ q }})[{{ 2 * g }}]), unpack2x16float(({{ q }})[{{ 2 * g + 1 }}]))
{%- elif codes.float == "bf16" -%}
bitcast<vec4<f32>>(vec4<u32>(({{ q }})[{{ 2 * g }}] << 16u, ({{ q }})[{{ 2 * g }}] & 0xffff0000u, ({{ q }})[{{ 2 * g + 1 }}] << 16u, ({{ q }})[{{ 2 * g + 1 }}] & 0xffff0000u))
{%- elif codes.table -%}
vec4<f32>(entries[({{ q }})[{{ g // 2 }}] >> {{ 4 * (g % 2) }}u & 15u], entries[({{ q }})[{{ g // 2 }}] >> {{ 4 * (g % 2) + 8 }}u & 15u], entries[({{ q }})[{{ g // 2 }}] >> {{ 4 * (g % 2) + 16 }}u & 15u], entries[({{ q }})[{{ g // 2 }}] >> {{ 4 * (g % 2) + 24 }}u & 15u])
{%- else -%}
{% set whole = "(" ~ q ~ ")[" ~ (g // 2) ~ "]" if codes.bits == 4 else word(codes, g, q, h) -%}
(bitcast<vec4<f32>>(((vec4<u32>({{ whole }}) >> vec4<u32>(0u, 0u, 16u, 16u)) & vec4<u32>({{ codes.masks[g] }})) | vec4<u32>(0x4b000000u)) - vec4<f32>({{ codes.zeros[g] }}))
{%- endif %}
{%- endmacro %}

{# The words with the factors of a block of a row, whose factors start at `at` and those of superblocks at `wholes`. #}
{% macro stored(codes, at, wholes, block) -%}
{% if codes.factors == "nested" and codes.pairs -%}
vec2<u32>(factors[{{ at }} + ({{ block }} >> 1u)], factors[{{ wholes }} + ({{ block }} >> {{ codes.per_super }}u)])
{%- elif codes.factors == "nested" -%}
vec2<u32>(factors[{{ at }} + ({{ block }} >> 2u)], factors[{{ wholes }} + ({{ block }} >> {{ codes.per_super + 1 }}u)])
{%- elif codes.factors == "f32" and codes.pairs -%}
vec2<u32>(factors[{{ at }} + 2u * ({{ block }})], factors[{{ at }} + 2u * ({{ block }}) + 1u])
{%- elif codes.factors == "f32" or codes.pairs -%}
vec2<u32>(factors[{{ at }} + {{ block }}], 0u)
{%- else -%}
vec2<u32>(factors[{{ at }} + ({{ block }} >> 1u)], 0u)
{%- endif %}
{%- endmacro %}

{# The scale of a block by those words, and what is added to its scaled numbers. #}
{% macro factor(codes, words, block) -%}
{% if codes.factors == "nested" and codes.pairs -%}
{% set both = "(vec2<f32>(vec2<i32>(bitcast<i32>(" ~ words ~ ".x << (24u - ((" ~ block ~ ") & 1u) * 16u)), bitcast<i32>(" ~ words ~ ".x << (16u - ((" ~ block ~ ") & 1u) * 16u))) >> vec2<u32>(24u)) * unpack2x16float(" ~ words ~ ".y))" -%}
{%- elif codes.factors == "nested" -%}
{% set both = "vec2<f32>(f32(bitcast<i32>(" ~ words ~ ".x << (24u - ((" ~ block ~ ") & 3u) * 8u)) >> 24u) * unpack2x16float(" ~ words ~ ".y >> (((" ~ block ~ ") >> " ~ codes.per_super ~ "u & 1u) * 16u)).x, 0.0)" -%}
{%- elif codes.factors == "f32" -%}
{% set both = "bitcast<vec2<f32>>(" ~ words ~ ")" -%}
{%- elif codes.factors == "f16" and codes.pairs -%}
{% set both = "unpack2x16float(" ~ words ~ ".x)" -%}
{%- elif codes.factors == "f16" -%}
{% set both = "vec2<f32>(unpack2x16float(" ~ words ~ ".x >> (((" ~ block ~ ") & 1u) * 16u)).x, 0.0)" -%}
{%- elif codes.pairs -%}
{% set both = "bitcast<vec2<f32>>(vec2<u32>(" ~ words ~ ".x << 16u, " ~ words ~ ".x & 0xffff0000u))" -%}
{%- else -%}
{% set both = "vec2<f32>(bitcast<f32>(" ~ words ~ ".x >> (((" ~ block ~ ") & 1u) * 16u) << 16u), 0.0)" -%}
{%- endif %}
{% if codes.zero_points -%}
(vec2<f32>(1.0, -({{ both }}).y) * ({{ both }}).x)
{%- else -%}
{{ both }}
{%- endif %}
{%- endmacro %}

{# Four numbers of a row of X, of which a row has `x_quads`; those that are not there are 0. #}
{% macro quad(aligned, row, at) -%}
{% if aligned -%}
select(vec4<f32>(), vec4<f32>(x[min({{ row }}, params.m - 1u) * x_quads + min({{ at }}, x_quads - 1u)]), {{ row }} < params.m && {{ at }} < x_quads)
{%- else -%}
quad_of({{ row }}, {{ at }})
{%- endif %}
{%- endmacro %}
