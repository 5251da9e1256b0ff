//! What guests can cause in the audit, and what they see.

use protocol::message::{Describe, ImageEntry, ListReply};
use protocol::reply::Reply;
use protocol::request::Request;
use protocol::status::{Detail, Status};

use super::super::session::Guest as _;
use super::{attach, host};

/// G11, R5, G8: thousands of denials are a few lines, exact counts, and one answer.
#[tokio::test]
async fn g11_r5_a_flood_of_denials_is_a_few_lines() {
    let (_site, host, _card) = host().await;
    let vm = attach(&host, &[0]);
    let mut answers = std::collections::BTreeSet::new();
    for number in 0..2_000u32 {
        let image = format!("acme/unknown-{number}");
        let answer = vm.load(u8::try_from(number % 250).unwrap(), &image).await;
        answers.insert(answer.to_frame(1, 1).unwrap());
    }
    assert_eq!(answers.len(), 1, "every denial is the same, byte for byte");
    host.end_generation(vm.registration.vm, None, "test", None);
    let lines = host.audit.last(10_000).unwrap();
    let denied = lines
        .iter()
        .filter(|line| line["event"] == "load" && line["outcome"] == "unknown-image")
        .count();
    let counted = lines.iter().find(|line| line["event"] == "refused");
    let counted = counted.expect("a line that counts");
    assert!(denied <= 20, "{denied}");
    let reason = counted["reason"].as_str().unwrap();
    assert!(reason.starts_with("1980 more"), "{reason}");
}

/// A description that fits no frame becomes the list of slots; each by itself fits.
#[tokio::test]
async fn a_description_that_is_too_long_names_the_slots() {
    let (_site, host, _card) = host().await;
    let vm = attach(&host, &[0, 1]);
    let long = "x".repeat(3000);
    if let Some(live) = host.state().live.get_mut(&vm.registration.vm) {
        for slot in &mut live.slots {
            slot.guest_pci = Some(long.clone());
        }
    }
    let describe = |slot| Request::Describe(Describe { slot });
    let Reply::Error(error) = vm.desk.answer(describe(None)).await else {
        panic!("it does not fit");
    };
    assert_eq!(
        (error.status, error.detail),
        (Status::TooLarge, Detail::SlotNeeded)
    );
    assert_eq!(error.slots.len(), 2);
    for slot in error.slots {
        assert!(matches!(
            vm.desk.answer(describe(Some(slot))).await,
            Reply::Describe(_)
        ));
    }
}

/// A page of the list with the longest names fits a frame.
#[test]
fn g1_a_full_page_of_a_list_fits_a_frame() {
    for name in [3usize, 17, 64, 194] {
        let entry = ImageEntry {
            slot: protocol::message::Slot(u16::MAX),
            name: "n".repeat(name),
            digest: protocol::message::Digest([255; 32]),
            function_id: protocol::message::FunctionId([255; 16]),
            size: u64::MAX,
        };
        let (entries, next) = super::super::desk::page(vec![entry; 500], 0);
        assert!(next.is_some() && entries.len() > 10, "{}", entries.len());
        let reply = Reply::List(ListReply { entries, next });
        reply.to_frame(u64::MAX, u32::MAX).unwrap();
    }
}
