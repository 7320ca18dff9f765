//! Intel AMX: eight tiles of 16 rows of 64 bytes, and products of tiles.
//!
//! Linux lends the tile registers to a process that asks for them; a token proves that the
//! processor has the instructions and that the process may use them.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1 chapter 18 and
//! volume 2 (TDPBF16PS, TDPBUSD, LDTILECFG); Linux, Documentation/arch/x86/xstate.rst.

/// Rows of a tile, at most.
pub(crate) const TILE_ROWS: usize = 16;
/// Bytes of a whole tile, and the distance between tiles in memory.
pub(crate) const TILE_BYTES: usize = 1024;

/// AMX with products of BF16 and of bytes, as a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amx(());

impl Amx {
    /// The token, where the processor has tiles and the system lends them.
    #[must_use]
    pub fn new() -> Option<Self> {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        {
            use std::sync::OnceLock;
            static FOUND: OnceLock<bool> = OnceLock::new();
            FOUND.get_or_init(|| linux::has_tiles() && linux::may_use_tiles()).then_some(Self(()))
        }
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        None
    }

    /// Gives this thread tiles of `rows` rows, until [`Amx::end`]: sums in tiles 0 to 3, left-hand
    /// terms in 4 and 5; right-hand terms in 6 and 7 have 16 rows.
    ///
    /// No closure runs in between: one that is not inlined would not have the vectors' instructions.
    #[inline(always)]
    pub(crate) fn begin(self, rows: usize) {
        assert!((1..=TILE_ROWS).contains(&rows), "tiles of {rows} rows");
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        linux::configure(rows);
    }

    /// Asks for the cache line of `p`, to write it; any address is allowed.
    #[inline(always)]
    pub(crate) fn prefetch_to_write(self, p: *const f32) {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        linux::prefetch_to_write(p);
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        let _ = p;
    }

    /// Asks for the cache line of `p`; any address is allowed.
    #[inline(always)]
    pub(crate) fn prefetch(self, p: *const u8) {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        linux::prefetch(p);
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        let _ = p;
    }

    /// Takes the tiles away, so that the system need not save them.
    #[inline(always)]
    pub(crate) fn end(self) {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        linux::release();
    }
}

/// How much of a 2 x 2 block of tiles a product fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TileExtent {
    /// All of it.
    Whole,
    /// The first tile of each row.
    OneColumn,
    /// The first row of tiles.
    OneRow,
}

impl TileExtent {
    /// For a second tile of rows and one of columns.
    #[inline(always)]
    pub(crate) fn of(two_rows: bool, two_columns: bool) -> Self {
        match (two_rows, two_columns) {
            (true, true) => Self::Whole,
            (true, false) => Self::OneColumn,
            (false, _) => Self::OneRow,
        }
    }
}

/// Type of the terms of a tile.
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    allow(dead_code, reason = "there are no tiles here")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TileTerms {
    /// Pairs of BF16, in tiles of B that are [`TILE_BYTES`] apart with rows 64 bytes apart.
    Bf16,
    /// Unsigned times signed bytes, with rows of B 256 bytes apart and its tiles 64 bytes apart.
    Bytes,
}

impl TileTerms {
    /// Bytes between the steps of a panel of B.
    #[inline(always)]
    pub(crate) fn step_bytes(self) -> usize {
        match self {
            Self::Bf16 => 2 * TILE_BYTES,
            Self::Bytes => 4 * TILE_BYTES,
        }
    }

    /// Pairs of cache lines of a step of B, and the bytes between them.
    #[inline(always)]
    pub(crate) fn step_lines(self) -> (usize, usize) {
        match self {
            Self::Bf16 => (16, 128),
            Self::Bytes => (16, 256),
        }
    }
}

/// Products of a 2 x 2 block of tiles: `start`, a `step` for each pair of tiles of A and of B, then
/// `keep`. Sums stay in tiles in between; other code of the thread may run there, as nothing but
/// this uses tiles.
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    allow(dead_code, reason = "there are no tiles here")
)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileBlock {
    /// Proves that there are tiles.
    #[allow(dead_code, reason = "held, not read")]
    pub(crate) amx: Amx,
    pub(crate) terms: TileTerms,
    pub(crate) extent: TileExtent,
}

#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    allow(unused_variables, clippy::unused_self, reason = "there are no tiles here")
)]
impl TileBlock {
    /// Starts sums at what lies at `sums`: four tiles, [`TILE_BYTES`] apart, rows 0 of columns 0 and
    /// 1, then rows 1; at zero without.
    ///
    /// # Safety
    /// Between [`Amx::begin`] and [`Amx::end`]; `sums` is valid for the extent.
    #[inline(always)]
    pub(crate) unsafe fn start(self, sums: Option<*const u8>) {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        // SAFETY: the token proves the instructions; the caller vouches for the rest.
        unsafe {
            match sums {
                Some(sums) => linux::load(self.extent, sums),
                None => linux::zero(),
            }
        }
    }

