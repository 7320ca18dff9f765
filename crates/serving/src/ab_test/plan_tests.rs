use super::*;
use crate::config::from_text;

const ALL: ModelVersions<'static> = ModelVersions { present: &[1, 2, 5], chosen: &[1, 2] };

fn model(more: &str) -> ModelConfig {
    from_text(&format!("name: 'm' backend: 'identity' {more}")).unwrap()
}

fn parse_of(text: &str, more: &str) -> Result<AbTestPlan, String> {
    let mut config = model(more);
    let parameter = ModelParameter { string_value: text.to_owned() };
    config.parameters.insert(PARAMETER.to_owned(), parameter);
    let plan = AbTestPlan::of_model(&config, ALL).map_err(|error| error.message)?;
    Ok(plan.expect("the parameter is there"))
}

fn parse(text: &str) -> Result<AbTestPlan, String> {
    parse_of(text, "")
}

#[test]
fn every_member_is_read() {
    assert_eq!(AbTestPlan::of_model(&model(""), ALL).unwrap(), None);
    let plan = parse(
        r#"{"a": {"version": 1}, "b": {"version": 2, "parameters": {"x": 3, "y": "z", "w": true},
            "metal_config": {"precision": "fp16"}},
            "share": 0.1, "sticky": "request_id",
            "stop": {"confidence": 0.99, "min_requests": 20, "max_requests": 4000, "max_error_rate": 0.02,
                     "max_latency_ms": 12.5}}"#,
    )
    .unwrap();
    let [a, b] = &plan.variants;
    assert!(a.is_plain() && a.version == 1 && b.version == 2 && !b.is_plain());
    let texts: Vec<(&str, &str)> =
        b.parameters.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(texts, [("w", "true"), ("x", "3"), ("y", "z")]);
    assert_eq!((plan.share, plan.sticky), (0.1, StickyKey::RequestId));
    let expected = StopRules {
        confidence: 0.99,
        min_requests: 20,
        max_requests: 4000,
        max_error_rate: Some(0.02),
        max_latency_ms: Some(12.5),
    };
    assert_eq!(plan.stop, expected);
}

