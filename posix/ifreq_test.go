package posix

import (
	"bytes"
	"testing"

	"loam/abi/linux"
	"loam/posix/socket"
)

// netdevice(7): interface properties are returned by name or by index.
func TestInterfaceRequest(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	ask := func(request int, name string, value ...byte) ([]byte, Errno) {
		arg := make([]byte, linux.SizeofIfreq)
		copy(arg, name)
		copy(arg[linux.IFNAMSIZ:], value)
		if !IsInterfaceRequest(request) {
			t.Errorf("%#x is none of these requests", request)
		}
		errno := p.InterfaceRequest(s, request, arg)
		return arg, errno
	}
	for request, want := range map[int][]byte{
		linux.SIOCGIFINDEX:   {1, 0, 0, 0},
		linux.SIOCGIFFLAGS:   {linux.IFF_UP | linux.IFF_RUNNING | linux.IFF_LOOPBACK, 0},
		linux.SIOCGIFADDR:    {linux.AF_INET, 0, 0, 0, 127, 0, 0, 1},
		linux.SIOCGIFNETMASK: {linux.AF_INET, 0, 0, 0, 255, 0, 0, 0},
		linux.SIOCGIFHWADDR:  {linux.ARPHRD_LOOPBACK & 0xff, linux.ARPHRD_LOOPBACK >> 8, 0, 0},
		linux.SIOCGIFTXQLEN:  {0xe8, 3, 0, 0},
		linux.SIOCGIFMTU:     socket.IntValue(p.net.Interfaces()[0].MTU()),
	} {
		arg, errno := ask(request, "lo", 9, 9, 9, 9)
		ok(t, errno)
		if got := arg[linux.IFNAMSIZ:][:len(want)]; !bytes.Equal(got, want) {
			t.Errorf("request %#x: % x, want % x", request, got, want)
		}
	}
	arg, errno := ask(linux.SIOCGIFNAME, "what stood here", 1)
	if ok(t, errno); !bytes.Equal(arg[:4], []byte("lo\x00\x00")) {
		t.Errorf("the name of the first: %q", arg)
	}
	_, errno = ask(linux.SIOCGIFNAME, "", 77)
	wantErrno(t, errno, linux.ENODEV, "the 77th")
	_, errno = ask(linux.SIOCGIFMTU, "none")
	wantErrno(t, errno, linux.ENODEV, "one that is not there")
	_, errno = ask(linux.SIOCETHTOOL, "lo")
	wantErrno(t, errno, linux.EOPNOTSUPP, "ethtool")
	_, errno = ask(linux.SIOCETHTOOL, "none")
	wantErrno(t, errno, linux.ENODEV, "ethtool of one that is not there")
	list, errno := p.InterfaceList(s)
	want := make([]byte, linux.SizeofIfreq)
	copy(want, "lo")
	copy(want[linux.IFNAMSIZ:], []byte{linux.AF_INET, 0, 0, 0, 127, 0, 0, 1})
	if ok(t, errno); len(list)%linux.SizeofIfreq != 0 || !bytes.HasPrefix(list, want) {
		t.Errorf("the list is % x, want first % x", list, want)
	}
	s = fd(t)(openFile(p))
	_, errno = ask(linux.SIOCGIFMTU, "lo")
	wantErrno(t, errno, linux.ENOTTY, "asking a file")
	_, errno = p.InterfaceList(s)
	wantErrno(t, errno, linux.ENOTTY, "asking a file for the list")
}
