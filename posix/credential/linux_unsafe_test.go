package credential

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"loam/abi/linux"
)

// thread is a thread of the Linux kernel that runs the test. The thread changes its own credentials and ends
// afterwards.
type thread struct{}

func raw(number int, args ...uint64) (int64, linux.Errno) {
	var a [6]uintptr
	for i, v := range args {
		a[i] = uintptr(v)
	}
	r, _, e := syscall.RawSyscall6(uintptr(number), a[0], a[1], a[2], a[3], a[4], a[5])
	return int64(r), linux.Errno(e)
}

// read returns the credentials of the calling thread. The bounding set is read only for the capabilities in names.
func (thread) read() (s Set) {
	address := func(p *uint32) uint64 { return uint64(uintptr(unsafe.Pointer(p))) }
	raw(linux.SYS_GETRESUID, address(&s.UID), address(&s.EUID), address(&s.SUID))
	raw(linux.SYS_GETRESGID, address(&s.GID), address(&s.EGID), address(&s.SGID))
	id, _ := raw(linux.SYS_SETFSUID, uint64(unchanged))
	s.FSUID = uint32(id)
	id, _ = raw(linux.SYS_SETFSGID, uint64(unchanged))
	s.FSGID = uint32(id)
	groups := make([]uint32, 64)
	n, _ := raw(linux.SYS_GETGROUPS, uint64(len(groups)), address(&groups[0]))
	s.Groups = groups[:n:n]
	header := [2]uint32{linux.CAPABILITY_VERSION_3, 0}
	var data [6]uint32
	raw(linux.SYS_CAPGET, address(&header[0]), address(&data[0]))
	join := func(i int) Capabilities { return Capabilities(data[i]) | Capabilities(data[i+3])<<32 }
	s.Effective, s.Permitted, s.Inheritable = join(0), join(1), join(2)
	for i := range uint64(linux.CAP_LAST_CAP + 1) {
		on, _ := raw(linux.SYS_PRCTL, linux.PR_CAPBSET_READ, i)
		s.Bounding |= Capabilities(on) << i
		on, _ = raw(linux.SYS_PRCTL, linux.PR_CAP_AMBIENT, linux.PR_CAP_AMBIENT_IS_SET, i, 0, 0)
		s.Ambient |= Capabilities(on) << i
	}
	bits, _ := raw(linux.SYS_PRCTL, linux.PR_GET_SECUREBITS)
	s.Secure = uint32(bits)
	return s
}