#[test]
fn what_is_left_out_has_its_usual_value() {
    let plan = parse(r#"{"b": {"version": 1}}"#).unwrap();
    assert_eq!(plan.variants.each_ref().map(|one| one.version), [2, 1]);
    assert_eq!((plan.share, plan.sticky, plan.stop), (0.5, StickyKey::None, StopRules::default()));
    let sequences = parse_of(r#"{"b": {"version": 1}}"#, "sequence_batching { }").unwrap();
    assert_eq!(sequences.sticky, StickyKey::Correlation);
    for share in ["0", "1"] {
        assert!(parse(&format!(r#"{{"b": {{"version": 1}}, "share": {share}}}"#)).is_ok());
    }
}

#[test]
fn mistakes_are_named_with_what_was_found_and_expected() {
    let b = |more: &str| format!(r#"{{"b": {{"version": 1}}, {more}}}"#);
    for (text, said) in [
        ("[]".to_owned(), "[] found, expected an object of a, b, share, sticky, stop"),
        ("{".to_owned(), "no JSON"),
        ("{}".to_owned(), "'b' is missing, expected a version or settings to try"),
        (b(r#""shares": 1"#), "'shares' found, expected one of a, b, share, sticky, stop"),
        (b(r#""share": 1.5"#), "share: 1.5 found, expected a number from 0 to 1"),
        (b(r#""share": -0.1"#), "share: -0.1 found, expected a number from 0 to 1"),
        (b(r#""share": "0.5""#), "share: \"0.5\" found, expected a number from 0 to 1"),
        (b(r#""share": null"#), "share: null found"),
        (
            b(r#""sticky": "user""#),
            "sticky: \"user\" found, expected none, request_id or correlation",
        ),
        (b(r#""sticky": true"#), "sticky: true found"),
        (b(r#""a": 2"#), "a: 2 found, expected an object of version, parameters, metal_config"),
        (b(r#""a": {"verson": 2}"#), "a: 'verson' found, expected one of version"),
        (b(r#""a": {"version": "2"}"#), "a: version: \"2\" found, expected a whole number from 1"),
        (b(r#""a": {"version": 0}"#), "a: version: 0 found"),
        (b(r#""a": {"version": 1.5}"#), "a: version: 1.5 found"),
        (b(r#""a": {"version": 7}"#), "a: version 7 does not exist, expected one of 1, 2, 5"),
        (
            b(r#""a": {"version": 5}"#),
            "a: version 5 is not loaded by version_policy, which chooses 1, 2; write version_policy { specific { \
             versions: [5, 1] } }",
        ),
        (b(r#""a": {"version": 1}"#), "a and b are both version 1 with the same settings"),
        (b(r#""a": {"parameters": []}"#), "a: parameters: [] found, expected an object of texts"),
        (b(r#""a": {"parameters": {"x": {}}}"#), "a: parameters: {\"x\":{}} found"),
        (
            b(r#""a": {"parameters": {"ab_test": "{}"}}"#),
            "a: parameters: 'ab_test' found, expected other parameters",
        ),
        (
            b(r#""a": {"metal_config": {"precision": "fp8"}}"#),
            "a: parameter 'metal_config': precision: \"fp8\" found, expected fp32 or fp16",
        ),
        (b(r#""stop": 5"#), "stop: 5 found, expected an object of confidence"),
        (b(r#""stop": {"least": 5}"#), "stop: 'least' found, expected one of confidence"),
        (
            b(r#""stop": {"confidence": 1}"#),
            "stop: confidence: 1 found, expected a number from 0.5 to 0.9999",
        ),
        (
            b(r#""stop": {"min_requests": 5}"#),
            "stop: min_requests: 5 found, expected a whole number from 10",
        ),
        (b(r#""stop": {"min_requests": 1e3}"#), "stop: min_requests: 1000.0 found"),
        (
            b(r#""stop": {"min_requests": 50, "max_requests": 99}"#),
            "stop: max_requests: 99 found, expected a whole number from 100",
        ),
        (
            b(r#""stop": {"max_error_rate": 2}"#),
            "stop: max_error_rate: 2 found, expected a number from 0 to 1",
        ),
        (
            b(r#""stop": {"max_latency_ms": 0}"#),
            "stop: max_latency_ms: 0 found, expected milliseconds above 0",
        ),
        (b(r#""stop": {"max_latency_ms": "9"}"#), "stop: max_latency_ms: \"9\" found"),
    ] {
        let error = parse(&text).unwrap_err();
        assert!(error.starts_with("model 'm': parameter 'ab_test': "), "{error}");
        assert!(error.contains(said), "{text}\n{error}\n{said}");
    }
}

#[test]
fn kinds_of_models_have_their_own_rules() {
    let sequences = parse_of(r#"{"b": {"version": 1}, "sticky": "none"}"#, "sequence_batching { }");
    assert!(sequences.unwrap_err().contains("expected correlation: the requests of a sequence"));
    let ensemble = "ensemble_scheduling { }";
    assert!(parse_of(r#"{"b": {"version": 1}}"#, ensemble).is_ok());
    let error = parse_of(r#"{"b": {"parameters": {"x": "y"}}}"#, ensemble).unwrap_err();
    assert!(error.contains("b: settings found, expected a version: an ensemble"), "{error}");
    let metal = "optimization { execution_accelerators { gpu_execution_accelerator { name: 'metal' \
                 parameters { key: 'precision' value: 'fp32' } } } }";
    let error = parse_of(r#"{"b": {"metal_config": {"precision": "fp16"}}}"#, metal).unwrap_err();
    assert!(
        error.contains("b: metal_config: 'precision' found, but the execution accelerator"),
        "{error}"
    );
    assert!(parse_of(r#"{"b": {"metal_config": {"batch_size": 2}}}"#, metal).is_ok());
}

#[test]
fn settings_of_a_variant_take_the_place_of_the_models() {
    let plan = parse_of(
        r#"{"b": {"parameters": {"x": "new"}, "metal_config": {"batch_size": 4}}}"#,
        r#"parameters { key: 'x' value { string_value: 'old' } }
           parameters { key: 'z' value { string_value: 'kept' } }"#,
    )
    .unwrap();
    let mut own = model("");
    let text = |text: &str| ModelParameter { string_value: text.to_owned() };
    own.parameters.insert("x".to_owned(), text("old"));
    own.parameters.insert("z".to_owned(), text("kept"));
    own.parameters.insert("ab_test".to_owned(), text("{}"));
    own.parameters.insert(
        "metal_config".to_owned(),
        text(r#"{"metal_config": {"batch_size": 2, "kernel_fusion": false}}"#),
    );
    let changed = plan.variants[1].config(&own);
    let of = |name: &str| changed.parameters.get(name).map(|one| one.string_value.as_str());
    assert_eq!((of("x"), of("z"), of("ab_test")), (Some("new"), Some("kept"), None));
    assert_eq!(of("metal_config"), Some(r#"{"batch_size":4,"kernel_fusion":false}"#));
    let preset = metal::merged(Some(r#"{"batch_size": 2}"#), r#"{"preset": "low_latency"}"#);
    assert_eq!(preset, r#"{"preset":"low_latency"}"#);
}
