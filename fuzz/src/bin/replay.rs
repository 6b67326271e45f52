//! Runs every target with its stored inputs, its seeds, and small random changes of both: no
//! instrumented build is needed. The random numbers are the same in each run, so that the same
//! command finds a failure again.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{env, fs, io, panic, thread};

use rushes_fuzz::corpus;
use rushes_fuzz::targets::{TARGETS, Target};

const USAGE: &str = "\
replay [--seconds N] [TARGET...]  runs targets, all by default, N seconds each (default 1),
                                  and with 300 changed inputs at least
replay --file FILE TARGET         runs one target with the octets of a file
replay --unpack FOLDER            writes stored inputs and seeds into FOLDER/TARGET/, for cargo fuzz
replay --pack FOLDER              stores the inputs in FOLDER/TARGET/ in place of the stored ones";

/// The least number of changed inputs of a target, however slow the machine is.
const CHANGED_MIN: u64 = 300;

/// Maximum length of a changed input.
const LEN_MAX: usize = 4096;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match &arguments[..] {
        ["--help" | "-h", ..] => {
            println!("{USAGE}");
            Ok(())
        }
        ["--unpack", folder] => unpack(Path::new(folder)),
        ["--pack", folder] => pack(Path::new(folder)),
        ["--file", file, name] => chosen(&[name]).and_then(|targets| {
            (targets[0].run)(&fs::read(file)?);
            Ok(())
        }),
        ["--seconds", seconds, names @ ..] => match seconds.parse() {
            Ok(seconds) => replay(seconds, names),
            Err(_) => Err(io::Error::other(format!("{seconds} is not a number of seconds"))),
        },
        names => replay(1.0, names),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("replay: {error}\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn chosen(names: &[&str]) -> io::Result<Vec<&'static Target>> {
    let find = |name: &&str| {
        let target = TARGETS.iter().find(|target| target.name == *name);
        target.ok_or_else(|| io::Error::other(format!("there is no target {name}")))
    };
    if names.is_empty() { Ok(TARGETS.iter().collect()) } else { names.iter().map(find).collect() }
}

thread_local! {
    /// The target that the thread runs, and its input.
    static CURRENT: RefCell<(&'static str, Vec<u8>)> = const { RefCell::new(("", Vec::new())) };
}

/// Runs targets, as many at once as there are cores.
fn replay(seconds: f64, names: &[&str]) -> io::Result<()> {
    check_programs()?;
    save_input_on_panic();
    println!("{:24} {:>6} {:>6} {:>9}", "target", "stored", "seeds", "runs");
    let left = Mutex::new(chosen(names)?.into_iter());
    let next = || left.lock().expect("no thread panics with it").next();
    let work = || std::iter::from_fn(&next).try_for_each(|target| replay_one(target, seconds));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
        })
    })
}

fn replay_one(target: &Target, seconds: f64) -> io::Result<()> {
    let (stored, seeds) = (corpus::load(target.name)?, (target.seeds)());
    let counts = (stored.len(), seeds.len());
    let inputs: Vec<_> = stored.into_iter().chain(seeds).collect();
    let run = |octets: Vec<u8>| {
        CURRENT.set((target.name, octets.clone()));
        (target.run)(&octets);
    };
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let mut runs = 0_u64;
    for octets in &inputs {
        run(octets.clone());
        runs += 1;
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let least = runs + CHANGED_MIN;
    while runs < least || Instant::now() < until {
        run(changed(&inputs, &mut random));
        runs += 1;
    }
    println!("{:24} {:>6} {:>6} {runs:>9}", target.name, counts.0, counts.1);
    Ok(())
}

/// Checks that the programs of cargo fuzz have the names of the targets and run them: they are built for
/// campaigns only.
fn check_programs() -> io::Result<()> {
    let manifest = include_str!("../../Cargo.toml");
    let named = manifest.lines().filter_map(|line| line.strip_prefix("path = \"fuzz_targets/"));
    let mut named: Vec<_> = named.map(|rest| rest.trim_end_matches(".rs\"")).collect();
    named.sort_unstable();
    if !named.iter().eq(TARGETS.iter().map(|target| &target.name)) {
        let text = "the programs of Cargo.toml and the table of targets differ";
        return Err(io::Error::other(text));
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz_targets");
    for target in TARGETS {
        let file = folder.join(target.name).with_extension("rs");
        let want = format!(
            "#![no_main] libfuzzer_sys::fuzz_target!(|octets: &[u8]| \
             rushes_fuzz::targets::run({:?}, octets));",
            target.name
        );
        if words(&fs::read_to_string(&file)?) != words(&want) {
            return Err(io::Error::other(format!("{} does not run its target", file.display())));
        }
    }
    Ok(())
}

/// Returns a text without white space, however long its lines are.
fn words(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Writes the current input to a file if a target panics.
fn save_input_on_panic() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        print(info);
        let input = CURRENT.take();
        if input.0.is_empty() {
            return;
        }
        let file = env::temp_dir().join(format!("rushes-fuzz-{}", input.0));
        if fs::write(&file, &input.1).is_ok() {
            eprintln!("to repeat: replay --file {} {}", file.display(), input.0);
        }
    }));
}

/// Deterministic random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as usize % limit.max(1)
    }
}

/// Returns one of the inputs, with a few small changes.
fn changed(inputs: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let any = |random: &mut Random| inputs.get(random.below(inputs.len())).map_or(&[][..], |it| it);
    let mut octets = any(random).to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(octets.len() + 1);
        match random.below(6) {
            0 | 1 if at < octets.len() => octets[at] ^= 1 << random.below(8),
            2 if at < octets.len() => octets[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            3 => octets.truncate(at),
            4 => {
                let end = (at + random.below(16)).min(octets.len());
                octets.drain(at..end);
            }
            _ => {
                let other = any(random);
                let from = random.below(other.len() + 1);
                let end = (from + random.below(64)).min(other.len());
                octets.splice(at..at, other[from..end].iter().copied());
            }
        }
    }
    octets.truncate(LEN_MAX);
    octets
}

fn unpack(folder: &Path) -> io::Result<()> {
    for target in TARGETS {
        let folder: PathBuf = folder.join(target.name);
        fs::create_dir_all(&folder)?;
        let inputs = corpus::load(target.name)?.into_iter().chain((target.seeds)());
        for (n, input) in inputs.enumerate() {
            fs::write(folder.join(format!("stored-{n:05}")), input)?;
        }
    }
    Ok(())
}

fn pack(folder: &Path) -> io::Result<()> {
    for target in TARGETS {
        let mut inputs = Vec::new();
        for entry in fs::read_dir(folder.join(target.name))? {
            inputs.push(fs::read(entry?.path())?);
        }
        let (count, octets) = (inputs.len(), inputs.iter().map(Vec::len).sum::<usize>());
        corpus::save(target.name, inputs)?;
        println!("{:24} {count:>6} inputs {octets:>9} octets", target.name);
    }
    Ok(())
}
