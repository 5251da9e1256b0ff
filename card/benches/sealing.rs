//! Bytes into sealed memory: the copy that every first load pays.
//! `cargo bench -p reconf-card-access`.

#![expect(clippy::unwrap_used, reason = "a bench may fail")]

use std::hint::black_box;
use std::io::{Seek, Write};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use reconf_card_access::SealedMemfd;

const BYTES: usize = 4 << 20;
const LIMIT: u64 = 4 << 20;

fn sealing(criterion: &mut Criterion) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![0x5a; BYTES]).unwrap();
    let mut group = criterion.benchmark_group("seal 4 MiB");
    group.throughput(Throughput::Bytes(LIMIT));
    group.bench_function("copied by the kernel", |bench| {
        bench.iter(|| {
            file.rewind().unwrap();
            SealedMemfd::from_file(&file, LIMIT).unwrap()
        });
    });
    group.bench_function("read and written", |bench| {
        bench.iter(|| {
            file.rewind().unwrap();
            SealedMemfd::from_reader(&file, LIMIT).unwrap()
        });
    });
    group.bench_function("mapped and looked at, a byte a page", |bench| {
        file.rewind().unwrap();
        let sealed = SealedMemfd::from_file(&file, LIMIT).unwrap();
        bench.iter(|| {
            let map = sealed.map().unwrap();
            map.iter()
                .step_by(4096)
                .map(|byte| u64::from(black_box(*byte)))
                .sum::<u64>()
        });
    });
    group.finish();
}

criterion_group!(benches, sealing);
criterion_main!(benches);
