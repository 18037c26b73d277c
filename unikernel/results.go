package unikernel

import (
	"io"
	"os"

	"loam/unikernel/results"
)

// takeResults prepares the guest to send the results of a test binary. The function wait waits for the
// transfer after the guest has ended; it must be called.
func (n *network) takeResults(r results.List, platform Platform) (wait func() error, err error) {
	n.config.Results, n.config.ResultFolders = r.Files, r.Folders
	if len(r.Files) == 0 {
		return func() error { return nil }, nil
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if platform == Machine {
		n.results = to
	} else {
		n.config.ResultsFD = n.give(to)
	}
	done := make(chan error, 1) // the goroutine that receives the results sends its error once, and takeResults's wait receives it
	go func() {
		err := results.Receive(from, r.Files)
		io.Copy(io.Discard, from) // discards the rest, so that the program does not block on the pipe
		done <- err
	}()
	return func() error {
		n.handedOver()
		to.Close()
		defer from.Close()
		return <-done
	}, nil
}
