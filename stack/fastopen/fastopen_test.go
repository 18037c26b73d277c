package fastopen

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"loam/wire"
)

var (
	client = netip.MustParseAddr("192.0.2.1")
	server = netip.MustParseAddr("192.0.2.2")
)

// RFC 7413 section 4.1.2: a cookie is valid for one client, and keys are replaced from time to time.
func TestKeys(t *testing.T) {
	for n, valid := range map[int]bool{0: false, 15: false, KeyLen: true, 24: false, 2 * KeyLen: true, 3 * KeyLen: false} {
		if k := NewKeys(make([]byte, n)); (k != nil) != valid || k != nil && !bytes.Equal(k.Bytes(), make([]byte, n)) {
			t.Errorf("%d bytes: %v", n, k)
		}
	}
	before := NewKeys(bytes.Repeat([]byte{1}, KeyLen))
	after := NewKeys(append(bytes.Repeat([]byte{2}, KeyLen), bytes.Repeat([]byte{1}, KeyLen)...))
	old, fresh := before.Cookie(client, server), after.Cookie(client, server)
	for _, test := range []struct {
		keys *Keys
		c    wire.FastOpenCookie
		from netip.Addr
		want Verdict
	}{{before, old, client, Valid}, {before, fresh, client, Wrong}, {after, old, client, Older}, {after, fresh, client, Valid}, {before, old, server, Wrong}} {
		if got := test.keys.Check(&test.c, test.from, server); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
	if old.Len() != cookieLen {
		t.Errorf("a cookie of %d bytes", old.Len())
	}
}

// RFC 7413 section 5.1: a server limits the pending requests, and counts those that were reset for a while.
func TestQueue(t *testing.T) {
	var q Queue
	for i, want := range []bool{true, true, false} {
		if q.Enter(0, 2) != want {
			t.Fatalf("request %d: want %v", i, want)
		}
	}
	q.Leave(0, false)
	if !q.Enter(0, 2) {
		t.Fatal("a request has completed its handshake")
	}
	q.Leave(time.Second, true)
	if q.Enter(resetTime, 2) {
		t.Fatal("a reset request counts for a minute")
	}
	if !q.Enter(resetTime+time.Second, 2) {
		t.Fatal("and not longer")
	}
}

func TestCache(t *testing.T) {
	var c Cache
	if got := c.Get(0, server); got != (Server{}) {
		t.Errorf("an empty cache has %+v", got)
	}
	want := Server{MSS: 1000}
	want.Cookie, _ = wire.NewFastOpenCookie([]byte("cookie"))
	addr := server
	for range maxServers + 10 {
		c.Put(0, addr, want, false)
		if got := c.Get(0, addr); got != want {
			t.Fatalf("got %+v", got)
		}
		addr = addr.Next()
	}
	if len(c.servers) != maxServers {
		t.Errorf("%d servers", len(c.servers))
	}
}

// RFC 7413 section 4.1.3.1: clients remember that SYNs with data are lost.
func TestCachePauses(t *testing.T) {
	var c Cache
	known := Server{MSS: 1000}
	known.Cookie, _ = wire.NewFastOpenCookie([]byte("cookie"))
	want := func(what string, now time.Duration, want Server) {
		t.Helper()
		if got := c.Get(now, server); got != want {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	c.Put(0, server, Server{}, false)
	if len(c.servers) != 0 {
		t.Error("a server without cookies is remembered")
	}
	c.Put(0, server, known, false)
	c.Put(0, server, Server{}, true)
	want("one loss", 0, known)
	c.Put(0, server, Server{}, false)
	c.Put(0, server, Server{}, true)
	want("one loss after a success", 0, known)
	c.Put(time.Second, server, Server{}, true)
	want("two losses", time.Second, Server{Paused: true})
	want("two losses", 4*time.Minute, Server{Paused: true})
	want("after the pause", 4*time.Minute+time.Second, known)
	c.Put(5*time.Minute, server, Server{}, true)
	want("another loss", 12*time.Minute, Server{Paused: true})
	for range 1000 {
		c.Put(0, server, Server{}, true)
	}
	want("many losses", time.Hour, Server{Paused: true})
	want("many losses", 5*time.Hour, known)
}
