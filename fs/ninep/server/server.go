package server

import (
	"cmp"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"loam/fs/ninep"
)

// OtherUser is the user and the group of files that do not belong to the server's user or groups.
const OtherUser = 65534

// Config describes a server. The zero value selects the defaults.
type Config struct {
	FIDs  int    // maximum number of FIDs of a client; 0: 16384
	Size  uint32 // maximum bytes of a message; 0: ninep.MaxSize
	Plain bool   // offer 9P2000.L only
}

// maxRunning limits the requests of a client that run in their own goroutines.
const maxRunning = 64

// server is a folder that is served to one client.
type server struct {
	Config
	root   int    // descriptor of the folder (O_PATH)
	device uint64 // device number of the folder
	uid    uint32
	groups map[uint32]bool

	owner owner // the client's user and group for files of the server's user and groups
}

// owner is a user and a group of the client.
type owner struct{ uid, gid uint32 }

// Serve serves the folder that f is open on to the client on rw. It returns when the client has ended the connection,
// which is no error, or has sent a malformed message: ninep.ErrMessage.
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
