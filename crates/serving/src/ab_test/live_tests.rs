use super::super::plan::{StopRules, VariantPlan};
use super::*;
use crate::request::CorrelationId;

fn plan(share: f64, sticky: StickyKey) -> AbTestPlan {
    let version =
        |version| VariantPlan { version, parameters: Default::default(), metal_config: None };
    let stop = StopRules { min_requests: 10, max_requests: 20, ..StopRules::default() };
    AbTestPlan { variants: [version(1), version(2)], share, sticky, stop }
}

fn of_id(id: &str) -> InferenceRequest {
    InferenceRequest { id: id.to_owned(), ..InferenceRequest::default() }
}

fn part(id: u64, start: bool, end: bool) -> InferenceRequest {
    InferenceRequest {
        correlation: CorrelationId::Uint(id),
        sequence_start: start,
        sequence_end: end,
        ..InferenceRequest::default()
    }
}

#[test]
fn requests_are_shared_as_asked() {
    for (share, low, high) in [(0.0, 0, 0), (0.1, 70, 130), (0.5, 440, 560), (1.0, 1000, 1000)] {
        let test = AbTest::new("m", plan(share, StickyKey::None), false);
        let second = (0..1000).filter(|_| test.assign_any() == AbVariant::B).count();
        assert!((low..=high).contains(&second), "{share}: {second}");
    }
}

#[test]
fn what_is_sticky_stays() {
    let test = AbTest::new("m", plan(0.5, StickyKey::RequestId), false);
    let first: Vec<AbVariant> =
        (0..100).map(|id| test.assign(&of_id(&format!("user-{id}")))).collect();
    let again: Vec<AbVariant> =
        (0..100).map(|id| test.assign(&of_id(&format!("user-{id}")))).collect();
    assert_eq!(first, again);
    assert!(first.contains(&AbVariant::A) && first.contains(&AbVariant::B));
    // Without an id a request is assigned on its own.
    let free: Vec<AbVariant> = (0..100).map(|_| test.assign(&of_id(""))).collect();
    assert!(free.contains(&AbVariant::A) && free.contains(&AbVariant::B));
    let test = AbTest::new("m", plan(0.5, StickyKey::Correlation), false);
    let all = |test: &AbTest| -> Vec<AbVariant> {
        (1..100).map(|id| test.assign(&part(id, false, false))).collect()
    };
    assert_eq!(all(&test), all(&test));
}

#[test]
fn a_sequence_ends_where_it_began_also_after_the_test() {
    let test = Arc::new(AbTest::new("m", plan(0.5, StickyKey::Correlation), true));
    let began = (1..200).find(|&id| test.assign(&part(id, true, false)) == AbVariant::B).unwrap();
    for _ in 0..20 {
        test.lock().finish(AbVariant::A, Some(1e6));
    }
    assert_eq!(test.report().statistics.outcome.unwrap().winner, AbVariant::A);
    assert_eq!(test.assign(&part(began, false, false)), AbVariant::B);
    assert_eq!(test.assign(&part(began, false, true)), AbVariant::B);
    assert_eq!(test.assign(&part(began, true, false)), AbVariant::A);
    let shares = test.report().variants.map(|one| one.share);
    assert_eq!(shares, [1.0, 0.0]);
}

#[test]
fn mistakes_of_clients_say_nothing_about_a_variant() {
    let test = Arc::new(AbTest::new("m", plan(0.5, StickyKey::None), false));
    let answer = |result: Result<(), ServingError>, is_final| SinkAnswer {
        result: result.map(|()| None),
        is_final,
    };
    let mut sink = test.watch(AbVariant::B, Box::new(|_| {}));
    // An error of a decoupled model need not be its end.
    sink(answer(Err(ServingError::internal("broken")), false));
    assert_eq!(test.report().statistics.variants[1].requests, 0);
    sink(answer(Ok(()), true));
    for error in [ServingError::invalid_arg("wrong"), ServingError::cancelled("gone")] {
        let mut sink = test.watch(AbVariant::B, Box::new(|_| {}));
        sink(answer(Err(error.clone()), true));
        test.refused(AbVariant::B, &error);
    }
    test.refused(AbVariant::A, &ServingError::unavailable("the queue is full"));
    let found = test.report().statistics.variants;
    assert_eq!(found.each_ref().map(|one| (one.requests, one.failures)), [(1, 1), (1, 1)]);
}
