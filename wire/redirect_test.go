package wire

import (
	"bytes"
	"testing"
)

// A redirect to another router, encoded by hand from RFC 4861 section 4.5, with the target's link-layer
// address and the front of a packet.
var (
	redirect6 = unhex(`89 00 0000 00000000 fe800000000000000000000000000002 20010db8000f00000000000000000001 0201 02000000000c`)
	quoting6  = append(bytes.Clone(redirect6), unhex("0401 000000000000")...)
)

func TestRedirect(t *testing.T) {
	router := Redirect{Target: addr("fe80::2"), Dst: addr("2001:db8:f::1"), LinkAddr: mac("02:00:00:00:00:0c")}
	onLink := patch(redirect6, 8, redirect6[24:40]...)
	for _, c := range []struct {
		sentence string
		b        []byte
		want     Redirect
		whole    bool
	}{
		{"to a router", redirect6, router, true},
		{"which quotes a packet", quoting6, router, false},
		{"without its station", redirect6[:RedirectLen], Redirect{Target: router.Target, Dst: router.Dst}, true},
		{"to the destination itself", onLink, Redirect{Target: router.Dst, Dst: router.Dst, LinkAddr: router.LinkAddr}, true},
	} {
		r, err := ParseRedirect(c.b)
		if err != nil || r != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.sentence, r, err, c.want)
		}
		b := make([]byte, r.Len())
		if r.Put(b); c.whole && !bytes.Equal(b, c.b) {
			t.Errorf("%s: put % x, want % x", c.sentence, b, c.b)
		}
	}
}

// RFC 4861 section 8.1: messages that a host must ignore.
func TestRedirectRefuses(t *testing.T) {
	testRefusals(t, func(b []byte) error { _, err := ParseRedirect(b); return err }, []refusal{
		{"less than 40 octets", redirect6[:39], ErrShort},
		{"another message", patch(redirect6, 0, 136), ErrField},
		{"a code", patch(redirect6, 1, 1), ErrField},
		{"a destination that is a group", patch(redirect6, 24, 0xff, 0x0e), ErrField},
		{"a target that is neither link-local nor the destination", patch(redirect6, 8, 0x20, 0x01), ErrField},
		{"an option without length", patch(redirect6, 41, 0), ErrOption},
		{"an option beyond the end", patch(redirect6, 41, 2), ErrOption},
	})
}

func FuzzRedirect(f *testing.F) {
	f.Add(redirect6)
	f.Add(quoting6)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRedirect(b)
		if err != nil {
			return
		}
		again := make([]byte, r.Len())
		r.Put(again)
		if got, err := ParseRedirect(again); err != nil || got != r {
			t.Fatalf("%+v became %+v, %v", r, got, err)
		}
	})
}
