//! The library loaded, its structures, and every call of it: the only unsafe code.
//!
//! The structures are hand-written parts of `intel-ipsec-mb.h`, the same in all versions that
//! [`Version::is_known`] accepts; a test compares them with the installed header.

use std::cell::OnceCell;
use std::ffi::{CStr, c_int, c_void};
use std::fmt;
use std::mem::{offset_of, transmute};
use std::ptr::NonNull;
use std::sync::OnceLock;

use zeroize::Zeroize;

use crate::{BLOCK_LEN, NONCE_LEN, TAG_LEN, Unavailable, Version};

/// Names of the library, the newest first.
const NAMES: [&CStr; 2] = [c"libIPSec_MB.so.2", c"libIPSec_MB.so.1"];

/// `IMB_FEATURE_AVX512_SKX`, `_VAES` and `_VPCLMULQDQ`.
const PROCESSOR: u64 = 0b11_1111_1000_0000;

/// `IMB_FEATURE_SAFE_DATA`: keys are erased from registers and stacks.
const ERASES: u64 = 1 << 14;

/// `IMB_FEATURE_SELF_TEST` and `_PASS`: the library tests itself when it starts, and has passed.
const SELF_TEST: [u64; 2] = [1 << 20, 1 << 21];

/// `IMB_CIPHER_CNTR`.
const COUNTER_MODE: u32 = 2;

/// `IMB_DIR_ENCRYPT`.
const ENCRYPT: u32 = 1;

/// `IMB_AUTH_NULL`.
const NO_HASH: u32 = 8;

/// Maximum octets of one call: less than the limits of AES-GCM and of a counter of 32 bits.
const LEN_MAX: usize = 1 << 30;

/// `gcm_key_data`, with room to spare: it has at most 1 280 octets in the known versions.
#[repr(C, align(64))]
struct GcmKey([u64; 256]);

/// `gcm_context_data`, with room to spare: it has 88 octets in the known versions.
#[repr(C, align(64))]
struct GcmContext([u64; 16]);

/// The round keys of AES: at most 15 of 16 octets.
#[repr(C, align(64))]
struct RoundKeys([u64; 32]);

type GetVersion = unsafe extern "C" fn() -> u32;
type Allocate = unsafe extern "C" fn(u64) -> *mut Manager;
type Start = unsafe extern "C" fn(*mut Manager, *mut c_int);
type Free = unsafe extern "C" fn(*mut Manager);
type ExpandKey = unsafe extern "C" fn(*const c_void, *mut c_void, *mut c_void);
type ExpandGcmKey = unsafe extern "C" fn(*const c_void, *mut GcmKey);
type GcmInit = unsafe extern "C" fn(*const GcmKey, *mut GcmContext, *const u8, *const u8, u64);
type GcmUpdate = unsafe extern "C" fn(*const GcmKey, *mut GcmContext, *mut u8, *const u8, u64);
type GcmFinalize = unsafe extern "C" fn(*const GcmKey, *mut GcmContext, *mut u8, u64);
type GcmWhole = unsafe extern "C" fn(
    *const GcmKey,
    *mut GcmContext,
    *mut u8,
    *const u8,
    u64,
    *const u8,
    *const u8,
    u64,
    *mut u8,
    u64,
);
type CipherBurst = unsafe extern "C" fn(*mut Manager, *mut Job, u32, u32, u32, u32) -> u32;

/// The functions of one operation for keys of 128, 192 and 256 bits.
type ForKeys<F> = [Option<F>; 3];

/// The first fields of `IMB_MGR`.
#[repr(C)]
struct Manager {
    flags: u64,
    features: u64,
    reserved: [u64; 5],
    used_arch: u32,
    error: c_int,
    jobs: [usize; 6],
    expand_key: ForKeys<ExpandKey>,
    hashes: [usize; 15],
    gcm_encrypt: ForKeys<GcmWhole>,
    gcm_decrypt: ForKeys<GcmWhole>,
    gcm_init: ForKeys<GcmInit>,
    gcm_encrypt_update: ForKeys<GcmUpdate>,
    gcm_decrypt_update: ForKeys<GcmUpdate>,
    gcm_encrypt_finalize: ForKeys<GcmFinalize>,
    gcm_decrypt_finalize: ForKeys<GcmFinalize>,
    gcm_precompute: [usize; 3],
    expand_gcm_key: ForKeys<ExpandGcmKey>,
    others: [usize; 64],
    submit_cipher_burst: Option<CipherBurst>,
}

