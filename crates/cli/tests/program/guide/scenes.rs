//! The table of the pages' commands.

use super::Step::{Beside, Run, Serve, Start};
use super::{Elsewhere, Scene};

const RECV_264: &str = "rushes recv --from 5004 --codec h264 -o copy.264";
const RECV_265: &str = "rushes recv --from 5004 --codec h265 -o copy.265";
const RECV_MP4: &str = "rushes recv --from 5004 --codec h264 -o copy.mp4";
const MAKE_MP4: &str =
    "ffmpeg -v error -f lavfi -i testsrc2=size=640x360:rate=30:duration=3 -c:v libx264 film.mp4";
const SEND_265: &str = "rushes send film.265 --to 192.0.2.7:5004";

const SERVE_TOKEN: &str = "rushes serve --http 0.0.0.0:8080 --token-file token";
const MAKE_TOKEN: &str = "rushes keygen secret > token";

const SEND_CAMERA: &str = "rushes send film.264 --to 192.0.2.7:5004 --srtp AEAD_AES_128_GCM \
                           --key-file camera.key";

/// Streams between two `rushes`, and captures.
pub(super) const SCENES: &[Scene] = &[
    Scene { files: &["film.265"], steps: &[Start(RECV_265), Run(SEND_265)] },
    Scene {
        files: &["film.264"],
        steps: &[
            Start(RECV_264),
            Run("rushes send film.264 --to 192.0.2.7:5004 --to 192.0.2.8:5004"),
        ],
    },
    Scene {
        files: &["film.mp4"],
        steps: &[Start(RECV_MP4), Run("rushes send film.mp4 --to 192.0.2.7:5004 --sdp film.sdp")],
    },
    Scene {
        files: &[],
        steps: &[
            Start("rushes recv --from 5004 --codec h265 -o copy.265 --capture-time"),
            Run("ffmpeg -f v4l2 -i /dev/video0 -c:v libx265 -tune zerolatency -f hevc - | \
                 rushes send - --codec h265 --to 192.0.2.7:5004 --capture-time"),
        ],
    },
    Scene {
        files: &[],
        steps: &[
            Start("rushes recv --from 5004 --codec h265 -o copy.265 --capture-time"),
            Run("ffmpeg -f v4l2 -i /dev/video0 -c:v libx265 \
                 -x265-params temporal-layers=1:bframes=3 -f hevc - | \
                 rushes send - --codec h265 --to 192.0.2.7:5004 --max-temporal-id 0"),
        ],
    },
    Scene {
        files: &["film.264"],
        steps: &[
            Start("rushes recv --from 5004 --codec h264 -o copy.264 --report-arrivals"),
            Run("rushes send film.264 --to 192.0.2.7:5004 --max-rate auto"),
        ],
    },
    Scene {
        files: &["film.264"],
        steps: &[
            Start(
                "rushes recv --from 5004 --codec h264 -o copy.264 --extension 3=transport-sequence --report-transport-wide",
            ),
            Run(
                "rushes send film.264 --to 192.0.2.7:5004 --max-rate auto --extension 3=transport-sequence --extension 4=mid --mid 0",
            ),
        ],
    },
    Scene {
        files: &["film.mp4"],
        steps: &[
            Run("rushes send film.mp4 --to 192.0.2.7:5004 --sdp film.sdp --dry-run"),
            Start("rushes recv --sdp film.sdp -o copy.mp4"),
            Run("rushes send film.mp4 --to 192.0.2.7:5004"),
        ],
    },
    Scene {
        files: &[],
        steps: &[
            Start(RECV_MP4),
            Run("ffmpeg -f v4l2 -i /dev/video0 -c:v libx264 -tune zerolatency -f h264 - | \
                 rushes send - --codec h264 --to 192.0.2.7:5004"),
        ],
    },
    Scene {
        files: &["film.y4m"],
        steps: &[
            Run("rushes send film.y4m --to 192.0.2.7:5004 --sdp film.sdp --dry-run"),
            Start("rushes recv --sdp film.sdp -o copy.y4m"),
            Run("rushes send film.y4m --to 192.0.2.7:5004"),
        ],
    },
    Scene {
        files: &["film.y4m"],
        steps: &[
            Start(
                "rushes recv --from 5004 --codec uncompressed --size 64x64 --sampling YCbCr-4:2:0 \
                   --depth 8 -o copy.y4m",
            ),
            Run("rushes send film.y4m --to 192.0.2.7:5004"),
        ],
    },
    Scene {
        files: &[],
        steps: &[
            Start(
                "rushes recv --from 5004 --codec uncompressed --size 320x240 --sampling 4:2:2 -o copy.y4m",
            ),
            Run("ffmpeg -f v4l2 -i /dev/video0 -pix_fmt yuv422p -f yuv4mpegpipe - | \
                 rushes send - --codec uncompressed --to 192.0.2.7:5004 --sdp camera.sdp"),
        ],
    },
    Scene {
        files: &["film.264", "speech.opus"],
        steps: &[
            Start(RECV_264),
            Run("rushes send film.264 --audio speech.opus --to 192.0.2.7:5004"),
        ],
    },
    Scene {
        files: &["sound.wav"],
        steps: &[
            Run("rushes send sound.wav --to 192.0.2.7:5004 --sdp sound.sdp --dry-run"),
            Start("rushes recv --sdp sound.sdp -o copy.wav"),
            Run("rushes send sound.wav --to 192.0.2.7:5004"),
        ],
    },
    Scene {
        files: &["studio.wav"],
        steps: &[
            Start(
                "rushes recv --from 5004 --codec l24 --clock-rate 96000 --channels 8 -o copy.wav",
            ),
            Run("rushes send studio.wav --to 192.0.2.7:5004 --packet-time 125us"),
        ],
    },
    Scene {
        files: &["film.264", "sound.wav"],
        steps: &[
            Start(RECV_264),
            Run("rushes send film.264 --audio sound.wav --to 192.0.2.7:5004"),
        ],
    },
    Scene {
        files: &["film.mp4"],
        steps: &[
            Start("rushes recv --from 5004 -o copy.opus"),
            Run("rushes send film.mp4 --codec opus --to 192.0.2.7:5004"),
        ],
    },
    Scene {
        files: &["film.265"],
        steps: &[
            Start("rushes recv --from 5004 --codec h265 -o copy.265 --peer 192.0.2.7"),
            Run(SEND_265),
        ],
    },
    Scene {
        files: &["film.265"],
        steps: &[
            Start("rushes recv --from 5004 --codec h265 -o copy.265 --peer 192.0.2.7:5006"),
            Run("rushes send film.265 --to 192.0.2.7:5004 --local-port LOCAL"),
        ],
    },
    Scene {
        files: &["film.265"],
        steps: &[
            Start("rushes recv --from 5004 --codec h265 -o copy.265 --ssrc 0x1234abcd"),
            Run("rushes send film.265 --to 192.0.2.7:5004 --ssrc 0x1234abcd"),
        ],
    },
    Scene {
        files: &["film.264"],
        steps: &[
            Run("rushes keygen AEAD_AES_128_GCM > camera.key"),
            Serve(
                "rushes recv --from 5004 --codec h264 -o camera.mp4 --keep --srtp AEAD_AES_128_GCM \
                   --key-file camera.key",
            ),
            Run(SEND_CAMERA),
            Run(SEND_CAMERA),
            Run("until test -s camera-2.mp4; do sleep 0.1; done"),
        ],
    },
    Scene {
        files: &["film.264"],
        steps: &[
            Start("rushes recv --from 239.1.2.3:5004 --codec h264 -o copy.264"),
            Run("rushes send film.264 --to 239.1.2.3:5004 --ttl 4"),
        ],
    },
    Scene {
        files: &["film.264"],
        steps: &[
            Start("rushes recv --from 232.1.2.3:5004 --source 192.0.2.7 --codec h264 -o copy.264"),
            Run("rushes send film.264 --to 232.1.2.3:5004"),
        ],
    },
    Scene {
        files: &["film.264"],
        steps: &[
            Start(
                "rushes recv --from 5004 --codec h264 -o copy.264 --wait 30s --duration 1h \
                   --metrics 9464",
            ),
            Serve("rushes send film.264 --loop 0 --to 192.0.2.7:5004"),
            Run("until curl -s http://127.0.0.1:9464/metrics | \
                 grep 'rushes_frames_received_total{.*} [1-9]'; do sleep 0.1; done"),
        ],
    },
    Scene {
        files: &["film.265"],
        steps: &[
            Start("rushes recv --from 5004 --codec h265 -o copy.265 --metrics 127.0.0.1:9464"),
            Run("curl http://127.0.0.1:9464/metrics"),
            Run(SEND_265),
        ],
    },
    Scene {
        files: &["film.265"],
        steps: &[
            Run("rushes keygen secret > secret"),
            Start("rushes recv --from 5004 --codec h265 -o copy.265 --zrtp --secret-file secret"),
            Run("rushes send film.265 --to 192.0.2.7:5004 --zrtp --secret-file secret"),
        ],
    },
    Scene {
        files: &["film.265"],
        steps: &[
            Start("rushes recv --from 5004 --codec h265 -o copy.265 --zrtp"),
            Run("rushes send film.265 --to 192.0.2.7:5004 --zrtp"),
        ],
    },
    Scene {
        files: &["film.265"],
        steps: &[
            // A receiver without the key, which is new.
            Serve("ffmpeg -v error -i udp://127.0.0.1:5004 -f null -"),
            Run("rushes send film.265 --to 192.0.2.7:5004 --srtp AES_CM_128_HMAC_SHA1_80 \
                 --sdp film.sdp"),
        ],
    },
    Scene {
        files: &["film.265"],
        steps: &[
            Run("rushes keygen AEAD_AES_128_GCM > key"),
            Start(
                "rushes recv --from 5004 --codec h265 -o copy.265 --srtp AEAD_AES_128_GCM \
                   --key-file key",
            ),
            Run("rushes send film.265 --to 192.0.2.7:5004 --srtp AEAD_AES_128_GCM --key-file key"),
        ],
    },
    Scene {
        files: &["film.265"],
        steps: &[
            Run("rushes send film.265 --to 192.0.2.7:5004 --srtp AEAD_AES_128_GCM --sdp film.sdp \
                 --dry-run"),
            Start("rushes recv --sdp film.sdp -o copy.265"),
            Run(
                "rushes send film.265 --to 192.0.2.7:5004 --srtp AEAD_AES_128_GCM --key-file film.sdp",
            ),
        ],
    },
    Scene {
        files: &["call.pcapng"],
        steps: &[
            Run("rushes inspect call.pcapng"),
            Run("rushes inspect call.pcapng --extract 1f2e3d4c -o film.265"),
        ],
    },
    // Another receiver stands for the engines.
    Scene {
        files: &["film.264"],
        steps: &[
            Run("rushes keygen AES_CM_128_HMAC_SHA1_80 > camera.key"),
            Start(
                "rushes recv --from 5004 --codec h264 -o copy.264 --srtp AES_CM_128_HMAC_SHA1_80 \
                   --key-file camera.key",
            ),
            Run("rushes send film.264 --to 192.0.2.7:5004 --srtp AES_CM_128_HMAC_SHA1_80 \
                 --key-file camera.key"),
        ],
    },
    Scene {
        files: &["film.264"],
        steps: &[
            Run("rushes send film.264 --to 192.0.2.7:5004 --sdp film.sdp --dry-run"),
            Start("rushes recv --sdp film.sdp -o copy.264"),
            Run("rushes send film.264 --to 192.0.2.7:5004"),
        ],
    },
    Scene {
        files: &["film.264"],
        steps: &[
            Start("rushes recv --from 5004 --codec h264 -o copy.264 --ssrc 1111"),
            Run(
                "rushes send film.264 --to 192.0.2.7:5004 --ssrc 1111 --feedback --recovery verbatim",
            ),
        ],
    },
    // The first five minutes.
    Scene { files: &[], steps: &[Run("rushes loopback")] },
    Scene {
        files: &[],
        steps: &[Run(MAKE_MP4), Start(RECV_MP4), Run("rushes send film.mp4 --to 127.0.0.1:5004")],
    },
    Scene {
        files: &[],
        steps: &[
            Run(MAKE_MP4),
            Start("rushes recv --from 5004 --codec h264 -o secret.mp4 --zrtp"),
            Run("rushes send film.mp4 --to 127.0.0.1:5004 --zrtp"),
        ],
    },
    Scene { files: &[], steps: &[Run("rushes man --dir man1"), Run("test -s man1/rushes.1")] },
    // Browsers: programs that are entered in the same way stand for them.
    Scene {
        files: &["film.mp4"],
        steps: &[
            Run(
                "ffmpeg -i film.mp4 -c:v libx264 -profile:v baseline -bf 0 -pix_fmt yuv420p -g 60 \
                 film.264",
            ),
            Run("ffmpeg -i film.mp4 -vn -c:a libopus film.opus"),
            Serve("rushes serve film.264 --audio film.opus --http 127.0.0.1:8080"),
            Run("curl --fail http://127.0.0.1:8080/ | grep '<title>Rushes'"),
            Run("rushes recv --whep http://192.0.2.7:8080/whep -o copy.mkv --duration 10s"),
        ],
    },
    Scene {
        files: &["film.264"],
        steps: &[
            Serve("rushes serve film.264 --http 127.0.0.1:8080"),
            Beside("rushes recv --whep http://192.0.2.7:8080/whep -o copy.264"),
            // It has the part of a file while the file is being written.
            Run("until test -s copy.264.part; do sleep 0.1; done"),
        ],
    },
    Scene {
        files: &[],
        steps: &[Run(
            "ffmpeg -f v4l2 -i /dev/video0 -c:v libx264 -tune zerolatency -pix_fmt yuv420p -g 30 -f h264 - | \
             rushes serve - --codec h264 --http 127.0.0.1:8080",
        )],
    },
    Scene {
        files: &["film.264", "film.opus"],
        steps: &[
            Run(MAKE_TOKEN),
            Serve(SERVE_TOKEN),
            Run("rushes send film.264 --audio film.opus --whip http://192.0.2.7:8080/whip \
                 --token-file token"),
        ],
    },
    Scene {
        files: &[],
        steps: &[
            Run(MAKE_TOKEN),
            Serve(SERVE_TOKEN),
            Run(
                "ffmpeg -f v4l2 -i /dev/video0 -c:v libx264 -tune zerolatency -pix_fmt yuv420p -g 30 -f h264 - | \
                 rushes send - --codec h264 --whip http://192.0.2.7:8080/whip --token-file token",
            ),
        ],
    },
    Scene {
        files: &["film.264"],
        steps: &[
            Serve("rushes serve --http 127.0.0.1:8080"),
            Run("rushes send film.264 --whip http://127.0.0.1:8080/whip"),
        ],
    },
    Scene {
        files: &["film.264"],
        steps: &[
            Serve("rushes serve -o published.mkv --http 127.0.0.1:8080"),
            Run("rushes send film.264 --whip http://127.0.0.1:8080/whip"),
        ],
    },
];

