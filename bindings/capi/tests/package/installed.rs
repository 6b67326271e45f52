//! The installed files.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::rig::{folder, have, home, install, prefix, run};

/// The major and minor version, which together determine compatibility.
fn api_version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    version.rsplit_once('.').unwrap().0.to_owned()
}

#[test]
fn every_text_names_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    let read = |name: &str| fs::read_to_string(home().join(name)).unwrap();
    assert!(read("rushes.map").contains(&format!("\nRUSHES_{} {{\n", api_version())));
    assert!(read("install").contains(&format!("lib/librushes.so.{version} ")));
    let page = read("../../docs/from-c++.md");
    assert!(page.contains(&format!("`lib/librushes.so.{version}`")));
    assert!(page.contains(&format!("`RUSHES_{}`", api_version())));
    assert!(page.contains(&format!("find_package(rushes {})", api_version())));
}

/// The functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string(home().join("include/rushes.h")).unwrap();
    let lines = header.lines().filter(|line| !line.starts_with("//") && !line.starts_with(' '));
    let names = lines.filter_map(|line| line.split_once('(')?.0.rsplit(['*', ' ']).next());
    names.filter(|name| name.starts_with("rushes_")).map(ToOwned::to_owned).collect()
}

#[test]
fn the_shared_library_exports_exactly_the_declared_functions() {
    if !have(&["cc", "nm", "readelf"]) {
        return;
    }
    let library = prefix().join("lib/librushes.so");
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(&library));
    let symbols = symbols.lines().filter_map(|line| line.rsplit(' ').next());
    let since = format!("RUSHES_{}", api_version());
    let shown: BTreeSet<_> = symbols.filter(|symbol| *symbol != since).collect();
    let wanted: BTreeSet<_> =
        declared().into_iter().map(|name| format!("{name}@@{since}")).collect();
    assert!(wanted.len() > 100);
    assert_eq!(shown, wanted.iter().map(String::as_str).collect());
    let dynamic = run(Command::new("readelf").arg("-d").arg(&library));
    let soname = format!("Library soname: [librushes.so.{}]", api_version());
    assert!(dynamic.contains(&soname), "{dynamic}");
}

#[test]
fn the_headers_stand_alone() {
    if !have(&["cc", "c++"]) {
        return;
    }
    let headers = home().join("include");
    for (compiler, language, standard, header) in [
        ("cc", "c", "c99", "rushes.h"),
        ("cc", "c", "c11", "rushes.h"),
        ("c++", "c++", "c++17", "rushes.h"),
        ("c++", "c++", "c++17", "rushes.hpp"),
        ("c++", "c++", "c++20", "rushes.hpp"),
    ] {
        let source = folder(&format!("alone-{standard}-{header}")).join("alone");
        fs::write(&source, format!("#include <{header}>\n#include <{header}>\n")).unwrap();
        let mut command = Command::new(compiler);
        command.args(["-x", language]).arg(format!("-std={standard}")).arg("-I").arg(&headers);
        command.args(["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fsyntax-only"]);
        run(command.arg(&source));
    }
}

#[test]
fn an_installed_tree_can_be_moved_and_lie_anywhere() {
    if !have(&["cc", "pkg-config"]) {
        return;
    }
    let place = folder("moved");
    let root = place.join("root");
    let root = root.to_str().unwrap();
    install(&["--destdir", root, "--prefix", "/opt/media tools", "--libdir", "lib/any"]);
    let new = place.join("new");
    fs::rename(place.join("root/opt/media tools"), &new).unwrap();
    let left: Vec<_> =
        fs::read_dir(&new).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "more than include and lib: {left:?}");
    let query = |question: &str| {
        let mut command = Command::new("pkg-config");
        command.env("PKG_CONFIG_PATH", new.join("lib/any/pkgconfig")).args([question, "rushes"]);
        run(&mut command).trim().to_owned()
    };
    assert_eq!(query("--modversion"), env!("CARGO_PKG_VERSION"));
    let headers = query("--variable=includedir");
    assert!(fs::metadata(format!("{headers}/rushes.hpp")).is_ok(), "{headers}");
    let libraries = query("--variable=libdir");
    let library = format!("{libraries}/librushes.so.{}", api_version());
    assert!(fs::metadata(&library).is_ok(), "{library}");
}

