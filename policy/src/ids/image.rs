//! What images are called, and what a request or a grant calls them.

use std::fmt;
use std::sync::Arc;

use super::text::{Case, is_word};
use super::{Digest, IdError, IdKind, Publisher, Version, text_form};

/// `publisher/name`: an image, whatever its version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImageTitle {
    /// Who signs it.
    pub publisher: Publisher,
    name: Arc<str>,
}

impl ImageTitle {
    fn split(text: &str) -> Option<ImageTitle> {
        let (publisher, name) = text.split_once('/')?;
        let publisher = Publisher::parse(publisher).ok()?;
        is_word(name, 64, Case::Lower, b"._-").then(|| ImageTitle {
            publisher,
            name: name.into(),
        })
    }

    /// Reads `publisher/name`.
    ///
    /// # Errors
    ///
    /// [`IdError`] where the text does not follow the grammar.
    pub fn parse(text: &str) -> Result<ImageTitle, IdError> {
        ImageTitle::split(text).ok_or_else(|| IdError::new(IdKind::Image, text))
    }

    /// The second half.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for ImageTitle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.publisher, self.name)
    }
}

text_form!(ImageTitle);

/// `publisher/name:version`: one image. Ordered by title, then from old to new.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImageName {
    /// Publisher and name.
    pub title: ImageTitle,
    /// The version.
    pub version: Version,
}

impl ImageName {
    /// Reads `publisher/name:version`.
    ///
    /// # Errors
    ///
    /// [`IdError`] where the text does not follow the grammar.
    pub fn parse(text: &str) -> Result<ImageName, IdError> {
        text.split_once(':')
            .and_then(|(title, version)| {
                Some(ImageName {
                    title: ImageTitle::split(title)?,
                    version: Version::parse(version).ok()?,
                })
            })
            .ok_or_else(|| IdError::new(IdKind::Image, text))
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.title, self.version)
    }
}

text_form!(ImageName);

/// Which image a request means.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ImageRef {
    /// This one.
    Name(ImageName),
    /// The newest of these that is allowed and has a variant for the region.
    Newest(ImageTitle),
    /// The one with this digest, over its set of variants.
    Digest(Digest),
}

impl ImageRef {
    /// Reads a name, a name without version, or a digest.
    ///
    /// # Errors
    ///
    /// [`IdError`] where the text is none of the three.
    pub fn parse(text: &str) -> Result<ImageRef, IdError> {
        if text.starts_with(Digest::PREFIX) {
            return Digest::parse(text).map(ImageRef::Digest);
        }
        if text.contains(':') {
            return ImageName::parse(text).map(ImageRef::Name);
        }
        ImageTitle::parse(text).map(ImageRef::Newest)
    }
}

impl fmt::Display for ImageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageRef::Name(name) => name.fmt(f),
            ImageRef::Newest(title) => title.fmt(f),
            ImageRef::Digest(digest) => fmt::Display::fmt(digest, f),
        }
    }
}

text_form!(ImageRef);

/// Which images a grant means.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ImagePattern {
    /// `publisher/*`: all of a publisher's.
    Publisher(Publisher),
    /// `publisher/name`: every version of one.
    Title(ImageTitle),
    /// `publisher/name:version`.
    Name(ImageName),
    /// The image with this digest.
    Digest(Digest),
}

impl ImagePattern {
    /// Reads a pattern. There is none for every publisher: a grant names whom it trusts.
    ///
    /// # Errors
    ///
    /// [`IdError`] where the text does not follow the grammar.
    pub fn parse(text: &str) -> Result<ImagePattern, IdError> {
        let error = |_| IdError::new(IdKind::ImagePattern, text);
        if let Some(publisher) = text.strip_suffix("/*") {
            return Publisher::parse(publisher)
                .map(ImagePattern::Publisher)
                .map_err(error);
        }
        ImageRef::parse(text)
            .map_err(error)
            .map(|image| match image {
                ImageRef::Name(name) => ImagePattern::Name(name),
                ImageRef::Newest(title) => ImagePattern::Title(title),
                ImageRef::Digest(digest) => ImagePattern::Digest(digest),
            })
    }

    /// Is the image with this name and digest one of these?
    #[must_use]
    pub fn matches(&self, name: &ImageName, digest: &Digest) -> bool {
        match self {
            ImagePattern::Publisher(publisher) => *publisher == name.title.publisher,
            ImagePattern::Title(title) => *title == name.title,
            ImagePattern::Name(exact) => exact == name,
            ImagePattern::Digest(exact) => exact == digest,
        }
    }
}

impl fmt::Display for ImagePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImagePattern::Publisher(publisher) => write!(f, "{publisher}/*"),
            ImagePattern::Title(title) => title.fmt(f),
            ImagePattern::Name(name) => name.fmt(f),
            ImagePattern::Digest(digest) => fmt::Display::fmt(digest, f),
        }
    }
}

text_form!(ImagePattern);
