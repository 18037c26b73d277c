package unikernel

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"

	"loam/unikernel/sandbox"
)

// Capture runs a built program as a process, without a network and without files of the host. It returns
// the program's standard output. It fails if the program fails; the error then contains the program's
// standard error. When ctx ends, the program is killed.
func Capture(ctx context.Context, program string, args ...string) ([]byte, error) {
	n, err := openNetwork(&Network{Kind: NoNetwork}, "localhost", Process, 1)
	if err != nil {
		return nil, err
	}
	defer n.close()
	n.config.Folder = "/"
	command, err := n.command(program, &Options{Args: args})
	if err != nil {
		return nil, err
	}
	command.Group = true
	var output, complaint captured
	for _, c := range []struct {
		to *captured
		at **os.File
	}{{&output, &command.Stdout}, {&complaint, &command.Stderr}} {
		if *c.at, err = c.to.open(); err != nil {
			return nil, err
		}
	}
	runtime.LockOSThread() // sandbox.Start requires that its thread lives as long as the program
	defer runtime.UnlockOSThread()
	p, err := sandbox.Start(*command)
	command.Stdout.Close()
	command.Stderr.Close()
	if err == nil {
		stop := context.AfterFunc(ctx, func() { p.Signal(syscall.SIGKILL) })
		defer stop()
	}
	var status syscall.WaitStatus
	if err == nil {
		status, err = p.Wait()
	}
	text, said := output.text(), complaint.text()
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case statusOf(status) != 0:
		return nil, fmt.Errorf("status %d: %s", statusOf(status), strings.TrimSpace(string(said)))
	}
	return text, nil
}

// captured collects the bytes that are written to a pipe, in a goroutine.
type captured struct {
	buffer bytes.Buffer
	done   chan struct{} // closed by the reading goroutine at the end of the pipe
}

// open creates the pipe, and returns its write end.
func (c *captured) open() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.done = make(chan struct{})
	go func() {
		defer close(c.done)
		defer r.Close()
		io.Copy(&c.buffer, r)
	}()
	return w, nil
}

// text waits until all write ends are closed, and returns what was written.
func (c *captured) text() []byte {
	<-c.done
	return c.buffer.Bytes()
}
