//! The packets between `reconfd` and `reconf-card`. `cargo bench -p reconf-daemon --bench packets`.

#![expect(clippy::unwrap_used, reason = "a bench may fail")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use reconf_daemon::ipc::{JobId, OwnerTag, Packet, RegionIndex, TargetPath, ToCard};

fn packets(criterion: &mut Criterion) {
    let offer = ToCard::Offer {
        job: JobId([1; 16]),
        region: RegionIndex(1),
        digest: [2; 32],
        tag: OwnerTag([3; 32]),
        target: TargetPath::new("publisher/function-1.0/interface.gbs").unwrap(),
    };
    criterion.bench_function("an offer into bytes", |bench| {
        bench.iter(|| Packet::from(black_box(&offer)).to_bytes());
    });
    let bytes = Packet::from(&offer).to_bytes();
    criterion.bench_function("an offer out of bytes", |bench| {
        bench.iter(|| {
            let packet = Packet::from_bytes(black_box(&bytes)).unwrap();
            ToCard::try_from(&packet).unwrap()
        });
    });
}

criterion_group!(benches, packets);
criterion_main!(benches);
