package server_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"loam/fs"
	"loam/fs/ninep"
	"loam/fs/ninep/ring"
	"loam/fs/ninep/ring/ringtest"
	"loam/fs/ninep/server"
)

// dial starts a server and returns the client's end of its connection.
func dial(t *testing.T, f *os.File, memory bool) io.ReadWriteCloser {
	t.Helper()
	c, err := server.Start(f, memory)
	if err != nil {
		t.Fatal(err)
	}
	if !memory {
		return c.Socket
	}
	m, err := syscall.Mmap(int(c.Memory.Fd()), 0, ring.Size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(m) })
	if err := c.Memory.Truncate(0); err == nil {
		t.Error("the memory can be shrunk")
	}
	c.Memory.Close()
	return ring.New(m, ringtest.Peer{ReadWriteCloser: c.Socket}, false)
}

// A server as a process acts as the folder's owner, and has no capabilities.
func TestProcess(t *testing.T) {
	t.Run("socket", func(t *testing.T) { testProcess(t, false) })
	t.Run("memory", func(t *testing.T) { testProcess(t, true) })
}

func testProcess(t *testing.T, memory bool) {
	dir := t.TempDir()
	owner := os.Geteuid()
	if owner == 0 {
		owner = 1234
		if err := os.Chown(dir, owner, owner); err != nil {
			t.Fatal(err)
		}
		for up := filepath.Dir(dir); up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
			os.Chmod(up, 0o755)
		}
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := ninep.New(dial(t, f, memory), ninep.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n, err := s.Root().Make("f", fs.Regular|0o640, fs.Owner{}, fs.Device{})
	if err != nil {
		t.Fatal(err)
	}
	if a := n.Attr(); a.UID != 0 || a.Mode != fs.Regular|0o640 {
		t.Errorf("the client sees user %d, mode %o", a.UID, a.Mode)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(dir+"/f", &st); err != nil || int(st.Uid) != owner || st.Mode != syscall.S_IFREG|0o640 {
		t.Errorf("on the host: user %d, mode %o, %v; want user %d", st.Uid, st.Mode, err, owner)
	}
	if os.Geteuid() == 0 { // a file of root that the folder's owner cannot read
		if err := os.WriteFile(dir+"/secret", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := s.Root().Lookup("secret")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Open(fs.ReadOnly); err == nil || n.Attr().UID != server.OtherUser {
			t.Errorf("a file of root's is opened: %v, of user %d", err, n.Attr().UID)
		}
	}
	if text := status(t, dir); text != "" {
		t.Error(text)
	}
}

// status returns the processes that serve a folder although they have a capability; "" if there are none.
func status(t *testing.T, dir string) string {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, p := range all {
		if b, err := os.ReadFile(p); err != nil || strings.TrimRight(string(b), "\x00") != "loam: folder" {
			continue
		}
		if to, err := os.Readlink(filepath.Dir(p) + "/fd/4"); err != nil || to != dir {
			continue
		}
		found++
		b, _ := os.ReadFile(filepath.Dir(p) + "/status")
		for _, want := range []string{"CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapBnd:\t", "NoNewPrivs:\t1"} {
			if !strings.Contains(string(b), want) {
				return want + " is missing in " + string(b)
			}
		}
	}
	if found != 1 && os.Geteuid() == 0 {
		return "the server's process is not found"
	}
	return ""
}
