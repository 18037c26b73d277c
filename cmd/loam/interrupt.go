package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// interruption is the signal that interrupted a command. As an error, it matches context.Canceled.
type interruption syscall.Signal

func (i interruption) Error() string {
	if i == interruption(syscall.SIGINT) {
		return "interrupted"
	}
	return syscall.Signal(i).String()
}

// Is reports true for context.Canceled, so that errors.Is treats an interruption like the error of a canceled context.
func (i interruption) Is(target error) bool { return target == context.Canceled }

// status returns the exit status that shells report for a process that the signal has ended.
func (i interruption) status() int { return 128 + int(i) }

// signal returns the signal.
func (i interruption) signal() syscall.Signal { return syscall.Signal(i) }

// interruptionOf returns the interruption that has caused an error of a command, if one has.
func interruptionOf(ctx context.Context, err error) (ended interruption, ok bool) {
	ok = errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &ended)
	return ended, ok
}

// endThis sends this process SIGTERM, as another process would.
func endThis() { syscall.Kill(os.Getpid(), syscall.SIGTERM) }

// untilInterrupted returns a context that is canceled on SIGINT and SIGTERM, with an interruption as its cause.
// stop restores the default handling of these signals.
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

// endBySecondSignal restores the default signal handling when ctx is done, so that a second signal ends the process
// immediately. It is for commands that may take long to end and that may be killed without consequences.
func endBySecondSignal(ctx context.Context) {
	context.AfterFunc(ctx, func() { signal.Reset(syscall.SIGINT, syscall.SIGTERM) })
}