const _: () = {
    assert!(offset_of!(Manager, submit_cipher_burst) == 984);
    assert!(offset_of!(Job, order) == 144 && size_of::<Job>() == 256);
};

/// Expressions of C about the header, and what they must be equal to.
#[doc(hidden)]
pub const LAYOUT: [(&str, usize); 30] = [
    ("offsetof(IMB_MGR, features)", offset_of!(Manager, features)),
    ("offsetof(IMB_MGR, imb_errno)", offset_of!(Manager, error)),
    ("offsetof(IMB_MGR, keyexp_128)", offset_of!(Manager, expand_key)),
    ("offsetof(IMB_MGR, gcm128_enc)", offset_of!(Manager, gcm_encrypt)),
    ("offsetof(IMB_MGR, gcm128_dec)", offset_of!(Manager, gcm_decrypt)),
    ("offsetof(IMB_MGR, gcm128_init)", offset_of!(Manager, gcm_init)),
    ("offsetof(IMB_MGR, gcm128_enc_update)", offset_of!(Manager, gcm_encrypt_update)),
    ("offsetof(IMB_MGR, gcm128_enc_finalize)", offset_of!(Manager, gcm_encrypt_finalize)),
    ("offsetof(IMB_MGR, gcm128_pre)", offset_of!(Manager, expand_gcm_key)),
    ("offsetof(IMB_MGR, gcm256_pre)", offset_of!(Manager, others) - 8),
    ("offsetof(IMB_MGR, submit_cipher_burst)", offset_of!(Manager, submit_cipher_burst)),
    ("offsetof(IMB_JOB, enc_keys)", offset_of!(Job, encryption_key)),
    ("offsetof(IMB_JOB, key_len_in_bytes)", offset_of!(Job, key_len)),
    ("offsetof(IMB_JOB, src)", offset_of!(Job, source)),
    ("offsetof(IMB_JOB, dst)", offset_of!(Job, destination)),
    ("offsetof(IMB_JOB, cipher_start_src_offset_in_bytes)", offset_of!(Job, source_offset)),
    ("offsetof(IMB_JOB, msg_len_to_cipher_in_bytes)", offset_of!(Job, len)),
    ("offsetof(IMB_JOB, iv)", offset_of!(Job, iv)),
    ("offsetof(IMB_JOB, iv_len_in_bytes)", offset_of!(Job, iv_len)),
    ("offsetof(IMB_JOB, cipher_mode)", offset_of!(Job, cipher)),
    ("offsetof(IMB_JOB, hash_alg)", offset_of!(Job, hash)),
    ("IMB_CIPHER_CNTR", COUNTER_MODE as usize),
    ("IMB_DIR_ENCRYPT", ENCRYPT as usize),
    ("IMB_AUTH_NULL", NO_HASH as usize),
    ("IMB_FEATURE_SAFE_DATA", ERASES as usize),
    ("IMB_FEATURE_SELF_TEST", SELF_TEST[0] as usize),
    ("IMB_FEATURE_SELF_TEST_PASS", SELF_TEST[1] as usize),
    ("(IMB_FEATURE_AVX512_SKX | IMB_FEATURE_VAES | IMB_FEATURE_VPCLMULQDQ)", PROCESSOR as usize),
    ("sizeof(IMB_JOB) <= 256", 1),
    ("sizeof(struct gcm_key_data) <= 2048 && sizeof(struct gcm_context_data) <= 128", 1),
];

