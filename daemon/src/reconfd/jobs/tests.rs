//! Keys, bounds and what is forgotten.

use super::*;
use crate::reconfd::identity::BootId;

fn record(vm: Uuid, generation: &Generation, key: u8) -> JobRecord {
    JobRecord {
        key: hex::encode(&[key; 16]),
        id: hex::encode(&[key; 16]),
        vm,
        generation: generation.clone(),
        order: 0,
        kind: "load".into(),
        slot: 0,
        body: hex::encode(&[1; 32]),
        image: None,
        image_digest: None,
        bitstream: None,
        function: None,
        total: 0,
        asked: 0,
        result: None,
    }
}

fn finish(book: &mut JobBook, vm: Uuid, generation: &Generation, key: u8) {
    book.update(vm, generation, JobKey([key; 16]), |job| {
        job.result = Some(JobResult {
            status: Status::Ok,
            detail: Detail::None,
            function_id: None,
            unchanged: false,
        });
    });
}

#[test]
fn xrt_07_a_key_finds_its_job_and_another_body_is_an_error() {
    let (vm, generation) = (Uuid::new_v4(), Generation::new(&BootId::current().unwrap()));
    let mut book = JobBook::new(4, Vec::new());
    book.insert(record(vm, &generation, 1)).unwrap();
    let key = JobKey([1; 16]);
    assert!(matches!(
        book.known(vm, &generation, key, &Digest([1; 32])),
        Known::Same(_)
    ));
    assert!(matches!(
        book.known(vm, &generation, key, &Digest([2; 32])),
        Known::Reused
    ));
    assert!(matches!(
        book.known(vm, &generation, JobKey([9; 16]), &Digest([1; 32])),
        Known::New
    ));
}

#[test]
fn g17_cyb_05_another_vm_or_generation_finds_nothing() {
    let boot = BootId::current().unwrap();
    let (vm, generation) = (Uuid::new_v4(), Generation::new(&boot));
    let mut book = JobBook::new(4, Vec::new());
    book.insert(record(vm, &generation, 1)).unwrap();
    assert!(
        book.find(Uuid::new_v4(), &generation, JobKey([1; 16]))
            .is_none()
    );
    assert!(
        book.find(vm, &Generation::new(&boot), JobKey([1; 16]))
            .is_none()
    );
}

#[test]
fn r1_a_generation_that_is_over_is_forgotten_but_for_what_runs() {
    let (vm, generation) = (Uuid::new_v4(), Generation::new(&BootId::current().unwrap()));
    let mut book = JobBook::new(4, Vec::new());
    for key in 1..=3 {
        book.insert(record(vm, &generation, key)).unwrap();
    }
    finish(&mut book, vm, &generation, 1);
    finish(&mut book, vm, &generation, 2);
    assert_eq!(book.forget(vm, &generation).len(), 2);
    assert_eq!(book.all().len(), 1);
    finish(&mut book, vm, &generation, 3);
    assert_eq!(book.forget(vm, &generation).len(), 1);
    assert!(book.jobs.is_empty(), "not even the owner is kept");
}

#[test]
fn a_key_that_was_not_accepted_is_free_again() {
    let (vm, generation) = (Uuid::new_v4(), Generation::new(&BootId::current().unwrap()));
    let mut book = JobBook::new(1, Vec::new());
    let key = JobKey([1; 16]);
    book.insert(record(vm, &generation, 1)).unwrap();
    assert!(book.withdraw(vm, &generation, key).is_some());
    assert!(matches!(
        book.known(vm, &generation, key, &Digest([2; 32])),
        Known::New
    ));
    book.insert(record(vm, &generation, 1)).unwrap();
}

#[test]
fn the_oldest_that_ended_goes_and_open_jobs_are_never_dropped() {
    let (vm, generation) = (Uuid::new_v4(), Generation::new(&BootId::current().unwrap()));
    let mut book = JobBook::new(2, Vec::new());
    book.insert(record(vm, &generation, 1)).unwrap();
    book.insert(record(vm, &generation, 2)).unwrap();
    assert_eq!(book.insert(record(vm, &generation, 3)).unwrap_err(), NoRoom);
    finish(&mut book, vm, &generation, 2);
    let (_kept, gone) = book.insert(record(vm, &generation, 3)).unwrap();
    assert_eq!(gone.len(), 1);
    assert_eq!(gone[0].key, hex::encode(&[2; 16]));
    assert!(book.find(vm, &generation, JobKey([1; 16])).is_some());
}