#[test]
fn cmake_takes_the_versions_that_this_one_is() {
    if !have(&["cc", "cmake"]) {
        return;
    }
    let script = folder("versions").join("query.cmake");
    let file = prefix().join("lib/cmake/rushes/rushes-config-version.cmake");
    let content =
        format!("include(\"{}\")\nmessage(\"${{PACKAGE_VERSION_COMPATIBLE}}\")\n", file.display());
    fs::write(&script, content).unwrap();
    let answer = |wanted: &str| {
        let mut command = Command::new("cmake");
        command.arg(format!("-DPACKAGE_FIND_VERSION={wanted}"));
        let parts = wanted.split('.').filter(|part| !part.is_empty()).count();
        command.arg(format!("-DPACKAGE_FIND_VERSION_COUNT={parts}")).arg("-P").arg(&script);
        run(&mut command).trim().to_owned()
    };
    let numbers: Vec<u32> =
        env!("CARGO_PKG_VERSION").split('.').map(|number| number.parse().unwrap()).collect();
    let [major, minor, patch] = numbers[..] else { panic!("a version has three numbers") };
    let same =
        [String::new(), major.to_string(), api_version(), env!("CARGO_PKG_VERSION").to_owned()];
    for wanted in same {
        assert_eq!(answer(&wanted), "TRUE", "{wanted:?}");
    }
    let other = [
        (major + 1).to_string(),
        format!("{major}.{}", minor + 1),
        format!("{major}.{minor}.{}", patch + 1),
    ];
    for wanted in other {
        assert_eq!(answer(&wanted), "FALSE", "{wanted:?}");
    }
}

#[cfg(unix)]
#[test]
fn cmake_finds_the_prefix_through_a_link() {
    if !have(&["cc", "cmake"]) {
        return;
    }
    let place = folder("linked");
    std::os::unix::fs::symlink(prefix().join("lib"), place.join("lib")).unwrap();
    let project = "cmake_minimum_required(VERSION 3.16)\nproject(linked C)\n\
        find_package(rushes REQUIRED)\n\
        get_target_property(folder rushes::rushes INTERFACE_INCLUDE_DIRECTORIES)\n\
        get_target_property(system rushes::static INTERFACE_LINK_LIBRARIES)\n\
        list(LENGTH system count)\n\
        message(\"include=${folder};count=${count}\")\n";
    fs::write(place.join("CMakeLists.txt"), project).unwrap();
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(&place).arg("-B").arg(place.join("build"));
    cmake.arg(format!("-Drushes_DIR={}", place.join("lib/cmake/rushes").display()));
    let output = run(&mut cmake);
    let real = fs::canonicalize(prefix()).unwrap();
    // The archive is given explicitly, so the libraries come from the installer's own list.
    let wanted = format!("include={};count=7", real.join("include").display());
    assert!(output.contains(&wanted), "{output}");
}

#[test]
fn the_installer_names_the_error_and_leaves_nothing() {
    let place = folder("refused");
    let refused = |arguments: &[&str], variable: Option<(&str, &str)>| {
        let mut command = Command::new(home().join("install"));
        command.args(arguments).current_dir(&place).envs(variable);
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&["--colour"], None).contains("no such option: --colour"));
    assert!(refused(&["--prefix"], None).contains("--prefix needs a value"));
    assert!(refused(&["--libdir", "../lib"], None).contains("--libdir must be a folder"));
    let stderr = refused(&["--prefix", "here"], Some(("CC", "no-such-compiler")));
    assert!(stderr.contains("no C compiler: no-such-compiler"), "{stderr}");
    if have(&["cc"]) {
        let stderr = refused(&["--prefix", "here", "--archive", "nothing.a"], None);
        assert!(stderr.contains("no such archive"), "{stderr}");
        let here = fs::read_dir(place.join("here")).unwrap().count();
        assert_eq!(here, 0, "a partial installation was left behind");
    }
    let help = run(Command::new(home().join("install")).arg("--help"));
    assert!(help.contains("--destdir"));
}