/// `IMB_JOB`, with room to spare: it has at most 240 octets in the known versions.
#[repr(C)]
struct Job {
    encryption_key: *const RoundKeys,
    decryption_key: *const RoundKeys,
    key_len: u64,
    source: *const u8,
    destination: *mut u8,
    source_offset: u64,
    len: u64,
    hash_offset: u64,
    hash_len: u64,
    iv: *const u8,
    iv_len: u64,
    tag: *mut u8,
    tag_len: u64,
    hash_fields: [u64; 3],
    status: u32,
    cipher: u32,
    direction: u32,
    hash: u32,
    order: u32,
    rest: [u32; 27],
}

/// The loaded library.
///
/// It is loaded at the first call of [`get`](Self::get) and stays until the process ends.
#[derive(Clone, Copy)]
pub struct Library {
    version: Version,
    lifecycle: Lifecycle,
    expand_key: [ExpandKey; 3],
    gcm: [GcmFunctions; 3],
    submit_cipher_burst: CipherBurst,
}

/// The functions that make and end a manager.
#[derive(Clone, Copy)]
struct Lifecycle {
    allocate: Allocate,
    start: Start,
    free: Free,
}

/// The functions of AES-GCM for keys of one length.
#[derive(Clone, Copy)]
struct GcmFunctions {
    expand: ExpandGcmKey,
    encrypt: GcmWhole,
    decrypt: GcmWhole,
    init: GcmInit,
    update: GcmUpdate,
    finalize: GcmFinalize,
}

impl Library {
    /// Returns the library, which is loaded by the first call.
    ///
    /// # Errors
    /// [`Unavailable`], the same at each call.
    pub fn get() -> Result<&'static Self, Unavailable> {
        static LIBRARY: OnceLock<Result<Library, Unavailable>> = OnceLock::new();
        LIBRARY.get_or_init(Self::load).as_ref().map_err(|why| *why)
    }

    /// Returns the version of the library.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Loads the library by the first name under which its version is known.
    fn load() -> Result<Self, Unavailable> {
        let mut outcome = Err(Unavailable::NotFound);
        for handle in NAMES.into_iter().filter_map(open) {
            outcome = Self::start(handle);
            if !matches!(outcome, Err(Unavailable::Version(_))) {
                break;
            }
        }
        outcome
    }

    /// Checks the library `handle`, and takes its functions.
    fn start(handle: NonNull<c_void>) -> Result<Self, Unavailable> {
        let find = |name| symbol(handle, name).ok_or(Unavailable::NotFound);
        let version = find(c"imb_get_version")?;
        // SAFETY: the library declares `unsigned imb_get_version(void)`.
        let version = unsafe { transmute::<*mut c_void, GetVersion>(version) };
        // SAFETY: the function only returns a constant.
        let [_, major, minor, patch] = unsafe { version() }.to_be_bytes();
        let version = Version { major, minor, patch };
        if !version.is_known() {
            return Err(Unavailable::Version(version));
        }
        let (allocate, free) = (find(c"alloc_mb_mgr")?, find(c"free_mb_mgr")?);
        let start = find(c"init_mb_mgr_auto")?;
        let lifecycle = Lifecycle {
            // SAFETY: the known versions declare `IMB_MGR *alloc_mb_mgr(uint64_t)`.
            allocate: unsafe { transmute::<*mut c_void, Allocate>(allocate) },
            // SAFETY: the known versions declare `void init_mb_mgr_auto(IMB_MGR *, IMB_ARCH *)`.
            start: unsafe { transmute::<*mut c_void, Start>(start) },
            // SAFETY: the known versions declare `void free_mb_mgr(IMB_MGR *)`.
            free: unsafe { transmute::<*mut c_void, Free>(free) },
        };
        let manager = OwnManager::new(lifecycle).ok_or(Unavailable::Refused)?;
        Self::with(version, lifecycle, manager.head())
    }

    /// Takes the functions out of a manager that has been started.
    fn with(version: Version, lifecycle: Lifecycle, head: &Manager) -> Result<Self, Unavailable> {
        if head.features & PROCESSOR != PROCESSOR {
            return Err(Unavailable::Processor);
        }
        if head.features & ERASES == 0 {
            return Err(Unavailable::Erasure);
        }
        let functions = |n: usize| {
            Some(GcmFunctions {
                expand: head.expand_gcm_key[n]?,
                encrypt: head.gcm_encrypt[n]?,
                decrypt: head.gcm_decrypt[n]?,
                init: head.gcm_init[n]?,
                update: head.gcm_encrypt_update[n]?,
                finalize: head.gcm_encrypt_finalize[n]?,
            })
        };
        let all = || {
            let [a, b, c] = head.expand_key;
            Some(Self {
                version,
                lifecycle,
                expand_key: [a?, b?, c?],
                gcm: [functions(0)?, functions(1)?, functions(2)?],
                submit_cipher_burst: head.submit_cipher_burst?,
            })
        };
        all().ok_or(Unavailable::Refused)
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Loads the library `name`, which then stays.
fn open(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the name ends with a zero; what the library does when it is loaded is the reason to
    // load it.
    NonNull::new(unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) })
}