/// Streams between `rushes` and other programs.
pub(super) const PEERS: &[Scene] = &[
    Scene {
        files: &[],
        steps: &[
            Start(RECV_264),
            Run("gst-launch-1.0 -q v4l2src ! videoconvert ! x264enc tune=zerolatency \
                 key-int-max=60 byte-stream=true ! \
                 video/x-h264,stream-format=byte-stream,alignment=au ! fdsink | \
                 rushes send - --codec h264 --to 192.0.2.7:5004"),
        ],
    },
    Scene {
        files: &["film.mp4"],
        steps: &[
            Run("rushes send film.mp4 --to 192.0.2.7:5004 --sdp film.sdp --dry-run"),
            Serve("ffplay -protocol_whitelist file,udp,rtp film.sdp"),
            Run("rushes send film.mp4 --to 192.0.2.7:5004"),
            Run("until grep 'Video: h264' 1.err; do sleep 0.1; done"),
        ],
    },
    Scene {
        files: &["film.265"],
        steps: &[
            Run("rushes send film.265 --to 192.0.2.7:5004 --sdp film.sdp --dry-run"),
            Serve("ffplay -protocol_whitelist file,udp,rtp film.sdp"),
            Run(SEND_265),
            Run("until grep 'Video: hevc' 1.err; do sleep 0.1; done"),
        ],
    },
    Scene {
        files: &["film.mp4"],
        steps: &[
            Start(RECV_264),
            Run(
                "ffmpeg -re -i film.mp4 -an -c copy -f rtp -rtpflags send_bye rtp://192.0.2.7:5004",
            ),
        ],
    },
    Scene {
        files: &["film.264"],
        steps: &[
            Run(
                "ffmpeg -v error -i film.264 -c copy -f rtp -sdp_file camera.sdp rtp://192.0.2.7:5004",
            ),
            Start("rushes recv --sdp camera.sdp -o camera.264"),
            Run("ffmpeg -v error -re -i film.264 -c copy -f rtp -rtpflags send_bye \
                 rtp://192.0.2.7:5004"),
        ],
    },
    Scene {
        files: &["film.264"],
        steps: &[
            Serve(
                "gst-launch-1.0 udpsrc port=5004 caps='application/x-rtp,media=(string)video,\
                   clock-rate=(int)90000,encoding-name=(string)H264,payload=(int)96' ! \
                   rtpjitterbuffer ! rtph264depay ! avdec_h264 ! autovideosink",
            ),
            Run("rushes send film.264 --to 192.0.2.7:5004"),
            Run("until test -s seen.yuv; do sleep 0.1; done"),
        ],
    },
];