// step makes a random call on the thread of Linux and the same call on the model, whose state is s. It returns the name of
// the call, the error of Linux, and the next state and the error of the model.
func (thread) step(r *rand.Rand, s Set) (name string, got linux.Errno, next Set, want linux.Errno) {
	ids := []uint32{0, 0, 1, 2, 1000, unchanged}
	id := func() uint32 { return ids[r.IntN(len(ids))] }
	set := func(of Capabilities) Capabilities {
		switch r.IntN(4) {
		case 0:
			return 0
		case 1:
			return of
		case 2:
			return of &^ (1 << r.IntN(41))
		}
		return Capabilities(r.Uint64()) & (of | 1<<linux.CAP_SETPCAP)
	}
	a, b, c := id(), id(), id()
	x, y, z := uint64(a), uint64(b), uint64(c)
	n := uint64(r.IntN(43))
	call := func(number int, args ...uint64) { _, got = raw(number, args...) }
	switch r.IntN(16) {
	case 0:
		call(linux.SYS_SETUID, x)
		next, want = s.SetUID(a)
		name = fmt.Sprint("setuid ", a)
	case 1:
		call(linux.SYS_SETREUID, x, y)
		next, want = s.SetReUID(a, b)
		name = fmt.Sprint("setreuid ", a, b)
	case 2, 3, 4:
		call(linux.SYS_SETRESUID, x, y, z)
		next, want = s.SetResUID(a, b, c)
		name = fmt.Sprint("setresuid ", a, b, c)
	case 5:
		call(linux.SYS_SETFSUID, x)
		next, got = s.SetFSUID(a), 0
		name = fmt.Sprint("setfsuid ", a)
	case 6:
		call(linux.SYS_SETGID, x)
		next, want = s.SetGID(a)
		name = fmt.Sprint("setgid ", a)
	case 7:
		call(linux.SYS_SETREGID, x, y)
		next, want = s.SetReGID(a, b)
		name = fmt.Sprint("setregid ", a, b)
	case 8:
		call(linux.SYS_SETRESGID, x, y, z)
		next, want = s.SetResGID(a, b, c)
		name = fmt.Sprint("setresgid ", a, b, c)
	case 9:
		call(linux.SYS_SETFSGID, x)
		next, got = s.SetFSGID(a), 0
		name = fmt.Sprint("setfsgid ", a)
	case 10:
		groups := []uint32{2000, a, 7, b}
		call(linux.SYS_SETGROUPS, uint64(len(groups)), uint64(uintptr(unsafe.Pointer(&groups[0]))))
		next, want = s.SetGroups(groups)
		name = fmt.Sprint("setgroups ", groups)
	case 11, 12:
		effective, permitted, inheritable := set(s.Effective), set(s.Permitted), set(s.Permitted|s.Bounding)
		header := [2]uint32{linux.CAPABILITY_VERSION_3, 0}
		data := [6]uint32{uint32(effective), uint32(permitted), uint32(inheritable), uint32(effective >> 32), uint32(permitted >> 32), uint32(inheritable >> 32)}
		call(linux.SYS_CAPSET, uint64(uintptr(unsafe.Pointer(&header))), uint64(uintptr(unsafe.Pointer(&data))))
		next, want = s.SetCapabilities(effective, permitted, inheritable)
		name = fmt.Sprintf("capset %x %x %x", effective, permitted, inheritable)
	case 13:
		call(linux.SYS_PRCTL, linux.PR_CAPBSET_DROP, n)
		next, want = s.Drop(n)
		name = fmt.Sprint("drop ", n)
	case 14:
		if r.IntN(2) == 0 {
			call(linux.SYS_PRCTL, linux.PR_SET_KEEPCAPS, n&1)
			next, want = s.SetKeepCaps(n & 1)
			name = fmt.Sprint("keep ", n&1)
		} else {
			bits := uint64(1) << r.IntN(8) &^ (NoRoot << 1)
			call(linux.SYS_PRCTL, linux.PR_SET_SECUREBITS, bits)
			next, want = s.SetSecure(bits)
			name = fmt.Sprint("securebits ", bits)
		}
	default:
		on := r.IntN(3) > 0
		how := uint64(linux.PR_CAP_AMBIENT_LOWER)
		if on {
			how = linux.PR_CAP_AMBIENT_RAISE
		}
		call(linux.SYS_PRCTL, linux.PR_CAP_AMBIENT, how, n, 0, 0)
		next, want = s.SetAmbient(n, on)
		name = fmt.Sprint("ambient ", n, on)
	}
	runtime.KeepAlive(ids)
	return name, got, next, want
}

// Random calls have the same outcome on a thread of Linux and in the model. As root, more of them succeed.
func TestAsLinux(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range uint64(200) {
		done := make(chan string, 1)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			done <- compare(rand.New(rand.NewPCG(seed, i)))
		}()
		if text := <-done; text != "" {
			t.Fatal(text)
		}
	}
}

func compare(r *rand.Rand) string {
	var on thread
	s := on.read()
	log := ""
	for range 40 {
		name, got, next, want := on.step(r, s)
		log += fmt.Sprintln(name, got)
		if got != want {
			return fmt.Sprintf("%smodel %v, Linux %v with\n%+v", log, want, got, s)
		}
		if got == 0 {
			s = next
		}
		if is := on.read(); !same(is, s) {
			return fmt.Sprintf("%smodel\n%+v\nLinux\n%+v", log, s, is)
		}
	}
	return ""
}

func same(a, b Set) bool {
	return fmt.Sprint(a) == fmt.Sprint(b) || slices.Equal(a.Groups, b.Groups) && fmt.Sprint(a.without()) == fmt.Sprint(b.without())
}

func (s Set) without() Set {
	s.Groups = nil
	return s
}
