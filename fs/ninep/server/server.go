package server

import (
	"cmp"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"loam/fs/ninep"
)

// OtherUser is the user and the group to which files of others belong.
const OtherUser = 65534

// Config describes a server. The zero value is good.
type Config struct {
	FIDs  int    // most that a client may have; 0: 16384
	Size  uint32 // most bytes of a message; 0: ninep.MaxSize
	Plain bool   // offer 9P2000.L only
}

// maxRunning bounds the requests of a client that run beside the others.
const maxRunning = 64

// server is a folder that is served to one client.
type server struct {
	Config
	root   int    // descriptor of the folder (O_PATH)
	device uint64 // that the folder is on
	uid    uint32
	groups map[uint32]bool

	owner owner // what the server's user and groups are to the client
}

// owner is a user and a group of the client.
type owner struct{ uid, gid uint32 }

// Serve serves the folder that f is open on to the client on rw. It returns when the client has ended the
// connection, which is no error, or has sent a message that is none: ninep.ErrMessage.
func Serve(rw io.ReadWriter, f *os.File, c Config) error {
	c.FIDs = cmp.Or(c.FIDs, 16384)
	c.Size = min(max(cmp.Or(c.Size, ninep.MaxSize), ninep.MinSize), ninep.MaxSize)
	s := &server{Config: c, uid: uint32(os.Geteuid()), groups: map[uint32]bool{uint32(os.Getegid()): true}}
	groups, err := os.Getgroups()
	if err != nil {
		return err
	}
	for _, g := range groups {
		s.groups[uint32(g)] = true
	}
	if s.root, err = unix.Openat(int(f.Fd()), ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return os.NewSyscallError("openat", err)
	}
	defer unix.Close(s.root)
	var st unix.Statx_t
	if err := statAt(s.root, "", &st); err != nil {
		return os.NewSyscallError("statx", err)
	}
	s.device = deviceOf(&st)
	err = newSession(s, rw).loop()
	if errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	return err
}