const SERVE_FILM: &str = "rushes texture serve film.y4m --listen 7000";
const VIEW_COPY: &str =
    "rushes texture view 192.0.2.7:7000 --output copy.y4m --every-frame --transport tcp";
const VIEW_NULL: &str = "rushes texture view 192.0.2.7:7000 --null --stats-interval 1s";

/// Texture video.
pub(super) const TEXTURE: &[Scene] = &[
    Scene {
        files: &[],
        steps: &[
            Serve("rushes texture serve pattern:640x360@30 --listen 7000 --format bc1"),
            Run("rushes texture view 127.0.0.1:7000 --null --duration 2s"),
        ],
    },
    Scene {
        files: &[],
        steps: &[
            Serve("rushes texture serve pattern:3840x2160@60 --listen 7000 --format bc1"),
            Run("rushes texture view 192.0.2.7:7000 --null --frames 5"),
        ],
    },
    Scene {
        files: &["film.y4m"],
        steps: &[
            Serve("rushes texture serve film.y4m --listen 7000 --format ycocg-bc3 --loop"),
            Run("rushes texture view 192.0.2.7:7000 --null --frames 5"),
        ],
    },
    Scene {
        files: &[],
        steps: &[
            Start(
                "ffmpeg -f v4l2 -i /dev/video0 -pix_fmt yuv420p -f yuv4mpegpipe - | \
                   rushes texture serve - --listen 7000",
            ),
            Run(VIEW_NULL),
        ],
    },
    Scene {
        files: &[],
        steps: &[
            Run("mkfifo camera.fifo"),
            Beside(
                "ffmpeg -f v4l2 -i /dev/video0 -vf scale=1920x1080 -f rawvideo -pix_fmt rgba -y \
                    camera.fifo",
            ),
            Start(
                "rushes texture serve camera.fifo --size 1920x1080 --input-format rgba --fps 60 \
                   --listen 7000",
            ),
            Run(VIEW_NULL),
        ],
    },
    Scene { files: &["film.y4m"], steps: &[Serve(SERVE_FILM), Run(VIEW_COPY)] },
    Scene {
        files: &["film.y4m"],
        steps: &[
            Serve(SERVE_FILM),
            Serve("rushes texture view 192.0.2.7:7000 --output - --quiet | ffplay -"),
            Run("until grep 'Video: rawvideo' 1.err; do sleep 0.1; done"),
        ],
    },
    Scene {
        files: &["film.y4m"],
        steps: &[
            Serve("rushes texture serve film.y4m --listen 7000 --zrtp"),
            Run("rushes texture view 192.0.2.7:7000 --output copy.y4m --zrtp"),
        ],
    },
    Scene {
        files: &[],
        steps: &[
            Run("rushes texture encode pattern:1920x1080@60 film.ktx2 --frames 60 \
                 --format ycocg-bc3 --psnr"),
            Run("rushes texture decode film.ktx2 film.y4m"),
            Run("rushes texture decode film.ktx2 frame_%05d.png --frames 10"),
        ],
    },
];

