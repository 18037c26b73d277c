package runtime

// Where the runtime makes its system calls: loam/unikernel/seal lets these calls
// through, and only from there.

import (
	"internal/abi"
	"internal/runtime/syscall/linux"
	"unsafe" // and for go:linkname
)

// loamPlaces tells place of the instruction after each SYSCALL of the functions that
// the seal knows, and of the kernel's own code (vdso(7)), as addresses from start to
// end.
//
//go:linkname loamPlaces
func loamPlaces(place func(name string, start, end uintptr)) {
	for _, pc := range []uintptr{
		abi.FuncPCABI0(exit), abi.FuncPCABI0(exitThread), abi.FuncPCABI0(closefd), abi.FuncPCABI0(read),
		abi.FuncPCABI0(write1), abi.FuncPCABI0(usleep), abi.FuncPCABI0(gettid), abi.FuncPCABI0(raise),
		abi.FuncPCABI0(raiseproc), abi.FuncPCABI0(getpid), abi.FuncPCABI0(tgkill), abi.FuncPCABI0(setitimer),
		abi.FuncPCABI0(timer_create), abi.FuncPCABI0(timer_settime), abi.FuncPCABI0(timer_delete),
		abi.FuncPCABI0(nanotime1), abi.FuncPCABI0(rtsigprocmask), abi.FuncPCABI0(rt_sigaction),
		abi.FuncPCABI0(sigreturn__sigaction), abi.FuncPCABI0(sysMmap), abi.FuncPCABI0(sysMunmap),
		abi.FuncPCABI0(madvise), abi.FuncPCABI0(futex), abi.FuncPCABI0(clone), abi.FuncPCABI0(sigaltstack),
		abi.FuncPCABI0(osyield), abi.FuncPCABI0(sched_getaffinity), abi.FuncPCABIInternal(time_now),
		abi.FuncPCABIInternal(linux.Syscall6),
	} {
		loamSyscallsOf(pc, place)
	}
	if start, end := loamVDSO(); start != 0 {
		place("vdso", start, end)
	}
}

// loamSyscallsOf looks for the instruction, 0F 05, in the code of a function.
func loamSyscallsOf(pc uintptr, place func(name string, start, end uintptr)) {
	f := findfunc(pc)
	for at := f.entry(); findfunc(at+1)._func == f._func; at++ {
		if code := (*[2]byte)(unsafe.Pointer(at)); *code == [2]byte{0x0f, 0x05} {
			place(funcname(f), at+2, at+3)
		}
	}
}

// loamVDSO is where the kernel's own code lies, or 0.
func loamVDSO() (start, end uintptr) {
	for i := 0; i+1 < len(auxv); i += 2 {
		if auxv[i] == _AT_SYSINFO_EHDR {
			start = auxv[i+1]
		}
	}
	if start == 0 {
		return 0, 0
	}
	header := (*elfEhdr)(unsafe.Pointer(start))
	for i := uintptr(0); i < uintptr(header.e_phnum); i++ {
		p := (*elfPhdr)(unsafe.Pointer(start + uintptr(header.e_phoff) + i*unsafe.Sizeof(elfPhdr{})))
		if p.p_type == _PT_LOAD {
			end = max(end, start+uintptr(p.p_offset+p.p_memsz))
		}
	}
	return start, end
}
