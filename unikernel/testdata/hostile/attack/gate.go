package attack

import (
	"reflect"
	"runtime"
	"strings"
	"unsafe"
)

// gateAt is the address of the runtime's function for system calls, and instructionAt that of its
// SYSCALL instruction. No package may name the function, so its instruction is looked for, from here
// downwards: the linker puts what others import first.
var gateAt, instructionAt uintptr

func init() {
	for at := reflect.ValueOf(String).Pointer(); ; at-- {
		if *(*[2]byte)(unsafe.Pointer(at)) != [2]byte{0x0f, 0x05} {
			continue
		}
		f := runtime.FuncForPC(at)
		if f != nil && strings.HasPrefix(f.Name(), "internal/runtime/syscall") && strings.HasSuffix(f.Name(), ".Syscall6") {
			gateAt, instructionAt = f.Entry(), at
			return
		}
	}
}

// GateAt returns the address of the runtime's function for system calls.
func GateAt() uintptr { return gateAt }

// Patch puts a breakpoint's code over what follows the runtime's function, and its instruction over it
// anew. It faults if the code cannot be written.
func Patch() {
	code := (*[2]byte)(unsafe.Pointer(instructionAt))
	*code = [2]byte{0x0f, 0x05}
}

// Sigreturn makes a signal frame by hand, whose registers are those of open(2) at the runtime's
// instruction, and returns to it.
func Sigreturn(path uintptr)
