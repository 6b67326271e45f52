//! Video of a file or a live source as browsers decode it.
//!
//! A browser shows pictures in the order in which they arrive, begins at a key frame that has its
//! parameter sets, and asks for another key frame when it has lost pictures.

mod parameter_sets;

use std::path::{Path, PathBuf};
use std::time::Instant;

use rushes_proto::payload::Framing;
use rushes_proto::payload::nal::{NalCodec, PictureOrder, Position};
use rushes_proto::sdp::Encoding;
use thiserror::Error;

use self::parameter_sets::ParameterSets;
use super::{FileError, MediaFrame, MediaReader, NextFrame, ReadOptions};
use crate::format::Codec;

/// Number of pictures of a file whose order is checked before the first is returned: an encoder that
/// reorders pictures does so after the first few.
const CHECKED: usize = 120;

/// Number of frames, beginning with a key frame, during which a request for a key frame counts as
/// answered: it may have been on its way. A browser that lost the key frame asks again.
const RECENT: u64 = 10;

/// The reason why video cannot be sent to browsers.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BrowserVideoError {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is neither H.264 nor H.265.
    #[error("{name} is {codec}, and only H.264 and H.265 can be prepared for browsers. {advice}")]
    Codec {
        /// The name of the file or source.
        name: String,
        /// The codec's name.
        codec: &'static str,
        /// What to type instead.
        advice: String,
    },
    /// Its NAL units have lengths in place of start codes.
    #[error("{name} is read with lengths before its NAL units: read it with start codes (Annex B)")]
    Framing {
        /// The name of the file or source.
        name: String,
    },
    /// Pictures are presented in another order than they are stored (B-frames).
    #[error(
        "{name}: picture {picture} is presented before one that precedes it in the file (B-frames), \
         and browsers show pictures in the order in which they arrive. {advice}"
    )]
    Reordered {
        /// The name of the file or source.
        name: String,
        /// The picture's number, from 1.
        picture: u64,
        /// What to type to remove such pictures.
        advice: String,
    },
    /// It ended without a key frame whose parameter sets are known.
    #[error(
        "{name}: none of its {} could begin the video: no key frame with parameter sets. {advice}",
        counted(*pictures)
    )]
    NoKeyFrame {
        /// The name of the file or source.
        name: String,
        /// The number of pictures read.
        pictures: u64,
        /// What to type instead.
        advice: String,
    },
}

/// What becomes of a request for a key frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum KeyFrameAnswer {
    /// The frames before the next key frame of the file are left out.
    Skips,
    /// A key frame was returned so recently that the request may be older: nothing happens.
    Recent,
    /// Only the program that makes the live video can make a key frame: ask it. Frames continue
    /// meanwhile.
    AskSource,
}

/// Decides which frames are sent to browsers, and gives key frames their parameter sets. It reads
/// nothing; see [`BrowserVideo`] for a file or a live source.
#[derive(Debug)]
pub struct BrowserFrames {
    codec: NalCodec,
    name: PathBuf,
    is_live: bool,
    sets: ParameterSets,
    /// The latest position of a picture in presentation order.
    latest: Option<Position>,
    /// Whether frames are left out until the next key frame.
    waits: bool,
    /// Frames returned since the last key frame, with it.
    since_key: u64,
    pictures: u64,
    left_out: u64,
}

impl BrowserFrames {
    /// Creates the state for frames of `codec`, with start codes, from the file or the source `name`.
    ///
    /// # Errors
    /// [`BrowserVideoError::Codec`] if the codec is neither H.264 nor H.265.
    pub fn new(codec: Codec, name: &Path, is_live: bool) -> Result<Self, BrowserVideoError> {
        let nal = codec.nal.filter(|nal| *nal != NalCodec::H266);
        let Some(nal) = nal else {
            return Err(BrowserVideoError::Codec {
                name: name.display().to_string(),
                codec: codec.title,
                advice: match codec.media {
                    "video" => advice(name, NalCodec::H264),
                    _ => "Give a file of video".to_owned(),
                },
            });
        };
        Ok(Self {
            codec: nal,
            name: name.to_owned(),
            is_live,
            sets: ParameterSets::new(nal),
            latest: None,
            waits: true,
            since_key: 0,
            pictures: 0,
            left_out: 0,
        })
    }

