//! The header of a `.bit` file: keys, each with a length and a text, and last
//! the length of the words.
//!
//! Knows the keys `a` to `e`, in any order, and passes over letters that are
//! newer than it. Must not believe any of them.

use std::str;

use crate::error::ContainerError;

/// Two fields of fixed content: what a `.bit` file begins with.
pub(crate) const MAGIC: &[u8] = &[
    0x00, 0x09, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0x00, 0x00, 0x01,
];

/// What the header says, as the tool wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BitHeader<'a> {
    /// The design's name, and after semicolons the tool's options.
    pub design: Option<&'a str>,
    /// The part: `7z020clg400`, or `xck26-sfvc784-2LV-c`.
    pub part: Option<&'a str>,
    /// The day it was made, `2018/04/25`.
    pub date: Option<&'a str>,
    /// The time of day, `15:00:15`.
    pub time: Option<&'a str>,
}

impl<'a> BitHeader<'a> {
    /// The design's name without options.
    #[must_use]
    pub fn name(&self) -> Option<&'a str> {
        self.design?.split(';').next()
    }

    /// The value of an option behind the design's name, such as `Version`,
    /// `PARTIAL`, `COMPRESS` or `UserID`.
    #[must_use]
    pub fn option(&self, key: &str) -> Option<&'a str> {
        self.options()
            .find_map(|(name, value)| (name == key).then_some(value))
    }

    /// All options, in the order of the file.
    pub fn options(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.design
            .unwrap_or_default()
            .split(';')
            .skip(1)
            .filter_map(|option| option.split_once('='))
    }
}

/// Reads the header and gives where the words begin.
pub(super) fn parse(file: &[u8]) -> Result<(BitHeader<'_>, usize), ContainerError> {
    let mut reader = Reader { file, at: 0 };
    if reader.take(MAGIC.len())? != MAGIC {
        return Err(ContainerError::Unrecognised);
    }
    let mut header = BitHeader::default();
    loop {
        let at = reader.at;
        let key = reader.take(1)?.first().copied().unwrap_or(0);
        let place = match key {
            b'a' => &mut header.design,
            b'b' => &mut header.part,
            b'c' => &mut header.date,
            b'd' => &mut header.time,
            b'e' => {
                let stated = u32::from_be_bytes(reader.array()?);
                let found = file.len().saturating_sub(reader.at);
                if u64::from(stated) != u64::try_from(found).unwrap_or(u64::MAX) {
                    return Err(ContainerError::BitLength { at, stated, found });
                }
                return Ok((header, reader.at));
            }
            // Tools add keys; none of them decides anything.
            b'f'..=b'z' => {
                reader.field()?;
                continue;
            }
            _ => return Err(ContainerError::BitKey { at }),
        };
        if place.is_some() {
            return Err(ContainerError::BitKey { at });
        }
        *place = Some(reader.text()?);
    }
}

struct Reader<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], ContainerError> {
        let end = self.at.saturating_add(length);
        let cut = ContainerError::BitTruncated {
            len: self.file.len(),
        };
        let bytes = self.file.get(self.at..end).ok_or(cut)?;
        self.at = end;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ContainerError> {
        let bytes = self.take(N)?;
        Ok(bytes.try_into().unwrap_or([0; N]))
    }

    /// A length and so many bytes.
    fn field(&mut self) -> Result<&'a [u8], ContainerError> {
        let length = usize::from(u16::from_be_bytes(self.array()?));
        self.take(length)
    }

    /// A field that is a text, with the NUL that ends it in C.
    fn text(&mut self) -> Result<&'a str, ContainerError> {
        let at = self.at;
        let bytes = self.field()?;
        let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
        // What goes to terminals and logs must not steer them.
        str::from_utf8(bytes)
            .ok()
            .filter(|text| !text.chars().any(char::is_control))
            .ok_or(ContainerError::BitText { at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(key: u8, text: &str) -> Vec<u8> {
        let length = u16::try_from(text.len()).unwrap().checked_add(1).unwrap();
        let mut field = vec![key];
        field.extend_from_slice(&length.to_be_bytes());
        field.extend_from_slice(text.as_bytes());
        field.push(0);
        field
    }

    fn end(words: &[u8]) -> Vec<u8> {
        let mut end = vec![b'e'];
        end.extend_from_slice(&u32::try_from(words.len()).unwrap().to_be_bytes());
        end.extend_from_slice(words);
        end
    }

    #[test]
    fn keys_in_any_order_and_options_by_name() {
        let design = "top;UserID=0XFFFFFFFF;PARTIAL=TRUE;Version=2022.1";
        let file = [
            MAGIC.to_vec(),
            field(b'b', "7z020clg400"),
            field(b'a', design),
            field(b'f', "newer than this reader"),
            end(&[1, 2, 3, 4]),
        ]
        .concat();
        let (header, offset) = parse(&file).unwrap();
        assert_eq!(header.part, Some("7z020clg400"));
        assert_eq!(header.name(), Some("top"));
        assert_eq!(header.option("Version"), Some("2022.1"));
        assert_eq!(header.option("PARTIAL"), Some("TRUE"));
        assert_eq!(header.option("COMPRESS"), None);
        assert_eq!(header.date, None);
        assert_eq!(&file[offset..], [1, 2, 3, 4]);
    }

    #[test]
    fn a_header_that_lies_or_is_cut_is_refused() {
        let good = [MAGIC.to_vec(), field(b'a', "x"), end(&[0; 8])].concat();
        for length in 0..good.len() {
            assert!(parse(&good[..length]).is_err(), "{length} bytes");
        }
        let longer = [good.clone(), vec![0]].concat();
        assert!(matches!(
            parse(&longer),
            Err(ContainerError::BitLength {
                stated: 8,
                found: 9,
                ..
            })
        ));
        let twice = [
            MAGIC.to_vec(),
            field(b'a', "x"),
            field(b'a', "y"),
            end(&[0; 4]),
        ]
        .concat();
        assert!(matches!(parse(&twice), Err(ContainerError::BitKey { .. })));
        let escape = [MAGIC.to_vec(), field(b'a', "x\u{1b}[2J"), end(&[0; 4])].concat();
        assert!(matches!(
            parse(&escape),
            Err(ContainerError::BitText { .. })
        ));
    }
}
