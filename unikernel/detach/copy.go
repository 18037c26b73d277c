package detach

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// copyOutput copies a non-blocking pipe to w until the pipe ends, or until its read deadline has passed. Then it copies the
// bytes that are still in the pipe.
func copyOutput(w io.Writer, from *os.File) {
	room := make([]byte, 64<<10)
	for {
		n, err := from.Read(room)
		w.Write(room[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			drain(w, from, room)
			return
		}
		if err != nil {
			return
		}
	}
}

// drain copies the bytes that are in a non-blocking pipe now. Methods of os.File would not read after the deadline.
func drain(w io.Writer, from *os.File, room []byte) {
	conn, err := from.SyscallConn()
	if err != nil {
		return
	}
	conn.Control(func(fd uintptr) {
		for {
			n, err := syscall.Read(int(fd), room)
			if err == syscall.EINTR {
				continue
			}
			if err != nil || n == 0 {
				return
			}
			w.Write(room[:n])
		}
	})
}
