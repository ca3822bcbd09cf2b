//! The filter behind the gate: which system calls make a process, on each way into the kernel that this kind of
//! processor has. Pure.
//!
//! * `fork`, `vfork` and `clone` ask, but for `clone` of a thread, which is allowed.
//! * `clone3` answers "no such call": its flags are in memory, where a filter can't read them, and every C library goes
//!   on with `clone`.
//! * All else is allowed.

use libc::sock_filter;

/// One way into the kernel: its audit number, and its numbers of the calls that make processes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Abi {
    arch: u32,
    /// Bits that do not count in a call's number.
    ignore: u32,
    clone: u32,
    clone3: u32,
    /// `fork` and `vfork`, where there are such.
    plain: [Option<u32>; 2],
}

/// What this kind of processor has; empty where it is not known.
pub(super) const ABIS: &[Abi] = abis();

const fn abis() -> &'static [Abi] {
    if cfg!(target_arch = "x86_64") {
        &[
            // The bit is that of the x32 calls, which have the same numbers beside it.
            Abi { arch: 0xc000_003e, ignore: 0x4000_0000, clone: 56, clone3: 435, plain: [Some(57), Some(58)] },
            Abi { arch: 0x4000_0003, ignore: 0, clone: 120, clone3: 435, plain: [Some(2), Some(190)] },
        ]
    } else if cfg!(target_arch = "aarch64") {
        &[
            Abi { arch: 0xc000_00b7, ignore: 0, clone: 220, clone3: 435, plain: [None, None] },
            Abi { arch: 0x4000_0028, ignore: 0, clone: 120, clone3: 435, plain: [Some(2), Some(190)] },
        ]
    } else {
        &[]
    }
}

/// Where the kernel's description of a call has what (the first argument is the flags, of which the lower half counts).
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const FLAGS: u32 = 16;

const LOAD: u16 = 0x20;
const IF_EQUAL: u16 = 0x15;
const IF_ANY_BIT: u16 = 0x45;
const AND: u16 = 0x54;
const RETURN: u16 = 0x06;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const ASK: u32 = libc::SECCOMP_RET_USER_NOTIF;
const NO_SUCH_CALL: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// The filter's program.
pub(super) fn program() -> Vec<sock_filter> {
    let mut program = vec![plain(LOAD, ARCH)];
    for abi in ABIS {
        let block = block(*abi);
        let length = u8::try_from(block.len()).expect("a block is a dozen instructions");
        program.push(sock_filter { code: IF_EQUAL, jt: 0, jf: length, k: abi.arch });
        program.extend(block);
    }
    // A way in that we do not know is closed.
    program.push(plain(RETURN, NO_SUCH_CALL));
    program
}

fn block(abi: Abi) -> Vec<sock_filter> {
    let mut block = vec![plain(LOAD, NUMBER), plain(AND, !abi.ignore)];
    // Each comparison jumps over one instruction when it does not hold.
    let mut when = |code: u16, k: u32, result: u32| {
        block.push(sock_filter { code, jt: 0, jf: 1, k });
        block.push(plain(RETURN, result));
    };
    when(IF_EQUAL, abi.clone3, NO_SUCH_CALL);
    for number in abi.plain.into_iter().flatten() {
        when(IF_EQUAL, number, ASK);
    }
    block.push(sock_filter { code: IF_EQUAL, jt: 1, jf: 0, k: abi.clone });
    block.push(plain(RETURN, ALLOW));
    block.push(plain(LOAD, FLAGS));
    block.push(sock_filter { code: IF_ANY_BIT, jt: 0, jf: 1, k: libc::CLONE_THREAD as u32 });
    block.push(plain(RETURN, ALLOW));
    block.push(plain(RETURN, ASK));
    block
}

fn plain(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does what the kernel would do with the program.
    fn verdict(arch: u32, number: u32, flags: u32) -> u32 {
        let program = program();
        let (mut at, mut a) = (0, 0);
        loop {
            let step = program[at];
            at += 1;
            match step.code {
                LOAD if step.k == ARCH => a = arch,
                LOAD if step.k == NUMBER => a = number,
                LOAD if step.k == FLAGS => a = flags,
                AND => a &= step.k,
                IF_EQUAL => at += usize::from(if a == step.k { step.jt } else { step.jf }),
                IF_ANY_BIT => at += usize::from(if a & step.k != 0 { step.jt } else { step.jf }),
                RETURN => return step.k,
                other => panic!("instruction {other:#x}"),
            }
        }
    }

    const THREAD: u32 = libc::CLONE_THREAD as u32 | libc::CLONE_VM as u32;

    #[test]
    fn every_way_to_make_a_process_asks_and_threads_do_not() {
        for abi in ABIS {
            for number in abi.plain.into_iter().flatten() {
                assert_eq!(verdict(abi.arch, number, 0), ASK, "{abi:?}");
            }
            assert_eq!(verdict(abi.arch, abi.clone, libc::SIGCHLD as u32), ASK);
            assert_eq!(verdict(abi.arch, abi.clone, libc::CLONE_VM as u32), ASK);
            assert_eq!(verdict(abi.arch, abi.clone, THREAD), ALLOW);
            assert_eq!(verdict(abi.arch, abi.clone3, 0), NO_SUCH_CALL);
            for other in [0, 1, 3, 59, 221, 434, 436] {
                assert_eq!(verdict(abi.arch, other, 0), ALLOW, "{other} of {abi:?}");
            }
        }
    }

    #[test]
    fn a_way_into_the_kernel_that_is_not_known_is_closed() {
        assert_eq!(verdict(0x1234, 0, 0), NO_SUCH_CALL);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_two_other_abis_of_this_processor_are_no_way_around() {
        const X32: u32 = 0x4000_0000;
        assert_eq!(verdict(0xc000_003e, 57 | X32, 0), ASK);
        assert_eq!(verdict(0xc000_003e, 56 | X32, THREAD), ALLOW);
        assert_eq!(verdict(0xc000_003e, 435 | X32, 0), NO_SUCH_CALL);
        assert_eq!(verdict(0x4000_0003, 2, 0), ASK);
        assert_eq!(verdict(0x4000_0003, 56, 0), ALLOW, "56 is another call there");
    }
}
