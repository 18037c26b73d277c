package posix

import (
	"bytes"
	"syscall"
	"testing"
)

// netdevice(7): what is told of an interface, by its name or by its index.
func TestInterfaceRequest(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0))
	ask := func(request int, name string, value ...byte) ([]byte, Errno) {
		arg := make([]byte, InterfaceRequestLen)
		copy(arg, name)
		copy(arg[syscall.IFNAMSIZ:], value)
		if !IsInterfaceRequest(request) {
			t.Errorf("%#x is none of these requests", request)
		}
		errno := p.InterfaceRequest(s, request, arg)
		return arg, errno
	}
	for request, want := range map[int][]byte{
		syscall.SIOCGIFINDEX:   {1, 0, 0, 0},
		syscall.SIOCGIFFLAGS:   {syscall.IFF_UP | syscall.IFF_RUNNING | syscall.IFF_LOOPBACK, 0},
		syscall.SIOCGIFADDR:    {syscall.AF_INET, 0, 0, 0, 127, 0, 0, 1},
		syscall.SIOCGIFNETMASK: {syscall.AF_INET, 0, 0, 0, 255, 0, 0, 0},
		syscall.SIOCGIFHWADDR:  {arphrdLoopback & 0xff, arphrdLoopback >> 8, 0, 0},
		syscall.SIOCGIFMTU:     intValue(p.net.Interfaces()[0].MTU()),
	} {
		arg, errno := ask(request, "lo", 9, 9, 9, 9)
		ok(t, errno)
		if got := arg[syscall.IFNAMSIZ:][:len(want)]; !bytes.Equal(got, want) {
			t.Errorf("request %#x: % x, want % x", request, got, want)
		}
	}
	arg, errno := ask(syscall.SIOCGIFNAME, "what stood here", 1)
	if ok(t, errno); !bytes.Equal(arg[:4], []byte("lo\x00\x00")) {
		t.Errorf("the name of the first: %q", arg)
	}
	_, errno = ask(syscall.SIOCGIFNAME, "", 77)
	wantErrno(t, errno, syscall.ENODEV, "the 77th")
	_, errno = ask(syscall.SIOCGIFMTU, "none")
	wantErrno(t, errno, syscall.ENODEV, "one that is not there")
	s = fd(t)(openFile(p))
	_, errno = ask(syscall.SIOCGIFMTU, "lo")
	wantErrno(t, errno, syscall.ENOTTY, "asking a file")
}
