//! Templates that want the stack, the memory or the time of the process: each is refused when it is read, or ends with
//! a text or an error when it is rendered.

use std::time::{Duration, Instant};

use galatea_llm::template::{ChatTemplate, Conversation};
use serde_json::json;

/// Time after which reading and rendering one template counts as hanging. Steps and bytes bound them; this is far
/// beyond what the longest takes on a busy machine without optimisation.
const LIMIT: Duration = Duration::from_secs(240);

/// Bytes of a rendered text that still count as bounded.
const MAX_TEXT: usize = 64 << 20;

/// A conversation with a message of some length.
fn conversation() -> Conversation {
    let messages = vec![json!({"role": "user", "content": "a".repeat(100_000)})];
    Conversation { messages, ..Conversation::default() }
}

/// Reads and renders on a thread with the stack that threads usually have: a process that lives on has held.
fn survives(source: &str) {
    let shown: String = source.chars().take(80).collect();
    let source = source.to_owned();
    let start = Instant::now();
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
        let template = ChatTemplate::new(&source).map_err(|error| error.to_string())?;
        template.render(&conversation()).map_err(|error| error.to_string())
    });
    let result = thread.unwrap().join().unwrap_or_else(|_| panic!("{shown} panics"));
    assert!(start.elapsed() < LIMIT, "{shown} takes {:?}", start.elapsed());
    match result {
        Ok(text) => assert!(text.len() <= MAX_TEXT, "{shown} gives {} bytes", text.len()),
        Err(message) => {
            assert!(message.contains("chat_template"), "{shown}: {message}");
            assert!(message.len() < 2000, "{shown} has a message of {} bytes", message.len());
        }
    }
}

#[test]
fn chains_of_any_length_do_not_take_the_stack() {
    let links = [
        "+ 1",
        "- 1",
        "~ 1",
        "* 1",
        "** 1",
        "/ 1",
        "// 1",
        "% 1",
        "and 1",
        "or 1",
        ".b",
        "[0]",
        "|int",
        "()",
        "is defined",
        "is not none",
        "== 1",
        "< 1",
        "in [1]",
        "not in [1]",
        "if 1 else 2",
        "if 1",
        "[1:]",
        "|e",
        "|default(1)",
        ".b()",
    ];
    for count in [200, 40_000] {
        for link in links {
            survives(&format!("{{{{ messages {} }}}}", format!("{link} ").repeat(count)));
        }
        for sign in ["not ", "-", "+", "(", "[", "{1:", "a(", "a[", "a if b else ", "a|b("] {
            survives(&format!("{{{{ {}1 }}}}", sign.repeat(count)));
        }
    }
}

#[test]
fn blocks_in_blocks_do_not_take_the_stack() {
    let closed = [
        ("{% if 1 %}", "{% endif %}"),
        ("{% for a in messages %}", "{% endfor %}"),
        ("{% filter upper %}", "{% endfilter %}"),
        ("{% set x %}", "{% endset %}"),
        ("{% with a = 1 %}", "{% endwith %}"),
        ("{% macro m() %}", "{% endmacro %}"),
        ("{% call m() %}", "{% endcall %}"),
        ("{% generation %}", "{% endgeneration %}"),
    ];
    for (open, close) in closed {
        for count in [50, 20_000] {
            survives(&format!("{}a{}", open.repeat(count), close.repeat(count)));
            survives(&open.repeat(count));
        }
    }
    let arms = "{% elif 0 %}b".repeat(20_000);
    survives(&format!("{{% if 0 %}}a{arms}{{% else %}}c{{% endif %}}"));
}

