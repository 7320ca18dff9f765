{# What is added to a result, where a node has it. #}
{% if bias %}
@group(0) @binding({{ at.bias }}) var<storage, read_write> bias: array<{{ bias }}>;
{% endif %}
{% if residual %}
@group(0) @binding({{ at.residual }}) var<storage, read_write> residual: array<{{ residual }}>;
{% endif %}
