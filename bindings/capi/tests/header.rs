//! The committed C header equals the one generated from the functions' declarations.
//!
//! `RUSHES_WRITE_HEADER=1 cargo test -p rushes-capi --test header` regenerates it.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::Path;

use cbindgen::{
    Builder, Config, DocumentationStyle, EnumConfig, ExportConfig, FunctionConfig, Language,
    Layout, RenameRule, Style,
};

/// The source files in the order of the header.
const SOURCES: [&str; 28] = [
    "error",
    "context",
    "hook",
    "session",
    "options",
    "options_socket",
    "options_control",
    "options_security",
    "zrtp",
    "stream",
    "frame",
    "poller",
    "push_many",
    "event",
    "control",
    "control_event",
    "statistics",
    "source",
    "peer",
    "peer_connection",
    "raw_video",
    "media_reader",
    "log",
    "texture/options",
    "texture/server",
    "texture/client",
    "texture/gpu/mod",
    "texture/canvas",
];

/// The names of the types in C.
const NAMES: [(&str, &str); 70] = [
    ("Status", "status"),
    ("Context", "context"),
    ("Session", "session"),
    ("Sas", "sas"),
    ("ZrtpPolicy", "zrtp_policy"),
    ("ZrtpWarning", "zrtp_warning"),
    ("FrameHook", "frame_hook"),
    ("EventHook", "event_hook"),
    ("RtcpHook", "rtcp_hook"),
    ("SasHook", "sas_hook"),
    ("LogHook", "log_hook"),
    ("TextureHook", "texture_hook"),
    ("TextureSourceHook", "texture_source_hook"),
    ("GpuHook", "gpu_hook"),
    ("Release", "release"),
    ("StreamOptions", "stream_options"),
    ("Codec", "codec"),
    ("Extension", "extension"),
    ("RecoveryMode", "recovery_mode"),
    ("FecMode", "fec_mode"),
    ("FecFormat", "fec_format"),
    ("RateMark", "rate_mark"),
    ("SdesItem", "sdes_item"),
    ("SrtpSuite", "srtp_suite"),
    ("Opening", "opening"),
    ("Stream", "stream"),
    ("Placement", "placement"),
    ("Element", "element"),
    ("Part", "part"),
    ("Frame", "frame"),
    ("FrameView", "frame_view"),
    ("Poller", "poller"),
    ("Push", "push"),
    ("EventKind", "event_kind"),
    ("Event", "event"),
    ("KeyFrame", "key_frame"),
    ("RtcpEventKind", "rtcp_event_kind"),
    ("ReportBlock", "report_block"),
    ("SdesText", "sdes_text"),
    ("PacketArrival", "packet_arrival"),
    ("ControlEvent", "rtcp_event"),
    ("Statistics", "statistics"),
    ("Source", "source"),
    ("Peer", "peer"),
    ("PeerConnection", "peer_connection"),
    ("PeerOptions", "peer_options"),
    ("PeerStream", "peer_stream"),
    ("Direction", "direction"),
    ("RtcpStatistics", "rtcp_statistics"),
    ("MediaReader", "media_reader"),
    ("ReadOptions", "read_options"),
    ("MediaFrame", "media_frame"),
    ("RawVideo", "raw_video"),
    ("Sampling", "sampling"),
    ("Scan", "scan"),
    ("LogLevel", "log_level"),
    ("TextureOptions", "texture_options"),
    ("TextureTiming", "texture_timing"),
    ("TextureAdaptation", "texture_adaptation"),
    ("TextureServer", "texture_server"),
    ("TextureServerStatistics", "texture_server_counts"),
    ("TextureClient", "texture_client"),
    ("TextureClientStatistics", "texture_client_counts"),
    ("TextureFrame", "texture_frame"),
    ("Gpu", "gpu"),
    ("GpuDescription", "gpu_description"),
    ("GpuFrame", "gpu_frame"),
    ("GpuFrameView", "gpu_frame_view"),
    ("GpuMemory", "gpu_memory"),
    ("MemoryHandle", "memory_handle"),
];

