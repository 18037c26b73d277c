package attack

import (
	"reflect"
	"runtime"
	"strings"
	"unsafe"
)

// gateAt is the address of the runtime's function for system calls. instructionAt is the address of the instruction in
// it that makes them: SYSCALL in a process, and CALL in a machine, whose kernel is a function. No package may refer to
// the function by name, so init searches all functions downwards from one of this package: the linker places imported
// packages first.
var gateAt, instructionAt uintptr

func init() {
	at := reflect.ValueOf(String).Pointer()
	for f := runtime.FuncForPC(at); f != nil; f = runtime.FuncForPC(at) {
		if strings.HasPrefix(f.Name(), "internal/runtime/syscall") && strings.HasSuffix(f.Name(), ".Syscall6") {
			gateAt, instructionAt = f.Entry(), instruction(f.Entry())
			return
		}
		at = f.Entry() - 1
	}
	panic("the runtime's function for system calls is not there")
}

// instruction returns the address of the first SYSCALL or CALL in a function that contains one.
func instruction(at uintptr) uintptr {
	for ; ; at++ {
		if b := *(*[2]byte)(unsafe.Pointer(at)); b == [2]byte{0x0f, 0x05} || b[0] == 0xe8 {
			return at
		}
	}
}

// GateAt returns the address of the runtime's function for system calls.
func GateAt() uintptr { return gateAt }

// Patch overwrites the code behind the runtime's instruction with a breakpoint, and the instruction with itself. It
// faults if the code is not writable.
func Patch() {
	code := (*[2]byte)(unsafe.Pointer(instructionAt))
	same := *code
	*code = same
}

// Sigreturn builds a signal frame whose registers are set for open(2) at the runtime's SYSCALL instruction, and returns
// to it by rt_sigreturn(2).
func Sigreturn(path uintptr)
