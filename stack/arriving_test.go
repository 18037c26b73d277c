package stack_test

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"loam/link"
	"loam/link/pipe"
	"loam/stack"
)

// Data that arrives in large frames stays in them until the program reads it, and is
// unchanged. The frames are freed when they are read, and when no program will read them
// any more.
func TestLargeFramesWaitForTheProgram(t *testing.T) {
	for _, read := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, stack.Config{Shards: 1}, pipe.Config{Offloads: pipe.AllOffloads})
			l, err := p.b.ListenTCP(mustAddrPort("10.0.0.2:80"), 1, stack.TCPOptions{})
			if err != nil {
				t.Fatal(err)
			}
			client, err := p.a.DialTCP(unspecified, mustAddrPort("10.0.0.2:80"), stack.TCPOptions{})
			if err != nil {
				t.Fatal(err)
			}
			server, err := l.AcceptTCP()
			if err != nil {
				t.Fatal(err)
			}
			sent := randomBytes(4 << 20)
			go func() {
				client.Write(sent)
				client.Close()
			}()
			got := make([]byte, 2<<20) // 2 MiB, after which the receive window has grown, so the sender uses large frames
			if _, err := io.ReadFull(server, got); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if link.Outstanding() == 0 {
				t.Errorf("%d bytes wait for the program, and no frame is kept", server.Buffered())
			}
			if read {
				rest, err := io.ReadAll(server)
				if err != nil || !bytes.Equal(append(got, rest...), sent) {
					t.Errorf("%d bytes came, or others, and %v", len(got)+len(rest), err)
				}
			}
			server.Close()
			client.Abort()
			time.Sleep(time.Second)
		})
	}
}