    /// Adds the products of two tiles of A, whose rows lie `stride` bytes apart, with two of B. Where
    /// the extent is one row, the second tile of A is not read.
    ///
    /// # Safety
    /// The same as for [`TileBlock::start`]; the operands are valid for the extent.
    #[inline(always)]
    pub(crate) unsafe fn step(self, a: [*const u8; 2], stride: usize, b: *const u8) {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        // SAFETY: the token proves the instructions; the caller vouches for the rest.
        unsafe {
            match self.terms {
                TileTerms::Bf16 => linux::step_bf16(self.extent, a, stride, b),
                TileTerms::Bytes => linux::step_bytes(self.extent, a, stride, b),
            }
        }
    }

    /// Stores the sums as [`TileBlock::start`] takes them.
    ///
    /// # Safety
    /// The same as for [`TileBlock::start`].
    #[inline(always)]
    pub(crate) unsafe fn keep(self, sums: *mut u8) {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        // SAFETY: the token proves the instructions; the caller vouches for the rest.
        unsafe {
            linux::store(self.extent, sums);
        }
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod linux {
    use super::TileExtent;
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

    /// `ARCH_REQ_XCOMP_PERM` of `arch_prctl`.
    const REQUEST_PERMISSION: libc::c_long = 0x1023;
    /// The state component of tile data.
    const TILE_DATA: libc::c_long = 18;
    /// Bits of XCR0 for the configuration and the data of tiles.
    const TILE_STATE: u64 = 0b11 << 17;

    /// Returns whether processor and system have tiles with products of BF16 and of bytes.
    pub(super) fn has_tiles() -> bool {
        if __cpuid(0).eax < 7 {
            return false;
        }
        let features = __cpuid(1).ecx;
        let extended = __cpuid_count(7, 0).edx;
        let has = |bit: u32| extended & (1 << bit) != 0;
        let saves = features & (1 << 27) != 0;
        // SAFETY: OSXSAVE says that XGETBV may be executed.
        let state = if saves { unsafe { _xgetbv(0) } } else { 0 };
        has(22) && has(24) && has(25) && state & TILE_STATE == TILE_STATE
    }

    /// Asks the system for the tile registers, for all threads of the process.
    pub(super) fn may_use_tiles() -> bool {
        // SAFETY: the call takes two numbers and changes nothing but this permission.
        let answer = unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) };
        answer == 0
    }

    #[inline(always)]
    pub(super) fn prefetch_to_write(p: *const f32) {
        // SAFETY: a prefetch of any address is harmless, and every processor with tiles has it.
        unsafe {
            asm!("prefetchw [{p}]", p = in(reg) p, options(nostack, preserves_flags, readonly))
        };
    }

