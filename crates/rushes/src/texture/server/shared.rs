//! Encoded stripes of one picture, shared by the sessions that send it in the same shape.
//!
//! The session that needs a stripe first encodes it; the others that need it meanwhile wait for that, and
//! for nothing else: no session waits for the network of another. A session holds only the stripes of its
//! own shape, of the picture that it sends and of the one that waits, so there are at most two frames for
//! each session.

use std::sync::{Arc, Mutex, OnceLock};

use rushes_delivery::Stripe;

use super::super::lock;
use super::super::packing::pack;
use super::super::shape::TextureShape;
use super::encoding::{Encoding, Picture};
use super::scaled::ScaledPicture;

/// What is made of one picture, while it is given to the sessions.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The encodings, one for each shape.
    stripes: Mutex<Vec<Arc<Stripes>>>,
    /// Smaller pictures, one for each size.
    scaled: Mutex<Vec<Arc<ScaledPicture>>>,
}

impl Shared {
    /// Returns the stripes in the shape of `encoding`; `None` if the picture is sent as it is.
    pub(super) fn stripes(&self, encoding: &Encoding) -> Option<Arc<Stripes>> {
        if encoding.passes_through() {
            return None;
        }
        let mut all = lock(&self.stripes);
        if let Some(stripes) = all.iter().find(|stripes| stripes.are_of(encoding)) {
            return Some(stripes.clone());
        }
        let stripes = Arc::new(Stripes::new(encoding.shape()));
        all.push(stripes.clone());
        Some(stripes)
    }

    /// Returns the picture in the size of `encoding`; `None` if that is the source's own.
    pub(super) fn scaled(
        &self,
        encoding: &Encoding,
        picture: &Picture,
    ) -> Option<Arc<ScaledPicture>> {
        let scaling = encoding.scaling()?;
        let mut all = lock(&self.scaled);
        if let Some(scaled) = all.iter().find(|scaled| scaled.layout() == scaling.output()) {
            return Some(scaled.clone());
        }
        let scaled = Arc::new(ScaledPicture::new(scaling.clone(), picture.clone()));
        all.push(scaled.clone());
        Some(scaled)
    }
}

/// A stripe, once it is needed.
#[derive(Debug, Default)]
struct Encoded {
    /// Its octets, or why it could not be encoded.
    octets: OnceLock<Result<Vec<u8>, String>>,
    /// Its packets if it is packed, or `None` if that is of no use.
    packed: OnceLock<Option<Arc<[u8]>>>,
}

/// The stripes of one picture in one shape.
#[derive(Debug)]
pub(super) struct Stripes {
    shape: TextureShape,
    /// The stripes of each unit.
    units: Vec<Vec<Encoded>>,
}

impl Stripes {
    fn new(shape: &TextureShape) -> Self {
        let plan = shape.plan();
        let cells = |unit| (0..plan.stripe_count(unit)).map(|_| Encoded::default()).collect();
        Self { shape: shape.clone(), units: (0..plan.units()).map(cells).collect() }
    }

    /// Returns whether they are in the shape of `encoding`.
    pub(super) fn are_of(&self, encoding: &Encoding) -> bool {
        self.shape == *encoding.shape()
    }

    /// Returns the octets of a ready stripe; encodes it if it is the first call for it.
    ///
    /// # Errors
    ///
    /// As [`Encoding::stripe`], in words.
    pub(super) fn get(
        &self,
        encoding: &Encoding,
        picture: &Picture,
        stripe: &Stripe,
    ) -> Result<&[u8], String> {
        let cell = self.units.get(stripe.unit).and_then(|cells| cells.get(stripe.index));
        let Some(cell) = cell else { return Ok(&[]) };
        let encode = || {
            let mut octets = Vec::new();
            let len = encoding.stripe(picture, stripe, &mut octets).map(<[u8]>::len);
            // A stripe begins with a row, so that its octets are the first.
            octets.truncate(len.map_err(|error| error.to_string())?);
            Ok(octets)
        };
        match cell.octets.get_or_init(encode) {
            Ok(octets) => Ok(octets),
            Err(why) => Err(why.clone()),
        }
    }

    /// Returns the packets of a stripe with these octets, if packing is of use; packs it if it is the
    /// first call for it.
    pub(super) fn packed(&self, stripe: &Stripe, octets: &[u8]) -> Option<Arc<[u8]>> {
        let cell = self.units.get(stripe.unit).and_then(|cells| cells.get(stripe.index))?;
        cell.packed.get_or_init(|| pack(self.shape.plan(), stripe, octets)).clone()
    }
}

#[cfg(test)]
mod tests {
    use rushes_texture::{Format, Frame, Layout, Scaler};

