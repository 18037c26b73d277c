package task

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/task/signal"
)

// Restartable sequences (rseq(2)). A thread that has registered a struct rseq finds the number of its CPU there, and may run a short
// critical section that stores to data of that CPU. If another thread could have run on the CPU meanwhile, the section is
// aborted: the thread continues at an address that the program has chosen.
//
// The machine returns Moved before a thread enters ring 3 on a CPU on which another thread was in ring 3 last, or on another CPU than
// before. Only then the number can change, and only then, and for a signal, a section is aborted. Unlike on Linux, a thread is
// never preempted without such an entry.

// Layout of struct rseq and of struct rseq_cs (linux/rseq.h), in bytes.
const (
	rseqSize     = 32
	rseqSection  = 8
	sectionSize  = 32
	signatureLen = 4

	rseqUnregister = 1
)

// Values of AT_RSEQ_FEATURE_SIZE and AT_RSEQ_ALIGN: the last known field is flags.
const (
	RseqFeatures = 20
	RseqAlign    = 32
)

// rseq is the registration of a thread. address 0 means none.
type rseq struct {
	address         uint64
	size, signature uint32
	stored          uint32 // number of the CPU in memory, plus one; 0: not stored yet
}

// rseqCall implements rseq(2). Errors: EINVAL, EFAULT, EBUSY, EPERM.
func rseqCall(t *Task, a call.Args) (uint64, linux.Errno) {
	size, signature := uint32(a.A2), uint32(a.A4)
	old := &t.rseq
	if uint32(a.A3)&rseqUnregister != 0 {
		switch {
		case uint32(a.A3) != rseqUnregister, old.address != a.A1 || a.A1 == 0, size != old.size:
			return 0, linux.EINVAL
		case signature != old.signature:
			return 0, linux.EPERM
		}
		*old = rseq{}
		t.thread.Watch(false)
		return 0, t.putCPU(a.A1, 0, ^uint32(0))
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
	case size < rseqSize || a.A1%RseqAlign != 0:
		return 0, linux.EINVAL
	case a.A1 >= mem.End || a.A1 == 0:
		return 0, linux.EFAULT
	}
	*old = rseq{address: a.A1, size: size, signature: signature}
	t.thread.Watch(true) // the next Run returns Moved
	return 0, 0
}

// putCPU stores cpu_id_start and cpu_id.
func (t *Task) putCPU(at uint64, start, id uint32) linux.Errno {
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:], start)
	binary.LittleEndian.PutUint32(b[4:], id)
	return t.caller.Memory.Write(at, b[:])
}

// moved updates the number of the CPU, and aborts a critical section.
func (t *Task) moved() {
	if t.rseq.address == 0 {
		return
	}
	if n := uint32(t.thread.CPU()); t.rseq.stored != n+1 {
		if errno := t.putCPU(t.rseq.address, n, n); errno != 0 {
			t.force(signal.Info{Signal: signal.Segmentation, Code: signal.CodeKernel})
			return
		}
		t.rseq.stored = n + 1
	}
	t.abortSection()
}

// abortSection makes a thread in a critical section continue at the abort handler of the section. A damaged section causes SIGSEGV.
func (t *Task) abortSection() {
	if t.rseq.address == 0 {
		return
	}
	at, errno := t.caller.Memory.Pointer(t.rseq.address + rseqSection)
	if errno == 0 && at == 0 {
		return
	}
	var ip uint64
	if errno == 0 {
		ip, errno = t.sectionAt(at)
	}
	if errno == 0 {
		errno = t.caller.Memory.Write(t.rseq.address+rseqSection, make([]byte, 8))
	}
	if errno != 0 {
		t.force(signal.Info{Signal: signal.Segmentation, Code: signal.CodeKernel})
		return
	}
	if ip != 0 {
		t.thread.Registers().IP = ip
		t.thread.Restore()
	}
}

// sectionAt returns the address of the abort handler if the thread is in the critical section described at an address, or else 0.
// Errors: EFAULT, EINVAL.
func (t *Task) sectionAt(at uint64) (abort uint64, errno linux.Errno) {
	var b [sectionSize]byte
	if errno := t.caller.Memory.Read(b[:], at); errno != 0 {
		return 0, errno
	}
	le := binary.LittleEndian
	version, flags := le.Uint32(b[:]), le.Uint32(b[4:])
	start, length, abort := le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:])
	switch {
	case start >= mem.End, start+length >= mem.End, start+length < start, abort >= mem.End, version > 0, abort-start < length:
		return 0, linux.EINVAL
	}
	signature, errno := (memory{t}).word(abort - signatureLen)
	switch {
	case errno != 0:
		return 0, errno
	case signature != t.rseq.signature:
		return 0, linux.EINVAL
	case t.thread.Registers().IP-start >= length:
		return 0, 0
	case flags != 0:
		return 0, linux.EINVAL
	}
	return abort, 0
}
