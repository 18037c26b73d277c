package attack

import (
	"reflect"
	"runtime"
	"strings"
	"unsafe"
)

// gateAt is the address of the runtime's function for system calls, and instructionAt the address of the instruction in
// it that makes them: SYSCALL in a process, and CALL in a machine, whose kernel is a function. No package may name the
// function, so init goes through all functions, from one of this package downwards: the linker puts imported packages
// first.
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

// instruction returns the address of the first SYSCALL or CALL of a function that has one.
func instruction(at uintptr) uintptr {
	for ; ; at++ {
		if b := *(*[2]byte)(unsafe.Pointer(at)); b == [2]byte{0x0f, 0x05} || b[0] == 0xe8 {
			return at
		}
	}
}

// GateAt returns the address of the runtime's function for system calls.
func GateAt() uintptr { return gateAt }

// Patch puts a breakpoint's code over what follows the runtime's function, and its instruction over it
// anew. It faults if the code cannot be written.
func Patch() {
	code := (*[2]byte)(unsafe.Pointer(instructionAt))
	same := *code
	*code = same
}

// Sigreturn makes a signal frame by hand, whose registers are those of open(2) at the runtime's
// instruction, and returns to it.
func Sigreturn(path uintptr)
