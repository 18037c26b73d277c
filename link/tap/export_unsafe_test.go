//go:build linux

package tap

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"

	"loam/link"
)

// StraySieve is the eBPF program that drops stray segments (TCP segments without a connection). It is loaded in a
// form in which the kernel runs it on a given frame (BPF_PROG_TEST_RUN).
type StraySieve struct{ s *sieve }

// NewStraySieve loads the program. Without CAP_BPF, it returns an error that is syscall.EPERM.
func NewStraySieve() (StraySieve, error) {
	const schedCLS = 3 // BPF_PROG_TYPE_SCHED_CLS
	s, err := newSieve(schedCLS)
	return StraySieve{s}, err
}

// Flows returns the set of flows whose segments pass.
func (s StraySieve) Flows() *link.Flows { return s.s.flows }

// Set makes the program drop all stray segments except one in 1<<shift, or none if on is false.
func (s StraySieve) Set(shift uint8, on bool) {
	s.s.mask.Store(1<<shift - 1)
	s.s.until.Store(0)
	if on {
		s.s.until.Store(uint64(monotonic()) + 1e12)
	}
}

// Passes runs the program on a frame and reports whether the frame passes.
func (s StraySieve) Passes(frame []byte) (bool, error) {
	const progTestRun = 10 // BPF_PROG_TEST_RUN
	var attr struct {
		program, result  uint32
		sizeIn, sizeOut  uint32
		dataIn, dataOut  uint64
		repeat, duration uint32
		context          [6]uint32
		flags, cpu       uint32
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&frame[0])
	attr.program, attr.sizeIn, attr.dataIn = uint32(s.s.program), uint32(len(frame)), uint64(uintptr(unsafe.Pointer(&frame[0])))
	if _, err := bpf(progTestRun, unsafe.Pointer(&attr), unsafe.Sizeof(attr)); err != nil {
		return false, err
	}
	switch attr.result {
	case drop:
		return false, nil
	case anyLength:
		return true, nil
	}
	return false, errors.New("the program returned a length")
}

// Close closes the descriptors.
func (s StraySieve) Close() error {
	s.s.close()
	return nil
}

// CannotLoad reports whether an error says that this process may not load programs.
func CannotLoad(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS)
}
