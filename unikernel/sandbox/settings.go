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

// settings are the caller's instructions to the stage. They are passed in a memory file: one line of JSON, then the
// program's environment with a zero byte after each entry. The environment is not part of the JSON because it may not
// be valid UTF-8.
type settings struct {
	Descriptors int    // number of descriptors of the program; the stage's own descriptors follow: settings, control socket
	Nonblock    []int  // descriptors of the program that are set non-blocking
	Filter      []byte // array of struct sock_filter
	PID         []int  // indices of instructions that contain the program's process ID
	Flags       uintptr
	User        int  // user ID to change to; -1: keep the user ID
	DropCaps    bool // drop all capabilities
	Probe       bool // report the layers and start no program
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
			s.User = 0 // user 0 of the user namespace is the user Nobody outside of it
		}
	}
	for _, i := range f.Code {
		s.Filter = binary.LittleEndian.AppendUint16(s.Filter, i.Code)
		s.Filter = append(s.Filter, i.Jt, i.Jf)
		s.Filter = binary.LittleEndian.AppendUint32(s.Filter, i.K)
	}
	return s
}

// file writes the settings to a memory file.
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
