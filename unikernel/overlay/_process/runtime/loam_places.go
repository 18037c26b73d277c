package runtime

// What loam/unikernel/rt/process asks of the runtime to seal it: loam/unikernel/seal lets
// through the runtime's system calls, and some only from where the runtime makes them.

import (
	"internal/abi"
	"internal/runtime/syscall/linux"
	"unsafe" // and for go:linkname
)

// loamPlaces tells place of the address after each SYSCALL of the functions that the
// seal knows.
//
//go:linkname loamPlaces
func loamPlaces(place func(name string, after uintptr)) {
	for _, pc := range []uintptr{
		abi.FuncPCABI0(exit), abi.FuncPCABI0(exitThread), abi.FuncPCABI0(closefd), abi.FuncPCABI0(read),
		abi.FuncPCABI0(write1), abi.FuncPCABI0(raise), abi.FuncPCABI0(raiseproc), abi.FuncPCABI0(tgkill),
		abi.FuncPCABI0(timer_create), abi.FuncPCABI0(timer_settime), abi.FuncPCABI0(timer_delete),
		abi.FuncPCABI0(sysMmap), abi.FuncPCABI0(clone), abi.FuncPCABIInternal(linux.Syscall6),
	} {
		loamSyscallsOf(pc, place)
	}
}

// loamSyscallsOf looks for the instruction, 0F 05, in the code of a function.
func loamSyscallsOf(pc uintptr, place func(name string, after uintptr)) {
	f := findfunc(pc)
	for at := f.entry(); findfunc(at+1)._func == f._func; at++ {
		if code := (*[2]byte)(unsafe.Pointer(at)); *code == [2]byte{0x0f, 0x05} {
			place(funcname(f), at+2)
		}
	}
}

// loamPollInit opens the descriptors of the poller: afterwards it is too late.
//
//go:linkname loamPollInit
func loamPollInit() { netpollGenericInit() }
