//go:build linux

package interop

import (
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// quickSize is the size of a transfer in MiB in a quick run.
const quickSize = 8

// TestTransfer checks that a stream arrives unchanged, whichever end connects and sends, and when both
// send at once.
func TestTransfer(t *testing.T) {
	each(t, func(l *lab, v variant) {
		size := scale(v.size, quickSize) << 20
		for _, d := range l.directions() {
			client, server := l.connect(d)
			l.send(d.String(), client, server, size)
			client, server = l.connect(d)
			l.send(d.String()+", server sends", server, client, size/8)
			client, server = l.connect(d)
			l.exchange(d.String()+", both send", client, server, size/8)
		}
	})
}

// send transfers a stream and logs its rate.
func (l *lab) send(what string, from, to conn, size int) {
	l.Helper()
	streamHash(size) // computed before the transfer, because it takes time
	began := time.Now()
	if err := transfer(from, to, size); err != nil {
		l.Fatalf("%s: %v", what, err)
	}
	l.Logf("%s: %s", what, rate(size, began))
}

// exchange transfers a stream in each direction at once.
func (l *lab) exchange(what string, a, b conn, size int) {
	l.Helper()
	streamHash(size)
	began := time.Now()
	var g errgroup.Group
	g.Go(func() error { return transfer(a, b, size) })
	g.Go(func() error { return transfer(b, a, size) })
	if err := g.Wait(); err != nil {
		l.Fatalf("%s: %v", what, err)
	}
	l.Logf("%s: each way %s", what, rate(size, began))
}
