package stack_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
)

// Guarantees of package net beyond Conn and PacketConn: listeners, dialling, errors.

func TestListenerDeadline(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		began := time.Now()
		l.SetDeadline(began.Add(time.Minute))
		_, err := l.Accept()
		wantTimeout(t, err)
		var op *net.OpError
		if !errors.As(err, &op) || op.Op != "accept" || op.Net != "tcp" || op.Addr.String() != "0.0.0.0:80" {
			t.Errorf("Accept: %#v, want an OpError of an accept", err)
		}
		if d := time.Since(began); d != time.Minute {
			t.Errorf("the deadline came after %v", d)
		}
		l.SetDeadline(time.Time{})
		accepted := blocked(func() error {
			c, err := l.Accept()
			if err == nil {
				c.Close()
			}
			return err
		})
		w.tcp(5000, 80).connect()
		if err := <-accepted; err != nil {
			t.Errorf("without a deadline: %v", err)
		}
		l.Close()
		err = l.Close()
		if !isClosed(err) || !errors.As(err, &op) || op.Op != "close" {
			t.Errorf("Close again: %v, want net.ErrClosed in an OpError", err)
		}
		if err := l.SetDeadline(time.Now()); !isClosed(err) {
			t.Errorf("SetDeadline afterwards: %v, want net.ErrClosed", err)
		}
	})
}

func TestManyAcceptors(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				c, err := l.Accept()
				if err != nil {
					t.Error(err)
					return
				}
				c.Close()
			})
		}
		synctest.Wait()
		for port := range uint16(5) {
			w.tcp(5000+port, 80).connect()
			w.forget()
		}
		all.Wait()
		for range 3 {
			all.Go(func() {
				if _, err := l.Accept(); !isClosed(err) {
					t.Errorf("Accept ends with %v, want net.ErrClosed", err)
				}
			})
		}
		synctest.Wait()
		l.Close()
		all.Wait()
	})
}

func TestDialContext(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := w.s.DialContext(ctx, "tcp", "10.0.0.2:80")
		var op *net.OpError
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &op) || !op.Timeout() {
			t.Errorf("Dial: %v, want the context's error as a timeout", err)
		}
		if d := time.Since(began); d != time.Minute {
			t.Errorf("Dial returned after %v", d)
		}
		ctx, cancel = context.WithCancel(t.Context())
		done := blocked(func() error { _, err := w.s.DialContext(ctx, "tcp", "10.0.0.2:80"); return err })
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Dial: %v, want %v", err, context.Canceled)
		}
		if _, err := w.s.DialContext(ctx, "tcp", "10.0.0.2:80"); !errors.Is(err, context.Canceled) {
			t.Errorf("Dial with a context that has ended: %v, want %v", err, context.Canceled)
		}
		w.forget()
		w.advance(time.Hour)
		w.wantNone("an attempt that was given up is over")
	})
}

func TestDialRefuses(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		for _, test := range []struct{ network, address string }{
			{"tcp6", "10.0.0.2:80"}, {"unix", "/x"}, {"ip", "10.0.0.2"},
			{"tcp", "10.0.0.2"}, {"tcp", "10.0.0.2:99999"}, {"tcp", "[::1]:80"}, {"udp", "10.0.0.2:noport"},
		} {
			_, err := w.s.Dial(test.network, test.address)
			var op *net.OpError
			if !errors.As(err, &op) || op.Op != "dial" {
				t.Errorf("Dial(%q, %q): %v, want an OpError", test.network, test.address, err)
			}
		}
		for _, test := range []struct{ network, address string }{
			{"udp", "10.0.0.1:80"}, {"tcp", "10.0.0.9:80"}, {"tcp", "name:80"}, {"tcp", "nothing"},
		} {
			_, err := w.s.Listen(test.network, test.address)
			var op *net.OpError
			if !errors.As(err, &op) || op.Op != "listen" {
				t.Errorf("Listen(%q, %q): %v, want an OpError", test.network, test.address, err)
			}
		}
		if _, err := w.s.Listen("tcp", "10.0.0.9:80"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("listening on a foreign address: %v, want EADDRNOTAVAIL", err)
		}
		l := mustListen(t, w.s, 80, 1)
		defer l.Close()
		if _, err := w.s.Listen("tcp", ":80"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("listening twice: %v, want EADDRINUSE", err)
		}
		if _, err := w.s.Dial("udp", "10.0.0.77:9"); err != nil {
			t.Errorf("UDP needs nobody there: %v", err)
		}
		_, err := w.s.Dial("udp", "8.8.8.8:9")
		var op *net.OpError
		if !errors.As(err, &op) || op.Addr.Network() != "udp" || op.Addr.String() != "8.8.8.8:9" {
			t.Errorf("Dial of UDP without a route: %#v, want an OpError with the address", err)
		}
	})
}

