use rushes_texture::source::*;
use rushes_texture::*;
use std::time::Instant;
fn main() {
    for spec in [
        "pattern:3840x2160@60",
        "pattern:3840x2160@60,rgba8",
        "pattern:3840x2160@60,yuv420",
        "pattern:7680x4320",
    ] {
        let t = Instant::now();
        let mut s = Pattern::new(&spec.parse().unwrap()).unwrap();
        let new = t.elapsed();
        let mut v = vec![];
        for _ in 0..60 {
            let t = Instant::now();
            let f = s.next_frame().unwrap().unwrap();
            v.push(t.elapsed());
            std::hint::black_box(&f[0]);
        }
        let first = v[0];
        v.sort();
        let f = s.next_frame().unwrap().unwrap();
        let mut to = vec![0u8; f.len()];
        let mut c = vec![];
        for _ in 0..20 {
            let t = Instant::now();
            to.copy_from_slice(&f);
            c.push(t.elapsed());
            std::hint::black_box(&to[0]);
        }
        c.sort();
        println!(
            "{spec}: new {new:?} first {first:?} median {:?} min {:?}; memcpy of frame {:?}",
            v[30], v[0], c[10]
        );
    }
    for (spec, name) in [
        ("pattern:1280x720,frames=3", "/tmp/pat_%d.png"),
        ("pattern:320x180,frames=1", "/tmp/pats_%d.png"),
    ] {
        let mut s = Pattern::new(&spec.parse().unwrap()).unwrap();
        let mut w = file::create(std::path::Path::new(name), *s.layout(), s.rate()).unwrap();
        while let Some(f) = s.next_frame().unwrap() {
            w.write_frame(&f).unwrap();
        }
        w.finish().unwrap();
    }
    let mut s = Pattern::new(&"pattern:1280x720,yuv420,frames=100".parse().unwrap()).unwrap();
    let mut w = file::create(std::path::Path::new("/tmp/pat.y4m"), *s.layout(), s.rate()).unwrap();
    while let Some(f) = s.next_frame().unwrap() {
        w.write_frame(&f).unwrap();
    }
    w.finish().unwrap();
}
