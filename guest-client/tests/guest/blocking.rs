//! The client for programs without a runtime, over a real socket.

use std::time::Duration;

use reconf_client::blocking::Client;
use reconf_client::{Config, EventKind, ImageRef, Load, Places, Slot, Status, job_key};

use crate::model::{Ending, Model, honest};

#[test]
fn a_program_without_a_runtime_can_do_everything() {
    let host = Model::start(honest(Ending::Loaded));
    let client = Client::connect_to(Places::named(&host.socket), Config::default()).unwrap();
    assert_eq!(client.slots().unwrap(), [Slot(0), Slot(1)]);
    assert_eq!(client.list(None).unwrap().len(), 3);
    assert_eq!(client.describe(Some(Slot(1))).unwrap().len(), 1);
    client.ping().unwrap();

    let key = job_key().unwrap();
    let image = ImageRef::Name("acme/aes".into());
    client
        .load(Load {
            key,
            slot: Some(Slot(0)),
            image,
            if_not_loaded: false,
            force: false,
        })
        .unwrap();
    let mut news = 0;
    let job = client.wait(key, |_| news += 1).unwrap();
    assert_eq!(job.result.unwrap().status, Status::Ok);
    assert_eq!(news, 3);
    assert_eq!(client.job(key).unwrap(), job);
    assert!(client.cancel(key).is_err());
    assert_eq!(client.reset(Some(Slot(1))).unwrap(), Slot(1));

    let mut watch = client.watch(None).unwrap();
    let first = watch.next(Duration::from_secs(5)).unwrap().unwrap();
    assert!(matches!(first.what, EventKind::Progress(_)));
    for _ in 0..5 {
        watch.next(Duration::from_secs(5)).unwrap().unwrap();
    }
    assert_eq!(watch.next(Duration::from_millis(20)).unwrap(), None);
}
