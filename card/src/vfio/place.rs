//! Is this function one that VFIO can give? Asked of sysfs before VFIO is, for
//! VFIO's own answers do not say what is wrong.

use std::fs;
use std::path::{Path, PathBuf};

use crate::address::PciAddress;
use crate::device::DeviceError;

/// The function's folder in sysfs, once nothing is wrong with it. `devices` is
/// `/sys/bus/pci/devices`.
///
/// # Errors
/// [`DeviceError::Unusable`].
pub(super) fn check(devices: &Path, address: PciAddress) -> Result<PathBuf, DeviceError> {
    let folder = devices.join(address.to_string());
    let unusable = |why: String, remedy| Err(DeviceError::Unusable { why, remedy });
    if !folder.exists() {
        return unusable(
            format!("this machine has no PCI function {address}"),
            "compare with `lspci -D`",
        );
    }
    let driver = link(&folder.join("driver"));
    match driver.as_deref() {
        Some("vfio-pci") => {}
        Some(other) => {
            return unusable(
                format!("{address} belongs to the driver {other}"),
                "bind it to vfio-pci: `driverctl set-override ADDRESS vfio-pci`",
            );
        }
        None => {
            return unusable(
                format!("{address} has no driver"),
                "bind it to vfio-pci: `driverctl set-override ADDRESS vfio-pci`",
            );
        }
    }
    if link(&folder.join("iommu_group")).is_none() {
        return unusable(
            format!("{address} is in no IOMMU group"),
            "turn the IOMMU on, in the firmware and on the kernel's command line",
        );
    }
    // The no-IOMMU mode of VFIO gives a function that can reach all memory.
    let noiommu = fs::read_to_string(folder.join("iommu_group/name"));
    if noiommu.is_ok_and(|name| name.trim() == "vfio-noiommu") {
        return unusable(
            format!("{address} is behind no IOMMU: VFIO runs in its unsafe mode"),
            "turn the IOMMU on, and VFIO's mode without it off",
        );
    }
    Ok(folder)
}

/// The last part of what a link names.
fn link(path: &Path) -> Option<String> {
    let target = fs::read_link(path).ok()?;
    Some(target.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn d11_a_function_that_vfio_cannot_give_says_why() {
        let root = tempfile::tempdir().unwrap();
        let address: PciAddress = "0000:3b:00.0".parse().unwrap();
        let folder = root.path().join("0000:3b:00.0");
        let why = || match check(root.path(), address) {
            Err(DeviceError::Unusable { why, remedy }) => {
                assert!(!remedy.is_empty());
                why
            }
            other => panic!("{other:?}"),
        };
        assert!(why().contains("no PCI function 0000:3b:00.0"));
        fs::create_dir(&folder).unwrap();
        assert!(why().contains("has no driver"));
        symlink("../../bus/pci/drivers/dfl-pci", folder.join("driver")).unwrap();
        assert!(why().contains("driver dfl-pci"));
        fs::remove_file(folder.join("driver")).unwrap();
        symlink("../../bus/pci/drivers/vfio-pci", folder.join("driver")).unwrap();
        assert!(why().contains("no IOMMU group"));
        let group = root.path().join("7");
        fs::create_dir(&group).unwrap();
        symlink(&group, folder.join("iommu_group")).unwrap();
        assert_eq!(check(root.path(), address).unwrap(), folder);
        fs::write(group.join("name"), "vfio-noiommu\n").unwrap();
        assert!(why().contains("unsafe mode"));
    }
}
