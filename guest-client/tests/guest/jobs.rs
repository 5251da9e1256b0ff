//! Jobs that outlive sessions: nothing is ever written twice blindly.

use std::time::Duration;

use protocol::message::{ErrorReply, JobInfo, JobResult};
use protocol::{Reply, Request};
use reconf_client::{
    Client, Config, Detail, Error, FunctionId, ImageRef, JobKey, JobKind, Load, Slot, Stage, Status,
};
use tokio::io::DuplexStream;
use tokio::time::Instant;

use crate::peer::{Got, Peer, connected};

const KEY: JobKey = JobKey([0xab; 16]);

fn load() -> Load {
    Load {
        key: KEY,
        slot: None,
        image: ImageRef::Name("acme/aes:1.0".into()),
        if_not_loaded: false,
        force: false,
    }
}

fn job(stage: Stage, done: u64) -> JobInfo {
    JobInfo {
        key: KEY,
        kind: JobKind::Load,
        slot: Slot(0),
        image: Some("acme/aes:1.0".into()),
        stage,
        done,
        total: 1000,
        result: (stage == Stage::Done).then_some(JobResult {
            status: Status::Ok,
            detail: Detail::None,
            function_id: Some(FunctionId([3; 16])),
            unchanged: false,
        }),
    }
}

async fn answer_job(host: &mut Peer<DuplexStream>, info: JobInfo) {
    let (sequence, request) = host.request().await;
    assert!(
        matches!(&request, Request::Job(query) if query.key == KEY),
        "{request:?}"
    );
    host.reply(sequence, Reply::Job(info)).await;
}

async fn load_and_wait(client: &Client) -> (JobInfo, Vec<Stage>) {
    let mut stages = Vec::new();
    let accepted = client.load(load()).await.unwrap();
    assert_eq!(accepted.key, KEY);
    let info = client
        .wait(KEY, |info| stages.push(info.stage))
        .await
        .unwrap();
    (info, stages)
}

#[tokio::test(start_paused = true)]
async fn a_load_is_followed_stage_by_stage() {
    let (client, mut host) = connected(Config::default()).await;
    let host = async {
        let (sequence, request) = host.request().await;
        assert_eq!(request, Request::Load(load()));
        host.reply(sequence, Reply::Load(job(Stage::Accepted, 0)))
            .await;
        answer_job(&mut host, job(Stage::Writing, 10)).await;
        answer_job(&mut host, job(Stage::Writing, 10)).await;
        answer_job(&mut host, job(Stage::Writing, 700)).await;
        answer_job(&mut host, job(Stage::Done, 1000)).await;
    };
    let ((info, stages), ()) = tokio::join!(load_and_wait(&client), host);
    assert_eq!(info, job(Stage::Done, 1000));
    // What was told already is not told again.
    assert_eq!(stages, [Stage::Writing, Stage::Writing, Stage::Done]);
}

/// The channel closes under the load's request, the host comes back: the very
/// same request with the same key, which attaches to the job that may run.
#[tokio::test(start_paused = true)]
async fn xrt_07_a_load_whose_reply_was_lost_is_asked_again_with_the_same_key() {
    let (client, mut host) = connected(Config::default()).await;
    let host = async {
        // Taken in, never answered: the guest's patience ends.
        let (_, first) = host.request().await;
        host.restart();
        host.open().await;
        let (sequence, second) = host.request().await;
        assert_eq!(first, second);
        host.reply(sequence, Reply::Load(job(Stage::Writing, 500)))
            .await;
        answer_job(&mut host, job(Stage::Done, 1000)).await;
    };
    let ((info, _), ()) = tokio::join!(load_and_wait(&client), host);
    assert_eq!(info.stage, Stage::Done);
}