#[test]
fn values_that_hold_themselves_or_nest_deeply_end() {
    let loop_of = |body: &str, after: &str| {
        format!(
            "{{% set ns = namespace(x=[]) %}}{{% for i in range(99999) %}}{body}{{% endfor %}}{after}"
        )
    };
    let uses = [
        "{{ ns }}",
        "{{ ns.x }}",
        "{{ ns.x|tojson }}",
        "{{ ns.x == ns.x }}",
        "{{ ns.x|string|length }}",
        "{{ ns.x|list|length }}",
        "{{ [ns.x]|sort|length }}",
        "{{ [ns.x, ns.x]|unique|list|length }}",
        "",
        "{{ ns.x in [ns.x] }}",
        "{{ [ns.x, ns.x]|min is defined }}",
        "{{ ns.x|pprint }}",
    ];
    let nests = [
        "{% set ns.x = [ns.x] %}",
        "{% set ns.x = {'a': ns.x} %}",
        "{% set ns.x = dict(a=ns.x) %}",
        "{% set ns.x = ns %}",
        "{% set ns.x = [ns] %}",
        "{% set ns.x = namespace(x=ns.x) %}",
        "{% set ns.x = (ns.x, 1) %}",
        "{% set ns.x = ns.x|batch(1)|list %}",
        "{% set ns.x = [ns.x]|reverse|list %}",
    ];
    for nest in nests {
        for after in uses {
            survives(&loop_of(nest, after));
        }
    }
    survives("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}");
    survives(
        "{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}{{ a }}{{ a|tojson }}{{ a == b }}",
    );
    survives(
        "{% set a = namespace() %}{% macro m() %}{{ a }}{% endmacro %}{% set a.m = m %}{{ a }}{{ a.m() }}",
    );
}

#[test]
fn calls_of_themselves_end() {
    survives("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
    survives("{% macro m(x) %}{{ m([x]) }}{% endmacro %}{{ m(1) }}");
    survives(
        "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
    );
    survives("{% for a in [[1]] recursive %}{{ loop([a]) }}{% endfor %}");
    survives("{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}");
    survives("{% include 'default' %}");
    survives("{% extends 'default' %}");
    survives("{% import 'default' as d %}{{ d }}");
}

#[test]
fn memory_is_bounded_whatever_values_become() {
    let content = "messages[0].content";
    let bombs = [
        "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x|length }}",
        "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x|length }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x|length }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
        "{{ 'a' * 10000000000 }}",
        "{{ [1] * 10000000000 }}",
        "{{ range(10000000000)|list }}",
        "{{ range(10000000000)|length }}",
        "{{ [1]|batch(10000000000, 1)|list|length }}",
        "{{ [1]|slice(10000000000)|list|length }}",
        "{{ 'a'|center(10000000000) }}",
        "{{ '%9999999999d'|format(1) }}",
        "{{ '{:9999999999}'.format(1) }}",
        "{{ 'a'|indent(10000000000, true) }}",
        "{{ 'a'.ljust(10000000000) }}",
        "{{ 'a'.zfill(10000000000) }}",
        "{{ 10 ** 10000000000 }}",
        "{{ [1]|tojson(indent=10000000000) }}",
        "{{ '\\t'.expandtabs(10000000000) }}",
        "{{ 'a'|wordwrap(1, true, 'b' * 1000000) }}",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% for k in range(99999) %}a{% endfor %}{% endfor %}{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% set x = i %}{% endfor %}{% endfor %}",
        "{{ 1e999 }}{{ 99999999999999999999999999999999999999999999999999 }}{{ 1.0 / 0 }}{{ 1 // 0 }}{{ -9223372036854775808 // -1 }}",
    ];
    for bomb in bombs {
        survives(bomb);
    }
    for filter in [
        "replace('a', messages[0].content)",
        "list|join(messages[0].content)",
        "indent(100000)",
        "urlencode|urlencode",
        "list|map('replace', 'a', messages[0].content)|list",
        "replace('', messages[0].content)",
        "e|e|e|e|tojson",
    ] {
        survives(&format!("{{{{ {content}|{filter} }}}}"));
    }
    for method in [
        "replace('a', messages[0].content)",
        "join(messages[0].content)",
        "split('')",
        "split('a')",
    ] {
        survives(&format!("{{{{ {content}.{method} }}}}"));
    }
}

#[test]
fn texts_that_are_no_templates_are_refused() {
    for source in [
        "{% raw %}",
        "{#",
        "{{",
        "{%",
        "{{ 'a",
        "{{ \"a\\",
        "{% endif %}",
        "{% else %}",
        "{% set %}",
        "{{ }}",
        "{% x %}",
        "{{ a b }}",
        "{% for in %}",
        "{% if %}{% endif %}",
        "{{ a. }}",
        "{{ [ }}",
        "{{ ) }}",
        "{{ \u{0}a }}",
        "{{ é }}",
    ] {
        survives(source);
    }
    survives(&"{{ 1 }}".repeat(140_000));
    survives(&"{% set a = 1 %}".repeat(60_000));
    survives(&"{".repeat(1 << 20));
}