/// Scenes that need a screen and a graphics driver.
pub(super) const SCREEN: &[Scene] = &[
    Scene {
        files: &[],
        steps: &[
            Serve("rushes texture serve pattern --listen 7000 --format etc2 --gpu"),
            Run("rushes texture view 192.0.2.7:7000 --null --frames 5"),
        ],
    },
    Scene {
        files: &[],
        steps: &[
            Serve("rushes texture serve pattern:640x360@30 --listen 7000 --metrics 9464"),
            Serve("rushes texture view 192.0.2.7:7000 --window"),
            Run("until xdotool search --name 127.0.0.1:7000; do sleep 0.1; done"),
            Run("until curl -s http://127.0.0.1:9464/metrics | \
                 grep 'rushes_frames_sent_total{.*} [0-9][0-9]'; do sleep 0.1; done"),
        ],
    },
    Scene {
        files: &[],
        steps: &[
            Serve("rushes texture serve pattern:640x360@30 --listen 7000"),
            Serve("rushes texture view 192.0.2.7:7000 --window --max-size window"),
            // The window takes the size of its first picture, which may come after this.
            Run("until xdotool search --name 127.0.0.1:7000 windowsize 320 180 && \
                 grep 'pictures are 320×180 now' 1.err; do sleep 0.5; done"),
        ],
    },
    Scene {
        files: &["film.265"],
        steps: &[
            Start("rushes recv --from 5004 --codec h265 --window"),
            Run("rushes send film.265 --to 192.0.2.7:5004 --loop 3"),
        ],
    },
];

