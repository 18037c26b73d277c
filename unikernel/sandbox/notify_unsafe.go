package sandbox

import (
	"fmt"
	"os"
	"syscall"
	"unsafe" // for the addresses of structures that the kernel reads and writes

	"golang.org/x/sys/unix"
)

// Notifications of the filter (seccomp_unotify(2)).

// notification is struct seccomp_notif.
type notification struct {
	id     uint64
	pid    uint32
	flags  uint32
	number int32
	arch   uint32
	place  uint64
	args   [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// addition is struct seccomp_notif_addfd.
type addition struct {
	id          uint64
	flags       uint32
	source, new uint32
	newFlags    uint32
}

// Requests of ioctl(2), and the flag of a response that lets the call continue.
const (
	notifyReceive  = 0xc0502100 // SECCOMP_IOCTL_NOTIF_RECV
	notifySend     = 0xc0182101 // SECCOMP_IOCTL_NOTIF_SEND
	notifyAddFD    = 0x40182103 // SECCOMP_IOCTL_NOTIF_ADDFD
	notifyContinue = 1          // SECCOMP_USER_NOTIF_FLAG_CONTINUE
	addSend        = 2          // SECCOMP_ADDFD_FLAG_SEND (Linux 5.14)
)

// canNotify reports whether the kernel's filters have notifications.
func canNotify() bool {
	action := uint32(0x7fc00000) // value of SECCOMP_RET_USER_NOTIF
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

func notifyCall(listener int, request uintptr, arg unsafe.Pointer) (uintptr, error) {
	for {
		r, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), request, uintptr(arg))
		switch errno {
		case 0:
			return r, nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// receive waits for a notification of the filter: a system call of the program that the stage must answer.
func receive(listener int) (n notification, err error) {
	_, err = notifyCall(listener, notifyReceive, unsafe.Pointer(&n))
	return n, err
}

// answer completes a notified system call, which returns value or errno.
func answer(listener int, n notification, value int64, errno syscall.Errno) error {
	r := response{id: n.id, value: value, errno: -int32(errno)}
	_, err := notifyCall(listener, notifySend, unsafe.Pointer(&r))
	return err
}

// allowExec waits for the child's execveat and lets it continue. It is the first notification, because until then the
// child executes only Loam's code.
func allowExec(listener int) error {
	n, err := receive(listener)
	if err != nil {
		return os.NewSyscallError("seccomp notification", err)
	}
	if n.number != unix.SYS_EXECVEAT {
		return fmt.Errorf("the first notification is call %d, not execveat", n.number)
	}
	r := response{id: n.id, flags: notifyContinue}
	if _, err := notifyCall(listener, notifySend, unsafe.Pointer(&r)); err != nil {
		return ErrKernel // kernels before Linux 5.5 do not know the flag, and return EINVAL
	}
	return nil
}

// serveMaps answers the first openat2 with a descriptor of the program's maps. Notifications that precede it are
// answered with an error. After that, or when the program has ended, serveMaps closes the listener: notified calls then
// return ENOSYS.
func serveMaps(listener, proc, pid int) {
	defer unix.Close(listener)
	for {
		n, err := receive(listener)
		if err != nil { // ENOENT: no process with the filter exists any more
			return
		}
		if n.number != unix.SYS_OPENAT2 {
			answer(listener, n, 0, unix.ENOSYS)
			continue
		}
		switch err := handMaps(listener, n, proc, pid); err {
		case nil:
			return
		case unix.ENOENT: // a signal has interrupted the call, and the program makes it again
		default:
			answer(listener, n, 0, unix.ENOENT)
			return
		}
	}
}

// handMaps answers a notification with a descriptor of the maps of the process pid.
func handMaps(listener int, n notification, proc, pid int) error {
	maps, err := unix.Openat(proc, fmt.Sprintf("%d/maps", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return unix.EACCES
	}
	defer unix.Close(maps)
	a := addition{id: n.id, flags: addSend, source: uint32(maps), newFlags: unix.O_CLOEXEC}
	_, err = notifyCall(listener, notifyAddFD, unsafe.Pointer(&a))
	return err
}
