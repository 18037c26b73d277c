package unikernel

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"loam/fs/ninep/server"
	"loam/unikernel/guest"
)

// Shared is a folder of the host that the program reads and changes. A server process (fs/ninep/server), which cannot
// leave the folder, serves it. The program connects to the server by a socket, or in a virtual machine by a virtio
// console.
type Shared struct {
	Host    string // path on the host
	Guest   string // absolute path in the guest
	NoCache bool   // the program sees changes by other processes at once, because each call asks the server

	root bool // the folder is the root itself (Options.RootShared)
}

// maxShared is the maximum number of shared folders of a program. Each needs a server process, and in a machine also a
// device.
const maxShared = 8

// share starts the servers of folders and gives the guest the connections.
func (n *network) share(folders []Shared, platform Platform) error {
	if len(folders) > maxShared {
		return errorf("give folders that hold several", "a program cannot have more than %d folders with :rw", maxShared)
	}
	var memory []*os.File
	for i, s := range folders {
		c, err := s.start(platform != Machine)
		if err != nil {
			return err
		}
		g := guest.Shared{Server: i, Path: path.Clean(s.Guest), NoCache: s.NoCache}
		if platform == Machine {
			n.shared = append(n.shared, c.Socket)
		} else {
			g.Server = n.give(c.Socket)
			memory = append(memory, c.Memory)
		}
		n.config.Shared = append(n.config.Shared, g)
	}
	for i, m := range memory { // these descriptors are consecutive, because the filter of system calls allows a range
		n.config.Shared[i].Memory = n.give(m)
	}
	return nil
}

// start starts the server of a folder, and returns the connection to it.
func (s *Shared) start(memory bool) (*server.Client, error) {
	f, err := os.Open(s.Host)
	if err != nil {
		return nil, errorf("name a folder that is there and can be read", "%s %s: %v", s.flag(), s.Host, cause(err))
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.IsDir() {
		return nil, errorf("give its folder, with :rw", "%s %s: only folders can be given with :rw", s.flag(), s.Host)
	}
	if !path.IsAbs(s.Guest) || path.Clean(s.Guest) == "/" && !s.root {
		return nil, errorf("name an absolute path other than /", "-v: %q is no place in the program's files", s.Guest)
	}
	c, err := server.Start(f, memory)
	if err != nil {
		return nil, errorf("leave out :rw", "%s %s: its server cannot be started: %v", s.flag(), s.Host, err)
	}
	return c, nil
}

// flag returns the user's option for the folder, for messages.
func (s *Shared) flag() string {
	if s.root {
		return "--root"
	}
	return "-v"
}

// cause returns the error of the system call in a fs.PathError, without its path.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// addShared adds a console for each folder's server.
func (m *monitor) addShared(model string, sockets []*os.File) {
	for i, s := range sockets {
		m.addConsole("folder"+string(rune('0'+i)), model, s)
	}
}
