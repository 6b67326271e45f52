//! The C++ of README and the guide, compiled.

use std::fs;
use std::process::Command;

use crate::rig::{folder, have, home, run};

const PAGES: [&str; 4] =
    ["README.md", "docs/install.md", "docs/from-c++.md", "docs/coming-from-uvgrtp.md"];

/// What parts of programs take from the rest of theirs.
const GIVEN: &str = "rushes::media_stream &stream, const std::uint8_t *data, std::size_t len";

/// The pieces of C++ in all pages, but for those of uvgRTP.
fn pieces() -> Vec<String> {
    let read = |page: &str| fs::read_to_string(home().join("../..").join(page)).unwrap();
    let texts = PAGES.map(read);
    let blocks = texts.iter().flat_map(|text| text.split("```cpp\n").skip(1));
    let code = blocks.map(|block| block.split("```").next().unwrap().to_owned());
    code.filter(|code| !code.contains("uvgrtp::")).collect()
}

/// A program of a piece: whole, or a part as the body of a function.
fn program(piece: &str) -> String {
    if piece.contains("int main") {
        return piece.to_owned();
    }
    let (includes, body): (Vec<_>, Vec<_>) =
        piece.lines().partition(|line| line.starts_with("#include"));
    format!(
        "#include <rushes.hpp>\n#include <iostream>\n{}\n\
         void use(const std::uint8_t *, std::size_t);\n\
         void piece({GIVEN}) {{ {{\n{}\n}} (void)stream, (void)data, (void)len; }}\n",
        includes.join("\n"),
        body.join("\n"),
    )
}

#[test]
fn every_piece_of_the_pages_compiles() {
    if !have(&["c++"]) {
        return;
    }
    let pieces = pieces();
    assert!(pieces.len() >= 6, "{pieces:?}");
    let place = folder("pages");
    std::thread::scope(|scope| {
        for (number, piece) in pieces.iter().enumerate() {
            let source = place.join(format!("{number}.cpp"));
            scope.spawn(move || {
                fs::write(&source, program(piece)).unwrap();
                let mut compiler = Command::new("c++");
                compiler.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"]);
                run(compiler.arg(home().join("include")).arg(&source));
            });
        }
    });
}
