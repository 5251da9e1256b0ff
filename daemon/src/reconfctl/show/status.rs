//! `status`: one screen. First whether all is well, then what is not and what comes next.

use std::io::{self, Write};

use super::super::time::{moment, relative};
use super::{Paint, Table, clean};
use crate::admin::{ListView, StatusView};

pub(super) fn write(
    view: &StatusView,
    now: u64,
    paint: Paint,
    out: &mut dyn Write,
) -> io::Result<()> {
    let health = if view.healthy {
        paint.good("healthy")
    } else {
        paint.bad("NOT healthy")
    };
    writeln!(
        out,
        "{health}  reconfd {}, up since {} ({})",
        clean(&view.version),
        moment(view.since),
        relative(view.since, now)
    )?;
    if let Some(reason) = &view.stopped {
        let reason = if reason.is_empty() {
            "no reason given"
        } else {
            reason
        };
        writeln!(
            out,
            "{}  new loads are denied: {} (next: reconfctl resume)",
            paint.bad("stopped"),
            clean(reason)
        )?;
    }
    for alarm in &view.alarms {
        writeln!(out, "{}  {}", paint.bad("alarm"), clean(&alarm.what))?;
        writeln!(out, "       next: {}", paint.bold(&clean(&alarm.next)))?;
    }
    writeln!(out, "list   {}", list(&view.list, now, paint))?;
    writeln!(
        out,
        "now    {} attached, {} with an open session, {} waiting or running",
        count(view.vms, "VM", "VMs"),
        view.sessions,
        count(view.jobs, "job", "jobs")
    )?;
    if view.cards.is_empty() {
        return writeln!(out, "cards  none in host.toml");
    }
    writeln!(out)?;
    let mut table = Table::new(&["CARD", "ADDRESS", "PROCESS", "QUEUED"]);
    for card in &view.cards {
        let process = if card.connected {
            "connected"
        } else {
            "NOT CONNECTED"
        };
        table.row([&card.name, &card.address, process, &card.queued.to_string()]);
    }
    table.write(paint, out)
}

fn list(list: &ListView, now: u64, paint: Paint) -> String {
    if let Some(problem) = &list.problem {
        return format!("{}: {}", paint.bad("none in force"), clean(problem));
    }
    let version = list.version.map_or_else(
        || "without a version".to_owned(),
        |version| format!("version {version}"),
    );
    let images = count(list.images, "image", "images");
    match list.expires {
        Some(expires) if expires <= now => {
            let text = format!("expired {} ({})", moment(expires), relative(expires, now));
            format!("{version}, {images}, {}", paint.bad(&text))
        }
        Some(expires) => {
            format!(
                "{version}, {images}, expires {} ({})",
                moment(expires),
                relative(expires, now)
            )
        }
        None => format!("{version}, {images}"),
    }
}

fn count(number: u32, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::super::Colour;
    use super::*;
    use crate::admin::{AlarmView, CardView};

    fn view() -> StatusView {
        StatusView {
            healthy: true,
            version: "0.1.0".to_owned(),
            since: 0,
            stopped: None,
            list: ListView {
                version: Some(7),
                expires: Some(86_400 * 10),
                images: 1,
                problem: None,
            },
            cards: vec![CardView {
                name: "card0".to_owned(),
                address: "pci:0000:3b:00.0".to_owned(),
                connected: true,
                queued: 0,
            }],
            vms: 1,
            sessions: 0,
            jobs: 2,
            alarms: Vec::new(),
        }
    }

    fn page(view: &StatusView) -> String {
        let mut out = Vec::new();
        write(view, 7200, Paint::new(Colour::Never), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_well_host_on_one_screen() {
        assert_eq!(
            page(&view()),
            "healthy  reconfd 0.1.0, up since 1970-01-01T00:00:00Z (2 h ago)\n\
             list   version 7, 1 image, expires 1970-01-11T00:00:00Z (in 9 days)\n\
             now    1 VM attached, 0 with an open session, 2 jobs waiting or running\n\
             \n\
             CARD   ADDRESS           PROCESS    QUEUED\n\
             card0  pci:0000:3b:00.0  connected  0\n"
        );
    }

    #[test]
    fn what_is_wrong_comes_first_and_says_what_next() {
        let mut ill = view();
        ill.healthy = false;
        ill.stopped = Some(String::new());
        ill.list.expires = Some(3600);
        ill.alarms.push(AlarmView {
            what: "card0/afu1 is quarantined".to_owned(),
            next: "reconfctl region scrub card0/afu1".to_owned(),
        });
        let page = page(&ill);
        let lines: Vec<&str> = page.lines().collect();
        assert!(lines[0].starts_with("NOT healthy"));
        assert!(lines[1].contains("no reason given") && lines[1].contains("reconfctl resume"));
        assert_eq!(lines[2], "alarm  card0/afu1 is quarantined");
        assert_eq!(lines[3], "       next: reconfctl region scrub card0/afu1");
        assert!(
            lines[4].contains("expired 1970-01-01T01:00:00Z (1 h ago)"),
            "{}",
            lines[4]
        );
    }
}