/// Returns the address of the function `name`, never null.
fn symbol(library: NonNull<c_void>, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the library is loaded, and the name ends with a zero.
    let address = unsafe { libc::dlsym(library.as_ptr(), name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// A manager, which one thread at a time may use.
struct OwnManager {
    manager: NonNull<Manager>,
    lifecycle: Lifecycle,
}

impl OwnManager {
    /// Starts a manager; `None` if there is no memory for it, or it reports an error.
    fn new(lifecycle: Lifecycle) -> Option<Self> {
        // SAFETY: no flags; the function returns null or a new manager.
        let manager = NonNull::new(unsafe { (lifecycle.allocate)(0) })?;
        let mut arch = 0;
        // SAFETY: the manager is new and ours, and the other pointer is to an integer of C.
        unsafe { (lifecycle.start)(manager.as_ptr(), &raw mut arch) };
        let own = Self { manager, lifecycle };
        let Manager { error, features, .. } = *own.head();
        let [is_tested, has_passed] = SELF_TEST.map(|bit| features & bit != 0);
        (error == 0 && (has_passed || !is_tested)).then_some(own)
    }

    fn head(&self) -> &Manager {
        // SAFETY: a manager begins with these fields in every known version, and nothing changes it
        // while it is borrowed.
        unsafe { self.manager.as_ref() }
    }
}

impl Drop for OwnManager {
    fn drop(&mut self) {
        // SAFETY: the manager is ours and is used no more.
        unsafe { (self.lifecycle.free)(self.manager.as_ptr()) };
    }
}

thread_local! {
    /// The manager of this thread, made when it first encrypts in counter mode: 200 000 bytes.
    static MANAGER: OnceCell<Option<OwnManager>> = const { OnceCell::new() };
}

/// Returns the position of a key's functions by its length.
fn position(key: &[u8]) -> Option<usize> {
    match key.len() {
        16 => Some(0),
        24 => Some(1),
        32 => Some(2),
        _ => None,
    }
}

/// An expanded key for AES-GCM; zeroised on drop.
///
/// The caller must not use a nonce twice.
pub struct Gcm {
    functions: GcmFunctions,
    key: Box<GcmKey>,
}

impl Gcm {
    /// Expands a `key` of 16, 24 or 32 octets; `None` for another length.
    pub fn new(library: &'static Library, key: &[u8]) -> Option<Self> {
        let functions = *library.gcm.get(position(key)?)?;
        let mut expanded = Box::new(GcmKey([0; 256]));
        // SAFETY: the function is that for this length of a key, and `GcmKey` is as aligned and at
        // least as large as its structure.
        unsafe { (functions.expand)(key.as_ptr().cast(), &raw mut *expanded) };
        Some(Self { functions, key: expanded })
    }

    /// Encrypts `head` in place and `source` into `out`, followed by the tag; `out` must be
    /// [`TAG_LEN`] octets longer than `source`. Both parts are one message, bound to `associated`.
    ///
    /// Returns `false` and changes nothing if `out` has another length, or a part is too long.
    #[inline]
    pub fn seal(
        &self,
        nonce: [u8; NONCE_LEN],
        associated: &[u8],
        head: &mut [u8],
        source: &[u8],
        out: &mut [u8],
    ) -> bool {
        let too_long = head.len().max(source.len()).max(associated.len()) > LEN_MAX;
        if too_long || out.len() != source.len() + TAG_LEN {
            return false;
        }
        let (out, tag) = out.split_at_mut(source.len());
        let (key, mut context) = (&raw const *self.key, Context::new());
        if head.is_empty() {
            // SAFETY: all lengths are those of the slices; `out` and `tag` are ours alone.
            unsafe {
                (self.functions.encrypt)(
                    key,
                    context.pointer(),
                    out.as_mut_ptr(),
                    source.as_ptr(),
                    source.len() as u64,
                    nonce.as_ptr(),
                    associated.as_ptr(),
                    associated.len() as u64,
                    tag.as_mut_ptr(),
                    TAG_LEN as u64,
                );
            }
            return true;
        }
        let GcmFunctions { init, update, finalize, .. } = self.functions;
        let (from, len) = (associated.as_ptr(), associated.len() as u64);
        // SAFETY: the nonce has 12 octets, and the length is that of the slice.
        unsafe { init(key, context.pointer(), nonce.as_ptr(), from, len) };
        let (place, len) = (head.as_mut_ptr(), head.len() as u64);
        // SAFETY: the length is that of the slice, which is encrypted in place.
        unsafe { update(key, context.pointer(), place, place, len) };
        if !source.is_empty() {
            let (place, len) = (out.as_mut_ptr(), source.len() as u64);
            // SAFETY: both slices have this length.
            unsafe { update(key, context.pointer(), place, source.as_ptr(), len) };
        }
        // SAFETY: the tag has this length.
        unsafe { finalize(key, context.pointer(), tag.as_mut_ptr(), TAG_LEN as u64) };
        true
    }

    /// Decrypts `message` in place and returns the tag that it should have. Until the caller has
    /// compared it, the contents of `message` are not authentic.
    #[inline]
    pub fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        associated: &[u8],
        message: &mut [u8],
    ) -> Option<[u8; TAG_LEN]> {
        let place = message.as_mut_ptr();
        self.decrypt(nonce, associated, place, place, message.len())
    }

    /// Decrypts `message` into `out`, of the same length, and returns the tag that it should have.
    /// Until the caller has compared it, the contents of `out` are not authentic.
    ///
    /// Returns `None` and changes nothing if the lengths differ, or a part is too long.
    #[inline]
    pub fn open_into(
        &self,
        nonce: [u8; NONCE_LEN],
        associated: &[u8],
        message: &[u8],
        out: &mut [u8],
    ) -> Option<[u8; TAG_LEN]> {
        if out.len() != message.len() {
            return None;
        }
        self.decrypt(nonce, associated, message.as_ptr(), out.as_mut_ptr(), message.len())
    }

    /// Decrypts `len` octets at `from` to `to`: the same place, or places that do not overlap.
    #[inline]
    fn decrypt(
        &self,
        nonce: [u8; NONCE_LEN],
        associated: &[u8],
        from: *const u8,
        to: *mut u8,
        len: usize,
    ) -> Option<[u8; TAG_LEN]> {
        if len.max(associated.len()) > LEN_MAX {
            return None;
        }
        let (mut context, mut tag) = (Context::new(), [0; TAG_LEN]);
        // SAFETY: both callers pass pointers to slices of this length; the others are those of the
        // slices and arrays.
        unsafe {
            (self.functions.decrypt)(
                &raw const *self.key,
                context.pointer(),
                to,
                from,
                len as u64,
                nonce.as_ptr(),
                associated.as_ptr(),
                associated.len() as u64,
                tag.as_mut_ptr(),
                TAG_LEN as u64,
            );
        }
        Some(tag)
    }
}

impl Drop for Gcm {
    fn drop(&mut self) {
        self.key.0.zeroize();
    }
}

impl fmt::Debug for Gcm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gcm").finish_non_exhaustive()
    }
}