const BUILDS: &str = "builds for minutes";
const TLS: &str = "crates/whip/tests/http/tls.rs";

/// Commands that are not run here.
pub(super) const ELSEWHERE: &[Elsewhere] = &[
    Elsewhere {
        command: "rushes serve --http 0.0.0.0:8443 --tls-certificate chain.pem --tls-key key.pem \
                  --token-file token",
        reason: "needs a certificate",
        proof: Some((TLS, "fn a_session_is_opened_over_https")),
    },
    Elsewhere {
        command: "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
                  -subj /CN=studio -addext subjectAltName=IP:192.0.2.7 \
                  -keyout key.pem -out chain.pem",
        reason: "needs OpenSSL",
        proof: Some((TLS, "fn a_named_certificate_may_be_an_authority")),
    },
    Elsewhere {
        command: "mkfifo rates",
        reason: "prepares the next command",
        proof: Some(("crates/cli/tests/program/rate.rs", "mkfifo rates")),
    },
    Elsewhere {
        command: "ffmpeg -v error -f v4l2 -i /dev/video0 -vf scale=640:360 -pix_fmt yuv420p \
                  -f rawvideo - | python3 follow_rate.py rates 640x360 30 | \
                  rushes send - --codec h264 --to 192.0.2.7:5004 --max-rate 8M \
                  --target-rate-to rates",
        reason: "needs a camera",
        proof: Some(("crates/cli/tests/program/rate.rs", "follow_rate.py")),
    },
    Elsewhere {
        command: "mkfifo requests",
        reason: "prepares the next command",
        proof: Some(("crates/cli/tests/program/key_frames.rs", "mkfifo")),
    },
    Elsewhere {
        command: "python3 ask_encoder.py requests | rushes serve - --codec h264 \
                  --http 127.0.0.1:8080 --key-frame-requests-to requests",
        reason: "needs the script, and GStreamer for Python",
        proof: Some(("crates/cli/tests/program/key_frames.rs", "ask_encoder.py")),
    },
    Elsewhere {
        command: "cargo run --release -p rushes-cli -- loopback",
        reason: BUILDS,
        proof: Some((".ci/run", "rushes\" loopback")),
    },
    Elsewhere {
        command: "cargo run --release -p rushes-gpu --example cube",
        reason: BUILDS,
        proof: Some((".ci/run", "examples/cube")),
    },
    Elsewhere {
        command: "cargo install --path crates/cli",
        reason: BUILDS,
        proof: Some(("release/check", "cargo install --locked --path crates/cli")),
    },
    Elsewhere {
        command: "cargo install --path crates/cli --features bench,window",
        reason: BUILDS,
        proof: Some(("crates/cli/Cargo.toml", "features = [\"bench\", \"webrtc\", \"window\"]")),
    },
    Elsewhere {
        command: "apt install libipsec-mb1",
        reason: "needs root",
        proof: Some((".ci/peers", "libipsec-mb-dev")),
    },
    Elsewhere {
        command: "cargo install --path crates/cli --features ipsec-mb",
        reason: BUILDS,
        proof: Some((".ci/run", ".ci/ciphers rushes-crypto")),
    },
    Elsewhere {
        command: "bindings/capi/install --gpu --prefix ~/rushes",
        reason: "takes minutes; what it installs is built with the tests",
        proof: Some(("bindings/capi/Cargo.toml", "features = [\"gpu\"]")),
    },
    Elsewhere {
        command: "PKG_CONFIG_PATH=~/rushes/lib/pkgconfig make -C bindings/capi/examples",
        reason: "is run with the installed library of the tests",
        proof: Some(("bindings/capi/tests/package/examples.rs", "PKG_CONFIG_PATH")),
    },
    Elsewhere {
        command: "rushes texture serve pattern:1280x720@60 --listen 127.0.0.1:7000",
        reason: "is the server of the next command",
        proof: Some(("bindings/capi/tests/package/graphics.rs", "TextureServer::serve")),
    },
    Elsewhere {
        command: "bindings/capi/examples/texture_sdl 127.0.0.1:7000",
        reason: "is run with the installed library of the tests",
        proof: Some(("bindings/capi/tests/package/graphics.rs", "texture_sdl")),
    },
    Elsewhere {
        command: "bindings/capi/examples/texture_vulkan 127.0.0.1:7000",
        reason: "is run with the installed library of the tests",
        proof: Some(("bindings/capi/tests/package/graphics.rs", "texture_vulkan")),
    },
    Elsewhere {
        command: "bindings/capi/examples/texture_scene 127.0.0.1:7001",
        reason: "is run with the installed library of the tests",
        proof: Some(("bindings/capi/tests/package/graphics.rs", "texture_scene")),
    },
    Elsewhere {
        command: "python bindings/python/examples/texture_gstreamer.py 127.0.0.1:7000 \
                  videoconvert ! autovideosink",
        reason: "needs the package of Python, and GStreamer for Python",
        proof: Some(("bindings/python/tests/test_examples.py", "texture_gstreamer.py")),
    },
    Elsewhere {
        command: "python bindings/python/examples/texture_gstreamer.py 127.0.0.1:7000 \
                  videoconvert ! x264enc tune=zerolatency ! mp4mux ! filesink location=copy.mp4",
        reason: "needs the package of Python, and GStreamer for Python",
        proof: Some(("bindings/python/tests/test_examples.py", "texture_gstreamer.py")),
    },
    Elsewhere {
        command: "bindings/capi/install --prefix ~/rushes",
        reason: BUILDS,
        proof: Some(("bindings/capi/tests/package/rig.rs", "install")),
    },
    Elsewhere {
        command: "export PKG_CONFIG_PATH=~/rushes/lib/pkgconfig",
        reason: "needs what is installed",
        proof: Some(("bindings/capi/tests/package/examples.rs", "PKG_CONFIG_PATH")),
    },
    Elsewhere {
        command: "c++ -std=c++17 program.cpp $(pkg-config --cflags --libs rushes) \
                  -Wl,-rpath,$HOME/rushes/lib",
        reason: "needs what is installed",
        proof: Some(("bindings/capi/examples/Makefile", "pkg-config --cflags")),
    },
    Elsewhere {
        command: "pip install ./bindings/python",
        reason: BUILDS,
        proof: Some(("release/check", "pip install")),
    },
    Elsewhere {
        command: "python bindings/python/examples/stream_file.py \
                  vectors/media/hevc_192x128_90f_tiny_nals.265",
        reason: "needs the package of Python",
        proof: Some(("bindings/python/tests/test_package.py", "stream_file.py")),
    },
    Elsewhere {
        command: "ffmpeg -rtsp_transport tcp -i rtsp://192.0.2.7:8554/camera -c copy copy.264",
        reason: "needs MediaMTX",
        proof: None,
    },
    Elsewhere {
        command: "rushes send film.264 --whip http://192.0.2.7:7880/whip/v1 --token-file room.token",
        reason: "needs LiveKit",
        proof: None,
    },
    Elsewhere {
        command: "rushes send film.264 --whip http://192.0.2.7:8889/camera/whip",
        reason: "needs MediaMTX",
        proof: None,
    },
    Elsewhere {
        command: "mpv --demuxer-lavf-o=protocol_whitelist=[file,udp,rtp] film.sdp",
        reason: "needs mpv",
        proof: None,
    },
    Elsewhere {
        command: "cvlc film.mp4 --no-sout-audio --sout \
                  '#rtp{dst=192.0.2.7,port-video=5004}' vlc://quit",
        reason: "needs VLC",
        proof: None,
    },
];