const PREAMBLE: &str = include_str!("preamble.h");

fn config() -> Config {
    let version = env!("CARGO_PKG_VERSION");
    let mut numbers = version.split('.');
    let mut number =
        |name: &str| format!("\n#define RUSHES_VERSION_{name} {}", numbers.next().unwrap());
    let numbers = [number("MAJOR"), number("MINOR"), number("PATCH")].concat();
    let include = [
        "Codec",
        "Direction",
        "Extension",
        "Placement",
        "RecoveryMode",
        "FecMode",
        "FecFormat",
        "RateMark",
        "Sampling",
        "Scan",
        "SdesItem",
        "SrtpSuite",
        "ZrtpPolicy",
        "ZrtpWarning",
        "EventKind",
    ];
    let more = [
        "KeyFrame",
        "RtcpEventKind",
        "LogLevel",
        "TextureTiming",
        "TextureAdaptation",
        "MemoryHandle",
    ];
    Config {
        language: Language::C,
        cpp_compat: true,
        style: Style::Both,
        include_guard: Some("RUSHES_H".into()),
        header: Some(PREAMBLE.trim_end().into()),
        after_includes: Some(format!(
            "{numbers}\n#define RUSHES_VERSION \"{version}\"\n\n\
             /* A timeout without limit. */\n#define RUSHES_FOREVER UINT64_MAX\n\n\
             /* Times in nanoseconds. */\n\
             #define RUSHES_MILLISECONDS(n) ((uint64_t)(n) * 1000000u)\n\
             #define RUSHES_SECONDS(n) ((uint64_t)(n) * 1000000000u)"
        )),
        documentation_style: DocumentationStyle::C99,
        line_length: 96,
        tab_width: 4,
        usize_is_size_t: true,
        enumeration: EnumConfig {
            rename_variants: RenameRule::QualifiedScreamingSnakeCase,
            ..EnumConfig::default()
        },
        function: FunctionConfig { args: Layout::Auto, ..FunctionConfig::default() },
        export: ExportConfig {
            include: include.into_iter().chain(more).map(Into::into).collect(),
            rename: NAMES
                .into_iter()
                .map(|(ours, theirs)| (ours.into(), format!("rushes_{theirs}")))
                .collect(),
            ..ExportConfig::default()
        },
        ..Config::default()
    }
}

fn generated() -> String {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut builder = Builder::new().with_config(config());
    for source in SOURCES {
        builder = builder.with_src(sources.join(source).with_extension("rs"));
    }
    let mut header = Vec::new();
    builder.generate().unwrap().write(&mut header);
    // Renames the constants: every status except OK and TIMEOUT is an error.
    String::from_utf8(header)
        .unwrap()
        .replace("RUSHES_STATUS_OK", "RUSHES_OK")
        .replace("RUSHES_STATUS_TIMEOUT", "RUSHES_TIMEOUT")
        .replace("RUSHES_STATUS_", "RUSHES_ERROR_")
}

#[test]
fn the_header_is_what_the_functions_declare() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/rushes.h");
    let header = generated();
    if std::env::var_os("RUSHES_WRITE_HEADER").is_some() {
        std::fs::write(&path, &header).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let different = header.lines().zip(committed.lines()).position(|(new, old)| new != old);
    assert!(header == committed, "include/rushes.h differs from line {different:?} on");
}

#[test]
fn every_function_is_in_the_header() {
    let header = generated();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut functions = 0;
    for source in SOURCES {
        let path = sources.join(source).with_extension("rs");
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let Some(rest) = line.strip_prefix("pub extern \"C\" fn ") else { continue };
            let name = rest.split('(').next().unwrap();
            assert!(header.contains(&format!("{name}(")), "{name}");
            functions += 1;
        }
    }
    assert_eq!(functions, header.matches("\nrushes_status rushes_").count() + 3);
    assert!(functions > 100, "{functions}");
}