/// The state of one message, which contains octets of the key stream; zeroised on drop.
struct Context(GcmContext);

impl Context {
    #[inline]
    fn new() -> Self {
        Self(GcmContext([0; 16]))
    }

    #[inline]
    fn pointer(&mut self) -> *mut GcmContext {
        &raw mut self.0
    }
}

impl Drop for Context {
    #[inline]
    fn drop(&mut self) {
        self.0.0.zeroize();
    }
}

/// An expanded key for AES in counter mode; zeroised on drop.
pub struct CounterMode {
    library: &'static Library,
    key: Box<RoundKeys>,
    key_len: usize,
}

impl CounterMode {
    /// Expands a `key` of 16, 24 or 32 octets; `None` for another length.
    pub fn new(library: &'static Library, key: &[u8]) -> Option<Self> {
        let expand = *library.expand_key.get(position(key)?)?;
        let mut round_keys = Box::new(RoundKeys([0; 32]));
        let mut for_decryption = Box::new(RoundKeys([0; 32]));
        let (first, second) = (&raw mut *round_keys, &raw mut *for_decryption);
        // SAFETY: the function is that for this length of a key, and writes at most 15 aligned round
        // keys of 16 octets to either place.
        unsafe { expand(key.as_ptr().cast(), first.cast(), second.cast()) };
        for_decryption.0.zeroize();
        Some(Self { library, key: round_keys, key_len: key.len() })
    }

