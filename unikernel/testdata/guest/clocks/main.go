// Command clocks checks that the clocks of the vDSO agree with those of system calls: of two calls, the later never
// returns an earlier time. It prints "clocks" if they agree, and otherwise the clock that went back.
package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"
)

func main() {
	if err := run(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("clocks")
}

//go:linkname getAuxv runtime.getAuxv
func getAuxv() []uintptr

// hasVDSO looks for the function of the vDSO that package time calls.
func hasVDSO() error {
	const sysinfoEHDR, page = 33, 4096
	auxv := getAuxv()
	for i := 0; i+1 < len(auxv); i += 2 {
		if auxv[i] != sysinfoEHDR {
			continue
		}
		addr := auxv[i+1]
		image := unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), page)
		f, err := elf.NewFile(bytes.NewReader(image))
		if err != nil {
			return err
		}
		if len(f.Progs) == 0 {
			return fmt.Errorf("the vDSO has no segments")
		}
		return nil
	}
	return fmt.Errorf("there is no vDSO")
}

func run() error {
	if err := hasVDSO(); err != nil {
		return err
	}
	const span = 2500 * time.Millisecond // the kernel corrects its clock once a second at first
	began := time.Now()
	for last := began; last.Sub(began) < span; {
		before := byCall()
		now := time.Now()
		after := byCall()
		if now.UnixNano() < before || after < now.UnixNano() {
			return fmt.Errorf("system call %d, vDSO %d, system call %d", before, now.UnixNano(), after)
		}
		if now.Before(last) {
			return fmt.Errorf("the monotonic clock went back by %v", last.Sub(now))
		}
		last = now
	}
	return nil
}

// byCall returns CLOCK_REALTIME by a system call, in nanoseconds.
func byCall() int64 {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 0, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}
