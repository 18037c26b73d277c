package uart_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"loam/driver"
	"loam/driver/qtest"
	"loam/driver/uart"
)

// Bytes are transferred over QEMU's serial port in both directions.
func TestQEMU(t *testing.T) {
	for _, machine := range []string{"q35", "microvm"} {
		t.Run(machine, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "uart")
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
			m := qtest.Start(t, machine, "-serial", "unix:"+path)
			user, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer user.Close()
			p, err := uart.Open(m, uart.COM1, uart.COM1IRQ, driver.EdgeHigh)
			if err != nil {
				t.Fatal(err)
			}
			text := bytes.Repeat([]byte("over the line "), 300)
			got := make([]byte, len(text))
			go user.Write(text)
			if _, err := io.ReadFull(p, got); err != nil || !bytes.Equal(got, text) {
				t.Errorf("in: %v, equal: %v", err, bytes.Equal(got, text))
			}
			go p.Write(text)
			if _, err := io.ReadFull(user, got); err != nil || !bytes.Equal(got, text) {
				t.Errorf("out: %v, equal: %v", err, bytes.Equal(got, text))
			}
			p.Close()
			if _, err := uart.Open(m, 0x2f8, 3, driver.EdgeHigh); err == nil {
				t.Error("a second port is found")
			}
		})
	}
}
