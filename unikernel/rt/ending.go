package rt

import (
	"os"
	"os/signal"
	"syscall"
	"time"
	_ "unsafe" // for go:linkname
)

// This file handles programs with disks that end without exit(2), by a panic or by a signal that they do not handle. On
// Linux the kernel writes the dirty pages of files after the program has ended. Here the kernel ends with the program,
// so it must write them first.

// fatalSignals are the signals that end a program in an orderly way.
var fatalSignals = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM}

// unmountAtEnd has the file systems unmounted when a panic, or a signal that the program does not handle, ends the program.
func unmountAtEnd() {
	var list []os.Signal
	for _, s := range fatalSignals {
		if !signal.Ignored(s) {
			list = append(list, s)
		}
	}
	if len(list) > 0 {
		// Package signal sends without waiting, and awaitSignal receives. The channel is never closed. If it is full, the
		// program is ending already.
		c := make(chan os.Signal, 1)
		signal.Notify(c, list...)
		go awaitSignal(c)
	}
	crash = unmountInTime
}

// awaitSignal unmounts at a signal that the program does not handle, and then lets the signal end it.
func awaitSignal(c chan os.Signal) {
	for s := range c {
		number := s.(syscall.Signal)
		if handled(c, int(number)) {
			continue
		}
		unmountInTime()
		signal.Reset(s)
		syscall.Kill(os.Getpid(), number)
	}
}

// handled reports whether the program receives a signal by another channel than c.
//
//go:linkname handled os/signal.loamHandled
func handled(c chan<- os.Signal, number int) bool

// crash is called by the runtime before a panic ends the program; nil: nothing is called.
//
//go:linkname crash runtime.loamCrash
var crash func()

// unmountTime is the longest that the end of a program waits for its disks: a panicking goroutine may hold their locks.
const unmountTime = 10 * time.Second

// unmountInTime unmounts the file systems, and waits for that at most unmountTime.
func unmountInTime() {
	done := make(chan struct{})
	go func() {
		unmount()
		close(done)
	}()
	t := time.NewTimer(unmountTime)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}
