package signal

import (
	"encoding/binary"

	"loam/abi/linux"
)

// InfoSize is the size of siginfo_t in bytes.
const InfoSize = 128

// Put encodes the signal as a siginfo_t (sigaction(2)) in zeroed memory.
func (i Info) Put(b []byte) {
	le := binary.LittleEndian
	le.PutUint32(b, uint32(i.Signal))
	le.PutUint32(b[4:], uint32(i.Errno))
	le.PutUint32(b[8:], uint32(i.Code))
	switch {
	case i.Addr != 0:
		le.PutUint64(b[16:], i.Addr)
		le.PutUint64(b[24:], i.Value) // used only by SIGSYS (si_syscall and si_arch), and 0 for other signals
	default:
		le.PutUint32(b[16:], uint32(i.PID))
		le.PutUint32(b[20:], i.UID)
		if i.Signal == Child {
			le.PutUint32(b[24:], uint32(i.Status))
			le.PutUint64(b[32:], i.User)
			le.PutUint64(b[40:], i.System)
		} else {
			le.PutUint64(b[24:], i.Value)
		}
	}
}

// CheckInfo decodes a siginfo_t that a program sends with signal n. If n is 0, the siginfo_t may have any signal. own is set if
// the program sends the signal to itself: only then may the siginfo_t claim that it comes from the kernel or from kill(2).
// Errors: EPERM, EINVAL for another signal.
func CheckInfo(b []byte, n int, own bool) (Info, linux.Errno) {
	i := ParseInfo(b)
	i.Signal = Number(n)
	switch {
	case (i.Code >= 0 || i.Code == CodeThread) && !own:
		return i, linux.EPERM
	case binary.LittleEndian.Uint32(b) != uint32(n) && n != 0:
		return i, linux.EINVAL
	}
	return i, 0
}

// ParseInfo decodes a siginfo_t of a signal that a program sends, or that a debugger has changed.
func ParseInfo(b []byte) Info {
	le := binary.LittleEndian
	i := Info{Signal: Number(le.Uint32(b)), Errno: int32(le.Uint32(b[4:])), Code: int32(le.Uint32(b[8:]))}
	if i.Code > 0 && i.Code != CodeKernel && SetOf(i.Signal)&Synchronous != 0 {
		i.Addr = le.Uint64(b[16:])
		return i
	}
	i.PID, i.UID, i.Value = int32(le.Uint32(b[16:])), le.Uint32(b[20:]), le.Uint64(b[24:])
	if i.Signal == Child {
		i.Status, i.User, i.System, i.Value = int32(le.Uint32(b[24:])), le.Uint64(b[32:]), le.Uint64(b[40:]), 0
	}
	return i
}

// TimerInfo returns the info of a timer's signal (timer_create(2)).
func TimerInfo(n Number, timer int32, value uint64, overrun uint32) Info {
	return Info{Signal: n, Code: CodeTimer, PID: timer, UID: overrun, Value: value}
}

// PutFile encodes the signal as a struct signalfd_siginfo (signalfd(2)).
func (i Info) PutFile(b []byte) {
	clear(b)
	le := binary.LittleEndian
	for at, v := range map[int]uint32{
		0: uint32(i.Signal), 4: uint32(i.Errno), 8: uint32(i.Code), 12: uint32(i.PID), 16: i.UID, 40: uint32(i.Status), 44: uint32(i.Value),
	} {
		le.PutUint32(b[at:], v)
	}
	le.PutUint64(b[48:], i.Value)
	le.PutUint64(b[72:], i.Addr)
	if i.Code == CodeTimer { // ssi_tid and ssi_overrun in place of ssi_pid and ssi_uid
		clear(b[12:20])
		le.PutUint32(b[24:], uint32(i.PID))
		le.PutUint32(b[32:], i.UID)
	}
}
