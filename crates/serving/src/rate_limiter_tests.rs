use proptest::prelude::*;

use super::*;
use crate::config::inference::model_rate_limiter::Resource as Wish;

fn wishes(priority: u32, resources: &[(&str, bool, u32)]) -> ModelRateLimiter {
    let wish =
        |&(name, global, count): &(&str, bool, u32)| Wish { name: name.to_owned(), global, count };
    ModelRateLimiter { priority, resources: resources.iter().map(wish).collect() }
}

fn limit(name: &str, count: u64, device: Option<u32>) -> ResourceLimit {
    ResourceLimit { name: name.to_owned(), count, device }
}

#[test]
fn one_resource_is_used_by_one_at_a_time() {
    let mut limiter = RateLimiter::default();
    let needs = wishes(1, &[("R", true, 1)]);
    let a = limiter.register(Some(&needs), ResourceDevice::Host).unwrap();
    let b = limiter.register(Some(&needs), ResourceDevice::Gpu(0)).unwrap();
    assert_eq!(limiter.request(a), [a]);
    assert_eq!(limiter.request(b), []);
    assert_eq!(limiter.request(a), []);
    assert_eq!(limiter.release(a), [b]);
    assert_eq!(limiter.unregister(b), []);
    assert_eq!(limiter.request(a), [a]);
}

#[test]
fn resources_of_devices_do_not_meet() {
    let mut limiter = RateLimiter::default();
    let needs = wishes(1, &[("R", false, 2)]);
    let a = limiter.register(Some(&needs), ResourceDevice::Gpu(0)).unwrap();
    let b = limiter.register(Some(&needs), ResourceDevice::Gpu(1)).unwrap();
    assert_eq!((limiter.request(a), limiter.request(b)), (vec![a], vec![b]));
}

#[test]
fn priority_two_has_half_the_turns() {
    let mut limiter = RateLimiter::default();
    let ids = [1, 2].map(|priority| {
        limiter.register(Some(&wishes(priority, &[("R", true, 1)])), ResourceDevice::Host).unwrap()
    });
    let mut turns = OrderedMap::new();
    let mut running = limiter.request(ids[0]);
    limiter.request(ids[1]);
    for _ in 0..300 {
        let [id] = running[..] else { panic!("{running:?}") };
        *turns.entry(id).or_insert(0_u64) += 1;
        running = limiter.renew(id);
    }
    assert!(turns[&ids[0]].abs_diff(200) <= 2, "{turns:?}");
}

#[test]
fn impossible_needs_are_refused() {
    let mut limiter = RateLimiter::new(vec![limit("R", 3, None), limit("R", 5, Some(1))]);
    let message = |result: Result<_, ServingError>| result.unwrap_err().message;
    assert_eq!(
        message(limiter.register(Some(&wishes(1, &[("R", false, 4)])), ResourceDevice::Host)),
        "Resource count for \"R\" is limited to 3 which will prevent scheduling of one or more model instances, the \
         minimum required count is 4"
    );
    limiter.register(Some(&wishes(1, &[("R", false, 4)])), ResourceDevice::Gpu(1)).unwrap();
    assert_eq!(
        message(limiter.register(Some(&wishes(1, &[("R", true, 1)])), ResourceDevice::Host)),
        "Resource \"R\" is present as both global and device-specific resource in the model configuration."
    );
}

#[test]
fn what_the_operator_does_not_give_is_not_there() {
    let needs = wishes(1, &[("R", false, 4), ("S", true, 2)]);
    let short = |name: &str, limit: u64, count: u64| {
        format!(
            "Resource count for \"{name}\" is limited to {limit} which will prevent scheduling of one or more model \
             instances, the minimum required count is {count}"
        )
    };
    for (limits, text) in [
        // Given for another device alone.
        (vec![limit("R", 10, Some(10)), limit("S", 2, None)], short("R", 0, 4)),
        (vec![limit("R", 3, None), limit("R", 10, Some(1)), limit("S", 2, None)], short("R", 3, 4)),
        (vec![limit("R", 4, None)], short("S", 0, 2)),
        (vec![limit("S", 2, None)], short("R", 0, 4)),
    ] {
        let mut limiter = RateLimiter::new(limits);
        let error = limiter.register(Some(&needs), ResourceDevice::Host).unwrap_err();
        assert_eq!(error.message, text);
    }
    for limits in [
        vec![],
        vec![limit("R", 4, None), limit("S", 2, None)],
        vec![limit("R", 1, None), limit("R", 4, Some(0)), limit("S", 2, None)],
        vec![limit("R", 4, None), limit("S", 1, None), limit("S", 2, Some(7))],
    ] {
        let mut limiter = RateLimiter::new(limits);
        limiter.register(Some(&needs), ResourceDevice::Host).unwrap();
    }
}

#[test]
fn the_map_of_resources_follows_the_instances() {
    let mut limiter = RateLimiter::default();
    assert_eq!(limiter.resource_map(), "");
    let small = wishes(1, &[("R1", false, 4), ("G", true, 1)]);
    limiter.register(Some(&small), ResourceDevice::Host).unwrap();
    let large = wishes(1, &[("R1", false, 10)]);
    let id = limiter.register(Some(&large), ResourceDevice::Host).unwrap();
    let map = |count| {
        format!(
            "Max Resource Map===>\n\tDevice: GLOBAL\n\t\tResource: G\t Count: 1\n\tDevice: 0\n\t\tResource: R1\t \
             Count: {count}\n"
        )
    };
    assert_eq!(limiter.resource_map(), map(10));
    limiter.unregister(id);
    assert_eq!(limiter.resource_map(), map(4));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_resource_is_overdrawn_and_everybody_gets_a_turn(
        needs in prop::collection::vec((1_u32..4, 0_u32..4, 0_u32..3), 1..6),
        limit_r in 3_u64..6,
        script in prop::collection::vec((0_usize..6, any::<bool>()), 0..60),
    ) {
        let most_s = needs.iter().map(|need| need.2).max().unwrap_or(0);
        let limits = vec![limit("R", limit_r, None), limit("S", u64::from(most_s), None)];
        let mut limiter = RateLimiter::new(limits);
        let ids: Vec<InstanceId> = needs
            .iter()
            .map(|&(priority, r, s)| {
                let needs = wishes(priority, &[("R", true, r), ("S", false, s)]);
                limiter.register(Some(&needs), ResourceDevice::Host).unwrap()
            })
            .collect();
        let mut running = OrderedSet::new();
        let mut waiting = OrderedSet::new();
        for (at, ask) in script {
            let id = ids[at % ids.len()];
            let granted = if ask {
                if !running.contains(&id) {
                    waiting.insert(id);
                }
                limiter.request(id)
            } else if running.remove(&id) {
                limiter.release(id)
            } else {
                waiting.remove(&id);
                limiter.cancel(id)
            };
            for id in granted {
                prop_assert!(waiting.remove(&id), "granted without asking");
                running.insert(id);
            }
            let used = |pick: fn(&(u32, u32, u32)) -> u32| -> u32 {
                ids.iter().zip(&needs).filter(|(id, _)| running.contains(id)).map(|(_, need)| pick(need)).sum()
            };
            prop_assert!(u64::from(used(|need| need.1)) <= limit_r);
            prop_assert!(used(|need| need.2) <= most_s);
            prop_assert!(!running.is_empty() || waiting.is_empty(), "everybody waits");
        }
        while let Some(id) = running.pop_first() {
            for next in limiter.release(id) {
                prop_assert!(waiting.remove(&next));
                running.insert(next);
            }
        }
        prop_assert!(waiting.is_empty(), "somebody never ran");
    }
}
