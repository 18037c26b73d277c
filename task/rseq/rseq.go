// Package rseq implements restartable sequences (rseq(2)). A thread that has registered a struct rseq finds the number of its CPU
// there, and may run a short critical section that stores to data of that CPU. If another thread could have run on the CPU
// meanwhile, the section is aborted: the thread continues at an address that the program has chosen.
//
// Function Moved is called before a thread enters ring 3 on another CPU than before, or after an interrupt on a CPU on which
// another thread was in ring 3 meanwhile. Only at such an entry can the number of the CPU change. A section is aborted only at
// such an entry, and when a signal is delivered. A system call does not abort a section, because sections must not make
// system calls (rseq(2)).
package rseq

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/task/machine"
)

// Layout of struct rseq and of struct rseq_cs (linux/rseq.h), in bytes.
const (
	rseqSize     = 32
	rseqSection  = 8
	sectionSize  = 32
	signatureLen = 4

	unregister = 1
)

// Values of AT_RSEQ_FEATURE_SIZE and AT_RSEQ_ALIGN: the last known field is flags.
const (
	Features = 20
	Align    = 32
)

// Registration is the struct rseq that a thread has registered. The zero value is none.
type Registration struct {
	address         uint64
	size, signature uint32
	stored          uint32 // number of the CPU in memory, plus one; 0: not stored yet
}

// Active reports whether a struct rseq is registered.
func (r *Registration) Active() bool { return r.address != 0 }

// Caller is the thread that makes a call of rseq(2).
type Caller interface {
	Memory() call.Memory
	Machine() machine.Thread
	Sequence() *Registration
}

// Call implements rseq(2). Errors: EINVAL, EFAULT, EBUSY, EPERM.
func Call(t Caller, a call.Args) (uint64, linux.Errno) {
	size, signature := uint32(a.A2), uint32(a.A4)
	old := t.Sequence()
	if uint32(a.A3)&unregister != 0 {
		switch {
		case uint32(a.A3) != unregister, old.address != a.A1 || a.A1 == 0, size != old.size:
			return 0, linux.EINVAL
		case signature != old.signature:
			return 0, linux.EPERM
		}
		*old = Registration{}
		t.Machine().Watch(false)
		return 0, putCPU(t, a.A1, 0, ^uint32(0))
	}
	switch {
	case uint32(a.A3) != 0:
		return 0, linux.EINVAL
	case old.address != 0 && (old.address != a.A1 || old.size != size):
		return 0, linux.EINVAL
	case old.address != 0 && old.signature != signature:
		return 0, linux.EPERM
	case old.address != 0:
		return 0, linux.EBUSY
	case size < rseqSize || a.A1%Align != 0:
		return 0, linux.EINVAL
	case a.A1 >= mem.End || a.A1 == 0:
		return 0, linux.EFAULT
	}
	*old = Registration{address: a.A1, size: size, signature: signature}
	t.Machine().Watch(true) // Watch makes the next Run return Moved
	return 0, 0
}

// putCPU stores the number of the CPU in the fields cpu_id_start and cpu_id.
func putCPU(t Caller, at uint64, start, id uint32) linux.Errno {
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:], start)
	binary.LittleEndian.PutUint32(b[4:], id)
	return t.Memory().Write(at, b[:])
}

// Moved updates the number of the CPU, and aborts a critical section. It does nothing for a thread without a registration.
// Errors: EFAULT and EINVAL for memory of the program that is damaged, which causes SIGSEGV.
func Moved(t Caller) linux.Errno {
	r := t.Sequence()
	if r.address == 0 {
		return 0
	}
	if n := uint32(t.Machine().CPU()); r.stored != n+1 {
		if errno := putCPU(t, r.address, n, n); errno != 0 {
			return errno
		}
		r.stored = n + 1
	}
	return Abort(t)
}

// Abort makes a thread in a critical section continue at the abort handler of the section. Errors: as Moved.
func Abort(t Caller) linux.Errno {
	r := t.Sequence()
	if r.address == 0 {
		return 0
	}
	at, errno := t.Memory().Pointer(r.address + rseqSection)
	if errno != 0 || at == 0 {
		return errno
	}
	ip, errno := sectionAt(t, at)
	if errno == 0 {
		errno = t.Memory().Write(r.address+rseqSection, make([]byte, 8))
	}
	if errno == 0 && ip != 0 {
		t.Machine().Registers().IP = ip
		t.Machine().Restore()
	}
	return errno
}

// sectionAt returns the address of the abort handler if the thread is in the critical section described at an address, or else 0.
// Errors: EFAULT, EINVAL.
func sectionAt(t Caller, at uint64) (abort uint64, errno linux.Errno) {
	var b [sectionSize]byte
	if errno := t.Memory().Read(b[:], at); errno != 0 {
		return 0, errno
	}
	le := binary.LittleEndian
	version, flags := le.Uint32(b[:]), le.Uint32(b[4:])
	start, length, abort := le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:])
	switch {
	case start >= mem.End, start+length >= mem.End, start+length < start, abort >= mem.End, version > 0, abort-start < length:
		return 0, linux.EINVAL
	}
	var signature [signatureLen]byte
	errno = t.Memory().Read(signature[:], abort-signatureLen)
	switch {
	case errno != 0:
		return 0, errno
	case le.Uint32(signature[:]) != t.Sequence().signature:
		return 0, linux.EINVAL
	case t.Machine().Registers().IP-start >= length:
		return 0, 0
	case flags != 0:
		return 0, linux.EINVAL
	}
	return abort, 0
}
