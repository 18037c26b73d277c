// Command late says how late goroutines start. For each byte that comes on the connection
// to port 7 it starts one, computes until that has begun, and sends back after how many
// nanoseconds it did, in eight bytes. It ends with the connection.
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
		for began.Load() == 0 { // neither calls nor allocation: nothing that the runtime is part of
		}
		binary.LittleEndian.PutUint64(b, uint64(began.Load()))
		_, err := c.Write(b)
		check.Nil(err, "write")
	}
}
