//go:build !linux

package pace

import "time"

// sleepUntil blocks the calling goroutine until t, a time as returned by Now.
func sleepUntil(t int64) { time.Sleep(time.Duration(t - Now())) }

// Punctual does nothing on this system.
func Punctual() (undo func()) { return func() {} }