    /// Goes on with the beginning of the file: its pictures follow those so far.
    pub fn begin_again(&mut self) {
        self.latest = None;
    }

    /// Answers a request of a browser for a key frame (PLI or FIR).
    pub fn request_key_frame(&mut self) -> KeyFrameAnswer {
        if !self.waits && self.since_key <= RECENT {
            return KeyFrameAnswer::Recent;
        }
        if self.is_live {
            return KeyFrameAnswer::AskSource;
        }
        self.waits = true;
        KeyFrameAnswer::Skips
    }

    /// Takes the next frame, in the order of the file; returns whether it is to be sent. A key frame
    /// gets the parameter sets that it lacks: the last of the stream.
    ///
    /// # Errors
    /// [`BrowserVideoError::Reordered`] if it is presented before an earlier one.
    pub fn prepare(&mut self, frame: &mut MediaFrame) -> Result<bool, BrowserVideoError> {
        self.pictures += 1;
        self.check_order(frame)?;
        self.sets.note(&frame.data);
        let is_key = self.is_key(frame);
        if self.waits && !(is_key && self.sets.are_complete()) {
            self.left_out += 1;
            return Ok(false);
        }
        self.waits = false;
        self.since_key = if is_key { 1 } else { self.since_key.saturating_add(1) };
        if is_key {
            self.sets.complete(&mut frame.data);
        }
        Ok(true)
    }

    /// Returns whether a decoder can begin with a frame that has its parameter sets.
    pub fn is_key(&self, frame: &MediaFrame) -> bool {
        crate::format::nal::is_key_frame(self.codec, &frame.data)
    }

    /// Returns the number of frames left out so far: before a key frame that was requested, and before
    /// the first one.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the latest parameter sets, with start codes; empty before the first.
    pub fn parameter_sets(&self) -> Vec<u8> {
        self.sets.all()
    }

    /// Checks that anything could be returned of an input that has ended.
    fn check_end(&self) -> Result<(), BrowserVideoError> {
        if self.pictures > self.left_out {
            return Ok(());
        }
        Err(BrowserVideoError::NoKeyFrame {
            name: self.name.display().to_string(),
            pictures: self.pictures,
            advice: advice(&self.name, self.codec),
        })
    }

    fn check_order(&mut self, frame: &MediaFrame) -> Result<(), BrowserVideoError> {
        let known = frame.picture.filter(|picture| picture.order != PictureOrder::Unknown);
        let Some(picture) = known else { return Ok(()) };
        if self.latest.is_some_and(|latest| picture.position < latest) {
            return Err(BrowserVideoError::Reordered {
                name: self.name.display().to_string(),
                picture: self.pictures,
                advice: advice(&self.name, self.codec),
            });
        }
        self.latest = Some(picture.position);
        Ok(())
    }
}

/// The next frame of [`BrowserVideo`].
#[derive(Debug)]
pub enum NextBrowserFrame<'v> {
    /// A frame to be sent.
    Frame(BrowserFrame<'v>),
    /// The deadline passed without a frame; of a file only while frames are left out.
    Pending,
    /// The input has ended. While a requested key frame is awaited, none follows.
    End,
}

/// A frame as browsers decode it.
#[derive(Clone, Copy, Debug)]
pub struct BrowserFrame<'v> {
    /// The frame, with start codes; a key frame has its parameter sets.
    pub frame: &'v MediaFrame,
    /// Whether a decoder can begin with it.
    pub is_key: bool,
    /// The number of frames left out directly before it. The times of a file advance by them, too: a
    /// schedule that goes on without a pause leaves their time out.
    pub left_out_before: u64,
}

/// The frames of a file or a live source, as browsers decode them.
///
/// Frames before the first key frame are left out, and after
/// [`request_key_frame`](Self::request_key_frame) those before the next one of the file. Key frames get
/// the parameter sets that they lack.
///
/// ```no_run
/// use rushes::Codec;
/// use rushes::file::{BrowserVideo, NextBrowserFrame, ReadOptions};
/// use std::time::{Duration, Instant};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut video =
///     BrowserVideo::open("film.264".as_ref(), Codec::H264, ReadOptions::default())?;
/// println!("profile-level-id={:02x?}", video.profile_level_id());
/// while let NextBrowserFrame::Frame(next) =
///     video.next_frame_until(Instant::now() + Duration::from_millis(5))?
/// {
///     println!("{} octets, {} left out before", next.frame.data.len(), next.left_out_before);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct BrowserVideo {
    reader: MediaReader,
    frames: BrowserFrames,
    frame: MediaFrame,
    /// Whether `frame` was read, and is still to be returned.
    is_held: bool,
    has_ended: bool,
    /// The frames left out up to the last one returned.
    left_out: u64,
    encoding: Option<Encoding>,
    codec: Codec,
}