    /// Encrypts or decrypts `data` with the key stream that begins at the counter `start`.
    ///
    /// Returns `false` and changes nothing if the last 32 bits of the counter would overflow, or the
    /// library refuses.
    #[inline]
    pub fn apply(&self, start: [u8; BLOCK_LEN], data: &mut [u8]) -> bool {
        let place = data.as_mut_ptr();
        self.run(start, place, place, data.len())
    }

    /// Encrypts or decrypts `source` into `out`, as [`apply`](Self::apply) does; both must have the
    /// same length.
    #[inline]
    pub fn apply_into(&self, start: [u8; BLOCK_LEN], source: &[u8], out: &mut [u8]) -> bool {
        let len = source.len();
        out.len() == len && self.run(start, source.as_ptr(), out.as_mut_ptr(), len)
    }

    /// Processes `len` octets at `from` to `to`: the same place, or places that do not overlap.
    #[inline]
    fn run(&self, start: [u8; BLOCK_LEN], from: *const u8, to: *mut u8, len: usize) -> bool {
        let [.., a, b, c, d] = start;
        let blocks = len.div_ceil(BLOCK_LEN) as u64;
        let overflows = u64::from(u32::from_be_bytes([a, b, c, d])) + blocks > u64::from(u32::MAX);
        if len == 0 || len > LEN_MAX || overflows {
            return len == 0;
        }
        let mut job = Job {
            encryption_key: &raw const *self.key,
            decryption_key: &raw const *self.key,
            key_len: self.key_len as u64,
            source: from,
            destination: to,
            source_offset: 0,
            len: len as u64,
            hash_offset: 0,
            hash_len: 0,
            iv: start.as_ptr(),
            iv_len: BLOCK_LEN as u64,
            tag: std::ptr::null_mut(),
            tag_len: 0,
            hash_fields: [0; 3],
            status: 0,
            cipher: COUNTER_MODE,
            direction: ENCRYPT,
            hash: NO_HASH,
            order: 1,
            rest: [0; 27],
        };
        let submit = |manager: &OwnManager| {
            let (manager, bits) = (manager.manager.as_ptr(), self.key_len as u32);
            let submit = self.library.submit_cipher_burst;
            // SAFETY: the manager is this thread's own. The job is one of counter mode with its key,
            // its counter and `len` octets at both places, and ends before the function returns.
            unsafe { submit(manager, &raw mut job, 1, COUNTER_MODE, ENCRYPT, bits) == 1 }
        };
        let own = |slot: &OnceCell<Option<OwnManager>>| {
            slot.get_or_init(|| OwnManager::new(self.library.lifecycle)).as_ref().map(submit)
        };
        // A thread that ends has no manager any more.
        MANAGER.try_with(own).ok().flatten().unwrap_or(false)
    }
}

impl Drop for CounterMode {
    fn drop(&mut self) {
        self.key.0.zeroize();
    }
}

impl fmt::Debug for CounterMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CounterMode").finish_non_exhaustive()
    }
}
