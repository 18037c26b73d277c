package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interruption is the signal by which a command was ended before it had done its work. It is a
// context.Canceled.
type interruption syscall.Signal

func (i interruption) Error() string {
	if i == interruption(syscall.SIGINT) {
		return "interrupted"
	}
	return syscall.Signal(i).String()
}

// Is makes it what a context that has ended is.
func (i interruption) Is(target error) bool { return target == context.Canceled }

// status is the exit status that shells give to who ends by the signal.
func (i interruption) status() int { return 128 + int(i) }

// untilInterrupted returns a context that ends with SIGINT and SIGTERM, and has an
// interruption as its cause; and what gives these signals back.
func untilInterrupted() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		if s, ok := (<-signals).(syscall.Signal); ok {
			cancel(interruption(s))
		}
	}()
	return ctx, func() { signal.Stop(signals) }
}

// endBySecondSignal has a signal end the process at once that comes when ctx is done: for
// commands that may take their time to end, and leave nothing behind where they are killed.
func endBySecondSignal(ctx context.Context) {
	context.AfterFunc(ctx, func() { signal.Reset(syscall.SIGINT, syscall.SIGTERM) })
}
