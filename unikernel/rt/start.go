package rt

import (
	"syscall"
	_ "unsafe" // for go:linkname

	"loam/posix"
)

// Loam's descriptors, as the edited standard library knows them.
const (
	firstFD = 1 << 24
	spanFD  = 1 << 24
)

// process is the program. It is set before the door opens and never changed.
var process *posix.Process

// refusals has the errno of each call that is refused: see posix.Table.
var refusals [512]uintptr

// serve opens the door: calls says by number which ones Loam may serve.
//
//go:linkname serve syscall.loamServe
func serve(calls *[512]uint8)

func init() {
	process = posix.New(posix.Options{
		Host:    linux{},
		FirstFD: firstFD,
		Credentials: posix.Credentials{
			PID: int32(syscall.Getpid()), UID: int32(syscall.Getuid()), GID: int32(syscall.Getgid()),
		},
	})
	var calls [512]uint8
	for _, c := range posix.Table {
		calls[c.Number] = uint8(c.Takes)
		refusals[c.Number] = uintptr(c.Errno)
	}
	serve(&calls)
}
