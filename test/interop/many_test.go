//go:build linux

package interop

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// TestManyConnections opens a thousand connections at once. It checks that each sends a stream and gets
// it back, and that none is left behind.
func TestManyConnections(t *testing.T) {
	for _, v := range []variant{
		{"one queue", setup{}, 0},
		{"two queues", setup{queues: 2}, 0},
		{"no offloads", setup{noOffloads: true}, 0},
	} {
		t.Run(v.name, func(t *testing.T) {
			l := newLab(t, v.setup)
			l.meet()
			for _, d := range l.directions() {
				l.many(d, scale(1000, 200), scale(64<<10, 16<<10))
			}
		})
	}
}

// many opens count connections to an echo server, waits until all are open, and then sends a stream of
// size bytes on each and reads it back.
func (l *lab) many(d direction, count, size int) {
	l.Helper()
	ln, err := d.server.listen("tcp", d.server.at(0))
	l.must(err)
	go echo(ln)
	defer ln.Close()
	streamHash(size)
	var all sync.WaitGroup // done when every connection is open
	all.Add(count)
	var g errgroup.Group
	began := time.Now()
	for i := range count {
		g.Go(func() error {
			c, err := d.client.dial(l.ctx, "tcp", ln.Addr().String())
			all.Done()
			if err != nil {
				return fmt.Errorf("%s, connection %d: %w", d, i, err)
			}
			defer c.Close()
			c.SetDeadline(l.until())
			all.Wait()
			if err := transfer(c.(conn), c.(conn), size); err != nil {
				return fmt.Errorf("%s, connection %d: %w", d, i, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		l.Fatal(err)
	}
	l.Logf("%s: %d connections, each way %s", d, count, rate(count*size, began))
}

// TestConnectAndClose checks connections one after another, each with one request and one response,
// as an HTTP/1.0 client makes them.
func TestConnectAndClose(t *testing.T) {
	l := newLab(t, setup{queues: 2})
	for _, d := range l.directions() {
		ln, err := d.server.listen("tcp", d.server.at(0))
		l.must(err)
		go echo(ln)
		began := time.Now()
		count := scale(3000, 300)
		var g errgroup.Group
		g.SetLimit(8)
		for range count {
			g.Go(func() error { return l.question(d, ln.Addr()) })
		}
		if err := g.Wait(); err != nil {
			t.Errorf("%s: %v", d, err)
		}
		ln.Close()
		t.Logf("%s: %d connections, %.0f a second", d, count, float64(count)/time.Since(began).Seconds())
	}
}

// question sends a request to an echo server on a connection of its own.
func (l *lab) question(d direction, server net.Addr) error {
	c, err := d.client.dial(l.ctx, "tcp", server.String())
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(l.until())
	if _, err := io.WriteString(c, "question"); err != nil {
		return err
	}
	if err := c.(conn).CloseWrite(); err != nil {
		return err
	}
	answer, err := io.ReadAll(c)
	if err == nil && string(answer) != "question" {
		err = errors.New("the answer is " + string(answer))
	}
	return err
}
