package console_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"loam/driver/console"
	"loam/driver/qtest"
)

// Bytes are transferred over QEMU's console in both directions.
func TestQEMU(t *testing.T) {
	for _, w := range qtest.Ways {
		t.Run(w.Name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "console")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			path := filepath.Join(dir, "socket")
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			m, v := w.Start(t, "virtio-serial", "max_ports=1", "-chardev", "socket,id=c,path="+path, "-device", "virtconsole,chardev=c")
			user, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer user.Close()
			c, err := console.Open(v)
			if err != nil {
				t.Fatal(err)
			}
			text := bytes.Repeat([]byte("through the console "), 1000)
			go user.Write(text)
			got := make([]byte, len(text))
			if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, text) {
				t.Errorf("in: %v, equal: %v", err, bytes.Equal(got, text))
			}
			go c.Write(text)
			if _, err := io.ReadFull(user, got); err != nil || !bytes.Equal(got, text) {
				t.Errorf("out: %v, equal: %v", err, bytes.Equal(got, text))
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if n := m.Held(); n != 0 {
				t.Errorf("%d bytes of memory are kept", n)
			}
		})
	}
}
