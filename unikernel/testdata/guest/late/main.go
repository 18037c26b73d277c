// Command late measures how long new goroutines wait until they run. For each byte that it receives on the connection
// to port 7, it starts a goroutine, computes until that runs, and sends back the delay in nanoseconds, as eight bytes.
// It ends when the connection does.
package main

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"time"

	"example.com/guest/internal/check"
)

func main() {
	l, err := net.Listen("tcp", ":7")
	check.Nil(err, "listen")
	c, err := l.Accept()
	check.Nil(err, "accept")
	for b := make([]byte, 8); ; {
		if _, err := io.ReadFull(c, b[:1]); err != nil {
			return
		}
		var began atomic.Int64
		asked := time.Now()
		go func() { began.Store(max(int64(time.Since(asked)), 1)) }()
		// without calls or allocation, so that the scheduler can run the goroutine only by preemption
		for began.Load() == 0 {
		}
		binary.LittleEndian.PutUint64(b, uint64(began.Load()))
		_, err := c.Write(b)
		check.Nil(err, "write")
	}
}