impl BrowserVideo {
    /// Opens the file at `path` as [`MediaReader::open`] does. Reads the beginning of a file at once, so
    /// that one that browsers cannot show is an error here; a pipe or a device is a live source, of
    /// which nothing is known yet.
    ///
    /// # Errors
    /// [`BrowserVideoError`]; that of later pictures comes with them.
    pub fn open(
        path: &Path,
        codec: Codec,
        options: ReadOptions,
    ) -> Result<Self, BrowserVideoError> {
        let mut video = Self::new(MediaReader::open(path, codec, options)?)?;
        if video.reader.is_live() {
            return Ok(video);
        }
        let mut ahead = Self::new(MediaReader::open(path, codec, options)?)?;
        for _ in 0..CHECKED {
            if !ahead.advance(None)? {
                break;
            }
        }
        video.encoding = ahead.encoding;
        Ok(video)
    }

    /// Takes the frames of `reader`, from the next one on.
    ///
    /// # Errors
    /// [`BrowserVideoError::Codec`], and [`BrowserVideoError::Framing`] if the reader returns NAL units
    /// without start codes.
    pub fn new(reader: MediaReader) -> Result<Self, BrowserVideoError> {
        let codec = reader.codec();
        let frames = BrowserFrames::new(codec, reader.path(), reader.is_live())?;
        if reader.framing() != Framing::AnnexB {
            let name = reader.path().display().to_string();
            return Err(BrowserVideoError::Framing { name });
        }
        let (frame, encoding) = (MediaFrame::default(), None);
        let (is_held, has_ended, left_out) = (false, false, 0);
        Ok(Self { reader, frames, frame, is_held, has_ended, left_out, encoding, codec })
    }

    /// Returns whether this is a live source, whose frames arrive as they are made.
    pub fn is_live(&self) -> bool {
        self.reader.is_live()
    }

    /// Returns the reader of the frames, for example for their rate.
    pub fn reader(&self) -> &MediaReader {
        &self.reader
    }

    /// Returns the encoding for an offer, with the profile and the level of the first key frame. Of a live
    /// source it is known only when that was read; see [`peek_until`](Self::peek_until).
    pub fn encoding(&self) -> Option<&Encoding> {
        self.encoding.as_ref()
    }

    /// Returns `profile-level-id` of H.264 (RFC 6184 section 8.1) for an offer: three octets of the first
    /// SPS. `None` of H.265, and while [`encoding`](Self::encoding) is not known.
    pub fn profile_level_id(&self) -> Option<[u8; 3]> {
        match &self.encoding {
            Some(Encoding::H264(parameters)) => parameters.profile_level_id,
            _ => None,
        }
    }

    /// Reads up to the next frame, which stays the next one; `false` if there was none until
    /// `deadline`, or the input has ended.
    ///
    /// # Errors
    /// As [`next_frame_until`](Self::next_frame_until).
    pub fn peek_until(&mut self, deadline: Instant) -> Result<bool, BrowserVideoError> {
        self.is_held = self.is_held || self.advance(Some(deadline))?;
        Ok(self.is_held)
    }