// Errors match those of package net, package syscall and this package.
func TestErrors(t *testing.T) {
	for _, test := range []struct {
		err   error
		is    error
		errno syscall.Errno
	}{
		{stack.ErrRefused, syscall.ECONNREFUSED, syscall.ECONNREFUSED},
		{stack.ErrClosed, net.ErrClosed, syscall.EBADF},
		{stack.ErrReset, syscall.ECONNRESET, syscall.ECONNRESET},
		{stack.ErrAccess, syscall.EACCES, syscall.EACCES},
	} {
		wrapped := &net.OpError{Op: "test", Err: test.err}
		var errno syscall.Errno
		if !errors.Is(wrapped, test.is) || !errors.As(wrapped, &errno) || errno != test.errno {
			t.Errorf("%v: errno %v; want it to be %v, %v", test.err, errno, test.is, test.errno)
		}
	}
	refused := &net.OpError{Op: "test", Err: stack.ErrRefused}
	for _, other := range []error{syscall.ECONNRESET, net.ErrClosed} {
		if errors.Is(refused, other) {
			t.Errorf("ErrRefused is %v too", other)
		}
	}
}

// Concurrent writes are not interleaved.
func TestConcurrentWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, stack.Config{Shards: 1}, pipe.Config{})
		l := mustListen(t, p.b, 80, 1)
		defer l.Close()
		c, err := p.a.Dial("tcp", "10.0.0.2:80")
		if err != nil {
			t.Fatal(err)
		}
		const writers, size = 4, 1 << 20
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				b := make([]byte, size)
				for j := range b {
					b[j] = byte(i)
				}
				if _, err := c.Write(b); err != nil {
					t.Error(err)
				}
			})
		}
		go func() {
			all.Wait()
			c.Close()
		}()
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		got, err := io.ReadAll(s)
		changes := 0
		for i := 1; i < len(got); i++ {
			if got[i] != got[i-1] {
				changes++
			}
		}
		if len(got) != writers*size || err != nil || changes != writers-1 {
			t.Errorf("received %d bytes, %v; they change %d times, want %d", len(got), err, changes, writers-1)
		}
	})
}

// An ordinary program: an HTTP server and a client that do not know about stacks.
func TestHTTP(t *testing.T) {
	p := newPair(t, stack.Config{}, pipe.Config{})
	l, err := p.b.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	body := randomBytes(300_000)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(body) })}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	transport := &http.Transport{DialContext: p.a.DialContext}
	client := &http.Client{Transport: transport}
	for range 10 {
		r, err := client.Get("http://10.0.0.2/")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r.Body)
		r.Body.Close()
		if string(got) != string(body) || err != nil {
			t.Errorf("received %d of %d bytes, %v", len(got), len(body), err)
		}
	}
	transport.CloseIdleConnections()
	server.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("the server ended with %v", err)
	}
}

// The resolver sends its queries through the stack.
func TestResolver(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		if _, err := w.s.Dial("tcp", "name.example:80"); err == nil {
			t.Error("a name was found without a server")
		}
		w.s.SetDNS([]netip.Addr{addrB})
		done := blocked(func() error { _, err := w.s.Dial("tcp", "name.example:80"); return err })
		f := w.next()
		if f == nil || f.udp == nil || f.udp.DstPort != 53 {
			t.Errorf("there is %v on the wire, want a question for port 53", f)
		}
		w.advance(time.Minute)
		select {
		case err := <-done:
			if err == nil {
				t.Error("a name was found without an answer")
			}
		default:
			t.Error("the resolver waits for ever")
		}
		w.forget()
	})
}
