// Command clock sends the time, in nanoseconds since 1970, for each byte that it receives on one connection to port 7.
// Meanwhile it checks on all CPUs that time never goes back; with an argument, it does not check.
package main

import (
	"encoding/binary"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"example.com/guest/internal/check"
)

func main() {
	start := time.Now()
	var last atomic.Int64
	for range runtime.NumCPU() * (2 - len(os.Args)) {
		go func() {
			for {
				before := last.Load()
				now := int64(time.Since(start))
				if now < before {
					panic("time goes back")
				}
				last.CompareAndSwap(before, now)
				time.Sleep(100 * time.Microsecond)
			}
		}()
	}
	l, err := net.Listen("tcp", ":7")
	check.Nil(err, "listen")
	c, err := l.Accept()
	check.Nil(err, "accept")
	var b [8]byte
	for {
		if _, err := c.Read(b[:1]); err != nil {
			return
		}
		binary.LittleEndian.PutUint64(b[:], uint64(time.Now().UnixNano()))
		_, err := c.Write(b[:])
		check.Nil(err, "write")
	}
}
