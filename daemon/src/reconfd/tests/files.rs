//! The operator's files while the daemon runs: what counts, and from when on.

use protocol::reply::Reply;
use protocol::status::Status;

use super::super::operator::Operator;
use super::{attach, host};

/// P14: a list that takes an image away counts at once, although a file is half edited.
#[tokio::test]
async fn p14_a_new_list_counts_although_a_file_is_half_edited() {
    let (site, host, _card) = host().await;
    let vm = attach(&host, &[0]);
    assert!(matches!(vm.load(1, "acme/aes").await, Reply::Load(_)));
    vm.ended(1).await;
    site.write("etc/grants.toml", b"[[tenant]]\nname = ");
    site.write(
        "list.toml",
        b"[[image]]\nname = \"acme/other:1.0\"\nvariants = [{ path = \"acme/aes.gbs\" }]\n",
    );
    site.publish();
    let Reply::Error(error) = vm.load(2, "acme/aes").await else {
        panic!("the list of before was used");
    };
    assert_eq!(error.status, Status::Denied);
    assert!(matches!(vm.load(3, "acme/other").await, Reply::Load(_)));
}

/// What an operator is writing does not count before a reload.
#[tokio::test]
async fn grants_count_from_a_reload_on_and_not_from_the_next_list_on() {
    let (site, host, _card) = host().await;
    let vm = attach(&host, &[0]);
    site.write("etc/grants.toml", b"[[tenant]]\nname = \"blue\"\n");
    site.publish();
    assert!(matches!(vm.load(1, "acme/aes").await, Reply::Load(_)));
    vm.ended(1).await;
    let operator = Operator::new(std::sync::Arc::clone(&host));
    operator.reload(None).unwrap();
    assert!(matches!(vm.load(2, "acme/aes").await, Reply::Error(_)));
    let reloads = host.audit.last(100).unwrap();
    assert!(reloads.iter().any(|line| line["event"] == "reload"));
}

/// Regions that change need a restart; until then nothing changes.
#[tokio::test]
async fn regions_that_change_are_told_and_need_a_restart() {
    let (site, host, _card) = host().await;
    let shell = std::fs::read_to_string(site.path("etc/a.toml")).unwrap();
    for (from, to) in [
        ("/vf0", "/renamed"),
        ("\"r0\"", "\"x0\""),
        ("port = 0", "port = 7"),
    ] {
        site.write("etc/a.toml", shell.replace(from, to).as_bytes());
        let refused = host.judge.reload().unwrap_err();
        assert!(refused.contains("restart"), "{refused}");
    }
    site.write("etc/a.toml", shell.as_bytes());
    host.judge.reload().unwrap();
}
