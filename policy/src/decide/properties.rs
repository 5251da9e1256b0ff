//! What must hold for every policy and every question.

use std::time::Duration;

use proptest::prelude::*;

use super::tests::{GRANTS, ask, inputs, region, vm};
use super::*;
use crate::ids::{ImagePattern, ImageRef, RolePattern, TenantName};
use crate::testing::{NOW, image_list};
use crate::time::UnixTime;
use crate::trust::list::RevokedEntry;

/// A policy and a question, both small, so that matches and misses are both common.
fn world() -> impl Strategy<Value = (Policy, Ask, UnixTime)> {
    let pattern = prop::sample::select(vec![
        "acme/*",
        "globex/*",
        "acme/aes",
        "acme/aes:1.9",
        "globex/fft:1",
        "other/x",
    ]);
    let rule = (
        prop::sample::select(vec!["blue", "green"]),
        pattern,
        any::<Option<bool>>(),
    );
    let revoked = prop::sample::select(vec!["", "acme/aes:1.10", "globex/*"]);
    let image = prop::sample::select(vec![
        "acme/aes",
        "acme/aes:1.9",
        "acme/aes:1.10",
        "globex/fft",
        "globex/fft:2",
        "other/x:1",
    ]);
    let who = prop::sample::select(vec!["blue", "green", "red", ""]);
    (
        prop::collection::vec(rule, 0..4),
        revoked,
        image,
        who,
        (1u128..3, 0u16..3, 0u64..2 * 86_400, 0u8..20, any::<bool>()),
    )
        .prop_map(
            |(rules, revoked, image, who, (number, port, later, trouble, tested))| {
                let mut grants = GRANTS.split_once("[[grant]]").unwrap().0.to_owned();
                for (tenant, pattern, typed) in rules {
                    grants +=
                        &format!("[[grant]]\ntenant = \"{tenant}\"\nimages = [\"{pattern}\"]\n");
                    if let Some(small) = typed {
                        let name = if small { "small" } else { "large" };
                        grants += &format!("region_types = [\"{name}\"]\n");
                    }
                }
                let mut images = image_list(1);
                if let Ok(image) = ImagePattern::parse(revoked) {
                    images.revoked.push(RevokedEntry {
                        image: Some(image),
                        ..RevokedEntry::default()
                    });
                }
                let mut inputs = inputs(&grants, &images);
                if tested {
                    inputs.host.require.roles = vec![RolePattern::parse("publisher:acme").unwrap()];
                }
                match trouble {
                    0 => inputs.loads = Loads::Stopped,
                    1 => {
                        inputs.catalogue =
                            Err(CatalogueTrouble::NotEnrolled { why: String::new() });
                    }
                    _ => {}
                }
                let tenant = TenantName::parse(who).ok();
                let ask = Ask {
                    vm: vm(number),
                    tenant,
                    region: region(port),
                    ..ask("blue", image)
                };
                (
                    Policy::new(inputs).unwrap(),
                    ask,
                    NOW.after(Duration::from_secs(later)),
                )
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn explain_says_what_decide_does((policy, ask, now) in world()) {
        let decided = decide(&policy, &ask, now);
        let explained = explain(&policy, &ask, now);
        prop_assert_eq!(explained.result(), decided.as_ref());
        let failed = explained.steps.iter().any(|step| step.outcome == Outcome::Fail);
        prop_assert!(failed || decided.is_ok(), "a denial has a check that failed");
        prop_assert!(serde_json::to_string(&explained).is_ok());
        if let Err(denial) = decided {
            let json = serde_json::to_value(&denial).unwrap();
            prop_assert_eq!(&json["code"], denial.code());
            prop_assert!(denial.remedy().ends_with('.'));
        }
    }

    /// What is allowed is allowed by a rule of the file, word for word, for
    /// this tenant, this image and this region, and by nothing else.
    #[test]
    fn nothing_is_allowed_without_a_rule((policy, ask, now) in world()) {
        let Ok(grant) = decide(&policy, &ask, now) else { return Ok(()) };
        let owner = ask.tenant.as_ref().or(policy.grants().tenant_of(ask.vm)).unwrap();
        let rule = policy.grants().rules().iter().find(|rule| rule.line == grant.rule.line).unwrap();
        prop_assert_eq!(&rule.tenant, owner);
        prop_assert!(rule.images.contains(&grant.rule.images));
        let (name, pattern) = (grant.image.to_string(), grant.rule.images.to_string());
        let covers = name == pattern
            || name.starts_with(&format!("{pattern}:"))
            || pattern.strip_suffix('*').is_some_and(|publisher| name.starts_with(publisher));
        prop_assert!(covers, "{} by {}", name, pattern);
        let facts = policy.facts(&ask.region).unwrap();
        prop_assert_eq!(grant.variant.interface_id, facts.interface_id);
        prop_assert!(rule.region_types.as_ref().is_none_or(|t| t.contains(&facts.region_type)));
        prop_assert_eq!(policy.loads(), Loads::Decided);
        prop_assert!(now < UnixTime(NOW.0 + 86_400));
    }

    /// The list shows exactly what can be loaded by name, and the second
    /// verification agrees with every first one.
    #[test]
    fn the_list_and_the_second_verification_agree_with_decide((policy, ask, now) in world()) {
        let Ok(listed) = list(&policy, ask.vm, ask.tenant.as_ref(), &ask.region, now) else {
            prop_assert!(decide(&policy, &ask, now).is_err());
            return Ok(());
        };
        let catalogue = policy.catalogue().unwrap();
        let slots = std::slice::from_ref(&ask.region);
        for image in catalogue.images() {
            let one = Ask { image: ImageRef::Name(image.name.clone()), ..ask.clone() };
            let decided = decide(&policy, &one, now);
            let shown = listed.iter().any(|listed| listed.name == image.name);
            prop_assert_eq!(shown, decided.is_ok());
            let own = own_list(&policy, one.vm, one.tenant.as_ref(), slots, &one.image, now);
            prop_assert!(!shown || own == OwnList::Listed);
            if let Ok(Grant { variant, function_id, .. }) = decided {
                let facts = policy.facts(&ask.region).unwrap();
                let roles = &policy.host().require.roles;
                let second =
                    check_target(catalogue, &facts, &variant.path, variant.sha256, roles, now);
                prop_assert_eq!(second.map(|second| second.function_id), Ok(function_id));
            }
        }
    }
}
