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

    /// Takes the tiles away, so that the system need not save them.
    #[inline(always)]
    pub(crate) fn end(self) {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        linux::release();
    }
}

/// How much of a 2 x 2 block of tiles a product fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Whether there is a second tile of rows.
    pub(crate) two_rows: bool,
    /// Whether there is a second tile of columns.
    pub(crate) two_columns: bool,
}

/// A product of tiles: sums (+)= A B over a number of steps.
#[derive(Clone, Copy)]
pub(crate) struct TileProduct {
    /// Tiles of A: two side by side for each step, [`TILE_BYTES`] apart.
    pub(crate) a: *const u8,
    /// Tiles of B: two for each step.
    pub(crate) b: *const u8,
    pub(crate) steps: usize,
    /// Four tiles of sums, [`TILE_BYTES`] apart: rows 0 of columns 0 and 1, then rows 1.
    pub(crate) sums: *mut u8,
    /// Whether the sums go on from what lies there.
    pub(crate) accumulate: bool,
    pub(crate) extent: Extent,
}

/// What the terms of a tile are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Terms {
    /// Pairs of BF16, in tiles of B that are [`TILE_BYTES`] apart with rows 64 bytes apart.
    Bf16,
    /// Unsigned times signed bytes, with rows of B 256 bytes apart and its tiles 64 bytes apart.
    Bytes,
}

impl Terms {
    /// Multiplies.
    ///
    /// # Safety
    /// Between [`Amx::begin`] and [`Amx::end`]; the product's pointers are valid for its steps and extent.
    #[inline(always)]
    pub(crate) unsafe fn multiply(self, _amx: Amx, product: &TileProduct) {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        // SAFETY: the token proves the instructions; the caller vouches for the rest.
        unsafe {
            match self {
                Self::Bf16 => linux::multiply_bf16(product),
                Self::Bytes => linux::multiply_bytes(product),
            }
        }
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        let _ = product;
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod linux {
    use super::{Extent, TileProduct};
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

    /// `ARCH_REQ_XCOMP_PERM` of `arch_prctl`.
    const REQUEST_PERMISSION: libc::c_long = 0x1023;
    /// The state component of tile data.
    const TILE_DATA: libc::c_long = 18;
    /// Bits of XCR0 for the configuration and the data of tiles.
    const TILE_STATE: u64 = 0b11 << 17;

    /// Whether processor and system have tiles with products of BF16 and of bytes.
    pub(super) fn has_tiles() -> bool {
        if __cpuid(0).eax < 7 {
            return false;
        }
        let (features, extended) = (__cpuid(1).ecx, __cpuid_count(7, 0).edx);
        let has = |bit: u32| extended & (1 << bit) != 0;
        let saves = features & (1 << 27) != 0;
        // SAFETY: OSXSAVE says that XGETBV may be executed.
        let state = if saves { unsafe { _xgetbv(0) } } else { 0 };
        has(22) && has(24) && has(25) && state & TILE_STATE == TILE_STATE
    }

    /// Asks the system for the tile registers, for all threads of the process.
    pub(super) fn may_use_tiles() -> bool {
        // SAFETY: the call takes two numbers and changes nothing but this permission.
        let answer =
            unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) };
        answer == 0
    }