    /// Returns the next frame, waiting for a live source until `deadline`.
    ///
    /// # Errors
    /// [`BrowserVideoError::Reordered`] if a picture is presented before an earlier one,
    /// [`BrowserVideoError::NoKeyFrame`] at the end of input of which nothing was returned,
    /// [`BrowserVideoError::File`].
    pub fn next_frame_until(
        &mut self,
        deadline: Instant,
    ) -> Result<NextBrowserFrame<'_>, BrowserVideoError> {
        if !std::mem::take(&mut self.is_held) && !self.advance(Some(deadline))? {
            return Ok(if self.has_ended {
                NextBrowserFrame::End
            } else {
                NextBrowserFrame::Pending
            });
        }
        let left_out_before = self.frames.left_out() - self.left_out;
        self.left_out = self.frames.left_out();
        let is_key = self.frames.is_key(&self.frame);
        Ok(NextBrowserFrame::Frame(BrowserFrame { frame: &self.frame, is_key, left_out_before }))
    }

    /// Answers a request of a browser for a key frame (PLI or FIR,
    /// [`ControlEvent::KeyFrameRequested`](crate::ControlEvent::KeyFrameRequested)).
    pub fn request_key_frame(&mut self) -> KeyFrameAnswer {
        let answer = self.frames.request_key_frame();
        if answer == KeyFrameAnswer::Skips && std::mem::take(&mut self.is_held) {
            // A frame that was read ahead is left out, too; it was no key frame, which would be recent.
            self.frames.left_out += 1;
        }
        answer
    }

    /// Returns the number of frames left out so far; see [`BrowserFrames::left_out`].
    pub fn left_out(&self) -> u64 {
        self.frames.left_out()
    }

    /// Reads up to the next frame to be returned; `false` if there was none until `deadline`, or the
    /// input has ended. Without a deadline it waits.
    fn advance(&mut self, deadline: Option<Instant>) -> Result<bool, BrowserVideoError> {
        loop {
            let next = match deadline {
                Some(deadline) => self.reader.next_frame_until(deadline)?,
                None => self.reader.next_frame()?.map_or(NextFrame::End, NextFrame::Frame),
            };
            match next {
                NextFrame::Frame(frame) => self.frame.clone_from(frame),
                NextFrame::Pending => return Ok(false),
                NextFrame::End => {
                    self.has_ended = true;
                    return self.frames.check_end().map(|()| false);
                }
            }
            if self.frames.prepare(&mut self.frame)? {
                if self.encoding.is_none() {
                    self.encoding = Some((self.codec.describe)(&self.codec, &self.frame.data));
                }
                return Ok(true);
            }
            // A source without key frames must not keep the caller.
            if deadline.is_some_and(|it| it <= Instant::now()) {
                return Ok(false);
            }
        }
    }
}

fn counted(count: u64) -> String {
    if count == 1 { "1 picture".to_owned() } else { format!("{count} pictures") }
}

