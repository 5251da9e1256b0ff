//! A bitstream's container, as the rest of this room needs it: what it is, what
//! it names, and the bytes that a card is given.
//!
//! Knows which container of `bitstream` is which signed format. Must not know
//! regions, or what was signed.

use std::ops::Range;

use bitstream::xilinx::{WordOrder, XilinxStream};
use bitstream::{Container, ContainerError};
use policy::trust::Format;
use uuid::Uuid;

/// See the module. Borrowed from the file's bytes.
#[derive(Debug, Clone)]
pub struct Contents<'a> {
    container: Container<'a>,
    format: Format,
}

/// The ids that a container names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// Which regions it fits.
    pub interface_id: Uuid,
    /// The function that appears.
    pub function_id: Uuid,
}

impl<'a> Contents<'a> {
    /// Reads a container from the whole of a file.
    ///
    /// # Errors
    /// No container, or none that an engine of this version loads.
    pub fn read(file: &'a [u8]) -> Result<Self, ContainerError> {
        let container = bitstream::parse(file)?;
        let format = match &container {
            Container::Gbs(_) => Format::Gbs,
            Container::Xilinx(stream) if stream.header.is_some() => Format::Bit,
            Container::Xilinx(_) => Format::Bin,
            // Containers that the parser learns later stay refused until this room knows
            // where their facts are.
            _ => return Err(ContainerError::Unrecognised),
        };
        Ok(Self { container, format })
    }

    /// Which container it is.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The ids that it names; AMD's containers name none.
    #[must_use]
    pub fn names(&self) -> Option<Names> {
        match &self.container {
            Container::Gbs(gbs) => Some(Names {
                interface_id: gbs.interface_id,
                function_id: gbs.accelerator,
            }),
            _ => None,
        }
    }

    /// Where the bytes lie that a card is given: what follows the header, and nothing else.
    #[must_use]
    pub fn payload(&self) -> Range<usize> {
        let start = self.container.payload_offset();
        start..start.saturating_add(self.container.payload().len())
    }

    /// How the payload's bytes make words.
    #[must_use]
    pub fn order(&self) -> WordOrder {
        match self.stream() {
            Some(stream) => stream.order(),
            None => WordOrder::LittleEndian,
        }
    }

    /// The configuration words, in containers that consist of them.
    #[must_use]
    pub fn stream(&self) -> Option<&XilinxStream<'a>> {
        match &self.container {
            Container::Xilinx(stream) => Some(stream),
            _ => None,
        }
    }
}