    #[inline(always)]
    pub(super) fn prefetch(p: *const u8) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) };
    }

    #[repr(C, align(64))]
    struct TileConfig([u8; 64]);

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "at most 16")]
    pub(super) fn configure(rows: usize) {
        let mut config = TileConfig([0; 64]);
        config.0[0] = 1;
        for tile in 0..8 {
            config.0[16 + 2 * tile] = 64;
            config.0[48 + tile] = if tile < 6 { rows as u8 } else { 16 };
        }
        // SAFETY: a token is held, and the configuration is one of palette 1.
        unsafe {
            asm!(
                "ldtilecfg [{config}]",
                config = in(reg) &raw const config,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, preserves_flags, readonly),
            );
        }
    }

    #[inline(always)]
    pub(super) fn release() {
        // SAFETY: a token is held.
        unsafe {
            asm!(
                "tilerelease",
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, preserves_flags, nomem),
            );
        }
    }

    /// Instructions on tiles.
    macro_rules! tiles {
        ([$($code:expr),*], $($operands:tt)*) => {
            asm!(
                $($code,)*
                $($operands)*
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, preserves_flags),
            )
        };
    }

    /// # Safety
    /// The same as for [`super::TileBlock::start`].
    #[inline(always)]
    pub(super) unsafe fn zero() {
        // SAFETY: the caller vouches for tiles.
        unsafe { tiles!(["tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3"],) };
    }

    /// # Safety
    /// The same as for [`super::TileBlock::start`].
    #[inline(always)]
    pub(super) unsafe fn load(extent: TileExtent, sums: *const u8) {
        // SAFETY: the caller vouches for tiles and sums.
        unsafe {
            match extent {
                TileExtent::Whole => tiles!(
                    [
                        "tileloadd tmm0, [{c} + {s}]",
                        "tileloadd tmm1, [{c} + {s} + 1024]",
                        "tileloadd tmm2, [{c} + {s} + 2048]",
                        "tileloadd tmm3, [{c} + {s} + 3072]"
                    ],
                    c = in(reg) sums, s = in(reg) 64_usize,
                ),
                TileExtent::OneColumn => tiles!(
                    ["tileloadd tmm0, [{c} + {s}]", "tileloadd tmm2, [{c} + {s} + 2048]"],
                    c = in(reg) sums, s = in(reg) 64_usize,
                ),
                TileExtent::OneRow => tiles!(
                    ["tileloadd tmm0, [{c} + {s}]", "tileloadd tmm1, [{c} + {s} + 1024]"],
                    c = in(reg) sums, s = in(reg) 64_usize,
                ),
            }
        }
    }

    /// # Safety
    /// The same as for [`super::TileBlock::keep`].
    #[inline(always)]
    pub(super) unsafe fn store(extent: TileExtent, sums: *mut u8) {
        // SAFETY: the caller vouches for tiles and sums.
        unsafe {
            match extent {
                TileExtent::Whole => tiles!(
                    [
                        "tilestored [{c} + {s}], tmm0",
                        "tilestored [{c} + {s} + 1024], tmm1",
                        "tilestored [{c} + {s} + 2048], tmm2",
                        "tilestored [{c} + {s} + 3072], tmm3"
                    ],
                    c = in(reg) sums, s = in(reg) 64_usize,
                ),
                TileExtent::OneColumn => tiles!(
                    ["tilestored [{c} + {s}], tmm0", "tilestored [{c} + {s} + 2048], tmm2"],
                    c = in(reg) sums, s = in(reg) 64_usize,
                ),
                TileExtent::OneRow => tiles!(
                    ["tilestored [{c} + {s}], tmm0", "tilestored [{c} + {s} + 1024], tmm1"],
                    c = in(reg) sums, s = in(reg) 64_usize,
                ),
            }
        }
    }

    /// A step by the instruction `$dot`; `$next` bytes lie between the tiles of B, `$stride` between
    /// their rows.
    macro_rules! step {
        ($name:ident, $dot:literal, $next:literal, $stride:literal) => {
            /// # Safety
            /// The same as for [`super::TileBlock::step`].
            #[inline(always)]
            pub(super) unsafe fn $name(
                extent: TileExtent,
                a: [*const u8; 2],
                stride: usize,
                b: *const u8,
            ) {
                let [first, second] = a;
                // SAFETY: the caller vouches for tiles and operands.
                unsafe {
                    match extent {
                        TileExtent::Whole => tiles!(
                            [
                                "tileloadd tmm4, [{a} + {r}]",
                                "tileloadd tmm6, [{b} + {t}]",
                                concat!($dot, " tmm0, tmm4, tmm6"),
                                concat!("tileloadd tmm7, [{b} + {t} + ", $next, "]"),
                                concat!($dot, " tmm1, tmm4, tmm7"),
                                "tileloadd tmm5, [{a2} + {r}]",
                                concat!($dot, " tmm2, tmm5, tmm6"),
                                concat!($dot, " tmm3, tmm5, tmm7")
                            ],
                            a = in(reg) first, a2 = in(reg) second, r = in(reg) stride,
                            b = in(reg) b, t = in(reg) $stride,
                        ),
                        TileExtent::OneColumn => tiles!(
                            [
                                "tileloadd tmm4, [{a} + {r}]",
                                "tileloadd tmm6, [{b} + {t}]",
                                concat!($dot, " tmm0, tmm4, tmm6"),
                                "tileloadd tmm5, [{a2} + {r}]",
                                concat!($dot, " tmm2, tmm5, tmm6")
                            ],
                            a = in(reg) first, a2 = in(reg) second, r = in(reg) stride,
                            b = in(reg) b, t = in(reg) $stride,
                        ),
                        TileExtent::OneRow => tiles!(
                            [
                                "tileloadd tmm4, [{a} + {r}]",
                                "tileloadd tmm6, [{b} + {t}]",
                                concat!($dot, " tmm0, tmm4, tmm6"),
                                concat!("tileloadd tmm7, [{b} + {t} + ", $next, "]"),
                                concat!($dot, " tmm1, tmm4, tmm7")
                            ],
                            a = in(reg) first, r = in(reg) stride,
                            b = in(reg) b, t = in(reg) $stride,
                        ),
                    }
                }
            }
        };
    }

    step!(step_bf16, "tdpbf16ps", "1024", 64_usize);
    step!(step_bytes, "tdpbusd", "64", 256_usize);
}
