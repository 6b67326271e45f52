use super::*;

fn media(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/media").join(name)
}

fn files() -> Vec<(PathBuf, Codec)> {
    let folder = std::fs::read_dir(media("")).unwrap();
    let paths = folder.map(|entry| entry.unwrap().path());
    let known = paths.filter_map(|path| Some((path.clone(), rushes::file::codec_of(&path)?)));
    let mut files: Vec<_> = known.collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

#[test]
fn every_file_is_accepted_as_what_it_is() {
    let files = files();
    assert!(files.len() >= 4, "{files:?}");
    for (file, codec) in files {
        check_media(&file, Some(codec)).unwrap();
        check_media(&file, Some(Codec::Generic)).unwrap();
    }
}

#[test]
fn every_file_is_refused_as_what_it_is_not() {
    for (file, own) in files() {
        for codec in [Codec::H264, Codec::H265, Codec::H266, Codec::Opus, Codec::Klv] {
            // A bare bitstream of AV1 looks like nothing else.
            if codec == own || [Codec::Klv, Codec::Av1].contains(&own) {
                continue;
            }
            let error = check_media(&file, Some(codec)).unwrap_err().to_string();
            let option = format!("Try: --codec {}", own.name);
            assert!(error.contains(own.title) && error.ends_with(&option), "{error}");
        }
    }
}

#[test]
fn noise_and_text_look_like_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("noise.264");
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    for octets in [noise.take(100_000).collect::<Vec<u8>>(), b"this is text".to_vec(), Vec::new()] {
        std::fs::write(&file, octets).unwrap();
        check_media(&file, Some(Codec::H264)).unwrap();
        check_frames(&file).unwrap();
    }
}

#[test]
fn names_are_quoted_for_the_shell() {
    assert_eq!(quoted("a/film.mp4".as_ref()), "a/film.mp4");
    assert_eq!(quoted("my film's.mp4".as_ref()), r"'my film'\''s.mp4'");
    assert_eq!(bare_name("film.264".as_ref(), Some(Codec::H264)), Path::new("film.bare.264"));
}

#[test]
fn an_ivf_file_of_another_coding_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("film.ivf");
    let error = || check_media(&file, None).unwrap_err();
    assert!(format!("{:#}", error()).contains("cannot open"), "{:#}", error());
    std::fs::write(&file, b"DKIF\0\0\x20\0H264").unwrap();
    assert!(error().to_string().contains("holds H264"), "{}", error());
    let vp9 = std::fs::read(media("vp9_320x180_60f_libvpx.ivf")).unwrap();
    std::fs::write(folder.path().join("film"), vp9).unwrap();
    let error = check_media(&folder.path().join("film"), None).unwrap_err().to_string();
    assert!(error.ends_with("Try: --codec vp9"), "{error}");
}
