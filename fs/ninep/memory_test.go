package ninep_test

import (
	"io"
	"testing"

	"loam/fs"
	"loam/fs/fstest"
	"loam/fs/ninep"
	"loam/fs/ninep/ring"
	"loam/fs/ninep/ring/ringtest"
	"loam/fs/ninep/server"
)

// exportMemory is like export, but client and server communicate in memory.
func exportMemory(t testing.TB, folder string, c ninep.Config) *ninep.FileSystem {
	t.Helper()
	near, far := dial(t)
	memory := make([]byte, ring.Size)
	return exportBetween(t, folder, c, server.Config{}, ring.New(memory, ringtest.Peer{ReadWriteCloser: near}, false), ring.New(memory, ringtest.Peer{ReadWriteCloser: far}, true))
}

// The suite of all file systems, over a connection in memory.
func TestMemory(t *testing.T) {
	for name, c := range map[string]ninep.Config{"loose": {}, "none": {Cache: ninep.None}} {
		t.Run(name, func(t *testing.T) {
			fstest.TestNames(t, manyNames()/4, func(t *testing.T) fs.FileSystem {
				return quiet{exportMemory(t, folder(t), c)}
			})
		})
	}
}

// The server serves all requests that a client has sent before it ended, and then ends without an error.
func TestMemoryOfEndedClient(t *testing.T) {
	dir := folder(t)
	s := exportMemory(t, dir, ninep.Config{Cache: ninep.None})
	v := view(s)
	write(t, v, "f", "text", 0)
	s.Close() // exportMemory checks that the server ends
	if _, err := v.Lookup(v.Dir, "f", true); err == nil {
		t.Error("a file of an ended server is found")
	}
}

var _ io.ReadWriteCloser = (*ring.Conn)(nil)