    #[repr(C, align(64))]
    struct Config([u8; 64]);

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "at most 16")]
    pub(super) fn configure(rows: usize) {
        let mut config = Config([0; 64]);
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

    /// Starts sums by `$zero` or `$load`, adds to them by `$body` for each step, and keeps them.
    macro_rules! tiles {
        ($p:ident, $stride:literal, $zero:expr, $load:expr, $body:expr, $store:expr) => {
            asm!(
                "test {go:e}, {go:e}",
                "jnz 3f",
                $zero,
                "jmp 4f",
                "3:",
                $load,
                "4:",
                "test {n}, {n}",
                "jz 5f",
                ".p2align 4",
                "2:",
                $body,
                "add {a}, 2048",
                "dec {n}",
                "jnz 2b",
                "5:",
                $store,
                go = in(reg) u32::from($p.accumulate),
                a = inout(reg) $p.a => _,
                b = inout(reg) $p.b => _,
                n = inout(reg) $p.steps => _,
                c = in(reg) $p.sums,
                s = in(reg) 64_usize,
                t = in(reg) $stride,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            )
        };
    }

    /// A function that multiplies tiles by the instruction `$dot`; `$next` bytes lie between the
    /// tiles of B, `$stride` between their rows, `$step` between steps.
    macro_rules! multiplier {
        ($name:ident, $dot:literal, $next:literal, $stride:literal, $step:literal) => {
            /// # Safety
            /// As for [`super::Terms::multiply`].
            #[inline(always)]
            pub(super) unsafe fn $name(p: &TileProduct) {
                // SAFETY: the caller vouches for tiles and pointers.
                unsafe {
                    match p.extent {
                        Extent { two_rows: true, two_columns: true } => tiles!(p, $stride,
                            "tilezero tmm0\ntilezero tmm1\ntilezero tmm2\ntilezero tmm3",
                            "tileloadd tmm0, [{c} + {s}]\ntileloadd tmm1, [{c} + {s} + 1024]\n\
                             tileloadd tmm2, [{c} + {s} + 2048]\ntileloadd tmm3, [{c} + {s} + 3072]",
                            concat!(
                                "tileloadd tmm4, [{a} + {s}]\n",
                                "tileloadd tmm6, [{b} + {t}]\n",
                                $dot, " tmm0, tmm4, tmm6\n",
                                "tileloadd tmm7, [{b} + {t} + ", $next, "]\n",
                                $dot, " tmm1, tmm4, tmm7\n",
                                "tileloadd tmm5, [{a} + {s} + 1024]\n",
                                $dot, " tmm2, tmm5, tmm6\n",
                                $dot, " tmm3, tmm5, tmm7\n",
                                "add {b}, ", $step
                            ),
                            "tilestored [{c} + {s}], tmm0\ntilestored [{c} + {s} + 1024], tmm1\n\
                             tilestored [{c} + {s} + 2048], tmm2\ntilestored [{c} + {s} + 3072], tmm3"
                        ),
                        Extent { two_rows: true, two_columns: false } => tiles!(p, $stride,
                            "tilezero tmm0\ntilezero tmm2",
                            "tileloadd tmm0, [{c} + {s}]\ntileloadd tmm2, [{c} + {s} + 2048]",
                            concat!(
                                "tileloadd tmm4, [{a} + {s}]\n",
                                "tileloadd tmm6, [{b} + {t}]\n",
                                $dot, " tmm0, tmm4, tmm6\n",
                                "tileloadd tmm5, [{a} + {s} + 1024]\n",
                                $dot, " tmm2, tmm5, tmm6\n",
                                "add {b}, ", $step
                            ),
                            "tilestored [{c} + {s}], tmm0\ntilestored [{c} + {s} + 2048], tmm2"
                        ),
                        Extent { two_rows: false, .. } => tiles!(p, $stride,
                            "tilezero tmm0\ntilezero tmm1",
                            "tileloadd tmm0, [{c} + {s}]\ntileloadd tmm1, [{c} + {s} + 1024]",
                            concat!(
                                "tileloadd tmm4, [{a} + {s}]\n",
                                "tileloadd tmm6, [{b} + {t}]\n",
                                $dot, " tmm0, tmm4, tmm6\n",
                                "tileloadd tmm7, [{b} + {t} + ", $next, "]\n",
                                $dot, " tmm1, tmm4, tmm7\n",
                                "add {b}, ", $step
                            ),
                            "tilestored [{c} + {s}], tmm0\ntilestored [{c} + {s} + 1024], tmm1"
                        ),
                    }
                }
            }
        };
    }

    multiplier!(multiply_bf16, "tdpbf16ps", "1024", 64_usize, "2048");
    multiplier!(multiply_bytes, "tdpbusd", "64", 256_usize, "4096");
}
