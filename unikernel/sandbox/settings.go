package sandbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"loam/unikernel/seal"
)

// settings are the instructions of the caller to the stage. They travel in a file in memory:
// one line of JSON, then the program's environment, each entry ended by a zero byte.
// (An environment need not be UTF-8, which JSON would demand.)
type settings struct {
	Descriptors int    // of the program; the stage's own follow: settings, control
	Nonblock    []int  // descriptors of the program
	Filter      []byte // struct sock_filter, one after another
	PID         []int  // instructions whose constant is the program's process ID
	Flags       uintptr
	User        int  // to become; -1: stay
	DropCaps    bool // keep no capabilities
	Probe       bool // start nothing
	env         []string
}

var errSettings = errors.New("sandbox: the settings are damaged")

func (c *Command) settings(f seal.Program, flags uintptr) *settings {
	s := &settings{
		Descriptors: c.descriptors(), Nonblock: c.Nonblock, PID: f.PID, Flags: flags,
		User: -1, Probe: c.probe, DropCaps: os.Geteuid() != 0 || !c.KeepRoot, env: c.Env,
	}
	if c.unprivileged() {
		s.User = Nobody
		if flags&syscall.CLONE_NEWUSER != 0 {
			s.User = 0 // which is Nobody outside
		}
	}
	for _, i := range f.Code {
		s.Filter = binary.LittleEndian.AppendUint16(s.Filter, i.Code)
		s.Filter = append(s.Filter, i.Jt, i.Jf)
		s.Filter = binary.LittleEndian.AppendUint32(s.Filter, i.K)
	}
	return s
}

// file writes the settings to a file in memory.
func (s *settings) file() (*os.File, error) {
	line, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("settings", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "settings")
	text := append(line, '\n')
	for _, kv := range s.env {
		text = append(append(text, kv...), 0)
	}
	if _, err := f.Write(text); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// parseSettings is the inverse of file.
func parseSettings(text []byte) (*settings, error) {
	line, env, ok := bytes.Cut(text, []byte{'\n'})
	s := new(settings)
	if !ok {
		return nil, errSettings
	}
	if err := json.Unmarshal(line, s); err != nil {
		return nil, err
	}
	for kv := range strings.SplitSeq(string(env), "\x00") {
		if kv != "" {
			s.env = append(s.env, kv)
		}
	}
	if len(s.Filter) == 0 || len(s.Filter)%instructionSize != 0 {
		return nil, errSettings
	}
	for _, i := range s.PID {
		if i < 0 || (i+1)*instructionSize > len(s.Filter) {
			return nil, errSettings
		}
	}
	return s, nil
}

// instructionSize is the size of struct sock_filter in bytes.
const instructionSize = 8
