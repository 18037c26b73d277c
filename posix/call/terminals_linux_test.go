package call

import (
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/devpts"
	"loam/fs/memfs"
	"loam/fs/pseudo"
	"loam/posix"
)

// callerWithTerminals returns a caller that can open pseudo-terminals.
func callerWithTerminals(t testing.TB, size int) (Caller, *flatMemory) {
	v := fs.NewView(fs.NewTree(memfs.New(memfs.Config{})))
	terminals := devpts.New()
	err := v.Mkdir(v.Root, "/dev", 0o755)
	if err == nil {
		err = pseudo.Devices(v)
	}
	if err == nil {
		err = v.Mkdir(v.Root, "/dev/pts", 0o755)
	}
	var place fs.Place
	if err == nil {
		place, err = v.LookupDir(v.Root, "/dev/pts")
	}
	if err == nil {
		err = v.Tree.Mount(terminals, place, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := &flatMemory{bytes: make([]byte, size)}
	return Caller{Process: posix.New(posix.Options{Files: v.Tree, Terminals: terminals, Credentials: posix.Credentials{PID: 7}}), Memory: m}, m
}

// The requests with the older struct termio change only the fields that this structure has. Locked settings do not change.
func TestTerminalSettingsAsOnLinux(t *testing.T) {
	s := &sequence{}
	const argument, settings = 0x100, 0x200
	s.word(argument, 0)
	master := s.open(linux.SYS_OPENAT, here, s.text("/dev/ptmx"), linux.O_RDWR|linux.O_NOCTTY)
	s.call(linux.SYS_IOCTL, master, linux.TIOCSPTLCK, at(argument))
	slave := s.open(linux.SYS_IOCTL, master, linux.TIOCGPTPEER, linux.O_RDWR|linux.O_NOCTTY)
	look := func() {
		for _, fd := range []uint64{master, slave} {
			for _, get := range []uint64{linux.TCGETA, linux.TCGETS, linux.TIOCGLCKTRMIOS} {
				s.word(settings, minus, minus, minus, minus, minus, minus)
				s.call(linux.SYS_IOCTL, fd, get, at(settings))
				s.call(linux.SYS_IOCTL, fd, get, noAddress)
			}
		}
	}
	look()
	s.call(linux.SYS_WRITE, master, s.text("a line\n"), 7)
	for _, fd := range []uint64{master, slave} {
		for _, set := range []uint64{linux.TCSETA, linux.TCSETAW, linux.TCSETAF} {
			for _, fill := range []byte{0x5a, 0xa5, 0x0f} {
				s.put(argument, fill, 0, fill, 1, fill, 0x10, fill, 0, 0, 3, 28, fill, fill, 4, 1, 0, fill, fill, fill, fill)
				s.call(linux.SYS_IOCTL, fd, set, at(argument))
				look()
			}
			s.call(linux.SYS_IOCTL, fd, set, noAddress)
		}
	}
	s.call(linux.SYS_IOCTL, slave, linux.FIONREAD, at(argument))
	for _, lock := range []uint64{minus, 0x0f0f0f0f0f0f0f0f, 0} {
		s.word(argument, lock, lock, lock, lock, lock)
		s.call(linux.SYS_IOCTL, slave, linux.TIOCSLCKTRMIOS, at(argument))
		s.call(linux.SYS_IOCTL, slave, linux.TIOCSLCKTRMIOS, noAddress)
		for _, set := range []uint64{linux.TCSETA, linux.TCSETS} {
			s.put(argument, 1, 1, 0, 0, 1, 1, 0, 0, 0x3f, 0x10, 0, 0, 1, 1, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9)
			s.call(linux.SYS_IOCTL, slave, set, at(argument))
			look()
		}
	}
	asOnLinuxBy(t, s, callerWithTerminals)
}
