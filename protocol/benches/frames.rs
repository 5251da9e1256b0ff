//! Frames: into bytes, and back out of a stream. `cargo bench -p reconf-protocol`.

#![expect(clippy::unwrap_used, reason = "a bench may fail")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use reconf_protocol::message::{Digest, FunctionId, ImageEntry, ListReply, Ping, Slot};
use reconf_protocol::{Reply, Request, Scanned, Scanner};

/// A page of a list, about as long as a control frame may be.
fn page() -> Reply {
    let entry = |number: u8| ImageEntry {
        slot: Slot(0),
        name: format!("publisher/function-{number}:1.0"),
        digest: Digest([number; 32]),
        function_id: FunctionId([number; 16]),
        size: 4 << 20,
    };
    Reply::List(ListReply {
        entries: (0..40).map(entry).collect(),
        next: Some(40),
    })
}

fn frames(criterion: &mut Criterion) {
    let ping = Request::Ping(Ping { payload: 7 });
    let small = ping.to_frame(1, 1).unwrap();
    let large = page().to_frame(1, 1).unwrap();
    criterion.bench_function("encode a ping", |bench| {
        bench.iter(|| black_box(&ping).to_frame(1, 1).unwrap());
    });
    criterion.bench_function("encode a page of a list", |bench| {
        let page = page();
        bench.iter(|| black_box(&page).to_frame(1, 1).unwrap());
    });
    for (what, frame) in [("pings", small), ("pages of a list", large)] {
        let stream = frame.repeat(100);
        let mut group = criterion.benchmark_group("scan");
        group.throughput(Throughput::Bytes(u64::try_from(stream.len()).unwrap()));
        group.bench_function(format!("100 {what}"), |bench| {
            bench.iter(|| {
                let mut input = black_box(stream.as_slice());
                let mut scanner = Scanner::host();
                let mut frames = 0;
                while let Some(scanned) = scanner.next(&mut input) {
                    frames = u32::saturating_add(
                        frames,
                        u32::from(matches!(scanned, Scanned::Frame(_))),
                    );
                }
                assert_eq!(frames, 100);
            });
        });
        group.finish();
    }
}

criterion_group!(benches, frames);
criterion_main!(benches);
