package trace

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/signal"
)

// Requests of ptrace(2) that read or change a stopped thread.

// Get returns the function that encodes the result of a request that reads state. It returns nil for other requests.
func Get(a call.Args) func(Stopped) ([]byte, linux.Errno) {
	switch a.A1 {
	case linux.PTRACE_GETREGS:
		return func(x Stopped) ([]byte, linux.Errno) { return x.Registers(), 0 }
	case linux.PTRACE_GETFPREGS:
		return func(x Stopped) ([]byte, linux.Errno) { return x.Float(), 0 }
	case linux.PTRACE_PEEKUSR:
		return func(x Stopped) ([]byte, linux.Errno) { return x.User(a.A3) }
	case linux.PTRACE_GETEVENTMSG:
		return func(x Stopped) ([]byte, linux.Errno) { return binary.LittleEndian.AppendUint64(nil, x.Message), 0 }
	case linux.PTRACE_GETSIGINFO:
		return func(x Stopped) ([]byte, linux.Errno) {
			if x.Info == nil {
				return nil, linux.EINVAL
			}
			b := make([]byte, signal.InfoSize)
			x.Info.Put(b)
			return b, 0
		}
	case linux.PTRACE_GETSIGMASK:
		return func(x Stopped) ([]byte, linux.Errno) {
			if a.A3 != setSize {
				return nil, linux.EINVAL
			}
			return binary.LittleEndian.AppendUint64(nil, uint64(x.Signals.Mask())), 0
		}
	case linux.PTRACE_GET_SYSCALL_INFO:
		return func(x Stopped) ([]byte, linux.Errno) { return x.callInfo(), 0 }
	}
	return nil
}

// SetInfo replaces the siginfo of the signal that is about to be delivered (PTRACE_SETSIGINFO).
func (x Stopped) SetInfo(b []byte) linux.Errno {
	if x.Info == nil {
		return linux.EINVAL
	}
	*x.Info = signal.ParseInfo(b)
	return 0
}

// SetMask replaces the blocked signals (PTRACE_SETSIGMASK).
func (x Stopped) SetMask(b []byte) linux.Errno {
	x.Signals.SetMask(signal.Set(binary.LittleEndian.Uint64(b)))
	x.Attend()
	return 0
}

// callInfo encodes a struct ptrace_syscall_info.
func (x Stopped) callInfo() []byte {
	const header, word, failures = 24, 8, 4095
	le := binary.LittleEndian
	f := x.Thread.Registers()
	b := make([]byte, header)
	le.PutUint32(b[4:], linux.AUDIT_ARCH_X86_64)
	le.PutUint64(b[8:], f.IP)
	le.PutUint64(b[16:], f.SP)
	good := x.Options&linux.PTRACE_O_TRACESYSGOOD != 0
	switch {
	case x.Entering && good, x.Filtered:
		b[0] = linux.PTRACE_SYSCALL_INFO_ENTRY
		for _, v := range [...]uint64{x.Number, f.DI, f.SI, f.DX, f.R10, f.R8, f.R9} {
			b = le.AppendUint64(b, v)
		}
		if x.Filtered {
			b[0] = linux.PTRACE_SYSCALL_INFO_SECCOMP
			b = le.AppendUint32(b, uint32(x.Message))
		}
	case x.Leaving && good:
		b[0] = linux.PTRACE_SYSCALL_INFO_EXIT
		v := x.ShownAX()
		b = le.AppendUint64(b, v)
		b = append(b, asByte(-v-1 < failures))
	}
	return b
}

func asByte(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// setSize is the size of a set of signals in bytes.
const setSize = 8