    use super::*;

    fn encoding(output: Format, payload: usize) -> Encoding {
        let shape = TextureShape::choose(output, 2_048, 256, 2, payload).unwrap();
        Encoding::new(shape.layout().in_format(Format::Rgba8), shape).unwrap()
    }

    fn picture() -> Picture {
        let octets =
            (0..2_048_u32 * 256 * 4).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect::<Vec<_>>();
        Picture::Whole(Frame::new(octets))
    }

    #[test]
    fn every_session_of_a_shape_gets_the_same_octets_in_the_same_memory() {
        let (shared, picture) = (Shared::default(), picture());
        let encodings = [encoding(Format::Bc1, 1_408), encoding(Format::Bc1, 1_408)];
        let [first, second] = encodings.each_ref().map(|it| shared.stripes(it).unwrap());
        assert!(Arc::ptr_eq(&first, &second));
        let plan = encodings[0].shape().plan();
        for unit in 0..plan.units() {
            for index in 0..plan.stripe_count(unit) {
                let stripe = plan.stripe(unit, index).unwrap();
                let [one, other] = [(&first, 0), (&second, 1)]
                    .map(|(stripes, at)| stripes.get(&encodings[at], &picture, &stripe).unwrap());
                assert_eq!(one.as_ptr(), other.as_ptr(), "it was encoded twice");
                let mut scratch = Vec::new();
                assert_eq!(one, encodings[0].stripe(&picture, &stripe, &mut scratch).unwrap());
            }
        }
    }

    #[test]
    fn other_formats_and_packets_have_stripes_of_their_own_and_what_is_not_encoded_has_none() {
        let shared = Shared::default();
        let all = [(Format::Bc1, 1_408), (Format::YCoCgBc3, 1_408), (Format::Bc1, 1_000)];
        let all = all.map(|(format, payload)| shared.stripes(&encoding(format, payload)).unwrap());
        assert!(!Arc::ptr_eq(&all[0], &all[1]) && !Arc::ptr_eq(&all[0], &all[2]));
        assert!(shared.stripes(&encoding(Format::Rgba8, 1_408)).is_none());
    }

    #[test]
    fn sessions_of_one_size_scale_a_picture_once() {
        let (shared, picture) = (Shared::default(), picture());
        let scaler = |width| {
            let input = Layout::new(Format::Rgba8, 2_048, 256).unwrap();
            Scaler::new(input, width, 128).unwrap()
        };
        let encoding = |format, width| {
            let input = *scaler(width).output();
            let shape = TextureShape::choose_for(input.in_format(format), 2, 1_408).unwrap();
            Encoding::new(input, shape).unwrap().with_scaler(Some(scaler(width)))
        };
        let all = [(Format::Bc1, 1_024), (Format::Rgba8, 1_024), (Format::Rgba8, 512)];
        let all = all.map(|(format, width)| encoding(format, width));
        let scaled = all.each_ref().map(|it| shared.scaled(it, &picture).unwrap());
        assert!(Arc::ptr_eq(&scaled[0], &scaled[1]) && !Arc::ptr_eq(&scaled[1], &scaled[2]));
        let prepared = all[1].prepare(picture.clone(), Some(scaled[1].clone()));
        let stripe = all[1].shape().plan().stripe(0, 0).unwrap();
        let mut scratch = Vec::new();
        let octets = all[1].stripe(&prepared, &stripe, &mut scratch).unwrap();
        assert_eq!(octets.as_ptr(), scaled[0].octets().as_ptr(), "it is made once, and not copied");
        let mut expected = vec![0; scaler(1_024).output().bytes()];
        scaler(1_024).scale(picture.whole(), &mut expected).unwrap();
        assert!(*octets == expected[..octets.len()]);
        // What was shared in another size is of no use.
        let other = all[2].prepare(picture.clone(), Some(scaled[0].clone()));
        assert!(matches!(&other, Picture::Scaled(it) if it.layout().width() == 512));
        let own = self::encoding(Format::Bc1, 1_408);
        assert!(shared.scaled(&own, &picture).is_none());
        assert!(matches!(own.prepare(picture, Some(scaled[0].clone())), Picture::Whole(_)));
    }

    #[test]
    fn a_picture_of_the_wrong_size_fails_for_every_session() {
        let (shared, encoding) = (Shared::default(), encoding(Format::Bc1, 1_408));
        let (wrong, stripes) =
            (Picture::Whole(Frame::new(vec![0; 7])), shared.stripes(&encoding).unwrap());
        let stripe = encoding.shape().plan().stripe(0, 0).unwrap();
        for _ in 0..2 {
            assert!(stripes.get(&encoding, &wrong, &stripe).is_err());
        }
    }
}
