package socket

import (
	"net/netip"
	"slices"
	"testing"

	"loam/abi/linux"
)

func TestAddressForms(t *testing.T) {
	for _, c := range []struct {
		a    Address
		want []byte
	}{
		{Inet(netip.MustParseAddrPort("10.0.2.15:80")), []byte{2, 0, 0, 80, 10, 0, 2, 15, 0, 0, 0, 0, 0, 0, 0, 0}},
		{Address{Family: linux.AF_UNIX}, []byte{1, 0}},
		{Address{Family: linux.AF_UNIX, Name: "/a"}, []byte{1, 0, '/', 'a', 0}},
		{Address{Family: linux.AF_UNIX, Name: "\x00ab"}, []byte{1, 0, 0, 'a', 'b'}},
		{Address{Family: linux.AF_NETLINK, Port: 1, Groups: 2}, []byte{16, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}},
	} {
		got := c.a.Append(nil)
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v is % x, want % x", c.a, got, c.want)
		}
		if back, errno := ParseAddress(got); back != c.a || errno != 0 {
			t.Errorf("% x is %+v, %v", got, back, errno)
		}
	}
}

// A path ends at the first NUL, an abstract name at the end of the address.
func TestUnixNames(t *testing.T) {
	for in, want := range map[string]string{"/a\x00rubbish": "/a", "\x00a\x00b": "\x00a\x00b", "": ""} {
		a, errno := ParseAddress(append([]byte{1, 0}, in...))
		if a.Name != want || errno != 0 {
			t.Errorf("%q is %q, %v", in, a.Name, errno)
		}
	}
}

func TestBadAddresses(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want linux.Errno
	}{
		{nil, linux.EINVAL},
		{[]byte{2}, linux.EINVAL},
		{[]byte{2, 0, 0, 80, 10}, linux.EINVAL},
		{append([]byte{10, 0}, make([]byte, 20)...), linux.EINVAL},
		{append([]byte{1, 0}, make([]byte, 120)...), linux.EINVAL},
		{append([]byte{31, 0}, make([]byte, 20)...), linux.EAFNOSUPPORT}, // AF_BLUETOOTH
		{make([]byte, 200), linux.EINVAL},
	} {
		_, errno := ParseAddress(c.b)
		if errno != c.want {
			t.Errorf("address: errno %v, want %v", errno, c.want)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add(Inet(netip.MustParseAddrPort("10.0.2.15:80")).Append(nil))
	f.Add(Address{Family: linux.AF_UNIX, Name: "/run/x"}.Append(nil))
	f.Add(Address{Family: linux.AF_INET6, IP: netip.MustParseAddrPort("[::1]:1")}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, errno := ParseAddress(b)
		if errno != 0 || len(a.Name) == linux.SizeofSunPath { // Linux also returns the longest path with an extra NUL
			return
		}
		if back, errno := ParseAddress(a.Append(nil)); a.Family != 0 && (back != a || errno != 0) {
			t.Errorf("%+v became %+v, %v", a, back, errno)
		}
	})
}