/// Returns what to type to make a file of `codec` that browsers can show.
fn advice(name: &Path, codec: NalCodec) -> String {
    let encoder = match codec {
        NalCodec::H265 => "-c:v libx265 -x265-params bframes=0",
        _ => "-c:v libx264 -profile:v baseline -bf 0",
    };
    let extension = name.extension().map(|it| it.to_string_lossy().to_lowercase());
    let (sound, extension) = match extension.as_deref() {
        Some(it @ ("mp4" | "m4v" | "mov" | "mkv")) => (" -c:a copy", it),
        _ if codec == NalCodec::H265 => ("", "265"),
        _ => ("", "264"),
    };
    let new = name.with_extension("");
    let (name, new) = (name.display(), new.display());
    format!("Try: ffmpeg -i {name} {encoder} -pix_fmt yuv420p -g 60{sound} {new}-web.{extension}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rushes_proto::payload::nal::PictureTime;

    use super::*;

    const SETS: &[u8] = &[0, 0, 0, 1, 0x67, 66, 0xc0, 30, 0x80, 1, 0, 0, 0, 1, 0x68, 0x80, 1];
    const KEY: &[u8] = &[0, 0, 0, 1, 0x65, 0x88, 1, 2];
    const OTHER: &[u8] = &[0, 0, 0, 1, 0x41, 0x9a, 1, 2];

    fn frame(data: &[u8], position: i64) -> MediaFrame {
        let picture = PictureTime {
            position: Position(position),
            order: PictureOrder::Count,
            is_field: false,
            frame_rate: None,
            reorders: Some(true),
        };
        MediaFrame { data: data.to_vec(), picture: Some(picture), ..MediaFrame::default() }
    }

    fn frames(is_live: bool) -> BrowserFrames {
        BrowserFrames::new(Codec::H264, Path::new("film.264"), is_live).unwrap()
    }

    /// Returns which of the frames are to be sent, of a stream that begins at position `begin`.
    fn sent(frames: &mut BrowserFrames, begin: i64, all: &[&[u8]]) -> Vec<bool> {
        let all = all.iter().zip(begin..);
        all.map(|(data, n)| frames.prepare(&mut frame(data, n)).unwrap()).collect()
    }

    #[test]
    fn frames_are_left_out_up_to_a_key_frame_whose_sets_are_known() {
        let mut frames = frames(false);
        assert_eq!(sent(&mut frames, 0, &[OTHER, KEY, SETS, OTHER]), [false; 4]);
        assert!(matches!(
            frames.check_end(),
            Err(BrowserVideoError::NoKeyFrame { pictures: 4, .. })
        ));
        assert_eq!(sent(&mut frames, 4, &[KEY, OTHER]), [true; 2]);
        assert_eq!(frames.left_out(), 4);
        let mut key = frame(KEY, 6);
        assert!(frames.prepare(&mut key).unwrap());
        assert_eq!(key.data, [SETS, KEY].concat());
        assert_eq!(frames.parameter_sets(), SETS);
        assert!(frames.check_end().is_ok());
    }

    #[test]
    fn a_request_skips_to_the_next_key_frame_of_a_file() {
        let mut frames = frames(false);
        let first = [SETS, KEY].concat();
        assert_eq!(sent(&mut frames, 0, &[&first]), [true]);
        assert_eq!(frames.request_key_frame(), KeyFrameAnswer::Recent);
        assert_eq!(sent(&mut frames, 1, &[OTHER; 9]), [true; 9]);
        assert_eq!(frames.request_key_frame(), KeyFrameAnswer::Recent);
        assert_eq!(sent(&mut frames, 10, &[OTHER]), [true]);
        assert_eq!(frames.request_key_frame(), KeyFrameAnswer::Skips);
        assert_eq!(frames.request_key_frame(), KeyFrameAnswer::Skips, "it is not there yet");
        assert_eq!(sent(&mut frames, 11, &[OTHER, OTHER, KEY, OTHER]), [false, false, true, true]);
        assert_eq!(frames.left_out(), 2);
    }

    #[test]
    fn a_live_source_is_asked_and_its_frames_continue() {
        let mut frames = frames(true);
        assert_eq!(frames.request_key_frame(), KeyFrameAnswer::AskSource);
        let first = [SETS, KEY].concat();
        assert_eq!(sent(&mut frames, 0, &[OTHER, &first]), [false, true]);
        assert_eq!(sent(&mut frames, 2, &[OTHER; 20]), [true; 20]);
        assert_eq!(frames.request_key_frame(), KeyFrameAnswer::AskSource);
        assert_eq!(sent(&mut frames, 22, &[OTHER]), [true]);
    }

    #[test]
    fn a_picture_that_is_presented_before_an_earlier_one_is_an_error_that_helps() {
        let mut frames = frames(false);
        assert_eq!(sent(&mut frames, 0, &[&[SETS, KEY].concat()]), [true]);
        assert!(frames.prepare(&mut frame(OTHER, 240)).unwrap());
        let error = frames.prepare(&mut frame(OTHER, 120)).unwrap_err().to_string();
        assert_eq!(
            error,
            "film.264: picture 3 is presented before one that precedes it in the file (B-frames), \
             and browsers show pictures in the order in which they arrive. Try: ffmpeg -i film.264 \
             -c:v libx264 -profile:v baseline -bf 0 -pix_fmt yuv420p -g 60 film-web.264"
        );
        // A position that is only a guess is no evidence.
        let mut unknown = frame(OTHER, 0);
        unknown.picture =
            unknown.picture.map(|it| PictureTime { order: PictureOrder::Unknown, ..it });
        assert!(frames.prepare(&mut unknown).unwrap());
    }

    #[test]
    fn other_codecs_are_refused_with_the_way_out() {
        for codec in [Codec::H266, Codec::Av1] {
            let name = Path::new("dir/film.mkv");
            let refused = BrowserFrames::new(codec, name, false).unwrap_err().to_string();
            assert!(refused.contains("-c:a copy dir/film-web.mkv"), "{refused}");
        }
        let refused = BrowserFrames::new(Codec::Opus, Path::new("film.opus"), false).unwrap_err();
        assert!(refused.to_string().ends_with("Give a file of video"), "{refused}");
    }

    /// Reads all frames of a file in memory, requests a key frame before frame `request`, and returns
    /// whether each is a key frame and how many were left out before it.
    fn read(octets: Vec<u8>, codec: Codec, request: usize) -> Vec<(bool, u64)> {
        let reader = MediaReader::from_octets(octets, "film", codec, ReadOptions::default());
        let mut video = BrowserVideo::new(reader.unwrap()).unwrap();
        let mut all = Vec::new();
        loop {
            if all.len() == request {
                assert!(video.peek_until(Instant::now()).unwrap());
                assert_eq!(video.request_key_frame(), KeyFrameAnswer::Skips);
            }
            match video.next_frame_until(Instant::now() + Duration::from_secs(1)).unwrap() {
                NextBrowserFrame::Frame(next) => {
                    assert!(!next.is_key || video_begins(codec, &next.frame.data));
                    all.push((next.is_key, next.left_out_before));
                }
                NextBrowserFrame::Pending => panic!("a file is never silent"),
                NextBrowserFrame::End => break all,
            }
        }
    }

    /// Returns whether a decoder can begin with an access unit.
    fn video_begins(codec: Codec, access_unit: &[u8]) -> bool {
        let mut sets = ParameterSets::new(codec.nal.unwrap());
        sets.note(access_unit);
        sets.are_complete()
    }

    fn vector(name: &str) -> Vec<u8> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/media");
        std::fs::read(folder.join(name)).unwrap()
    }

    #[test]
    fn a_file_of_two_passes_skips_to_the_second() {
        let once = vector("avc_cif_60f_baseline.264");
        // The parameter sets of the second pass are left out.
        let twice = [once.clone(), without_sets(&once)].concat();
        let all = read(twice, Codec::H264, 20);
        let keys: Vec<usize> = (0..all.len()).filter(|n| all[*n].0).collect();
        assert_eq!(keys[..2], [0, 20], "{all:?}");
        let left_out: u64 = all.iter().map(|it| it.1).sum();
        assert!(left_out > 0 && all[20].1 == left_out);
        assert_eq!(all.len() as u64 + left_out, 120);
    }

    fn without_sets(stream: &[u8]) -> Vec<u8> {
        let codec = NalCodec::H264;
        let units = crate::format::nal::units(stream);
        let kept = units.filter(|it| !codec.is_parameter_set(codec.header(it).unwrap().nal_type));
        let kept: Vec<Vec<u8>> = kept.map(<[u8]>::to_vec).collect();
        crate::format::nal::annex_b(&kept)
    }

    #[test]
    fn the_profile_is_that_of_the_file() {
        let file = "../../vectors/media/avc_cif_60f_baseline.264";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let video = BrowserVideo::open(&path, Codec::H264, ReadOptions::default()).unwrap();
        let [profile, _, _] = video.profile_level_id().unwrap();
        assert_eq!(profile, 66);
        assert!(
            matches!(video.encoding(), Some(Encoding::H264(it)) if !it.parameter_sets.is_empty())
        );
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig {
            failure_persistence: None, ..<_>::default()
        })]

        /// Whatever the octets are, nothing panics, frames are never lost without being counted, and a key
        /// frame that is returned can begin a stream.
        #[test]
        fn any_octets_are_counted(
            pieces in proptest::collection::vec(
                proptest::prop_oneof![
                    proptest::strategy::Just(SETS.to_vec()),
                    proptest::strategy::Just(KEY.to_vec()),
                    proptest::strategy::Just(OTHER.to_vec()),
                    proptest::collection::vec(proptest::prelude::any::<u8>(), 0..12),
                ],
                0..40,
            ),
            requests in proptest::collection::vec(proptest::prelude::any::<bool>(), 40),
            is_live: bool,
        ) {
            let mut frames = frames(is_live);
            let mut returned = 0;
            for ((data, position), request) in pieces.iter().zip(0..).zip(&requests) {
                let mut frame = frame(data, position);
                if *request && !is_live {
                    frames.request_key_frame();
                }
                if frames.prepare(&mut frame).unwrap() {
                    returned += 1;
                    assert!(returned > 1 || frames.is_key(&frame));
                    assert!(!frames.is_key(&frame) || video_begins(Codec::H264, &frame.data));
                    assert!(frame.data.ends_with(&data[data.len().min(6)..]));
                }
            }
            assert_eq!(returned + frames.left_out(), pieces.len() as u64);
        }
    }
}
