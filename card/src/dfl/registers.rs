//! Offsets and bits of the DFL registers. All are 64 bits wide, and are only
//! ever reached in one 64-bit access.

/// FME header: capability; `[19:17]` number of ports.
pub(super) const FME_CAP: u64 = 0x30;
/// FME header: the first port's place and access switch, eight bytes a port.
pub(super) const FME_PORT_OFST: u64 = 0x38;
/// FME header: which static design this is.
pub(super) const FME_BITSTREAM_ID: u64 = 0x60;
/// FME header: its metadata.
pub(super) const FME_BITSTREAM_MD: u64 = 0x68;
/// Bytes of an FME header that must be there.
pub(super) const FME_SIZE: u64 = 0x70;

/// `PORT_OFST`: access is the virtual function's, that is the guest's.
pub(super) const PORT_OFST_ACCESS_VF: u64 = 1 << 55;
/// `PORT_OFST`: the port is there.
pub(super) const PORT_OFST_IMPLEMENTED: u64 = 1 << 60;

/// FIU headers: offset of the AFU behind it; `[23:0]`, 0 for none.
pub(super) const NEXT_AFU: u64 = 0x18;

/// Port header: capability; `[1:0]` number, `[23:8]` KiB of the AFU's registers.
pub(super) const PORT_CAP: u64 = 0x30;
/// Port header: control.
pub(super) const PORT_CTRL: u64 = 0x38;
/// Bytes of a port header that must be there.
pub(super) const PORT_SIZE: u64 = 0x48;

/// `PORT_CTRL`: soft reset.
pub(super) const PORT_CTRL_SFTRST: u64 = 1 << 0;
/// `PORT_CTRL`: latency tolerance, the one other bit that can be written.
pub(super) const PORT_CTRL_LATENCY: u64 = 1 << 2;
/// `PORT_CTRL`: the soft reset is acknowledged. It also rises for a PR.
pub(super) const PORT_CTRL_SFTRST_ACK: u64 = 1 << 4;

/// AFU header: low half of the function's GUID.
pub(super) const AFU_GUID_L: u64 = 0x08;
/// AFU header: high half.
pub(super) const AFU_GUID_H: u64 = 0x10;
/// Bytes of an AFU header.
pub(super) const AFU_HEADER_SIZE: u64 = 0x18;

/// PR feature: control.
pub(super) const PR_CTRL: u64 = 0x08;
/// PR feature: status.
pub(super) const PR_STS: u64 = 0x10;
/// PR feature: data; every store pushes the low 32 bits as one word.
pub(super) const PR_DATA: u64 = 0x18;
/// PR feature: errors; write 1 to clear.
pub(super) const PR_ERR: u64 = 0x20;
/// PR feature: low half of the interface id.
pub(super) const PR_INTFC_ID_L: u64 = 0xa8;
/// PR feature: high half.
pub(super) const PR_INTFC_ID_H: u64 = 0xb0;
/// Bytes of a PR feature that must be there.
pub(super) const PR_SIZE: u64 = 0xb8;

/// `PR_CTRL`: reset. The hardware sees the rising edge only.
pub(super) const PR_CTRL_RST: u64 = 1 << 0;
/// `PR_CTRL`: the reset is acknowledged.
pub(super) const PR_CTRL_RST_ACK: u64 = 1 << 4;
/// `PR_CTRL`: a load begins, or is under way.
pub(super) const PR_CTRL_START: u64 = 1 << 12;
/// `PR_CTRL`: all words have been pushed.
pub(super) const PR_CTRL_COMPLETE: u64 = 1 << 13;

/// `PR_STS`: words that may still be pushed.
pub(super) const PR_STS_CREDITS: u64 = 0x1ff;
/// `PR_STS`: a fault; on some classic cards also a load under way.
pub(super) const PR_STS_FAULT: u64 = 1 << 16;
/// `PR_STS`: state of the controller; 0 at rest.
pub(super) const PR_STS_HOST: u64 = 0xf << 24;
