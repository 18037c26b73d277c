package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Reading describes which output of a guest to print.
type Reading struct {
	Tail   int  // number of lines, counted from the end; negative: all lines that are stored
	Follow bool // print further output until the guest ends
	// Skipped is called if the guest writes faster than the output is printed, so that parts were removed before they were
	// read. n is the number of parts.
	Skipped func(n int)
}

// Print writes the stored output of a detached guest to w. It returns an *Error if the guest is not detached.
func (g *Guest) Print(ctx context.Context, w io.Writer, how Reading) error {
	if !g.Detached {
		return &Error{fmt.Sprintf("the output of %s is not stored, because it runs in the foreground", g.Name), "see the terminal where it was started, or use loam run -d"}
	}
	r := &reader{dir: g.dir}
	defer r.close()
	stored, err := r.rest()
	if err != nil {
		return err
	}
	if _, err := w.Write(tail(stored, how.Tail)); err != nil {
		return err
	}
	for how.Follow {
		held, err := g.held() // before the read: so the last read gets all output
		if err != nil {
			return err
		}
		more, err := r.rest()
		if err != nil {
			return err
		}
		if r.skipped > 0 && how.Skipped != nil {
			how.Skipped(r.skipped)
		}
		r.skipped = 0
		if _, err := w.Write(more); err != nil {
			return err
		}
		if !held {
			return nil
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// tail returns the last n lines of b, or all of b if n is negative. Text after the last newline is a line.
func tail(b []byte, n int) []byte {
	if n < 0 {
		return b
	}
	at := len(b)
	for i := 0; i < n && at > 0; i++ {
		at = bytes.LastIndexByte(b[:at-1], '\n') + 1
	}
	return b[at:]
}

// reader reads the parts of an output in order.
type reader struct {
	dir     *os.Root
	part    int      // number of the current part; 0: none yet
	file    *os.File // the current part; nil: none yet
	skipped int      // number of parts that were removed before they were read
}

// rest returns the output that was not read before. A part is complete when the next one exists.
func (r *reader) rest() (all []byte, err error) {
	for {
		numbers, err := parts(r.dir)
		if err != nil {
			return all, err
		}
		if r.file != nil {
			more, err := io.ReadAll(r.file)
			if all = append(all, more...); err != nil {
				return all, err
			}
		}
		switch opened, err := r.advance(numbers); {
		case err != nil:
			return all, err
		case !opened:
			return all, nil
		}
	}
}

// advance opens the first part after the current one. It reports whether there may be more to read.
func (r *reader) advance(numbers []int) (bool, error) {
	for _, n := range numbers {
		if n <= r.part {
			continue
		}
		f, err := r.dir.Open(partName(n))
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile: look again
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if r.part > 0 {
			r.skipped += n - r.part - 1
		}
		r.close()
		r.part, r.file = n, f
		return true, nil
	}
	return false, nil
}

// close closes the current part.
func (r *reader) close() {
	if r.file != nil {
		r.file.Close()
	}
}
