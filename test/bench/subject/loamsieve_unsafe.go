package subject

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"loam/link"
	"loam/link/tap"
)

// loamSieve is Loam on a tap whose filter in the kernel drops all frames of a flood and no others. No filter
// can do better: a flood then costs only its sender and the kernel's path to the filter.
type loamSieve struct{ loam }

func (loamSieve) Name() string { return LoamSieve }

func (loamSieve) Tap(name string, addr netip.Prefix) (Host, error) {
	files, info, err := tap.OpenFiles(tap.Config{Name: name})
	if err != nil {
		return nil, err
	}
	raw, err := files[0].SyscallConn()
	if err != nil {
		return nil, err
	}
	if failed := raw.Control(func(fd uintptr) { err = dropStrangers(fd) }); failed != nil || err != nil {
		return nil, errors.Join(failed, err)
	}
	device, err := tap.FromFiles(files, info)
	if err != nil {
		return nil, err
	}
	return newLoamHost(struct{ link.Device }{device}, addr) // hides the methods with which the stack would replace the filter
}

// sieve is a socket filter in classic BPF that drops the packets of a flood. It stays in memory while it is attached.
var sieve = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 12},
	{Code: unix.BPF_JMP | unix.BPF_JEQ, K: unix.ETH_P_ARP, Jt: 3},
	{Code: unix.BPF_JMP | unix.BPF_JEQ, K: unix.ETH_P_IP, Jf: 5},
	{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 26},
	{Code: unix.BPF_JMP | unix.BPF_JA, K: 1},
	{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 28},
	{Code: unix.BPF_ALU | unix.BPF_AND, K: ^uint32(1<<(32-25) - 1)},
	{Code: unix.BPF_JMP | unix.BPF_JEQ, K: binary.BigEndian.Uint32(StrangerNet.Addr().AsSlice()), Jt: 1},
	{Code: unix.BPF_RET, K: 1<<32 - 1},
	{Code: unix.BPF_RET, K: 0},
}

// dropStrangers attaches the filter program sieve to the tap interface of a descriptor.
func dropStrangers(fd uintptr) error {
	program := unix.SockFprog{Len: uint16(len(sieve)), Filter: &sieve[0]}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, unix.TUNATTACHFILTER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}