/// Once the host has accepted a job, it is only looked at, however often the
/// session is lost: one write, and the real state is read before anything else.
#[tokio::test(start_paused = true)]
async fn aws_01_an_accepted_job_is_looked_at_and_never_asked_for_again() {
    let (client, mut host) = connected(Config::default()).await;
    let host = async {
        let (sequence, request) = host.request().await;
        assert!(matches!(request, Request::Load(_)));
        host.reply(sequence, Reply::Load(job(Stage::Accepted, 0)))
            .await;
        for lost in 0..5 {
            // The host goes away with the question unanswered …
            let (_, request) = host.request().await;
            assert!(matches!(request, Request::Job(_)), "{request:?}");
            host.restart();
            // … and for longer than one handshake takes.
            tokio::time::sleep(Duration::from_secs(7 * lost)).await;
        }
        answer_job(&mut host, job(Stage::Done, 1000)).await;
    };
    let ((info, _), ()) = tokio::join!(load_and_wait(&client), host);
    assert_eq!(info.stage, Stage::Done);
}

/// A job that stays busy longer than the wait: the error carries the key and
/// what was last heard, and the wait ended in time.
#[tokio::test(start_paused = true)]
async fn aws_01_a_wait_that_is_too_short_tells_how_to_find_the_job_again() {
    let config = Config {
        wait_timeout: Duration::from_secs(20),
        ..Config::default()
    };
    let (client, mut host) = connected(config).await;
    let began = Instant::now();
    let host = async {
        loop {
            answer_job(&mut host, job(Stage::Writing, 1)).await;
        }
    };
    let error = tokio::select! {
        answer = client.wait(KEY, |_| {}) => answer.unwrap_err(),
        () = host => unreachable!(),
    };
    assert_eq!(began.elapsed(), Duration::from_secs(20));
    assert!(error.remedy().contains(&KEY.to_string()));
    let Error::StillRunning {
        key: KEY,
        last: Some(last),
        ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!(last.stage, Stage::Writing);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_in_time_with_a_host_that_is_gone_for_good() {
    let config = Config {
        wait_timeout: Duration::from_secs(33),
        ..Config::default()
    };
    let (client, host) = connected(config).await;
    drop(host);
    let began = Instant::now();
    let answer = client.wait(KEY, |_| {}).await;
    assert!(
        matches!(answer, Err(Error::StillRunning { last: None, .. })),
        "{answer:?}"
    );
    assert_eq!(began.elapsed(), Duration::from_secs(33));
}

#[tokio::test(start_paused = true)]
async fn a_wait_lives_through_rate_limits_and_ends_at_an_unknown_job() {
    let (client, mut host) = connected(Config::default()).await;
    let host = async {
        for (status, detail) in [
            (Status::Rate, Detail::None),
            (Status::Unavailable, Detail::None),
            (Status::Failed, Detail::NoSuchJob),
        ] {
            let (sequence, _) = host.request().await;
            host.reply(sequence, Reply::Error(ErrorReply::new(status, detail)))
                .await;
        }
    };
    let (answer, ()) = tokio::join!(client.wait(KEY, |_| {}), host);
    let refusal = answer.unwrap_err().refusal().cloned().unwrap();
    assert_eq!(refusal.detail, Detail::NoSuchJob);
}

#[tokio::test(start_paused = true)]
async fn news_of_another_job_are_a_broken_protocol() {
    let (client, mut host) = connected(Config::default()).await;
    let host = async {
        let (sequence, _) = host.request().await;
        let other = JobInfo {
            key: JobKey([1; 16]),
            ..job(Stage::Done, 0)
        };
        host.reply(sequence, Reply::Job(other)).await;
    };
    let (answer, ()) = tokio::join!(client.job(KEY), host);
    assert!(matches!(answer, Err(Error::Protocol(_))));
}

/// A refusal is an answer: a denied load is asked once.
#[tokio::test(start_paused = true)]
async fn a_refused_load_is_not_asked_again() {
    let (client, mut host) = connected(Config::default()).await;
    let mut loads = 0;
    let host = async {
        while let Some(Got::Request(sequence, _)) = host.next().await {
            loads += 1;
            host.reply(sequence, Reply::Error(ErrorReply::denied()))
                .await;
        }
    };
    tokio::select! {
        answer = client.load(load()) => {
            assert_eq!(answer.unwrap_err().refusal(), Some(&ErrorReply::denied()));
        }
        () = host => panic!("the client left"),
    }
    assert_eq!(loads, 1);
}
