//! What is asked of a running `reconfd`: command line to request, answer to page.

use std::path::Path;

use policy::ids::{FunctionAddress, PciAddress};

use super::args::{Attach, Global, Online, Vm};
use super::exit::{Exit, Failure};
use super::{Stopped, Streams, client, place, show};
use crate::admin::{AdminBody, AdminRequest, AttachedFunction, ChannelSpec, VmAttach};

pub(super) fn run(
    command: Online,
    global: &Global,
    streams: &mut Streams<'_>,
) -> Result<Exit, Stopped> {
    let check = matches!(command, Online::Status { check: true });
    let request = request(command)?;
    let socket = match &global.socket {
        Some(socket) => socket.clone(),
        None => place::of(&global.host_file)?.layout.admin_socket(),
    };
    let answer = client::ask(&socket, &request, global.timeout)?;
    if global.json {
        writeln!(streams.out, "{}", answer.line)?;
    } else {
        show::body(&answer.body, streams)?;
    }
    Ok(verdict(&answer.body, check))
}

/// Some answers say no although the question was answered.
fn verdict(body: &AdminBody, check: bool) -> Exit {
    match body {
        AdminBody::Status(status) if check && !status.healthy => Exit::No,
        AdminBody::Explanation(explanation) if !show::allows(explanation) => Exit::No,
        _ => Exit::Done,
    }
}

fn request(command: Online) -> Result<AdminRequest, Failure> {
    Ok(match command {
        Online::Status { .. } => AdminRequest::Status {},
        Online::Regions => AdminRequest::Regions {},
        Online::Vms => AdminRequest::Vms {},
        Online::Jobs => AdminRequest::Jobs {},
        Online::Vm {
            command: Vm::Attach(attach),
        } => AdminRequest::VmAttach(registration(attach)?),
        Online::Vm {
            command: Vm::Detach { vm },
        } => AdminRequest::VmDetach { vm },
        Online::Explain { vm, image, slot } => AdminRequest::Explain { vm, image, slot },
        Online::Audit { last } => AdminRequest::Audit { last },
        Online::RegionScrub { region } => AdminRequest::RegionScrub { region },
        Online::Stop { reason } => AdminRequest::Stop { reason },
        Online::Resume => AdminRequest::Resume {},
        Online::Reload => AdminRequest::Reload {},
    })
}

fn registration(attach: Attach) -> Result<VmAttach, Failure> {
    let channel = match (attach.connect, attach.listen.flatten()) {
        (Some(path), _) => ChannelSpec::Connect {
            path: absolute(&path)?,
        },
        (None, Some(path)) => ChannelSpec::Listen {
            path: Some(absolute(&path)?),
        },
        (None, None) => ChannelSpec::Listen { path: None },
    };
    let functions = attach.functions.iter().map(|text| function(text));
    Ok(VmAttach {
        vm: attach.vm,
        name: attach.name,
        tenant: attach.tenant,
        functions: functions.collect::<Result<_, _>>()?,
        channel,
        pid: attach.pid,
    })
}

/// `ADDRESS[=GUEST_PCI]`. A path may hold `=` itself, so only what looks like a PCI address
/// is taken for one.
fn function(text: &str) -> Result<AttachedFunction, Failure> {
    let (address, guest) = match text.rsplit_once('=') {
        Some((address, guest)) if PciAddress::parse(guest).is_some() => (address, Some(guest)),
        _ => (text, None),
    };
    let address = FunctionAddress::parse(address).map_err(|error| {
        Failure::new(
            Exit::Usage,
            format!("--function {text}: {error}"),
            "write it like pci:0000:3b:00.1=0000:00:05.0, the guest's address being optional",
        )
    })?;
    Ok(AttachedFunction {
        address: address.to_string(),
        guest_pci: guest.map(str::to_owned),
    })
}

/// `reconfd` has a working directory of its own.
fn absolute(path: &Path) -> Result<String, Failure> {
    let absolute = std::path::absolute(path)
        .map_err(|error| Failure::io(&path.display().to_string(), &error))?;
    absolute
        .into_os_string()
        .into_string()
        .map_err(|_not_text| {
            Failure::new(
                Exit::Usage,
                format!("{}: not UTF-8", path.display()),
                "use another path",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_and_its_address_in_the_guest() {
        let read = |text| function(text).map(|function| (function.address, function.guest_pci));
        let pci = "pci:0000:3b:00.1".to_owned();
        assert_eq!(read("pci:0000:3b:00.1"), Ok((pci.clone(), None)));
        let guest = Some("0000:00:0a.0".to_owned());
        assert_eq!(read("pci:0000:3b:00.1=0000:00:0a.0"), Ok((pci, guest)));
        let path = "vfio-user:/run/a=b.sock".to_owned();
        assert_eq!(read("vfio-user:/run/a=b.sock"), Ok((path, None)));
    }
}
